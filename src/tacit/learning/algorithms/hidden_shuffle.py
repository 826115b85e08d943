"""What the shuffled gradient methods inside silos share: one run, as a plan says it, and its public facts.

Source: Jiang (2025), Algorithms 4 to 6 and Section 4.5; why each condition: docs/theory/iteration.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.federation import Ask, EpochKind, Fixed, Full, HiddenRun, Measure
from tacit.learning.algorithms.base import (
    Follow,
    Kinds,
    MakeStatistic,
    Method,
    Problem,
    check_optional,
    other_loss,
)
from tacit.learning.losses import Multinomial
from tacit.learning.public_objective import PublicObjective
from tacit.learning.shuffled.bounds import SurrogateEpoch, largest_step_size, surrogate_bound
from tacit.learning.shuffled.statistic import hidden_gradient
from tacit.means import AdditiveMean, GaussianNoise, NoNoise
from tacit.numerics import (
    L1,
    Array,
    Composite,
    ElasticNet,
    L1OverBall,
    L2Ball,
    Regularizer,
    SquaredL2,
    Zero,
)
from tacit.privacy import Order, Placement, Relation, Release, TrustModel, Unit

__all__ = ["HiddenShuffle"]

_STATISTIC = "hidden-gradient"

_LONGER = 1 + 3e-6
"""Times the smoothness of a loss that is counted on: records may be that much longer by rounding."""

_SHORTER = 0.25
"""Times the step that bounds would choose."""


class HiddenShuffle(Method, frozen=True, kw_only=True):
    """What the methods share whose silos run to a last iterate, and show nothing before.

    Attributes:
        rounds: How often silos run and their last iterates are averaged; each costs as much as the first.
        epochs: K, passes of a run.
        order: How each pass orders the private records: "ig", "so" or "rr". Never by their values.
        batch: Records of a step; those that fill no batch sit a pass out.
        step_size: eta, at most 2 / smoothness; None makes it of public facts.
        placement: "every-step" puts noise on every private step, "epoch-end" one draw after each pass, whose
            steps are then seen by nobody.
        release: "last": what the price rests on is that nobody sees an iterate before.
        worst_case_order: Whether every order that may be drawn is protected, instead of their average.
    """

    rounds: int | None = 1
    epochs: int = 20
    order: Order = Order.RR
    batch: Full | Fixed = Fixed(size=1)
    step_size: float | None = None
    placement: Placement = Placement.EPOCH_END
    release: Release = Release.LAST
    worst_case_order: bool = False

    paper: ClassVar[str] = "Jiang (2025); Feldman et al. (2018); Bok, Su and Altschuler (2024)"
    trusts: ClassVar[tuple[TrustModel, ...]] = (TrustModel.LOCAL,)
    why_no_sums: ClassVar[str] = (
        "a silo runs by itself to its last iterate, and its share of noise alone is too little"
    )
    statistics: ClassVar[Mapping[str, MakeStatistic]] = MappingProxyType({_STATISTIC: hidden_gradient})
    composite: ClassVar[bool] = True
    hidden: ClassVar[bool] = True
    caveat: ClassVar[str] = "its bound is of one silo, on private records alone"
    unbounded: ClassVar[str] = (
        "its bound is of one run of one silo on private records alone, with shorter steps than it takes"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("epochs", self.epochs)
        check_optional(step_size=self.step_size)
        for name, kind in (("order", Order), ("placement", Placement), ("release", Release)):
            if not isinstance(getattr(self, name), kind):
                allowed = ", ".join(repr(one.value) for one in kind)
                raise ParameterError(f"{name} must be one of {allowed}, got {getattr(self, name)!r}.")
        if not isinstance(self.worst_case_order, bool):
            raise ParameterError(f"worst_case_order must be True or False, got {self.worst_case_order!r}.")
        if self.release is not Release.LAST:
            raise ParameterError(
                f"release must be 'last', got {self.release.value!r}: the noise of these runs hides their "
                "steps only from who sees no iterate before the last, so there is no trace; the algorithm "
                "'minibatch' shows every iterate."
            )
        if not isinstance(self.batch, Full | Fixed):
            raise ParameterError(
                f"batch must be full or of a fixed size, got {self.batch!r}: a pass goes through the records "
                "in an order."
            )

    def epoch_kinds(self) -> tuple[EpochKind, ...]:
        """Return what each pass does."""
        raise NotImplementedError

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        """Ask for where a run ends, in all rounds."""
        _check_problem(problem)
        run = HiddenRun(
            measures=(self._measure(problem),),
            batch=self.batch,
            epochs=self.epoch_kinds(),
            order=self.order,
            step_size=self._step(problem),
            smoothness=problem.known_smoothness * _LONGER,
            cycle=self._cycles,
            worst_case_order=self.worst_case_order,
            **_penalties(problem.regularizer),
        )
        return ((run, rounds),)

    def error_bound(self, problem: Problem, rounds: int) -> float:
        """Return the corrected theorem of Jiang (2025), of one run of one silo (`surrogate_bound`).

        Infinite where it says nothing: of several silos or runs, of public records, of longer steps.
        """
        if rounds > 1 or self.needs_public or problem.rows != max(problem.sizes):
            return math.inf
        steps = max(self._passes(n) for n in problem.sizes)
        epochs = [
            SurrogateEpoch(
                smoothness=problem.known_smoothness,
                noise_std=self._noise_std(problem),
                at_end=self.placement is Placement.EPOCH_END,
            )
        ] * self.epochs
        eta = self._step(problem)
        if eta > largest_step_size(epochs, steps=steps, smoothness=problem.known_smoothness):
            return math.inf
        return surrogate_bound(
            epochs,
            steps=steps,
            dim=problem.dim,
            step_size=eta,
            start_distance=problem.diameter,
            gradient_variance=_spread(problem) ** 2,
            smoothness=problem.known_smoothness,
            strong_convexity=problem.strong_convexity,
        ).total

    def check(self, problem: Problem, rounds: int) -> None:  # noqa: ARG002 - as algorithms define it
        """Refuse a problem whose iterates cannot be hidden, and public records that do not go with it."""
        _check_problem(problem)
        ((run, _),) = self.steps(problem, 1)
        if isinstance(run, HiddenRun) and run.uses_public:
            self._public(problem, run)

    def run(
        self,
        ask: Ask,
        w: Array,
        *,
        problem: Problem,
        rounds: int,
        prox: Regularizer,  # noqa: ARG002 - silos apply it
        follow: Follow,
    ) -> Array:
        """Run on an `ask` and return the mean of the last iterates."""
        ((run, _),) = self.steps(problem, 1)
        known: dict[str, Array] = {}
        if isinstance(run, HiddenRun) and run.uses_public:
            public = self._public(problem, run)
            rows = min(max(run.public_rows(n) for n in problem.sizes), len(public))
            known = {
                "public": public.records.X[:rows].astype(np.float64),
                "public_outcomes": public.records.y[:rows].astype(np.float64),
            }
        for r in range(rounds):
            (w,) = ask(r, {"w": w, **known}, (problem.radius,))
            follow(r, w)
        return w

    @property
    def _cycles(self) -> bool:
        return False

    def _public(self, problem: Problem, run: HiddenRun) -> PublicObjective:
        """Return the public records, or refuse that there are none, too few or others."""
        public, name = problem.public, str(type(self).__struct_config__.tag)
        if public is None:
            raise ParameterError(f"the algorithm {name!r} needs public records with labels, got none.")
        if public.records.X.shape[1] != problem.features:
            raise ParameterError(
                f"public records must have {problem.features} features, as private ones, got "
                f"{public.records.X.shape[1]}."
            )
        needed = max(run.public_rows(n) for n in problem.sizes)
        if len(public) < needed and not run.cycle:
            raise ParameterError(
                f"public must hold at least {needed} records for the algorithm {name!r} in the largest silo, "
                f"got {len(public)}; with the option cycle=true a pass uses them again and again."
            )
        return public

    def _measure(self, problem: Problem) -> Measure:
        """Return the mean gradient of a step; its noise is continuous, whatever that of other methods is."""
        protection = problem.protection
        noise = GaussianNoise(protection.multiplier) if protection.multiplier > 0 else NoNoise()
        mean = AdditiveMean(
            dim=problem.dim,
            noise=noise,
            trust=protection.trust,
            neighbours=protection.neighbours,
            on_violation="clip",
        )
        return Measure(statistic=_STATISTIC, estimator=mean, max_radius=problem.radius)

    def _noise_std(self, problem: Problem) -> float:
        """Return the standard deviation of a draw of noise on the mean gradient, in the smallest silo."""
        moved = 2 if problem.protection.neighbours.relation is Relation.REPLACE_ONE else 1
        rows = min(self.batch.size_for(n) for n in problem.sizes)
        return problem.protection.multiplier * moved * problem.radius / rows

    def _passes(self, n: int) -> int:
        """Return the steps of a pass through n records."""
        return n // self.batch.size_for(n)

    def _step(self, problem: Problem) -> float:
        """Return the step size.

        A quarter of the best of D^2 / (eta m K) + 2 (1 + log K) eta d sigma^2 (over m with one draw a pass) +
        eta^2 m s^2 beta (start, noise, and the order of a pass), of K passes of m steps, s bounding the
        gradients; at most 1 / beta. D is mostly larger than the way, and longer steps lost at every size and
        epsilon that was tried.
        """
        if self.step_size is not None:
            most = 2 / (problem.known_smoothness * _LONGER)
            if self.step_size > most * (1 + 1e-14):
                raise ParameterError(
                    f"step_size must be at most 2 / smoothness = {most!r} for an algorithm with hidden "
                    f"iterates, whose steps would else carry runs apart, got {self.step_size!r}."
                )
            return self.step_size
        D, K, beta = problem.diameter, self.epochs, problem.known_smoothness
        m = max(self._passes(n) for n in problem.sizes)
        draws = 1 if self.placement is Placement.EPOCH_END else m
        noise = problem.dim * self._noise_std(problem) ** 2 * draws / m
        eta: float = min(1 / beta, _SHORTER * (D / (m * _spread(problem) * math.sqrt(K * beta))) ** (2 / 3))
        return (
            eta if noise == 0 else min(eta, _SHORTER * D / math.sqrt(m * K * 2 * (1 + math.log(K)) * noise))
        )


def _check_problem(problem: Problem) -> None:
    """Refuse what iterates cannot be hidden for; the silo would refuse it too."""
    hides = "an algorithm with hidden iterates needs"
    if problem.loss is None:
        raise other_loss(problem, needs=f"{hides} a linear model", why="of others steps may carry runs apart")
    if isinstance(problem.loss, Multinomial):
        raise other_loss(
            problem,
            needs=f"{hides} one prediction per record",
            why="a clipped gradient of several is that of no convex loss",
        )
    if not math.isfinite(problem.smoothness) and not math.isfinite(problem.loss.smoothness):
        raise other_loss(problem, needs=f"{hides} a smooth loss", why="give one with a kink a smoothing > 0")
    if not math.isfinite(problem.feature_norm):
        raise ParameterError(
            f"{hides} a finite feature_norm: the smoothness must be known for every possible record, which "
            "bounds make so and a moment does not."
        )
    _ = problem.known_smoothness
    neighbours = problem.protection.neighbours
    if neighbours.unit is Unit.PERSON:
        raise ParameterError(
            f"{hides} records as units, got persons: the clipped mean of a person's gradients is that of no "
            "convex loss; the algorithm 'auto' protects persons."
        )
    if neighbours.relation is Relation.ADD_REMOVE:
        raise ParameterError(
            f"{hides} replace-one or zero-out neighbours, got add-remove: the number of steps is public."
        )


def _penalties(regularizer: Regularizer) -> dict[str, Any]:
    """Return a regulariser as the plan says it, or refuse one that no silo applies."""
    match regularizer:
        case Zero():
            return {}
        case ElasticNet(l1=l1, l2=l2):
            return {"l1": l1, "l2": l2}
        case SquaredL2(strength=l2):
            return {"l2": l2}
        case L1(strength=l1):
            return {"l1": l1}
        case L2Ball(radius=radius, center=None):
            return {"ball": radius}
        case L1OverBall(strength=l1, radius=radius):
            return {"l1": l1, "ball": radius}
        case Composite(l1=l1, l2=l2, group_lasso=0.0, coordinates=None):
            if regularizer.domain is None or isinstance(regularizer.domain, L2Ball):
                ball = {} if regularizer.domain is None else {"ball": regularizer.domain.radius}
                return {"l1": l1, "l2": l2, **ball}
    told = repr(regularizer)
    if isinstance(regularizer, Composite):
        groups = f"group_lasso={regularizer.group_lasso!r}"
        told = groups if regularizer.group_lasso > 0 else f"the domain {regularizer.domain!r}"
    raise ParameterError(
        "an algorithm with hidden iterates takes l1, l2 and a ball around 0, which its silos apply "
        f"themselves, got {told}."
    )


def _spread(problem: Problem) -> float:
    """Return a bound on the gradients of records, as they are clipped."""
    return min(problem.radius, problem.lipschitz)
