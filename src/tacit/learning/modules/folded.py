"""Rows that are sums over positions or over calls of layers; and which form the rows of a parameter have."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from tacit.learning.modules.parts import (
    Dense,
    Outer,
    ParameterRows,
    Product,
    Scattered,
    Segment,
    squares,
    times,
    weighted,
)

__all__ = ["Folded", "combined", "difference"]

_AT_ONCE = 2**18
"""Numbers of rows that are formed at once: they stay in the cache."""

_WRITTEN = 8
"""Multiplications that take as long as writing and reading a number of a row."""

_KEPT = 2
"""Rows that are kept have so many times the numbers of their factors at most."""

_GAMMA = 2.0**-51
"""Four roundings of float64."""


@dataclass
class Folded:
    """Rows that are sums over positions, and over calls of layers that share a weight.

    Attributes:
        calls: One or more.
    """

    calls: Sequence[Outer | Product | Scattered]

    def squared(self, *, exact: bool) -> Any:
        """Return the squared norm of each row."""
        if exact or not self._ghost:
            return torch.cat([squares(rows) for _, rows in self._slices()])
        return torch.cat([self._ghosts(part) for part in self._parts(self._positions**2 * self._groups)])

    def add(self, totals: Any, factors: Any, segments: Sequence[Segment]) -> None:
        """Add rows times factors to totals of silos."""
        plain = self.calls[0].plain
        if totals.dtype == torch.float64 or self._kept is not None:
            found = torch.zeros_like(totals)
            for part, rows in self._slices():
                cut = [(silo, _within(one, part)) for silo, one in segments]
                weighted(found, rows, factors[part], cut)
            totals += plain(found)
            return
        calls = [call.scaled(factors) for call in self.calls]
        for silo, segment in segments:
            for call in calls:
                for part in _parts(segment, self._wide):
                    totals[silo] += plain(_folded(call, part))

    def rows(self, part: slice) -> Any:
        """Return the rows."""
        return self.calls[0].plain(self._formed(part))

    def _formed(self, part: slice) -> Any:
        """Return the rows in the order of the calls."""
        rows: Any = None
        for call in sorted(self.calls, key=lambda one: not isinstance(one, Scattered)):
            rows = call.added(rows, part)
        return rows.flatten(1)

    def scaled(self, factors: Any) -> Folded:
        """Return the rows times factors."""
        return Folded([call.scaled(factors) for call in self.calls])

    @property
    def _n(self) -> int:
        return len(self.calls[0].slopes)

    @property
    def _groups(self) -> int:
        return self.calls[0].groups

    @cached_property
    def _positions(self) -> int:
        return sum(call.positions for call in self.calls)

    @cached_property
    def _size(self) -> int:
        p, d = self.calls[0].sides
        return self._groups * p * d

    @property
    def _ghost(self) -> bool:
        """Whether products of all pairs of positions take less than rows."""
        (p, d), at = self.calls[0].sides, self._positions
        return 2 * at * at * (p + d) < (at + _WRITTEN) * p * d  # ghosts are in float64: twice

    def _parts(self, size: int) -> Iterator[slice]:
        """Yield slices of records with so many numbers each."""
        return _parts(slice(0, self._n), max(size, self._wide))

    @cached_property
    def _wide(self) -> int:
        """Numbers of a record's factors."""
        return (
            sum(
                call.positions * (call.groups * sum(call.sides))
                for call in self.calls
                if not isinstance(call, Scattered)
            )
            or 1
        )

    @cached_property
    def _kept(self) -> list[tuple[slice, Any]] | None:
        """All rows, where they are not much more than their factors; else they are made anew when needed."""
        if self._size > _KEPT * self._wide:
            return None
        return [(part, self._formed(part)) for part in self._parts(self._size)]

    def _slices(self) -> Iterator[tuple[slice, Any]]:
        """Yield all rows, few at once."""
        if self._kept is not None:
            yield from self._kept
        else:
            for part in self._parts(self._size):
                yield part, self._formed(part)

    def _ghosts(self, part: slice) -> Any:
        """Return squared norms as sums over pairs of positions, shape (n,), float64."""
        total: Any = 0.0
        size: Any = 0.0
        factors = [_factors(call, part) for call in self.calls]
        for k, (left, right) in enumerate(factors):
            size = size + _frobenius(left) * _frobenius(right)
            for j, (other, told) in enumerate(factors[: k + 1]):
                pairs = (_gram(left, other) * (right @ told.transpose(2, 3))).sum(dim=(1, 2, 3))
                total = total + pairs * (1 if j == k else 2)
        # What cancels is known but to the rounding of what it is made of.
        roundings = self._positions + sum(self.calls[0].sides)
        return total.clamp(min=0) + roundings * _GAMMA * size**2


def combined(parts: Sequence[Any]) -> ParameterRows:
    """Return the rows of one parameter from what calls of layers add to them.

    Args:
        parts: `Outer`, `Scattered`, `Dense` or `Product`, one or more.
    """
    if all(isinstance(part, Dense) for part in parts):
        return Dense(sum(part.values for part in parts[1:]) + parts[0].values) if parts[1:] else parts[0]
    if all(isinstance(part, Outer | Scattered) for part in parts):
        if len(parts) == 1:
            (only,) = parts
            if isinstance(only, Scattered):
                return only
            if only.positions == 1:
                left, right = only.factors(slice(None))
                return Product(left[:, :, 0], only.plain(right[:, :, 0].flatten(1)).view_as(right[:, :, 0]))
        if all(isinstance(part, Scattered) for part in parts):
            ids, slopes = (torch.cat([getattr(one, name) for one in parts], 1) for name in ("ids", "slopes"))
            return Scattered(ids, slopes, parts[0].size)
        return Folded(parts)
    everything = slice(None)
    rows = [combined([part]).rows(everything) for part in parts]
    return Dense(sum(rows[1:]) + rows[0])


def difference(first: ParameterRows, second: ParameterRows, factors: tuple[Any, Any]) -> ParameterRows:
    """Return the rows of one parameter at a point, times factors, less those at another, times others.

    Args:
        first: Of n records.
        second: Of the same records.
        factors: Two of shape (n,); where one is 0, so is its row.
    """
    here, there = factors
    if isinstance(first, Product) and isinstance(second, Product):
        # What a first layer is told is the same at both points: one outer product again. No record says so.
        if first.right.data_ptr() == second.right.data_ptr() and first.right.shape == second.right.shape:
            return Product(times(first.left, here) - times(second.left, there), first.right)
        return Folded([first.scaled(here), second.scaled(-there)])
    one, other = first.scaled(here), second.scaled(-there)
    if isinstance(one, Dense) and isinstance(other, Dense):
        return Dense(one.values + other.values)
    if isinstance(one, Scattered) and isinstance(other, Scattered):
        return Scattered(
            torch.cat([one.ids, other.ids], 1), torch.cat([one.slopes, other.slopes], 1), one.size
        )
    calls = [call for part in (one, other) for call in getattr(part, "calls", [part])]
    return Folded(calls)


def _parts(segment: slice, size: int) -> Iterator[slice]:
    """Yield slices of a segment of records that have so many numbers each: few at once."""
    step = 2 ** (max(1, _AT_ONCE // size).bit_length() - 1)
    for start in range(segment.start, segment.stop, step):
        yield slice(start, min(start + step, segment.stop))


def _within(segment: slice, part: slice) -> slice:
    """Return where a segment is in a part of the records."""
    start, stop = max(segment.start, part.start), min(segment.stop, part.stop)
    return slice(start - part.start, max(stop, start) - part.start)


def _factors(call: Outer | Product | Scattered, part: slice) -> tuple[Any, Any]:
    """Return both factors in float64; the left one of an embedding is its numbers and their count."""
    if isinstance(call, Scattered):
        return (call.ids[part], call.size), call.slopes[part, None].double()
    left, right = call.factors(part)
    return left.double(), right.double()


def _frobenius(factor: Any) -> Any:
    """Return the norm of a record's factor, shape (n,)."""
    if isinstance(factor, tuple):
        return float(factor[0].shape[1]) ** 0.5
    return torch.linalg.vector_norm(factor.flatten(1), dim=1)


def _gram(left: Any, other: Any) -> Any:
    """Return the products of all pairs of positions, shape (n, groups, positions, positions)."""
    if isinstance(left, tuple) and isinstance(other, tuple):
        return (left[0][:, :, None] == other[0][:, None, :])[:, None].double()
    if isinstance(left, tuple):
        return _gram(other, left).transpose(2, 3)
    if isinstance(other, tuple):
        ids = other[0][:, None, None, :].expand(-1, 1, left.shape[2], -1)
        return left.gather(3, ids)
    return left @ other.transpose(2, 3)


def _folded(call: Any, part: slice) -> Any:
    """Return the sum over records and positions at once, shape (size,)."""
    if isinstance(call, Scattered):
        total = torch.zeros(1, *call.sides, dtype=call.slopes.dtype, device=call.slopes.device).flatten(1)
        call.add(total, torch.ones(len(call.ids), device=total.device), [(0, part)])
        return total[0]
    left, right = call.factors(part)
    if left.shape[1] == 1:
        return (left.flatten(0, 2).T @ right.flatten(0, 2)).flatten()
    return torch.einsum("ngtp,ngtd->gpd", left, right).flatten()
