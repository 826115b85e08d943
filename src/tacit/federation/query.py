"""What a server asks of silos, and what silos compute from."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from tacit.numerics import Array, IntArray

__all__ = ["Ask", "FusedStatistic", "Query", "Statistic", "Units"]


@dataclass(frozen=True, slots=True)
class Query:
    """Which round, at which point, and how long a row may be.

    Attributes:
        step: Number of the round in the plan.
        at: Named public arrays that the statistics are evaluated at.
        radius: Norm bound of a row, one per statistic of the step.
    """

    step: int
    at: Mapping[str, Array]
    radius: tuple[float, ...]

    def digest(self) -> bytes:
        """Return 16 bytes that differ for any other query."""
        state = hashlib.blake2b(digest_size=16)
        state.update(struct.pack(f">qI{len(self.radius)}d", self.step, len(self.radius), *self.radius))
        for name in sorted(self.at):
            array = np.ascontiguousarray(self.at[name])
            state.update(f"{name}|{array.dtype.str}|{array.shape}|".encode())
            state.update(array.data)
        return state.digest()


class Ask(Protocol):
    """All that an algorithm sees of the world."""

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Return the estimated mean of every statistic of round `step` at a point."""
        ...


class Units(Protocol):
    """The protected units of a silo: records, or persons with all their records."""

    def __len__(self) -> int:
        """Return the number of units; public."""
        ...

    def take(self, index: IntArray) -> Self:
        """Return the units of a batch."""
        ...


class Statistic(Protocol):
    """What one unit contributes to a mean. A plan names it; code is never shipped."""

    def __call__(self, units: Any, at: Mapping[str, Array]) -> Array:
        """Return one row per unit, shape (k, dim); clipping happens outside."""
        ...


@runtime_checkable
class FusedStatistic(Protocol):
    """A statistic that can add up its clipped rows without materialising them."""

    def clipped_sum(self, units: Any, at: Mapping[str, Array], radius: float) -> Array:
        """Return the sum of rows clipped to an L2 ball, shape (dim,)."""
        ...
