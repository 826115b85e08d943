"""How votes of trained teachers become published labels, and what that costs.

Source: Jiang (2025), Section 3.7.2; docs/theory/voting.md, section 5.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from tacit.errors import DataError, ParameterError, PrivacyWarning
from tacit.numerics import Array, IntArray
from tacit.privacy import (
    ApproximateDP,
    Event,
    Guarantee,
    Leaf,
    Neighbours,
    Parallel,
    PrivacyBudget,
    PureDP,
    Repeat,
    guarantee,
)
from tacit.privacy.certified import INDEPENDENT, private_votes, reached
from tacit.voting.gnmax import GNMax
from tacit.voting.guarantee import below_one, majority_guarantee
from tacit.voting.noise_function import NoiseFunction
from tacit.voting.report import Shards, VotedBy
from tacit.voting.staircase import Staircase

__all__ = ["BY_ITSELF", "VoteRule", "check_open", "public_labels", "said_codes"]

BY_ITSELF = "private by itself"
"""How an assumption says that teachers are private, where they do not prove it."""


@dataclass(frozen=True)
class VoteRule:
    """How votes become labels, and what that costs.

    Attributes:
        noise: None publishes the winner as it is, ties broken at random.
        level: What each teacher must keep; None for teachers that are not private.
        teachers: K.
        classes: C.
        queries: Labels that are published.
        shards: Whether each record reaches one teacher.
    """

    noise: NoiseFunction | GNMax | Staircase | None
    level: PrivacyBudget | None
    teachers: int
    classes: int
    queries: int
    shards: Shards

    def price(self, *, delta: float | None, neighbours: Neighbours) -> tuple[Guarantee, tuple[str, ...]]:
        """Return the guarantee of all labels, and what to note besides."""
        observer = f"an observer of the {self.queries} labels"
        if isinstance(self.noise, NoiseFunction):
            found, notes = majority_guarantee(
                self.noise,
                queries=self.queries,
                shards=self.shards,
                voted_by=VotedBy.FIXED,
                delta=delta,
                neighbours=neighbours,
            )
            return msgspec.structs.replace(found, observer=observer), notes
        cut = (reached(1, neighbours),)
        if isinstance(self.noise, GNMax | Staircase):
            event: Event = Repeat(self.noise.event(neighbours), self.queries)
            if delta is None:
                delta = below_one(self.queries * getattr(self.noise, "delta", 0.0))
            return guarantee(event, delta, observer=observer, assumptions=(INDEPENDENT, *cut)), ()
        assert self.level is not None  # noqa: S101 - narrows the type: only private teachers do without noise
        epsilon, lost = self.level.epsilon, self.level.delta
        vote: Leaf = ApproximateDP(epsilon, lost, neighbours) if lost else PureDP(epsilon, neighbours)
        disjoint = self.shards is Shards.DISJOINT
        event = Parallel((vote,)) if disjoint else Repeat(vote, self.teachers)
        clause = private_votes(epsilon, lost, "every teacher")
        if delta is None:
            delta = below_one(lost if disjoint else lost * self.teachers)
        assumed = (clause, INDEPENDENT, *(cut if disjoint else ()))
        return guarantee(event, delta, observer=observer, assumptions=assumed), ()

    def release(self, votes: IntArray, rng: np.random.Generator) -> IntArray:
        """Publish one class for each row of votes."""
        if self.noise is not None:
            return self.noise.release(votes, rng)
        counts = (votes[:, :, None] == np.arange(self.classes)).sum(axis=1)
        return np.asarray((counts + rng.random(counts.shape) / 2).argmax(axis=1), dtype=np.int64)


def check_open(design: GNMax | Staircase, *, classes: int, teachers: int, shards: Shards) -> None:
    """Refuse a design for teachers that are not private which does not fit them."""
    kind = type(design).__name__
    if design.classes != classes:
        raise ParameterError(
            f"design must be for {classes} classes, got a {kind} for {design.classes}; GNMax publishes the "
            "winner of several."
        )
    if isinstance(design, Staircase) and design.teachers != teachers:
        raise ParameterError(f"design must be for {teachers} teachers, got one for {design.teachers}.")
    if shards is not Shards.DISJOINT:
        raise ParameterError(
            f"shards must be 'disjoint' for {kind}: its teachers are not private, so one record may move one "
            "vote only."
        )


def public_labels(classes: Any, y: Array) -> tuple[Array, tuple[str, ...]]:
    """Return the public labels, sorted, and what the guarantee must say about them."""
    clauses: tuple[str, ...] = ()
    if classes is None:
        clause = "the classes were read off the data without privacy"
        warnings.warn(f"{clause}; pass `classes` from public knowledge.", PrivacyWarning, stacklevel=4)
        found, clauses = np.unique(y), (f"it does not matter that {clause}",)
    else:
        found = np.unique(np.asarray(classes))
        if not np.isin(y, found).all():
            raise DataError("y holds labels outside `classes`.")
    if len(found) < 2:
        raise DataError("there must be at least two classes, got one.")
    return found, clauses


def said_codes(student: Any, rows: Array, classes: int) -> IntArray:
    """Return what the student says, or refuse a student that says something else than 0, ..., C - 1."""
    said = np.asarray(student.predict(rows))
    if said.shape != (len(rows),) or not np.isin(said, np.arange(classes)).all():
        raise ParameterError(
            f"student must predict one of the labels 0 to {classes - 1} for each row, and does not; with "
            "semi_supervised it must take -1 for a missing label. The published labels are in labels_."
        )
    return said.astype(np.int64)
