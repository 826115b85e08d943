"""What a shuffler never forgets: who it is, what it signed, and what it has released or given up."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_bytes
from typing import Any, Final, Literal

from tacit.errors import DataError, RefusalError

__all__ = ["KeptRound", "Releases", "State"]

State = Literal["open", "released", "given-up"]

_APPLICATION_ID: Final = 0x74637368  # "tcsh"
_VERSION: Final = 1
_SESSION_BYTES: Final = 16
_BUSY_SECONDS: Final = 1.0
_ABORT: Final = "BEGIN SELECT RAISE(ABORT, 'a shuffler changes its mind about nothing'); END"
_SCHEMA: Final = (
    "CREATE TABLE shuffler (one INTEGER PRIMARY KEY CHECK (one = 1), federation TEXT NOT NULL, "
    "session BLOB NOT NULL) STRICT",
    "CREATE TABLE runs (run BLOB PRIMARY KEY, plan TEXT NOT NULL) STRICT",
    "CREATE TABLE rounds (id TEXT PRIMARY KEY, run BLOB NOT NULL REFERENCES runs (run), "
    "step INTEGER NOT NULL, descriptor BLOB NOT NULL, state TEXT NOT NULL, result BLOB, "
    "fetched INTEGER NOT NULL DEFAULT 0, "
    "UNIQUE (run, step)) STRICT",
    f"CREATE TRIGGER rounds_once BEFORE UPDATE ON rounds WHEN OLD.state IS NOT 'open' "
    f"AND NEW.state IS NOT OLD.state {_ABORT}",
    f"CREATE TRIGGER rounds_same BEFORE UPDATE ON rounds WHEN NEW.id IS NOT OLD.id OR NEW.run IS NOT OLD.run "
    f"OR NEW.step IS NOT OLD.step OR NEW.descriptor IS NOT OLD.descriptor {_ABORT}",
    f"CREATE TRIGGER rounds_kept BEFORE DELETE ON rounds {_ABORT}",
    f"CREATE TRIGGER shuffler_same BEFORE UPDATE ON shuffler {_ABORT}",
)


@dataclass(frozen=True, slots=True)
class KeptRound:
    """A round as it is kept.

    Attributes:
        id: How parties call it.
        run: Digest of its run.
        step: Its number.
        descriptor: Signed, as bytes.
        state: Whether its batch was released or given up; else it is open, and lives in memory.
        result: The batch, or the report of a round that was given up. Empty while it is open, and where the
            batch has been fetched and a later round was opened.
    """

    id: str
    run: bytes
    step: int
    descriptor: bytes
    state: State
    result: bytes


class Releases:
    """The shuffler's memory: a SQLite file that one process has for itself.

    Nobody but the owner can read it, nothing in it tells who sent which message, and every change is on disk
    before the method returns. Never put an old copy of it back in its place: the shuffler would forget what
    it has released, and keep the identity by which silos would notice. Without the file it starts as another
    shuffler, which is safe: rounds that silos have answered for the old one are lost.

    Args:
        path: The file; a folder or file that is not there is made.
        federation: Whose memory it is.

    Raises:
        DataError: Not such a file, of another version or federation, damaged, or in use.
    """

    def __init__(self, path: Path | str, *, federation: str) -> None:
        self.path = Path(path)
        try:
            if not self.path.parent.is_dir():
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise self._unusable(error.strerror or "no reason given") from error
        self._connection = sqlite3.connect(
            self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            # As for ledgers: a rollback journal whose end is on disk before anything leaves. Exclusive, since
            # two processes with one memory would each take parcels that the other does not know of.
            for pragma in (
                "locking_mode = EXCLUSIVE",
                "synchronous = EXTRA",
                "fullfsync = ON",
                "secure_delete = ON",
            ):
                self._connection.execute(f"PRAGMA {pragma}")
            with self._transaction() as connection:
                if not connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]:
                    self._fill(connection, federation)
                self.session = self._checked(connection, federation)
        except sqlite3.Error as error:
            self._connection.close()
            raise self._unusable(str(error)) from error
        except DataError:
            self._connection.close()
            raise

    def close(self) -> None:
        """Let go of the file; may be called again."""
        self._connection.close()

    def add_run(self, run: bytes, plan: str) -> None:
        """Keep the plan of a run; a run that is known stays as it is."""
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO runs VALUES (?, ?)", (run, plan))

    def runs(self) -> dict[bytes, str]:
        """Return the plans of all runs."""
        return dict(self._connection.execute("SELECT run, plan FROM runs"))

    def add_round(self, round_id: str, run: bytes, step: int, descriptor: bytes) -> None:
        """Keep a round that is open, and forget batches of earlier rounds that have been fetched.

        Raises:
            RefusalError: The step is known.
        """
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM rounds WHERE run = ? AND step = ?", (run, step)).fetchone():
                raise RefusalError(f"step {step} of the run is known.")
            connection.execute(
                "INSERT INTO rounds VALUES (?, ?, ?, ?, 'open', NULL, 0)", (round_id, run, step, descriptor)
            )
            connection.execute(
                "UPDATE rounds SET result = NULL "
                "WHERE run = ? AND step < ? AND state = 'released' AND fetched",
                (run, step),
            )

    def end(self, round_id: str, state: Literal["released", "given-up"], result: bytes) -> None:
        """End an open round, for ever.

        Raises:
            RefusalError: It is not open.
        """
        with self._transaction() as connection:
            done = connection.execute(
                "UPDATE rounds SET state = ?, result = ? WHERE id = ? AND state = 'open'",
                (state, result, round_id),
            )
            if done.rowcount != 1:
                raise RefusalError("the round is not open.")

    def mark_fetched(self, round_id: str) -> None:
        """Note that the server has had the batch."""
        with self._transaction() as connection:
            connection.execute("UPDATE rounds SET fetched = 1 WHERE id = ? AND NOT fetched", (round_id,))

    def round(self, round_id: str) -> KeptRound | None:
        """Return a round; None for one that never was."""
        return self._one("id = ?", round_id)

    def round_of(self, run: bytes, step: int) -> KeptRound | None:
        """Return the round of a step; None where it was never opened."""
        return self._one("run = ? AND step = ?", run, step)

    def open_rounds(self) -> list[str]:
        """Return the rounds that were neither released nor given up."""
        return [one for (one,) in self._connection.execute("SELECT id FROM rounds WHERE state = 'open'")]

    def _one(self, where: str, *values: Any) -> KeptRound | None:
        row = self._connection.execute(
            f"SELECT id, run, step, descriptor, state, coalesce(result, x'') FROM rounds WHERE {where}",  # noqa: S608 - our own text
            values,
        ).fetchone()
        return None if row is None else KeptRound(*row)

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block, on disk, or nothing."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        finally:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")

    def _fill(self, connection: sqlite3.Connection, federation: str) -> None:
        """Make an empty memory, of a shuffler that there was never before."""
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO shuffler VALUES (1, ?, ?)", (federation, token_bytes(_SESSION_BYTES)))
        connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")

    def _checked(self, connection: sqlite3.Connection, federation: str) -> bytes:
        """Return the identity, if the file is what it has to be."""
        found = {name: connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _EXPECTED}
        if found["application_id"] != _APPLICATION_ID:
            raise self._unusable("it is another SQLite database")
        if found != _EXPECTED:
            raise self._unusable(f"it is damaged, or of another version than {_VERSION}: {found}")
        stored = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL").fetchall()
        if sorted(sql for (sql,) in stored) != sorted(_SCHEMA):
            raise self._unusable("its tables are not those of a shuffler")
        whose, session = connection.execute("SELECT federation, session FROM shuffler").fetchone()
        if whose != federation:
            raise self._unusable(f"it belongs to the federation {whose!r}, not to {federation!r}")
        return bytes(session)

    def _unusable(self, why: str) -> DataError:
        return DataError(f"{self.path} cannot be used as the memory of a shuffler: {why}.")


_EXPECTED: Final = {
    "application_id": _APPLICATION_ID,
    "user_version": _VERSION,
    "journal_mode": "delete",
    "integrity_check(1)": "ok",
}
