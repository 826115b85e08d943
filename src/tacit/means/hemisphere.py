"""Means of vectors in an L2 ball from 64 bits of each: a hemisphere, and whether the row lies in it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import special

from tacit.errors import ParameterError
from tacit.means.base import Error
from tacit.means.message import HEADER_BYTES, Message, Round
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.violations import Ball, clipped_to_unit, inside_rows
from tacit.mechanisms import (
    check_level,
    draw_directions,
    hemisphere_scale,
    lie_threshold,
    randomize_bits,
)
from tacit.numerics import Array, IntArray, row_norms
from tacit.randomness import PublicStream

__all__ = ["HemisphereMean"]

_NUMBERS_AT_ONCE = 2**21
_SEED_BITS = 63


class HemisphereMean(RandomizedMean, frozen=True, kw_only=True, tag="hemisphere"):
    """Every row draws a seed, which means a direction, and sends it with the flipped sign of their product.

    The row first becomes plus or minus its direction, so that its length is kept on average. A report is 64
    bits, in any dimension, and exact: the seed is drawn without looking at the row, and the sign is a
    randomised response. The direction must be as good as random; it comes from Philox, keyed by the seed.

    Attributes:
        dim: Number of coordinates, >= 1.
        local_epsilon: Pure level of the sign, in [2**-30, 30].
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
        >>> HemisphereMean(dim=1000, local_epsilon=1.0).bits_per_party()
        152

    Reference:
        Duchi, Jordan and Wainwright (2018), J. Am. Stat. Assoc. 113(521).
    """

    local_epsilon: float

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer the level that meets the budget."""
        return cls._one_message(problem, decode=ComputeCost("n d", 4.0 * problem.n * problem.dim))

    @property
    def randomizer(self) -> _Signs:
        """How a row becomes 64 bits: the sign, then the seed."""
        return _Signs(self.dim, check_level("local_epsilon", self.local_epsilon))

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim): B^2 - ||x||^2 each."""
        x = clipped_to_unit(rows, round, self.dim, "l2")
        largest = hemisphere_scale(self.dim, self.local_epsilon) ** 2
        return (len(x) * largest - float((x**2).sum())) * (round.radius / round.n) ** 2

    def normal_limit(self, rows: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Draw from the normal law that has the mean and the squared error of `estimate`, for sweeps.

        The covariance of n reports is ((B^2 / d) I - mean of x x^T) / n; here its trace is spread evenly. No
        report stands behind the draw: it simulates what a run reaches, and nothing is private by it.

        Args:
            rows: Shape (n, dim): all rows.
            round: Public facts of the round.
            rng: Source of the normal draw.

        Returns:
            Shape (dim,), float64; O(n dim) time, of which nothing is random but dim numbers.

        Raises:
            ParameterError: As `estimate`.
        """
        inside = inside_rows(rows, round.radius, ball="l2", dim=self.dim, refuse=self.refuses)
        x = clipped_to_unit(inside, round, self.dim, "l2")
        spread = math.sqrt(self.variance_on(inside, round) / self.dim)
        return np.asarray(x.sum(axis=0) * (round.radius / round.n) + spread * rng.standard_normal(self.dim))


@dataclass(frozen=True)
class _Signs:
    """A randomizer whose reports are seeds of directions, with signs; see `RowRandomizer`."""

    dim: int
    level: float

    ball: ClassVar[Ball] = "l2"
    law: ClassVar[str] = "2rr"
    exact: ClassVar[bool] = True

    @property
    def levels(self) -> Array:
        """The level of the one sign."""
        return np.array([self.level])

    @property
    def rows_at_once(self) -> int:
        """Rows that are simulated at once."""
        return max(1, _NUMBERS_AT_ONCE // self.dim)

    def write(self, rows: Array, round: Round, rng: np.random.Generator) -> list[tuple[Array, int]]:
        """Write 64 bits a row."""
        seeds = rng.integers(0, 2**_SEED_BITS, size=len(rows))
        bits = self._signs(rows, self._directions(seeds, round), rng)
        return [(np.where(bits == 1, seeds, ~seeds), 64)]

    def read(self, messages: list[Message]) -> tuple[Array, int]:
        """Return all reports, sorted, so that not even rounding depends on the order."""
        for message in messages:
            payload = message.payload
            if payload.dtype != np.int64 or payload.ndim != 1 or message.width != 64:
                raise ParameterError(f"a message must hold integers of 64 bits, got {payload.dtype}.")
        reports = np.sort(np.concatenate([message.payload for message in messages]))
        return reports, len(reports)

    def total(self, held: Array, rows: int, round: Round) -> Array:
        """Add the directions with their signs; O(dim) and some 30 microseconds a row."""
        total = np.zeros(self.dim)
        for start in range(0, rows, self.rows_at_once):
            part = held[start : start + self.rows_at_once]
            signs = np.where(part >= 0, 1.0, -1.0)
            total += signs @ self._directions(np.where(part >= 0, part, ~part), round)
        return total

    def simulate(self, parts: Iterable[Array], round: Round, rng: np.random.Generator) -> Array:
        """Add directions that are drawn from `rng` itself."""
        total = np.zeros(self.dim)
        for part in parts:
            directions = draw_directions(len(part), self.dim, rng)
            total += (2.0 * self._signs(part, directions, rng) - 1) @ directions
        return total

    def unit(self, radius: float) -> float:
        """Return the length of a report."""
        return hemisphere_scale(self.dim, self.level) * radius

    def bits(self, rows: int) -> int:
        """Return the bits of one message."""
        return 8 * (HEADER_BYTES + 8 * rows)

    def error(self, n: int, radius: float) -> Error:
        """Return the largest error, that of zero rows."""
        return Error(variance=radius**2 * hemisphere_scale(self.dim, self.level) ** 2 / n, exact=False)

    def _signs(self, x: Array, directions: Array, rng: np.random.Generator) -> IntArray:
        """Return flipped bits: whether a direction lies on the side of its row, made plus or minus a unit."""
        norms = row_norms(x)
        # The sign that makes +-x / ||x|| the row itself on average. A zero row takes any fixed direction.
        plus = rng.random(len(x)) < (1 + np.minimum(norms, 1.0)) / 2
        side = np.where(norms > 0, (x * directions).sum(axis=1), directions[:, 0]) >= 0
        bits = (side == plus).astype(np.int64)
        return randomize_bits(bits, lie_threshold(self.level), rng)

    def _directions(self, seeds: IntArray, round: Round) -> Array:
        """Return the directions that seeds mean in a round, shape (k, dim): normal quantiles of raw words."""
        words = np.empty((len(seeds), self.dim), dtype=np.uint64)
        for k, seed in enumerate(seeds.tolist()):
            words[k] = PublicStream(seed, round.number, purpose="hemisphere").words(self.dim)
        uniform = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        points = special.ndtri(uniform)
        return np.asarray(points / np.maximum(row_norms(points), math.ulp(0.0))[:, None])
