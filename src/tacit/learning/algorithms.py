"""The algorithms by name: their parameters, what they ask of silos, and how "auto" is filled in.

"auto" uses public facts only (sizes, dimension, the clipping radius, the budget), through error bounds;
nothing is tuned on data.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.federation import Ask, Batch, Fixed, Full
from tacit.learning.accelerated import ac_sa, check_strong_convexity, convex_nu, excess_bound, stage, stages
from tacit.learning.minibatch import Follow, local_sgd, minibatch_sgd
from tacit.learning.problem import Algorithm, Problem
from tacit.learning.sign_vote import NoisySignSGD
from tacit.means import AdditiveMean
from tacit.numerics import (
    Array,
    Regularizer,
    strongly_convex_log_weights,
    strongly_convex_schedule,
)

__all__ = [
    "ALGORITHMS",
    "AcceleratedNoisyMinibatchSGD",
    "MultiStageAcceleratedNoisyMinibatchSGD",
    "NoisyLocalSGD",
    "NoisyMinibatchSGD",
    "algorithm_name",
    "make_algorithm",
]


@dataclass(frozen=True, kw_only=True)
class NoisyMinibatchSGD:
    """Minibatch SGD with clipped, noisy gradients (Lowy 2023, Algorithms 14 and 19).

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round.
        step_size: eta; None is min(1/beta, D / (V sqrt(R))), which minimises the error bound.
        average: Share of the last iterates that are averaged, in (0, 1]; 1 is what the theory averages.
        mu: Strong convexity to count on; > 0 switches to the step and the weights of Lemma 102, and
            `average` has no effect.
    """

    rounds: int | None = None
    batch: Batch = field(default_factory=Full)
    step_size: float | None = None
    average: float = 0.5
    mu: float = 0.0
    local_steps: ClassVar[int] = 1
    mean: ClassVar[type[AdditiveMean]] = AdditiveMean

    def __post_init__(self) -> None:
        _check_given(rounds=self.rounds, step_size=self.step_size)
        check_probability("average", self.average, low_open=True)
        check_non_negative("mu", self.mu)

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


@dataclass(frozen=True, kw_only=True)
class AcceleratedNoisyMinibatchSGD:
    """AC-SA with clipped, noisy gradients (Lowy 2023, Algorithm 1).

    Attributes:
        rounds: R; None chooses it.
        batch: Units per round; `Disjoint` is the one-pass method for heterogeneous silos.
        nu: Step parameter; None is `convex_nu`.
        mu: Strong convexity that the steps count on; at most the smoothness.
    """

    rounds: int | None = None
    batch: Batch = field(default_factory=Full)
    nu: float | None = None
    mu: float = 0.0
    local_steps: ClassVar[int] = 1
    mean: ClassVar[type[AdditiveMean]] = AdditiveMean

    def __post_init__(self) -> None:
        _check_given(rounds=self.rounds, nu=self.nu)
        check_non_negative("mu", self.mu)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return 2 nu D^2/(R (R+1)) + V^2 (2R+1)/(6 nu), for nu >= 2 beta (`accelerated.excess_bound`)."""
        return excess_bound(
            nu=self._nu(problem, rounds),
            noise_std=problem.noise_std,
            rounds=rounds,
            diameter=problem.diameter,
        )

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse mu above the smoothness, and unknown smoothness where nu has to be made."""
        check_strong_convexity(self.mu, problem.smoothness)
        self._nu(problem, rounds)

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
            smoothness=problem.known_smoothness,
            noise_std=problem.noise_std,
            rounds=rounds,
            diameter=problem.diameter,
        )


@dataclass(frozen=True, kw_only=True)
class MultiStageAcceleratedNoisyMinibatchSGD:
    """AC-SA in stages, for strongly convex objectives (Lowy 2023, Appendix B.1.6.1).

    Attributes:
        mu: Strong convexity that the stages count on, in (0, beta]. Losses of linear models have none of
            their own: there it is a choice, and the bound is not proven.
        gap: Delta, a public bound on F(w_0) - F*; None takes beta D^2 / 2.
        rounds: R in all; None chooses it.
        batch: Units per round.
    """

    mu: float = 1e-3
    gap: float | None = None
    rounds: int | None = None
    batch: Batch = field(default_factory=Full)
    local_steps: ClassVar[int] = 1
    mean: ClassVar[type[AdditiveMean]] = AdditiveMean

    def __post_init__(self) -> None:
        _check_given(mu=self.mu, gap=self.gap, rounds=self.rounds)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return Delta 2^-U for the U stages that fit; infinity if none does."""
        fitting = len(stages(**self._facts(problem), rounds=rounds))
        return self._facts(problem)["gap"] * 2.0**-fitting if fitting else math.inf

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse mu above the smoothness, unknown smoothness, and rounds that hold not even one stage."""
        needed = stage(1, **self._facts(problem)).rounds
        if rounds < needed:
            raise ParameterError(f"rounds must be at least {needed} for the first stage, got {rounds}.")

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run all stages that fit on an `ask`; rounds that no stage fits into are not asked."""
        done = 0
        for part in stages(**self._facts(problem), rounds=rounds):
            w = ac_sa(
                ask,
                w,
                rounds=part.rounds,
                nu=part.nu,
                mu=self.mu,
                radius=problem.radius,
                prox=prox,
                follow=follow,
                first=done,
            )
            done += part.rounds
        return w

    def _facts(self, problem: Problem) -> dict[str, float]:
        """Return what stages are made from."""
        beta = problem.known_smoothness
        gap = beta * problem.diameter**2 / 2 if self.gap is None else self.gap
        return {"smoothness": beta, "mu": self.mu, "gap": gap, "noise_std": problem.noise_std}


@dataclass(frozen=True, kw_only=True)
class NoisyLocalSGD:
    """Local SGD (FedAvg); with a budget every local step is private by itself.

    Attributes:
        rounds: R; None chooses it.
        local_steps: K >= 2 steps in a silo per round, each on a fresh uniform batch. One step per round is
            `NoisyMinibatchSGD`.
        batch: Units per local step.
        step_size: eta of a local step; None is min(1/beta, D / (V sqrt(R K))).
    """

    rounds: int | None = None
    local_steps: int = 10
    batch: Batch = field(default_factory=lambda: Fixed(size=1))
    step_size: float | None = None
    mean: ClassVar[type[AdditiveMean]] = AdditiveMean

    def __post_init__(self) -> None:
        _check_given(rounds=self.rounds, step_size=self.step_size)
        check_count("local_steps", self.local_steps, low=2)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the bound of R K plain steps of one silo; how far silos drift apart is not in it."""
        eta, steps = self._step(problem, rounds), rounds * self.local_steps
        return problem.diameter**2 / (eta * steps) + eta * problem.variance

    def check(self, problem: Problem, rounds: int) -> None:
        """Refuse unknown smoothness where a step size has to be made."""
        self._step(problem, rounds)

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        """Run on an `ask` and return the last point."""
        return local_sgd(
            ask,
            w,
            rounds=rounds,
            local_steps=self.local_steps,
            step_size=self._step(problem, rounds),
            radius=problem.radius,
            prox=prox,
            follow=follow,
        )

    def _step(self, problem: Problem, rounds: int) -> float:
        """Return the step size."""
        if self.step_size is not None:
            return self.step_size
        return problem.plain_step(rounds * self.local_steps)


ALGORITHMS: dict[str, Callable[..., Algorithm]] = {
    "minibatch": NoisyMinibatchSGD,
    "accelerated": AcceleratedNoisyMinibatchSGD,
    "multistage": MultiStageAcceleratedNoisyMinibatchSGD,
    "local": NoisyLocalSGD,
    "sign-vote": NoisySignSGD,
}
"""Algorithms by the names that people type; all that takes or shows such a name reads this one list."""


def make_algorithm(name: str, **options: object) -> Algorithm:
    """Return an algorithm by the name that people type.

    Args:
        name: One of `ALGORITHMS`.
        options: Its attributes, such as `rounds`; None leaves one at the algorithm's own default.

    Raises:
        UnknownNameError: No such algorithm; the nearest name is suggested.
        ParameterError: An option that the algorithm does not have, or a value that is not allowed.

    Example:
        >>> make_algorithm("local", rounds=5, local_steps=None).local_steps
        10
    """
    check_choice("algorithm", name, ALGORITHMS)
    make: Any = ALGORITHMS[name]
    known = [entry.name for entry in fields(make)]
    given = {option: value for option, value in options.items() if value is not None}
    for option, value in given.items():
        if option not in known:
            raise ParameterError(
                f"{option} is no option of the algorithm {name!r}, got {value!r}; it has {', '.join(known)}."
            )
    made: Algorithm = make(**given)
    return made


def algorithm_name(algorithm: Algorithm) -> str:
    """Return the name in `ALGORITHMS`; for an algorithm of the user's own, that of its class.

    Example:
        >>> algorithm_name(NoisyLocalSGD())
        'local'
    """
    kind = type(algorithm)
    return next((name for name, make in ALGORITHMS.items() if make is kind), kind.__name__)


def _check_given(*, rounds: int | None, **positive: float | None) -> None:
    """Refuse what is given and out of range."""
    if rounds is not None:
        check_count("rounds", rounds)
    for name, value in positive.items():
        if value is not None:
            check_positive(name, value)
