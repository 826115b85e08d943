"""The mean of vectors in an L1 ball, one bit of each: the sign of a random Hadamard product."""

from __future__ import annotations

import math

import numpy as np

from tacit.means.base import Error
from tacit.means.message import Round
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.symbols import Channels, Symbols, symbols
from tacit.means.violations import clipped_to_unit
from tacit.mechanisms import BinaryRandomizedResponse, check_level, lie_threshold, randomize_bits
from tacit.numerics import Array, IntArray, fwht, hadamard_entries, next_power_of_two

__all__ = ["HadamardMean"]

_AT_ONCE = 2**22


class HadamardMean(RandomizedMean, frozen=True, kw_only=True, tag="hadamard"):
    """A row of the L1 ball draws one Hadamard vector h and sends the sign of <h, row>, rounded and flipped.

    |<h, row>| is at most the radius, so that it rounds to a sign without bias.

    Attributes:
        dim: Number d of coordinates, >= 1.
        local_epsilon: Pure level of the one message, in [2**-30, 30].
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.
        honest_fraction: Behind a shuffler: fraction of the planned rows, in (0, 1], whose parties are honest.
            The others collude, and are among those that answer.
        n_min: Behind a shuffler: rows below which it gives a round up. The price counts n_min rows less those
            of all colluders. None: all planned rows must arrive.
        on_violation: What becomes of a row outside of the ball; see `AdditiveMean`. None is "clip" here.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> import numpy as np
        >>> from tacit.means import Round
        >>> mean = HadamardMean(dim=4, local_epsilon=1.0)
        >>> X = np.tile([0.5, -0.5, 0.0, 0.0], (40_000, 1))
        >>> found = mean.estimate(X, Round(n=40_000, radius=1.0), rng=np.random.default_rng(0))
        >>> bool(np.abs(found - X[0]).max() < 0.1), mean.bits_per_party()
        (True, 96)

    Reference:
        Girgis (2023), Algorithm 3.4.1 and Lemma 3.4.1; misprints in docs/errata.md.
    """

    local_epsilon: float

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer the level that meets the budget."""
        d, K = float(problem.dim), next_power_of_two(problem.dim)
        decode = ComputeCost("n + d log d", problem.n + K * math.log2(K + 1))
        return cls._one_message(problem, encode=ComputeCost("d", d), decode=decode)

    @property
    def coded_dim(self) -> int:
        """Number K of Hadamard vectors: the power of two above dim."""
        return next_power_of_two(self.dim)

    @property
    def randomizer(self) -> Symbols:
        """How a row becomes one symbol: which vector, and the sign."""
        level = check_level("local_epsilon", self.local_epsilon)
        channels = Channels(np.array([2 * self.coded_dim]), np.array([level]))
        return symbols(
            self,
            "l1",
            channels,
            self._drawn,
            self._counted,
            lambda _: Error(variance=self._largest, exact=False),
        )

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim): d c^2 - ||x||^2 each."""
        x = clipped_to_unit(rows, round, self.dim, "l1")
        return (len(x) * self._largest - float((x**2).sum())) * (round.radius / round.n) ** 2

    @property
    def _largest(self) -> float:
        """Squared norm of the decoded report of one row of the unit ball, padding dropped."""
        return self.dim / BinaryRandomizedResponse(self.local_epsilon).gap ** 2

    def _drawn(self, rows: Array, _: Round, rng: np.random.Generator) -> IntArray:
        drawn = rng.integers(0, self.coded_dim, size=len(rows))
        inner = np.empty(len(rows))
        step = max(1, _AT_ONCE // self.dim)
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            signs = hadamard_entries(drawn[part, None], np.arange(self.dim))
            inner[part] = (signs * rows[part]).sum(axis=1)
        # The bound on the inner product is what privacy would rest on; the rounding enforces it.
        bits = (rng.random(len(rows)) < (np.clip(inner, -1.0, 1.0) + 1) / 2).astype(np.int64)
        return (2 * drawn + randomize_bits(bits, lie_threshold(self.local_epsilon), rng))[:, None]

    def _counted(self, counts: IntArray, _reports: int, _round: Round) -> Array:
        minus, plus = counts.reshape(-1, 2).T
        gap = BinaryRandomizedResponse(self.local_epsilon).gap
        return np.asarray(fwht(plus - minus)[: self.dim] / gap)
