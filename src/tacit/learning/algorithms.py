"""The algorithms by name: their parameters, what they ask of silos, and how "auto" is filled in.

"auto" uses public facts only (sizes, dimension, the clipping radius, the budget), through the same error
bounds that the theory proves; nothing is tuned on data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.federation import Ask, Batch, Fixed, Full, Step
from tacit.learning.accelerated import ac_sa, convex_nu, stages
from tacit.learning.minibatch import Follow, local_sgd, minibatch_sgd
from tacit.means import Estimator
from tacit.numerics import (
    Array,
    Regularizer,
    strongly_convex_log_weights,
    strongly_convex_schedule,
)

__all__ = [
    "ALGORITHMS",
    "AcceleratedNoisyMinibatchSGD",
    "Algorithm",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "NoisyLocalSGD",
    "NoisyMinibatchSGD",
    "Problem",
]


@dataclass(frozen=True, kw_only=True)
class Problem:
    """The public facts that step sizes come from.

    Attributes:
        smoothness: beta of a record's loss.
        radius: Norm bound L of a record's gradient.
        diameter: About the distance D from the start to a solution.
        dim: Number of parameters.
        variance: Expected squared norm of the error of one round's mean gradient: noise and record sampling,
            V^2.
        mu: Strong convexity of the objective, regulariser left out; 0 if none is known.
    """

    smoothness: float
    radius: float
    diameter: float
    dim: int
    variance: float
    mu: float = 0.0


class Algorithm(Protocol):
    """A method with its parameters; frozen, public, and the same with and without privacy."""

    @property
    def rounds(self) -> int | None:
        """Number of rounds; None is chosen by `error_bound`."""
        ...

    @property
    def batch(self) -> Batch:
        """Which units a round uses."""
        ...

    @property
    def local_steps(self) -> int:
        """Gradient steps inside a silo per round."""
        ...

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound on the excess objective that the choice of `rounds` is made by."""
        ...

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the parameters."""
        ...


@dataclass(frozen=True, kw_only=True)
class NoisyMinibatchSGD:
    """Minibatch SGD with clipped, noisy gradients (Algorithms 14 and 19; spec 11 §2).

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round.
        step_size: eta; None is min(1/beta, D / (V sqrt(R))), which minimises D^2/(2 eta R) + eta V^2.
        average: Share of the last iterates that are averaged, in (0, 1]; 1 is what the theory averages.
        mu: Strong convexity to use; > 0 switches to the step and weights of spec 11 §1.7.
    """

    rounds: int | None = None
    batch: Batch = Full()
    step_size: float | None = None
    average: float = 0.5
    mu: float = 0.0

    def __post_init__(self) -> None:
        _check_common(self.rounds, self.step_size)
        check_probability("average", self.average, low_open=True)

    @property
    def local_steps(self) -> int:
        """Return 1."""
        return 1

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return D^2/(2 eta R) + eta V^2/2 at the step that would be used (Lemma 103)."""
        eta = self._step(problem, rounds)
        return problem.diameter**2 / (2 * eta * rounds) + eta * problem.variance / 2

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
        if self.mu > 0:
            return strongly_convex_schedule(
                a=self.mu,
                g=2 * problem.smoothness,
                r0=problem.diameter**2,
                c=problem.variance + problem.radius**2,
                T=rounds,
            )
        noisy = problem.diameter / math.sqrt(max(rounds * problem.variance, 1e-300))
        return min(1 / problem.smoothness, noisy)

    def _log_weights(self, eta: float, rounds: int) -> Iterator[float]:
        """Return ln gamma_r for all rounds."""
        if self.mu > 0:
            return iter(strongly_convex_log_weights(a=self.mu, eta=eta, T=rounds).tolist())
        skipped = int(rounds * (1 - self.average))
        return iter([-math.inf] * skipped + [0.0] * (rounds - skipped))


@dataclass(frozen=True, kw_only=True)
class AcceleratedNoisyMinibatchSGD:
    """AC-SA with clipped, noisy gradients (Algorithm 1; spec 11 §3).

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round; `Disjoint` is the one-pass method for heterogeneous silos.
        nu: Step parameter; None is `convex_nu`.
        mu: Strong convexity to use in the steps.
    """

    rounds: int | None = None
    batch: Batch = Full()
    nu: float | None = None
    mu: float = 0.0

    def __post_init__(self) -> None:
        _check_common(self.rounds, self.nu)

    @property
    def local_steps(self) -> int:
        """Return 1."""
        return 1

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return 4 nu D^2/(R (R+1)) + noise (Lemma 126; Ghadimi and Lan 2012, Proposition 9)."""
        nu, d2 = self._nu(problem, rounds), problem.diameter**2
        noise = problem.variance * (rounds + 2) / (3 * nu)
        return 2 * nu * d2 / (rounds * (rounds + 1)) + noise

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the aggregate point."""
        return ac_sa(
            ask,
            w,
            rounds=rounds,
            nu=self._nu(problem, rounds),
            mu=self.mu,
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )

    def _nu(self, problem: Problem, rounds: int) -> float:
        """Return the step parameter."""
        if self.nu is not None:
            return self.nu
        return convex_nu(
            smoothness=problem.smoothness,
            noise_std=math.sqrt(problem.variance),
            rounds=rounds,
            diameter=problem.diameter,
        )


@dataclass(frozen=True, kw_only=True)
class MultiStageAcceleratedNoisyMinibatchSGD:
    """AC-SA in stages, for strongly convex objectives (spec 11 §3, B.1.6.1).

    Attributes:
        mu: Strong convexity, > 0.
        gap: Delta, a public bound on F(w_0) - F*; None takes D^2 times half the smoothness.
        rounds: R in all; None chooses it.
        batch: Units per round.
    """

    mu: float
    gap: float | None = None
    rounds: int | None = None
    batch: Batch = Full()

    def __post_init__(self) -> None:
        _check_common(self.rounds, self.gap)
        check_positive("mu", self.mu)

    @property
    def local_steps(self) -> int:
        """Return 1."""
        return 1

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return Delta e^{-c sqrt(mu/beta) R} + V^2/(mu R) with c = 1/(4 sqrt 2) ln 2 (Lemma 127)."""
        halvings = rounds / (4 * math.sqrt(2 * problem.smoothness / self.mu))
        return self._gap(problem) * 2.0**-halvings + problem.variance / (self.mu * rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run all stages that fit on an `ask`; rounds that no stage fits into are not asked."""
        first = 0
        for stage in stages(
            smoothness=problem.smoothness,
            mu=self.mu,
            gap=self._gap(problem),
            noise_std=math.sqrt(problem.variance),
            rounds=rounds,
        ):
            w = ac_sa(
                ask,
                w,
                rounds=stage.rounds,
                nu=stage.nu,
                radius=problem.radius,
                prox=prox,
                follow=follow,
                first=first,
            )
            first += stage.rounds
        return w

    def _gap(self, problem: Problem) -> float:
        """Return Delta."""
        return problem.smoothness * problem.diameter**2 / 2 if self.gap is None else self.gap


@dataclass(frozen=True, kw_only=True)
class NoisyLocalSGD:
    """Local SGD (FedAvg); with a budget every local step is private by itself (spec 11 §10).

    Attributes:
        rounds: R; None chooses it.
        local_steps: K >= 2 steps in a silo per round, each on a fresh uniform batch. One step per round is
            `NoisyMinibatchSGD`.
        batch: Units per local step.
        step_size: eta of a local step; None is min(1/beta, D / (V sqrt(R K))).
    """

    rounds: int | None = None
    local_steps: int = 10
    batch: Batch = Fixed(size=1)
    step_size: float | None = None

    def __post_init__(self) -> None:
        _check_common(self.rounds, self.step_size)
        check_count("local_steps", self.local_steps, low=2)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of as many plain steps; silos drifting apart is not in it."""
        eta, steps = self._step(problem, rounds), rounds * self.local_steps
        return problem.diameter**2 / (2 * eta * steps) + eta * problem.variance / 2

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point."""
        return local_sgd(
            ask,
            w,
            rounds=rounds,
            step_size=self._step(problem, rounds),
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        steps = rounds * self.local_steps
        noisy = problem.diameter / math.sqrt(max(steps * problem.variance, 1e-300))
        return min(1 / problem.smoothness, noisy)


ALGORITHMS = {
    "minibatch": NoisyMinibatchSGD,
    "accelerated": AcceleratedNoisyMinibatchSGD,
    "multistage": MultiStageAcceleratedNoisyMinibatchSGD,
    "local": NoisyLocalSGD,
}
"""Algorithms by the names that people type."""


def plan_step(algorithm: Algorithm, estimator: Estimator) -> Step:
    """Return what one round of an algorithm asks of a silo."""
    return Step(
        statistics=("gradient",),
        estimator=estimator,
        batch=algorithm.batch,
        local_steps=algorithm.local_steps,
    )


def choose_rounds(bounds: dict[int, float]) -> int:
    """Return the fewest rounds whose bound is within 5 % of the best; rounds cost time and bits."""
    if not bounds or not np.isfinite(list(bounds.values())).any():
        raise ParameterError("rounds could not be chosen: no bound is finite; give a number of rounds.")
    best = min(bounds.values())
    return min(rounds for rounds, bound in bounds.items() if bound <= 1.05 * best)


def _check_common(rounds: int | None, parameter: float | None) -> None:
    """Check what all algorithms share."""
    if rounds is not None:
        check_count("rounds", rounds)
    if parameter is not None:
        check_positive("step_size, nu or gap", parameter)
