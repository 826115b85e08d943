"""Reports of one number for each coordinate, which the server adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError
from tacit.means.base import Error
from tacit.means.message import HEADER_BYTES, Message, Round
from tacit.means.violations import Ball
from tacit.numerics import Array

__all__ = ["Vectors"]


@dataclass(frozen=True, kw_only=True)
class Vectors:
    """A randomizer whose reports are vectors; see `tacit.means.randomized.RowRandomizer`.

    Attributes:
        ball: Where rows count as they are.
        dim: Number of coordinates.
        level: Pure level of a report.
        law: Name of its law in `tacit.privacy.shuffling.RANDOMIZERS`.
        dtype: On the wire: a float type, for one message a row, or int64, for one message about all rows.
        width: Bits of a whole number; 0 for floats.
        steps: What a radius is in the units of a report.
        whole: Whether floats hold whole numbers, exactly.
        drawn: Maps rows of the unit ball, shape (k, dim), to reports of that shape.
        worst: Largest error of the report on one row, in its units.
        numbers_at_once: Numbers that are simulated at once.
    """

    ball: Ball
    dim: int
    level: float
    law: str
    dtype: type[np.generic]
    drawn: Callable[[Array, np.random.Generator], Array]
    worst: Callable[[], Error]
    width: int = 0
    steps: int = 1
    whole: bool = False
    numbers_at_once: int = 2**20

    @property
    def exact(self) -> bool:
        """Whether reports are whole numbers."""
        return self.width > 0 or self.whole

    @property
    def levels(self) -> Array:
        """The level of the one report."""
        return np.array([self.level])

    @property
    def rows_at_once(self) -> int:
        """Rows that are simulated at once."""
        return max(1, self.numbers_at_once // self.dim)

    def write(self, rows: Array, round: Round, rng: np.random.Generator) -> list[tuple[Array, int]]:
        """Write all reports."""
        reports = self.drawn(rows, rng).astype(self.dtype, copy=False)
        return [(reports.ravel(), self.width)] if self.width else [(report, 0) for report in reports]

    def read(self, messages: list[Message]) -> tuple[Array, int]:
        """Add the reports."""
        for message in messages:
            payload = message.payload
            right = payload.dtype == self.dtype and payload.ndim == 1 and message.width == self.width
            whole = payload.size % self.dim == 0 if self.width else payload.size == self.dim
            if not right or not whole or not np.isfinite(payload).all():
                raise ParameterError(
                    f"a message must hold rows of {self.dim} finite numbers of "
                    f"{np.dtype(self.dtype).name}, got {payload.dtype} of shape {payload.shape}."
                )
        reports = np.concatenate([message.payload for message in messages]).reshape(-1, self.dim)
        return reports.sum(axis=0, dtype=np.int64 if self.width else np.float64), len(reports)

    def total(self, held: Array, rows: int, round: Round) -> Array:
        """Return the sum."""
        return held

    def simulate(self, parts: Iterable[Array], round: Round, rng: np.random.Generator) -> Array:
        """Randomise and add part by part."""
        total = np.zeros(self.dim)
        for part in parts:
            total += self.drawn(part, rng).sum(axis=0)
        return total

    def unit(self, radius: float) -> float:
        """Return the unit of a report."""
        return radius / self.steps

    def bits(self, rows: int) -> int:
        """Return the bits of all messages."""
        if self.width:
            return 8 * (HEADER_BYTES + (rows * self.dim * self.width + 7) // 8)
        return 8 * rows * (HEADER_BYTES + np.dtype(self.dtype).itemsize * self.dim)

    def error(self, n: int, radius: float) -> Error:
        """Return the largest error."""
        one, unit = self.worst(), self.unit(radius)
        return Error(variance=one.variance * unit**2 / n, bias=one.bias * unit, exact=one.exact)
