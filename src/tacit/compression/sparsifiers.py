"""Sparsifiers that look at the vector: importance sampling, Top-k, and both combined.

Which coordinates are sent depends on the data, so the indices must travel, and noise on the values alone
would protect nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from tacit.compression.maps import Maps, draw_maps
from tacit.errors import ParameterError, check_choice, check_count, check_probability
from tacit.numerics import Array, IntArray, as_rows, settle

__all__ = ["InducedTopKRandK", "Sampling", "TopK", "WangniSparsifier", "wangni_probabilities"]

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

    def bits(self, dim: int, *, real_bits: int = 32, saturated: int | None = None) -> int:
        """Return the (expected) length of a message, with an index for every value.

        Args:
            dim: Coordinates of a vector.
            real_bits: Bits of a number.
            saturated: Entries that are kept surely, for the shorter code: all other values are equal but for
                the sign, and need be sent only once.
        """
        if saturated is None:
            return self.k * (real_bits + index_bits(dim))
        check_count("saturated", saturated, low=0, high=self.k)
        whole, signs = saturated, self.k - saturated
        return whole * (real_bits + index_bits(dim)) + signs * (1 + index_bits(dim)) + real_bits


@dataclass(frozen=True, kw_only=True, slots=True)
class TopK:
    """Keep the k largest entries: biased, ||x - TopK(x)||^2 <= (1 - k/d) ||x||^2.

    Attributes:
        k: How many, >= 1.

    Example:
        >>> TopK(k=2).compress([[1.0, -3.0, 2.0, -2.0]]).tolist()
        [[0.0, -3.0, 2.0, 0.0]]

    Reference:
        Stich, Cordonnier and Jaggi (2018), NeurIPS.
    """

    k: int

    def __post_init__(self) -> None:
        settle(self)
        check_count("k", self.k)

    def compress(self, X: npt.ArrayLike) -> Array:
        """Return rows with only their k largest entries; among equal ones, those of the lowest index.

        Args:
            X: Shape (n, d), finite.

        Returns:
            Shape (n, d).

        Raises:
            ParameterError: Wrong shape, NaN or infinity, or k > d.
        """
        rows = _checked(X, self.k)
        kept = np.zeros_like(rows)
        chosen = top_indices(rows, self.k)
        np.put_along_axis(kept, chosen, np.take_along_axis(rows, chosen, axis=1), axis=1)
        return kept

    def squared_error(self, X: npt.ArrayLike) -> Array:
        """Compute ||x_i - TopK(x_i)||^2, shape (n,).

        Raises:
            ParameterError: Wrong shape, NaN or infinity, or k > d.
        """
        rows = _checked(X, self.k).astype(np.float64, copy=False)
        return np.asarray(((rows - self.compress(rows)) ** 2).sum(axis=1))

    def bits(self, dim: int, *, real_bits: int = 32) -> int:
        """Return the length of a message: k numbers with their indices."""
        return self.k * (real_bits + index_bits(dim))


@dataclass(frozen=True, kw_only=True, slots=True)
class InducedTopKRandK:
    """Top-k1 plus Rand-k2 of what it leaves over: unbiased, k1 + k2 = k.

    Attributes:
        k: Numbers that a party sends, >= 1.
        top_fraction: k1 = floor(top_fraction * k), in [0, 1), with at least one number left for Rand-k. The
            seed does not state the split; 1/2 agrees with its k = 1 being Rand-k.
        restrict: Whether Rand-k draws among the d - k1 coordinates that are left, which is never worse.

    Reference:
        Horváth and Richtárik (2021), ICLR.
    """

    k: int
    top_fraction: float = 0.5
    restrict: bool = False

    def __post_init__(self) -> None:
        settle(self)
        check_count("k", self.k)
        check_probability("top_fraction", self.top_fraction, high_open=True)

    @property
    def top(self) -> int:
        """Number k1 of largest entries."""
        return min(int(self.top_fraction * self.k), self.k - 1)

    def draw(self, dim: int, parties: int | Iterable[int], *, seed: int, round: int) -> Maps:
        """Draw the coordinates of the Rand-k part, which must not depend on the vectors.

        Args:
            dim: Coordinates of a vector, >= k.
            parties: How many, or their ids.
            seed: Public seed of the run.
            round: Number of the round.

        Raises:
            ParameterError: A number is out of range.
        """
        check_count("dim", dim, low=self.k)
        left = dim - self.top if self.restrict else dim
        return draw_maps(
            "subsample", left, self.k - self.top, parties, seed=seed, round=round, purpose="induced"
        )

    def compress(self, X: npt.ArrayLike, *, maps: Maps) -> Array:
        """Sparsify rows.

        Args:
            X: Shape (n, d), finite.
            maps: What `draw` made for these parties.

        Returns:
            Shape (n, d), float64: row i has expectation x_i.

        Raises:
            ParameterError: Wrong shape, NaN or infinity, or maps of another size.
        """
        rows = _checked(X, self.k).astype(np.float64, copy=False)
        n, d = rows.shape
        left = d - self.top if self.restrict else d
        if (maps.kind, maps.n, maps.dim, maps.k) != ("subsample", n, left, self.k - self.top):
            raise ParameterError("maps must come from draw, for these parties and this dimension.")
        if not self.top:
            return self._scaled(maps, rows)
        large = TopK(k=self.top).compress(rows)
        if not self.restrict:
            return large + self._scaled(maps, rows - large)
        others = np.argsort(_order(rows), axis=1, kind="stable")[:, self.top :]
        others = np.sort(others, axis=1)
        estimate = large
        rest = self._scaled(maps, np.take_along_axis(rows, others, axis=1))
        np.put_along_axis(estimate, others, rest, axis=1)
        return estimate

    def squared_error(self, X: npt.ArrayLike) -> Array:
        """Compute E||C(x_i) - x_i||^2 = (d' / k2 - 1) ||x_i - TopK(x_i)||^2, shape (n,), exactly.

        d' = d - k1 where the draw is restricted, else d.

        Raises:
            ParameterError: Wrong shape, NaN or infinity, or k > d.
        """
        rows = _checked(X, self.k).astype(np.float64, copy=False)
        left = TopK(k=self.top).squared_error(rows) if self.top else (rows**2).sum(axis=1)
        among = rows.shape[1] - self.top if self.restrict else rows.shape[1]
        return np.asarray((among / (self.k - self.top) - 1) * left)

    def bits(self, dim: int, *, real_bits: int = 32, seed_bits: int = 64) -> int:
        """Return the length of a message: the indices of Rand-k follow from the seed."""
        return self.top * (real_bits + index_bits(dim)) + (self.k - self.top) * real_bits + seed_bits

    @staticmethod
    def _scaled(maps: Maps, rows: Array) -> Array:
        """Return Rand-k of every row."""
        return maps.adjoint(maps.encode(rows)) * (maps.dim / maps.k)


def index_bits(dim: int) -> int:
    """Return ceil(log2(dim)), the bits of an index."""
    check_count("dim", dim)
    return (dim - 1).bit_length()


def top_indices(rows: Array, k: int) -> IntArray:
    """Return the indices of the k largest entries of every row, (n, k); ties go to the lowest index."""
    return np.argsort(_order(rows), axis=1, kind="stable")[:, :k]


def _order(rows: Array) -> Array:
    """Return keys that increase as entries shrink."""
    return -np.abs(rows)


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
