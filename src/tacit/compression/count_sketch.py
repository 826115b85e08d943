"""Count sketches: every coordinate is added to one of k buckets, with a sign."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tacit.numerics import Array, IntArray
from tacit.randomness import PublicStream

__all__ = ["CountSketch"]


@dataclass(frozen=True, slots=True, eq=False)
class CountSketch:
    """Buckets and signs of every party; scaled by sqrt(k/d), so that the rows have length 1 on average.

    Attributes:
        buckets: Shape (n, d), entries 0, ..., k - 1.
        signs: Shape (n, d), entries +1 and -1.
        k: Number of buckets.
    """

    buckets: IntArray
    signs: npt.NDArray[np.int8]
    k: int

    @classmethod
    def draw(cls, streams: Sequence[PublicStream], dim: int, k: int) -> CountSketch:
        """Draw first the buckets, then the signs of every party, from a stream of its own."""
        buckets = np.stack([stream.integers(k, dim) for stream in streams])
        return cls(buckets, np.stack([stream.signs(dim) for stream in streams]), k)

    @property
    def _scale(self) -> float:
        """Factor of every entry."""
        return math.sqrt(self.k / self.signs.shape[1])

    def encode(self, X: Array) -> Array:
        """Return G_i x_i, shape (n, k)."""
        return self._bucket_sums(self.signs * X)

    def adjoint(self, Y: Array) -> Array:
        """Return G_i^T y_i, shape (n, d)."""
        return np.asarray(self._scale * self.signs * np.take_along_axis(Y, self.buckets, axis=1))

    def project(self, v: Array) -> Array:
        """Return G_i v, shape (n, k)."""
        return self._bucket_sums(self.signs * v)

    def back_project(self, Y: Array) -> Array:
        """Return sum_i G_i^T y_i, shape (d,)."""
        return np.asarray(self.adjoint(Y).sum(axis=0))

    def gram(self) -> Array:
        """Return K = G G^T by sparse products."""
        n, d = self.signs.shape
        rows = self.buckets + self.k * np.arange(n)[:, None]
        columns = np.broadcast_to(np.arange(d), (n, d))
        G = sparse.csr_array(
            (self._scale * self.signs.ravel(), (rows.ravel(), columns.ravel())), shape=(n * self.k, d)
        )
        return np.asarray((G @ G.T).toarray())

    def _bucket_sums(self, values: Array) -> Array:
        """Return scaled sums per bucket, shape (n, k)."""
        n = len(self.signs)
        slots = self.buckets + self.k * np.arange(n)[:, None]
        sums = np.bincount(slots.ravel(), weights=values.ravel(), minlength=n * self.k)
        return self._scale * sums.reshape(n, self.k)
