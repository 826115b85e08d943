"""Rounded distances: closed forms, finite differences, and the constants that they state."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from tacit.errors import ParameterError
from tacit.learning import DistanceObjective, Objective, Records
from tacit.numerics import Array

RNG = np.random.default_rng(3)
X = RNG.normal(size=(40, 3))
RECORDS = Records.of(X, np.zeros(40))
CASES = [(1.0, 0.5), (2.0, 4.0), (math.inf, 0.7), (1.5, math.inf)]


@pytest.mark.parametrize(("lipschitz", "smoothness"), CASES)
def test_gradients_are_those_of_the_value(lipschitz: float, smoothness: float) -> None:
    objective: Objective = DistanceObjective(size=3, lipschitz=lipschitz, smoothness=smoothness)
    w = np.array([0.3, -1.0, 2.0])
    found = objective.gradients(w, RECORDS).mean(axis=0)

    def mean(at: Array) -> float:
        return float(objective.value(at, RECORDS).mean())

    numeric = optimize.approx_fprime(w, mean, 1e-7)
    assert found == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize(("lipschitz", "smoothness"), CASES)
def test_constants_are_kept(lipschitz: float, smoothness: float) -> None:
    objective = DistanceObjective(size=3, lipschitz=lipschitz, smoothness=smoothness)
    points = RNG.normal(scale=3, size=(200, 3))
    grads = [objective.gradients(w, RECORDS) for w in points]
    assert max(np.linalg.norm(g, axis=1).max() for g in grads) <= lipschitz * (1 + 1e-9)
    for k in range(0, 200, 2):
        moved = np.linalg.norm(grads[k] - grads[k + 1], axis=1).max()
        assert moved <= smoothness * np.linalg.norm(points[k] - points[k + 1]) * (1 + 1e-9)


def test_squared_distances_have_their_minimum_at_the_mean() -> None:
    objective = DistanceObjective(size=3, lipschitz=math.inf, smoothness=2.0)
    assert objective.gradients(X.mean(axis=0), RECORDS).sum(axis=0) == pytest.approx(np.zeros(3), abs=1e-12)
    assert objective.value(np.zeros(3), RECORDS) == pytest.approx((X**2).sum(axis=1))


def test_clipped_sums_are_sums_of_clipped_rows() -> None:
    objective = DistanceObjective(size=3, lipschitz=1.0, smoothness=0.5)
    rows = objective.gradients(np.ones(3), RECORDS)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    expected = (rows * np.minimum(1, 0.3 / lengths)).sum(axis=0)
    assert objective.clipped_sum(np.ones(3), RECORDS, 0.3, np.float64) == pytest.approx(expected)
    assert objective.clip_safe


def test_at_a_record_itself_a_plain_distance_has_no_slope() -> None:
    objective = DistanceObjective(size=3)
    assert (objective.gradients(X[0], RECORDS)[0] == 0).all()


@pytest.mark.parametrize(
    "facts", [{"size": 0}, {"lipschitz": 0.0}, {"smoothness": -1.0}, {"lipschitz": math.inf}]
)
def test_bad_constants_are_refused(facts: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(facts))):
        DistanceObjective(**{"size": 3, **facts})  # type: ignore[arg-type]
