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
from tacit.mechanisms.bernoulli import (
    LazyUniform,
    decide_below_exp,
    draw_words,
    exp_bounds,
    sample_bernoulli_exp,
)
from tests.mechanisms.laws import PRECISE, precise_exp
from tests.statistics import FALSE_ALARM

ULP = 2.0**-52


class Scripted(np.random.Generator):
    """A generator whose words are given; it fails when it is asked for more."""

    def __init__(self, *words: int) -> None:
        super().__init__(np.random.PCG64(0))
        self.words = list(words)

    def integers(self, *args: Any, **kwargs: Any) -> Any:
        assert args[0] == 0
        assert kwargs["size"] == 1
        return np.array([self.words.pop(0)], dtype=np.uint64)


def exp_series(gamma: Fraction) -> tuple[Fraction, Fraction]:
    """Return rational numbers around exp(-gamma), from the partial sums of the series of exp(gamma)."""
    term, total = Fraction(1), Fraction(1)
    for k in range(1, 4 * math.ceil(gamma) + 60):
        term = term * gamma / k
        total += term
    return 1 / (total + term), 1 / total  # the terms left out shrink by more than half each


@pytest.mark.parametrize("gamma", [Fraction(1, 3), Fraction(7, 2), Fraction(21), Fraction(1, 10**12)])
@pytest.mark.parametrize("bits", [1, 64, 128])
def test_exp_bounds_enclose_the_series(gamma: Fraction, bits: int) -> None:
    low, high = exp_bounds(gamma, bits)
    below, above = exp_series(gamma)
    assert low <= above * 2**bits
    assert high >= below * 2**bits
    assert 0 <= high - low <= 2


@given(st.fractions(min_value=0, max_value=200, max_denominator=10**9), st.integers(1, 200))
def test_exp_bounds_are_narrow_and_nested(gamma: Fraction, bits: int) -> None:
    low, high = exp_bounds(gamma, bits)
    finer_low, finer_high = exp_bounds(gamma, bits + 64)
    assert 0 <= low <= high <= 2**bits + 1
    assert high - low <= 2
    assert low << 64 <= finer_high
    assert finer_low <= high << 64


def test_exp_bounds_at_the_ends() -> None:
    assert exp_bounds(Fraction(0), 64) == (2**64, 2**64)
    assert exp_bounds(Fraction(10**40), 64) == (0, 1)
    with pytest.raises(ParameterError, match=r"gamma must be a number >= 0, got -0\.5"):
        exp_bounds(Fraction(-1, 2), 64)


def test_numpy_exp_is_as_accurate_as_the_decisions_assume() -> None:
    gamma = np.concatenate([np.geomspace(1e-18, 700.0, 1500), np.linspace(0.0, 45.0, 1500)])
    for g, value in zip(gamma.tolist(), np.exp(-gamma).tolist(), strict=True):
        exact = precise_exp(g)
        assert abs(PRECISE.create_decimal_from_float(value) - exact) <= exact * PRECISE.create_decimal(
            32 * ULP
        )


@pytest.mark.parametrize("gamma", [1e-9, 0.5, 3.0, 20.0])
def test_words_near_a_tie_are_left_open_and_all_others_are_decided_rightly(gamma: float) -> None:
    tie = exp_bounds(Fraction(gamma), 64)[0]
    allowed = tie >> 48  # half of what exp is allowed to be wrong by
    clear = 2**24 + (tie >> 44)
    distances = [-(2**55), -clear, -allowed - 1, -1, 0, 1, allowed + 1, clear, 2**55]
    words = [min(max(tie + shift, 0), 2**64 - 1) for shift in distances]
    below, undecided = decide_below_exp(
        np.array(words, dtype=np.uint64), np.full(len(words), gamma), error=0.0
    )
    assert undecided[2:7].all()
    assert not undecided[[0, 1, 7, 8]].any()
    for word, answer, left_open in zip(words, below, undecided, strict=True):
        if not left_open:
            assert answer == (word < tie)


def test_too_large_an_error_leaves_everything_open() -> None:
    _, undecided = decide_below_exp(
        np.array([0, 2**63], dtype=np.uint64), np.zeros(2), error=np.array([1.5, 2.0])
    )
    assert undecided.all()


@pytest.mark.parametrize("gamma", [Fraction(1, 3), Fraction(5, 2), Fraction(30)])
def test_a_lazy_uniform_draws_more_bits_only_at_a_tie_and_compares_all_of_them(gamma: Fraction) -> None:
    first, second, third = (exp_bounds(gamma, 192)[0] >> shift & 2**64 - 1 for shift in (128, 64, 0))
    assert LazyUniform(max(first - 3, 0), Scripted()).below_exp(gamma) == (first >= 3)
    assert not LazyUniform(first + 3, Scripted()).below_exp(gamma)
    assert LazyUniform(first, Scripted(second - 3)).below_exp(gamma)
    assert not LazyUniform(first, Scripted(second + 3)).below_exp(gamma)
    assert LazyUniform(first, Scripted(second, third - 3)).below_exp(gamma)
    assert not LazyUniform(first, Scripted(second, third + 3)).below_exp(gamma)


def test_a_lazy_uniform_remembers_its_bits() -> None:
    gamma = Fraction(1, 3)
    first, second = (exp_bounds(gamma, 128)[0] >> shift & 2**64 - 1 for shift in (64, 0))
    uniform = LazyUniform(first, Scripted(second + 3))
    assert [uniform.below_exp(gamma) for _ in range(3)] == [False] * 3
    assert uniform.below_exp(Fraction(0))


def test_a_forced_tie_is_settled_with_the_probability_that_is_left() -> None:
    gamma, trials = Fraction(1, 3), 4000
    low, _ = exp_bounds(gamma, 128)
    word, rest = low >> 64, float(Fraction(low & 2**64 - 1, 2**64))
    rng = np.random.default_rng(11)
    hits = sum(LazyUniform(word, rng).below_exp(gamma) for _ in range(trials))
    assert 0.05 < rest < 0.95
    assert stats.binomtest(hits, trials, rest).pvalue > FALSE_ALARM / 2
    assert stats.binomtest(hits, trials, 0.7 * rest).pvalue < FALSE_ALARM / 2  # negative control


def test_the_slow_path_and_the_fast_path_give_the_same_bits() -> None:
    gamma = np.random.default_rng(2).exponential(size=4000) * 3
    fast, slow = (
        sample_bernoulli_exp(
            gamma, error=error, exact=lambda i: Fraction(float(gamma[i])), rng=np.random.default_rng(3)
        )
        for error in (0.0, 1.5)
    )
    np.testing.assert_array_equal(fast, slow)
    assert 0 < fast.sum() < fast.size


def _of_ratios(numerators: Any, denominator: int, rng: np.random.Generator) -> Any:
    gamma = numerators / float(denominator)
    return sample_bernoulli_exp(
        gamma,
        error=2.0**-50 * gamma,
        exact=lambda index: Fraction(int(numerators[index]), denominator),
        rng=rng,
    )


def test_an_exponent_that_was_approximated_within_its_error_has_the_exact_law() -> None:
    exact = [Fraction(k, 700) for k in range(1500)]
    wrong = np.array([float(g) for g in exact]) + np.random.default_rng(4).uniform(-0.01, 0.01, 1500)
    approximate = sample_bernoulli_exp(
        wrong, error=0.01, exact=exact.__getitem__, rng=np.random.default_rng(5)
    )
    reference = _of_ratios(np.arange(1500), 700, np.random.default_rng(5))
    np.testing.assert_array_equal(approximate, reference)


@pytest.mark.parametrize(("numerator", "denominator"), [(1, 1000), (1, 2), (7, 3), (2**61, 2**60 + 1)])
def test_bits_follow_the_law(numerator: int, denominator: int) -> None:
    trials = 400_000
    numerators = np.full(trials, numerator, dtype=np.int64)
    hits = int(_of_ratios(numerators, denominator, np.random.default_rng(6)).sum())
    prob = math.exp(-numerator / denominator)
    assert stats.binomtest(hits, trials, prob).pvalue > FALSE_ALARM
    assert stats.binomtest(hits, trials, prob * 0.95).pvalue < FALSE_ALARM  # negative control


def test_the_extremes_are_certain() -> None:
    numerators = np.array([0, 2**62, 0, 5000], dtype=np.int64)
    bits = _of_ratios(numerators, 1, np.random.default_rng(7))
    assert bits.tolist() == [True, False, True, False]
    assert _of_ratios(numerators[:0], 1, np.random.default_rng(7)).shape == (0,)


def test_words_fill_all_64_bits() -> None:
    words = draw_words(1000, np.random.default_rng(8))
    assert words.dtype == np.uint64
    assert int(np.bitwise_or.reduce(words)) == 2**64 - 1
    assert int(np.bitwise_and.reduce(words)) == 0


def test_bad_input_is_refused_before_anything_is_drawn() -> None:
    rng = Scripted()
    with pytest.raises(ParameterError, match=r"gamma must have shape \(n,\)"):
        sample_bernoulli_exp(np.zeros((1, 1)), error=0.0, exact=lambda _: Fraction(0), rng=rng)
    with pytest.raises(ParameterError, match="word must be a whole number from 0"):
        LazyUniform(2**64, rng)
