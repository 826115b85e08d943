"""Shuffled rounds and whole runs with reports that rows randomise one by one, in place of sums of bits."""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import stats

from tacit.federation import InProcess, Measure, Plan, Silo, Step, with_honest
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    Problem,
    Records,
    Settings,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms import Kinds
from tacit.means import PrivUnitMean, Round
from tacit.numerics import clip_rows
from tacit.privacy import PrivacyBudget, Repeat, Shuffled, TrustModel, guarantee, verify
from tests.contract.mean_cases import ESTIMATORS
from tests.federation.world import AT, DIM, Rows, rows
from tests.statistics import FALSE_ALARM, z_bound

SIZES = (5, 9, 7)
DATA = [rows(k, n) for k, n in enumerate(SIZES)]
SHUFFLED = [case for case in ESTIMATORS if case.make(3, 1).trust is TrustModel.SHUFFLE]
DRAWS = 200


def plain(mean: Any) -> Any:
    """The estimator as plans want it, which say who arrives and who is honest."""
    return msgspec.structs.replace(mean, n_min=None, honest_fraction=1.0)


def _row(units: Rows, at: Any) -> Any:
    return units.values


@pytest.mark.parametrize("case", SHUFFLED, ids=str)
def test_shuffled_rounds_of_any_estimator_have_its_law(case: Any) -> None:
    """Averages of rounds are those of `estimate` on all rows, by their standard errors."""
    mean = plain(case.make(DIM, sum(SIZES)))
    kind = Step(measures=(Measure(statistic="row", estimator=mean, max_radius=1.0),))
    made = Plan(
        steps=with_honest(((kind, DRAWS),), SIZES, n_min=3, colluding=0),
        parties=3,
        trust=TrustModel.SHUFFLE,
        delta=1e-6,
        n_min=3,
    )
    assert Plan.from_toml(made.to_toml()) == made
    parties = [
        Silo(Rows(v), {"row": _row}, trusts_shuffler=True, trusts_server=True, rng=np.random.default_rng(k))
        for k, v in enumerate(DATA)
    ]
    ask = InProcess(parties, rng=np.random.default_rng(9), shuffler_rng=np.random.default_rng(8)).open(made)
    rng, everything = np.random.default_rng(10), np.vstack(DATA)
    found = np.array([ask(k, AT, (1.0,))[0] for k in range(DRAWS)])
    drawn = np.array(
        [
            mean.estimate(everything, Round(n=21, radius=1.0, number=k, parties=3), rng=rng)
            for k in range(DRAWS)
        ]
    )
    error = np.sqrt((found.var(axis=0, ddof=1) + drawn.var(axis=0, ddof=1)) / DRAWS)
    assert (error > 0).all()
    assert (np.abs(found.mean(axis=0) - drawn.mean(axis=0)) < z_bound(DIM * len(SHUFFLED)) * error).all()
    assert all(
        stats.ks_2samp(found[:, k], drawn[:, k]).pvalue > FALSE_ALARM / DIM / len(SHUFFLED)
        for k in range(DIM)
    )
    assert ask.traffic.bits_up.sum() > 0


# --- a whole run

D, SILOS = 3, (300, 500, 200)
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)


class Reporting(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="reporting"):
    """Minibatch SGD whose gradients are reports: the level of each falls as the noise of a sum would rise."""

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        level = min(8.0, max(2.0**-20, 64 / max(problem.protection.multiplier, 2.0**-20)))
        mean = PrivUnitMean(
            dim=problem.dim, local_epsilon=level, trust=TrustModel.SHUFFLE, on_violation="clip"
        )
        measure = Measure(statistic="gradient", estimator=mean, max_radius=problem.radius)
        return ((Step(measures=(measure,), batch=self.batch), rounds),)


def test_a_whole_run_on_reports_meets_its_budget_and_learns() -> None:
    rng = np.random.default_rng(1)
    truth, data = np.array([3.0, -2.0, 1.0]), []
    for n in SILOS:
        X = clip_rows(rng.standard_normal((n, D)), 1.0)
        data.append(Records.of(X, (X @ truth > 0).astype(np.float64)))
    chosen = Settings(
        objective=OBJECTIVE,
        algorithm=Reporting(rounds=4, step_size=4.0),
        trust=TrustModel.SHUFFLE,
        budget=BUDGET,
        clip=0.5,
    )
    silos = make_silos(data, OBJECTIVE, trusts_shuffler=True, seed=3)
    found = train(in_process(silos, seed=3), chosen)
    assert 1.8 < found.guarantee.epsilon <= 2.0
    ((step, count),) = found.plan.kinds
    mean = step.measures[0].estimator
    assert isinstance(mean, PrivUnitMean)
    assert (step.honest, count) == (1000, 4)
    law = mean.randomizer.law
    for name, low, high in ((law, 1 - 1e-6, 1 + 1e-6), ("general", 1.0, math.inf)):
        event = Repeat(Shuffled(mean.local_epsilon, 1000, name), 4)
        by_hand = guarantee(event, BUDGET.delta, observer="the server").epsilon
        assert low * found.guarantee.epsilon <= by_hand <= high * found.guarantee.epsilon
    before = found.guarantee_alone
    assert before is not None
    assert found.guarantee.epsilon < before.epsilon
    assert before.epsilon <= 4 * mean.local_epsilon + 1e-9
    for claim in (*found.guarantees, *found.guarantees_alone):
        verify(claim)
    right = [float(((one.X @ found.w > 0) == one.y).mean()) for one in data]
    assert min(right) > 0.5
