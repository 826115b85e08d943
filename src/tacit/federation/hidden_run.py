"""The kind of round in which a silo runs shuffled gradient descent to its end, and shows nothing before.

Everything that its price rests on stands in the plan, and a silo refuses a plan that its own statistic does
not bear out (Jiang 2025, Algorithms 3 to 6; docs/theory/iteration.md).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tacit.errors import (
    ParameterError,
    RefusalError,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.federation.batches import Fixed, Full
from tacit.federation.epochs import Epoch, nearest_part
from tacit.federation.limits import (
    LARGEST_DOMAIN,
    MOST_KINDS,
    MOST_LOCAL_STEPS,
    MOST_NUMBERS,
    MOST_PUBLIC,
    RUN_STEP_NUMBERS,
    WIDEST_DOMAIN,
)
from tacit.federation.measures import Kind
from tacit.means import AdditiveMean
from tacit.means.additive import is_plain
from tacit.numerics import Array, Composite, ElasticNet, L2Ball, Regularizer, project_l2_ball, settle
from tacit.privacy import (
    EpochSteps,
    Event,
    Gaussian,
    Iteration,
    IterationSchedule,
    Order,
    Parallel,
    Placement,
    Relation,
    Release,
    TrustModel,
    check_contraction,
)
from tacit.privacy.iteration import touch_energy

__all__ = ["EpochKind", "HiddenRun"]

_SHORTEST, _LONGEST = 1e-100, 1e80
"""How far one unit may move a step: then no product of points and features is subnormal, or overflows."""

_WORTH = 0.99
"""A refinement is counted on where it leaves at most that share of the energy: its law is coarser."""


class EpochKind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Epochs that are alike, one after the other.

    Attributes:
        private: Share of the steps of an epoch that use private records, the first ones; the others use
            public ones. 1 is all, 0 none; else at least one step of each kind.
        public_noise: Whether public steps carry noise as well. Private ones always do.
        placement: Whether steps carry noise of their own, or the epoch one draw after its last step.
        count: How many such epochs.
    """

    private: float = 1.0
    public_noise: bool = False
    placement: Placement = Placement.EVERY_STEP
    count: int = 1

    def __post_init__(self) -> None:
        settle(self)
        check_probability("private", self.private)
        check_count("count", self.count)
        if not isinstance(self.placement, Placement):
            raise ParameterError(f"placement must be a Placement, got {self.placement!r}.")
        if not isinstance(self.public_noise, bool):
            raise ParameterError(f"public_noise must be True or False, got {self.public_noise!r}.")

    def of(self, steps: int) -> Epoch:
        """Return such an epoch of so many steps.

        Raises:
            ParameterError: No step is left for private records, or none for public ones.
        """
        private = nearest_part(self.private, steps)
        if 0 < self.private < 1 and not 0 < private < steps:
            raise ParameterError(
                "private must leave an epoch at least one step on private records and one on public ones, "
                f"got the share {self.private!r} of {steps} steps."
            )
        return Epoch(
            private=private,
            public=steps - private,
            public_noise=self.public_noise,
            placement=self.placement,
        )


class HiddenRun(Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="hidden-run"):
    """A kind of round in which every silo runs shuffled gradient descent by itself, and sends where it ends.

    An epoch has as many steps as the silo's units make batches; the first of them use its own units, in the
    order that is said, the others public records, which the query brings, always in the same order. Public
    records cost nothing: they are in no silo, and no price depends on them.

    Attributes:
        measures: A mean with continuous Gaussian noise; queries name its `max_radius` and no other.
        batch: Units of a step: full, or fixed; units that fill no batch are left out of that epoch.
        epochs: What each epoch does, in order; at least one uses private records.
        order: How each epoch orders the units: as they are (`IG`), shuffled once a run, or every time.
        step_size: Of every step, at most 2 / smoothness.
        smoothness: Of the loss of every unit and public record that there could be; at least what the silo
            knows of it.
        l1: Strength of the L1 penalty, which the silo itself applies once an epoch.
        l2: Strength of the squared L2 penalty, likewise.
        ball: Radius of the ball that every epoch ends in; None is no ball.
        cycle: Whether public records start over where there are too few; else a silo refuses them.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
    """

    epochs: tuple[EpochKind, ...]
    order: Order
    step_size: float
    smoothness: float
    l1: float = 0.0
    l2: float = 0.0
    ball: float | None = None
    cycle: bool = False
    worst_case_order: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.measures) != 1:
            raise ParameterError(f"a hidden run needs exactly one statistic, got {len(self.measures)}.")
        if not isinstance(self.order, Order):
            raise ParameterError(f"order must be an Order, got {self.order!r}.")
        check_contraction(self.step_size, self.smoothness, release=Release.LAST)
        check_non_negative("l1", self.l1)
        check_non_negative("l2", self.l2)
        if self.ball is not None:
            check_positive("ball", self.ball)
        check_count("the kinds of epochs of a hidden run", len(self.epochs), high=MOST_KINDS)
        total = sum(kind.count for kind in self.epochs)
        check_count("the epochs of a hidden run", total, high=MOST_LOCAL_STEPS)
        if all(kind.private == 0 for kind in self.epochs):
            raise ParameterError(
                "a hidden run needs an epoch with private records: public ones need no silo."
            )
        if self.trust is not TrustModel.LOCAL:
            raise ParameterError(
                "a hidden run needs local trust: nobody else sees its steps to add noise to."
            )
        if not isinstance(self.batch, Full | Fixed):
            raise ParameterError("the batch of a hidden run must be full or fixed: blocks of an order.")
        if not is_plain(self.measures[0].estimator):
            raise ParameterError(
                "a hidden run needs sums of rows with Gaussian noise, neither compressed nor rounded: any "
                "other step may carry two runs apart."
            )

    @property
    def uses_public(self) -> bool:
        """Whether any step uses public records."""
        return any(kind.private < 1 for kind in self.epochs)

    @property
    def prox(self) -> Regularizer:
        """What the silo applies at the end of every epoch."""
        if self.ball is None:
            return ElasticNet(l1=self.l1, l2=self.l2)
        return Composite(l1=self.l1, l2=self.l2, domain=L2Ball(self.ball))

    def steps_of(self, n: int) -> int:
        """Return how many steps an epoch of a silo of public size n has."""
        return n // self.batch.size_for(n)

    def epochs_of(self, n: int) -> list[Epoch]:
        """Return every epoch of a silo of public size n, in order."""
        steps = self.steps_of(n)
        return [epoch for kind in self.epochs for epoch in [kind.of(steps)] * kind.count]

    def public_rows(self, n: int) -> int:
        """Return how many public records an epoch of a silo of public size n uses, at most."""
        steps = self.steps_of(n)
        return max(kind.of(steps).public for kind in self.epochs) * self.batch.size_for(n)

    def moved(self, n: int) -> float:
        """Return how far one unit moves a step of a silo of public size n, at most."""
        shift = 2 if self.neighbours.relation is Relation.REPLACE_ONE else 1
        return self.step_size * shift * self.measures[0].max_radius / self.batch.size_for(n)

    def noise_std(self, radius: float, rows: int) -> float:
        """Return the standard deviation of one draw of noise, on the mean gradient of so many rows."""
        mean = self.measures[0].estimator
        if not isinstance(mean, AdditiveMean):  # refused above
            raise ParameterError("a hidden run needs an AdditiveMean.")
        return math.sqrt(mean.noise.variance(sensitivity=mean.moved, radius=radius)) / rows

    def first_point(self, w: Array, n: int) -> Array:
        """Return where a run starts: the nearest point of the ball, or of one that rounding does not fill.

        Where points are so large that rounding swallows a step, nothing would be hidden.
        """
        return project_l2_ball(w, WIDEST_DOMAIN / 2 * self.moved(n) if self.ball is None else self.ball)

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one run costs at the worst of the sizes: a unit is in one silo."""
        events = dict.fromkeys(self._event(n, trust) for n in dict.fromkeys(sizes))
        return next(iter(events)) if len(events) == 1 else Parallel(tuple(events))

    def _event(self, n: int, trust: TrustModel) -> Event:
        """Return what one run costs in a silo of public size n."""
        self._check_scale(n)
        found = self.measures[0].estimator.event(self.batch.size_for(n), trust)
        if not isinstance(found, Gaussian):
            return found
        facts: dict[str, Any] = {
            "order": self.order,
            "neighbours": self.neighbours,
            "step_times_smoothness": self.step_size * self.smoothness,
            "convex": True,
            "clip_safe": True,
            "prox_convex": True,
        }
        kinds = self._priced(n)
        epochs = sum(kind.count for kind in kinds)
        facts |= self._refinements(n, epochs)
        alike = {msgspec.structs.replace(kind, count=1) for kind in kinds}
        if len(alike) > 1:
            return IterationSchedule(found.noise_multiplier, tuple(kinds), **facts)
        (kind,) = alike
        # Public steps without noise come after the last draw of an epoch, or after the one before the next.
        bare = kind.placement is Placement.EVERY_STEP and not kind.public_noise
        steps = kind.private if bare else kind.private + kind.public
        return Iteration(
            found.noise_multiplier,
            steps,
            epochs,
            None if kind.private == steps else kind.private,
            release=Release.LAST,
            worst_case_order=self.worst_case_order,
            placement=kind.placement,
            **facts,
        )

    def _priced(self, n: int) -> list[EpochSteps]:
        """Return the epochs from the first that uses a private record to the last that does, or has noise.

        What comes before is the same for neighbours, and what comes after is made of what is released.
        """
        steps = self.steps_of(n)
        kinds = []
        for kind in self.epochs:
            epoch = kind.of(steps)
            kinds.append(
                EpochSteps(
                    private=epoch.private,
                    public=epoch.public,
                    public_noise=epoch.public_noise and epoch.public > 0,
                    placement=epoch.placement,
                    count=kind.count,
                )
            )
        while kinds[0].private == 0:
            kinds.pop(0)
        while kinds[-1].private == 0 and not kinds[-1].public_noise:
            kinds.pop()
        return kinds

    def _refinements(self, n: int, epochs: int) -> dict[str, float]:
        """Return what contracts or bounds distances between epochs, as far as the price gains by it.

        Decided by the energy of epochs that are all private, in their worst order: any choice is a proof.
        """
        steps = self.steps_of(n)
        factor = 1 / (1 + steps * self.step_size * self.l2) * (1 + 1e-15)
        draws = 1 if all(kind.placement is Placement.EPOCH_END for kind in self.epochs) else steps
        touches, chosen = [draws] * epochs, dict[str, float]()
        least = touch_energy(touches, draws)
        offers = [{"epoch_contraction": factor}] if factor < 1 else []
        if self.ball is not None:
            offers.append({"diameter": 2 * self.ball / self.moved(n)})
        for offer in offers:
            energy = touch_energy(touches, draws, **{**chosen, **offer})
            if energy < _WORTH * least:
                chosen, least = {**chosen, **offer}, energy
        return chosen

    def check_size(self, n: int) -> None:
        """Refuse a silo of public size n that has no steps of some kind, or too many to answer at once."""
        size, dim = self.batch.size_for(n), self.measures[0].estimator.dim
        for kind in self.epochs:
            kind.of(self.steps_of(n))
        steps = self.steps_of(n) * sum(kind.count for kind in self.epochs)
        if steps * max(size * dim, RUN_STEP_NUMBERS) > MOST_NUMBERS:
            raise ParameterError(
                f"steps x batch x dim of a hidden run must be at most {MOST_NUMBERS}, each step counting at "
                f"least {RUN_STEP_NUMBERS}, got {steps} x {size} x {dim}: ask for fewer epochs, or larger "
                "batches."
            )
        self._check_scale(n)

    def _check_scale(self, n: int) -> None:
        """Refuse steps that rounding would swallow, or that would overflow."""
        moved = self.moved(n)
        if not _SHORTEST <= moved <= _LONGEST:
            raise ParameterError(
                f"step_size must be such that one unit moves a step by {_SHORTEST:g} to {_LONGEST:g}, got "
                f"{self.step_size!r}, with which it moves one by {moved:g}."
            )
        if self.ball is None:
            return
        if self.ball > LARGEST_DOMAIN or 2 * self.ball > WIDEST_DOMAIN * moved:
            raise ParameterError(
                f"ball must be at most {LARGEST_DOMAIN:g} and 2**31 times as far as one unit moves a step, "
                f"got {self.ball!r}."
            )

    def check_points(self, at: Mapping[str, Array], n: int) -> None:
        """Refuse points of a query that a silo of public size n cannot run from.

        Raises:
            RefusalError: Other names or shapes, too many public records, or too few.
        """
        shapes = {name: array.shape for name, array in at.items()}
        names = {"w", "public", "public_outcomes"} if self.uses_public else {"w"}
        dim = self.measures[0].estimator.dim
        if set(shapes) != names or shapes["w"] != (dim,):
            raise RefusalError(
                f"a hidden run needs the points {', '.join(sorted(names))}, w of shape ({dim},), got "
                f"{shapes}."
            )
        if not self.uses_public:
            return
        rows = shapes["public"]
        if len(rows) != 2 or 0 in rows or shapes["public_outcomes"] != rows[:1]:
            raise RefusalError(
                "public must have shape (k, features), and public_outcomes (k,), got "
                f"{rows} and {shapes['public_outcomes']}."
            )
        if rows[0] * rows[1] > MOST_PUBLIC:
            raise RefusalError(f"public must hold at most {MOST_PUBLIC} numbers, got {rows[0]} x {rows[1]}.")
        if rows[0] < (needed := self.public_rows(n)) and not self.cycle:
            raise RefusalError(
                f"public must hold at least the {needed} records that an epoch of {n} units uses, unless the "
                f"plan says that they start over (cycle), got {rows[0]}."
            )
