"""Second-order methods: one Gram matrix of the features, public or noisy and paid for once, for all steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Self

import numpy as np
from msgspec.structs import force_setattr, replace

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.federation import Ask, Full, Group
from tacit.learning.algorithms.base import Follow, Kinds, MakeStatistic, Problem, other_loss
from tacit.learning.algorithms.gram import GramMethod
from tacit.learning.losses import Logistic, Multinomial, Squared
from tacit.learning.moments import MOST_FEATURES, LevelGradient, LevelGram, RecordGram
from tacit.learning.objective import LinearShape, Objective, RecordGradient
from tacit.numerics import Array, Regularizer
from tacit.privacy import Relation, Unit

__all__ = ["STEADY", "Curvature", "NoisySufficientStatistics", "PreconditionedNoisyGD"]

_STATISTICS: Mapping[str, MakeStatistic] = MappingProxyType(
    {
        "gradient": RecordGradient,
        "gram": RecordGram,
        "level-gradient": LevelGradient,
        "level-gram": LevelGram,
    }
)

STEADY = 25.0
"""Times the noise of gradients, that is added to a public matrix: along what is flat, steps follow noise."""

_WORST = 1e9
"""Largest condition number of a public matrix: beyond it, what its flat directions are is rounding."""

_INNER = 500
"""Most steps that the server takes, on nothing private, to meet a regulariser in a curved metric."""


class Curvature:
    """A symmetric positive matrix M that steps are measured in, per feature, for all outputs alike.

    Args:
        values: Eigenvalues of M, all > 0.
        vectors: Its eigenvectors, as columns.
    """

    def __init__(self, values: Array, vectors: Array) -> None:
        self._values, self._vectors = values, vectors

    @classmethod
    def of(cls, gram: Array, *, noise: float, curvature: float, damping: float) -> Curvature:
        """Return h (c (max(E, 0) + s sqrt(2 d) / 3) + s) for a Gram matrix with eigenvalues E and noise s.

        The noise matrix alone has eigenvalues up to about s sqrt(2 d) (the edge of the semicircle), most of
        them far below; the two constants are fitted (docs/theory/second-moments.md).

        Args:
            gram: Shape (d, d), symmetric.
            noise: s, the deviation of a coordinate of it; 0 without noise.
            curvature: h, the largest second derivative of a record's loss in its prediction.
            damping: c, the share of it that is counted on.
        """
        values, vectors = np.linalg.eigh(gram)
        edge = noise * math.sqrt(2 * len(gram))
        raised = curvature * (damping * (np.maximum(values, 0.0) + edge / 3) + noise)
        return cls(np.maximum(raised, 1e-9 * max(raised.max(), 1e-300)), vectors)

    def solve(self, gradient: Array) -> Array:
        """Return M^-1 gradient, in the shape of the gradient."""
        return self._apply(gradient, 1 / self._values)

    def prox(self, prox: Regularizer, z: Array, *, start: Array) -> Array:
        """Return about argmin_y f1(y) + <y - z, M (y - z)> / 2, by proximal steps; z itself without f1.

        Steps from `start` stay there where it is the minimum, however few they are: so a method that starts
        them where it is, and stops them early, settles at no other point than a minimum of its own problem.
        They are accelerated, and start afresh where they turn back (Beck and Teboulle 2009; O'Donoghue and
        Candes 2015).

        Args:
            prox: Of f1.
            z: Shape (size,).
            start: Shape (size,).
        """
        step = 1 / float(self._values.max())
        if np.array_equal(prox(step, z), z):  # as without f1: z is the minimum of both
            return z
        y = ahead = start
        weight = 1.0
        for _ in range(_INNER):
            before, y = y, prox(step, ahead - step * self._apply(ahead - z, self._values))
            if np.linalg.norm(y - ahead) <= 1e-10 * np.linalg.norm(y):
                break
            grown = (1 + math.sqrt(1 + 4 * weight**2)) / 2
            weight, share = (1.0, 0.0) if (ahead - y) @ (y - before) > 0 else (grown, (weight - 1) / grown)
            ahead = y + share * (y - before)
        return y

    def _apply(self, vector: Array, values: Array) -> Array:
        """Return the matrix with those eigenvalues times a vector of parameters."""
        turned = self._vectors.T @ vector.reshape(len(values), -1)
        return np.asarray(self._vectors @ (values[:, None] * turned)).reshape(vector.shape)


class _SecondOrder(GramMethod, frozen=True, kw_only=True, tag=None):
    """What methods share whose Gram matrix may be a public one.

    Attributes:
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
        preconditioner: A public matrix in the place of the noisy one, d rows of d numbers (an array is taken
            too): about the mean of x x^T over records like the private ones, symmetric and positive definite.
            Then no round and no budget is spent on one. None asks for it.
    """

    preconditioner: tuple[tuple[float, ...], ...] | None = None

    statistics: ClassVar[Mapping[str, MakeStatistic]] = _STATISTICS

    def __post_init__(self) -> None:
        given: Any = self.preconditioner
        if isinstance(given, np.ndarray) and given.ndim == 2:
            force_setattr(self, "preconditioner", tuple(map(tuple, given.tolist())))
        super().__post_init__()
        if self.preconditioner is not None:
            _check_matrix(self.preconditioner)

    def with_gram(self, gram: Array) -> Self:
        """Return the method with a public Gram matrix, if it has none of its own."""
        return self if self.preconditioner is not None else replace(self, preconditioner=gram)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the Gram matrix, if it is not public, then for mean gradients, each with its share.

        Where records are replaced, and take part in every round, all rounds are priced together.
        """
        self._check_features(problem)
        if self.preconditioner is not None:
            return problem.gradients(rounds, self.batch)
        if self._aligned(problem):
            asked = self._asked(problem, rounds, gram="level-gram", gradient="level-gradient", more=1)
            return ((Group(steps=asked, aligned=True), 1),)
        return self._asked(problem, rounds, gram="gram", gradient="gradient")

    def _aligned(self, problem: Problem) -> bool:
        """Whether it pays to make all records of one length, by one feature more."""
        protection, full = problem.protection, isinstance(self.batch, Full)
        near = protection.neighbours
        replaced = near.relation is Relation.REPLACE_ONE and near.unit is Unit.RECORD
        return full and replaced and protection.multiplier > 0

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse what a Gram matrix cannot be asked for, or a public one of other features."""
        if self.preconditioner is None:
            super().check(problem, rounds)
            return
        _ = problem.known_smoothness
        self._check_features(problem)
        if len(self.preconditioner) != problem.features:
            raise ParameterError(
                f"preconditioner must have as many rows as records have features, {problem.features} "
                f"with the constant, got {len(self.preconditioner)}."
            )

    def _curved(self, ask: Ask, problem: Problem, rounds: int) -> tuple[Array, float, int]:
        """Return about the mean of x x^T, the deviation of a coordinate, and the first round of gradients."""
        d = problem.features
        if self.preconditioner is not None:
            # Of all gradients together, in radii: what a coordinate of one release at the whole budget has.
            noise = math.sqrt(problem.errors.get("gradient", 0.0) / (problem.dim * rounds)) / problem.radius
            ridge = STEADY * noise * problem.feature_norm**2
            return np.array(self.preconditioner) + ridge * np.eye(d), 0.0, 0
        if self._aligned(problem):
            gram, noise = self._gram(ask, problem, "level-gram", 1)
        else:
            gram, noise = self._gram(ask, problem, "gram")
        return gram[:d, :d], noise, 1

    def _gradient(self, ask: Ask, problem: Problem, number: int, w: Array) -> Array:
        """Return the noisy mean gradient of a round, without what belongs to a feature that was added."""
        (gradient,) = ask(number, {"w": w}, (problem.radius,))
        return gradient[: problem.dim]


def _check_matrix(rows: tuple[tuple[float, ...], ...]) -> None:
    """Refuse what is no symmetric positive definite matrix, or one that is so by rounding only."""
    sizes = {len(row) for row in rows}
    if sizes != {len(rows)} or len(rows) > MOST_FEATURES:
        raise ParameterError(
            f"preconditioner must have d rows of d numbers, 1 <= d <= {MOST_FEATURES}, got {len(rows)} of "
            f"{' or '.join(map(str, sorted(sizes))) or '0'}."
        )
    matrix = np.array(rows)
    if not np.isfinite(matrix).all():
        raise ParameterError("preconditioner must hold finite numbers.")
    if abs(matrix - matrix.T).max() > abs(matrix).max() / _WORST:
        raise ParameterError("preconditioner must be symmetric.")
    values = np.linalg.eigvalsh(matrix)
    if not 0 < values[-1] <= _WORST * values[0]:
        raise ParameterError(
            f"preconditioner must be positive definite, the largest eigenvalue at most {_WORST:g} times the "
            f"least; got {values[0]:.3g} to {values[-1]:.3g}."
        )


class PreconditionedNoisyGD(_SecondOrder, frozen=True, kw_only=True, tag="preconditioned"):
    """Gradient descent in the metric of a noisy Gram matrix, which the first round asks for, or a public one.

    Directions in which features hardly vary are stretched, so a dozen steps do what hundreds of plain ones
    would, and each may cost more. The matrix is fixed before the first gradient, and gradients are clipped
    before they meet it, in the metric in which the norm of features is known.

    Attributes:
        rounds: R; the first asks for the Gram matrix, if that is not public, the others for gradients.
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
        preconditioner: A public matrix in its place; then all is spent on gradients.
        damping: Share of the largest curvature of the loss that steps count on, > 0: below 1/2 they may
            overshoot, and clipped slopes are less curved.
        average: Share of the last iterates that are averaged, in (0, 1].
    """

    rounds: int | None = 13
    damping: float = 0.6
    average: float = 0.5

    clip_share: ClassVar[float] = 0.6
    paper: ClassVar[str] = "Ganesh, Haghifam, Steinke and Thakurta (2023), with one Gram matrix for all steps"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("damping", self.damping)
        check_probability("average", self.average, low_open=True)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters."""
        gram, noise, first = self._curved(ask, problem, rounds)
        h = problem.known_smoothness / problem.feature_norm**2
        metric = Curvature.of(gram, noise=noise, curvature=h, damping=self.damping)
        if first:
            follow(0, w)
        kept = max(math.ceil((rounds - first) * self.average), 1)
        total = np.zeros_like(w)
        for r in range(first, rounds):
            w = metric.prox(prox, w - metric.solve(self._gradient(ask, problem, r, w)), start=w)
            follow(r, w)
            if r >= rounds - kept:
                total += w
        return np.asarray(total / kept)


class NoisySufficientStatistics(_SecondOrder, frozen=True, kw_only=True, tag="sufficient-statistics"):
    """Least squares from a noisy Gram matrix and one noisy gradient at 0: two rounds, whatever the data.

    For the squared loss this is ridge regression (Vu and Slavkovic 2009; Wang 2018), with the ridge at the
    edge of the spectrum of the noise instead of an estimate of the least eigenvalue; for a classification it
    is the first Newton step from 0, which least squares on the labels is too, up to its length.

    Attributes:
        rounds: R; the first asks for the Gram matrix, if that is not public, the others for the gradient at
            0, which they average.
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
        preconditioner: A public matrix in its place; then all is spent on the gradient.
    """

    rounds: int | None = 2
    share: float = 0.5

    def why_no_regularizer(self, objective: Objective) -> str:
        """Return that one Newton step is no minimum, but of squared losses."""
        if isinstance(objective, LinearShape) and isinstance(objective.loss, Squared):
            return ""
        return "it takes one Newton step, which reaches the minimum of squared losses alone"

    clip_share: ClassVar[float] = 0.7  # the longest slope of any of the losses at 0, over the longest of all
    paper: ClassVar[str] = "Wang (2018)"

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse losses of which one step from 0 says little."""
        _ = problem.known_smoothness
        if not isinstance(problem.loss, Squared | Logistic | Multinomial):
            raise other_loss(
                problem,
                needs="the algorithm 'sufficient-statistics' needs the squared loss, or the logistic",
                why="of others, one step from 0 is far from a solution",
            )
        super().check(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the solution."""
        gram, noise, first = self._curved(ask, problem, rounds)
        if first:
            follow(0, w)
        total = np.zeros_like(w)
        for r in range(first, rounds):
            total += self._gradient(ask, problem, r, w)
            follow(r, w)
        values, vectors = np.linalg.eigh(gram)
        edge = noise * math.sqrt(len(gram))
        raised = np.maximum(values + math.sqrt(2) * edge, max(0.05 * edge, 1e-12 * abs(values).max()))
        metric = Curvature(raised * problem.known_smoothness / problem.feature_norm**2, vectors)
        z = w - metric.solve(total / (rounds - first))
        return metric.prox(prox, z, start=z)
