"""Differences of gradients at two points: rows are short where the points are near, and so is the noise."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast, runtime_checkable

import numpy as np

from tacit.errors import ParameterError, check_positive
from tacit.federation import Units
from tacit.learning.objective import Objective, Records, SlopedObjective, clip_factors, point_of
from tacit.means import SMALLEST_RADIUS
from tacit.numerics import Array, clip_rows, row_norms, weighted_sum

__all__ = ["FusedDifference", "RecordDifference", "difference_radius"]

_AT_ONCE = 2**17
"""Numbers of rows that are in memory at once."""


@runtime_checkable
class FusedDifference(Protocol):
    """An objective that adds up clipped differences of gradients without a matrix of them."""

    def clipped_difference(
        self,
        w: Array,
        previous: Array,
        records: Any,
        radius: float,
        dtype: type[np.floating[Any]],
        *,
        clip: float | None,
    ) -> Array:
        """Return the sum of the clipped rows of `RecordDifference`, as of a `FusedStatistic`."""
        ...


@runtime_checkable
class JoinedDifference(Protocol):
    """An objective that adds up those of several silos in one call, each silo by itself."""

    def clipped_differences(
        self,
        w: Array,
        previous: Array,
        silos: Sequence[Any],
        radius: float,
        dtype: type[np.floating[Any]],
        *,
        clip: float | None,
    ) -> Array:
        """Return `clipped_difference` of each silo, shape (silos, size), to the last bit."""
        ...


@dataclass(frozen=True)
class RecordDifference:
    """How the gradient of each record's loss changes from the point "previous" to the point "w".

    With a third point "clip", a number, both gradients are clipped to that length before: then full gradients
    that are clipped so and differences add up to the gradient of one function. A gradient that is not finite
    counts as zero there; without "clip" the whole row does.

    Source: the inner steps of SVRG and SPIDER (Lowy 2023, Algorithms 2 and 4).
    """

    objective: Objective

    def __call__(self, units: Units, at: Mapping[str, Array]) -> Array:
        """Return one difference per record, shape (n, size)."""
        w, previous, clip = self._points(at)
        first, second = (self.objective.gradients(point, units) for point in (w, previous))
        with np.errstate(over="ignore", invalid="ignore"):
            if clip is not None:
                first, second = clip_rows(first, clip), clip_rows(second, clip)
            return np.asarray(first - second)

    def clipped_sum(
        self, units: Units, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped differences, shape (size,), with few rows in memory at once."""
        w, previous, clip = self._points(at)
        if isinstance(self.objective, FusedDifference):
            return self.objective.clipped_difference(w, previous, units, radius, dtype, clip=clip)
        total, most = np.zeros(self.objective.size), max(1, _AT_ONCE // max(self.objective.size, 1))
        with np.errstate(over="ignore", invalid="ignore"):
            for start in range(0, len(units), most):
                rows = self(units.take(np.arange(start, min(start + most, len(units)))), at)
                rows = rows if rows.dtype == np.float32 else rows.astype(np.float64, copy=False)
                factors = clip_factors(row_norms(rows), radius, rows.dtype.type)
                rows[factors == 0] = 0  # infinity times 0 is NaN
                total += weighted_sum(rows, factors, dtype=dtype)
        return total

    @property
    def joins(self) -> bool:
        """Whether the objective adds up several silos in one call."""
        return issubclass(type(self.objective), JoinedDifference)  # isinstance searches anew each time

    def clipped_sums(
        self, silos: Sequence[Any], at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped differences of each silo, shape (silos, size)."""
        w, previous, clip = self._points(at)
        objective = cast(JoinedDifference, self.objective)
        return objective.clipped_differences(w, previous, silos, radius, dtype, clip=clip)

    def scaled(self, units: Records, at: Mapping[str, Array], radius: float) -> tuple[Array, Array] | None:
        """Return clipped differences of slopes, and features; None where gradients have another form."""
        if not isinstance(self.objective, SlopedObjective):
            return None
        w, previous, clip = self._points(at)
        slopes = self.objective.clipped_slope_differences(w, previous, units, radius, clip=clip)
        return (slopes, units.X) if slopes.ndim == 1 else None

    def _points(self, at: Mapping[str, Array]) -> tuple[Array, Array, float | None]:
        """Return both points and the clip of gradients, or refuse points of another shape."""
        size, clip = self.objective.size, at.get("clip")
        if clip is not None and (clip.shape != () or clip < 0):
            raise ParameterError("the point 'clip' must be one number >= 0.")
        return (
            point_of(at, size),
            point_of(at, size, name="previous"),
            None if clip is None else float(clip),
        )


def difference_radius(w: Array, previous: Array, *, lipschitz: float, smoothness: float) -> float:
    """Return how long differences of gradients are at most: min(2 L, beta |w - previous|).

    Args:
        w: One point, shape (size,).
        previous: The other.
        lipschitz: L, the norm bound of a gradient, > 0.
        smoothness: beta, > 0; infinite if it is unknown.

    Returns:
        A number from 0 to 2 L; 0 where the points are the same, or so near that means take all rows for zero.

    Example:
        >>> difference_radius(np.array([3.0, 4.0]), np.zeros(2), lipschitz=1.0, smoothness=0.25)
        1.25

    Reference:
        Lowy (2023), Algorithm 4, line 10, and its proof.
    """
    check_positive("lipschitz", lipschitz)
    moved = float(row_norms(np.asarray(w, dtype=np.float64) - previous))
    radius = min(2 * lipschitz, smoothness * moved) if moved > 0 else 0.0
    return radius if radius >= SMALLEST_RADIUS else 0.0
