"""The guarantee of many published majorities, as a sentence that can be checked again.

Source: docs/theory/voting.md, section 5.
"""

from __future__ import annotations

import math

from tacit.errors import ParameterError
from tacit.privacy import Compose, Guarantee, Neighbours, guarantee
from tacit.privacy.certified import private_votes
from tacit.voting.noise_function import NoiseFunction
from tacit.voting.report import Shards, VotedBy, majority_privacy_report

__all__ = ["below_one", "majority_guarantee", "observer_of_bits", "sum_of_deltas"]


def observer_of_bits(queries: int) -> str:
    """Return who looks at published bits, in words."""
    return "an observer of the published bit" if queries == 1 else f"an observer of all {queries} bits"


def sum_of_deltas(
    noise: NoiseFunction, *, queries: int, voted_by: VotedBy, shards: Shards, alone: bool = False
) -> float:
    """Return the sum of the deltas of what `queries` bits reveal: at it, the epsilons add at worst.

    Args:
        noise: The certified design.
        queries: How many bits are published.
        voted_by: FIXED counts the models, FRESH the answers.
        shards: DISJOINT counts one teacher.
        alone: The teachers answer this one query and nothing else: the answer counts then.

    Raises:
        ParameterError: The sum is 1 or more, which bounds nothing.
    """
    s = noise.setting
    if voted_by is VotedBy.FIXED and not alone:
        found = s.delta * (1 if shards is Shards.DISJOINT else s.voters.movable)
    else:
        found = queries * (s.delta if shards is Shards.DISJOINT else s.target_delta)
    return below_one(found)


def majority_guarantee(
    noise: NoiseFunction,
    *,
    queries: int,
    shards: Shards,
    voted_by: VotedBy | None = None,
    delta: float | None = None,
    neighbours: Neighbours | None = None,
    simulated: bool = False,
    alone: bool = False,
) -> tuple[Guarantee, tuple[str, ...]]:
    """Return the guarantee of `queries` published bits, for those who see the bits alone.

    Args:
        noise: The certified design.
        queries: How many bits are published, >= 1. The guarantee also holds for fewer, however the queries
            are chosen.
        shards: Whether each record reaches one teacher.
        voted_by: FRESH or FIXED; None where nobody knows, for a price that holds for both.
        delta: Of all bits together, in [0, 1); the sum of the deltas of the parts if not given.
        neighbours: The relation under which the teachers are private; replacing one record by default.
        simulated: Whether the coins come from a seed.
        alone: The teachers answer this one query and nothing else, ever, so that also fixed ones cost no more
            than the certificate; the guarantee then says so. Must not be added up with other answers.

    Returns:
        The guarantee, and what to note besides.

    Raises:
        ParameterError: A value out of its range, a delta below what the parts need.

    Example:
        >>> from tacit.voting import allowance, design
        >>> noise = design(allowance(11, 0.1, 3), "constant")
        >>> majority_guarantee(noise, queries=20, shards=Shards.SHARED, voted_by=VotedBy.FIXED)[0].epsilon
        1.1

    Reference:
        Derived in docs/theory/voting.md, section 5.
    """
    notes: tuple[str, ...] = ()
    kinds = list(VotedBy) if voted_by is None else [voted_by]
    if voted_by is None and alone:
        # One answer of fixed models is one answer of fresh ones: the certificate holds for both.
        kinds = [VotedBy.FIXED]
    elif voted_by is None:
        notes = (
            "nobody said whether the teachers are fresh or fixed: the price is that of both together, so it "
            "holds for either, and knowing it lowers the price.",
        )
    deltas = [
        sum_of_deltas(noise, queries=queries, voted_by=kind, shards=shards, alone=alone)
        if delta is None
        else delta
        for kind in kinds
    ]
    reports = [
        majority_privacy_report(
            noise,
            queries=queries,
            delta=part,
            voted_by=kind,
            shards=shards,
            neighbours=neighbours,
            alone=alone and kind is VotedBy.FIXED,
        )
        for kind, part in zip(kinds, deltas, strict=True)
    ]
    # A pair of releases reveals no less than either of them, at every delta. Where some teachers are fixed
    # and others fresh it holds too: given the fixed models, each answer is within the certificate.
    event = reports[0].event if len(reports) == 1 else Compose(tuple(r.event for r in reports))
    shared = [clause for clause in reports[0].assumptions if all(clause in r.assumptions for r in reports)]
    found = guarantee(
        event,
        below_one(sum(deltas)) if delta is None else delta,
        observer=observer_of_bits(queries),
        assumptions=(*_private_by_themselves(noise, voted_by, alone=alone), *shared),
        simulated=simulated,
    )
    if math.isinf(found.epsilon):
        raise ParameterError(
            f"delta must be larger, got {found.delta!r}: at it nothing is proven about {queries} bits of "
            f"{noise.setting.teachers} teachers with delta {noise.setting.delta!r} each."
        )
    applied = f"the price is by: {'; and '.join(r.best.name for r in reports)}."
    return found, (*notes, applied, *dict.fromkeys(note for r in reports for note in r.advice))


def _private_by_themselves(noise: NoiseFunction, voted_by: VotedBy | None, *, alone: bool) -> tuple[str, ...]:
    """Return the clauses that votes and teachers are as private as the setting says.

    What is said of a vote is said in the words of `Certified`, so that it stands there once.
    """
    epsilon, delta = noise.setting.epsilon, noise.setting.delta
    if voted_by is VotedBy.FIXED and not alone:
        return (private_votes(epsilon, delta, "every teacher"),)
    votes = private_votes(epsilon, delta)
    if voted_by is None and not alone:
        return votes, "all answers of one teacher to several queries are together as private as one vote"
    return (votes,)


def below_one(delta: float) -> float:
    """Refuse a default that says nothing."""
    if delta >= 1:
        raise ParameterError(
            f"delta must be given: the deltas of all parts add up to {delta:.3g}, which is no longer below 1."
        )
    return delta
