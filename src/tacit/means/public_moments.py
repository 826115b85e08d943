"""Moments of heavy-tailed rows as public records show them, and what becomes of them phase by phase."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np

from tacit.errors import ParameterError, check_non_negative
from tacit.means.moments import MomentBound, MomentKind
from tacit.numerics import Array, as_rows, row_norms

__all__ = ["block_moments", "gradient_moment", "phase_moment"]


def gradient_moment(
    gradients: Iterable[Array], order: float, *, kind: MomentKind = MomentKind.SUP_OUTSIDE
) -> MomentBound:
    """Estimate a moment from the gradients of public records at the points of a grid.

    The supremum is taken over the points that are given, and the expectation over the records: few records
    of a heavy tail show less of it than there is, so that a margin is wise.

    Args:
        gradients: For each point an array of shape (m, d), one row for each public record, the same records
            in the same order.
        order: k > 1.
        kind: Of what the moment is.

    Raises:
        ParameterError: No points, arrays of different shapes, no records, a number that is not finite, an
            order of at most 1, or gradients that are all zero.

    Example:
        >>> gradient_moment([np.array([[3.0, 4.0], [0.0, 0.0]])], 2).value == math.sqrt(12.5)
        True

    Reference:
        Lowy (2023), Assumptions 5, 9 and 10.
    """
    MomentBound(order, 1.0, kind)
    longest, largest, shape = np.zeros(0), 0.0, None
    for number, found in enumerate(gradients):
        rows = as_rows("gradients", found).astype(np.float64, copy=False)
        if not rows.size or not np.isfinite(rows).all():
            raise ParameterError("gradients must be finite, of one public record at least.")
        if shape is not None and rows.shape != shape:
            raise ParameterError(
                f"gradients must have one shape at all points, got {shape} and {rows.shape}."
            )
        shape = rows.shape
        if kind is MomentKind.SUP_INSIDE:
            norms = row_norms(rows)
            longest = norms if number == 0 else np.maximum(longest, norms)
            continue
        largest = max(largest, _raw_moment(rows, order, kind))
    if shape is None:
        raise ParameterError("gradients must be those at one point at least, got none.")
    if kind is MomentKind.SUP_INSIDE:
        largest = float(_root_mean(longest[:, None], order)[0])
    return MomentBound(order, largest, kind)


def block_moments(norms: Array, order: float) -> dict[int, float]:
    """Estimate (E sup_w (1/m) sum_i |g(w, x_i)|^k)^(1/k) for blocks of m = 1, 2, 4, ... public records.

    They fall from the moment with the supremum inside to that with the supremum outside.

    Args:
        norms: Shape (points, records): of gradients at the points of a grid, finite, >= 0. Records of the
            last block that is not full are left out.
        order: k > 1.

    Returns:
        The moments by m.

    Raises:
        ParameterError: Another shape, a number that is negative or not finite, or an order of at most 1.

    Reference:
        Lowy (2023), Lemma 157.
    """
    MomentBound(order, 1.0)
    norms = as_rows("norms", norms).astype(np.float64, copy=False)
    if not norms.size or not np.all((norms >= 0) & np.isfinite(norms)):
        raise ParameterError("norms must be finite and >= 0, at one point and of one record at least.")
    scale = float(norms.max()) or 1.0
    means, found, m = (norms / scale) ** order, {}, 1
    while means.shape[1]:
        found[m] = scale * float(means.max(axis=0).mean()) ** (1 / order)
        pairs = means.shape[1] // 2
        means, m = (means[:, : 2 * pairs : 2] + means[:, 1 : 2 * pairs : 2]) / 2, 2 * m
    return found


def phase_moment(moments: Sequence[float]) -> float:
    """Return R = (sum_i 2^-i r_i^2)^(1/2): what phases of n/2, n/4, ..., 1 records depend on.

    Args:
        moments: Of blocks of that many records, the largest block first; finite, >= 0.

    Raises:
        ParameterError: No moments, or one that is out of range.

    Reference:
        Lowy (2023), Theorem 50: R_{k,n}.
    """
    if not moments:
        raise ParameterError("moments must be those of one phase at least, got none.")
    return math.sqrt(
        math.fsum(0.5**i * check_non_negative("moment", r) ** 2 for i, r in enumerate(moments, start=1))
    )


def _root_mean(values: Array, order: float) -> Array:
    """Return (mean |v|^k)^(1/k) of every column."""
    scale = float(np.abs(values).max()) or 1.0
    return np.asarray(scale * np.mean((np.abs(values) / scale) ** order, axis=0) ** (1 / order))


def _raw_moment(rows: Array, order: float, kind: MomentKind) -> float:
    """Return the moment of the gradients of one point."""
    match kind:
        case MomentKind.COORDINATE:
            mean = rows.mean(axis=0)
            least = float(row_norms(mean)) / math.sqrt(rows.shape[1])
            return max(least, float(_root_mean(rows - mean, order).max()))
        case MomentKind.ENTRY:
            return float(_root_mean(rows, order).max())
        case _:
            return float(_root_mean(row_norms(rows)[:, None], order)[0])
