"""How alike the parties' vectors are: R = S2 / S1, and its estimate from what they sent."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.compression.maps import Maps
from tacit.errors import ParameterError
from tacit.numerics import Array, as_rows

__all__ = ["correlation_ratio", "estimate_correlation"]


def correlation_ratio(X: npt.ArrayLike) -> float:
    """Compute R = sum_{i != l} <x_i, x_l> / sum_i ||x_i||^2.

    Args:
        X: Shape (n, d), finite, not all zero; one row per party. A number read off private data is a release.

    Returns:
        R in [-1, n - 1]: 0 for orthogonal vectors, n - 1 for identical ones, -1 if and only if they sum to 0.

    Raises:
        ParameterError: Wrong shape, NaN or infinity, or all zero (R is undefined then).

    Cost:
        O(n d): ||sum_i x_i||^2 / S1 - 1.

    Example:
        >>> round(correlation_ratio([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]), 12)
        0.666666666667

    Reference:
        Jiang (2025), Eq 2.7.
    """
    rows = as_rows("X", X).astype(np.float64, copy=False)
    if not np.all(np.isfinite(rows)):
        raise ParameterError("X must be finite, got a NaN or an infinity.")
    # Scaled, so that no square overflows or vanishes.
    largest = float(np.max(np.abs(rows), initial=0.0))
    if largest == 0:
        raise ParameterError("X must not be all zero: its correlation is undefined.")
    rows = rows / largest
    total = rows.sum(axis=0)
    ratio = float(total @ total) / float(np.vdot(rows, rows)) - 1
    return min(max(ratio, -1.0), float(len(rows) - 1))


def estimate_correlation(maps: Maps, Y: npt.ArrayLike, *, clip: bool = True) -> float:
    """Estimate R from messages: (d/k) (||g||^2 / ||y||^2 - 1) with g = sum_i G_i^T y_i.

    A ratio of unbiased estimates of S2 and S1. Use it for the transform of *later* rounds: chosen by the same
    messages, a transform makes the decoder biased.

    Args:
        maps: Maps with orthonormal rows: `subsample`, `srht` or `haar`.
        Y: Shape (n, k), finite, not all zero.
        clip: Whether to clip to [0, n - 1], the range where Rand-Proj-Spatial is the decoder of choice.

    Returns:
        About R; its standard deviation is 2 to 3 for n k = 32 numbers of vectors with d = 64.

    Raises:
        ParameterError: Wrong shape, NaN or infinity, all zero, or maps without orthonormal rows.

    Reference:
        Derived here: E ||y||^2 = (k/d) S1, and E (||g||^2 - ||y||^2) = (k/d)^2 S2 for independent maps.
    """
    if not maps.orthonormal:
        raise ParameterError(f"maps must have orthonormal rows (subsample, srht, haar), got {maps.kind}.")
    y = maps.messages(Y)
    largest = float(np.max(np.abs(y)))
    if largest == 0:
        raise ParameterError("Y must not be all zero: its correlation is undefined.")
    y = y / largest
    g: Array = maps.operator.back_project(y)
    found = maps.padded_dim / maps.k * (float(g @ g) / float(np.vdot(y, y)) - 1)
    return min(max(found, 0.0), float(maps.n - 1)) if clip else found
