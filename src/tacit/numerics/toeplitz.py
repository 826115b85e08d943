"""Lower triangular Toeplitz matrices with ones on the diagonal, by their first columns, and prefix sums.

A first column c stands for the T x T matrix C with C[t, s] = c[t - s], 0 above the diagonal and beyond the
end of c: its band. Products of such matrices multiply their columns as power series.
"""

from __future__ import annotations

import math

import numpy as np
import scipy

from tacit.errors import ParameterError, check_count
from tacit.numerics.arrays import Array

__all__ = ["inverse_column", "participation_norm", "prefix_sum_errors", "square_root_column"]


def square_root_column(bands: int) -> Array:
    """Return the first entries of the column of C with C C = A, the prefix sums: 1, 1/2, 3/8, 5/16, ...

    They are the series (1 - x)^(-1/2), positive and falling (Henzinger, Upadhyay and Upadhyay 2023).

    Args:
        bands: How many, >= 1.

    Returns:
        Shape (bands,).

    Example:
        >>> square_root_column(4).tolist()
        [1.0, 0.5, 0.375, 0.3125]
    """
    k = np.arange(1, check_count("bands", bands), dtype=np.float64)
    return np.cumprod(np.concatenate([[1.0], (2 * k - 1) / (2 * k)]))


def inverse_column(column: Array, rounds: int) -> Array:
    """Return the first column of C^-1 for `rounds` rows: b[t] = -sum over i >= 1 of c[i] b[t - i], b[0] = 1.

    Args:
        column: c, shape (bands,), starting with 1.
        rounds: T >= 1.

    Returns:
        Shape (rounds,).

    Raises:
        ParameterError: A column that does not start with 1, or is no vector of numbers.
    """
    column = _checked(column)
    impulse = np.zeros(check_count("rounds", rounds))
    impulse[0] = 1.0
    return np.asarray(scipy.signal.lfilter([1.0], column, impulse))


def participation_norm(column: Array, *, separation: int, rounds: int) -> float:
    """Return how much of C G one unit moves at most: its Frobenius norm, for rows of G moved by 1 each.

    The unit moves any rows of G of which two are at least `separation` apart; the worst are 0, `separation`,
    2 `separation`, ... all by the same vector. Where the band is no wider than that, columns of C have no row
    in common (Choquette-Choo et al. 2023, arXiv:2306.08153, Theorem 2); wider ones must be non-negative and
    non-increasing (Kalinin and Lampert 2024, arXiv:2405.13763, Theorem 2).

    Args:
        column: c, shape (bands,), starting with 1.
        separation: Rows between two that a unit moves, at least, >= 1.
        rounds: T >= bands.

    Raises:
        ParameterError: More bands than rounds, or than `separation` where the theorem does not hold.

    Example:
        >>> round(participation_norm(square_root_column(10), separation=10, rounds=100), 4)
        4.2324
    """
    column, bands = _checked(column), len(column)
    check_count("separation", separation)
    check_count("rounds", rounds)
    if bands > rounds:
        raise ParameterError(f"bands must be at most the {rounds} rounds, got {bands}.")
    if bands > separation and not (np.all(column >= 0) and np.all(np.diff(column) <= 0)):
        raise ParameterError(
            f"bands must be at most the separation {separation} where the column is not non-negative and "
            f"non-increasing, got {bands}."
        )
    # Entry j separation + a of the sum of those columns is c[a] + c[a + separation] + ..., up to j + 1 terms.
    step = min(separation, rounds)
    turns = -(-bands // step)
    padded = column if turns == 1 else np.pad(column, (0, turns * step - bands))
    squares = np.cumsum(padded.reshape(turns, -1), axis=0) ** 2
    whole, rest = divmod(rounds, step)
    rows = [math.fsum(row) for row in squares]
    full = [*rows[:whole], max(whole - turns, 0) * rows[-1]]
    return math.sqrt(math.fsum([*full, *squares[min(whole, turns - 1), :rest]]))


def prefix_sum_errors(column: Array, rounds: int) -> tuple[float, float]:
    """Return the root mean square and the last of the deviations of all prefix sums of C^-1 z, z ~ N(0, I).

    The prefix sums are B z with B = A C^-1, a Toeplitz matrix whose column adds up that of C^-1.

    Args:
        column: c, shape (bands,), starting with 1.
        rounds: T >= 1.

    Example:
        >>> rms, last = prefix_sum_errors(square_root_column(10), 100)
        >>> norm = participation_norm(square_root_column(10), separation=10, rounds=100)
        >>> round(norm * rms, 3), round(norm * last, 3)
        (9.611, 12.798)
    """
    b = np.cumsum(inverse_column(column, rounds))
    squares = np.cumsum(b**2)
    return math.sqrt(float(squares.mean())), math.sqrt(float(squares[-1]))


def _checked(column: Array) -> Array:
    """Return a first column as float64."""
    found = np.asarray(column, dtype=np.float64)
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all() or found[0] != 1.0:
        raise ParameterError(f"column must be a vector of numbers that starts with 1, got {column!r:.80}.")
    return found
