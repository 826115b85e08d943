"""Where a method starts that has public records: at their minimum, or where the run starts."""

from __future__ import annotations

import math
from typing import Literal, get_args

from tacit.errors import ParameterError, check_choice
from tacit.learning.algorithms.base import Problem
from tacit.numerics import Array, Regularizer

__all__ = ["Start", "check_start", "check_warm", "first_point"]

Start = Literal["warm", "given"]


def check_start(start: Start | None) -> None:
    """Refuse other names."""
    if start is not None:
        check_choice("start", start, get_args(Start))


def check_warm(start: Start | None, problem: Problem) -> None:
    """Refuse a minimum of no public records, or of a loss that none is found of.

    Raises:
        ParameterError: "warm" where there is no such minimum; before anything is asked or spent.
    """
    if start != "warm":
        return
    if problem.public is None:
        raise ParameterError("start must be 'given' without public records with labels, got 'warm'.")
    if not problem.public.has_minimum:
        raise ParameterError(
            "start must be 'given' where the loss has a kink or its smoothness is unknown, as of networks, "
            "got 'warm'."
        )


def first_point(start: Start | None, problem: Problem, w: Array, prox: Regularizer) -> Array:
    """Return the public minimum, in the domain, or w.

    Args:
        start: None is "warm" for linear models with public records and a smooth loss.
        problem: Of the run.
        w: Where the run starts, shape (size,).
        prox: The domain.
    """
    public = problem.public
    if public is None or start == "given" or not public.has_minimum:
        return w
    if start is None and problem.features == 0:
        return w
    warm = public.fitted(start=w)
    return warm if math.isfinite(prox.value(warm)) else prox(1.0, warm)
