"""DP-FERMI: the same training with noise, where the groups, or whole records, are private.

Three statistics leave the parties, each a mean through whatever the trust model offers: once the counts of
groups, and in every round the mass of predictions by group, which moves the dual variables, and a gradient.
Both means of a round are one release on all records. Everything else is computed from what was released.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive, check_probability
from tacit.fairness.followed_weight import FollowedWeight
from tacit.fairness.iterates import KeptPoints
from tacit.fairness.penalty import ErmiPenalty, Membership
from tacit.fairness.scores import LinearScores, probabilities, pull_back
from tacit.fairness.units import (
    GroupCounts,
    GroupDecisions,
    GroupGradient,
    GroupMass,
    PenalisedGradient,
    centred_costs,
    mean_costs,
)
from tacit.federation import Ask, Kinds, Statistic, Step
from tacit.learning.algorithms import Problem
from tacit.numerics import Array, IntArray
from tacit.privacy import Part

__all__ = ["FairPoint", "PrivateFermi", "PublicRecords", "Shares", "by_condition"]

_LONGEST = 2.0**20
"""Radius that no round of public lengths exceeds; noise goes with the radius that a round names."""

_COVERED = 0.9
"""Share of records whose rows are not shortened (docs/theory/private-fairness.md)."""

_RECORD_CLIP = 1.0


@dataclass(frozen=True)
class Shares:
    """How a run divides what it may reveal, as parts of 1 / multiplier^2 that add up to 1.

    Attributes:
        counts: Of groups, once.
        mass: Of predictions by group, all rounds together.
        gradient: All rounds together.
    """

    counts: float = 0.04
    mass: float = 0.32
    gradient: float = 0.64

    def __post_init__(self) -> None:
        for name in ("counts", "mass", "gradient"):
            check_probability(name, getattr(self, name), low_open=True, high_open=True)
        if abs(self.counts + self.mass + self.gradient - 1) > 1e-9:
            raise ParameterError(
                f"shares must add up to 1, got {self.counts} + {self.mass} + {self.gradient}."
            )


@dataclass(frozen=True)
class PublicRecords:
    """What everybody may know where only groups are private: features and labels of all records, in order.

    Attributes:
        X: Shape (n, d), the constant included.
        y: Place of each record's class, shape (n,).
        conditions: Place of each record's condition, shape (n,).
    """

    X: Array
    y: IntArray
    conditions: IntArray


@dataclass(frozen=True)
class FairPoint:
    """What a run comes to.

    Attributes:
        theta: Parameters, shape (size,).
        weight: Of the penalty in the last round; where a violation is aimed at, the run has found it.
    """

    theta: Array
    weight: float


@dataclass(frozen=True, kw_only=True)
class PrivateFermi:
    """One run of DP-FERMI; public, and the same under every trust model.

    Attributes:
        model: Linear scores of m classes.
        conditions: Number of conditions of the notion.
        groups: Number of declared groups, >= 2; which of them occur is private.
        weight: Of the penalty, >= 0.
        part: `SENSITIVE`, where only groups are private, or `ALL`.
        rounds: T >= 1, each on all records.
        step: Of theta.
        dual_step: Of W, on the gradient of the penalty without its weight: at most 1/2.
        tail: Share of the last rounds whose points are averaged, in [0, 1): noise averages out, at no price.
            0 returns the last point.
        only: The round whose point is returned instead, in 1..rounds. Drawn by `random_round` it is the
            point that the theorem is about. None returns the mean.
        clip: Bound on the norm of a record's row of a gradient. Where only groups are private the row is what
            the group says of it; None asks in every round for the length that few records could exceed,
            which is public there. Where records are private, None is 1.
        least_share: Share below which no group counts within its condition, in (0, 1 / groups).
        shares: Of the budget.
        target: Largest violation that hard predictions should have, in [0, 1]. The weight then rises in every
            round by what the noisy violation of the last ones is above it, from `weight` on, and half of the
            share of masses goes to counts of decisions by group. None keeps the weight.
        l2: Half of it times the squared norm of the parameters is added, >= 0.

    Reference:
        Lowy (2023), Algorithm 10, corrected: the printed noise covers one of two releases of a round, has no
        weight in it, does not cover P_S, and counts on a sample that features show
        (docs/theory/private-fairness.md).
    """

    model: LinearScores
    conditions: int
    groups: int
    weight: float
    part: Part = Part.SENSITIVE
    rounds: int = 100
    step: float = 2.0
    dual_step: float = 0.25
    tail: float = 0.5
    only: int | None = None
    clip: float | None = None
    least_share: float = 0.02
    shares: Shares = Shares()
    l2: float = 0.0
    target: float | None = None

    def __post_init__(self) -> None:
        check_count("conditions", self.conditions)
        check_count("groups", self.groups, low=2)
        check_count("rounds", self.rounds)
        check_non_negative("weight", self.weight)
        check_non_negative("l2", self.l2)
        for name in ("step", "dual_step"):
            check_positive(name, getattr(self, name))
        check_probability("tail", self.tail, high_open=True)
        if self.only is not None:
            check_count("only", self.only, high=self.rounds)
        if self.clip is not None and check_positive("clip", self.clip) > _LONGEST:
            raise ParameterError(f"clip must be at most {_LONGEST:g}, got {self.clip!r}.")
        if self.target is not None:
            check_probability("target", self.target)
        if self.part not in (Part.SENSITIVE, Part.ALL):
            raise ParameterError(f"part must be Part.SENSITIVE or Part.ALL, got {self.part!r}.")
        if not isinstance(self.shares, Shares):
            raise ParameterError(f"shares must be `Shares`, got {self.shares!r}.")
        check_probability("least_share", self.least_share, low_open=True)
        if not self.least_share < 1 / self.groups:
            raise ParameterError(
                f"least_share must be in (0, 1 / groups), got {self.least_share!r} for {self.groups} groups: "
                "lower it, or declare fewer groups."
            )

    @property
    def most(self) -> float:
        """Largest radius that a round names for the gradient."""
        if self.clip is not None:
            return self.clip
        return _LONGEST if self.part is Part.SENSITIVE else _RECORD_CLIP

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the dual variables: conditions, groups, classes."""
        return self.conditions, self.groups, self.model.classes

    @property
    def statistics(self) -> Mapping[str, Statistic]:
        """What silos answer, by name."""
        return {
            "group-counts": GroupCounts(self.shape[:2]),
            "group-mass": GroupMass(self.model, self.shape),
            "group-decisions": GroupDecisions(self.model, self.shape),
            "group-gradient": GroupGradient(self.model, self.shape),
            "penalised-gradient": PenalisedGradient(self.model, self.shape),
        }

    def steps(self, problem: Problem) -> Kinds:
        """Return all that is asked: the counts once, then both means of each round on one batch of all.

        Args:
            problem: Of which the protection and the sizes are used.
        """
        z, k, m = self.shape
        each = 1 / self.rounds
        gradient = "group-gradient" if self.part is Part.SENSITIVE else "penalised-gradient"
        counts = problem.measure(
            "group-counts", dim=z * k, max_radius=1.0, share=self.shares.counts, acute=True
        )
        tables = ["group-mass"] if self.target is None else ["group-mass", "group-decisions"]
        share = self.shares.mass * each / len(tables)
        masses = [
            problem.measure(name, dim=z * k * m, max_radius=1.0, share=share, acute=True) for name in tables
        ]
        slope = problem.measure(
            gradient, dim=self.model.size, max_radius=self.most, share=self.shares.gradient * each
        )
        return (Step(measures=(counts,)), 1), (Step(measures=(masses[0], slope, *masses[1:])), self.rounds)

    def run(
        self,
        ask: Ask,
        start: Array,
        *,
        n: int,
        public: PublicRecords | None = None,
        follow: Callable[[int, Array], None] | None = None,
    ) -> FairPoint:
        """Return the parameters after all rounds, and the weight that the penalty has come to.

        Args:
            ask: Answers what `steps` says.
            start: Public parameters, shape (size,); where only groups are private, such as those of training
                without them.
            n: Number of records, public.
            public: Features and labels, where only groups are private.
            follow: Called after each round with its number and the point: in simulation only.

        Raises:
            ParameterError: No public records where they are needed, or some where records are private.
        """
        if (public is None) is (self.part is Part.SENSITIVE):
            raise ParameterError("public must be given where only groups are private, and only there.")
        (counts,) = ask(0, {}, (1.0,))
        penalty, factors, seen = self.released(np.asarray(counts).reshape(self.shape[:2]), n, public)
        theta, W, kept = (
            start.copy(),
            penalty.start(),
            KeptPoints(self.rounds, tail=self.tail, only=self.only),
        )
        aim, weight = FollowedWeight(self.weight, self.target), float(self.weight)
        more = () if self.target is None else (1.0,)
        for t in range(1, self.rounds + 1):
            weight = aim.now
            at = {
                "theta": theta,
                "dual": W.ravel(),
                "frequencies": penalty.frequencies.ravel(),
                "factors": factors / seen,
            }
            if public is None:
                found = ask(t, {**at, "weight": np.array([weight])}, (1.0, self.most, *more))
                down, shown = np.asarray(found[1]) + self.l2 * theta, None
            else:
                F = probabilities(self.model.scores(theta, public.X))
                found = ask(t, at, (1.0, self.radius(public, penalty, W, F, factors / seen), *more))
                known = self._known(theta, public, penalty, W, F, factors, weight)
                down = known + weight * np.asarray(found[1])
                shown = by_condition(F, public.conditions, self.conditions) * factors[:, None] / n
            mass, *decided = (
                np.asarray(table).reshape(self.shape) * (factors / seen)[:, None, None]
                for table in (found[0], *found[2:])
            )
            theta = theta - self.step * down
            W = penalty.project(W + self.dual_step * _ascent(penalty, W, mass, shown))
            for table in decided:
                aim.follow(table, penalty.weights[:, None] * penalty.frequencies)
            kept.add(t, theta)
            if follow is not None:
                follow(t, theta)
        return FairPoint(kept.points[0], weight)

    def released(
        self, counts: Array, n: int, public: PublicRecords | None
    ) -> tuple[ErmiPenalty, Array, Array]:
        """Return the penalty of released counts, what a record's term counts, and the share of known groups.

        Args:
            counts: Noisy shares of all records, shape (z, k).
            n: Number of records.
            public: What says how many records a condition has, where that is public.

        Returns:
            The penalty, and two numbers for each condition, shape (z,).
        """
        if public is None:
            totals = np.maximum(counts.sum(axis=1) * n, 1.0)
        else:
            codes = public.conditions
            totals = np.maximum(np.bincount(codes[codes >= 0], minlength=self.conditions), 1.0)
        floored = np.maximum(counts * n, self.least_share * totals[:, None])
        known = floored.sum(axis=1)
        weights = totals / totals.sum()
        penalty = ErmiPenalty(floored / known[:, None], weights, self.model.classes)
        return penalty, weights * n / totals, np.minimum(known / totals, 1.0)

    def radius(
        self, public: PublicRecords, penalty: ErmiPenalty, W: Array, F: Array, factors: Array
    ) -> float:
        """Return how long rows may be: at most as the longest could be of any record in any group.

        Args:
            public: Features and labels.
            penalty: Of released frequencies.
            W: Shape (z, k, m).
            F: Shape (n, m).
            factors: What a record's term counts by condition, shape (z,).
        """
        own = np.where(public.conditions >= 0, factors[public.conditions], 0.0)
        norms = np.sqrt(np.einsum("nd,nd->n", public.X, public.X))
        longest = np.zeros(len(F))
        for r in range(self.groups):
            of = Membership(public.conditions, np.full(len(F), r), own)
            slopes = pull_back(F, centred_costs(penalty, W, of))
            sizes = np.abs(slopes[:, 1]) if self.model.classes == 2 else np.linalg.norm(slopes, axis=1)
            longest = np.maximum(longest, sizes * norms)
        within = (
            float(np.quantile(longest[own > 0], _COVERED)) if self.clip is None and own.any() else self.most
        )
        return min(self.most, within, float(longest.max()) * (1 + 1e-9))

    def _known(
        self,
        theta: Array,
        public: PublicRecords,
        penalty: ErmiPenalty,
        W: Array,
        F: Array,
        factors: Array,
        weight: float,
    ) -> Array:
        """Return what features and labels say of the gradient."""
        own = np.where(public.conditions >= 0, factors[public.conditions], 0.0)
        slopes = F + weight * pull_back(F, mean_costs(penalty, W, public.conditions, own))
        slopes[np.arange(len(F)), public.y] -= 1.0
        return np.asarray(self.model.pull(theta, public.X, slopes) / len(F) + self.l2 * theta)


def by_condition(F: Array, conditions: IntArray, size: int) -> Array:
    """Return the sum of probabilities within each condition, shape (z, m)."""
    looked = conditions >= 0
    columns = [np.bincount(conditions[looked], weights=column[looked], minlength=size) for column in F.T]
    return np.stack(columns, axis=1)


def _ascent(penalty: ErmiPenalty, W: Array, mass: Array, shown: Array | None) -> Array:
    """Return the gradient of the penalty in W from a noisy mass, and from exact totals where they are known.

    Args:
        penalty: Of released frequencies.
        W: Shape (z, k, m).
        mass: By condition, group and class, shape (z, k, m).
        shown: By condition and class, shape (z, m).
    """
    totals = mass.sum(axis=1) if shown is None else shown
    # Noise may leave a total below zero, where the dual is not concave.
    totals = np.maximum(totals, 0.0)
    spread = mass / np.sqrt(penalty.frequencies)[:, :, None]
    return np.asarray(2 * (spread - W * totals[:, None, :]))
