"""Teachers of a student: the shards they learn from, what they must prove, and randomness of their own.

Source: Papernot et al. (2017), arXiv:1610.05755; Jiang (2025), Section 3.7.2; docs/theory/voting.md,
section 5.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from tacit.errors import ParameterError, RefusalError, check_count
from tacit.numerics import IntArray
from tacit.privacy import Guarantee, Neighbours, PrivacyBudget, Relation, Unit
from tacit.randomness import PublicStream
from tacit.voting.proofs import covers, guarantees_of, guarantees_within
from tacit.voting.report import Shards

__all__ = [
    "check_neighbours",
    "check_teacher",
    "check_unfitted",
    "index_shards",
    "proofs_of",
    "seed_parts",
]

_SEEDS = ("random_state", "seed", "random_seed", "rng")
"""What libraries call the parameter that seeds an estimator."""


def index_shards(records: int, shards: int, seed: int) -> list[IntArray]:
    """Deal records to disjoint shards, by their indices and public randomness alone.

    Args:
        records: n >= shards.
        shards: K >= 1.
        seed: Public, >= 0.

    Returns:
        K sorted arrays of indices whose sizes differ by at most one. No value of any record plays a part:
        that is what makes the shards count as disjoint data (docs/theory/voting.md, section 5).

    Raises:
        ParameterError: Fewer records than shards.

    Example:
        >>> [part.tolist() for part in index_shards(5, 2, seed=0)]
        [[2, 3, 4], [0, 1]]
    """
    check_count("shards", shards)
    check_count("records", records, low=shards, high=10**8)
    order = PublicStream(seed, 0, purpose="knowledge-transfer shards").permutation(records)
    return [np.sort(part) for part in np.array_split(order, shards)]


def check_teacher(teacher: Any, level: PrivacyBudget | None, *, vouched: bool, seeded: bool) -> None:
    """Refuse a teacher that cannot do what is asked of it, before it sees a record.

    Args:
        teacher: An unfitted classifier.
        level: What each clone must keep; None for teachers that are not private.
        vouched: Whether a teacher may do without a proof.
        seeded: Whether each clone gets a seed of its own, for a simulation.

    Raises:
        ParameterError: Its clones would share a seed.
        RefusalError: It promises no proof, or has a budget above the level.
    """
    if level is None:
        return
    budget = getattr(teacher, "budget", None)
    parts = [value for name, value in teacher.get_params().items() if name.endswith("__budget")]
    if budget is None and not vouched and not _declares_a_proof(type(teacher)):
        raise RefusalError(
            f"teacher must prove its privacy by `guarantee_` after fit, and {type(teacher).__name__} has "
            "neither a `budget` nor declares a `guarantee_`. Give a private classifier with its budget, use "
            "design=GNMax(...) for teachers that are not private, or state teachers_are_private=True."
        )
    for one in (budget, *parts):
        if isinstance(one, PrivacyBudget) and (one.epsilon > level.epsilon or one.delta > level.delta):
            raise RefusalError(
                f"teacher has a budget of epsilon {one.epsilon!r} and delta {one.delta!r}, more than the "
                f"epsilon {level.epsilon!r} and delta {level.delta!r} of each teacher."
            )
    known = [name for name in _seeds_of(teacher) if teacher.get_params()[name] is not None]
    if known and not seeded:
        raise ParameterError(
            f"teacher.{known[0]} must be None: private teachers share no randomness. For a simulation, give "
            "random_state to KnowledgeTransfer; every teacher then gets a seed of its own."
        )


def check_unfitted(name: str, estimator: Any) -> None:
    """Refuse an estimator that is fitted or frozen, or has such a part: it would leave with a pickle.

    Raises:
        ParameterError: Naming the estimator.
    """
    if not hasattr(estimator, "get_params") or isinstance(estimator, type):
        raise ParameterError(f"{name} must be an estimator, got {type(estimator).__name__}.")
    parts = [estimator, *(v for v in estimator.get_params().values() if hasattr(v, "get_params"))]
    for part in parts:
        if isinstance(part, type):
            continue
        learned = [a for a in vars(part) if a.endswith("_") and not a.startswith("_")]
        if learned or clone(part) is part:
            raise ParameterError(
                f"{name} must be an unfitted estimator with unfitted parts, and its {type(part).__name__} is "
                "fitted or frozen: it is cloned, and what it was fitted to would leave with a pickle."
            )


def _declares_a_proof(kind: type) -> bool:
    """Whether a class says that its objects have a `guarantee_`, as an attribute or an annotation."""
    return hasattr(kind, "guarantee_") or any(
        "guarantee_" in vars(base).get("__annotations__", {}) for base in kind.__mro__
    )


def proofs_of(teacher: Any, k: int, level: PrivacyBudget, *, vouched: bool) -> list[Guarantee]:
    """Return what a trained teacher proves.

    Args:
        teacher: A fitted classifier.
        k: Its number, for messages.
        level: What it must prove.
        vouched: Whether it may prove nothing.

    Raises:
        RefusalError: It proves less than its level, or nothing, or what does not hold when priced again.
    """
    found = guarantees_of(teacher, k)
    if not found and not vouched:
        raise RefusalError(f"teacher must prove its privacy by `guarantee_`; number {k} has none after fit.")
    # Whoever vouches for a teacher cannot vouch for less than a part of it costs.
    for proof in found or guarantees_within(teacher, k):
        if not covers(level, proof):
            raise RefusalError(
                f"teacher number {k} proves epsilon {proof.epsilon!r} at delta {proof.delta!r}; epsilon "
                f"{level.epsilon!r} at delta {level.delta!r} is needed. No label was published."
            )
    return found


def check_neighbours(found: Neighbours, first: Neighbours, shards: Shards) -> None:
    """Refuse neighbours that the shards, or the other teachers, do not have."""
    if found != first:
        raise RefusalError(f"teachers must all be private under the same neighbours: {first}, and {found}.")
    if shards is not Shards.DISJOINT:
        return
    if found.relation is Relation.ADD_REMOVE:
        raise RefusalError(
            "shards must be 'shared' where neighbours add or remove a record: that moves the index of every "
            "later record, so that it reaches another teacher. Disjoint shards need replacing one record or "
            "blanking it out."
        )
    if found.unit is not Unit.RECORD:
        raise RefusalError(
            f"shards must be 'shared' where teachers protect a {found.unit.value}: shards are cut by record, "
            f"and the records of one {found.unit.value} may reach several teachers. Disjoint shards need "
            "teachers that protect a record."
        )


def _seeds_of(estimator: Any) -> list[str]:
    """Return the names of the parameters that seed an estimator, those of its parts included."""
    return [name for name in estimator.get_params() if name.rpartition("__")[2] in _SEEDS]


def seed_parts(estimator: Any, rng: np.random.Generator, *, only_unset: bool = False) -> None:
    """Give an estimator, and each of its parts, a seed of its own."""
    names = sorted(_seeds_of(estimator))
    seeds: npt.NDArray[np.int64] = rng.integers(2**31, size=len(names))
    for name, seed in zip(names, seeds.tolist(), strict=True):
        if not only_unset or estimator.get_params()[name] is None:
            estimator.set_params(**{name: seed})
