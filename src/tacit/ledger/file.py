"""The file under a ledger: SQLite tables that only grow but for states, all or nothing, checked when read."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple, Self

from tacit.errors import LedgerError
from tacit.ledger.rows import seal

__all__ = ["LedgerFile", "add_secrets", "has_secrets"]

_APPLICATION_ID: Final = 0x74616369  # "taci", how `file` and SQLite tell a ledger from other databases
_VERSION: Final = 4
_BUSY_SECONDS: Final = 60.0
# SQLite quotes a damaged schema in its message, which Python then may fail to decode.
_ERRORS: Final = (sqlite3.Error, UnicodeDecodeError)
_COLUMNS: Final = {
    "ledger": "epsilon REAL NOT NULL, delta REAL NOT NULL, relation TEXT NOT NULL, unit TEXT NOT NULL, "
    "part TEXT NOT NULL, label TEXT NOT NULL, time TEXT NOT NULL, nonce BLOB NOT NULL, "
    "account BLOB NOT NULL, seal BLOB NOT NULL",
    "reservations": "run TEXT NOT NULL UNIQUE, epsilon REAL NOT NULL, delta REAL NOT NULL, "
    "time TEXT NOT NULL, plan_digest BLOB NOT NULL, event BLOB NOT NULL, seal BLOB NOT NULL",
    "answers": "run TEXT NOT NULL, owner BLOB NOT NULL, step INTEGER NOT NULL, query_digest BLOB NOT NULL, "
    "state_digest BLOB, seal BLOB NOT NULL, answer BLOB NOT NULL, UNIQUE (run, owner, step)",
}
# INSERT OR REPLACE removes the old row without firing a DELETE trigger, so an insert has its own condition.
_NOT_NEW: Final = {
    "ledger": "EXISTS (SELECT 1 FROM ledger)",
    "reservations": "EXISTS (SELECT 1 FROM reservations WHERE run = NEW.run)",
    "answers": "EXISTS (SELECT 1 FROM answers WHERE run = NEW.run AND owner = NEW.owner AND step = NEW.step) "
    "OR NOT EXISTS (SELECT 1 FROM reservations WHERE run = NEW.run)",
    "states": "EXISTS (SELECT 1 FROM states WHERE run = NEW.run AND owner = NEW.owner) "
    "OR NOT EXISTS (SELECT 1 FROM answers WHERE run = NEW.run AND owner = NEW.owner)",
    "secrets": "EXISTS (SELECT 1 FROM secrets WHERE run = NEW.run AND owner = NEW.owner AND name = NEW.name) "
    "OR NOT EXISTS (SELECT 1 FROM reservations WHERE run = NEW.run)",
    "wiped": "EXISTS (SELECT 1 FROM wiped WHERE run = NEW.run AND owner = NEW.owner AND prefix = NEW.prefix)",
}
_ABORT: Final = "BEGIN SELECT RAISE(ABORT, 'a ledger is append-only'); END"
# What a silo keeps of its units may be as large as they are, and only the last of it counts: one row for each
# run and owner, whose digest is in the answer that it was stored with.
_STATES: Final = (
    "CREATE TABLE states (run TEXT NOT NULL, owner BLOB NOT NULL, state BLOB NOT NULL, "
    "PRIMARY KEY (run, owner)) STRICT",
    f"CREATE TRIGGER states_delete BEFORE DELETE ON states {_ABORT}",
    f"CREATE TRIGGER states_update BEFORE UPDATE ON states "
    f"WHEN NEW.run IS NOT OLD.run OR NEW.owner IS NOT OLD.owner {_ABORT}",
    f"CREATE TRIGGER states_insert BEFORE INSERT ON states WHEN {_NOT_NEW['states']} {_ABORT}",
)
# What a run must not lose and must forget in the end: kept once, never changed, and deleted only where it is
# noted for ever that it was. Only files of runs that kept a secret have these two tables.
_WIPED: Final = (
    "EXISTS (SELECT 1 FROM wiped WHERE run = {0}.run AND owner = {0}.owner "
    "AND substr({0}.name, 1, length(prefix)) = prefix)"
)
_SECRETS: Final = (
    "CREATE TABLE secrets (run TEXT NOT NULL, owner BLOB NOT NULL, name TEXT NOT NULL, seal BLOB NOT NULL, "
    "value BLOB NOT NULL, PRIMARY KEY (run, owner, name)) STRICT",
    "CREATE TABLE wiped (run TEXT NOT NULL, owner BLOB NOT NULL, prefix TEXT NOT NULL, "
    "PRIMARY KEY (run, owner, prefix)) STRICT",
    f"CREATE TRIGGER secrets_update BEFORE UPDATE ON secrets {_ABORT}",
    f"CREATE TRIGGER secrets_delete BEFORE DELETE ON secrets WHEN NOT {_WIPED.format('OLD')} {_ABORT}",
    f"CREATE TRIGGER secrets_insert BEFORE INSERT ON secrets WHEN {_NOT_NEW['secrets']} "
    f"OR {_WIPED.format('NEW')} {_ABORT}",
    f"CREATE TRIGGER wiped_update BEFORE UPDATE ON wiped {_ABORT}",
    f"CREATE TRIGGER wiped_delete BEFORE DELETE ON wiped {_ABORT}",
    f"CREATE TRIGGER wiped_insert BEFORE INSERT ON wiped WHEN {_NOT_NEW['wiped']} {_ABORT}",
)


class LedgerFile:
    """An open ledger file, which several threads and processes may share."""

    def __init__(self, path: Path) -> None:
        """Connect to `path`; use `create` or `open` instead."""
        self.path = path
        self._lock, self._pid, self._identity = threading.RLock(), os.getpid(), _identity(path)
        self._seen: _Seen | None = None
        self._connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode=rw",
            uri=True,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        # A rollback journal, not a write-ahead log: all that is acknowledged lies in the one file, so that no
        # copy of it and no lost side file silently forgets a charge. EXTRA also syncs the folder: without it,
        # a power cut can bring the journal back and undo a transaction whose answer has already left.
        try:
            self._connection.execute("PRAGMA synchronous = EXTRA")
            self._connection.execute("PRAGMA fullfsync = ON")
            # What is deleted in a page that is written anyhow is overwritten, so that secrets leave no copies
            # where rows move; who deletes them asks for more.
            self._connection.execute("PRAGMA secure_delete = FAST")
        except _ERRORS:
            self._connection.close()
            raise

    @classmethod
    def create(cls, path: Path, head: Sequence[Any]) -> Self:
        """Make the file, readable by its owner only, with `head` as the one row of the table `ledger`."""
        try:
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            raise LedgerError(f"{path} exists already; a ledger is never overwritten.") from None
        except OSError as error:
            raise LedgerError(f"{path} cannot be created: {error.strerror}.") from error
        except ValueError as error:  # a zero byte, or what no file system can encode
            raise LedgerError(f"{str(path)!r} cannot be the name of a file.") from error
        try:
            file = cls._connect(path)
            try:
                with file.transaction() as connection:
                    _fill(connection, head)
            except LedgerError:
                file.close()
                raise
        except LedgerError:
            path.unlink(missing_ok=True)  # ours, and nothing was ever reserved in it
            raise
        return file

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open the file, undo what a killed process left half done, and check all pages and the schema."""
        if not path.is_file():
            raise LedgerError(
                f"{path} is missing or not a file; `tacit ledger create` makes the ledger of a new data set."
            )
        # A journal is found by the name of its file: under another name a killed process would not be undone
        # ("How To Corrupt An SQLite Database File", 2.5), nor the account of the data set be found beside it.
        if (names := path.stat().st_nlink) > 1:
            raise LedgerError(
                f"{path} is one of {names} names of its file (hard links); a ledger has one: remove others."
            )
        # By name, because only SQLite may open the file: closing another handle of it would drop the locks
        # that this process holds on it.
        if path.with_name(path.name + "-wal").exists():
            raise LedgerError(f"{path} is not a ledger: it has a write-ahead log, which a ledger never has.")
        file = cls._connect(path)
        try:
            with file.transaction(write=False) as connection:
                _check(path, connection)
        except LedgerError:
            file.close()
            raise
        return file

    @classmethod
    def _connect(cls, path: Path) -> Self:
        try:
            return cls(path)
        except _ERRORS as error:
            raise LedgerError(f"{path} cannot be used as a ledger: {error}.") from error

    @property
    def identity(self) -> tuple[int, int]:
        """Which file it is, whatever it is called."""
        if self._identity is None:
            raise LedgerError(f"{self.path} is missing or not a file.")
        return self._identity

    def close(self) -> None:
        """Let go of the file; may be called again."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Iterator[sqlite3.Connection]:
        """All of the block or nothing, and no other writer meanwhile; a SQLite error becomes LedgerError.

        Within another block of the same thread it is a part of that one.
        """
        with self._lock:
            if os.getpid() != self._pid:
                raise LedgerError(f"{self.path} was opened by another process; open it anew after a fork.")
            self.check_place()
            try:
                if self._is_in_block():
                    yield self._connection
                    return
                # Pages of a file that was put back in place of this one must not be taken for its own.
                self._connection.execute("PRAGMA shrink_memory")
                self._connection.execute("BEGIN IMMEDIATE" if write else "BEGIN")
                try:
                    self._check_seen()
                    yield self._connection
                    seen = _last_rows(self._connection)
                    self._connection.execute("COMMIT")
                    self._seen = seen
                finally:
                    if self._is_in_block():
                        self._connection.execute("ROLLBACK")
            except _ERRORS as error:
                raise LedgerError(f"{self.path} cannot be used as a ledger: {error}.") from error

    def _is_in_block(self) -> bool:
        """Whether this thread, which holds the lock, is in a transaction."""
        return self._connection.in_transaction

    def check_place(self) -> None:
        """Refuse a path at which another file lies now, or none."""
        # SQLite would go on writing to a deleted file, and everything acknowledged would be lost.
        if _identity(self.path) != self._identity:
            raise LedgerError(f"{self.path} was removed or replaced while it was open.")

    def _check_seen(self) -> None:
        """Refuse a file that does not hold what was read or written here before."""
        if self._seen is None:
            return
        if self._connection.execute(_SEALS, self._seen.numbers).fetchone() != self._seen.seals:
            raise LedgerError(f"{self.path} was rolled back or replaced while it was open: entries are gone.")


class _Seen(NamedTuple):
    """The last rows of a ledger: what no later state of the file can lack, as rows are only added.

    Attributes:
        numbers: Of the last reservation and of the last answer, None without one.
        seals: Of the head, the last reservation and the last answer.
    """

    numbers: tuple[int | None, int | None]
    seals: tuple[bytes | None, bytes | None, bytes | None]


_SEALS: Final = (
    "SELECT (SELECT seal FROM ledger), (SELECT seal FROM reservations WHERE number = ?), "
    "(SELECT seal FROM answers WHERE number = ?)"
)
_LAST: Final = (
    "SELECT (SELECT max(number) FROM reservations), (SELECT max(number) FROM answers), "
    "(SELECT seal FROM ledger), (SELECT seal FROM reservations ORDER BY number DESC LIMIT 1), "
    "(SELECT seal FROM answers ORDER BY number DESC LIMIT 1)"
)


def _last_rows(connection: sqlite3.Connection) -> _Seen:
    """Return the last rows of a ledger."""
    found = connection.execute(_LAST).fetchone()
    return _Seen(found[:2], found[2:])


def _schema() -> Iterator[str]:
    """Every statement that makes the tables and keeps them append-only, as SQLite stores it."""
    for table, columns in _COLUMNS.items():
        yield f"CREATE TABLE {table} (number INTEGER PRIMARY KEY, {columns}) STRICT"
        for change in ("UPDATE", "DELETE"):
            yield f"CREATE TRIGGER {table}_{change.lower()} BEFORE {change} ON {table} {_ABORT}"
        following = f"(SELECT coalesce(max(number), 0) + 1 FROM {table})"  # noqa: S608 - our own table names
        refused = f"NEW.number IS NOT {following} OR {_NOT_NEW[table]}"
        yield f"CREATE TRIGGER {table}_insert BEFORE INSERT ON {table} WHEN {refused} {_ABORT}"
    yield from _STATES


def _fill(connection: sqlite3.Connection, head: Sequence[Any]) -> None:
    """Make the tables, with one row in `ledger`, and mark the file as a ledger of this version."""
    for statement in _schema():
        connection.execute(statement)
    connection.execute(
        "INSERT INTO ledger VALUES (1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [*head, seal(b"", head)]
    )
    connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version = {_VERSION}")


def has_secrets(connection: sqlite3.Connection) -> bool:
    """Whether a run of the file has ever kept a secret."""
    found = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'secrets'")
    return found.fetchone() is not None


def add_secrets(connection: sqlite3.Connection) -> None:
    """Make the tables of secrets, where there are none."""
    if not has_secrets(connection):
        for statement in _SECRETS:
            connection.execute(statement)


def _identity(path: Path) -> tuple[int, int] | None:
    """Which file lies at `path`, or None."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _check(path: Path, connection: sqlite3.Connection) -> None:
    """Refuse a file that is not a whole ledger of this version."""

    def pragma(name: str) -> Any:
        return connection.execute(f"PRAGMA {name}").fetchone()[0]

    if pragma("page_count") == 0:
        raise LedgerError(f"{path} is empty: its content was lost, or its creation was cut short.")
    if pragma("application_id") != _APPLICATION_ID:
        raise LedgerError(f"{path} is not a ledger but another SQLite database.")
    if (version := pragma("user_version")) != _VERSION:
        cure = "use the tacit that made it, or a newer one"
        if version < _VERSION:
            cure = (
                "what it counts stays spent: `tacit ledger show` of the tacit that made it says what is "
                "left; make a new ledger with that limit, and keep the old one elsewhere"
            )
        raise LedgerError(
            f"{path} is a ledger of version {version}; this tacit reads version {_VERSION}: {cure}."
        )
    if (mode := pragma("journal_mode")) != "delete":
        raise LedgerError(f"{path} was damaged or changed: its journal mode is {mode}, not delete.")
    if (found := pragma("integrity_check(1)")) != "ok":
        raise LedgerError(f"{path} is damaged: {found}.")
    stored = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
    if sorted(sql for (sql,) in stored) not in (sorted(_schema()), sorted([*_schema(), *_SECRETS])):
        raise LedgerError(f"{path} was damaged or changed: its tables or triggers are not those of a ledger.")
