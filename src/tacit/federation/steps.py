"""The kinds of rounds that a plan is made of: means of one batch, and walks inside a silo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from tacit.errors import ParameterError, check_count, check_name, check_positive
from tacit.federation.batches import Batch, Disjoint, Fixed, Full, Poisson
from tacit.federation.limits import (
    MOST_KINDS,
    MOST_LOCAL_STEPS,
    MOST_NUMBERS,
    MOST_STATISTICS,
    STEP_NUMBERS,
)
from tacit.means import LARGEST_RADIUS, Estimator
from tacit.numerics import settle
from tacit.privacy import (
    Compose,
    Event,
    Neighbours,
    NonPrivate,
    Relation,
    Repeat,
    Sample,
    Sampled,
    TrustModel,
)

__all__ = ["AnyStep", "Count", "Group", "Kinds", "Measure", "Step", "Walk"]

Count = Annotated[int, Meta(ge=1)]
"""How often something is asked."""


class Measure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One mean: what each unit contributes to it, and how it is estimated.

    Attributes:
        statistic: Name of what a unit contributes.
        estimator: How the mean is estimated; it carries dimension, noise, trust and neighbours.
        max_radius: Largest radius that a query may name for it.
    """

    statistic: str
    estimator: Estimator
    max_radius: float

    def __post_init__(self) -> None:
        settle(self)
        check_name("the name of a statistic", self.statistic)
        check_positive("max_radius", self.max_radius)
        if self.max_radius > LARGEST_RADIUS:
            raise ParameterError(f"max_radius must be at most 2**100, got {self.max_radius!r}.")
        if self.estimator.refuses and self.estimator.private:
            raise ParameterError(
                "on_violation must be 'clip' in a step with privacy: a silo that refuses a row tells of it."
            )

    @property
    def trust(self) -> TrustModel:
        """Who is trusted with messages."""
        return self.estimator.trust

    @property
    def neighbours(self) -> Neighbours:
        """What is protected."""
        return self.estimator.neighbours


class _Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all kinds of rounds have."""

    measures: tuple[Measure, ...]
    batch: Batch = Full()

    def __post_init__(self) -> None:
        settle(self)
        check_count("the number of statistics of a step", len(self.measures), high=MOST_STATISTICS)
        if any((m.trust, m.neighbours) != (self.trust, self.neighbours) for m in self.measures):
            raise ParameterError("all means of a step must have the same trust and the same neighbours.")
        if self.trust is TrustModel.SHUFFLE:
            raise ParameterError(
                "a step needs local or central trust: plans do not price what a shuffler releases."
            )
        if self.neighbours.relation is Relation.ADD_REMOVE and isinstance(self.batch, Fixed | Disjoint):
            raise ParameterError(
                "batches of fixed size need replace-one or zero-out neighbours, got add-remove: adding a "
                "unit would push another one out."
            )

    @property
    def trust(self) -> TrustModel:
        """Who is trusted with messages."""
        return self.measures[0].trust

    @property
    def neighbours(self) -> Neighbours:
        """What is protected."""
        return self.measures[0].neighbours

    @property
    def batches(self) -> int:
        """How many batches one round draws."""
        return 1

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one batch costs at the worst of the sizes: its means are one joint release."""
        most = sum(self._most(n) for n in sizes)
        parts = tuple(measure.estimator.event(most, trust) for measure in self.measures)
        if any(isinstance(part, NonPrivate) for part in parts):  # and stays that on any sample
            return NonPrivate(self.neighbours)
        once = parts[0] if len(parts) == 1 else Compose(parts)
        match self.batch:
            case Fixed():
                return Sampled(once, max(self.batch.size_for(n) / n for n in sizes), Sample.FIXED)
            case Poisson(rate=rate):
                return Sampled(once, rate, Sample.POISSON)
            case _:
                return once

    def check_size(self, n: int) -> None:
        """Refuse a silo of public size n that is too small for the batch."""
        self.batch.size_for(n)

    def _most(self, n: int) -> int:
        """Return the most units of a silo of public size n that one sum may hold."""
        if isinstance(self.batch, Fixed | Disjoint):
            return self.batch.size_for(n)
        # The true number is secret there; a silo makes sure that it is at most twice the public one.
        return 2 * n if self.neighbours.relation is Relation.ADD_REMOVE else n


class Step(_Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="means"):
    """A kind of round in which means leave the silos.

    Attributes:
        measures: The means, all of one batch.
        batch: Which units take part.
    """


class Walk(_Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="walk"):
    """A kind of round in which every silo takes steps by itself, and sends the point where they end.

    From the point "w" of a query it walks along minus the estimated mean of its own units, "step_size" times
    as far, each step on a batch of its own and with noise of its own: each is priced as if it were seen.

    Attributes:
        measures: What a step walks along: one mean.
        batch: Which units a step uses.
        steps: Number of steps, >= 2.
    """

    steps: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.measures) != 1:
            raise ParameterError(f"a walk needs exactly one statistic, got {len(self.measures)}.")
        check_count("the steps of a walk", self.steps, low=2, high=MOST_LOCAL_STEPS)
        if self.trust is not TrustModel.LOCAL:
            raise ParameterError("a walk needs local trust: nobody else sees its steps to add noise to.")
        if not self.measures[0].estimator.linear:
            raise ParameterError("a walk needs means: votes on signs are counted after every single step.")

    @property
    def batches(self) -> int:
        """How many batches one round draws."""
        return self.steps

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one round costs at the worst of the sizes.

        For disjoint batches that is also what all steps of all rounds cost: a unit is in one of them.
        """
        once = super().event(sizes, trust)
        kept = isinstance(once, NonPrivate) or isinstance(self.batch, Disjoint)
        return once if kept else Repeat(once, self.steps)

    def check_size(self, n: int) -> None:
        """Refuse a silo of public size n that is too small for the batch, or too busy with one answer."""
        size, dim = self.batch.size_for(n), self.measures[0].estimator.dim
        if self.steps * max(size * dim, STEP_NUMBERS) > MOST_NUMBERS:
            raise ParameterError(
                f"steps x batch x dim of a walk must be at most {MOST_NUMBERS}, each step counting at least "
                f"{STEP_NUMBERS}, got {self.steps} x {size} x {dim}."
            )


AnyStep = Step | Walk
"""Every kind of round."""


class Group(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="group"
):
    """Kinds of rounds that are asked in turn, all of them as often as the plan says.

    Attributes:
        steps: Kinds of rounds with how often each is asked in one turn, in order; no groups.
    """

    steps: tuple[tuple[AnyStep, Count], ...]

    def __post_init__(self) -> None:
        settle(self)
        check_count("the number of steps of a group", len(self.steps), high=MOST_KINDS)
        for _, count in self.steps:
            check_count("the count of a step", count)


Kinds = tuple[tuple[AnyStep | Group, Count], ...]
"""Kinds of rounds, and groups of them, with how often each is asked, in order."""
