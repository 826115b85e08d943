"""What a silo's data set has been charged, and what was answered for it.

The ledger belongs to the data, not to a run: whoever adds the noise keeps one per data set, reserves the
price of a whole plan in it before the first answer, and stores every answer in it before the answer leaves.
"""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tacit.errors import (
    LARGEST_COUNT,
    LONGEST_NAME,
    BudgetError,
    LedgerError,
    ParameterError,
    RefusalError,
    check_count,
    check_name,
    check_text,
)
from tacit.ledger.file import LedgerFile
from tacit.ledger.rows import (
    Cost,
    Entry,
    check_bytes,
    check_cost,
    digest,
    read_answer,
    read_entries,
    read_head,
    read_state,
    seal,
    write_state,
)
from tacit.privacy.budget import PrivacyBudget
from tacit.privacy.neighbours import Neighbours

__all__ = ["Cost", "Entry", "Ledger"]

_MAX_DIGEST_BYTES: Final = 64
_NONCE_BYTES: Final = 16


class Ledger:
    """The privacy account of one data set.

    Costs of plans add (basic composition), which holds even where a plan was chosen after seeing the answers
    of another. There are no refunds, and nothing is ever changed or removed, but for what a silo remembers of
    its units, of which the last is kept. Prices and limits count as the decimal numbers that people read,
    exactly: three times 0.1 fits into 0.3, and nothing more does.

    Several processes and threads may hold the same ledger; a reservation is one exclusive transaction, so
    together they cannot overspend. What a call has acknowledged survives a killed process or a power cut.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     limit = PrivacyBudget(2.0, 1e-5)
        ...     with Ledger.create(f"{folder}/silo.ledger", limit=limit, neighbours=Neighbours()) as ledger:
        ...         ledger.reserve("run-1", price=PrivacyBudget(0.5, 1e-6), plan_digest=b"sha-256", event=b"")
        ...         ledger.spent()
        Cost(epsilon=0.5, delta=1e-06)
    """

    def __init__(self, file: LedgerFile) -> None:
        """Check and read an open file; use `create` or `open` instead."""
        self._file = file
        with file.transaction(write=False) as connection:
            self._head = read_head(connection, file.path)
            self._read(connection)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        limit: PrivacyBudget,
        neighbours: Neighbours,
        label: str = "",
        account: bytes = b"",
    ) -> Self:
        """Create the ledger of a data set; only the file's owner may read it.

        Args:
            path: A file that does not exist yet, on a local disk (network folders lose locks).
            limit: What all plans together may cost; it can never be changed.
            neighbours: What the limit and all prices are relative to.
            label: A public name of the data set, at most 200 printable characters.
            account: Fingerprint of the account of all records, where these are a part of them; empty for a
                ledger that is itself the account of its records.

        Raises:
            LedgerError: The file exists or cannot be written.
            ParameterError: `label` is too long or not printable, or `account` is not a fingerprint.
        """
        check_text("label", label, high=LONGEST_NAME)
        if not isinstance(neighbours, Neighbours):
            raise ParameterError(f"neighbours must be Neighbours, got a {type(neighbours).__name__}.")
        given = check_cost("limit", limit)
        relation = [neighbours.relation.value, neighbours.unit.value, neighbours.part.value]
        check_bytes("account", account, low=0, most=_MAX_DIGEST_BYTES)
        # A ledger that is deleted and made again is another one, though all else were the same.
        nonce = secrets.token_bytes(_NONCE_BYTES)
        head = [given.epsilon, given.delta, *relation, label, _now(), nonce, account]
        return cls._of(LedgerFile.create(Path(path).absolute(), head))

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a ledger and check it, after undoing what a killed process had left half done.

        Args:
            path: A file made by `create`. All of it is read, at about the speed of the disk.

        Raises:
            LedgerError: The file is missing, damaged, not a ledger or of another version.
        """
        return cls._of(LedgerFile.open(Path(path).absolute()))

    @classmethod
    def _of(cls, file: LedgerFile) -> Self:
        try:
            return cls(file)
        except LedgerError:
            file.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __deepcopy__(self, memo: object) -> Self:
        """Return the ledger itself: there is one account, whoever copies what holds it (as `clone` does)."""
        return self

    def close(self) -> None:
        """Let go of the file; may be called again."""
        self._file.close()

    @property
    def path(self) -> Path:
        """Where the ledger lies."""
        return self._file.path

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is: equal for all ledgers that are open on one file, whatever name it has."""
        return self._file.identity

    @property
    def limit(self) -> PrivacyBudget:
        """What all plans together may cost."""
        return self._head.limit

    @property
    def neighbours(self) -> Neighbours:
        """What the limit and all prices are relative to."""
        return self._head.neighbours

    @property
    def label(self) -> str:
        """The public name of the data set."""
        return self._head.label

    @property
    def fingerprint(self) -> bytes:
        """What tells this ledger from every other, one made anew in its place too; 32 bytes."""
        return self._head.seal

    @property
    def account(self) -> bytes:
        """Fingerprint of the account of all records, which pays besides; empty where there is none."""
        return self._head.account

    def reserve(self, run: str, *, price: PrivacyBudget | Cost, plan_digest: bytes, event: bytes) -> None:
        """Reserve the price of a whole plan, before its first answer.

        The same run with the same plan and price is charged once, however often it is restarted.

        Args:
            run: Public name of the run, at most 200 printable characters.
            price: What the whole plan costs under this ledger's neighbours, as the silo itself computed it.
            plan_digest: Digest of the plan, 1 to 64 bytes.
            event: The plan's encoded event, kept so that the price can be checked later.

        Raises:
            BudgetError: The price exceeds what is left; nothing was reserved.
            LedgerError: The run is known with another plan or price, or the file cannot be used.
            ParameterError: An argument has a value that is not allowed.
        """
        with self.reserving(run, price=price, plan_digest=plan_digest, event=event):
            pass

    @contextmanager
    def reserving(
        self, run: str, *, price: PrivacyBudget | Cost, plan_digest: bytes, event: bytes
    ) -> Iterator[None]:
        """Reserve as `reserve` does when the block ends, and nothing if it raises; refuse before it begins.

        No other process or thread reserves or answers meanwhile: of several ledgers, all can be looked at
        before the first one is charged.
        """
        check_name("run", run)
        check_bytes("plan_digest", plan_digest, most=_MAX_DIGEST_BYTES)
        check_bytes("event", event, low=0)
        asked = check_cost("price", price)
        with self._file.transaction() as connection:
            entries, last = self._read(connection)
            known = next((entry for entry in entries if entry.run == run), None)
            if known is None:
                self._check_affordable(run, asked, entries)
                row = [run, asked.epsilon, asked.delta, _now(), plan_digest, event]
                connection.execute(
                    "INSERT INTO reservations "
                    "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ? FROM reservations",
                    [*row, seal(last, row)],
                )
            elif (known.epsilon, known.delta, known.plan_digest) != (
                asked.epsilon,
                asked.delta,
                plan_digest.hex(),
            ):
                raise LedgerError(
                    f"run {run!r} is reserved already, with another plan or price; name a new run."
                )
            yield

    def knows(self, run: str) -> bool:
        """Return whether a run has a reservation."""
        return any(entry.run == run for entry in self.entries())

    def entries(self) -> list[Entry]:
        """Return all reservations, oldest first."""
        with self._file.transaction(write=False) as connection:
            return self._read(connection)[0]

    def spent(self) -> Cost:
        """Return the sum of all reservations, rounded up; what a run reserved and did not use counts too."""
        return _spent(self.entries())

    def remaining(self) -> Cost:
        """Return what is left of the limit, rounded down, so that a plan at this price still fits."""
        return self._remaining(self.entries())

    def store_answer(
        self, run: str, step: int, *, query_digest: bytes, answer: bytes, state: bytes | None = None
    ) -> bytes:
        """Store an answer and the silo's state together, before anything is sent.

        Args:
            run: A run that has been reserved.
            step: Which step of the plan, >= 0.
            query_digest: Digest of the query (step, point, radius), 1 to 64 bytes.
            answer: What is to be sent.
            state: What the silo must remember from now on, in place of what it kept before; None keeps that.

        Returns:
            What must be sent: `answer`, or the bytes that were stored earlier for the same step and query;
            then `answer` and `state` are dropped, since a second answer with fresh noise must never leave.

        Raises:
            RefusalError: The step has been answered at another point.
            LedgerError: The run has no reservation, or the file cannot be used.
            ParameterError: An argument has a value that is not allowed.
        """
        check_name("run", run)
        check_count("step", step, low=0, high=LARGEST_COUNT)
        check_bytes("query_digest", query_digest, most=_MAX_DIGEST_BYTES)
        check_bytes("answer", answer, low=0)
        if state is not None:
            check_bytes("state", state, low=0)
        with self._file.transaction() as connection:
            reserved = connection.execute("SELECT seal FROM reservations WHERE run = ?", [run]).fetchone()
            if reserved is None:
                raise LedgerError(
                    f"run {run!r} has no reservation; reserve its plan before the first answer."
                )
            stored = read_answer(connection, self.path, run, int(step))
            if stored is not None and stored[0] != query_digest:
                raise RefusalError(f"step {step} of run {run!r} has been answered at another point.")
            if stored is not None:
                return stored[1]
            row = [run, int(step), query_digest, None if state is None else digest(state)]
            connection.execute(
                "INSERT INTO answers SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ? FROM answers",
                [*row, seal(reserved[0], [*row, answer]), answer],
            )
            if state is not None:
                write_state(connection, run, state)
        return answer

    def answer(self, run: str, step: int) -> tuple[bytes, bytes] | None:
        """Return (query digest, answer) of a step, or None where no answer has ever left."""
        check_name("run", run)
        check_count("step", step, low=0, high=LARGEST_COUNT)
        with self._file.transaction(write=False) as connection:
            stored = read_answer(connection, self.path, run, int(step))
        return None if stored is None else stored[:2]

    def state(self, run: str) -> bytes | None:
        """Return the state that was stored last for this run, or None where none was."""
        check_name("run", run)
        with self._file.transaction(write=False) as connection:
            return read_state(connection, self.path, run)

    def _read(self, connection: sqlite3.Connection) -> tuple[list[Entry], bytes]:
        """Return all reservations and the seal of the last; refuse a file that holds more than its limit."""
        entries, last = read_entries(connection, self.path, self._head.seal)
        if self._exceeded(entries):
            spent = _spent(entries)
            raise LedgerError(
                f"{self.path} is damaged: epsilon {spent.epsilon!r} at delta {spent.delta!r} is reserved, "
                f"above its limit {self._head.limit.epsilon!r} at {self._head.limit.delta!r}."
            )
        return entries, last

    def _exceeded(self, costs: Sequence[Cost | Entry]) -> bool:
        """Whether costs add up to more than the limit."""
        epsilon, delta = _exact_sums(costs)
        return epsilon > _decimal(self._head.limit.epsilon) or delta > _decimal(self._head.limit.delta)

    def _check_affordable(self, run: str, price: Cost, entries: Sequence[Entry]) -> None:
        """Refuse a price that, with all that is reserved, lies above the limit."""
        if not self._exceeded([*entries, price]):
            return
        spent, left = _spent(entries), self._remaining(entries)
        raise BudgetError(
            f"run {run!r} would reserve epsilon {price.epsilon!r} at delta {price.delta!r}, above what is "
            f"left: {left.epsilon!r} at {left.delta!r} of the limit {self._head.limit.epsilon!r} at "
            f"{self._head.limit.delta!r}; {len(entries)} runs have reserved {spent.epsilon!r} at "
            f"{spent.delta!r}."
        )

    def _remaining(self, entries: Sequence[Entry]) -> Cost:
        epsilon, delta = _exact_sums(entries)
        return Cost(
            _round_down(_decimal(self._head.limit.epsilon) - epsilon),
            _round_down(_decimal(self._head.limit.delta) - delta),
        )


def _decimal(value: float) -> Fraction:
    """The decimal number that a person reads for `value`, exactly; 0.1 is a tenth."""
    return Fraction(repr(value))


def _exact_sums(costs: Iterable[Cost | Entry]) -> tuple[Fraction, Fraction]:
    epsilon = delta = Fraction(0)
    for cost in costs:
        epsilon += _decimal(cost.epsilon)
        delta += _decimal(cost.delta)
    return epsilon, delta


def _spent(entries: Sequence[Entry]) -> Cost:
    epsilon, delta = _exact_sums(entries)
    return Cost(_round_up(epsilon), _round_up(delta))


def _round_up(total: Fraction) -> float:
    nearest = float(total)
    return nearest if _decimal(nearest) >= total else math.nextafter(nearest, math.inf)


def _round_down(total: Fraction) -> float:
    nearest = float(total)
    return nearest if _decimal(nearest) <= total else math.nextafter(nearest, -math.inf)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
