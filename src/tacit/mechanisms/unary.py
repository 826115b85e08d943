"""Unary encoding: one bit for each of k values, each answered by itself."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.errors import check_count
from tacit.mechanisms.bernoulli import draw_below
from tacit.mechanisms.randomized_response import check_level, lie_threshold, sampled_level, whole_values
from tacit.numerics import BoolArray, settle

__all__ = ["UnaryRandomizer"]

_WORD = 2**64


@dataclass(frozen=True)
class UnaryRandomizer:
    """Answer for every one of k values whether it is held.

    Symmetric (RAPPOR): every answer is a randomized response at half of the level, since two answers differ
    between two inputs. Otherwise (optimised): the held value is named with probability 1/2, every other one
    with probability 1 / (e^epsilon + 1), which has the least variance for rare values.

    Attributes:
        epsilon: Pure level of all answers together, in [2**-29, 30].
        values: Number k of values, from 2 to 2**31.
        symmetric: Whether both kinds of answers are equally often wrong.

    Guarantee:
        Pure epsilon-DP in floating-point arithmetic too: flips are drawn exactly.

    Example:
        >>> optimised = UnaryRandomizer(1.0, 4)
        >>> optimised.held_prob, round(optimised.other_prob, 6)
        (0.5, 0.268941)
        >>> optimised.sample(np.array([0, 3]), np.random.default_rng(0)).shape
        (2, 4)

    Reference:
        Erlingsson, Pihur and Korolova (2014), CCS (one-time RAPPOR); Wang, Blocki, Li and Jha (2017), USENIX
        Security, section 4.2.
    """

    epsilon: float
    values: int
    symmetric: bool = False

    def __post_init__(self) -> None:
        settle(self)
        check_level("epsilon", self.epsilon)
        check_level("epsilon / 2", self.epsilon / 2)
        check_count("values", self.values, low=2, high=2**31)

    @cached_property
    def thresholds(self) -> tuple[int, int]:
        """Words below which a value is named: one that is not held, and the held one."""
        if self.symmetric:
            lies = lie_threshold(self.epsilon / 2)
            return lies, _WORD - lies
        return lie_threshold(self.epsilon), _WORD // 2

    @property
    def other_prob(self) -> float:
        """Probability that a value which is not held is named, as sampled."""
        return self.thresholds[0] / _WORD

    @property
    def held_prob(self) -> float:
        """Probability that the held value is named, as sampled."""
        return self.thresholds[1] / _WORD

    @property
    def level(self) -> float:
        """Pure level of what is sampled, rounded up, at most `epsilon`."""
        return 2 * sampled_level(self.epsilon / 2) if self.symmetric else sampled_level(self.epsilon)

    def sample(self, held: npt.ArrayLike, rng: np.random.Generator) -> BoolArray:
        """Answer for values, shape (n,), 0 to k - 1.

        Returns:
            Shape (n, k): whether each value is named. It takes n k bytes.

        Raises:
            ParameterError: A value is out of range, or the dtype is not whole.
        """
        values = np.atleast_1d(whole_values("held", held, self.values))
        low, high = self.thresholds
        named = draw_below(low, values.size * self.values, rng).reshape(values.size, self.values)
        named[np.arange(values.size), values] = draw_below(high, values.size, rng)
        return named

    def log_pmf(self, report: npt.ArrayLike, held: int) -> float:
        """Log-probability of a report, shape (k,), from a party that holds `held`."""
        named = np.asarray(report, dtype=bool)
        probs = np.full(self.values, self.other_prob)
        probs[held] = self.held_prob
        return math.fsum(np.log(np.where(named, probs, 1 - probs)).tolist())
