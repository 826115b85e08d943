"""What means share that add noise to a sum of clipped rows: the sum, its rounding, its error."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts, worst_error
from tacit.means.message import Message, Round
from tacit.means.noise import counts_to_grid
from tacit.means.traits import SumOfRows
from tacit.means.violations import clipped_rows
from tacit.numerics import NORM_SLACK, Array, clip_rows
from tacit.privacy import Event, Repeat, TrustModel, squared_level
from tacit.privacy.events import GaussianOnGrid

__all__ = ["NoisySum", "check_shape"]


class NoisySum(SumOfRows):
    """A party adds up its clipped rows; noise goes on the sums, and the divisor is the planned n."""

    acute: bool
    one_hot: bool
    trust: Any  # a field of the estimator, or the same for all of a kind

    @property
    def moved(self) -> float:
        """Radii by which one unit moves a sum: of acute rows, as one-hot ones are, by |u|^2 + |v|^2."""
        if self.one_hot:
            return self.sensitivity if self.noise.norm == "l1" else math.sqrt(self.sensitivity)
        # The slack covers angles that rounding made a little more than right.
        return math.sqrt(self.sensitivity) * (1 + NORM_SLACK) if self.acute else self.sensitivity

    @property
    def sums(self) -> tuple[type[np.floating[Any]], ...]:
        """Types of sums that `encode_sum` takes; a one-hot row has one length, whatever the norm."""
        if self.one_hot and not self.refuses:
            return (np.float64,)
        return super().sums

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip the rows of one party and write one message with their (noisy) sum.

        Args:
            rows: Shape (k, dim), k >= 0. A row with a NaN or an infinity counts as zero.
            round: Public facts of the round.
            party: Index of the party.
            rng: Source of the noise, where the party adds it.

        Returns:
            One message of `bits_per_party(k)` bits under replace-one, where k is public; else of
            `bits_per_party(round.n)` bits, because there k may be secret.

        Raises:
            ParameterError: `rows` has another shape, or a dtype that is not real.
        """
        summed = self._clipped(rows, round.radius).sum(axis=0, dtype=np.float64)
        planned = len(rows) if self.sensitivity == 2 else round.n
        return self.encode_sum(summed, rows=planned, round=round, party=party, rng=rng)

    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write one message from the sum of a party's clipped rows."""
        raise NotImplementedError

    def first_coordinates(self, rows: Array, round: Round, *, size: int, rng: np.random.Generator) -> Array:
        """Draw the first coordinate of what is decoded many times, as the coordinates of one wide message.

        The noise of coordinates is independent, and its scale depends on the radius and not on their number.

        Args:
            rows: Shape (n, dim).
            round: Public facts.
            size: Number of draws.
            rng: Source of the noise.

        Returns:
            Shape (size,).
        """
        if size == 0:
            return np.zeros(0)
        summed = clip_rows(rows, round.radius, norm=self.noise.norm).sum(axis=0, dtype=np.float64)
        wide: Any = msgspec.structs.replace(self, dim=size)  # type: ignore[type-var]  # all are structs
        # Who holds the rows does not matter; one party is enough where the server adds the noise.
        parties = 1 if self.trust is TrustModel.CENTRAL else round.parties
        sent = [
            message
            for party in range(parties)
            for message in wide.encode_sum(
                np.full(size, 0.0 if party else summed[0]), rows=round.n, round=round, party=party, rng=rng
            )
        ]
        return np.asarray(wide.decode(sent, round, rng=rng))

    def rounding(self, event: Event, releases: int) -> float:
        """Return how far all rounding may move a sum, in deviations of its noise.

        Args:
            event: What one round costs; noise on a grid has the rounding in its sensitivity.
            releases: Of how many in all it is one.
        """
        if not isinstance(event, GaussianOnGrid):
            return 0.0
        exact: float = event.std / self.noise.noise_multiplier
        return math.sqrt(squared_level(event, releases)) * max(1 - exact / event.distance, 0.0)

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows.

        Exact but for the rounding of floats; with noise on a grid, the bias is a bound. It grows with the
        number of parties, who each add noise (unless the server does) and round to the grid: where that is
        not given, there is one for every row.
        """
        check_count("n", n)
        return worst_error(lambda known: self._error(n, known), n, facts)

    def _noise_event(self, n: int) -> Event:
        """Return what the noise on a sum of at most n rows costs: of one-hot rows, that on one count."""
        if self.one_hot and self.noise.on_grid:
            return cast(Event, self.noise.count_event(sensitivity=self.moved, neighbours=self.neighbours))
        event = self.noise.event(n, self.dim, sensitivity=self.moved, neighbours=self.neighbours)
        return cast(Event, event)

    def _of_unit(self, event: Event) -> Event:
        """Return what all counts cost, from what one does: two move, and their noise is independent."""
        return Repeat(event, 2) if self.one_hot and self.noise.on_grid and self.sensitivity == 2 else event

    def _error(self, n: int, facts: Facts) -> Error:
        """Return the error for a known number of parties."""
        parties = facts.parties or 1
        noises = 1 if self.trust is TrustModel.CENTRAL else parties
        unit = self.noise.unit(facts.radius)
        per_coordinate = self.noise.variance(sensitivity=self.moved, radius=facts.radius) * (unit / n) ** 2
        # Each party rounds its sum to the grid once: at most half a step a coordinate, and no count.
        rounds = self.noise.on_grid and not self.one_hot
        bias = parties * math.sqrt(self.dim) * unit / (2 * n) if rounds else 0.0
        return Error(variance=noises * self.dim * per_coordinate, bias=bias, exact=not rounds)

    def _clipped(self, rows: Array, radius: float) -> Array:
        """Return the clipped rows, shape (k, dim)."""
        clipped = clipped_rows(rows, radius, ball=self.noise.norm, dim=self.dim, refuse=self.refuses)
        if not self.one_hot:
            return clipped
        given = np.asarray(rows)
        longest = given.max(axis=1, initial=0)
        held = (np.count_nonzero(given, axis=1) == 1) & (longest >= radius) & np.isfinite(longest)
        return np.where(held[:, None] & (given != 0), radius, 0.0)

    def _units(self, clipped_sum: Array, radius: float) -> Array:
        """Return a party's sum in the units that noise is drawn in."""
        # Broadcasting would write one private number into all coordinates.
        if clipped_sum.shape != (self.dim,):
            raise ParameterError(f"clipped_sum must have shape ({self.dim},), got {clipped_sum.shape}.")
        return self._prepared(clipped_sum, radius)

    def _prepared(self, sums: Array, radius: float) -> Array:
        """Return sums of rows, any shape, in the units that noise is drawn in."""
        if self.one_hot and self.noise.on_grid:
            return counts_to_grid(sums, radius, self.noise.steps)
        return np.asarray(self.noise.prepare(sums, radius))

    def _summed(self, X: Array, round: Round) -> Array:
        """Return the sum of all rows, dealt to the parties, in the units that noise is drawn in."""
        clipped = self._clipped(X, round.radius)
        if self.noise.on_grid and round.parties > 1 and len(clipped):
            # Every party rounds its own sum; parties without rows send zero.
            parts = min(round.parties, len(clipped))
            size, more = divmod(len(clipped), parts)
            starts = np.arange(parts) * size + np.minimum(np.arange(parts), more)
            sums = np.add.reduceat(clipped, starts, axis=0, dtype=np.float64)
            return np.asarray(self._prepared(sums, round.radius).sum(axis=0))
        return self._prepared(clipped.sum(axis=0, dtype=np.float64), round.radius)


def check_shape(*, acute: bool, one_hot: bool) -> None:
    """Refuse two promises about rows, of which one follows from the other."""
    if acute and one_hot:
        raise ParameterError("acute must be left out where rows are one_hot, which says more.")
