"""What many published bits cost in total, and which of the usual claims about it are sound.

Source: Jiang (2025), Theorems 3.3.2 and 3.3.3, for the usual claims; those that are sound are derived in
docs/theory/voting.md, section 5.
"""

from __future__ import annotations

import math
from enum import StrEnum

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, check_probability, shown
from tacit.privacy import (
    AnyOf,
    ApproximateDP,
    Event,
    Leaf,
    Neighbours,
    Parallel,
    PureDP,
    Repeat,
    epsilon_of,
    general_composition,
)
from tacit.privacy.certified import GRID, INDEPENDENT, reached
from tacit.voting.functions import gamma_subsampling
from tacit.voting.noise_function import NoiseFunction

__all__ = [
    "Accounting",
    "MajorityBound",
    "MajorityReport",
    "Shards",
    "VotedBy",
    "certificate_votes",
    "majority_privacy_report",
]


class VotedBy(StrEnum):
    """Whose randomness the votes rest on: drawn afresh for every query, or models that were trained once."""

    FRESH = "fresh"
    FIXED = "fixed"


class Shards(StrEnum):
    """Whether all teachers may see the same records, or each record reaches one teacher only."""

    SHARED = "shared"
    DISJOINT = "disjoint"


class Accounting(StrEnum):
    """Which claims to list: those that hold, or also the composition that Jiang (2025) reports."""

    SOUND = "sound"
    COMPOSITION = "composition"
    THESIS = "thesis"


class MajorityBound(msgspec.Struct, frozen=True, kw_only=True):
    """One claim about all published bits together.

    Attributes:
        name: What it rests on.
        epsilon: Rounded up; infinity where the delta is not reached.
        delta: That goes with it.
        sound: Whether it is proven for these teachers and shards.
        event: What it prices; None for a claim that is listed for comparison.
    """

    name: str
    epsilon: float
    delta: float
    sound: bool
    event: Event | None = None


class MajorityReport(msgspec.Struct, frozen=True, kw_only=True):
    """All valid bounds, the least of them, and what to note.

    Attributes:
        bounds: Every claim, sound ones first.
        best: The sound one with the least epsilon at the report's delta.
        event: All sound proofs together (`AnyOf`): what a ledger is charged.
        assumptions: What must hold, one clause each, for a `Guarantee`.
        advice: What a user should know before publishing.
    """

    bounds: tuple[MajorityBound, ...]
    best: MajorityBound
    event: Event
    assumptions: tuple[str, ...]
    advice: tuple[str, ...]


def majority_privacy_report(
    noise: NoiseFunction,
    *,
    queries: int,
    delta: float,
    voted_by: VotedBy,
    shards: Shards,
    accounting: Accounting = Accounting.SOUND,
    slack: float = 1e-4,
    neighbours: Neighbours | None = None,
    alone: bool = False,
) -> MajorityReport:
    """List what is proven about `queries` published bits, by the randomness and the shards of the teachers.

    Args:
        noise: The certified design.
        queries: How many bits are published, >= 1.
        delta: Of the whole, in [0, 1).
        voted_by: FRESH: every vote is drawn anew, independently (then answers compose). FIXED: K models were
            trained once and answer all queries (then only what the models reveal is proven).
        shards: DISJOINT only if the shard of a record depends on its index and public randomness alone: the
            split must come before any filter that looks at values. Under adding or removing a record it must
            not depend on the index either.
        accounting: THESIS adds the total that Jiang (2025) reports, marked as not sound where it is not.
        slack: delta' of the general composition of THESIS, in (0, 1].
        neighbours: The relation under which the teachers are private; replacing one record by default.
        alone: FIXED teachers answer this one query and nothing else, ever. Then the answer costs its
            certificate. Prices of such answers about the same models do not add up: hence never by default.

    Returns:
        All bounds, the best, and the event of all sound proofs together.

    Raises:
        ParameterError: A value out of its range; COMPOSITION with FIXED teachers, whose answers are functions
            of the same models and no composition of fresh mechanisms; `alone` with several queries.

    Reference:
        Derived in docs/theory/voting.md, section 5.
    """
    check_count("queries", queries, high=10**7)
    check_probability("delta", delta, high_open=True)
    kinds = (
        ("voted_by", voted_by, VotedBy),
        ("shards", shards, Shards),
        ("accounting", accounting, Accounting),
    )
    for name, value, kind in kinds:
        if not isinstance(value, kind):
            raise ParameterError(f"{name} must be one of {', '.join(kind)}, got {shown(value)}.")
    fixed, disjoint = voted_by is VotedBy.FIXED, shards is Shards.DISJOINT
    if fixed and accounting is Accounting.COMPOSITION:
        raise ParameterError(
            "accounting 'composition' needs fresh teachers: the answers of fixed models are all functions of "
            "the same models, so they do not compose as fresh mechanisms. What is proven is the price of the "
            "K models together, whatever the number of queries."
        )
    if alone and queries > 1:
        raise ParameterError(f"alone is for one query, got {queries} queries.")
    near = neighbours or Neighbours()
    certified = not fixed or alone
    events = _events(noise, int(queries), fixed=fixed, disjoint=disjoint, certified=certified, near=near)
    bounds = [
        MajorityBound(
            name=name, epsilon=epsilon_of(event, delta), delta=float(delta), sound=True, event=event
        )
        for name, event in events.items()
    ]
    best = min(bounds, key=lambda bound: bound.epsilon)
    if accounting is Accounting.THESIS:
        s = noise.setting
        total = general_composition(s.target_epsilon, s.target_delta, int(queries), slack)
        name = "general composition of the target, as Jiang (2025) reports it"
        bounds.append(MajorityBound(name=name, epsilon=total.epsilon, delta=total.delta, sound=not fixed))
    proofs = tuple(events.values())
    return MajorityReport(
        bounds=tuple(bounds),
        best=best,
        event=AnyOf(proofs) if len(proofs) > 1 else proofs[0],
        assumptions=_assumptions(noise, near, fixed=fixed, disjoint=disjoint, alone=alone),
        advice=_advice(noise, fixed=fixed, disjoint=disjoint, queries=int(queries)),
    )


def certificate_votes(noise: NoiseFunction) -> tuple[int, float] | None:
    """Return (c, off): every answer is forced by c votes, but with a chance of `off`; None where unknown.

    A gamma that is a multiple of that of subsampling 2c - 1 votes is a mixture of fair coins and majorities
    of 2c - 1 votes, each forced by c of them (docs/theory/voting.md, section 4). Rounding to multiples of
    2^-52 is what `off` stands for.
    """
    gamma = np.array(noise.gamma)
    for c in range(1, (noise.setting.teachers + 1) // 2 + 1):
        ideal = gamma[-1] * gamma_subsampling(noise.setting.teachers, 2 * c - 1)
        if np.abs(gamma - ideal).max() <= 2 / GRID:
            return c, 4 / GRID
    return None


def _events(
    noise: NoiseFunction, queries: int, *, fixed: bool, disjoint: bool, certified: bool, near: Neighbours
) -> dict[str, Event]:
    """Return every proof that holds, by name."""
    s = noise.setting
    vote: Leaf = PureDP(s.epsilon, near) if s.delta == 0 else ApproximateDP(s.epsilon, s.delta, near)
    votes_of_one: Event = vote if fixed else Repeat(vote, queries)
    found: dict[str, Event] = {}
    if disjoint:
        found["each record reaches one teacher"] = Parallel((votes_of_one,))
    if certified:
        answer = noise.event(near, affected=1 if disjoint else None)
        found["certified answers, composed"] = Repeat(answer, queries)
    if fixed and s.delta == 0 and (forced := certificate_votes(noise)) is not None:
        level = queries * forced[0] * s.epsilon
        # (1 + e^level) times the distance from a law that is exactly (level)-DP.
        off = queries * forced[1] * (1 + math.exp(min(level, 700.0)))
        if off < 1:
            found[f"every answer is forced by {forced[0]} votes"] = ApproximateDP(level, off, near)
    found["post-processing of the teachers" if fixed else "all votes published"] = Repeat(
        vote, s.voters.movable * (1 if fixed else queries)
    )
    return found


def _assumptions(
    noise: NoiseFunction, near: Neighbours, *, fixed: bool, disjoint: bool, alone: bool
) -> tuple[str, ...]:
    """Return what must hold of the teachers; what the proofs rest on besides is said by their events."""
    found = [INDEPENDENT]
    if not fixed:
        found.append("every vote is drawn afresh for its query")
    elif alone:
        found.append("the teachers answer nothing else, before or after")
    most = 1 if disjoint else noise.setting.voters.movable
    if disjoint or most < noise.setting.teachers:
        found.append(reached(most, near))
    return tuple(found)


def _advice(noise: NoiseFunction, *, fixed: bool, disjoint: bool, queries: int) -> tuple[str, ...]:
    """Return what a user should know."""
    found = []
    if disjoint and fixed:
        found.append(
            "all votes on any number of queries cost what one teacher costs: the plain majority may be "
            "published (a design with affected = 1 is one), and noise on it buys nothing."
        )
    elif fixed and queries > 1:
        found.append(
            "the total does not grow with the number of queries, and no sum over queries is proven for this "
            "gamma."
            if certificate_votes(noise) is None or noise.setting.delta > 0
            else "the total does not grow beyond the price of the teachers."
        )
    if disjoint:
        found.append("cut the shards before any filter by value, or one record moves others between shards.")
    return tuple(found)
