"""Exact divergences of integers under binomial noise, against enumeration with exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.privacy import Gaussian, PrivacyBudget, calibrate
from tacit.privacy.binomial import binomial_delta, binomial_hockey_stick
from tacit.privacy.binomial.tails import _log_falling


def _pmf(trials: int, p: Fraction) -> list[Fraction]:
    return [math.comb(trials, z) * p**z * (1 - p) ** (trials - z) for z in range(trials + 1)]


def _enumerated(trials: int, p: Fraction, shift: int, epsilon: float) -> float:
    """Return sum of (P(z) - a Q(z))_+ in exact arithmetic, for P = eta + shift and Q = eta."""
    mass, a = dict(enumerate(_pmf(trials, p))), Fraction(math.exp(epsilon))
    zero = Fraction(0)
    terms = (m - a * mass.get(z + shift, zero) for z, m in mass.items())
    return float(sum((t for t in terms if t > 0), zero))


DIVERGENCES = [
    (10, 0.5, 1, 1.0, 2.548720692085e-02, 2.548720692085e-02),
    (10, 0.5, 2, 1.0, 2.282970875061e-01, 2.282970875061e-01),
    (20, 0.5, 1, 0.5, 3.652411649081e-02, 3.652411649081e-02),
    (50, 0.5, 3, 1.0, 7.831417823694e-02, 7.831417823694e-02),
    (100, 0.5, 5, 1.0, 1.275977040203e-01, 1.275977040203e-01),
    (100, 0.3, 5, 1.0, 1.497555465624e-01, 1.714642669658e-01),
    (1000, 0.5, 10, 1.0, 2.442740259048e-02, 2.442740259048e-02),
    (10000, 0.5, 32, 1.0, 2.579572022170e-02, 2.579572022170e-02),
]


@pytest.mark.parametrize(("trials", "p", "shift", "epsilon", "up", "down"), DIVERGENCES)
def test_divergences_have_the_tabled_values(
    trials: int, p: float, shift: int, epsilon: float, up: float, down: float
) -> None:
    assert float(binomial_hockey_stick(trials, p, shift, epsilon)) == pytest.approx(up, rel=4e-12)
    assert float(binomial_hockey_stick(trials, p, -shift, epsilon)) == pytest.approx(down, rel=4e-12)
    assert float(binomial_delta(trials, p, shift, epsilon)) == pytest.approx(max(up, down), rel=4e-12)


@pytest.mark.parametrize(
    ("trials", "p", "shift", "epsilon", "delta"),
    [
        (20, 0.5, 1, 0.5, 0.03652411649),
        (20, 0.5, 1, 1.0, 0.004632497588),
        (100, 0.5, 1, 0.5, 5.698563248e-4),
        (100, 0.5, 3, 1.0, 0.01935523411),
        (1000, 0.25, 5, 1.0, 7.798775051e-4),
    ],
)
def test_more_divergences_have_the_tabled_values(
    trials: int, p: float, shift: int, epsilon: float, delta: float
) -> None:
    assert float(binomial_delta(trials, p, shift, epsilon)) == pytest.approx(delta, rel=1e-9)


def test_one_order_alone_is_not_the_price_at_unfair_bits() -> None:
    assert float(binomial_hockey_stick(1000, 0.25, 5, 1.0)) == pytest.approx(4.007854417e-4, rel=1e-9)


def test_the_whole_protocol_of_two_users_is_enumerated() -> None:
    # n = 2, b = 2, g = 1, p = 1/2: inputs round to (1, 0) and (0, 0); the sums are {1..5} and {0..4}.
    laws = [np.array([0, 1, 4, 6, 4, 1]) / 16, np.array([1, 4, 6, 4, 1, 0]) / 16]
    epsilons = [0.5, 1.0, 2.0]
    for first, second in (laws, laws[::-1]):
        by_hand = [np.maximum(first - math.exp(e) * second, 0).sum() for e in epsilons]
        assert by_hand == pytest.approx([0.209454920581, 0.142607385721, 0.0625], abs=1e-12)
        assert binomial_delta(4, 0.5, 1, epsilons).tolist() == pytest.approx(by_hand, rel=1e-12)


@settings(max_examples=200, deadline=None)
@given(
    trials=st.integers(1, 60),
    numerator=st.integers(1, 63),
    shift=st.integers(-65, 65),
    epsilon=st.floats(-3, 12),
)
def test_divergence_is_the_enumeration_and_never_below(
    trials: int, numerator: int, shift: int, epsilon: float
) -> None:
    exact = _enumerated(trials, Fraction(numerator, 64), shift, epsilon)
    found = float(binomial_hockey_stick(trials, numerator / 64, shift, epsilon))
    assert found >= exact * (1 - 1e-15)
    assert found <= exact + 1e-12


@settings(max_examples=60, deadline=None)
@given(trials=st.integers(1, 40), shift=st.integers(0, 45), epsilon=st.floats(0, 8))
def test_smaller_shifts_and_more_noise_cost_no_more(trials: int, shift: int, epsilon: float) -> None:
    p = 11 / 32
    here = float(binomial_delta(trials, p, shift, epsilon))
    assert float(binomial_delta(trials, p, shift + 1, epsilon)) >= here * (1 - 1e-12)
    assert float(binomial_delta(trials + 1, p, shift, epsilon)) <= here * (1 + 1e-12)


@settings(max_examples=80, deadline=None)
@given(
    trials=st.integers(2, 10**9),
    relative_shift=st.floats(1e-3, 6),
    p=st.sampled_from([0.5, 0.25, 1e-3, 0.9]),
)
def test_large_sums_give_curves(trials: int, relative_shift: float, p: float) -> None:
    std = math.sqrt(trials * p * (1 - p))
    shift = max(1, round(relative_shift * std))
    delta = binomial_hockey_stick(trials, p, shift, np.geomspace(1e-3, 20, 60))
    assert np.all((delta >= 0) & (delta <= 1))
    assert np.all(np.diff(delta) <= 2e-9)


@pytest.mark.parametrize("trials", [10**4, 10**6, 10**9])
@pytest.mark.parametrize("target", [1e-3, 1e-9, 1e-15, 1e-30])
def test_small_deltas_keep_their_digits(trials: int, target: float) -> None:
    # A sum of positive terms (P - a Q)_+ from the top, which no cancellation can spoil.
    shift = round(0.2 * math.sqrt(trials) / 2)
    epsilon = 0.2 * math.sqrt(-2 * math.log(target))
    found = float(binomial_hockey_stick(trials, 0.5, shift, epsilon))
    assert found == pytest.approx(_summed(trials, shift, epsilon), rel=2e-8)


def _summed(n: int, k: int, epsilon: float) -> float:
    std = math.sqrt(n) / 2
    first, last = max(k, int(n / 2 - 4 * std)), min(n, int(n / 2 + 16 * std) + k)
    z = np.arange(first, last + 1, dtype=np.float64)
    # log pmf(z - k) + log 2^N by ratios from the middle, and the likelihood ratio as a sum of k logarithms.
    middle = n // 2
    steps = np.log1p(
        (n - 2 * np.arange(first - k, last, dtype=np.float64) - 1) / (np.arange(first - k, last) + 1.0)
    )
    log_pmf = np.concatenate([[0.0], np.cumsum(steps)])
    log_pmf -= log_pmf[middle - (first - k)]
    m = float(middle)
    log_pmf += math.log(2 / (math.pi * m) / 2) / 2 - 1 / (8 * m) + 1 / (192 * m**3)  # C(2m, m) / 4^m
    log_p, log_q = log_pmf[: z.size], log_pmf[k : k + z.size]
    gain = log_p - log_q - epsilon
    return float(np.sum(np.where(gain > 0, np.exp(log_p) * -np.expm1(-np.maximum(gain, 0)), 0.0)))


def test_epsilon_may_have_any_shape_and_sign() -> None:
    epsilon = np.array([[-900.0, -0.5], [0.0, 900.0]])
    delta = binomial_hockey_stick(20, 0.5, 3, epsilon)
    assert delta.shape == (2, 2)
    assert delta[0, 0] == pytest.approx(1.0, abs=1e-12)
    assert delta[1, 1] == pytest.approx(_enumerated(20, Fraction(1, 2), 3, 200.0), rel=1e-12)
    assert binomial_hockey_stick(20, 0.5, 0, epsilon).ravel() == pytest.approx(
        [1.0, -math.expm1(-0.5), 0.0, 0.0]
    )
    assert np.all(binomial_hockey_stick(20, 0.5, 21, epsilon) == 1.0)


def test_tiny_probabilities_keep_their_digits_in_both_orders() -> None:
    p = Fraction(1, 2**40)
    for shift in (1, -1):
        exact = _enumerated(30, p, shift, 1.0)
        assert float(binomial_hockey_stick(30, float(p), shift, 1.0)) == pytest.approx(exact, rel=1e-12)


SMALLEST = [
    (1, 1.0, 1e-6, 80, 4.472136, 4.224679),
    (10, 1.0, 1e-6, 7148, 4.227292, 4.224679),
    (32, 1.0, 1e-6, 73114, 4.224938, 4.224679),
    (100, 1.0, 1e-6, 713926, 4.224707, 4.224679),
    (32, 0.5, 1e-5, 202540, 7.031944, 7.031827),
    (32, 4.0, 1e-6, 5846, 1.194674, 1.193519),
    (10, 0.1, 1e-5, 378219, 30.749756, 30.749566),
]


@pytest.mark.parametrize(("shift", "epsilon", "delta", "trials", "noise", "gaussian"), SMALLEST)
def test_fewest_noise_bits_have_the_tabled_values(
    shift: int, epsilon: float, delta: float, trials: int, noise: float, gaussian: float
) -> None:
    budget = PrivacyBudget(epsilon, delta)
    assert float(binomial_delta(trials, 0.5, shift, epsilon)) <= delta
    assert float(binomial_delta(trials - 1, 0.5, shift, epsilon)) > delta
    assert math.sqrt(trials) / 2 / shift == pytest.approx(noise, abs=6e-7)
    assert calibrate(Gaussian, budget) == pytest.approx(gaussian, abs=6e-7)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0.5, 1, 1.0), "trials must be a whole number from 1"),
        ((2**40, 0.5, 1, 1.0), "trials must be a whole number from 1"),
        ((10.0, 0.5, 1, 1.0), "trials must be a whole number"),
        ((10, 0.0, 1, 1.0), "probability must be in"),
        ((10, math.nan, 1, 1.0), "probability must be in"),
        ((10, 0.5, 1.5, 1.0), "shift must be a whole number"),
        ((10, 0.5, 1, math.nan), "epsilon must be a number"),
    ],
)
def test_values_out_of_range_are_refused(arguments: tuple[Any, ...], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        binomial_hockey_stick(*arguments)
    with pytest.raises(ParameterError, match=message):
        binomial_delta(*arguments)


def test_a_range_of_half_the_width_doubles_the_shift() -> None:
    # Shifted by L, coordinates are in [0, 2 L]. Lowy (2023), Algorithm 16, hands them to a scalar sum of
    # range [0, L] (Algorithm 17), whose noise is made for g = 32 grid steps: they move by up to 64.
    L, g = 1.5, 32
    shifts = [round(2 * L * g / width) - round(0 * g / width) for width in (2 * L, L)]
    right, wrong = (binomial_delta(10_000, 0.5, shift, 1.0) for shift in shifts)
    assert (right, wrong) == pytest.approx((0.025795720, 0.232823698), abs=1e-9)


@pytest.mark.parametrize(("z", "k"), [(100, 30), (163, 100), (10_000, 9_000), (70, 1), (40, 30)])
def test_falling_factorials_keep_their_digits(z: int, k: int) -> None:
    # They place the best test; a worse one is a lower price. Counts of 64 to 164 need Stirling's rest most.
    found = float(_log_falling(np.array(z), k))
    assert found == pytest.approx(math.log(math.perm(z, k)), rel=1e-13)
