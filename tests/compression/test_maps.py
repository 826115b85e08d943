"""Maps are what their definitions say, and equal for everybody who draws them."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any, get_args

import numpy as np
import pytest
from scipy import stats

from tacit.compression import MapKind, Maps, draw_maps
from tacit.compression.dense import draw_standard_normals
from tacit.compression.subsample import draw_distinct_integers
from tacit.errors import ParameterError, UnknownNameError
from tacit.numerics import Array
from tacit.randomness import PublicStream
from tests.statistics import FALSE_ALARM, z_bound

KINDS: tuple[MapKind, ...] = get_args(MapKind)
ORTHONORMAL: tuple[MapKind, ...] = ("subsample", "srht", "haar")


def some(kind: MapKind, dim: int = 16, k: int = 5, n: int = 4, round: int = 0) -> Maps:
    return draw_maps(kind, dim, k, n, seed=3, round=round)


def rows(n: int, dim: int) -> Array:
    return np.random.default_rng(dim).standard_normal((n, dim))


@pytest.mark.parametrize("dim", [1, 2, 11, 16])
@pytest.mark.parametrize("kind", KINDS)
def test_the_products_are_those_of_the_matrices(kind: MapKind, dim: int) -> None:
    k = min(3, dim)
    maps = some(kind, dim, k)
    G, X, Y = maps.matrices(), rows(4, dim), rows(4, k)
    assert G.shape == (4, k, maps.padded_dim)
    inputs = G[:, :, :dim]  # padding holds zeros
    np.testing.assert_allclose(maps.encode(X), np.einsum("nkd,nd->nk", inputs, X), atol=1e-12)
    adjoint = np.einsum("nkd,nk->nd", inputs, Y)
    np.testing.assert_allclose(maps.adjoint(Y), adjoint, atol=1e-12)
    np.testing.assert_allclose(maps.adjoint_sum(Y), adjoint.sum(axis=0), atol=1e-12)
    stacked = G.reshape(4 * k, -1)
    np.testing.assert_allclose(maps.gram(), stacked @ stacked.T, atol=1e-12)
    v = rows(1, maps.padded_dim)[0]
    np.testing.assert_allclose(maps.operator.project(v), G @ v, atol=1e-12)


@pytest.mark.parametrize("kind", ORTHONORMAL)
def test_rows_are_orthonormal(kind: MapKind) -> None:
    for dim, k in ((16, 5), (16, 16), (12, 7), (1, 1)):
        maps = some(kind, dim, k)
        assert maps.orthonormal
        G = maps.matrices()
        np.testing.assert_allclose(
            G @ G.transpose(0, 2, 1), np.broadcast_to(np.eye(k), (4, k, k)), atol=1e-12
        )
        values = np.linalg.eigvalsh(maps.gram())
        assert values.min() > -1e-12
        assert values.max() < 4 + 1e-12
        assert np.trace(maps.gram()) == pytest.approx(4 * k)


def test_the_other_kinds_say_that_their_rows_are_not() -> None:
    for kind in set(KINDS) - set(ORTHONORMAL):
        own = some(kind).gram()[:5, :5]
        assert not some(kind).orthonormal
        assert np.abs(own - np.eye(5)).max() > 1e-3


def test_scales_of_the_other_kinds() -> None:
    assert np.diag(some("row_normalized_gaussian").gram()) == pytest.approx(np.ones(20))
    # Every coordinate is in one bucket, with entry +- sqrt(k / d).
    G = some("count_sketch").matrices()
    np.testing.assert_allclose((G**2).sum(axis=1), np.full((4, 16), 5 / 16))
    assert np.all(np.count_nonzero(G, axis=1) == 1)
    entries = some("gaussian", 64, 60, 40).matrices().ravel() * 8
    assert stats.kstest(entries, "norm").pvalue > FALSE_ALARM
    assert stats.kstest(1.05 * entries, "norm").pvalue < FALSE_ALARM  # power


def test_haar_rows_point_everywhere() -> None:
    # The square of an entry of a uniform direction in d dimensions is Beta(1/2, (d - 1)/2); so is that of any
    # row, also the last one, after all others were taken out.
    G = draw_maps("haar", 4, 4, 4000, seed=5, round=0).matrices()
    for row in (0, 3):
        assert stats.kstest(G[:, row, 1] ** 2, stats.beta(0.5, 1.5).cdf).pvalue > FALSE_ALARM / 4
    signs = np.sign(G[:, 3, 0])
    assert abs(signs.mean()) < z_bound(1) / math.sqrt(4000)


@pytest.mark.parametrize("kind", KINDS)
def test_everybody_draws_the_same_map(kind: MapKind) -> None:
    all_of_them, late = some(kind), draw_maps(kind, 16, 5, [3, 1], seed=3, round=0)
    X = rows(4, 16)
    coded = all_of_them.encode(X)
    np.testing.assert_array_equal(late.matrices(), all_of_them.matrices()[[3, 1]])
    np.testing.assert_allclose(late.encode(X[[3, 1]]), coded[[3, 1]], atol=1e-14)
    assert late.parties.tolist() == [3, 1]
    assert late.n == 2


@pytest.mark.parametrize("kind", KINDS)
def test_parties_rounds_seeds_and_purposes_have_maps_of_their_own(kind: MapKind) -> None:
    first = some(kind, 64, 5).matrices()
    others = [
        first[1],
        some(kind, 64, 5, round=1).matrices()[0],
        draw_maps(kind, 64, 5, 1, seed=4, round=0).matrices()[0],
        draw_maps(kind, 64, 5, 1, seed=3, round=0, purpose="cluster 1").matrices()[0],
    ]
    assert all(np.abs(first[0] - other).max() > 0.1 for other in others)


def test_srht_follows_from_raw_words() -> None:
    # The definition once more in plain Python: bit b of the words is sign b; then the first k distinct rows.
    maps = draw_maps("srht", 100, 7, [5], seed=8, round=2)
    stream = PublicStream(8, 2, party=5, purpose="compression/srht/100/7/")
    words = [int(word) for word in stream.words(2)]
    signs = [1 - 2 * (1 - (words[b // 64] >> (b % 64) & 1)) for b in range(128)]
    found: list[int] = []
    while len(found) < 7:
        row = int(stream.words(1)[0]) & 127
        if row not in found:
            found.append(row)
    H = np.array([[(-1) ** (a & b).bit_count() for b in range(128)] for a in sorted(found)])
    np.testing.assert_allclose(maps.matrices()[0], H * signs / math.sqrt(128), atol=1e-15)


def test_normals_follow_from_raw_words() -> None:
    stream = PublicStream(1, 0, purpose="normals")
    expected: list[float] = []
    while len(expected) < 1001:
        u, v = (2 * float(x) - 1 for x in stream.uniform(2))
        s = u * u + v * v
        if 0 < s < 1:
            factor = math.sqrt(-2 * math.log(s) / s)
            expected += [u * factor, v * factor]
    drawn = draw_standard_normals(PublicStream(1, 0, purpose="normals"), 1001)
    np.testing.assert_allclose(drawn, expected[:1001], rtol=4e-16)
    assert draw_standard_normals(PublicStream(1, 0), 0).shape == (0,)


@pytest.mark.parametrize(("high", "k"), [(5, 1), (5, 2), (5, 3), (6, 5), (6, 3)])
def test_distinct_integers_are_uniform_over_all_sets(high: int, k: int) -> None:
    counts = dict.fromkeys(combinations(range(high), k), 0)
    for draw in range(3000):
        counts[tuple(draw_distinct_integers(PublicStream(high, draw), high, k).tolist())] += 1
    assert stats.chisquare(list(counts.values())).pvalue > FALSE_ALARM


def test_distinct_integers_at_the_ends() -> None:
    assert draw_distinct_integers(PublicStream(0, 0), 4, 4).tolist() == [0, 1, 2, 3]
    assert draw_distinct_integers(PublicStream(0, 0), 4, 0).shape == (0,)
    assert len(set(draw_distinct_integers(PublicStream(0, 0), 2**40, 1000).tolist())) == 1000


@pytest.mark.parametrize("kind", KINDS)
def test_messages_keep_float32(kind: MapKind) -> None:
    X = rows(4, 16)
    coded = some(kind).encode(X.astype(np.float32))
    assert coded.dtype == np.float32
    np.testing.assert_allclose(coded, some(kind).encode(X), atol=1e-5)
    assert some(kind).adjoint_sum(coded).dtype == np.float64


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"kind": "ldpc"}, "kind must be one of"),
        ({"dim": 0}, "dim must be"),
        ({"k": 0}, "k must be"),
        ({"k": 17}, "k must be a whole number from 1 to 16, got 17"),
        ({"k": 2.0}, "k must be"),
        ({"parties": 0}, "parties must be"),
        ({"parties": []}, "parties must be one or more distinct ids"),
        ({"parties": [1, 1]}, "parties must be one or more distinct ids"),
        ({"parties": [-1]}, "a party must be"),
        ({"seed": -1}, "seed must be"),
        ({"round": -1}, "round must be"),
    ],
)
def test_bad_numbers_are_refused(change: dict[str, Any], match: str) -> None:
    good = {"kind": "srht", "dim": 12, "k": 3, "parties": 2, "seed": 0, "round": 0}
    with pytest.raises(ParameterError, match=match):
        draw_maps(**{**good, **change})


def test_srht_may_send_more_than_the_unpadded_dimension() -> None:
    assert draw_maps("srht", 12, 16, 1, seed=0, round=0).encode(np.ones((1, 12))).shape == (1, 16)
    with pytest.raises(ParameterError, match="from 1 to 12"):
        draw_maps("subsample", 12, 16, 1, seed=0, round=0)
    assert issubclass(UnknownNameError, ParameterError)


@pytest.mark.parametrize(
    ("X", "match"),
    [
        (np.ones((4, 15)), r"X must have shape \(4, 16\), got \(4, 15\)"),
        (np.ones((3, 16)), "X must have shape"),
        (np.ones(16), "X must have shape"),
        (np.full((4, 16), np.nan), "X must be finite"),
        (np.full((4, 16), np.inf), "X must be finite"),
        (np.full((4, 16), "a"), "X must hold real numbers"),
    ],
)
def test_bad_vectors_are_refused(X: Array, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        some("srht").encode(X)


def test_bad_messages_are_refused() -> None:
    maps = some("srht")
    for use in (maps.adjoint, maps.adjoint_sum):
        with pytest.raises(ParameterError, match="Y must have shape"):
            use(np.ones((4, 6)))
        with pytest.raises(ParameterError, match="Y must be finite"):
            use(np.full((4, 5), np.nan))
