"""Minibatch SGD, from the server's side: a short loop over `ask`.

Privacy is nowhere in here: clipping, noise, sampling and accounting live behind `ask`, so the same loop is
the private method and its baseline.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import ClassVar

from tacit.errors import check_non_negative, check_probability
from tacit.federation import Ask, Batch, Full
from tacit.learning.algorithms.base import (
    Follow,
    Kinds,
    Method,
    Problem,
    check_optional,
    check_strong_convexity,
)
from tacit.numerics import (
    Array,
    Regularizer,
    RunningAverage,
    strongly_convex_log_weights,
    strongly_convex_schedule,
)

__all__ = ["NoisyMinibatchSGD", "minibatch_sgd"]


class NoisyMinibatchSGD(Method, frozen=True, kw_only=True, tag="minibatch"):
    """Minibatch SGD with clipped, noisy gradients (Lowy 2023, Algorithms 14 and 19).

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round.
        step_size: eta; None is min(1/beta, D / (V sqrt(R))), which minimises the error bound.
        average: Share of the last iterates that are averaged, in (0, 1]; 1 is what the theory averages.
        mu: Strong convexity to count on; > 0 switches to the step and the weights of Lemma 102, and
            `average` has no effect.
    """

    batch: Batch = Full()
    step_size: float | None = None
    average: float = 0.5
    mu: float = 0.0

    paper: ClassVar[str] = "Lowy and Razaviyayn (2023)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)
        check_probability("average", self.average, low_open=True)
        check_non_negative("mu", self.mu)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean gradients in all rounds."""
        return problem.gradients(rounds, self.batch)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2/(eta R) + eta V^2, for eta <= 1/beta and the plain average of w_0..w_{R-1}.

        From E F(w_{r+1}) - F* <= E(|w_r - w*|^2 - |w_{r+1} - w*|^2)/(2 eta) + eta V^2, averaged over r, and
        F(w_0) - F* <= beta D^2 / 2 for the shift by one. Lowy (2023), Lemma 103, has (eta/2)(V^2 +
        L^2) instead, which does not need smoothness. With mu > 0, this is Lemma 102 for the recursion of
        Lemma 103:
        mu D^2 / (2 ((1 - mu eta)^-R - 1)) + eta (V^2 + L^2)/2.
        """
        eta, d2 = self._step(problem, rounds), problem.diameter**2
        if self.mu > 0:
            grown = math.expm1(min(-rounds * math.log1p(-self.mu * eta), 700.0))
            return self.mu * d2 / (2 * grown) + eta * (problem.variance + problem.radius**2) / 2
        return d2 / (eta * rounds) + eta * problem.variance

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse mu above the smoothness, and unknown smoothness where a step size has to be made."""
        self._step(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the averaged parameters."""
        eta = self._step(problem, rounds)
        return minibatch_sgd(
            ask,
            w,
            rounds=rounds,
            step_size=eta,
            radius=problem.radius,
            prox=prox,
            log_weights=self._log_weights(eta, rounds),
            follow=follow,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        if self.mu == 0:
            return problem.plain_step(rounds)
        check_strong_convexity(self.mu, problem.known_smoothness)
        return strongly_convex_schedule(
            a=self.mu,
            g=2 * problem.smoothness,
            r0=problem.diameter**2,
            c=problem.variance + problem.radius**2,
            T=rounds,
        )

    def _log_weights(self, eta: float, rounds: int) -> Iterator[float]:
        """Return ln gamma_r for all rounds."""
        if self.mu > 0:
            return iter(strongly_convex_log_weights(a=self.mu, eta=eta, T=rounds).tolist())
        skipped = min(int(rounds * (1 - self.average)), rounds - 1)
        return iter([-math.inf] * skipped + [0.0] * (rounds - skipped))


def minibatch_sgd(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    step_size: float,
    radius: float,
    prox: Regularizer,
    log_weights: Iterator[float],
    follow: Follow,
) -> Array:
    """Run (noisy) minibatch SGD (Lowy 2023, Algorithm 14).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        step_size: eta.
        radius: Norm bound of a record's gradient.
        prox: Regulariser or constraint; stays on the server.
        log_weights: ln gamma_r for r = 0, 1, ...; -inf leaves an iterate out.
        follow: Called after each round.

    Returns:
        The weighted average of w_0..w_{R-1}, shape (size,).
    """
    average = RunningAverage()
    for r in range(rounds):
        average = average.add(w, next(log_weights))
        (gradient,) = ask(r, {"w": w}, (radius,))
        w = prox(step_size, w - step_size * gradient)
        follow(r, w)
    return average.value
