"""Proximal SGD in one pass over gradients of heavy tails, for losses that need not be convex.

Source: Lowy (2023), Algorithms 29 and 30, Theorem 63; the loop is that of `prox_sgd.prox_sgd`.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import check_non_negative, check_positive
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
from tacit.learning.algorithms.prox_sgd import guessed_mu, prox_sgd
from tacit.means.moments import ClipMethod
from tacit.numerics import Array, Regularizer

__all__ = ["ClippedProximalSGD", "clipped_prox_sgd_bound"]


class ClippedProximalSGD(ClippedOnePass, frozen=True, kw_only=True, tag="clipped-prox-sgd"):
    """One pass of proximal SGD on clipped gradients of heavy tails, proximal-PL (Lowy 2023, Algorithm 29).

    Attributes:
        rounds: T, in one pass at most the units of the smallest silo; None chooses it.
        batch: Units per round; None is one T-th of each silo.
        smoothness: beta of the expected loss; None takes 2 r / D for the squared loss, and else that of a
            record's loss.
        method: `sharp` constants, or those of the `paper`.
        mu: Proximal-PL constant; None is as for `prox-sgd`.
        gap: Delta, a public bound on F(w_0) - F*; None takes min(beta D^2 / 2, r D).
    """

    mu: float | None = None
    gap: float | None = None

    needs: ClassVar[Convexity] = "prox-pl"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(mu=self.mu, gap=self.gap)

    def clip(self, problem: Problem, rounds: int) -> float:
        """Return C: of least squared bias and noise, or r (epsilon^2 n^2 / (d T^2))^(1/(2k)) of the paper."""
        moment, fixed = stated(problem), open_clip(problem)
        if moment is None or fixed is not None:
            return problem.radius if fixed is None else fixed
        rows = self.rows(problem, rounds)
        if self.method == "paper":
            whole = 2 * rows / math.sqrt(noise_at_one(problem, 1))
            return float(min(moment.value * whole ** (1 / moment.order), problem.radius))
        return min(balanced(problem, rows), problem.radius)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return `clipped_prox_sgd_bound`; infinite beyond one pass."""
        if self.too_many(problem, rounds):
            return math.inf
        beta = self.beta(problem)
        distance = problem.diameter
        gap = min(beta * distance**2 / 2, length_of(problem) * distance) if self.gap is None else self.gap
        return clipped_prox_sgd_bound(
            smoothness=beta,
            mu=guessed_mu(self.mu, problem, smoothness=beta),
            rounds=rounds,
            gap=gap,
            variance=problem.variance,
            bias=bias_at(problem, self.clip(problem, rounds), self.method),
            method=self.method,
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown gradients and smoothness, mu above it, and more rounds than a silo has units."""
        length_of(problem)
        guessed_mu(self.mu, problem, smoothness=self.beta(problem))
        self.check_passes(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point."""
        return prox_sgd(
            ask,
            w,
            rounds=rounds,
            step_size=1 / (2 * self.beta(problem)),
            radius=self.clip(problem, rounds),
            prox=prox,
            follow=follow,
        )


def clipped_prox_sgd_bound(
    *,
    smoothness: float,
    mu: float,
    rounds: int,
    gap: float,
    variance: float,
    bias: float,
    method: ClipMethod = "sharp",
) -> float:
    """Return a bound on E F(w_T) - F* with steps 1/(2 beta), for gradients with variance V^2 and bias B.

    q^T Delta + (1 - q^T) (B^2 + V^2) / (2 mu) with q = 1 - mu / (2 beta): the minimum of the step's model,
    which is 2 beta-strongly convex, is at most -mu / (2 beta) times the gap, and an error e of the gradient
    raises the model at the step by at most |e|^2 / (4 beta). The paper: q^T Delta + 4 (B^2 + V^2) / mu.

    Args:
        smoothness: beta.
        mu: Proximal-PL constant, in (0, beta].
        rounds: T.
        gap: Delta >= F(w_0) - F*.
        variance: V^2.
        bias: B.
        method: Which constants.

    Reference:
        Lowy (2023), Proposition 177; docs/theory/heavy-tailed-training.md.
    """
    check_positive("mu", mu)
    check_strong_convexity(mu, smoothness)
    check_non_negative("gap", gap)
    kept, squared = (1 - mu / (2 * smoothness)) ** rounds, bias**2 + variance
    if method == "paper":
        return kept * gap + 4 * squared / mu
    return kept * gap + (1 - kept) * squared / (2 * mu)
