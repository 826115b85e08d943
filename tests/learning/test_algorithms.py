"""Parameters, steps and bounds: every bound is compared with the exact expected gap on quadratics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Ask, Fixed, Full
from tacit.learning import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Problem,
)
from tacit.numerics import Array, Zero, strongly_convex_log_weights, strongly_convex_schedule

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


@pytest.mark.parametrize("variance", [0.0, 0.01, 1.0])
@pytest.mark.parametrize("rounds", [1, 7, 60])
@pytest.mark.parametrize("algorithm", PROVEN, ids=str)
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
    problem, kind = problem_with(3.0), type(algorithm)
    best = algorithm.error_bound(problem, 40)
    steps = np.geomspace(1e-3, 1.0, 2000)  # up to 1 / beta
    assert best <= min(
        kind(step_size=float(eta), **_rest(algorithm)).error_bound(problem, 40) for eta in steps
    )
    quiet = problem_with(0.0)
    assert algorithm.error_bound(quiet, 40) == pytest.approx(4 / (40 * algorithm.local_steps))


def _rest(algorithm: NoisyMinibatchSGD | NoisyLocalSGD) -> dict[str, Any]:
    return (
        {"local_steps": algorithm.local_steps} if isinstance(algorithm, NoisyLocalSGD) else {"average": 1.0}
    )


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


def test_local_sgd_hands_over_the_step() -> None:
    seen = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        seen.append((step, float(at["step_size"]), radius))
        return (at["w"] / 2,)

    assert run(NoisyLocalSGD(local_steps=3), ask, rounds=2) == DIAMETER / 4
    assert seen == [(0, 1.0, (10.0,)), (1, 1.0, (10.0,))]


def test_stages_that_do_not_fit_are_not_asked() -> None:
    asked = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        asked.append(step)
        return quadratic(step, at, radius)

    run(MultiStageAcceleratedNoisyMinibatchSGD(mu=0.5), ask, rounds=23)  # 8 rounds each
    assert asked == list(range(16))


def test_stages_use_strong_convexity_in_their_steps() -> None:
    """The reference values need it (tests/learning/test_accelerated.py)."""
    once = run(MultiStageAcceleratedNoisyMinibatchSGD(mu=0.5), quadratic, rounds=8)
    assert once == pytest.approx(run(AcceleratedNoisyMinibatchSGD(mu=0.5), quadratic, rounds=8))
    assert once != pytest.approx(run(AcceleratedNoisyMinibatchSGD(), quadratic, rounds=8))


def test_every_name_makes_an_algorithm() -> None:
    assert set(ALGORITHMS) == {"minibatch", "accelerated", "multistage", "local", "sign-vote"}
    for make in ALGORITHMS.values():
        algorithm = make(rounds=7)
        assert isinstance(algorithm, Algorithm)
        assert algorithm.rounds == 7
        assert algorithm.batch == (Fixed(size=1) if isinstance(algorithm, NoisyLocalSGD) else Full())
        assert algorithm.local_steps == (10 if isinstance(algorithm, NoisyLocalSGD) else 1)


@pytest.mark.parametrize("algorithm", [make() for make in ALGORITHMS.values()], ids=list(ALGORITHMS))
def test_unknown_smoothness_is_refused_before_anything_is_asked(algorithm: Algorithm) -> None:
    with pytest.raises(ParameterError, match="the objective's smoothness is unknown"):
        algorithm.check(problem_with(1.0, smoothness=math.inf), 200)


@pytest.mark.parametrize(
    "algorithm",
    [NoisyMinibatchSGD(step_size=0.1), AcceleratedNoisyMinibatchSGD(nu=1.0), NoisyLocalSGD(step_size=0.1)],
    ids=str,
)
def test_a_given_step_needs_no_smoothness(algorithm: Algorithm) -> None:
    algorithm.check(problem_with(1.0, smoothness=math.inf), 200)


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


@pytest.mark.parametrize("name", ALGORITHMS)
@pytest.mark.parametrize("rounds", [0, -1, 2.5, "many", True])
def test_bad_rounds_are_refused(name: str, rounds: Any) -> None:
    with pytest.raises(ParameterError, match="rounds must be a whole number >= 1"):
        ALGORITHMS[name](rounds=rounds)


@pytest.mark.parametrize(
    ("name", "values", "message"),
    [
        ("minibatch", {"step_size": 0.0}, "step_size must be a finite number > 0"),
        ("minibatch", {"average": 0.0}, r"average must be in \(0, 1\]"),
        ("minibatch", {"mu": -1.0}, "mu must be a finite number >= 0"),
        ("accelerated", {"nu": math.nan}, "nu must be a finite number > 0"),
        ("accelerated", {"mu": math.inf}, "mu must be a finite number >= 0"),
        ("multistage", {"mu": 0.0}, "mu must be a finite number > 0"),
        ("multistage", {"gap": -1.0}, "gap must be a finite number > 0"),
        ("local", {"step_size": math.inf}, "step_size must be a finite number > 0"),
        ("local", {"local_steps": 1}, "local_steps must be a whole number >= 2"),
        ("sign-vote", {"step_size": -1.0}, "step_size must be a finite number > 0"),
        ("sign-vote", {"average": 1.5}, r"average must be in \(0, 1\]"),
    ],
)
def test_bad_parameters_are_refused(name: str, values: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ALGORITHMS[name](**values)
