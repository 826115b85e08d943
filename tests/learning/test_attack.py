"""Attacks on whole runs: how well the best test tells two neighbouring silos apart, next to what is claimed.

The attacker sees all points of a run and takes the likelihood ratio of the two data sets, which no other test
beats (Neyman and Pearson). Its errors bound epsilon from below; that bound must stay under the claim, and
come out above it where noise or batches are not what was priced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

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
from tacit.numerics import Array, Zero
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, Unit, calibrate
from tacit.randomness import simulated
from tests.learning.attacks import parted, quieter
from tests.statistics import FALSE_ALARM

BUDGET = PrivacyBudget(1.0, 0.3)
"""A delta at which some hundred runs show what noise of half the size gives away."""
RADIUS = 0.1
STEP = 1e-3
N = 4
FULL = Full()
OBJECTIVE = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
RUNS = 400
"""On either side: half the noise then shows an epsilon near 1.5 where 1 is claimed."""
SHARES = (1.0, 0.5, 0.25)
"""Of the noise, that thresholds are placed for: whatever the code draws, one of them is near the best."""


@dataclass(frozen=True)
class Case:
    """One way to train."""

    batch: Batch = FULL
    rounds: int = 3
    unit: Unit = Unit.RECORD

    @property
    def settings(self) -> Settings:
        return Settings(
            objective=OBJECTIVE,
            # Steps so small that the point hardly moves: gradients stay longer than the radius.
            algorithm=NoisyMinibatchSGD(rounds=self.rounds, batch=self.batch, step_size=STEP),
            trust=TrustModel.LOCAL,
            budget=BUDGET,
            unit=self.unit,
            clip=RADIUS,
            noise="discrete-gaussian",
        )


CASES = {
    "sampled": Case(batch=Fixed(size=1)),
    "disjoint": Case(batch=Disjoint(size=2), rounds=2),
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
    ask = InProcess(silos, rng=simulated(seed, "server")).open(prepared.plan)
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


def threshold(case: Case, std: float, share: float) -> float:
    """The log-likelihood ratio that one in 50 runs without the unit exceeds at that share of the noise.

    Drawn from its law, it needs none of the runs, so that the bounds on their errors hold, wherever it is.
    """
    rng, draws = simulated(0, "threshold"), 20_000
    match case.batch:
        case Fixed():
            seen = rng.random((draws, case.rounds)) < case.batch.size_for(N) / N
        case Disjoint():
            seen = rng.integers(N // case.batch.size_for(N), size=(draws, 1)) == np.arange(case.rounds)
        case _:
            seen = np.ones((draws, case.rounds), dtype=bool)
    sums = rng.normal(-1.0 * seen, share * std)
    return float(np.quantile(log_ratio(case, sums, std), 0.98))


def sabotaged(plan: Plan, *, factor: float, batch: Batch) -> Plan:
    """The same plan with other noise than was calibrated, or another batch."""
    ((step, rounds),) = quieter(plan, factor).kinds
    return msgspec.structs.replace(plan, steps=((msgspec.structs.replace(step, batch=batch), rounds),))


def lower_bound(case: Case, *, factor: float = 1.0, batch: Batch | None = None) -> float:
    """Epsilon that the attack proves to be exceeded, wrong with a probability of at most FALSE_ALARM."""
    honest = prepare(case.settings, [N])
    used = case if batch is None else replace(case, batch=batch)
    prepared = replace(honest, plan=sabotaged(honest.plan, factor=factor, batch=used.batch))
    std = 2 * factor * honest.noise_multiplier
    ratios = []
    for label in (0, 1):
        seeds = range(label * RUNS, label * RUNS + RUNS)
        sums = [sums_of(used, prepared, label=label, seed=seed) for seed in seeds]
        ratios.append(log_ratio(used, np.array(sums), std))
    # Where the noise is less than it should be, a nearer threshold tells the silos apart.
    return max(bound_at(threshold(used, std, share), *ratios) for share in SHARES)


def bound_at(value: float, there: Array, other: Array) -> float:
    """Epsilon that one threshold proves, its share of the false alarms given."""
    right, wrong = (int((ratios > value).sum()) for ratios in (there, other))
    # Clopper and Pearson (1934), each side of each threshold at an equal part of the false-alarm rate.
    level = FALSE_ALARM / (2 * len(SHARES))
    least = float(stats.beta.ppf(level, right, RUNS - right + 1)) if right else 0.0
    most = float(stats.beta.isf(level, wrong + 1, RUNS - wrong))
    return math.log(max(least - BUDGET.delta, 1e-9) / most)


@pytest.mark.parametrize("name", CASES)
def test_the_best_attack_stays_below_the_claim(name: str) -> None:
    # Fails on right code with a probability of at most FALSE_ALARM.
    assert lower_bound(CASES[name]) <= BUDGET.epsilon


def test_noise_of_half_the_size_is_caught() -> None:
    assert lower_bound(CASES["persons"], factor=0.5) > BUDGET.epsilon


@pytest.mark.parametrize(("name", "factor"), [("sampled", 1.0), ("disjoint", 0.7)])
def test_whole_silos_in_place_of_the_batches_that_were_priced_are_caught(name: str, factor: float) -> None:
    assert lower_bound(CASES[name], batch=FULL, factor=factor) > BUDGET.epsilon


@pytest.mark.parametrize(("share", "refuted"), [(1.0, False), (0.6, True)])
def test_normal_scores_stand_at_their_price_and_are_caught_with_less_noise(
    share: float, refuted: bool
) -> None:
    noise = calibrate(Gaussian, BUDGET)

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        return rng.normal(float(present), share * noise, size)

    assert parted(run, (Gaussian(noise), BUDGET.delta), runs=480).refuted is refuted
