"""What a run keeps secret beside its answers: named bytes, kept once, and deleted when the run is over."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from tacit.errors import LedgerError, RefusalError, check_text
from tacit.ledger.file import LedgerFile, add_secrets, has_secrets
from tacit.ledger.rows import check_bytes, seal

__all__ = ["RunSecrets", "WipedSecretError"]


class WipedSecretError(RefusalError):
    """A secret was wiped: nothing is kept under its name again."""


class RunSecrets:
    """The secrets of one run in a ledger file; `Ledger.secrets` returns them.

    Several processes may hold them. A secret never changes: whoever keeps one first decides what it is.
    """

    def __init__(self, file: LedgerFile, run: str, owner: bytes) -> None:
        """Remember where; use `Ledger.secrets` instead."""
        self._file, self._run, self._owner = file, run, owner

    def keep(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return the secret of this name, which `make` draws the first time; it is on disk by then.

        Within `Ledger.together` it is on disk when that block ends.

        Args:
            name: At most 200 printable characters.
            make: Draws at least one byte.

        Raises:
            WipedSecretError: It was wiped; none is made in its place.
            LedgerError: The run has no reservation, or the file cannot be used.
        """
        check_text("name", name, low=1, high=200)
        with self._file.transaction() as connection:
            add_secrets(connection)
            reserved, wiped = self._reserved(connection), self._is_wiped(connection, name)
            if reserved is None:
                raise LedgerError(
                    f"run {self._run!r} has no reservation in {self._file.path}; reserve its plan before it "
                    "keeps a secret."
                )
            if wiped:
                raise WipedSecretError(f"the secret {name!r} of run {self._run!r} was wiped.")
            stored = self._read(connection, reserved, name)
            if stored is not None:
                return stored
            value = make()
            check_bytes("a secret", value)
            row = [self._run, self._owner, name]
            connection.execute(
                "INSERT INTO secrets VALUES (?, ?, ?, ?, ?)", [*row, seal(reserved, [*row, value]), value]
            )
        return value

    def find(self, name: str) -> bytes | None:
        """Return the secret of this name; None where there is none, or none any more."""
        with self._file.transaction(write=False) as connection:
            reserved = self._reserved(connection)
            if reserved is None or not has_secrets(connection) or self._is_wiped(connection, name):
                return None
            return self._read(connection, reserved, name)

    def lacking(self, names: Iterable[str]) -> list[str]:
        """Return those of these names under which nothing has ever been kept, wiped since or not."""
        with self._file.transaction(write=False) as connection:
            if not has_secrets(connection):
                return list(names)
            kept = connection.execute(
                "SELECT name FROM secrets WHERE run = ? AND owner = ?", [self._run, self._owner]
            )
            found = {name for (name,) in kept}
            return [name for name in names if name not in found and not self._is_wiped(connection, name)]

    def wipe(self, prefix: str = "") -> None:
        """Delete all secrets whose names begin so, for good: they are overwritten in the file.

        No process finds them afterwards, and none of these names is ever kept again. Copies of the file, and
        what a disk keeps of blocks that it has replaced, are out of reach.
        """
        key = [self._run, self._owner]
        with self._file.transaction() as connection:
            if self._reserved(connection) is None:
                return
            add_secrets(connection)
            if self._is_wiped(connection, prefix):
                return
            connection.execute("PRAGMA secure_delete = ON")  # pages that become free, too
            try:
                connection.execute("INSERT INTO wiped VALUES (?, ?, ?)", [*key, prefix])
                connection.execute(
                    "DELETE FROM secrets WHERE run = ? AND owner = ? AND substr(name, 1, length(?)) = ?",
                    [*key, prefix, prefix],
                )
            finally:
                connection.execute("PRAGMA secure_delete = FAST")

    def _reserved(self, connection: sqlite3.Connection) -> bytes | None:
        """Return the seal of the run's reservation, which seals its secrets too."""
        found = connection.execute("SELECT seal FROM reservations WHERE run = ?", [self._run]).fetchone()
        return None if found is None else found[0]

    def _is_wiped(self, connection: sqlite3.Connection, name: str) -> bool:
        """Whether all names that begin as this one does were wiped."""
        found = connection.execute(
            "SELECT 1 FROM wiped WHERE run = ? AND owner = ? AND substr(?, 1, length(prefix)) = prefix",
            [self._run, self._owner, name],
        )
        return found.fetchone() is not None

    def _read(self, connection: sqlite3.Connection, reserved: bytes, name: str) -> bytes | None:
        """Return a secret, checked."""
        row = [self._run, self._owner, name]
        found = connection.execute(
            "SELECT value, seal FROM secrets WHERE run = ? AND owner = ? AND name = ?", row
        ).fetchone()
        if found is None:
            return None
        if seal(reserved, [*row, found[0]]) != found[1]:
            raise LedgerError(
                f"{self._file.path} is damaged: the secret {name!r} of run {self._run!r} does not fit its "
                "seal."
            )
        return bytes(found[0])
