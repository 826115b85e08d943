"""Which shuffled run with hidden iterates, how many epochs, which share of public steps: by bounds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from scipy import optimize

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive
from tacit.learning.shuffled import (
    MeanInstance,
    RiskBound,
    ShuffledMethod,
    ShuffledRun,
    SurrogateEpoch,
    largest_step_size,
    mean_risk,
    surrogate_bound,
    surrogate_epochs,
)
from tacit.privacy import Order, Placement, PrivacyBudget, Release, calibrate

__all__ = ["HiddenPlan", "HiddenProblem", "plan_hidden"]

_EPOCHS = (2, 5, 10, 20, 50, 100, 200, 500)
_SHARES = (0.25, 0.5, 0.75)
_STEP_SIZES = 200  # points of a grid where no bound says which step is best


@dataclass(frozen=True, kw_only=True)
class HiddenProblem:
    """A convex problem as it is known before anything is run: guesses are marked, and privacy needs none.

    Attributes:
        n: Private records, one a step.
        dim: d.
        budget: Of the run, replace-one; delta > 0.
        lipschitz: Longest gradient of a private record, by itself or by clipping.
        smoothness: L of the losses of private records, by a public bound.
        public_smoothness: Ltilde of those of public records; None is the same.
        public: Number of public records.
        start_distance: D0 of the start and the minimum; a guess.
        gradient_variance: sigma_any^2, mean squared gradient norm at the minimum; a guess.
        shift: Longest difference of the mean gradients of private and of public records; a guess.
        smoothness_gap: Of the mean loss of private records less that of public ones; a guess.
        strong_convexity: mu of the regulariser.
        mean: Where a mean is estimated: what is known of it, for its exact risk in place of the bound.
        order: Of private records.
        release: What leaves; noise at the ends of epochs needs hidden steps.
    """

    n: int
    dim: int
    budget: PrivacyBudget
    lipschitz: float
    smoothness: float
    public_smoothness: float | None = None
    public: int = 0
    start_distance: float = 1.0
    gradient_variance: float = 1.0
    shift: float = 0.0
    smoothness_gap: float = 0.0
    strong_convexity: float = 0.0
    mean: MeanInstance | None = None
    order: Order = Order.RR
    release: Release = Release.LAST

    def __post_init__(self) -> None:
        check_count("n", self.n, low=2)
        check_count("dim", self.dim)
        check_count("public", self.public, low=0)
        for name in ("lipschitz", "smoothness"):
            check_positive(name, getattr(self, name))
        if self.public_smoothness is not None:
            check_positive("public_smoothness", self.public_smoothness)
        for name in ("start_distance", "gradient_variance", "shift", "smoothness_gap", "strong_convexity"):
            check_non_negative(name, getattr(self, name))
        if self.budget.delta == 0:
            raise ParameterError("delta must be > 0 for Gaussian noise, got 0.0.")
        if self.mean is not None and (self.mean.n, self.mean.dim) != (self.n, self.dim):
            raise ParameterError(
                f"mean must be of {self.n} records with {self.dim} numbers each, got {self.mean.n} and "
                f"{self.mean.dim}."
            )

    @property
    def largest_smoothness(self) -> float:
        """That of any record, private or public."""
        return max(self.smoothness, self.public_smoothness or 0.0)


@dataclass(frozen=True, kw_only=True)
class HiddenPlan:
    """A run, and what is promised of it.

    Attributes:
        run: Method, epochs, share and where noise goes.
        noise_multiplier: Standard deviation of a draw / (2 lipschitz); 0 without private steps.
        step_size: The best one, of those that the price and the bound allow.
        risk: Bound on the expected excess, or its exact value for a mean; infinite where nothing is proven.
        bound: What the bound is made of; None for a mean.
        reason: Why nothing is proven, or why it cannot run; empty else.
    """

    run: ShuffledRun
    noise_multiplier: float = 0.0
    step_size: float = math.nan
    risk: float = math.inf
    bound: RiskBound | None = None
    reason: str = ""

    @property
    def valid(self) -> bool:
        """Whether something is promised."""
        return not self.reason


def plan_hidden(
    problem: HiddenProblem, *, epochs: Sequence[int] = _EPOCHS, shares: Sequence[float] = _SHARES
) -> tuple[HiddenPlan, ...]:
    """Compare shuffled runs with hidden iterates, each at its best number of epochs, share and step size.

    Noise is calibrated to the event of the run; the price does not depend on the step size, as long as that
    is at most 2 / smoothness.

    Args:
        problem: What is asked.
        epochs: Numbers K to try.
        shares: Shares p of private steps to try.

    Returns:
        One entry a method and placement of noise, the least risk first.

    Example:
        >>> mean = MeanInstance(n=200, dim=50, spread=25.0, start=np.array([3.0]), shift=np.array([0.5]))
        >>> budget = PrivacyBudget(5.0, 1e-6)
        >>> asked = HiddenProblem(n=200, dim=50, budget=budget, lipschitz=10.0, smoothness=1.0, mean=mean)
        >>> [(one.run.placement.value, round(one.risk, 3)) for one in plan_hidden(asked, epochs=[50])]
        [('epoch-end', 0.327), ('every-step', 0.743)]

    Reference:
        Jiang (2025), Sections 4.5 and 4.6, with the corrected Theorem 4.4.7 and tight prices.
    """
    found: dict[tuple[ShuffledMethod, Placement], HiddenPlan] = {}
    for run in _runs(problem, epochs, shares):
        plan = _planned(problem, run)
        kind = run.method, run.placement
        if kind not in found or plan.risk < found[kind].risk:
            found[kind] = plan
    return tuple(sorted(found.values(), key=lambda one: (one.risk, one.run.method.value)))


def _runs(problem: HiddenProblem, epochs: Sequence[int], shares: Sequence[float]) -> Iterator[ShuffledRun]:
    """Yield every run that there are public records for."""
    placements = list(Placement) if problem.release is not Release.ALL else [Placement.EVERY_STEP]
    for method in ShuffledMethod:
        for placement in placements if method is not ShuffledMethod.PUBLIC else placements[:1]:
            for count in epochs:
                for share in shares if method.splits else shares[:1]:
                    run = ShuffledRun(
                        method=method, steps=problem.n, epochs=count, share=share, placement=placement
                    )
                    if run.public_steps <= problem.public:
                        yield run


def _planned(problem: HiddenProblem, run: ShuffledRun) -> HiddenPlan:
    """Return a run with its noise and its best step size."""
    noise = 0.0
    if run.method is not ShuffledMethod.PUBLIC:
        noise = _noise(run, problem.order, problem.release, problem.budget)
    std = 2 * problem.lipschitz * noise
    most = 2 / problem.largest_smoothness
    plan = HiddenPlan(run=run, noise_multiplier=noise)
    if problem.mean is not None:
        sizes = np.geomspace(1e-9, 1, _STEP_SIZES) * min(most, 1.0)
        risks = mean_risk(problem.mean, run.schedule, step_size=sizes, noise_std=std)
        best = int(np.argmin(risks))
        return replace(plan, step_size=float(sizes[best]), risk=float(risks[best]))
    facts = _facts(problem, run, std)
    most = min(most, largest_step_size(facts, steps=run.steps, smoothness=problem.smoothness))

    def bound(log_share: float) -> RiskBound:
        return surrogate_bound(
            facts,
            steps=run.steps,
            dim=problem.dim,
            step_size=most * math.exp(min(log_share, 0.0)),
            start_distance=problem.start_distance,
            gradient_variance=problem.gradient_variance,
            smoothness=problem.smoothness,
            strong_convexity=problem.strong_convexity,
        )

    try:
        # A sum of powers of the step size from -1 to 2: convex in its logarithm.
        best_share = optimize.minimize_scalar(
            lambda x: bound(x).total, bounds=(-40.0, 0.0), method="bounded"
        ).x
    except ParameterError as error:
        return replace(plan, reason=str(error))
    found = bound(float(best_share))
    size = most * math.exp(min(float(best_share), 0.0))
    return replace(plan, step_size=size, risk=found.total, bound=found)


def _facts(problem: HiddenProblem, run: ShuffledRun, std: float) -> tuple[SurrogateEpoch, ...]:
    """Return what is known of every epoch: sums over i public steps are taken to lack i times the shift."""
    used = run.public_steps
    at = np.arange(1, used)
    theirs = problem.smoothness if problem.public_smoothness is None else problem.public_smoothness
    return surrogate_epochs(
        run,
        SurrogateEpoch(smoothness=problem.smoothness, noise_std=std),
        SurrogateEpoch(
            smoothness=theirs,
            dissimilarity=used * problem.shift,
            partial_squares=float(np.sum(at**2)) * problem.shift**2 / run.steps,
            smoothness_gap=problem.smoothness_gap * used / run.steps,
        ),
    )


@lru_cache(maxsize=256)
def _noise(run: ShuffledRun, order: Order, release: Release, budget: PrivacyBudget) -> float:
    """Return the noise multiplier of a run; the step size is in no price."""
    return calibrate(lambda z: run.event(z, order=order, release=release, step_times_smoothness=2.0), budget)
