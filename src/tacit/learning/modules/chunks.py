"""Chunks of records: one public size, filled up, and what is added up of each."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from tacit.numerics import Array

__all__ = ["NUMBERS", "Sizes", "Totals", "filled", "isolated", "taken"]

Said = TypeVar("Said")

NUMBERS = 2**24
"""Numbers that layers keep of a chunk of records, about."""

_CHUNK = 256
"""Records of a chunk at most, where nothing else is asked for."""

_LARGE = 1024
"""The same of small modules: it takes two thirds of the time of four."""

_SMALL = 32
"""Records of the least chunk."""

_FULL = 0.75
"""The share of a chunk from which on one that is filled up is faster than two."""

_ONE_BY_ONE = (
    "records go through the module one by one, which is slow: on this machine a row is rounded by its place "
    "in a chunk. Where products are by MKL, import tacit.learning before PyTorch computes anything, or set "
    "MKL_CBWR=AUTO: MKL reads it once."
)


class Totals:
    """Sums of silos, in float64 from chunk to chunk.

    Within a chunk single precision is added up in memory that is there already: fresh one costs as much as
    the sum.
    """

    def __init__(self, network: Any, silos: int, *, exact: bool) -> None:
        self._network, self.exact, self._silos = network, exact, silos
        self._chunk = network.room(silos if exact else 1, exact=exact)
        self._sums: Array | None = None

    def add(self, parts: Mapping[str, Any], factors: Any, segments: Sequence[tuple[int, slice]]) -> None:
        """Add the rows of a chunk times their factors."""
        if self.exact:
            for name, part in parts.items():
                part.add(self._chunk[:, self._network.place(name, part)], factors, segments)
            return
        # Few silos have records in a chunk: what is there of the others is left alone.
        first = segments[0][0] if segments else 0
        here = [(silo - first, where) for silo, where in segments]
        wide = 1 + max((silo for silo, _ in here), default=0)
        if wide > len(self._chunk):
            self._chunk = self._network.room(wide, exact=False)
        chunk, factors = self._chunk[:wide], factors.to(self._chunk.dtype)
        chunk.zero_()
        for name, part in parts.items():
            part.add(chunk[:, self._network.place(name, part)], factors, here)
        found = chunk.cpu().numpy()
        if self._sums is None and self._silos == 1:
            self._sums = found.astype(np.float64)
        else:
            self._sums = np.zeros((self._silos, found.shape[1])) if self._sums is None else self._sums
            self._sums[first : first + wide] += found

    @property
    def sums(self) -> Array:
        """Of each silo, shape (silos, size)."""
        if self.exact or self._sums is None:
            held = self._chunk if self.exact else self._chunk.new_zeros(self._silos, self._chunk.shape[1])
            return np.array(held.cpu().numpy(), dtype=np.float64)
        return self._sums


class Sizes:
    """Sizes of chunks, public ones; the last chunk is filled up.

    How many records there are decides in which chunk one is: so its row is tried to be the same in all.

    All are powers of two: functions of single numbers go by registers, and have other code for what fills
    none, at the end of a chunk or of a thread's part of it.

    Args:
        most: Of which the usual size is the largest power of two, or a smaller one where places differ.
        others: Taken where they fit better.
        alike: Whether equal records have equal gradients to the last bit, wherever in chunks of these sizes.
        how: What decides how products are rounded: each is tried for itself.
    """

    def __init__(
        self,
        most: int,
        others: Sequence[int],
        alike: Callable[..., bool],
        how: Callable[[], tuple[int, bool]],
    ) -> None:
        self._most, self._alike, self._how = 1 << (most.bit_length() - 1), alike, how
        self._others = others
        self._tried: dict[tuple[Any, ...], bool] = {}
        self._warns = self._most > 1 and bool(others)

    @classmethod
    def of(
        cls,
        chunk: int | None,
        room: int,
        alike: Callable[..., bool],
        how: Callable[[], tuple[int, bool]],
        *,
        plain: bool,
    ) -> Self:
        """Return the sizes for a module: that which is asked for, or such as layers have room for.

        Args:
            chunk: What is asked for, if anything is.
            room: Records whose numbers in layers are `NUMBERS`.
            alike: As above.
            how: The same.
            plain: Whether the module is a sequence of linear layers, which takes larger chunks.
        """
        if chunk is not None:
            return cls(chunk, [], alike, how)
        most = min(_CHUNK, max(1, room))
        last = _LARGE if plain and room >= _LARGE else most
        others = [_SMALL * 2**k for k in range(6) if _SMALL * 2**k <= last]
        return cls(most, others, alike, how)

    @property
    def usual(self) -> int:
        """Records of a chunk: as many as have the same row at each place; one, if need be."""
        size = self._most
        while size > 1 and not self._are_alike(size):
            size //= 2
        if size == 1 and self._warns:
            self._warns = False
            warnings.warn(_ONE_BY_ONE, RuntimeWarning, stacklevel=2)
        return size

    def cut(self, n: int) -> Iterator[tuple[slice, int]]:
        """Yield which of n records go through the module at once, and how many these are filled up to."""
        start = 0
        while start < n:
            size = self.next(n - start)
            yield slice(start, min(start + size, n)), size
            start += size

    def next(self, left: int) -> int:
        """Return the size of the next chunk of the records that are left, one or more."""
        usual = self.usual
        if usual == 1:
            return 1
        # What fits a usual chunk is never cut, so that silos that share one are added up as each alone.
        above = min((size for size in (usual, *self._others) if size >= left), default=math.inf)
        below = max((size for size in (usual, *self._others) if size <= left), default=0)
        size = int(above if left <= usual or left > _FULL * above else below)
        return size if size == usual or self._are_alike(usual, size) else usual

    def _are_alike(self, *sizes: int) -> bool:
        key = (self._how(), sizes)
        if key not in self._tried:
            self._tried[key] = self._alike(*sizes)
        return self._tried[key]


def filled(values: Array, n: int, value: float = 0.0) -> Array:
    """Return values with a public one behind them, n rows."""
    if len(values) == n:
        return values
    return np.concatenate([values, np.full((n - len(values), *values.shape[1:]), value, values.dtype)])


def isolated(tried: Callable[[Any, Array | None], Said], n: int) -> tuple[Said | None, Array | None]:
    """Run code on n records so that one that it raises for changes nothing for others, unseen by anybody.

    Such records are looked for in halves, and in halves of these, each repeated until there are n: so nothing
    but the record itself says whether it is one of them. Of f of them that takes 2 f log2(n) runs, and 2 n at
    most. Then another one is in their places.

    Args:
        tried: Runs on the records at some places, n of them, of which some are to count as zero; None: none.
        n: Number of records.

    Returns:
        What it says, None where it raises for all; and which records are bad, shape (n,), None for none.
    """
    with warnings.catch_warnings():  # what is said of some records only tells of them
        warnings.simplefilter("ignore")
        try:
            return tried(slice(None), None), None
        except (Exception, SystemExit):  # noqa: BLE001 - a module or a loss of somebody may raise anything
            bad = np.zeros(n, dtype=bool)
        left = [np.arange(n)]
        while left:
            part = left.pop()
            try:
                tried(np.resize(part, n), None)
            except (Exception, SystemExit):  # noqa: BLE001 - the same
                bad[part] = len(part) == 1
                left += np.array_split(part, 2) if len(part) > 1 else []
        return (None if bad.all() else tried(taken(bad), bad)), bad


def taken(bad: Array | None) -> Any:
    """Return the places of the records that are taken: of the first good one, where one is bad."""
    return slice(None) if bad is None else np.where(bad, bad.argmin(), np.arange(len(bad)))
