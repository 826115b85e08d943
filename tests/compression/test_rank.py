"""Ranks and correlations: diagnostics of how well messages and vectors go together."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest

from tacit.compression import (
    Linear,
    correlation_ratio,
    draw_maps,
    estimate_correlation,
    rank_deficiency,
    spectral_moments,
    subsample_full_rank_probability,
)
from tacit.errors import ParameterError
from tests.compression.enumeration import subsample_maps
from tests.statistics import z_bound


# An independent simulation of 20000 draws: n, k, d, chance that the rank falls short
@pytest.mark.parametrize(
    ("n", "k", "d", "short"),
    [
        (2, 16, 32, 0.85),
        (4, 8, 32, 0.103),
        (8, 4, 32, 0.0180),
        (2, 32, 64, 0.315),
        (4, 16, 64, 0.0044),
        (2, 8, 16, 0.79),
        (4, 4, 16, 0.67),
        (8, 2, 16, 0.26),
        (16, 1, 16, 0.047),
        (4, 6, 32, 0.0028),
        (32, 1, 32, 0.0),
    ],
)
def test_rank_deficiency_of_srht(n: int, k: int, d: int, short: float) -> None:
    draws = 400
    found = rank_deficiency(n, k, d, draws=draws)
    rounding = 0.005 if short > 0.2 else 0.001
    spread = math.sqrt(max(short * (1 - short), 2e-3) * (1 / draws + 1 / 20_000))
    assert abs(found.probability - short) <= z_bound(11) * spread + rounding
    assert n * k - 3 < found.mean_rank <= n * k
    assert found.draws == draws


def test_mean_rank_of_srht() -> None:
    found = rank_deficiency(2, 32, 64, draws=400)
    assert abs(found.mean_rank - 63.61) <= z_bound(1) * found.mean_rank_stderr + 0.01
    assert found.mean_rank_stderr < 0.05


@pytest.mark.parametrize(("n", "k", "d"), [(2, 1, 4), (2, 2, 4), (3, 1, 4), (2, 2, 5), (3, 2, 5), (1, 3, 3)])
def test_ranks_of_subsampling_are_exact(n: int, k: int, d: int) -> None:
    maps = subsample_maps(d, k)
    ranks = [np.count_nonzero(sum(m.sum(axis=0) for m in choice)) for choice in product(maps, repeat=n)]
    assert subsample_full_rank_probability(n, k, d) == pytest.approx(np.mean(np.array(ranks) == n * k))


def test_the_printed_probability_is_another() -> None:
    # Jiang (2025), Section 2.4.1: C(d, n k) / C(d, k)^n = 6 / 16 for n, k, d = 2, 1, 4; the chance is 12 / 16
    assert subsample_full_rank_probability(2, 1, 4) == 0.75
    found = rank_deficiency(2, 1, 4, projection="subsample", draws=400)
    assert abs(found.probability - 0.25) <= z_bound(1) * found.probability_stderr


@pytest.mark.parametrize(
    ("n", "k", "R", "spread"), [(8, 4, 7.0, 2.5), (8, 4, 3.0, 2.8), (8, 4, 0.0, 2.6), (10, 6, 4.0, 2.0)]
)
def test_estimated_correlation(n: int, k: int, R: float, spread: float) -> None:
    # d = 64; equicorrelated vectors
    rho, runs = R / (n - 1), 300
    X = math.sqrt(1 - rho) * np.eye(64)[1 : n + 1]
    X[:, 0] = math.sqrt(rho)
    assert correlation_ratio(X) == pytest.approx(R, abs=1e-12)
    found = []
    for r in range(runs):
        maps = draw_maps("srht", 64, k, n, seed=4, round=r)
        found.append(estimate_correlation(maps, maps.encode(X), clip=False))
    # A ratio of unbiased estimates: its bias is of second order.
    assert abs(np.mean(found) - R) <= z_bound(4) * spread / math.sqrt(runs) + 0.1
    assert np.std(found) == pytest.approx(spread, rel=0.35)


def test_estimates_are_clipped() -> None:
    X = np.eye(64)[:8]
    estimates = []
    for r in range(20):
        maps = draw_maps("srht", 64, 4, 8, seed=4, round=r)
        estimates.append(estimate_correlation(maps, maps.encode(X)))
    assert min(estimates) == 0.0
    assert max(estimates) <= 7.0
    whole = draw_maps("srht", 8, 8, 2, seed=0, round=0)
    assert estimate_correlation(whole, whole.encode(X[:2, :8]), clip=False) == pytest.approx(0, abs=1e-12)


def test_correlation_at_its_ends() -> None:
    x = np.array([3.0, -1.0, 2.0])
    assert correlation_ratio(np.tile(x, (5, 1))) == pytest.approx(4.0)
    assert correlation_ratio(np.stack([x, -x])) == -1.0
    assert correlation_ratio(np.eye(3)) == pytest.approx(0.0)
    assert correlation_ratio([[2.0]]) == pytest.approx(0.0)
    for scale in (1e-200, 1e200):
        assert correlation_ratio(scale * np.array([[1.0, 1.0], [1.0, 0.0]])) == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: correlation_ratio(np.zeros((2, 3))), "X must not be all zero"),
        (lambda: correlation_ratio(np.full((2, 3), np.nan)), "X must be finite"),
        (lambda: correlation_ratio(np.ones(3)), "X must have shape"),
        (
            lambda: estimate_correlation(draw_maps("srht", 4, 2, 2, seed=0, round=0), np.zeros((2, 2))),
            "all zero",
        ),
        (
            lambda: estimate_correlation(draw_maps("gaussian", 4, 2, 2, seed=0, round=0), np.ones((2, 2))),
            "orthonormal",
        ),
        (lambda: rank_deficiency(0, 1, 4), "n must be"),
        (lambda: rank_deficiency(1, 5, 4), "k must be"),
        (lambda: rank_deficiency(1, 1, 4, draws=1), "draws must be"),
        (lambda: rank_deficiency(1, 1, 4, projection="ldpc"), "projection must be one of"),  # type: ignore[arg-type]
        (lambda: subsample_full_rank_probability(1, 5, 4), "k must be"),
    ],
)
def test_bad_arguments_are_refused(make: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        make()


def test_a_low_rank_two_times_in_three_is_too_often() -> None:
    # Jiang (2025), Appendix A.3.2: the bound (2.9) is below the error of Rand-k for
    # delta <= nk / (d + nk - k), .0468 here, not for every delta <= 2 / 3.
    n, k, d = 10, 5, 1024

    def bound(delta: float) -> float:
        return d / ((1 - delta) * n * k + delta * k) - 1

    rand_k = spectral_moments(n, k, d, Linear(0.0), projection="subsample").mse(n, n * (n - 1))
    assert rand_k == pytest.approx(20.38)
    assert bound(2 / 3) == pytest.approx(50.2)
    largest = n * k / (d + n * k - k)
    assert largest == pytest.approx(0.0468, abs=5e-5)
    assert bound(largest) == pytest.approx(rand_k)
