"""Events of rounds with a secret part of all parties: drawn by the shuffler, or by themselves."""

from __future__ import annotations

import math
from collections.abc import Hashable

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_probability
from tacit.privacy.arrivals import HONEST
from tacit.privacy.events.base import Event
from tacit.privacy.events.combined import ByChance, Sample, Sampled, parts_of

__all__ = ["Drawn", "SelfDrawn", "is_shuffled", "sampled_rate"]


class Drawn(Sampled, frozen=True, kw_only=True, tag=True):
    """A release about one record of each of some parties, which is a sample of all while these are secret.

    Made by `tacit.privacy.shuffling.drawn_round`.

    Attributes:
        part: What is released on the sample.
        rate: Probability that a record is in it, at least drawn / clients / records; in (0, 1].
        how: A fixed size.
        clients: Honest parties of whom some are drawn, at least.
        drawn: How many of them are, at most; fewer than there are.
        records: Of each party, at least.
    """

    clients: int
    drawn: int
    records: int = 1

    def __post_init__(self) -> None:
        check_count("clients", self.clients, high=LARGEST_COUNT)
        check_count("drawn", self.drawn, high=self.clients - 1)
        check_count("records", self.records, high=LARGEST_COUNT)
        super().__post_init__()
        if self.how is not Sample.FIXED:
            raise ParameterError(f"how must be fixed where parties are drawn, got {self.how.value!r}.")
        # Or a price would be about fewer parties than its sentence says.
        if self.rate < (least := self.drawn / self.clients / self.records) * (1 - 1e-6):
            raise ParameterError(
                f"rate must be at least drawn / clients / records ({least!r}), got {self.rate!r}."
            )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That parties and records are drawn in secret: of single records, the shuffler knows both."""
        unit = self.neighbours.unit
        theirs = f", or which of their {unit.plural}" if self.records > 1 else ""
        return (
            f"at most {self.drawn:,} of at least {self.clients:,} honest parties are drawn for a round, by "
            f"chance alone, each with one {unit.value} of at least {self.records:,}, and {_who(self)} "
            f"learns which parties are{theirs}",
        )


class SelfDrawn(ByChance, frozen=True, tag=True):
    """A mixture over how many of the honest parties join a round, each by chance of its own.

    Made by `tacit.privacy.shuffling.self_drawn_round`. Given how many joined, which is visible, they are a
    uniform sample.

    Attributes:
        parts: What is released, each on the same data.
        weights: Probability of each, > 0; together at most 1, and with the rest nothing is released.
        clients: Honest parties that may join, at least.
        rate: Probability that one of them does.
    """

    clients: int
    rate: float

    def __post_init__(self) -> None:
        check_count("clients", self.clients, high=LARGEST_COUNT)
        check_probability("rate", self.rate, low_open=True)
        super().__post_init__()
        # Or a price would be about fewer rounds than its sentence says.
        if math.fsum(self.weights) < self.rate * (1 - 1e-6):
            raise ParameterError(
                f"weights must add up to at least the rate ({self.rate!r}), with which a party joins, got "
                f"{math.fsum(self.weights)!r}."
            )

    @property
    def share(self) -> float:
        """Of the records of a party that joins, how large a part a round is about; at most 1."""
        drawn = math.fsum(
            weight * sampled_rate(part) for part, weight in zip(self.parts, self.weights, strict=True)
        )
        return min(drawn / self.rate, 1.0)

    @property
    def is_even(self) -> bool:
        """Whether a message is the same however many join, and batches differ in their numbers alone."""
        return len({_message(part) for part in self.parts}) == 1

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That so many parties toss a coin that nobody else sees, but the shuffler of what it shuffles."""
        some = f", at most a share of {self.share:.6g}" if self.share < 1 - 1e-6 else ""
        uneven = () if self.is_even else ("what a party sends depends on how many join, as the event says",)
        return (
            *uneven,
            f"each of {self.clients:,} honest parties joins a round with probability {self.rate:.6g}, by "
            f"chance of its own, and {_who(self)} learns which do, or with which of their "
            f"{self.neighbours.unit.plural}{some}",
        )


def is_shuffled(event: Event) -> bool:
    """Return whether all that an event releases is shuffled, so that its shuffler may know who sent it."""
    parts = parts_of(event)
    return all(map(is_shuffled, dict.fromkeys(parts))) if parts else HONEST in event.assumptions


def sampled_rate(event: Event) -> float:
    """Return the part of all units that a release is about, of samples within samples too; 1 of no sample."""
    rate = 1.0
    while isinstance(event, Sampled):
        rate, event = rate * event.rate, event.part
    return rate


def _message(event: Event) -> tuple[Hashable, ...]:
    """Return what an event says of one message: all but numbers of them, and of the samples it is drawn by.

    Samples inside of what is repeated, or goes together with other releases, are its own.
    """
    while isinstance(event, Sampled) and not isinstance(event, Drawn):
        event = event.part
    return _inside(event)


def _inside(event: Event) -> tuple[Hashable, ...]:
    """Return the same of a part of what is sent."""
    own = [name for name in event.__struct_fields__ if name not in {"part", "parts", *event.goes_by_size}]
    return (type(event), *(getattr(event, name) for name in own), *map(_inside, parts_of(event)))


def _who(event: Event) -> str:
    """Return who does not learn which parties are in a round."""
    return "nobody but the shuffler" if is_shuffled(event) else "nobody"
