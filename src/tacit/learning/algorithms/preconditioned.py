"""Second-order methods: one noisy Gram matrix of the features is paid for once, and serves every step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import ClassVar

import numpy as np

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.federation import Ask, Batch, Full, Step
from tacit.learning.algorithms.base import Follow, Kinds, MakeStatistic, Method, Problem
from tacit.learning.moments import MOST_FEATURES, RecordGram, gram_matrix, gram_size
from tacit.learning.objective import RecordGradient
from tacit.means import AdditiveMean, Estimator
from tacit.numerics import Array, Regularizer

__all__ = ["Curvature", "NoisySufficientStatistics", "PreconditionedNoisyGD"]

_STATISTICS: Mapping[str, MakeStatistic] = MappingProxyType({"gradient": RecordGradient, "gram": RecordGram})

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
        """Return h (c (max(E, 0) + s sqrt(2 d) / 3) + s) for a noisy mean Gram matrix with eigenvalues E.

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

    def prox(self, prox: Regularizer, z: Array) -> Array:
        """Return about argmin_y f1(y) + <y - z, M (y - z)> / 2, by proximal steps; z itself without f1."""
        step, y = 1 / float(self._values.max()), z
        for _ in range(_INNER):
            before, y = y, prox(step, y - step * self._apply(y - z, self._values))
            if np.linalg.norm(y - before) <= 1e-9 * np.linalg.norm(y):
                break
        return y

    def _apply(self, vector: Array, values: Array) -> Array:
        """Return the matrix with those eigenvalues times a vector of parameters."""
        turned = self._vectors.T @ vector.reshape(len(values), -1)
        return np.asarray(self._vectors @ (values[:, None] * turned)).reshape(vector.shape)


class _SecondOrder(Method, frozen=True, kw_only=True, tag=None):
    """What methods with a Gram matrix share.

    Attributes:
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
    """

    batch: Batch = Full()
    share: float = 0.3

    statistics: ClassVar[Mapping[str, MakeStatistic]] = _STATISTICS

    def __post_init__(self) -> None:
        super().__post_init__()
        check_probability("share", self.share, low_open=True, high_open=True)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the Gram matrix, then for mean gradients, each with its share of the budget."""
        self._check_features(problem)
        gradients = max(rounds - 1, 1)
        each = (1 - self.share) / gradients
        top = max(self.share, each)
        gram = problem.measure(
            "gram",
            _acute,
            dim=gram_size(problem.features),
            max_radius=problem.feature_norm**2,
            share=self.share / top,
        )
        gradient = problem.measure("gradient", share=each / top)
        return (Step(measures=(gram,)), 1), (Step(measures=(gradient,), batch=self.batch), gradients)

    def error_bound(self, problem: Problem, rounds: int) -> float:  # noqa: ARG002 - as algorithms define it
        """Return infinity: no bound is known that the noise of the Gram matrix would not spoil."""
        return math.inf

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a single round, features without a public norm, and too many of them."""
        _ = problem.known_smoothness
        self._check_features(problem)
        if rounds < 2:
            raise ParameterError(
                f"rounds must be at least 2: the first asks for the Gram matrix; got {rounds}."
            )

    def _check_features(self, problem: Problem) -> None:
        """Refuse features without a public norm, and too many of them."""
        if not 0 < problem.features <= MOST_FEATURES or not math.isfinite(problem.feature_norm):
            raise ParameterError(
                "a Gram matrix needs a linear model with 1 to "
                f"{MOST_FEATURES} features of known norm, got {problem.features} of norm at most "
                f"{problem.feature_norm!r}."
            )

    def _gram(self, ask: Ask, problem: Problem) -> tuple[Array, float]:
        """Return the noisy mean of x x^T, and the deviation of a coordinate."""
        (coordinates,) = ask(0, {}, (problem.feature_norm**2,))
        noise = math.sqrt(problem.errors.get("gram", 0.0) / coordinates.size)
        return gram_matrix(coordinates, problem.features), noise


def _acute(**fields: object) -> Estimator:
    """Return a mean of rows at no more than a right angle."""
    return AdditiveMean(**fields, acute=True)  # type: ignore[arg-type]  # what `Problem.measure` gives


class PreconditionedNoisyGD(_SecondOrder, frozen=True, kw_only=True, tag="preconditioned"):
    """Gradient descent in the metric of a noisy Gram matrix, which the first round asks for.

    Directions in which features hardly vary are stretched, so a dozen steps do what hundreds of plain ones
    would, and each may cost more. The matrix is fixed before the first gradient, and gradients are clipped
    before they meet it, in the metric in which the norm of features is known.

    Attributes:
        rounds: R; the first asks for the Gram matrix, the others for gradients.
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
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
        gram, noise = self._gram(ask, problem)
        h = problem.known_smoothness / problem.feature_norm**2
        metric = Curvature.of(gram, noise=noise, curvature=h, damping=self.damping)
        follow(0, w)
        kept = max(math.ceil((rounds - 1) * self.average), 1)
        total = np.zeros_like(w)
        for r in range(1, rounds):
            (gradient,) = ask(r, {"w": w}, (problem.radius,))
            w = metric.prox(prox, w - metric.solve(gradient))
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
        rounds: R; the first asks for the Gram matrix, the others for the gradient at 0, which they average.
        batch: Units per gradient.
        share: Of what the run may reveal, as 1 / multiplier^2, spent on the Gram matrix, in (0, 1).
    """

    rounds: int | None = 2
    share: float = 0.5

    clip_share: ClassVar[float] = 0.7  # the longest slope of any of the losses at 0, over the longest of all
    paper: ClassVar[str] = "Wang (2018)"

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the solution."""
        gram, noise = self._gram(ask, problem)
        follow(0, w)
        total = np.zeros_like(w)
        for r in range(1, rounds):
            (gradient,) = ask(r, {"w": w}, (problem.radius,))
            total += gradient
            follow(r, w)
        values, vectors = np.linalg.eigh(gram)
        edge = noise * math.sqrt(len(gram))
        raised = np.maximum(values + math.sqrt(2) * edge, max(0.05 * edge, 1e-12 * abs(values).max()))
        metric = Curvature(raised * problem.known_smoothness / problem.feature_norm**2, vectors)
        return metric.prox(prox, w - metric.solve(total / (rounds - 1)))
