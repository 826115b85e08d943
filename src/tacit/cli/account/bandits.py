"""What arithmetic can tell of the facts that a run of a bandit states."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

from tacit.errors import VerificationError, check_positive

if TYPE_CHECKING:
    from tacit.privacy import Event
    from tacit.privacy.statement import Statement

__all__ = ["check_run"]


class _Next(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The batch that is out; no level is no noise, or no answers."""

    batch: int
    final: bool
    rounds: int
    actions: tuple[int, ...]
    counts: tuple[int, ...]
    level: float | None


class _Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the command writes at the top."""

    trust: Literal["central", "shuffle", "local", "none"]
    budget_epsilon: float | None
    budget_delta: float
    noise: Literal["discrete"]
    anonymity: Literal["batch", "action"]
    levels: Literal["numeric", "paper"]
    reward_range: tuple[float, float]
    answered: tuple[int, ...]
    batches_answered: int
    left: tuple[int, ...]
    best: int
    finished: bool
    next: _Next
    out: str | None


def check_run(found: Statement) -> None:
    """Refuse facts that contradict each other, and guarantees that are not those of the trust model."""
    from tacit.bandits.reward_privacy import DEALT, ONCE
    from tacit.privacy import PureDP, guarantee

    try:
        facts = msgspec.convert(found.answer, _Facts)
    except msgspec.ValidationError as error:
        raise VerificationError(f"its facts at the top are not those of a bandit: {error}") from None
    _check_facts(facts)
    first, *alone = found.guarantees
    events = _events(facts, first.event)
    if facts.trust == "none":
        return
    for claim in found.guarantees:
        if ONCE not in claim.assumptions:
            raise VerificationError(f"the statement leaves out what its price rests on: {ONCE}.")
    hidden = facts.anonymity == "batch" and any(not isinstance(event, PureDP) for event in events)
    if facts.trust == "shuffle" and hidden and DEALT not in first.assumptions:
        raise VerificationError(f"the statement leaves out what its price rests on: {DEALT}.")
    # A guarantee says whole millionths, rounded up.
    most = guarantee(PureDP(facts.budget_epsilon or 0.0), 0.0, observer=first.observer).epsilon
    if not (first.epsilon <= most and first.delta == facts.budget_delta):
        raise VerificationError("the budget at the top is below what the guarantee says was spent.")
    highest = max(_level(event) for event in events)
    for claim in alone:
        if not (isinstance(claim.event, PureDP) and claim.event.epsilon >= highest and not claim.delta):
            raise VerificationError("the guarantee of one message is below the level of its batch.")
        if claim.simulated is not first.simulated or claim.neighbours != first.neighbours:
            raise VerificationError("its guarantees are of different runs.")


def _check_facts(facts: _Facts) -> None:
    """Refuse facts that contradict each other."""
    low, high = facts.reward_range
    after, done = facts.next, facts.batches_answered
    if facts.trust == "none":
        budget = facts.budget_epsilon is None and facts.budget_delta == 0
    else:
        check_positive("budget_epsilon at the top", facts.budget_epsilon or 0.0)
        budget = (0 < facts.budget_delta < 1) if facts.trust == "shuffle" else facts.budget_delta == 0
    plain = facts.trust == "shuffle" or (facts.anonymity, facts.levels) == ("batch", "numeric")
    private = facts.trust != "none" and not after.final
    right = (
        budget
        and plain
        and low < high
        and after.batch == done + 1 >= 1
        and facts.answered == tuple(range(done + 1 - len(facts.answered), done + 1))
        and len(facts.answered) <= done
        and facts.finished is after.final
        and _ascending(facts.left)
        and facts.best >= 0
        and _ascending(after.actions)
        and len(after.counts) == len(after.actions)
        and min(after.counts) >= 1
        and after.rounds == sum(after.counts)
        and (after.level is not None) is private
        and set(after.actions) <= set(facts.left)
    )
    if not right:
        raise VerificationError("its facts at the top contradict each other.")


def _ascending(rows: tuple[int, ...]) -> bool:
    """Return whether these are rows of a table, each once."""
    return bool(rows) and rows[0] >= 0 and all(a < b for a, b in pairwise(rows))


def _events(facts: _Facts, event: Event) -> tuple[Event, ...]:
    """Return the events of the batches; refuse any that no batch of this trust model is."""
    from tacit.bandits.reward_privacy import CLIENTS, REWARDS
    from tacit.privacy import DiscreteLaplace, NonPrivate, Parallel, PureDP, Shuffled

    parts = event.parts if isinstance(event, Parallel) else (event,)
    epsilon, after = facts.budget_epsilon or 0.0, facts.next
    of = CLIENTS if facts.trust == "shuffle" else REWARDS
    allowed: dict[str, Event] = {
        "none": NonPrivate(of),
        "local": PureDP(epsilon, of),
        "central": DiscreteLaplace(1 / epsilon, 1, neighbours=of) if epsilon else NonPrivate(of),
    }
    randomizer = "general" if facts.anonymity == "batch" else "2rr"
    nothing = facts.batches_answered == 0 and after.final and facts.trust != "none"
    for part in parts:
        if nothing:
            right = part == PureDP(0.0, of)
        elif facts.trust == "shuffle":
            right = part == PureDP(epsilon, of) or (
                isinstance(part, Shuffled)
                and part == Shuffled(part.local_epsilon, part.parties, randomizer, of)
            )
        else:
            right = part == allowed[facts.trust]
        if not right:
            raise VerificationError(f"its event is not what a bandit under trust {facts.trust!r} releases.")
    if after.level is not None and not any(_is_of(part, after, facts.anonymity) for part in parts):
        raise VerificationError("its event leaves out the batch that is out.")
    return parts


def _is_of(event: Event, batch: _Next, anonymity: str) -> bool:
    """Return whether an event is that of the batch that is out."""
    from tacit.privacy import Shuffled

    if isinstance(event, Shuffled):
        crowd = batch.rounds if anonymity == "batch" else min(batch.counts)
        return event.local_epsilon == batch.level and event.parties == min(crowd, 10**9)
    return batch.level is not None and math.isclose(_level(event), batch.level, rel_tol=1e-12)


def _level(event: Event) -> float:
    """Return the pure level of a message, or of a sum."""
    from tacit.privacy import DiscreteLaplace, PureDP, Shuffled

    match event:
        case Shuffled(local_epsilon=level) | PureDP(epsilon=level):
            return level
        case DiscreteLaplace(scale=scale):
            return 1 / scale
        case _:
            return math.inf
