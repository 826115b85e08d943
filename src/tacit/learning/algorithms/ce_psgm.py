"""CE-PSGM: the STORM estimator at the server, and one silo at a time that walks along it by itself.

Source: "Efficient private federated non-convex optimization with shuffled model" (PSGM below; an anonymous
manuscript of 2024), Algorithm 1, after Patel et al. (2022), CE-LSGD.
"""

from __future__ import annotations

from typing import ClassVar

from tacit.federation import Ask, Fixed, Group
from tacit.learning.algorithms.base import Follow, Kinds, Problem
from tacit.learning.algorithms.spider import picked
from tacit.learning.algorithms.storm import StormMethod
from tacit.learning.algorithms.walks import LocalBatch, Walks
from tacit.learning.objective import Objective
from tacit.numerics import Array, Regularizer

__all__ = ["NoisyLocalStorm"]


class NoisyLocalStorm(StormMethod, frozen=True, kw_only=True, tag="ce-psgm"):
    """CE-PSGM: rounds of the STORM estimator, each followed by steps of one silo, whose turn it is.

    Attributes:
        rounds: Rounds that are asked, of which every second one is a walk: twice the R of the paper; None
            chooses them. After the last estimate of an odd number the server takes one step.
        local_steps: H >= 2 steps of a walk, the first along the estimate itself; one is `NoisyStorm`.
        local_batch: B2, units of a local difference, fresh in every step.
        local_smoothness: C3, for the clip of local differences; None is C1.
        local_split: Share of the privacy of the run, in squares, that goes to walks.
        heterogeneity: tau, how far the Hessians of silos are from the mean one; None counts on 2 C1, which
            always holds. It only shortens steps.
        output: "last", or "random": a uniform one of all points on the way, those inside of walks included.
    """

    local_steps: int = 5
    local_batch: LocalBatch = Fixed(rate=0.1)
    local_smoothness: float | None = None
    local_split: float = 0.5
    heterogeneity: float | None = None

    paper: ClassVar[str] = "PSGM (2024), Algorithm 1; Patel et al. (2022)"
    caveat: ClassVar[str] = "it is that of one local step a round, for gradients that are not clipped"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._walks.check()

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - of none
        """Return that silos take their steps without it."""
        return "silos take several steps without it, and one proximal step after them ends elsewhere"

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the estimate and for a walk in turn; the first estimate is of a gradient alone."""
        estimates = -(-rounds // 2)
        server, local = self._shares(problem, rounds)
        first, later = self._first(problem, server), self._later(problem, estimates, server)
        walk, again = (self._walks.kind(problem, local, offset) for offset in (0, 1))
        whole, odd = divmod(rounds, 2)
        kinds: Kinds = ((first, 1), (walk, 1)) if whole else ((first, 1),)
        if whole > 1:
            kinds += ((Group(steps=((later, 1), (again, 1))), whole - 1),)
        return (*kinds, (later, 1)) if odd and whole else kinds

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of the estimates alone."""
        return super().error_bound(problem, -(-rounds // 2))

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness where a step size or a clip has to be made from it."""
        super().check(problem, rounds)
        self._walks.known_smoothness(problem)

    def run(
        self,
        ask: Ask,
        w: Array,
        *,
        problem: Problem,
        rounds: int,
        prox: Regularizer,  # noqa: ARG002 - it takes none
        follow: Follow,
    ) -> Array:
        """Run on an `ask` and return the last point, or a public random one."""
        estimates, walks = -(-rounds // 2), self._walks
        # Of w_(r, 1), ..., w_(r, H) for all r, the points before each step.
        kept = picked(self.output, walks.points(rounds), draw=self.draw)
        return walks.along(
            ask,
            w,
            problem=problem,
            rounds=rounds,
            weights=[1.0] + [self._momentum(problem, estimates)] * (estimates - 1),
            step_size=self._step(problem, estimates),
            smoothness=self._smoothness(problem),
            follow=follow,
            kept=kept,
        )

    @property
    def _walks(self) -> Walks:
        """What silos do; C3 is C1 where it is not given."""
        return Walks(
            steps=self.local_steps,
            batch=self.local_batch,
            smoothness=self.smoothness if self.local_smoothness is None else self.local_smoothness,
            split=self.local_split,
            heterogeneity=self.heterogeneity,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size of local steps: H of them are no further than one that differences allow."""
        if self.step_size is not None:
            return self.step_size
        walks = self._walks
        found = walks.longest_step(problem, self._shares(problem, 2 * rounds)[1])
        return min(found, self._longest(problem, rounds) / walks.steps)

    def _shares(self, problem: Problem, rounds: int) -> list[float]:
        """Return what a round of the estimate and one local difference may spend of the budget."""
        n, estimates = min(problem.sizes), -(-rounds // 2)
        rate = self.batch.expected(n) / n
        return self._walks.shares(problem, rounds // 2, [1 / estimates], rate=rate)
