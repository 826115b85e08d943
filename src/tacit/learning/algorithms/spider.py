"""SPIDER, from the server's side: a mean gradient now and then, and how it changed in between.

Source: Lowy (2023), Algorithm 4 ("FedProx-SPIDER") and, under shuffle trust, Algorithm 24, after Fang et al.
(2018), "SPIDER: near-optimal non-convex optimization via stochastic path-integrated differential estimator".
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import ClassVar, Literal

import numpy as np

from tacit.errors import ParameterError, check_choice, check_count, check_positive, check_probability
from tacit.federation import Ask, Batch, Full, Group, Step
from tacit.learning.algorithms.base import (
    GRADIENT,
    Bounded,
    Convexity,
    Follow,
    Kinds,
    MakeStatistic,
    Method,
    Problem,
    check_optional,
)
from tacit.learning.algorithms.prox_sgd import starting_gap
from tacit.learning.algorithms.splits import split_shares
from tacit.learning.difference import RecordDifference, difference_radius
from tacit.numerics import Array, Regularizer
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, calibrate
from tacit.randomness import PublicStream

__all__ = [
    "NoisySpider",
    "Output",
    "SpiderMethod",
    "picked",
    "single_release",
    "spider",
    "stationarity_bound",
]

Output = Literal["last", "random"]
"""Which point is returned: the last, or a uniform one of w_0..w_(R-1), drawn from public randomness."""


class SpiderMethod(Method, frozen=True, kw_only=True):
    """What SPIDER and Fed-SPIDER share: rounds, and the loop.

    Attributes:
        batch: Units per round, fresh in every round.
        step_size: eta; None is 1 / (2 beta).
        split: Share of the privacy of the run, in squares, that goes to gradients; None gives every round the
            same multiple of its sensitivity. Without differences, they get all.
        output: "last", or "random": a uniform one of w_0..w_(R-1), the one that the bound is about.
        draw: Seed of the public draw of "random".
    """

    batch: Batch = Full()
    step_size: float | None = None
    split: float | None = None
    output: Output = "last"
    draw: int = 0

    paper: ClassVar[str] = "Lowy, Ghafelebashi and Razaviyayn (2023)"
    statistics: ClassVar[Mapping[str, MakeStatistic]] = {**GRADIENT, "difference": RecordDifference}
    bounds: ClassVar[Bounded] = "squared gradient"
    needs: ClassVar[Convexity] = "non-convex"
    caveat: ClassVar[str] = "it is for a random point on the way, full batches and all silos"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size)
        if self.split is not None:
            check_probability("split", self.split, low_open=True, high_open=True)
        check_choice("output", self.output, ["last", "random"])
        check_count("draw", self.draw, low=0)

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for ceil(R / q) gradients, and for q - 1 differences after each, as far as there are rounds."""
        period, batch = self._period(problem, rounds), self.batch
        turns, rest = divmod(rounds, period)
        gradients = -(-rounds // period)
        shares = [1.0, 1.0]
        if self.split is not None and gradients < rounds:
            shares = split_shares(self.split, (gradients, rounds - gradients))
        first, other = (share / max(shares) for share in shares)
        gradient = Step(measures=(problem.measure("gradient", share=first, batch=batch),), batch=batch)
        longest = 2 * problem.radius
        change = problem.measure("difference", max_radius=longest, share=other, batch=batch)
        difference = Step(measures=(change,), batch=batch)

        def turn(length: int) -> tuple[tuple[Step, int], ...]:
            return ((gradient, 1), (difference, length - 1)) if length > 1 else ((gradient, 1),)

        if period == 1:
            return ((gradient, rounds),)
        whole = (Group(steps=turn(period)), turns)
        return (whole, *turn(rest)) if rest else (whole,)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point, or a public random one."""
        return spider(
            ask,
            w,
            rounds=rounds,
            period=self._period(problem, rounds),
            step_size=self._taken(problem, rounds),
            lipschitz=problem.radius,
            smoothness=self._beta(problem),
            prox=prox,
            follow=follow,
            kept=picked(self.output, rounds, draw=self.draw),
        )

    def _beta(self, problem: Problem) -> float:  # noqa: ARG002 - for those that count on one
        """Return the smoothness that radii count on; infinite bounds differences by 2 L alone."""
        return math.inf

    def _period(self, problem: Problem, rounds: int) -> int:  # noqa: ARG002 - for those that go by it
        """Return q, at most R: plans are also made for a single round, to find out what many cost."""
        return min(2, rounds)

    def _taken(self, problem: Problem, rounds: int) -> float:  # noqa: ARG002 - for those that go by them
        """Return the step size of a run."""
        return self._step(problem)

    def _step(self, problem: Problem) -> float:
        """Return the step size that bounds are for."""
        if self.step_size is not None:
            return self.step_size
        beta = self._beta(problem)
        return 1 / (2 * (beta if math.isfinite(beta) else problem.known_smoothness))


class NoisySpider(SpiderMethod, frozen=True, kw_only=True, tag="spider"):
    """SPIDER with clipped, noisy means, proximal steps, for losses that need not be convex.

    Attributes:
        rounds: R; None chooses it by `stationarity_bound`.
        period: q >= 1: every q-th round asks for a gradient, the others for how it changed; None goes by the
            budget, min(R, 1 / (8 c R)) but at least 1, for c the squared noise that is left if beta = 1/2.
        smoothness: beta, or a guess of it where the objective has none: differences are clipped to
            min(2 L, beta |w - previous|). A guess that is too small costs accuracy, never privacy.
        gap: Bound on F(w_0) - min F, for the choice of rounds; None is min(beta D^2 / 2, L D).
    """

    period: int | None = None
    smoothness: float | None = None
    split: float | None = 0.5
    gap: float | None = None

    paper: ClassVar[str] = "Lowy, Ghafelebashi and Razaviyayn (2023); Fang et al. (2018)"
    composite: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(smoothness=self.smoothness, gap=self.gap)
        if self.period is not None:
            check_count("period", self.period)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return a bound on the mean squared length of the gradient mapping: stationarity, not excess."""
        beta, period = self._beta(problem), self._period(problem, rounds)
        beta = beta if math.isfinite(beta) else 1 / (2 * self._step(problem))
        return stationarity_bound(
            step_size=1 / (2 * beta),
            rounds=rounds,
            period=period,
            gap=starting_gap(self.gap, problem, smoothness=beta),
            variance=problem.variance,
            change_variance=problem.errors.get("difference", 0.0) * (beta / (2 * problem.radius)) ** 2,
        )

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - any number will do
        """Refuse unknown smoothness where a step size has to be made."""
        self._step(problem)

    def _beta(self, problem: Problem) -> float:
        """Return the smoothness that radii count on; infinite if nobody knows it."""
        return problem.record_smoothness if self.smoothness is None else self.smoothness

    def _period(self, problem: Problem, rounds: int) -> int:
        """Return q: fixed by public facts, and the same at any amount of noise."""
        if self.period is not None:
            return min(self.period, rounds)
        if not math.isfinite(self._beta(problem)):
            return 1  # a change of gradients may be longer than a gradient
        protection = problem.protection
        if not math.isfinite(protection.epsilon) or protection.delta == 0:
            return max(1, round(math.sqrt(rounds)))
        z = single_release(protection.epsilon, protection.delta)
        if protection.trust is TrustModel.LOCAL:
            noise = problem.dim * z**2 / (min(problem.sizes) ** 2 * problem.asked)
        else:
            noise = problem.dim * z**2 / problem.rows**2
        return max(1, min(rounds, math.floor(1 / (8 * noise * rounds))))


def spider(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    period: int,
    step_size: float,
    lipschitz: float,
    smoothness: float,
    prox: Regularizer,
    follow: Follow,
    kept: int | None = None,
) -> Array:
    """Run (noisy) proximal SPIDER (Lowy 2023, Algorithm 4).

    Args:
        ask: Returns mean clipped gradients, and mean clipped differences of gradients.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        period: q; 1 is proximal SGD.
        step_size: eta.
        lipschitz: Norm bound L of a record's gradient.
        smoothness: beta of a record's loss, or a guess of it; infinite bounds differences by 2 L.
        prox: Regulariser or constraint; stays on the server.
        follow: Called after each round.
        kept: Return w_kept instead of the last point w_R.

    Returns:
        A point, shape (size,).
    """
    v = previous = found = w
    for r in range(rounds):
        if r % period == 0:
            (v,) = ask(r, {"w": w}, (lipschitz,))
        else:
            radius = difference_radius(w, previous, lipschitz=lipschitz, smoothness=smoothness)
            points = {"w": w, "previous": previous, "clip": np.asarray(lipschitz)}
            (change,) = ask(r, points, (radius,))
            v = v + change
        previous, w = w, prox(step_size, w - step_size * v)
        found = w if kept is None or r + 1 <= kept else found
        follow(r, w)
    return found


def picked(output: Output, rounds: int, *, draw: int) -> int | None:
    """Return the number of the point that is kept: None for the last, or uniform in 0..rounds - 1."""
    if output == "last":
        return None
    return int(PublicStream(draw, 0, purpose="spider").integers(rounds, 1)[0])


def stationarity_bound(
    *, step_size: float, rounds: int, period: int, gap: float, variance: float, change_variance: float
) -> float:
    """Return a bound on the mean of E|G(w_r)|^2 over the rounds, for eta = 1/(2 beta) and full batches.

    G is the gradient mapping (w - prox(w - eta grad F(w))) / eta. With a = (q - 1) eta^2 tau_2^2 < 1/2 it is
    2 tau_1^2 + 8 (1 + a) / (1 - 2 a) (Delta / (eta R) + tau_1^2 / 2), from

        F(w_(r+1)) <= F(w_r) - |w_(r+1) - w_r|^2 / (4 eta) + (eta / 2) |error of v_r|^2

    and independent errors that add up within a period: summed over R rounds, their squares are at most
    R tau_1^2 + (q - 1) tau_2^2 sum |w_(r+1) - w_r|^2. It says how stationary points are, for a uniformly
    random one of w_0..w_(R-1); nothing about how far above the minimum they are.

    Args:
        step_size: eta.
        rounds: R.
        period: q.
        gap: Delta >= F(w_0) - min F.
        variance: tau_1^2, the squared error of a mean gradient.
        change_variance: tau_2^2, that of a difference over the squared distance of its points.

    Returns:
        The bound; infinite if a >= 1/2.
    """
    check_positive("step_size", step_size)
    if period < 1:
        raise ParameterError(f"period must be a whole number >= 1, got {period!r}.")
    a = (period - 1) * step_size**2 * change_variance
    if not a < 0.5:
        return math.inf
    return 2 * variance + 8 * (1 + a) / (1 - 2 * a) * (gap / (step_size * rounds) + variance / 2)


@lru_cache(maxsize=64)
def single_release(epsilon: float, delta: float) -> float:
    """Return the noise multiplier of a single release of the whole budget."""
    return calibrate(Gaussian, PrivacyBudget(epsilon, delta))
