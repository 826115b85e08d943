"""Perturbed minima as algorithms: what is solved, what it costs and refuses."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.cli import main
from tacit.errors import ParameterError, PrivacyWarning, RefusalError
from tacit.federation import Fixed
from tacit.jobs import JobConfig
from tacit.learning import (
    FederatedLinearRegression,
    FederatedLogisticRegression,
    Grouped,
    Hinge,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    ObjectivePerturbation,
    OutputPerturbation,
    PerPerson,
    Records,
    Settings,
    Trained,
    in_process,
    make_silos,
    train,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.signed import SignedRow
from tacit.ledger import Ledger
from tacit.means import NoisyMinimum, PerturbedMinimum
from tacit.numerics import L1, ElasticNet, L2Ball, row_norms
from tacit.privacy import (
    CONTINUOUS,
    Compose,
    Gaussian,
    Neighbours,
    ObjectivePerturbed,
    PrivacyBudget,
    Relation,
    TrustModel,
    Unit,
    meets,
    neighbours_of,
)

BUDGET = PrivacyBudget(1.0, 1e-5)
LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
METHODS = [OutputPerturbation(), ObjectivePerturbation()]

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


def chosen(algorithm: Any, sizes: list[int], **changes: Any) -> tuple[float, float]:
    """The strength and the tolerance of the only mean of a plan."""
    ((step, _),) = prepared(algorithm, sizes, **changes).plan.kinds
    mean = step.measures[0].estimator
    assert isinstance(mean, NoisyMinimum | PerturbedMinimum)
    return mean.strength, mean.tolerance


def test_the_strength_of_output_perturbation_goes_by_the_noise() -> None:
    z = 3.730632
    assert chosen(OutputPerturbation(), [8000])[0] == pytest.approx(6 * z, rel=1e-5)
    halved = chosen(OutputPerturbation(), [8000], relation=Relation.ZERO_OUT)[0]
    assert halved == pytest.approx(3 * z, rel=1e-5)


def test_the_strength_of_objective_perturbation_goes_by_the_level_or_by_the_noise() -> None:
    method, wide = ObjectivePerturbation(), objective(d=784)
    assert chosen(method, [8000])[0] == pytest.approx(2.5 / 0.99)
    assert chosen(method, [8000], relation=Relation.ZERO_OUT)[0] == pytest.approx(1 / 0.99)
    z = prepared(method, [8000], objective=wide).noise_multiplier
    assert chosen(method, [8000], objective=wide)[0] == pytest.approx(2 * z * 28 / 30)


@every
def test_the_tolerance_is_what_rounding_of_all_rows_at_one_place_allows(method: Any) -> None:
    few, many = chosen(method, [300])[1], chosen(method, [10**6])[1]
    assert few == 1e-6 < many
    sizes = [400_000, 600_000]
    assert chosen(method, sizes, trust=CENTRAL)[1] == pytest.approx(many)
    for trust in (LOCAL, CENTRAL):
        # A silo may hold twice as many rows as are planned.
        found = prepared(method, sizes, trust=trust, relation=Relation.ADD_REMOVE)
        assert meets(found.plan.event(sizes, trust), BUDGET)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_objective_perturbation_costs_hardly_more_than_one_gaussian_release(
    trust: TrustModel, relation: Relation
) -> None:
    found = prepared(ObjectivePerturbation(), [300, 500], trust=trust, relation=relation)
    event = found.plan.event([300], trust)
    assert meets(event, BUDGET)
    assert 3.730632 < found.noise_multiplier < 1.001 * 3.730632
    near, strength = Neighbours(relation), chosen(ObjectivePerturbation(), [300], relation=relation)[0]
    assert event == Compose(
        (
            ObjectivePerturbed(found.noise_multiplier, strength, neighbours=near),
            Gaussian(50 * found.noise_multiplier, near),
        )
    )


def test_a_weak_penalty_takes_more_noise() -> None:
    strong, weak = (
        prepared(ObjectivePerturbation(strength=s), [300], relation=Relation.ZERO_OUT).noise_multiplier
        for s in (1.1, 0.05)
    )
    assert weak > 1.2 * strong


def test_objective_perturbation_has_no_exact_noise() -> None:
    with pytest.raises(ParameterError, match="noise must be 'gaussian' for the algorithm 'objective-pert"):
        prepared(ObjectivePerturbation(), [300], noise="discrete-gaussian")
    assert prepared(OutputPerturbation(), [300], noise="discrete-gaussian", unit=Unit.PERSON).plan.exact
    assert not prepared(ObjectivePerturbation(), [300]).plan.exact


def test_a_ledger_refuses_what_is_not_exact(tmp_path: Path) -> None:
    units = table(200)
    fields: dict[str, Any] = {"trust": "central", "budget": BUDGET, "bounds": (-1.0, 1.0), "classes": [0, 1]}
    with Ledger.create(
        tmp_path / "a.ledger", limit=PrivacyBudget(9.0, 1e-3), neighbours=Neighbours()
    ) as ledger:
        perturbed = FederatedLogisticRegression(
            **fields, algorithm="objective-perturbation", noise="gaussian", ledger=ledger
        )
        said = "the ledger of .* refuses continuous noise"
        with pytest.warns(PrivacyWarning), pytest.raises(RefusalError, match=said):
            perturbed.fit(units.X, units.y)
        exact = FederatedLogisticRegression(**fields, algorithm="output-perturbation", ledger=ledger)
        assert CONTINUOUS not in exact.fit(units.X, units.y).guarantee_.assumptions


def test_without_a_ledger_a_statement_says_that_noise_is_continuous() -> None:
    units = table(200)
    model = FederatedLogisticRegression(
        algorithm="objective-perturbation",
        budget=BUDGET,
        bounds=(-1.0, 1.0),
        classes=[0, 1],
        noise="gaussian",
    )
    with pytest.warns(PrivacyWarning, match="continuous noise leaks"):
        model.fit(units.X, units.y)
    assert CONTINUOUS in model.guarantee_.assumptions
    assert "every coordinate of the model is regularised" in model.guarantee_.assumptions


@every
def test_a_dry_run_knows_how_noisy_a_gradient_would_be(method: Any) -> None:
    z = 2 * prepared(method, [300]).noise_multiplier * math.sqrt(4)
    assert prepared(method, [200, 100], trust=CENTRAL).problem.noise_std == pytest.approx(z / 300)
    # Every silo adds noise of its own.
    assert prepared(method, [150, 150]).problem.noise_std == pytest.approx(math.sqrt(2) * z / 300)


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
        ({}, {"objective": objective(Hinge())}, "needs the logistic loss of two classes, got 'hinge'"),
        (
            {},
            {"objective": objective(Multinomial(), outputs=3)},
            "needs the logistic loss of two classes, got 'multinomial'",
        ),
        (
            {},
            {"objective": objective(norm=math.inf), "clip": 1.0},
            "needs features of known norm, got infinity",
        ),
        ({}, {"regularizer": ElasticNet(l1=0.1, l2=0.0)}, "takes no penalty .* option strength"),
        ({}, {"regularizer": ElasticNet(l1=0.0, l2=0.1)}, "takes no penalty .* option strength"),
        ({}, {"regularizer": L1(0.1)}, "takes no penalty"),
        ({}, {"regularizer": L2Ball(3.0)}, "takes no penalty and no domain"),
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


@pytest.mark.parametrize("relation", list(Relation))
def test_a_pure_epsilon_needs_no_delta(relation: Relation) -> None:
    pure, budget = ObjectivePerturbation(pure=True), PrivacyBudget(1.0)
    found = prepared(pure, [300], budget=budget, relation=relation)
    assert meets(found.plan.event([300], LOCAL), budget)
    assert found.noise_multiplier == pytest.approx(1.02, rel=1e-6)  # 1 / z, and a fiftieth for the solution
    strength, _ = chosen(pure, [300], budget=budget, relation=relation)
    assert strength == pytest.approx(1.02 * (2 if relation is Relation.REPLACE_ONE else 1))
    for other in (ObjectivePerturbation(), OutputPerturbation()):
        with pytest.raises(ParameterError, match="delta must be > 0 with Gaussian noise"):
            prepared(other, [300], budget=budget)
    assert JobConfig(algorithm="objective-perturbation", delta=0.0, options={"pure": True}).chosen == pure
    with pytest.raises(ParameterError, match="delta must be > 0"):
        JobConfig(algorithm="objective-perturbation", delta=0.0)


def test_a_pure_run_has_a_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From the command line to the statement, which can be checked."""
    named = ["--algorithm", "objective-perturbation", "--option", "pure=true", "--delta", "0", "--seed", "0"]
    told = ["--data", "digits-odd-even", "--epsilon", "8", "--out", str(tmp_path), "--name", "pure"]
    assert main(["train", *told, *named]) == 0
    assert main(["account", "verify", str(tmp_path / "pure" / "statement.json")]) == 0
    assert "arithmetic verified" in capsys.readouterr().out


def test_a_pure_run_states_no_delta() -> None:
    units = table(2000)
    model = FederatedLogisticRegression(
        algorithm=ObjectivePerturbation(pure=True),
        trust="central",
        neighbours="zero-out",
        budget=PrivacyBudget(2.0),
        bounds=(-1.0, 1.0),
        classes=[0, 1],
        random_state=0,
    ).fit(units.X, units.y)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (2.0, 0.0)
    assert model.score(units.X, units.y) > 0.8


@every
def test_a_person_has_one_row_the_mean_of_its_records(method: Any) -> None:
    units = table(40)
    persons = Grouped.of(units, np.arange(40) // 4)
    rows = PerPerson(SignedRow(objective()))(persons, {})
    assert rows == pytest.approx(SignedRow(objective())(units, {}).reshape(10, 4, 4).mean(axis=1))
    found = prepared(method, [10], unit=Unit.PERSON)
    assert neighbours_of(found.plan.event([10], LOCAL)) == Neighbours(unit=Unit.PERSON)
    assert meets(found.plan.event([10], LOCAL), BUDGET)
    alone = fitted(type(method)(strength=2.0), [Records.of(rows, np.ones(10))]).w
    settings = Settings(objective=objective(), algorithm=type(method)(strength=2.0), unit=Unit.PERSON)
    silos = make_silos([persons], objective(), trusts_server=True)
    assert train(in_process(silos), settings).w == pytest.approx(alone, abs=1e-6)


@pytest.mark.parametrize("name", ["output-perturbation", "objective-perturbation"])
def test_a_classifier_takes_it_by_name_and_a_regression_does_not(name: str) -> None:
    units = table(2000)
    model = FederatedLogisticRegression(
        algorithm=name,
        trust="central",
        budget=PrivacyBudget(8.0, 1e-5),
        bounds=(-1.0, 1.0),
        classes=[0, 1],
        random_state=0,
    ).fit(units.X, units.y)
    assert model.score(units.X, units.y) > 0.8
    with pytest.raises(ParameterError, match="needs the logistic loss of two classes, got 'squared'"):
        FederatedLinearRegression(algorithm=name).fit(units.X, units.y)
    many = FederatedLogisticRegression(algorithm=name)
    with pytest.raises(ParameterError, match="got 'multinomial'"):
        many.fit(units.X, np.arange(2000) % 3)
