"""SGD in one pass over gradients of heavy tails, for smooth and strongly convex expected losses.

Source: Lowy (2023), Algorithms 27 and 28, Theorem 61; steps and weights after Stich (2019).
"""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.federation import Ask
from tacit.learning.algorithms.base import (
    Convexity,
    Follow,
    Problem,
    check_optional,
    check_strong_convexity,
)
from tacit.learning.algorithms.heavy_tails import (
    ClippedOnePass,
    balanced,
    bias_at,
    length_of,
    noise_at_one,
    open_clip,
    stated,
)
from tacit.means.moments import ClipMethod
from tacit.numerics import Array, Regularizer, RunningAverage, stich_schedule

__all__ = ["ClippedSGD", "clipped_sgd", "clipped_sgd_bound"]


class ClippedSGD(ClippedOnePass, frozen=True, kw_only=True, tag="clipped-sgd"):
    """One pass of SGD on clipped gradients of heavy tails, strongly convex (Lowy 2023, Algorithm 27).

    Attributes:
        rounds: Of the run, T + 1 >= 2; in one pass at most the units of the smallest silo. None chooses them.
        batch: Units per round; None is one part of each silo a round.
        smoothness: beta of the expected loss; None takes 2 r / D for the squared loss, and else that of a
            record's loss.
        method: `sharp` constants, or those of the `paper`.
        mu: Strong convexity of the expected loss, in (0, beta]; None is half that of the regulariser, and
            without a squared penalty beta / 20, a guess, for which the bound is not proven.
    """

    mu: float | None = None

    needs: ClassVar[Convexity] = "strongly-convex"
    paper: ClassVar[str] = "Lowy and Razaviyayn (2023), heavy tails; Stich (2019)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(mu=self.mu)

    def clip(self, problem: Problem, rounds: int) -> float:
        """Return C: of the least bound, or r (epsilon^2 n^2 / (d T))^(1/(2k)) of the paper."""
        moment, fixed = stated(problem), open_clip(problem)
        if moment is None or fixed is not None:
            return problem.radius if fixed is None else fixed
        rows, last = self.rows(problem, rounds), max(rounds - 1, 1)
        if self.method == "paper":
            whole = rows * rounds * 2 / math.sqrt(noise_at_one(problem, 1))
            return float(min(moment.value * (whole / math.sqrt(last)) ** (1 / moment.order), problem.radius))
        beta = self.beta(problem)
        one, other = (
            clipped_sgd_bound(
                smoothness=beta,
                mu=self._mu(problem),
                last=last,
                distance=0.0,
                variance=v,
                bias=b,
                penalised=self._penalised(problem),
            )
            for v, b in ((1.0, 0.0), (0.0, 1.0))
        )
        return min(balanced(problem, rows, weight=other / one), problem.radius)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return `clipped_sgd_bound`; infinite beyond one pass, and for a single round."""
        if rounds < 2 or self.too_many(problem, rounds):
            return math.inf
        return clipped_sgd_bound(
            smoothness=self.beta(problem),
            mu=self._mu(problem),
            last=rounds - 1,
            distance=problem.diameter,
            variance=problem.variance,
            bias=bias_at(problem, self.clip(problem, rounds), self.method),
            penalised=self._penalised(problem),
            method=self.method,
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown gradients and smoothness, mu above it, one round, and more than a silo has units."""
        length_of(problem)
        self._mu(problem)
        if rounds < 2:
            raise ParameterError(f"rounds must be at least 2 for 'clipped-sgd', got {rounds}.")
        self.check_passes(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the weighted average."""
        return clipped_sgd(
            ask,
            w,
            last=rounds - 1,
            mu=self._mu(problem),
            smoothness=self.beta(problem),
            radius=self.clip(problem, rounds),
            prox=prox,
            follow=follow,
        )

    def _penalised(self, problem: Problem) -> bool:
        """Return whether the convexity that is counted on is that of the regulariser."""
        return self.mu is None and problem.strong_convexity > 0

    def _mu(self, problem: Problem) -> float:
        """Return the strong convexity that steps count on, checked.

        That of a penalty counts by half: it acts where a step ends, not where its gradient is asked.
        """
        beta = self.beta(problem)
        if self.mu is None:
            return min(problem.strong_convexity / 2, beta) or beta / 20
        check_strong_convexity(self.mu, beta)
        return self.mu


def clipped_sgd(
    ask: Ask,
    w: Array,
    *,
    last: int,
    mu: float,
    smoothness: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
) -> Array:
    """Run SGD with steps and weights of `numerics.stich_schedule`, a = mu / 2 (Lowy 2023, Algorithm 27).

    Args:
        ask: Returns the mean clipped gradient at a point.
        w: Start, shape (size,).
        last: T >= 1; there are T + 1 rounds.
        mu: Strong convexity, in (0, beta].
        smoothness: beta.
        radius: C.
        prox: Regulariser or constraint.
        follow: Called after each round.

    Returns:
        The weighted average of w_1..w_(T+1), shape (size,).
    """
    steps, log_weights = stich_schedule(a=mu / 2, g=smoothness, T=last)
    average = RunningAverage()
    for r in range(last + 1):
        (gradient,) = ask(r, {"w": w}, (radius,))
        w = prox(float(steps[r]), w - steps[r] * gradient)
        average = average.add(w, float(log_weights[r]))
        follow(r, w)
    return average.value


def clipped_sgd_bound(
    *,
    smoothness: float,
    mu: float,
    last: int,
    distance: float,
    variance: float,
    bias: float,
    penalised: bool = False,
    method: ClipMethod = "sharp",
) -> float:
    """Return a bound on E F(w) - F* of the average, for gradients with variance V^2 and bias B.

    A projected step eta <= 1/beta has, for Z = |w - w*|^2 in expectation and the excess s behind it,

        s <= (1/eta - mu) Z / 2 - (1/eta - mu/2) Z' / 2 + eta V^2 + B^2 / mu,

    from smoothness, strong convexity, <b, w' - w*> <= B^2/mu + mu Z'/4, and since the noise moves w' by at
    most eta times its norm. With the weights of the schedule the distances telescope. Before the weights
    begin, s >= 0 brings Z down to (1 - mu eta / 2) Z + (2 eta^2 V^2 + 2 eta B^2 / mu) / (1 - mu eta / 2).
    With a penalty of strong convexity 2 mu in place of the loss's own, 1/eta stands for 1/eta - mu, and 1/eta
    + mu for 1/eta - mu/2; the rest is the same.
    The paper: 32 beta D^2 e^(-T mu / (4 beta)) + 72 V^2 / (mu T) + 2 B^2 / mu.

    Args:
        smoothness: beta.
        mu: Strong convexity, in (0, beta].
        last: T >= 1, the number of the last step.
        distance: D >= |w_0 - w*|.
        variance: V^2.
        bias: B.
        penalised: Whether it is a penalty that has strong convexity, 2 mu.
        method: Which constants.

    Reference:
        Lowy (2023), Proposition 174; docs/theory/heavy-tailed-training.md.
    """
    check_positive("mu", mu)
    check_strong_convexity(mu, smoothness)
    check_count("last", last)
    if method == "paper":
        kept = math.exp(-last * mu / (4 * smoothness))
        return 32 * smoothness * distance**2 * kept + 72 * variance / (mu * last) + 2 * bias**2 / mu
    steps, log_weights = stich_schedule(a=mu / 2, g=smoothness, T=last)
    weights = np.exp(log_weights - log_weights.max())
    first, eta = int(np.flatnonzero(weights)[0]), 1 / smoothness
    contraction = 1 - mu * eta / 2
    kept = contraction**first
    added = 2 * eta * (eta * variance + bias**2 / mu) / contraction
    squared = kept * distance**2 + added * (1 - kept) / (mu * eta / 2)
    own = 0.0 if penalised else mu
    start = weights[first] * max(1 / float(steps[first]) - own, 0.0) * squared / 2
    return float((start + variance * (weights @ steps)) / weights.sum() + bias**2 / mu)
