"""AC-SA with Lan's step sizes: reference values, its bound, and what the printed step sizes do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Ask, Disjoint
from tacit.learning import LanAcceleratedSGD, Problem
from tacit.learning.algorithms.lan import lan_ac_sa, lan_bound
from tacit.numerics import Array, L2Ball, Regularizer, Zero

Gradient = Callable[[Array], Array]
SPECTRUM = np.geomspace(1e-3, 1, 10)
START = np.ones(10) / math.sqrt(10)


def asking(gradient: Gradient) -> Ask:
    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (7.0,)
        return (gradient(at["w"]),)

    return ask


def run(
    gradient: Gradient,
    w: Array,
    rounds: int,
    *,
    noise_std: float = 0.0,
    diameter: float = 2.0,
    prox: Regularizer | None = None,
) -> Array:
    return lan_ac_sa(
        asking(gradient),
        w,
        rounds=rounds,
        smoothness=1.0,
        noise_std=noise_std,
        diameter=diameter,
        radius=7.0,
        prox=Zero() if prox is None else prox,
        follow=lambda _r, _w: None,
    )


def as_printed(rounds: int) -> float:
    """The loss that the printed alpha_t = 2/(t+2), L_t = beta/(t+1) reach on w^2/2 from 1."""
    w = aggregate = 1.0
    for t in range(1, rounds + 1):
        a = 2 / (t + 2)
        w -= (a * w + (1 - a) * aggregate) * (t + 1)
        aggregate = a * w + (1 - a) * aggregate
    return aggregate**2 / 2


@pytest.mark.parametrize(("rounds", "loss"), [(10, 43), (20, 3.7e7), (50, 1.3e28)])
def test_the_printed_step_sizes_diverge(rounds: int, loss: float) -> None:
    assert as_printed(rounds) == pytest.approx(loss, rel=0.04)
    assert run(lambda w: w, np.ones(1), rounds)[0] ** 2 / 2 < 1e-3


def test_lans_step_sizes_converge() -> None:
    assert run(lambda w: w, np.ones(1), 50)[0] ** 2 / 2 == pytest.approx(1.1e-20, rel=0.05)


@pytest.mark.parametrize(("rounds", "loss"), [(100, 1.62e-5), (500, 6.39e-8)])
def test_reference_values_without_noise(rounds: int, loss: float) -> None:
    w = run(lambda w: SPECTRUM * w, START, rounds)
    assert SPECTRUM @ w**2 / 2 == pytest.approx(loss, rel=5e-3)


@pytest.mark.parametrize(("rounds", "loss"), [(100, 1.71e-3), (500, 9.3e-4)])
def test_reference_values_with_noise(rounds: int, loss: float) -> None:
    """Noise moves the output linearly: expected losses are computed, and the reference is a mean of 20 runs.

    It has an error of its own, which 40 % leaves room for.
    """
    final = run(lambda w: SPECTRUM * w, START, rounds, noise_std=0.1)
    expected = SPECTRUM @ final**2 / 2
    for t in range(rounds):
        count = iter(range(rounds))

        def pulse(w: Array, t: int = t, count: Iterator[int] = count) -> Array:
            return np.asarray(SPECTRUM * w + (next(count) == t))

        moved = run(pulse, np.zeros(10), rounds, noise_std=0.1)
        expected += SPECTRUM @ moved**2 / 2 * 0.1**2 / 10
    assert expected == pytest.approx(loss, rel=0.4)
    assert expected <= lan_bound(smoothness=1.0, noise_std=0.1, rounds=rounds, diameter=2.0)


@pytest.mark.parametrize("noise_std", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("rounds", [1, 2, 7, 50, 1000])
def test_the_bound_is_below_the_generous_one(noise_std: float, rounds: int) -> None:
    beta, diameter = 1.5, 0.7
    bound = lan_bound(smoothness=beta, noise_std=noise_std, rounds=rounds, diameter=diameter)
    assert bound <= 4 * beta * diameter**2 / (rounds + 1) ** 2 + 2 * diameter * noise_std / math.sqrt(rounds)
    assert bound <= 8 * beta * diameter**2 / rounds**2 + 4 * diameter * noise_std / math.sqrt(rounds)


@pytest.mark.parametrize("rounds", [1, 2, 10, 100])
@pytest.mark.parametrize("curvature", [0.01, 0.3, 1.0])
def test_without_noise_the_bound_holds(rounds: int, curvature: float) -> None:
    w = run(lambda w: curvature * (w - 2.0), -np.ones(1), rounds, prox=L2Ball(1.0))
    excess = curvature * ((w[0] - 2) ** 2 - 1) / 2  # the solution on the ball is 1
    assert -1e-12 <= excess <= lan_bound(smoothness=1.0, noise_std=0.0, rounds=rounds, diameter=2.0)


def test_the_method_is_the_loop_and_its_bound() -> None:
    problem = Problem(smoothness=1.0, radius=7.0, diameter=2.0, dim=10, variance=0.01)
    method = LanAcceleratedSGD(batch=Disjoint(size=3))
    w = method.run(
        asking(lambda w: SPECTRUM * w),
        START,
        problem=problem,
        rounds=9,
        prox=Zero(),
        follow=lambda _r, _w: None,
    )
    np.testing.assert_array_equal(w, run(lambda w: SPECTRUM * w, START, 9, noise_std=0.1))
    assert method.error_bound(problem, 9) == lan_bound(smoothness=1.0, noise_std=0.1, rounds=9, diameter=2.0)
    with pytest.raises(ParameterError, match="smoothness is unknown"):
        method.check(Problem(smoothness=math.inf, radius=1.0, diameter=1.0, dim=1, variance=0.0), 3)
