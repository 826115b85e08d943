"""How often the maps of n parties waste numbers: rank(S) < n k (Jiang 2025, Appendix A.3.3)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import get_args

import numpy as np

from tacit.compression.maps import MapKind, draw_maps, padded_dim
from tacit.compression.spectrum import eigenvalues, rank_tolerance
from tacit.errors import check_choice, check_count

__all__ = ["RankDeficiency", "rank_deficiency", "subsample_full_rank_probability"]


@dataclass(frozen=True, slots=True)
class RankDeficiency:
    """How the rank of S falls short of the n k numbers that were sent.

    Attributes:
        probability: Share of draws with rank below n k.
        probability_stderr: Its standard error.
        mean_rank: Mean rank.
        mean_rank_stderr: Its standard error.
        draws: Number of draws.
    """

    probability: float
    probability_stderr: float
    mean_rank: float
    mean_rank_stderr: float
    draws: int


def rank_deficiency(
    n: int, k: int, dim: int, *, projection: MapKind = "srht", draws: int = 1000, seed: int = 0
) -> RankDeficiency:
    """Simulate the rank of S = sum_i G_i^T G_i.

    Args:
        n: Number of parties, >= 1.
        k: Numbers per party, from 1 to `dim` (for `srht`, to the next power of two).
        dim: Coordinates of a vector, >= 1.
        projection: Kind of maps.
        draws: How many, >= 2.
        seed: Of the public streams.

    Returns:
        Means and standard errors. An eigenvalue counts as zero below 1e-12 of the largest.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> rank_deficiency(1, 3, 8, draws=10)
        RankDeficiency(probability=0.0, probability_stderr=0.0, mean_rank=3.0, mean_rank_stderr=0.0, draws=10)

    Reference:
        Jiang (2025), Appendix A.3.3 and Figure A.2, by simulation.
    """
    check_count("n", n)
    check_count("dim", dim)
    check_choice("projection", projection, get_args(MapKind))
    check_count("k", k, high=padded_dim(projection, dim))
    check_count("draws", draws, low=2)
    ranks = np.empty(draws)
    for draw in range(draws):
        values = eigenvalues(draw_maps(projection, dim, k, n, seed=seed, round=draw, purpose="rank"))
        ranks[draw] = np.count_nonzero(values > rank_tolerance(values))
    short = ranks < n * k
    return RankDeficiency(
        probability=float(short.mean()),
        probability_stderr=float(short.std(ddof=1) / math.sqrt(draws)),
        mean_rank=float(ranks.mean()),
        mean_rank_stderr=float(ranks.std(ddof=1) / math.sqrt(draws)),
        draws=draws,
    )


def subsample_full_rank_probability(n: int, k: int, dim: int) -> float:
    """Compute the chance that no coordinate is sent twice: prod_i C(d - i k, k) / C(d, k).

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> subsample_full_rank_probability(2, 1, 4)
        0.75

    Reference:
        Jiang (2025), Section 2.4.1, prints C(d, n k) / C(d, k)^n, which is another one (docs/errata.md).
    """
    _check(n, k, dim)
    if n * k > dim:
        return 0.0
    # Factor by factor: party i must avoid the i k coordinates of those before it.
    sent = k * np.arange(n)[:, None]
    return float(np.prod(1 - sent / (dim - np.arange(k))))


def _check(n: int, k: int, dim: int) -> None:
    """Refuse numbers out of range."""
    check_count("n", n)
    check_count("dim", dim)
    check_count("k", k, high=dim)
