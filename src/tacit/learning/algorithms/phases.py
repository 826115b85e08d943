"""Phases of a convex method, each from a shorter distance, for strongly convex objectives.

Source: Cheu, Joseph, Mao and Peng (2022), Theorem 4.8 (reduction of strongly convex to convex).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

from tacit.errors import ParameterError, check_positive
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.accelerated import ac_sa, convex_nu, excess_bound
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
from tacit.learning.algorithms.one_pass import tuned_batch
from tacit.numerics import Array, Regularizer

__all__ = ["Phase", "PhasedAcceleratedSGD", "phases"]


class PhasedAcceleratedSGD(Method, frozen=True, kw_only=True, tag="phases"):
    """AC-SA in few phases, each from a shorter distance (Cheu, Joseph, Mao and Peng 2022, Theorem 4.8).

    Attributes:
        mu: Strong convexity that the phases count on, in (0, beta]; None is that of the regulariser, or
            without a squared penalty 1e-3, a guess, for which the bound is not proven.
        rounds: Rounds of all phases; None chooses them.
        batch: Units per round; with `Disjoint`, phases have units of their own. None is one pass in
            batches that `tacit.learning.tuning` sizes.
    """

    mu: float | None = None
    batch: Batch | None = Full()

    paper: ClassVar[str] = "Cheu, Joseph, Mao and Peng (2022)"
    needs: ClassVar[Convexity] = "strongly-convex"
    composite: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(mu=self.mu)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds of all phases: with disjoint batches, they cost one round."""
        return problem.gradients(rounds, tuned_batch(self.batch, problem, accelerated=True))

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of the last phase."""
        return self._phases(problem, rounds)[-1].bound

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse mu above the smoothness, unknown smoothness, and fewer rounds than phases."""
        self._phases(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run all phases on an `ask`, each from where the one before ended."""
        done = 0
        for phase in self._phases(problem, rounds):
            w = ac_sa(
                ask,
                w,
                rounds=phase.rounds,
                nu=phase.nu,
                mu=0.0,
                radius=problem.radius,
                prox=prox,
                follow=follow,
                first=done,
            )
            done += phase.rounds
        return w

    def _phases(self, problem: Problem, rounds: int) -> tuple[Phase, ...]:
        """Return the phases of a run."""
        return phases(
            rounds=rounds,
            rows=problem.rows,
            smoothness=problem.known_smoothness,
            mu=counted_convexity(self.mu, problem),
            radius=problem.radius,
            diameter=problem.diameter,
            noise_std=problem.noise_std,
        )


@dataclass(frozen=True)
class Phase:
    """One phase: rounds of AC-SA with this nu, from a distance to the solution, to a bound on the excess."""

    rounds: int
    nu: float
    distance: float
    bound: float


def phases(
    *,
    rounds: int,
    rows: int,
    smoothness: float,
    mu: float,
    radius: float,
    diameter: float,
    noise_std: float,
) -> tuple[Phase, ...]:
    """Return max(1, ceil(log2 log2 n)) phases of about the same length.

    D_1 = min(D, 2 L/mu) and Delta_1 = 2 L^2/mu. A phase brings the expected excess to
    Delta' = min(Delta, its bound), and then E|w - w*|^2 <= 2 Delta'/mu, the next D^2.
    That takes a method whose bound asks for the distance at the start only: AC-SA with steps of
    `convex_nu`, not with Lan's, whose bound asks for the diameter of the whole domain.

    Args:
        rounds: Of all phases; the last ones take what does not divide.
        rows: n, units of all silos.
        smoothness: beta.
        mu: Strong convexity, in (0, beta].
        radius: L.
        diameter: D, at least the distance from the start to the solution.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.

    Raises:
        ParameterError: mu outside (0, beta], or fewer rounds than phases.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Theorem 4.8.
    """
    check_positive("mu", mu)
    check_strong_convexity(mu, smoothness)
    count = max(1, math.ceil(math.log2(max(math.log2(max(rows, 2)), 1.0))))
    if rounds < count:
        raise ParameterError(f"rounds must be at least {count}, one for each phase, got {rounds}.")
    ends = [rounds * k // count for k in range(count + 1)]
    distance, excess = min(diameter, 2 * radius / mu), 2 * radius**2 / mu
    planned: list[Phase] = []
    for start, end in itertools.pairwise(ends):
        length = end - start
        nu = convex_nu(smoothness=smoothness, noise_std=noise_std, rounds=length, diameter=distance)
        bound = excess_bound(nu=nu, noise_std=noise_std, rounds=length, diameter=distance)
        excess = min(excess, bound)
        planned.append(Phase(length, nu, distance, excess))
        distance = min(distance, math.sqrt(2 * excess / mu))
    return tuple(planned)
