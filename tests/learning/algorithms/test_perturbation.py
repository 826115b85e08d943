"""Perturbed minima as algorithms: what is solved, what it costs and refuses, and attacks on whole runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.audits import Audit, audit
from tacit.errors import ParameterError
from tacit.federation import Fixed, Plan
from tacit.learning import (
    FederatedLinearRegression,
    FederatedLogisticRegression,
    Hinge,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    OutputPerturbation,
    Records,
    Settings,
    Trained,
    in_process,
    make_silos,
    train,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.signed import SignedRow
from tacit.means import NoisyMinimum
from tacit.numerics import L1, Array, ElasticNet, L2Ball, Zero, row_norms
from tacit.privacy import Gaussian, Neighbours, PrivacyBudget, Relation, TrustModel, meets
from tests.statistics import FALSE_ALARM

BUDGET = PrivacyBudget(1.0, 1e-5)
LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
METHODS = [OutputPerturbation()]

every = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


def objective(loss: Loss | None = None, d: int = 4, outputs: int = 1, norm: float = 1.0) -> LinearObjective:
    return LinearObjective(loss=loss or Logistic(), features=d, outputs=outputs, feature_norm=norm)


def table(n: int = 300, d: int = 4, *, seed: int = 0) -> Records:
    """Rows of length 1 and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= row_norms(X)[:, None]
    return Records.of(X, (6 * X @ rng.normal(size=d) + rng.logistic(size=n) > 0).astype(float))


def fitted(algorithm: Any, units: list[Records], **changes: Any) -> Trained:
    goal = objective(d=units[0].X.shape[1])
    settings = Settings(objective=goal, algorithm=algorithm, **changes)
    counted = settings.relation is Relation.ADD_REMOVE
    planned = [len(one) for one in units] if counted else None
    silos = make_silos(units, goal, trusts_server=settings.trusts_server, planned=planned, seed=1)
    return train(in_process(silos, seed=1), settings)


def prepared(algorithm: Any, sizes: list[int], **changes: Any) -> Prepared:
    fields: dict[str, Any] = {"objective": objective(), "trust": LOCAL, "budget": BUDGET}
    return prepare(Settings(algorithm=algorithm, **(fields | changes)), sizes)


@every
def test_without_noise_it_is_ridge_logistic_regression(method: Any) -> None:
    units = table()
    for strength in (0.3, 1.0, 20.0):
        other = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-12, max_iter=10_000)
        expected = other.fit(units.X, units.y).coef_[0]
        found = fitted(type(method)(strength=strength), [units]).w
        assert found == pytest.approx(expected, abs=1e-6)
    plain = fitted(method, [units]).w
    assert plain == pytest.approx(
        LogisticRegression(fit_intercept=False, tol=1e-12).fit(units.X, units.y).coef_[0], abs=1e-5
    )


@every
def test_a_server_solves_for_all_rows_and_silos_for_their_own(method: Any) -> None:
    units, strong = [table(seed=1), table(100, seed=2)], PrivacyBudget(1e6, 1e-5)
    method = type(method)(strength=2.0)
    alone = [fitted(method, [one]).w for one in units]
    parts = [units[0].X, units[1].X], [units[0].y, units[1].y]
    together = fitted(method, [Records.of(*(np.concatenate(part) for part in parts))]).w
    central = fitted(method, units, trust=CENTRAL, budget=strong)
    assert central.w == pytest.approx(together, abs=0.01)
    local = fitted(method, units, trust=LOCAL, budget=strong)
    assert local.w == pytest.approx((300 * alone[0] + 100 * alone[1]) / 400, abs=0.01)
    assert np.linalg.norm(local.w - central.w) > 0.1


def test_signed_rows_are_labels_times_features() -> None:
    units = Records.of(
        np.array([[1.0, 2.0], [3.0, 4.0], [5.0, math.nan], [1.0, 1.0]]), np.array([0.0, 1, 1, 1e300])
    )
    rows = SignedRow(objective(d=2))(units, {})
    assert rows.tolist() == [[-1, -2], [3, 4], [0, 0], [1, 1]]


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_output_perturbation_is_one_gaussian_release(trust: TrustModel, relation: Relation) -> None:
    found = prepared(OutputPerturbation(strength=80.0), [300, 500], trust=trust, relation=relation)
    event = found.plan.event([300], trust)
    assert event == Gaussian(found.noise_multiplier, Neighbours(relation))
    assert found.noise_multiplier == pytest.approx(3.730632, rel=1e-6)
    assert meets(event, BUDGET)
    (one,) = found.means
    assert (one.statistic, one.rounds, one.clip) == ("signed-row", 1, 1.0)


def test_the_default_strength_is_made_for_the_rows_at_one_place() -> None:
    def strength(sizes: list[int], **changes: Any) -> float:
        (step, _) = prepared(OutputPerturbation(), sizes, **changes).plan.kinds[0]
        estimator = step.measures[0].estimator
        assert isinstance(estimator, NoisyMinimum)
        return estimator.strength

    z = 3.730632
    assert strength([8000]) == pytest.approx(math.cbrt(8000 * (2 * z) ** 2 / 1800), rel=1e-5)
    assert strength([100, 8000]) == strength([8000])
    assert strength([3000, 5000], trust=CENTRAL) == strength([8000])
    assert strength([8000], relation=Relation.ZERO_OUT) == pytest.approx(
        math.cbrt(8000 * z**2 / 1800), rel=1e-5
    )


@every
def test_rows_are_clipped_to_shorter_gradients_where_they_are_asked_for(method: Any) -> None:
    assert prepared(method, [300], clip=0.25).means[0].clip == 0.25
    assert prepared(method, [300], clip=7.0).means[0].clip == 1.0
    assert prepared(method, [300], objective=objective(norm=3.0)).means[0].clip == 3.0


@every
@pytest.mark.parametrize(
    ("options", "changes", "said"),
    [
        ({"rounds": 2}, {}, "rounds must be 1 for a minimum"),
        ({"batch": Fixed(size=3)}, {}, "batch must be 'full' for a minimum"),
        ({}, {"objective": objective(Hinge())}, "needs the logistic loss of two classes, got Hinge"),
        (
            {},
            {"objective": objective(Multinomial(), outputs=3)},
            "needs the logistic loss of two classes, got Multinomial",
        ),
        (
            {},
            {"objective": objective(norm=math.inf), "clip": 1.0},
            "needs features of known norm, got infinity",
        ),
        ({}, {"regularizer": ElasticNet(l1=0.1, l2=0.0)}, "l1 and l2 must be 0 .* option strength"),
        ({}, {"regularizer": ElasticNet(l1=0.0, l2=0.1)}, "l1 and l2 must be 0 .* option strength"),
        ({}, {"regularizer": L1(0.1)}, "l1 and l2 must be 0"),
        ({}, {"regularizer": L2Ball(3.0)}, "l1 and l2 must be 0"),
        ({"tolerance": 1e-15}, {}, "tolerance must be at least"),
    ],
)
def test_what_has_no_price_is_refused(method: Any, options: Any, changes: Any, said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        prepared(type(method)(**options), [300], **changes)


@every
def test_options_out_of_range_are_refused(method: Any) -> None:
    for name in ("strength", "tolerance"):
        for wrong in (0.0, -1.0, math.inf):
            with pytest.raises(ParameterError, match=f"{name} must be a finite number > 0"):
                type(method)(**{name: wrong})


def test_a_classifier_takes_it_by_name_and_a_regression_does_not() -> None:
    units = table(2000)
    model = FederatedLogisticRegression(
        algorithm="output-perturbation",
        trust="central",
        budget=PrivacyBudget(8.0, 1e-5),
        bounds=(-1.0, 1.0),
        classes=[0, 1],
        random_state=0,
    ).fit(units.X, units.y)
    assert model.score(units.X, units.y) > 0.8
    with pytest.raises(ParameterError, match="needs the logistic loss of two classes, got Squared"):
        FederatedLinearRegression(algorithm="output-perturbation").fit(units.X, units.y)
    many = FederatedLogisticRegression(algorithm="output-perturbation")
    with pytest.raises(ParameterError, match="got Multinomial"):
        many.fit(units.X, np.arange(2000) % 3)


KEPT = np.array([[1.0, 0.0]] * 200)
"""Rows that agree drag the solution to where one that leans against them has nearly all of its slope."""

NEAR: dict[Relation, Array] = {
    Relation.REPLACE_ONE: np.array([[-0.6, -0.8]]),
    Relation.ADD_REMOVE: np.zeros((0, 2)),
    Relation.ZERO_OUT: np.zeros((1, 2)),
}


def attacked(method: Any, trust: TrustModel, relation: Relation, *, noise: float) -> Audit:
    """Attack whole runs that add that share of the noise of their price; the score is one coordinate."""
    goal, budget, n = objective(d=2), PrivacyBudget(2.0, 0.02), len(KEPT) + 1
    settings = Settings(
        objective=goal, algorithm=method, trust=trust, relation=relation, budget=budget, noise="gaussian"
    )
    honest = prepare(settings, [n])
    protection = replace(honest.problem.protection, multiplier=noise * honest.noise_multiplier)
    problem = replace(honest.problem, protection=protection)
    sent = Plan(steps=method.steps(problem, 1), parties=1, trust=trust, delta=budget.delta)
    rows = {True: np.vstack([KEPT, [[-0.6, 0.8]]]), False: np.vstack([KEPT, NEAR[relation]])}
    units = {present: Records.of(X, np.ones(len(X))) for present, X in rows.items()}

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        found = []
        for seed in rng.integers(2**62, size=size):
            silos = make_silos(
                [units[present]],
                goal,
                trusts_server=trust is CENTRAL,
                planned=[n] if relation is Relation.ADD_REMOVE else None,
                seed=int(seed),
            )
            ask = in_process(silos, seed=int(seed)).open(sent)
            w = method.run(
                ask, np.zeros(2), problem=problem, rounds=1, prox=Zero(), follow=lambda _r, _w: None
            )
            found.append(w[1])
        return np.array(found)

    claim = honest.plan.event([n], trust), budget.delta
    return audit(run, claim, runs=600, confidence=1 - FALSE_ALARM, rng=np.random.default_rng(5))


ATTACKS = [
    (LOCAL, Relation.ADD_REMOVE),
    (LOCAL, Relation.REPLACE_ONE),
    (CENTRAL, Relation.ZERO_OUT),
]


@every
@pytest.mark.parametrize(("trust", "relation"), ATTACKS)
def test_an_attack_on_whole_runs_stays_below_the_claim_and_breaks_a_quarter_of_the_noise(
    method: Any, trust: TrustModel, relation: Relation
) -> None:
    method = type(method)(strength=1.0)
    for noise, caught in ((1.0, False), (0.25, True)):
        found = attacked(method, trust, relation, noise=noise)
        assert found.claimed_epsilon == pytest.approx(2.0, abs=0.01)
        assert found.refuted == caught
