"""Binary Hadamard response: one bit about one column of a Hadamard matrix, from few random bits."""

from __future__ import annotations

from functools import cached_property
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice, check_count
from tacit.frequencies.bands import Band, bernstein_radius, log_inverse
from tacit.frequencies.counts import Counts, as_shares
from tacit.frequencies.support import Support
from tacit.frequencies.symbols import SymbolOracle
from tacit.mechanisms import SkewedResponse, whole_values
from tacit.numerics import Array, IntArray, fwht, next_power_of_two
from tacit.privacy import Event, Neighbours, TrustModel

__all__ = ["BinaryHadamard"]

_SAMPLE = "the distribution that independent rows come from"
_RECORDS = Neighbours()


class BinaryHadamard(SymbolOracle, frozen=True, kw_only=True, tag="bh", dict=True):
    """Answer whether entry (x, j) of the Hadamard matrix is +1, for a column j that nobody's value steers.

    K is the least power of two >= k. A message is the symbol 2 j + y: column and answer.

    Attributes:
        random_bits: Bound R on the entropy of the answer given value and column, in [1e-9, 1]. Below the
            entropy h of a coin of odds e^epsilon, the error grows as 1 / q, with q the coin of entropy R.
        assignment: "random": the client draws its column; unbiased for any rows. "blocks": clients take
            columns in turn, by their place, and send one bit; for independent rows of one distribution only.
        skip_constant: Never use column 0, which is +1 in every row. Without it the estimate is that of Girgis
            (2023); with it the error is less, by a quarter for 8 values.

    Guarantee:
        Pure epsilon-DP, exact: see `tacit.mechanisms.SkewedResponse`.

    Example:
        >>> oracle = BinaryHadamard(k=1000, epsilon=1.0)
        >>> oracle.message_bits, round(oracle.entropy_bits, 6), round(oracle.frequency_mse(100_000), 6)
        (11, 0.839942, 0.046726)
        >>> counts = oracle.collect(np.zeros(100_000, dtype=int), np.random.default_rng(0))
        >>> bool(abs(oracle.estimate(counts)[0] - 1) < 0.05)
        True

    Reference:
        Girgis (2023), section 7.3.2 and Theorem 7.3.2; the variances are derived in
        docs/theory/frequencies.md. Acharya and Sun (2019), ICML, for one bit a client.
    """

    random_bits: float = 1.0
    assignment: Literal["random", "blocks"] = "random"
    skip_constant: bool = True

    code: ClassVar[int] = 1

    def _check(self) -> None:
        check_choice("assignment", self.assignment, ("random", "blocks"))
        if SkewedResponse(self.epsilon, self.random_bits).gap == 0:
            raise ParameterError(
                f"random_bits must be larger at epsilon = {self.epsilon!r}, got {self.random_bits!r}: the "
                "answer would say nothing that 64 bits could show."
            )

    @cached_property
    def response(self) -> SkewedResponse:
        """How a bit is answered."""
        return SkewedResponse(self.epsilon, self.random_bits)

    @cached_property
    def dim(self) -> int:
        """Dimension K of the matrix."""
        return next_power_of_two(self.k)

    @property
    def groups(self) -> int:
        """Number of columns in use."""
        return self.dim - self.skip_constant

    @property
    def name(self) -> str:
        """The law of a message with its column; none of its own where answers are skewed."""
        return f"bh:{self.k}" if self.response.symmetric else "general"

    @property
    def level(self) -> float:
        """Pure level of what is sampled."""
        return self.response.level

    @property
    def entropy_bits(self) -> float:
        """Entropy of the answer; the column is a public choice."""
        return self.response.entropy_bits

    @property
    def outcomes(self) -> int:
        """Number 2 K of columns with answers."""
        return 2 * self.dim

    @property
    def message_bits(self) -> int:
        """One bit, and the column where the client draws it."""
        return 1 if self.assignment == "blocks" else (self.outcomes - 1).bit_length()

    def event(self, n: int, trust: TrustModel = TrustModel.LOCAL, neighbours: Neighbours = _RECORDS) -> Event:
        """Return what an observer learns; see `FrequencyOracle.event`."""
        if trust == TrustModel.SHUFFLE and self.assignment == "blocks":
            raise ParameterError(
                "assignment must be 'random' under shuffle trust, got 'blocks': a column by place would tell "
                "whose message it is."
            )
        return super().event(n, trust, neighbours)

    def aggregate(self, messages: npt.ArrayLike) -> Counts:
        """Count columns with answers; see `FrequencyOracle.aggregate`."""
        counts = super().aggregate(messages)
        if self.skip_constant and counts.values[:2].any():
            raise ParameterError("a message is about column 0, which nobody uses.")
        return counts

    def _counts(self, counts: Counts) -> IntArray:
        values = super()._counts(counts)
        if self.skip_constant and values[:2].any():
            raise ParameterError("counts are about column 0, which nobody uses.")
        return values

    def estimate(self, counts: Counts) -> Array:
        """Transform the answers; see `FrequencyOracle.estimate`.

        Raises:
            ParameterError: Columns by place of which one has no answer: fewer clients than columns.
        """
        answers = self._counts(counts).reshape(-1, 2)[-self.groups :]
        if self.support is not None and self.assignment == "random":
            return self.support.estimate(self._agreeing(counts), counts.n)
        found = np.zeros(self.dim)
        of_column = answers.sum(axis=1)
        if self.assignment == "blocks":
            if not of_column.all():
                raise ParameterError(
                    f"blocks need an answer for each of {self.groups} columns, got {counts.n} messages; use "
                    "assignment 'random'."
                )
            found[-self.groups :] = (answers[:, 1] / of_column - self._middle) / self.groups
        else:
            found[-self.groups :] = (answers[:, 1] - self._middle * of_column) / counts.n
        return fwht(found * self._scale, out=found)[: self.k] + self._offset

    def variances(self, n: int, frequencies: npt.ArrayLike | None = None) -> Array:
        """Return exact variances; of columns by place, over independent rows, sampling included."""
        f = as_shares("frequencies", frequencies, self.k)
        if self.assignment == "blocks":
            one = self._one_probs(f)
            parts = one * (1 - one) / self._group_sizes(n)
            return np.full(self.k, self._scale**2 * float(parts.sum()) / self.groups**2)
        check_count("n", n)
        offset = self._offset
        return (float(f @ self._second_moments) - offset**2 - f * (1 - 2 * offset)) / n

    def noise(self) -> Array:
        """Return the variance that one client adds; see `FrequencyOracle.noise`.

        Raises:
            ParameterError: Columns by place, whose error against fixed rows depends on their order.
        """
        if self.assignment == "blocks":
            raise ParameterError("assignment must be 'random' for an error against fixed rows, got 'blocks'.")
        offset = self._offset
        return self.k * self._second_moments - (1 - offset) ** 2 - (self.k - 1) * offset**2

    def mse(self, n: int, p: npt.ArrayLike | None = None) -> float:
        """Return the exact error against a distribution; see `FrequencyOracle.mse`."""
        if self.assignment == "blocks":
            return float(self.variances(n, p).sum())
        return super().mse(n, p)

    def band(self, counts: Counts, confidence: float = 0.95) -> Band:
        """Return intervals for all values at once: binomial, or Bernstein's where answers are skewed."""
        if self.support is not None and self.assignment == "random":
            self._counts(counts)
            return self.support.band(self._agreeing(counts), counts.n, confidence)
        estimate, logs = self.estimate(counts), log_inverse(confidence, self.k)
        ends = self._scale * np.abs(np.array([0.0, 1.0]) - self._middle)
        if self.assignment == "random":
            moments = counts.n * float(self._second_moments.max())
            radius = bernstein_radius(moments, float(ends.max()), logs) / counts.n
            return Band.inside(estimate - radius, estimate + radius, confidence)
        weights = 1 / (self.groups * self._counts(counts).reshape(-1, 2)[-self.groups :].sum(axis=1))
        low, high = self.response.zero_prob, self.response.one_prob
        widest = min(max(0.5, low), high)
        moments = self._scale**2 * widest * (1 - widest) * float((weights**2 @ (1 / weights)) / self.groups)
        radius = bernstein_radius(moments, float(self._scale * weights.max()), logs)
        return Band.inside(estimate - radius, estimate + radius, confidence, _SAMPLE)

    def message_law(self, p: npt.ArrayLike) -> Array:
        """Return the law of column and answer, columns equally often."""
        one = self._one_probs(np.asarray(p, dtype=np.float64))
        law = np.zeros((*one.shape[:-1], self.dim, 2))
        law[..., -self.groups :, 1] = one / self.groups
        law[..., -self.groups :, 0] = (1 - one) / self.groups
        return law.reshape(*one.shape[:-1], -1)

    def simulate(self, p: npt.ArrayLike, n: int, rng: np.random.Generator) -> Counts:
        """Draw counts; columns by place have fixed numbers of clients."""
        if self.assignment == "random":
            return super().simulate(p, n, rng)
        sizes = self._group_sizes(n)
        found = np.zeros((self.dim, 2), dtype=np.int64)
        found[-self.groups :, 1] = rng.binomial(sizes, self._one_probs(as_shares("p", p, self.k)))
        found[-self.groups :, 0] = sizes - found[-self.groups :, 1]
        return self._counted(n, found.ravel())

    def _drawn(self, values: IntArray, first: int, rng: np.random.Generator) -> Array:
        if self.assignment == "random":
            columns = rng.integers(self.dim - self.groups, self.dim, size=values.size)
        else:
            columns = self._columns(first, values.size)
        inside = (np.bitwise_count(values & columns) & 1) ^ 1
        return 2 * columns + self.response.draw(inside, rng)

    def _columns(self, first: int, n: int) -> IntArray:
        """Return the columns of n clients by their places."""
        return (first + np.arange(n)) % self.groups + self.dim - self.groups

    def _group_sizes(self, n: int) -> IntArray:
        """Return how many of n clients have each column by place."""
        if check_count("n", n) < self.groups:
            raise ParameterError(
                f"n must be at least {self.groups}, one client a column, for assignment 'blocks', got {n}."
            )
        return n // self.groups + (np.arange(self.groups) < n % self.groups)

    def _packed(self, messages: Array) -> npt.NDArray[np.uint8]:
        if self.assignment == "random":
            return super()._packed(messages)
        symbols = whole_values("messages", messages, self.outcomes).ravel()
        return (symbols & 1).astype(np.uint8)[:, None]

    def _unpacked(self, rows: npt.NDArray[np.uint8], first: int) -> Array:
        if self.assignment == "random":
            symbols = super()._unpacked(rows, first)
            if np.any(symbols < self.outcomes - 2 * self.groups):
                raise ParameterError("a message holds a symbol that is in no alphabet.")
            return symbols
        if np.any(rows > 1):
            raise ParameterError("a message must hold one bit.")
        return 2 * self._columns(first, len(rows)) + rows[:, 0]

    def _one_probs(self, p: Array) -> Array:
        """Return the probability of a 1 in each column that is used."""
        padded = np.zeros((*p.shape[:-1], self.dim))
        padded[..., : self.k] = p
        inside = (p.sum(axis=-1, keepdims=True) + fwht(padded)) / 2
        return np.asarray((self.response.zero_prob + self.response.gap * inside)[..., -self.groups :])

    @property
    def _middle(self) -> float:
        """What is taken off an answer, so that entries +1 and -1 answer opposite numbers."""
        return (self.response.zero_prob + self.response.one_prob) / 2

    @property
    def _offset(self) -> float:
        """What column 0 would have added."""
        return 1 / self.dim if self.skip_constant else 0.0

    @property
    def _scale(self) -> float:
        """What an answer of 1 is worth beyond that of 0."""
        return 2 * (1 - self._offset) / self.response.gap

    @cached_property
    def _second_moments(self) -> Array:
        """Mean square of the number that an answer stands for, for each value; shape (k,)."""
        low, high = self.response.zero_prob, self.response.one_prob
        # Among the columns in use, half of K have entry -1 but for value 0, whose row is +1.
        inside = np.full(self.k, 1 - self.dim / 2 / self.groups)
        inside[0] = 1.0
        one = low + (high - low) * inside
        return self._scale**2 * (one * (1 - self._middle) ** 2 + (1 - one) * self._middle**2)

    @cached_property
    def support(self) -> Support | None:
        """How likely an answer agrees with a value; None where agreeing is not all that counts."""
        if not self.response.symmetric:
            return None
        low, gap = self.response.zero_prob, self.response.gap
        agree = 1 - self.dim / 2 / self.groups  # two rows, in the columns in use
        return Support(1 - low, low + gap * agree, gap * (1 - agree))

    def _agreeing(self, counts: Counts) -> IntArray:
        """Return how many answers agree with each value."""
        answers = counts.values.reshape(-1, 2)
        return (counts.n + fwht(answers[:, 1] - answers[:, 0])[: self.k]) // 2
