"""Features as a linear model takes them: scaled by training records, bounded, with the constant last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.fairness import Standard
from tacit.numerics import Array


def drawn(n: int = 50) -> Array:
    return np.random.default_rng(0).normal(3.0, [1.0, 20.0], (n, 2))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_columns_have_mean_0_and_variance_1(dtype: type[np.floating[Any]]) -> None:
    X: Array = drawn().astype(dtype)
    before = X.copy()
    made = Standard.of(X).transform(X)
    assert made.dtype == dtype
    np.testing.assert_allclose(made[:, :2].mean(axis=0), 0, atol=1e-6)
    np.testing.assert_allclose(made[:, :2].std(axis=0), 1, atol=1e-5)
    np.testing.assert_array_equal(made[:, 2], 1)
    np.testing.assert_array_equal(X, before)


def test_many_records_are_measured_in_blocks() -> None:
    X = drawn(70_000)
    np.testing.assert_allclose(Standard.of(X).scale, X.std(axis=0), rtol=1e-12)


def test_what_does_not_vary_is_not_blown_up() -> None:
    """A constant of 0.1 has a spread of 1e-17, by which its rounding would become a feature."""
    X = np.column_stack([np.full(1000, 0.1), np.zeros(1000)])
    found = Standard.of(X)
    np.testing.assert_array_equal(found.scale, 1)
    np.testing.assert_allclose(found.transform(X)[:, :2], 0, atol=1e-12)


def test_far_records_stay_within_the_bound() -> None:
    X = drawn()
    X[0] = 1e6, -1e6
    made = Standard.of(X, bound=2.0).transform(X)
    np.testing.assert_array_equal(made[0], [2.0, -2.0, 1.0])
    assert np.abs(Standard.of(X).transform(X)).max() > 6
