"""The vector that a party compresses: the sum of its clipped rows."""

from __future__ import annotations

import numpy as np

from tacit.numerics import Array

__all__ = ["party_sums"]


def party_sums(clipped: Array, parties: int) -> Array:
    """Add up the rows of every party, dealt in order and as evenly as possible, as `np.array_split` does.

    Args:
        clipped: Shape (n, d).
        parties: How many, >= 1; those without rows have the sum zero.

    Returns:
        Shape (parties, d), float64.
    """
    sums = np.zeros((parties, clipped.shape[1]))
    filled = min(parties, len(clipped))
    if filled:
        size, more = divmod(len(clipped), filled)
        starts = np.arange(filled) * size + np.minimum(np.arange(filled), more)
        np.add.reduceat(clipped, starts, axis=0, dtype=np.float64, out=sums[:filled])
    return sums
