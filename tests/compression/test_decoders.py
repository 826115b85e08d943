"""Decoders: exact on small worlds, alike by every route, and as far off as predicted."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.compression import (
    Backend,
    Linear,
    MapKind,
    Maps,
    beta_bar,
    common_rotation,
    decode_mean,
    decode_mean_map,
    decode_per_party,
    draw_maps,
    spectral_moments,
    transform,
)
from tacit.compression.decoders import _conjugate_gradients, _iterated
from tacit.compression.srht import Srht
from tacit.compression.subsample import Subsample
from tacit.errors import ParameterError, TacitError
from tacit.numerics import Array, RandomHadamard
from tests.compression.enumeration import discounted, spectra, srht_maps, subsample_maps, worlds
from tests.statistics import z_bound

BACKENDS: tuple[Backend, ...] = ("auto", "dense", "cg", "eigh", "lsmr", "reference")


def by_hand(kind: MapKind, operator: Any, dim: int) -> Maps:
    n, k = operator.rows.shape
    return Maps(kind=kind, dim=dim, k=k, parties=np.arange(n), operator=operator)


def covers(backend: Backend, rho: float) -> bool:
    return not (backend == "cg" and rho == 1) and not (backend == "lsmr" and rho != 1)


# Worked examples
PROJECTED = {0.0: (1.5, 2, 0.5, 2), 0.5: (1, 9 / 7, 5 / 7, 13 / 7), 1.0: (0.5, 0.5, 1.5, 2.5)}
COUNTED = {0.0: (1, 2, 0, 1), 0.5: (1.2, 1.6, 0, 1.2), 1.0: (4 / 3, 4 / 3, 0, 4 / 3)}
X = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 0.0, -1.0, 1.0]])


@pytest.mark.parametrize("rho", PROJECTED)
def test_the_worked_example_of_projections(rho: float) -> None:
    signs = np.array([[1, 1, 1, 1], [1, -1, 1, 1]], dtype=np.int8)
    maps = by_hand("srht", Srht(signs, np.array([[0, 1], [1, 3]])), 4)
    Y = maps.encode(X)
    assert Y.tolist() == [[5, -1], [0, 2]]
    K = [[1, 0, 0.5, 0.5], [0, 1, 0.5, -0.5], [0.5, 0.5, 1, 0], [0.5, -0.5, 0, 1]]
    assert maps.gram().tolist() == K
    for backend in BACKENDS:
        if covers(backend, rho):
            found = decode_mean(maps, Y, Linear(rho), beta=1.0, backend=backend)
            np.testing.assert_allclose(found, PROJECTED[rho], atol=1e-9)


@pytest.mark.parametrize("rho", COUNTED)
def test_the_worked_example_of_counts(rho: float) -> None:
    maps = by_hand("subsample", Subsample(np.array([[0, 1], [1, 3]]), 4), 4)
    Y = maps.encode(X)
    beta = {0.0: 2.0, 0.5: 2.4, 1.0: 8 / 3}[rho]
    assert beta_bar(2, 2, 4, Linear(rho), projection="subsample") == pytest.approx(beta)
    np.testing.assert_allclose(decode_mean(maps, Y, Linear(rho)), COUNTED[rho], atol=1e-12)
    for backend in BACKENDS:  # Lemma 2.4.1: counting is the projection decoder of these maps
        if covers(backend, rho):
            found = decode_mean(maps, Y, Linear(rho), backend=backend)
            np.testing.assert_allclose(found, COUNTED[rho], atol=1e-9)


def test_rand_k_is_the_plain_sum() -> None:
    maps = draw_maps("subsample", 16, 3, 4, seed=0, round=0)
    Y = maps.encode(np.random.default_rng(0).standard_normal((4, 16)))
    plain = np.zeros(16)
    for rows, values in zip(maps.encode(np.tile(np.arange(16.0), (4, 1))).astype(int), Y, strict=True):
        plain[rows] += values
    np.testing.assert_allclose(decode_mean(maps, Y, Linear(0.0)), plain * 16 / 3 / 4, rtol=1e-15)


@pytest.mark.parametrize(("n", "k", "d"), [(2, 1, 2), (2, 1, 4), (2, 2, 4), (3, 1, 2)])
@pytest.mark.parametrize("rho", [-0.3, 0.0, 0.6, 1.0])
@pytest.mark.parametrize("kind", ["srht", "subsample"])
def test_the_decoder_is_unbiased_and_its_error_exact(kind: str, n: int, k: int, d: int, rho: float) -> None:
    # All maps, one by one: E[T(S)^+ P_i] is a multiple of the identity, and the moments of the spectrum
    # give the error for any vectors.
    rng = np.random.default_rng(1)
    vectors = rng.standard_normal((n, d))
    maps = srht_maps(d, k) if kind == "srht" else subsample_maps(d, k)
    mean_map, sums, estimates, count = np.zeros((d, d)), np.zeros(3), [], 0
    for batch in worlds(maps, n):
        values, U = spectra(batch)
        f = discounted(values, rho)
        inverse = (U * f[:, None, :]) @ U.transpose(0, 2, 1)
        P = batch.transpose(0, 1, 3, 2) @ batch
        mean_map += (inverse @ P[:, 0]).sum(axis=0)
        estimates.append((inverse @ (P @ vectors[:, :, None]).sum(axis=1))[:, :, 0])
        sums += [(values * f).sum(), (values * f**2).sum(), (values**2 * f**2).sum()]
        count += len(batch)
    m, a1, a2 = sums / (count * d)
    beta = n / m
    np.testing.assert_allclose(mean_map / count, np.eye(d) / beta, atol=1e-12)
    estimate = beta / n * np.concatenate(estimates)
    mean = vectors.mean(axis=0)
    np.testing.assert_allclose(estimate.mean(axis=0), mean, atol=1e-12)
    error = ((estimate - mean) ** 2).sum(axis=1).mean()
    S1 = (vectors**2).sum()
    S2 = (vectors.sum(axis=0) ** 2).sum() - S1
    A1, A2 = beta**2 * a1 / n, beta**2 * (a2 - a1) / (n * (n - 1))
    assert error == pytest.approx(((A1 - 1) * S1 + (A2 - 1) * S2) / n**2)
    if kind == "subsample":
        found = spectral_moments(n, k, d, Linear(rho), projection="subsample")
        assert (found.m, found.a1, found.a2) == pytest.approx((m, a1, a2))
        assert found.mse(S1, S2) == pytest.approx(error)


def test_identical_vectors_with_least_squares() -> None:
    # MSE = d / E[rank S] - 1, with E[rank] = 10/3 for n, k, d = 2, 2, 4
    sums, count = np.zeros(3), 0
    for batch in worlds(srht_maps(4, 2), 2):
        values, _ = spectra(batch)
        inverse = discounted(values, 1.0)
        sums += [(values > 1e-9).sum(), (values > 1e-9).all(axis=1).sum(), inverse.sum()]
        count += len(batch)
    rank, full, traces = sums / count
    assert (rank, full) == pytest.approx((10 / 3, 1 - 0.58333333), abs=1e-8)
    m = rank / 4
    A1, A2 = (2 / m) ** 2 * (traces / 4) / 2, (2 / m) ** 2 * (m - traces / 4) / 2
    found = ((A1 - 1) * 2 + (A2 - 1) * 2) / 4
    assert found == pytest.approx(0.2)
    counted = spectral_moments(2, 2, 4, Linear(1.0), projection="subsample")
    assert counted.mse(2.0, 2.0) == pytest.approx(1 / 3)
    assert spectral_moments(2, 2, 4, Linear(0.0)).mse(2.0, 2.0) == pytest.approx(0.5)


@pytest.mark.parametrize(
    "kind", ["srht", "haar", "gaussian", "row_normalized_gaussian", "count_sketch", "subsample"]
)
@pytest.mark.parametrize("rho", [-0.1, 0.0, 0.3, 0.95, 1.0])
def test_all_routes_lead_to_the_same_estimate(kind: MapKind, rho: float) -> None:
    for n, k, dim in ((5, 7, 128), (5, 7, 100), (7, 20, 128), (1, 5, 64)):
        maps = draw_maps(kind, dim, k, n, seed=2, round=0)
        Y = maps.encode(np.random.default_rng(0).standard_normal((n, dim)))
        wanted = decode_mean(maps, Y, Linear(rho), beta=1.0, backend="reference")
        scale = float(np.linalg.norm(wanted))
        for backend in BACKENDS:
            if covers(backend, rho):
                found = decode_mean(maps, Y, Linear(rho), beta=1.0, backend=backend)
                assert np.linalg.norm(found - wanted) <= 1e-8 * scale, backend


@pytest.mark.parametrize("rho", [0.0, 0.4, 1.0])
def test_all_routes_agree_where_more_is_sent_than_there_is(rho: float) -> None:
    maps = draw_maps("srht", 32, 8, 12, seed=0, round=0)
    Y = maps.encode(np.random.default_rng(0).standard_normal((12, 32)))
    wanted = decode_mean(maps, Y, Linear(rho), beta=1.0, backend="reference")
    for backend in BACKENDS:
        if covers(backend, rho):
            found = decode_mean(maps, Y, Linear(rho), beta=1.0, backend=backend)
            np.testing.assert_allclose(found, wanted, atol=1e-8)


def test_any_transform_and_large_problems_take_eigenvectors_or_iterations() -> None:
    maps = draw_maps("srht", 256, 8, 8, seed=0, round=0)
    Y = maps.encode(np.random.default_rng(0).standard_normal((8, 256)))
    wanted = decode_mean(maps, Y, np.sqrt, beta=1.0, backend="reference")
    np.testing.assert_allclose(decode_mean(maps, Y, np.sqrt, beta=1.0), wanted, atol=1e-10)
    large = draw_maps("srht", 2048, 60, 10, seed=0, round=0)  # n k = 600: `auto` iterates
    Y = large.encode(np.random.default_rng(0).standard_normal((10, 2048)))
    T = transform("avg", 10)
    dense = decode_mean(large, Y, T, backend="dense")
    assert np.linalg.norm(decode_mean(large, Y, T, backend="cg") - dense) <= 1e-8 * np.linalg.norm(dense)
    for_beta = decode_mean(large, Y, T, beta=2.0)  # whose error nobody knows
    assert np.linalg.norm(for_beta - decode_mean(large, Y, T, beta=2.0, backend="dense")) <= 1e-8 * 2 / 10


# Parties, numbers, dimension, slope: from few numbers to three times as many as coordinates, where identical
# vectors are found almost exactly and nothing may be left.
STOPPED = [(10, 60, 2048, 0.56), (10, 60, 1500, 0.2), (24, 20, 1024, 0.9), (30, 50, 512, 0.5)]


@pytest.mark.parametrize(("n", "k", "dim", "rho"), STOPPED)
@pytest.mark.parametrize("alike", ["apart", "identical", "noisy"])
def test_what_iterations_leave_is_far_below_the_error(
    n: int, k: int, dim: int, rho: float, alike: str
) -> None:
    # What is left has at most (5e-4)^2 of the mean squared error, which so grows by 0.1 % at most, whatever
    # the two have in common. Both concentrate: they are sums of hundreds of squares.
    rng = np.random.default_rng(0)
    X = np.tile(rng.standard_normal(dim), (n, 1)) if alike != "apart" else rng.standard_normal((n, dim))
    noise = 3.0 if alike == "noisy" else 0.0
    left = error = 0.0
    for r in range(4):
        maps = draw_maps("srht", dim, k, n, seed=0, round=r)
        Y = maps.encode(X) + noise * rng.standard_normal((n, k))
        stopped = decode_mean(maps, Y, Linear(rho))
        exact = decode_mean(maps, Y, Linear(rho), backend="dense")
        left += float(np.sum((stopped - exact) ** 2))
        error += float(np.sum((exact - X.mean(axis=0)) ** 2))
    assert 0 < left <= (5e-4) ** 2 * error


@pytest.mark.parametrize("allowed", [1e-3, 2e-5, 1e-12])
def test_iterations_keep_the_residual_that_is_allowed_in_double_precision(allowed: float) -> None:
    maps, T = draw_maps("srht", 512, 40, 12, seed=0, round=0), Linear(0.8)
    for size in (1.0, 1e-200, 1e200):
        y = size * np.random.default_rng(0).standard_normal((12, 40))
        found = _iterated(maps, y, T, allowed)
        # G^T z, and with it K z: the residual is known where G has full rank.
        z = np.linalg.lstsq(maps.matrices().reshape(-1, 512).T, found / size, rcond=None)[0]
        off = y.ravel() / size - ((1 - 0.8) * z + 0.8 * maps.gram() @ z)
        assert np.linalg.norm(off) <= 1.001 * allowed * np.linalg.norm(y / size) + 1e-13


def test_where_single_precision_fails_the_residual_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    maps, T = draw_maps("srht", 512, 40, 12, seed=0, round=0), Linear(0.8)
    y = np.random.default_rng(0).standard_normal((12, 40))
    exact = _iterated(maps, y, T, 1e-10)
    single = []

    def broken(maps: Maps, y: Array, T: Linear, allowed: float) -> Array:
        single.append(y.dtype == np.float32)
        found = _conjugate_gradients(maps, y, T, allowed)
        return found * 1.01 if single[-1] else found

    monkeypatch.setattr("tacit.compression.decoders._conjugate_gradients", broken)
    found = _iterated(maps, y, T, 1e-4)
    assert single == [True, False]
    assert np.linalg.norm(found - exact) <= 1e-3 * np.linalg.norm(exact)


def test_all_that_is_sent_gives_the_exact_mean() -> None:
    vectors = np.random.default_rng(0).standard_normal((1, 16))
    for kind in ("srht", "haar", "subsample"):
        maps = draw_maps(kind, 16, 16, 1, seed=0, round=0)
        np.testing.assert_allclose(
            decode_mean(maps, maps.encode(vectors), Linear(0.0)), vectors[0], atol=1e-12
        )
    several = np.random.default_rng(0).standard_normal((3, 16))
    maps = draw_maps("srht", 16, 16, 3, seed=0, round=0)
    for T in (transform("avg", 3), transform("max", 3), np.sqrt):
        found = decode_mean(maps, maps.encode(several), T)
        np.testing.assert_allclose(found, several.mean(axis=0), atol=1e-9)


def test_zero_stays_zero() -> None:
    for kind in ("srht", "subsample", "gaussian"):
        maps = draw_maps(kind, 16, 2, 3, seed=0, round=0)
        for backend in BACKENDS:
            rho = 1.0 if backend == "lsmr" else 0.5
            found = decode_mean(maps, np.zeros((3, 2)), Linear(rho), beta=1.0, backend=backend)
            assert not found.any()


def errors(maps: list[Maps], vectors: Array, T: Linear, *, turn: RandomHadamard | None = None) -> Array:
    mean, coded = vectors.mean(axis=0), vectors if turn is None else turn.forward(vectors)
    found = np.array([decode_mean(each, each.encode(coded), T) for each in maps])
    if turn is not None:
        found = turn.inverse(found)
    return np.asarray(((found - mean) ** 2).sum(axis=1))


def groups(*sizes: int, d: int = 64) -> Array:
    return np.repeat(np.eye(d)[: len(sizes)], sizes, axis=0)


# Simulated apart: sizes of groups of equal unit vectors, R, T, MSE, MSE of Rand-k-Spatial with the same T
SIMULATED = [
    ((8,), 7.0, "avg", 1.2579, 1.5114),
    ((6, 2), 4.0, "avg", 1.6308, 1.7120),
    ((4, 4), 3.0, "opt", 1.7372, 1.7741),
    ((4, 1, 1, 1, 1), 1.5, "avg", 1.9411, 1.8791),
    ((1,) * 8, 0.0, "avg", 2.1268, 1.9794),
]


@pytest.mark.parametrize(("sizes", "R", "name", "projected", "counted"), SIMULATED)
def test_simulated_errors_are_those_predicted(
    sizes: tuple[int, ...], R: float, name: Any, projected: float, counted: float
) -> None:
    # Turned by an orthogonal matrix, which must not matter, lest Rand-k meet only a few coordinates.
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((64, 64)))[0]
    vectors, runs = groups(*sizes) @ turn, 400
    T = transform(name, 8, correlation=R if name == "opt" else None)
    kinds: tuple[tuple[MapKind, float, float], ...] = (
        ("srht", projected, 2e-3),
        ("subsample", counted, 5e-5),
    )
    for kind, mse, off in kinds:
        moments = spectral_moments(8, 4, 64, T, projection=kind)
        predicted = moments.mse(8.0, 8.0 * R)
        assert predicted == pytest.approx(mse, rel=off)
        found = errors([draw_maps(kind, 64, 4, 8, seed=11, round=r) for r in range(runs)], vectors, T)
        stderr = found.std() / math.sqrt(runs)
        assert abs(found.mean() - predicted) <= z_bound(10) * stderr + 2e-3 * mse
        assert stderr < 0.03 * mse


def test_identical_vectors_with_least_squares_are_found_but_for_the_rank() -> None:
    maps = [draw_maps("srht", 64, 4, 8, seed=1, round=r) for r in range(20)]
    found = errors(maps, groups(8), Linear(1.0))
    assert found.mean() == pytest.approx(
        1.0, abs=0.25
    )  # d / (n k) - 1; each error is that of a random subspace


def test_padded_vectors_err_as_predicted() -> None:
    # `avg` of six parties, d = 48, d' = 64
    T, runs = transform("avg", 6), 400
    maps = [draw_maps("srht", 48, 5, 6, seed=3, round=r) for r in range(runs)]
    moments = spectral_moments(6, 5, 48, T)
    for vectors, R in ((groups(1, 1, 1, 1, 1, 1, d=48), 0.0), (groups(6, d=48), 5.0)):
        found = errors(maps, vectors, T)
        predicted = moments.mse(6.0, 6.0 * R)
        assert abs(found.mean() - predicted) <= z_bound(2) * found.std() / math.sqrt(runs) + 3e-3 * predicted


def test_a_common_rotation_changes_no_error() -> None:
    vectors, T, runs = groups(6, 2), Linear(0.5), 400
    turn = common_rotation(64, seed=0, round=0)
    maps = [draw_maps("subsample", 64, 4, 8, seed=5, round=r) for r in range(runs)]
    found = errors(maps, vectors, T, turn=turn)
    predicted = spectral_moments(8, 4, 64, T, projection="subsample").mse(8.0, 32.0)
    assert abs(found.mean() - predicted) <= z_bound(1) * found.std() / math.sqrt(runs)


@pytest.mark.parametrize("kind", ["srht", "gaussian", "row_normalized_gaussian"])
def test_decoding_every_party_alone(kind: MapKind) -> None:
    # (d/k - 1) S1 / n^2 for every map of full row rank
    vectors, runs = groups(2, 1, 1, d=16), 500
    found = []
    for r in range(runs):
        maps = draw_maps(kind, 16, 2, 4, seed=5, round=r)
        Y = maps.encode(vectors)
        estimate = decode_per_party(maps, Y)
        if kind == "srht":
            np.testing.assert_allclose(estimate, decode_mean(maps, Y, Linear(0.0)), atol=1e-12)
        found.append(((estimate - vectors.mean(axis=0)) ** 2).sum())
    assert abs(np.mean(found) - 7 * 4 / 16) <= z_bound(3) * np.std(found) / math.sqrt(runs)


def test_decoding_from_the_mean_message_alone() -> None:
    # (d/k - 1) ||x||^2 for identical vectors, n times that of Rand-k
    vectors, runs = groups(4, d=16), 800
    found = []
    for r in range(runs):
        maps = draw_maps("srht", 16, 3, 4, seed=5, round=r)
        estimate = decode_mean_map(maps, maps.encode(vectors).mean(axis=0))
        found.append(((estimate - vectors[0]) ** 2).sum())
    assert abs(np.mean(found) - (16 / 3 - 1)) <= z_bound(1) * np.std(found) / math.sqrt(runs)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"Y": np.ones((3, 2))}, "Y must have shape"),
        ({"Y": np.full((2, 3), np.nan)}, "Y must be finite"),
        ({"transform": Linear(-1.0)}, "rho must be > -1"),
        ({"transform": lambda values: values - 5.0}, "finite and > 0 on the spectrum"),
        ({"backend": "qr"}, "backend must be one of"),
        ({"backend": "cg", "transform": np.sqrt}, "backend cg needs a linear transform"),
        ({"backend": "dense", "transform": Linear(1.5)}, "backend dense needs a linear transform"),
        ({"backend": "cg", "transform": Linear(1.0)}, "backend cg does not cover rho = 1.0"),
        ({"backend": "lsmr"}, "backend lsmr does not cover rho = 0.5"),
        ({"beta": 0.0}, "beta must be"),
        ({"beta": math.nan}, "beta must be"),
    ],
)
def test_bad_arguments_are_refused(change: dict[str, Any], match: str) -> None:
    maps = draw_maps("srht", 16, 3, 2, seed=0, round=0)
    good: dict[str, Any] = {"Y": np.ones((2, 3)), "transform": Linear(0.5), "beta": 1.0}
    with pytest.raises(TacitError, match=match):
        decode_mean(maps, **{**good, **change})


def test_a_slope_that_is_negative_on_this_spectrum_is_refused() -> None:
    # Rows of count sketches have lengths of their own: eigenvalues exceed n, and T is positive up to n only.
    maps = draw_maps("count_sketch", 16, 3, 2, seed=0, round=0)
    top = float(np.linalg.eigvalsh(maps.gram()).max())
    assert top > 2.02
    for backend in ("dense", "cg", "eigh", "reference"):
        with pytest.raises(ParameterError, match="> 0 on the spectrum"):
            decode_mean(maps, np.ones((2, 3)), Linear(-0.99), beta=1.0, backend=backend)
    with pytest.raises(ParameterError, match="mean_message must be finite"):
        decode_mean_map(maps, np.ones(4))


def test_the_printed_scales_give_a_multiple_of_the_mean() -> None:
    # Jiang (2025), Eq. 2.5 without 1 / n, and Theorem 2.4.4 with beta = d^2 / k: two parties with the same
    # vector, every choice of two SRHT maps with one row of four. The mean of the sum is a multiple of it.
    n, k, d = 2, 1, 4
    sums, count = {1.0: np.zeros((d, d)), 0.0: np.zeros((d, d))}, 0
    for batch in worlds(srht_maps(d, k), n):
        values, U = spectra(batch)
        sent = (batch.transpose(0, 1, 3, 2) @ batch).sum(axis=1)
        for rho in sums:
            sums[rho] += ((U * discounted(values, rho)[:, None, :]) @ U.transpose(0, 2, 1) @ sent).sum(axis=0)
        count += len(batch)
    identical, orthogonal = (d / k * sums[rho] / count for rho in (1.0, 0.0))
    np.testing.assert_allclose(identical, 1.875 * np.eye(d), atol=1e-9)  # 2 but for maps of too low a rank
    np.testing.assert_allclose(orthogonal / n, np.eye(d), atol=1e-9)
    np.testing.assert_allclose(d * orthogonal / n, 4 * np.eye(d), atol=1e-9)  # d^2 / k in place of d / k
