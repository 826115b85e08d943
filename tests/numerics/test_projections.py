"""Projections meet the variational inequality of the nearest point and agree with slow references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize

from tacit.errors import ParameterError
from tacit.numerics import Projection, project_box, project_l2_ball, project_simplex

DIM = 4
CENTER = np.array([1.0, -2.0, 0.5, 0.0])
LOWER, UPPER = np.array([-1.0, 0.0, -3.0, 0.2]), np.array([1.0, 0.0, 2.0, 0.9])
POINTS = arrays(np.float64, DIM, elements=st.floats(-1e3, 1e3))

SETS: dict[str, Projection] = {
    "l2": lambda w: project_l2_ball(w, 1.5),
    "l2 off center": lambda w: project_l2_ball(w, 1.5, center=CENTER),
    "box": lambda w: project_box(w, lower=LOWER, upper=UPPER),
    "simplex": project_simplex,
    "large simplex": lambda w: project_simplex(w, 40.0),
}

MEMBERS: dict[str, Callable[[Any], bool]] = {
    "l2": lambda y: bool(np.linalg.norm(y) <= 1.5 + 1e-12),
    "l2 off center": lambda y: bool(np.linalg.norm(y - CENTER) <= 1.5 + 1e-12),
    "l1": lambda y: bool(np.abs(y).sum() <= 2.5 + 1e-12),
    "box": lambda y: bool(np.all((y >= LOWER) & (y <= UPPER))),
    "simplex": lambda y: bool(np.all(y >= 0) and abs(y.sum() - 1) <= 1e-12),
    "large simplex": lambda y: bool(np.all(y >= 0) and abs(y.sum() - 40) <= 1e-11),
}


@pytest.mark.parametrize("name", SETS)
@given(z=POINTS, others=arrays(np.float64, (5, DIM), elements=st.floats(-50, 50)))
def test_the_nearest_point_of_the_set(name: str, z: Any, others: Any) -> None:
    project = SETS[name]
    y = project(z)
    assert MEMBERS[name](y)
    # <z - y, x - y> <= 0 for all x in the set holds for the nearest point and for no other.
    gaps = (project(others) - y) @ (z - y)
    assert gaps.max() <= 1e-10 * (1 + np.linalg.norm(z)) * 100


@pytest.mark.parametrize("name", SETS)
@given(z=POINTS, x=POINTS)
def test_projections_are_nonexpansive_and_idempotent(name: str, z: Any, x: Any) -> None:
    project = SETS[name]
    y = project(z)
    assert np.linalg.norm(y - project(x)) <= np.linalg.norm(z - x) + 1e-10
    np.testing.assert_allclose(project(y), y, rtol=0, atol=1e-12)


@pytest.mark.parametrize("name", SETS)
@given(batch=arrays(np.float64, (2, 3, DIM), elements=st.floats(-10, 10)))
def test_a_batch_is_its_points(name: str, batch: Any) -> None:
    together = SETS[name](batch)
    one_by_one = [[SETS[name](point).tolist() for point in block] for block in batch]
    np.testing.assert_allclose(together, one_by_one, rtol=0, atol=1e-13)


@pytest.mark.parametrize("name", SETS)
def test_dtype_stays_and_the_argument_too(name: str) -> None:
    z = np.array([30.0, -1.0, 2.0, 0.5], dtype=np.float32)
    y = SETS[name](z)
    assert y.dtype == np.float32
    assert z.tolist() == [30.0, -1.0, 2.0, 0.5]
    np.testing.assert_allclose(y, SETS[name](z.astype(np.float64)), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", SETS)
def test_nan_stays_nan(name: str) -> None:
    assert np.isnan(SETS[name](np.full(DIM, np.nan))).all()


def slow_simplex(w: Any, total: float) -> Any:
    """The projection by root finding on its threshold."""
    root = optimize.brentq(
        lambda t: np.maximum(w - t, 0).sum() - total, w.min() - total - 1, w.max(), xtol=1e-14
    )
    return np.maximum(w - root, 0)


@given(w=arrays(np.float64, st.integers(1, 9), elements=st.floats(-5, 5)), total=st.floats(0.01, 10))
def test_the_simplex_agrees_with_root_finding(w: Any, total: float) -> None:
    np.testing.assert_allclose(project_simplex(w, total), slow_simplex(w, total), rtol=0, atol=1e-10)


def test_points_inside_come_back_bit_for_bit() -> None:
    w = np.array([0.1, 0.2, 0.3])
    assert project_l2_ball(w, 1.0).tolist() == w.tolist()
    assert project_l2_ball(w, 1.0, center=np.array([0.3, 0.1, 0.7])).tolist() == w.tolist()
    assert project_box(w, lower=0.0, upper=1.0).tolist() == w.tolist()


def test_sets_of_one_point() -> None:
    w = np.array([3.0, -4.0])
    assert project_l2_ball(w, 0.0).tolist() == [0.0, 0.0]
    assert project_l2_ball(w, 0.0, center=np.array([1.0, 2.0])).tolist() == [1.0, 2.0]
    assert project_simplex(w, 0.0).tolist() == [0.0, 0.0]
    assert project_simplex(np.array([-7.0]), 2.0).tolist() == [2.0]


def test_large_coordinates_lose_no_digits() -> None:
    np.testing.assert_allclose(project_simplex(np.full(4, 1e16)), np.full(4, 0.25), rtol=1e-12)
    np.testing.assert_allclose(project_l2_ball(np.array([3e200, 4e200]), 5.0), [3.0, 4.0], rtol=1e-13)


def test_bad_arguments_are_refused() -> None:
    w = np.ones(2)
    with pytest.raises(ParameterError, match=r"radius must be a finite number >= 0, got -1.0"):
        project_l2_ball(w, -1.0)
    with pytest.raises(ParameterError, match=r"radius must be a finite number >= 0, got nan"):
        project_l2_ball(w, np.nan)
    with pytest.raises(ParameterError, match=r"total must be a finite number >= 0, got inf"):
        project_simplex(w, np.inf)
    with pytest.raises(ParameterError, match=r"center must have shape \(2,\), got shape \(3,\)"):
        project_l2_ball(w, 1.0, center=np.ones(3))
    with pytest.raises(ParameterError, match=r"lower must be <= upper"):
        project_box(w, lower=1.0, upper=0.0)
    with pytest.raises(ParameterError, match=r"at least one coordinate"):
        project_simplex(np.empty(0))
    with pytest.raises(ParameterError, match=r"at least one axis"):
        project_l2_ball(3.0, 1.0)
