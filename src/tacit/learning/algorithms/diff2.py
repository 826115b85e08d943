"""DIFF2: a mean gradient now and then, and differences in between; with a period of 1 it is DP-GD.

Source: Murata and Suzuki (2023), "DIFF2: differential private optimization via gradient differences for
nonconvex distributed learning", Algorithms 1 to 4.
"""

from __future__ import annotations

import math
from typing import ClassVar, Literal

import msgspec

from tacit.errors import ParameterError, check_choice
from tacit.federation import AnyStep, Ask, Fixed, Group, Step
from tacit.learning.algorithms.base import Follow, Kinds, Problem
from tacit.learning.algorithms.noise_steps import gradient_step
from tacit.learning.algorithms.prox_sgd import starting_gap
from tacit.learning.algorithms.spider import NoisySpider, picked
from tacit.learning.algorithms.splits import split_shares
from tacit.learning.algorithms.walks import LocalBatch, Walks
from tacit.learning.objective import Objective
from tacit.numerics import Array, Regularizer
from tacit.privacy import TrustModel

__all__ = ["NoisyDiff2"]

_OF_WALKS = ("local_steps", "local_batch", "local_smoothness", "local_split", "heterogeneity")


class NoisyDiff2(NoisySpider, frozen=True, kw_only=True, tag="diff2"):
    """DIFF2: SPIDER with full batches, whose restarts are the rarer the larger the noise of a gradient.

    Attributes:
        step_size: eta; None is 1 / (2 beta). Of gradients alone (a period of 1) of a linear model of classes
            it is longer than that: noise may take a score 1.5 away, by steps of at most 15 / beta.
        rounds: Rounds that are asked; None chooses them. Of BVR-LSGD every second one is a walk, so that they
            are twice the R of the paper; after the last estimate of an odd number the server takes one step.
        period: T >= 1: every T-th estimate asks for a gradient, the others for how it changed; 1 is DP-GD,
            which asks for gradients only. None is (G^2 sqrt(d) / (C2 Delta n epsilon))^(2/3) R of all records
            n (of a silo's, under local trust), from 1 to R, and 1 where the smoothness is unknown.
        split: Share of the privacy of estimates that goes to gradients; None gives every one the same
            multiple of its sensitivity.
        routine: What follows an estimate: one step of the server ("gd", DIFF2-GD), or steps of a silo by
            itself ("bvr-lsgd"). Silos take turns in public order, where the paper draws them: each pays for
            at most ceil(R / M) walks.
        local_steps: H >= 2 steps of a walk, the first along the estimate itself. This and what follows is for
            "bvr-lsgd" only.
        local_batch: Units of a local difference, fresh in every step; None is a tenth of them.
        local_smoothness: C3, for the clip of local differences; None is C2.
        local_split: Share of the privacy of the run, in squares, that goes to walks.
        heterogeneity: tau, how far the Hessians of silos are from the mean one; None counts on 2 C3, which
            always holds. It only shortens steps.
        output: "last", or "random": a uniform one of the points before each step.
    """

    split: float | None = None
    routine: Literal["gd", "bvr-lsgd"] = "gd"
    local_steps: int = 5
    local_batch: LocalBatch | None = None
    local_smoothness: float | None = None
    local_split: float = 0.5
    heterogeneity: float | None = None

    paper: ClassVar[str] = "Murata and Suzuki (2023)"
    caveat: ClassVar[str] = (
        "it is for a random point on the way, full batches, all silos, one step a time, of 1 / (2 beta)"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("routine", self.routine, ["gd", "bvr-lsgd"])
        self._walks.check()
        if self.routine == "bvr-lsgd":
            # Here, so that other ways to draw as many are compared.
            msgspec.structs.force_setattr(self, "local_batch", self._walks.batch)
            return
        defaults = dict(zip(self.__struct_fields__[::-1], self.__struct_defaults__[::-1], strict=False))
        for name in _OF_WALKS:
            if (value := getattr(self, name)) != defaults[name]:
                raise ParameterError(f"{name} must be left out for the routine 'gd', got {value!r}.")

    def why_no_regularizer(self, objective: Objective) -> str:
        """Return that silos take their steps without it, where they take any."""
        if self.routine == "gd":
            return super().why_no_regularizer(objective)
        return "silos take several steps without it, and one proximal step after them ends elsewhere"

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask as SPIDER does; or for an estimate and a walk in turn, in the order of silos throughout."""
        if self.routine == "gd":
            return super().steps(problem, rounds)
        estimates, walks = -(-rounds // 2), rounds // 2
        period = self._period(problem, estimates)
        shares = self._shares(problem, rounds)
        longest = {"gradient": problem.radius, "difference": 2 * problem.radius}
        gradient, difference = (
            Step(
                measures=(problem.measure(name, max_radius=far, share=share, batch=self.batch),),
                batch=self.batch,
            )
            for (name, far), share in zip(longest.items(), shares, strict=False)
        )

        def walk(number: int, stride: int = 1) -> tuple[AnyStep, int]:
            return self._walks.kind(problem, shares[-1], number, stride), 1

        def turn(start: int, length: int) -> Kinds:
            """A gradient and differences after it, each with a walk, of which the first is number `start`."""
            if length == 0:
                return ()
            kinds: Kinds = ((gradient, 1), walk(start))
            again = Group(steps=((difference, 1), walk(start + 1)))
            return (*kinds, (again, length - 1)) if length > 1 else kinds

        whole, rest = divmod(walks, period)
        kinds: Kinds
        if 2 * period <= 4 * whole:  # whichever needs fewer kinds
            asked = (((difference if j else gradient), 1) for j in range(period))
            pairs = (pair for j, one in enumerate(asked) for pair in (one, walk(j, period)))
            kinds = ((Group(steps=tuple(pairs)), whole),)
        else:
            kinds = tuple(kind for k in range(whole) for kind in turn(k * period, period))
        kinds = (*kinds, *turn(whole * period, rest))
        return (*kinds, ((difference if rest else gradient), 1)) if estimates > walks else kinds

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of the estimates alone."""
        return super().error_bound(problem, rounds if self.routine == "gd" else -(-rounds // 2))

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness where a step size or a clip has to be made from it."""
        super().check(problem, rounds)
        if self.routine == "bvr-lsgd":
            self._walks.known_smoothness(problem)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point, or a public random one."""
        if self.routine == "gd":
            return super().run(ask, w, problem=problem, rounds=rounds, prox=prox, follow=follow)
        estimates, walks = -(-rounds // 2), self._walks
        period = self._period(problem, estimates)
        step = self.step_size
        if step is None:
            step = walks.longest_step(problem, self._shares(problem, rounds)[-1])
        kept = picked(self.output, walks.points(rounds), draw=self.draw)
        return walks.along(
            ask,
            w,
            problem=problem,
            rounds=rounds,
            weights=[float(r % period == 0) for r in range(estimates)],
            step_size=step,
            smoothness=self._beta(problem),
            follow=follow,
            kept=kept,
        )

    def _taken(self, problem: Problem, rounds: int) -> float:
        """Return the step size of DIFF2-GD: longer than the bound's where only gradients are asked for."""
        least = self._step(problem)
        if self.step_size is not None or self._period(problem, rounds) > 1:
            return least
        return gradient_step(problem, rounds, least=least)

    @property
    def _walks(self) -> Walks:
        """What silos do; C3 is C2 where it is not given."""
        return Walks(
            steps=self.local_steps,
            batch=Fixed(rate=0.1) if self.local_batch is None else self.local_batch,
            smoothness=self.smoothness if self.local_smoothness is None else self.local_smoothness,
            split=self.local_split,
            heterogeneity=self.heterogeneity,
        )

    def _shares(self, problem: Problem, rounds: int) -> list[float]:
        """Return what a gradient, a difference and a local difference may spend of the budget."""
        n, estimates = min(problem.sizes), -(-rounds // 2)
        gradients = -(-estimates // self._period(problem, estimates))
        server = [1 / estimates, 1 / estimates]
        if self.split is not None and gradients < estimates:
            server = split_shares(self.split, (gradients, estimates - gradients))
        return self._walks.shares(problem, rounds // 2, server, rate=self.batch.expected(n) / n)

    def _period(self, problem: Problem, rounds: int) -> int:
        """Return T for that many estimates: fixed by public facts, and the same at any amount of noise."""
        if self.period is not None:
            return min(self.period, rounds)
        beta, protection = self._beta(problem), problem.protection
        if not math.isfinite(beta) or not math.isfinite(protection.epsilon):
            return 1
        n = min(problem.sizes) if protection.trust is TrustModel.LOCAL else problem.rows
        moved = beta * starting_gap(self.gap, problem, smoothness=beta) * n * protection.epsilon
        period = math.pow(problem.radius**2 * math.sqrt(problem.dim) / moved, 2 / 3) * rounds
        return max(1, min(rounds, round(period)))
