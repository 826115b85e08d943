"""What no estimator beats, up to unknown constants: for reports and trends, never as a guarantee."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.numerics import Array

__all__ = [
    "COMMUNICATION_ORDERS",
    "central_error_order",
    "hard_bernoulli_instance",
    "local_error_order",
]

COMMUNICATION_ORDERS = (
    ("d < n eps^2", "d log(n eps^2 / d)", "d sqrt(n)", "d log n", "d log n"),
    ("n eps^2 < d < n^2 eps^2", "n eps^2 log(d / (n eps^2))", "d sqrt(n)", "d log n", "d log n"),
    ("d > n^2 eps^2", "n eps^2 log(d / (n eps^2))", "d sqrt(n)", "d log n", "n^2 eps^2 log d"),
)
"""Bits a party sends for the central error O(r^2 d / (n^2 eps^2)), eps = O(1): regime, shuffled bit planes,
CJM22, CGK21, and secure aggregation (KLS21, CCK22). Girgis (2023), Table 3.1."""


def local_error_order(p: float, *, dim: int, n: int, epsilon: float, radius: float = 1.0) -> float:
    """Return the order of the least mean squared error of n local reports on vectors of an l_p ball.

    Args:
        p: >= 1; math.inf is allowed.
        dim: Number d of coordinates.
        n: Number of reports.
        epsilon: Pure level of a report, > 0.
        radius: Of the ball.

    Returns:
        r^2 min(1, d / (n e)) for p < 2 with e = epsilon^2 (unbiased reports), and
        r^2 d^(1 - 2/p) min(1, d / (n e)) for p >= 2 with e = min(epsilon, epsilon^2). Constants unknown.

    Raises:
        ParameterError: A value is out of range.

    Example:
        >>> local_error_order(2.0, dim=100, n=10_000, epsilon=1.0)
        0.01

    Reference:
        Girgis (2023), Theorems 3.4.3 and 3.6.3.
    """
    if not p >= 1:
        raise ParameterError(f"p must be >= 1, got {p!r}.")
    check_count("dim", dim)
    check_count("n", n)
    check_positive("epsilon", epsilon)
    check_positive("radius", radius)
    level = epsilon**2 if p < 2 else min(epsilon, epsilon**2)
    spread = 1.0 if p < 2 else dim ** (1 - 2 / p)
    return radius**2 * spread * min(1.0, dim / (n * level))


def central_error_order(
    *, dim: int, n: int, epsilon: float, delta: float, bits: float, radius: float = 1.0
) -> float:
    """Return the order of the least error under central (epsilon, delta)-DP with few bits a party.

    Args:
        dim: Number d of coordinates.
        n: Number of parties.
        epsilon: Central level, O(1).
        delta: Of the order o(1 / n), in (0, 1).
        bits: What a party may send, > 0.
        radius: Of the L2 ball.

    Returns:
        (r^2 d / n^2) max(ln(1 / delta) / eps^2, n / (d 4^(b / d))) for b > d, else with n / b second.

    Raises:
        ParameterError: A value is out of range.

    Reference:
        Girgis (2023), Theorem 3.6.4.
    """
    check_count("dim", dim)
    check_count("n", n)
    check_positive("epsilon", epsilon)
    check_probability("delta", delta, low_open=True, high_open=True)
    check_positive("bits", bits)
    check_positive("radius", radius)
    coding = n / (dim * 4 ** (bits / dim)) if bits > dim else n / bits
    return radius**2 * dim / n**2 * max(math.log(1 / delta) / epsilon**2, coding)


def hard_bernoulli_instance(theta: Array, *, p: float, n: int, rng: np.random.Generator) -> Array:
    """Draw rows from the family that the lower bounds are proven with.

    Args:
        theta: Shape (d,), probabilities of the coordinates.
        p: >= 1; the rows lie in the unit l_p ball.
        n: Number of rows.
        rng: Source of the rows.

    Returns:
        Shape (n, d), entries 0 and d^(-1/p), independent.

    Raises:
        ParameterError: A value is out of range.

    Reference:
        Girgis (2023), Lemma 3.6.1.
    """
    if not p >= 1:
        raise ParameterError(f"p must be >= 1, got {p!r}.")
    if theta.ndim != 1 or not np.all((theta >= 0) & (theta <= 1)):
        raise ParameterError("theta must have shape (d,) and entries in [0, 1].")
    check_count("n", n)
    return np.asarray((rng.random((n, theta.size)) < theta) * theta.size ** (-1 / p))
