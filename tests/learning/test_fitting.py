"""What is public and what was read off the data; parameters that are refused before anything runs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError, PrivacyWarning, UnknownNameError
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    FeatureMap,
    FederatedLogisticRegression,
    NoisyMinibatchSGD,
)
from tacit.learning.fitting import Request, with_notes
from tacit.learning.task import LinearTask
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


def test_notes_become_assumptions() -> None:
    plain = guarantee(Gaussian(4.0), 1e-6, observer="the server", assumptions=("a holds",))
    (noted,) = with_notes([plain], ["b holds"])
    assert noted.assumptions == ("a holds", "b holds")
    assert "provided that (1) a holds; (2) b holds." in str(noted)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"trust": "server"},
            UnknownNameError,
            "trust must be one of local, aggregate, shuffle, central, none",
        ),
        (
            {"trust": "none"},
            ParameterError,
            "a budget needs trust 'local', 'aggregate', 'shuffle' or 'central', got trust='none'",
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


@pytest.mark.parametrize("odd", [0, 7, "other", 0.5])
def test_a_label_that_is_none_is_no_error_of_a_private_fit(odd: object) -> None:
    X, y = np.linspace(-1, 1, 40)[:, None], [0, 1] * 20
    model = FederatedLogisticRegression(
        budget=PrivacyBudget(1.0, 1e-5), bounds=(-1, 1), classes=[0, 1], rounds=2, random_state=0
    ).fit(X, [odd, *y[1:]])
    assert model.classes_.tolist() == [0, 1]
