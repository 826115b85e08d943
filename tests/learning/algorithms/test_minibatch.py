"""The loop on exact gradients: the plain algorithm that it is, and closed forms on quadratics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import repeat

import numpy as np
import pytest

from tacit.learning.algorithms import NoisyMinibatchSGD, Problem
from tacit.learning.algorithms.minibatch import minibatch_sgd
from tacit.numerics import Array, L2Ball, Regularizer, SquaredL2, Zero

H = np.diag([0.5, 1.0, 2.0])
TARGET = np.array([1.0, -2.0, 0.5])
START = np.array([3.0, 0.0, -1.0])


@dataclass
class Quadratic:
    """An `ask` for the gradient of (w - target)' H (w - target) / 2."""

    asked: list[tuple[int, Array, tuple[float, ...]]] = field(default_factory=list)

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        self.asked.append((step, at["w"], radius))
        return (H @ (at["w"] - TARGET),)


def run_minibatch(
    ask: Quadratic,
    *,
    rounds: int,
    prox: Regularizer | None = None,
    log_weights: list[float] | None = None,
    seen: list[tuple[int, Array]] | None = None,
) -> Array:
    return minibatch_sgd(
        ask,
        START,
        rounds=rounds,
        step_size=0.4,
        radius=7.0,
        prox=Zero() if prox is None else prox,
        log_weights=repeat(0.0) if log_weights is None else iter(log_weights),
        follow=lambda r, w: None if seen is None else seen.append((r, w)),
    )


def iterates(rounds: int) -> list[Array]:
    """w_0, ..., w_R of plain gradient descent."""
    path = [START]
    for _ in range(rounds):
        path.append(path[-1] - 0.4 * H @ (path[-1] - TARGET))
    return path


def test_the_output_averages_the_points_that_were_asked_at() -> None:
    path, seen = iterates(6), list[tuple[int, Array]]()
    np.testing.assert_allclose(run_minibatch(Quadratic(), rounds=6, seen=seen), np.mean(path[:6], axis=0))
    assert [r for r, _ in seen] == list(range(6))
    np.testing.assert_allclose([w for _, w in seen], path[1:])


def test_weights_are_gamma() -> None:
    logs = [0.0, 1.0, -1.0, 2.0]
    expected = np.average(iterates(4)[:4], axis=0, weights=np.exp(logs))
    np.testing.assert_allclose(run_minibatch(Quadratic(), rounds=4, log_weights=logs), expected)
    logs = [-math.inf, -math.inf, 0.0, 0.0]
    np.testing.assert_allclose(
        run_minibatch(Quadratic(), rounds=4, log_weights=logs), np.mean(iterates(4)[2:4], axis=0)
    )


def test_every_round_is_asked_once_at_the_current_point() -> None:
    ask = Quadratic()
    run_minibatch(ask, rounds=5)
    assert [step for step, _, _ in ask.asked] == list(range(5))
    np.testing.assert_allclose([w for _, w, _ in ask.asked], iterates(5)[:5])
    assert {radius for _, _, radius in ask.asked} == {(7.0,)}


def test_a_projection_keeps_every_point_inside() -> None:
    seen = list[tuple[int, Array]]()
    w = run_minibatch(
        Quadratic(), rounds=200, prox=L2Ball(1.0), log_weights=[-math.inf] * 199 + [0], seen=seen
    )
    assert all(np.linalg.norm(point) <= 1 + 1e-12 for _, point in seen)
    force = -H @ (w - TARGET)  # at a solution the gradient points out of the ball
    np.testing.assert_allclose(force / np.linalg.norm(force), w, atol=1e-6)


def test_a_prox_reaches_the_regularised_solution() -> None:
    w = run_minibatch(Quadratic(), rounds=400, prox=SquaredL2(0.7), log_weights=[-math.inf] * 399 + [0])
    np.testing.assert_allclose(w, np.linalg.solve(H + 0.7 * np.eye(3), H @ TARGET), atol=1e-9)


@pytest.mark.parametrize(
    ("curvature", "step_size", "last", "averaged"),
    [(1.0, 0.5, 0.33333, 0.00987), (1.0, 0.1, 0.05263, 0.00905), (0.1, 0.5, 2.56410, 0.80628)],
)
def test_the_average_of_the_last_half_has_a_fraction_of_the_noise(
    curvature: float, step_size: float, last: float, averaged: float
) -> None:
    """Coordinate r gets the noise of round r alone, so squares of an output add up to its variance."""
    rounds, end = 200, list[Array]()

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        slope = curvature * at["w"]
        slope[step] += float(radius == (1.0,))
        return (slope,)

    problem = Problem(smoothness=curvature, radius=1.0, diameter=1.0, dim=rounds, variance=1.0)
    method = NoisyMinibatchSGD(step_size=step_size, average=0.5)
    mean = method.run(
        ask,
        np.zeros(rounds),
        problem=problem,
        rounds=rounds,
        prox=Zero(),
        follow=lambda _, w: end.append(w),
    )
    assert end[-1] @ end[-1] == pytest.approx(last, abs=5e-6)
    assert mean @ mean == pytest.approx(averaged, abs=5e-6)
