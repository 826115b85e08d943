"""Records of several silos of one process, computed with together, and added up silo by silo."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.learning.objective import Records

__all__ = ["Pack", "packs"]


@dataclass(frozen=True)
class Pack:
    """Silos whose records are computed with at once.

    Attributes:
        records: Of all of them, and public ones in between.
        places: Where those of each silo are.
    """

    records: Records
    places: list[slice]

    def within(self, part: slice) -> list[tuple[int, slice]]:
        """Return which records of a part are of which of these silos; those without any are left out."""
        cuts = [(max(place.start, part.start), min(place.stop, part.stop)) for place in self.places]
        return [
            (k, slice(start - part.start, stop - part.start))
            for k, (start, stop) in enumerate(cuts)
            if start < stop
        ]


def packs(silos: Sequence[Records], most: int, *, label: float | None = None) -> Iterator[Pack]:
    """Yield silos, in order, so many at a time as have that many records together; larger ones alone.

    Args:
        silos: Records of each.
        most: Records that are computed with at once.
        label: Of public records of zeros, by which every silo begins at a multiple of a power of two that is
            at least its size: what halves a pack, or cuts it in parts of any other power of two, then cuts no
            silo but as it would be alone. None: nothing cuts a pack.
    """
    first, places = 0, list[slice]()
    for k, silo in enumerate(silos):
        n = len(silo)
        step = 1 if label is None or n == 0 else 2 ** (n - 1).bit_length()
        start = -(-places[-1].stop // step) * step if places else 0
        if places and (start + n > most or silo.X.dtype != silos[first].X.dtype):
            yield _pack(silos, first, places, label)
            first, places, start = k, [], 0
        places.append(slice(start, start + n))
    if places:
        yield _pack(silos, first, places, label)


def _pack(silos: Sequence[Records], first: int, places: list[slice], label: float | None) -> Pack:
    """Return the records of silos from the first one on, at their places."""
    some = silos[first : first + len(places)]
    if len(some) == 1:
        return Pack(some[0], places)
    n, d, dtype = places[-1].stop, some[0].X.shape[1], some[0].X.dtype
    X, y, norms = np.zeros((n, d), dtype), np.full(n, label or 0.0, dtype), np.zeros(n)
    for one, place in zip(some, places, strict=True):
        X[place], y[place], norms[place] = one.X, one.y, one.norms
    return Pack(Records(X, y, norms), places)
