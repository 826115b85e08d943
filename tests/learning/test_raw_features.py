"""Regressions without bounds: a stated moment sets the clip and the steps, whatever a record is."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError
from tacit.learning import (
    FederatedLinearRegression,
    LinearObjective,
    LossChoice,
    RawFeatures,
    Records,
    Regularization,
    Squared,
)
from tacit.learning.raw_features import check_raw_loss, known_smoothness, read_moment, within_ball
from tacit.learning.task import LinearTask
from tacit.means import LARGEST_RADIUS, MomentBound, MomentKind, balanced_clip
from tacit.numerics import Array
from tacit.privacy import Gaussian, PrivacyBudget, calibrate

BUDGET = PrivacyBudget(1.0, 1e-6)
TRUTH = np.array([1.0, -0.5, 0.3])


def heavy(n: int, *, tail: float = 2.5, seed: int = 0) -> tuple[Array, Array]:
    """Features of a symmetric Pareto law, and a linear target with noise of the same kind."""
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], size=(n, TRUTH.size + 1))
    drawn = signs * rng.pareto(tail, size=signs.shape)
    return drawn[:, :-1], drawn[:, :-1] @ TRUTH + 0.5 + 0.1 * drawn[:, -1]


def test_rows_are_as_they_are_with_a_constant() -> None:
    X = np.array([[1e300, -2.0], [np.nan, 3.0]])
    mapped = RawFeatures(dim=2)
    np.testing.assert_array_equal(mapped(X), [[1e300, -2, 1], [np.nan, 3, 1]])
    assert (mapped.size, mapped.constant) == (3, 1.0)
    with pytest.raises(DataError, match=r"shape \(n, 2\)"):
        mapped(X[:, :1])
    assert LinearTask.raw(2).objective.feature_norm == math.inf


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("4:10", MomentBound(4, 10)),
        ((4, 10), MomentBound(4, 10)),
        (np.array([2.5, 3]), MomentBound(2.5, 3)),
        (MomentBound(2, 3, MomentKind.SUP_INSIDE), MomentBound(2, 3, MomentKind.SUP_INSIDE)),
        (None, None),
    ],
)
def test_a_moment_is_written_in_several_ways(given: object, wanted: MomentBound | None) -> None:
    assert read_moment(given) == wanted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("4", "ORDER:VALUE"),
        ("4:10:2", "ORDER:VALUE"),
        ((4,), "pair"),
        (4.0, "pair"),
        (("k", "r"), "order must be a number"),
        ((4, True), "value must be a number"),
        ((4, 10**400), "value must be a number"),
        ((1, 10), "above 1"),
        ((4, 0), "> 0"),
        ((4, -1), "> 0"),
        ((math.nan, 1), "order"),
        ((4, math.inf), "value"),
        ((4, 1e300), "from 1e-06 to 1e\\+12, got 1e\\+300: take other units"),
        ((21, 1), "at most 20, got 21"),
    ],
)
def test_what_is_no_moment_is_refused(given: object, says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        FederatedLinearRegression(moment=given).fit([[1.0], [2.0]], [1.0, 2.0])


def test_losses_and_domains_that_need_bounds_are_refused() -> None:
    for name, says in (("quantile", "'quantile'"), ("poisson", "'poisson'"), ("logistic", "'logistic'")):
        with pytest.raises(ParameterError, match=f"squared.*{says}"):
            check_raw_loss(LossChoice(name=name))
    for name, says in (("huber", "threshold"), ("absolute", "smoothing")):
        with pytest.raises(ParameterError, match=f"{says} must be given"):
            check_raw_loss(LossChoice(name=name))
    check_raw_loss(LossChoice(name="huber", threshold=2.0))
    assert within_ball(Regularization(l2=0.1)) == Regularization(l2=0.1, domain="ball:5")
    assert within_ball(Regularization(domain="ball:2")).diameter == 4
    with pytest.raises(ParameterError, match="must be a ball"):
        within_ball(Regularization(domain="simplex"))
    X, y = heavy(10)
    given: tuple[tuple[str, Any], ...] = (("bounds", (0, 1)), ("target_bounds", (0, 1)), ("public", X))
    for name, value in given:
        with pytest.raises(ParameterError, match=f"{name} must be None with a moment"):
            FederatedLinearRegression(moment=(4, 10)).set_params(**{name: value}).fit(X, y)


def test_a_quadratic_is_no_smoother_than_its_gradients_are_short() -> None:
    # E[x x^T] has the largest eigenvalue 2, and on a ball of radius 3 gradients reach |H w| = 6 = r.
    objective = LinearTask.raw(1).objective
    assert known_smoothness(objective, MomentBound(2, 6), diameter=6.0) == 2.0
    central = MomentBound(2, 3, MomentKind.COORDINATE)
    assert known_smoothness(objective, central, diameter=6.0) == pytest.approx(2 * math.sqrt(2))
    bounded = LinearObjective(loss=Squared(), features=2, feature_norm=3.0)
    # Of every record, which hidden iterates count on, and not only of their mean.
    assert known_smoothness(bounded, MomentBound(2, 6), diameter=6.0) == 9.0
    huber = LinearTask.raw(1, loss=LossChoice(name="huber", threshold=1.0)).objective
    assert known_smoothness(huber, MomentBound(2, 6), diameter=6.0) == math.inf


def test_the_clip_balances_bias_and_noise() -> None:
    X, y = heavy(400)
    made: dict[str, Any] = {"moment": (4, 10), "budget": BUDGET, "algorithm": "minibatch", "rounds": 3}
    clips = {}
    cases: dict[str, dict[str, Any]] = {
        "one": {},
        "four": {},
        "given": {"clip": 3.0},
        "free": {"budget": None},
        "zero-out": {"neighbours": "zero-out"},
    }
    for name, more in cases.items():
        silos = np.arange(400) % 4 if name == "four" else None
        model = FederatedLinearRegression(**(made | more), random_state=0).fit(X, y, silos=silos)
        measure = model.trained_.plan.kinds[0][0].measures[0]
        clips[name] = measure.max_radius
    z = calibrate(Gaussian, BUDGET)
    moment = MomentBound(4, 10)
    assert clips["one"] == balanced_clip(moment, rows=400, dim=4, noise_multiplier=z)
    # Four silos add a noise each.
    assert clips["four"] == balanced_clip(moment, rows=400, dim=4, noise_multiplier=2 * z)
    assert clips["zero-out"] == balanced_clip(moment, rows=400, dim=4, noise_multiplier=z, sensitivity=1.0)
    assert (clips["given"], clips["free"]) == (3.0, LARGEST_RADIUS)


@pytest.mark.parametrize("algorithm", ["auto", "clipped-ac-sa"])
def test_a_first_round_may_choose_the_clip_too(algorithm: str) -> None:
    X, y = heavy(2000)
    model = FederatedLinearRegression(
        moment=(2, 3.0), clip="auto", budget=BUDGET, random_state=0, algorithm=algorithm, rounds=5
    ).fit(X, y)
    assert [kind.measures[0].statistic for kind, _ in model.trained_.plan.kinds] == [
        "gradient-norms",
        "gradient",
    ]
    assert model.trained_.clip is not None
    assert model.trained_.clip < 3.0


def test_without_privacy_it_is_least_squares() -> None:
    X, y = heavy(300, tail=4.5)
    model = FederatedLinearRegression(moment=(2, 5.0), algorithm="accelerated", rounds=400).fit(X, y)
    wanted = np.linalg.lstsq(np.column_stack([X, np.ones(300)]), y, rcond=None)[0]
    np.testing.assert_allclose([*model.coef_, model.intercept_], wanted, atol=1e-3)
    np.testing.assert_allclose(model.predict(X), X @ wanted[:-1] + wanted[-1], atol=0.05)


def test_heavy_tails_are_learned_from_under_a_budget() -> None:
    X, y = heavy(8000)
    model = FederatedLinearRegression(
        moment=(2, 3.0), budget=BUDGET, random_state=1, algorithm="minibatch", rounds=60, domain="ball:2"
    ).fit(X, y)
    # Without features the median error is above 0.5; that of the truth is 0.04.
    assert np.median(np.abs(model.predict(X) - y)) < 0.35
    assert model.score(X, y) > 0.5
    assert "read off" not in str(model.guarantee_)
    assert model.guarantee_.epsilon == 1.0


def test_parameters_stay_in_the_ball_that_the_moment_is_stated_for() -> None:
    X, y = heavy(200)
    model = FederatedLinearRegression(moment=(2, 3.0), domain="ball:0.5", algorithm="minibatch").fit(
        X, 50 * y
    )
    assert np.linalg.norm([*model.coef_, model.intercept_]) <= 0.5 * (1 + 1e-12)


@pytest.mark.parametrize("huge", [1e150, 1e200, 1e300])
@pytest.mark.parametrize("persons", [False, True])
def test_one_record_moves_a_sum_by_its_clip_however_large_it_is(huge: float, persons: bool) -> None:
    X, y = heavy(60)
    task = LinearTask.raw(3)
    point = np.array([0.3, -4.0, 1.0, 2.0])
    odd = X.copy()
    odd[7] = huge
    sums = [task.objective.clipped_sum(point, Records.of(task.features(rows), y), 1.5) for rows in (X, odd)]
    assert np.linalg.norm(sums[0] - sums[1]) <= 2 * 1.5
    who = np.arange(60) // 2 if persons else None
    made: dict[str, Any] = {"moment": (4, 10), "algorithm": "minibatch", "rounds": 3, "random_state": 0}
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # it would tell of a record
        model = FederatedLinearRegression(**made, budget=BUDGET).fit(odd, y, persons=who)
    assert np.isfinite(model.coef_).all()
    unit = model.guarantee_.neighbours.unit.value
    assert unit == ("person" if persons else "record")


@pytest.mark.parametrize(
    ("algorithm", "says"),
    [
        ("whitened", "features of known norm"),
        ("preconditioned", "features of known norm"),
        ("sufficient-statistics", "features of known norm"),
        ("output-perturbation", "no domain.*in which a moment has to hold"),
        ("objective-perturbation", "in which a moment has to hold|known norm"),
        ("local", "no domain.*in which a moment has to hold"),
        ("dp-shuffle", "smoothness must be known for every possible record"),
        ("spider", "smoothness of every record"),
        ("prox-svrg", "smoothness of every record"),
        ("prox-pl-svrg", "smoothness of every record"),
    ],
)
def test_methods_that_need_bounded_rows_are_refused(algorithm: str, says: str) -> None:
    X, y = heavy(100)
    with pytest.raises(ParameterError, match=says):
        FederatedLinearRegression(moment=(4, 10), budget=BUDGET, random_state=0, algorithm=algorithm).fit(
            X, y
        )
