"""The loop on exact walks: closed forms on quadratics, and what is handed over to the silos."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from tacit.federation import Ask
from tacit.learning import NoisyLocalSGD, Problem
from tacit.learning.algorithms.local import local_sgd
from tacit.numerics import Array, Regularizer, SquaredL2, Zero

H = np.diag([0.5, 1.0, 2.0])
TARGET = np.array([1.0, -2.0, 0.5])
START = np.array([3.0, 0.0, -1.0])


def walking(steps: int) -> Ask:
    """An `ask` for where `steps` steps on (w - target)' H (w - target) / 2 lead."""

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (7.0,)
        w = at["w"]
        for _ in range(steps):
            w = w - float(at["step_size"]) * (H @ (w - TARGET))
        return (w,)

    return ask


def run_local(*, rounds: int, steps: int, prox: Regularizer | None = None, step_size: float = 0.4) -> Array:
    return local_sgd(
        walking(steps),
        START,
        rounds=rounds,
        local_steps=steps,
        step_size=step_size,
        radius=7.0,
        prox=Zero() if prox is None else prox,
        follow=lambda _r, _w: None,
    )


@pytest.mark.parametrize("steps", [1, 4])
def test_walks_on_a_quadratic_are_a_matrix_power(steps: int) -> None:
    power = np.linalg.matrix_power(np.eye(3) - 0.4 * H, 5 * steps)
    np.testing.assert_allclose(run_local(rounds=5, steps=steps), TARGET + power @ (START - TARGET))


def test_the_prox_counts_all_steps_of_a_walk() -> None:
    solution = np.linalg.solve(H + 0.7 * np.eye(3), H @ TARGET)
    w = run_local(rounds=3000, steps=5, prox=SquaredL2(0.7), step_size=0.002)
    np.testing.assert_allclose(w, solution, atol=0.02)  # drift within a round is of order steps * step size


def test_the_step_is_handed_over() -> None:
    seen = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        seen.append((step, float(at["step_size"]), radius))
        return (at["w"] / 2,)

    w = NoisyLocalSGD(local_steps=3).run(
        ask,
        np.array([2.0]),
        problem=Problem(smoothness=1.0, radius=10.0, diameter=2.0, dim=1, variance=0.0),
        rounds=2,
        prox=Zero(),
        follow=lambda _r, _w: None,
    )
    assert w.tolist() == [0.5]
    assert seen == [(0, 1.0, (10.0,)), (1, 1.0, (10.0,))]
