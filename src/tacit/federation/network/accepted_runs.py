"""The runs that a silo has accepted, on disk: after a restart it goes on with them.

Every file begins with a digest of its content and name: one that was damaged, or is of another run, would be
taken for what this run has kept.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from tacit.errors import LedgerError
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.protocols import Memory
from tacit.federation.store import LastAnswer
from tacit.ledger.private_files import replace_private

__all__ = ["AcceptedRuns", "AnswerFile"]

_DIGEST: Final = 32
"""Bytes."""


class AnswerFile(LastAnswer):
    """The newest answer of a run and what a silo without a ledger keeps of its units, on disk.

    Args:
        path: The file, which is made with the first answer.
        memory: As for `LastAnswer`.

    Raises:
        LedgerError: The file is damaged.
    """

    def __init__(self, path: Path, memory: Memory | None = None) -> None:
        super().__init__(memory)
        self._path = path
        parked = _content(path)
        if parked is None:
            return
        try:
            self.wake(parked)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise _unreadable(path) from error

    @property
    def newest(self) -> int:
        """Step of the newest answer; -1 before the first."""
        return -1 if self._last is None else self._last[0]

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None = None) -> bytes:
        """Store the answer and the state together, on disk before this returns; else as `LastAnswer`."""
        with self._lock:
            before = self.park()
            stored = super().keep(step, digest, answer, state)
            try:
                _write(self._path, self.park())
            except BaseException:
                self.wake(before)
                raise
            return stored


class AcceptedRuns:
    """What was accepted of each run, as it came.

    Args:
        folder: Of their files; made where it is missing.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = make_private_folder(folder)

    def keep(self, run: str, request: bytes) -> None:
        """Write down the request by which a run was accepted, on disk before this returns."""
        _write(self._file(run, "accepted"), request)

    def find(self, run: str) -> bytes | None:
        """Return the request by which a run was accepted; None where it was not, or was closed.

        None also where the file is damaged or of another run: the server then proposes the plan again, which
        the ledger has paid for.
        """
        with suppress(LedgerError):
            return _content(self._file(run, "accepted"))
        return None

    def memory(self, run: str) -> Memory:
        """Return where a silo without a ledger keeps the secret of a run; it outlives the run.

        What it returns raises LedgerError where the file is damaged.
        """
        path = self._file(run, "secret")

        def remembered(make: Callable[[], bytes]) -> bytes:
            found = _content(path)
            if found is None:
                found = make()
                _write(path, found)
            return found

        return remembered

    def has_secret(self, run: str) -> bool:
        """Whether the secret of a run was drawn, and is there."""
        return self._file(run, "secret").exists()

    def answers(self, run: str) -> AnswerFile:
        """Return where a silo without a ledger keeps a state of its units; it outlives the run.

        Raises:
            LedgerError: The file is damaged.
        """
        return AnswerFile(self._file(run, "kept"), self.memory(run))

    def forget(self, run: str) -> None:
        """Forget what was accepted of a run; ledger and secret still know it."""
        self._file(run, "accepted").unlink(missing_ok=True)

    def _file(self, run: str, kind: str) -> Path:
        """Return the file of a run, whose name may be any text."""
        digest = hashlib.blake2b(run.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        return self._folder / f"{digest}.{kind}"


def _write(path: Path, data: bytes) -> None:
    """Put a file in the place of another one, as `_content` reads it."""
    replace_private(path, _digest(path, data) + data)


def _content(path: Path) -> bytes | None:
    """Return what was written; None where there is nothing."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        return None
    digest, data = found[:_DIGEST], found[_DIGEST:]
    if digest != _digest(path, data):
        raise _unreadable(path)
    return data


def _digest(path: Path, data: bytes) -> bytes:
    """Return what a file begins with."""
    return hashlib.blake2b(path.name.encode() + b"\0" + data, digest_size=_DIGEST).digest()


def _unreadable(path: Path) -> LedgerError:
    return LedgerError(
        f"{path} cannot be read: what the silo has kept is lost, or is of another run. Put the newest one "
        "back, or name a new run."
    )
