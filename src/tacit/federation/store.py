"""Where answers are kept: stored before they are sent, the same bytes for the same query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import RLock
from typing import Protocol

import msgspec
import numpy as np

from tacit.errors import LARGEST_COUNT, RefusalError
from tacit.federation.protocols import Memory, Secrets
from tacit.ledger import Ledger, WipedSecretError
from tacit.numerics import Array

__all__ = [
    "AnswerStore",
    "AnsweredError",
    "LastAnswer",
    "LedgerStore",
    "MemorySecrets",
    "SecretOf",
    "from_bytes",
    "to_bytes",
]

_SECRET_STEP = LARGEST_COUNT
"""Where the ledger keeps a run's secret: a plan has fewer rounds, so no query can ask for it."""


class AnsweredError(RefusalError):
    """A step was answered at another point, or for another circle."""


class AnswerStore(Protocol):
    """Answers of one run, and the secret that all processes of the run share."""

    def find(self, step: int, digest: bytes) -> bytes | None:
        """Return the stored answer, None if the step is new; refuse the step at another point."""
        ...

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None = None) -> bytes:
        """Store an answer, and with it what is kept from now on; return what may be sent.

        Where the step has an answer already, that one is returned, and both arguments are dropped; a step
        that was answered at another point is refused.
        """
        ...

    def state(self) -> bytes | None:
        """Return what was kept last, None at the start; it never leaves the silo."""
        ...

    def secret(self, make: Callable[[], bytes]) -> bytes:
        """Return the secret of the run, which `make` draws the first time; it never leaves the silo."""
        ...

    @property
    def secrets(self) -> Secrets:
        """What else the run keeps secret, by name, in the same place as its answers."""
        ...


class MemorySecrets:
    """Keeps named secrets in this process, for simulations."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}
        self._wiped: list[str] = []
        self._lock = RLock()

    def keep(self, name: str, make: Callable[[], bytes]) -> bytes:
        """Return the secret of this name, which `make` draws the first time; refuse one that was wiped."""
        with self._lock:
            if name.startswith(tuple(self._wiped)):
                raise WipedSecretError(f"the secret {name!r} was wiped.")
            if name not in self._kept:
                self._kept[name] = make()
            return self._kept[name]

    def find(self, name: str) -> bytes | None:
        """Return the secret of this name; None where there is none, or none any more."""
        return self._kept.get(name)

    def wipe(self, prefix: str = "") -> None:
        """Forget all secrets whose names begin so, and keep none of these names again."""
        with self._lock:
            # Without what the new one covers: there would be as many as a run has blocks.
            self._wiped = [*(one for one in self._wiped if not one.startswith(prefix)), prefix]
            self._kept = {name: kept for name, kept in self._kept.items() if not name.startswith(prefix)}

    def park(self) -> tuple[dict[str, bytes], list[str]]:
        """Return all that is kept."""
        with self._lock:
            return dict(self._kept), list(self._wiped)

    def wake(self, kept: dict[str, bytes], wiped: list[str]) -> None:
        """Keep from now on what `park` returned."""
        with self._lock:
            self._kept, self._wiped = kept, wiped


class LastAnswer:
    """Keeps the newest answer only, for simulations: memory does not grow with the number of rounds.

    Args:
        memory: Keeps the secret for later processes; None keeps it for this one.
    """

    def __init__(self, memory: Memory | None = None) -> None:
        self._last: tuple[int, bytes, bytes] | None = None
        self._memory = memory
        self._secret: bytes | None = None
        self._state: bytes | None = None
        self._secrets = MemorySecrets()
        self._lock = RLock()  # what `keep` compares must not change before it stores

    def find(self, step: int, digest: bytes) -> bytes | None:
        """Return the answer if it is the newest; refuse earlier steps, whose answers are gone."""
        with self._lock:
            if self._last is None or step > self._last[0]:
                return None
            if step == self._last[0] and digest == self._last[1]:
                return self._last[2]
        raise _answered(step)

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None = None) -> bytes:
        """Replace the newest answer; return that of another thread which was faster with the same query."""
        with self._lock:
            stored = self.find(step, digest)
            if stored is None:
                stored = answer
                self._last = (step, digest, answer)
                self._state = self._state if state is None else state
            return stored

    def state(self) -> bytes | None:
        """Return what was kept last."""
        with self._lock:
            return self._state

    def secret(self, make: Callable[[], bytes]) -> bytes:
        """Return the secret of this process, or of all that share the memory."""
        with self._lock:
            if self._secret is None:
                self._secret = make() if self._memory is None else self._memory(make)
            return self._secret

    @property
    def secrets(self) -> MemorySecrets:
        """What else the run keeps secret, in this process."""
        return self._secrets

    @property
    def drawn(self) -> bytes | None:
        """The secret, if there is one; it never leaves who simulates the silo."""
        return self._secret

    def park(self) -> bytes:
        """Return all that is kept, for `wake` in another process of one simulation."""
        with self._lock:
            return msgspec.msgpack.encode((self._last, self._secret, self._state, *self._secrets.park()))

    def wake(self, parked: bytes) -> None:
        """Keep from now on what `park` returned."""
        with self._lock:
            self._last, self._secret, self._state, kept, wiped = _PARKED.decode(parked)
            self._secrets.wake(kept, wiped)


class LedgerStore:
    """Keeps all answers of one run in the ledger of the data set."""

    def __init__(self, ledger: Ledger, run: str) -> None:
        self._ledger, self._run = ledger, run
        self._answered = ledger.answered(run)

    def find(self, step: int, digest: bytes) -> bytes | None:
        """Return the answer that was stored by this store, or by whichever process before it was made.

        One that another process stores meanwhile is what `keep` returns.
        """
        stored = self._ledger.answer(self._run, step) if step in self._answered else None
        if stored is None:
            return None
        if stored[0] != digest:
            raise _answered(step)
        return stored[1]

    def keep(self, step: int, digest: bytes, answer: bytes, state: bytes | None = None) -> bytes:
        """Store the answer and the state in one transaction, on disk before this returns.

        Where another process was faster with the same query, its answer is the one that is sent.
        """
        stored = self._ledger.store_answer(self._run, step, query_digest=digest, answer=answer, state=state)
        self._answered.add(step)
        return stored

    def state(self) -> bytes | None:
        """Return what was kept last, whichever process kept it."""
        return self._ledger.state(self._run)

    def secret(self, make: Callable[[], bytes]) -> bytes:
        """Return the secret that the first process of the run stored, before any answer that used it."""
        return _kept(self._ledger, self._run, _SECRET_STEP, make)

    @property
    def secrets(self) -> Secrets:
        """What else the run keeps secret, in the same file as its answers."""
        return self._ledger.secrets(self._run)


@dataclass(frozen=True)
class SecretOf:
    """The secret of one silo's run, kept by the trusted server, as such a silo has no ledger of its own.

    Attributes:
        ledger: The server's.
        run: Name of the run.
        party: Index of the silo in the run.
    """

    ledger: Ledger
    run: str
    party: int

    def __call__(self, make: Callable[[], bytes]) -> bytes:
        """Return the secret that the first process of the run stored."""
        return _kept(self.ledger, self.run, _SECRET_STEP - 1 - self.party, make)


def _kept(ledger: Ledger, run: str, step: int, make: Callable[[], bytes]) -> bytes:
    """Return what is stored at a step that no query can ask for; the first time, what `make` draws."""
    stored = ledger.answer(run, step)
    if stored is not None:
        return stored[1]
    return ledger.store_answer(run, step, query_digest=b"secret", answer=make())


def _answered(step: int) -> AnsweredError:
    """Return the refusal of a step that was answered at another point."""
    return AnsweredError(
        f"step {step} has been answered at another point or for another party; a step is answered once. Go "
        "on with the settings that the run began with, or name a new run."
    )


_PARKED = msgspec.msgpack.Decoder(
    tuple[tuple[int, bytes, bytes] | None, bytes | None, bytes | None, dict[str, bytes], list[str]]
)
_MEANS = msgspec.msgpack.Decoder(tuple[bytes, ...])


def to_bytes(means: tuple[Array, ...]) -> bytes:
    """Write means as a store keeps them."""
    return msgspec.msgpack.encode(tuple(mean.astype("<f8").tobytes() for mean in means))


def from_bytes(data: bytes) -> tuple[Array, ...]:
    """Read what `to_bytes` wrote."""
    return tuple(np.frombuffer(mean, dtype="<f8").astype(np.float64) for mean in _MEANS.decode(data))
