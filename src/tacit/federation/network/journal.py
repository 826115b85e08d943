"""What a server keeps of a run: after a restart it goes on where it was, and asks no round again."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import Any, Final, Self, TypeVar

import msgspec

from tacit.errors import DataError, RefusalError, shown
from tacit.federation.network.bodies import Considered
from tacit.federation.query import Query
from tacit.federation.store import from_bytes, to_bytes
from tacit.numerics import Array

__all__ = ["KeptTerms", "RoundFacts", "RunHead", "RunJournal"]

_APPLICATION: Final = 0x74616A6F  # "tajo"
_VERSION: Final = 2
_TABLES: Final = (
    "CREATE TABLE head (run BLOB NOT NULL, terms BLOB NOT NULL) STRICT",
    "CREATE TABLE circles (step INTEGER PRIMARY KEY, query BLOB NOT NULL, parties BLOB NOT NULL) STRICT",
    "CREATE TABLE rounds (step INTEGER PRIMARY KEY, query BLOB NOT NULL, means BLOB NOT NULL, "
    "facts BLOB NOT NULL) STRICT",
    "CREATE TABLE told (name TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT",
)
_Kept = TypeVar("_Kept")


class RunHead(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of which run a journal is: whoever goes on with it must say the same.

    Attributes:
        federation: Name of the federation.
        run: Name of the run.
        plan: Digest of the plan.
        silos: Names and public sizes, in their order.
        weights: How silos count.
        participation: Who is asked.
        budget: Epsilon and delta that were agreed on; None for none.
    """

    federation: str
    run: str
    plan: bytes
    silos: tuple[tuple[str, int], ...]
    weights: str
    participation: str
    budget: tuple[float, float] | None


class KeptTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a silo said as it accepted the run, word for word.

    Attributes:
        guarantee: As JSON.
        alone: The same of one message alone, with its sender; empty where the guarantee is about that.
        size: Units of the silo.
        account: Fingerprint of its ledger; None keeps none.
        simulated: Whether its randomness can be repeated.
        signature: Of the guarantees; empty where the silo signs none.
    """

    guarantee: bytes
    alone: bytes
    size: int
    account: bytes | None
    simulated: bool
    signature: bytes

    @classmethod
    def of(cls, said: Considered) -> KeptTerms:
        """Return what a reply to a plan says."""
        fields: dict[str, Any] = {name: getattr(said, name, b"") for name in cls.__struct_fields__}
        return cls(**fields)

    @property
    def unsigned(self) -> KeptTerms:
        """The same without a signature, to be compared."""
        return msgspec.structs.replace(self, signature=b"")


class RoundFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may be told of a round: nothing that anybody's data decide.

    Attributes:
        step: Number of the round.
        asked: Indices of the silos that were asked.
        answered: Of those whose answers count, under shuffle trust of those that say that they have sent.
        refused: Why others refused, by name of the silo.
        dropped: Messages that were thrown away, by name of the silo.
        bits_up: Bits of each answer, in the order of `answered`.
        bytes_up: Bytes that each silo that was asked has sent to the server, in the order of `asked`.
        bytes_down: Bytes that were sent to each of them.
        seconds: How long the round took.
        skipped: Whether its means are those of a round without answers.
        why: Why a shuffled round was skipped.
    """

    step: int
    asked: tuple[int, ...]
    answered: tuple[int, ...]
    refused: Mapping[str, str]
    dropped: Mapping[str, int]
    bits_up: tuple[int, ...]
    bytes_up: tuple[int, ...]
    bytes_down: tuple[int, ...]
    seconds: float
    skipped: bool
    why: str = ""


class RunJournal:
    """The rounds of one run in a file; threads may share it.

    It holds no secrets: means are what the server may publish or, under local trust, what it made of noisy
    answers. A row that a power cut takes away costs nothing: silos give the answers that they have stored.

    Args:
        path: Of the file, made where it is missing, readable by its owner only; None keeps it in memory.

    Raises:
        DataError: The file cannot be used, or is no journal.
    """

    def __init__(self, path: Path | str | None = None) -> None:
        self._path, self._lock = path, RLock()
        if path is not None:
            try:
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
            except OSError as error:
                raise self._unusable(error.strerror or "it cannot be opened") from error
        self._connection = sqlite3.connect(
            ":memory:" if path is None else path, isolation_level=None, check_same_thread=False, timeout=10
        )
        try:
            with self._transaction() as connection:
                self._check(connection)
            self._connection.execute("PRAGMA journal_mode = WAL")  # one wait for the disk a round
            self._connection.execute("PRAGMA synchronous = FULL")
        except BaseException:
            self._connection.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; may be called again."""
        with self._lock:
            self._connection.close()

    def terms(self, head: RunHead) -> list[KeptTerms] | None:
        """Return what silos said when all of them had accepted the run; None where they have not.

        Raises:
            RefusalError: The journal is of another run.
        """
        with self._transaction() as connection:
            row = connection.execute("SELECT run, terms FROM head").fetchone()
        if row is None:
            return None
        kept = self._decoded(row[0], RunHead)
        for name in RunHead.__struct_fields__:
            was, now = getattr(kept, name), getattr(head, name)
            if was != now:
                raise RefusalError(
                    f"the journal {self._path} is of a run with another {name} ({shown(was)}, not "
                    f"{shown(now)}): go on with the settings that the run began with, or begin a new run."
                )
        return self._decoded(row[1], list[KeptTerms])

    def agree(self, head: RunHead, terms: list[KeptTerms]) -> None:
        """Keep what silos said, now that all of them have accepted the run."""
        with self._transaction() as connection:
            connection.execute("INSERT INTO head VALUES (?, ?)", (_encoded(head), _encoded(terms)))

    def find(self, query: Query) -> tuple[Array, ...] | None:
        """Return the means that a query was answered with; None if the step is new.

        Raises:
            RefusalError: The step was answered at another point.
        """
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT query, means FROM rounds WHERE step = ?", (query.step,)
            ).fetchone()
        if row is None:
            return None
        self._check_query(query, row[0])
        return from_bytes(row[1])

    def circle(self, query: Query, parties: tuple[int, ...]) -> tuple[tuple[int, ...], bool]:
        """Return whose messages a shuffled round mixes, and whether that was known.

        What was kept first is what stays: the shuffler describes a round once.

        Raises:
            RefusalError: The step was asked at another point.
        """
        with self._transaction() as connection:
            row = connection.execute(
                "SELECT query, parties FROM circles WHERE step = ?", (query.step,)
            ).fetchone()
            if row is None:
                values = (query.step, query.digest(), _encoded(parties))
                connection.execute("INSERT INTO circles VALUES (?, ?, ?)", values)
                return parties, False
        self._check_query(query, row[0])
        return self._decoded(row[1], tuple[int, ...]), True

    def keep(self, query: Query, means: tuple[Array, ...], facts: RoundFacts) -> None:
        """Keep a round that is over."""
        values = (query.step, query.digest(), to_bytes(means), _encoded(facts))
        with self._transaction() as connection:
            connection.execute("INSERT INTO rounds VALUES (?, ?, ?, ?)", values)

    @property
    def told(self) -> Told:
        """What the silos were told about masks."""
        return Told(self)

    def tell(self, name: str, make: Callable[[], bytes] | None = None) -> bytes | None:
        """Return what is kept under a name; where there is nothing, what `make` returns is kept first."""
        with self._transaction() as connection:
            row = connection.execute("SELECT value FROM told WHERE name = ?", (name,)).fetchone()
            if row is None and make is not None:
                row = (make(),)
                connection.execute("INSERT INTO told VALUES (?, ?)", (name, *row))
        return None if row is None else bytes(row[0])

    def rounds(self) -> list[RoundFacts]:
        """Return the facts of all rounds that are over, in their order."""
        with self._transaction() as connection:
            rows = connection.execute("SELECT facts FROM rounds ORDER BY step").fetchall()
        return [self._decoded(facts, RoundFacts) for (facts,) in rows]

    def _check(self, connection: sqlite3.Connection) -> None:
        """Fill a new file; refuse what is no journal, or one of another version."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if (application, version) == (0, 0) and not connection.execute(
            "SELECT * FROM sqlite_schema"
        ).fetchall():
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        elif (application, version) != (_APPLICATION, _VERSION):
            raise self._unusable(f"it is no journal of version {_VERSION}")

    def _check_query(self, query: Query, digest: bytes) -> None:
        if digest != query.digest():
            raise RefusalError(
                f"step {query.step} has been asked at another point; go on with the settings that the run "
                "began with, or begin a new run."
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        """Do all of it or nothing."""
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield self._connection
                except BaseException:
                    self._connection.execute("ROLLBACK")
                    raise
                self._connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._unusable(str(error)) from error

    def _decoded(self, data: bytes, kind: type[_Kept]) -> _Kept:
        try:
            return msgspec.msgpack.decode(data, type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._unusable("what it holds cannot be read") from error

    def _unusable(self, why: str) -> DataError:
        return DataError(f"the journal {self._path} cannot be used: {why}.")


class Told:
    """The journal as what a server keeps of masks (`Secrets`): public, and never wiped."""

    def __init__(self, journal: RunJournal) -> None:
        self._journal = journal

    def keep(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return what is kept under a name, `make` makes it the first time."""
        found = self._journal.tell(name, make)
        assert found is not None  # noqa: S101 - made
        return found

    def find(self, name: str) -> bytes | None:
        """Return what is kept under a name, None for nothing."""
        return self._journal.tell(name)

    def wipe(self, prefix: str = "") -> None:
        """Keep all of it: nothing is secret."""


def _encoded(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)
