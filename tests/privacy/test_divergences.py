"""Divergences of finite laws and of the classical pairs, against definitions, quadrature and fractions."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from tacit.errors import ParameterError
from tacit.privacy import DiscreteGaussian, DiscreteLaplace, Event, Gaussian, Gdp, Laplace, PureDP, Zcdp
from tacit.privacy.divergences import (
    hockey_stick,
    laplace_renyi,
    pure_dp_renyi,
    renyi_divergence,
    worst_renyi_divergence,
)
from tacit.privacy.events import Leaf
from tests.privacy import reference
from tests.privacy.reference import Array, power

ORDERS = np.array([1.0001, 1.5, 2.0, 3.0, 7.5, 32.0])
LAWS = st.lists(st.floats(0.01, 1.0), min_size=4, max_size=4).map(lambda w: np.array(w) / sum(w))


def _definition(p: Array, q: Array, alpha: float) -> float:
    return math.log(float((p**alpha * q ** (1 - alpha)).sum())) / (alpha - 1)


@given(p=LAWS, q=LAWS, epsilon=st.floats(-3, 3))
def test_hockey_stick_is_its_definition_and_dual(p: Array, q: Array, epsilon: float) -> None:
    there = float(hockey_stick(np.log(p), np.log(q), epsilon))
    assert there == pytest.approx(reference.hockey_stick(p, q, epsilon), abs=1e-14)
    back = float(hockey_stick(np.log(q), np.log(p), -epsilon))
    assert there == pytest.approx(-math.expm1(epsilon) + math.exp(epsilon) * back, abs=1e-12)


def test_hockey_stick_is_not_the_chance_of_a_large_loss() -> None:
    # Not as in Girgis (2023), Section 2.1.1: the loss exceeds 0 with probability .6, and delta at 0 is .2.
    laws = np.log([0.6, 0.4]), np.log([0.4, 0.6])
    assert float(hockey_stick(*laws, 0.0)) == pytest.approx(0.2, abs=1e-15)


@given(p=LAWS, q=LAWS)
def test_renyi_divergence_is_its_definition(p: Array, q: Array) -> None:
    found = renyi_divergence(np.log(p), np.log(q), ORDERS)
    for alpha, value in zip(ORDERS, found, strict=True):
        assert value == pytest.approx(_definition(p, q, alpha), rel=1e-9, abs=1e-11)
    assert np.all(np.diff(found) >= -1e-12)  # rises with the order
    assert np.all(np.diff(np.diff((ORDERS - 1) * found) / np.diff(ORDERS)) >= -1e-9)  # (a - 1) D_a is convex
    largest = float(renyi_divergence(np.log(p), np.log(q), math.inf))
    assert largest == pytest.approx(float(np.max(np.log(p / q))), rel=1e-12)
    assert found[-1] <= largest + 1e-12
    both = worst_renyi_divergence(np.log(p), np.log(q), ORDERS)
    assert np.array_equal(both, np.maximum(found, renyi_divergence(np.log(q), np.log(p), ORDERS)))


@pytest.mark.parametrize("shift", [1, 10**3, 10**6])
@pytest.mark.parametrize("alpha", [2, 3, 17])
def test_small_divergences_keep_their_digits(shift: int, alpha: int) -> None:
    # Laws that differ by 1e-9 to 1e-3, by rational numbers; the naive sum is 1 to 16 digits there.
    total = 4 * 10**9
    q = [Fraction(10**9 + k, total) for k in (0, shift, -shift, 0)]
    p = [Fraction(10**9 + k, total) for k in (shift, 0, 0, -shift)]
    excess = sum(a**alpha / b ** (alpha - 1) for a, b in zip(p, q, strict=True)) - 1
    # log P - log Q itself is known to 1e-16 only, so differences of 1e-9 leave 7 digits.
    found = float(renyi_divergence(np.log(np.array(p, dtype=float)), np.log(np.array(q, dtype=float)), alpha))
    assert found == pytest.approx(math.log1p(float(excess)) / (alpha - 1), rel=1e-6)


def test_divergences_add_up_over_independent_outcomes() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    one = renyi_divergence(np.log(p), np.log(q), ORDERS)
    three = renyi_divergence(np.log(power(p, 3)), np.log(power(q, 3)), ORDERS)
    assert three == pytest.approx(3 * one, rel=1e-10)


def test_order_near_one_is_the_mean_loss() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
    mean = float((p * np.log(p / q)).sum())
    assert float(renyi_divergence(np.log(p), np.log(q), 1 + 1e-9)) == pytest.approx(mean, rel=1e-5)


def test_impossible_outcomes() -> None:
    with np.errstate(divide="ignore"):
        p, q = np.log([0.5, 0.5, 0.0]), np.log([0.25, 0.25, 0.5])
    assert renyi_divergence(p, q, [2.0, 1e5, math.inf]) == pytest.approx([math.log(2)] * 3, rel=1e-12)
    assert np.all(np.isinf(renyi_divergence(q, p, [1.5, math.inf])))
    assert np.all(np.isinf(worst_renyi_divergence(p, q, [2.0])))


def test_no_overflow_at_large_orders_and_losses() -> None:
    p = np.array([-1e-300, -700.0])
    q = p[::-1]
    found = renyi_divergence(p, q, [1.01, 2.0, 1e5])
    assert found == pytest.approx([700.0] * 3, rel=1e-2)
    assert np.all(np.isfinite(pure_dp_renyi(1e5, [1.001, 1e5])))
    assert np.all(np.isfinite(laplace_renyi(1e5, [1.001, 1e5])))


@pytest.mark.parametrize(
    ("epsilon0", "caps"),
    [
        (0.5, (0.227336294, 0.351891145, 0.432353707, 0.468394880, 0.484707194, 0.492474969)),
        (1.0, (0.735325664, 0.895883260, 0.955248374, 0.979115887, 0.989894784, 0.995027592)),
        (2.0, (1.87554767, 1.95769094, 1.98186743, 1.99153813, 1.99590555, 1.99798527)),
        (3.0, (2.95153605, 2.98380422, 2.99305895, 2.99676084, 2.99843267, 2.99922877)),
    ],
)
def test_the_largest_divergence_of_a_pure_level(epsilon0: float, caps: tuple[float, ...]) -> None:
    assert pure_dp_renyi(epsilon0, [2, 4, 8, 16, 32, 64]) == pytest.approx(caps, abs=6e-9)
    assert float(pure_dp_renyi(epsilon0, math.inf)) == epsilon0
    assert float(pure_dp_renyi(epsilon0, 1e9)) == pytest.approx(epsilon0, rel=1e-8)


@pytest.mark.parametrize("epsilon0", [1e-3, 0.4, 2.0, 8.0])
def test_pure_cap_is_reached_by_randomised_response_and_by_nothing_above(epsilon0: float) -> None:
    keep = 1 / (1 + math.exp(-epsilon0))
    p, q = np.log([keep, 1 - keep]), np.log([1 - keep, keep])
    caps = pure_dp_renyi(epsilon0, ORDERS)
    assert worst_renyi_divergence(p, q, ORDERS) == pytest.approx(caps, rel=1e-9)
    rng = np.random.default_rng(3)
    for _ in range(50):  # other laws with a ratio in [e^-epsilon0, e^epsilon0]
        q = rng.dirichlet(np.ones(5))
        p = q * np.exp(rng.uniform(-epsilon0 / 2, epsilon0 / 2, 5))
        p /= p.sum()
        assert np.max(np.abs(np.log(p / q))) <= epsilon0 * (1 + 1e-12)
        assert np.all(worst_renyi_divergence(np.log(p), np.log(q), ORDERS) <= caps * (1 + 1e-9))


def test_tiny_levels_keep_their_digits() -> None:
    # D_a = a e^2 / 2 + O(e^3) for both.
    for level in (1e-5, 1e-9, 1e-100):
        for form in (pure_dp_renyi, laplace_renyi):
            assert form(level, [1.5, 2.0, 50.0]) == pytest.approx(
                [0.75 * level**2, level**2, 25 * level**2], rel=1e-3
            )
    assert np.all(pure_dp_renyi(0.0, [2.0, math.inf]) == 0)
    assert np.all(laplace_renyi(0.0, [2.0, math.inf]) == 0)
    assert np.all(np.isinf(pure_dp_renyi(math.inf, [2.0])))
    assert np.all(np.isinf(laplace_renyi(math.inf, [2.0])))


def _quadrature(law: Callable[[float, float], float], alpha: float) -> float:
    pieces = [(-60.0, 0.0), (0.0, 1.0), (1.0, 60.0)]
    moment = sum(
        integrate.quad(lambda x: math.exp(alpha * law(x, 1.0) + (1 - alpha) * law(x, 0.0)), a, b, epsabs=0)[0]
        for a, b in pieces
    )
    return math.log(moment) / (alpha - 1)


@pytest.mark.parametrize("alpha", [1.2, 2.0, 6.0])
@pytest.mark.parametrize("noise", [0.7, 1.5])
def test_continuous_leaves_are_their_integrals(alpha: float, noise: float) -> None:
    laws: dict[Leaf, Callable[[float, float], float]] = {
        Laplace(noise): lambda x, m: -abs(x - m) / noise - math.log(2 * noise),
        Gaussian(noise): lambda x, m: float(stats.norm.logpdf(x, m, noise)),
    }
    for leaf, law in laws.items():
        exact = _quadrature(law, alpha)
        assert float(leaf.renyi(np.array([alpha]))[0]) == pytest.approx(exact, rel=1e-8)
    assert Gdp(1 / noise).renyi(ORDERS) == pytest.approx(Gaussian(noise).renyi(ORDERS), rel=1e-12)
    assert Zcdp(0.5 / noise**2).renyi(ORDERS) == pytest.approx(Gaussian(noise).renyi(ORDERS), rel=1e-12)


@pytest.mark.parametrize(("scale", "shift"), [(0.6, 1), (2.0, 1), (2.0, 3)])
def test_discrete_leaves_cover_their_laws(scale: float, shift: int) -> None:
    y = np.arange(-120, 121)
    laplace = [-np.abs(y - s) / scale for s in (0, shift)]
    gauss = [-((y - s) ** 2) / (2 * scale**2) for s in (0, shift)]
    for leaf, logs in ((DiscreteLaplace(scale, shift), laplace), (DiscreteGaussian(scale, shift), gauss)):
        p, q = (log - np.logaddexp.reduce(log) for log in logs)
        orders = np.array([1.3, 2.0, 4.0, 8.0])
        exact = worst_renyi_divergence(p, q, orders)
        assert np.all(exact <= leaf.renyi(orders) * (1 + 1e-9))
        assert np.all(exact >= leaf.renyi(orders) * 0.25)


def test_laplace_in_many_dimensions_has_the_cap_of_its_level() -> None:
    assert np.array_equal(Laplace(2.0, dim=3).renyi(ORDERS), PureDP(0.5).renyi(ORDERS))
    assert np.all(Laplace(2.0).renyi(ORDERS) <= PureDP(0.5).renyi(ORDERS))


@pytest.mark.parametrize("noise", [1e-320, 1e-200, 1e200, 1e308])
def test_extreme_noise_gives_a_bound_without_warnings(noise: float) -> None:
    for leaf in (Gaussian(noise), Laplace(noise), Gdp(noise), Laplace(noise, dim=2)):
        assert isinstance(leaf, Event)
        assert np.all(leaf.renyi(np.array([1.01, 2.0, 1e5])) > -1e-300)


@pytest.mark.parametrize("orders", [[1.0], [0.5, 2.0], [math.nan], [], [-math.inf]])
def test_orders_that_are_none_are_refused(orders: list[float]) -> None:
    laws = np.log([0.6, 0.4]), np.log([0.4, 0.6])
    with pytest.raises(ParameterError, match="orders must be numbers > 1"):
        renyi_divergence(*laws, orders)
    for closed_form in (pure_dp_renyi, laplace_renyi):
        with pytest.raises(ParameterError, match="orders must be numbers > 1"):
            closed_form(1.0, orders)


def test_what_is_no_law_is_refused() -> None:
    half = np.log([0.5, 0.5])
    for wrong in (np.log([0.5, 0.4]), np.array([0.5, 0.5]), np.log([[0.5, 0.5]])):
        for p, q in itertools.permutations((half, wrong)):
            with pytest.raises(ParameterError, match=r"log_[pq] must"):
                renyi_divergence(p, q, 2.0)
            with pytest.raises(ParameterError, match=r"log_[pq] must"):
                hockey_stick(p, q, 0.0)
    with pytest.raises(ParameterError, match="one shape"):
        renyi_divergence(half, np.log([0.2, 0.3, 0.5]), 2.0)
    for level in (-1.0, math.nan, -math.inf):
        with pytest.raises(ParameterError, match="must be a finite number >= 0"):
            pure_dp_renyi(level, 2.0)
        with pytest.raises(ParameterError, match="must be a finite number >= 0"):
            laplace_renyi(level, 2.0)
