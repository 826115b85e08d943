"""Fed-SPIDER: gradients and differences of them in turn, and every difference as long as it may be.

Source: Lowy (2023), Algorithm 25.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import ParameterError, check_choice, check_count, check_probability
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.base import Bounded, Convexity, Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.spider import (
    DIFFERENCE,
    Output,
    picked,
    spider,
    spider_kinds,
    stationarity_bound,
)
from tacit.numerics import Array, Regularizer

__all__ = ["NoisyFedSpider"]


class NoisyFedSpider(Method, frozen=True, kw_only=True, tag="fed-spider"):
    """Fed-SPIDER: SPIDER of period 2 that counts on no smoothness, so differences may be 2 L long.

    Attributes:
        rounds: R >= 3 rounds, 2 (E - 1) + 1 for E points of the paper; None chooses it.
        batch: Units per round, fresh in every round.
        step_size: eta; None is 1 / (2 beta).
        split: Share of the privacy of the run, in squares, that goes to gradients; None gives every round the
            same multiple of its sensitivity.
        output: "last", or "random": a uniform one of w_1..w_(R-1), from public randomness.
        draw: Public seed of that draw.
    """

    batch: Batch = Full()
    step_size: float | None = None
    split: float | None = None
    output: Output = "last"
    draw: int = 0

    paper: ClassVar[str] = "Lowy, Ghafelebashi and Razaviyayn (2023)"
    statistics: ClassVar = DIFFERENCE
    bounds: ClassVar[Bounded] = "squared gradient"
    needs: ClassVar[Convexity] = "non-convex"
    caveat: ClassVar[str] = "it is for a random point on the way, full batches and all silos"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)
        if self.rounds is not None:
            self._check_rounds(self.rounds)
        if self.split is not None:
            check_probability("split", self.split, low_open=True, high_open=True)
        check_choice("output", self.output, ["last", "random"])
        check_count("draw", self.draw, low=0)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for a gradient and for a difference, in turn."""
        return spider_kinds(problem, rounds, period=min(2, rounds), split=self.split, batch=self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return a bound on the mean squared length of the gradient mapping, if no change is clipped.

        The errors of v_r are those of a gradient, and in every second round those of a difference too.
        """
        eta = self._step(problem)
        gap = min(problem.diameter**2 / (4 * eta), problem.radius * problem.diameter)
        variance = problem.variance + problem.errors.get("difference", 0.0) / 2
        return stationarity_bound(
            step_size=eta, rounds=rounds, period=1, gap=gap, variance=variance, change_variance=0.0
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse fewer than three rounds, and unknown smoothness where a step size has to be made."""
        self._check_rounds(rounds)
        self._step(problem)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point, or a public random one."""
        return spider(
            ask,
            w,
            rounds=rounds,
            period=2,
            step_size=self._step(problem),
            lipschitz=problem.radius,
            smoothness=math.inf,
            prox=prox,
            follow=follow,
            kept=picked(self.output, rounds, draw=self.draw),
        )

    def _step(self, problem: Problem) -> float:
        """Return the step size."""
        return 1 / (2 * problem.known_smoothness) if self.step_size is None else self.step_size

    @staticmethod
    def _check_rounds(rounds: int) -> None:
        """Refuse what is no turn and a further gradient."""
        if rounds < 3:
            raise ParameterError(f"rounds must be at least 3 for fed-spider, got {rounds!r}.")
