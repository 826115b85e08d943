"""Gradients by differences, the fused sum against clipped rows, constants by search."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import ParameterError
from tacit.federation import HiddenWalk, Measure, Plan, Silo
from tacit.learning import (
    ConvexGradient,
    Hinge,
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    RecordGradient,
    Records,
    Squared,
    make_silos,
)
from tacit.learning.difference import RecordDifference
from tacit.learning.objective import PerPerson
from tacit.means import AdditiveMean, GaussianNoise
from tacit.numerics import Array, clip_rows
from tacit.privacy import Order
from tests.loops import each

LOSSES: list[Loss] = [Logistic(), Squared(), Huber(threshold=0.7), Hinge(smoothing=3.0), Multinomial()]
FEATURES = 3


def objective_of(loss: Loss, feature_norm: float = math.inf) -> LinearObjective:
    outputs = 4 if isinstance(loss, Multinomial) else 1
    return LinearObjective(loss=loss, features=FEATURES, outputs=outputs, feature_norm=feature_norm)


def some_records(loss: Loss, n: int, *, seed: int, dtype: type[np.floating] = np.float64) -> Records:
    rng = np.random.default_rng(seed)
    high = 4 if isinstance(loss, Multinomial) else 2
    X = rng.standard_normal((n, FEATURES)) * rng.choice([0.01, 1.0, 30.0], size=(n, 1))
    return Records.of(X.astype(dtype), rng.integers(high, size=n).astype(dtype))


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_gradients_are_derivatives_of_values(loss: Loss) -> None:
    objective, records = objective_of(loss), some_records(loss, 40, seed=1)
    w = np.random.default_rng(2).standard_normal(objective.size) / 10
    numeric = np.empty((40, objective.size))
    for j in range(objective.size):
        step = np.zeros(objective.size)
        step[j] = 1e-6
        numeric[:, j] = (objective.value(w + step, records) - objective.value(w - step, records)) / 2e-6
    np.testing.assert_allclose(objective.gradients(w, records), numeric, atol=2e-4, rtol=1e-5)


@each("dtype", [np.float32, np.float64])
@each("radius", [0.0, 1e-3, 0.8, 1e9])
@each("loss", LOSSES)
def test_the_fused_sum_adds_up_clipped_gradients(loss: Loss, radius: float, dtype: type[np.floating]) -> None:
    objective, records = objective_of(loss), some_records(loss, 500, seed=3, dtype=dtype)
    w = np.random.default_rng(4).standard_normal(objective.size)
    slow = clip_rows(objective.gradients(w, records), radius).sum(axis=0, dtype=np.float64)
    fused = objective.clipped_sum(w, records, radius, dtype)
    assert fused.dtype == np.float64
    assert fused.shape == (objective.size,)
    tolerance = 500 * min(radius, 1e3) * (1e-5 if dtype == np.float32 else 1e-12)
    np.testing.assert_allclose(fused, slow, rtol=0, atol=tolerance)


@each("dtype", [np.float32, np.float64])
@each("radius", [0.0, 1e-3, 0.7, 1e9])
@each("loss", LOSSES)
def test_slopes_times_features_are_clipped_gradients(
    loss: Loss, radius: float, dtype: type[np.floating]
) -> None:
    objective, records = objective_of(loss), some_records(loss, 300, seed=3, dtype=dtype)
    rng = np.random.default_rng(4)
    at = {name: rng.standard_normal(objective.size) for name in ("w", "previous")}
    for statistic in (RecordGradient(objective), RecordDifference(objective)):
        scaled = statistic.scaled(records, at, radius)
        assert (scaled is None) == isinstance(loss, Multinomial)
        if scaled is None:
            continue
        slopes, X = scaled
        assert slopes.dtype == X.dtype == dtype
        assert slopes.shape == (300,)
        rows = clip_rows(statistic(records, at), radius)
        # What cancels in a difference errs as gradients do.
        longest = max(np.abs(objective.gradients(point, records)).max() for point in at.values())
        tolerance = (longest + min(radius, 10)) * (1e-5 if dtype == np.float32 else 1e-12)
        np.testing.assert_allclose(slopes[:, None] * X, rows, rtol=0, atol=tolerance)
        # Exactly: what is rounded to a grid has no other bound.
        for slope, x in zip(slopes[:50].tolist(), X[:50].tolist(), strict=True):
            squared = sum((Fraction(slope) * Fraction(entry)) ** 2 for entry in x)
            assert squared <= Fraction(radius) ** 2


@given(
    X=arrays(np.float64, (4, FEATURES), elements=st.floats(width=64)),
    y=arrays(np.float64, 4, elements=st.floats(width=64)),
    w=arrays(np.float64, FEATURES, elements=st.floats(-1e3, 1e3)),
    loss=st.sampled_from([Logistic(), Squared(), Huber(), Hinge()]),
)
def test_no_record_makes_the_sum_longer_than_its_share_or_a_warning(
    X: Array, y: Array, w: Array, loss: Loss
) -> None:
    objective, records = objective_of(loss), Records.of(X, y)
    fused = objective.clipped_sum(w, records, 0.5)
    assert np.linalg.norm(fused) <= 4 * 0.5 * (1 + 1e-12)
    rows = clip_rows(objective.gradients(w, records), 0.5)
    assert np.isfinite(rows).all()


def test_records_that_overflow_count_as_zero() -> None:
    X = np.array([[1e200, 1e200, 0.0], [1e308, -1e308, 1e308], [0.3, 0.0, 0.0]])
    records, w = Records.of(X, np.array([0.0, 1.0, 0.0])), np.array([1e200, 1e200, 0.0])
    objective = objective_of(Squared())
    good = Records.of(X[2:], np.zeros(1))
    assert objective.clipped_sum(w, records, 1.0).tolist() == objective.clipped_sum(w, good, 1.0).tolist()


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_constants_bound_gradients_and_their_differences(loss: Loss) -> None:
    objective, rng = objective_of(loss, feature_norm=2.0), np.random.default_rng(5)
    X = clip_rows(rng.standard_normal((3000, FEATURES)) * 3, 2.0)
    records = Records.of(X, rng.integers(2, size=3000) * 1.0)
    for _ in range(20):
        w = rng.standard_normal(objective.size) * 3
        v = w + rng.standard_normal(objective.size) * 10.0 ** rng.uniform(-4, 1)
        gap = objective.gradients(w, records) - objective.gradients(v, records)
        limit = objective.smoothness * np.linalg.norm(w - v)
        assert np.linalg.norm(gap, axis=1).max() <= limit * (1 + 1e-6) + 1e-12
        assert np.linalg.norm(objective.gradients(w, records), axis=1).max() <= objective.lipschitz + 1e-9


def test_constants_are_those_of_the_loss_times_the_norm() -> None:
    objective = objective_of(Logistic(), feature_norm=3.0)
    assert (objective.lipschitz, objective.smoothness) == (3.0, 2.25)
    assert math.isinf(objective_of(Squared(), feature_norm=3.0).lipschitz)
    assert math.isinf(objective_of(Logistic()).smoothness)


@pytest.mark.parametrize("loss", [Logistic(), Squared(), Huber(), Hinge()], ids=lambda x: type(x).__name__)
def test_clipping_one_output_keeps_gradients_monotone(loss: Loss) -> None:
    objective, rng = objective_of(loss), np.random.default_rng(6)
    assert objective.clip_safe
    for _ in range(200):
        record = Records.of(rng.standard_normal((1, FEATURES)) * 2, rng.integers(2, size=1) * 1.0)
        w, v = rng.standard_normal((2, FEATURES)) * 3
        gap = objective.clipped_sum(w, record, 0.4) - objective.clipped_sum(v, record, 0.4)
        assert gap @ (w - v) >= -1e-12


def test_clipping_many_outputs_can_break_monotonicity() -> None:
    objective, rng = objective_of(Multinomial()), np.random.default_rng(7)
    assert not objective.clip_safe
    worst = 0.0
    for _ in range(3000):
        record = Records.of(rng.standard_normal((1, FEATURES)) * 2, np.zeros(1))
        w, v = rng.standard_normal((2, objective.size)) * 2
        gap = objective.clipped_sum(w, record, 0.4) - objective.clipped_sum(v, record, 0.4)
        worst = min(worst, float(gap @ (w - v)))
    assert worst < -1e-3


def test_shapes_and_the_layout_of_parameters() -> None:
    objective = objective_of(Multinomial())
    assert objective.size == 12
    w, X = np.arange(12.0), np.eye(FEATURES)
    assert objective.predictions(w, X).tolist() == w.reshape(3, 4).tolist()
    assert objective.clipped_sum(w, Records.of(X[:0], np.zeros(0)), 1.0).tolist() == [0.0] * 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": 0}, "features must be a whole number >= 1"),
        ({"outputs": 2}, "outputs must be a whole number from 1 to 1"),
        ({"loss": Multinomial()}, "outputs must be a whole number >= 2"),
        ({"feature_norm": 0.0}, "feature_norm must be a finite number > 0"),
        ({"feature_norm": math.nan}, "feature_norm must be a finite number > 0"),
        ({"feature_norm": -math.inf}, "feature_norm must be a finite number > 0"),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        LinearObjective(**{"loss": Logistic(), "features": 2, **changes})  # type: ignore[arg-type]  # on purpose


# What the order of records cannot do


def at_right_angles(loss: Loss, dtype: Any) -> tuple[LinearObjective, Array, Array, Array]:
    """An objective, 48 equal records of norm 1 with their labels, and a point at which all is rounding."""
    outputs = 3 if isinstance(loss, Multinomial) else 1
    rng = np.random.default_rng(12)
    x, away = rng.standard_normal((2, 785))
    x -= away * (x @ away) / (away @ away)
    x = (x / np.linalg.norm(x)).astype(dtype)
    w = np.outer(away * 1e25, rng.choice([-1.0, 1.0], outputs)).ravel()
    return (
        LinearObjective(loss=loss, features=785, outputs=outputs), np.tile(x, (48, 1)), np.zeros(48), w,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_a_record_that_comes_or_goes_moves_the_sum_by_a_radius_at_most(loss: Loss, dtype: Any) -> None:
    objective, X, y, w = at_right_angles(loss, dtype)
    radius = 0.01  # below all slopes but those that are zero
    for n in range(1, 48):
        sums = [objective.clipped_sum(w, Records.of(X[:k], y[:k]), radius) for k in (n, n + 1)]
        assert np.linalg.norm(sums[1] - sums[0]) <= radius * (1 + 1e-10)
    rows = objective.gradients(w, Records.of(X, y))
    assert (rows == rows[0]).all()


def test_by_a_matrix_product_it_would_move_it_by_more() -> None:
    objective, X, y, w = at_right_angles(Logistic(), np.float64)

    def by_blas(n: int) -> Array:
        slopes = objective.loss.slope(X[:n] @ w, y[:n])
        return np.asarray(X[:n].T @ np.clip(slopes, -0.01, 0.01))

    furthest = max(np.linalg.norm(by_blas(n + 1) - by_blas(n)) for n in range(1, 48))
    assert furthest > 1.9 * 0.01


# What hidden walks rest on


@pytest.mark.parametrize("loss", LOSSES[:4], ids=lambda x: type(x).__name__)
def test_steps_along_a_convex_gradient_bring_no_two_points_further_apart(loss: Loss) -> None:
    """Whatever a record holds: too long, with a label of no class, or a slope that is clipped or not."""
    rng = np.random.default_rng(11)
    gradient = ConvexGradient(LinearObjective(loss=loss, features=3, feature_norm=2.0))
    eta = 2 / gradient.smoothness
    X = rng.standard_normal((400, 3))
    X *= (rng.choice([0.5, 2.0, 2.0, 50.0], 400) / np.linalg.norm(X, axis=1))[:, None]
    records = Records.of(X, rng.choice([0.0, 1.0, 0.3, -7.0, 1e6], 400))
    steepest = 0.0
    for scale in (1e-3, 0.3, 10.0):
        for _ in range(20):
            w = rng.standard_normal(3) * scale
            v = w + rng.standard_normal(3) * rng.choice([1e-4, 0.1, 1.0])
            for radius in (0.05, 1.0, 1e9):
                a, b = (clip_rows(gradient(records, {"w": at}), radius) for at in (w, v))
                apart = np.linalg.norm((w - v) - eta * (a - b), axis=1) / np.linalg.norm(w - v)
                assert apart.max() <= 1 + 1e-5
                steepest = max(steepest, float(np.linalg.norm(a - b, axis=1).max() / np.linalg.norm(w - v)))
    assert steepest > 0.5 * gradient.smoothness  # the bound is needed


@pytest.mark.parametrize("width", [1.0, 1e4])
def test_small_records_are_as_convex_as_large_ones_between_two_small_floats(width: float) -> None:
    """In float32 the gradient is a staircase in "w": at an edge, a hundred thousand records jump together."""
    gradient = ConvexGradient(LinearObjective(loss=Squared(), features=1, feature_norm=1.0))
    records = Records.of(np.ones((1000, 1), dtype=np.float32), np.zeros(1000, dtype=np.float32))
    below = float(np.float32(width)) + float(np.spacing(np.float32(width))) * (0.5 - 1e-9)
    points = np.array([below, below + 2e-9 * float(np.spacing(np.float32(width)))])
    a, b = (clip_rows(gradient(records, {"w": np.array([w])}), 1e9) for w in points)
    apart = np.abs((points[0] - points[1]) - 2 / gradient.smoothness * (a - b))
    assert apart.max() <= abs(points[0] - points[1]) * (1 + 1e-5) + 4 * np.spacing(width)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_no_label_overflows_and_loses_its_direction(dtype: Any) -> None:
    gradient = ConvexGradient(LinearObjective(loss=Squared(), features=1, feature_norm=1.0))
    largest = float(np.finfo(dtype).max)
    records = Records.of(np.ones((2, 1), dtype=dtype), np.array([largest, -largest], dtype=dtype))
    rows = [
        clip_rows(gradient(records, {"w": np.array([w])}), 1.0) for w in (-1e99, -1e38, -1.0, 1.0, 1e38, 1e99)
    ]
    slopes = np.array(rows)[:, :, 0]
    assert np.isfinite(slopes).all()
    assert (np.diff(slopes, axis=0) >= 0).all()  # of a convex function
    assert np.abs(slopes).min() > 0


def test_a_record_beyond_the_bound_counts_as_zero_in_a_convex_gradient() -> None:
    objective = LinearObjective(loss=Squared(), features=2, feature_norm=1.0)
    records = Records.of(np.array([[0.6, 0.8], [3.0, 4.0], [1.0, 1e-5]]), np.ones(3))
    at = {"w": np.zeros(2)}
    expected = RecordGradient(objective)(records, at)
    found = ConvexGradient(objective)(records, at)
    np.testing.assert_array_equal(found[[0, 2]], expected[[0, 2]])
    assert not found[1].any()
    assert ConvexGradient(objective)(records.take(np.arange(0)), at).shape == (0, 2)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        (LinearObjective(loss=Multinomial(), features=2, outputs=3, feature_norm=1.0), "convex loss"),
        (LinearObjective(loss=Logistic(), features=6), "smoothness must be at least the inf"),
        (
            LinearObjective(loss=Logistic(), features=6, feature_norm=2.1),
            "smoothness must be at least the 1.1",
        ),
    ],
    ids=["several outputs", "no bound", "too long"],
)
def test_silos_know_what_their_objective_bears_out(objective: LinearObjective, message: str) -> None:
    mean = AdditiveMean(dim=6, noise=GaussianNoise(2.0))
    step = HiddenWalk(
        measures=(Measure(statistic="gradient", estimator=mean, max_radius=1.0),),
        steps=10, order=Order.SO, step_size=1.0, smoothness=1.01, domain=3.0,
    )  # fmt: skip
    plan = Plan(steps=((step, 1),), parties=1, delta=1e-6)
    records = Records.of(np.zeros((5, objective.features)), np.zeros(5))

    def silo(of: LinearObjective, make: Any = ConvexGradient) -> Silo:
        (made,) = make_silos([records], of, statistics={"gradient": make(of)}, seed=1)
        return made

    with pytest.raises(ParameterError, match=message):
        silo(objective).accept(plan)
    fits = LinearObjective(loss=Logistic(), features=6, feature_norm=2.0)
    with pytest.raises(ParameterError, match="known to be the gradient of a convex loss"):
        silo(fits, RecordGradient).accept(plan)  # which long records could make less smooth
    with pytest.raises(ParameterError, match="known to be the gradient of a convex loss"):
        silo(fits, lambda of: PerPerson(ConvexGradient(of))).accept(plan)
    if objective.features == 6:
        assert silo(fits).accept(plan).epsilon > 0
