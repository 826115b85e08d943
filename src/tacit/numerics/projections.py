"""Euclidean projections onto the usual convex sets.

The last axis holds the coordinates, the axes before it are a batch. A point inside a set comes back as it is;
NaN stays NaN.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_non_negative
from tacit.numerics.arrays import Array, as_floats
from tacit.numerics.clipping import check_box, row_norms

__all__ = ["Projection", "project_box", "project_l2_ball", "project_simplex"]

Projection = Callable[[Array], Array]
"""Maps points, shape (..., d), to their nearest points in a convex set."""


def project_l2_ball(w: npt.ArrayLike, radius: float, *, center: npt.ArrayLike | None = None) -> Array:
    """Project onto the ball {y: ||y - center||_2 <= radius}.

    Args:
        w: Shape (..., d).
        radius: Finite, >= 0.
        center: Shape (d,); None means the origin.

    Returns:
        Shape (..., d), float32 if `w` is, else float64; in the ball up to rounding.

    Raises:
        ParameterError: wrong shape, dtype or radius.

    Example:
        >>> project_l2_ball([[6.0, 8.0], [0.5, 0.0]], 5.0).tolist()
        [[3.0, 4.0], [0.5, 0.0]]
    """
    check_non_negative("radius", radius)
    w = _as_points(w)
    origin = None if center is None else as_floats("center", center).astype(w.dtype)
    if origin is not None and origin.shape != w.shape[-1:]:
        raise ParameterError(f"center must have shape {w.shape[-1:]}, got shape {origin.shape}.")
    offset = w if origin is None else w - origin
    size = row_norms(offset)
    outside = size > radius
    factor = np.divide(radius, size, out=np.ones_like(size), where=outside)[..., None]
    inward = (offset * factor).astype(w.dtype)
    return np.where(outside[..., None], inward if origin is None else origin + inward, w)


def project_box(w: npt.ArrayLike, *, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
    """Project onto the box {y: lower <= y <= upper}.

    Args:
        w: Shape (..., d).
        lower: A number or shape (d,), finite or minus infinity.
        upper: A number or shape (d,), finite or infinity, >= `lower`.

    Returns:
        Shape (..., d), float32 if `w` is, else float64.

    Raises:
        ParameterError: wrong shape or dtype, or the interval of a coordinate is empty.

    Example:
        >>> project_box([-3.0, 0.5, 3.0], lower=-1.0, upper=[1.0, 1.0, 2.0]).tolist()
        [-1.0, 0.5, 2.0]
    """
    w = _as_points(w)
    low, high = check_box(lower, upper, dim=w.shape[-1], finite=False)
    return np.clip(w, low.astype(w.dtype), high.astype(w.dtype))


def project_simplex(w: npt.ArrayLike, total: float = 1.0) -> Array:
    """Project onto the simplex {y: y >= 0, sum(y) = total}.

    Args:
        w: Shape (..., d), d >= 1.
        total: Finite, >= 0.

    Returns:
        Shape (..., d), float32 if `w` is, else float64; the sum is `total` up to rounding.

    Raises:
        ParameterError: wrong shape, dtype or total.

    Cost:
        O(d log d) time per point.

    Example:
        >>> project_simplex([[0.5, 0.5], [2.0, 0.0], [7.5, 7.0]]).tolist()
        [[0.5, 0.5], [1.0, 0.0], [0.75, 0.25]]

    Reference:
        Duchi, Shalev-Shwartz, Singer and Chandra (2008), ICML, Figure 1.
    """
    check_non_negative("total", total)
    w = _as_points(w)
    if w.shape[-1] == 0:
        raise ParameterError("w must have at least one coordinate, since no point of the simplex has none.")
    # The projection does not change when all coordinates move together; sums of large ones would lose digits.
    x = w.astype(np.float64) - w.max(axis=-1, keepdims=True)
    falling = np.flip(np.sort(x, axis=-1), axis=-1)
    excess = np.cumsum(falling, axis=-1) - total
    rank = np.arange(1, x.shape[-1] + 1)
    support = np.maximum(np.count_nonzero(falling * rank > excess, axis=-1, keepdims=True), 1)
    threshold = np.take_along_axis(excess, support - 1, axis=-1) / support
    return np.asarray(np.maximum(x - threshold, 0.0), dtype=w.dtype)


def _as_points(w: npt.ArrayLike) -> Array:
    """`w` as floating-point points along its last axis."""
    points = as_floats("w", w)
    if points.ndim == 0:
        raise ParameterError("w must have at least one axis, the coordinates; got a number.")
    return points
