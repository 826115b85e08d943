"""AC-SA with Lan's step sizes, from the server's side: long steps at the start, shorter ones with noise.

Source: Cheu, Joseph, Mao and Peng (2022), Algorithm 4, with the step sizes of Lan (2012), "An optimal method
for stochastic composite optimization", Math. Program. 133. The printed ones diverge (docs/errata.md).
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import check_count, check_non_negative, check_positive
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem
from tacit.learning.algorithms.one_pass import tuned_batch
from tacit.numerics import Array, Regularizer

__all__ = ["LanAcceleratedSGD", "lan_ac_sa", "lan_bound"]


class LanAcceleratedSGD(Method, frozen=True, kw_only=True, tag="lan"):
    """AC-SA with Lan's step sizes (Cheu, Joseph, Mao and Peng 2022, Algorithm 4, mended).

    Attributes:
        rounds: T; None chooses it.
        batch: Units per round; `Disjoint` is the one-pass method, each unit in one round only. None is one
            pass in batches that `tacit.learning.tuning` sizes.
    """

    batch: Batch | None = Full()

    paper: ClassVar[str] = "Cheu, Joseph, Mao and Peng (2022); Lan (2012)"
    composite: ClassVar[bool] = True

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds."""
        return problem.gradients(rounds, tuned_batch(self.batch, problem, accelerated=True))

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return `lan_bound` of the problem, for a domain of the diameter D."""
        return lan_bound(
            smoothness=problem.known_smoothness,
            noise_std=problem.noise_std,
            rounds=rounds,
            diameter=problem.diameter,
        )

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - as others do
        """Refuse unknown smoothness: all step sizes are made from it."""
        _ = problem.known_smoothness

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the aggregate point."""
        return lan_ac_sa(
            ask,
            w,
            rounds=rounds,
            smoothness=problem.known_smoothness,
            noise_std=problem.noise_std,
            diameter=problem.diameter,
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )


def lan_ac_sa(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    smoothness: float,
    noise_std: float,
    diameter: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
    first: int = 0,
) -> Array:
    """Run AC-SA with alpha_t = 2/(t+1) and L_t = (4 beta + (T+2)^(3/2) V/D)/(t+1).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: T.
        smoothness: beta.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        diameter: D of the domain.
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint.
        follow: Called after each round with the aggregate point.
        first: Number of the first round in the plan.

    Returns:
        The aggregate point, shape (size,).
    """
    scale, aggregate = _scale(smoothness, noise_std, rounds, diameter), w
    for t in range(1, rounds + 1):
        a, step = 2 / (t + 1), (t + 1) / scale
        middle = a * w + (1 - a) * aggregate
        (gradient,) = ask(first + t - 1, {"w": middle}, (radius,))
        w = prox(step, w - step * gradient)
        aggregate = a * w + (1 - a) * aggregate
        follow(first + t - 1, aggregate)
    return aggregate


def lan_bound(*, smoothness: float, noise_std: float, rounds: int, diameter: float) -> float:
    """Return a bound on E F - F* of the aggregate point, for convex F on a domain of diameter D.

    With G = 4 beta + (T+2)^(3/2) V/D it is G D^2/(T+1)^2 + (T+2) V^2/(3 (G - 2 beta)), at most
    4 beta D^2/(T+1)^2 + 2 D V/sqrt(T). The weights of the distances to the solution grow from round to
    round, so all of them have to be at most D, not the first alone.

    Args:
        smoothness: beta, finite, > 0.
        noise_std: V, the root of the expected squared norm of the error of a mean gradient.
        rounds: T.
        diameter: D, at least the distance of any two points of the domain.

    Raises:
        ParameterError: An argument is out of range.

    Reference:
        Ghadimi and Lan (2012), Proposition 4, with eta_t = alpha_t L_t and Gamma_t = 2/(t (t+1)).

    Example:
        >>> lan_bound(smoothness=1.0, noise_std=0.0, rounds=9, diameter=1.0)
        0.04
    """
    scale = _scale(smoothness, noise_std, rounds, diameter)
    noise = (rounds + 2) * noise_std**2 / (3 * (scale - 2 * smoothness))
    return scale * diameter**2 / (rounds + 1) ** 2 + noise


def _scale(smoothness: float, noise_std: float, rounds: int, diameter: float) -> float:
    """Return 4 beta + (T+2)^(3/2) V/D, which is (t+1) L_t."""
    check_count("rounds", rounds)
    check_positive("smoothness", smoothness)
    check_positive("diameter", diameter)
    check_non_negative("noise_std", noise_std)
    return 4 * smoothness + math.sqrt((rounds + 2) ** 3) * noise_std / diameter
