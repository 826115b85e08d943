"""The canary attack on whole runs: right runs stand, half the noise is caught, under every relation."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tacit.audits import Audit, audit_training, canary_settings, training_target
from tacit.errors import ParameterError
from tacit.federation import Disjoint, Fixed, Poisson
from tacit.learning import (
    LinearObjective,
    Logistic,
    Multinomial,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Settings,
)
from tacit.learning.defaults import choose
from tacit.numerics import L2Ball
from tacit.privacy import PrivacyBudget, Relation, TrustModel, Unit
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

BUDGET = PrivacyBudget(1.0, 0.3)
"""A delta at which some hundred runs show what noise of half the size gives away."""
BASE = canary_settings(BUDGET, rounds=2)
SAMPLES = canary_settings(PrivacyBudget(1.0, 0.1), rounds=2)


def sgd(**options: object) -> NoisyMinibatchSGD:
    return NoisyMinibatchSGD(rounds=2, step_size=0.1, **options)  # type: ignore[arg-type]


def by_rule() -> Settings:
    """Two classes of so many features that steps are accelerated, clipped as the rule says, in fewer rounds.

    The Gram matrices of fewer features are attacked in tests/learning/algorithms/test_whitened.py.
    """
    objective = LinearObjective(loss=Logistic(), features=201, feature_norm=1.0)
    choice = choose(
        objective, trust=TrustModel.LOCAL, budget=BUDGET, relation=Relation.REPLACE_ONE, sizes=[4], rounds=2
    )
    return replace(BASE, objective=objective, algorithm=choice.algorithm, clip=choice.share)


CASES: dict[str, Settings] = {
    "local": BASE,
    "central": replace(BASE, trust=TrustModel.CENTRAL),
    "zero-out": replace(BASE, relation=Relation.ZERO_OUT),
    "add-remove": replace(BASE, relation=Relation.ADD_REMOVE),
    "persons": replace(BASE, unit=Unit.PERSON),
    "constrained": replace(BASE, regularizer=L2Ball(radius=0.01)),
    "replaced in a Poisson sample": replace(BASE, algorithm=sgd(batch=Poisson(rate=0.9))),
    "as the rule has it": by_rule(),
}
SAMPLED: dict[str, Settings] = {
    "fixed": replace(SAMPLES, algorithm=sgd(batch=Fixed(size=2))),
    "poisson": replace(SAMPLES, algorithm=sgd(batch=Poisson(rate=0.5)), relation=Relation.ZERO_OUT),
    "poisson, replaced": replace(SAMPLES, algorithm=sgd(batch=Poisson(rate=0.5))),
    "disjoint": replace(SAMPLES, algorithm=sgd(batch=Disjoint(size=2))),
    "walks": replace(SAMPLES, algorithm=NoisyLocalSGD(rounds=1, local_steps=2, step_size=0.1)),
}


def attacked(settings: Settings, *, factor: float = 1.0, runs: int = 500) -> Audit:
    rng = simulated(1, "audit")
    return audit_training(settings, noise_factor=factor, runs=runs, confidence=1 - FALSE_ALARM, rng=rng)


@pytest.mark.parametrize("name", [*CASES, *SAMPLED])
def test_a_right_run_stands(name: str) -> None:
    found = attacked({**CASES, **SAMPLED}[name], runs=500 if name in CASES else 200)
    assert found.claimed_epsilon == pytest.approx(1.0, abs=1e-3)
    assert not found.refuted


@pytest.mark.parametrize("name", CASES)
def test_half_the_noise_is_caught(name: str) -> None:
    assert attacked(CASES[name], factor=0.5).refuted


@pytest.mark.parametrize("name", SAMPLED)
def test_a_fifth_of_the_noise_is_caught_on_samples(name: str) -> None:
    runs = {"walks": 1000, "poisson": 600}.get(name, 400)  # whose scores are the weakest
    assert attacked(SAMPLED[name], factor=0.2, runs=runs).empirical_epsilon_lower > 0.5


def test_the_canary_moves_every_answer_by_the_radius() -> None:
    # Next to no noise: what is seen is the sum over rounds of the mean clipped gradient.
    settings = replace(BASE, clip=0.25)
    target = training_target(settings, n=4, noise_factor=1e-6)
    rounds, n = 2, 4
    for there, sign in ((True, 1), (False, -1)):
        scores = target.run(there, 3, simulated(2, "audit"))
        assert scores == pytest.approx(np.full(3, sign * rounds * 0.25 / n), rel=1e-3)


def test_every_run_has_noise_of_its_own() -> None:
    scores = training_target(BASE).run(True, 5, simulated(3, "audit"))
    assert len(set(scores.tolist())) == 5


@pytest.mark.parametrize(
    ("settings", "options", "said"),
    [
        (BASE, {"n": 1}, "n must be a whole number >= 2"),
        (BASE, {"noise_factor": 0.0}, "noise_factor must be a finite number > 0"),
        (replace(BASE, trust=None, budget=None), {}, "without a claim nothing is audited"),
        (
            replace(BASE, objective=LinearObjective(loss=Multinomial(), features=2, outputs=3)),
            {},
            "linear objective with one output",
        ),
    ],
)
def test_what_cannot_be_attacked_is_refused(settings: Settings, options: dict[str, float], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        training_target(settings, **options)  # type: ignore[arg-type]
