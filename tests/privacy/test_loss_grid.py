"""Connecting the dots: never below the curve, tight on its own grid, convex whatever the bound."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.privacy import curve_sampling, curves
from tacit.privacy.curves import Array, Curve
from tacit.privacy.loss_grid import LossDistribution, connect_the_dots, loss_variance, reach

CURVES: dict[str, Curve] = {
    "gaussian": curves.gaussian_curve(0.7),
    "strong gaussian": curves.gaussian_curve(12.0),
    "laplace": curves.laplace_curve(1.3),
    "randomised response": curves.approximate_dp_curve(0.9),
    "approximate": curves.approximate_dp_curve(0.4, 0.02),
    "concentrated": curves.zcdp_curve(0.3),
    "two proofs": curves.minimum([curves.gaussian_curve(1.0), curves.approximate_dp_curve(0.5)]),
    "fixed sample": curve_sampling.sampled_fixed(curves.gaussian_curve(2.0), 0.05),
    "poisson sample": curve_sampling.sampled_poisson(curves.gaussian_curve(2.0), 0.05),
    "rising bound": curves.symmetric(lambda e: np.minimum(0.3, 0.1 + 0.1 * e)),
}


def _dots(curve: Curve, step: float) -> LossDistribution:
    low, high = reach(curve.backward, 1e-12), reach(curve.forward, 1e-12)
    return connect_the_dots(curve.forward, curve.backward, step=step, low=low, high=high)


@pytest.mark.parametrize("step", [0.31, 0.05, 0.002])
@pytest.mark.parametrize(
    "name", [name for name in CURVES if name not in ("two proofs", "concentrated", "rising bound")]
)
def test_dots_are_never_below_the_curve(name: str, step: float) -> None:
    curve, law = CURVES[name], _dots(CURVES[name], step)
    epsilon = np.linspace(-40.0, 40.0, 4001)
    assert np.all(law.delta(epsilon) >= curve.forward(epsilon) * (1 - 1e-9) - 1e-15)
    assert law.mass.min() >= 0
    assert law.mass.sum() + law.infinite == pytest.approx(1, abs=1e-9)


@pytest.mark.parametrize("name", CURVES)
def test_dots_meet_the_greatest_convex_minorant(name: str) -> None:
    # Convex in a = e^epsilon, from 1 at a = 0: the law is that of a real pair.
    curve, law = CURVES[name], _dots(CURVES[name], 0.02)
    epsilon = np.arange(-300, 301, dtype=np.float64) * 0.02
    a, delta = np.exp(epsilon), law.delta(epsilon)
    slopes = np.diff(delta) / np.diff(a)
    assert np.all(np.diff(slopes) >= -1e-9)
    bound = np.minimum.accumulate(curve.forward(epsilon))
    assert np.all(delta <= bound + 1e-8)  # convex bounds are met exactly, others from below
    hull = _slow_hull(np.concatenate([[0.0], a]), np.concatenate([[1.0], bound]))[1:]
    interior = np.abs(epsilon) < 2
    assert np.all(delta[interior] >= hull[interior] - 1e-7)


def _slow_hull(x: Array, y: Array) -> Array:
    """Return the lower convex hull of points with rising x, by the monotone chain."""
    kept: list[int] = []
    for i in range(x.size):
        while len(kept) > 1:
            j, k = kept[-2], kept[-1]
            if (y[k] - y[j]) * (x[i] - x[j]) < (y[i] - y[j]) * (x[k] - x[j]):
                break
            kept.pop()
        kept.append(i)
    return np.asarray(np.interp(x, x[kept], y[kept]), dtype=np.float64)


def test_two_proofs_have_no_more_mass_than_one() -> None:
    # The minimum of two curves has a concave kink; clipped instead of bridged, it would add mass.
    law = _dots(CURVES["two proofs"], 0.01)
    assert law.mass.sum() + law.infinite == pytest.approx(1, abs=1e-9)


def test_a_rising_bound_may_be_read_from_the_left() -> None:
    # The truth falls with epsilon, so what holds at 0 holds everywhere above.
    law = _dots(CURVES["rising bound"], 0.05)
    assert float(law.delta(np.array(3.0))) == pytest.approx(0.1, abs=1e-12)


def test_delta_of_a_law_is_its_definition() -> None:
    law = LossDistribution(0.5, -2, np.array([0.1, 0.2, 0.3, 0.1, 0.25]), 0.05)
    losses = np.arange(-2, 3) * 0.5
    for epsilon in (-3.0, -1.0, -0.7, 0.0, 0.3, 0.5, 0.99, 1.0, 4.0, 1e9, -1e9):
        expected = 0.05 + np.sum(law.mass * np.maximum(-np.expm1(np.minimum(epsilon - losses, 1.0)), 0.0))
        assert float(law.delta(np.array(epsilon))) == pytest.approx(expected, abs=1e-12)


def test_delta_of_a_law_keeps_its_digits_in_the_tail() -> None:
    # Losses next to epsilon: upper mass minus e^epsilon times lower mass would lose all digits.
    step = 1e-9
    law = LossDistribution(step, 0, np.array([1 - 3e-12, 1e-12, 2e-12]), 0.0)
    assert float(law.delta(np.array(0.0))) == pytest.approx(5e-12 * step, rel=1e-6)


@pytest.mark.parametrize("name", ["gaussian", "laplace", "fixed sample", "approximate"])
def test_reach_leaves_little_beyond(name: str) -> None:
    curve = CURVES[name]
    end = reach(curve.forward, 1e-9)
    limit = float(curve.forward(np.array([1000.0]))[0])
    assert float(curve.forward(np.array([end]))[0]) <= limit + 1e-9
    assert float(curve.forward(np.array([end / 1.01]))[0]) >= limit + 0.9e-9


def test_variance_is_that_of_the_loss() -> None:
    # The loss of a Gaussian release is N(mu^2 / 2, mu^2).
    curve = curves.gaussian_curve(0.3)
    assert loss_variance(curve.forward, curve.backward, low=3.0, high=3.0) == pytest.approx(0.09, rel=0.05)
    spike = curves.approximate_dp_curve(0.0, 0.5)
    assert loss_variance(spike.forward, spike.backward, low=1e-12, high=1e-12) < 1e-20


def test_extreme_ranges_stay_finite() -> None:
    wide = curves.approximate_dp_curve(900.0)
    law = connect_the_dots(wide.forward, wide.backward, step=1.0, low=950.0, high=950.0)
    assert float(law.delta(np.array(899.0))) == pytest.approx(-math.expm1(-1.0), rel=1e-9)
    assert float(law.delta(np.array(900.0))) == 0.0
