"""Importance sampling: a sparsifier that looks at the vector.

Which coordinates are sent depends on the data, so the indices must travel, and noise on the values alone
would protect nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice, check_count
from tacit.numerics import Array, IntArray, as_rows, settle

__all__ = ["Sampling", "WangniSparsifier", "wangni_probabilities"]

Sampling = Literal["poisson", "systematic"]
"""`poisson`: coordinates independently, k on average; `systematic`: exactly k, with equal probabilities."""


def wangni_probabilities(X: npt.ArrayLike, k: int) -> Array:
    """Compute with which probability every coordinate is kept.

    The largest s entries are kept surely and the others in proportion to their size, with the smallest s for
    which no probability exceeds 1. This is the fixed point of the greedy algorithm below, at once.

    Args:
        X: Shape (n, d), finite.
        k: Expected number of coordinates that are kept, from 1 to d.

    Returns:
        Shape (n, d), entries in [0, 1]; 0 exactly where `X` is 0. A row sums to min(k, its nonzero entries).

    Raises:
        ParameterError: Wrong shape, NaN or infinity, or `k` out of range.

    Cost:
        O(d log d) per row.

    Example:
        >>> wangni_probabilities([[3.0, 1.0, -1.0, 0.0]], 2).tolist()
        [[1.0, 0.5, 0.5, 0.0]]

    Reference:
        Wangni et al. (2018), NeurIPS, Algorithm 3, whose fixed point this is.
    """
    sizes = np.abs(_checked(X, k)).astype(np.float64)
    saturated, tail = _saturation(sizes, k)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = (k - saturated)[:, None] * (sizes / tail[:, None])
    # Ties with the smallest saturated entry get 1 by the formula as well: the formula is continuous there.
    share = np.where(tail[:, None] > 0, np.minimum(share, 1.0), 1.0)
    return np.where(sizes > 0, share, 0.0)


@dataclass(frozen=True, kw_only=True, slots=True)
class WangniSparsifier:
    """Keep coordinate j with probability p_j and send x_j / p_j: unbiased, adaptive.

    Attributes:
        k: Expected number of coordinates, >= 1.
        sampling: `poisson` as published, or `systematic` for messages of fixed length.

    Reference:
        Wangni et al. (2018), NeurIPS.
    """

    k: int
    sampling: Sampling = "poisson"

    def __post_init__(self) -> None:
        settle(self)
        check_count("k", self.k)
        check_choice("sampling", self.sampling, get_args(Sampling))

    def compress(self, X: npt.ArrayLike, *, rng: np.random.Generator) -> Array:
        """Sparsify rows.

        Args:
            X: Shape (n, d), finite.
            rng: Private randomness of the parties.

        Returns:
            Shape (n, d), float64: row i has expectation x_i; the entries that are not 0 are what is sent.

        Raises:
            ParameterError: Wrong shape, NaN or infinity, or k > d.
        """
        rows = _checked(X, self.k).astype(np.float64, copy=False)
        p = wangni_probabilities(rows, self.k)
        kept = rng.random(p.shape) < p if self.sampling == "poisson" else _systematic(p, rng)
        return np.divide(rows, p, out=np.zeros_like(rows), where=kept)

    def squared_error(self, X: npt.ArrayLike) -> Array:
        """Compute E||Q(x_i) - x_i||^2 = tail^2 / (k - s) - sum of squares of the tail, exactly.

        Args:
            X: Shape (n, d), finite.

        Returns:
            Shape (n,). The error of the mean is its sum over n^2.

        Raises:
            ParameterError: Wrong shape, NaN or infinity, or k > d.
        """
        sizes = np.abs(_checked(X, self.k)).astype(np.float64)
        p = wangni_probabilities(sizes, self.k)
        spread = np.divide(1 - p, p, out=np.zeros_like(p), where=p > 0)
        return np.asarray((sizes**2 * spread).sum(axis=1))


def _saturation(sizes: Array, k: int) -> tuple[IntArray, Array]:
    """Return s and the sum of all but the s largest entries, both of shape (n,).

    s is the smallest number >= 0 with a_(s+1) (k - s) <= sum_{j > s} a_(j).
    """
    ordered = -np.sort(-sizes, axis=1)
    tails = np.cumsum(ordered[:, ::-1], axis=1)[:, ::-1][:, :k]
    fits = ordered[:, :k] * (k - np.arange(k)) <= tails
    s = np.argmax(fits, axis=1)  # s = k - 1 always fits
    return s, np.take_along_axis(tails, s[:, None], axis=1)[:, 0]


def _systematic(p: Array, rng: np.random.Generator) -> npt.NDArray[np.bool_]:
    """Return which coordinates are kept: one uniform number u a row, and j where cumulated p passes u + Z."""
    sure = p >= 1
    p = np.where(sure, 0.0, p)
    reached = np.cumsum(p, axis=1)
    # The sum is a whole number up to rounding; made so, exactly that many coordinates are kept.
    reached = np.where(np.cumsum(p[:, ::-1], axis=1)[:, ::-1] - p <= 0, np.rint(reached[:, -1:]), reached)
    passed = np.ceil(reached - rng.random((len(p), 1)))
    return sure | (np.diff(passed, axis=1, prepend=0.0) > 0)


def _checked(X: npt.ArrayLike, k: int) -> Array:
    """Return finite rows with at least k columns."""
    rows = as_rows("X", X)
    if not np.all(np.isfinite(rows)):
        raise ParameterError("X must be finite, got a NaN or an infinity.")
    check_count("k", k, high=rows.shape[1])
    return rows
