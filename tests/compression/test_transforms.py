"""Transforms by name, and which are refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tacit.compression import Linear, transform
from tacit.compression.transforms import check_transform, transform_values
from tacit.errors import ParameterError


def test_slopes_of_the_names() -> None:
    assert transform("one", 9) == Linear(0.0)
    assert transform("max", 9) == Linear(1.0)
    assert transform("avg", 9) == Linear(9 / 16)
    assert transform("avg", 2) == transform("max", 2)
    assert transform("opt", 9, correlation=4.0) == Linear(0.5)
    assert transform("opt", 9, correlation=4.5) == transform("avg", 9)  # avg stands for R = n / 2
    assert transform("opt", 9, correlation=8 * (1 + 1e-10)) == Linear(1.0)
    assert transform("opt", 3, correlation=-0.9).rho == pytest.approx(-0.45)


def test_one_party_has_nothing_to_discount() -> None:
    assert {transform(name, 1) for name in ("one", "avg", "max")} == {Linear(0.0)}
    assert transform("opt", 1, correlation=0.0) == Linear(0.0)


def test_values() -> None:
    values = np.array([1.0, 2.0, 0.5])
    assert transform_values(Linear(0.5), values).tolist() == [1.0, 1.5, 0.75]
    assert transform_values(Linear(1.0), values).tolist() == values.tolist()
    assert transform_values(np.sqrt, values).tolist() == np.sqrt(values).tolist()


@pytest.mark.parametrize(
    ("name", "n", "correlation", "match"),
    [
        ("mean", 3, None, "name must be one of"),
        ("avg", 0, None, "n must be"),
        ("opt", 3, None, "correlation must be given"),
        ("avg", 3, 1.0, "correlation must be given"),
        ("opt", 3, -1.0, r"correlation must be in \(-1, n - 1\]"),
        ("opt", 3, -1.5, "correlation must be in"),
        ("opt", 3, 2.001, "correlation must be in"),
        ("opt", 3, math.nan, "correlation must be in"),
    ],
)
def test_bad_names_and_correlations_are_refused(name: Any, n: int, correlation: Any, match: str) -> None:
    with pytest.raises(ParameterError, match=match):
        transform(name, n, correlation=correlation)


def test_transforms_that_are_not_positive_are_refused() -> None:
    with pytest.raises(ParameterError, match="rho must be a finite number"):
        Linear(math.nan)
    check_transform(Linear(-0.49), 3)
    with pytest.raises(ParameterError, match=r"rho must be > -1 / \(n - 1\) = -0.5 for 3 parties"):
        check_transform(Linear(-0.5), 3)
    with pytest.raises(ParameterError, match="transform must be Linear or a function"):
        check_transform("avg", 3)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="transform must be finite and > 0 on the spectrum, is not at 2"):
        transform_values(lambda values: 2 - values, np.array([1.0, 2.0]))
    with pytest.raises(ParameterError, match="finite and > 0"):
        transform_values(lambda values: values * np.nan, np.array([1.0]))
    with pytest.raises(ParameterError, match=r"transform must keep the shape \(2,\)"):
        transform_values(lambda values: values[:1], np.array([1.0, 2.0]))
