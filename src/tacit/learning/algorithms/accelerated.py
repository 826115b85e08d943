"""Accelerated stochastic approximation (AC-SA), from the server's side.

Source: Lowy (2023), Algorithm 1, after Ghadimi and Lan (2012), "Optimal stochastic approximation algorithms
for strongly convex stochastic composite optimization I", SIAM J. Optim. 22(4).
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import check_non_negative, check_positive
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.base import (
    Follow,
    Kinds,
    Method,
    Problem,
    check_optional,
    check_strong_convexity,
)
from tacit.numerics import Array, Regularizer

__all__ = ["AcceleratedNoisyMinibatchSGD", "ac_sa", "convex_nu", "excess_bound"]


class AcceleratedNoisyMinibatchSGD(Method, frozen=True, kw_only=True, tag="accelerated"):
    """AC-SA with clipped, noisy gradients (Lowy 2023, Algorithm 1).

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round; `Disjoint` is the one-pass method for heterogeneous silos.
        nu: Step parameter; None is `convex_nu`.
        mu: Strong convexity that the steps count on; at most the smoothness.
    """

    batch: Batch = Full()
    nu: float | None = None
    mu: float = 0.0

    paper: ClassVar[str] = "Lowy and Razaviyayn (2023); Ghadimi and Lan (2012)"
    composite: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(nu=self.nu)
        check_non_negative("mu", self.mu)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds."""
        return problem.gradients(rounds, self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return 2 nu D^2/(R (R+1)) + V^2 (2R+1)/(6 nu), for nu >= 2 beta (`accelerated.excess_bound`)."""
        return excess_bound(
            nu=self._nu(problem, rounds),
            noise_std=problem.noise_std,
            rounds=rounds,
            diameter=problem.diameter,
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse mu above the smoothness, and unknown smoothness where nu has to be made."""
        check_strong_convexity(self.mu, problem.smoothness)
        self._nu(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the aggregate point."""
        return ac_sa(
            ask,
            w,
            rounds=rounds,
            nu=self._nu(problem, rounds),
            mu=self.mu,
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )

    def _nu(self, problem: Problem, rounds: int) -> float:
        """Return the step parameter."""
        if self.nu is not None:
            return self.nu
        return convex_nu(
            smoothness=problem.known_smoothness,
            noise_std=problem.noise_std,
            rounds=rounds,
            diameter=problem.diameter,
        )


def ac_sa(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    nu: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
    mu: float,
    first: int = 0,
) -> Array:
    """Run AC-SA with alpha_r = 2/(r+1) and eta_r = 4 nu / (r (r+1)).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        nu: Step parameter, at least 2 beta for the bound; larger with noise (`convex_nu`).
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint.
        follow: Called after each round with the aggregate point.
        mu: Strong convexity that the steps count on; 0 for none.
        first: Number of the first round in the plan.

    Returns:
        The aggregate point w^ag_R, shape (size,).
    """
    aggregate = w
    for r in range(1, rounds + 1):
        a, eta = 2 / (r + 1), 4 * nu / (r * (r + 1))
        middle = (1 - a) * (mu + eta) * aggregate + a * ((1 - a) * mu + eta) * w
        middle = middle / (eta + (1 - a**2) * mu)
        (gradient,) = ask(first + r - 1, {"w": middle}, (radius,))
        target = a * mu * middle + ((1 - a) * mu + eta) * w - a * gradient
        w = prox(a / (mu + eta), target / (mu + eta))
        aggregate = a * w + (1 - a) * aggregate
        follow(first + r - 1, aggregate)
    return aggregate


def convex_nu(*, smoothness: float, noise_std: float, rounds: int, diameter: float) -> float:
    """Return nu for convex AC-SA: max(2 beta, V sqrt(2 R (R+1) (R+2) / 3) / D).

    It minimises 2 nu D^2 / (R (R+1)) + 4 V^2 (R+2) / (3 nu), the bound behind the lengths of the stages.

    Args:
        smoothness: beta, finite, > 0.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: R.
        diameter: D, about the distance from the start to a solution.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> convex_nu(smoothness=0.25, noise_std=0.0, rounds=100, diameter=1.0)
        0.5
    """
    check_positive("smoothness", smoothness)
    check_positive("diameter", diameter)
    check_non_negative("noise_std", noise_std)
    cubic = math.sqrt(2 * rounds * (rounds + 1) * (rounds + 2) / 3)
    return max(2 * smoothness, noise_std * cubic / diameter)


def excess_bound(*, nu: float, noise_std: float, rounds: int, diameter: float) -> float:
    """Return a bound on E F(w^ag_R) - F(w*) for convex F and nu >= 2 beta.

    2 nu D^2 / (R (R+1)) + V^2 (2R+1) / (6 nu), from

        Gamma_R eta_1 D^2 / 2 + Gamma_R sum_r alpha_r^2 V^2 / (2 Gamma_r (eta_r - beta alpha_r^2))

    with Gamma_r = 2 / (r (r+1)) and eta_r - beta alpha_r^2 >= 2 nu / (r (r+1)).
    Source: Ghadimi and Lan (2012), Propositions 4 and 5; (C.50) of Lowy (2023) without its bias B. A 2
    stands there for the 1/2 before V^2, which is all that max_d alpha <N, d> - c |d|^2 / 2 leaves.

    Args:
        nu: Step parameter.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: R.
        diameter: D >= |w_0 - w*|.
    """
    return 2 * nu * diameter**2 / (rounds * (rounds + 1)) + noise_std**2 * (2 * rounds + 1) / (6 * nu)
