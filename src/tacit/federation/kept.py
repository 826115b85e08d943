"""What is kept of a run between rounds, as the bytes that a store keeps with every answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from tacit.errors import LedgerError
from tacit.federation.contribution import States
from tacit.federation.correlated import CorrelatedStep
from tacit.federation.plan import Plan
from tacit.mechanisms import Past
from tacit.numerics import Array
from tacit.privacy import TrustModel

__all__ = ["Keeper", "Kept"]


@dataclass
class Kept:
    """What one round takes over from those before it, and changes.

    Attributes:
        states: Of stateful statistics, by name.
        pasts: Of kinds of rounds with correlated noise, by their index.
    """

    states: States
    pasts: dict[int, Past]


class _Past(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A `Past` as bytes."""

    next: int
    rounds: list[int]
    kind: Literal["<i8", "<f8"]
    sums: bytes
    released: bytes


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(dict[str, tuple[int, bytes]])
_PAST_DECODER = msgspec.msgpack.Decoder(_Past)
_PAST_VERSION = 1


class Keeper:
    """Reads and writes it.

    Attributes:
        idle: Whether the plan keeps nothing.

    Args:
        plan: What is asked.
        adds: Under which trust model whoever keeps it adds the noise: else nothing is kept of noise.
        statistics: Version and size of what each stateful statistic keeps of a unit, by name.
        units: Number of units.
        who: Whose it is, for messages.
    """

    def __init__(
        self,
        plan: Plan,
        adds: TrustModel,
        *,
        statistics: dict[str, tuple[int, int]],
        units: int,
        who: str,
    ) -> None:
        self._statistics, self._units, self._who = statistics, units, who
        # No statistic has a line break in its name.
        self._kinds = {
            f"\n{kind}": (kind, step)
            for kind, (step, _) in enumerate(plan.kinds)
            if isinstance(step, CorrelatedStep) and step.trust is adds
        }
        self.idle = not (self._statistics or self._kinds)

    def read(self, stored: bytes | None) -> Kept:
        """Return what was stored last; zeros and nothing at the start.

        Raises:
            LedgerError: It is of other statistics, versions, data or rounds.
        """
        if self.idle:
            return Kept({}, {})
        if stored is None:
            zeros = {name: np.zeros((self._units, size)) for name, (_, size) in self._statistics.items()}
            dims = {kind: step.measures[0].estimator.dim for kind, step in self._kinds.values()}
            return Kept(zeros, {kind: Past.nothing(dim) for kind, dim in dims.items()})
        kept = _DECODER.decode(stored)
        pasts = {kind: self._past(step, kept.pop(name, None)) for name, (kind, step) in self._kinds.items()}
        sizes = {
            name: (version, 8 * self._units * size) for name, (version, size) in self._statistics.items()
        }
        if {name: (version, len(data)) for name, (version, data) in kept.items()} != sizes:
            raise self._strange()
        shapes = {name: (self._units, size) for name, (_, size) in self._statistics.items()}
        return Kept({name: _array(data, "<f8", shapes[name]) for name, (_, data) in kept.items()}, pasts)

    def write(self, kept: Kept) -> bytes | None:
        """Return the bytes; None where a plan keeps nothing."""
        if self.idle:
            return None
        found = {
            name: (version, kept.states[name].astype("<f8").tobytes())
            for name, (version, _) in self._statistics.items()
        }
        for name, (kind, _) in self._kinds.items():
            past = kept.pasts[kind]
            letter: Literal["<i8", "<f8"] = "<i8" if past.sums.dtype == np.int64 else "<f8"
            made = _Past(
                past.next,
                past.rounds.tolist(),
                letter,
                past.sums.astype(letter).tobytes(),
                past.released.astype("<f8").tobytes(),
            )
            found[name] = (_PAST_VERSION, _ENCODER.encode(made))
        return _ENCODER.encode(found)

    def _past(self, step: CorrelatedStep, stored: tuple[int, bytes] | None) -> Past:
        """Return what rounds with correlated noise left, or refuse what cannot be theirs."""
        if stored is None or stored[0] != _PAST_VERSION:
            raise self._strange()
        found, dim = _PAST_DECODER.decode(stored[1]), step.measures[0].estimator.dim
        shape = (len(found.rounds), dim)
        if len(found.rounds) >= step.bands or {len(found.sums), len(found.released)} != {8 * shape[0] * dim}:
            raise self._strange()
        return Past(
            found.next,
            np.array(found.rounds, dtype=np.int64),
            _array(found.sums, found.kind, shape),
            _array(found.released, "<f8", shape),
        )

    def _strange(self) -> LedgerError:
        """Return the refusal of what another run has kept."""
        return LedgerError(
            f"what {self._who} has kept is of other statistics, versions or data than the run's."
        )


def _array(data: bytes, letter: str, shape: tuple[int, int]) -> Array:
    """Return an array of its own, in the numbers of this machine."""
    dtype = np.int64 if letter == "<i8" else np.float64
    return np.frombuffer(data, dtype=letter).reshape(shape).astype(dtype)
