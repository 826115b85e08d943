"""What is public and what was read off the data; parameters that are refused before anything runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.errors import DataError, ParameterError, PrivacyWarning, UnknownNameError
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    FeatureMap,
    FederatedLogisticRegression,
    Logistic,
    Multinomial,
    NoisyMinibatchSGD,
    Squared,
)
from tacit.learning.fitting import (
    DEFAULT_DIAMETER,
    REGRESSION_DIAMETER,
    LinearTask,
    Request,
    _split,
    feature_bounds,
    label_codes,
    labels,
    target_bounds,
    with_notes,
)
from tacit.means import AdditiveMean
from tacit.privacy import Gaussian, PrivacyBudget, guarantee

X = np.array([[0.0, 5.0], [2.0, 1.0], [-1.0, 3.0]])
Y = np.array([3.0, -1.0, 2.0])
BUDGET = PrivacyBudget(1.0, 1e-6)
FEATURES = FeatureMap(lower=np.zeros(1), upper=np.ones(1))
TASK = LinearTask(features=FEATURES, classes=np.array([0, 1]))
REGRESSION = LinearTask(features=FEATURES, target=(-1.0, 3.0))


def request_with(**changes: Any) -> Request:
    facts: dict[str, Any] = {
        "trust": "local",
        "budget": BUDGET,
        "algorithm": "accelerated",
        "rounds": "auto",
        "clip": None,
        "noise": "auto",
        "random_state": 0,
    }
    return Request(**{**facts, **changes})


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


def test_notes_become_assumptions() -> None:
    plain = guarantee(Gaussian(4.0), 1e-6, observer="the server", assumptions=("a holds",))
    (noted,) = with_notes([plain], ["b holds"])
    assert noted.assumptions == ("a holds", "b holds")
    assert "provided that (1) a holds; (2) b holds." in str(noted)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"trust": "server"}, UnknownNameError, "trust must be one of local, shuffle, central, none"),
        (
            {"trust": "none"},
            ParameterError,
            "a budget needs trust 'local', 'shuffle' or 'central', got trust='none'",
        ),
        ({"budget": 1.0}, ParameterError, "budget must be a PrivacyBudget or None, got 1.0"),
        ({"budget": PrivacyBudget.zcdp(1.0)}, ParameterError, "budget must be a PrivacyBudget or None"),
        ({"algorithm": "acelerated"}, UnknownNameError, "did you mean 'accelerated'"),
        (
            {"algorithm": 7},
            ParameterError,
            "got 7, which lacks rounds, trusts",
        ),
        ({"algorithm": NoisyMinibatchSGD(), "rounds": 3}, ParameterError, "it has its own"),
        ({"rounds": 0}, ParameterError, "rounds must be a whole number >= 1, got 0"),
        ({"rounds": "many"}, ParameterError, "rounds must be a whole number >= 1, got 'many'"),
        ({"rounds": None}, ParameterError, "rounds must be a whole number >= 1, got None"),
        ({"clip": 0.0}, ParameterError, "clip must be a finite number > 0, got 0.0"),
        ({"clip": -1.0}, ParameterError, "clip must be a finite number > 0, got -1.0"),
        ({"clip": math.nan}, ParameterError, "clip must be a finite number > 0, got nan"),
        ({"noise": "laplace"}, UnknownNameError, "noise must be one of"),
    ],
)
def test_bad_parameters_are_refused(changes: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        request_with(**changes)


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


@pytest.mark.parametrize(
    ("changes", "radius"),
    [({}, 0.3), ({"clip": 0.07}, 0.07), ({"budget": None}, 1e6), ({"budget": None, "clip": 0.07}, 0.07)],
)
def test_the_clipping_radius(changes: dict[str, Any], radius: float) -> None:
    request = request_with(**changes, rounds=1)
    for task in (TASK, REGRESSION):
        trained, notes = request.train(task, X[:, :1] / 10, np.zeros(3), silos=None, persons=None)
        assert trained.plan.kinds[0][0].measures[0].max_radius == radius
        assert notes == []


@pytest.mark.parametrize(
    ("random_state", "noise", "kind", "simulated"),
    [
        (0, "auto", "GaussianNoise", True),
        (0, "discrete-gaussian", "DiscreteGaussianNoise", True),
        (None, "auto", "DiscreteGaussianNoise", False),
        (None, "discrete-gaussian", "DiscreteGaussianNoise", False),
    ],
)
def test_only_a_simulation_takes_continuous_noise_by_itself(
    random_state: int | None, noise: str, kind: str, *, simulated: bool
) -> None:
    request = request_with(random_state=random_state, noise=noise, rounds=1)
    trained, _ = request.train(TASK, X[:, :1] / 10, np.zeros(3), silos=None, persons=None)
    estimator = trained.plan.kinds[0][0].measures[0].estimator
    assert isinstance(estimator, AdditiveMean)
    assert type(estimator.noise).__name__ == kind
    assert trained.guarantee.simulated is simulated


def test_continuous_noise_that_protects_somebody_warns() -> None:
    request = request_with(random_state=None, noise="gaussian", rounds=1)
    with pytest.warns(PrivacyWarning, match="leaks through floating point; pass noise='discrete-gaussian'"):
        trained, notes = request.train(TASK, X[:, :1] / 10, np.zeros(3), silos=None, persons=None)
    said = "it does not matter that continuous noise leaks through floating point"
    assert [*trained.guarantee.assumptions, *notes] == [said]


def test_an_algorithm_of_ones_own_is_used_as_it_is() -> None:
    algorithm = AcceleratedNoisyMinibatchSGD(rounds=3, nu=5.0)
    trained, _ = request_with(algorithm=algorithm).train(
        TASK, X[:, :1] / 10, np.zeros(3), silos=None, persons=None
    )
    assert trained.rounds == 3


def test_ids_of_persons_are_read_alike_from_lists_and_from_arrays_of_text() -> None:
    ids = ["a", "a ", "Ren\u00e9", "Rene\u0301", "", " "]
    rows = np.ones((len(ids), 2))
    for given in (ids, np.array(ids), np.array(ids, dtype=object), pd.Series(ids, dtype="string")):
        (grouped,) = _split(rows, np.zeros(len(ids)), silos=None, persons=given)[1]
        assert len(grouped) == 3


def test_silos_and_persons_are_one_per_record() -> None:
    for silos, persons, name in (
        ([0, 1], None, "silos"),
        (None, [[0], [1], [2]], "persons"),
        (3, None, "silos"),
    ):
        with pytest.raises(DataError, match=rf"{name} must have one entry per record \(3\), got shape"):
            request_with().train(TASK, X[:, :1] / 10, np.zeros(3), silos=silos, persons=persons)


def test_persons_in_several_silos_are_an_assumption() -> None:
    one = request_with(rounds=1).train(TASK, X[:, :1] / 10, np.zeros(3), silos=None, persons=[1, 2, 1])
    two = request_with(rounds=1).train(
        TASK, X[:, :1] / 10, np.zeros(3), silos=["a", "b", "a"], persons=[1, 2, 1]
    )
    assert one[1] == []
    assert two[1] == ["no person has records in two silos"]
    assert [g.observer for g in two[0].guarantees] == [
        f"everybody outside silo '{name}', the server included," for name in "ab"
    ]


def test_one_odd_label_or_id_changes_none_of_the_others() -> None:
    """In an array of floats, ten 19-digit ids and one 1.5 would be two persons."""
    ids: list[object] = [10**18 + k for k in range(10)]
    rows, y = np.full((11, 2), 0.1), np.zeros(11)
    for odd in (1.5, "x", None):
        np.testing.assert_array_equal(label_codes(np.array([0, 1]), [1, 0, odd]), [1, 0, np.nan])
        (grouped,) = _split(rows, y, silos=None, persons=[*ids, odd])[1]
        assert len(grouped) == 11
        names, _ = _split(rows, y, silos=[*ids, odd], persons=None)
        assert set(map(str, ids)) < set(names)


@pytest.mark.parametrize("odd", [0, 7, "other", 0.5])
def test_a_label_that_is_none_is_no_error_of_a_private_fit(odd: object) -> None:
    X, y = np.linspace(-1, 1, 40)[:, None], [0, 1] * 20
    model = FederatedLogisticRegression(
        budget=PrivacyBudget(1.0, 1e-5), bounds=(-1, 1), classes=[0, 1], rounds=2, random_state=0
    ).fit(X, [odd, *y[1:]])
    assert model.classes_.tolist() == [0, 1]


def test_targets_too_far_apart_are_not_quoted() -> None:
    with pytest.raises(DataError, match="too far apart") as caught:
        target_bounds(None, np.array([-1.7e308, 1.7e308]), private=False)
    assert "e+308" not in str(caught.value)
