"""Subsampled coordinates: G_i holds k distinct rows of the identity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.numerics import Array, IntArray
from tacit.randomness import PublicStream

__all__ = ["Subsample", "draw_distinct_integers"]


def draw_distinct_integers(stream: PublicStream, high: int, k: int) -> IntArray:
    """Draw k distinct integers of 0, ..., high - 1; every set is equally likely.

    Args:
        stream: Shared randomness.
        high: From 1 to 2**63.
        k: From 0 to `high`.

    Returns:
        Shape (k,), increasing.

    Cost:
        O(k log k) time for k <= high / 2, else O(high).
    """
    if 2 * k > high:
        # The complement of a uniform set is a uniform set; few repetitions are met on the way to it.
        kept = np.ones(high, dtype=np.bool_)
        kept[draw_distinct_integers(stream, high, high - k)] = False
        return np.flatnonzero(kept)
    # The first k distinct values of an endless uniform sequence: as many numbers are taken as values are
    # missing, so never one too many.
    found = np.empty(0, dtype=np.int64)
    while len(found) < k:
        found = np.unique(np.concatenate([found, stream.integers(high, k - len(found))]))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Subsample:
    """Coordinates that every party sends.

    Attributes:
        rows: Shape (n, k), the distinct coordinates of each party.
        dim: Number of coordinates.
    """

    rows: IntArray
    dim: int

    @classmethod
    def draw(cls, streams: Sequence[PublicStream], dim: int, k: int) -> Subsample:
        """Draw the coordinates of every party, from a stream of its own."""
        return cls(np.stack([draw_distinct_integers(stream, dim, k) for stream in streams]), dim)

    @property
    def counts(self) -> IntArray:
        """How many parties send each coordinate, shape (dim,)."""
        return np.bincount(self.rows.ravel(), minlength=self.dim)

    def encode(self, X: Array) -> Array:
        """Return G_i x_i, shape (n, k)."""
        return np.asarray(np.take_along_axis(X, self.rows, axis=1))

    def adjoint(self, Y: Array) -> Array:
        """Return G_i^T y_i, shape (n, dim)."""
        full = np.zeros((len(Y), self.dim))
        np.put_along_axis(full, self.rows, Y, axis=1)
        return full

    def project(self, v: Array) -> Array:
        """Return G_i v, shape (n, k)."""
        return np.asarray(v[self.rows])

    def back_project(self, Y: Array) -> Array:
        """Return sum_i G_i^T y_i, shape (dim,)."""
        return np.bincount(self.rows.ravel(), weights=Y.ravel(), minlength=self.dim)

    def gram(self) -> Array:
        """Return K: 1 where two rows are the same coordinate."""
        flat = self.rows.ravel()
        return np.equal.outer(flat, flat).astype(np.float64)
