"""How long the gradients of units are: what a unit contributes to a histogram of norms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tacit.errors import ParameterError
from tacit.federation import Statistic, Units
from tacit.learning.objective import Grouped, Objective, PerPerson, RecordGradient, Records
from tacit.numerics import Array, row_norms

__all__ = ["NORMS", "GradientNorms"]

NORMS = "gradient-norms"
"""The name of the statistic in plans."""

_AT_ONCE = 2**20
"""Numbers of gradients that are in memory at once."""


_INSIDE = 1 - 1e-6
"""A norm that is the end of a bin but for rounding, as of rows of one length, is in that bin."""


@dataclass(frozen=True)
class GradientNorms:
    """The statistic of a unit that is 1 in the bin of its gradient's norm at "w", and 0 in all others.

    Bins end at "edges", increasing; what is longer than the last is in the last. Two rows are equal or at a
    right angle. A gradient that is not finite is in no bin: its row is zero.

    Attributes:
        gradient: One gradient per unit.
    """

    gradient: Statistic

    acute: ClassVar[bool] = True

    @classmethod
    def of(cls, objective: Objective) -> Self:
        """Return that of records."""
        return cls(RecordGradient(objective))

    def of_persons(self) -> Self:
        """Return that of persons: by the norm of the mean of a person's gradients, which is clipped."""
        return type(self)(PerPerson(self.gradient))

    def __call__(self, units: Units, at: Mapping[str, Array]) -> Array:
        """Return one row per unit, shape (n, bins)."""
        if "w" not in at or (edges := at.get("edges", np.zeros(0))).ndim != 1 or edges.size == 0:
            raise ParameterError("a histogram of gradients needs the point 'w', and 'edges', one or more.")
        norms = self._norms(units, {"w": at["w"]})
        rows = np.zeros((len(norms), edges.size))
        known = np.flatnonzero(np.isfinite(norms))
        bins = np.minimum(np.searchsorted(edges, norms[known] * _INSIDE), edges.size - 1)
        rows[known, bins] = 1.0
        return rows

    def _norms(self, units: Units, at: Mapping[str, Array]) -> Array:
        """Return the norm of every unit's gradient, shape (n,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = [row_norms(self.gradient(part, at)) for part in _parts(units, at["w"].size)]
        return np.concatenate([np.zeros(0), *found])


def _parts(units: Units, size: int) -> Iterator[Units]:
    """Yield all units, in order, few of them at once."""
    most = max(1, _AT_ONCE // max(size, 1))
    if isinstance(units, Grouped):
        yield from units.parts(most)
    elif isinstance(units, Records):
        for first in range(0, len(units), most):
            part = slice(first, first + most)
            yield Records(units.X[part], units.y[part], units.norms[part])
    else:
        yield units
