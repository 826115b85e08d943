"""Penalties of the estimators: the solutions of scikit-learn's own, and no effect on what is claimed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import ElasticNet, LogisticRegression

from tacit.errors import ParameterError
from tacit.learning import FeatureMap, FederatedLinearRegression, FederatedLogisticRegression
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
    return FederatedLinearRegression(bounds=BOUNDS, target_bounds=BOUNDS, rounds=1500, **changes)


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
    model = FederatedLogisticRegression(bounds=BOUNDS, rounds=1500, l2=l2).fit(X, LABEL)
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
