"""Attacks on whole runs of perturbed minima: right runs stand, half the noise is caught."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import special

from tacit.audits import Audit, audit
from tacit.federation import Ask
from tacit.learning import (
    LinearObjective,
    Logistic,
    ObjectivePerturbation,
    OutputPerturbation,
    Records,
    Settings,
    in_process,
    make_silos,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.means import NoisyMinimum, PerturbedMinimum
from tacit.numerics import Array, Zero
from tacit.privacy import PrivacyBudget, Relation, TrustModel
from tests.learning.attacks import Parted, parted
from tests.statistics import FALSE_ALARM

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
GOAL = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
LOOSE = PrivacyBudget(1.0, 0.3)
"""A delta at which some hundred runs show what noise of half the size gives away."""
PURE = PrivacyBudget(2.0)

CROWD = np.tile([0.0, -0.1], (2000, 1))
"""Signed rows that pull solutions far along one axis, and hold nothing along the other."""
STEEP = np.array([[0.96, 0.28]])
"""A row on the wrong side of where the crowd pulls: its slope is full, and nearly all along the free axis."""
NEAR: dict[Relation, Array] = {
    Relation.REPLACE_ONE: STEEP * [-1.0, 1.0],
    Relation.ADD_REMOVE: np.zeros((0, 2)),
    Relation.ZERO_OUT: np.zeros((1, 2)),
}
N = len(CROWD) + 1

Score = Callable[[Array], float]


def log_density(w: Array, rows: Array, *, strength: float, scale: float, pure: bool) -> float:
    """Of a solution on signed rows, up to a constant: that of the linear term, which stationarity tells."""
    slopes = special.expit(-rows @ w)
    push = rows.T @ slopes - strength * w
    bend = (rows.T * (slopes * (1 - slopes))) @ rows + strength * np.eye(2)
    length = float(np.linalg.norm(push)) / scale
    return float(np.log(np.linalg.det(bend))) - (length if pure else length**2 / 2)


def score_of(honest: Prepared, rows: dict[bool, Array], *, noise: float) -> Score:
    """The likelihood ratio of the noise that is really there, but for what is on top of a solution."""
    ((step, _),) = honest.plan.kinds
    mean = step.measures[0].estimator
    if isinstance(mean, NoisyMinimum):
        return lambda w: float(w[0])
    assert isinstance(mean, PerturbedMinimum)
    facts: dict[str, Any] = {
        "strength": mean.strength,
        "scale": noise * mean.noise_multiplier * mean.sensitivity,
        "pure": not honest.plan.delta,
    }
    return lambda w: log_density(w, rows[True], **facts) - log_density(w, rows[False], **facts)


def attacked(method: Any, trust: TrustModel, relation: Relation, *, noise: float = 1.0) -> Audit | Parted:
    """Attack whole runs that add that share of the noise of their price."""
    pure = method.pure_noise
    budget = PURE if pure else LOOSE
    settings = Settings(
        objective=GOAL, algorithm=method, trust=trust, relation=relation, budget=budget, noise="gaussian"
    )
    honest = prepare(settings, [N])
    protection = replace(honest.problem.protection, multiplier=noise * honest.noise_multiplier)
    problem = replace(honest.problem, protection=protection)
    sent = msgspec.structs.replace(honest.plan, steps=method.steps(problem, 1))
    rows = {True: np.vstack([CROWD, STEEP]), False: np.vstack([CROWD, NEAR[relation]])}
    units = {present: Records.of(X, np.ones(len(X))) for present, X in rows.items()}
    score = score_of(honest, rows, noise=noise)

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        """As many runs as are wanted, each a round of one plan: to open one takes as long as to solve."""
        ((step, _),) = sent.kinds
        many = msgspec.structs.replace(sent, steps=((step, size),))
        planned, seed = [N] if relation is Relation.ADD_REMOVE else None, int(rng.integers(2**62))
        silos = make_silos([units[present]], GOAL, trusts_server=trust is CENTRAL, planned=planned, seed=seed)
        ask = in_process(silos, seed=seed).open(many)
        return np.array([score(solution(ask, turn)) for turn in range(size)])

    def solution(ask: Ask, turn: int) -> Array:
        w: Array = method.run(
            lambda step, at, radius: ask(turn + step, at, radius),
            np.zeros(2), problem=problem, rounds=1, prox=Zero(), follow=lambda _r, _w: None,
        )  # fmt: skip
        return w

    claim = honest.plan.event([N], trust), budget.delta
    if isinstance(method, OutputPerturbation):  # a minimum, which is no secret here, and Gaussian noise
        return parted(run, claim, runs=240)
    return audit(
        run,
        claim,
        runs=1200 if pure else 900,
        confidence=1 - FALSE_ALARM,
        rng=np.random.default_rng(5),
        attack="likelihood ratio of solutions",
    )


OUTPUT, OBJECTIVE = OutputPerturbation(strength=3.0), ObjectivePerturbation(strength=2.6)
PURE_OBJECTIVE = ObjectivePerturbation(strength=2.6, pure=True)
ATTACKED = [
    # With and without a record replaced, and with either party that adds the noise. The record that is left
    # out and the one that is missing are the same row of zeros, and a server draws as a silo does.
    (OUTPUT, LOCAL, Relation.REPLACE_ONE),
    (OUTPUT, LOCAL, Relation.ADD_REMOVE),
    (OUTPUT, CENTRAL, Relation.ZERO_OUT),
    (OBJECTIVE, LOCAL, Relation.REPLACE_ONE),
    (OBJECTIVE, CENTRAL, Relation.ZERO_OUT),
    (PURE_OBJECTIVE, LOCAL, Relation.REPLACE_ONE),
]


@pytest.mark.parametrize("noise", [1.0, 0.5])
@pytest.mark.parametrize(("method", "trust", "relation"), ATTACKED)
def test_a_whole_run_stands_and_half_the_noise_is_caught(
    method: Any, trust: TrustModel, relation: Relation, noise: float
) -> None:
    """What NoisyMinimum and PerturbedMinimum release of a silo, and of a server."""
    found = attacked(method, trust, relation, noise=noise)
    assert found.claimed_epsilon == pytest.approx(2.0 if method.pure_noise else 1.0, abs=1e-3)
    assert found.refuted == (noise < 1)
