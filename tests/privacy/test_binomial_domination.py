"""The Gaussian level of binomial noise against its definition and exact divergences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import special, stats

from tacit.errors import ParameterError
from tacit.privacy import Gdp, curves, delta_of
from tacit.privacy.binomial import (
    binomial_delta,
    binomial_gdp_step,
    binomial_hockey_stick,
)
from tacit.privacy.binomial.domination import tail_slack
from tests.privacy.binomial_reference import composed_shifts, vector_delta

STEPS = {
    64: ((0.2866420020, 0.872168), (0.3237619470, 0.772172), (0.4065160021, 0.614982)),
    100: ((0.2176014709, 0.919111), (0.2326397666, 0.859698), (0.2507906873, 0.797478)),
    256: ((0.1289331949, 0.969494), (0.1314581130, 0.950873), (0.1341914567, 0.931505)),
    1000: ((0.0637508299, 0.992074), (0.0640431230, 0.987546), (0.0643364474, 0.983044)),
    10_000: ((0.0200156550, 0.999218), (0.0200246872, 0.998767), (0.0200337537, 0.998315)),
    100_000: ((0.0063250477, 0.999922), (0.0063253323, 0.999877), (0.0063256193, 0.999832)),
    1_000_000: ((0.0020000156, 0.999992), (0.0020000246, 0.999988), (0.0020000336, 0.999983)),
}


@pytest.mark.parametrize("trials", STEPS)
def test_steps_have_the_tabled_values(trials: int) -> None:
    for tail, (step, ratio) in zip((1e-8, 1e-12, 1e-16), STEPS[trials], strict=True):
        found = binomial_gdp_step(trials, 0.5, tail, 0)
        assert found == pytest.approx(step, rel=2.5e-9, abs=6e-11)
        assert 2 / (found * math.sqrt(trials)) == pytest.approx(ratio, abs=6e-7)


@pytest.mark.parametrize(
    ("trials", "p", "tail", "shift", "step"),
    [
        (1000, 0.5, 1e-8, 10, 0.0638749371),
        (10_000, 0.5, 1e-12, 32, 0.0200294282),
        (1_000_000, 0.5, 1e-12, 100, 0.0020000260),
        (100, 0.5, 1e-12, 5, 0.2507906873),
        (10_000, 0.25, 1e-12, 0, 0.0237734565),
        (10_000, 0.05, 1e-12, 0, 0.0511147476),
        (1000, 0.1, 1e-12, 0, 0.1378094427),
    ],
)
def test_steps_with_shifts_and_unfair_bits(
    trials: int, p: float, tail: float, shift: int, step: float
) -> None:
    assert binomial_gdp_step(trials, p, tail, shift) == pytest.approx(step, rel=2.5e-9, abs=6e-11)


def test_noise_that_does_not_reach_into_the_tail_is_infeasible() -> None:
    assert math.isinf(binomial_gdp_step(64, 0.5, 1e-20, 0))
    assert math.isinf(binomial_gdp_step(10, 0.5, 0.01, 3))
    assert math.isinf(binomial_gdp_step(10, 0.5, 0.01, 6))
    assert math.isinf(binomial_gdp_step(10, 0.5, 0.02, 2))
    assert math.isfinite(binomial_gdp_step(10, 0.5, 0.02, 1))


@settings(max_examples=100, deadline=None)
@given(
    trials=st.integers(1, 3000),
    p=st.sampled_from([0.5, 0.3, 0.02, 0.9]),
    log_tail=st.floats(-12, -0.7),
    shift=st.integers(0, 40),
)
@example(trials=3000, p=0.9, log_tail=-6.3, shift=40)
@example(trials=3000, p=0.3, log_tail=-6.3, shift=40)
def test_step_is_its_definition(trials: int, p: float, log_tail: float, shift: int) -> None:
    tail = 10**log_tail
    t = np.arange(trials + 1)
    below, above = stats.binom.cdf(t, trials, p), stats.binom.sf(t, trials, p)
    if np.any(np.abs(below / tail - 1) < 1e-9) or np.any(np.abs(above / tail - 1) < 1e-9):
        return  # round-off decides on which side of the tail this entry is
    low = int(np.searchsorted(below, tail, side="right")) - 1 - shift
    high = int(np.argmax(above <= tail)) + shift
    found = binomial_gdp_step(trials, p, tail, shift)
    if low < 0 or high > trials - 1:
        assert math.isinf(found)
        return
    h = np.where(below < 0.5, special.ndtri(below), -special.ndtri(above))[low : high + 1]
    exact = float(np.diff(h).max())
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 1e-7)


@settings(max_examples=150, deadline=None)
@given(
    trials=st.integers(20, 20_000),
    p=st.sampled_from([0.5, 0.25, 0.1]),
    log_tail=st.floats(-14, -1),
    relative=st.floats(0.05, 2.5),
    sign=st.sampled_from([-1, 1]),
)
def test_no_shift_is_easier_to_see_than_its_gaussian(
    trials: int, p: float, log_tail: float, relative: float, sign: int
) -> None:
    largest = max(1, round(relative * math.sqrt(trials * p * (1 - p))))
    tail = 10**log_tail
    step = binomial_gdp_step(trials, p, tail, largest)
    if math.isinf(step):
        return
    epsilon = np.linspace(0, 8, 33)
    q = tail_slack(step, tail, largest)
    for shift in {1, (largest + 1) // 2, largest}:
        exact = binomial_hockey_stick(trials, p, sign * shift, epsilon)
        bound = curves.gaussian_curve(step * shift).delta(epsilon)
        assert np.all(exact <= (bound + tail) * (1 + 1e-9))
        assert np.all(exact <= (q + (1 - q) * bound) * (1 + 1e-9))


def test_the_gaussian_of_equal_variance_is_no_bound() -> None:
    # The reason for m1 and the tails. N = 1000, k = 11, epsilon = 2.
    exact = float(binomial_delta(1000, 0.5, 11, 2.0))
    plain = delta_of(Gdp(11 / math.sqrt(250)), 2.0)
    best = min(_one_coordinate(1000, 11, 2.0, tail) for tail in np.geomspace(1e-9, 1e-3, 200))
    assert exact == pytest.approx(1.080245e-3, abs=6e-10)
    assert plain == pytest.approx(1.060468e-3, abs=6e-10)
    assert plain < exact < best
    assert best == pytest.approx(1.143873e-3, rel=1e-3)


def _one_coordinate(trials: int, shift: int, epsilon: float, tail: float) -> float:
    return float(vector_delta(epsilon, trials=trials, resolution=shift, dim=1, tail=tail))


COMPOSED = [
    (400, 0.5, (8,), 1.0, 6.335738e-2, 6.337082e-2, 6.621136e-2),
    (400, 0.5, (4,) * 4, 2.0, 4.099304e-3, 4.104819e-3, 4.618105e-3),
    (400, 0.5, (2,) * 16, 1.0, 6.307562e-2, 6.328171e-2, 6.610585e-2),
    (400, 0.5, (1,) * 64, 1.0, 6.275714e-2, 6.361768e-2, 6.641350e-2),
    (1000, 0.5, (5,) * 5, 2.0, 1.263840e-3, 1.266538e-3, 1.352636e-3),
    (1000, 0.25, (11,), 2.0, 3.2704e-3 - 2e-6, 3.2704e-3 + 2e-6, 7.290045e-3),
    (1000, 0.25, (-11,), 2.0, 5.5055e-3 - 2e-6, 5.5055e-3 + 2e-6, 7.290045e-3),
]


@pytest.mark.parametrize(("trials", "p", "shifts", "epsilon", "low", "high", "bound"), COMPOSED)
def test_composed_shifts_are_below_the_bound(
    trials: int, p: float, shifts: tuple[int, ...], epsilon: float, low: float, high: float, bound: float
) -> None:
    at_least, at_most = composed_shifts(trials, p, shifts, epsilon)
    assert at_least <= at_most
    assert low <= at_most
    assert at_least <= high
    best = math.inf
    largest = max(abs(k) for k in shifts)
    for tail in np.geomspace(1e-7, 1e-3, 120):
        step = binomial_gdp_step(trials, p, tail, largest)
        if math.isfinite(step):
            gaussian = delta_of(Gdp(step * math.hypot(*shifts)), epsilon)
            assert at_most <= gaussian + len(shifts) * tail_slack(step, tail, largest)
            best = min(best, gaussian + len(shifts) * tail_slack(step, tail, largest))
    assert best <= bound * (1 + 1e-3)  # the best of a finer choice of tails
    assert best >= bound * 0.99


def test_large_and_skewed_tables_reach_far_enough() -> None:
    planned = -float(special.ndtri(1e-15)) + 2 * 1000 / math.sqrt(1e9)
    assert binomial_gdp_step(10**9, 0.5, 1e-15, 1000) == pytest.approx(
        2 / math.sqrt(1e9) * (1 + planned**2 / 4e9), rel=1e-8
    )
    # A Poisson-like tail is longer than a Gaussian one: mean 3.
    few = binomial_gdp_step(3 * 10**6, 1e-6, 1e-3, 0)
    assert few == pytest.approx(binomial_gdp_step(3 * 10**7, 1e-7, 1e-3, 0), rel=1e-5)
    assert math.isinf(binomial_gdp_step(3 * 10**6, 1e-6, 1e-3, 1))
    more = binomial_gdp_step(10**7, 1e-5, 1e-18, 20)
    assert more == pytest.approx(binomial_gdp_step(10**8, 1e-6, 1e-18, 20), rel=1e-4)


def test_more_noise_bits_than_are_tabulated_are_priced_as_those() -> None:
    capped = binomial_gdp_step(1 << 50, 0.5, 1e-9, 10)
    assert capped == pytest.approx(2.0**-16, rel=1e-8)
    assert capped >= 2.0**-16


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.5, 1e-9, 1), "trials must be a whole number"),
        ((10, 1.0, 1e-9, 1), "probability must be in"),
        ((10, 0.5, 0.0, 1), "tail must be in"),
        ((10, 0.5, math.nan, 1), "tail must be in"),
        ((10, 0.5, 1e-9, -1), "shift must be a whole number"),
    ],
)
def test_values_out_of_range_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        binomial_gdp_step(*arguments)
