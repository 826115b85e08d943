"""One orthogonal map for all parties, before sparsifying or quantizing (Jiang 2025, Appendix A.1.1)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, as_rows, fwht, next_power_of_two
from tacit.randomness import PublicStream

__all__ = ["CommonRotation"]


class CommonRotation:
    """Gamma = H D / sqrt(d'), equal for all parties of a round: spreads every vector over all coordinates.

    It leaves the error of Rand-k and of Rand-k-Spatial what it is; it helps quantizers, whose error grows
    with the range of the entries.

    Args:
        dim: Number of coordinates, >= 1; vectors are padded with zeros to the next power of two.
        seed: Public seed of the run, >= 0.
        round: Number of the round, >= 0.

    Raises:
        ParameterError: A number is out of range.

    Example:
        >>> rotation = CommonRotation(3, seed=0, round=0)
        >>> rotated = rotation.apply([[3.0, 0.0, 0.0]])
        >>> np.abs(rotated).tolist(), np.abs(rotation.invert(rotated)).tolist()
        ([[1.5, 1.5, 1.5, 1.5]], [[3.0, 0.0, 0.0]])

    Reference:
        Jiang (2025), Appendix A.1.1.
    """

    def __init__(self, dim: int, *, seed: int, round: int) -> None:
        check_count("dim", dim)
        self.dim = dim
        self.padded_dim = next_power_of_two(dim)
        self._signs = PublicStream(seed, round, purpose=f"compression/rotation/{dim}").signs(self.padded_dim)

    def apply(self, X: npt.ArrayLike) -> Array:
        """Rotate rows.

        Args:
            X: Shape (n, dim).

        Returns:
            Shape (n, padded_dim), each row as long as before; float32 if `X` is, else float64.

        Raises:
            ParameterError: Another shape or dtype.
        """
        rows = self._checked(X, self.dim)
        padded = np.pad(rows, ((0, 0), (0, self.padded_dim - self.dim)))
        return np.asarray(fwht(self._signs * padded) * rows.dtype.type(1 / math.sqrt(self.padded_dim)))

    def invert(self, X: npt.ArrayLike) -> Array:
        """Rotate rows back and drop the padding.

        Args:
            X: Shape (n, padded_dim).

        Returns:
            Shape (n, dim).

        Raises:
            ParameterError: Another shape or dtype.
        """
        rows = self._checked(X, self.padded_dim)
        back = self._signs * (fwht(rows) * rows.dtype.type(1 / math.sqrt(self.padded_dim)))
        return np.asarray(back[:, : self.dim])

    @staticmethod
    def _checked(X: npt.ArrayLike, columns: int) -> Array:
        """Return rows of that length."""
        rows = as_rows("X", X)
        if rows.shape[1] != columns:
            raise ParameterError(f"X must have shape (n, {columns}), got {rows.shape}.")
        return rows
