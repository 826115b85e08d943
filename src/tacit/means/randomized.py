"""Means of rows that are randomised one by one: a row becomes a few symbols, and the server counts symbols.

A report has L channels. Channel l is one symbol of a public alphabet, randomised at its own pure level, with
randomness of its own. Under local trust the symbols of a party travel in one message, and the place of a
symbol tells its channel. Under shuffling a symbol carries its channel inside, one alphabet after the other,
so that one shuffler does the work of L parallel ones: what it releases is the same multiset.

The server only counts, so that neither order nor sender matters, and everything after the counts is exact
arithmetic on public numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, RefusalError, check_count, check_probability
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.message import HEADER_BYTES, MOST_COORDINATES, SMALLEST_RADIUS, Message, Round
from tacit.means.traits import RandomizedRows
from tacit.means.violations import (
    Ball,
    OnViolation,
    check_on_violation,
    clipped_rows,
    inside_rows,
)
from tacit.mechanisms import check_level
from tacit.numerics import Array, IntArray, settle
from tacit.privacy import (
    Compose,
    Event,
    Neighbours,
    PureDP,
    Relation,
    Repeat,
    Shuffled,
    TrustModel,
)
from tacit.privacy.arrivals import least_honest

__all__ = [
    "RECORDS",
    "Ball",
    "Channels",
    "RandomizedMean",
    "SymbolMean",
    "batch_event",
    "check_level",
    "check_levels",
    "clipped_to_unit",
]

RECORDS = Neighbours()
"""One record is replaced by another."""

_SYMBOLS_AT_ONCE = 2**20


@dataclass(frozen=True)
class Channels:
    """The symbols of the report on one row.

    Attributes:
        alphabets: Shape (L,), how many values each symbol has, >= 2.
        levels: Shape (L,), the pure level each symbol is randomised at.
    """

    alphabets: IntArray
    levels: Array

    @cached_property
    def offsets(self) -> IntArray:
        """Where the alphabet of each channel starts when they stand one after the other."""
        return np.cumsum(self.alphabets) - self.alphabets

    @cached_property
    def total(self) -> int:
        """Number of values of all symbols together."""
        return int(self.alphabets.sum())

    @cached_property
    def largest(self) -> int:
        """Number of values of the largest alphabet."""
        return int(self.alphabets.max())


class RandomizedMean(RandomizedRows, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What estimators that randomise every row by itself share: trust, neighbours, events.

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

    def __post_init__(self) -> None:
        settle(self)
        # A plan may come from anybody: a larger alphabet would fit into no message.
        check_count("dim", self.dim, high=MOST_COORDINATES)
        # A plain string equals its member but is not it, and would slip past the cases below.
        if type(self.trust) is not TrustModel or self.trust is TrustModel.CENTRAL:
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

    def levels(self) -> Array:
        """Pure levels of the separately randomised parts of the report on one row, shape (L,)."""
        raise NotImplementedError

    def randomizer(self) -> str:
        """Name of the parts' law in `tacit.privacy.shuffling.RANDOMIZERS`."""
        return "2rr"

    @property
    def pure_epsilon(self) -> float:
        """Level of the whole report on one row: what anybody learns who sees it with its sender."""
        return math.fsum(self.levels().tolist())

    def event(self, n: int, trust: TrustModel) -> Event:
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
        return batch_event(self.levels(), honest, self.randomizer(), self.neighbours)

    def _check_arrived(self, rows: int, planned: int) -> None:
        """Refuse a batch of fewer rows than are priced.

        Raises:
            RefusalError: Behind a shuffler, fewer rows than `n_min`. Who decodes has seen the batch by then:
                the shuffler must have given the round up before.
        """
        fewest = planned if self.n_min is None else self.n_min
        if self.trust is TrustModel.SHUFFLE and rows < fewest:
            raise RefusalError(
                f"{rows} shuffled rows hide each other less than is priced: at least {fewest} are needed."
            )

    def _unit_rows(self, rows: npt.ArrayLike, round: Round, ball: Ball) -> Array:
        """Return rows in the unit ball; see `clipped_to_unit`."""
        return clipped_to_unit(rows, round, self.dim, ball, refuse=self.refuses)

    def _inside(self, rows: npt.ArrayLike, round: Round, ball: Ball) -> Array:
        """Return all rows, not clipped: those that are refused are so before anything is drawn."""
        return inside_rows(rows, round.radius, ball=ball, dim=self.dim, refuse=self.refuses)


def batch_event(levels: Array, n: int, randomizer: str, neighbours: Neighbours) -> Event:
    """Return the event of reports whose parts are shuffled apart: a product (docs/theory/shuffling.md)."""
    parts: list[Event] = [
        Shuffled(level, n, randomizer, neighbours)
        if count == 1
        else Repeat(Shuffled(level, n, randomizer, neighbours), count)
        for level, count in sorted(Counter(levels.tolist()).items())
    ]
    return parts[0] if len(parts) == 1 else Compose(tuple(parts))


def clipped_to_unit(
    rows: npt.ArrayLike, round: Round, dim: int, ball: Ball, *, refuse: bool = False
) -> Array:
    """Clip rows into the ball of the round and divide by its radius.

    Args:
        rows: Shape (k, dim). A row with a NaN or an infinity counts as zero.
        round: Public facts.
        dim: Number of coordinates.
        ball: Which ball.
        refuse: Whether a row outside of the ball is an error instead.

    Returns:
        Shape (k, dim), float64, in the unit ball; zeros for a radius next to 0.

    Raises:
        ParameterError: Another shape or dtype, or a row that is refused.
    """
    clipped = clipped_rows(rows, round.radius, ball=ball, dim=dim, refuse=refuse)
    if round.radius < SMALLEST_RADIUS:
        return np.zeros(clipped.shape)
    return np.clip(clipped.astype(np.float64) / round.radius, -1.0, 1.0)


class SymbolMean(RandomizedMean, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mean from counts of symbols; subclasses say which symbols, and what the counts mean.

    `_symbols` maps rows of the unit ball, shape (k, dim), to symbols, shape (k, L), each from 0 to its
    alphabet - 1. `_total` maps counts of all symbols, shape (sum of alphabets,), and the number of reports to
    an unbiased estimate of the sum of the rows, shape (dim,).
    """

    ball: ClassVar[Ball] = "l2"

    def channels(self) -> Channels:
        """Return the alphabets and levels of the symbols of one row."""
        raise NotImplementedError

    def _symbols(self, rows: Array, round: Round, rng: np.random.Generator) -> IntArray:
        raise NotImplementedError

    def _total(self, counts: IntArray, reports: int, round: Round) -> Array:
        raise NotImplementedError

    def _row_error(self, n: int) -> Error:
        """Largest error of the report on one row of the unit ball."""
        raise NotImplementedError

    def levels(self) -> Array:
        """Pure levels of the symbols of one row, shape (L,)."""
        return self.channels().levels

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip and randomise the rows of one party.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party; nothing else depends on it.
            rng: Private randomness. The flips are exact, so a deployment passes `randomness.secure()`.

        Returns:
            One message of `bits_per_party(k)` bits with the k L symbols, row by row, as signed integers.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        channels, width = self.channels(), self._width()
        symbols = self._symbols(self._unit_rows(rows, round, self.ball), round, rng)
        if self.trust is TrustModel.SHUFFLE:
            symbols = symbols + channels.offsets
        return [Message(payload=symbols.ravel() - (1 << (width - 1)), width=width, sender=party)]

    def decode(
        self,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the parties added all noise
    ) -> Array:
        """Count symbols, and divide what they estimate by the planned n.

        Args:
            messages: Of the parties that answered, or the batch of a shuffler; in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected: it may lie outside the ball.

        Raises:
            ParameterError: No messages, or one that `encode` cannot have written.
            RefusalError: Behind a shuffler, fewer rows than `n_min`.
        """
        if not messages:
            raise ParameterError("decode needs at least one message, got none.")
        counts = self._counts([self._read(message) for message in messages])
        return self._mean(counts, round)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once: the law of `decode` on the messages of all parties.

        Args:
            X: Shape (n, dim): all rows.
            round: Public facts of the round.
            rng: Source of all randomness.

        Returns:
            Shape (dim,), float64.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        channels = self.channels()
        counts = np.zeros(channels.total, dtype=np.int64)
        X = self._inside(X, round, self.ball)
        step = max(1, _SYMBOLS_AT_ONCE // max(len(channels.alphabets), self.dim))
        for start in range(0, max(len(X), 1), step):
            rows = clipped_to_unit(X[start : start + step], round, self.dim, self.ball)
            symbols = self._symbols(rows, round, rng) + channels.offsets
            counts += np.bincount(symbols.ravel(), minlength=channels.total)
        return self._mean(counts, round)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, header included."""
        check_count("rows", rows, low=0)
        entries = rows * len(self.channels().alphabets)
        return 8 * (HEADER_BYTES + (entries * self._width() + 7) // 8)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the largest error against the mean of the clipped rows, over all rows of the ball."""
        check_count("n", n)
        one = self._row_error(n)
        return Error(
            variance=facts.radius**2 * one.variance / n, bias=facts.radius * one.bias, exact=one.exact
        )

    def _width(self) -> int:
        """Bits of a symbol on the wire."""
        channels = self.channels()
        shuffled = self.trust is TrustModel.SHUFFLE
        values = channels.total if shuffled else channels.largest
        return (values - 1).bit_length()

    def _read(self, message: Message) -> IntArray:
        """Return the symbols of a message, each with its channel inside."""
        channels, width = self.channels(), self._width()
        payload = message.payload
        if payload.dtype != np.int64 or payload.ndim != 1 or message.width != width:
            raise ParameterError(
                f"a message must hold integers of {width} bits, got {payload.dtype} of {message.width} bits."
            )
        symbols = payload + (1 << (width - 1))
        if self.trust is TrustModel.SHUFFLE:
            inside = (symbols >= 0) & (symbols < channels.total)
        else:
            L = len(channels.alphabets)
            if symbols.size % L:
                raise ParameterError(f"a message must hold {L} symbols a row, got {symbols.size}.")
            table = symbols.reshape(-1, L)
            inside = (table >= 0) & (table < channels.alphabets)
            symbols = (table + channels.offsets).ravel()
        if not inside.all():
            raise ParameterError("a message holds a symbol that is in no alphabet.")
        return symbols

    def _counts(self, symbols: list[IntArray]) -> IntArray:
        """Return how often every symbol came."""
        return np.bincount(np.concatenate(symbols), minlength=self.channels().total)

    def _mean(self, counts: IntArray, round: Round) -> Array:
        """Return the mean from counts of all symbols."""
        channels = self.channels()
        reports = np.add.reduceat(counts, channels.offsets)
        if not np.all(reports == reports[0]):
            raise ParameterError("every channel must have as many symbols as there are rows.")
        self._check_arrived(int(reports[0]), round.n)
        total = self._total(counts, int(reports[0]), round)
        return np.asarray(total * (round.radius / round.n), dtype=np.float64)


def check_levels(name: str, levels: tuple[float, ...]) -> None:
    """Refuse no levels, or one that randomized response is not sampled at."""
    if not levels:
        raise ParameterError(f"{name} must be a tuple of at least one level, got {levels!r}.")
    for level in levels:
        check_level(name, level)
