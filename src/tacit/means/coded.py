"""Means from codes of single vectors: what every party sends stands for its vector by itself.

What is sent depends on the vector in other ways than by its values (which coordinates, which range), so noise
on the values would protect nothing, and no privacy is offered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic

import msgspec
import numpy as np

from tacit.errors import ParameterError
from tacit.means.base import Error, Facts
from tacit.means.message import Round
from tacit.means.noise import NoNoise
from tacit.means.party_sums import Form, PartySum, Public
from tacit.means.violations import OnViolation
from tacit.numerics import Array, settle
from tacit.privacy import Neighbours, TrustModel

__all__ = ["CodedMean", "VectorCode"]


@dataclass(frozen=True, kw_only=True)
class VectorCode(Generic[Public]):
    """A code of single vectors; see `tacit.means.party_sums.Code`.

    Attributes:
        forms: Of a party's messages.
        drawn: Draws what all know, from the parties and the round.
        written: Writes vectors, shape (n, dim), with what all know and private randomness.
        summed: Maps payloads to the sum of the vectors that they stand for, shape (dim,).
        variance: The most E||Q(x) - E Q(x)||^2 / ||x||^2.
        squared_bias: The most ||E Q(x) - x||^2 / ||x||^2.
    """

    forms: tuple[Form, ...]
    drawn: Callable[[Sequence[int], Round], Public]
    written: Callable[[Array, Public, np.random.Generator], list[Array]]
    summed: Callable[[list[Array], Public], Array]
    variance: float
    squared_bias: float = 0.0
    roundings: int = 0
    map_numbers: int = 0

    def public(self, senders: Sequence[int], round: Round) -> Public:
        """Draw what all know."""
        return self.drawn(senders, round)

    def write(
        self, vectors: Array, public: Public, round: Round, rng: np.random.Generator, *, width: int
    ) -> list[Array]:
        """Write vectors."""
        return self.written(vectors, public, rng)

    def read(self, payloads: list[Array], public: Public, round: Round) -> Array:
        """Add what all codes stand for, and divide by the planned n."""
        return self.summed(payloads, public) / round.n

    def error(self, n: int, facts: Facts) -> Error:
        """Return a bound from S1 alone."""
        bias = math.sqrt(self.squared_bias) * facts.most_norms(n) / n
        return Error(variance=self.variance * facts.most_squared_norms(n) / n**2, bias=bias, exact=False)


class CodedMean(
    PartySum, msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="estimator"
):
    """Fields of means from codes of single vectors.

    Attributes:
        dim: Number d of coordinates of a row, from 1 to 2**31.
        noise: `NoNoise` only.
        trust: `local` only: the messages of a party belong together.
        neighbours: Carried by the event, which claims nothing.
        on_violation: What becomes of a row outside of the ball: "clip" scales it into the ball and takes one
            that is not finite for zero; "error", the default, refuses it.
    """

    dim: int
    noise: NoNoise = NoNoise()
    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = Neighbours()
    on_violation: OnViolation | None = None

    def _settle(self) -> None:
        if type(self.noise) is not NoNoise:
            raise ParameterError(
                "noise must be NoNoise: which coordinates or levels are sent depends on the data, so noise "
                "on values would protect nothing; for privacy take RandK, RandKSpatial or RandProjSpatial."
            )
        settle(self)
