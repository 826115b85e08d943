"""What queries are held against: computed once for a kind of round, because every round asks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import RefusalError
from tacit.federation.correlated import CorrelatedStep
from tacit.federation.measures import Measure
from tacit.federation.query import Query
from tacit.federation.steps import AnyStep, HiddenRun, HiddenWalk, TurnWalk, Walk
from tacit.numerics import Array
from tacit.privacy import TrustModel

__all__ = ["AskedKind"]


@dataclass(frozen=True, slots=True)
class AskedKind:
    """A kind of round as a silo of a public size answers it.

    Attributes:
        step: The kind.
        sent: Its measures as the silo sends them.
        rows: Units of a batch that messages are made for.
        units: Public number of units of the silo.
        largest: Largest radius of each measure.
        fixed: What has one radius in all rounds, by name; None where queries choose it.
        mixes: Whether the silo adds noise that is correlated with that of earlier rounds.
    """

    step: AnyStep
    sent: tuple[Measure, ...]
    rows: int
    units: int
    largest: tuple[float, ...]
    fixed: str | None
    mixes: bool

    @classmethod
    def of(cls, step: AnyStep, size: int) -> AskedKind:
        """Return a kind of round for a silo of that size."""
        correlated = isinstance(step, CorrelatedStep)
        hidden = "a hidden walk" if isinstance(step, HiddenWalk) else None
        hidden = "a hidden run" if isinstance(step, HiddenRun) else hidden
        return cls(
            step=step,
            sent=step.sent,
            rows=step.batch.size_for(size),
            units=size,
            largest=tuple(measure.max_radius for measure in step.measures),
            fixed="correlated rounds" if correlated else hidden,
            mixes=correlated and step.trust is TrustModel.LOCAL,
        )

    def points(self, query: Query) -> Mapping[str, Array]:
        """Return the points of a query that asks for such a round.

        Raises:
            RefusalError: Radii or points that the kind does not foresee.
        """
        query.check(self.largest)
        if self.fixed is not None and query.radius[0] != self.largest[0]:
            largest, got = self.largest[0], query.radius[0]
            raise RefusalError(f"radius of {self.fixed} must be {largest!r}, as in its plan, got {got!r}.")
        if isinstance(self.step, HiddenRun):
            self.step.check_points(query.at, self.units)
            return {name: array.astype(np.float64) for name, array in query.at.items()}
        if not isinstance(self.step, Walk):
            return query.at
        shapes: dict[str, tuple[Any, ...]] = {name: array.shape for name, array in query.at.items()}
        if shapes != self.step.points:
            raise RefusalError(f"such a walk needs the points {self.step.points}, by shape, got {shapes}.")
        w = query.at["w"].astype(np.float64)
        if isinstance(self.step, TurnWalk):
            self.step.check_taken(query.at["taken"])
            return {"w": w, "previous": w, "clip": query.at["clip"].astype(np.float64)}
        return {"w": w}
