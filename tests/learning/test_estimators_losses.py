"""Estimators by loss: what scikit-learn's own find without noise, and sensible answers with it."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import HuberRegressor, PoissonRegressor, QuantileRegressor
from sklearn.metrics import mean_pinball_loss, mean_poisson_deviance
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from tacit.data import load
from tacit.errors import DataError, ParameterError
from tacit.learning import (
    FederatedLinearRegression,
    FederatedLogisticRegression,
    LossChoice,
    PreconditionedNoisyGD,
    Records,
)
from tacit.learning.task import LinearTask
from tacit.privacy import PrivacyBudget

X, Y = load_diabetes(return_X_y=True)
X, BOUNDS = X[:, :4], (0.0, 400.0)  # of targets from 25 to 346
EXACT = PreconditionedNoisyGD(rounds=400, average=0.05)  # without noise: Newton steps, nearly


def fitted(**changes: Any) -> FederatedLinearRegression:
    facts: dict[str, Any] = {"target_bounds": BOUNDS, "algorithm": EXACT}
    return FederatedLinearRegression(**{**facts, **changes}).fit(X, Y)


# Without noise


def test_huber_is_that_of_scikit_learn_at_its_scale() -> None:
    """HuberRegressor fits a scale beside; at that scale both minimise one function."""
    other = HuberRegressor(alpha=0.0, epsilon=1.35, tol=1e-9, max_iter=10_000).fit(X, Y)
    model = fitted(loss="huber", threshold=1.35 * other.scale_)
    np.testing.assert_allclose(model.predict(X), other.predict(X), rtol=2e-4)


def test_poisson_is_that_of_scikit_learn() -> None:
    other = PoissonRegressor(alpha=0.0, tol=1e-9, max_iter=10_000).fit(X, Y)
    np.testing.assert_allclose(fitted(loss="poisson").predict(X), other.predict(X), rtol=1e-5)


def test_amounts_below_0_are_refused_where_that_tells_nothing() -> None:
    model = FederatedLinearRegression(loss="poisson")
    with pytest.raises(DataError, match="y must be >= 0 for loss='poisson'"):
        model.fit(X, Y - 100)
    model.set_params(
        budget=PrivacyBudget(1.0, 1e-5), bounds=(-1, 1), target_bounds=BOUNDS, rounds=2, random_state=0
    )
    assert model.fit(X, Y - 100).predict(X).min() > 0  # clipped to the bounds, without a word


@pytest.mark.parametrize("unit", [0.001, 1000.0])
def test_the_unit_of_amounts_does_not_matter(unit: float) -> None:
    facts: dict[str, Any] = {"loss": "poisson", "rounds": 40}
    one = FederatedLinearRegression(target_bounds=BOUNDS, **facts).fit(X, Y)
    other = FederatedLinearRegression(target_bounds=(0, unit * BOUNDS[1]), **facts).fit(X, unit * Y)
    np.testing.assert_allclose(other.predict(X), unit * one.predict(X), rtol=1e-9)


@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_a_quantile_costs_no_more_than_that_of_scikit_learn_and_the_rounding(q: float) -> None:
    """The envelope is at most max(q, 1 - q)^2 s / 2 below the loss, at a half width s of the kink."""
    smoothing = 4.0
    best = QuantileRegressor(quantile=q, alpha=0.0).fit(X, Y)
    model = fitted(loss="quantile", quantile=q, smoothing=smoothing, algorithm="accelerated", rounds=3000)
    least, found = (mean_pinball_loss(Y, one.predict(X), alpha=q) for one in (best, model))
    assert least * (1 - 1e-9) <= found <= least + max(q, 1 - q) ** 2 * smoothing / 2 + 1e-3 * least
    assert np.mean(model.predict(X) >= Y) == pytest.approx(q, abs=0.02)


def test_the_median_is_the_quantile_of_a_half_at_twice_the_loss() -> None:
    """|r| at half width s is twice the pinball loss of 1/2 at half width 2 s."""
    one = fitted(loss="absolute", smoothing=10.0)
    other = fitted(loss="quantile", quantile=0.5, smoothing=20.0)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=1e-4)


def test_hinge_is_the_support_vector_machine_of_the_scaled_rows() -> None:
    A, labels = load_breast_cancer(return_X_y=True)
    A = A[:, :5]
    l2 = 0.01
    model = FederatedLogisticRegression(
        loss="hinge", smoothing=0.01, l2=l2, algorithm="accelerated", rounds=4000
    ).fit(A, labels)
    rows = model.model_.features(A)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        other = LinearSVC(
            loss="hinge", C=1 / (l2 * len(A)), fit_intercept=False, tol=1e-9, max_iter=1_000_000
        ).fit(rows, labels)
    signs = 2 * labels - 1

    def cost(w: Any) -> float:
        return float(np.maximum(1 - signs * (rows @ w), 0).mean() + l2 / 2 * w @ w)

    least, found = cost(other.coef_[0]), cost(model.model_.w)
    assert least * (1 - 1e-6) <= found <= least + 0.01 / 2 + 1e-4
    assert np.mean(model.predict(A) == other.predict(rows)) > 0.99


@pytest.mark.parametrize("name", ["huber", "absolute", "quantile", "poisson"])
def test_the_smooth_objective_is_minimised_as_scipy_does(name: str) -> None:
    choice = LossChoice(name=name)
    model = fitted(loss=name, l2=1e-3, algorithm="accelerated", rounds=2000)
    task = LinearTask(features=model.model_.features, target=BOUNDS, loss=choice)
    records = Records.of(task.features(X), task.outcomes(Y / 200 - 1))
    goal = task.objective

    def cost(w: Any) -> tuple[float, Any]:
        slopes = goal.gradients(w, records).mean(axis=0)
        return float(goal.value(w, records).mean() + 5e-4 * w @ w), slopes + 1e-3 * w

    best = optimize.minimize(cost, np.zeros(goal.size), jac=True, options={"gtol": 1e-10})
    assert cost(model.model_.w)[0] <= best.fun + 1e-7
    np.testing.assert_allclose(model.model_.w, best.x, atol=2e-3)


# With noise


def test_quantiles_are_covered_under_every_trust() -> None:
    data = load("insurance")
    charges, silos = (data.y + 1) / 2 * 70_000, np.arange(data.n) % 5
    trusts: list[tuple[Any, float]] = [
        ("central", 0.05),
        ("local", 0.08),
        ("shuffle", 0.08),
        ("aggregate", 0.08),
    ]
    for trust, slack in trusts:
        model = FederatedLinearRegression(
            loss="quantile", quantile=0.9, trust=trust, bounds=(-1, 1),
            budget=PrivacyBudget(3.0, 1e-5), target_bounds=(0, 70_000), random_state=0, rounds=160,
        ).fit(data.X, charges, silos=silos)  # fmt: skip
        said = model.predict(data.X)
        assert np.mean(said >= charges) == pytest.approx(0.9, abs=slack)
        constant = mean_pinball_loss(charges, np.full(data.n, np.quantile(charges, 0.9)), alpha=0.9)
        assert mean_pinball_loss(charges, said, alpha=0.9) < 0.7 * constant


@pytest.mark.parametrize(
    ("loss", "trust"),
    [
        ("huber", "central"),
        ("absolute", "local"),
        ("poisson", "local"),
        ("poisson", "shuffle"),
        ("huber", "aggregate"),
    ],
)
def test_private_regressions_beat_every_constant(loss: Any, trust: Any) -> None:
    data = load("insurance")
    charges, silos = (data.y + 1) / 2 * 70_000, np.arange(data.n) % 5
    model = FederatedLinearRegression(
        loss=loss, trust=trust, budget=PrivacyBudget(3.0, 1e-5), bounds=(-1, 1), target_bounds=(0, 70_000),
        random_state=0, rounds=80,
    ).fit(data.X, charges, silos=silos)  # fmt: skip
    said = model.predict(data.X)
    constant = np.full(data.n, charges.mean() if loss == "poisson" else np.median(charges))
    if loss == "poisson":
        assert said.min() > 0
        assert mean_poisson_deviance(charges, said) < 0.6 * mean_poisson_deviance(charges, constant)
    else:
        assert np.abs(said - charges).mean() < 0.7 * np.abs(constant - charges).mean()


@pytest.mark.parametrize("trust", ["central", "local"])
def test_a_private_support_vector_machine_is_about_as_good_as_logistic(trust: Any) -> None:
    data = load("breast-cancer")
    facts: dict[str, Any] = {
        "trust": trust, "budget": PrivacyBudget(3.0, 1e-5), "bounds": (-1, 1), "classes": [0, 1],
        "random_state": 0,
    }  # fmt: skip
    silos = np.arange(data.n) % 3
    hinge, logistic = (
        FederatedLogisticRegression(loss=loss, **facts).fit(data.X, data.y, silos=silos)
        for loss in ("hinge", "logistic")
    )
    assert hinge.score(data.X, data.y) > max(0.9, logistic.score(data.X, data.y) - 0.03)


def test_a_quantile_is_clipped_nowhere_by_itself() -> None:
    """A clip of 0.27 would make slopes of -0.9 and 0.1 to -0.27 and 0.1: the quantile 0.73."""
    facts: dict[str, Any] = {
        "budget": PrivacyBudget(1.0, 1e-5), "bounds": (-1, 1), "target_bounds": BOUNDS, "rounds": 2,
        "random_state": 0,
    }  # fmt: skip
    for q, radius in ((0.9, 0.9), (0.5, 0.5), (0.2, 0.8)):
        model = FederatedLinearRegression(loss="quantile", quantile=q, **facts).fit(X, Y)
        assert model.trained_.plan.kinds[0][0].measures[0].max_radius == pytest.approx(radius)
    model = FederatedLinearRegression(loss="quantile", quantile=0.9, clip=0.3, **facts).fit(X, Y)
    assert model.trained_.plan.kinds[0][0].measures[0].max_radius == 0.3


# What scikit-learn expects


def test_regressions_keep_the_rules_of_scikit_learn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(FederatedLinearRegression(loss="quantile", rounds=150))
    assert clone(FederatedLinearRegression(loss="quantile", smoothing=3.0)).get_params()["smoothing"] == 3.0


def test_a_hinge_has_a_decision_and_no_probabilities() -> None:
    A, labels = X[:60], Y[:60] > 140
    model = FederatedLogisticRegression(loss="hinge", rounds=5).fit(A, labels)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError) as caught:
        _ = model.predict_proba
    assert "predict_proba needs loss='logistic', got 'hinge'" in str(caught.value.__cause__ or caught.value)
    scores = model.decision_function(A)
    np.testing.assert_array_equal(model.predict(A), scores > 0)
    assert hasattr(FederatedLogisticRegression(), "predict_proba")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": "hinge"}, "where labels are numbers, got 'hinge'"),
        ({"loss": "squared", "quantile": 0.2}, "quantile is for loss='quantile'"),
        ({"loss": "poisson", "target_bounds": (-1, 1)}, "target_bounds .*must be .* for loss='poisson'"),
        ({"loss": "quantile", "smoothing": 0.0}, "'quantile' has a kink"),
    ],
)
def test_refusals_come_before_anything_is_spent(changes: dict[str, Any], message: str, tmp_path: Any) -> None:
    from tacit.ledger import Ledger
    from tacit.privacy import Neighbours

    with Ledger.create(tmp_path / "t", limit=PrivacyBudget(5.0, 1e-4), neighbours=Neighbours()) as ledger:
        facts: dict[str, Any] = {
            "budget": PrivacyBudget(1.0, 1e-5),
            "bounds": (-1, 1),
            "target_bounds": BOUNDS,
        }
        model = FederatedLinearRegression(ledger=ledger, algorithm="accelerated", **{**facts, **changes})
        with pytest.raises(ParameterError, match=message):
            model.fit(X, Y)
        assert ledger.spent().epsilon == 0
