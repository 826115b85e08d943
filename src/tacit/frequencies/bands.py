"""Intervals that hold many frequencies at once, with a coverage that is proven for every n."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import check_probability
from tacit.numerics import Array, IntArray

__all__ = ["Band", "bernstein_radius", "binomial_limits", "log_inverse"]

_ROWS = "the frequencies of the rows, and of the distribution that independent rows come from"

_ALL = "the frequencies of all rows"


@dataclass(frozen=True, eq=False)
class Band:
    """Intervals that hold all frequencies with one probability.

    Attributes:
        lower: Shape (k,), in [0, 1].
        upper: Shape (k,), in [0, 1], >= `lower`.
        confidence: Probability that none misses, at least, over the noise of the clients.
        covers: What they hold.
    """

    lower: Array
    upper: Array
    confidence: float
    covers: str = _ROWS

    @classmethod
    def inside(cls, lower: Array, upper: Array, confidence: float, covers: str = _ROWS) -> Self:
        """Cut intervals to [0, 1], where frequencies are."""
        return cls(np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0), confidence, covers)

    def of_all(self, rows: int, values: int, confidence: float) -> Band:
        """Return intervals of the frequencies of all rows from those of the rows that were dealt at random.

        Args:
            rows: How many were dealt; these are the ones that this band is about.
            values: The most values that all rows hold.
            confidence: That no value's number of dealt rows misleads; what it leaves adds to what this band
                leaves.
        """
        # How many of a value's rows were dealt is hypergeometric: a sum of independent bits, as all zeros of
        # its generating function are real. A value without rows has none among the dealt ones.
        low = np.maximum(np.ceil(rows * self.lower - 1e-6).astype(np.int64), 0)
        high = np.minimum(np.floor(rows * self.upper + 1e-6).astype(np.int64), rows)
        lower, _ = binomial_limits(low, rows, confidence, intervals=values)
        _, upper = binomial_limits(high, rows, confidence, intervals=values)
        return Band.inside(lower, upper, self.confidence + confidence - 1, _ALL)

    @property
    def intervals(self) -> Array:
        """Lower and upper ends, shape (k, 2)."""
        return np.stack([self.lower, self.upper], axis=1)


def binomial_limits(
    counts: IntArray, n: int, confidence: float, *, intervals: int
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return limits of the mean probabilities of sums of independent bits, all at once.

    Args:
        counts: Shape (m,): each a sum of n independent bits, whose probabilities may differ.
        n: Number of bits, >= 1.
        confidence: That no interval misses, in (0, 1).
        intervals: Number of intervals that share it (Bonferroni).

    Returns:
        (lower, upper), shape (m,) each, for the mean of the n probabilities.

    Raises:
        ParameterError: `confidence` is not in (0, 1).

    Reference:
        Clopper and Pearson (1934), for counts that are moved by one. Hoeffding (1956), Ann. Math. Stat. 27,
        Theorem 4: one and more off its mean, the tail of a sum of different bits is at most that of equal
        ones.
    """
    confidence = check_probability("confidence", confidence, low_open=True, high_open=True)
    alpha = (1 - confidence) / (2 * intervals)
    seen, place = np.unique(counts, return_inverse=True)
    few, many = np.maximum(seen - 1, 0), np.minimum(seen + 1, n)
    lower = np.where(few > 0, special.betaincinv(np.maximum(few, 1), n - few + 1, alpha), 0.0)
    upper = np.where(many < n, special.betainccinv(many + 1, np.maximum(n - many, 1), alpha), 1.0)
    return lower[place], upper[place]


def bernstein_radius(second_moments: npt.ArrayLike, largest: float, log_inverse: float) -> Array:
    """Return how far a sum of independent numbers is from its mean at most, to one side.

    Args:
        second_moments: Any shape: bound on the sum of the second moments of the numbers, around any points
            that no number exceeds by more than `largest`.
        largest: Bound on a number, > 0.
        log_inverse: Logarithm of 1 over the probability to be off by more, > 0.

    Returns:
        The radius, of the same shape.

    Reference:
        Bernstein's inequality; E e^{t (Z - E Z)} <= exp(E Z^2 (e^{t b} - 1 - t b) / b^2) needs Z <= b only.
    """
    shift = largest * log_inverse / 3
    return np.asarray(shift + np.sqrt(shift**2 + 2 * np.asarray(second_moments) * log_inverse))


def log_inverse(confidence: float, intervals: int) -> float:
    """Return ln(2 m / (1 - confidence)) for m two-sided intervals at once."""
    confidence = check_probability("confidence", confidence, low_open=True, high_open=True)
    return math.log(2 * intervals / (1 - confidence))
