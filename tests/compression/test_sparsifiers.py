"""Sparsifiers that look at the vector."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.compression import WangniSparsifier, wangni_probabilities
from tacit.errors import ParameterError
from tacit.numerics import Array
from tests.statistics import z_bound

HARMONIC = 1 / np.arange(1, 65.0)
GEOMETRIC = 2.0 ** -np.arange(64)
ONES = np.ones(64)


def greedy(x: Array, k: int) -> Array:
    """Return the probabilities by the loop of Wangni et al. (2018)."""
    a = np.abs(x)
    if np.count_nonzero(a) <= k:
        return (a > 0).astype(float)
    p: Array = np.minimum(k * a / a.sum(), 1)
    while True:
        free = p < 1
        c = (k - len(a) + free.sum()) / p[free].sum()
        if c <= 1 + 1e-15:
            return p
        p = np.minimum(c * p, 1)


@given(x=arrays(float, 9, elements=st.integers(-20, 20)), k=st.integers(1, 9))
def test_probabilities_are_those_of_the_greedy_loop(x: Array, k: int) -> None:
    p = wangni_probabilities(x[None], k)[0]
    np.testing.assert_allclose(p, greedy(x, k), atol=1e-12)
    assert p.sum() == pytest.approx(min(k, np.count_nonzero(x)))


def test_rows_are_independent() -> None:
    X = np.random.default_rng(0).standard_normal((7, 20)) ** 3
    together = wangni_probabilities(X, 6)
    np.testing.assert_array_equal(together, np.concatenate([wangni_probabilities(x[None], 6) for x in X]))


@pytest.mark.parametrize(
    ("x", "k", "saturated", "error"),
    [
        (HARMONIC, 4, 0, 3.99669473),
        (HARMONIC, 16, 4, 0.38406116),
        (GEOMETRIC, 4, 2, 0.04166667),
        (ONES, 4, 0, 960.0),
        (ONES, 16, 0, 192.0),
    ],
)
def test_errors_of_importance_sampling(x: Array, k: int, saturated: int, error: float) -> None:
    assert WangniSparsifier(k=k).squared_error(x[None])[0] == pytest.approx(error, abs=6e-9 * max(1, error))
    p = wangni_probabilities(x[None], k)[0]
    assert np.count_nonzero(p[:saturated] == 1) == saturated
    tail = x[saturated:]
    printed = tail.sum() ** 2 / (k - saturated) - (tail**2).sum()
    assert WangniSparsifier(k=k).squared_error(x[None])[0] == pytest.approx(printed)


@pytest.mark.parametrize("sampling", ["poisson", "systematic"])
def test_importance_sampling_is_unbiased_with_the_stated_error(sampling: Any) -> None:
    x, runs = np.array([5.0, -2.0, 1.0, 1.0, -0.5, 0.0, 0.25]), 40_000
    sparsifier = WangniSparsifier(k=3, sampling=sampling)
    found = sparsifier.compress(np.tile(x, (runs, 1)), rng=np.random.default_rng(0))
    p = wangni_probabilities(x[None], 3)[0]
    bound = z_bound(9)
    rate = (found != 0).mean(axis=0)
    assert np.all(np.abs(rate - p) <= bound * np.sqrt(p * (1 - p) / runs) + 1e-12)
    spread = np.abs(x) * np.sqrt(np.divide(1 - p, p, out=np.zeros_like(p), where=p > 0))
    assert np.all(np.abs(found.mean(axis=0) - x) <= bound * spread / math.sqrt(runs) + 1e-12)
    each = ((found - x) ** 2).sum(axis=1)
    expected = sparsifier.squared_error(x[None])[0]
    assert abs(each.mean() - expected) <= bound * each.std() / math.sqrt(runs)
    counts = np.count_nonzero(found, axis=1)
    if sampling == "systematic":
        assert set(counts.tolist()) == {3}
    else:
        assert counts.std() > 0.3


@given(x=arrays(float, 12, elements=st.floats(-9, 9)), k=st.integers(1, 12), seed=st.integers(0, 999))
def test_systematic_messages_have_a_fixed_length(x: Array, k: int, seed: int) -> None:
    found = WangniSparsifier(k=k, sampling="systematic").compress(x[None], rng=np.random.default_rng(seed))
    assert np.count_nonzero(found) <= k
    if np.all(np.abs(x) > 1e-6):
        assert np.count_nonzero(found) == k


def test_a_zero_vector_sends_nothing() -> None:
    rng = np.random.default_rng(0)
    for sparsifier in (WangniSparsifier(k=2), WangniSparsifier(k=2, sampling="systematic")):
        assert not sparsifier.compress(np.zeros((3, 5)), rng=rng).any()
        assert sparsifier.squared_error(np.zeros((3, 5))).tolist() == [0, 0, 0]


def test_few_nonzero_entries_are_sent_as_they_are() -> None:
    x = np.array([[0.0, 2.0, 0.0, -1e-9, 0.0]])
    for k in (2, 3):
        assert WangniSparsifier(k=k).compress(x, rng=np.random.default_rng(0)).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: WangniSparsifier(k=0), "k must be"),
        (lambda: WangniSparsifier(k=1, sampling="bernoulli"), "sampling must be one of"),  # type: ignore[arg-type]
        (lambda: wangni_probabilities(np.ones((1, 3)), 4), "k must be a whole number from 1 to 3"),
        (lambda: WangniSparsifier(k=1).squared_error(np.full((1, 3), np.nan)), "X must be finite"),
        (lambda: WangniSparsifier(k=1).squared_error(np.ones(3)), "X must have shape"),
    ],
)
def test_bad_arguments_are_refused(make: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        make()
