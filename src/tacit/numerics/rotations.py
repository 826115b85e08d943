"""Public random rotations: they spread a vector evenly over its coordinates.

A rotation is drawn from a `PublicStream`: all parties and the server have the same one, it depends on no
data, and it is drawn anew every round, since a fixed one can be met by data chosen to meet it. It keeps
norms, so a vector of the ball of radius r2 has coordinates of about r2 / sqrt(D) afterwards, which is what a
mechanism for boxes wants to see. How large a box is needed is `radius`; a coordinate outside it is clipped by
whoever encodes, and privacy rests on this clip, never on the rotation.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

import numpy as np
import numpy.typing as npt
from scipy import fft, special

from tacit.errors import ParameterError, check_count, check_positive
from tacit.numerics.arrays import Array, as_floats
from tacit.numerics.clipping import clip_rows
from tacit.numerics.hadamard import fwht, next_power_of_two
from tacit.numerics.rotation_radii import certified_radius
from tacit.randomness import PublicStream

__all__ = [
    "MAX_DENSE_DIM",
    "CosineRotation",
    "Encoder",
    "OrthogonalRotation",
    "RandomHadamard",
    "read_coded",
    "read_points",
]

MAX_DENSE_DIM = 2048
"""Largest dimension of `OrthogonalRotation`, whose drawing takes cubic time."""


@runtime_checkable
class Encoder(Protocol):
    """A public linear code of vectors by coefficients of small absolute value."""

    @property
    def dim(self) -> int:
        """Dimension d of the vectors."""

    @property
    def coded_dim(self) -> int:
        """Number D >= d of coefficients."""

    @property
    def fingerprint(self) -> str:
        """Equal for parties that have the same code, and for no others."""

    def forward(self, rows: npt.ArrayLike, *, r2: float) -> Array:
        """Coefficients, shape (..., D), of rows, shape (..., d), that are first clipped to the norm `r2`."""

    def inverse(self, coded: npt.ArrayLike) -> Array:
        """The vectors, shape (..., d), of coefficients, shape (..., D); linear."""

    def radius(self, r2: float, *, n: int, beta: float) -> float:
        """Bound on all coefficients of n vectors of norm <= `r2`, except with probability `beta`."""


@dataclass(frozen=True, eq=False, slots=True)
class RandomHadamard:
    """Random signs, then the Hadamard matrix over sqrt(D): U = H_D diag(signs) / sqrt(D), D = 2^ceil(log2 d).

    Vectors are padded with zeros to D coordinates; the matrix is orthogonal on the padded ones. Make it with
    `draw`.

    Attributes:
        dim: Dimension d of the vectors.
        signs: Shape (D,), entries +1 and -1, int8.

    Raises:
        ParameterError: `dim` is out of range, or `signs` are not D signs.

    Cost:
        O(D log D) time a row.

    Example:
        >>> rotation = RandomHadamard.draw(3, PublicStream(7, 0, purpose="rotation"))
        >>> turned = rotation.forward([[3.0, 1.0, 4.0]])
        >>> turned.shape, round(float((turned**2).sum()), 12), rotation.inverse(turned).round(12).tolist()
        ((1, 4), 26.0, [[3.0, 1.0, 4.0]])

    Reference:
        Ailon and Chazelle (2006), STOC; Girgis (2023), Algorithm 3.6.1, whose line 4 calls U "W".
    """

    dim: int
    signs: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        _check_signs(self.signs, next_power_of_two(self.dim))

    @classmethod
    def draw(cls, dim: int, stream: PublicStream) -> Self:
        """Draw the signs.

        Args:
            dim: Dimension of the vectors, >= 1.
            stream: Public; the signs are its next D.

        Raises:
            ParameterError: `dim` is not a whole number >= 1.
        """
        check_count("dim", dim)
        return cls(dim, stream.signs(next_power_of_two(dim)))

    @property
    def coded_dim(self) -> int:
        """The padded dimension D."""
        return self.signs.size

    @property
    def fingerprint(self) -> str:
        """Hash of kind, dimension and signs; parties compare it before they use the rotation."""
        return _fingerprint("hadamard", self.dim, self.signs)

    def forward(self, rows: npt.ArrayLike, *, r2: float | None = None) -> Array:
        """Rotate.

        Args:
            rows: Shape (..., d).
            r2: Norm to which longer rows are scaled first, and a row with a NaN or an infinity to zero. None:
                nothing is scaled, and a row with a NaN or an infinity comes out without a finite entry.

        Returns:
            Shape (..., D), float32 if `rows` is, else float64; of the norm of the row.

        Raises:
            ParameterError: wrong shape, dtype or `r2`.
        """
        points = read_points(rows, dim=self.dim, r2=r2)
        padded = np.zeros((*points.shape[:-1], self.coded_dim), dtype=points.dtype)
        np.multiply(points, self.signs[: self.dim], out=padded[..., : self.dim])
        fwht(padded, out=padded)
        padded *= padded.dtype.type(1 / math.sqrt(self.coded_dim))
        return padded

    def inverse(self, coded: npt.ArrayLike, *, truncate: bool = True) -> Array:
        """Rotate back.

        Args:
            coded: Shape (..., D).
            truncate: Drop the padding, whose true value is zero. False: keep it, as the exact inverse of the
                orthogonal matrix does.

        Returns:
            Shape (..., d), or (..., D) with the padding; float32 if `coded` is, else float64.

        Raises:
            ParameterError: wrong shape or dtype.
        """
        turned = fwht(read_coded(coded, dim=self.coded_dim))
        turned *= turned.dtype.type(1 / math.sqrt(self.coded_dim))
        turned *= self.signs
        return turned[..., : self.dim] if truncate else turned

    def radius(self, r2: float, *, n: int, beta: float) -> float:
        """See `certified_radius`."""
        return certified_radius(r2, n=n, coded_dim=self.coded_dim, beta=beta)


@dataclass(frozen=True, eq=False, slots=True)
class CosineRotation:
    """Random signs, then the orthonormal cosine transform DCT-II: no padding in any dimension.

    Its entries are up to sqrt(2 / d) instead of 1 / sqrt(d), so that the certified radius is larger by
    sqrt(2). Make it with `draw`.

    Attributes:
        dim: Dimension d of the vectors, and the number of coefficients.
        signs: Shape (d,), entries +1 and -1, int8.

    Raises:
        ParameterError: `dim` is out of range, or `signs` are not d signs.

    Cost:
        O(d log d) time a row; the last bits differ between machines.

    Example:
        >>> rotation = CosineRotation.draw(3, PublicStream(7, 0, purpose="rotation"))
        >>> rotation.inverse(rotation.forward([[3.0, 1.0, 4.0]])).round(12).tolist()
        [[3.0, 1.0, 4.0]]
    """

    dim: int
    signs: npt.NDArray[np.int8]

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        _check_signs(self.signs, self.dim)

    @classmethod
    def draw(cls, dim: int, stream: PublicStream) -> Self:
        """Draw the signs.

        Args:
            dim: Dimension of the vectors, >= 1.
            stream: Public; the signs are its next `dim`.

        Raises:
            ParameterError: `dim` is not a whole number >= 1.
        """
        check_count("dim", dim)
        return cls(dim, stream.signs(dim))

    @property
    def coded_dim(self) -> int:
        """The dimension itself."""
        return self.dim

    @property
    def fingerprint(self) -> str:
        """Hash of kind, dimension and signs."""
        return _fingerprint("cosine", self.dim, self.signs)

    def forward(self, rows: npt.ArrayLike, *, r2: float | None = None) -> Array:
        """Rotate; see `RandomHadamard.forward`. Shape (..., d) in and out."""
        points = read_points(rows, dim=self.dim, r2=r2)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(fft.dct(points * self.signs, norm="ortho", axis=-1), dtype=points.dtype)

    def inverse(self, coded: npt.ArrayLike) -> Array:
        """Rotate back. Shape (..., d) in and out."""
        values = read_coded(coded, dim=self.dim)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(fft.idct(values, norm="ortho", axis=-1) * self.signs, dtype=values.dtype)

    def radius(self, r2: float, *, n: int, beta: float) -> float:
        """See `certified_radius`, with entries up to sqrt(2 / d)."""
        return certified_radius(r2, n=n, coded_dim=self.dim, beta=beta, peak=2.0 if self.dim > 1 else 1.0)


@dataclass(frozen=True, eq=False, slots=True)
class OrthogonalRotation:
    """A uniformly random orthogonal matrix (Haar measure): no padding in any dimension, but dense.

    The normal numbers behind it are the standard normal quantiles of (w + 1/2) / 2**52, where w are the upper
    52 bits of the stream's next words, row by row; the matrix is the Q of their QR decomposition with a
    positive diagonal of R. The words are the same on all machines, the matrix up to rounding (about 1e-13),
    which moves a decoded vector as little. Make it with `draw`.

    Attributes:
        matrix: Shape (d, d), float64, orthogonal.
        fingerprint: Hash of kind, dimension and words; it does not depend on rounding.

    Raises:
        ParameterError: `matrix` is not square, not of float64, or not orthogonal to 1e-10.

    Cost:
        O(d^3) time to draw, O(d^2) a row.

    Example:
        >>> rotation = OrthogonalRotation.draw(3, PublicStream(7, 0, purpose="rotation"))
        >>> rotation.inverse(rotation.forward([[3.0, 1.0, 4.0]])).round(12).tolist()
        [[3.0, 1.0, 4.0]]

    Reference:
        Mezzadri (2007), Notices of the AMS 54(5), arXiv:math-ph/0609050, §5.
    """

    matrix: Array
    fingerprint: str = "given"

    def __post_init__(self) -> None:
        m = self.matrix
        if m.ndim != 2 or m.shape[0] != m.shape[1] or m.dtype != np.float64 or m.size == 0:
            raise ParameterError(f"matrix must be square and float64, got {m.dtype} {m.shape}.")
        if not np.abs(m @ m.T - np.eye(len(m))).max() <= 1e-10:
            raise ParameterError("matrix must be orthogonal: matrix @ matrix.T differs from I by over 1e-10.")

    @classmethod
    def draw(cls, dim: int, stream: PublicStream) -> Self:
        """Draw the matrix.

        Args:
            dim: Dimension of the vectors, from 1 to 2048.
            stream: Public; its next dim**2 words.

        Raises:
            ParameterError: `dim` is out of range.
        """
        check_count("dim", dim, high=MAX_DENSE_DIM)
        # With 52 bits w + 1/2 is exact, and the law is symmetric; the quantile is infinite at 0 and 1 only.
        upper = stream.words(dim * dim) >> np.uint64(12)
        uniform = (upper.astype(np.float64) + 0.5) * 2.0**-52
        q, r = np.linalg.qr(special.ndtri(uniform).reshape(dim, dim))
        # Without this the signs would depend on LAPACK, and the law would not be Haar's.
        q *= np.where(np.diagonal(r) < 0, -1.0, 1.0)
        return cls(np.ascontiguousarray(q), _fingerprint("orthogonal", dim, upper.astype("<u8")))

    @property
    def dim(self) -> int:
        """Dimension of the vectors."""
        return len(self.matrix)

    @property
    def coded_dim(self) -> int:
        """The dimension itself."""
        return len(self.matrix)

    def forward(self, rows: npt.ArrayLike, *, r2: float | None = None) -> Array:
        """Rotate; see `RandomHadamard.forward`. Shape (..., d) in and out.

        The last bits of a row may depend on how many rows there are, never on their values.
        """
        points = read_points(rows, dim=self.dim, r2=r2)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(points @ self.matrix.T.astype(points.dtype, copy=False))

    def inverse(self, coded: npt.ArrayLike) -> Array:
        """Rotate back. Shape (..., d) in and out."""
        values = read_coded(coded, dim=self.dim)
        with np.errstate(invalid="ignore", over="ignore"):
            return np.asarray(values @ self.matrix.astype(values.dtype, copy=False))

    def radius(self, r2: float, *, n: int, beta: float) -> float:
        """See `certified_radius`."""
        return certified_radius(r2, n=n, coded_dim=self.dim, beta=beta)


def read_points(rows: npt.ArrayLike, *, dim: int, r2: float | None) -> Array:
    """Read vectors along the last axis and, where a norm is given, scale longer ones to it.

    Args:
        rows: Shape (..., dim).
        dim: What the last axis must be.
        r2: Norm, > 0; a row with a NaN or an infinity becomes zero. None: nothing is scaled.

    Returns:
        Shape (..., dim), float32 if `rows` is, else float64.

    Raises:
        ParameterError: wrong shape, dtype or `r2`.
    """
    points = as_floats("rows", rows)
    if points.ndim == 0 or points.shape[-1] != dim:
        raise ParameterError(f"rows must have shape (..., {dim}), got shape {points.shape}.")
    if r2 is None:
        return points
    check_positive("r2", r2)
    return clip_rows(points.reshape(-1, dim), r2).reshape(points.shape)


def read_coded(coded: npt.ArrayLike, *, dim: int) -> Array:
    """Read coefficients along the last axis.

    Args:
        coded: Shape (..., dim).
        dim: What the last axis must be.

    Returns:
        Shape (..., dim), float32 if `coded` is, else float64.

    Raises:
        ParameterError: wrong shape or dtype.
    """
    values = as_floats("coded", coded)
    if values.ndim == 0 or values.shape[-1] != dim:
        raise ParameterError(
            f"coded must have shape (..., {dim}), got shape {values.shape}; was another rotation used?"
        )
    return values


def _check_signs(signs: Array, size: int) -> None:
    """Refuse anything but `size` signs."""
    if signs.shape != (size,) or signs.dtype != np.int8 or not np.all(np.abs(signs) == 1):
        raise ParameterError(
            f"signs must be +1 and -1 in int8 of shape ({size},), got {signs.dtype} of shape {signs.shape}."
        )


def _fingerprint(kind: str, dim: int, *parts: Array) -> str:
    """Hash of a public code, 32 hexadecimal digits."""
    hasher = hashlib.blake2b(f"{kind} {dim}".encode(), digest_size=16, person=b"tacit.encoder")
    for part in parts:
        hasher.update(np.ascontiguousarray(part).tobytes())
    return hasher.hexdigest()
