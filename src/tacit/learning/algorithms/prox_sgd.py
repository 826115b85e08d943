"""Proximal SGD in one pass, from the server's side, for losses that need not be convex.

Source: Lowy (2023), Algorithm 20, and Algorithm 21 under shuffle trust.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import ParameterError
from tacit.federation import Ask, Disjoint, Full
from tacit.learning.algorithms.base import (
    Convexity,
    Follow,
    Kinds,
    Method,
    Problem,
    check_optional,
    check_strong_convexity,
)
from tacit.numerics import Array, Regularizer

__all__ = ["NoisyProximalSGD", "guessed_mu", "inexact_descent_bound", "prox_sgd", "starting_gap"]


class NoisyProximalSGD(Method, frozen=True, kw_only=True, tag="prox-sgd"):
    """One pass of proximal SGD with steps 1/(2 beta), for proximal-PL losses (Lowy 2023, Algorithm 20).

    Attributes:
        rounds: R, in one pass at most the units of the smallest silo; None chooses it.
        batch: Units per round; None is one R-th of each silo, and full batches make no pass: all are asked in
            every round.
        mu: Proximal-PL constant that the choice of rounds counts on; None is beta m / (beta + m) for a
            regulariser of strong convexity m > 0, which is public. Losses of linear models have none of their
            own: without a squared penalty None is beta / 20, a guess, and the bound is not proven.
        gap: Delta, a public bound on F(w_0) - F*; None takes min(beta D^2 / 2, L D).
    """

    batch: Full | Disjoint | None = None
    mu: float | None = None
    gap: float | None = None

    needs: ClassVar[Convexity] = "prox-pl"
    composite: ClassVar[bool] = True
    paper: ClassVar[str] = "Lowy, Ghafelebashi and Razaviyayn (2023)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(mu=self.mu, gap=self.gap)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients of disjoint batches in all rounds."""
        return problem.gradients(rounds, Disjoint(rate=1 / rounds) if self.batch is None else self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return Delta q^R + (1 - q^R) V^2 / mu with q = 1 - mu / (2 beta); infinite beyond one pass.

        A step with an unbiased gradient of expected squared error V^2 brings the expected gap from g to at
        most q g + V^2 / (2 beta): by smoothness, and since the minimiser of the model with the exact
        gradient does not know the error (docs/theory/optimisers.md). Lowy (2023), (B.47), has other
        constants, which do not follow.
        """
        if self._too_many(problem, rounds):
            return math.inf
        mu = guessed_mu(self.mu, problem)
        kept = (1 - mu / (2 * problem.known_smoothness)) ** rounds
        return starting_gap(self.gap, problem) * kept + (1 - kept) * problem.variance / mu

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness, mu above it, and more rounds than a silo has units."""
        guessed_mu(self.mu, problem)
        if self._too_many(problem, rounds):
            raise ParameterError(
                f"rounds must be at most the {min(problem.sizes)} units of the smallest silo, got {rounds}."
            )

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point."""
        return prox_sgd(
            ask,
            w,
            rounds=rounds,
            step_size=1 / (2 * problem.known_smoothness),
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )

    def _too_many(self, problem: Problem, rounds: int) -> bool:
        """Return whether one pass has no unit for every round."""
        return not isinstance(self.batch, Full) and rounds > min(problem.sizes)


def prox_sgd(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    step_size: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
) -> Array:
    """Run (noisy) proximal SGD (Lowy 2023, Algorithm 20).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        step_size: eta.
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint; stays on the server.
        follow: Called after each round.

    Returns:
        The last point w_R, shape (size,).
    """
    for r in range(rounds):
        (gradient,) = ask(r, {"w": w}, (radius,))
        w = prox(step_size, w - step_size * gradient)
        follow(r, w)
    return w


def guessed_mu(mu: float | None, problem: Problem, *, smoothness: float | None = None) -> float:
    """Return the proximal-PL constant that is counted on, checked; `smoothness` None is that of the problem.

    Where none is given, it is beta m / (beta + m) for a convex loss and a regulariser of strong convexity m
    (docs/theory/optimisers.md), and without one beta / 20.
    """
    beta, m = problem.known_smoothness if smoothness is None else smoothness, problem.strong_convexity
    if mu is None:
        return beta * m / (beta + m) if m > 0 else beta / 20
    check_strong_convexity(mu, beta)
    return mu


def starting_gap(gap: float | None, problem: Problem, *, smoothness: float | None = None) -> float:
    """Return a bound on F(w_0) - F*: the given one, or min(beta D^2 / 2, L D)."""
    if gap is not None:
        return gap
    beta, distance = problem.known_smoothness if smoothness is None else smoothness, problem.diameter
    return min(beta * distance**2 / 2, problem.radius * distance)


def inexact_descent_bound(
    *, step_size: float, smoothness: float, mu: float, rounds: int, gap: float, variance: float, average: bool
) -> float:
    """Return a bound on E F - F* after proximal steps along gradients with any errors (proximal-PL losses).

    A step eta < 1 / beta brings the gap from g to at most q g + (eta / 2)(1 + 1 / (1 - eta beta)) |error|^2,
    with q = 1 - eta mu / 2 (docs/theory/optimisers.md). The errors need not be unbiased, so that what an
    epoch has in common is covered.

    Args:
        step_size: eta, below 1 / beta.
        smoothness: beta.
        mu: Proximal-PL constant.
        rounds: Steps R.
        gap: Delta >= F(w_0) - F*.
        variance: Bound on the expected squared error of what is stepped along.
        average: Whether the point is a uniformly random one of w_1..w_R, not the last.
    """
    q = 1 - step_size * mu / 2
    kept = q * (1 - q**rounds) / (rounds * (1 - q)) if average else q**rounds
    return gap * kept + (1 + 1 / (1 - step_size * smoothness)) * variance / mu
