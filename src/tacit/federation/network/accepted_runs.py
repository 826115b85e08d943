"""The runs that a silo has accepted, on disk: after a restart it goes on with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from tacit.errors import LedgerError
from tacit.federation.network.private_files import make_private_folder
from tacit.federation.protocols import Memory
from tacit.federation.store import LastAnswer
from tacit.ledger.private_files import replace_private

__all__ = ["AcceptedRuns", "AnswerFile"]


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
            raise LedgerError(
                f"{path} cannot be read: what the silo has kept is lost. Put the newest one back, or name a "
                "new run."
            ) from error

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
                replace_private(self._path, self.park())
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
        replace_private(self._file(run, "accepted"), request)

    def find(self, run: str) -> bytes | None:
        """Return the request by which a run was accepted; None where it was not, or was closed."""
        return _content(self._file(run, "accepted"))

    def memory(self, run: str) -> Memory:
        """Return where a silo without a ledger keeps the secret of a run; it outlives the run."""
        path = self._file(run, "secret")

        def remembered(make: Callable[[], bytes]) -> bytes:
            found = _content(path)
            if found is None:
                found = make()
                replace_private(path, found)
            return found

        return remembered

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


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
