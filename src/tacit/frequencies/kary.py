"""k-ary randomized response: the value itself, or any other."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit.frequencies.bands import Band
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.support import Support
from tacit.frequencies.symbols import SymbolOracle
from tacit.mechanisms import KaryRandomizedResponse, lie_threshold, sampled_level
from tacit.numerics import Array, IntArray

__all__ = ["KaryResponse"]


class KaryResponse(SymbolOracle, frozen=True, kw_only=True, tag="krr", dict=True):
    """Send the value, or another one with probability (k - 1) / (e^epsilon + k - 1).

    The best of all where e^epsilon is well above k; its error grows as k^2.

    Guarantee:
        Pure epsilon-DP, exact: see `tacit.mechanisms.KaryRandomizedResponse`.

    Example:
        >>> oracle = KaryResponse(k=4, epsilon=1.0)
        >>> round(oracle.mse(1, [0.4, 0.3, 0.2, 0.1]), 6), oracle.message_bits
        (8.256223, 2)

    Reference:
        Kairouz, Bonawitz and Ramage (2016), ICML; Girgis (2023), Table 7.1.
    """

    code: ClassVar[int] = 2

    @cached_property
    def randomizer(self) -> KaryRandomizedResponse:
        """How a value is answered."""
        return KaryRandomizedResponse(self.epsilon, self.k)

    @property
    def name(self) -> str:
        """The law of a message."""
        return f"krr:{self.k}"

    @property
    def level(self) -> float:
        """Pure level of what is sampled."""
        return sampled_level(self.epsilon, self.k)

    @property
    def outcomes(self) -> int:
        """The k values."""
        return self.k

    @property
    def entropy_bits(self) -> float:
        """Entropy of the answer."""
        lie = self.randomizer.lie_prob
        return -((1 - lie) * math.log1p(-lie) + lie * math.log(lie / (self.k - 1))) / math.log(2)

    @cached_property
    def support(self) -> Support:
        """An answer supports the value that it names."""
        lies = Fraction(lie_threshold(self.epsilon, self.k), 2**64)
        other = lies / (self.k - 1)
        return Support(float(1 - lies), float(other), float(1 - lies - other))

    def estimate(self, counts: Counts) -> Array:
        """Count answers; see `FrequencyOracle.estimate`."""
        return self.support.estimate(self._counts(counts), counts.n)

    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return exact variances; see `FrequencyOracle.variances`."""
        return self.support.variances(n, as_shares("frequencies", frequencies, self.k))

    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return binomial intervals for all values at once; see `FrequencyOracle.band`."""
        return self.support.band(self._counts(counts), counts.n, confidence)

    def message_law(self, p: npt.ArrayLike) -> Array:
        """Return the law of an answer."""
        p = np.asarray(p, dtype=np.float64)
        return np.asarray(self.support.other * p.sum(axis=-1, keepdims=True) + self.support.gap * p)

    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array:  # noqa: ARG002
        return self.randomizer.draw(values, rng)
