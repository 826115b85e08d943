"""Attacks on whole runs: how well the best test tells two neighbouring silos apart, next to what is claimed.

The attacker sees all points of a run and takes the likelihood ratio of the two data sets, which no other test
beats (Neyman and Pearson). Its errors bound epsilon from below; that bound must stay under the claim, and
come out above it where noise or batches are not what was priced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import special, stats

from tacit.federation import Batch, Disjoint, Fixed, Full, InProcess, Plan
from tacit.learning import (
    Grouped,
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    Records,
    Settings,
    make_silos,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.means import AdditiveMean
from tacit.numerics import Array, Zero
from tacit.privacy import PrivacyBudget, TrustModel, Unit
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

BUDGET = PrivacyBudget(1.0, 0.1)
"""A delta at which some hundred runs show what noise of half the size gives away."""
RADIUS = 0.1
STEP = 1e-3
N = 4
FULL = Full()
OBJECTIVE = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
RUNS = 1000
PILOT = 200
"""Runs that only place the threshold; bounds come from the others."""


@dataclass(frozen=True)
class Case:
    """One way to train."""

    noise: str = "discrete-gaussian"
    batch: Batch = FULL
    rounds: int = 3
    trust: TrustModel = TrustModel.LOCAL
    unit: Unit = Unit.RECORD

    @property
    def settings(self) -> Settings:
        return Settings(
            objective=OBJECTIVE,
            # Steps so small that the point hardly moves: gradients stay longer than the radius.
            algorithm=NoisyMinibatchSGD(rounds=self.rounds, batch=self.batch, step_size=STEP),
            trust=self.trust,
            budget=BUDGET,
            unit=self.unit,
            radius=RADIUS,
            noise=self.noise,
            seed=0,
        )


CASES = {
    "full": Case(),
    "continuous": Case(noise="gaussian"),
    "sampled": Case(batch=Fixed(size=2)),
    "disjoint": Case(batch=Disjoint(size=2), rounds=2),
    "central": Case(trust=TrustModel.CENTRAL),
    "persons": Case(unit=Unit.PERSON),
}


def silo(label: float, case: Case) -> Records | Grouped:
    """N units, one of which has a gradient, along the first feature and of the sign of 1/2 - label."""
    visits = 3 if case.unit is Unit.PERSON else 1
    X = np.zeros((N - 1 + visits, 2))
    X[:visits, 0] = 1.0
    records = Records.of(X, np.full(len(X), label))
    if case.unit is Unit.RECORD:
        return records
    return Grouped.of(records, np.maximum(np.arange(len(X)) - visits + 1, 0))


def sums_of(case: Case, prepared: Prepared, *, label: float, seed: int) -> Array:
    """One run: the noisy sums that its points show, shape (rounds,), in radii."""
    silos = make_silos([silo(label, case)], OBJECTIVE, trusts_server=case.settings.trusts_server, seed=seed)
    ask = InProcess(silos, prepared.plan, rng=simulated(seed, "server"))
    points = [np.zeros(2)]
    case.settings.algorithm.run(
        ask,
        points[0],
        problem=prepared.problem,
        rounds=prepared.rounds,
        prox=Zero(),
        follow=lambda _, w: points.append(w),
    )
    rows = case.batch.size_for(N)
    return np.asarray(-np.diff([w[0] for w in points]) / STEP * rows / RADIUS)


def log_ratio(case: Case, sums: Array, std: float) -> Array:
    """Log-likelihood ratio of a unit with sum 1 and one with sum -1, shape (runs,)."""

    def log_likelihood(sign: int) -> Array:
        gain = (sign * sums - 0.5) / std**2
        match case.batch:
            case Fixed():
                rate = case.batch.size_for(N) / N
                return np.asarray(np.log1p(rate * np.expm1(gain)).sum(axis=1))
            case Disjoint():
                unused = np.zeros((len(sums), N // case.batch.size_for(N) - case.rounds))
                return np.asarray(special.logsumexp(np.hstack([gain, unused]), axis=1))
            case _:
                return np.asarray(gain.sum(axis=1))

    return log_likelihood(1) - log_likelihood(-1)


def sabotaged(plan: Plan, *, factor: float, batch: Batch) -> Plan:
    """The same plan with other noise than was calibrated, or another batch."""
    ((step, rounds),) = plan.steps
    assert isinstance(step.estimator, AdditiveMean)
    noise: Any = step.estimator.noise
    noise = msgspec.structs.replace(noise, noise_multiplier=noise.noise_multiplier * factor)
    estimator = msgspec.structs.replace(step.estimator, noise=noise)
    changed = msgspec.structs.replace(step, estimator=estimator, batch=batch)
    return msgspec.structs.replace(plan, steps=((changed, rounds),))


def lower_bound(case: Case, *, factor: float = 1.0, batch: Batch | None = None) -> float:
    """Epsilon that the attack proves to be exceeded, wrong with a probability of at most FALSE_ALARM."""
    honest = prepare(case.settings, [N])
    used = case if batch is None else replace(case, batch=batch)
    prepared = replace(honest, plan=sabotaged(honest.plan, factor=factor, batch=used.batch))
    ratios = []
    for label in (0, 1):
        seeds = range(label * RUNS, label * RUNS + RUNS)
        sums = [sums_of(used, prepared, label=label, seed=seed) for seed in seeds]
        ratios.append(log_ratio(used, np.array(sums), 2 * factor * honest.noise_multiplier))
    threshold = np.quantile(ratios[1][:PILOT], 0.95)
    right, wrong = (int((r[PILOT:] > threshold).sum()) for r in ratios)
    trials = RUNS - PILOT
    # Clopper and Pearson (1934), each side at half the false-alarm rate.
    least = float(stats.beta.ppf(FALSE_ALARM / 2, right, trials - right + 1)) if right else 0.0
    most = float(stats.beta.isf(FALSE_ALARM / 2, wrong + 1, trials - wrong))
    return math.log(max(least - BUDGET.delta, 1e-9) / most)


@pytest.mark.parametrize("name", CASES)
def test_the_best_attack_stays_below_the_claim(name: str) -> None:
    # Fails on right code with a probability of at most FALSE_ALARM.
    assert lower_bound(CASES[name]) <= BUDGET.epsilon


@pytest.mark.parametrize("name", ["full", "continuous", "central"])
def test_noise_of_half_the_size_is_caught(name: str) -> None:
    assert lower_bound(CASES[name], factor=0.5) > BUDGET.epsilon


@pytest.mark.parametrize(("name", "factor"), [("sampled", 1.0), ("disjoint", 0.7)])
def test_whole_silos_in_place_of_the_batches_that_were_priced_are_caught(name: str, factor: float) -> None:
    assert lower_bound(CASES[name], batch=FULL, factor=factor) > BUDGET.epsilon
