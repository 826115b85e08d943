"""G-optimal designs: exact optima, the duality gap, and sets that are hard."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.bandits import g_optimal_design, uniform_design
from tacit.errors import ParameterError
from tacit.numerics import Array


def _width(rows: Array, support: Array, weights: Array) -> float:
    """Return g by the definition, with a pseudo-inverse."""
    core = rows[support]
    inverse = np.linalg.pinv((core * weights[:, None]).T @ core, rcond=1e-12)
    return float(np.einsum("ij,jk,ik->i", rows, inverse, rows).max())


def _sphere(n: int, dim: int, seed: int) -> Array:
    rows = np.random.default_rng(seed).standard_normal((n, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def test_the_basis_is_its_own_design() -> None:
    found = g_optimal_design(np.eye(3))
    assert found.weights.tolist() == pytest.approx([1 / 3] * 3)
    assert found.width == pytest.approx(3.0)
    assert found.rank == 3
    assert found.log_det == pytest.approx(-3.295836866)


def test_the_exact_optimum_of_three_actions() -> None:
    rows = np.array([[0.5, 0.0], [0.0, 0.5], [0.7, 0.7]])
    found = g_optimal_design(rows, 1 + 1e-9)
    a = 0.98 / 3.42
    assert found.weights.tolist() == pytest.approx([a, a, 1 - 2 * a], abs=1e-6)
    assert found.width == pytest.approx(2.0, abs=1e-7)
    assert found.log_det == pytest.approx(-3.349487507, abs=1e-8)
    rough = g_optimal_design(rows)
    assert rough.support.tolist() in ([0, 2], [1, 2])  # the two are mirror images
    assert rough.weights.tolist() == pytest.approx([0.5, 0.5])
    assert rough.width == pytest.approx(3.020408163)


def test_other_small_sets() -> None:
    third = np.array([[1.0, 0.0], [0.0, 1.0], [math.sqrt(0.5), math.sqrt(0.5)]])
    assert g_optimal_design(third, 1 + 1e-9).width == pytest.approx(2.0, abs=1e-6)
    angles = 2 * np.pi * np.arange(5) / 5
    pentagon = g_optimal_design(np.column_stack([np.cos(angles), np.sin(angles)]), 1 + 1e-9)
    assert pentagon.width == pytest.approx(2.0, abs=1e-6)
    assert pentagon.log_det == pytest.approx(-1.386294361, abs=1e-7)


@pytest.mark.parametrize("dim", [2, 3, 5, 10, 20])
@pytest.mark.parametrize("tol", [2.0, 1.05])
def test_random_sets_meet_the_tolerance_on_few_actions(dim: int, tol: float) -> None:
    rows = _sphere(1000, dim, 7)
    found = g_optimal_design(rows, tol)
    assert found.converged
    assert found.weights.sum() == pytest.approx(1.0)
    assert found.weights.min() > 0
    assert found.width == pytest.approx(_width(rows, found.support, found.weights), rel=1e-8)
    assert dim <= found.width <= tol * dim * (1 + 1e-9)
    assert len(found.support) <= (2 * dim if tol == 2 else dim * (dim + 1) / 2 + dim)
    best = g_optimal_design(rows, 1.0001)
    gap = best.log_det - found.log_det
    assert -dim * math.log(1.0001) <= gap + 1e-9  # nothing is better than the optimum
    assert gap <= dim * math.log(found.width / dim) + 1e-9


def test_no_action_weighs_more_in_an_estimate_than_the_width_allows() -> None:
    rows = _sphere(200, 4, 3)
    found = g_optimal_design(rows)
    core = rows[found.support]
    inverse = np.linalg.inv((core * found.weights[:, None]).T @ core)
    assert np.abs(rows @ inverse @ core.T).max() <= found.width * (1 + 1e-9)


def test_a_set_that_does_not_span_the_space_is_designed_in_its_span() -> None:
    """The printed V^-1 does not exist for such a set."""
    rows = np.outer([0.2, -1.0, 0.7], [0.6, 0.0, 0.8])
    found = g_optimal_design(rows)
    assert (found.rank, found.support.tolist()) == (1, [1])
    assert found.width == pytest.approx(1.0)
    plane = _sphere(50, 2, 1) @ np.array([[1.0, 0.0, 0.0], [0.0, 0.6, 0.8]])
    assert g_optimal_design(plane).rank == 2


def test_actions_in_a_narrow_cone_are_no_harder() -> None:
    angles = 1e-6 * np.arange(5)
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    found = g_optimal_design(rows, 1.01)
    assert found.rank == 2
    assert found.width <= 2.02 * (1 + 1e-6)


def test_pure_tolerance_one_runs_out_of_steps_and_says_so() -> None:
    found = g_optimal_design(_sphere(50, 3, 2), 1.0, max_iter=5)
    assert not found.converged


def test_no_weight_is_so_small_that_it_costs_a_pull_for_nothing() -> None:
    for seed in range(20):
        assert g_optimal_design(_sphere(100, 3, seed), 1.001).weights.min() >= 1e-12


def test_uniform_weights_cover_all_actions() -> None:
    found = uniform_design(_sphere(30, 2, 0))
    assert len(found.support) == 30
    assert found.width >= 2


@pytest.mark.parametrize(
    ("actions", "why"),
    [
        (np.empty((0, 2)), "at least one row"),
        (np.zeros((3, 2)), "all be zero"),
        ([[1.0, 0.1]], "norm of at most 1"),
        ([[math.nan, 0.0]], "finite"),
        ([[math.inf, 0.0]], "finite"),
        ([1.0, 2.0], "shape"),
        ([["a"]], "real numbers"),
    ],
)
def test_what_is_no_set_of_actions_is_refused(actions: Array, why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        g_optimal_design(actions)


@pytest.mark.parametrize("tol", [0.5, 0.0, math.nan])
def test_a_tolerance_below_one_is_refused(tol: float) -> None:
    with pytest.raises(ParameterError, match="tol"):
        g_optimal_design(np.eye(2), tol)
