"""Per-record clipping over the whole vector, before anything is summed (Abadi et al. 2016).

Nothing here depends visibly on an entry: a record that holds a NaN or an infinity counts as zero and is not
an error, and huge finite entries are clipped without overflow. Only shapes, dtypes and public radii can be
refused.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice, check_non_negative
from tacit.numerics.arrays import Array, BoolArray, IntArray, as_floats, as_rows

__all__ = ["NORM_SLACK", "Norm", "check_box", "clip_box", "clip_rows", "row_norms"]

Norm = Literal["l1", "l2", "linf"]

NORM_SLACK = 2.0**-47
"""Relative rounding error of a norm of up to 2**40 coordinates, scaling included.

A sum in pairs of blocks of 128 has a relative error of at most (20 + log2(d / 128)) * 2**-53 (Higham,
Accuracy and Stability of Numerical Algorithms, 2002, §4.2), which is 53 * 2**-53 at d = 2**40; the few
roundings around it leave it below 2**-47.
"""


def clip_rows(rows: npt.ArrayLike, radius: float, *, norm: Norm = "l2") -> Array:
    """Scale every row into the ball of a radius; the direction of a row never changes.

    Args:
        rows: Shape (n, d). A row with a NaN or an infinity counts as zero.
        radius: Radius of the ball, finite, >= 0. Public.
        norm: Of the ball. All three scale the row; for the nearest point use `tacit.numerics.projections`.

    Returns:
        Shape (n, d), float32 if `rows` is, else float64. A row whose computed norm is at most `radius` comes
        back bit for bit. In exact arithmetic on the numbers returned, the norm is at most `radius * (1 +
        NORM_SLACK)`, and at most `radius` for rows that were scaled and for `norm="linf"`. (Holds while
        `radius` is far above the smallest positive number of the dtype.) Clipping twice changes nothing more.

    Raises:
        ParameterError: wrong shape, dtype, radius or norm.

    Example:
        >>> clip_rows([[3.0, 4.0], [0.3, 0.4], [np.nan, 1.0]], 1.0).round(12).tolist()
        [[0.6, 0.8], [0.3, 0.4], [0.0, 0.0]]
    """
    check_non_negative("radius", radius)
    check_choice("norm", norm, _NORMS)
    rows = as_rows("rows", rows)
    # With one coordinate all norms agree, and only this one is free of rounding.
    norm = "linf" if rows.shape[1] == 1 else norm
    size = row_norms(rows, norm=norm)
    limit = float(_round_down(radius, rows.dtype))
    # Scaled rows end this much inside the ball, so that no rounding can carry them out.
    inset = 0.0 if norm == "linf" else NORM_SLACK + (_EPS32 if rows.dtype == np.float32 else 0.0)
    outside = ~(size <= radius)  # stated as what may stay: a NaN fails every comparison
    odd = outside & ~_is_ordinary(size)
    factor = np.ones(len(rows))
    np.divide(limit * (1 - inset), size, out=factor, where=outside & ~odd)
    clipped = np.multiply(rows, factor[:, None], dtype=np.float64).astype(rows.dtype, copy=False)
    if odd.any():
        clipped[odd] = _shrink(rows[odd], limit * (1 - inset), norm)
    return np.clip(clipped, -limit, limit, out=clipped) if norm == "linf" else clipped


def clip_box(rows: npt.ArrayLike, *, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
    """Clip every coordinate into its interval.

    Args:
        rows: Shape (n, d). A row with a NaN or an infinity counts as zero, which is then clipped like any
            other.
        lower: A number or shape (d,), finite. Public.
        upper: A number or shape (d,), finite, >= `lower`. Public.

    Returns:
        Shape (n, d), float32 if `rows` is, else float64. No entry lies outside its interval, unless no number
        of the dtype lies inside.

    Raises:
        ParameterError: wrong shape or dtype, or the interval of a coordinate is empty or not finite.

    Example:
        >>> clip_box([[-3.0, 0.5], [np.nan, 9.0]], lower=[-1.0, 0.0], upper=1.0).tolist()
        [[-1.0, 0.5], [0.0, 0.0]]
    """
    rows = as_rows("rows", rows)
    low, high = check_box(lower, upper, dim=rows.shape[1])
    good = np.isfinite(rows).all(axis=1, keepdims=True)
    return np.clip(
        np.where(good, rows, 0), -_round_down(-low, rows.dtype), _round_down(high, rows.dtype)
    ).astype(rows.dtype)


def row_norms(rows: npt.ArrayLike, *, norm: Norm = "l2") -> Array:
    """Norm of every row, over the last axis, without overflow or underflow on the way.

    Args:
        rows: Shape (..., d).
        norm: Which norm.

    Returns:
        Shape (...), float64, within `NORM_SLACK` relative. Infinite where the norm itself exceeds float64 or
        a coordinate is infinite, NaN where one is NaN.

    Raises:
        ParameterError: wrong dtype or norm.

    Example:
        >>> row_norms([[3.0, 4.0], [1e300, 0.0]]).tolist()
        [5.0, 1e+300]
    """
    check_choice("norm", norm, _NORMS)
    rows = as_floats("rows", rows)
    with np.errstate(over="ignore", under="ignore"):
        norms = np.asarray(_plain_norm(rows.astype(np.float64, copy=False), norm))
        odd = ~_is_ordinary(norms)
        if odd.any():
            unit, exponent = _scaled(rows[odd])
            norms[odd] = np.ldexp(_plain_norm(unit, norm), exponent)
    return norms


def check_box(
    lower: npt.ArrayLike, upper: npt.ArrayLike, *, dim: int, finite: bool = True
) -> tuple[Array, Array]:
    """Read the bounds of a box; they are public, so that errors may quote them.

    Args:
        lower: A number or shape (dim,), finite.
        upper: A number or shape (dim,), finite, >= `lower`.
        dim: Number of coordinates.
        finite: Whether bounds must be finite; else a side may be open, at minus or plus infinity.

    Returns:
        Both bounds as float64 arrays of shape () or (dim,).

    Raises:
        ParameterError: wrong shape or dtype, or the interval of a coordinate is empty or not finite.
    """
    low, high = (
        np.asarray(as_floats(k, v), dtype=np.float64) for k, v in (("lower", lower), ("upper", upper))
    )
    open_side = {"lower": np.nan, "upper": np.nan} if finite else {"lower": -np.inf, "upper": np.inf}
    for name, bound in (("lower", low), ("upper", high)):
        if bound.shape not in ((), (dim,)):
            raise ParameterError(f"{name} must be a number or have shape ({dim},), got shape {bound.shape}.")
        if not (np.isfinite(bound) | (bound == open_side[name])).all():
            allowed = "finite" if finite else f"finite or {open_side[name]}"
            raise ParameterError(f"{name} must be {allowed}, got {bound.tolist()}.")
    if not np.all(low <= high):
        raise ParameterError(f"lower must be <= upper, got lower={low.tolist()}, upper={high.tolist()}.")
    return low, high


_NORMS = ("l1", "l2", "linf")
_EPS32 = float(np.finfo(np.float32).eps)
_LOWEST_EXPONENT = -1021  # 2**1021 is a float64, and lifts even the smallest subnormal out of danger


def _is_ordinary(norms: Array) -> BoolArray:
    """Where no square that matters to the norm overflows or underflows."""
    return np.asarray((norms > 1e-140) & (norms < 1e150))


def _shrink(rows: Array, limit: float, norm: Norm) -> Array:
    """Rows of extreme size scaled to the norm `limit`; bad rows as zero."""
    unit, _ = _scaled(np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, 0))
    size = _plain_norm(unit, norm)
    return unit * (limit / np.where(size > 0, size, 1.0))[:, None]


def _scaled(rows: Array) -> tuple[Array, IntArray]:
    """Rows divided by the power of two above their largest entry (bad rows: by 1), and its exponent."""
    peak = np.abs(rows).max(axis=-1, initial=0.0)
    exponent = np.frexp(np.where(np.isfinite(peak), peak, 0.0))[1].astype(np.int64)
    exponent = np.maximum(exponent, _LOWEST_EXPONENT)
    return np.multiply(rows, np.ldexp(1.0, -exponent)[..., None], dtype=np.float64), exponent


def _plain_norm(values: Array, norm: Norm) -> Array:
    """Norm over the last axis by the plain formula, which may overflow or underflow."""
    if norm == "linf":
        return np.asarray(np.abs(values).max(axis=-1, initial=0.0))
    # np.add.reduce sums in pairs along a contiguous axis, which is what NORM_SLACK relies on.
    powers = np.ascontiguousarray(np.abs(values) if norm == "l1" else values * values)
    total = np.add.reduce(powers, axis=-1)
    return np.asarray(total if norm == "l1" else np.sqrt(total))


def _round_down(bound: float | Array, dtype: np.dtype[np.floating]) -> Array:
    """The largest number of the dtype that is at most the bound, as float64."""
    exact = np.asarray(bound, dtype=np.float64)
    top = np.finfo(dtype).max
    near = np.clip(exact, -float(top), float(top))
    if dtype == np.float64:
        return np.asarray(near)
    near = near.astype(dtype)
    # Compared in float64: NumPy would round a Python float to float32 first.
    low = np.where(near.astype(np.float64) > exact, np.nextafter(near, -top), near)
    return low.astype(np.float64)
