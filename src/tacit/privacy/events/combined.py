"""Events that say how releases go together: on the same data, on samples of it, on disjoint parts."""

from __future__ import annotations

from enum import StrEnum

from tacit.errors import ParameterError, check_count, check_probability
from tacit.privacy.events.base import Event, check_whole_unit, neighbours_of
from tacit.privacy.neighbours import Neighbours, Relation

__all__ = ["AnyOf", "Compose", "Parallel", "Repeat", "Sample", "Sampled", "assumptions_of", "parts_of"]


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
        how: A fixed size goes with replace-one, Poisson with add-remove and zero-out.
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
                "neighbours: use a fixed size with replace-one, Poisson with add-remove or zero-out."
            )
        if self.rate < 1:
            check_whole_unit("a sample", self.neighbours)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the sample is secret."""
        return (f"nobody learns which {self.neighbours.unit.plural} are sampled",) if self.rate < 1 else ()


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


class AnyOf(_Combined, frozen=True, tag=True):
    """One release with several whole proofs; at every epsilon the best of them holds."""

    proofs: tuple[Event, ...]


def assumptions_of(event: Event) -> tuple[str, ...]:
    """Return what the price of an event and of all its parts rests on besides the noise, each clause once.

    Args:
        event: Any event tree.

    Returns:
        Clauses of a guarantee's sentence: no statement may leave one out.
    """
    # Equal parts say the same: a plan may hold thousands.
    clauses = [clause for part in dict.fromkeys(parts_of(event)) for clause in assumptions_of(part)]
    return tuple(dict.fromkeys((*clauses, *event.assumptions)))


def parts_of(event: Event) -> tuple[Event, ...]:
    """Return the events that an event combines; none for a leaf."""
    match event:
        case Compose(parts=parts) | Parallel(parts=parts) | AnyOf(proofs=parts):
            return parts
        case Repeat(part=part) | Sampled(part=part):
            return (part,)
        case _:
            return ()


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
