"""CE-PSGM: the STORM estimator at the server, and one silo at a time that walks along it by itself.

Source: "Efficient private federated non-convex optimization with shuffled model" (PSGM below; an anonymous
manuscript of 2024), Algorithm 1, after Patel et al. (2022), CE-LSGD.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar

import numpy as np

from tacit.errors import check_count, check_positive, check_probability
from tacit.federation import Ask, Fixed, Full, Group, Poisson, TurnWalk
from tacit.learning.algorithms.base import Follow, Kinds, Problem, check_optional
from tacit.learning.algorithms.spider import picked
from tacit.learning.algorithms.storm import StormMethod, estimate
from tacit.learning.objective import Objective
from tacit.numerics import Array, Regularizer
from tacit.privacy import TrustModel

__all__ = ["NoisyLocalStorm", "ce_psgm"]


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
    local_batch: Full | Fixed | Poisson = Fixed(rate=0.1)
    local_smoothness: float | None = None
    local_split: float = 0.5
    heterogeneity: float | None = None

    paper: ClassVar[str] = "PSGM (2024), Algorithm 1; Patel et al. (2022)"
    caveat: ClassVar[str] = "it is that of one local step a round, for gradients that are not clipped"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("local_steps", self.local_steps, low=2)
        check_optional(local_smoothness=self.local_smoothness)
        check_probability("local_split", self.local_split, low_open=True, high_open=True)
        if self.heterogeneity is not None:
            check_positive("heterogeneity", self.heterogeneity)

    def why_no_regularizer(self, objective: Objective) -> str:  # noqa: ARG002 - of none
        """Return that silos take their steps without it."""
        return "silos take several steps without it, and one proximal step after them ends elsewhere"

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for the estimate and for a walk in turn; the first estimate is of a gradient alone."""
        estimates = -(-rounds // 2)
        server, local = self._shares(problem, rounds)
        first, later = self._first(problem, server), self._later(problem, estimates, server)
        walk, again = (self._walk(problem, local, offset) for offset in (0, 1))
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
        self._local_smoothness(problem)

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
        estimates = -(-rounds // 2)
        # Of w_(r, 1), ..., w_(r, H) for all r, the points before each step.
        points = rounds // 2 * self.local_steps + rounds % 2
        kept = picked(self.output, points + 1, draw=self.draw)
        return ce_psgm(
            ask,
            w,
            rounds=rounds,
            local_steps=self.local_steps,
            beta=self._momentum(problem, estimates),
            step_size=self._step(problem, estimates),
            lipschitz=problem.radius,
            smoothness=self._smoothness(problem),
            local_smoothness=self._local_smoothness(problem),
            follow=follow,
            kept=None if kept is None else kept - 1,
        )

    def _local_smoothness(self, problem: Problem) -> float:
        """Return C3; local differences have no other clip, so somebody has to know it."""
        given = self.smoothness if self.local_smoothness is None else self.local_smoothness
        if given is not None:
            return given
        found = problem.record_smoothness
        return found if math.isfinite(found) else problem.known_smoothness

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size of local steps: H of them are no further than one that differences allow."""
        if self.step_size is not None:
            return self.step_size
        longest, smoothness = super()._step(problem, rounds), self._local_smoothness(problem)
        tau = 2 * smoothness if self.heterogeneity is None else self.heterogeneity
        steps = [1 / (2 * smoothness), 1 / (2 * self.local_steps * tau)]
        if longest < 1 / (2 * smoothness):
            steps.append(longest / self.local_steps)
        (mean,) = self._walk(problem, self._shares(problem, 2 * rounds)[1], 0).measures
        spread = getattr(mean.estimator.noise, "noise_multiplier", 0.0)  # type: ignore[union-attr]
        rows = self.local_batch.expected(min(problem.sizes))
        if spread > 0:  # sigma C3 |w - previous| is the noise of a difference, a coordinate
            sigma = 2 * spread / rows
            steps.append(1 / (2 * math.sqrt(self.local_steps * problem.dim) * smoothness * sigma))
        return min(steps)

    def _shares(self, problem: Problem, rounds: int) -> tuple[float, float]:
        """Return what a round of the estimate and one local difference may spend of the budget."""
        n, walks = min(problem.sizes), rounds // 2
        turns = -(-walks // problem.asked)
        rates = [one.expected(n) / n for one in (self.batch, self.local_batch)]
        server = (1 - self.local_split) / (-(-rounds // 2) * rates[0] ** 2)
        local = self.local_split / (max(turns, 1) * (self.local_steps - 1) * rates[1] ** 2)
        return server / max(server, local), local / max(server, local)

    def _walk(self, problem: Problem, share: float, offset: int) -> TurnWalk:
        """Return the round of a walk, whose noise is the silo's own under every trust."""
        own = replace(problem, protection=replace(problem.protection, trust=TrustModel.LOCAL))
        change = own.measure("difference", max_radius=2 * problem.radius, share=share)
        return TurnWalk(measures=(change,), batch=self.local_batch, steps=self.local_steps, offset=offset)


def ce_psgm(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    local_steps: int,
    beta: float,
    step_size: float,
    lipschitz: float,
    smoothness: float,
    local_smoothness: float,
    follow: Follow,
    kept: int | None = None,
) -> Array:
    """Run CE-PSGM (PSGM 2024, Algorithm 1).

    Args:
        ask: Returns what the STORM estimator asks for, and in every second round where a silo has walked to.
        w: Start, shape (size,).
        rounds: Rounds that are asked, estimates and walks.
        local_steps: H.
        beta: Momentum weight in [0, 1].
        step_size: eta of a local step.
        lipschitz: C2, where gradients are clipped.
        smoothness: C1, for the clip of the server's differences.
        local_smoothness: C3, for that of local ones.
        follow: Called after each round.
        kept: Return the point after that many steps of silos, from 0 on, and ask no more; None is all.

    Returns:
        A point, shape (size,).
    """
    v, previous, left = w, w, math.inf if kept is None else kept
    for r in range(0, rounds, 2):
        if left == 0:
            return w
        weight = 1.0 if r == 0 else beta
        v = estimate(ask, r, w, previous, v, beta=weight, lipschitz=lipschitz, smoothness=smoothness)
        follow(r, w)
        previous = w
        if r + 1 == rounds:
            return w - step_size * v
        facts = {"step_size": step_size, "smoothness": local_smoothness, "clip": lipschitz}
        numbers = {name: np.asarray(value) for name, value in facts.items()}
        taken = int(min(local_steps, left))
        at = {"w": w, "v": v, **numbers, "taken": np.asarray(float(taken))}
        (w,) = ask(r + 1, at, (2 * lipschitz,))
        left -= taken
        follow(r + 1, w)
    return w
