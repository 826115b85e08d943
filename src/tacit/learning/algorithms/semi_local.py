"""One pass of SGD in which every record speaks once: private ones by a randomised gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from tacit.errors import ParameterError, check_choice, check_non_negative, check_probability
from tacit.federation import Ask, Disjoint, Step
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.warm import Start, check_start, check_warm, first_point
from tacit.learning.public_objective import PublicObjective
from tacit.means import PrivUnitGMean, PrivUnitMean
from tacit.mechanisms import HIGHEST_UNIT_LEVEL, LOWEST_LEVEL
from tacit.numerics import Array, IntArray, Regularizer, RunningAverage, row_norms
from tacit.privacy import TrustModel
from tacit.randomness import PublicStream

__all__ = ["SemiLocalSGD"]

Randomizer = Literal["privunit", "privunit-g"]
PublicScale = Literal["raw", "match"]

_STEPS = 200
"""Of a pass on private records, where nobody says how many: more take longer, and gain little."""

_MEANS: dict[str, type[PrivUnitMean] | type[PrivUnitGMean]] = {
    "privunit": PrivUnitMean,
    "privunit-g": PrivUnitGMean,
}


class SemiLocalSGD(Method, frozen=True, kw_only=True, tag="semi-ldp"):
    """One pass of SGD on gradients that are randomised one by one, and on raw ones of public records.

    Every private record speaks once, by a private unit vector of its clipped gradient: a pure level, delta 0,
    and nobody is trusted with it. Public records take steps among them, as many records a step, in a
    uniformly random order; without any, this is locally private SGD, and without privacy it is SGD.

    Reports are real numbers, for simulation: their price takes floating point for exact.

    Attributes:
        rounds: Steps on private records; None makes one whole pass.
        batch: Private records of a silo in one step, each randomised by itself. Disjoint: a second pass would
            have to share the level. None is one R-th of each silo, or a 200th where there is no R.
        randomizer: "privunit", or "privunit-g", a surrogate that is nearly as good and cheaper to draw.
        normalise: Whether a gradient counts as its direction times the clip, which biases its length, and is
            not lifted to one dimension more.
        public_scale: "raw" takes public gradients as they are; "match" scales each to the norm of a private
            report, which is known without data.
        start: "warm" starts at the minimum on public records, as `SemiPrivateSGD` does; "given" where the run
            starts. None is "warm" for linear models with public records and a smooth loss.
        step_size: eta; None minimises the error bound.
        average: Share of the last points that are averaged, in (0, 1]; 1 is what the theory averages.
        mu: Strong convexity to count on; > 0 takes steps 2 / (mu (t + 2)) and weights t + 1, and neither
            `step_size` nor `average` has an effect.
    """

    batch: Disjoint | None = None
    randomizer: Randomizer = "privunit"
    normalise: bool = False
    public_scale: PublicScale = "raw"
    start: Start | None = None
    step_size: float | None = None
    average: float = 1.0
    mu: float = 0.0

    paper: ClassVar[str] = "Lowy (2023), Algorithm 13"
    takes_public: ClassVar[bool] = True
    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.LOCAL,)
    why_no_sums: ClassVar[str] = "every record is randomised by itself, and a sum hides it no better"
    own_noise: ClassVar[str] = "its reports are private unit vectors, of real numbers"
    caveat: ClassVar[str] = "its bound is for gradients that are lifted and not clipped"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("randomizer", self.randomizer, get_args(Randomizer))
        check_choice("public_scale", self.public_scale, get_args(PublicScale))
        check_start(self.start)
        check_optional(step_size=self.step_size)
        check_probability("average", self.average, low_open=True)
        check_non_negative("mu", self.mu)

    def clip_of_public(self, public: PublicObjective) -> float | None:
        """Return how long gradients of other records are where it starts."""
        return None if self.start == "given" else public.clip

    @property
    def pure_noise(self) -> bool:
        """Whether its noise has a pure epsilon: always."""
        return True

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for means of randomised gradients of disjoint batches in all rounds."""
        trust = problem.protection.trust
        if trust is not TrustModel.LOCAL:
            raise ParameterError(
                f"trust must be local for the algorithm 'semi-ldp', got {trust.value}: every record is "
                "randomised before it leaves its silo."
            )
        batch = self.batch or Disjoint(rate=1 / (self.rounds or _STEPS))
        if problem.protection.multiplier == 0:
            return problem.gradients(rounds, batch)
        measure = problem.measure("gradient", lambda **fields: self._randomised(problem, **fields))
        return ((Step(measures=(measure,), batch=batch), rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2 / (2 eta T) + eta / (2 T) sum_t G_t^2, over T steps on private and public records.

        G_t^2 bounds the second moment of the gradient of a step (Lowy 2023, Algorithm 13). With mu > 0 it is
        2 max G_t^2 / (mu (T + 1)) (Lacoste-Julien, Schmidt and Bach 2012, arXiv:1212.2002).
        """
        counts, moments = np.array(self._counts(problem, rounds)), np.array(self._moments(problem))
        total = int(counts.sum())
        if self.mu > 0:
            return float(2 * moments[counts > 0].max() / (self.mu * (total + 1)))
        eta = self._step(problem, rounds)
        return float(problem.diameter**2 / (2 * eta) + eta * (counts @ moments) / 2) / total

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - as algorithms define it
        """Refuse a public minimum that there is none of; that a pass has so many rounds, its plan sees to."""
        check_warm(self.start, problem)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters."""
        w = first_point(self.start, problem, w, prox)
        private, public = self._counts(problem, rounds)
        stream = PublicStream(0, 0, purpose="the order of semi-ldp")
        taken = iter(np.array_split(stream.permutation(len(problem.public or ())), max(public, 1)))
        schedule, average, asked = self._schedule(problem, rounds), RunningAverage(), 0
        for place in stream.permutation(private + public):
            eta, log_weight = next(schedule)
            average = average.add(w, log_weight)
            if place >= private:
                w = prox(eta, w - eta * self._public_gradient(problem, next(taken), w))
                continue
            (gradient,) = ask(asked, {"w": w}, (problem.radius,))
            w = prox(eta, w - eta * gradient)
            follow(asked, w)
            asked += 1
        return average.value

    def _randomised(self, problem: Problem, **fields: Any) -> PrivUnitMean | PrivUnitGMean:
        """Return the mean of randomised gradients; what is calibrated is 1 / level, as of Laplace noise."""
        level = 1 / problem.protection.multiplier
        return _MEANS[self.randomizer](
            dim=fields["dim"],
            local_epsilon=min(max(level, LOWEST_LEVEL), HIGHEST_UNIT_LEVEL),
            lift=not self.normalise,
            trust=fields["trust"],
            neighbours=fields["neighbours"],
            on_violation=fields["on_violation"],
        )

    def _counts(self, problem: Problem, rounds: int) -> tuple[int, int]:
        """Return the steps on private and on public records, of about as many records each."""
        if problem.public is None:
            return rounds, 0
        records = len(problem.public)
        return rounds, min(max(round(rounds * records / problem.rows), 1), records)

    def _report_norm(self, problem: Problem) -> float:
        """Return the root of the mean squared norm of a private report: C / m; C without noise."""
        if problem.protection.multiplier == 0:
            return problem.radius
        protection = problem.protection
        mean = self._randomised(
            problem,
            dim=problem.dim,
            trust=protection.trust,
            neighbours=protection.neighbours,
            on_violation="clip",
        )
        return problem.radius * math.sqrt(mean.unit.squared_norm)

    def _moments(self, problem: Problem) -> tuple[float, float]:
        """Return bounds on the second moment of the gradient of a private and of a public step.

        That of one report is C^2 / m^2; a mean of p reports has 1/p of their variance, and a mean that is no
        longer than C.
        """
        one, clip = self._report_norm(problem) ** 2, problem.radius**2
        private = problem.variance + max(1 - problem.variance / one, 0.0) * clip
        if self.public_scale == "match":
            return private, one
        return private, problem.lipschitz**2 if math.isfinite(problem.lipschitz) else clip

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size: a given one, or D / sqrt(sum_t G_t^2)."""
        if self.step_size is not None:
            return self.step_size
        spent = np.dot(self._counts(problem, rounds), self._moments(problem))
        return problem.diameter / math.sqrt(spent)

    def _schedule(self, problem: Problem, rounds: int) -> Iterator[tuple[float, float]]:
        """Yield the step size and the logarithm of the weight of every step."""
        total = sum(self._counts(problem, rounds))
        if self.mu > 0:
            yield from ((2 / (self.mu * (t + 2)), math.log(t + 1)) for t in range(total))
            return
        eta, skipped = self._step(problem, rounds), min(int(total * (1 - self.average)), total - 1)
        yield from ((eta, -math.inf if t < skipped else 0.0) for t in range(total))

    def _public_gradient(self, problem: Problem, taken: IntArray, w: Array) -> Array:
        """Return the mean gradient of some public records, each scaled to the norm of a report to match."""
        if problem.public is None:
            return np.zeros_like(w)
        rows = problem.public.objective.gradients(w, problem.public.records.take(taken))
        if self.public_scale == "match":
            norms, longer = row_norms(rows)[:, None], self._report_norm(problem)
            rows = longer * np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
        return np.asarray(rows.mean(axis=0))
