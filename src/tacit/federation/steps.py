"""The kinds of rounds that a plan is made of: means of one batch, and walks inside a silo."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Annotated, Self

import msgspec
import numpy as np
from msgspec import Meta

from tacit.errors import ParameterError, RefusalError, check_count, check_positive
from tacit.federation.batches import Disjoint, Fixed, Full
from tacit.federation.correlated import CorrelatedStep
from tacit.federation.drawn import DrawnStep
from tacit.federation.hidden_run import EpochKind, HiddenRun
from tacit.federation.limits import (
    LARGEST_DOMAIN,
    MOST_KINDS,
    MOST_LOCAL_STEPS,
    MOST_NUMBERS,
    STEP_NUMBERS,
    WIDEST_DOMAIN,
)
from tacit.federation.measures import Kind, Measure
from tacit.means import AdditiveMean, ModularSumMean
from tacit.means.additive import is_acute, is_plain
from tacit.numerics import Array, IntArray, project_l2_ball, settle
from tacit.privacy import (
    Aligned,
    Compose,
    Event,
    Gaussian,
    Iteration,
    NonPrivate,
    Order,
    Relation,
    Release,
    Repeat,
    TrustModel,
    check_contraction,
)

__all__ = [
    "AnyStep",
    "Count",
    "DrawnStep",
    "EpochKind",
    "Group",
    "HiddenRun",
    "HiddenWalk",
    "Kinds",
    "Measure",
    "Step",
    "TurnWalk",
    "Walk",
    "changed",
    "composed",
    "of_means",
    "repeated",
    "with_honest",
    "with_widths",
]

Count = Annotated[int, Meta(ge=1)]
"""How often something is asked."""


class Step(Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="means"):
    """A kind of round in which means leave the silos.

    Attributes:
        measures: The means, all of one batch.
        batch: Which units take part.
        honest: Under shuffle trust, how many honest units stand behind every mean at least.
    """


class Walk(Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="walk"):
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
        if isinstance(self.batch, Disjoint) and not self.batch.once:
            raise ParameterError("the disjoint batches of a walk must be used once: repeats 1 and no sample.")
        if not self.measures[0].estimator.linear:
            raise ParameterError("a walk needs means: votes on signs are counted after every single step.")

    @property
    def batches(self) -> int:
        """How many batches one round draws."""
        return self.steps

    @property
    def points(self) -> dict[str, tuple[int, ...]]:
        """The points of a query, with their shapes."""
        return {"w": (self.measures[0].estimator.dim,), "step_size": ()}

    def project(self, w: Array) -> Array:
        """Return where a point that was reached is brought to: nowhere else."""
        return w

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


class HiddenWalk(Walk, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hidden-walk"):
    """A walk of which nobody learns more than where it ends: later noise hides the steps before it.

    It goes through the units epoch after epoch, a batch a step, each batch the next block of an order; units
    that fill no block are left out of that epoch. Every point, "w" first, is projected on a ball around 0.
    All that the price rests on is in the plan, and a silo refuses a plan that its own statistic does not
    bear out (Feldman et al. 2018, arXiv:1808.06651; docs/theory/iteration.md, section 3).

    Attributes:
        measures: A mean with continuous Gaussian noise; queries name its `max_radius` and no other.
        batch: Units of a step: full, or fixed.
        steps: Number of steps, whole epochs of every silo.
        order: How each epoch orders the units: as they are (`IG`), shuffled once a walk, or every time.
        step_size: Of every step, at most 2 / smoothness.
        smoothness: Of the loss of every unit that there could be; at least what the silo knows of it.
        domain: Radius of the ball.
    """

    order: Order
    step_size: float
    smoothness: float
    domain: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.order, Order):
            raise ParameterError(f"order must be an Order, got {self.order!r}.")
        check_contraction(self.step_size, self.smoothness, release=Release.LAST)
        check_positive("domain", self.domain)
        if not isinstance(self.batch, Full | Fixed):
            raise ParameterError("the batch of a hidden walk must be full or fixed: blocks of an order.")
        if not is_plain(self.measures[0].estimator):
            raise ParameterError(
                "a hidden walk needs sums of rows with Gaussian noise, neither compressed nor rounded: any "
                "other step may carry two runs apart."
            )

    @property
    def points(self) -> dict[str, tuple[int, ...]]:
        """The points of a query, with their shapes."""
        return {"w": (self.measures[0].estimator.dim,)}

    def project(self, w: Array) -> Array:
        """Return the nearest point of the ball."""
        return project_l2_ball(w, self.domain)

    def epoch(self, n: int) -> int:
        """Return how many steps a silo of public size n takes until its units start over."""
        return n // self.batch.size_for(n)

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one round costs at the worst of the sizes: the fewest steps an epoch hide least."""
        (measure,), n = self.measures, min(self.epoch(n) for n in sizes)
        most = max(self.batch.size_for(n) for n in sizes)
        moved = 2 if self.neighbours.relation is Relation.REPLACE_ONE else 1
        width = 2 * self.domain / (self.step_size * moved * measure.max_radius / most)
        if self.domain > LARGEST_DOMAIN:
            raise ParameterError(f"domain must be at most {LARGEST_DOMAIN:g}, got {self.domain!r}.")
        if width > WIDEST_DOMAIN:
            raise ParameterError(
                "domain must be at most 2**31 times as far as one unit moves a step of a hidden walk, got "
                f"{self.domain!r}, which is 2**{math.log2(width / 2):.1f} times."
            )
        match measure.estimator.event(most, trust):
            case Gaussian(noise_multiplier=noise_multiplier):
                return Iteration(
                    noise_multiplier,
                    n,
                    self.steps // n,
                    order=self.order,
                    release=Release.LAST,
                    neighbours=self.neighbours,
                    step_times_smoothness=self.step_size * self.smoothness,
                    convex=True,
                    clip_safe=True,
                    prox_convex=True,
                    diameter=width,
                )
            case other:
                return other

    def check_size(self, n: int) -> None:
        """Refuse what every walk refuses, and a silo of public size n whose epochs do not come out even."""
        super().check_size(n)
        if self.steps % self.epoch(n):
            raise ParameterError(
                f"the steps of a hidden walk must be whole epochs, of {self.epoch(n)} steps for a silo of "
                f"{n} units, got {self.steps}."
            )


class TurnWalk(Walk, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="turn-walk"):
    """A walk of one silo, which carries an estimate on by how its own mean changes; silos take turns.

    From the point "w" of a query it goes along minus "v", "step_size" times as far, and before each further
    step adds the mean difference between its last two points to "v": on a batch of its own, with noise of its
    own, of rows that are clipped to "smoothness" times the distance of the points, and at most to the radius.
    It sends the point after "taken" of its steps. Plans of every trust may have such rounds: silos add their
    noise by themselves, and each is charged for its own turns only, which are public.

    Attributes:
        measures: How a gradient changes between "previous" and "w"; local trust.
        batch: Which units a difference is of.
        steps: Number of steps H, >= 2; H - 1 differences.
        offset: Index of the silo that takes the first turn of this kind.
        stride: How many silos further each next turn of this kind is, >= 1: other kinds have those between.
    """

    offset: int = 0
    stride: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("offset", self.offset, low=0)
        check_count("stride", self.stride)

    @property
    def alone(self) -> bool:
        """Whether one silo answers by itself."""
        return True

    @property
    def batches(self) -> int:
        """How many batches one round draws."""
        return self.steps - 1

    @property
    def points(self) -> dict[str, tuple[int, ...]]:
        """The points of a query, with their shapes."""
        dim = self.measures[0].estimator.dim
        numbers: dict[str, tuple[int, ...]] = dict.fromkeys(("step_size", "smoothness", "clip", "taken"), ())
        return {"w": (dim,), "v": (dim,), **numbers}

    def counting_on(self, sizes: Sequence[int], *, n_min: int, colluding: int) -> Self:  # noqa: ARG002
        """Return the kind as it is: nobody hides who walks."""
        return self

    def check_taken(self, taken: Array) -> int:
        """Return how many steps a query asks for, or refuse what is no number of them."""
        found = float(taken)
        if found not in range(self.steps + 1):
            raise RefusalError(f"taken must be a whole number from 0 to {self.steps}, got {found!r}.")
        return int(found)

    def turn(self, earlier: int, parties: int) -> int:
        """Return the silo whose turn it is, after that many rounds of this kind."""
        return (self.offset + earlier * self.stride) % parties

    def turns(self, rounds: int, parties: int) -> IntArray:
        """Return how many of the rounds of this kind are each silo's, shape (parties,)."""
        whole, rest = divmod(rounds, parties)  # after so many turns they start over
        silos = (self.offset % parties + self.stride % parties * np.arange(parties)) % parties
        first = np.bincount(silos[:rest], minlength=parties)
        return first if whole == 0 else first + whole * np.bincount(silos, minlength=parties)

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:  # noqa: ARG002 - it adds its own noise
        """Return what one round costs a unit of the silo whose turn it is, at the worst of the sizes."""
        once = Kind.event(self, sizes, TrustModel.LOCAL)
        kept = isinstance(once, NonPrivate) or isinstance(self.batch, Disjoint)
        return once if kept else repeated(once, self.steps - 1)


AnyStep = Step | DrawnStep | Walk | HiddenWalk | TurnWalk | HiddenRun | CorrelatedStep
"""Every kind of round."""


class Group(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="group"
):
    """Kinds of rounds that are asked in turn, all of them as often as the plan says.

    Attributes:
        steps: Kinds of rounds with how often each is asked in one turn, in order; no groups.
        aligned: Every unit has one vector x, all of one length, and contributes x x^T to acute means and rows
            x p^T to the others: all rounds of a turn are priced together (`tacit.privacy.Aligned`). A promise
            of the plan; silos hold it against their own statistics.
    """

    steps: tuple[tuple[AnyStep, Count], ...]
    aligned: bool = False

    def __post_init__(self) -> None:
        settle(self)
        check_count("the number of steps of a group", len(self.steps), high=MOST_KINDS)
        for _, count in self.steps:
            check_count("the count of a step", count)
        if not self.aligned:
            return
        if not all(isinstance(step, Step) and isinstance(step.batch, Full) for step, _ in self.steps):
            raise ParameterError("an aligned group needs means of full batches: samples hold other units.")
        if len({is_acute(mean) for mean, _ in self._sums}) != 2:
            raise ParameterError("an aligned group needs sums of rows, acute means of them and others.")

    @property
    def _sums(self) -> list[tuple[AdditiveMean | ModularSumMean, int]]:
        """Return the means of a turn, with how often each is asked; none if one is of another kind."""
        means = [(m.estimator, count) for step, count in self.steps for m in step.measures]
        sums = [(mean, count) for mean, count in means if isinstance(mean, AdditiveMean | ModularSumMean)]
        return sums if len(sums) == len(means) else []

    def aligned_event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one turn of an aligned group costs.

        Raises:
            ParameterError: Other noise than Gaussian, or other neighbours than replace-one.
        """
        found = [(mean, mean.event(sum(sizes), trust), count) for mean, count in self._sums]
        if any(isinstance(once, NonPrivate) for _, once, _ in found):
            return NonPrivate(found[0][0].neighbours)
        squares, rows = (
            composed([repeated(once, n) for mean, once, n in found if is_acute(mean) is acute])
            for acute in (True, False)
        )
        many = 2 * len(found) * sum(n for *_, n in found)  # no fewer releases than `Aligned` counts
        moved = math.fsum(n * mean.rounding(once, many) ** 2 for mean, once, n in found)
        return Aligned(squares, rows, math.sqrt(moved))


Kinds = tuple[tuple[AnyStep | Group, Count], ...]
"""Kinds of rounds, and groups of them, with how often each is asked, in order."""


def with_honest(kinds: Kinds, sizes: Sequence[int], *, n_min: int, colluding: int) -> Kinds:
    """Return kinds of rounds that say how many honest rows stand behind each, for a plan of shuffle trust.

    Args:
        kinds: Of rounds, and groups of them.
        sizes: Public number of units of each silo.
        n_min: Parties below which nothing is released.
        colluding: Parties that add no noise, and may be the largest.
    """
    return changed(kinds, lambda step: step.counting_on(sizes, n_min=n_min, colluding=colluding))


def with_widths(kinds: Kinds, sizes: Sequence[int]) -> Kinds:
    """Return kinds of rounds whose sums wrap around in one of 2**40 runs, for a plan of aggregate trust.

    Args:
        kinds: Of rounds, and groups of them: all that the plan asks.
        sizes: Public number of units of each silo.

    Raises:
        ParameterError: An estimator that cannot be added up unseen, or a sum that needs more than 64 bits.
    """
    rounds = sum(
        count * (sum(n for _, n in one.steps) if isinstance(one, Group) else 1) for one, count in kinds
    )
    return changed(
        kinds,
        lambda step: (
            step
            if step.alone
            else of_means(step, width=step.needed_width(sizes, parties=len(sizes), rounds=rounds))
        ),
    )


def of_means(step: AnyStep, **fields: int) -> AnyStep:
    """Return a kind of round all of whose estimators have these fields."""
    measures = tuple(
        msgspec.structs.replace(one, estimator=msgspec.structs.replace(one.estimator, **fields))
        for one in step.measures
    )
    return msgspec.structs.replace(step, measures=measures)


def changed(kinds: Kinds, change: Callable[[AnyStep], AnyStep]) -> Kinds:
    """Return kinds of rounds of which every one is changed, also those in groups."""
    return tuple(
        (
            msgspec.structs.replace(one, steps=tuple((change(step), n) for step, n in one.steps))
            if isinstance(one, Group)
            else change(one),
            count,
        )
        for one, count in kinds
    )


def repeated(event: Event, count: int) -> Event:
    """Return an event that happens so often."""
    return event if count == 1 else Repeat(event, count)


def composed(events: Sequence[Event]) -> Event:
    """Return events that all happen."""
    return events[0] if len(events) == 1 else Compose(tuple(events))
