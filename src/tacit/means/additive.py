"""Means with additive noise: each party sums its clipped rows; the party or the server adds noise to the
sum.
"""

from __future__ import annotations

import math

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.means.base import WORST_CASE, Error, Facts
from tacit.means.message import HEADER_BYTES, Message, Round, total
from tacit.means.noise import AnyNoise, NoNoise
from tacit.numerics import Array, clip_rows
from tacit.privacy import Event, Neighbours, NonPrivate, Relation, TrustModel

__all__ = ["AdditiveMean"]


class AdditiveMean(msgspec.Struct, frozen=True, kw_only=True, tag_field="estimator", tag="additive"):
    """The sum of clipped rows, plus noise, divided once by the planned n.

    Under local trust every party adds its own noise and the noises add up; under central trust the server
    adds it once, in `decode`. Noise scales with the round's radius, so the price does not depend on it.

    Attributes:
        dim: Number of coordinates of a row, >= 1.
        noise: What is added; its norm is the norm that rows are clipped in.
        trust: `local` (every party adds noise) or `central` (the server does).
        neighbours: Relation for the sensitivity of the sum: 2 radii under replace-one, else 1.

    Example:
        >>> from tacit.means import AdditiveMean, GaussianNoise
        >>> from tacit.privacy import TrustModel, guarantee
        >>> mean = AdditiveMean(dim=4, noise=GaussianNoise(3.730632))
        >>> guarantee(mean.event(100, TrustModel.LOCAL), 1e-5, observer="the server").epsilon
        1.0
    """

    dim: int
    noise: AnyNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_count("dim", self.dim)
        if self.trust is TrustModel.SHUFFLE:
            raise ParameterError("trust must be local or central for additive noise, got 'shuffle'.")

    @property
    def moved(self) -> int:
        """How many radii one unit moves a sum."""
        return 2 if self.neighbours.relation is Relation.REPLACE_ONE else 1

    def encode(self, rows: Array, round: Round, *, party: int, rng: np.random.Generator) -> list[Message]:
        """Clip the rows of one party, shape (k, dim), and write one message with their (noisy) sum."""
        summed = self._clipped_sum(rows, round.radius)
        return self.encode_sum(summed, rows=len(rows), round=round, party=party, rng=rng)

    def encode_sum(
        self, clipped_sum: Array, *, rows: int, round: Round, party: int, rng: np.random.Generator
    ) -> list[Message]:
        """Write one message from the sum of a party's clipped rows, shape (dim,)."""
        summed = self.noise.prepare(clipped_sum, round.radius)
        if self.trust is TrustModel.LOCAL:
            summed = summed + self.noise.sample(self.dim, moved=self.moved, radius=round.radius, rng=rng)
            return [self.noise.message(summed, rows=rows, moved=self.moved, party=party)]
        return [_full_precision(summed, party)]

    def decode(
        self, messages: list[Message], round: Round, *, rng: np.random.Generator | None = None
    ) -> Array:
        """Add the messages, and the noise under central trust, and divide by the planned n; shape (dim,)."""
        summed = total(messages, self.dim)
        if self.trust is TrustModel.CENTRAL and not isinstance(self.noise, NoNoise):
            if rng is None:
                raise ParameterError("decode needs rng under central trust: the server adds the noise.")
            summed = summed + self.noise.sample(self.dim, moved=self.moved, radius=round.radius, rng=rng)
        return summed * (self.noise.unit(round.radius) / round.n)

    def estimate(self, X: Array, round: Round, *, rng: np.random.Generator) -> Array:
        """Simulate a whole round on all rows, shape (n, dim); one noise per party under local trust."""
        summed = self.noise.prepare(self._clipped_sum(X, round.radius), round.radius).astype(np.float64)
        for _ in range(round.parties if self.trust is TrustModel.LOCAL else 1):
            summed = summed + self.noise.sample(self.dim, moved=self.moved, radius=round.radius, rng=rng)
        return np.asarray(summed * (self.noise.unit(round.radius) / round.n))

    def event(self, n: int, trust: TrustModel) -> Event:
        """Return what the observer of that trust model learns from one round on n rows.

        Noise that parties add also protects from observers behind a shuffler or a server; noise that the
        server adds protects from nobody who sees the messages.
        """
        check_count("n", n)
        if self.trust is TrustModel.CENTRAL and trust is not TrustModel.CENTRAL:
            return NonPrivate(self.neighbours)
        return self.noise.event(n, self.dim, moved=self.moved, neighbours=self.neighbours)

    def bits_per_party(self, rows: int = 1) -> float:
        """Return the length of a party's message in bits, header included."""
        local = self.trust is TrustModel.LOCAL
        entry = self.noise.entry_bits(rows, moved=self.moved) if local else 64
        return 8 * (HEADER_BYTES + math.ceil(self.dim * entry / 8))

    def error(self, n: int, facts: Facts = WORST_CASE) -> Error:
        """Return the error against the mean of the clipped rows; exact but for rounding to a grid."""
        check_count("n", n)
        noises = facts.parties if self.trust is TrustModel.LOCAL else 1
        unit = self.noise.unit(facts.radius)
        per_coordinate = self.noise.variance(moved=self.moved, radius=facts.radius) * (unit / n) ** 2
        # Each party rounds its sum to the grid once: at most half a step a coordinate.
        bias = 0.0 if unit == 1 else facts.parties * math.sqrt(self.dim) * unit / (2 * n)
        return Error(variance=noises * self.dim * per_coordinate, bias=bias, exact=bias == 0)

    def _clipped_sum(self, rows: Array, radius: float) -> Array:
        """Return the float64 sum of the clipped rows."""
        clipped = clip_rows(rows, radius, norm=self.noise.norm)
        if clipped.shape[1] != self.dim:
            raise ParameterError(f"rows must have shape (k, {self.dim}), got {clipped.shape}.")
        return np.asarray(clipped.sum(axis=0, dtype=np.float64))


def _full_precision(summed: Array, party: int) -> Message:
    """Write a sum that the server will add noise to: nothing may be lost before."""
    if summed.dtype.kind == "i":
        return Message(payload=summed, width=64, sender=party)
    return Message(payload=summed.astype(np.float64, copy=False), sender=party)
