"""Search for the weight of a penalty that keeps a violation."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.errors import ParameterError, check_probability
from tacit.fairness.fermi import FairProblem, Fitted
from tacit.fairness.thresholds import Cut, best_cut
from tacit.numerics import Array

__all__ = ["FoundWeight", "least_weight"]

_FIRST, _FACTOR, _LARGEST = 0.1, 10**0.5, 1e4
_HALVINGS = 4


@dataclass(frozen=True)
class FoundWeight:
    """A model whose violation on the training records is small enough.

    Attributes:
        weight: Of the penalty.
        fitted: The model.
        cut: Of its score, with its accuracy and its violation.
        fits: How many models were trained.
    """

    weight: float
    fitted: Fitted
    cut: Cut
    fits: int


def least_weight(
    problem: FairProblem,
    max_violation: float,
    fit: Callable[[FairProblem, Array | None], Fitted],
    *,
    measure: str = "gap",
) -> FoundWeight:
    """Return the most accurate model within a violation, of those on the way to the least weight that has it.

    Weights grow from 0 until a model keeps the violation; between the last two the ratio is then halved a few
    times. It looks at training records as often as it likes: nothing is private, and nothing is promised of
    new records.

    Args:
        problem: Its weight does not count.
        max_violation: In [0, 1].
        fit: Trains a problem from parameters to start from.
        measure: "gap" or "linf", as in `violation`.

    Raises:
        ParameterError: A violation outside [0, 1], or one that no weight up to 10,000 reaches: the message
            says the least that was reached.
    """
    most = check_probability("max_violation", max_violation)
    found: list[FoundWeight] = []
    least = math.inf

    def try_weight(weight: float, start: Array | None) -> tuple[bool, Array]:
        nonlocal least
        fitted = fit(replace(problem, weight=weight), start)
        scores = problem.model.scores(fitted.theta, problem.X)
        middle, near = (
            best_cut(scores, problem.y, problem.membership, most, measure=measure, within=within)
            for within in (0.0, 1.0)
        )
        for cut in (middle, near):
            least = min(least, cut.violation)
            if cut.violation <= most:
                found.append(FoundWeight(weight, fitted, cut, 0))
        return middle.violation <= most, fitted.theta

    low, high, fits = 0.0, _FIRST, 1
    held, theta = try_weight(low, None)
    while not held and high <= _LARGEST:
        held, theta = try_weight(high, theta)
        fits += 1
        low, high = (low, high) if held else (high, high * _FACTOR)
    if held and low > 0:
        for _ in range(_HALVINGS):
            middle = math.sqrt(low * high)
            held, theta = try_weight(middle, theta)
            fits += 1
            low, high = (low, middle) if held else (middle, high)
    if not found:
        raise ParameterError(
            f"max_violation must be at least {least:.4g} for these records, the least that was reached with "
            f"weights from 0 to {_LARGEST:,.0f}, got {max_violation!r}."
        )
    best = max(found, key=lambda one: (one.cut.accuracy, -one.weight))
    return replace(best, fits=fits)
