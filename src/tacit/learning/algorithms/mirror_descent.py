"""Public-data-assisted mirror descent: noisy gradients of private records in the metric of public ones."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional, other_loss
from tacit.learning.algorithms.preconditioned import Curvature
from tacit.learning.losses import Squared
from tacit.learning.moments import MOST_FEATURES
from tacit.learning.public_objective import PublicObjective
from tacit.numerics import Array, Regularizer

__all__ = ["PublicMirrorDescent"]


class PublicMirrorDescent(Method, frozen=True, kw_only=True, tag="pda"):
    """Mirror descent whose mirror is the loss of public records: least squares only (Amid et al. 2022).

    grad Psi(w_next) = grad Psi(w) - eta g, where g is the noisy clipped mean gradient of private records and
    Psi the public loss: w_next = w - eta H^-1 g, with H the public second moment of features and a little
    more. Public labels are used for the start alone. Steps and noise grow where public features hardly vary,
    so that few public records want a larger `ridge`, or the algorithm 'semi-dp'.

    Attributes:
        rounds: R.
        batch: Units per gradient.
        ridge: c, added to the eigenvalues of H, in their mean, > 0.
        step_size: eta; None is (1 - sqrt(d / n))_+^2 + c for n public records with d features: about what
            the least eigenvalue of H falls short of the private one by, at random.
        warm_start: Whether it starts at the minimum of the public loss, and not where the run starts.
        average: Share of the last points that are averaged, in (0, 1].
    """

    rounds: int | None = 30
    batch: Batch = Full()
    ridge: float = 0.01
    step_size: float | None = None
    warm_start: bool = True
    average: float = 0.5

    clip_share: ClassVar[float] = 1.0
    needs_public: ClassVar[bool] = True
    paper: ClassVar[str] = "Amid et al. (2022); Lowy (2023), Appendix A"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("ridge", self.ridge)
        check_optional(step_size=self.step_size)
        check_probability("average", self.average, low_open=True)

    def clip_of_public(self, public: PublicObjective) -> float | None:
        """Return how long gradients of other records are where it starts."""
        return public.clip if self.warm_start else None

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients of private records in all rounds."""
        return problem.gradients(rounds, self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:  # noqa: ARG002 - as algorithms define it
        """Return infinity: no bound is known that public facts could tell."""
        return math.inf

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - as algorithms define it
        """Refuse another loss than the squared one, no public records, and too many features."""
        if not isinstance(problem.loss, Squared):
            raise other_loss(
                problem,
                needs="the algorithm 'pda' needs the squared loss",
                why="of others, the mirror has no closed form; 'semi-dp' takes them",
            )
        _known(problem)
        if problem.features > MOST_FEATURES:
            raise ParameterError(
                f"the algorithm 'pda' takes at most {MOST_FEATURES} features, got {problem.features}."
            )

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters."""
        public = _known(problem)
        values, vectors = _second_moment(public, self.ridge)
        if self.warm_start:
            w = Curvature(values, vectors).prox(prox, _least_squares(public, w), start=w)
        metric = Curvature(values / self._step(public), vectors)
        kept = max(math.ceil(rounds * self.average), 1)
        total = np.zeros_like(w)
        for r in range(rounds):
            (gradient,) = ask(r, {"w": w}, (problem.radius,))
            w = metric.prox(prox, w - metric.solve(gradient), start=w)
            follow(r, w)
            if r >= rounds - kept:
                total += w
        return np.asarray(total / kept)

    def _step(self, public: PublicObjective) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        n, d = public.records.X.shape
        return max(1 - math.sqrt(d / n), 0.0) ** 2 + self.ridge


def _known(problem: Problem) -> PublicObjective:
    """Return the public records, or refuse that there are none."""
    if problem.public is None:
        raise ParameterError("the algorithm 'pda' needs public records with labels, got none.")
    return problem.public


def _least_squares(public: PublicObjective, w: Array) -> Array:
    """Return the minimum of the public loss, of all minima the nearest to w."""
    X, y = (one.astype(np.float64, copy=False) for one in (public.records.X, public.records.y))
    return np.asarray(w + np.linalg.lstsq(X, y - X @ w, rcond=None)[0])


def _second_moment(public: PublicObjective, ridge: float) -> tuple[Array, Array]:
    """Return the eigenvalues of X^T X / n + c tr(X^T X / n) / d, all > 0, and its eigenvectors."""
    X = public.records.X.astype(np.float64, copy=False)
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    mean = float(np.square(X).sum()) / X.size
    return np.maximum(values, 0.0) + ridge * max(mean, np.finfo(np.float64).tiny), vectors
