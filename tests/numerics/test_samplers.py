"""Samplers follow their laws, and no record is used twice."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.numerics import (
    draw_disjoint_order,
    sample_fixed,
    sample_poisson,
    take_disjoint_batch,
)
from tests.statistics import FALSE_ALARM

TRIALS = 6000


@pytest.mark.parametrize(("n", "size"), [(5, 1), (5, 2), (5, 3), (6, 5), (6, 3)])
def test_fixed_samples_are_uniform_over_all_sets(n: int, size: int) -> None:
    rng = np.random.default_rng(10 * n + size)
    counts = dict.fromkeys(combinations(range(n), size), 0)
    for _ in range(TRIALS):
        counts[tuple(sample_fixed(n, size, rng).tolist())] += 1
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM
    skewed = [count + TRIALS / len(counts) * (0.5 if i == 0 else -0.5 / (len(counts) - 1))
              for i, count in enumerate(counts.values())]  # fmt: skip
    assert stats.chisquare(skewed).pvalue < FALSE_ALARM  # one set that comes half as often again would show


@given(n=st.integers(1, 300), share=st.floats(0, 1), seed=st.integers(0, 2**32))
def test_fixed_samples_are_increasing_indices(n: int, share: float, seed: int) -> None:
    size = round(share * n)
    batch = sample_fixed(n, size, np.random.default_rng(seed))
    assert batch.dtype == np.int64
    assert batch.shape == (size,)
    assert np.all(np.diff(batch) > 0)
    assert np.all((batch >= 0) & (batch < n))


def test_fixed_samples_of_a_huge_population() -> None:
    batch = sample_fixed(10**15, 4, np.random.default_rng(0))  # would not fit into memory as a permutation
    assert len(set(batch.tolist())) == 4


def test_the_whole_population() -> None:
    assert sample_fixed(4, 4, np.random.default_rng(0)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_poisson_samples_follow_the_product_law(rate: float) -> None:
    rng, n = np.random.default_rng(3), 4
    counts = np.zeros(2**n)
    for _ in range(TRIALS):
        counts[(1 << sample_poisson(n, rate, rng)).sum()] += 1

    def pvalue(rate: float) -> float:
        ones = np.array([i.bit_count() for i in range(2**n)])
        law = rate**ones * (1 - rate) ** (n - ones)
        common = law * TRIALS >= 5
        seen = [*counts[common], counts[~common].sum()][: common.sum() + (not common.all())]
        expected = [*law[common], law[~common].sum()][: common.sum() + (not common.all())]
        return float(stats.chisquare(seen, TRIALS * np.array(expected)).pvalue)

    assert pvalue(rate) > FALSE_ALARM
    assert pvalue(rate - 0.05) < FALSE_ALARM


def test_poisson_rates_zero_and_one() -> None:
    rng = np.random.default_rng(0)
    assert sample_poisson(50, 0.0, rng).size == 0
    assert sample_poisson(50, 1.0, rng).tolist() == list(range(50))
    assert sample_poisson(0, 0.5, rng).size == 0
    assert sample_poisson(50, 0.5, rng).dtype == np.int64


@given(n=st.integers(0, 60), sizes=st.lists(st.integers(0, 9), max_size=12), seed=st.integers(0, 2**32))
def test_disjoint_batches_use_each_record_at_most_once(n: int, sizes: list[int], seed: int) -> None:
    order = draw_disjoint_order(n, np.random.default_rng(seed))
    assert sorted(order.tolist()) == list(range(n))
    start, used = 0, []
    for size in sizes:
        if size > n - start:
            with pytest.raises(ParameterError, match=f"size must be at most the {n - start} records"):
                take_disjoint_batch(order, start, size)
            break
        batch = take_disjoint_batch(order, start, size)
        assert np.all(np.diff(batch) > 0)
        assert batch.tolist() == sorted(order[start : start + size].tolist())
        used += batch.tolist()
        start += size
    assert len(used) == len(set(used)) == start


def test_disjoint_orders_are_uniform() -> None:
    rng = np.random.default_rng(8)
    pairs = dict.fromkeys(combinations(range(5), 2), 0)
    for _ in range(TRIALS):
        pairs[tuple(take_disjoint_batch(draw_disjoint_order(5, rng), 2, 2).tolist())] += 1
    assert len(pairs) == comb(5, 2)
    assert stats.chisquare(list(pairs.values())).pvalue > FALSE_ALARM


def test_bad_arguments_are_refused_before_anything_is_drawn() -> None:
    rng = np.random.default_rng(1)
    before = rng.bit_generator.state
    bad: list[tuple[Any, str]] = [
        (lambda: sample_fixed(3, 4, rng), "size must be a whole number from 0 to 3, got 4"),
        (lambda: sample_fixed(0, 0, rng), "n must be a whole number >= 1, got 0"),
        (lambda: sample_fixed(3, -1, rng), "size must be a whole number from 0 to 3, got -1"),
        (lambda: sample_poisson(-1, 0.5, rng), "n must be a whole number >= 0, got -1"),
        (lambda: sample_poisson(3, 1.5, rng), r"rate must be in \[0, 1\], got 1.5"),
        (lambda: sample_poisson(3, np.nan, rng), r"rate must be in \[0, 1\], got nan"),
        (lambda: draw_disjoint_order(-1, rng), "n must be a whole number >= 0, got -1"),
        (lambda: take_disjoint_batch(np.arange(3), 4, 0), "start must be a whole number from 0 to 3, got 4"),
        (
            lambda: take_disjoint_batch(np.arange(3), -1, 1),
            "start must be a whole number from 0 to 3, got -1",
        ),
        (lambda: take_disjoint_batch(np.arange(3), 1, -1), "size must be a whole number >= 0, got -1"),
        (
            lambda: take_disjoint_batch(np.arange(3), 1, 3),
            r"at most the 2 records .* got 3; .* rounds \* size <= 3",
        ),
        (lambda: take_disjoint_batch(np.arange(3), 5, 0), "start must be a whole number from 0 to 3, got 5"),
    ]
    for call, message in bad:
        with pytest.raises(ParameterError, match=message):
            call()
    assert rng.bit_generator.state == before
