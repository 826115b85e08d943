"""Composition theorems of the literature: printed totals, exact sums, and prices by convolution."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.literature.composition import (
    kov_composition,
    optimal_composition,
    optimal_composition_delta,
    strong_composition,
)
from tacit.privacy import ApproximateDP, PureDP, Repeat, delta_of, epsilon_of
from tacit.privacy.composition import basic_composition, general_composition


def test_strong_kov_and_optimal_composition_of_a_hundred() -> None:
    claim: tuple[float, float, int] = (0.1, 0.0, 100)
    assert strong_composition(*claim, 1e-5).epsilon == pytest.approx(5.850235, abs=6e-7)
    assert kov_composition(*claim, 1e-5).epsilon == pytest.approx(5.298110, abs=6e-7)
    assert optimal_composition(*claim, 1e-5).epsilon == pytest.approx(4.306791, abs=6e-7)
    assert optimal_composition_delta(*claim, 4.0) == pytest.approx(3.422312e-05, rel=2e-7)
    assert optimal_composition_delta(*claim, 3.0) == pytest.approx(1.361399e-03, rel=3e-7)
    assert basic_composition(*claim) == (10.0, 0.0, "basic")


def test_optimal_composition_has_the_tabled_values() -> None:
    assert optimal_composition(0.1, 0.0, 10, 1e-6).epsilon == pytest.approx(0.99937091, abs=6e-9)
    assert optimal_composition(0.01, 1e-9, 1000, 1e-5).epsilon == pytest.approx(1.20609483, abs=6e-9)
    assert strong_composition(0.01, 0.0, 1000, 5e-6).epsilon == pytest.approx(1.66294032, abs=6e-9)


@pytest.mark.parametrize(
    ("epsilon", "delta", "totals"),
    [
        (0.0892, 1e-4, (1.2488, 2.3192, 3.3896)),
        (0.2676, 3e-4, (4.2816, 8.0280, 12.8448)),
        (0.4460, 5e-4, (8.0280, 15.1640, 24.9760)),
        (0.6244, 7e-4, (12.4880, 23.7272, 39.9616)),
    ],
)
def test_the_least_total_of_the_discrete_theorem(
    epsilon: float, delta: float, totals: tuple[float, ...]
) -> None:
    for count, total in zip((20, 50, 100), totals, strict=True):
        target = kov_composition(epsilon, delta, count, 1e-4).delta
        found = optimal_composition(epsilon, delta, count, target, form="discrete")
        assert found.epsilon == pytest.approx(total, abs=1e-9)
        assert optimal_composition(epsilon, delta, count, target).epsilon <= found.epsilon


def _exact_delta(ratio: Fraction, hidden: Fraction, count: int, i: int) -> Fraction:
    """Return delta_i of KOV15 Theorem 3.3 at (count - 2i) epsilon, with e^epsilon = ratio, in fractions."""
    sums = (math.comb(count, k) * (ratio ** (count - k) - ratio ** (count - 2 * i + k)) for k in range(i))
    return 1 - (1 - hidden) ** count * (1 - sum(sums, Fraction(0)) / (1 + ratio) ** count)


@pytest.mark.parametrize("count", [1, 2, 7, 20, 61])
@pytest.mark.parametrize("ratio", [Fraction(101, 100), Fraction(3, 2), Fraction(20)])
@pytest.mark.parametrize("hidden", [Fraction(0), Fraction(1, 10**4)])
def test_optimal_delta_is_the_exact_sum(count: int, ratio: Fraction, hidden: Fraction) -> None:
    epsilon = math.log(ratio)
    for i in range(count // 2 + 1):
        exact = float(_exact_delta(ratio, hidden, count, i))
        found = optimal_composition_delta(epsilon, float(hidden), count, (count - 2 * i) * epsilon)
        assert found == pytest.approx(exact, rel=1e-8, abs=1e-15)
        if exact == 1:
            continue  # in floating point; no target is 1
        between = optimal_composition(epsilon, float(hidden), count, exact).epsilon
        assert between >= (count - 2 * i) * epsilon * (1 - 1e-9)
        again = optimal_composition_delta(epsilon, float(hidden), count, between)
        assert again == pytest.approx(exact, rel=1e-8, abs=1e-15)
        if exact < 0.99:  # where rounding up by 1e-9 is no whole step
            above = exact * (1 + 1e-8)
            discrete = optimal_composition(epsilon, float(hidden), count, above, form="discrete").epsilon
            assert discrete <= (count - 2 * i) * epsilon * (1 + 1e-9)


def test_discrete_form_takes_the_largest_i() -> None:
    exact = float(_exact_delta(Fraction(3, 2), Fraction(0), 20, 6))
    for factor, i in ((1.001, 6), (0.999, 5)):
        found = optimal_composition(math.log(1.5), 0.0, 20, exact * factor, form="discrete").epsilon
        assert found == pytest.approx((20 - 2 * i) * math.log(1.5), rel=1e-12)


@pytest.mark.parametrize(("epsilon", "count"), [(0.3, 7), (0.01, 500), (2.0, 12), (0.7, 1)])
def test_continuous_form_is_the_mean_over_randomised_responses(epsilon: float, count: int) -> None:
    k = np.arange(count + 1)
    mass, loss = stats.binom.pmf(k, count, 1 / (1 + math.exp(-epsilon))), epsilon * (2 * k - count)
    for target in np.linspace(0.0, count * epsilon, 23)[:-1]:
        exact = float((mass * np.maximum(-np.expm1(target - loss), 0)).sum())
        assert optimal_composition_delta(epsilon, 0.0, count, target) == pytest.approx(exact, rel=1e-8)
        assert optimal_composition(epsilon, 0.0, count, exact).epsilon == pytest.approx(target, abs=1e-5)
        hidden = -math.expm1(count * math.log1p(-1e-4) + math.log1p(-exact))
        found = optimal_composition_delta(epsilon, 1e-4, count, target)
        assert found == pytest.approx(hidden, rel=1e-8)


@pytest.mark.parametrize(
    ("epsilon", "delta", "count"), [(0.1, 1e-7, 100), (0.01, 1e-10, 3000), (1.0, 1e-8, 5)]
)
def test_pricing_by_convolution_is_the_optimum(epsilon: float, delta: float, count: int) -> None:
    event = Repeat(ApproximateDP(epsilon, delta), count)
    for target in (1e-4, 1e-2):
        optimum = optimal_composition(epsilon, delta, count, target).epsilon
        assert optimum * (1 - 1e-9) <= epsilon_of(event, target) <= optimum * (1 + 6e-3)  # its grid
        at = optimal_composition_delta(epsilon, delta, count, optimum)
        assert at == pytest.approx(target, rel=1e-6)
        assert delta_of(event, optimum) >= at * (1 - 1e-6)


@given(
    log_epsilon=st.floats(math.log(1e-6), math.log(50)),
    log_delta=st.floats(math.log(1e-15), math.log(1e-3)),
    count=st.integers(1, 3000),
    log_slack=st.floats(math.log(1e-15), math.log(0.5)),
)
def test_no_form_is_below_the_optimum(
    log_epsilon: float, log_delta: float, count: int, log_slack: float
) -> None:
    epsilon, delta, slack = math.exp(log_epsilon), math.exp(log_delta), math.exp(log_slack)
    totals = [form(epsilon, delta, count, slack) for form in (strong_composition, kov_composition)]
    totals += [general_composition(epsilon, delta, count, slack), basic_composition(epsilon, delta, count)]
    for total in totals:
        assert total.epsilon > 0
        if total.delta < 1:
            best = optimal_composition(epsilon, delta, count, total.delta).epsilon
            assert best <= total.epsilon * (1 + 1e-9)
    target = totals[1].delta
    optimum = optimal_composition(epsilon, delta, count, target).epsilon
    discrete = optimal_composition(epsilon, delta, count, target, form="discrete").epsilon
    assert optimum <= discrete * (1 + 1e-12) <= count * epsilon * (1 + 1e-9)
    assert optimal_composition_delta(epsilon, delta, count, optimum) <= target * (1 + 1e-6)
    if count > 1:
        assert optimal_composition(epsilon, delta, count - 1, target).epsilon <= optimum * (1 + 1e-9) + 1e-12
    assert general_composition(epsilon, delta, count, slack).epsilon <= min(t.epsilon for t in totals[:2]) * (
        1 + 1e-9
    )


@pytest.mark.parametrize("epsilon", [1e-300, 1e-6, 1e-3, 1.0, 50.0, 700.0, 1e5])
@pytest.mark.parametrize("count", [1, 2, 10**6])
def test_extreme_claims_have_a_total_without_warnings(epsilon: float, count: int) -> None:
    delta = 1e-15
    totals = [strong_composition(epsilon, delta, count, 1e-6), kov_composition(epsilon, delta, count, 1e-6)]
    totals += [
        general_composition(epsilon, delta, count, 1e-6),
        optimal_composition(epsilon, delta, count, 1e-6),
    ]
    for total in totals:
        assert total.epsilon >= 0
        assert 0 < total.delta <= 1
    assert totals[3].epsilon <= totals[2].epsilon
    deltas = [
        optimal_composition_delta(epsilon, delta, count, share * count * epsilon) for share in (0.0, 0.3, 1)
    ]
    assert 1 >= deltas[0] >= deltas[1] >= deltas[2] == basic_composition(epsilon, delta, count).delta > 0


def test_a_million_releases_agree_with_the_normal_limit() -> None:
    # mu = epsilon sqrt(T): the loss is close to normal with mean mu^2 / 2.
    found = optimal_composition(1e-3, 0.0, 10**6, 1e-5).epsilon
    assert found == pytest.approx(4.377178, rel=2e-4)
    assert epsilon_of(Repeat(PureDP(1e-3), 10**6), 1e-5) >= found * (1 - 1e-9)


def test_a_target_below_what_is_hidden_has_no_epsilon() -> None:
    hidden = basic_composition(0.1, 1e-6, 20).delta
    assert math.isinf(optimal_composition(0.1, 1e-6, 20, hidden * 0.999).epsilon)
    assert optimal_composition(0.1, 1e-6, 20, hidden).epsilon == pytest.approx(2.0, rel=1e-9)
    assert optimal_composition(0.1, 0.0, 20, 0.0).epsilon == pytest.approx(2.0, rel=1e-15)
    assert optimal_composition(0.1, 0.0, 20, 0.9).epsilon == 0.0


@pytest.mark.parametrize(
    ("epsilon", "delta", "count", "message"),
    [
        (0.0, 0.0, 3, "epsilon must be a finite number > 0"),
        (-0.1, 0.0, 3, "epsilon must be a finite number > 0"),
        (math.nan, 0.0, 3, "epsilon must be a finite number > 0"),
        (math.inf, 0.0, 3, "epsilon must be a finite number > 0"),
        (0.1, 1.0, 3, r"delta must be in \[0, 1\)"),
        (0.1, -1e-9, 3, r"delta must be in \[0, 1\)"),
        (0.1, math.nan, 3, r"delta must be in \[0, 1\)"),
        (0.1, 0.0, 0, "count must be a whole number from 1 to"),
        (0.1, 0.0, 2.5, "count must be a whole number from 1 to"),
        (0.1, 0.0, 10**8, "count must be a whole number from 1 to"),
    ],
)
def test_what_is_no_claim_is_refused(epsilon: float, delta: float, count: Any, message: str) -> None:
    for form in (strong_composition, kov_composition, general_composition, optimal_composition):
        with pytest.raises(ParameterError, match=message):
            form(epsilon, delta, count, 1e-5)
    with pytest.raises(ParameterError, match=message):
        basic_composition(epsilon, delta, count)
    with pytest.raises(ParameterError, match=message):
        optimal_composition_delta(epsilon, delta, count, 1.0)


def test_slack_target_and_names_out_of_range_are_refused() -> None:
    for slack in (0.0, -0.1, 1.1, math.nan):
        for form in (strong_composition, kov_composition, general_composition):
            with pytest.raises(ParameterError, match=r"slack must be in \(0, 1"):
                form(0.1, 0.0, 3, slack)
    for target in (-0.1, 1.0, math.nan):
        with pytest.raises(ParameterError, match=r"target_delta must be in \[0, 1\)"):
            optimal_composition(0.1, 0.0, 3, target)
    with pytest.raises(ParameterError, match="target_epsilon must be a finite number >= 0"):
        optimal_composition_delta(0.1, 0.0, 3, -1.0)
    with pytest.raises(ParameterError, match="form must be one of continuous, discrete"):
        optimal_composition(0.1, 0.0, 3, 0.1, form="other")
