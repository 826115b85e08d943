"""Means of vectors in an L2 ball from 64 bits of each: a hemisphere, and whether the row lies in it."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.calibrated import calibrated_mean
from tacit.means.message import HEADER_BYTES, Message, Round
from tacit.means.randomized import RECORDS, RandomizedMean, check_level, clipped_to_unit
from tacit.mechanisms import draw_directions, hemisphere_scale, lie_threshold, randomize_bits
from tacit.numerics import Array, IntArray, row_norms
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel
from tacit.randomness import PublicStream

__all__ = ["HemisphereMean"]

_NUMBERS_AT_ONCE = 2**21


class HemisphereMean(
    RandomizedMean,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    tag_field="estimator",
    tag="hemisphere",
):
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

    SEED_BITS: ClassVar[int] = 63

    def __post_init__(self) -> None:
        super().__post_init__()
        check_level("local_epsilon", self.local_epsilon)

    @classmethod
    def calibrated(
        cls,
        *,
        dim: int,
        budget: PrivacyBudget,
        n: int,
        trust: TrustModel = TrustModel.LOCAL,
        honest_fraction: float = 1.0,
        n_min: int | None = None,
        neighbours: Neighbours = RECORDS,
    ) -> HemisphereMean:
        """Build the most accurate such estimator that meets a budget, on n rows.

        Raises:
            ParameterError: A value is out of its range.
            BudgetError: The budget cannot be met.
        """

        def make(level: float) -> HemisphereMean:
            epsilon = max(min(level, 30.0), 2.0**-30)
            return cls(
                dim=dim,
                local_epsilon=epsilon,
                trust=trust,
                honest_fraction=honest_fraction,
                n_min=n_min,
                neighbours=neighbours,
            )

        return calibrated_mean(make, budget, n=n, trust=trust)

    def levels(self) -> Array:
        """The level of the one sign."""
        return np.array([self.local_epsilon])

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip and randomise the rows of one party.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party; nothing else depends on it.
            rng: Private randomness. The flips are exact, so a deployment passes `randomness.secure()`.

        Returns:
            One message with 64 bits a row: the sign, then the seed.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        x = self._unit_rows(rows, round, "l2")
        seeds = rng.integers(0, 2**self.SEED_BITS, size=len(x))
        bits = self._signs(x, self._directions(seeds, round), rng)
        return [Message(payload=np.where(bits == 1, seeds, ~seeds), width=64, sender=party)]

    def decode(
        self,
        messages: list[Message],
        round: Round,
        *,
        rng: np.random.Generator | None = None,  # noqa: ARG002 - the parties added all noise
    ) -> Array:
        """Add the directions with their signs, scale them and divide by the planned n.

        Args:
            messages: Of the parties that answered, or the batch of a shuffler; in any order.
            round: Public facts of the round.
            rng: Not used.

        Returns:
            Shape (dim,), float64, not projected.

        Raises:
            ParameterError: No messages, or one that `encode` cannot have written.

        Cost:
            O(dim) and some 30 microseconds a row.
        """
        if not messages:
            raise ParameterError("decode needs at least one message, got none.")
        for message in messages:
            payload = message.payload
            if payload.dtype != np.int64 or payload.ndim != 1 or message.width != 64:
                raise ParameterError(f"a message must hold integers of 64 bits, got {payload.dtype}.")
        # Sorted, so that not even rounding depends on the order.
        reports = np.sort(np.concatenate([message.payload for message in messages]))
        self._check_arrived(len(reports), round.n)
        total = np.zeros(self.dim)
        step = max(1, _NUMBERS_AT_ONCE // self.dim)
        for start in range(0, len(reports), step):
            part = reports[start : start + step]
            signs = np.where(part >= 0, 1.0, -1.0)
            total += signs @ self._directions(np.where(part >= 0, part, ~part), round)
        return total * (hemisphere_scale(self.dim, self.local_epsilon) * round.radius / round.n)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round at once, with directions drawn from `rng` itself.

        Args:
            X: Shape (n, dim): all rows.
            round: Public facts of the round.
            rng: Source of all randomness.

        Raises:
            ParameterError: `X` has another shape, or a dtype that is not real.
        """
        X, total = self._inside(X, round, "l2"), np.zeros(self.dim)
        self._check_arrived(len(X), round.n)
        step = max(1, _NUMBERS_AT_ONCE // self.dim)
        for start in range(0, max(len(X), 1), step):
            x = self._unit_rows(X[start : start + step], round, "l2")
            directions = draw_directions(len(x), self.dim, rng)
            total += (2.0 * self._signs(x, directions, rng) - 1) @ directions
        return total * (hemisphere_scale(self.dim, self.local_epsilon) * round.radius / round.n)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the bits that a party with that many rows sends, header included."""
        check_count("rows", rows, low=0)
        return 8 * (HEADER_BYTES + 8 * rows)

    def variance_on(self, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim): B^2 - ||x||^2 each."""
        x = clipped_to_unit(rows, round, self.dim, "l2")
        largest = hemisphere_scale(self.dim, self.local_epsilon) ** 2
        return (len(x) * largest - float((x**2).sum())) * (round.radius / round.n) ** 2

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the largest error against the mean of the clipped rows, that of zero rows."""
        check_count("n", n)
        largest = hemisphere_scale(self.dim, self.local_epsilon) ** 2
        return Error(variance=facts.radius**2 * largest / n, exact=False)

    def _signs(self, x: Array, directions: Array, rng: np.random.Generator) -> IntArray:
        """Return flipped bits: whether a direction lies on the side of its row, made plus or minus a unit."""
        norms = row_norms(x)
        # The sign that makes +-x / ||x|| the row itself on average. A zero row takes any fixed direction.
        plus = rng.random(len(x)) < (1 + np.minimum(norms, 1.0)) / 2
        side = np.where(norms > 0, (x * directions).sum(axis=1), directions[:, 0]) >= 0
        bits = (side == plus).astype(np.int64)
        return randomize_bits(bits, lie_threshold(self.local_epsilon), rng)

    def _directions(self, seeds: IntArray, round: Round) -> Array:
        """Return the directions that seeds mean in a round, shape (k, dim): normal quantiles of raw words."""
        words = np.empty((len(seeds), self.dim), dtype=np.uint64)
        for k, seed in enumerate(seeds.tolist()):
            words[k] = PublicStream(seed, round.number, purpose="hemisphere").words(self.dim)
        uniform = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        points = special.ndtri(uniform)
        return np.asarray(points / np.maximum(row_norms(points), math.ulp(0.0))[:, None])
