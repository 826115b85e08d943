"""What goes on every mean of a run: who adds how much of which noise, and for whom."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tacit.federation import Batch
from tacit.means import AnyNoise, BinomialMean, DiscreteGaussianNoise, ModularSumMean, NoNoise
from tacit.privacy import Neighbours, TrustModel

__all__ = ["Protection"]

_MOST_NOISE_BITS = 2**31 - 1
"""Of one row and coordinate: more noise than that is asked for only while the least is searched for."""

_LEAST_MULTIPLIER = 1e-9
"""Below it, one noise bit a row is more."""

_FINE, _SHARED = 50.0, 16.0
"""Grid steps of a radius in sums of shares, over sqrt(dim) and over the root of the shares, at least."""

_RECORDS = Neighbours()
"""One record is replaced by another."""

_LEAST_STEPS, _LEAST_TOTAL = 3.0, 9.0
"""Grid steps that a share of discrete Gaussian noise has, and all that count together, at least: with less,
`DiscreteGaussianSum` has no price."""


@dataclass(frozen=True, kw_only=True)
class Protection:
    """What goes on every mean of a run: who adds how much of which noise, and for whom.

    Attributes:
        trust: Who is trusted with messages.
        neighbours: What is protected.
        noise: Kind of noise, made from a multiplier.
        multiplier: Standard deviation / sensitivity; 0 adds none.
        epsilon: What the whole run may spend; infinite without privacy.
        delta: The delta at which it may.
        silos: Units of every silo, under shuffle and aggregate trust.
        fewest: Honest silos behind every mean there, at least: n_min - colluding.
    """

    trust: TrustModel = TrustModel.LOCAL
    neighbours: Neighbours = _RECORDS
    noise: Callable[[float], AnyNoise] | None = None
    multiplier: float = 0.0
    epsilon: float = math.inf
    silos: tuple[int, ...] = ()
    fewest: int = 0
    delta: float = 0.0

    def honest(self, batch: Batch) -> int:
        """Return the least number of honest units behind a mean of such batches, under shuffle trust."""
        return sum(sorted(batch.size_for(n) for n in self.silos)[: self.fewest])

    def shuffled(self, dim: int, share: float, batch: Batch) -> BinomialMean:
        """Return a shuffled mean whose noise is that of `noise_for`, or hardly more: it comes in whole bits.

        The noise bits of all honest rows have the standard deviation sqrt(honest b) / 2 in grid steps, of
        which a row of the ball moves a sum by 2 radii = g. Rounding to the grid adds up to sqrt(dim) steps to
        that: a finer grid costs bits, which grow with its square, and a coarser one noise.
        """
        honest, coarsest = self.honest(batch), 8 / math.sqrt(dim)
        resolution = max(8, math.ceil(math.sqrt(dim)))
        # More noise than rows can hold is asked for only while the least is searched for.
        most = math.sqrt(_MOST_NOISE_BITS / 2 * honest) / (2 * resolution)
        mean = BinomialMean.for_multiplier(
            dim=dim,
            multiplier=min(max(self.multiplier, _LEAST_MULTIPLIER) / math.sqrt(share), most),
            honest=honest,
            fineness=max(1.0, coarsest),
            neighbours=self.neighbours,
        )
        # The plan says how many parties arrive.
        return msgspec.structs.replace(mean, n_min=None, on_violation="clip")

    def summed(self, dim: int, share: float, *, acute: bool) -> ModularSumMean:
        """Return a mean whose sum has the noise of `noise_for` if only `fewest` of all shares are counted.

        The grid is so fine that rounding, sqrt(dim) steps, is below two per cent of a radius, and that little
        noise is still many steps of every share. Every silo draws the same share, whatever its size.
        """
        finest = max(_FINE * math.sqrt(dim), _SHARED * math.sqrt(self.fewest))
        steps = 2 ** math.ceil(math.log2(finest))
        mean = ModularSumMean(
            dim=dim,
            noise=DiscreteGaussianNoise(1.0, steps=steps),
            shares=self.fewest,
            neighbours=self.neighbours,
            on_violation="clip",
            acute=acute,
        )
        wanted = self.multiplier / math.sqrt(share * self.fewest)
        # Less noise than that is asked for only while the least is searched for.
        least = max(_LEAST_STEPS, _LEAST_TOTAL / math.sqrt(self.fewest)) / (mean.moved * steps) * (1 + 1e-12)
        noise = DiscreteGaussianNoise(max(wanted, least), steps=steps)
        return msgspec.structs.replace(mean, noise=noise)

    def noise_for(self, share: float) -> AnyNoise:
        """Return the noise of a mean that may spend that share of the budget of its step."""
        if self.noise is None or self.multiplier == 0:
            return NoNoise()
        return self.noise(self.multiplier / math.sqrt(share))
