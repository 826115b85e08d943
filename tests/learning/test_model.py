"""The map into the unit ball, and what a model says about raw features."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import DataError, ParameterError
from tacit.learning import FeatureMap, LinearModel
from tacit.learning.model import bounds_arrays, scale_target
from tacit.numerics import Array

LOWER, UPPER = np.array([0.0, -10.0, 5.0]), np.array([1.0, 10.0, 5.0])
MAP = FeatureMap(lower=LOWER, upper=UPPER)
COMMON = FeatureMap(lower=LOWER, upper=UPPER, unit_rows=False)


@given(X=arrays(np.float64, (4, 3), elements=st.floats(width=64)), unit_rows=st.booleans())
def test_every_row_is_in_the_unit_ball_or_not_a_number(X: Array, unit_rows: bool) -> None:
    rows = FeatureMap(lower=LOWER, upper=UPPER, unit_rows=unit_rows)(X)
    assert rows.shape == (4, 4)
    norms = np.linalg.norm(rows, axis=1)
    good = ~np.isnan(X).any(axis=1)
    assert np.all(norms[good] <= 1 + 1e-12)
    assert np.all(norms[good] > 0)
    assert np.isnan(norms[~good]).all()


def test_bounds_become_plus_and_minus_one() -> None:
    rows = COMMON(np.array([[0.0, 10.0, 5.0], [1.0, -10.0, 9.0], [0.5, 0.0, 0.0], [-7.0, 99.0, 5.0]]))
    scale = np.hypot(np.sqrt(3), COMMON.constant)
    expected = [[-1, 1, 0], [1, -1, 0], [0, 0, 0], [-1, 1, 0]]
    np.testing.assert_allclose(rows[:, :3] * scale, expected, atol=1e-15)
    np.testing.assert_allclose(rows[:, 3] * scale, COMMON.constant)


def test_unit_rows_have_the_same_direction() -> None:
    X = np.random.default_rng(1).uniform(-1, 1, (20, 3))
    rows = COMMON(X) * np.hypot(np.sqrt(3), COMMON.constant)
    rows[:, 3] = MAP.constant
    np.testing.assert_allclose(MAP(X), rows / np.linalg.norm(rows, axis=1, keepdims=True), rtol=1e-12)


@pytest.mark.parametrize("unit_rows", [True, False])
def test_many_rows_are_mapped_each_by_itself(unit_rows: bool) -> None:
    X = np.random.default_rng(2).uniform(-1, 12, (20_000, 3))
    mapped = FeatureMap(lower=LOWER, upper=UPPER, unit_rows=unit_rows)
    rows = mapped(X)
    for index in (0, 1, 8191, 8192, 16_383, 16_384, 19_999):
        np.testing.assert_array_equal(rows[index : index + 1], mapped(X[index : index + 1]))


def test_many_features_of_the_same_bounds_above_0_are_pixels_whose_centre_is_dark() -> None:
    """About the middle of their bounds, images that are black but for a few strokes all look alike."""

    def centre(lower: float, upper: float, d: int = 64, *, unit_rows: bool = True) -> Array:
        bounds = np.full(d, lower), np.full(d, upper)
        return FeatureMap(lower=bounds[0], upper=bounds[1], unit_rows=unit_rows).centre

    assert centre(0, 255).tolist() == [51.0] * 64
    for other in (centre(0, 1, 63), centre(0, 1, unit_rows=False)):
        assert set(other.tolist()) == {0.5}
    assert set(centre(-1, 1).tolist()) == {0.0}
    mixed = FeatureMap(lower=np.zeros(64), upper=np.arange(1.0, 65)).centre
    assert mixed.tolist() == (np.arange(1.0, 65) / 2).tolist()
    # Scaling pixels changes nothing.
    X = np.random.default_rng(2).uniform(0, 1, (5, 64))
    pixels, bytes_ = (FeatureMap(lower=np.zeros(64), upper=np.full(64, u)) for u in (1.0, 255.0))
    np.testing.assert_allclose(pixels(X), bytes_(255 * X), rtol=1e-12)


def test_no_rows_and_no_features() -> None:
    assert MAP(np.zeros((0, 3))).shape == (0, 4)
    assert COMMON(np.zeros((0, 3))).shape == (0, 4)
    assert FeatureMap(lower=np.zeros(0), upper=np.zeros(0))(np.zeros((2, 0))).tolist() == [[1.0], [1.0]]


@pytest.mark.parametrize(
    ("lower", "upper", "message"),
    [
        ([0.0, 0.0], [1.0], "bounds must be two vectors of one length"),
        ([[0.0]], [[1.0]], "bounds must be two vectors of one length"),
        ([2.0], [1.0], "bounds must have lower <= upper"),
        ([np.nan], [1.0], "bounds must be finite"),
        ([0.0], [np.inf], "bounds must be finite"),
        ([-1e308], [1e308], "bounds must be finite numbers, and their differences too"),
    ],
)
def test_bad_bounds_are_refused(lower: Any, upper: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        FeatureMap(lower=np.array(lower), upper=np.array(upper))


@pytest.mark.parametrize("X", [np.zeros((2, 4)), np.zeros(3)])
def test_rows_of_another_length_are_refused(X: Array) -> None:
    with pytest.raises(DataError, match=r"X must have shape \(n, 3\), got"):
        MAP(X)


def test_bounds_are_numbers_or_one_per_feature() -> None:
    low, high = bounds_arrays((0, [1, 2, 3]), 3)
    assert low.tolist() == [0, 0, 0]
    assert high.tolist() == [1, 2, 3]
    for bad in (3, (1, 2, 3), (0, [1, 2]), ("a", 1), None):
        with pytest.raises(ParameterError, match="bounds must be a pair"):
            bounds_arrays(bad, 3)


def test_targets_are_clipped_and_scaled() -> None:
    assert scale_target(np.array([0.0, 5.0, 10.0, 99.0, -1.0]), (0.0, 10.0)).tolist() == [-1, 0, 1, 1, -1]
    assert scale_target(np.array([3.0, 4.0]), (3.0, 3.0)).tolist() == [-1, -1]
    for bad in ((1.0, 0.0), (0.0, np.inf), (np.nan, 1.0), (-1e308, 1e308)):
        with pytest.raises(ParameterError, match="target_bounds must be finite with low <= high"):
            scale_target(np.zeros(1), bad)


def test_a_regression_predicts_in_its_own_units() -> None:
    w = np.array([0.3, -0.2, 0.0, 0.5])
    model = LinearModel(features=COMMON, w=w, target=(100.0, 300.0))
    X = np.random.default_rng(2).uniform(-1, 1, (10, 3))
    np.testing.assert_allclose(model.scores(X), COMMON(X) @ w)
    np.testing.assert_allclose(scale_target(model.predict(X), (100.0, 300.0)), model.scores(X), atol=1e-12)
    with pytest.raises(ParameterError, match="probabilities need a classifier"):
        model.probabilities(X)


def test_two_classes_share_one_score() -> None:
    classes = np.array(["no", "yes"])
    model = LinearModel(features=MAP, w=np.array([2.0, 0.0, 0.0, 0.0]), classes=classes)
    X = np.array([[0.0, 0.0, 5.0], [1.0, 0.0, 5.0]])
    assert model.predict(X).tolist() == ["no", "yes"]
    chances = model.probabilities(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(np.log(chances[:, 1] / chances[:, 0]), model.scores(X))


def test_many_classes_have_a_score_each() -> None:
    classes = np.array([3, 5, 9])
    w = np.random.default_rng(3).standard_normal(12)
    model = LinearModel(features=MAP, w=w, classes=classes)
    X = np.random.default_rng(4).uniform(-1, 1, (50, 3))
    np.testing.assert_allclose(model.scores(X), MAP(X) @ w.reshape(4, 3))
    chances = model.probabilities(X)
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    assert model.predict(X).tolist() == classes[chances.argmax(axis=1)].tolist()
