"""Subsampled randomized Hadamard transforms: G_i = E_i H D_i / sqrt(d') (Jiang 2025, Eq 2.6).

D_i holds random signs, H is the Sylvester Hadamard matrix, E_i takes k distinct rows. Products cost a fast
transform per party; the Gram matrix needs no product at all.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.compression.subsample import draw_distinct_integers
from tacit.numerics import Array, IntArray, fwht
from tacit.randomness import PublicStream

__all__ = ["Srht"]

_CHUNK = 2**17
"""Numbers that are transformed at once: 1 MiB, so that all stages of a transform stay in a cache."""


@dataclass(frozen=True, slots=True, eq=False)
class Srht:
    """Signs and rows of every party.

    Attributes:
        signs: Shape (n, d'), entries +1 and -1; d' is a power of two.
        rows: Shape (n, k), distinct per party.
    """

    signs: npt.NDArray[np.int8]
    rows: IntArray

    @classmethod
    def draw(cls, streams: Sequence[PublicStream], dim: int, k: int) -> Srht:
        """Draw first the signs, then the rows of every party, from a stream of its own."""
        signs = np.stack([stream.signs(dim) for stream in streams])
        return cls(signs, np.stack([draw_distinct_integers(stream, dim, k) for stream in streams]))

    @property
    def dim(self) -> int:
        """Number d' of coordinates."""
        return int(self.signs.shape[1])

    def matrices(self) -> Array:
        """Return G_i, shape (n, k, d'), with no product: H[a, b] = (-1)^|a AND b|."""
        odd = np.bitwise_count(self.rows[:, :, None] & np.arange(self.dim)) & 1
        entries: Array = np.where(odd, -1.0, 1.0) * self.signs[:, None]
        entries *= 1 / math.sqrt(self.dim)
        return entries

    def encode(self, X: Array) -> Array:
        """Return G_i x_i, shape (n, k)."""
        coded = np.empty(self.rows.shape, dtype=X.dtype)
        for some in self._chunks():
            coded[some] = self._seen(self.signs[some] * X[some], some)
        coded *= 1 / math.sqrt(self.dim)
        return coded

    def adjoint(self, Y: Array) -> Array:
        """Return G_i^T y_i, shape (n, d')."""
        return np.concatenate([self._spread(Y, some) for some in self._chunks()])

    def project(self, v: Array) -> Array:
        """Return G_i v, shape (n, k)."""
        coded = np.empty(self.rows.shape, dtype=v.dtype)
        for some in self._chunks():
            coded[some] = self._seen(self.signs[some] * v, some)
        coded *= 1 / math.sqrt(self.dim)
        return coded

    def back_project(self, Y: Array) -> Array:
        """Return sum_i G_i^T y_i, shape (d',)."""
        total = np.zeros(self.dim, dtype=Y.dtype)
        for some in self._chunks():
            total += self._spread(Y, some).sum(axis=0)
        return total

    def gram(self) -> Array:
        """Return K, bit for bit, with n^2 / 2 transforms and no product.

        H[a] * H[b] = H[a XOR b], so with w = H (D_i D_l 1) / d' the entry of rows a of i and b of l is
        w[a XOR b].
        """
        n, k = self.rows.shape
        K = np.empty((n, k, n, k))
        for i in range(n):
            K[i, :, i] = np.eye(k)
            for some in self._chunks(i + 1):
                w = fwht((self.signs[i] * self.signs[some]).astype(np.float64)) / self.dim
                met = self.rows[i][None, :, None] ^ self.rows[some][:, None, :]
                block = np.take(w, met + self.dim * np.arange(len(w))[:, None, None])
                K[i, :, some] = block.transpose(1, 0, 2)
                K[some, :, i] = block.transpose(0, 2, 1)
        return K.reshape(n * k, n * k)

    def _seen(self, signed: Array, some: slice) -> Array:
        """Return the entries of H D_i x_i that some parties send, from D_i x_i, which is overwritten."""
        return np.take_along_axis(fwht(signed, out=signed), self.rows[some], axis=1)

    def _spread(self, Y: Array, some: slice) -> Array:
        """Return G_i^T y_i of some parties."""
        full = np.zeros((len(self.rows[some]), self.dim), dtype=Y.dtype)
        np.put_along_axis(full, self.rows[some], Y[some] / math.sqrt(self.dim), axis=1)
        fwht(full, out=full)
        full *= self.signs[some]
        return full

    def _chunks(self, start: int = 0) -> Iterator[slice]:
        """Yield slices of parties whose vectors fit into a cache together."""
        step = max(1, _CHUNK // self.dim)
        for first in range(start, len(self.signs), step):
            yield slice(first, min(first + step, len(self.signs)))
