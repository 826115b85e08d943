"""How long steps may be for their errors, from public facts; what it gains is in docs/theory/defaults.md."""

from __future__ import annotations

import math

from tacit.learning.algorithms.base import Problem

__all__ = ["gradient_step", "noise_step"]

_OFF, _OFF_ELSE = 1.5, 0.25
"""How far errors of all rounds may take the score of a row: of linear models of classes, and of others, whose
targets are in [-1, 1] or whose layers multiply noise."""

_LONGEST = 15.0
"""How long a step may be, times the smoothness: rows that are not all along one line have less together."""


def noise_step(problem: Problem, *, squares: float) -> float:
    """Return the eta for which errors of all rounds take a score as far off as they may; infinite if none.

    Errors of V^2 / d a coordinate, times eta_t, take the score of a row x off by the root of
    |x|^2 (V^2 / d) sum eta_t^2.

    Args:
        problem: Public facts.
        squares: The sum of eta_t^2 / eta^2.
    """
    if problem.variance == 0:
        return math.inf
    norm = problem.feature_norm if math.isfinite(problem.feature_norm) else 1.0
    off = _OFF if _scores_classes(problem) else _OFF_ELSE
    return off / (norm * math.sqrt(problem.variance / problem.dim * squares))


def gradient_step(problem: Problem, rounds: int, *, least: float) -> float:
    """Return the length of equal steps along gradients alone: `least`, which theory asks for, or longer.

    Longer for linear models of classes only, whose curvature falls where scores are large, and with noise.

    Args:
        problem: Public facts.
        rounds: Number of steps.
        least: 1 / (2 beta).
    """
    if problem.variance == 0 or not _scores_classes(problem) or not math.isfinite(problem.smoothness):
        return least
    return max(least, min(noise_step(problem, squares=rounds), _LONGEST / problem.smoothness))


def _scores_classes(problem: Problem) -> bool:
    """Return whether it is a linear model of classes."""
    return problem.loss is not None and problem.loss.classifies
