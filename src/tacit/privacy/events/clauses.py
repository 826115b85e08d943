"""What the price of an event and of all its parts rests on, in words: no combination leaves a clause out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

from tacit.privacy.events.base import Event
from tacit.privacy.events.combined import ByChance, Replaced, Sample, Sampled, parts_of
from tacit.privacy.events.drawn import Drawn, SelfDrawn, is_shuffled, sampled_rate

__all__ = ["assumptions_of", "chances_of"]

_FEW: Final = 3
"""Probabilities of one kind that a sentence names at most."""
_SIZE: Final = re.compile(r"(?:every batch holds|honest parties add) ([\d,]+) ")
"""How a clause begins that says how many messages or noise bits a shuffled batch has."""
_CLOSE: Final = 1 - 1e-6
"""How close weights and rates must come to those of a draw."""


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
    found = {part: assumptions_of(part) for part in dict.fromkeys(parts)}
    clauses = [clause for said in found.values() for clause in said]
    if isinstance(event, SelfDrawn):
        drop = _follows(event, [found[part] for part in parts])
        clauses = [clause for clause in clauses if clause not in drop]
    return tuple(dict.fromkeys((*clauses, *event.assumptions)))


def _without_shuffled_sample(part: Event) -> Event:
    """Return the batch of a sample that is shuffled, else the part."""
    # What is `Drawn` has a clause of its own, of how many parties there are.
    if isinstance(part, Sampled) and not isinstance(part, Drawn) and is_shuffled(part):
        return part.part
    return part


def _follows(event: SelfDrawn, said: Sequence[Sequence[str]]) -> set[str]:
    """Return which clauses about sizes follow from the number of parties that join, and need not be said.

    Args:
        event: The mixture.
        said: What each of its parts rests on.

    Returns:
        None, if a batch is larger or rarer than those of parties that join, or of other messages; else all
        but of the batch of one party, which says how much that sends, if not one message.
    """
    sizes = [
        {clause: int(found[1].replace(",", "")) for clause in clauses if (found := _SIZE.match(clause))}
        for clauses in said
    ]
    rates = [sampled_rate(part) for part in event.parts]
    rows = [
        ([*size.values()], rate, weight)
        for size, rate, weight in zip(sizes, rates, event.weights, strict=True)
    ]
    if not event.is_even or not _is_drawn(sorted(rows), event.clients, event.rate, event.share):
        return set()
    least = min(sizes, key=lambda size: [*size.values()])
    kept = least if max(least.values()) > 1 else {}
    return {clause for size in sizes for clause in size} - set(kept)


def _is_drawn(
    rows: Sequence[tuple[list[int], float, float]], clients: int, rate: float, taken: float
) -> bool:
    """Return whether batches are no larger, and no rarer, than if each party joins by itself.

    Args:
        rows: Numbers of a batch, rate of its sample and weight; the smallest, of one party, first.
        clients: How many may join.
        rate: Probability that one does.
        taken: Share of its records that it is then in with.
    """
    least = rows[0][0]
    if not least:
        return False
    first = [one[0] // least[0] for one, _, _ in rows]
    if any(one != [k * number for number in least] for k, (one, _, _) in zip(first, rows, strict=True)):
        return False
    if first != sorted(set(first)) or first[-1] > clients:
        return False
    from scipy import stats  # half a second that most commands can do without

    others = stats.binom(clients - 1, rate)
    low, high = np.array(first) - 2, np.array([*first[1:], clients + 1]) - 2
    # Of two tails the smaller, whose difference keeps its digits.
    chance = np.where(
        low + 2 > clients * rate, others.sf(low) - others.sf(high), others.cdf(high) - others.cdf(low)
    )
    share = np.array([sampled / taken for _, sampled, _ in rows])
    weights = np.array([weight for _, _, weight in rows])
    rare = weights * share < rate * chance * _CLOSE
    small = share < (high + 1) / clients * _CLOSE
    return not (rare | small).any()


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
