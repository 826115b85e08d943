"""Mechanisms whose messages each support some values: a held one with probability P, others with Q."""

from __future__ import annotations

from typing import NamedTuple

from tacit.errors import check_count
from tacit.frequencies.bands import Band, binomial_limits
from tacit.frequencies.counts import as_shares
from tacit.numerics import Array, IntArray

__all__ = ["Support"]


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
