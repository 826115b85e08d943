"""Projected SGD without smoothness, and phases for strongly convex objectives: the loops and their bounds."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Ask, Disjoint
from tacit.learning import LipschitzSGD, PhasedAcceleratedSGD, Problem
from tacit.learning.algorithms.accelerated import excess_bound
from tacit.learning.algorithms.phases import phases
from tacit.numerics import Array, L2Ball, Regularizer, Zero


def asking(gradient: Callable[[Array], Array]) -> Ask:
    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        return (gradient(at["w"]),)

    return ask


def finish(
    method: LipschitzSGD | PhasedAcceleratedSGD,
    gradient: Callable[[Array], Array],
    w: Array,
    problem: Problem,
    rounds: int,
    prox: Regularizer,
) -> Array:
    return method.run(
        asking(gradient), w, problem=problem, rounds=rounds, prox=prox, follow=lambda _r, _w: None
    )


ROUGH = Problem(smoothness=math.inf, radius=1.0, diameter=2.0, dim=2, variance=0.0)


def test_sgd_is_the_textbook_method() -> None:
    """Projected subgradient steps on |w_1 - 0.6|, averaged from the start on, the last point left out."""
    rounds, eta = 25, 2.0 / math.sqrt(25)
    w, points = np.array([-0.5, 0.5]), []
    for _ in range(rounds):
        points.append(w)
        w = w - eta * np.array([np.sign(w[0] - 0.6), 0.0])
        w = w / max(1.0, float(np.linalg.norm(w)))
    found = finish(
        LipschitzSGD(),
        lambda w: np.array([np.sign(w[0] - 0.6), 0.0]),
        points[0],
        ROUGH,
        rounds,
        L2Ball(1.0),
    )
    np.testing.assert_allclose(found, np.mean(points, axis=0), atol=1e-12)
    assert abs(found[0] - 0.6) <= LipschitzSGD().error_bound(ROUGH, rounds)


@pytest.mark.parametrize("rounds", [1, 4, 833])
@pytest.mark.parametrize("variance", [0.0, 0.3, 40.0])
def test_its_bound_is_that_of_the_theorem(rounds: int, variance: float) -> None:
    problem = Problem(smoothness=math.inf, radius=3.0, diameter=2.0, dim=2, variance=variance)
    best = 2.0 * math.sqrt((9 + variance) / rounds)
    assert LipschitzSGD().error_bound(problem, rounds) == pytest.approx(best, rel=1e-12)
    for step in (0.01, 0.3):
        bound = LipschitzSGD(step_size=step).error_bound(problem, rounds)
        assert bound == pytest.approx(4 / (2 * step * rounds) + step * (9 + variance) / 2, rel=1e-12)
        assert bound >= best * (1 - 1e-12)


def test_full_batches_on_a_quadratic_end_where_the_closed_form_says() -> None:
    """E|w_T - w*|^2 = (1-eta)^2T |w_0 - w*|^2 + eta^2 v sum (1-eta)^2s, v being the variance of a round.

    Points are linear in the noise, so the expectation is that of every round's noise alone, added up.
    """
    eta, rounds, variance = 0.1, 50, 0.01

    def last(start: float, noisy: int | None = None) -> float:
        trail: list[Array] = []
        LipschitzSGD(step_size=eta).run(
            lambda r, at, _radius: (at["w"] + (r == noisy),),
            np.array([start]),
            problem=ROUGH,
            rounds=rounds,
            prox=Zero(),
            follow=lambda _r, w: trail.append(w),
        )
        return float(trail[-1][0])

    spread = sum(last(0.0, r) ** 2 for r in range(rounds))
    assert last(1.0) ** 2 + variance * spread == pytest.approx(0.000552863208677647, rel=1e-10)


# Phases

FACTS = {"smoothness": 2.0, "mu": 0.5, "radius": 1.0, "diameter": 10.0}


@pytest.mark.parametrize(
    ("rows", "count"), [(1, 1), (4, 1), (5, 2), (16, 2), (17, 3), (20_000, 4), (70_000, 5)]
)
def test_there_are_as_many_phases_as_the_theorem_says(rows: int, count: int) -> None:
    made = phases(rounds=101, rows=rows, noise_std=0.1, **FACTS)
    assert len(made) == count
    assert sum(one.rounds for one in made) == 101
    assert made[0].distance == 4.0  # 2 L/mu
    for one, following in itertools.pairwise(made):
        assert following.bound <= one.bound
        assert following.distance == min(one.distance, math.sqrt(2 * one.bound / 0.5))
    for one in made:
        assert one.bound <= excess_bound(nu=one.nu, noise_std=0.1, rounds=one.rounds, diameter=one.distance)


@pytest.mark.parametrize("noise_std", [0.0, 0.05])
def test_phases_stay_below_their_bound(noise_std: float) -> None:
    """The mean of 200 runs from one seed."""
    problem = Problem(smoothness=2.0, radius=5.0, diameter=1.0, dim=2, variance=noise_std**2, rows=20_000)
    method, rng = PhasedAcceleratedSGD(mu=0.5, batch=Disjoint(size=5)), np.random.default_rng(4)
    spectrum = np.array([0.5, 2.0])

    def gradient(w: Array) -> Array:
        return spectrum * w + noise_std / math.sqrt(2) * rng.standard_normal(2)

    excess = [
        spectrum @ finish(method, gradient, np.array([0.6, 0.8]), problem, 80, Zero()) ** 2 / 2
        for _ in range(200)
    ]
    assert np.mean(excess) <= method.error_bound(problem, 80)


def test_what_phases_refuse() -> None:
    problem = Problem(smoothness=1.0, radius=1.0, diameter=1.0, dim=1, variance=0.0, rows=20_000)
    with pytest.raises(ParameterError, match="mu must be at most the smoothness"):
        PhasedAcceleratedSGD(mu=1.5).check(problem, 10)
    with pytest.raises(ParameterError, match="rounds must be at least 4, one for each phase, got 3"):
        PhasedAcceleratedSGD(mu=0.5).check(problem, 3)
    with pytest.raises(ParameterError, match="mu must be a finite number > 0"):
        PhasedAcceleratedSGD(mu=0.0)
