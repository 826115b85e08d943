"""Noise on integers is priced by its own law: both orders, coarse grids, compositions and samples."""

from __future__ import annotations

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import msgspec
import numpy as np
import pytest

from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Neighbours,
    PureDP,
    Relation,
    Repeat,
    Sampled,
    curve_of,
    delta_of,
    epsilon_of,
)
from tests.privacy.reference import Array, hockey_stick

ADD_REMOVE = Neighbours(Relation.ADD_REMOVE)


def _gaussian_pair(std: float, shift: int) -> tuple[Array, Array]:
    """Return discrete Gaussian noise around `shift` and around 0, on a window of 1e-35 or more."""
    y = np.arange(-math.ceil(13 * std) - 2, math.ceil(13 * std) + 3 + shift)
    laws = [np.exp(-((y - centre) ** 2) / (2 * std * std)) for centre in (shift, 0)]
    return laws[0] / laws[0].sum(), laws[1] / laws[1].sum()


def _laplace_pair(scale: float, shift: int) -> tuple[Array, Array]:
    """Return discrete Laplace noise around `shift` and around 0."""
    y = np.arange(-math.ceil(80 * scale) - 2, math.ceil(80 * scale) + 3 + shift)
    norm = math.tanh(1 / (2 * scale))
    return np.exp(-np.abs(y - shift) / scale) * norm, np.exp(-np.abs(y) / scale) * norm


def _together(pairs: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the joint laws of independent pairs."""
    p, q = np.ones(1), np.ones(1)
    for first, second in pairs:
        p, q = np.outer(p, first).ravel(), np.outer(q, second).ravel()
    return p, q


@pytest.mark.parametrize("std", [0.2, 0.35, 0.5, 0.8, 1.3, 2.0, 4.0, 8.99, 9.0, 11.0])
@pytest.mark.parametrize("sensitivity", [1.0, 2.0, 2.9, 7.0])
def test_discrete_gaussian_covers_every_shift_within_its_sensitivity(std: float, sensitivity: float) -> None:
    event = DiscreteGaussian(std, sensitivity)
    mu = sensitivity / std
    for epsilon in (0.0, 0.01, mu * mu / 2, mu * (mu / 2 + 1), mu * (mu / 2 + 4)):
        if epsilon > 700:
            continue
        priced = delta_of(event, epsilon)
        for shift in range(1, math.floor(sensitivity) + 1):
            p, q = _gaussian_pair(std, shift)
            assert hockey_stick(p, q, epsilon) <= priced + 1e-14
            assert hockey_stick(q, p, epsilon) <= priced + 1e-14


def test_the_continuous_curve_is_no_bound_for_noise_on_a_coarse_grid() -> None:
    # DESIGN rule 4. At std 0.5 a single step shows more than continuous noise of that std would.
    beyond = 0
    for std, epsilon in itertools.product((0.4, 0.5, 0.7), np.linspace(0.0, 8.0, 81)):
        exact = hockey_stick(*_gaussian_pair(std, 1), float(epsilon))
        beyond += exact > delta_of(Gaussian(std), float(epsilon)) * (1 + 1e-9)
        assert exact <= delta_of(DiscreteGaussian(std, 1.0), float(epsilon)) * (1 + 1e-12)
    assert beyond > 50
    exact = hockey_stick(*_laplace_pair(0.5, 1), 1.0)
    assert exact > delta_of(Laplace(0.5), 1.0)
    assert delta_of(DiscreteLaplace(0.5, 1), 1.0) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize(("std", "counts"), [(0.7, (2, 3)), (2.0, (2, 3)), (9.0, (2,)), (10.0, (2,))])
def test_composed_discrete_gaussians_cover_their_product(std: float, counts: tuple[int, ...]) -> None:
    one = _gaussian_pair(std, 1)
    for count in counts:
        p, q = _together([one] * count)
        mu = math.sqrt(count) / std
        for epsilon in (0.0, mu * mu / 2, mu * (mu / 2 + 2)):
            exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
            assert exact <= delta_of(Repeat(DiscreteGaussian(std, 1.0), count), epsilon) + 1e-13


@pytest.mark.parametrize("std", [0.2, 0.5, 1.0, 2.0, 7.3, 31.0])
@pytest.mark.parametrize("shift", [1, 2, 5])
def test_noise_on_one_number_is_priced_by_its_own_law(std: float, shift: int) -> None:
    # Fractions of a step cannot occur: 0.9 more is priced as the whole number.
    event = DiscreteGaussian(std, shift + 0.9, dim=1)
    whole = DiscreteGaussian(std, float(shift), dim=1)
    p, q = _gaussian_pair(std, shift)
    mu = shift / std
    for epsilon in (0.0, 0.01, mu * mu / 2, mu * (mu / 2 + 2), mu * (mu / 2 + 5)):
        exact = hockey_stick(p, q, epsilon)
        assert delta_of(whole, epsilon) == delta_of(event, epsilon)
        assert exact * (1 - 1e-12) - 1e-16 <= delta_of(event, epsilon) <= exact * (1 + 1e-9) + 3e-13
        for smaller in range(1, shift):
            assert hockey_stick(*_gaussian_pair(std, smaller), epsilon) <= delta_of(event, epsilon) + 1e-15


@pytest.mark.parametrize("steps", [1, 2, 7, 1000])
def test_a_whole_step_is_not_lost_to_a_sensitivity_in_single_precision(steps: int) -> None:
    whole = DiscreteGaussian(0.9 * steps, float(steps), dim=1)
    below = [steps * (1 - 9e-7), float(np.nextafter(np.float32(steps), np.float32(0)))]
    if steps == 7:
        below.append(10 * float(np.float32(0.7)))
    for sensitivity in below:
        assert sensitivity < steps
        assert delta_of(DiscreteGaussian(0.9 * steps, sensitivity, dim=1), 0.5) == delta_of(whole, 0.5)
    if 1 < steps < 1000:
        less = DiscreteGaussian(0.9 * steps, steps * (1 - 1e-4), dim=1)
        assert delta_of(less, 0.5) < delta_of(whole, 0.5)


@pytest.mark.parametrize("std", [0.5, 1.0, 2.0])
@pytest.mark.parametrize("dim", [2, 100, None])
def test_vectors_that_move_by_less_than_the_root_of_two_are_priced_as_one_number(
    std: float, dim: int | None
) -> None:
    # On a torus, whose ends have a probability of 1e-35: every shift in two dimensions is enumerated.
    y = np.arange(-math.ceil(13 * std) - 2, math.ceil(13 * std) + 3)
    one_axis = np.exp(-(y**2) / (2 * std * std))
    law = np.outer(one_axis, one_axis) / one_axis.sum() ** 2
    for sensitivity in (1.0, 1.2, 1.414):
        event, one = DiscreteGaussian(std, sensitivity, dim=dim), DiscreteGaussian(std, 1.0, dim=1)
        shifts = [k for k in itertools.product(range(-2, 3), repeat=2) if 0 < math.hypot(*k) <= sensitivity]
        assert len(shifts) == 4
        for epsilon in (0.0, 0.3, 1 / std, 3 / std):
            exact = [hockey_stick(np.roll(law, k, (0, 1)).ravel(), law.ravel(), epsilon) for k in shifts]
            assert delta_of(event, epsilon) == delta_of(one, epsilon)
            assert max(exact) - 1e-14 <= delta_of(event, epsilon) <= max(exact) * (1 + 1e-9) + 3e-13
    # At the root of two, and so near below that rounding may have made it so, two coordinates can move.
    p, q = _together([_gaussian_pair(std, 1)] * 2)
    for sensitivity in (math.sqrt(2), math.sqrt(2) * (1 - 5e-7)):
        both = DiscreteGaussian(std, sensitivity, dim=dim)
        assert not both.has_own_law
        for epsilon in (0.3, 3 / std):
            assert hockey_stick(p, q, epsilon) <= delta_of(both, epsilon) * (1 + 1e-5)


@pytest.mark.parametrize(("std", "before"), [(1.0, 5.22153), (5.0, 0.89994), (9.0, 0.47308)])
def test_what_one_number_cost_by_concentrated_privacy_or_a_coarse_rounding(std: float, before: float) -> None:
    now = epsilon_of(DiscreteGaussian(std, 1.0, dim=1), 1e-6)
    assert 0.85 * before < now < 0.95 * before
    pair = _gaussian_pair(std, 1)
    assert hockey_stick(*pair, now) <= 1e-6 * (1 + 1e-9)
    assert hockey_stick(*pair, now * (1 - 1e-6)) > 1e-6


def test_tails_of_one_number_keep_their_digits() -> None:
    # P(y > t - 1) - a P(y > t), summed in whole numbers of 400 bits: no logarithm, no floating point.
    for std, epsilon in ((2, Fraction(4)), (1, Fraction(8)), (4, Fraction(2))):
        scale, weights = 1 << 400, {}
        with localcontext(prec=140):
            for y in range(-40 * std, 40 * std + 1):
                weights[y] = int((Decimal(-y * y) / (2 * std * std)).exp() * scale)
            a = int((Decimal(epsilon.numerator) / epsilon.denominator).exp() * scale)
        gains = (weights.get(y - 1, 0) * scale - a * weights.get(y, 0) for y in weights)
        exact = Fraction(sum(gain for gain in gains if gain > 0), sum(weights.values()) * scale)
        priced = delta_of(DiscreteGaussian(float(std), 1.0, dim=1), float(epsilon))
        assert 1e-20 < exact < 1e-11
        assert exact * (1 - Fraction(1, 10**12)) <= Fraction(priced) <= exact * (1 + Fraction(1, 10**9))


@pytest.mark.parametrize(("std", "shifts"), [(6.5, (1, 1)), (6.5, (3, 4)), (9.0, (2, 0)), (14.0, (5, 1))])
def test_the_smaller_allowance_covers_two_coordinates(std: float, shifts: tuple[int, int]) -> None:
    pairs = [_gaussian_pair(std, shift) for shift in shifts]
    p, q = _together(pairs)
    event = DiscreteGaussian(std, math.hypot(*shifts), dim=2)
    assert event.rounded() is not None
    mu = math.hypot(*shifts) / std
    for epsilon in (0.0, mu * mu / 2, mu * (mu / 2 + 1), mu * (mu / 2 + 3), mu * (mu / 2 + 5)):
        exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert exact <= delta_of(event, epsilon) * (1 + 1e-12) + 1e-16
        assert exact <= delta_of(Compose((event, PureDP(0.0))), epsilon) * (1 + 1e-12) + 1e-16


def test_the_allowance_keeps_every_probability_to_1e_30_however_many_there_are() -> None:
    for dim, releases in ((1, 1), (3, 10), (2**40, 1), (None, 10**6), (1, 10**300)):
        event = DiscreteGaussian(1e3, 1.0, dim=dim)
        inside = event.rounded(releases)
        assert inside is not None
        tau_squared = 1e6 - inside.noise_multiplier**2
        # The rounding of section 5 of docs/theory/noise.md is off by 4 sum artanh(q^n) < 4.01 q a coordinate.
        coordinates = 2**40 if dim is None else dim
        log_off = math.log(4.01) - 2 * math.pi**2 * tau_squared + math.log(coordinates) + math.log(releases)
        assert log_off < math.log(1e-30)
        assert tau_squared < 45
    assert DiscreteGaussian(9.0, 1.0, dim=2).rounded() is not None
    assert DiscreteGaussian(9.0, 1.0, dim=2).rounded(10**300) is None


def test_discrete_gaussians_of_both_kinds_of_grid_compose() -> None:
    p, q = _together([_gaussian_pair(2.0, 1), _gaussian_pair(9.0, 3)])
    event = Compose((DiscreteGaussian(2.0, 1.0), DiscreteGaussian(9.0, 3.0)))
    for epsilon in (0.0, 0.2, 0.7, 1.5, 3.0):
        exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert exact <= delta_of(event, epsilon) + 1e-13


@pytest.mark.parametrize("std", [9.0, 20.0, 60.0])
def test_a_fine_grid_costs_little(std: float) -> None:
    # The continuous noise inside has variance std^2 - 9.
    fine = epsilon_of(DiscreteGaussian(std, 3.0), 1e-6)
    inside = epsilon_of(Gaussian(math.sqrt(std * std - 9) / 3), 1e-6)
    assert fine <= inside * (1 + 1e-12)
    assert fine > epsilon_of(Gaussian(std / 3), 1e-6)


@pytest.mark.parametrize("shifts", [(1, 1), (2, 0), (1, 2), (3, 1)])
def test_discrete_laplace_covers_every_split_of_its_sensitivity(shifts: tuple[int, int]) -> None:
    scale = 1.3
    p, q = _together([_laplace_pair(scale, k) for k in shifts])
    event = DiscreteLaplace(scale, sum(shifts), dim=2)
    for epsilon in np.linspace(0, 1.1, 12) * sum(shifts) / scale:
        exact = max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))
        assert exact <= delta_of(event, float(epsilon)) + 1e-12
    # The pure level itself is reached wherever both coordinates lie beyond the shift.
    with np.errstate(divide="ignore", invalid="ignore"):
        worst = np.nanmax(np.where(q > 1e-25, np.log(p / q), 0.0))
    assert worst == pytest.approx(epsilon_of(event, 0.0), rel=1e-9)


@pytest.mark.parametrize("scale", [0.05, 0.2, 1.0, 40.0])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_discrete_laplace_is_exact_from_tiny_to_large_scales(scale: float, sensitivity: int) -> None:
    p, q = _laplace_pair(scale, sensitivity)
    level = sensitivity / scale
    for epsilon in np.linspace(0, 1, 11) * level:
        exact = hockey_stick(p, q, float(epsilon))
        assert delta_of(DiscreteLaplace(scale, sensitivity), float(epsilon)) == pytest.approx(
            exact, rel=1e-8, abs=1e-13
        )
    assert epsilon_of(DiscreteLaplace(scale, sensitivity), 0.0) == pytest.approx(level, rel=1e-12)


@pytest.mark.parametrize(
    ("event", "pair"),
    [
        (DiscreteGaussian(1.5, 1.0), _gaussian_pair(1.5, 1)),
        (DiscreteGaussian(9.5, 4.0), _gaussian_pair(9.5, 4)),
        (DiscreteLaplace(1.5, 2), _laplace_pair(1.5, 2)),
    ],
)
def test_samples_of_discrete_noise_cover_the_replaced_record(
    event: DiscreteGaussian | DiscreteLaplace, pair: tuple[Array, Array]
) -> None:
    # A record is in the sample with probability q: mixtures that share what happens where it is not. The two
    # values lie on both sides of what is released then, so that each pair of laws is within the sensitivity.
    p, q = pair
    middle = np.exp((np.log(np.maximum(p, 1e-300)) + np.log(np.maximum(q, 1e-300))) / 2)
    middle /= middle.sum()
    for rate in (0.1, 0.5, 1.0):
        first, second = (rate * law + (1 - rate) * middle for law in (p, q))
        for epsilon in (0.0, 0.05, 0.3, 1.0):
            exact = max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))
            assert exact <= delta_of(Sampled(event, rate), epsilon) + 1e-12


@pytest.mark.parametrize("dim", [None, 1, 2])
def test_prices_fall_with_the_noise_across_the_change_of_proof(dim: int | None) -> None:
    stds = (1.0, 3.0, 5.0, 6.0, 6.5, 9.0, 12.0, 31.9, 32.5, 999.0, 1001.0)
    for delta in (1e-3, 1e-6, 1e-12):
        for count in (1, 4):
            events = [Repeat(DiscreteGaussian(std, 2.0, dim=dim), count) for std in stds]
            prices = [epsilon_of(event, delta) for event in events]
            assert prices == sorted(prices, reverse=True)
            whole = [epsilon_of(Repeat(Gaussian(std / 2), count), delta) for std in stds]
            for std, price, least in zip(stds, prices, whole, strict=True):
                assert price <= least * (1.16 if std < 6 or dim is None else 1.1)


def test_prices_do_not_depend_on_the_relation_that_the_sensitivity_was_taken_under() -> None:
    for event in (DiscreteGaussian(5.0, 2.0), DiscreteLaplace(5.0, 2)):
        other = msgspec.structs.replace(event, neighbours=ADD_REMOVE)
        assert epsilon_of(other, 1e-6) == epsilon_of(event, 1e-6)
        curve = curve_of(other, accuracy=1e-9)
        assert float(curve.forward(np.array(0.3))) == float(curve.backward(np.array(0.3)))
