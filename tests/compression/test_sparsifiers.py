"""Sparsifiers that look at the vector."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.compression import InducedTopKRandK, TopK, WangniSparsifier, draw_maps, wangni_probabilities
from tacit.compression.maps import Maps
from tacit.compression.subsample import Subsample
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


def test_bits() -> None:
    # Indices of 64 coordinates take 6 bits
    assert WangniSparsifier(k=16).bits(64) == 16 * (32 + 6)
    assert WangniSparsifier(k=16).bits(64, saturated=4) == 4 * 38 + 12 * 7 + 32
    assert TopK(k=3).bits(65) == 3 * (32 + 7)
    assert InducedTopKRandK(k=5).bits(64) == 2 * 38 + 3 * 32 + 64
    assert TopK(k=1).bits(1) == 32


@pytest.mark.parametrize(("k", "error"), [(4, 0.20581939), (16, 0.04508397)])
def test_top_k(k: int, error: float) -> None:
    found = TopK(k=k).compress(HARMONIC[None])[0]
    assert np.flatnonzero(found).tolist() == list(range(k))
    assert TopK(k=k).squared_error(HARMONIC[None])[0] == pytest.approx(error, abs=6e-9)
    assert error <= (1 - k / 64) * (HARMONIC**2).sum()


def test_ties_go_to_the_lowest_index() -> None:
    assert TopK(k=2).compress([[1.0, -1.0, 1.0, 0.5]]).tolist() == [[1.0, -1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("x", "k", "restrict", "error"),
    [
        (HARMONIC, 4, False, 11.76234554),
        (HARMONIC, 4, True, 11.38291504),
        (HARMONIC, 16, False, 0.71405914),
        (HARMONIC, 16, True, 0.61205070),
        (ONES, 4, False, 1922.0),
        (ONES, 4, True, 1860.0),
    ],
)
def test_errors_of_the_induced_compressor(x: Array, k: int, restrict: bool, error: float) -> None:
    found = InducedTopKRandK(k=k, restrict=restrict).squared_error(x[None])[0]
    assert found == pytest.approx(error, abs=6e-9)


@pytest.mark.parametrize("restrict", [False, True])
def test_the_induced_compressor_by_enumeration(restrict: bool) -> None:
    x, induced = np.array([3.0, -1.0, 4.0, 1.5, -0.5]), InducedTopKRandK(k=4, restrict=restrict)
    left = 3 if restrict else 5
    found = []
    for rows in combinations(range(left), 2):
        maps = Maps(
            kind="subsample", dim=left, k=2, parties=np.arange(1), operator=Subsample(np.array([rows]), left)
        )
        found.append(induced.compress(x[None], maps=maps)[0])
    np.testing.assert_allclose(np.mean(found, axis=0), x, atol=1e-12)
    error = np.mean([((each - x) ** 2).sum() for each in found])
    assert error == pytest.approx(induced.squared_error(x[None])[0])


def test_one_number_leaves_rand_k() -> None:
    induced = InducedTopKRandK(k=1)
    maps = induced.draw(8, 3, seed=0, round=0)
    X = np.random.default_rng(0).standard_normal((3, 8))
    np.testing.assert_allclose(induced.compress(X, maps=maps), 8 * maps.adjoint(maps.encode(X)))
    assert induced.squared_error(X) == pytest.approx(7 * (X**2).sum(axis=1))
    assert InducedTopKRandK(k=9, top_fraction=0.99).top == 8


def test_what_is_drawn_fits() -> None:
    X = np.random.default_rng(0).standard_normal((3, 9))
    for restrict in (False, True):
        induced = InducedTopKRandK(k=4, restrict=restrict)
        found = induced.compress(X, maps=induced.draw(9, [4, 2, 8], seed=0, round=1))
        assert np.all(np.count_nonzero(found, axis=1) <= 4)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: WangniSparsifier(k=0), "k must be"),
        (lambda: WangniSparsifier(k=1, sampling="bernoulli"), "sampling must be one of"),  # type: ignore[arg-type]
        (lambda: TopK(k=0), "k must be"),
        (lambda: InducedTopKRandK(k=0), "k must be"),
        (lambda: InducedTopKRandK(k=2, top_fraction=1.0), r"top_fraction must be in \[0, 1\)"),
        (lambda: InducedTopKRandK(k=2, top_fraction=math.nan), "top_fraction must be"),
        (lambda: wangni_probabilities(np.ones((1, 3)), 4), "k must be a whole number from 1 to 3"),
        (lambda: TopK(k=4).compress(np.ones((1, 3))), "k must be a whole number from 1 to 3"),
        (lambda: TopK(k=1).compress(np.full((1, 3), np.nan)), "X must be finite"),
        (lambda: TopK(k=1).compress(np.ones(3)), "X must have shape"),
        (lambda: WangniSparsifier(k=1).bits(8, saturated=2), "saturated must be"),
        (lambda: InducedTopKRandK(k=4).draw(3, 1, seed=0, round=0), "dim must be"),
        (
            lambda: InducedTopKRandK(k=2).compress(
                np.ones((1, 4)), maps=draw_maps("subsample", 4, 2, 1, seed=0, round=0)
            ),
            "maps must come from draw",
        ),
    ],
)
def test_bad_arguments_are_refused(make: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        make()
