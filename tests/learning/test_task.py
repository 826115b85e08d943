"""The public shape of a linear model, what was read off the data, and what no error may quote."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError, PrivacyWarning
from tacit.learning import FeatureMap, Logistic, Multinomial, Squared
from tacit.learning.task import (
    DEFAULT_DIAMETER,
    REGRESSION_DIAMETER,
    LinearTask,
    feature_bounds,
    label_codes,
    labels,
    target_bounds,
)

X = np.array([[0.0, 5.0], [2.0, 1.0], [-1.0, 3.0]])
Y = np.array([3.0, -1.0, 2.0])
FEATURES = FeatureMap(lower=np.zeros(1), upper=np.ones(1))
TASK = LinearTask(features=FEATURES, classes=np.array([0, 1]))
REGRESSION = LinearTask(features=FEATURES, target=(-1.0, 3.0))


def test_given_bounds_are_public() -> None:
    lower, upper, notes = feature_bounds((0, [1, 2]), X, private=True)
    assert (lower.tolist(), upper.tolist(), notes) == ([0, 0], [1, 2], [])
    assert target_bounds((-5, 5), Y, private=True) == (-5.0, 5.0, [])
    found, notes = labels([2, 1, 3], np.array([1, 2]), private=True)
    assert (found.tolist(), notes) == ([1, 2, 3], [])


@pytest.mark.filterwarnings("error")
def test_without_a_budget_facts_are_read_off_silently() -> None:
    lower, upper, notes = feature_bounds(None, X, private=False)
    assert (lower.tolist(), upper.tolist(), notes) == ([-1, 1], [2, 5], [])
    assert target_bounds("data", Y, private=False) == (-1.0, 3.0, [])
    assert labels(None, np.array(["b", "a", "b"]), private=False)[0].tolist() == ["a", "b"]


def test_under_a_budget_reading_off_warns_and_leaves_a_note() -> None:
    with pytest.warns(PrivacyWarning, match="the features' bounds were read off the data without privacy"):
        lower, _, notes = feature_bounds("data", X, private=True)
    assert lower.tolist() == [-1, 1]
    assert notes == ["it does not matter that the features' bounds were read off the data without privacy"]
    with pytest.warns(PrivacyWarning, match="the target's bounds were read off"):
        assert target_bounds("data", Y, private=True)[:2] == (-1.0, 3.0)
    with pytest.warns(PrivacyWarning, match="the classes were read off.*; pass `classes`"):
        labels(None, Y, private=True)


def test_under_a_budget_bounds_must_be_given() -> None:
    with pytest.raises(ParameterError, match=r"^bounds must be given with a budget"):
        feature_bounds(None, X, private=True)
    with pytest.raises(ParameterError, match="target_bounds must be given with a budget"):
        target_bounds(None, Y, private=True)


@pytest.mark.parametrize("bad", [3.0, (1.0,), (1.0, 2.0, 3.0), ("a", "b"), "bounds"])
def test_what_is_no_pair_of_bounds_is_refused(bad: Any) -> None:
    with pytest.raises(ParameterError, match="bounds must be a pair"):
        target_bounds(bad, Y, private=True)
    with pytest.raises(ParameterError, match=r"target_bounds must leave room between them, got \(2, 2\)"):
        target_bounds((2, 2), Y, private=True)


def test_labels_are_at_least_two_and_known() -> None:
    with pytest.raises(DataError, match="at least two classes, got one class"):
        labels(None, np.ones(3), private=False)
    with pytest.raises(DataError, match="at least two classes, got one class"):
        labels([1, 1], np.ones(3), private=True)
    with pytest.raises(DataError, match="y holds labels outside `classes`"):
        labels([1, 2], np.array([1, 7]), private=False)
    # With a budget an error would tell of a record: it counts as zero.
    found, _ = labels([1, 2], np.array([1, 7]), private=True)
    np.testing.assert_array_equal(label_codes(found, np.array([1, 7, 2])), [0, np.nan, 1])
    # That a public class does not occur is nobody's business.
    assert labels([0, 1], np.ones(3), private=True)[0].tolist() == [0, 1]


def test_a_task_says_what_is_minimised_and_about_how_far_its_solution_is() -> None:
    three = LinearTask(features=FEATURES, classes=np.array(["a", "b", "c"]))
    found: list[tuple[Any, int, float]] = [
        (task.objective.loss, task.objective.outputs, task.diameter) for task in (TASK, three, REGRESSION)
    ]
    assert found == [
        (Logistic(), 1, DEFAULT_DIAMETER),
        (Multinomial(), 3, DEFAULT_DIAMETER),
        (Squared(), 1, REGRESSION_DIAMETER),
    ]
    for task in (TASK, three, REGRESSION):
        objective = task.objective
        assert (objective.features, objective.feature_norm) == (2, 1.0)
        model = task.model(np.zeros(objective.size))
        assert (model.features, model.classes is task.classes, model.target) == (FEATURES, True, task.target)
        assert len(model.predict(X[:, :1])) == 3


def test_targets_too_far_apart_are_not_quoted() -> None:
    with pytest.raises(DataError, match="too far apart") as caught:
        target_bounds(None, np.array([-1.7e308, 1.7e308]), private=False)
    assert "e+308" not in str(caught.value)
