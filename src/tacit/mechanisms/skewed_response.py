"""A bit that is answered with few random bits: mostly 0, and less often where it does not hold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, real
from tacit.mechanisms.bernoulli import draw_words, exp_bounds
from tacit.mechanisms.randomized_response import (
    check_level,
    lie_threshold,
    sampled_level,
    whole_values,
)
from tacit.numerics import IntArray, binary_entropy, binary_entropy_inv, settle

__all__ = ["LEAST_RANDOM_BITS", "SkewedResponse"]

LEAST_RANDOM_BITS = 1e-9
"""Below this entropy a report is hardly ever 1, and 64 bits do not show how seldom."""

_WORD = 2**64
_ROUNDED = 1e-12  # what the inverse of the entropy may be off by, relatively


@dataclass(frozen=True)
class SkewedResponse:
    """Report 1 with probability q where the bit is 1, and q e^-epsilon where it is 0.

    With h bits of randomness or more, h the entropy of a coin of odds e^epsilon, q = e^epsilon / (1 +
    e^epsilon): randomized response. With fewer, R, q is the probability, at most 1/2, of a coin of entropy R:
    no report needs more than R random bits on average, and the variance grows as 1 / q.

    Attributes:
        epsilon: Pure level of one report, under replace-one. In [2**-30, 30].
        random_bits: Bound R on the entropy of a report given the bit, in [1e-9, 1].

    Guarantee:
        Pure epsilon-DP in floating-point arithmetic too: both probabilities are whole multiples of 2**-64,
        rounded to the safe side.

    Example:
        >>> full, few = SkewedResponse(1.0), SkewedResponse(1.0, 0.7)
        >>> round(full.one_prob, 6), round(few.one_prob, 6), round(few.entropy_bits, 6)
        (0.731059, 0.189298, 0.7)

    Reference:
        Girgis (2023), (7.27) and Theorem 7.3.2; of its key only the entropy given the input is bounded by R.
    """

    epsilon: float
    random_bits: float = 1.0

    def __post_init__(self) -> None:
        settle(self)
        check_level("epsilon", self.epsilon)
        bits = real("random_bits", self.random_bits)
        if not LEAST_RANDOM_BITS <= bits <= 1:  # stated as what is allowed: NaN fails it
            raise ParameterError(f"random_bits must be in [1e-9, 1], got {bits!r}.")

    @cached_property
    def symmetric(self) -> bool:
        """Whether there are random bits enough for randomized response."""
        return self.random_bits >= binary_entropy(float(special.expit(-self.epsilon)))

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Words below which a report is 1: where the bit is 0, and where it is 1."""
        if self.symmetric:
            lies = lie_threshold(self.epsilon)
            return lies, _WORD - lies
        # Down and up: the ratio of ones is never above e^epsilon. That of zeros is far below it.
        one = math.floor(binary_entropy_inv(self.random_bits) * (1 - _ROUNDED) * _WORD)
        _, high = exp_bounds(Fraction(self.epsilon), 192)
        return math.ceil(one * Fraction(high, 1 << 192)), one

    @cached_property
    def _words(self) -> npt.NDArray[np.uint64]:
        return np.array(self.thresholds, dtype=np.uint64)

    @property
    def zero_prob(self) -> float:
        """Probability of a 1 where the bit is 0, as sampled."""
        return self.thresholds[0] / _WORD

    @property
    def one_prob(self) -> float:
        """Probability q of a 1 where the bit is 1, as sampled."""
        return self.thresholds[1] / _WORD

    @property
    def gap(self) -> float:
        """Difference of the two probabilities, without cancellation."""
        low, high = self.thresholds
        return (high - low) / _WORD

    @property
    def level(self) -> float:
        """Pure level of what is sampled, rounded up, at most `epsilon`."""
        if self.symmetric:
            return sampled_level(self.epsilon)
        low, high = self.thresholds
        ones = math.log1p(float(Fraction(high - low, low)))
        zeros = math.log1p(float(Fraction(high - low, _WORD - high)))
        return min(self.epsilon, max(ones, zeros) * (1 + 2.0**-50))

    @property
    def entropy_bits(self) -> float:
        """Entropy of a report, given the bit that needs more."""
        rarer = [min(ones, _WORD - ones) / _WORD for ones in self.thresholds]  # 1 - p would lose its digits
        return max(map(binary_entropy, rarer))

    def sample(self, bits: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Answer bits.

        Args:
            bits: Any shape, integers or booleans 0 and 1.
            rng: Source of one word a report.

        Returns:
            Same shape, int64.

        Raises:
            ParameterError: An entry is not 0 or 1, or the dtype is not whole.
        """
        return self.draw(whole_values("bits", bits, 2), rng)

    def draw(self, bits: npt.NDArray[np.integer], rng: np.random.Generator) -> IntArray:
        """Answer whole numbers that are known to be 0 and 1; see `sample`."""
        words = draw_words(bits.size, rng).reshape(bits.shape)
        return np.asarray(words < self._words[bits], dtype=np.int64)

    def log_pmf(self, report: int, bit: int) -> float:
        """Log-probability of `report` from a party that holds `bit`."""
        ones = self.thresholds[bit]
        return math.log((ones if report else _WORD - ones) / _WORD)
