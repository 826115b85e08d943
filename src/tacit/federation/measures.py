"""What every kind of round is made of: means of one batch, and how each of them is estimated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Self

import msgspec

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_name, check_positive, shown
from tacit.federation.batches import Batch, Disjoint, Fixed, Full, Poisson
from tacit.federation.limits import (
    MOST_ANSWERED,
    MOST_HELD,
    MOST_NUMBERS,
    MOST_POOLED,
    MOST_ROUNDS,
    MOST_STATISTICS,
)
from tacit.means import LARGEST_RADIUS, Estimator, ModularSumMean, modular_width
from tacit.means.additive import is_one_hot
from tacit.numerics import settle
from tacit.privacy import (
    Compose,
    Event,
    Neighbours,
    NonPrivate,
    Relation,
    Replaced,
    Sample,
    Sampled,
    TrustModel,
)

__all__ = ["Kind", "Measure"]


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
        if is_one_hot(self.estimator) and self.max_radius > 1:
            raise ParameterError(
                f"max_radius must be at most 1 for one-hot rows, which are as long, got {self.max_radius!r}."
            )
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


class Kind(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind"):
    """What all kinds of rounds have.

    Attributes:
        measures: What is estimated of one batch.
        batch: Which units take part.
        honest: Under shuffle trust, the least number of units behind every mean whose parties are honest: the
            sum of the smallest batches that a released round may hold without the colluders' (`Plan.n_min`,
            `Plan.colluding`). A plan needs 1 or more. Else 0.
    """

    measures: tuple[Measure, ...]
    batch: Batch = Full()
    honest: int = 0

    def __post_init__(self) -> None:
        settle(self)
        check_count("the number of statistics of a step", len(self.measures), high=MOST_STATISTICS)
        if any((m.trust, m.neighbours) != (self.trust, self.neighbours) for m in self.measures):
            raise ParameterError("all means of a step must have the same trust and the same neighbours.")
        shuffled = self.trust is TrustModel.SHUFFLE
        check_count("honest", self.honest, low=0, high=LARGEST_COUNT if shuffled else 0)
        if shuffled:
            self.check_shuffled()
        if self.trust is TrustModel.AGGREGATE and len({(one.width, one.shares) for one in self.summed}) > 1:
            raise ParameterError(
                "all means of a step of aggregate trust must have the same width and the same shares: their "
                "messages are one."
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
    def alone(self) -> bool:
        """Whether one silo answers by itself, with noise of its own, whoever else is trusted."""
        return False

    @property
    def batches(self) -> int:
        """How many batches one round draws."""
        return 1

    @property
    def keeps(self) -> int:
        """How many numbers are kept from round to round, besides what statistics keep."""
        return 0

    @property
    def sent(self) -> tuple[Measure, ...]:
        """The measures as parties send them.

        The size of a Poisson sample is secret, also where that of the data is not: its means have the noise
        that the plan says, and messages and prices of means against a unit that contributes nothing.
        """
        if not (isinstance(self.batch, Poisson) and self.neighbours.relation is Relation.REPLACE_ONE):
            return self.measures
        return tuple(
            msgspec.structs.replace(measure, estimator=measure.estimator.against_nothing())
            for measure in self.measures
        )

    @property
    def summed(self) -> tuple[ModularSumMean, ...]:
        """The means as parties send them under aggregate trust, where their messages are one vector.

        Raises:
            ParameterError: Another estimator: only sums of rows can be added up modulo a power of two.
        """
        found = []
        for measure in self.sent:
            if not isinstance(measure.estimator, ModularSumMean):
                raise ParameterError(
                    "a step of aggregate trust needs means whose messages can be added up unseen "
                    f"(ModularSumMean), got {type(measure.estimator).__name__}."
                )
            found.append(measure.estimator)
        return tuple(found)

    def needed_width(self, sizes: Sequence[int], *, parties: int, rounds: int) -> int:
        """Return the bits of a number under aggregate trust that no sum is likely to need more of.

        Args:
            sizes: Public number of units of the parties whose rows may be in a sum.
            parties: How many of them add noise.
            rounds: Of the whole plan.

        Raises:
            ParameterError: More than 64.
        """
        rows, dim = sum(self._most(n) for n in sizes), sum(one.dim for one in self.summed)
        return max(
            modular_width(
                rows=rows,
                parties=parties,
                steps=one.noise.steps,
                std=one.std,
                dim=dim,
                rounds=rounds,
            )
            for one in self.summed
        )

    def check_shuffled(self) -> None:
        """Refuse what has no price behind a shuffler."""
        if isinstance(self.batch, Poisson):
            raise ParameterError(
                "batch must not be Poisson under shuffle trust: messages can be counted, and the size of a "
                "sample is secret."
            )
        for measure in self.measures:
            if not measure.estimator.linear or measure.estimator.weighs != "rows":
                raise ParameterError("votes have no price under shuffle trust: every row must count alike.")
            arrivals = (
                getattr(measure.estimator, "honest_fraction", 1.0),
                getattr(measure.estimator, "n_min", None),
            )
            if arrivals != (1.0, None):
                raise ParameterError(
                    "honest_fraction and n_min of an estimator in a plan must be left out, where the plan "
                    f"says how many parties arrive and are honest; got {shown(arrivals)}."
                )

    def honest_rows(self, sizes: Sequence[int], fewest: int) -> int:
        """Return how many rows are in the `fewest` smallest batches of silos of these sizes."""
        return sum(sorted(self.batch.size_for(n) for n in sizes)[:fewest])

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one batch costs at the worst of the sizes: its means are one joint release.

        What a shuffler releases hides a unit among `honest` others, whatever the sizes.
        """
        shuffled = trust is TrustModel.SHUFFLE and self.trust is TrustModel.SHUFFLE
        once = self.joint(self.honest if shuffled else sum(self._most(n) for n in sizes), trust)
        if isinstance(once, NonPrivate):  # and stays that on any sample
            return once
        match self.batch:
            case Fixed():
                return Sampled(once, max(self.batch.size_for(n) / n for n in sizes), Sample.FIXED)
            case Poisson():
                rate = max(self.batch.rate_for(n) for n in sizes)
                replaced = self.neighbours.relation is Relation.REPLACE_ONE
                return Replaced(once, rate) if replaced else Sampled(once, rate, Sample.POISSON)
            case Disjoint(sample=float()):
                # The rate within the block: which block it is, only the silo knows, and counts on nothing.
                rate = max(self.batch.size_for(n) / self.batch.block_for(n) for n in sizes)
                return Sampled(once, rate, Sample.FIXED)
            case _:
                return once

    def joint(self, rows: int, trust: TrustModel) -> Event:
        """Return what all means of so many rows cost together; NonPrivate where one claims nothing."""
        parts = tuple(measure.estimator.event(rows, trust) for measure in self.sent)
        if any(isinstance(part, NonPrivate) for part in parts):
            return NonPrivate(self.neighbours)
        return parts[0] if len(parts) == 1 else Compose(parts)

    def counting_on(self, sizes: Sequence[int], *, n_min: int, colluding: int) -> Self:
        """Return the kind of round with the honest rows that stand behind it, under shuffle trust."""
        return msgspec.structs.replace(self, honest=self.honest_rows(sizes, n_min - colluding))

    def check_arrivals(self, n_min: int, colluding: int) -> None:
        """Refuse what a plan with these numbers of parties does not bear out, under shuffle trust."""

    def check_size(self, n: int) -> None:
        """Refuse a silo of public size n that is too small for the batch."""
        self.batch.size_for(n)

    def check_answer(self, n: int) -> None:
        """Refuse an answer that a silo of public size n could not hold, store or send; it grows with n.

        Raises:
            ParameterError: Too many bytes, too many numbers in memory, or too many rows to write out.
        """
        rows, sent = self.batch.size_for(n), [measure.estimator for measure in self.sent]
        octets = math.ceil(sum(one.bits_per_party(rows) for one in sent) / 8)
        if octets > (most := MOST_POOLED if self.trust is TrustModel.CENTRAL else MOST_ANSWERED):
            raise ParameterError(
                f"an answer about {rows} units must have at most {most} bytes, got {octets}: ask for smaller "
                "batches, fewer coordinates or fewer bits."
            )
        held = sum(one.numbers_per_party(rows) for one in sent)
        if held > MOST_HELD:
            raise ParameterError(
                f"an answer about {rows} units must take at most {MOST_HELD} numbers in memory, got {held}: "
                "ask for smaller batches, fewer symbols, or maps that are no matrices."
            )
        written = max((one.dim for one in sent if not one.sums), default=0)
        if rows * written > MOST_NUMBERS:
            raise ParameterError(
                f"batch x dim must be at most {MOST_NUMBERS} where rows are not added up unseen, got "
                f"{rows} x {written}."
            )

    def check_rounds(self, rounds: int) -> None:
        """Refuse a number of rounds that no silo could answer."""

    def most_rounds(self, n: int) -> int:  # noqa: ARG002 - for kinds that it matters to
        """Return how many rounds a silo of public size n can answer, as far as that is known of one kind."""
        return MOST_ROUNDS

    def start(self, block: int, n: int) -> int:
        """Return where in its part of the order of the units a disjoint block starts."""
        batch = self.batch
        return block * (batch.block_for(n) if isinstance(batch, Disjoint) else batch.size_for(n))

    def _most(self, n: int) -> int:
        """Return the most units of a silo of public size n that one sum may hold."""
        if isinstance(self.batch, Fixed | Disjoint):
            return self.batch.size_for(n)
        # The true number is secret there; a silo makes sure that it is at most twice the public one.
        return 2 * n if self.neighbours.relation is Relation.ADD_REMOVE else n
