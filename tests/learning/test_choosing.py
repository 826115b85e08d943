"""What is chosen where nobody names an algorithm: the measured rule, else the least error bound, and why."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import (
    ALGORITHMS,
    Absolute,
    AcceleratedNoisyMinibatchSGD,
    FederatedLinearRegression,
    FederatedLogisticRegression,
    Hinge,
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Method,
    Multinomial,
    ObjectivePerturbation,
    PoissonLoss,
    Quantile,
    Settings,
    Squared,
    about,
    algorithm_name,
    make_algorithm,
    predict,
)
from tacit.learning.choosing import choose_algorithm, is_measured
from tacit.learning.defaults import choose
from tacit.learning.settings import NAMED
from tacit.numerics import ElasticNet
from tacit.privacy import PrivacyBudget, Relation, TrustModel

BUDGET = PrivacyBudget(1.0, 1e-5)
CENTRAL, LOCAL, SHUFFLE = TrustModel.CENTRAL, TrustModel.LOCAL, TrustModel.SHUFFLE
SIZES = (300,) * 10
KINK = math.inf


def settings(loss: Loss, trust: TrustModel | None = CENTRAL, outputs: int = 1, **changes: Any) -> Settings:
    facts: dict[str, Any] = {
        "objective": LinearObjective(loss=loss, features=5, outputs=outputs, feature_norm=1.0),
        "algorithm": ObjectivePerturbation(pure=True),
        "trust": trust,
        "budget": None if trust is None else BUDGET,
        "diameter": 8.0,
    }
    return Settings(**{**facts, **changes})


@pytest.mark.parametrize("trust", [CENTRAL, LOCAL, SHUFFLE, None])
@pytest.mark.parametrize(("loss", "outputs"), [(Logistic(), 1), (Multinomial(), 3), (Hinge(), 1)])
def test_where_the_rule_was_measured_it_is_asked(loss: Loss, outputs: int, trust: TrustModel | None) -> None:
    given = settings(loss, trust, outputs)
    assert isinstance(given.objective, LinearObjective)
    found = choose_algorithm(given, SIZES)
    asked = choose(
        given.objective, trust=trust, budget=given.budget, relation=Relation.REPLACE_ONE, sizes=SIZES
    )
    assert found == asked
    assert found.reason == asked.reason
    assert found.reason.endswith(".")
    assert found.reason.count(".") == 1


@pytest.mark.parametrize(
    ("loss", "trust"),
    [
        (Absolute(smoothing=KINK), CENTRAL),
        (Quantile(quantile=0.9, smoothing=KINK), SHUFFLE),
        (Hinge(smoothing=KINK), CENTRAL),
        (Hinge(smoothing=KINK), None),
        (Huber(), SHUFFLE),
    ],
)
def test_elsewhere_it_has_the_least_error_bound(loss: Loss, trust: TrustModel | None) -> None:
    given = settings(loss, trust)
    found = choose_algorithm(given, SIZES)
    bounds = {}
    for name in ALGORITHMS:
        one = predict(replace(given, algorithm=make_algorithm(name)), SIZES)
        fits = trust is None or trust in make_algorithm(name).trusts
        if fits and one.valid and one.bounded == "excess" and not one.caveat:
            bounds[name] = one.bound
    least = min(bounds, key=bounds.__getitem__)
    assert found.algorithm == make_algorithm(least)
    assert found.reason.endswith(f"it has {'the least' if len(bounds) > 1 else 'the only one'}.")
    assert ("which has a kink" in found.reason) == (loss.smoothness == KINK)
    assert loss.smoothness < KINK or least in ("p-sgd", "ftrl")


def test_a_penalty_takes_a_bound_that_holds_with_it() -> None:
    for loss in (Logistic(), Squared()):
        given = settings(loss, CENTRAL, clip=1.0, regularizer=ElasticNet(l1=0.0, l2=0.01))
        found = choose_algorithm(given, SIZES)
        assert about(algorithm_name(found.algorithm)).penalties
        assert isinstance(found.algorithm, Method)
        assert found.algorithm.composite
        assert f"the {loss.__struct_config__.tag} loss with such a penalty" in found.reason
        free = replace(given, trust=None, budget=None)
        assert choose_algorithm(free, SIZES).algorithm == AcceleratedNoisyMinibatchSGD()


def test_rounds_that_are_given_are_kept() -> None:
    found = choose_algorithm(settings(Absolute(smoothing=KINK)), SIZES, rounds=7)
    assert found.algorithm.rounds == 7


@pytest.mark.parametrize("loss", [Squared(), Huber(), Absolute(), Quantile(), PoissonLoss(most=7.0)])
def test_losses_of_numbers_were_measured_but_behind_a_shuffler(loss: Loss) -> None:
    goal = LinearObjective(loss=loss, features=5, feature_norm=1.0)
    assert is_measured(goal, trust=CENTRAL)
    assert is_measured(goal, trust=LOCAL)
    assert is_measured(goal, trust=None)
    assert not is_measured(goal, trust=SHUFFLE)


def test_a_pure_epsilon_takes_the_one_method_that_has_such_noise() -> None:
    pure = PrivacyBudget(1.0, 0.0)
    for trust in (CENTRAL, LOCAL):
        found = choose_algorithm(settings(Logistic(), trust, budget=pure), SIZES)
        assert found.algorithm == ObjectivePerturbation(pure=True)
        assert "pure epsilon" in found.reason
    refused: tuple[dict[str, Any], ...] = (
        {"trust": SHUFFLE},
        {"noise": "discrete-gaussian"},
        {"loss": Squared()},
    )
    for changes in refused:
        given = settings(**{"loss": Logistic(), "budget": pure, "clip": 1.0, **changes})
        with pytest.raises(ParameterError, match=r"delta must be > 0 with Gaussian noise, got 0\.0"):
            choose_algorithm(given, SIZES)


# At the doors


def test_estimators_say_why() -> None:
    rng = np.random.default_rng(0)
    X, silos = rng.uniform(-1, 1, (400, 3)), np.arange(400) % 4
    y = (X[:, 0] > 0).astype(int)
    common: dict[str, Any] = {"bounds": (-1, 1), "random_state": 0}
    auto = FederatedLogisticRegression(budget=BUDGET, classes=[0, 1], **common).fit(X, y, silos)
    assert auto.trained_.algorithm == "whitened"
    assert auto.trained_.algorithm_reason == "it was measured to do best for classes of up to 200 features."
    named = FederatedLogisticRegression(budget=BUDGET, classes=[0, 1], algorithm="p-sgd", rounds=3, **common)
    assert named.fit(X, y, silos).trained_.algorithm_reason == NAMED
    pure = FederatedLogisticRegression(
        budget=PrivacyBudget(2.0, 0.0), trust="central", classes=[0, 1], **common
    ).fit(X, y, silos)
    assert pure.trained_.algorithm == "objective-perturbation"
    assert pure.guarantee_.delta == 0
    assert pure.guarantee_.epsilon <= 2
    mixed = FederatedLinearRegression(
        budget=BUDGET, trust="shuffle", target_bounds=(-1, 1), rounds=10, **common
    )
    reason = mixed.fit(X, X[:, 0], silos).trained_.algorithm_reason
    assert "the squared loss under shuffle trust" in reason
    assert "about which nothing was measured" in reason


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_min": 9}, r"n_min must be from 2 to the 4 silos that a round asks at least, got 9"),
        ({"colluding": 4}, r"colluding must be below n_min \(4\), got 4"),
    ],
)
def test_a_shuffler_that_no_silos_can_satisfy_is_said_first(changes: dict[str, int], message: str) -> None:
    for loss in (Squared(), Logistic()):  # chosen by error bounds, and by the rule
        with pytest.raises(ParameterError, match=message):
            choose_algorithm(settings(loss, TrustModel.SHUFFLE, clip=1.0, **changes), [100] * 4)
