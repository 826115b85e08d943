"""The closed form of Feldman, McMillan and Talwar (2022) for shuffled messages, and its inverse."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from tacit.errors import ParameterError, check_count, check_positive, check_probability

__all__ = ["clones_closed_form", "clones_closed_limit", "paper_level"]

_ROUND_UP = 1 + 1e-12


def clones_closed_limit(parties: int, delta: float, *, records: int = 1) -> float:
    """Return ln(n / (16 ln(2 / delta))) / records, up to which the closed form holds; may be < 0."""
    return math.log(parties / (16 * math.log(2 / delta))) / records


def clones_closed_form(local_epsilon: float, parties: int, delta: float, records: int = 1) -> float:
    """Return ln(1 + (E-1)/(E+1) (8 sqrt(E ln(4/delta) / n) + 8 E / n)), whether it holds or not."""
    log_group = records * local_epsilon
    with np.errstate(over="ignore"):
        spread = 8 * np.exp(log_group / 2) * math.sqrt(math.log(4 / delta) / parties)
        spread += 8 * np.exp(np.float64(log_group)) / parties
    return float(np.log1p(math.tanh(local_epsilon / 2) * spread)) * _ROUND_UP


def paper_level(epsilon: float, parties: int, delta: float) -> float:
    """Return the largest local level whose shuffled batch is (epsilon, delta)-DP by the closed form.

    For comparison: `tacit.privacy.calibrate` on `Shuffled` finds a larger one, which costs no more.

    Args:
        epsilon: Of the batch, > 0.
        parties: Honest messages in it.
        delta: In (0, 1).

    Returns:
        max(epsilon, min(f^-1(epsilon), ln(n / (16 ln(2 / delta))))): never below epsilon, which takes no
        shuffler, and never beyond where f is proven.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> round(paper_level(1.0, 10_000, 1e-6), 6)
        3.503714

    Reference:
        Girgis (2023), (6.10), with the condition and the maximum that it leaves out.
    """
    epsilon = check_positive("epsilon", epsilon)
    parties = check_count("parties", parties)
    delta = check_probability("delta", delta, low_open=True, high_open=True)
    if 2 / delta == math.inf:
        raise ParameterError(f"delta must not be that small, got {delta!r}.")
    limit = clones_closed_limit(parties, delta)
    if limit <= epsilon:
        return epsilon
    if clones_closed_form(limit, parties, delta) <= epsilon:
        return limit
    if clones_closed_form(epsilon, parties, delta) >= epsilon:
        return epsilon
    root = optimize.brentq(
        lambda level: clones_closed_form(level, parties, delta) - epsilon, epsilon, limit, xtol=1e-14
    )
    level = float(root)
    # The safe side of the root.
    while clones_closed_form(level, parties, delta) > epsilon:
        level *= 1 - 1e-13
    return max(level, epsilon)
