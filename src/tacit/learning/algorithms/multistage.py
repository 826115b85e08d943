"""AC-SA in stages, from the server's side, for strongly convex objectives.

Source: Lowy (2023), Appendix B.1.6.1, after Ghadimi and Lan (2013), "Optimal stochastic approximation
algorithms for strongly convex stochastic composite optimization II", SIAM J. Optim. 23(4).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.accelerated import ac_sa
from tacit.learning.algorithms.base import (
    Convexity,
    Follow,
    Kinds,
    Method,
    Problem,
    check_optional,
    check_strong_convexity,
    counted_convexity,
)
from tacit.numerics import Array, Regularizer

__all__ = ["MultiStageAcceleratedNoisyMinibatchSGD", "Stage", "stage", "stages"]


class MultiStageAcceleratedNoisyMinibatchSGD(Method, frozen=True, kw_only=True, tag="multistage"):
    """AC-SA in stages, for strongly convex objectives (Lowy 2023, Appendix B.1.6.1).

    Attributes:
        mu: Strong convexity of the mean loss that steps and stages count on, in (0, beta]. None is that of
            the regulariser, which is public. Losses of linear models have none of their own: without a
            squared penalty None counts on 1e-3, a guess, and the bound is not proven.
        gap: Delta, a public bound on F(w_0) - F*; None takes beta D^2 / 2.
        rounds: R in all; None chooses it.
        batch: Units per round.
    """

    mu: float | None = None
    gap: float | None = None
    batch: Batch = Full()

    paper: ClassVar[str] = "Lowy and Razaviyayn (2023); Ghadimi and Lan (2013)"
    needs: ClassVar[Convexity] = "strongly-convex"
    composite: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(mu=self.mu, gap=self.gap)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds."""
        return problem.gradients(rounds, self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return Delta 2^-U for the U stages that fit; infinity if none does."""
        fitting = len(stages(**self._facts(problem), rounds=rounds))
        return self._facts(problem)["gap"] * 2.0**-fitting if fitting else math.inf

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse mu above the smoothness, unknown smoothness, and rounds that hold not even one stage."""
        needed = stage(1, **self._facts(problem)).rounds
        if rounds < needed:
            raise ParameterError(f"rounds must be at least {needed} for the first stage, got {rounds}.")

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run all stages that fit on an `ask`; rounds that no stage fits into are not asked."""
        done = 0
        for part in stages(**self._facts(problem), rounds=rounds):
            w = ac_sa(
                ask,
                w,
                rounds=part.rounds,
                nu=part.nu,
                mu=self._steps_mu(problem),
                radius=problem.radius,
                prox=prox,
                follow=follow,
                first=done,
            )
            done += part.rounds
        return w

    def _facts(self, problem: Problem) -> dict[str, float]:
        """Return what stages are made from."""
        beta = problem.known_smoothness
        gap = beta * problem.diameter**2 / 2 if self.gap is None else self.gap
        return {
            "smoothness": beta,
            "mu": counted_convexity(self.mu, problem),
            "gap": gap,
            "noise_std": problem.noise_std,
        }

    def _steps_mu(self, problem: Problem) -> float:
        """Return the strong convexity that steps count on: of the mean loss, not of what the prox step has.

        A stage is as good with steps for none: its bound is 2 nu D^2 / (R (R+1)) and noise, for the squared
        distance D^2 <= 2 gap / mu of its start (docs/theory/optimisers.md).
        """
        return 0.0 if self.mu is None and problem.strong_convexity > 0 else self._facts(problem)["mu"]


@dataclass(frozen=True)
class Stage:
    """One stage of the multi-stage method: so many rounds with this nu."""

    rounds: int
    nu: float


def stage(k: int, *, smoothness: float, mu: float, gap: float, noise_std: float) -> Stage:
    """Return stage k = 1, 2, ... of multi-stage AC-SA, which brings the bound on the gap to Delta 2^-k.

    Args:
        k: Number of the stage.
        smoothness: beta.
        mu: Strong convexity, 0 < mu <= beta.
        gap: Delta, a bound on F(w_0) - F*.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.

    Raises:
        ParameterError: mu outside (0, beta], or gap not > 0.

    Reference:
        Lowy (2023), Appendix B.1.6.1, after Ghadimi and Lan (2013), SIAM J. Optim. 23(4), Proposition 7.
    """
    check_positive("gap", gap)
    check_strong_convexity(mu, smoothness)
    check_non_negative("noise_std", noise_std)
    check_positive("mu", mu)
    noisy = 128 * noise_std**2 / (3 * mu * gap * 2.0 ** -(k + 1))
    rounds = math.ceil(max(4 * math.sqrt(2 * smoothness / mu), noisy))
    cubic = rounds * (rounds + 1) * (rounds + 2)
    nu = math.sqrt(mu * noise_std**2 / (3 * gap * 2.0 ** -(k - 1)) * cubic)
    return Stage(rounds, max(2 * smoothness, nu))


def stages(*, smoothness: float, mu: float, gap: float, noise_std: float, rounds: int) -> tuple[Stage, ...]:
    """Return the stages that fit into `rounds`, the first ones first; none if the first is longer.

    Args:
        smoothness: beta.
        mu: Strong convexity, 0 < mu <= beta.
        gap: Delta, a bound on F(w_0) - F*.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: How many rounds there are in all.

    Raises:
        ParameterError: mu outside (0, beta], or gap not > 0.
    """
    planned: list[Stage] = []
    left = rounds
    # Beyond 2^-1000 of the first gap, float64 has nothing to halve.
    for k in range(1, 1000):
        following = stage(k, smoothness=smoothness, mu=mu, gap=gap, noise_std=noise_std)
        if following.rounds > left:
            break
        planned.append(following)
        left -= following.rounds
    return tuple(planned)
