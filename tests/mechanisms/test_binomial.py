"""Fair binomial noise has its exact law, whatever the number of bits."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.mechanisms.binomial import sample_fair_binomial
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
