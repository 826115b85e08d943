"""Mechanisms whose message is a set of values: unary encodings and subset selection."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from functools import cached_property
from math import comb
from typing import ClassVar

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_count
from tacit.frequencies.bands import Band
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.oracle import FrequencyOracle
from tacit.frequencies.support import Support
from tacit.mechanisms import SubsetRandomizer, UnaryRandomizer, sample_binomial
from tacit.numerics import Array, IntArray, binary_entropy

__all__ = ["SetOracle", "SubsetSelection", "UnaryEncoding"]

_FEW = 256
"""Clients below which unary answers are drawn one by one."""


class SetOracle(FrequencyOracle, frozen=True, kw_only=True, dict=True):
    """A mechanism whose messages are sets of values, k bits each; see `FrequencyOracle`."""

    @property
    @abstractmethod
    def support(self) -> Support:
        """How likely a set holds the value of its client, or another one."""

    @property
    def message_bits(self) -> int:
        """One bit a value."""
        return self.k

    @property
    def outcomes(self) -> int:
        """The k values."""
        return self.k

    def estimate(self, counts: Counts) -> Array:
        """Count sets; see `FrequencyOracle.estimate`."""
        return self.support.estimate(self._counts(counts), counts.n)

    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return exact variances; see `FrequencyOracle.variances`."""
        return self.support.variances(n, as_shares("frequencies", frequencies, self.k))

    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return binomial intervals for all values at once; see `FrequencyOracle.band`."""
        return self.support.band(self._counts(counts), counts.n, confidence)

    def aggregate(self, messages: npt.ArrayLike) -> Counts:
        """Count how many sets hold each value.

        Args:
            messages: Shape (n, k), booleans.

        Raises:
            ParameterError: Another shape or dtype, or no set that `encode` makes.
        """
        sets = self._sets(messages)
        return self._counted(len(sets), sets.sum(axis=0, dtype=np.int64))

    def simulate(self, p: npt.ArrayLike, n: int, rng: np.random.Generator) -> Counts:
        """Draw values, and then counts given how often each is held."""
        held = rng.multinomial(check_count("n", n), as_shares("p", p, self.k))
        return self._simulated(held, rng)

    def _simulated(self, held: IntArray, rng: np.random.Generator) -> Counts:
        """Draw counts given how often each value is held."""
        return self.collect(np.repeat(np.arange(self.k), held), rng)

    def _sets(self, messages: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        sets = np.asarray(messages)
        if sets.dtype != np.bool_ or sets.ndim != 2 or sets.shape[1] != self.k:
            raise ParameterError(
                f"messages must be booleans of shape (n, {self.k}), got {sets.dtype} of shape {sets.shape}."
            )
        return sets

    @property
    def _bits_drawn(self) -> int:
        return self.k

    def _packed(self, messages: Array) -> npt.NDArray[np.uint8]:
        return np.packbits(self._sets(messages), axis=1)

    def _unpacked(self, rows: npt.NDArray[np.uint8], first: int) -> Array:  # noqa: ARG002 - one protocol
        bits = np.unpackbits(rows, axis=1).astype(np.bool_)
        if bits[:, self.k :].any():
            raise ParameterError("the padding of a message must be zero.")
        return self._sets(bits[:, : self.k])


class UnaryEncoding(SetOracle, frozen=True, kw_only=True, tag="unary", dict=True):
    """Answer for every value by itself whether it is held: optimised (OUE), or symmetric (RAPPOR).

    Attributes:
        symmetric: Whether both kinds of answers are equally often wrong; the optimised encoding has less
            error wherever no value is frequent.

    Guarantee:
        Pure epsilon-DP, exact: see `tacit.mechanisms.UnaryRandomizer`. The flip probability of symmetric
        answers is 1 / (e^{epsilon / 2} + 1), because two of them differ between two values.

    Example:
        >>> rappor = UnaryEncoding(k=1000, epsilon=1.0, symmetric=True)
        >>> round(rappor.mse(1), 4), round(rappor.entropy_bits, 6)
        (3918.6971, 956.286539)

    Reference:
        Erlingsson, Pihur and Korolova (2014), CCS; Wang, Blocki, Li and Jha (2017), USENIX Security; Girgis
        (2023), Table 7.1, whose randomness belongs to twice the level.
    """

    symmetric: bool = False

    code: ClassVar[int] = 4
    symmetric_code: ClassVar[int] = 8

    @property
    def _code(self) -> int:
        return self.symmetric_code if self.symmetric else self.code

    def _check(self) -> None:
        UnaryRandomizer(self.epsilon, self.k, self.symmetric)

    @cached_property
    def randomizer(self) -> UnaryRandomizer:
        """How a value is answered."""
        return UnaryRandomizer(self.epsilon, self.k, self.symmetric)

    @property
    def name(self) -> str:
        """The law of a message."""
        return f"{'rappor' if self.symmetric else 'oue'}:{self.k}"

    @property
    def level(self) -> float:
        """Pure level of what is sampled."""
        return self.randomizer.level

    @property
    def entropy_bits(self) -> float:
        """Entropy of all answers."""
        held, other = binary_entropy(self.randomizer.held_prob), binary_entropy(self.randomizer.other_prob)
        return held + (self.k - 1) * other

    @cached_property
    def support(self) -> Support:
        """An answer supports the values that it names."""
        low, high = self.randomizer.thresholds
        return Support(high / 2**64, low / 2**64, (high - low) / 2**64)

    def collect(self, values: npt.ArrayLike, rng: np.random.Generator, *, first: int = 0) -> Counts:
        """Draw how many clients name each value, at once and as exactly; see `FrequencyOracle.collect`.

        Cost:
            n k / 32 words of 64 bits, where answers one by one take four times as many.
        """
        held = np.bincount(self._values(values), minlength=self.k)
        n, (low, high) = int(held.sum()), self.randomizer.thresholds
        if n < _FEW:  # a word for every value and bit would be more
            return super().collect(values, rng, first=first)
        named = sample_binomial(held, high, rng) + sample_binomial(n - held, low, rng)
        return self._counted(n, named)

    def channel_matrix(self) -> Array:
        """Return the law of all 2**k answers, in the order of binary numbers, value 0 first."""
        self._check_matrix(2 ** min(self.k, 64))
        sets = np.array(list(itertools.product((False, True), repeat=self.k)))
        named = np.where(sets, self.support.other, 1 - self.support.other)
        own = np.where(sets, self.support.held, 1 - self.support.held)
        return np.asarray((named.prod(axis=1, keepdims=True) / named * own).T)

    def _simulated(self, held: IntArray, rng: np.random.Generator) -> Counts:
        """Draw two binomial numbers for every value."""
        n = int(held.sum())
        named = rng.binomial(held, self.support.held) + rng.binomial(n - held, self.support.other)
        return self._counted(n, named)

    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array:  # noqa: ARG002
        return self.randomizer.sample(values, rng)


class SubsetSelection(SetOracle, frozen=True, kw_only=True, tag="ss", dict=True):
    """Send a set of w = ceil(k / (e^epsilon + 1)) values, which holds the own value more often than chance.

    The least error of all, in the first order, at every level. A message takes k bits, and n of them n k
    draws.

    Guarantee:
        Pure epsilon-DP, exact: see `tacit.mechanisms.SubsetRandomizer`.

    Example:
        >>> oracle = SubsetSelection(k=10, epsilon=1.0)
        >>> oracle.randomizer.size, round(oracle.mse(1), 4)
        (3, 30.0041)

    Reference:
        Ye and Barg (2018), IEEE Trans. Inf. Theory 64(8); Wang et al. (2016), arXiv:1607.08025.
    """

    code: ClassVar[int] = 5

    @cached_property
    def randomizer(self) -> SubsetRandomizer:
        """How a value is answered."""
        return SubsetRandomizer(self.epsilon, self.k)

    @property
    def name(self) -> str:
        """The law of a message."""
        return f"ss:{self.k}"

    @property
    def level(self) -> float:
        """Pure level of what is sampled."""
        return self.randomizer.level

    @property
    def entropy_bits(self) -> float:
        """Entropy of a set."""
        k, w, lie = self.k, self.randomizer.size, self.randomizer.lie_prob
        ways = [special.gammaln(k) - special.gammaln(m + 1) - special.gammaln(k - m) for m in (w - 1, w)]
        choice = (1 - lie) * float(ways[0]) + lie * float(ways[1])
        return binary_entropy(lie) + choice / float(np.log(2))

    @cached_property
    def support(self) -> Support:
        """A set supports the values that it holds."""
        held, other = self.randomizer.held_prob, self.randomizer.other_prob
        # k p - w, with the digits that a small level needs: P - Q = (k P - w) / (k - 1).
        return Support(held, other, (self.k * held - self.randomizer.size) / (self.k - 1))

    def channel_matrix(self) -> Array:
        """Return the law of all sets of w values, in lexicographic order."""
        k, w = self.k, self.randomizer.size
        self._check_matrix(comb(k, w))
        matrix = np.full((k, comb(k, w)), self.randomizer.lie_prob / comb(k - 1, w))
        for place, chosen in enumerate(itertools.combinations(range(k), w)):
            matrix[list(chosen), place] = self.randomizer.held_prob / comb(k - 1, w - 1)
        return matrix

    def _simulated(self, held: IntArray, rng: np.random.Generator) -> Counts:
        """Draw how many sets hold each value, value after value, in O(k sqrt(k)) time, whatever n.

        Clients differ in how many places are left in their sets. Those who come to their own value later, and
        all of whom took it, or none did, are alike: whoever has the next value is a uniform choice of them.
        """
        k, w = self.k, self.randomizer.size
        took = rng.binomial(held, self.support.held)
        named = took.copy()
        # By the number of places left: those who took their own value, those who did not, and those who have
        # it behind them.
        left = np.zeros((3, w + 1), dtype=np.int64)
        left[0, w - 1], left[1, w] = took.sum(), (held - took).sum()
        for value in range(k):
            passed = np.zeros(w + 1, dtype=np.int64)
            for group, size in zip(left[:2], (took[value], held[value] - took[value]), strict=True):
                places = np.flatnonzero(group)
                some = rng.multivariate_hypergeometric(group[places], size, method="marginals")
                group[places] -= some
                passed[places] += some
            # Values to come, without the own one: each of them is as likely to be in the set.
            for group, others in zip(left, (k - value - 1, k - value - 1, k - value), strict=True):
                places = np.flatnonzero(group)
                some = rng.binomial(group[places], np.minimum(places / max(others, 1), 1.0))
                group[places] -= some
                group[places - 1] += some
                named[value] += some.sum()
            left[2] += passed
        return self._counted(int(held.sum()), named)

    def _counts(self, counts: Counts) -> IntArray:
        values = super()._counts(counts)
        if values.sum() != counts.n * self.randomizer.size:
            raise ParameterError(f"counts must add up to {counts.n} sets of {self.randomizer.size} values.")
        return values

    def _sets(self, messages: npt.ArrayLike) -> npt.NDArray[np.bool_]:
        sets = super()._sets(messages)
        if np.any(sets.sum(axis=1) != self.randomizer.size):
            raise ParameterError(f"a message must be a set of {self.randomizer.size} values.")
        return sets

    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array:  # noqa: ARG002
        return self.randomizer.sample(values, rng)
