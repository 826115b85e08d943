"""Events that say how releases go together: on the same data, on samples of it, on disjoint parts."""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec

from tacit.errors import ParameterError, check_count, check_non_negative, check_probability
from tacit.privacy.events.base import Event, check_whole_unit, neighbours_of
from tacit.privacy.events.discrete import DiscreteGaussian
from tacit.privacy.events.leaves import Gaussian, Gdp
from tacit.privacy.events.sums import DiscreteGaussianSum
from tacit.privacy.neighbours import Neighbours, Relation

__all__ = [
    "Aligned",
    "AnyOf",
    "ByChance",
    "Compose",
    "Parallel",
    "Repeat",
    "Replaced",
    "Sample",
    "Sampled",
    "parts_of",
    "squared_level",
]


class _Combined(Event, frozen=True, tag=True):
    """Releases that go together, all under the same neighbours."""

    def __post_init__(self) -> None:
        _check_parts(self)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all parts share."""
        return neighbours_of(parts_of(self)[0])


class Compose(_Combined, frozen=True, tag=True):
    """Several releases on the same data, each possibly chosen after seeing the earlier ones."""

    parts: tuple[Event, ...]


class Repeat(_Combined, frozen=True, tag=True):
    """One release, `count` times on the same data."""

    part: Event
    count: int

    def __post_init__(self) -> None:
        check_count("count", self.count, high=10**300)  # merged prices of nested repetitions are that large
        _check_parts(self)


class Sample(StrEnum):
    """How a secret sample is drawn: a fixed number of units, or each unit on its own."""

    FIXED = "fixed"
    POISSON = "poisson"


class Sampled(_Combined, frozen=True, tag=True):
    """A release on a secret sample of the units.

    Two releases on one sample are `Sampled(Compose((a, b)), ...)`, not two samples.

    What differs between neighbours must be all that a unit puts into the release. Where only a part of it
    differs (sensitive attributes, a reward), the noise hides that part alone, and the rest may show whether
    the unit was sampled; a sample of rate q then costs up to q times the delta of the release. That is
    refused here: price the release without `Sampled`.

    Attributes:
        part: What is released on the sample.
        rate: Size of the sample / number of units (fixed), or probability of each unit (Poisson); in (0, 1].
        how: A fixed size goes with replace-one, Poisson with add-remove and zero-out; a unit of a Poisson
            sample that is replaced is `Replaced`.
    """

    part: Event
    rate: float
    how: Sample = Sample.FIXED

    def __post_init__(self) -> None:
        check_probability("rate", self.rate, low_open=True)
        if not isinstance(self.how, Sample):
            raise ParameterError(f"how must be a Sample, got {self.how!r}.")
        _check_parts(self)
        replaces = self.neighbours.relation is Relation.REPLACE_ONE
        if replaces != (self.how is Sample.FIXED):
            raise ParameterError(
                f"a {self.how.value} sample cannot be priced under {self.neighbours.relation.value} "
                "neighbours: use a fixed size with replace-one, Poisson with add-remove or zero-out; or "
                "`Replaced`, for Gaussian noise on a Poisson sample under replace-one."
            )
        if self.rate < 1:
            check_whole_unit("a sample", self.neighbours)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the sample is secret."""
        return (f"nobody learns which {self.neighbours.unit.plural} are sampled",) if self.rate < 1 else ()


class Replaced(_Combined, frozen=True, tag=True):
    """Gaussian noise on a Poisson sample, under replace-one: a unit is replaced, and may be in the sample.

    How far two units are apart says too little here, because a unit is also compared with its absence. The
    part is therefore priced under zero-out: its noise is measured against what one unit contributes. A mean
    of rows with norms up to C and noise of standard deviation s has the multiplier s / C, twice what it has
    under replace-one. Several releases on the same sample are one part, `Compose` or `Repeat`.

    The price is that of (1-q) N(0, 1) + q N(mu, 1) against (1-q) N(0, 1) + q N(-mu, 1), where the part is
    mu-Gaussian-DP (docs/theory/accounting.md, section 3).

    Attributes:
        part: Gaussian noise, continuous or on a fine grid, under zero-out neighbours.
        rate: Probability q that a unit is in the sample, in (0, 1].
    """

    part: Event
    rate: float

    def __post_init__(self) -> None:
        check_probability("rate", self.rate, low_open=True)
        _check_parts(self)
        near = neighbours_of(self.part)
        if near.relation is not Relation.ZERO_OUT:
            raise ParameterError(
                "the part of Replaced must be priced under zero-out neighbours, as noise against what one "
                f"{near.unit.value} contributes, got {near.relation.value}."
            )
        check_whole_unit("a sample", near)
        _ = self.mu

    @property
    def neighbours(self) -> Neighbours:
        """Replace-one, of the unit of the part."""
        return msgspec.structs.replace(neighbours_of(self.part), relation=Relation.REPLACE_ONE)

    @property
    def mu(self) -> float:
        """The Gaussian-DP level of the part, the unit in the sample against its absence."""
        return math.sqrt(min(squared_level(self.part), 1e300))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the sample is secret."""
        return (f"nobody learns which {self.neighbours.unit.plural} are sampled",) if self.rate < 1 else ()


class Aligned(_Combined, frozen=True, tag=True):
    """Gaussian noise on x x^T and, in other rounds, on rows x p^T of the same units, under replace-one.

    Every unit has one vector x, and all of them are of one length; p may be another in every round, and may
    depend on all that was released before. Two units whose matrices are far apart are at a right angle, and
    two whose rows are opposite are not, so that no two are both: of squared levels A and B the price is that
    of A + B / 2 + B^2 / (16 A) where B <= 4 A, else of B (docs/theory/second-moments.md).

    Attributes:
        squares: Noise on sums of x x^T, against the root of two of their largest length.
        rows: Noise on sums of rows x p^T, against twice their largest length; all rounds of them.
        rounding: How far rounding to a grid may move what is released, all rounds together, in standard
            deviations of the noise; it is in both levels and counts once more. >= 0.
    """

    squares: Event
    rows: Event
    rounding: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("rounding", self.rounding)
        _check_parts(self)
        if self.neighbours.relation is not Relation.REPLACE_ONE:
            raise ParameterError(
                "Aligned needs replace-one neighbours, whose units are compared with each other, got "
                f"{self.neighbours.relation.value}: there, use Compose."
            )
        check_whole_unit("a vector", self.neighbours)
        _ = self.mu

    @property
    def mu(self) -> float:
        """The Gaussian-DP level of all of it."""
        squares, rows = (min(squared_level(part, 2), 1e300) for part in parts_of(self))
        if not 0 < rows <= 4 * squares:
            return math.sqrt(max(squares, rows)) + self.rounding
        return math.sqrt(squares + rows * (0.5 + rows / squares / 16)) + self.rounding


class Parallel(_Combined, frozen=True, tag=True):
    """Releases on disjoint data (one pass, shards, phases): each unit is in at most one part.

    Which part that is must not depend on the unit's value, or a replaced unit could move from one to another.
    """

    parts: tuple[Event, ...]

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That no value of a unit decides which part it, or another unit, is in."""
        unit = self.neighbours.unit
        if self.neighbours.relation is Relation.ADD_REMOVE:
            return (
                f"which of the disjoint parts a {unit.value} is in does not depend on other {unit.plural}",
            )
        return (f"{unit.plural} are dealt to disjoint parts without looking at any of them",)


class ByChance(_Combined, frozen=True, tag=True):
    """One of several releases, or none, as chance has it; everybody may see which.

    The draw looks at no data, so that it is the same for neighbours: delta is the mean of the deltas, and
    e^((order - 1) divergence) that of those of the parts. What is hidden of the draw is `Sampled` within the
    parts: of k secret parties among n with m records each, one of which sends a message about s > 1 records,
    (k / n) of `Sampled(part, s / m)` (Girgis 2023, Appendix C.1.2).

    Attributes:
        parts: What is released, each on the same data.
        weights: Probability of each, > 0; together at most 1, and with the rest nothing is released.
    """

    parts: tuple[Event, ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        _check_parts(self)
        if len(self.weights) != len(self.parts):
            raise ParameterError(
                f"weights must be one for each of the {len(self.parts)} parts, got {len(self.weights)}."
            )
        for weight in self.weights:
            check_probability("weights", weight, low_open=True)
        if math.fsum(self.weights) > 1 + 1e-12:
            raise ParameterError(f"weights must add up to at most 1, got {math.fsum(self.weights)!r}.")

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That nobody chooses."""
        unit = self.neighbours.unit
        return (f"chance alone decides whose {unit.plural} a round is about",)


class AnyOf(_Combined, frozen=True, tag=True):
    """One release with several whole proofs; at every epsilon the best of them holds."""

    proofs: tuple[Event, ...]


def parts_of(event: Event) -> tuple[Event, ...]:
    """Return the events that an event combines; none for a leaf."""
    match event:
        case Compose(parts=parts) | Parallel(parts=parts) | AnyOf(proofs=parts) | ByChance(parts=parts):
            return parts
        case Repeat(part=part) | Sampled(part=part) | Replaced(part=part):
            return (part,)
        case Aligned(squares=squares, rows=rows):
            return (squares, rows)
        case _:
            return ()


def squared_level(event: Event, releases: int = 1) -> float:
    """Return mu^2 of releases that are together mu-Gaussian-DP.

    Args:
        event: Gaussian noise, continuous or on a fine grid, and its compositions.
        releases: Of how many in all the event is one, whose roundings to the grid add up.

    Raises:
        ParameterError: Another event: of those, no mu is known.
    """
    match event:
        case Gaussian(noise_multiplier=z):
            return 1 / z / z
        case Gdp(mu=mu):
            return mu * mu
        case DiscreteGaussian() | DiscreteGaussianSum() if (fine := event.rounded(releases)) is not None:
            return squared_level(fine)
        case Compose(parts=parts):
            return math.fsum(min(squared_level(part, releases * len(parts)), 1e300) for part in parts)
        case Repeat(part=part, count=count):
            return min(count, 10**300) * squared_level(part, releases * count)
        case _:
            raise ParameterError(
                "a Poisson sample under replace-one neighbours, and vectors with their squares, are priced "
                "for Gaussian noise only, continuous or on a fine grid, and its compositions, got "
                f"{type(event).__name__}: use a fixed size, or Compose."
            )


def _check_parts(event: Event) -> None:
    """Refuse no parts, and parts of different neighbours."""
    name, parts = type(event).__name__, parts_of(event)
    if not parts:
        raise ParameterError(f"{name} needs at least one part, got none.")
    try:
        relations = {neighbours_of(part) for part in parts}
    except RecursionError as error:
        raise ParameterError(f"{name} must not hold events that are nested that deep.") from error
    if len(relations) > 1:
        found = "; ".join(sorted(str(r) for r in relations))
        raise ParameterError(f"{name} refuses to combine events of different neighbours: {found}.")
