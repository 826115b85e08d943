"""Subset selection: a random set of values, which holds one's own more often than chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.mechanisms.bernoulli import draw_words
from tacit.mechanisms.randomized_response import check_level, lie_threshold, sampled_level, whole_values
from tacit.numerics import BoolArray, settle, subset_size

__all__ = ["SubsetRandomizer"]


@dataclass(frozen=True)
class SubsetRandomizer:
    """Send a set of w values out of k; sets that hold one's own value are e^epsilon times as likely.

    Attributes:
        epsilon: Pure level of one report, in [2**-30, 30].
        values: Number k of values, from 2 to 2**31.

    Guarantee:
        Pure epsilon-DP in floating-point arithmetic too: whether the own value is in it is drawn exactly, and
        the others are a uniform set.

    Example:
        >>> response = SubsetRandomizer(1.0, 10)
        >>> response.sample(np.array([0, 3]), np.random.default_rng(0)).sum(axis=1).tolist()
        [3, 3]

    Reference:
        Ye and Barg (2018), IEEE Trans. Inf. Theory 64(8); Wang et al. (2016), arXiv:1607.08025.
    """

    epsilon: float
    values: int

    def __post_init__(self) -> None:
        settle(self)
        check_level("epsilon", self.epsilon)
        subset_size(self.values, self.epsilon)

    @cached_property
    def size(self) -> int:
        """Number w of values in a set."""
        return subset_size(self.values, self.epsilon)

    @property
    def lie_prob(self) -> float:
        """Probability that the own value is not in the set, as sampled."""
        return self._lies / 2**64

    @property
    def held_prob(self) -> float:
        """Probability that the own value is in the set, as sampled."""
        return (2**64 - self._lies) / 2**64

    @property
    def other_prob(self) -> float:
        """Probability that another value is in the set, as sampled."""
        return (self.size - self.held_prob) / (self.values - 1)

    @property
    def level(self) -> float:
        """Pure level of what is sampled, rounded up, at most `epsilon`."""
        return sampled_level(self.epsilon, Fraction(self.values, self.size))

    @cached_property
    def _lies(self) -> int:
        return lie_threshold(self.epsilon, Fraction(self.values, self.size))

    def sample(self, held: npt.ArrayLike, rng: np.random.Generator) -> BoolArray:
        """Draw sets for values, shape (n,), 0 to k - 1.

        Returns:
            Shape (n, k): which values are in each set, w in every row. It takes some 2 n k bytes.

        Raises:
            ParameterError: A value is out of range, or the dtype is not whole.
        """
        values = np.atleast_1d(whole_values("held", held, self.values))
        n, k, w = values.size, self.values, self.size
        lies = draw_words(n, rng) < np.uint64(self._lies)
        # A random order of w - 1 others that are in, one that is in only where the own value is not, and the
        # rest; drawn for everybody, so that how many numbers are used does not depend on who lies.
        order = np.zeros((n, k - 1), dtype=np.uint8)
        order[:, : w - 1] = 1
        order[:, w - 1] = 2 * lies
        order = rng.permuted(order, axis=1)
        inside = np.zeros((n, k), dtype=np.bool_)
        own = np.arange(k) == values[:, None]
        inside[~own] = order.ravel() > 0
        inside[own] = ~lies
        return inside

    def log_pmf(self, report: npt.ArrayLike, held: int) -> float:
        """Log-probability of a report, shape (k,), from a party that holds `held`."""
        k, w = self.values, self.size
        inside = np.asarray(report, dtype=bool)
        if inside.sum() != w:
            return -math.inf
        prob, rest = (self.held_prob, w - 1) if inside[held] else (self.lie_prob, w)
        ways = special.gammaln(k) - special.gammaln(rest + 1) - special.gammaln(k - rest)
        return math.log(prob) - float(ways)
