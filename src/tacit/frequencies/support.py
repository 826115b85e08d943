"""Mechanisms whose messages each support some values: a held one with probability P, others with Q."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tacit.errors import check_count
from tacit.frequencies.bands import Band, binomial_limits
from tacit.frequencies.counts import as_shares
from tacit.numerics import Array, IntArray

__all__ = ["Support"]

_SAME = 1e-9  # ends that were written and read again


class Support(NamedTuple):
    """How likely a message supports a value.

    The number of messages that support value x is a sum of independent bits, and unbiased for n (Q + f_x (P -
    Q)). So errors are exact and intervals are those of binomial counts.

    Attributes:
        held: P, where the client holds the value.
        other: Q, where the client holds another value.
        gap: P - Q, with all its digits.

    Reference:
        Wang, Blocki, Li and Jha (2017), USENIX Security, section 3 (pure protocols).
    """

    held: float
    other: float
    gap: float

    def estimate(self, supports: IntArray, n: int) -> Array:
        """Return unbiased frequencies from the number of messages that support each value."""
        return (supports / n - self.other) / self.gap

    def variances(self, n: int, frequencies: Array) -> Array:
        """Return the variance of each estimate; see `FrequencyOracle.variances`."""
        f = as_shares("frequencies", frequencies, len(frequencies))
        held, other = self.held * (1 - self.held), self.other * (1 - self.other)
        return (other + f * (held - other)) / (self.gap**2 * check_count("n", n))

    def band(self, supports: IntArray, n: int, confidence: float, *, intervals: int | None = None) -> Band:
        """Return intervals for all values at once, or for some of `intervals`; see `FrequencyOracle.band`."""
        low, high = binomial_limits(supports, n, confidence, intervals=intervals or supports.size)
        return Band.inside((low - self.other) / self.gap, (high - self.other) / self.gap, confidence)

    def allows(self, intervals: Array, n: int, confidence: float) -> bool:
        """Whether there are numbers of messages for which `band` returns all of these intervals.

        Args:
            intervals: Shape (k, 2): lower and upper ends.
            n: Number of messages.
            confidence: As for `band`.

        Cost:
            About log2(n) times k calls of `band`, less where intervals are equal.
        """
        ends = np.unique(intervals, axis=0)
        low, high = np.zeros(len(ends), dtype=np.int64), np.full(len(ends), n, dtype=np.int64)

        def band(supports: IntArray) -> Array:
            return self.band(supports, n, confidence, intervals=len(intervals)).intervals

        # Both ends grow with the number: the first one whose ends are not below is the only one to look at.
        while np.any(low < high):
            middle = low + (high - low) // 2
            enough = np.all(band(middle) >= ends - _SAME, axis=1)
            low, high = np.where(enough, low, middle + 1), np.where(enough, middle, high)
            low = np.minimum(low, high)
        return bool(np.all(np.abs(band(low) - ends) <= _SAME))
