"""Parameters, steps and bounds: every bound is compared with the exact expected gap on quadratics."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Ask
from tacit.learning import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    LipschitzSGD,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyFedSpider,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    NoisySpider,
    Problem,
)
from tacit.learning.algorithms.base import check_strong_convexity
from tacit.numerics import Array, Zero, strongly_convex_log_weights, strongly_convex_schedule
from tests.loops import each

DIAMETER = 2.0


def problem_with(variance: float, *, smoothness: float = 1.0, radius: float = 10.0) -> Problem:
    return Problem(smoothness=smoothness, radius=radius, diameter=DIAMETER, dim=1, variance=variance)


def exact_gap(algorithm: Algorithm, problem: Problem, *, rounds: int, curvature: float) -> float:
    """E F(output) for F(w) = curvature w^2 / 2 from w_0 = D: entry r has the noise of round r alone."""

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (problem.radius,)
        slope = curvature * at["w"]
        slope[step] += problem.noise_std
        return (slope,)

    start = np.full(rounds + 1, DIAMETER)
    w = algorithm.run(ask, start, problem=problem, rounds=rounds, prox=Zero(), follow=lambda _r, _w: None)
    return float(curvature * (w[-1] ** 2 + ((w - w[-1]) ** 2).sum()) / 2)


PROVEN: list[Algorithm] = [
    NoisyMinibatchSGD(average=1.0),
    NoisyMinibatchSGD(average=1.0, step_size=0.03),
    NoisyMinibatchSGD(mu=0.05),
    AcceleratedNoisyMinibatchSGD(),
    AcceleratedNoisyMinibatchSGD(nu=30.0),
    AcceleratedNoisyMinibatchSGD(mu=0.05),
    MultiStageAcceleratedNoisyMinibatchSGD(mu=0.05),
]


@each("variance", [0.0, 0.01, 1.0])
@each("rounds", [1, 7, 60])
@each("algorithm", PROVEN)
def test_the_error_bound_holds(algorithm: Algorithm, rounds: int, variance: float) -> None:
    problem = problem_with(variance)
    for curvature in (0.05, 0.2, 1.0):  # from mu to beta
        gap = exact_gap(algorithm, problem, rounds=rounds, curvature=curvature)
        assert gap <= algorithm.error_bound(problem, rounds) * (1 + 1e-12)


@pytest.mark.parametrize(
    "algorithm", [NoisyMinibatchSGD(average=1.0), AcceleratedNoisyMinibatchSGD()], ids=str
)
def test_the_error_bound_is_not_far_from_some_quadratic(algorithm: Algorithm) -> None:
    problem = problem_with(4.0)
    worst = max(exact_gap(algorithm, problem, rounds=60, curvature=c) for c in np.geomspace(0.01, 1, 20))
    assert algorithm.error_bound(problem, 60) <= 20 * worst


def test_bounds_have_the_closed_forms_of_their_docstrings() -> None:
    problem = problem_with(0.25)
    plain = NoisyMinibatchSGD(step_size=0.1).error_bound(problem, 50)
    assert plain == pytest.approx(4 / (0.1 * 50) + 0.1 * 0.25)
    accelerated = AcceleratedNoisyMinibatchSGD(nu=8.0).error_bound(problem, 50)
    assert accelerated == pytest.approx(2 * 8 * 4 / (50 * 51) + 0.25 * 101 / 48)
    local = NoisyLocalSGD(step_size=0.1, local_steps=5).error_bound(problem, 10)
    assert local == pytest.approx(plain)
    strongly = NoisyMinibatchSGD(step_size=0.1, mu=0.5).error_bound(problem, 50)
    assert strongly == pytest.approx(0.5 * 4 / (2 * (0.95**-50 - 1)) + 0.1 * (0.25 + 100) / 2)
    stages = MultiStageAcceleratedNoisyMinibatchSGD(mu=0.5, gap=3.0)
    assert [stages.error_bound(problem_with(0.0), r) for r in (7, 8, 24)] == [math.inf, 1.5, 3 / 8]
    assert NoisyMinibatchSGD(mu=0.5).error_bound(problem, 10**6) < 1e-2  # and does not overflow


@pytest.mark.parametrize("algorithm", [NoisyMinibatchSGD(average=1.0), NoisyLocalSGD(local_steps=2)], ids=str)
def test_the_default_step_minimises_the_bound(algorithm: NoisyMinibatchSGD | NoisyLocalSGD) -> None:
    problem = problem_with(3.0)
    best = algorithm.error_bound(problem, 40)
    steps = np.geomspace(1e-3, 1.0, 2000)  # up to 1 / beta
    others = (msgspec.structs.replace(algorithm, step_size=float(eta)) for eta in steps)
    assert best <= min(other.error_bound(problem, 40) for other in others)
    quiet, walked = problem_with(0.0), algorithm.local_steps if isinstance(algorithm, NoisyLocalSGD) else 1
    assert algorithm.error_bound(quiet, 40) == pytest.approx(4 / (40 * walked))


def quadratic(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
    """Gradient of |w|^2 / 2, without noise."""
    assert step >= 0
    assert radius == (10.0,)
    return (at["w"],)


def run(algorithm: Algorithm, ask: Ask, *, rounds: int, problem: Problem | None = None) -> float:
    facts = problem_with(0.0) if problem is None else problem
    w = algorithm.run(
        ask, np.array([DIAMETER]), problem=facts, rounds=rounds, prox=Zero(), follow=lambda _r, _w: None
    )
    return float(w[0])


@pytest.mark.parametrize(("average", "kept"), [(1.0, 10), (0.5, 5), (0.25, 3), (0.01, 1), (1e-20, 1)])
def test_the_share_of_iterates_that_are_averaged(average: float, kept: int) -> None:
    algorithm = NoisyMinibatchSGD(step_size=0.1, average=average)
    expected = np.mean(DIAMETER * 0.9 ** np.arange(10)[-kept:])
    assert run(algorithm, quadratic, rounds=10) == pytest.approx(expected)


def test_one_round_returns_the_start() -> None:
    assert run(NoisyMinibatchSGD(step_size=0.1), quadratic, rounds=1) == DIAMETER


def test_strong_convexity_switches_to_the_schedule_and_its_weights() -> None:
    problem = problem_with(2.0)
    eta = strongly_convex_schedule(a=0.5, g=2.0, r0=4.0, c=102.0, T=20)
    gamma = np.exp(strongly_convex_log_weights(a=0.5, eta=eta, T=20))
    expected = np.average(DIAMETER * (1 - eta) ** np.arange(20), weights=gamma)
    got = run(NoisyMinibatchSGD(mu=0.5, average=0.1), quadratic, rounds=20, problem=problem)
    assert got == pytest.approx(expected)


def test_stages_that_do_not_fit_are_not_asked() -> None:
    asked = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        asked.append(step)
        return quadratic(step, at, radius)

    run(MultiStageAcceleratedNoisyMinibatchSGD(mu=0.5), ask, rounds=23)  # 8 rounds each
    assert asked == list(range(16))


def test_stages_use_strong_convexity_in_their_steps() -> None:
    """The reference values need it (test_multistage.py)."""
    once = run(MultiStageAcceleratedNoisyMinibatchSGD(mu=0.5), quadratic, rounds=8)
    assert once == pytest.approx(run(AcceleratedNoisyMinibatchSGD(mu=0.5), quadratic, rounds=8))
    assert once != pytest.approx(run(AcceleratedNoisyMinibatchSGD(), quadratic, rounds=8))


# These need no smoothness; methods with hidden iterates, or public records, take no such problem at all.
_ROUGH = (
    *("ftrl", "p-sgd", "semi-ldp", "clipped-subgradient", "localized", "localized-phases"),
    *("cldp-sgd", "dss-sgd"),
)
_OTHERS = [  # whole parties have a step of their own for networks
    name for name, make in ALGORITHMS.items() if make.hidden or make.needs_public or make.unit is not None
]
_SMOOTH = {name: make() for name, make in ALGORITHMS.items() if name not in (*_ROUGH, *_OTHERS)}


@pytest.mark.parametrize("algorithm", list(_SMOOTH.values()), ids=list(_SMOOTH))
def test_unknown_smoothness_is_refused_before_anything_is_asked(algorithm: Algorithm) -> None:
    with pytest.raises(ParameterError, match=r"the objective's smoothness is unknown.*--option step_size"):
        algorithm.check(problem_with(1.0, smoothness=math.inf), 200)


@pytest.mark.parametrize(
    ("algorithm", "step"),
    [
        (NoisyMinibatchSGD(step_size=0.1, average=0.5), 0.1),
        (AcceleratedNoisyMinibatchSGD(nu=1.0), 0.5),  # alpha_1 / eta_1 = 1 / (2 nu)
        (LipschitzSGD(step_size=0.2), 0.2),
        (NoisySpider(step_size=0.3), 0.3),
        (NoisyFedSpider(step_size=0.4), 0.4),
    ],
    ids=str,
)
def test_a_given_step_needs_no_smoothness(algorithm: Algorithm, step: float) -> None:
    problem, points = problem_with(1.0, smoothness=math.inf), [np.zeros(1)]
    algorithm.check(problem, 200)
    algorithm.run(
        lambda _r, _at, radius: (np.full(1, radius[0]),),
        points[0],
        problem=problem,
        rounds=3,
        prox=Zero(),
        follow=lambda _r, w: points.append(w),
    )
    assert points[1][0] == pytest.approx(-step * 10.0)


@pytest.mark.parametrize(
    "algorithm",
    [
        NoisyMinibatchSGD(mu=1.5),
        AcceleratedNoisyMinibatchSGD(mu=1.5),
        MultiStageAcceleratedNoisyMinibatchSGD(mu=1.5),
    ],
    ids=str,
)
def test_more_convex_than_smooth_is_refused(algorithm: Algorithm) -> None:
    with pytest.raises(ParameterError, match=r"mu must be at most the smoothness 1.0, got 1.5"):
        algorithm.check(problem_with(1.0), 10)


def test_too_few_rounds_for_a_stage_are_refused() -> None:
    algorithm = MultiStageAcceleratedNoisyMinibatchSGD(mu=0.5)
    algorithm.check(problem_with(0.0), 8)
    with pytest.raises(ParameterError, match="rounds must be at least 8 for the first stage, got 7"):
        algorithm.check(problem_with(0.0), 7)


def test_strong_convexity_is_at_most_the_smoothness() -> None:
    check_strong_convexity(0.0, 1.0)
    check_strong_convexity(1.0, 1.0)
    with pytest.raises(ParameterError, match="mu must be at most the smoothness"):
        check_strong_convexity(1.1, 1.0)
