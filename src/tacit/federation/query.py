"""What a server asks of silos, and what silos compute from."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from tacit.errors import RefusalError
from tacit.numerics import Array, IntArray

__all__ = ["Ask", "FusedStatistic", "Query", "Statistic", "Units"]

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True)
class Query:
    """Which round, at which point, and how long a row may be.

    A query keeps read-only copies of its points, so what depends on them is computed once however many silos
    it goes to.

    Attributes:
        step: Number of the round in the plan.
        at: Named public arrays that the statistics are evaluated at.
        radius: Norm bound of a row, one per statistic of the step.
    """

    step: int
    at: Mapping[str, Array]
    radius: tuple[float, ...]

    def __post_init__(self) -> None:
        points: Any = self.at  # from a server: not what the annotations say until it is checked
        if isinstance(points, Mapping):
            object.__setattr__(self, "at", {name: _frozen(array) for name, array in points.items()})

    def check(self, *, statistics: int, max_radius: float) -> None:
        """Refuse a query that no algorithm asks.

        Args:
            statistics: Number of statistics of the step.
            max_radius: Largest radius of the plan.

        Raises:
            RefusalError: A point that is not a finite array of float32 or float64, or a radius that is not a
                number from 0 to `max_radius`.
        """
        radii: Any = self.radius
        if not isinstance(radii, tuple) or len(radii) != statistics:
            raise RefusalError(
                f"radius must be a tuple of one number per statistic ({statistics}), got {radii!r}."
            )
        for radius in radii:
            number = isinstance(radius, int | float | np.floating) and not isinstance(radius, bool)
            if not number or not 0 <= radius <= max_radius:
                raise RefusalError(f"radius must be a number in [0, {max_radius!r}], got {radius!r}.")
        if self._fault is not None:
            raise RefusalError(self._fault)

    def digest(self, *, party: int = 0) -> bytes:
        """Return 16 bytes that differ for any other query, and for any other party."""
        return hashlib.blake2b(self._content + struct.pack(">q", party), digest_size=16).digest()

    @cached_property
    def _fault(self) -> str | None:
        """What is wrong with the points; None where nothing is."""
        points: Any = self.at
        if not isinstance(points, Mapping):
            return f"at must map names to arrays, got {type(points).__name__}."
        for name, array in points.items():
            floats = isinstance(array, np.ndarray) and array.dtype in _FLOATS
            if not isinstance(name, str) or not floats or not np.isfinite(array).all():
                return f"the point {name!r} must be an array of finite float32 or float64."
        return None

    @cached_property
    def _content(self) -> bytes:
        """32 bytes that differ for any other step, point or radius."""
        head = [self.step, len(self.radius)]
        state = hashlib.blake2b(struct.pack(f">2q{len(self.radius)}d", *head, *self.radius), digest_size=32)
        for name in sorted(self.at):
            array = self.at[name]
            about = f"{name}|{array.dtype.str}|{array.shape}".encode()
            # With lengths first, no name can pass for a part of another point.
            state.update(struct.pack(">2q", len(about), array.nbytes) + about)
            state.update(np.ascontiguousarray(array).data)
        return state.digest()


def _frozen(array: Any) -> Any:
    """Return a read-only copy of an array; anything else as it is, for `check` to refuse."""
    if not isinstance(array, np.ndarray):
        return array
    copy = array.copy()
    copy.setflags(write=False)
    return copy


class Ask(Protocol):
    """All that an algorithm sees of the world."""

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Return the estimated mean of every statistic of round `step` at a point."""
        ...


class Units(Protocol):
    """The protected units of a silo: records, or persons with all their records."""

    def __len__(self) -> int:
        """Return the number of units."""
        ...

    def take(self, index: IntArray) -> Self:
        """Return the units of a batch, which may be empty."""
        ...


class Statistic(Protocol):
    """What one unit contributes to a mean. A plan names it; code is never shipped.

    A row may depend on its own unit and the point only, never on the other units of the batch, nor, to the
    last bit, on its place among them: that is what a price per unit rests on. A unit that it fails on counts
    as zero.
    """

    def __call__(self, units: Any, at: Mapping[str, Array]) -> Array:
        """Return one row per unit, shape (k, dim), k >= 0; clipping happens outside."""
        ...


@runtime_checkable
class FusedStatistic(Protocol):
    """A statistic that can add up its clipped rows without materialising them.

    Used only for batches in which no unit changes its place when another is replaced or blanked out.
    """

    def clipped_sum(self, units: Any, at: Mapping[str, Array], radius: float) -> Array:
        """Return the sum of rows clipped to an L2 ball, shape (dim,).

        Where that is not finite, the rows themselves are used, and a bad one counts as zero.
        """
        ...
