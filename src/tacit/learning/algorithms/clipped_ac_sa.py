"""AC-SA in one pass over gradients of heavy tails, for smooth convex expected losses.

Source: Lowy (2023), Algorithms 8 and 26, Theorem 59; the loop is that of `accelerated.ac_sa`.
"""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.federation import Ask
from tacit.learning.algorithms.accelerated import ac_sa, excess_bound
from tacit.learning.algorithms.base import Follow, Problem, check_optional
from tacit.learning.algorithms.heavy_tails import (
    ClippedOnePass,
    balanced,
    bias_at,
    length_of,
    linear_clip,
    noise_at_one,
    open_clip,
    stated,
)
from tacit.means import clip_variance
from tacit.means.moments import ClipMethod
from tacit.numerics import Array, Regularizer

__all__ = ["ClippedACSA", "clipped_ac_sa_bound", "clipped_ac_sa_nu"]


class ClippedACSA(ClippedOnePass, frozen=True, kw_only=True, tag="clipped-ac-sa"):
    """One pass of AC-SA on clipped gradients of heavy tails, smooth convex (Lowy 2023, Algorithm 8).

    Attributes:
        rounds: T, in one pass at most the units of the smallest silo; None chooses it.
        batch: Units per round; None is one T-th of each silo.
        smoothness: beta of the expected loss; None takes 2 r / D for the squared loss, and else that of a
            record's loss.
        method: `sharp` constants, or those of the `paper`.
        nu: Step parameter, at least 2 beta; None is `clipped_ac_sa_nu`.
    """

    nu: float | None = None

    paper: ClassVar[str] = "Lowy and Razaviyayn (2023), heavy tails; Ghadimi and Lan (2012)"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(nu=self.nu)

    def clip(self, problem: Problem, rounds: int) -> float:
        """Return C: what makes the bound least, or r (epsilon n / sqrt(d T))^(1/k) of the paper."""
        moment, fixed = stated(problem), open_clip(problem)
        if moment is None or fixed is not None:
            return problem.radius if fixed is None else fixed
        s = self.rows(problem, rounds)
        noise = noise_at_one(problem, s)
        if self.method == "paper":
            # The noise there is 2 C T sqrt(d) / (epsilon n).
            return float(
                min(moment.value * (2 * math.sqrt(rounds / noise)) ** (1 / moment.order), problem.radius)
            )

        def slope(clip: float) -> float:
            """Of V^2 (2T + 1) / (6 nu); nu is where it is least, or constant."""
            nu = self._nu(problem, rounds, noise * clip**2 + clip_variance(moment, clip) / s)
            return (2 * rounds + 1) / (6 * nu) * 2 * noise

        return linear_clip(
            moment, first=balanced(problem, s), most=problem.radius, weight=problem.diameter, slope=slope
        )

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return `clipped_ac_sa_bound`; infinite beyond one pass."""
        if self.too_many(problem, rounds):
            return math.inf
        return clipped_ac_sa_bound(
            nu=self._nu(problem, rounds, problem.variance),
            variance=problem.variance,
            bias=self._bias(problem, rounds),
            rounds=rounds,
            diameter=problem.diameter,
            method=self.method,
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown gradients and smoothness, nu below 2 beta, and more rounds than a silo has units."""
        length_of(problem)
        beta = self.beta(problem)
        if self.nu is not None and self.nu < 2 * beta:
            raise ParameterError(f"nu must be at least 2 x smoothness ({2 * beta!r}), got {self.nu!r}.")
        self.check_passes(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the aggregate point."""
        return ac_sa(
            ask,
            w,
            rounds=rounds,
            nu=self._nu(problem, rounds, problem.variance),
            mu=0.0,
            radius=self.clip(problem, rounds),
            prox=prox,
            follow=follow,
        )

    def _bias(self, problem: Problem, rounds: int) -> float:
        """Return B."""
        return bias_at(problem, self.clip(problem, rounds), self.method)

    def _nu(self, problem: Problem, rounds: int, variance: float) -> float:
        """Return the step parameter."""
        if self.nu is not None:
            return self.nu
        return clipped_ac_sa_nu(
            smoothness=self.beta(problem),
            variance=variance,
            rounds=rounds,
            diameter=problem.diameter,
            method=self.method,
        )


def clipped_ac_sa_nu(
    *, smoothness: float, variance: float, rounds: int, diameter: float, method: ClipMethod = "sharp"
) -> float:
    """Return nu >= 2 beta with the least `clipped_ac_sa_bound`; T^(3/2) V / D, if that is more, in the paper.

    Args:
        smoothness: beta of the expected loss, > 0.
        variance: V^2 of a mean gradient about its own expectation; the paper adds B^2.
        rounds: T.
        diameter: D, > 0.
        method: Which constants.

    Example:
        >>> nu = clipped_ac_sa_nu(smoothness=10.0, variance=1.373, rounds=12, diameter=2.0, method="paper")
        >>> round(nu, 2)
        24.35
    """
    check_positive("smoothness", smoothness)
    check_positive("diameter", diameter)
    check_non_negative("variance", variance)
    cubic = rounds**3 if method == "paper" else rounds * (rounds + 1) * (2 * rounds + 1) / 12
    return max(2 * smoothness, math.sqrt(variance * cubic) / diameter)


def clipped_ac_sa_bound(
    *,
    nu: float,
    variance: float,
    bias: float,
    rounds: int,
    diameter: float,
    method: ClipMethod = "sharp",
) -> float:
    """Return a bound on E F(w^ag_T) - F* for convex F, nu >= 2 beta, and gradients of bias B.

    B D + 2 nu D^2 / (T (T+1)) + (V^2 + B^2) (2T+1) / (6 nu): errors e_t of gradients cost at most
    <e_t, w* - w_(t-1)>, whose mean is B D on a domain of diameter D, and |e_t|^2 as in
    `accelerated.excess_bound`. The paper has 4 nu D^2 / (T (T+1)) + 4 (V^2 + B^2) (T+2) / (3 nu) + B D.

    Args:
        nu: Step parameter.
        variance: V^2 of a mean gradient about its own expectation.
        bias: B.
        rounds: T.
        diameter: D, of the domain, and at least |w_0 - w*|.
        method: Which constants.

    Reference:
        Lowy (2023), Proposition 172.
    """
    squared = variance + bias**2
    if method == "paper":
        first = 4 * nu * diameter**2 / (rounds * (rounds + 1))
        return first + 4 * squared * (rounds + 2) / (3 * nu) + bias * diameter
    bare = excess_bound(nu=nu, noise_std=math.sqrt(squared), rounds=rounds, diameter=diameter)
    return bare + bias * diameter
