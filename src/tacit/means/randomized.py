"""Means of rows that are randomised one by one: a row becomes a report, and the server adds reports up.

`EachRow` does what all of them share, and asks its randomizer what a report is: symbols that are counted
(`tacit.means.symbols`), numbers that are added (`tacit.means.vectors`), or something of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Protocol, Self, TypeVar, cast

import msgspec
import numpy as np
from msgspec.structs import StructConfig

from tacit.errors import ParameterError, RefusalError, check_count, check_probability
from tacit.means.base import WORST_CASE, Error, Facts, MeanEstimator
from tacit.means.calibrated import Priced, Scale, least_noisy, one_level
from tacit.means.message import MOST_COORDINATES, Message, Round, check_released
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.traits import COPIES, RandomizedRows
from tacit.means.violations import Ball, OnViolation, check_on_violation, clipped_to_unit, inside_rows
from tacit.numerics import Array, settle
from tacit.privacy import (
    Compose,
    Event,
    Neighbours,
    PrivacyBudget,
    PureDP,
    Relation,
    Repeat,
    Shuffled,
    TrustModel,
)
from tacit.privacy.arrivals import least_honest

__all__ = ["RECORDS", "EachRow", "RandomizedMean", "RowRandomizer", "batch_event"]

RECORDS = Neighbours()
"""One record is replaced by another."""

_NUMBERS_A_PART = 7
"""Numbers in memory for one part of the report on a row, until it is packed."""


class RowRandomizer(Protocol):
    """How a row of the unit ball becomes a report, and reports become an estimate of the sum of the rows."""

    @property
    def ball(self) -> Ball:
        """Where rows count as they are."""
        ...

    @property
    def levels(self) -> Array:
        """Pure levels of the separately randomised parts of a report, shape (L,)."""
        ...

    @property
    def law(self) -> str:
        """Name of the parts' law in `tacit.privacy.shuffling.RANDOMIZERS`."""
        ...

    @property
    def exact(self) -> bool:
        """Whether reports are drawn exactly, or are real numbers, which prices take for exact."""
        ...

    @property
    def rows_at_once(self) -> int:
        """Rows that are simulated at once."""
        ...

    def write(self, rows: Array, round: Round, rng: np.random.Generator) -> list[tuple[Array, int]]:
        """Randomise rows, shape (k, dim); return the payloads of the messages about them, with widths."""
        ...

    def read(self, messages: list[Message]) -> tuple[Array, int]:
        """Return what the messages hold, in a form that `total` takes, and about how many rows.

        Raises:
            ParameterError: A message that `write` cannot have made.
        """
        ...

    def total(self, held: Array, rows: int, round: Round) -> Array:
        """Estimate the sum of the rows, shape (dim,), in multiples of `unit`."""
        ...

    def simulate(self, parts: Iterable[Array], round: Round, rng: np.random.Generator) -> Array:
        """Draw from the law of `total` on all rows, which come in parts of shape (k, dim)."""
        ...

    def unit(self, radius: float) -> float:
        """Return what the estimate is a multiple of, for rows of a ball of that radius."""
        ...

    def bits(self, rows: int) -> int:
        """Return the bits of the messages about that many rows, headers included."""
        ...

    def error(self, n: int, radius: float) -> Error:
        """Return the largest error against the mean, over all n rows of a ball of that radius."""
        ...


class _HasRandomizer(Priced, Protocol):
    """What `EachRow` asks of an estimator: its fields, and a randomizer."""

    @property
    def dim(self) -> int: ...
    @property
    def trust(self) -> TrustModel: ...
    @property
    def neighbours(self) -> Neighbours: ...
    @property
    def honest_fraction(self) -> float: ...
    @property
    def n_min(self) -> int | None: ...
    @property
    def on_violation(self) -> OnViolation | None: ...
    @property
    def refuses(self) -> bool: ...
    @property
    def randomizer(self) -> RowRandomizer: ...

    __struct_config__: ClassVar[StructConfig]

    @classmethod
    def calibrated(cls, *, dim: int, budget: PrivacyBudget, n: int, **fields: Any) -> Self: ...
    @classmethod
    def _one_message(cls, problem: MeanProblem) -> tuple[Proposal, ...]: ...
    @classmethod
    def _scale(cls, *_: Any, **fields: Any) -> Scale[Self]: ...


Mean = TypeVar("Mean", bound=_HasRandomizer)


class EachRow(RandomizedRows):
    """Every row is randomised by itself, at the party that holds it: all that follows from its randomizer."""

    def __post_init__(self: _HasRandomizer) -> None:
        settle(self)
        # A plan may come from anybody: a larger alphabet would fit into no message.
        check_count("dim", self.dim, high=MOST_COORDINATES)
        # A plain string equals its member but is not it, and would slip past the cases below.
        if type(self.trust) is not TrustModel or self.trust not in (TrustModel.LOCAL, TrustModel.SHUFFLE):
            raise ParameterError(f"trust must be TrustModel.LOCAL or TrustModel.SHUFFLE, got {self.trust!r}.")
        if type(self.neighbours) is not Neighbours or self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                f"neighbours must be a replace-one relation, since the number of reports is public; "
                f"got {self.neighbours!s}."
            )
        check_probability("honest_fraction", self.honest_fraction, low_open=True)
        if self.n_min is not None:
            check_count("n_min", self.n_min)
        if self.trust is TrustModel.LOCAL and (self.honest_fraction != 1 or self.n_min is not None):
            raise ParameterError(
                "honest_fraction and n_min are for shuffled reports: under local trust no row hides another."
            )
        check_on_violation(self.on_violation)
        _ = self.randomizer  # which refuses what it cannot do

    @classmethod
    def calibrated(
        cls: type[Mean],
        *,
        dim: int,
        budget: PrivacyBudget,
        n: int,
        trust: TrustModel = TrustModel.LOCAL,
        honest_fraction: float = 1.0,
        n_min: int | None = None,
        neighbours: Neighbours = RECORDS,
        **fields: Any,
    ) -> Mean:
        """Build the most accurate such estimator that meets a budget, on n rows.

        Args:
            dim: Number of coordinates.
            budget: For the observer of the trust model.
            n: Planned number of rows.
            trust: `local` (levels add up) or `shuffle` (numerical accounting: printed constants are not all
                sound).
            honest_fraction: Behind a shuffler: fraction of the n rows whose parties are honest, in (0, 1].
            n_min: Behind a shuffler: rows below which it gives a round up, 1 to n; None: all n.
            neighbours: A replace-one relation.
            **fields: The other fields of the class by their names, except for levels. Of bit planes,
                `planes`, the number m of bits of a number, 1 to 30, and `allocation`, how planes share the
                budget (`plane_shares`; None: "ldp" for local trust, "rdp" for shuffling) instead of levels.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: The budget cannot be met.
            TypeError: A field that the class does not have, or a missing one.

        Example:
            >>> from tacit.means import SampledBinaryMean
            >>> SampledBinaryMean.calibrated(dim=64, samples=4, budget=PrivacyBudget(4.0), n=1).local_epsilon
            1.0
        """
        scale = cls._scale(
            budget,
            n,
            dim=dim,
            trust=trust,
            honest_fraction=honest_fraction,
            n_min=n_min,
            neighbours=neighbours,
            **fields,
        )
        return least_noisy(scale, budget, n=n, trust=trust)

    @classmethod
    def proposals(cls: type[Mean], problem: MeanProblem) -> Iterable[Proposal]:
        """Offer what meets the budget, where nothing but a level is to be chosen."""
        return cls._one_message(problem)

    @classmethod
    def _one_message(
        cls: type[Mean],
        problem: MeanProblem,
        *,
        encode: ComputeCost | None = None,
        decode: ComputeCost | None = None,
        note: str = "",
        ranked: bool = True,
        **fields: Any,
    ) -> tuple[Proposal, ...]:
        """Offer one report a row, for rows of the ball of the randomizer."""
        if problem.trust not in ("local", "shuffle"):
            return ()
        d, n, budget = problem.dim, problem.n, problem.known_budget
        fields |= {"dim": d, "trust": problem.observer, "neighbours": problem.near}
        ball = cls._scale(budget, n, **fields).make(1.0).randomizer.ball
        tag, calibrated = str(cls.__struct_config__.tag), cast("Callable[..., MeanEstimator]", cls.calibrated)
        return (
            Proposal(
                name=tag,
                family=tag,
                make=lambda: calibrated(budget=budget, n=n, **fields),
                norm="linf" if ball == "box" else ball,
                encode=encode or ComputeCost("d", 4.0 * d),
                decode=decode or ComputeCost("n d", float(n) * d),
                note=note,
                ranked=ranked and ball != "box",  # rows of a ball have entries below 0
            ),
        )

    @classmethod
    def _scale(cls: type[Mean], *_: Any, **fields: Any) -> Scale[Mean]:
        """Say how `calibrated` makes estimators with these fields less private, for a budget and n rows.

        By default, by their one level. Arguments that are no fields stand for levels.
        """
        return one_level(cls, fields)

    @property
    def exact(self: _HasRandomizer) -> bool:
        """Whether reports are drawn exactly."""
        return self.randomizer.exact

    @property
    def pure_epsilon(self: _HasRandomizer) -> float:
        """Level of the whole report on one row: what anybody learns who sees it with its sender."""
        return math.fsum(self.randomizer.levels.tolist())

    def encode(
        self: _HasRandomizer, rows: Array, round: Round, *, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Clip and randomise the rows of one party.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party; nothing else depends on it.
            rng: Private randomness. Where draws are exact, a deployment passes `randomness.secure()`.

        Returns:
            Messages of `bits_per_party(k)` bits: one about all rows where it holds whole numbers, one for
            every row where it holds floats.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        randomizer = self.randomizer
        clipped = clipped_to_unit(rows, round, self.dim, randomizer.ball, refuse=self.refuses)
        return [
            Message(payload=payload, width=width, sender=party)
            for payload, width in randomizer.write(clipped, round, rng)
        ]

    def decode(
        self: _HasRandomizer,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the parties added all noise
    ) -> Array:
        """Add up what reports mean, and divide by the planned n.

        Args:
            messages: Of the parties that answered, or the batch of a shuffler; in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected: it may lie outside the ball.

        Raises:
            ParameterError: No messages, one that `encode` cannot have written, or numbers that overflow.
            RefusalError: Behind a shuffler, fewer rows than `n_min`. Who decodes has seen the batch by then:
                the shuffler must have given the round up before.
        """
        if not messages:
            raise ParameterError("decode needs at least one message, got none.")
        randomizer = self.randomizer
        with np.errstate(over="ignore", invalid="ignore"):
            held, rows = randomizer.read(messages)
            _check_arrived(self, rows, round.n)
            return _released(randomizer, randomizer.total(held, rows, round), round)

    def estimate(self: _HasRandomizer, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once.

        Args:
            X: Shape (n, dim): all rows.
            round: Public facts of the round.
            rng: Source of all randomness.

        Returns:
            Shape (dim,), float64: the law of `decode` on the messages of all parties, but for roundings to
            float32.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
            RefusalError: Behind a shuffler, fewer rows than `n_min`.
        """
        randomizer = self.randomizer
        # Rows that are refused are so before anything is drawn.
        inside = inside_rows(X, round.radius, ball=randomizer.ball, dim=self.dim, refuse=self.refuses)
        _check_arrived(self, len(inside), round.n)
        step = randomizer.rows_at_once
        parts = (
            clipped_to_unit(inside[start : start + step], round, self.dim, randomizer.ball)
            for start in range(0, max(len(inside), 1), step)
        )
        return _released(randomizer, randomizer.simulate(parts, round, rng), round)

    def event(self: _HasRandomizer, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round.

        Args:
            n: Planned number of rows.
            trust: Whose view is priced. Whoever sees messages with their senders learns a whole report.

        Returns:
            A pure level; behind a shuffler, one batch for every part of a report.

        Raises:
            ParameterError: `n` is not a whole number >= 1 or below `n_min`, or `n_min` is not above the
                number of rows that are not honest.
        """
        check_count("n", n)
        if self.trust is TrustModel.LOCAL or trust == TrustModel.LOCAL:
            return PureDP(self.pure_epsilon, self.neighbours)
        honest = least_honest(n, honest_fraction=self.honest_fraction, n_min=self.n_min)
        return batch_event(self.randomizer.levels, honest, self.randomizer.law, self.neighbours)

    def bits_per_party(self: _HasRandomizer, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, headers included."""
        check_count("rows", rows, low=0)
        return self.randomizer.bits(rows)

    def numbers_per_party(self: _HasRandomizer, rows: int = 1) -> int:
        """Return a bound on the numbers that a party keeps to write its messages, besides its rows."""
        check_count("rows", rows, low=0)
        return _NUMBERS_A_PART * rows * len(self.randomizer.levels) + COPIES * self.dim

    def error(self: _HasRandomizer, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the largest error against the mean of the clipped rows, over all rows of the ball."""
        check_count("n", n)
        return self.randomizer.error(n, facts.radius)


class RandomizedMean(
    EachRow, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator"
):
    """Fields of means of rows that are randomised one by one.

    Attributes:
        dim: Number of coordinates of a row, from 1 to 2**31.
        trust: `local` (every observer may see the messages with their senders) or `shuffle`.
        neighbours: A replace-one relation: how many rows there are is public.
        honest_fraction: Behind a shuffler: fraction of the planned rows, in (0, 1], whose parties are honest.
            The others collude, and are among those that answer.
        n_min: Behind a shuffler: rows below which it gives a round up, >= 1. The price counts n_min rows less
            those of all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.
    """

    dim: int
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = RECORDS
    honest_fraction: float = 1.0
    n_min: int | None = None
    on_violation: OnViolation | None = None


def _check_arrived(mean: _HasRandomizer, rows: int, planned: int) -> None:
    """Refuse a batch of fewer rows than are priced."""
    fewest = planned if mean.n_min is None else mean.n_min
    if mean.trust is TrustModel.SHUFFLE and rows < fewest:
        raise RefusalError(
            f"{rows} shuffled rows hide each other less than is priced: at least {fewest} are needed."
        )


def _released(randomizer: RowRandomizer, total: Array, round: Round) -> Array:
    """Return the estimate from the estimated sum."""
    unit = randomizer.unit(round.radius) / round.n
    return check_released(np.asarray(total * unit, dtype=np.float64))


def batch_event(levels: Array, n: int, randomizer: str, neighbours: Neighbours) -> Event:
    """Return the event of reports whose parts are shuffled apart: a product (docs/theory/shuffling.md)."""
    parts: list[Event] = [
        Shuffled(level, n, randomizer, neighbours)
        if count == 1
        else Repeat(Shuffled(level, n, randomizer, neighbours), count)
        for level, count in sorted(Counter(levels.tolist()).items())
    ]
    return parts[0] if len(parts) == 1 else Compose(tuple(parts))
