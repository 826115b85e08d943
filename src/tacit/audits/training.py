"""Attacks on whole training runs: a canary record that pulls all gradients one way, or the other.

Two neighbouring silos differ in one record, the canary, whose clipped gradient is as long as the radius and
has a known direction at every point (a Dirac canary: Nasr et al. 2023, arXiv:2302.07956, §4). All other
records have gradient zero. The attack adds up what the observer of the run sees, projected on that direction:
under Gaussian noise and full batches that is the likelihood ratio, with samples a weaker score.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from tacit.audits.attack import Audit, Target, audit
from tacit.errors import ParameterError, check_count, check_positive
from tacit.federation import Ask, HiddenRun, Plan, Walk
from tacit.learning.algorithms import NoisyMinibatchSGD
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Squared
from tacit.learning.objective import Grouped, Records
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.settings import Settings
from tacit.learning.training import in_process, make_silos, starting_point
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, Relation, TrustModel, Unit

__all__ = ["audit_training", "canary_settings", "training_target"]

_SEEDS = 2**62
_LABEL = 1e9
"""Size of the canary's label: a slope of that size stays the canary's, wherever the run goes."""


@dataclass
class _Overheard:
    """An `Ask` that also adds up what it shows along the first coordinate."""

    ask: Ask
    local: bool
    total: float = 0.0

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        means = self.ask(step, at, radius)
        # Walks release the point where they end, one of steps along minus the gradients.
        shown = (at["w"] - means[0]) / float(at["step_size"]) if self.local else means[0]
        self.total += float(shown[0])
        return means


def canary_settings(
    budget: PrivacyBudget,
    *,
    rounds: int = 5,
    dim: int = 2,
    trust: TrustModel = TrustModel.LOCAL,
) -> Settings:
    """Return the settings of a short run that a canary is easiest to see in: full batches, squared loss.

    Args:
        budget: What the run may spend; delta > 0.
        rounds: Number of rounds.
        dim: Number of features, >= 1.
        trust: `local` or `central`.

    Raises:
        ParameterError: A value is out of its range.
    """
    objective = LinearObjective(loss=Squared(), features=dim, feature_norm=1.0)
    algorithm = NoisyMinibatchSGD(rounds=rounds, step_size=0.1)
    return Settings(
        objective=objective,
        algorithm=algorithm,
        trust=trust,
        budget=budget,
        clip=1.0,
        noise="gaussian",
    )


def audit_training(
    settings: Settings,
    *,
    n: int = 4,
    noise_factor: float = 1.0,
    runs: int,
    confidence: float = 0.95,
    rng: np.random.Generator,
) -> Audit:
    """Attack a whole training run of one silo with a canary.

    Every run is made as `train` makes it: the noise calibrated for the budget, batches, clipping, rounds. A
    seed of its own for each run comes from `rng`.

    Args:
        settings: Of the run, with a trust model and a linear objective of one output. Losses whose slope
            grows with the label (squared, logistic) give the strongest canary. Seed and participation are
            the attack's own.
        n: Number of units of the silo, >= 2.
        noise_factor: Noise that is really added, over what the budget needs; below 1 the claim is false.
        runs: Number of runs in all, at about a millisecond each for five rounds.
        confidence: Of the lower bound, in (0, 1).
        rng: Source of all randomness.

    Returns:
        The lower bound beside what the plan of the run claims at the budget's delta.

    Raises:
        ParameterError: A value is out of its range, no trust model, or another objective.
        BudgetError: No noise meets the budget.

    Example:
        >>> from tacit.privacy import PrivacyBudget
        >>> found = audit_training(
        ...     canary_settings(PrivacyBudget(4.0, 1e-2), rounds=2), runs=1000, rng=np.random.default_rng(0)
        ... )
        >>> found.claimed_epsilon, found.refuted
        (4.0, False)
    """
    target = training_target(settings, n=n, noise_factor=noise_factor)
    delta = 0.0 if settings.budget is None else settings.budget.delta
    return audit(
        target.run, (target.event, delta), runs=runs, confidence=confidence, rng=rng, attack=target.attack
    )


def training_target(settings: Settings, *, n: int = 4, noise_factor: float = 1.0) -> Target:
    """Return a training run as something to attack; arguments as for `audit_training`."""
    check_count("n", n, low=2)
    check_positive("noise_factor", noise_factor)
    objective = settings.objective
    if not isinstance(objective, LinearObjective) or objective.outputs != 1:
        raise ParameterError("the canary needs a linear objective with one output.")
    trust = settings.trust
    if trust is None:
        raise ParameterError("trust must be TrustModel.LOCAL or CENTRAL: without a claim nothing is audited.")
    settings = replace(settings, participation=None, weights="records")
    honest = prepare(settings, [n])
    used = replace(honest, plan=_with_noise(honest, settings, noise_factor))
    tables = {there: _table(objective, settings, n, there=there) for there in (True, False)}

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:  # noqa: FBT001 - as `Run` says
        seeds = rng.integers(0, _SEEDS, size)
        return np.array([_overheard(settings, used, tables[present], n, int(seed)) for seed in seeds])

    event = honest.plan.event([n], trust)
    return Target(run=run, event=event, attack="canary gradient, summed over all rounds")


def _overheard(settings: Settings, prepared: Prepared, units: Records | Grouped, n: int, seed: int) -> float:
    """Return the score of one run: what was seen along the canary's direction, in all rounds."""
    planned = [n] if settings.relation is Relation.ADD_REMOVE else None
    silos = make_silos([units], settings.objective, planned=planned, trusts_server=True, seed=seed)
    ask = in_process(silos, seed=seed).open(prepared.plan)
    overheard = _Overheard(ask, local=isinstance(prepared.plan.kinds[0][0], HiddenRun | Walk))
    settings.algorithm.run(
        overheard,
        starting_point(settings),
        problem=prepared.problem,
        rounds=prepared.rounds,
        prox=settings.regularizer,
        follow=lambda _r, _w: None,
    )
    return overheard.total


def _table(objective: LinearObjective, settings: Settings, n: int, *, there: bool) -> Records | Grouped:
    """Return n units with gradient zero but for the canary, whose gradient is far longer than the radius."""
    X = np.zeros((n, objective.features))
    y = np.zeros(n)
    # A slope has the sign of prediction - label, so this label gives a gradient along plus the direction.
    X[0, 0] = max(1.0, 1e3 * settings.radius)
    y[0] = -_LABEL
    if not there:
        match settings.relation:
            case Relation.REPLACE_ONE:
                y[0] = _LABEL
            case Relation.ADD_REMOVE:
                X, y = X[1:], y[1:]
            case _:
                X[0, 0] = y[0] = 0.0
    records = Records.of(X, y)
    return records if settings.unit is Unit.RECORD else Grouped.of(records, np.arange(len(y)))


def _with_noise(prepared: Prepared, settings: Settings, factor: float) -> Plan:
    """Return the plan of the same run with `factor` times the noise."""
    protection = replace(
        prepared.problem.protection, multiplier=prepared.problem.protection.multiplier * factor
    )
    steps = settings.algorithm.steps(replace(prepared.problem, protection=protection), prepared.rounds)
    return msgspec.structs.replace(prepared.plan, steps=steps)
