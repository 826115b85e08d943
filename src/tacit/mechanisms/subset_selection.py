"""Subset selection: a random set of values, which holds one's own more often than chance."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.mechanisms.bernoulli import draw_below, draw_words
from tacit.mechanisms.randomized_response import check_level, lie_threshold, sampled_level, whole_values
from tacit.numerics import BoolArray, IntArray, settle, subset_size

__all__ = ["SubsetRandomizer"]

_SMALL = 32
"""Members of a subset up to which they are drawn one by one."""


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
            Shape (n, k): which values are in each set, w in every row. It takes some 3 n k bytes.

        Raises:
            ParameterError: A value is out of range, or the dtype is not whole.
        """
        values = np.atleast_1d(whole_values("held", held, self.values))
        n, k, w = values.size, self.values, self.size
        lies = draw_words(n, rng) < np.uint64(self._lies)
        # w - 1 of the k - 1 others, and one more that is in only where the own value is not: drawn for
        # everybody, so that how many numbers are used does not depend on who lies.
        inside = np.zeros((n, k), dtype=np.bool_)
        inside[:, : k - 1] = _few_of(k - 1, w - 1, n, rng)
        more = _one_outside(inside[:, : k - 1], rng)
        rows = np.arange(n)
        inside[rows, more] = lies
        # The others are all but the own value: the last column stands for what was drawn in its place.
        inside[rows, k - 1] = inside[rows, values]
        inside[rows, values] = ~lies
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


def _few_of(k: int, size: int, n: int, rng: np.random.Generator) -> BoolArray:
    """Draw n uniform subsets of k places with `size` members each."""
    return one_by_one(k, size, n, rng) if size <= _SMALL else from_bits(k, size, n, rng)


def one_by_one(k: int, size: int, n: int, rng: np.random.Generator) -> BoolArray:
    """Draw small subsets: one of the first j places, or the j-th where it is in already, for the last j.

    Reference:
        Bentley and Floyd (1987), Communications of the ACM 30(9), Algorithm F2.
    """
    sets = np.zeros((n, k), dtype=np.bool_)
    flat, first = sets.reshape(-1), np.arange(n) * k
    for last in range(k - size, k):
        spots = first + rng.integers(0, last + 1, size=n)
        flat[np.where(flat[spots], first + last, spots)] = True
    return sets


def from_bits(k: int, size: int, n: int, rng: np.random.Generator) -> BoolArray:
    """Draw large subsets: independent bits, then random places until the size is right.

    No step prefers a place to another, so all subsets of a size are equally likely, whatever the rate of the
    bits: it only decides how long that takes. Missing places are found faster than those too many.
    """
    sets = draw_below(int((size - 2 * math.sqrt(size)) / k * 2**64), n * k, rng).reshape(n, k)
    flat, lacks = sets.reshape(-1), size - sets.sum(axis=1)
    while (rows := np.flatnonzero(lacks)).size:
        grows, some = lacks[rows, None] > 0, np.abs(lacks[rows, None])
        spots = rows[:, None] * k + rng.integers(0, k, size=(rows.size, 1 + int(some.mean())))
        # Of a row, the first places that are not as they should be, and no more than it lacks.
        turns = flat[spots] != grows
        turns &= np.cumsum(turns, axis=1) <= some
        flat[spots[turns]] = np.broadcast_to(grows, turns.shape)[turns]
        lacks[rows] = size - sets[rows].sum(axis=1)
    return sets


def _one_outside(sets: BoolArray, rng: np.random.Generator) -> IntArray:
    """Draw a place that is not in each of n sets, shape (n, k)."""
    places = np.zeros(len(sets), dtype=np.int64)
    rows = np.arange(len(sets))
    while rows.size:
        places[rows] = rng.integers(0, sets.shape[1], size=rows.size)
        rows = rows[sets[rows, places[rows]]]
    return places
