"""Train one model across silos: choose the rounds, calibrate the noise, make the plan, run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from tacit.errors import ParameterError, check_choice, check_positive
from tacit.federation import (
    Batch,
    Disjoint,
    Full,
    InProcess,
    Participation,
    Plan,
    Silo,
    Traffic,
    Weights,
)
from tacit.learning.algorithms import Algorithm, NoisyMinibatchSGD, Problem, choose_rounds, plan_step
from tacit.learning.objective import Grouped, Objective, PersonGradient, RecordGradient, Records
from tacit.means import AdditiveMean, AnyNoise, DiscreteGaussianNoise, GaussianNoise, NoNoise
from tacit.numerics import Array, Regularizer, Zero
from tacit.privacy import (
    Event,
    Guarantee,
    Neighbours,
    PrivacyBudget,
    Relation,
    TrustModel,
    Unit,
    calibrate,
    epsilon_of,
)
from tacit.privacy.ledger import Ledger
from tacit.randomness import secure, simulated

__all__ = ["NOISES", "Settings", "Trained", "make_silos", "train"]

NOISES: dict[str, Callable[[float], AnyNoise]] = {
    "gaussian": GaussianNoise,
    "discrete-gaussian": DiscreteGaussianNoise,
}
"""Kinds of noise by name: continuous for simulation, discrete for deployment."""

_ROUNDS = (10, 20, 40, 80, 160, 320)  # what "auto" chooses from


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Everything about a training run that is not data. All of it is public.

    Attributes:
        objective: What is minimised.
        algorithm: How.
        trust: `local`, `central`, or None for no privacy.
        budget: What each silo (each person's data, under central trust) may spend; needed with a trust model.
        relation: What neighbours differ in.
        unit: What is protected: a record or a person.
        radius: Norm that a unit's gradient is clipped to; None takes the objective's Lipschitz constant.
        diameter: About the distance from the start to a solution, for step sizes.
        regularizer: Added to the objective on the server's side.
        noise: Kind of noise, a name in `NOISES`.
        weights: How silos count.
        participation: Which silos take part in a round; None is everybody.
        seed: For simulations; None takes secret randomness.
        run: Name of the run in ledgers.
    """

    objective: Objective
    algorithm: Algorithm = field(default_factory=NoisyMinibatchSGD)
    trust: TrustModel | None = None
    budget: PrivacyBudget | None = None
    relation: Relation = Relation.REPLACE_ONE
    unit: Unit = Unit.RECORD
    radius: float | None = None
    diameter: float = 10.0
    regularizer: Regularizer = field(default_factory=Zero)
    noise: str = "gaussian"
    weights: Weights = "records"
    participation: Participation | None = None
    seed: int | None = None
    run: str = "run"

    def __post_init__(self) -> None:
        check_choice("noise", self.noise, NOISES)
        check_positive("diameter", self.diameter)
        check_positive("radius", self.clip_radius)
        if (self.trust is None) != (self.budget is None):
            raise ParameterError(
                f"trust and budget go together, got trust={self.trust!r} and budget={self.budget!r}."
            )
        if self.budget is not None and self.budget.delta == 0:
            raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")

    @property
    def clip_radius(self) -> float:
        """The norm that a unit's gradient is clipped to."""
        return self.objective.lipschitz if self.radius is None else self.radius


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a run leaves.

    Attributes:
        w: Parameters, shape (size,).
        plan: What was asked.
        rounds: Number of rounds.
        noise_multiplier: Standard deviation / sensitivity; 0 without privacy.
        guarantees: One per silo under local trust, one in all under central trust.
        traffic: Bits and answers per silo.
    """

    w: Array
    plan: Plan
    rounds: int
    noise_multiplier: float
    guarantees: list[Guarantee]
    traffic: Traffic

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees."""
        return max(self.guarantees, key=lambda g: g.epsilon)


def make_silos(
    records: Sequence[Records | Grouped],
    objective: Objective,
    *,
    names: Sequence[str] | None = None,
    ledgers: Sequence[Ledger] | None = None,
    planned: Sequence[int] | None = None,
    seed: int | None = None,
) -> list[Silo]:
    """Make silos that can answer for the gradients of an objective.

    Args:
        records: The units of each silo; all records, or all persons.
        objective: What will be trained.
        names: Of the silos.
        ledgers: Of the silos.
        planned: Public numbers of units, needed under add-remove.
        seed: Randomness for simulation; None takes secret randomness.
    """
    return [
        Silo(
            units,
            {"gradient": (PersonGradient if isinstance(units, Grouped) else RecordGradient)(objective)},
            name=str(k) if names is None else names[k],
            planned=None if planned is None else planned[k],
            ledger=None if ledgers is None else ledgers[k],
            rng=None if seed is None else simulated(seed, "silo", k),
        )
        for k, units in enumerate(records)
    ]


def train(
    silos: Sequence[Silo],
    settings: Settings,
    *,
    ledger: Ledger | None = None,
    follow: Callable[[int, Array], None] | None = None,
) -> Trained:
    """Train one model across silos.

    Args:
        silos: The parties, made by `make_silos`.
        settings: Everything else.
        ledger: The trusted server's account, under central trust.
        follow: Called after each round with its number and the point. What it shows of private data is a
            release of its own: for progress bars, and for traces in simulation.

    Returns:
        Parameters, the plan, the guarantees and the traffic.

    Raises:
        ParameterError: The plan does not fit the silos.
        BudgetError: The price exceeds the budget or a ledger; nothing is spent.
    """
    sizes = [silo.size for silo in silos]
    rounds = _rounds(settings, sizes)
    multiplier, plan = _calibrated(settings, sizes, rounds)
    server = secure() if settings.seed is None else simulated(settings.seed, "server")
    ask = InProcess(
        silos,
        plan,
        run=settings.run,
        participation=settings.participation,
        weights=settings.weights,
        budget=settings.budget,
        ledger=ledger,
        rng=server,
    )
    w = settings.algorithm.run(
        ask,
        np.zeros(settings.objective.size),
        problem=_problem(settings, sizes, multiplier),
        rounds=rounds,
        prox=settings.regularizer,
        follow=(lambda _r, _w: None) if follow is None else follow,
    )
    return Trained(
        w=w,
        plan=plan,
        rounds=rounds,
        noise_multiplier=multiplier,
        guarantees=ask.guarantees,
        traffic=ask.traffic,
    )


def _calibrated(settings: Settings, sizes: list[int], rounds: int) -> tuple[float, Plan]:
    """Return the least noise multiplier that meets the budget, and the plan with it."""
    if settings.trust is None or settings.budget is None:
        return 0.0, _plan(settings, sizes, rounds, NoNoise())
    trust, noise = settings.trust, NOISES[settings.noise]

    def price(multiplier: float) -> Event:
        plan = _plan(settings, sizes, rounds, noise(multiplier))
        if trust is TrustModel.CENTRAL:
            return plan.event(sizes, trust)
        # The silo with the highest sampling rate, and where rates agree the smallest, has the dearest price.
        return max((plan.event([n], trust) for n in sorted(set(sizes))), key=_dearness)

    multiplier = calibrate(price, settings.budget)
    return multiplier, _plan(settings, sizes, rounds, noise(multiplier))


def _dearness(event: Event) -> float:
    """Return a number that orders the prices of one plan for silos of different sizes."""
    return epsilon_of(event, 1e-6)


def _plan(settings: Settings, sizes: list[int], rounds: int, noise: AnyNoise) -> Plan:
    """Return the plan of a run."""
    mean = AdditiveMean(
        dim=settings.objective.size,
        noise=noise,
        trust=settings.trust or TrustModel.LOCAL,
        neighbours=Neighbours(settings.relation, settings.unit),
    )
    return Plan(
        steps=((plan_step(settings.algorithm, mean), rounds),),
        parties=len(sizes),
        max_radius=settings.clip_radius,
        trust=mean.trust,
        delta=0.0 if settings.budget is None else settings.budget.delta,
    )


def _rounds(settings: Settings, sizes: list[int]) -> int:
    """Return the given number of rounds, or the one with the best error bound."""
    if settings.algorithm.rounds is not None:
        return settings.algorithm.rounds
    if isinstance(settings.algorithm.batch, Disjoint):
        return min(n // settings.algorithm.batch.size_for(n) for n in sizes)
    bounds = {}
    for rounds in _ROUNDS:
        multiplier, _ = _calibrated(settings, sizes, rounds)
        problem = _problem(settings, sizes, multiplier)
        bounds[rounds] = settings.algorithm.error_bound(problem, rounds)
    return choose_rounds(bounds)


def _problem(settings: Settings, sizes: list[int], multiplier: float) -> Problem:
    """Return the public facts that step sizes are chosen from."""
    radius, dim = settings.clip_radius, settings.objective.size
    rows = np.array([settings.algorithm.batch.size_for(n) for n in sizes], dtype=np.float64)
    moved = 2 if settings.relation is Relation.REPLACE_ONE else 1
    noise = dim * (multiplier * moved * radius) ** 2
    if settings.algorithm.local_steps > 1:
        # A local step sees the noise and the records of its own silo only.
        variance = noise / rows.min() ** 2 + _sampling(settings.algorithm.batch, radius) / rows.min()
    else:
        parties = 1 if settings.trust is TrustModel.CENTRAL else len(sizes)
        variance = (parties * noise / rows.sum() + _sampling(settings.algorithm.batch, radius)) / rows.sum()
    smoothness = settings.objective.smoothness
    if not math.isfinite(smoothness):
        raise ParameterError("the objective's smoothness is unknown: give feature bounds, or a step size.")
    return Problem(
        smoothness=smoothness,
        radius=radius,
        diameter=settings.diameter,
        dim=dim,
        variance=variance,
    )


def _sampling(batch: Batch, radius: float) -> float:
    """Return a bound on the variance of one sampled gradient; full batches have none."""
    return 0.0 if isinstance(batch, Full) else radius**2
