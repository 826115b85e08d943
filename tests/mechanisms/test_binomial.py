"""Fair binomial noise has its exact law, whatever the number of bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.mechanisms.binomial import sample_binomial, sample_fair_binomial
from tacit.randomness import secure, simulated
from tests.statistics import FALSE_ALARM, z_bound


@pytest.mark.parametrize("trials", [1, 5, 64, 65, 127, 128, 200])
def test_the_law_is_binomial(trials: int) -> None:
    draws = sample_fair_binomial(trials, 20_000, simulated(1, "noise", trials))
    cells = np.unique(stats.binom.ppf(np.linspace(0.02, 0.98, 25), trials, 0.5)).astype(int)
    observed = np.bincount(np.searchsorted(cells, draws), minlength=cells.size + 1)
    mass = np.diff(np.concatenate([[0.0], stats.binom.cdf(cells, trials, 0.5), [1.0]]))
    kept = mass > 0
    assert observed[~kept].sum() == 0
    assert stats.chisquare(observed[kept], 20_000 * mass[kept]).pvalue > FALSE_ALARM


def test_long_draws_are_counted_in_pieces() -> None:
    trials = 64 * 2**20 + 77
    draws = sample_fair_binomial(trials, 40, simulated(2, "noise"))
    z = (draws - trials / 2) / np.sqrt(trials / 4)
    assert np.abs(z).max() < z_bound(40)
    assert stats.kstest(z, stats.norm.cdf).pvalue > FALSE_ALARM
    assert np.unique(draws).size == 40


def test_shapes_and_no_bits() -> None:
    assert sample_fair_binomial(3, (2, 5), secure()).shape == (2, 5)
    assert sample_fair_binomial(70, (0, 5), secure()).shape == (0, 5)
    none = sample_fair_binomial(0, 4, secure())
    assert none.dtype == np.dtype(np.int64)
    assert none.tolist() == [0, 0, 0, 0]


def test_draws_of_one_call_are_independent() -> None:
    draws = sample_fair_binomial(130, (20_000, 2), simulated(3, "noise"))
    assert abs(stats.pearsonr(*draws.T).statistic) < z_bound(1) / np.sqrt(20_000)


@pytest.mark.parametrize("trials", [-1, 2.5, True, 2**63])
def test_bad_numbers_of_bits_are_refused(trials: int) -> None:
    with pytest.raises(ParameterError, match="trials"):
        sample_fair_binomial(trials, 1, simulated(4, "noise"))


@pytest.mark.parametrize("trials", [3, 64, 200])
@pytest.mark.parametrize("threshold", [1 << 63, 2**64 // 3, 1 << 61, 2**64 - 2**60])
def test_words_below_a_threshold_have_a_binomial_law(trials: int, threshold: int) -> None:
    others = np.arange(20_000) % 7  # numbers of different lengths share a draw
    drawn = sample_binomial(np.stack([np.full(20_000, trials), others]).ravel(), threshold, secure())
    p = threshold / 2**64
    assert (drawn[20_000:] <= others).all()
    assert abs(drawn[20_000:].sum() - others.sum() * p) < z_bound(1) * np.sqrt(others.sum() * p * (1 - p))
    seen = np.bincount(drawn[:20_000], minlength=trials + 1)
    mass = stats.binom.pmf(np.arange(trials + 1), trials, p)
    rare = 20_000 * mass < 5
    seen, mass = (np.append(one[~rare], one[rare].sum()) for one in (seen, mass))
    assert seen[mass == 0].sum() == 0
    assert stats.chisquare(seen[mass > 0], 20_000 * mass[mass > 0]).pvalue > FALSE_ALARM


def test_a_threshold_is_compared_to_its_last_bit() -> None:
    class Words(np.random.Generator):
        """The bits of one word, the first ones first."""

        bits: list[int]

        def integers(self, *_: object, **__: object) -> np.ndarray:  # type: ignore[override]
            return np.array([self.bits.pop(0)], dtype=np.uint64) << np.uint64(63)

    threshold = 2**63 + 2**20 + 1
    for word, below in ((threshold - 1, 1), (threshold, 0), (2**63, 1), (2**63 + 2**21, 0), (5, 1)):
        rng = Words(np.random.PCG64(0))
        rng.bits = [word >> place & 1 for place in reversed(range(64))]
        assert sample_binomial([1], threshold, rng).tolist() == [below]


def test_long_binomial_draws_are_counted_in_pieces() -> None:
    trials = np.array([64 * 2**20 + 77, 10**7, 0])
    drawn = sample_binomial(trials, 2**64 // 5, simulated(5, "noise"))
    assert drawn[2] == 0
    assert (np.abs(drawn - trials / 5) <= z_bound(3) * np.sqrt(trials * 0.16)).all()
    with pytest.raises(ParameterError, match="threshold"):
        sample_binomial(trials, 2**64, secure())
