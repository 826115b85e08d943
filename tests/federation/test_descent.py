"""Steps inside a silo: a fast way that fails on a unit shows nothing of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.federation.descent import UnitSteps
from tacit.numerics import Array

POINTS = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]])
INDEX = np.array([[0, 1], [2, 0]])


def rows(index: Array, w: Array) -> Array:
    return np.asarray(w - POINTS[index])


def told(*_: Any, **__: Any) -> Array:
    raise ValueError("unit 2 is too long")


FAILING = {
    "raises": told,
    "is not finite": lambda *_, **__: np.full(2, np.nan),
    "has another shape": lambda *_, **__: np.zeros(3),
    "is no array": lambda *_, **__: "unit 2",
}


@pytest.mark.parametrize("stepper", FAILING.values(), ids=FAILING)
def test_where_the_fast_way_fails_steps_go_one_by_one(stepper: Any) -> None:
    noise = np.random.default_rng(0).normal(size=(2, 2))
    facts: dict[str, Any] = {"step_size": np.array(0.5), "noise": noise, "noise_std": np.array(0.1)}
    end = UnitSteps(3, rows, 1.5, stepper)(INDEX, np.zeros(2), **facts)
    assert end.tolist() == UnitSteps(3, rows, 1.5)(INDEX, np.zeros(2), **facts).tolist()
    # By hand: what is longer than 1.5 is clipped to that.
    first = 0.5 * (np.array([0.5, 0.75]) - 0.1 * noise[0])
    long = first - POINTS[2]
    mean = (1.5 * long / np.linalg.norm(long) + first - POINTS[0]) / 2
    assert end == pytest.approx(first - 0.5 * (mean + 0.1 * noise[1]))
