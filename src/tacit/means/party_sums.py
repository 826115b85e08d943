"""The vector that a party compresses: the sum of its clipped rows."""

from __future__ import annotations

import numpy as np

from tacit.errors import ParameterError
from tacit.numerics import Array, Norm, clip_rows

__all__ = ["clipped_rows", "party_sums"]


def clipped_rows(rows: Array, radius: float, *, norm: Norm, dim: int) -> Array:
    """Clip rows and check their length.

    Args:
        rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
        radius: Of the ball.
        norm: Of the ball.
        dim: Number of coordinates that a row must have.

    Returns:
        Shape (k, dim), float32 if `rows` is, else float64.

    Raises:
        ParameterError: Another shape, or a dtype that is not real.
    """
    clipped = clip_rows(rows, radius, norm=norm)
    if clipped.shape[1] != dim:
        raise ParameterError(f"rows must have shape (k, {dim}), got {clipped.shape}.")
    return clipped


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
