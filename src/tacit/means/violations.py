"""Rows outside of the ball of a round: clipped, or refused; decided here for all estimators.

Where a claim of privacy is made, rows are clipped: nothing visible may depend on a row, and an error is
visible. Where none is made, silence would only hide a wrong bound or a broken row, so that rows are refused.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice
from tacit.means.message import SMALLEST_RADIUS, Round
from tacit.numerics import Array, Norm, as_rows, clip_box, clip_rows, row_norms

__all__ = ["Ball", "OnViolation", "check_on_violation", "clipped_rows", "clipped_to_unit", "inside_rows"]

OnViolation = Literal["clip", "error"]
"""What becomes of a row outside of the ball: it is scaled into it (a NaN or an infinity counts as a row of
zeros), or refused by a ParameterError that says nothing of the row."""

Ball = Norm | Literal["box"]
"""A norm, or the box [0, radius]^dim."""

Cube = Literal["cube"]
"""[-radius, radius]^dim: coordinates are moved to it one by one, where `linf` scales a row."""

_ROUNDING = 1e-6
"""A row that was scaled to the radius in float32 may come out that much longer."""


def check_on_violation(on_violation: OnViolation | None) -> None:
    """Refuse an unknown name; None is the default."""
    if on_violation is not None:
        check_choice("on_violation", on_violation, ("clip", "error"))


def inside_rows(rows: npt.ArrayLike, radius: float, *, ball: Ball | Cube, dim: int, refuse: bool) -> Array:
    """Return rows as floats, not clipped.

    Args:
        rows: Shape (k, dim).
        radius: Of the ball.
        ball: Which ball.
        dim: Number of coordinates that a row must have.
        refuse: Whether a row outside of the ball is an error; one part in a million is put down to rounding.

    Returns:
        Shape (k, dim), float32 if `rows` is, else float64.

    Raises:
        ParameterError: Another shape, a dtype that is not real, or a row that is refused.
    """
    read = as_rows("rows", rows)
    if read.shape[1] != dim:
        raise ParameterError(f"rows must have shape (k, {dim}), got {read.shape}.")
    # Stated as what is allowed: a NaN fails every comparison.
    if refuse and not np.all(_excess(read, ball) <= radius * (1 + _ROUNDING)):
        raise ParameterError(_outside(ball, radius))
    return read


def clipped_rows(rows: npt.ArrayLike, radius: float, *, ball: Ball | Cube, dim: int, refuse: bool) -> Array:
    """Return rows clipped to a ball.

    Args:
        rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
        radius: Of the ball.
        ball: Which ball.
        dim: Number of coordinates that a row must have.
        refuse: Whether a row outside of the ball is an error instead; see `inside_rows`.

    Returns:
        Shape (k, dim), float32 if `rows` is, else float64.

    Raises:
        ParameterError: Another shape, a dtype that is not real, or a row that is refused.
    """
    read = inside_rows(rows, radius, ball=ball, dim=dim, refuse=refuse)
    if ball == "box" or ball == "cube":
        return clip_box(read, lower=0.0 if ball == "box" else -radius, upper=radius)
    return clip_rows(read, radius, norm=ball)


def clipped_to_unit(
    rows: npt.ArrayLike, round: Round, dim: int, ball: Ball, *, refuse: bool = False
) -> Array:
    """Clip rows into the ball of the round and divide by its radius.

    Args:
        rows: Shape (k, dim). A row with a NaN or an infinity counts as zero.
        round: Public facts.
        dim: Number of coordinates.
        ball: Which ball.
        refuse: Whether a row outside of the ball is an error instead.

    Returns:
        Shape (k, dim), float64, in the unit ball; zeros for a radius next to 0.

    Raises:
        ParameterError: Another shape or dtype, or a row that is refused.
    """
    clipped = clipped_rows(rows, round.radius, ball=ball, dim=dim, refuse=refuse)
    if round.radius < SMALLEST_RADIUS:
        return np.zeros(clipped.shape)
    return np.clip(clipped.astype(np.float64) / round.radius, -1.0, 1.0)


def _excess(rows: Array, ball: Ball | Cube) -> Array:
    """Return what must not exceed the radius."""
    if ball != "box":
        return row_norms(rows, norm="linf" if ball == "cube" else ball)
    # Below zero, a millionth of the radius is as much as a whole radius above it.
    with np.errstate(over="ignore"):
        return row_norms(np.maximum(rows, -rows / _ROUNDING), norm="linf")


def _outside(ball: Ball | Cube, radius: float) -> str:
    """Return what is said of rows that are refused: only what is public."""
    box = {"box": f"from 0 to {radius!r}", "cube": f"from {-radius!r} to {radius!r}"}
    where = box.get(ball, f"of {ball} norm at most {radius!r}")
    return (
        f"rows must be finite and {where}, and at least one is not; on_violation='clip' clips such rows, and "
        "takes one that is not finite for zero."
    )
