"""All that is reserved in a ledger, added up exactly; what has been read and checked is not read again."""

from __future__ import annotations

import math
import sqlite3
from fractions import Fraction
from pathlib import Path

from tacit.errors import BudgetError, LedgerError
from tacit.ledger.rows import Cost, Entry, read_entries
from tacit.privacy.budget import PrivacyBudget

__all__ = ["Reservations"]


class Reservations:
    """The reservations of one ledger, oldest first.

    Rows are only added, and each is sealed with the one before it, so that a file whose last row is the one
    that was read last holds all that was read before it.

    Args:
        path: Of the ledger, for messages.
        limit: What all of them together may cost.
        first: Seal of the ledger's head.
    """

    def __init__(self, path: Path, limit: PrivacyBudget, first: bytes) -> None:
        self._path, self._limit, self.last = path, limit, first
        self.entries: list[Entry] = []
        self._of_run: dict[str, Entry] = {}
        self._epsilon = self._delta = Fraction(0)

    def read(self, connection: sqlite3.Connection) -> None:
        """Read what was added; refuse a file that holds more than its limit."""
        added, self.last = read_entries(connection, self._path, self.last, after=len(self.entries))
        for entry in added:
            self.entries.append(entry)
            self._of_run[entry.run] = entry
            self._epsilon += _decimal(entry.epsilon)
            self._delta += _decimal(entry.delta)
        if added and self._exceeded(Cost(0.0, 0.0)):
            spent = self.spent()
            raise LedgerError(
                f"{self._path} is damaged: epsilon {spent.epsilon!r} at delta {spent.delta!r} is reserved, "
                f"above its limit {self._limit.epsilon!r} at {self._limit.delta!r}."
            )

    def find(self, run: str) -> Entry | None:
        """Return the reservation of a run, None where there is none."""
        return self._of_run.get(run)

    def spent(self) -> Cost:
        """Return the sum, rounded up."""
        return Cost(_round_up(self._epsilon), _round_up(self._delta))

    def remaining(self) -> Cost:
        """Return what is left of the limit, rounded down."""
        return Cost(
            _round_down(_decimal(self._limit.epsilon) - self._epsilon),
            _round_down(_decimal(self._limit.delta) - self._delta),
        )

    def check_affordable(self, run: str, price: Cost) -> None:
        """Refuse a price that, with all that is reserved, lies above the limit."""
        if not self._exceeded(price):
            return
        spent, left = self.spent(), self.remaining()
        raise BudgetError(
            f"run {run!r} would reserve epsilon {price.epsilon!r} at delta {price.delta!r}, above what is "
            f"left: {left.epsilon!r} at {left.delta!r} of the limit {self._limit.epsilon!r} at "
            f"{self._limit.delta!r}; {len(self.entries)} runs have reserved {spent.epsilon!r} at "
            f"{spent.delta!r}."
        )

    def _exceeded(self, more: Cost) -> bool:
        """Whether all costs and one more add up to more than the limit."""
        return self._epsilon + _decimal(more.epsilon) > _decimal(
            self._limit.epsilon
        ) or self._delta + _decimal(more.delta) > _decimal(self._limit.delta)


def _decimal(value: float) -> Fraction:
    """The decimal number that a person reads for `value`, exactly; 0.1 is a tenth."""
    return Fraction(repr(value))


def _round_up(total: Fraction) -> float:
    nearest = float(total)
    return nearest if _decimal(nearest) >= total else math.nextafter(nearest, math.inf)


def _round_down(total: Fraction) -> float:
    nearest = float(total)
    return nearest if _decimal(nearest) <= total else math.nextafter(nearest, -math.inf)
