"""What the price of a tree of events rests on besides the noise, and what chance decides in it, in words."""

from __future__ import annotations

from tacit.privacy.arrivals import HONEST
from tacit.privacy.events.base import Event
from tacit.privacy.events.combined import ByChance, Drawn, Replaced, Sample, Sampled, SelfDrawn, parts_of

__all__ = ["assumptions_of", "chances_of"]

_FEW = 3
"""Probabilities of one kind that a sentence names at most."""


def assumptions_of(event: Event) -> tuple[str, ...]:
    """Return what the price of an event and of all its parts rests on besides the noise, each clause once.

    Args:
        event: Any event tree.

    Returns:
        Clauses of a guarantee's sentence: no statement may leave one out.
    """
    # Equal parts say the same: a plan may hold thousands.
    parts = parts_of(event)
    if isinstance(event, SelfDrawn):  # it says itself that the shuffler may know whose units are sampled
        parts = tuple(map(_without_shuffled_sample, parts))
    found = [assumptions_of(part) for part in dict.fromkeys(parts)]
    clauses = [clause for part in found for clause in part]
    if isinstance(event, SelfDrawn):  # what one part says of its size, others do not bear out
        sized = [part for part in found if any(map(_is_size, part))]
        clauses = [
            clause for clause in clauses if not _is_size(clause) or all(clause in part for part in sized)
        ]
    return tuple(dict.fromkeys((*clauses, *event.assumptions)))


def _without_shuffled_sample(part: Event) -> Event:
    """Return the batch of a sample that is shuffled, else the part."""
    # What is `Drawn` has a clause of its own, of how many parties there are.
    if isinstance(part, Sampled) and not isinstance(part, Drawn) and HONEST in assumptions_of(part.part):
        return part.part
    return part


def _is_size(clause: str) -> bool:
    """Return whether a clause is about how many messages or noise bits a shuffled batch has."""
    return clause.startswith(("every batch holds ", "honest parties add "))


def chances_of(event: Event) -> tuple[str, ...]:
    """Return with which probabilities chance decides whose units a release is about, in words.

    Args:
        event: Any event tree.

    Returns:
        Each probability once, those of inner samples first; a few at most. Those of parties that draw
        themselves are clauses already.
    """
    found = [said for part in dict.fromkeys(parts_of(event)) for said in chances_of(part)]
    match event:
        case Sampled(rate=rate, how=Sample.FIXED) if rate < 1:
            found.append(f"samples of a share {rate:.6g} of all {event.neighbours.unit.plural}")
        case Sampled(rate=rate) | Replaced(rate=rate) if rate < 1:
            found.append(f"each {event.neighbours.unit.value} is sampled with probability {rate:.6g}")
        case ByChance(weights=weights) if not isinstance(event, SelfDrawn) and weights != (1.0,):
            chances = ", ".join(f"{one:.6g}" for one in weights[:_FEW])
            more = ", ..." if len(weights) > _FEW else ""
            found.append(f"chance picks a release with probability {chances}{more}")
    return tuple(dict.fromkeys(found))[:_FEW]
