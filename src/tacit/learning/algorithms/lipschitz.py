"""Projected SGD for losses that are Lipschitz and need not be smooth, from the server's side.

Source: Cheu, Joseph, Mao and Peng (2022), Algorithm 3 (P_SGD: disjoint batches) and Algorithm 5 (P_GD: full
ones), with the sign and the step size mended (docs/errata.md).
"""

from __future__ import annotations

import math
from itertools import repeat
from typing import ClassVar

from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.minibatch import minibatch_sgd
from tacit.learning.algorithms.one_pass import tuned_batch
from tacit.numerics import Array, Regularizer

__all__ = ["LipschitzSGD"]


class LipschitzSGD(Method, frozen=True, kw_only=True, tag="p-sgd"):
    """Projected SGD whose steps need no smoothness (Cheu, Joseph, Mao and Peng 2022, Algorithms 3 and 5).

    Attributes:
        rounds: T; None chooses it.
        batch: Units per round; `Disjoint` is P_SGD, `Full` is P_GD. None is one pass in
            batches that `tacit.learning.tuning` sizes.
        step_size: eta; None is D / (G sqrt(T)) with G^2 = L^2 + V^2.
    """

    batch: Batch | None = Full()
    step_size: float | None = None

    paper: ClassVar[str] = "Cheu, Joseph, Mao and Peng (2022)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds."""
        return problem.gradients(rounds, tuned_batch(self.batch, problem, accelerated=False))

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2/(2 eta T) + eta (L^2 + V^2)/2: D G/sqrt(T) with the default step.

        It holds for the objective that batches are drawn from. With full batches that is the mean over the
        records; for the population, smooth losses and eta <= 2/beta, add L^2 T eta/n (uniform stability).
        """
        eta = self._step(problem, rounds)
        return problem.diameter**2 / (2 * eta * rounds) + eta * _second_moment(problem) / 2

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse nothing: a clipped gradient has a bound, and no more is needed."""

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the average of the points that were asked at."""
        return minibatch_sgd(
            ask,
            w,
            rounds=rounds,
            step_size=self._step(problem, rounds),
            radius=problem.radius,
            prox=prox,
            log_weights=repeat(0.0),
            follow=follow,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        return problem.diameter / math.sqrt(rounds * _second_moment(problem))


def _second_moment(problem: Problem) -> float:
    """Return G^2, a bound on the expected squared norm of what a round returns.

    Without noise the radius says nothing. Where a loss has no Lipschitz constant, gradients change by at most
    beta D within D.
    """
    known = math.isfinite(problem.lipschitz)
    longest = problem.lipschitz if known else problem.smoothness * problem.diameter
    return min(problem.radius, longest) ** 2 + problem.variance
