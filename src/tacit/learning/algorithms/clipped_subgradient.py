"""Noisy clipped subgradient descent over gradients of heavy tails, for losses that need not be smooth.

Source: Lowy (2023), Algorithm 6 and Lemma 51.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import ClassVar

from tacit.errors import ParameterError, check_choice, check_non_negative, check_positive
from tacit.federation import Ask, Batch, Full, Step
from tacit.learning.algorithms.base import Follow, Kinds, Method, Problem, check_optional
from tacit.learning.algorithms.heavy_tails import (
    CLIP_METHODS,
    balanced,
    bias_at,
    length_of,
    linear_clip,
    noise_at_one,
    open_clip,
    stated,
    variance_at,
)
from tacit.means.moments import ClipMethod
from tacit.numerics import Array, Regularizer, RunningAverage

__all__ = ["ClippedSubgradient", "clipped_subgradient", "regularized_distance_bound"]


class ClippedSubgradient(Method, frozen=True, kw_only=True, tag="clipped-subgradient"):
    """Subgradient descent on clipped gradients of heavy tails, rough losses (Lowy 2023, Algorithm 6).

    Attributes:
        rounds: T; None chooses it.
        batch: Units per round.
        step_size: eta, at most 2 / pull; None is D / (G sqrt(T)) without a pull, where G^2 is the second
            moment of a round, and with one the least of the bound.
        pull: lambda >= 0 of (lambda / 2) |w - w_0|^2, added to the objective and never clipped.
        average: Whether the average of the points that were asked at is returned, and not the last point;
            None averages without a pull.
        method: `sharp` constants, or those of the `paper`.
    """

    batch: Batch = Full()
    step_size: float | None = None
    pull: float = 0.0
    average: bool | None = None
    method: ClipMethod = "sharp"

    clip_share: ClassVar[float] = 1.0
    chooses_clip: ClassVar[bool] = True
    paper: ClassVar[str] = "Lowy and Razaviyayn (2023), heavy tails"
    caveat: ClassVar[str] = (
        "it holds as far as the stated moment and diameter do, with the supremum over points inside"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)
        check_non_negative("pull", self.pull)
        check_choice("method", self.method, CLIP_METHODS)
        _check_step(self.step_size, self.pull)

    def clip(self, problem: Problem, rounds: int) -> float:
        """Return C: of the least bound, or r (epsilon n / sqrt(d T))^(1/k) for the paper's noise."""
        moment, fixed = stated(problem), open_clip(problem)
        if moment is None or fixed is not None:
            return problem.radius if fixed is None else fixed
        rows = self._rows(problem)
        noise = noise_at_one(problem, rows)
        if self.method == "paper":
            return float(min(moment.value * (2 / math.sqrt(noise)) ** (1 / moment.order), problem.radius))
        if self.pull > 0:  # (eta / lambda) V^2 + B^2 / lambda^2
            rate = self.pull * self._step(problem, rounds)
            return min(balanced(problem, rows, weight=1 / rate), problem.radius)

        def slope(clip: float) -> float:
            """Of G / sqrt(T), the bound of the default step over D."""
            return noise / math.sqrt((variance_at(problem, clip) + noise * clip**2) * rounds)

        return linear_clip(
            moment, first=balanced(problem, rows), most=problem.radius, weight=1.0, slope=slope
        )

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for mean clipped gradients in all rounds."""
        measure = problem.measure("gradient", batch=self.batch, max_radius=self.clip(problem, rounds))
        return ((Step(measures=(measure,), batch=self.batch), rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2/(2 eta T) + eta G^2/2 + B D of the average, or that of the pull's minimum for the last.

        With a pull, the last point is at most sqrt(Z) from the minimum of the pulled objective, Z being
        `regularized_distance_bound`: r sqrt(Z) + lambda D^2 / 2. It is about the objective that batches are
        drawn from. Without a pull, the last point has no bound, nor with one the average.
        """
        r, distance = length_of(problem), problem.diameter
        bias = bias_at(problem, self.clip(problem, rounds), self.method)
        eta = self._step(problem, rounds)
        if self._averages != (self.pull == 0):
            return math.inf
        if self.pull == 0:
            squared = self._second_moment(problem, rounds)
            return distance**2 / (2 * eta * rounds) + eta * squared / 2 + bias * distance
        close = regularized_distance_bound(
            pull=self.pull,
            step_size=eta,
            rounds=rounds,
            start=distance,
            length=r,
            diameter=distance,
            variance=problem.variance,
            bias=bias,
            method=self.method,
        )
        return r * math.sqrt(close) + self.pull * distance**2 / 2

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - any number will do
        """Refuse unknown gradients; no smoothness is needed."""
        length_of(problem)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the average, or the last point."""
        last, mean = clipped_subgradient(
            ask,
            w,
            rounds=rounds,
            step_size=self._step(problem, rounds),
            pull=self.pull,
            radius=self.clip(problem, rounds),
            prox=prox,
            follow=follow,
        )
        return mean if self._averages else last

    @property
    def _averages(self) -> bool:
        return self.pull == 0 if self.average is None else self.average

    def _rows(self, problem: Problem) -> float:
        """Return the rows of a mean, about."""
        smallest = min(problem.sizes)
        return max(1.0, problem.rows * self.batch.expected(smallest) / smallest)

    def _second_moment(self, problem: Problem, rounds: int) -> float:
        """Return G^2 of what a round returns."""
        return variance_at(problem, self.clip(problem, rounds)) + problem.variance

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        if self.pull == 0:
            return problem.diameter / math.sqrt(rounds * self._second_moment(problem, rounds))
        # e^(-lambda eta T) comes down to 1 / T^2 of the start, by steps of at most 1 / lambda.
        return min(1.0, max(1.0, 2 * math.log(rounds)) / rounds) / self.pull


def clipped_subgradient(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    step_size: float,
    pull: float,
    radius: float,
    prox: Regularizer,
    follow: Follow,
    first: int = 0,
) -> tuple[Array, Array]:
    """Run subgradient descent from w and pulled to it (Lowy 2023, Algorithm 6).

    Only what is asked was clipped, never the pull.

    Args:
        ask: Returns the mean clipped subgradient at a point.
        w: Start w_0, and centre of the pull, shape (size,).
        rounds: T.
        step_size: eta, at most 2 / lambda.
        pull: lambda >= 0.
        radius: C.
        prox: Constraint W or regulariser.
        follow: Called after each round.
        first: Number of the first round in the plan.

    Returns:
        The last point w_T, and the average of w_0..w_(T-1).

    Raises:
        ParameterError: eta > 2 / lambda.
    """
    _check_step(step_size, pull)
    start, average = w, RunningAverage()
    for r in range(first, first + rounds):
        average = average.add(w)
        at: Mapping[str, Array] = {"w": w}
        (gradient,) = ask(r, dict(at), (radius,))
        w = prox(step_size, w - step_size * (gradient + pull * (w - start)))
        follow(r, w)
    return w, average.value


def regularized_distance_bound(
    *,
    pull: float,
    step_size: float,
    rounds: int,
    start: float,
    length: float,
    diameter: float,
    variance: float,
    bias: float,
    method: ClipMethod = "sharp",
) -> float:
    """Return a bound on E |w_T - w^|^2, w^ the minimum of the mean loss pulled to w_0, in W.

    For eta <= 1/lambda a step brings Z = E |w - w^|^2 to at most (1 - lambda eta) Z + eta B^2 / lambda +
    eta^2 (2 r^2 + 2 lambda^2 D^2 + V^2): the pulled objective is lambda-strongly convex, and
    2 <b, w - w^> <= B^2 / lambda + lambda |w - w^|^2. So

        e^(-lambda eta T) D_0^2 + (eta / lambda) (2 r^2 + 2 lambda^2 D^2 + V^2) + B^2 / lambda^2.

    The paper, for eta <= 2/lambda: e^(-lambda eta T / 2) D_0^2 + (8 eta / lambda) (r^2 + lambda^2 D^2 + V^2)
    + 20 B^2 / lambda^2. The `sharp` form falls back on it for eta > 1/lambda.

    Args:
        pull: lambda > 0.
        step_size: eta <= 2 / lambda.
        rounds: T.
        start: D_0 >= |w_0 - w^|.
        length: r, bounding the root of the expected squared norm of the mean of subgradients.
        diameter: D of W.
        variance: V^2 of the noise.
        bias: B.
        method: Which constants.

    Raises:
        ParameterError: lambda is not > 0, or eta > 2 / lambda.

    Reference:
        Lowy (2023), Lemmas 51, 158 and 159.
    """
    check_positive("pull", pull)
    check_positive("step_size", step_size)
    _check_step(step_size, pull)
    whole, rate = variance + (pull * diameter) ** 2 + length**2, pull * step_size
    if method == "paper" or rate > 1:
        kept = math.exp(-rate * rounds / 2) * start**2
        return kept + 8 * step_size / pull * whole + 20 * (bias / pull) ** 2
    kept = (1 - rate) ** rounds * start**2
    return kept + step_size / pull * (2 * whole - variance) + (bias / pull) ** 2


def _check_step(step_size: float | None, pull: float) -> None:
    """Refuse steps that overshoot."""
    if step_size is not None and pull > 0 and step_size > 2 / pull:
        raise ParameterError(f"step_size must be at most 2 / pull ({2 / pull!r}), got {step_size!r}.")
