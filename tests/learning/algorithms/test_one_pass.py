"""One pass in batches of the tuning rules, where a method is told no batch."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.federation import Disjoint, Full
from tacit.learning import (
    LanAcceleratedSGD,
    LinearObjective,
    LipschitzSGD,
    Logistic,
    Method,
    PhasedAcceleratedSGD,
    Records,
    Settings,
    train,
)
from tacit.learning.preparation import prepare
from tacit.learning.training import silos_for
from tacit.learning.tuning import accelerated_batch, plain_batch
from tacit.numerics import clip_rows
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, calibrate

D, SIZES, BUDGET = 5, (2000,) * 4, PrivacyBudget(2.0, 1e-5)
GOAL = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)


def settings(algorithm: Method, trust: TrustModel | None) -> Settings:
    budget = None if trust is None else BUDGET
    return Settings(objective=GOAL, algorithm=algorithm, trust=trust, budget=budget, diameter=2.0)  # type: ignore[arg-type]


@pytest.mark.parametrize("trust", [TrustModel.CENTRAL, TrustModel.SHUFFLE, TrustModel.LOCAL])
def test_batches_are_those_of_the_rules_and_every_unit_is_asked_once(trust: TrustModel) -> None:
    noises = 4 if trust is TrustModel.LOCAL else 1
    level = 1 / (calibrate(Gaussian, BUDGET) * math.sqrt(noises))
    plain = plain_batch(dim=D, level=level)
    fast = accelerated_batch(n=8000, dim=D, level=level, smoothness=0.25, lipschitz=1.0, diameter=2.0)
    for algorithm, size in ((LipschitzSGD(batch=None), plain), (LanAcceleratedSGD(batch=None), fast)):
        prepared = prepare(settings(algorithm, trust), SIZES)
        ((step, count),) = prepared.plan.kinds
        assert isinstance(step.batch, Disjoint)
        own = step.batch.size_for(2000)
        assert abs(4 * own - size) <= 4
        assert count == prepared.rounds == 2000 // own


def test_phases_take_the_batches_of_accelerated_steps_and_nobody_pays_without_a_budget() -> None:
    phased = prepare(settings(PhasedAcceleratedSGD(mu=0.05, batch=None), TrustModel.CENTRAL), SIZES)
    fast = prepare(settings(LanAcceleratedSGD(batch=None), TrustModel.CENTRAL), SIZES)
    assert phased.plan.kinds[0][0].batch == fast.plan.kinds[0][0].batch
    free = prepare(settings(LipschitzSGD(rounds=3, batch=None), None), SIZES)
    assert free.plan.kinds[0][0].batch == Full()


def test_a_run_of_one_pass_costs_its_budget_and_learns() -> None:
    rng = np.random.default_rng(0)
    truth = np.array([3.0, -2.0, 1.0, 0.0, 2.0])
    data = []
    for n in SIZES:
        X = clip_rows(rng.standard_normal((n, D)), 1.0)
        data.append(Records.of(X, (X @ truth > 0).astype(np.float64)))
    chosen = settings(LipschitzSGD(batch=None), TrustModel.CENTRAL)
    found = train(silos_for(chosen, data, names=list("abcd"), seed=1), chosen)
    assert 1.9 < found.guarantee.epsilon <= 2.0
    assert np.mean([((one.X @ found.w > 0) == one.y).mean() for one in data]) > 0.8
