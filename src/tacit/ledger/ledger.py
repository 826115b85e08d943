"""What a silo's data set has been charged, and what was answered for it.

The ledger belongs to the data, not to a run: whoever adds the noise keeps one per data set, reserves the
price of a whole plan in it before the first answer, and stores every answer in it before the answer leaves.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from tacit.errors import (
    LARGEST_COUNT,
    LONGEST_NAME,
    LedgerError,
    ParameterError,
    RefusalError,
    check_count,
    check_name,
    check_text,
)
from tacit.ledger.attributes import check_same_attributes
from tacit.ledger.file import LedgerFile
from tacit.ledger.reservations import Reservations
from tacit.ledger.rows import (
    Cost,
    Entry,
    check_bytes,
    check_cost,
    read_answer,
    read_head,
    read_state,
    read_steps,
    seal,
    write_answer,
)
from tacit.ledger.run_secrets import RunSecrets
from tacit.privacy.budget import PrivacyBudget, stated_epsilon
from tacit.privacy.neighbours import Neighbours, Part

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
        self._account: Ledger | None = None
        with file.transaction(write=False) as connection:
            self._head = read_head(connection, file.path)
            self._reserved = self._reservations()
            self._reserved.read(connection)

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
            limit: What all plans together may cost; it can never be changed. Its epsilon is rounded up to the
                6 decimals that prices are stated with: a plan that is made for 1/3 states .333334.
            neighbours: What the limit and all prices are relative to.
            label: A public name of the data set, at most 200 printable characters.
            account: Fingerprint of the account of all records, where these are a part of them: it keeps the
                answers too, see `join`. Empty for a ledger that is itself the account of its records.

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
        head = [stated_epsilon(given.epsilon), given.delta, *relation, label, _now(), nonce, account]
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

    def join(self, account: Ledger) -> None:
        """Keep the answers in the account of all records from now on, where those of a round are one write.

        Args:
            account: The open account that the ledger was made with.

        Raises:
            LedgerError: It is another one.
        """
        if account.fingerprint != self.account:
            raise LedgerError(f"{account.path} is not the account that {self.path} was made with.")
        self._account = account

    @property
    def keeper(self) -> Ledger:
        """The ledger that the answers are kept in: the account that was joined, or this one."""
        return self if self._account is None else self._account

    @contextmanager
    def together(self) -> Iterator[None]:
        """Store what is stored in the block in one write: all of it or, if the block raises, nothing.

        It is on the disk when the block ends, not before. No other process or thread stores meanwhile.
        """
        with self._block():
            yield

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
            LedgerError: The run is known with another plan or price, is about other sensitive attributes than
                those that the ledger has paid for, or the file cannot be used.
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
        with self._block() as connection:
            self._enter(connection, run, asked, plan_digest=plan_digest, event=event)
            yield

    def _enter(
        self, connection: sqlite3.Connection, run: str, price: Cost, *, plan_digest: bytes, event: bytes
    ) -> None:
        """Add a reservation that fits, unless it is there."""
        self._reserved.read(connection)
        known = self._reserved.find(run)
        if known is None:
            if self.neighbours.part is Part.SENSITIVE:
                check_same_attributes(self.path, self._reserved.entries, run)
            self._reserved.check_affordable(run, price)
            row = [run, price.epsilon, price.delta, _now(), plan_digest, event]
            connection.execute(
                "INSERT INTO reservations "
                "SELECT coalesce(max(number), 0) + 1, ?, ?, ?, ?, ?, ?, ? FROM reservations",
                [*row, seal(self._reserved.last, row)],
            )
        elif Cost(known.epsilon, known.delta) != price or known.plan_digest != plan_digest.hex():
            raise LedgerError(f"run {run!r} is reserved already, with another plan or price; name a new run.")

    def knows(self, run: str) -> bool:
        """Return whether a run has a reservation."""
        return self.find(run) is not None

    def find(self, run: str) -> Entry | None:
        """Return the reservation of a run, None where there is none."""
        with self._read():
            return self._reserved.find(run)

    def entries(self) -> list[Entry]:
        """Return all reservations, oldest first."""
        with self._read():
            return list(self._reserved.entries)

    def spent(self) -> Cost:
        """Return the sum of all reservations, rounded up; what a run reserved and did not use counts too."""
        with self._read():
            return self._reserved.spent()

    def remaining(self) -> Cost:
        """Return what is left of the limit, rounded down, so that a plan at this price still fits."""
        with self._read():
            return self._reserved.remaining()

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
        file, owner = self._keeper()
        for payer in (self, self.keeper):
            if not payer._has_reserved(run):
                raise LedgerError(
                    f"run {run!r} has no reservation in {payer.path}; reserve its plan before the first "
                    "answer."
                )
        with file.transaction() as connection:
            stored = read_answer(connection, file.path, run, owner, int(step))
            if stored is not None and stored[0] != query_digest:
                raise RefusalError(
                    f"step {step} of run {run!r} has been answered at another point or for another party."
                )
            if stored is not None:
                return stored[1]
            write_answer(
                connection, run, owner, int(step), query_digest=query_digest, answer=answer, state=state
            )
        return answer

    def answer(self, run: str, step: int) -> tuple[bytes, bytes] | None:
        """Return (query digest, answer) of a step, or None where no answer has ever left."""
        check_name("run", run)
        check_count("step", step, low=0, high=LARGEST_COUNT)
        file, owner = self._keeper()
        with file.transaction(write=False) as connection:
            stored = read_answer(connection, file.path, run, owner, int(step))
        return None if stored is None else stored[:2]

    def answered(self, run: str) -> set[int]:
        """Return the steps of a run that have answers."""
        check_name("run", run)
        file, owner = self._keeper()
        with file.transaction(write=False) as connection:
            return read_steps(connection, run, owner)

    def state(self, run: str) -> bytes | None:
        """Return the state that was stored last for this run, or None where none was."""
        check_name("run", run)
        file, owner = self._keeper()
        with file.transaction(write=False) as connection:
            return read_state(connection, file.path, run, owner)

    def secrets(self, run: str) -> RunSecrets:
        """Return what a run keeps beside its answers, in the same file, until it is over."""
        check_name("run", run)
        file, owner = self._keeper()
        return RunSecrets(file, run, owner)

    def _has_reserved(self, run: str) -> bool:
        """Return whether a run has a reservation, without a look at the file where that is known."""
        return self._reserved.find(run) is not None or self.knows(run)

    def _reservations(self) -> Reservations:
        return Reservations(self.path, self.limit, self._head.seal)

    @contextmanager
    def _block(self) -> Iterator[sqlite3.Connection]:
        """All that is reserved and stored in the block, or nothing if it raises."""
        try:
            with self._file.transaction() as connection:
                yield connection
        except BaseException:
            self._reserved = self._reservations()  # the block may have read what is not going to be
            raise

    @contextmanager
    def _read(self) -> Iterator[None]:
        """Read what others have reserved meanwhile, and let nobody else read in the block."""
        with self._file.transaction(write=False) as connection:
            self._reserved.read(connection)
            yield

    def _keeper(self) -> tuple[LedgerFile, bytes]:
        """Return which file answers are kept in, and whose they are called there."""
        if not self.account:
            return self._file, b""
        if self._account is None:
            raise LedgerError(
                f"{self.path} was made in a folder of ledgers and keeps its answers in the account of the "
                "data set; open both with `open_ledgers`."
            )
        self._file.check_place()
        return self._account._file, self.fingerprint


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
