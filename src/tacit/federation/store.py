"""Where a silo keeps its answers: stored before they are sent, the same bytes for the same query."""

from __future__ import annotations

from typing import Protocol

from tacit.errors import RefusalError
from tacit.privacy.ledger import Ledger

__all__ = ["AnswerStore", "LastAnswer", "LedgerStore"]


class AnswerStore(Protocol):
    """Answers of one run, and the state that goes with them."""

    def find(self, step: int, digest: bytes) -> bytes | None:
        """Return the stored answer, None if the step is new; refuse the step at another point."""
        ...

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None) -> bytes:
        """Store an answer and the silo's state together; return what may be sent."""
        ...

    def state(self) -> bytes | None:
        """Return the state that was stored last."""
        ...


class LastAnswer:
    """Keeps the newest answer only, for simulations: memory does not grow with the number of rounds."""

    def __init__(self) -> None:
        self._last: tuple[int, bytes, bytes] | None = None

    def find(self, step: int, digest: bytes) -> bytes | None:
        """Return the answer if it is the newest; refuse earlier steps, whose answers are gone."""
        if self._last is None or step > self._last[0]:
            return None
        if step == self._last[0] and digest == self._last[1]:
            return self._last[2]
        raise _answered(step)

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None) -> bytes:  # noqa: ARG002
        """Replace the newest answer."""
        self._last = (step, digest, answer)
        return answer

    def state(self) -> bytes | None:
        """Return None: a simulated silo does not survive its process."""
        return None


class LedgerStore:
    """Keeps all answers of one run in the ledger of the data set."""

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run

    def find(self, step: int, digest: bytes) -> bytes | None:
        """Return the stored answer, whichever process stored it."""
        stored = self._ledger.answer(self._run, step)
        if stored is None:
            return None
        if stored[0] != digest:
            raise _answered(step)
        return stored[1]

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None) -> bytes:
        """Store the answer and the state in one transaction, on disk before this returns.

        Where another process was faster with the same query, its answer is the one that is sent.
        """
        return self._ledger.store_answer(self._run, step, query_digest=digest, answer=answer, state=state)

    def state(self) -> bytes | None:
        """Return the state that was stored last."""
        return self._ledger.state(self._run)


def _answered(step: int) -> RefusalError:
    """Return the refusal of a step that was answered at another point."""
    return RefusalError(f"step {step} has been answered at another point; a step is answered once.")
