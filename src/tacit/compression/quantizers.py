"""Quantizers: few bits for every coordinate, rounded at random so that nothing is biased."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, IntArray, as_rows, settle

__all__ = ["QSGD", "Quantized", "StochasticUniformQuantizer"]


@dataclass(frozen=True, slots=True, eq=False)
class Quantized:
    """What parties send: small whole numbers, and the grid of every row.

    Attributes:
        codes: Shape (n, d).
        offset: Shape (n,), the value of code 0.
        step: Shape (n,), distance of neighbouring values, >= 0.
    """

    codes: IntArray
    offset: Array
    step: Array

    def decode(self) -> Array:
        """Return the values, shape (n, d), float64."""
        return self.offset[:, None] + self.step[:, None] * self.codes


@dataclass(frozen=True, kw_only=True, slots=True)
class StochasticUniformQuantizer:
    """Round every entry to one of the two neighbouring levels between the row's least and largest entry.

    To spread the entries first, apply a `common_rotation` to the rows and invert it on the mean.

    Attributes:
        levels: L >= 2 equally spaced levels.

    Reference:
        Suresh et al. (2017), ICML.
    """

    levels: int

    def __post_init__(self) -> None:
        settle(self)
        check_count("levels", self.levels, low=2, high=2**31)

    def encode(self, X: npt.ArrayLike, *, rng: np.random.Generator) -> Quantized:
        """Quantize rows.

        Args:
            X: Shape (n, d), finite, d >= 1.
            rng: Private randomness of the parties, one uniform number per entry.

        Returns:
            Codes 0, ..., levels - 1; their values have expectation `X`.

        Raises:
            ParameterError: Wrong shape, NaN or infinity.
        """
        low, step, position = self._positions(X)
        return Quantized(_round_at_random(position, rng), low, step)

    def squared_error(self, X: npt.ArrayLike) -> Array:
        """Compute E||Q(x_i) - x_i||^2 = w^2 sum_j f_j (1 - f_j), shape (n,), exactly.

        w is the distance of the levels and f_j the fractional part of the position among them.

        Raises:
            ParameterError: Wrong shape, NaN or infinity.
        """
        _, step, position = self._positions(X)
        return step**2 * _rounding_variance(position)

    def _positions(self, X: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return the least entry and the step of every row, and every entry in steps above it."""
        rows = _checked(X)
        low = rows.min(axis=1)
        # Halves first: the range of huge finite entries would overflow.
        step = 2 * ((rows.max(axis=1) / 2 - low / 2) / (self.levels - 1))
        above = rows - low[:, None]
        position = np.divide(above, step[:, None], out=np.zeros_like(rows), where=step[:, None] > 0)
        return low, step, np.clip(position, 0, self.levels - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class QSGD:
    """Send the norm, and |x_j| / ||x|| rounded at random to a multiple of 1/s, with its sign.

    Attributes:
        levels: s >= 1.

    Reference:
        Alistarh et al. (2017), NeurIPS.
    """

    levels: int

    def __post_init__(self) -> None:
        settle(self)
        check_count("levels", self.levels, high=2**31)

    def encode(self, X: npt.ArrayLike, *, rng: np.random.Generator) -> Quantized:
        """Quantize rows.

        Args:
            X: Shape (n, d), finite, d >= 1.
            rng: Private randomness of the parties, one uniform number per entry.

        Returns:
            Codes -s, ..., s; their values have expectation `X`.

        Raises:
            ParameterError: Wrong shape, NaN or infinity.
        """
        rows, step, position = self._positions(X)
        codes = _round_at_random(position, rng) * np.sign(rows).astype(np.int64)
        return Quantized(codes, np.zeros(len(rows)), step)

    def squared_error(self, X: npt.ArrayLike) -> Array:
        """Compute E||Q(x_i) - x_i||^2 = (||x_i|| / s)^2 sum_j f_j (1 - f_j), shape (n,), exactly.

        Raises:
            ParameterError: Wrong shape, NaN or infinity.
        """
        _, step, position = self._positions(X)
        return step**2 * _rounding_variance(position)

    def _positions(self, X: npt.ArrayLike) -> tuple[Array, Array, Array]:
        """Return the rows, the step ||x|| / s of each, and every |x_j| in steps."""
        rows = _checked(X)
        step = np.linalg.norm(rows, axis=1) / self.levels
        position = np.divide(np.abs(rows), step[:, None], out=np.zeros_like(rows), where=step[:, None] > 0)
        return rows, step, np.minimum(position, self.levels)


def _round_at_random(position: Array, rng: np.random.Generator) -> IntArray:
    """Return one of the two whole numbers around every position, with that expectation."""
    below = np.floor(position)
    return (below + (rng.random(position.shape) < position - below)).astype(np.int64)


def _rounding_variance(position: Array) -> Array:
    """Return sum_j f_j (1 - f_j) of the fractional parts, shape (n,)."""
    fraction = position - np.floor(position)
    return np.asarray((fraction * (1 - fraction)).sum(axis=1))


def _checked(X: npt.ArrayLike) -> Array:
    """Return finite rows with at least one column, in float64."""
    rows = as_rows("X", X).astype(np.float64, copy=False)
    if rows.shape[1] < 1:
        raise ParameterError(f"X must have at least one column, got shape {rows.shape}.")
    if not np.all(np.isfinite(rows)):
        raise ParameterError("X must be finite, got a NaN or an infinity.")
    return rows
