"""Vectors with an exact correlation R = sum_{i != l} <x_i, x_l> / sum_i ||x_i||^2."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.data.encoding import Array
from tacit.errors import ParameterError, check_count

__all__ = ["synthetic_equicorrelated", "synthetic_groups"]


def synthetic_groups(sizes: Sequence[int], dim: int) -> Array:
    """Make unit vectors that are equal within a group and orthogonal between groups.

    Args:
        sizes: Parties in each group, >= 1.
        dim: Coordinates of a vector, at least as many as groups.

    Returns:
        Shape (n, dim) for n = sum of sizes; R = sum_c sizes[c]^2 / n - 1.

    Raises:
        ParameterError: No groups, an empty one, or fewer coordinates than groups.

    Example:
        >>> X = synthetic_groups([9, 4, *[1] * 8], 64)
        >>> float((X.sum(axis=0) ** 2).sum() / 21 - 1)
        4.0

    Reference:
        Jiang (2025), Section 2.4.3.
    """
    if not sizes:
        raise ParameterError("sizes must hold at least one group, got none.")
    for size in sizes:
        check_count("a size", size)
    check_count("dim", dim, low=len(sizes))
    return np.repeat(np.eye(len(sizes), dim), sizes, axis=0)


def synthetic_equicorrelated(n: int, correlation: float, dim: int) -> Array:
    """Make unit vectors of which every two have the inner product R / (n - 1).

    Args:
        n: Number of parties, >= 1.
        correlation: R in [0, n - 1].
        dim: Coordinates of a vector, > n.

    Returns:
        Shape (n, dim): x_i = sqrt(rho) e_0 + sqrt(1 - rho) e_i with rho = R / (n - 1).

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> X = synthetic_equicorrelated(5, 3.0, 8)
        >>> round(float((X.sum(axis=0) ** 2).sum() / 5 - 1), 12)
        3.0

    Reference:
        Derived here: the error of compressed means depends on the vectors through their lengths and R only
        (Jiang 2025, Section 2.4.3).
    """
    check_count("n", n)
    check_count("dim", dim, low=n + 1)
    if not 0 <= correlation <= n - 1:
        raise ParameterError(f"correlation must be in [0, n - 1] = [0, {n - 1}], got {correlation!r}.")
    rho = correlation / (n - 1) if n > 1 else 0.0
    X = np.zeros((n, dim))
    X[:, 0] = math.sqrt(rho)
    X[np.arange(n), np.arange(1, n + 1)] = math.sqrt(1 - rho)
    return X
