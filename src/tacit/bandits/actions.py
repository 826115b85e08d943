"""The actions of a linear bandit: what is allowed, and the space that they span."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError
from tacit.numerics import Array, as_rows

__all__ = ["NORM_SLACK", "Span", "check_actions", "span_of"]

NORM_SLACK = 1e-12
"""How far above 1 rounding may lift the norm of an action."""
_RANK = 1e-9
"""Directions whose singular value is below this, of the largest, count as absent."""


def check_actions(actions: npt.ArrayLike) -> Array:
    """Return actions as float64 rows; refuse what no linear bandit is about.

    Args:
        actions: Shape (K, d), K >= 1, rows of norm at most 1. Rows may repeat.

    Returns:
        Shape (K, d), float64.

    Raises:
        ParameterError: No rows, a number that is not finite, a norm above 1, or zeros only. Rows are never
            scaled in silence: that would change the bandit.
    """
    rows = as_rows("actions", actions).astype(np.float64)
    if not rows.size:
        raise ParameterError(f"actions must hold at least one row and one column, got shape {rows.shape}.")
    if not np.all(np.isfinite(rows)):
        raise ParameterError("actions must be finite numbers.")
    with np.errstate(over="ignore", under="ignore"):  # infinity is above 1 as well
        norms = np.linalg.norm(rows, axis=1)
    if norms.max() > 1 + NORM_SLACK:
        row = int(np.argmax(norms))
        raise ParameterError(
            f"actions must have a norm of at most 1, got {float(norms[row])!r} in row {row}: divide all of "
            "them by the largest norm, and theta grows by as much."
        )
    if norms.max() == 0:
        raise ParameterError("actions must not all be zero: no reward depends on what is played.")
    return rows


class Span(NamedTuple):
    """Actions in coordinates of the space that they span.

    The coordinates are those of the left singular vectors, in which no direction is short: designs and
    estimates do not depend on the choice, rounding errors do.

    Attributes:
        rows: Shape (K, m): coordinates of the actions, m the dimension of the span.
        back: Shape (m, d): a parameter w of these coordinates is the parameter w @ back of the actions.
        log_scale: Sum of the logarithms of the singular values that were divided by.
    """

    rows: Array
    back: Array
    log_scale: float


def span_of(actions: Array) -> Span:
    """Return actions in coordinates of their span; `actions` as `check_actions` returns them."""
    left, sizes, right = np.linalg.svd(actions, full_matrices=False)
    m = int(np.count_nonzero(sizes > _RANK * sizes[0]))
    back = right[:m] / sizes[:m, None]
    return Span(np.ascontiguousarray(left[:, :m]), back, float(np.log(sizes[:m]).sum()))
