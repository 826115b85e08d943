"""Randomized response: a bit, or one of k values, that lies with a probability everybody knows.

Lies are drawn by comparing a uniform 64-bit word with a whole threshold, so that their probability is exactly
threshold / 2**64. The threshold is rounded up, towards more lies: the level claimed is never exceeded.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_positive, real
from tacit.mechanisms.bernoulli import draw_words, exp_bounds
from tacit.numerics import Array, IntArray, as_floats, settle

__all__ = [
    "HIGHEST_LEVEL",
    "LOWEST_LEVEL",
    "BinaryRandomizedResponse",
    "KaryRandomizedResponse",
    "check_level",
    "level_from_v",
    "lie_threshold",
    "randomize_bits",
    "sampled_level",
    "whole_values",
]

LOWEST_LEVEL = 2.0**-30
"""Below this level, a report says nothing that 64 bits could show."""

HIGHEST_LEVEL = 30.0
"""Above this level there is no privacy to speak of, and hardly a lie left to draw."""

_WORD = 2**64


def check_level(name: str, epsilon: float, *, high: float = HIGHEST_LEVEL) -> float:
    """Return a local level as a Python float; refuse one that a report is not sampled at.

    Args:
        name: Of the level, for messages.
        epsilon: The level.
        high: Largest that is allowed; by default that of randomized response.
    """
    level = real(name, epsilon)
    if not LOWEST_LEVEL <= level <= high:  # stated as what is allowed: NaN fails it
        raise ParameterError(f"{name} must be in [2**-30, {high:g}], got {level!r}.")
    return level


@lru_cache(maxsize=1024)
def lie_threshold(epsilon: float, values: int | Fraction = 2) -> int:
    """Return how many of 2**64 words make a report lie, rounded up.

    Args:
        epsilon: Pure level of one report, in [2**-30, 30].
        values: Number k of values, from 2 to 2**31. A fraction k / w, above 1, where a report is a set of w
            values out of k, which holds its own value unless it lies.

    Returns:
        t with t / 2**64 >= (k - 1) / (e^epsilon + k - 1), above it by at most 2**-63. With k = 2, t < 2**63.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> lie_threshold(1.0) / 2**64
        0.2689414213699951
    """
    epsilon = check_level("epsilon", epsilon)
    if not isinstance(values, Fraction):
        values = check_count("values", values, low=2, high=2**31)
    elif not 1 < values <= 2**31:
        raise ParameterError(f"values must be above 1 and at most 2**31, got {values!s}.")
    # q = (k - 1) e^-epsilon; q / (1 + q) increases with it, so the upper end of the enclosure is safe.
    _, high = exp_bounds(Fraction(epsilon), 192)
    q = (values - 1) * Fraction(high, 1 << 192)
    return math.ceil(_WORD * q / (1 + q))


def sampled_level(epsilon: float, values: int | Fraction = 2) -> float:
    """Return the pure level that reports have whose lies `lie_threshold` counts: epsilon, or a hair less.

    Args:
        epsilon: Level that was asked for, in [2**-30, 30].
        values: As for `lie_threshold`.

    Returns:
        ln((1 - t) (k - 1) / t), rounded up, for the probability t of a lie; at most `epsilon`, because t is
        rounded up.

    Example:
        >>> sampled_level(30.0), sampled_level(1.0)
        (29.999999861221923, 1.0)
    """
    lies = lie_threshold(epsilon, values)
    excess = (_WORD - lies) * (Fraction(values) - 1) / lies - 1
    return min(epsilon, math.log1p(float(excess)) * (1 + 2.0**-50))


def randomize_bits(bits: Array, thresholds: Array | int, rng: np.random.Generator) -> IntArray:
    """Flip bits, each with the probability threshold / 2**64, exactly.

    Args:
        bits: Any shape, integers 0 and 1.
        thresholds: One whole number below 2**64, or uint64 of a shape that broadcasts to `bits`.
        rng: Source of one word a bit.

    Returns:
        Same shape, int64.
    """
    words = draw_words(bits.size, rng).reshape(bits.shape)
    return np.asarray(bits ^ (words < np.asarray(thresholds, dtype=np.uint64)), dtype=np.int64)


def level_from_v(v: float) -> float:
    """Return the level 2 asinh(v / 2) of the parameter v of Girgis (2023), Lemma 2.4.1.

    Raises:
        ParameterError: `v` is not a finite number > 0.

    Example:
        >>> round(level_from_v(1.0), 10)
        0.9624236501
    """
    v = check_positive("v", v)
    return 2 * math.asinh(v / 2)


@dataclass(frozen=True, slots=True)
class BinaryRandomizedResponse:
    """Send the bit that is held, flipped with probability 1 / (1 + e^epsilon).

    Attributes:
        epsilon: Pure level of one report, under replace-one. In [2**-30, 30].

    Guarantee:
        Pure epsilon-DP in floating-point arithmetic too, because the flip is exact; tight to 2**-64.

    Example:
        >>> response = BinaryRandomizedResponse.from_v(1.0)
        >>> round(response.flip_prob, 10), round(response.variance, 10)
        (0.2763932023, 1.0)
        >>> reports = response.sample(np.ones(1000, dtype=np.int64), np.random.default_rng(0))
        >>> bool(abs(response.decode(reports).mean() - 1) < 0.2)
        True

    Reference:
        Warner (1965); Girgis (2023), Algorithm 2.2.1, Theorem 2.4.1 and Lemma 2.4.1.
    """

    epsilon: float

    def __post_init__(self) -> None:
        settle(self)
        check_level("epsilon", self.epsilon)

    @classmethod
    def from_v(cls, v: float) -> BinaryRandomizedResponse:
        """Build it from the parameter v of Girgis (2023); see `level_from_v`."""
        return cls(level_from_v(v))

    @property
    def threshold(self) -> int:
        """Words below it flip."""
        return lie_threshold(self.epsilon)

    @property
    def flip_prob(self) -> float:
        """Probability p of a flip, as sampled."""
        return self.threshold / _WORD

    @property
    def gap(self) -> float:
        """1 - 2 p, without cancellation; tanh(epsilon / 2) but for the rounding of the threshold."""
        return (_WORD // 2 - self.threshold) / (_WORD // 2)

    @property
    def variance(self) -> float:
        """Variance p (1 - p) / (1 - 2 p)^2 of one decoded report, whatever the bit."""
        return (1 / self.gap**2 - 1) / 4

    def sample(self, bits: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Randomize bits.

        Args:
            bits: Any shape, integers or booleans 0 and 1.
            rng: Source of the flips.

        Returns:
            Same shape, int64.

        Raises:
            ParameterError: An entry is not 0 or 1, or the dtype is not whole.
        """
        held = whole_values("bits", bits, 2)
        return randomize_bits(held, self.threshold, rng)

    def decode(self, reports: npt.ArrayLike) -> Array:
        """Map reports 0 and 1 to unbiased numbers (report - p) / (1 - 2 p)."""
        return (whole_values("reports", reports, 2) - 0.5) / self.gap + 0.5

    def log_pmf(self, report: int, bit: int) -> float:
        """Log-probability of `report` from a party that holds `bit`."""
        return math.log(1 - self.flip_prob if report == bit else self.flip_prob)

    def renyi(self, orders: npt.ArrayLike) -> Array:
        """Return the Rényi divergence of the two laws at each order > 1, exactly (Girgis 2023, A.5).

        Raises:
            ParameterError: An order is not above 1.
        """
        alpha = as_floats("orders", orders)
        if not np.all(alpha > 1):
            raise ParameterError("orders must be above 1.")
        log_p, log_q = math.log(self.flip_prob), math.log1p(-self.flip_prob)
        both = np.logaddexp(alpha * log_p + (1 - alpha) * log_q, alpha * log_q + (1 - alpha) * log_p)
        return np.asarray(both / (alpha - 1))


@dataclass(frozen=True, slots=True)
class KaryRandomizedResponse:
    """Send the value that is held, or, with probability (k - 1) / (e^epsilon + k - 1), another one.

    Attributes:
        epsilon: Pure level of one report, in [2**-30, 30].
        values: Number k of values, from 2 to 2**31.

    Example:
        >>> response = KaryRandomizedResponse(2.0, 4)
        >>> response.sample(np.array([0, 3]), np.random.default_rng(1)).shape
        (2,)

    Reference:
        Kairouz, Bonawitz and Ramage (2016), ICML.
    """

    epsilon: float
    values: int

    def __post_init__(self) -> None:
        settle(self)
        lie_threshold(self.epsilon, self.values)

    @property
    def lie_prob(self) -> float:
        """Probability that the report is another value, as sampled."""
        return lie_threshold(self.epsilon, self.values) / _WORD

    def sample(self, held: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Randomize values, any shape, 0 to k - 1.

        Raises:
            ParameterError: A value is out of range, or the dtype is not whole.
        """
        return self.draw(whole_values("held", held, self.values), rng)

    def draw(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Randomize whole numbers that are known to be from 0 to k - 1; see `sample`."""
        lies = draw_words(values.size, rng).reshape(values.shape) < np.uint64(
            lie_threshold(self.epsilon, self.values)
        )
        # Drawn for everybody, so that how many numbers are used does not depend on who lies.
        shift = rng.integers(1, self.values, size=values.shape)
        return np.asarray((values + lies * shift) % self.values, dtype=np.int64)

    def decode(self, counts: npt.ArrayLike) -> Array:
        """Return unbiased estimates of how often each value is held.

        Args:
            counts: Shape (k,), how often each value was reported.

        Returns:
            Shape (k,), float64, adding up to the number of reports.

        Raises:
            ParameterError: Another shape.
        """
        seen = as_floats("counts", np.asarray(counts, dtype=np.float64))
        if seen.shape != (self.values,):
            raise ParameterError(f"counts must have shape ({self.values},), got {seen.shape}.")
        other = self.lie_prob / (self.values - 1)
        return np.asarray((seen - seen.sum() * other) / (1 - self.lie_prob - other))

    def log_pmf(self, report: int, held: int) -> float:
        """Log-probability of `report` from a party that holds `held`."""
        return math.log(1 - self.lie_prob if report == held else self.lie_prob / (self.values - 1))


def whole_values(name: str, values: npt.ArrayLike, high: int) -> IntArray:
    """Read whole numbers from 0 to high - 1.

    Args:
        name: What an error calls them.
        values: Any shape, integers or booleans.
        high: Number of values.

    Returns:
        The same shape, int64.

    Raises:
        ParameterError: An entry is out of range, or the dtype is not whole. No entry is quoted.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "biu":
        raise ParameterError(f"{name} must be whole numbers, got dtype {array.dtype}.")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < high:
        raise ParameterError(f"{name} must be from 0 to {high - 1}; at least one lies outside.")
    return array.astype(np.int64)
