"""STORM from the server's side: a mean gradient that is carried on by differences, and forgotten slowly.

Source: "Efficient private federated non-convex optimization with shuffled model" (PSGM below; an anonymous
manuscript of 2024), MB-PSGM, after Cutkosky and Orabona (2019), "Momentum-based variance reduction in
non-convex SGD".
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import ClassVar, Literal

import msgspec
import numpy as np

from tacit.errors import ParameterError, PlanWarning, check_choice, check_count, check_probability
from tacit.federation import Ask, Batch, Fixed, Full, Measure, Poisson, Step
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
from tacit.learning.algorithms.noise_steps import gradient_step
from tacit.learning.algorithms.prox_sgd import starting_gap
from tacit.learning.algorithms.spider import Output, picked, single_release
from tacit.learning.difference import RecordDifference, difference_radius
from tacit.means import HemisphereMean
from tacit.numerics import Array, Regularizer
from tacit.privacy import TrustModel

__all__ = ["NoisyStorm", "StormMethod", "hemisphere_level", "storm", "storm_bound", "storm_momentum"]

Messages = Literal["sums", "hemispheres"]
"""What silos send behind a shuffler: binomial sums, or a report of 64 bits for every record."""

_LEVELS = 2.0**-30, 30.0


class StormMethod(Method, frozen=True, kw_only=True):
    """What MB-PSGM and CE-PSGM share: the estimator of the gradient, and how it is asked for.

    Attributes:
        batch: Units per round after the first, fresh in every round; both means of a round are of one sample.
        first: Units of the first round, which asks for a gradient alone; None is as `batch`.
        beta: Momentum weight in [0, 1]: how fast old gradients are forgotten. 1 asks for gradients only,
            which is minibatch SGD, and 0 for differences only. None is `storm_momentum`, and 1 where the
            smoothness is unknown: a difference might be longer than a gradient then.
        step_size: eta; None is the longest that `storm_bound` allows, at most 1 / (2 beta) of the smoothness.
        smoothness: C1, of a record's loss, or a guess of it: differences are clipped to
            min(2 L, C1 |w - previous|). A guess that is too small costs accuracy, never privacy.
        split: Share of the privacy of a round, in squares, that goes to its gradient.
        messages: Under shuffle trust, what silos send: "sums" with binomial noise, or as in the paper
            "hemispheres", one report of 64 bits for every record and mean, which needs more noise.
        output: "last", or "random": a uniform one of w_0..w_(R-1), the one that the bound is about.
        draw: Seed of the public draw of "random".
        gap: Bound on F(w_0) - min F; None is min(C1 D^2 / 2, L D).
    """

    batch: Batch = Full()
    first: Batch | None = None
    beta: float | None = None
    step_size: float | None = None
    smoothness: float | None = None
    split: float = 0.5
    messages: Messages = "sums"
    output: Output = "last"
    draw: int = 0
    gap: float | None = None

    statistics: ClassVar[Mapping[str, MakeStatistic]] = {**GRADIENT, "difference": RecordDifference}
    bounds: ClassVar[Bounded] = "squared gradient"
    needs: ClassVar[Convexity] = "non-convex"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_optional(step_size=self.step_size, smoothness=self.smoothness, gap=self.gap)
        if self.beta is not None:
            check_probability("beta", self.beta)
        check_probability("split", self.split, low_open=True, high_open=True)
        check_choice("messages", self.messages, ["sums", "hemispheres"])
        check_choice("output", self.output, ["last", "random"])
        check_count("draw", self.draw, low=0)

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness where a step size has to be made; say where the first batch is small."""
        self._step(problem, rounds)
        self._warn_of_first(problem, rounds)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return a bound on the mean squared length of the gradient: stationarity, not excess."""
        smoothness, beta = self._smoothness(problem), self._momentum(problem, rounds)
        smoothness = smoothness if math.isfinite(smoothness) else 1 / (2 * self._step(problem, rounds))
        return storm_bound(
            step_size=self._step(problem, rounds),
            smoothness=smoothness,
            rounds=rounds,
            momentum=beta,
            gap=starting_gap(self.gap, problem, smoothness=smoothness),
            variance=self._counted(beta) * problem.errors.get("gradient", 0.0),
            change_variance=self._change_variance(problem, rounds, smoothness),
        )

    def _warn_of_first(self, problem: Problem, rounds: int) -> None:
        """Say where the first batch that is asked for is too small: 1 / beta rounds carry its error on.

        PSGM (2024), Theorems 4.2 and A.3, ask for b0 >= B1 / (R beta^2), which full batches meet. Of a first
        batch like all others the bound counts the error.
        """
        first, n, beta = self.first, min(problem.sizes), self._momentum(problem, rounds)
        if first is None or isinstance(first, Full) or isinstance(self.batch, Full) or not 0 < beta < 1:
            return
        least = self.batch.expected(n) / (rounds * beta**2)
        if first.expected(n) < least * (1 - 1e-9):
            warnings.warn(
                f"first has {first.expected(n):.4g} units of a silo and should have {least:.4g} or more, "
                f"batch / (rounds beta^2) with beta = {beta:.3g}: its error is carried on; take more, "
                "or first='full', or a larger beta.",
                PlanWarning,
                stacklevel=2,
            )

    def _first(self, problem: Problem, share: float = 1.0) -> Step:
        """Return the first round: a gradient, with all that a round may spend."""
        batch = self.batch if self.first is None else self.first
        return Step(measures=(self._measure(problem, "gradient", share, batch),), batch=batch)

    def _later(self, problem: Problem, rounds: int, share: float = 1.0) -> Step:
        """Return a later round: of one sample a difference and a gradient, as far as they have any weight."""
        match self._momentum(problem, rounds):
            case 1.0:
                asked: dict[str, float] = {"gradient": 1.0}
            case 0.0:
                asked = {"difference": 1.0}
            case _:
                asked = {"difference": 1 - self.split, "gradient": self.split}
        measures = (self._measure(problem, name, share * part, self.batch) for name, part in asked.items())
        return Step(measures=tuple(measures), batch=self.batch)

    def _measure(self, problem: Problem, statistic: str, share: float, batch: Batch) -> Measure:
        """Return a mean of gradients or of differences of them."""
        longest = problem.radius * (2 if statistic == "difference" else 1)
        measure = problem.measure(statistic, max_radius=longest, share=share, batch=batch)
        protection = problem.protection
        if self.messages == "sums" or protection.multiplier == 0:
            return measure
        if protection.trust is not TrustModel.SHUFFLE:
            raise ParameterError(
                f"messages must be 'sums' under {protection.trust.value} trust, where nobody shuffles any, "
                f"got {self.messages!r}."
            )
        level = hemisphere_level(protection.multiplier / math.sqrt(share), protection.honest(batch))
        reports = HemisphereMean(
            dim=problem.dim,
            local_epsilon=level,
            trust=protection.trust,
            neighbours=protection.neighbours,
            on_violation="clip",
        )
        return msgspec.structs.replace(measure, estimator=reports)

    def _smoothness(self, problem: Problem) -> float:
        """Return C1, which radii count on; infinite if nobody knows it."""
        return problem.record_smoothness if self.smoothness is None else self.smoothness

    def _momentum(self, problem: Problem, rounds: int) -> float:
        """Return beta: fixed by public facts, and the same at any amount of noise."""
        if self.beta is not None:
            return self.beta
        smoothness = self._smoothness(problem)
        if not math.isfinite(smoothness) or rounds == 1:
            return 1.0
        return storm_momentum(
            rounds=rounds,
            gap=starting_gap(self.gap, problem, smoothness=smoothness),
            smoothness=smoothness,
            lipschitz=problem.radius,
            error=math.sqrt(_foreseen(problem, self.batch, rounds)),
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size: of a given smoothness, the longest for which differences add no error."""
        if self.step_size is not None:
            return self.step_size
        return min(1 / (2 * self._known(problem)), self._longest(problem, rounds))

    def _known(self, problem: Problem) -> float:
        """Return C1, or refuse where nobody knows it."""
        smoothness = self._smoothness(problem)
        return smoothness if math.isfinite(smoothness) else problem.known_smoothness

    def _longest(self, problem: Problem, rounds: int) -> float:
        """Return the longest step for which differences add no error; infinite where they have none."""
        beta = self._momentum(problem, rounds)
        steepest = 2 * (1 - beta) ** 2 * self._change_variance(problem, rounds, self._known(problem))
        return math.sqrt(beta * (2 - beta) / steepest) if steepest > 0 and beta > 0 else math.inf

    def _change_variance(self, problem: Problem, rounds: int, smoothness: float) -> float:
        """Return the squared error of a mean difference over the squared distance of its points."""
        counted = self._counted(self._momentum(problem, rounds))
        return counted * problem.errors.get("difference", 0.0) * (smoothness / (2 * problem.radius)) ** 2

    def _counted(self, beta: float) -> int:
        """Return how often an error counts: twice where two means are of one sample (`storm_bound`)."""
        return 2 if 0 < beta < 1 and not isinstance(self.batch, Full) else 1


class NoisyStorm(StormMethod, frozen=True, kw_only=True, tag="mb-psgm"):
    """MB-PSGM: steps along the STORM estimator, a noisy mean gradient that differences carry on.

    Attributes:
        rounds: R; None chooses it by `storm_bound`.
        step_size: eta; None is the longest that `storm_bound` allows, at most 1 / (2 beta) of the smoothness.
            Of gradients alone (beta = 1) of a linear model of classes it is longer than that bound allows:
            noise may take a score 1.5 away, by steps of at most 15 / beta.
    """

    paper: ClassVar[str] = "PSGM (2024), MB-PSGM; Cutkosky and Orabona (2019)"
    caveat: ClassVar[str] = (
        "it is for a random point on the way, gradients that are not clipped, steps of at most 1 / (2 beta)"
    )

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for a gradient, then for a difference and a gradient of one sample, R - 1 times."""
        first, later = self._first(problem), self._later(problem, rounds)
        if first == later:
            return ((later, rounds),)
        return ((first, 1), (later, rounds - 1)) if rounds > 1 else ((first, 1),)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point, or a public random one."""
        return storm(
            ask,
            w,
            rounds=rounds,
            beta=self._momentum(problem, rounds),
            step_size=self._taken(problem, rounds),
            lipschitz=problem.radius,
            smoothness=self._smoothness(problem),
            prox=prox,
            follow=follow,
            kept=picked(self.output, rounds, draw=self.draw),
        )

    def _taken(self, problem: Problem, rounds: int) -> float:
        """Return the step size of a run: longer than the bound's where only gradients are asked for."""
        least = self._step(problem, rounds)
        if self.step_size is not None or self._momentum(problem, rounds) < 1:
            return least
        return gradient_step(problem, rounds, least=least)


def storm(
    ask: Ask,
    w: Array,
    *,
    rounds: int,
    beta: float,
    step_size: float,
    lipschitz: float,
    smoothness: float,
    prox: Regularizer,
    follow: Follow,
    kept: int | None = None,
) -> Array:
    """Run (noisy) steps along the STORM estimator (PSGM 2024, Algorithm 1 with H = 1 local step).

    The gradient of a round is that at its own point, as the recursion needs it: the printed one is at the
    point before, with which v is no estimate of the gradient even without noise (docs/errata.md).

    Args:
        ask: Returns mean clipped gradients, and of one sample mean clipped differences and gradients.
        w: Start, shape (size,).
        rounds: Number of rounds R.
        beta: Momentum weight in [0, 1].
        step_size: eta.
        lipschitz: C2, where gradients are clipped.
        smoothness: C1: differences are clipped to C1 |w - previous|, and at most to 2 C2.
        prox: Regulariser or constraint; stays on the server.
        follow: Called after each round.
        kept: Return w_kept instead of the last point w_R.

    Returns:
        A point, shape (size,).
    """
    v = previous = found = w
    for r in range(rounds):
        v = estimate(
            ask, r, w, previous, v, beta=1.0 if r == 0 else beta, lipschitz=lipschitz, smoothness=smoothness
        )
        previous, w = w, prox(step_size, w - step_size * v)
        found = w if kept is None or r + 1 <= kept else found
        follow(r, w)
    return found


def estimate(
    ask: Ask,
    step: int,
    w: Array,
    previous: Array,
    v: Array,
    *,
    beta: float,
    lipschitz: float,
    smoothness: float,
) -> Array:
    """Return the next estimate, (1 - beta) (v + mean difference) + beta (mean gradient).

    What has no weight is not asked for: in the first round, and with beta = 1, that is the difference.
    Gradients are clipped before they are subtracted, so that all of them are of one function, and no
    difference is longer than 2 C2; the paper subtracts first.
    """
    if beta == 1:
        (gradient,) = ask(step, {"w": w}, (lipschitz,))
        return gradient
    radius = difference_radius(w, previous, lipschitz=lipschitz, smoothness=smoothness)
    at = {"w": w, "previous": previous, "clip": np.asarray(lipschitz)}
    if beta == 0:
        (change,) = ask(step, at, (radius,))
        return v + change
    change, gradient = ask(step, at, (radius, lipschitz))
    return (1 - beta) * (v + change) + beta * gradient


def storm_bound(
    *,
    step_size: float,
    smoothness: float,
    rounds: int,
    momentum: float,
    gap: float,
    variance: float,
    change_variance: float,
) -> float:
    """Return a bound on the mean of E|grad F(w_r)|^2 over w_0..w_(R-1), for steps eta <= 1 / (2 L).

    The error e_r of v_r has E|e_r|^2 <= (1 - b)^2 (E|e_(r-1)|^2 + tau_2^2 E|w_r - w_(r-1)|^2) + b^2 tau_1^2
    for independent errors of the two means, and from F(w_(r+1)) <= F(w_r) - (eta / 2) |grad F(w_r)|^2
    - |w_(r+1) - w_r|^2 / (4 eta) + (eta / 2) |e_r|^2 follows, as long as 2 eta^2 (1 - b)^2 tau_2^2 <=
    b (2 - b), the bound 2 Delta / (eta R) + tau_1^2 (1 / R + b^2) / (b (2 - b)).

    Two means of one sample have errors of sampling that are not independent: then each counts twice.

    Args:
        step_size: eta.
        smoothness: L.
        rounds: R.
        momentum: b in [0, 1].
        gap: Delta >= F(w_0) - min F.
        variance: tau_1^2, the squared error of a mean gradient.
        change_variance: tau_2^2, that of a mean difference over the squared distance of its points.

    Returns:
        The bound; infinite where the step is too long for it, or for b = 0 with any error.

    Example:
        >>> facts = {"step_size": 0.5, "smoothness": 1.0, "gap": 1.0, "variance": 0.1, "change_variance": 0.0}
        >>> storm_bound(rounds=10, momentum=1.0, **facts)
        0.51
    """
    b = momentum
    kept = b * (2 - b)
    if step_size * smoothness > 0.5 * (1 + 1e-9):
        return math.inf
    if 2 * (step_size * (1 - b)) ** 2 * change_variance > kept * (1 + 1e-9):
        return math.inf
    noise = variance * (1 / rounds + b * b)
    if kept == 0 and noise > 0:
        return math.inf
    return 2 * gap / (step_size * rounds) + (noise / kept if noise > 0 else 0.0)


def storm_momentum(*, rounds: int, gap: float, smoothness: float, lipschitz: float, error: float) -> float:
    """Return beta = max(1/R, (Delta L / (R G tau))^(2/3)), at most 1.

    Both rules of the paper, for noise and for samples, are this one: its noise has tau^2 = d R (G / (M n
    epsilon))^2, and its samples G^2 / (M K b). Here tau is foreseen from the budget.

    Args:
        rounds: R.
        gap: Delta >= F(w_0) - min F.
        smoothness: L.
        lipschitz: G, the norm bound of a gradient.
        error: tau, the root of the squared error of a mean gradient.

    Example:
        >>> round(storm_momentum(rounds=100, gap=1.0, smoothness=1.0, lipschitz=1.0, error=0.1), 4)
        0.2154

    Reference:
        PSGM (2024), the proofs of Theorems 4.2 and A.2 to A.4, beta_a and beta_b.
    """
    if error == 0:
        return 1.0
    return min(1.0, max(1 / rounds, math.pow(gap * smoothness / (rounds * lipschitz * error), 2 / 3)))


def hemisphere_level(multiplier: float, messages: int) -> float:
    """Return the local epsilon whose shuffled reports cost about as much as Gaussian noise of a multiplier.

    From mu = sqrt(2) (e^eps0 - 1) / sqrt((e^eps0 + 1) N) = 1 / multiplier. It only names levels: the price is
    that of the reports.

    Args:
        multiplier: Standard deviation / sensitivity, >= 0.
        messages: N honest ones, >= 1.

    Example:
        >>> round(hemisphere_level(101.9675, 16512), 4)
        1.0
    """
    spread = messages / max(multiplier, 1e-12) ** 2
    grown = (spread + math.sqrt(spread * spread + 16 * spread)) / 4
    return min(max(math.log1p(grown), _LEVELS[0]), _LEVELS[1])


def _foreseen(problem: Problem, batch: Batch, rounds: int) -> float:
    """Return about tau^2, from public facts alone: noise of 2 R - 1 equal releases, and samples."""
    protection, radius, n, sampled = problem.protection, problem.radius, min(problem.sizes), 0.0
    if isinstance(batch, Fixed | Poisson):
        sampled = radius**2 * (1 / batch.expected(n) - 1 / n) / problem.asked
    if not math.isfinite(protection.epsilon) or protection.delta == 0:
        return sampled
    z = single_release(protection.epsilon, protection.delta)
    local = protection.trust is TrustModel.LOCAL
    rows = n * math.sqrt(problem.asked) if local else problem.rows
    # Samples need less noise in proportion, and divide by less: that of the mean is about that of all units.
    return sampled + 2 * rounds * problem.dim * (2 * radius * z / rows) ** 2
