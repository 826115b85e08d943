"""The histogram of gradient norms: one bin a unit, no two rows further apart than priced, hostile values."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import Grouped, LinearObjective, Records, Squared
from tacit.learning.gradient_norms import GradientNorms
from tacit.numerics import Array

GOAL = LinearObjective(loss=Squared(), features=2, feature_norm=1.0)
EDGES = np.array([0.1, 1.0, 10.0])
AT = {"w": np.zeros(2), "edges": EDGES}


def of_norms(norms: Array) -> Records:
    """Records whose gradients at 0 have these norms: x = (1, 0), y = -norm."""
    return Records.of(np.tile([1.0, 0.0], (len(norms), 1)), -np.asarray(norms, dtype=np.float64))


def test_a_unit_is_in_the_bin_of_its_norm() -> None:
    norms = np.array([0.0, 0.05, 0.1, 0.1001, 1.0, 1.0 + 1e-9, 5.0, 1e9])
    rows = GradientNorms.of(GOAL)(of_norms(norms), AT)
    assert rows.sum(axis=1).tolist() == [1.0] * 8
    assert rows.argmax(axis=1).tolist() == [0, 0, 0, 1, 1, 1, 2, 2]


def test_no_two_rows_are_more_than_a_right_angle_apart() -> None:
    """All pairs of bins, and none: under replace-one a sum moves by at most sqrt(2), under zero-out by 1."""
    rows = GradientNorms.of(GOAL)(of_norms(np.array([0.0, 0.5, 5.0, np.inf])), AT)
    assert rows[-1].tolist() == [0.0, 0.0, 0.0] or np.isfinite(rows).all()
    pairs = [np.linalg.norm(one - two) for one, two in product([*rows, np.zeros(3)], repeat=2)]
    assert max(pairs) == pytest.approx(np.sqrt(2))
    assert max(np.linalg.norm(rows, axis=1)) == 1.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_gradient_that_is_no_vector_of_numbers_is_in_no_bin(value: float) -> None:
    def broken(units: Records, at: object) -> Array:
        rows = np.ones((len(units), 2))
        rows[1, 0] = value
        return rows

    rows = GradientNorms(broken)(of_norms(np.ones(3)), AT)
    assert rows.sum(axis=1).tolist() == [1.0, 0.0, 1.0]


def test_no_norm_overflows() -> None:
    X = np.array([[1e300, 0.0], [1e-300, 0.0]])
    rows = GradientNorms.of(GOAL)(Records.of(X, np.array([1e300, 1e-300])), AT)
    assert rows.tolist() == [[0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


def test_a_person_is_in_the_bin_of_its_mean_gradient() -> None:
    """Two records of opposite gradients cancel out, as they do in what is clipped later."""
    records = Records.of(np.array([[1.0, 0], [-1.0, 0], [1.0, 0]]), np.array([-5.0, -5.0, -5.0]))
    persons = Grouped.of(records, np.array([7, 7, 8]))
    rows = GradientNorms.of(GOAL).of_persons()(persons, AT)
    assert rows.tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert GradientNorms.of(GOAL).of_persons().acute


def test_parts_that_fit_in_memory_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    units = Records.of(rng.normal(size=(50, 2)).astype(np.float32), rng.normal(size=50) * 10)
    persons, statistic = Grouped.of(units, rng.integers(0, 9, 50)), GradientNorms.of(GOAL)
    whole, all_persons = statistic(units, AT), statistic.of_persons()(persons, AT)
    monkeypatch.setattr("tacit.learning.gradient_norms._AT_ONCE", 6)
    assert np.array_equal(statistic(units, AT), whole)
    assert np.array_equal(statistic.of_persons()(persons, AT), all_persons)
    assert statistic(units.take(np.arange(0)), AT).shape == (0, 3)


@pytest.mark.parametrize("at", [{"w": np.zeros(2)}, {"edges": EDGES}, AT | {"edges": np.zeros((1, 2))}])
def test_a_query_without_points_or_bins_is_refused(at: dict[str, Array]) -> None:
    with pytest.raises(ParameterError, match="needs the point 'w', and 'edges'"):
        GradientNorms.of(GOAL)(of_norms(np.ones(2)), at)
