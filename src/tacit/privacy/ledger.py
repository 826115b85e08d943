"""What a silo's data set has been charged, and what was answered for it: an append-only SQLite file.

The ledger belongs to the data, not to a run: whoever adds the noise keeps one per data set, reserves the price of a
whole plan in it before the first answer, and stores every answer in it before the answer leaves.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec

from tacit.errors import LedgerError, RefusalError, check_count
from tacit.privacy.budget import PrivacyBudget
from tacit.privacy.neighbours import Neighbours

__all__ = ["Cost", "Entry", "Ledger"]

_APPLICATION_ID: Final = 0x74616369  # "taci"
_VERSION: Final = 1
_MAX_NAME: Final = 200
_TABLES: Final = {
    "ledger": "CREATE TABLE ledger (number INTEGER PRIMARY KEY CHECK (number = 1), epsilon REAL NOT NULL, "
    "delta REAL NOT NULL, relation TEXT NOT NULL, unit TEXT NOT NULL, part TEXT NOT NULL, label TEXT NOT NULL, "
    "time TEXT NOT NULL, seal BLOB NOT NULL) STRICT",
    "reservations": "CREATE TABLE reservations (number INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE, "
    "epsilon REAL NOT NULL, delta REAL NOT NULL, time TEXT NOT NULL, plan_digest BLOB NOT NULL, "
    "event BLOB NOT NULL, seal BLOB NOT NULL) STRICT",
    "answers": "CREATE TABLE answers (number INTEGER PRIMARY KEY, run TEXT NOT NULL, step INTEGER NOT NULL, "
    "query_digest BLOB NOT NULL, state BLOB, seal BLOB NOT NULL, answer BLOB NOT NULL, UNIQUE (run, step)) STRICT",
}
# INSERT OR REPLACE removes the old row without firing a DELETE trigger, so an insert has its own condition.
_REPLACES: Final = {
    "ledger": "0",
    "reservations": "EXISTS (SELECT 1 FROM reservations WHERE run = NEW.run)",
    "answers": "EXISTS (SELECT 1 FROM answers WHERE run = NEW.run AND step = NEW.step) "
    "OR NOT EXISTS (SELECT 1 FROM reservations WHERE run = NEW.run)",
}
_ABORT: Final = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"


def _schema() -> Iterator[str]:
    """Every statement that makes the tables and keeps them append-only, as SQLite stores it."""
    for table, create in _TABLES.items():
        yield create
        for change in ("UPDATE", "DELETE"):
            yield f"CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table} {_ABORT}"
        next_number = f"(SELECT coalesce(max(number), 0) + 1 FROM {table})"  # noqa: S608 - names are ours
        yield (
            f"CREATE TRIGGER {table}_insert BEFORE INSERT ON {table} "
            f"WHEN NEW.number IS NOT {next_number} OR {_REPLACES[table]} {_ABORT}"
        )


class Cost(msgspec.Struct, frozen=True):
    """A sum of prices, or what is left of a limit; unlike a budget it may be zero.

    Attributes:
        epsilon: >= 0.
        delta: In [0, 1).
    """

    epsilon: float
    delta: float


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One reservation.

    Attributes:
        run: The run that the price was reserved for.
        epsilon: Reserved epsilon.
        delta: Reserved delta.
        time: When, UTC, ISO 8601; for people only.
        plan_digest: Digest of the plan, hexadecimal.
        event: The plan's event, as it was encoded by the silo.
    """

    run: str
    epsilon: float
    delta: float
    time: str
    plan_digest: str
    event: bytes


class Ledger:
    """The privacy account of one data set.

    Costs of plans add (basic composition), which holds even where a plan was chosen after seeing the answers of
    another. There are no refunds and nothing is ever changed or removed. Prices and limits count as the decimal
    numbers that people read, exactly: three times 0.1 fits into 0.3, and nothing more does.

    Several processes and threads may hold the same ledger; a reservation is one exclusive transaction, so together
    they cannot overspend. What a call has acknowledged survives a killed process and a power failure.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     limit = PrivacyBudget(2.0, 1e-5)
        ...     with Ledger.create(f"{folder}/silo.ledger", limit=limit, neighbours=Neighbours()) as ledger:
        ...         ledger.reserve("run-1", price=PrivacyBudget(0.5, 1e-6), plan_digest=b"sha-256", event=b"")
        ...         ledger.spent()
        Cost(epsilon=0.5, delta=1e-06)
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        """Use `create` or `open` instead."""
        self._path, self._connection = path, connection
        self._lock, self._pid = threading.RLock(), os.getpid()
        self._file = _identity(path)
        with self._transaction("DEFERRED"):
            self._limit, self._neighbours, self._label = self._verify()

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], *, limit: PrivacyBudget, neighbours: Neighbours, label: str = ""
    ) -> Self:
        """Create the ledger of a data set; only the file's owner may read it.

        Args:
            path: A file that does not exist yet, on a local disk.
            limit: What all plans together may cost; it can never be changed.
            neighbours: What the limit and all prices are relative to.
            label: A public name of the data set, at most 200 printable characters.

        Raises:
            LedgerError: The file exists or cannot be written.
            ParameterError: `label` is too long or not printable.
        """
        path = Path(path)
        _check_name("label", label, low=0)
        head = [float(limit.epsilon), float(limit.delta), *map(str, msgspec.structs.astuple(neighbours))]
        head += [label, _now()]
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{path} exists already; a ledger is never overwritten.") from None
        except OSError as error:
            raise LedgerError(f"{path} cannot be created: {error.strerror}.") from error
        try:
            connection = _connect(path)
            connection.execute("BEGIN EXCLUSIVE")
            for statement in _schema():
                connection.execute(statement)
            connection.execute(
                "INSERT INTO ledger VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?)", [*head, _seal(b"", head)]
            )
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
            connection.execute("COMMIT")
            connection.close()
        except sqlite3.Error as error:
            raise LedgerError(f"{path} cannot be written: {error}.") from error
        return cls.open(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a ledger and check all of it, after undoing what a killed process had left half done.

        Args:
            path: A file made by `create`.

        Raises:
            LedgerError: The file is missing, damaged, no ledger or of another version.
        """
        path = Path(path)
        if not path.is_file():
            raise LedgerError(f"{path} is missing or no file; a new data set needs Ledger.create.")
        # Only SQLite may open the file: closing any other handle would drop the locks this process holds on it.
        if path.with_name(path.name + "-wal").exists():
            raise LedgerError(f"{path} is not a ledger: it has a write-ahead log, and a ledger never has.")
        connection = None
        try:
            connection = _connect(path)
            _check_file(connection, path)
            ledger = cls(path, connection)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise LedgerError(f"{path} is not a readable ledger: {error}.") from error
        except LedgerError:
            if connection is not None:
                connection.close()
            raise
        return ledger

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file; may be called again."""
        with self._lock:
            self._connection.close()

    @property
    def path(self) -> Path:
        """Where the ledger lies."""
        return self._path

    @property
    def limit(self) -> PrivacyBudget:
        """What all plans together may cost."""
        return self._limit

    @property
    def neighbours(self) -> Neighbours:
        """What the limit and all prices are relative to."""
        return self._neighbours

    @property
    def label(self) -> str:
        """The public name of the data set."""
        return self._label

    def reserve(self, run: str, *, price: PrivacyBudget, plan_digest: bytes, event: bytes) -> None:
        """Reserve the price of a whole plan, before its first answer.

        The same run with the same plan and price is charged once, however often it is restarted.

        Args:
            run: Public name of the run, at most 200 printable characters.
            price: What the whole plan costs, under this ledger's neighbours, as the silo itself computed it.
            plan_digest: Digest of the plan, 1 to 64 bytes.
            event: The plan's encoded event, kept so that the price can be checked later.

        Raises:
            BudgetError: The price exceeds what is left; nothing was reserved.
            LedgerError: The run is known with another plan or price, or the file cannot be used.
            ParameterError: An argument has a value that is not allowed.
        """
        _check_name("run", run)
        _check_digest("plan_digest", plan_digest)
        epsilon, delta = float(price.epsilon), float(price.delta)
        with self._transaction("IMMEDIATE") as connection:
            entries, last = self._read_entries()
            known = next((entry for entry in entries if entry.run == run), None)
            if known is not None:
                if (known.epsilon, known.delta, known.plan_digest) != (epsilon, delta, plan_digest.hex()):
                    raise LedgerError(
                        f"run {run!r} has been reserved with another plan or price; name a new run."
                    )
                return
            self._check_affordable(run, entries, Cost(epsilon, delta))
            row = [run, epsilon, delta, _now(), plan_digest, event]
            connection.execute(
                "INSERT INTO reservations SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ? FROM reservations",
                [*row, _seal(last, row)],
            )

    def entries(self) -> list[Entry]:
        """Return all reservations, oldest first."""
        with self._transaction("DEFERRED"):
            return self._read_entries()[0]

    def spent(self) -> Cost:
        """Return the sum of all reservations, rounded up; what a run reserved and did not use counts too."""
        epsilon, delta = _sums(self.entries())
        return Cost(_round_up(epsilon), _round_up(delta))

    def remaining(self) -> Cost:
        """Return what is left of the limit, rounded down, so that a plan at this price still fits."""
        epsilon, delta = _sums(self.entries())
        return self._left(epsilon, delta)

    def store_answer(
        self, run: str, step: int, *, query_digest: bytes, answer: bytes, state: bytes | None = None
    ) -> bytes:
        """Store an answer and the silo's state together, before anything is sent.

        Args:
            run: A run that has been reserved.
            step: Which step of the plan, >= 0.
            query_digest: Digest of the query (step, point, radius), 1 to 64 bytes.
            answer: What will be sent.
            state: What the silo must remember from now on, such as its batch pointer; None leaves it as it was.

        Returns:
            What must be sent: `answer`, or the bytes that were stored earlier for the same step and query, in
            which case `answer` and `state` are dropped. A second answer with fresh noise must never leave.

        Raises:
            RefusalError: The step has been answered at another point.
            LedgerError: The run has no reservation, or the file cannot be used.
            ParameterError: An argument has a value that is not allowed.
        """
        _check_name("run", run)
        check_count("step", step, low=0, high=2**63 - 1)
        _check_digest("query_digest", query_digest)
        with self._transaction("IMMEDIATE") as connection:
            found = connection.execute("SELECT seal FROM reservations WHERE run = ?", [run]).fetchone()
            if found is None:
                raise LedgerError(
                    f"run {run!r} has no reservation; reserve its plan before the first answer."
                )
            stored = self._read_answer("answers.run = ? AND step = ?", [run, int(step)])
            if stored is not None:
                if stored[0] != query_digest:
                    raise RefusalError(f"step {step} of run {run!r} has been answered at another point.")
                return stored[1]
            row = [run, int(step), query_digest, state, answer]
            connection.execute(
                "INSERT INTO answers SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ? FROM answers",
                [*row[:4], _seal(found[0], row), answer],
            )
        return answer

    def answer(self, run: str, step: int) -> tuple[bytes, bytes] | None:
        """Return (query digest, answer) of a step, or None where no answer has ever left."""
        with self._transaction("DEFERRED"):
            stored = self._read_answer("answers.run = ? AND step = ?", [run, int(step)])
        return None if stored is None else stored[:2]

    def state(self, run: str) -> bytes | None:
        """Return the state that was stored last for this run, or None where none was."""
        with self._transaction("DEFERRED") as connection:
            # A damaged row must not look like one without a state, so rows are checked before they are skipped.
            numbers = connection.execute(
                "SELECT number FROM answers WHERE run = ? ORDER BY number DESC", [run]
            )
            for (number,) in numbers:
                stored = self._read_answer("answers.number = ?", [number])
                if stored is not None and stored[2] is not None:
                    return stored[2]
        return None

    @contextmanager
    def _transaction(self, kind: str) -> Iterator[sqlite3.Connection]:
        """All of the block or nothing; SQLite's errors become a LedgerError."""
        with self._lock:
            if os.getpid() != self._pid:
                raise LedgerError(f"{self._path} was opened in another process; open it again after a fork.")
            if _identity(self._path) != self._file:
                raise LedgerError(f"{self._path} was removed or replaced while it was open.")
            try:
                self._connection.execute(f"BEGIN {kind}")
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                finally:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
            except sqlite3.Error as error:
                raise LedgerError(f"{self._path} cannot be used: {error}.") from error
