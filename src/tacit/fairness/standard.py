"""Features as a linear model takes them: centred, divided by their spread, with the constant last."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from tacit.numerics import Array

__all__ = ["Standard"]


@dataclass(frozen=True)
class Standard:
    """A shift, a scale and a bound of features, read off training records: no private training may use it.

    Attributes:
        shift: Shape (d,).
        scale: Shape (d,), > 0.
        bound: Features stay within [-bound, bound] after that; None leaves them.
    """

    shift: Array
    scale: Array
    bound: float | None

    @classmethod
    def of(cls, X: Array, *, scale: bool = True, bound: float | None = None) -> Self:
        """Return the means and standard deviations of columns, 1 for those without spread.

        Args:
            X: Shape (n, d).
            scale: Whether there is a shift and a scale at all.
            bound: As in the attributes.
        """
        d = X.shape[1]
        if not scale:
            return cls(np.zeros(d), np.ones(d), bound)
        shift = X.mean(axis=0, dtype=np.float64)
        squares = np.zeros(d)
        for first in range(0, len(X), 1 << 16):  # in blocks: a copy of all records may not fit
            squares += np.square(X[first : first + (1 << 16)] - shift).sum(axis=0)
        spread = np.sqrt(squares / len(X))
        # A constant column has the spread of its rounding.
        return cls(shift, np.where(spread > 1e-12 * np.maximum(np.abs(shift), 1e-300), spread, 1.0), bound)

    def transform(self, X: Array) -> Array:
        """Return features with the constant as last column, shape (n, d + 1), as wide as X; X stays."""
        n, d = X.shape
        made = np.ones((n, d + 1), dtype=X.dtype)
        inside = made[:, :d]
        np.subtract(X, self.shift.astype(X.dtype), out=inside)
        inside /= self.scale.astype(X.dtype)
        if self.bound is not None:
            np.clip(inside, -self.bound, self.bound, out=inside)
        return made
