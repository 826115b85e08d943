"""Reports of symbols, which the server counts.

A report has L channels. Channel l is one symbol of a public alphabet, randomised at its own pure level, with
randomness of its own. Under local trust the symbols of a party travel in one message, and the place of a
symbol tells its channel. Under shuffling a symbol carries its channel inside, one alphabet after the other,
so that one shuffler does the work of L parallel ones: what it releases is the same multiset.

The server only counts, so that neither order nor sender matters, and everything after the counts is exact
arithmetic on public numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.errors import ParameterError
from tacit.means.base import Error
from tacit.means.message import HEADER_BYTES, Message, Round
from tacit.means.randomized import RandomizedMean
from tacit.means.violations import Ball
from tacit.mechanisms import check_level
from tacit.numerics import Array, IntArray
from tacit.privacy import TrustModel

__all__ = ["Channels", "Symbols", "check_levels", "symbols"]

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


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """A randomizer whose reports are symbols; see `tacit.means.randomized.RowRandomizer`.

    Attributes:
        ball: Where rows count as they are.
        channels: Alphabets and levels of the symbols of one row.
        shuffled: Whether symbols carry their channel inside.
        rows_at_once: Rows that are simulated at once.
        drawn: Maps rows of the unit ball, shape (k, dim), to symbols, shape (k, L), each from 0 to its
            alphabet - 1.
        counted: Maps counts of all symbols, shape (sum of alphabets,), and the number of reports to an
            unbiased estimate of the sum of the rows, shape (dim,).
        worst: Largest error of the report on one row of the unit ball, of n.
        law: Name of the law of a symbol in `tacit.privacy.shuffling.RANDOMIZERS`.
    """

    ball: Ball
    channels: Channels
    shuffled: bool
    rows_at_once: int
    drawn: Callable[[Array, Round, np.random.Generator], IntArray]
    counted: Callable[[IntArray, int, Round], Array]
    worst: Callable[[int], Error]
    law: str = "2rr"

    exact = True

    @property
    def levels(self) -> Array:
        """Pure levels of the symbols of one row."""
        return self.channels.levels

    @property
    def width(self) -> int:
        """Bits of a symbol on the wire."""
        values = self.channels.total if self.shuffled else self.channels.largest
        return (values - 1).bit_length()

    def write(self, rows: Array, round: Round, rng: np.random.Generator) -> list[tuple[Array, int]]:
        """Write all symbols, row by row, as signed integers."""
        found, width = self.drawn(rows, round, rng), self.width
        if self.shuffled:
            found = found + self.channels.offsets
        return [(found.ravel() - (1 << (width - 1)), width)]

    def read(self, messages: list[Message]) -> tuple[Array, int]:
        """Return how often every symbol came."""
        return self._reports(self._counts(np.concatenate([self._symbols(m) for m in messages])))

    def total(self, held: Array, rows: int, round: Round) -> Array:
        """Estimate the sum of the rows from counts."""
        return self.counted(held, rows, round)

    def simulate(self, parts: Iterable[Array], round: Round, rng: np.random.Generator) -> Array:
        """Randomise and count part by part."""
        offsets = self.channels.offsets
        counts = sum(self._counts((self.drawn(part, round, rng) + offsets).ravel()) for part in parts)
        return self.counted(*self._reports(np.asarray(counts)), round)

    def unit(self, radius: float) -> float:
        """Return the radius."""
        return radius

    def bits(self, rows: int) -> int:
        """Return the bits of one message."""
        entries = rows * len(self.channels.alphabets)
        return 8 * (HEADER_BYTES + (entries * self.width + 7) // 8)

    def error(self, n: int, radius: float) -> Error:
        """Return the largest error."""
        one = self.worst(n)
        return Error(variance=radius**2 * one.variance / n, bias=radius * one.bias, exact=one.exact)

    def _symbols(self, message: Message) -> IntArray:
        """Return the symbols of a message, each with its channel inside."""
        channels, width, payload = self.channels, self.width, message.payload
        if payload.dtype != np.int64 or payload.ndim != 1 or message.width != width:
            raise ParameterError(
                f"a message must hold integers of {width} bits, got {payload.dtype} of {message.width} bits."
            )
        symbols = payload + (1 << (width - 1))
        if self.shuffled:
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

    def _counts(self, symbols: IntArray) -> IntArray:
        """Return how often every symbol came."""
        return np.bincount(symbols, minlength=self.channels.total)

    def _reports(self, counts: IntArray) -> tuple[IntArray, int]:
        """Return counts of all symbols with the number of reports."""
        reports = np.add.reduceat(counts, self.channels.offsets)
        if not np.all(reports == reports[0]):
            raise ParameterError("every channel must have as many symbols as there are rows.")
        return counts, int(reports[0])


def check_levels(name: str, levels: tuple[float, ...]) -> None:
    """Refuse no levels, or one that randomized response is not sampled at."""
    if not levels:
        raise ParameterError(f"{name} must be a tuple of at least one level, got {levels!r}.")
    for level in levels:
        check_level(name, level)


def symbols(
    mean: RandomizedMean,
    ball: Ball,
    channels: Channels,
    drawn: Callable[[Array, Round, np.random.Generator], IntArray],
    counted: Callable[[IntArray, int, Round], Array],
    worst: Callable[[int], Error],
    *,
    law: str = "2rr",
) -> Symbols:
    """Return the randomizer of an estimator whose reports are symbols; see `Symbols`."""
    return Symbols(
        ball=ball,
        channels=channels,
        shuffled=mean.trust is TrustModel.SHUFFLE,
        rows_at_once=max(1, _SYMBOLS_AT_ONCE // max(len(channels.alphabets), mean.dim)),
        drawn=drawn,
        counted=counted,
        worst=worst,
        law=law,
    )
