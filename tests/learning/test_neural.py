"""The classifier with a hidden layer: what it learns, what it promises, and which numbers it goes by."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.utils.estimator_checks import check_estimator

from tacit.errors import BudgetError, DataError, ParameterError, PrivacyWarning
from tacit.learning import (
    FederatedLogisticRegression,
    Logistic,
    NetworkObjective,
    NoisyMinibatchSGD,
    NoisySpider,
    PersonalClassifier,
    PrivateNeuralClassifier,
    PrivateNeuralRegressor,
    PublicSample,
)
from tacit.learning.defaults import choose_for_network, signal
from tacit.ledger import Ledger
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel, Unit, verify

BUDGET = PrivacyBudget(3.0, 1e-5)
N = 1200
X = np.random.default_rng(1).uniform(-1, 1, (N, 2))
Y = (X[:, 0] * X[:, 1] > 0).astype(int)
SILOS = np.arange(N) % 3


def classifier(**changes: Any) -> PrivateNeuralClassifier:
    facts: dict[str, Any] = {
        "budget": BUDGET, "bounds": (-1, 1), "classes": [0, 1], "random_state": 0, "rounds": 40, "hidden": 8,
    }  # fmt: skip
    return PrivateNeuralClassifier(**{**facts, **changes})


@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it() -> None:
    found = check_estimator(
        PrivateNeuralClassifier(trust="none", random_state=0, rounds=40, hidden=8), on_skip=None, on_fail=None
    )
    assert [one for one in found if one["status"] not in ("passed", "skipped")] == []
    held = [one["check_name"] for one in found if one["status"] == "passed"]
    assert {"check_fit_idempotent", "check_n_features_in", "check_classifiers_train"} <= set(held)


@pytest.mark.parametrize(
    "model",
    [
        PrivateNeuralClassifier(rounds=1, hidden=2),
        PrivateNeuralRegressor(rounds=1, hidden=2),
        PersonalClassifier(rounds=1),
    ],
)
def test_what_sounds_private_warns_without_a_budget(model: Any) -> None:
    with pytest.warns(PrivacyWarning, match="has no budget, and trains without privacy: give a") as found:
        model.fit(X[:20], Y[:20])
    assert found[0].filename == __file__
    assert model.guarantee_.epsilon == math.inf
    model.set_params(trust="none").fit(X[:20], Y[:20])  # no warning, which would be an error here


def test_a_guarantee_says_that_training_starts_at_public_numbers() -> None:
    said = classifier(rounds=1).fit(X, Y).guarantee_.assumptions
    assert "the weights that training starts from are public random numbers" in said
    linear = classifier(rounds=1, module="scattering").fit(np.tile(X, (1, 32)), Y).guarantee_.assumptions
    assert not [clause for clause in linear if "starts from" in clause]


# What it learns


@pytest.mark.parametrize("trust", ["local", "aggregate", "shuffle", "central"])
def test_it_learns_under_every_trust_what_no_linear_model_can(trust: Any) -> None:
    rounds = {"rounds": 20} if trust == "shuffle" else {}
    model = classifier(trust=trust, **rounds).fit(X, Y, silos=SILOS)
    linear = FederatedLogisticRegression().fit(X, Y)
    assert linear.score(X, Y) < 0.65
    assert model.score(X, Y) > 0.75
    assert model.guarantee_.epsilon == pytest.approx(3.0, rel=0.05)
    assert model.guarantee_.epsilon <= 3.0
    assert (model.guarantee_alone_ is not None) == (trust in ("shuffle", "aggregate"))


@pytest.mark.parametrize("activation", ["relu", "tanh"])
def test_without_a_budget_it_learns_several_classes(activation: Any) -> None:
    flowers, names = load_iris(return_X_y=True)
    model = PrivateNeuralClassifier(trust="none", activation=activation, random_state=0).fit(
        flowers, np.array(["a", "b", "c"])[names], silos=np.arange(150) % 2
    )
    assert model.score(flowers, np.array(["a", "b", "c"])[names]) > 0.93
    assert model.guarantee_.epsilon == math.inf
    scores, odds = model.decision_function(flowers), model.predict_proba(flowers)
    assert scores.shape == odds.shape == (150, 3)
    np.testing.assert_allclose(odds.sum(axis=1), 1)
    assert (model.classes_[odds.argmax(axis=1)] == model.predict(flowers)).all()


def test_two_classes_have_one_score() -> None:
    model = PrivateNeuralClassifier(trust="none", rounds=20, random_state=0).fit(X, Y)
    scores, odds = model.decision_function(X), model.predict_proba(X)
    assert scores.shape == (N,)
    np.testing.assert_allclose(odds[:, 1], 1 / (1 + np.exp(-scores)))
    assert (model.predict(X) == (scores > 0)).all()
    objective = model.model_.objective
    assert objective == NetworkObjective(loss=Logistic(), features=3, hidden=16)
    np.testing.assert_array_equal(scores, objective.predictions(model.model_.w, model.model_.features(X)))
    assert not hasattr(model, "coef_")


def test_it_starts_at_the_public_weights_of_its_seed() -> None:
    still = NoisyMinibatchSGD(rounds=1, step_size=1e-12)
    for seed in (0, 5):
        model = classifier(algorithm=still, rounds="auto", start_seed=seed).fit(X, Y)
        np.testing.assert_allclose(
            model.model_.w, model.model_.objective.start(seed, length=math.sqrt(3)), atol=1e-9
        )
    fits = [classifier(rounds=3, start_seed=seed).fit(X, Y).model_.w for seed in (0, 0, 1)]
    assert (fits[0] == fits[1]).all()
    assert (fits[0] != fits[2]).any()


def test_any_algorithm_that_needs_no_smoothness_trains_it() -> None:
    spider = NoisySpider(rounds=30, period=2, step_size=40.0, smoothness=0.01, split=0.9)
    model = classifier(algorithm=spider, rounds="auto", clip=0.2, trust="central").fit(X, Y)
    assert model.score(X, Y) > 0.8
    assert {mean.statistic for step, _ in model.trained_.plan.kinds for mean in step.measures} == {
        "gradient",
        "difference",
    }
    with pytest.raises(ParameterError, match="give the algorithm its step size"):
        classifier(algorithm="accelerated").fit(X, Y)
    with pytest.raises(ParameterError, match="features"):
        classifier(algorithm="whitened").fit(X, Y)


# What it promises


def test_a_statement_of_it_verifies() -> None:
    model = classifier(rounds=5).fit(X, Y, silos=SILOS)
    assert len(model.guarantees_) == 3
    for guarantee in model.guarantees_:
        verify(guarantee)
    persons = classifier(rounds=5).fit(X, Y, persons=np.arange(N) // 4)
    assert persons.guarantee_.neighbours.unit is Unit.PERSON


def test_fits_are_charged_to_a_ledger(tmp_path: Path) -> None:
    with Ledger.create(
        tmp_path / "t.ledger", limit=PrivacyBudget(4.0, 1e-4), neighbours=Neighbours()
    ) as account:
        classifier(random_state=None, rounds=2, ledger=account).fit(X, Y)
        assert account.spent().epsilon == 3.0
        with pytest.raises(BudgetError, match="nothing was spent"):
            classifier(random_state=None, rounds=2, ledger=account).fit(X, Y)


def test_a_public_sample_says_how_features_are_mapped() -> None:
    public = np.random.default_rng(2).uniform(-1, 1, (50, 2))
    model = classifier(public=public, rounds=3).fit(X, Y)
    expected = PublicSample.of(public, lower=np.full(2, -1.0), upper=np.full(2, 1.0)).features(unit_rows=True)
    np.testing.assert_array_equal(model.model_.features(X), expected(X) * math.sqrt(3))
    assert any("public" in one for one in model.guarantee_.assumptions)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"hidden": 0}, "hidden must be a whole number >= 1"),
        ({"hidden": "64"}, "hidden must be a whole number >= 1, got '64'"),
        ({"activation": "sigmoid"}, "activation must be one of"),
        ({"start_seed": -1}, "start_seed must be a whole number >= 0"),
        ({"bounds": None}, "bounds must be given with a budget"),
        ({"clip": 0.0}, "clip must be a finite number > 0"),
        ({"trust": "none"}, "a budget needs trust"),
        ({"domain": "ball:3"}, "domain must be left out for a network"),
        ({"group_lasso": 0.1, "groups": ["a", "b"]}, "group_lasso and domain must be left out"),
    ],
)
def test_what_cannot_be_trained_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        classifier(**changes).fit(X, Y)


def test_labels_of_one_class_are_refused() -> None:
    with pytest.raises(DataError, match="at least two classes"):
        PrivateNeuralClassifier(trust="none").fit(X, np.zeros(N))


def test_a_label_that_is_no_class_is_a_record_of_zeros() -> None:
    odd = Y.copy()
    odd[0] = 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = classifier(rounds=3).fit(X, odd)
    assert np.isfinite(model.model_.w).all()


# The rule


def test_steps_go_as_far_as_noise_allows() -> None:
    goal = NetworkObjective(loss=Logistic(), features=31, hidden=16)
    facts: dict[str, Any] = {"relation": Relation.REPLACE_ONE, "sizes": [200, 200]}
    found = []
    for epsilon in (0.5, 1.0, 4.0, 30.0):
        budget = PrivacyBudget(epsilon, 1e-5)
        choice = choose_for_network(goal, trust=TrustModel.CENTRAL, budget=budget, **facts)
        algorithm: Any = choice.algorithm
        clear = signal(goal, trust=TrustModel.CENTRAL, budget=budget, **facts)
        total = algorithm.rounds * algorithm.step_size * choice.share
        assert total == pytest.approx(min(15 * clear, 600))
        assert 40 <= algorithm.rounds <= 120
        found.append(total)
    assert found == sorted(set(found))
    budget = PrivacyBudget(1.0, 1e-5)
    shuffled: Any = choose_for_network(goal, trust=TrustModel.SHUFFLE, budget=budget, **facts).algorithm
    assert shuffled.rounds == 20
    given: Any = choose_for_network(goal, trust=TrustModel.LOCAL, budget=budget, rounds=7, **facts).algorithm
    assert given.rounds == 7
    bare: Any = choose_for_network(goal, trust=None, budget=None, **facts).algorithm
    assert (bare.rounds, bare.step_size) == (120, 0.3)


def test_parameters_can_be_searched() -> None:
    model = clone(classifier(hidden=3)).set_params(hidden=5, activation="tanh", rounds=2)
    assert model.fit(X, Y).model_.objective.hidden == 5
    assert {"hidden", "activation", "start_seed", "budget", "trust"} <= set(model.get_params())
