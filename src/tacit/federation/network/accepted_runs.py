"""The runs that a silo has accepted, on disk: after a restart it goes on with them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

from tacit.federation.network.private_files import make_private_folder
from tacit.federation.protocols import Memory
from tacit.ledger.private_files import replace_private

__all__ = ["AcceptedRuns"]


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
