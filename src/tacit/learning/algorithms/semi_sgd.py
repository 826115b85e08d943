"""SGD on gradients of private and of public records: the noise is on the private ones alone.

Source: Lowy (2023), Algorithm 11, and Section 2.2.2 for its weights.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_probability
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.accelerated import ac_sa, convex_nu
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.preconditioned import STEADY, Curvature
from tacit.learning.algorithms.warm import Start, check_start, check_warm, first_point
from tacit.learning.moments import MOST_FEATURES
from tacit.learning.public_objective import PublicNorm, PublicObjective
from tacit.means.public import optimal_private_weight
from tacit.numerics import Array, Regularizer

__all__ = ["SemiPrivateSGD"]

_WEIGHTS = ("records", "auto")
_METRICS = ("public", "plain")
_FLATTER = 0.6
"""Share of the largest curvature of a loss of classes that steps count on."""


class SemiPrivateSGD(Method, frozen=True, kw_only=True, tag="semi-dp"):
    """SGD on weight * (noisy mean of clipped private gradients) + (1 - weight) * (mean of public ones).

    By default it starts at the public minimum and takes few steps in the metric of public features
    (docs/theory/defaults.md says what that was measured to be worth); `metric="plain"` and a given start make
    it the algorithm of the paper.

    Attributes:
        rounds: R.
        batch: Private units per round. Nothing draws a record twice into one batch: that would double what
            it may change.
        public_batch: Public records per round, drawn by public randomness; None is all.
        weight: Of the private mean, in (0, 1]. "records" is the share of private records, for which both
            together are the gradient of the mean loss of all records; "auto" has the least error in every
            round by itself (inverse variances, with the variance of public gradients).
        public_norm: What becomes of public gradients: "clip" clips them as private ones are, "rescale" makes
            all of them that long, "raw" leaves them.
        start: "warm" starts at the minimum on public records, with the squared penalty that does best on
            records left out; "given" where the run starts. None is "warm" for linear models
            with a smooth loss.
        metric: "public" takes steps in the metric of the second moment of public features, "plain" in none.
            None is "public" for linear models.
        step_size: eta; None is 1 in the public metric, else min(1/beta, D / (V sqrt(R))).
        damping: Share of the largest curvature of the loss that steps in the public metric count on, > 0.
            None is 0.6 for classes, whose losses are flatter in most places, and else 1.
        average: Share of the last points that are averaged, in (0, 1].
        accelerated: Whether steps are those of AC-SA, in the plain metric, of which none is averaged.
    """

    rounds: int | None = 13
    batch: Batch = Full()
    public_batch: int | None = None
    weight: float | Literal["records", "auto"] = "records"
    public_norm: PublicNorm = "clip"
    start: Start | None = None
    metric: Literal["public", "plain"] | None = None
    step_size: float | None = None
    damping: float | None = None
    average: float = 0.5
    accelerated: bool = False

    clip_share: ClassVar[float] = 0.6
    needs_public: ClassVar[bool] = True
    paper: ClassVar[str] = "Lowy (2023), Algorithm 11; Lowy, Li, Huang and Razaviyayn (2024)"
    caveat: ClassVar[str] = "its bound is for gradients that are not clipped, and public records of one law"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.public_batch is not None:
            check_count("public_batch", self.public_batch)
        if isinstance(self.weight, str):
            check_choice("weight", self.weight, _WEIGHTS)
        elif not 0 < self.weight <= 1:
            raise ParameterError(
                f"weight must be in (0, 1], 'records' or 'auto', got {self.weight!r}: 0 would ask for "
                "private records and not use them; `PublicObjective.minimum` trains on public ones alone."
            )
        check_choice("public_norm", self.public_norm, ("raw", "clip", "rescale"))
        check_start(self.start)
        if self.metric is not None:
            check_choice("metric", self.metric, _METRICS)
        check_optional(step_size=self.step_size, damping=self.damping)
        check_probability("average", self.average, low_open=True)
        if self.accelerated and self.metric == "public":
            raise ParameterError("metric must be 'plain' where steps are accelerated, got 'public'.")

    def clip_of_public(self, public: PublicObjective) -> float | None:
        """Return how long gradients of other records are where it starts."""
        return None if self.start == "given" else public.clip

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients of private records in all rounds."""
        return problem.gradients(rounds, self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2 / (2 eta R) + (eta / 2)(L^2 + E |g - grad F|^2), of plain steps; else infinity.

        Lowy (2023), Section 2.2.3, with L^2 in the place of the variance of a gradient. It holds of all
        points' average.
        """
        if self._in_metric(problem) or self.accelerated or not math.isfinite(problem.lipschitz):
            return math.inf
        long = problem.lipschitz**2
        a = self._weight(problem, long)
        private, public = self._sizes(problem)
        error = a**2 * (problem.variance + long / private) + (1 - a) ** 2 * long / public
        eta = self._step(problem, rounds)
        return problem.diameter**2 / (2 * eta * rounds) + eta / 2 * (long + error)

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse a metric that there is none of, a batch that is too large, and steps of unknown length."""
        public = _known(problem)
        check_warm(self.start, problem)
        check_count("public_batch", self.public_batch or 1, high=len(public))
        if self.weight == "auto":
            check_count("the number of public records that 'auto' weighs by", self._sizes(problem)[1], low=2)
        if self.metric == "public" and not _has_metric(problem):
            raise ParameterError(
                f"metric must be 'plain' where no linear model of at most {MOST_FEATURES} features is "
                "trained, got 'public'."
            )
        if self._in_metric(problem):
            _curvature(problem)
        else:
            self._step(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters, or the last ones of accelerated steps."""
        public = _known(problem)
        w = first_point(self.start, problem, w, prox)

        def gradient(step: int, at: Array, radius: float) -> Array:
            private: Array
            (private,) = ask(step, {"w": at}, (radius,))
            batch, norm = public.batch(step, self.public_batch or len(public)), self.public_norm
            spread = batch.variance(at, radius=radius, norm=norm) if self.weight == "auto" else 0.0
            a = self._weight(problem, spread)
            other: Array = batch.gradient(at, radius=radius, norm=norm)
            return np.asarray(a * private + (1 - a) * other)

        if self.accelerated:
            return ac_sa(
                lambda step, at, radius: (gradient(step, at["w"], radius[0]),),
                w,
                rounds=rounds,
                nu=self._nu(problem, rounds),
                mu=0.0,
                radius=problem.radius,
                prox=prox,
                follow=follow,
            )
        metric = self._curvature(problem, public, rounds) if self._in_metric(problem) else None
        eta = self._step(problem, rounds) if metric is None else 1.0
        kept = max(math.ceil(rounds * self.average), 1)
        total = np.zeros_like(w)
        for r in range(rounds):
            g = gradient(r, w, problem.radius)
            w = prox(eta, w - eta * g) if metric is None else metric.prox(prox, w - metric.solve(g), start=w)
            follow(r, w)
            if r >= rounds - kept:
                total += w
        return np.asarray(total / kept)

    def _in_metric(self, problem: Problem) -> bool:
        """Return whether steps are taken in the metric of public features."""
        return self.metric != "plain" and not self.accelerated and _has_metric(problem)

    def _sizes(self, problem: Problem) -> tuple[int, int]:
        """Return how many private units and public records a round has."""
        private = sum(self.batch.expected(n) for n in problem.protection.silos or problem.sizes)
        return max(round(private), 1), self.public_batch or len(_known(problem))

    def _weight(self, problem: Problem, spread: float) -> float:
        """Return the weight of the private mean.

        Args:
            problem: Of the run.
            spread: V^2, the total variance of a record's gradient; for "auto".
        """
        if self.weight == "records":
            return problem.rows / (problem.rows + len(_known(problem)))
        if isinstance(self.weight, str):
            private, public = self._sizes(problem)
            return optimal_private_weight(
                problem.variance, population_variance=spread, n_private=private, n_public=public
            )
        return self.weight

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size without a metric."""
        return problem.plain_step(rounds) if self.step_size is None else self.step_size

    def _nu(self, problem: Problem, rounds: int) -> float:
        """Return the step parameter of AC-SA."""
        if self.step_size is not None:
            return 1 / (2 * self.step_size)
        return convex_nu(
            smoothness=problem.known_smoothness,
            noise_std=problem.noise_std,
            rounds=rounds,
            diameter=problem.diameter,
        )

    def _curvature(self, problem: Problem, public: PublicObjective, rounds: int) -> Curvature:
        """Return the metric: the second moment of public features, as flat as noise allows."""
        X = public.records.X.astype(np.float64, copy=False)
        square = float(np.square(X).sum()) / len(X)
        # Eigenvalues of a moment of m records with d features alike are as low as (1 - sqrt(d / m))^2: two
        # records along every direction make that 2/3 at least, and one 1/2, which is enough where the loss
        # is flatter than is counted on. Of noise it is what `preconditioned` counts.
        noise = math.sqrt(problem.variance / (problem.dim * rounds)) / problem.radius
        flatter = problem.loss is not None and problem.loss.classifies
        along = (1 if flatter else 2) / len(X)
        raised = X.T @ X / len(X) + square * (along + STEADY * noise) * np.eye(X.shape[1])
        damping = (_FLATTER if flatter else 1.0) if self.damping is None else self.damping
        shorter = damping / (1.0 if self.step_size is None else self.step_size)
        return Curvature.of(raised, noise=0.0, curvature=_curvature(problem), damping=shorter)


def _known(problem: Problem) -> PublicObjective:
    """Return the public records, or refuse that there are none."""
    if problem.public is None:
        raise ParameterError("the algorithm 'semi-dp' needs public records with labels, got none.")
    return problem.public


def _has_metric(problem: Problem) -> bool:
    """Return whether a second moment of features says how a model is curved, and is small enough."""
    return 0 < problem.features <= MOST_FEATURES


def _curvature(problem: Problem) -> float:
    """Return the largest second derivative of the loss in a prediction, or refuse a kink."""
    if problem.loss is None or not math.isfinite(problem.loss.smoothness):
        return problem.known_smoothness  # which says what is wrong
    return problem.loss.smoothness
