"""Maps without structure, kept as matrices: Gaussian, Gaussian with rows of length 1, Haar.

Their numbers must be equal on all machines. Every operation below is rounded as IEEE 754 prescribes and is
done in a fixed order: `np.log`, `np.sum`, BLAS and LAPACK are not, and would differ in the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tacit.numerics import Array
from tacit.randomness import PublicStream

__all__ = ["DenseOperator", "draw_gaussian", "draw_haar", "draw_row_normalized", "draw_standard_normals"]


_LN2 = 0.6931471805599453


@dataclass(frozen=True, slots=True, eq=False)
class DenseOperator:
    """Maps as matrices.

    Attributes:
        G: Shape (n, k, d).
    """

    G: Array

    def encode(self, X: Array) -> Array:
        """Return G_i x_i, shape (n, k)."""
        return np.asarray(np.matmul(self.G, X[:, :, None])[:, :, 0])

    def adjoint(self, Y: Array) -> Array:
        """Return G_i^T y_i, shape (n, d)."""
        return np.asarray(np.matmul(Y[:, None, :], self.G)[:, 0, :])

    def project(self, v: Array) -> Array:
        """Return G_i v, shape (n, k)."""
        return np.asarray(self.G @ v)

    def back_project(self, Y: Array) -> Array:
        """Return sum_i G_i^T y_i, shape (d,)."""
        return np.asarray(Y.reshape(-1) @ self._stacked())

    def gram(self) -> Array:
        """Return K = G G^T."""
        stacked = self._stacked()
        return np.asarray(stacked @ stacked.T)

    def _stacked(self) -> Array:
        """Return all rows of all parties, shape (n k, d)."""
        return self.G.reshape(-1, self.G.shape[2])


def draw_standard_normals(stream: PublicStream, n: int) -> Array:
    """Draw independent standard normals by the polar method, bit for bit equal on all machines.

    Pairs (u, v) of uniform multiples of 2**-52 in [-1, 1) with s = u^2 + v^2 in (0, 1) give the two numbers
    u f and v f with f = sqrt(-2 ln(s) / s) (Marsaglia and Bray, 1964, SIAM Review 6(3)). The logarithm is
    that of `_log`.

    Args:
        stream: Shared randomness.
        n: How many, >= 0.

    Returns:
        Shape (n,), float64.
    """
    pairs = -(-n // 2)
    parts: list[Array] = []
    missing = pairs
    while missing:
        u, v = (2 * stream.uniform(2 * missing) - 1).reshape(-1, 2).T
        s = u * u + v * v
        inside = (s > 0) & (s < 1)
        s = s[inside]
        factor = np.sqrt(-2 * _log(s) / s)
        parts.append(np.stack([u[inside] * factor, v[inside] * factor], axis=1))
        missing -= len(s)
    return np.concatenate(parts).reshape(-1)[:n] if parts else np.empty(0)


def _log(s: Array) -> Array:
    """Natural logarithm from additions, products and quotients only, to about 1e-16 relative.

    s = 2^e m with m in [1/sqrt 2, sqrt 2), and ln m = 2 artanh(t), t = (m - 1) / (m + 1), |t| < 0.1716: the
    odd series of artanh up to t^23 leaves less than 1e-19.
    """
    m, e = np.frexp(s)
    low = m < math.sqrt(0.5)
    m = np.where(low, 2 * m, m)
    t = (m - 1) / (m + 1)
    square, series = t * t, np.zeros_like(t)
    for power in range(23, 0, -2):
        series = series * square + 1 / power
    return np.asarray(2 * t * series + (e - low) * _LN2)


def draw_gaussian(streams: Sequence[PublicStream], dim: int, k: int) -> Array:
    """Draw rows of independent N(0, 1/d), shape (n, k, d)."""
    return _normal_matrices(streams, dim, k) / math.sqrt(dim)


def draw_row_normalized(streams: Sequence[PublicStream], dim: int, k: int) -> Array:
    """Draw rows uniform on the unit sphere, shape (n, k, d)."""
    G = _normal_matrices(streams, dim, k)
    G /= _norms(G)
    return G


def draw_haar(streams: Sequence[PublicStream], dim: int, k: int) -> Array:
    """Draw k rows of a Haar orthogonal matrix, shape (n, k, d).

    Gram-Schmidt on normal rows is their QR factorisation with a positive diagonal, hence Haar (Mezzadri,
    2007, Notices AMS 54(5)). Every row is orthogonalised twice, after which it is orthogonal to working
    precision (Giraud et al., 2005, Numerische Mathematik 101).
    """
    G = _normal_matrices(streams, dim, k)
    for row in range(k):
        done, new = G[:, :row], G[:, row]
        for _ in range(2):
            shares = _ordered_sum(done * new[:, None, :])
            for j in range(row):
                new -= shares[:, j] * done[:, j]
        new /= _norms(new)
    return G


def _normal_matrices(streams: Sequence[PublicStream], dim: int, k: int) -> Array:
    """Return standard normals, shape (n, k, d)."""
    return np.stack([draw_standard_normals(stream, k * dim).reshape(k, dim) for stream in streams])


def _norms(rows: Array) -> Array:
    """Return L2 norms over the last axis, which is kept."""
    return np.sqrt(_ordered_sum(rows * rows))


def _ordered_sum(values: Array) -> Array:
    """Sum over the last axis from left to right; the axis is kept. `np.sum` has an order of its own."""
    return np.cumsum(values, axis=-1)[..., -1:]
