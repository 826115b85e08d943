"""Gradients of records whose features were whitened: of one length again, in all directions alike."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.errors import ParameterError
from tacit.learning.objective import LinearShape, Objective, RecordGradient, Records
from tacit.numerics import Array, row_norms, row_products

__all__ = ["WhitenedGradient"]


@dataclass(frozen=True)
class WhitenedGradient:
    """The gradient of each record's loss at "w", its features x replaced by r A x / |A x|, A = "whitening".

    All records are again as long as features may be, r, whatever A is, and in its metric: where A shortens
    what all records share, what tells them apart grows. Each new row is made of its own record and A alone.

    Attributes:
        objective: Linear in features of known norm.
    """

    objective: Objective

    def __call__(self, units: Records, at: Mapping[str, Array]) -> Array:
        """Return one gradient per record, shape (n, size)."""
        return RecordGradient(self.objective)(self._whitened(units, at), at)

    def clipped_sum(
        self, units: Records, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped gradients, shape (size,)."""
        return RecordGradient(self.objective).clipped_sum(self._whitened(units, at), at, radius, dtype)

    @cached_property
    def _shape(self) -> LinearShape:
        """What is known of the features; found once, since looking costs more than small sums."""
        goal = self.objective
        if not isinstance(goal, LinearShape) or not math.isfinite(goal.feature_norm):
            raise ParameterError("whitened gradients need a linear model with features of known norm.")
        return goal

    def _whitened(self, units: Records, at: Mapping[str, Array]) -> Records:
        """Return records with the new features, those of the last round where the matrix is the same."""
        matrix, goal = at.get("whitening"), self._shape
        d = goal.features
        if matrix is None or matrix.shape != (d, d):
            shape = None if matrix is None else matrix.shape
            raise ParameterError(f"the point 'whitening' must have shape ({d}, {d}), got {shape}.")
        last = units.memo.get("whitened")
        if last is None or not np.array_equal(last[0], matrix):
            X = units.X
            # What overflows becomes a row that counts as zero; a warning would tell that there is one.
            with np.errstate(over="ignore", invalid="ignore"):
                rows = row_products(X, matrix.T.astype(X.dtype, copy=False))
                norms = row_norms(rows)
                factors = np.divide(goal.feature_norm, norms, out=np.zeros_like(norms), where=norms > 0)
                last = matrix, Records.of(rows * factors.astype(X.dtype, copy=False)[:, None], units.y)
            units.memo["whitened"] = last
        return last[1]
