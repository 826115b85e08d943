"""Plans: everything a run will ask, declared and priced before it starts."""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from tacit.errors import ParameterError, check_choice, check_count, check_positive, check_probability
from tacit.means import Estimator
from tacit.privacy import (
    Compose,
    Event,
    NonPrivate,
    Parallel,
    Relation,
    Repeat,
    Sample,
    Sampled,
    TrustModel,
    neighbours_of,
)

__all__ = ["PLAN_VERSION", "Batch", "Disjoint", "Fixed", "Full", "Plan", "Poisson", "Step"]

PLAN_VERSION = 1


class Full(msgspec.Struct, frozen=True, tag_field="batch", tag="full"):
    """All units of the silo in every round."""

    def size_for(self, n: int) -> int:
        """Return how many of n units one round uses."""
        return n


class _Part(msgspec.Struct, frozen=True, tag_field="batch"):
    """A number of units, or a share of them; a share lets silos of different sizes sample at one rate."""

    size: int | None = None
    rate: float | None = None

    def __post_init__(self) -> None:
        if (self.size is None) == (self.rate is None):
            raise ParameterError(f"a batch needs either size or rate, got {self.size!r} and {self.rate!r}.")
        if self.size is not None:
            check_count("size", self.size)
        if self.rate is not None:
            check_probability("rate", self.rate, low_open=True)

    def size_for(self, n: int) -> int:
        """Return how many of n units one round uses."""
        size = self.size if self.size is not None else max(1, int((self.rate or 0.0) * n))
        if size > n:
            raise ParameterError(f"the batch size must be at most the {n} units of the silo, got {size}.")
        return size


class Fixed(_Part, frozen=True, tag="fixed"):
    """A fresh secret uniform sample of fixed size in every round, without replacement."""


class Disjoint(_Part, frozen=True, tag="disjoint"):
    """Consecutive blocks of one secret random order: every unit is used at most once in the whole run."""


class Poisson(msgspec.Struct, frozen=True, tag_field="batch", tag="poisson"):
    """Every unit joins each round on its own with probability `rate`; goes with add-remove and zero-out."""

    rate: float

    def __post_init__(self) -> None:
        check_probability("rate", self.rate, low_open=True)

    def size_for(self, n: int) -> int:
        """Return the expected number of units, the public divisor of the mean."""
        return max(1, round(self.rate * n))


Batch = Full | Fixed | Disjoint | Poisson


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of round.

    Attributes:
        statistics: Names of what each unit contributes; all are computed on the same batch.
        estimator: How the mean of each statistic is estimated; it carries noise, trust and neighbours.
        batch: Which units take part.
        local_steps: 1 for a plain mean. With more, the silo takes that many gradient steps by itself, each on
            its own batch and with its own noise, and sends the point where it ends.
    """

    statistics: tuple[str, ...]
    estimator: Estimator
    batch: Batch = Full()
    local_steps: int = 1

    def __post_init__(self) -> None:
        if not self.statistics:
            raise ParameterError("a step needs at least one statistic, got none.")
        check_count("local_steps", self.local_steps)
        if self.local_steps > 1 and len(self.statistics) != 1:
            raise ParameterError(f"local steps need exactly one statistic, got {len(self.statistics)}.")

    def release(self, rows: int, trust: TrustModel) -> Event:
        """Return what the step costs on a batch of that many rows, before any amplification."""
        one = self.estimator.event(rows, trust)
        return one if len(self.statistics) == 1 else Compose((one,) * len(self.statistics))

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one round costs at the worst of the sizes; that blocks are disjoint is left to the plan."""
        rate, how = 1.0, Sample.FIXED
        if isinstance(self.batch, Poisson):
            rate, how = self.batch.rate, Sample.POISSON
        elif isinstance(self.batch, Fixed):
            rate = max(self.batch.size_for(n) / n for n in sizes)
        # A trusted server adds up the batches of all silos.
        release = self.release(sum(self.batch.size_for(n) for n in sizes), trust)
        # What claims nothing stays that way on any sample.
        once = release if rate == 1.0 or isinstance(release, NonPrivate) else Sampled(release, rate, how)
        return once if self.local_steps == 1 else Repeat(once, self.local_steps)


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """All rounds of a run, in order. Public, versioned, and the only thing a silo agrees to.

    Attributes:
        steps: Kinds of rounds with how often each is asked, in order; rounds are numbered from 0.
        parties: Number of silos that may take part.
        max_radius: Largest radius that a query may name.
        trust: Who is trusted; the estimators add their noise accordingly.
        delta: The delta at which silos price the plan.
        n_min: Parties below which nothing is released under shuffling.
        version: Of the format.
    """

    steps: tuple[tuple[Step, Annotated[int, Meta(ge=1)]], ...]
    parties: int
    max_radius: float
    trust: TrustModel = TrustModel.LOCAL
    delta: float = 0.0
    n_min: int = 1
    version: int = PLAN_VERSION

    def __post_init__(self) -> None:
        if self.version != PLAN_VERSION:
            raise ParameterError(f"the plan has version {self.version}; this tacit reads {PLAN_VERSION}.")
        if not self.steps:
            raise ParameterError("a plan needs at least one step, got none.")
        check_count("parties", self.parties)
        check_count("n_min", self.n_min, high=self.parties)
        check_positive("max_radius", self.max_radius)
        check_probability("delta", self.delta, high_open=True)
        for step, count in self.steps:
            check_count("the count of a step", count)
            if step.estimator.trust is not self.trust:
                raise ParameterError(
                    f"a step has {step.estimator.trust.value} trust, the plan {self.trust.value}."
                )

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return sum(count for _, count in self.steps)

    def step_at(self, number: int) -> Step:
        """Return the kind of round `number`, or refuse a number outside the plan."""
        if not 0 <= number < self.rounds:
            raise ParameterError(f"step must be from 0 to {self.rounds - 1}, got {number!r}.")
        ends = [0]
        for _, count in self.steps:
            ends.append(ends[-1] + count)
        return self.steps[bisect_right(ends, number) - 1][0]

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what the whole plan costs a unit of silos with these numbers of units.

        Args:
            sizes: Units of the silos that the price is for: one silo for what that silo reveals, all silos
                for what a trusted server publishes.
            trust: Whose view is priced.

        Raises:
            ParameterError: A batch exceeds a silo, or disjoint batches use more units than there are.
        """
        self.check_sizes(sizes)
        again, once = [], []
        for step, count in self.steps:
            event = step.event(sizes, trust)
            if neighbours_of(event).relation is Relation.ADD_REMOVE and isinstance(step.batch, Disjoint):
                raise ParameterError(
                    "disjoint batches need replace-one or zero-out neighbours, got add-remove: adding a "
                    "unit would shift the blocks."
                )
            if isinstance(step.batch, Disjoint):
                once.append(event)
            else:
                again.append(event if count == 1 else Repeat(event, count))
        if once:  # one order for the whole run: a unit is in at most one block of any disjoint step
            distinct = tuple(dict.fromkeys(once))
            again.append(distinct[0] if len(distinct) == 1 else Parallel(distinct))
        return again[0] if len(again) == 1 else Compose(tuple(again))

    def check_sizes(self, sizes: Sequence[int]) -> None:
        """Refuse silos that are too small for the batches."""
        for n in sizes:
            check_count("the number of units of a silo", n)
            used = sum(
                step.batch.size_for(n) * count * step.local_steps
                for step, count in self.steps
                if isinstance(step.batch, Disjoint)
            )
            for step, _ in self.steps:
                step.batch.size_for(n)
            if used > n:
                raise ParameterError(
                    f"rounds x batch must be at most the {n} units of a silo if disjoint, got {used}."
                )

    def check_statistics(self, known: Sequence[str]) -> None:
        """Refuse a plan that asks for statistics a silo does not have."""
        for step, _ in self.steps:
            for name in step.statistics:
                check_choice("statistic", name, known)

    @property
    def relation(self) -> Relation:
        """The relation that all steps share."""
        return self.steps[0][0].estimator.neighbours.relation

    def digest(self) -> bytes:
        """Return 32 bytes that identify the plan."""
        return hashlib.blake2b(msgspec.json.encode(self), digest_size=32).digest()

    def to_toml(self) -> str:
        """Write the plan as TOML; `from_toml` reads it back equal."""
        return msgspec.toml.encode(self).decode()

    @classmethod
    def from_toml(cls, text: str) -> Plan:
        """Read a plan.

        Raises:
            ParameterError: Not TOML, an unknown version, or a value that is not allowed.
        """
        try:
            return msgspec.toml.decode(text, type=cls)
        except msgspec.MsgspecError as error:
            raise ParameterError(f"the plan cannot be read: {error}.") from error
