"""Rounds whose noise is correlated: a silo, or a trusted server, mixes their sums before noise goes on."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np

from tacit.errors import ParameterError, RefusalError, check_count
from tacit.federation.batches import Disjoint, Full
from tacit.federation.limits import MOST_BANDS
from tacit.federation.measures import Kind, Measure
from tacit.means import AdditiveMean, Message, Round
from tacit.means.additive import is_gaussian
from tacit.means.message import check_senders, total
from tacit.mechanisms import CorrelatedSums, Past
from tacit.numerics import Array, square_root_column
from tacit.privacy import Event, TrustModel, correlated

__all__ = ["CorrelatedStep", "pooled", "release"]


class CorrelatedStep(Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="correlated-means"):
    """A kind of round in which one mean leaves, whose noise later rounds take back in part.

    Noise goes on mixtures of a round's sum and those of the rounds before, with the square root of prefix
    sums for weights, and all rounds of a run cost together what one Gaussian release costs
    (docs/theory/correlated-noise.md). Disjoint batches are the blocks of one order of the units, which start
    over when all of them had their turn; units that fill no block are left out.

    Attributes:
        measures: One mean of clipped rows, with Gaussian noise or none; its multiplier is that of the fresh
            noise of a round. Queries name its `max_radius` and no other.
        batch: Full, or disjoint.
        bands: Rounds that are mixed: this one and so many less one before it; 1 is independent noise.
        passes: How often a unit takes part, at most.
    """

    bands: int
    passes: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.measures) != 1:
            raise ParameterError(f"correlated noise needs exactly one statistic, got {len(self.measures)}.")
        if not isinstance(self.batch, Full | Disjoint):
            raise ParameterError(
                "the batch of correlated rounds must be full or disjoint: samples have no price there."
            )
        if isinstance(self.batch, Disjoint) and not self.batch.once:
            raise ParameterError(
                "the disjoint batches of correlated rounds must have repeats 1 and no sample: passes say how "
                "often a unit takes part."
            )
        if not is_gaussian(self.measures[0].estimator):
            raise ParameterError(
                "correlated rounds need sums of rows in full with Gaussian noise, continuous or discrete."
            )
        check_count("bands", self.bands, high=MOST_BANDS)
        check_count("passes", self.passes)

    @property
    def keeps(self) -> int:
        """How many numbers are kept from round to round."""
        return 2 * (self.bands - 1) * self.measures[0].estimator.dim

    @property
    def exact(self) -> Measure:
        """The measure as exact sums, to which noise is yet to be added."""
        (measure,) = self.measures
        return msgspec.structs.replace(
            measure, estimator=msgspec.structs.replace(measure.estimator, trust=TrustModel.CENTRAL)
        )

    def blocks(self, n: int) -> int:
        """Return how many batches a silo of public size n has until they start over: the separation."""
        return n // self.batch.size_for(n)

    def start(self, block: int, n: int) -> int:
        """Return where in the order of the units a batch starts."""
        return block % self.blocks(n) * self.batch.size_for(n)

    def most_rounds(self, n: int) -> int:
        """Return how many rounds a silo of public size n can answer."""
        return self.passes * self.blocks(n)

    def run_event(self, sizes: Sequence[int], trust: TrustModel, rounds: int) -> Event:
        """Return what all rounds cost together at the worst of the sizes: where units come back soonest."""
        column = square_root_column(self.bands)
        separation, most = min(self.blocks(n) for n in sizes), sum(self._most(n) for n in sizes)
        return correlated(self.event(sizes, trust), column, separation=separation, rounds=rounds, n=most)

    def check_rounds(self, rounds: int) -> None:
        """Refuse more bands than rounds."""
        if self.bands > rounds:
            raise ParameterError(f"bands must be at most the {rounds} rounds, got {self.bands}.")


def pooled(step: CorrelatedStep, messages: list[Message]) -> Array:
    """Return the exact sum of what silos sent under central trust, in the units of the noise."""
    mean = cast(AdditiveMean, step.measures[0].estimator)
    check_senders(messages)
    return total(messages, mean.dim, np.int64 if mean.noise.on_grid else np.float64)


def release(
    step: CorrelatedStep,
    summed: Array,
    number: int,
    past: Past,
    *,
    radius: float,
    rows: int,
    rng: np.random.Generator,
) -> tuple[Array, Past]:
    """Return a sum with correlated noise, and what the rounds after it need; noise is fresh in every round.

    Args:
        step: The kind of round.
        summed: Shape (dim,): the exact sum, in the units of the noise.
        number: How many rounds of the kind come before.
        past: What the rounds before left.
        radius: Of the rows.
        rows: Public number of rows of the sum.
        rng: Source of the noise.

    Raises:
        RefusalError: A later round has been answered: out of order, batches would not be as far apart.
    """
    if number < past.next:
        raise RefusalError(
            "rounds with correlated noise are answered in order, and a later one of this kind has been."
        )
    # `is_gaussian` was looked at when the step was made.
    mean, column = cast(AdditiveMean, step.measures[0].estimator), square_root_column(step.bands)
    stream, alone = CorrelatedSums(column), Round(n=1, radius=radius)
    mixed = stream.mixed(summed, number, past) * mean.noise.unit(radius)
    room = math.ceil(rows * float(column.sum()))
    noisy = mean.decode(mean.encode_sum(mixed, rows=room, round=alone, party=0, rng=rng), alone, rng=rng)
    released = stream.released(noisy, number, past)
    return released, stream.followed(past, number, summed=summed, released=released)
