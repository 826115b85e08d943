"""Penalties of the estimators: the solutions of scikit-learn's own, and no effect on what is claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, LinearRegression, LogisticRegression

from tacit.errors import ParameterError
from tacit.learning import (
    FeatureMap,
    FederatedLinearRegression,
    FederatedLogisticRegression,
    NoisyMinibatchSGD,
)
from tacit.numerics import Box, GroupLasso, L2Ball
from tacit.privacy import PrivacyBudget

N, DIM = 300, 6
RNG = np.random.default_rng(20_251_120)
X = RNG.uniform(-1, 1, (N, DIM))
SCORE = X @ np.array([3.0, -2.0, 1.0, 0.0, 0.0, 0.0]) + 0.5
TARGET = np.clip((SCORE + 0.3 * RNG.standard_normal(N)) / 8, -1, 1)
LABEL = (SCORE + RNG.logistic(size=N) > 0).astype(int)
BOUNDS = (-1.0, 1.0)
ESTIMATORS: list[Any] = [FederatedLogisticRegression, FederatedLinearRegression]


def rows(*, unit_rows: bool) -> Any:
    """What the model sees of X, the constant last."""
    return FeatureMap(lower=np.full(DIM, -1.0), upper=np.full(DIM, 1.0), unit_rows=unit_rows)(X)


def regression(**changes: Any) -> FederatedLinearRegression:
    rounds = 500 if changes.get("algorithm") == "accelerated" else 1500
    return FederatedLinearRegression(bounds=BOUNDS, target_bounds=BOUNDS, rounds=rounds, **changes)


@pytest.mark.parametrize("algorithm", ["accelerated", "minibatch"])
@pytest.mark.parametrize(("l1", "l2"), [(0.01, 0.0), (0.0, 0.02), (0.005, 0.01)])
def test_linear_regression_is_the_elastic_net_of_scikit_learn(algorithm: str, l1: float, l2: float) -> None:
    model = regression(algorithm=algorithm, l1=l1, l2=l2).fit(X, TARGET, silos=np.arange(N) % 3)
    net = ElasticNet(alpha=l1 + l2, l1_ratio=l1 / (l1 + l2), fit_intercept=False, tol=1e-10, max_iter=100_000)
    wanted = net.fit(rows(unit_rows=False), TARGET).coef_
    assert np.linalg.norm(wanted) > 0.3
    np.testing.assert_allclose(model.model_.w, wanted, rtol=0, atol=2e-3)
    if l1 == 0.01 and algorithm == "minibatch":  # proximal steps reach zero itself, not nearly
        assert np.flatnonzero(wanted == 0).tolist() == np.flatnonzero(model.model_.w == 0).tolist()
        assert np.any(wanted == 0)


@pytest.mark.parametrize("l2", [0.003, 0.03])
def test_logistic_regression_is_that_of_scikit_learn_with_the_same_penalty(l2: float) -> None:
    model = FederatedLogisticRegression(bounds=BOUNDS, rounds=500, l2=l2).fit(X, LABEL)
    other = LogisticRegression(C=1 / (N * l2), fit_intercept=False, tol=1e-10, max_iter=10_000)
    wanted = other.fit(rows(unit_rows=True), LABEL).coef_[0]
    assert np.linalg.norm(wanted) > 1
    np.testing.assert_allclose(model.model_.w, wanted, rtol=0, atol=2e-3)


@pytest.mark.parametrize("make", ESTIMATORS)
def test_a_penalty_changes_the_model_and_not_the_guarantee(make: Any) -> None:
    targets: dict[str, Any] = (
        {"target_bounds": BOUNDS} if make is FederatedLinearRegression else {"classes": [0, 1]}
    )
    named: dict[str, Any] = {"algorithm": "accelerated", "rounds": 20, "random_state": 3}
    plain = make(budget=PrivacyBudget(4.0, 1e-5), bounds=BOUNDS, **named, **targets)
    penalised = clone(plain).set_params(l1=0.001, l2=0.05)
    y = TARGET if make is FederatedLinearRegression else LABEL
    one, other = plain.fit(X, y), penalised.fit(X, y)
    assert one.guarantees_ == other.guarantees_
    assert one.trained_.noise_multiplier == other.trained_.noise_multiplier
    assert 0 < np.linalg.norm(other.model_.w) < np.linalg.norm(one.model_.w)


@pytest.mark.parametrize("make", ESTIMATORS)
@pytest.mark.parametrize("name", ["l1", "l2"])
def test_the_strengths_are_parameters_and_checked_by_fit(make: Any, name: str) -> None:
    assert make().get_params()[name] == 0.0
    for strength in (-0.1, float("nan"), float("inf")):
        with pytest.raises(ParameterError, match=f"{name} must be a finite number >= 0, got {strength}"):
            make(**{name: strength}).fit(X, LABEL)


def test_no_weight_below_zero_is_what_scikit_learn_calls_positive() -> None:
    """The intercept is free in both, here as the weight of a constant feature."""
    flipped = X * [1, 1, 1, -1, -1, 1]
    model = regression(domain="box:0:inf", algorithm="minibatch").fit(flipped, TARGET)
    features = FeatureMap(lower=np.full(DIM, -1.0), upper=np.full(DIM, 1.0), unit_rows=False)
    mapped = features(flipped)
    other = LinearRegression(positive=True).fit(mapped[:, :-1], TARGET)
    assert (other.coef_ == 0).sum() >= 1
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=0, atol=2e-3)
    np.testing.assert_allclose(model.intercept_ / features.longest, other.intercept_, rtol=0, atol=2e-3)
    assert (model.coef_ >= 0).all()


def test_groups_are_in_the_model_or_out_of_it_for_all_classes() -> None:
    classes = np.digitize(SCORE, [-1.0, 1.0])
    groups = ["a", "a", "b", "c", "c", "c"]
    model = FederatedLogisticRegression(
        bounds=BOUNDS,
        algorithm=NoisyMinibatchSGD(rounds=600, average=1e-9),
        group_lasso=0.06,
        groups=groups,
    ).fit(X, classes)
    kept = {label: np.any(model.coef_[:, np.array(groups) == label], axis=1) for label in "abc"}
    assert kept["a"].all()
    assert not kept["c"].any()
    mapped, labels = rows(unit_rows=True), np.eye(3)[classes]
    scores = mapped @ model.model_.weights
    slopes = np.exp(scores - scores.max(axis=1, keepdims=True))
    gradient = mapped.T @ (slopes / slopes.sum(axis=1, keepdims=True) - labels) / N
    # The conditions of a minimum, group by group: Yuan and Lin (2006), Proposition 1.
    for members in ([0, 1], [2], [3, 4, 5], [6]):
        w, slope = model.model_.weights[members], gradient[members]
        size = np.linalg.norm(w)
        if size == 0:
            assert np.linalg.norm(slope) <= 0.06 + 1e-9
        else:
            np.testing.assert_allclose(slope, -0.06 * w / size, rtol=0, atol=3e-4)


@pytest.mark.parametrize("trust", ["local", "aggregate", "shuffle", "central"])
@pytest.mark.parametrize(
    ("domain", "value"),
    [("ball:2", L2Ball(2.0)), (Box(-1.0, 1.0), Box(-1.0, 1.0)), ("simplex:3", None)],
    ids=str,
)
def test_a_private_model_is_in_its_domain_at_the_same_price(trust: Any, domain: Any, value: Any) -> None:
    private: dict[str, Any] = {"budget": PrivacyBudget(4.0, 1e-5), "bounds": BOUNDS, "classes": [0, 1]}
    plain = FederatedLogisticRegression(
        trust=trust, algorithm="minibatch", rounds=5, random_state=3, **private
    )
    kept = clone(plain).set_params(domain=domain, l2=0.01)
    silos = np.arange(N) % 2
    one, other = plain.fit(X, LABEL, silos=silos), kept.fit(X, LABEL, silos=silos)
    assert one.guarantees_ == other.guarantees_
    if value is None:
        assert other.coef_.sum() == pytest.approx(3)
        assert other.coef_.min() >= 0
    else:
        w = other.model_.w if isinstance(value, L2Ball) else other.coef_[0]
        assert value.value(w) == 0


def test_what_cannot_be_taken_is_refused_by_fit_before_anything_is_spent() -> None:
    make = FederatedLogisticRegression
    for bad, said in (
        ({"group_lasso": 0.1}, "groups must say which group each feature is in"),
        ({"group_lasso": 0.1, "groups": [0, 1]}, "groups must be 6 labels, one per feature, got 2"),
        ({"domain": "disc:1"}, "domain must be one of ball:RADIUS"),
        ({"domain": GroupLasso(1.0, np.zeros(3, dtype=int))}, "domain must be one of ball:RADIUS"),
        ({"domain": "ball:1", "algorithm": "local"}, "the algorithm 'local' takes no penalty and no domain"),
        ({"domain": Box(np.zeros(3), 1.0), "algorithm": "minibatch"}, r"lower must .*shape \(3,\)"),
    ):
        with pytest.raises(ParameterError, match=said):
            make(**bad).fit(X, LABEL)
