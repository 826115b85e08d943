"""Hadamard response: one symbol, of the order of the best at every level."""

from __future__ import annotations

import math
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import check_count
from tacit.frequencies.bands import Band, bernstein_radius, binomial_limits, log_inverse
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.symbols import SymbolOracle
from tacit.mechanisms import HadamardRandomizer
from tacit.numerics import Array, IntArray, fwht

__all__ = ["HadamardResponse"]


class HadamardResponse(SymbolOracle, frozen=True, kw_only=True, tag="hr", dict=True):
    """Send a symbol of which half of a block stands for the value: B blocks, as many as e^epsilon allows.

    Guarantee:
        Pure epsilon-DP, exact: see `tacit.mechanisms.HadamardRandomizer`.

    Example:
        >>> oracle = HadamardResponse(k=1000, epsilon=1.0)
        >>> oracle.outcomes, round(oracle.entropy_bits, 6), round(oracle.mse(1), 4)
        (1024, 9.829772, 5538.2863)

    Reference:
        Acharya, Sun and Zhang (2019), AISTATS; Girgis (2023), (7.49)-(7.51). The variances are derived in
        docs/theory/frequencies.md.
    """

    code: ClassVar[int] = 3

    @cached_property
    def randomizer(self) -> HadamardRandomizer:
        """How a value is answered."""
        return HadamardRandomizer(self.epsilon, self.k)

    @property
    def name(self) -> str:
        """The law of a message."""
        return f"hr:{self.k}"

    @property
    def level(self) -> float:
        """Pure level of what is sampled."""
        return self.randomizer.level

    @property
    def outcomes(self) -> int:
        """Number B b of symbols."""
        return self.randomizer.symbols

    @property
    def entropy_bits(self) -> float:
        """Entropy of the answer."""
        response = self.randomizer
        likely, lie = 1 - response.halves.lie_prob, response.halves.lie_prob
        mean = likely * math.log(response.likely_prob) + lie * math.log(response.other_prob)
        return -mean / math.log(2)

    def estimate(self, counts: Counts) -> Array:
        """Transform every block; see `FrequencyOracle.estimate`."""
        return self._of_values(fwht(self._blocks(self._counts(counts)))) / (counts.n * self._gap)

    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return exact variances; see `FrequencyOracle.variances`."""
        f = as_shares("frequencies", frequencies, self.k)
        seen = self._of_values(self._seen(f)[:, None])
        return (seen / self._gap**2 - f) / check_count("n", n)

    def noise(self) -> Array:
        """Return the variance that one client adds; see `FrequencyOracle.noise`."""
        # A symbol of a block moves the estimates of all of its values alike; the last block may have fewer.
        held = np.bincount(self._block, minlength=self.randomizer.shape[0])
        half = self.randomizer.shape[1] * self.randomizer.other_prob
        own = held[self._block] * (1 - half * (self.randomizer.shape[0] - 1))
        return (own + half * (self.k - held[self._block])) / self._gap**2 - 1

    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return intervals for all values at once: Bernstein's, by how often each block was answered."""
        estimate, n = self.estimate(counts), counts.n
        # Half of what may fail is for the second moments, the share of answers in each block.
        blocks = self._blocks(self._counts(counts)).sum(axis=1)
        sure = (1 + confidence) / 2
        share = np.ones(1)
        if len(blocks) > 1:
            _, share = binomial_limits(blocks, n, sure, intervals=len(blocks))
        radius = bernstein_radius(n * share, 1.0, log_inverse(sure, self.k)) / (n * self._gap)
        radius = self._of_values(radius[:, None])
        return Band.inside(estimate - radius, estimate + radius, confidence)

    def message_law(self, p: npt.ArrayLike) -> Array:
        """Return the law of a symbol."""
        p = np.asarray(p, dtype=np.float64)
        blocks, dim = self.randomizer.shape
        rows = np.zeros((*p.shape[:-1], blocks, dim))
        rows[..., self._block, self._row] = p
        held = rows.sum(axis=-1, keepdims=True)
        likely = (held + fwht(rows)) / 2  # of the values that each symbol stands for
        low, high = self.randomizer.other_prob, self.randomizer.likely_prob
        law = low * p.sum(axis=-1)[..., None, None] + (high - low) * likely
        return np.asarray(law.reshape(*p.shape[:-1], -1))

    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array:  # noqa: ARG002
        return self.randomizer.draw(values, rng)

    @cached_property
    def _block(self) -> IntArray:
        return self.randomizer.place(np.arange(self.k))[0]

    @cached_property
    def _row(self) -> IntArray:
        return self.randomizer.place(np.arange(self.k))[1]

    @property
    def _gap(self) -> float:
        """Mean of the entry at a value's row and its symbol: s (e^epsilon - 1) / D."""
        low, high = self.randomizer.other_prob, self.randomizer.likely_prob
        return (high - low) * (self.randomizer.shape[1] // 2)

    def _blocks(self, counts: Array) -> Array:
        return counts.reshape(self.randomizer.shape)

    def _of_values(self, table: Array) -> Array:
        """Return the entry of each value in a table of blocks with rows, or of blocks."""
        return np.asarray(table[self._block, self._row if table.shape[1] > 1 else 0])

    def _seen(self, frequencies: Array) -> Array:
        """Return how often a symbol is of each block."""
        blocks, dim = self.randomizer.shape
        own = np.bincount(self._block, frequencies, minlength=blocks)
        return dim * self.randomizer.other_prob + own * self._gap
