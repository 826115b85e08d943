"""What fitted teachers prove about themselves, and what a statement about their votes makes of it.

A guarantee that a teacher carries is more than a word about it: a level below it is refused, and what it
rests on goes into the statement. A guarantee of a *part* of a teacher (the last step of a pipeline, the
winner of a search) proves nothing about the whole, whose other parts may have seen the data too; but less
than the part costs is not true either.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from tacit.errors import ParameterError, RefusalError, VerificationError, check_choice, shown
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, epsilon_of, verify
from tacit.privacy.budget import DECIMAL
from tacit.voting.vote_rule import BY_ITSELF

__all__ = [
    "check_stated",
    "covers",
    "guarantees_of",
    "guarantees_within",
    "proven_level",
    "stated_neighbours",
    "with_proofs",
]

_MOST_PARTS = 10_000
_WORKS = ("predict", "transform", "fit")


def guarantees_of(teacher: Any, k: int) -> list[Guarantee]:
    """Return the guarantees that a fitted teacher carries, each priced again.

    Args:
        teacher: A fitted classifier.
        k: Its number, for messages.

    Raises:
        RefusalError: What it carries is not a guarantee, or does not hold when priced again.
    """
    weakest = getattr(teacher, "guarantee_", None)
    found = [*getattr(teacher, "guarantees_", ()), *([] if weakest is None else [weakest])]
    for proof in found:
        if not isinstance(proof, Guarantee):
            raise RefusalError(f"teacher.guarantee_ must be a Guarantee; that of number {k} is not one.")
        try:
            verify(proof)
        except VerificationError as error:
            raise RefusalError(f"teacher.guarantee_ of number {k} does not hold: {error}") from error
    return list(dict.fromkeys(found))


def guarantees_within(teacher: Any, k: int) -> list[Guarantee]:
    """Return the guarantees that fitted parts of a teacher carry, where the teacher itself carries none.

    Raises:
        RefusalError: As `guarantees_of`; or there are too many parts to look at.
    """
    found: dict[Guarantee, None] = {}
    seen: set[int] = set()
    left = [teacher]
    while left:
        part = left.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        if len(seen) > _MOST_PARTS:
            raise RefusalError(f"estimators must have at most {_MOST_PARTS} parts; number {k} has more.")
        carried = guarantees_of(part, k)
        found.update(dict.fromkeys(carried))
        if not carried:
            left += _parts(part)
    return list(found)


def _parts(thing: Any) -> Iterator[Any]:
    """Yield what an estimator, or a collection of some, is made of: estimators and collections."""
    if isinstance(thing, Mapping):
        inner: Any = thing.values()
    elif isinstance(thing, np.ndarray):
        inner = thing.ravel().tolist() if thing.dtype == object else ()
    elif isinstance(thing, list | tuple | set | frozenset):
        inner = thing
    else:
        inner = getattr(thing, "__dict__", {}).values()
    for value in inner:
        collects = isinstance(value, Mapping | list | tuple | set | frozenset | np.ndarray)
        if collects or (not isinstance(value, type) and any(hasattr(value, name) for name in _WORKS)):
            yield value


def covers(level: PrivacyBudget, proof: Guarantee) -> bool:
    """Return whether a proof is at least as good as a level."""
    if proof.delta > level.delta:
        return False
    # A printed epsilon is rounded up to some decimals; the price of its event is not. Nor is a level: votes
    # multiply it, and its rounding would be multiplied too.
    return proof.epsilon <= level.epsilon or (epsilon_of(proof.event, level.delta) <= level.epsilon * DECIMAL)


def proven_level(proofs: Sequence[Sequence[Guarantee]]) -> PrivacyBudget | None:
    """Return the level that all teachers prove, None where one of them carries no guarantee.

    Raises:
        RefusalError: A guarantee claims nothing.
    """
    if not all(proofs):
        return None
    every = [(k, proof) for k, own in enumerate(proofs) for proof in own]
    for k, proof in every:
        _check_claim(proof, k)
    return PrivacyBudget(max(proof.epsilon for _, proof in every), max(proof.delta for _, proof in every))


def _check_claim(proof: Guarantee, k: int) -> None:
    """Refuse what is not a guarantee."""
    if math.isinf(proof.epsilon):
        raise RefusalError(f"estimators must be private: the guarantee of number {k} claims nothing.")


def stated_neighbours(neighbours: object) -> Neighbours | None:
    """Return the neighbours that an argument states, by name (of a record) or in full; None for none."""
    if isinstance(neighbours, str):
        check_choice("neighbours", neighbours, Relation)
        return Neighbours(Relation(neighbours))
    if neighbours is not None and not isinstance(neighbours, Neighbours):
        raise ParameterError(f"neighbours must be a name, Neighbours or None, got {shown(neighbours)}.")
    return neighbours


def check_stated(
    proofs: Sequence[Sequence[Guarantee]], level: PrivacyBudget, neighbours: Neighbours | None
) -> Neighbours:
    """Refuse a stated level below what teachers, or parts of them, prove; return whom they all protect.

    Args:
        proofs: Of each teacher, its own guarantees or those of its parts.
        level: What is stated of each teacher.
        neighbours: What is stated of the relation; None leaves it to the proofs.

    Raises:
        ParameterError: A level below a proof, naming both; or neighbours that a proof does not have.
        RefusalError: A guarantee claims nothing.
    """
    every = [(k, proof) for k, own in enumerate(proofs) for proof in own]
    near = neighbours or (every[0][1].neighbours if every else Neighbours())
    for k, proof in every:
        _check_claim(proof, k)
        if proof.neighbours != near:
            raise ParameterError(
                f"neighbours must be those of the teachers' guarantees: number {k} is private under "
                f"{proof.neighbours}, others or `neighbours` say {near}."
            )
        if not covers(level, proof):
            raise ParameterError(
                f"epsilon {level.epsilon!r} at delta {level.delta!r} is stated of each teacher, and the "
                f"guarantee of number {k} says epsilon {proof.epsilon!r} at delta {proof.delta!r}; state no "
                "less than the guarantees say, or nothing."
            )
    return near


def with_proofs(
    price: Guarantee,
    proofs: Sequence[Guarantee],
    *,
    proven: bool,
    clauses: tuple[str, ...] = (),
    simulated: bool,
) -> Guarantee:
    """Return a guarantee about votes with all that it rests on.

    Args:
        price: Of the published votes.
        proofs: What the teachers carry; what they assume is assumed, and what was only simulated is said.
        proven: Whether every teacher proves its level, which then needs not be assumed.
        clauses: More assumptions.
        simulated: Whether the votes were published with seeded noise.
    """
    own = tuple(clause for clause in price.assumptions if not (proven and BY_ITSELF in clause))
    said = tuple(clause for proof in proofs for clause in proof.assumptions)
    return msgspec.structs.replace(
        price,
        assumptions=tuple(dict.fromkeys((*own, *said, *clauses))),
        simulated=simulated or any(proof.simulated for proof in proofs),
    )
