"""The estimators as scikit-learn knows them, what they learn, and what their guarantees say."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from tacit.errors import DataError, ParameterError, PrivacyWarning, UnknownNameError
from tacit.federation import Disjoint, Fixed, Poisson
from tacit.learning import (
    FederatedLinearRegression,
    FederatedLogisticRegression,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
)
from tacit.numerics import Array
from tacit.privacy import Neighbours, PrivacyBudget, Relation, Unit, verify

BUDGET = PrivacyBudget(2.0, 1e-5)
N = 300
X = np.random.default_rng(1).uniform(-1, 1, (N, 4))
Y = (X @ [2.0, -1.0, 0.5, 0.0] + 0.2 * np.random.default_rng(2).standard_normal(N) > 0).astype(int)
TARGET = X @ [2.0, -1.0, 0.5, 0.0] + 1
SILOS = np.arange(N) % 3


@pytest.mark.parametrize("kind", [FederatedLogisticRegression, FederatedLinearRegression])
@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_them(kind: Any) -> None:
    found = check_estimator(kind(random_state=0, rounds=60), on_skip=None, on_fail=None)
    held = [one["check_name"] for one in found if one["status"] == "passed"]
    assert [one for one in found if one["status"] not in ("passed", "skipped")] == []
    assert len(held) > 40
    assert {"check_fit_idempotent", "check_n_features_in", "check_dict_unchanged"} <= set(held)


def classifier(**changes: Any) -> FederatedLogisticRegression:
    facts: dict[str, Any] = {"budget": BUDGET, "bounds": (-1, 1), "classes": [0, 1], "random_state": 0}
    return FederatedLogisticRegression(**{**facts, **changes})


def regressor(**changes: Any) -> FederatedLinearRegression:
    facts: dict[str, Any] = {
        "budget": BUDGET,
        "bounds": (-1, 1),
        "target_bounds": (-3, 5),
        "random_state": 0,
    }
    return FederatedLinearRegression(**{**facts, **changes})


# What they learn


@pytest.mark.parametrize("seed", range(4))
def test_least_squares_without_a_budget_come_close(seed: int) -> None:
    train_X, test_X, train_y, test_y = train_test_split(*load_diabetes(return_X_y=True), random_state=seed)
    best = LinearRegression().fit(train_X, train_y).score(test_X, test_y)
    silos = np.arange(len(train_y)) % 7
    got = FederatedLinearRegression().fit(train_X, train_y, silos=silos).score(test_X, test_y)
    assert abs(got - best) < 0.01


@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
@pytest.mark.parametrize("seed", range(3))
def test_logistic_regression_without_a_budget_comes_close(load: Callable[..., Any], seed: int) -> None:
    train_X, test_X, train_y, test_y = train_test_split(*load(return_X_y=True), random_state=seed)
    plain = make_pipeline(StandardScaler(), LogisticRegression())
    best = plain.fit(train_X, train_y).score(test_X, test_y)
    got = FederatedLogisticRegression().fit(train_X, train_y, silos=train_y).score(test_X, test_y)
    assert got > best - 0.03  # silos of one class each, the hardest split


def test_how_records_are_split_does_not_matter_without_noise() -> None:
    models = [FederatedLinearRegression().fit(X, TARGET, silos=silos) for silos in (None, SILOS, TARGET > 1)]
    for model in models[1:]:
        np.testing.assert_allclose(model.predict(X), models[0].predict(X), atol=1e-9)


@pytest.mark.parametrize("trust", ["local", "central"])
def test_they_learn_under_a_budget(trust: str) -> None:
    assert classifier(trust=trust).fit(X, Y, silos=SILOS).score(X, Y) > 0.9
    assert regressor(trust=trust).fit(X, TARGET, silos=SILOS).score(X, TARGET) > 0.75


def test_a_private_regression_on_public_data() -> None:
    """With the diameter of classifiers the steps are too long, and the score is far below 0."""
    features, target = load_diabetes(return_X_y=True)
    model = FederatedLinearRegression(
        budget=PrivacyBudget(4.0, 1e-5), bounds=(-0.2, 0.2), target_bounds=(25, 346), random_state=0
    )
    silos = np.arange(len(target)) % 4
    assert model.fit(features, target, silos=silos).score(features, target) > 0.25


def test_central_trust_needs_less_noise_than_local_trust() -> None:
    central, local = (
        classifier(trust=t, rounds=40).fit(X, Y, silos=SILOS).model_.w for t in ("central", "local")
    )
    exact = classifier(budget=None, rounds=40, clip=0.3).fit(X, Y).model_.w
    assert np.linalg.norm(central - exact) < np.linalg.norm(local - exact)


@pytest.mark.parametrize("algorithm", ["minibatch", "accelerated", "local"])
def test_every_algorithm_by_name(algorithm: str) -> None:
    model = classifier(algorithm=algorithm, budget=PrivacyBudget(20.0, 1e-5)).fit(X, Y, silos=SILOS)
    assert model.score(X, Y) > 0.75
    assert model.guarantee_.epsilon <= 20.0
    plain = classifier(algorithm=algorithm, budget=None, rounds=80).fit(X, Y, silos=SILOS)
    assert plain.score(X, Y) > 0.9


def test_stages_by_name() -> None:
    assert classifier(algorithm="multistage", budget=None).fit(X, Y, silos=SILOS).score(X, Y) > 0.9


def test_labels_keep_their_names() -> None:
    names = np.array(["no", "yes"])[Y]
    model = classifier(classes=["yes", "no"]).fit(X, names)
    assert model.classes_.tolist() == ["no", "yes"]
    assert set(model.predict(X)) <= {"no", "yes"}
    assert model.score(X, names) > 0.85
    assert model.predict_proba(X).shape == (N, 2)
    assert model.decision_function(X).shape == (N,)


def test_a_public_class_may_be_missing() -> None:
    model = classifier(classes=[0, 1, 2]).fit(X, Y)
    assert model.predict_proba(X).shape == (N, 3)
    assert model.decision_function(X).shape == (N, 3)


# What their guarantees say


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("trust", ["local", "central"])
def test_the_budget_is_met_and_can_be_verified(make: Callable[..., Any], trust: str) -> None:
    y = Y if make is classifier else TARGET
    model = make(trust=trust).fit(X, y, silos=SILOS)
    assert len(model.guarantees_) == (3 if trust == "local" else 1)
    for guarantee in model.guarantees_:
        verify(guarantee)
        assert (guarantee.epsilon, guarantee.delta) == (2.0, 1e-5)
        assert guarantee.simulated
        assert guarantee.assumptions == ()
    assert model.guarantee_ in model.guarantees_


def test_silos_of_different_sizes_spend_at_most_the_budget() -> None:
    silos = np.repeat([0, 1, 2], [20, 80, 200])
    algorithm = NoisyMinibatchSGD(rounds=6, batch=Fixed(size=10))
    model = classifier(algorithm=algorithm).fit(X, Y, silos=silos)
    costs = [g.epsilon for g in model.guarantees_]
    assert costs == sorted(costs, reverse=True)
    assert costs[0] == pytest.approx(2.0, abs=2e-6)
    assert costs[2] < 1.0
    assert model.guarantee_.epsilon == costs[0]


def test_a_guarantee_about_persons() -> None:
    persons = np.arange(N) // 4
    model = classifier().fit(X, Y, silos=persons % 3, persons=persons)
    assert model.guarantee_.neighbours.unit is Unit.PERSON
    assert "no person has records in two silos" in model.guarantee_.assumptions
    verify(model.guarantee_)
    # 75 persons in 3 silos, not 300 records.
    assert model.trained_.rounds <= classifier().fit(X, Y, silos=SILOS).trained_.rounds


@pytest.mark.parametrize("make", [classifier, regressor])
@pytest.mark.parametrize("trust", ["local", "central"])
def test_neighbours_are_a_switch(make: Callable[..., Any], trust: str) -> None:
    y, std = Y if make is classifier else TARGET, {}
    for relation in Relation:
        model = make(trust=trust, neighbours=relation.value, rounds=10).fit(X, y, silos=SILOS)
        for guarantee in model.guarantees_:
            verify(guarantee)
            assert guarantee.neighbours.relation is relation
            assert guarantee.epsilon == 2.0
        std[relation] = model.trained_.noise_multiplier * (1 + (relation is Relation.REPLACE_ONE))
        said = "the number of records that means are divided by is public"
        assert (said in model.guarantee_.assumptions) == (relation is Relation.ADD_REMOVE)
    # Replacing a record moves a sum twice as far as one that comes or goes.
    assert std[Relation.REPLACE_ONE] == pytest.approx(2 * std[Relation.ZERO_OUT])
    assert std[Relation.ADD_REMOVE] == std[Relation.ZERO_OUT]


def test_persons_may_be_added_and_removed() -> None:
    persons = np.arange(N) // 4
    model = classifier(neighbours="add-remove").fit(X, Y, silos=persons % 3, persons=persons)
    assert "the number of persons that means are divided by is public" in model.guarantee_.assumptions
    verify(model.guarantee_)


@pytest.mark.parametrize("relation", Relation)
def test_batches_of_a_named_algorithm_are_drawn_as_is_cheapest(relation: Relation) -> None:
    model = classifier(algorithm="local", rounds=10, neighbours=relation.value).fit(X, Y, silos=SILOS)
    assert model.trained_.plan.kinds[0][0].batch == Poisson(size=1)
    verify(model.guarantee_)
    persons = np.arange(N) // 4
    theirs = classifier(algorithm="local", rounds=10, neighbours=relation.value)
    theirs.fit(X, Y, silos=persons % 3, persons=persons)
    assert theirs.guarantee_.neighbours == Neighbours(relation, Unit.PERSON)
    assert theirs.trained_.plan.kinds[0][0].batch == Poisson(size=1)
    verify(theirs.guarantee_)
    own = classifier(algorithm=NoisyLocalSGD(rounds=10)).fit(X, Y, silos=SILOS)
    assert own.trained_.plan.kinds[0][0].batch == Fixed(size=1)
    assert own.trained_.noise_multiplier > 1.2 * model.trained_.noise_multiplier / (
        1 if relation is Relation.REPLACE_ONE else 2
    )


@pytest.mark.parametrize("trust", ["local", "central", "none"])
def test_without_a_budget_the_guarantee_says_so(trust: str) -> None:
    model = classifier(trust=trust, budget=None).fit(X, Y)
    assert math.isinf(model.guarantee_.epsilon)
    assert str(model.guarantee_).startswith("No privacy is claimed")
    assert model.trained_.noise_multiplier == 0


def test_what_was_read_off_the_data_is_said() -> None:
    with pytest.warns(PrivacyWarning) as caught:
        model = classifier(bounds="data", classes=None).fit(X, Y)
    assert len(caught) == 2
    assert all(warning.filename == __file__ for warning in caught)
    said = str(model.guarantee_)
    assert "the features' bounds were read off the data without privacy" in said
    assert "the classes were read off the data without privacy" in said
    with pytest.warns(PrivacyWarning, match="the target's bounds"):
        regression = regressor(target_bounds="data").fit(X, TARGET)
    assert "the target's bounds were read off" in str(regression.guarantee_)


def test_seeds_repeat_and_no_seed_is_secret() -> None:
    one, again, other = (classifier(random_state=s).fit(X, Y).model_.w for s in (1, 1, 2))
    assert one.tolist() == again.tolist()
    assert one.tolist() != other.tolist()
    first, second = (classifier(random_state=None).fit(values, Y) for values in (X, X + 1e-9))
    assert first.model_.w.tolist() != second.model_.w.tolist()
    assert not first.guarantee_.simulated
    assert "discrete noise" in first.guarantee_.method


# What is refused


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_epsilon_is_refused(epsilon: float) -> None:
    with pytest.raises(ParameterError, match="epsilon must be a finite number > 0"):
        classifier(budget=PrivacyBudget(epsilon, 1e-5))


@pytest.mark.parametrize("delta", [-0.1, 1.0, math.nan])
def test_a_bad_delta_is_refused(delta: float) -> None:
    with pytest.raises(ParameterError, match=r"delta must be in \[0, 1\)"):
        classifier(budget=PrivacyBudget(1.0, delta))


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"budget": PrivacyBudget(1.0), "algorithm": "accelerated"},
            ParameterError,
            "delta must be > 0 with Gaussian noise, got 0.0",
        ),
        ({"clip": 0.0}, ParameterError, "clip must be a finite number > 0, got 0.0"),
        ({"clip": -2.0}, ParameterError, "clip must be a finite number > 0, got -2.0"),
        (
            {"neighbours": "zero"},
            ParameterError,
            "neighbours must be one of replace-one, add-",
        ),
        (
            {"trust": "none"},
            ParameterError,
            "a budget needs trust 'local', 'aggregate', 'shuffle' or 'central'",
        ),
        ({"algorithm": "minibach"}, UnknownNameError, "did you mean 'minibatch'"),
        ({"bounds": None}, ParameterError, "bounds must be given with a budget"),
        ({"bounds": (1, -1)}, ParameterError, "bounds must have lower <= upper"),
        ({"bounds": (0, [1, 2])}, ParameterError, "bounds must be a pair"),
        (
            {"algorithm": NoisyMinibatchSGD(rounds=2, batch=Fixed(size=101))},
            ParameterError,
            "size must be at most the 100 units of the silo, got 101",
        ),
        (
            {"algorithm": NoisyMinibatchSGD(rounds=6, batch=Disjoint(size=20))},
            ParameterError,
            "rounds x batch must be at most the 100 units of a silo if disjoint, got 120",
        ),
        (
            {"algorithm": NoisyLocalSGD(rounds=2), "trust": "central"},
            ParameterError,
            "trust must be local for the algorithm",
        ),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
@pytest.mark.parametrize("make", [classifier, regressor])
def test_what_does_not_fit_is_refused(
    make: Callable[..., Any], changes: dict[str, Any], error: type[Exception], message: str
) -> None:
    y = Y if make is classifier else TARGET
    with pytest.raises(error, match=message):
        make(**changes).fit(X, y, silos=SILOS)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize("make", [classifier, regressor])
def test_features_that_are_not_numbers_are_refused(make: Callable[..., Any], bad: float) -> None:
    broken: Array = X.copy()
    broken[7, 1] = bad
    y = Y if make is classifier else TARGET
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        make().fit(broken, y)
    with pytest.raises(ValueError, match=r"contains (NaN|infinity)"):
        make().fit(X, y).predict(broken)


def test_labels_of_one_class_or_unknown_are_refused() -> None:
    with pytest.raises(DataError, match="at least two classes, got one class"):
        FederatedLogisticRegression().fit(X, np.ones(N))
    with pytest.raises(DataError, match="y holds labels outside `classes`"):
        classifier(budget=None, bounds=None, classes=[0, 2]).fit(X, Y)


@pytest.mark.parametrize("name", ["silos", "persons"])
@pytest.mark.parametrize("shape", [(N - 1,), (N, 1), ()])
def test_silos_and_persons_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    with pytest.raises(DataError, match=rf"{name} must have one entry per record \(300\), got shape"):
        classifier().fit(X, Y, **{name: np.zeros(shape, dtype=int)})


def test_a_budget_of_another_kind_is_refused() -> None:
    with pytest.raises(ParameterError, match="budget must be a PrivacyBudget or None, got ZcdpBudget"):
        classifier(budget=PrivacyBudget.zcdp(1.0)).fit(X, Y)
