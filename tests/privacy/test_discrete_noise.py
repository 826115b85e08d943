"""Noise on integers is priced by its own law: both orders, coarse grids, compositions and samples."""

from __future__ import annotations

import itertools
import math

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


def test_prices_fall_with_the_noise_across_the_change_of_proof() -> None:
    for delta in (1e-3, 1e-6, 1e-12):
        prices = [epsilon_of(DiscreteGaussian(std, 2.0), delta) for std in (1.0, 3.0, 8.0, 8.999)]
        prices += [epsilon_of(DiscreteGaussian(std, 2.0), delta) for std in (9.6, 12.0, 40.0)]
        assert prices == sorted(prices, reverse=True)
        # At 9 steps the rounded Gaussian of variance 81 - 9 takes over.
        coarse, fine = (epsilon_of(DiscreteGaussian(std, 2.0), delta) for std in (8.999, 9.0))
        assert fine <= coarse * 1.03


def test_prices_do_not_depend_on_the_relation_that_the_sensitivity_was_taken_under() -> None:
    for event in (DiscreteGaussian(5.0, 2.0), DiscreteLaplace(5.0, 2)):
        other = msgspec.structs.replace(event, neighbours=ADD_REMOVE)
        assert epsilon_of(other, 1e-6) == epsilon_of(event, 1e-6)
        curve = curve_of(other, accuracy=1e-9)
        assert float(curve.forward(np.array(0.3))) == float(curve.backward(np.array(0.3)))
