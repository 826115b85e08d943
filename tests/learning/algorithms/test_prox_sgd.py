"""Proximal SGD: textbook steps without noise, the recursion of its bound, one pass and its price."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Disjoint, Full, Step
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyProximalSGD,
    Problem,
    Records,
    Settings,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms.prox_sgd import inexact_descent_bound, prox_sgd
from tacit.learning.preparation import prepare
from tacit.numerics import L1, Array, Zero, clip_rows
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, calibrate

D, MU, BETA = 20, 0.5, 5.0
SPECTRUM = np.geomspace(MU, BETA, D)
TARGET = np.linspace(-1, 1, D)
L1_WEIGHT = 0.3
BEST = np.sign(TARGET) * np.maximum(np.abs(TARGET) - L1_WEIGHT / SPECTRUM, 0)
"""The minimum of a separable quadratic with an l1 penalty, coordinate by coordinate."""
OBJECTIVE = LinearObjective(loss=Logistic(), features=3, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)


def value(w: Array) -> float:
    return float(SPECTRUM @ (w - TARGET) ** 2 / 2 + L1_WEIGHT * np.abs(w).sum())


def ask_of(gradient: Callable[[Array], Array]) -> Any:
    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (7.0,)
        return (gradient(at["w"]),)

    return ask


def facts(**changes: Any) -> Problem:
    base: dict[str, Any] = {
        "smoothness": BETA, "radius": 7.0, "diameter": 4.0, "dim": D, "variance": 0.0, "sizes": (500,),
    }  # fmt: skip
    return Problem(**{**base, **changes})


def run(rounds: int, gradient: Callable[[Array], Array], *, prox: Any) -> list[Array]:
    points: list[Array] = [np.zeros(D)]
    last = NoisyProximalSGD(mu=MU).run(
        ask_of(gradient), points[0], problem=facts(), rounds=rounds, prox=prox,
        follow=lambda _r, w: points.append(w),
    )  # fmt: skip
    assert (last == points[-1]).all()
    return points


def test_it_contracts_on_a_quadratic_with_an_l1_penalty() -> None:
    points = run(200, lambda w: SPECTRUM * (w - TARGET), prox=L1(strength=L1_WEIGHT))
    gaps = [value(w) - value(BEST) for w in points]
    # Both the penalised sum and its smooth part are mu-strongly convex, so the first is mu-proximal-PL.
    assert all(after <= (1 - MU / (2 * BETA)) * before + 1e-13 for before, after in pairwise(gaps))
    assert gaps[-1] < 1e-3 * gaps[0]


def test_the_minimum_is_where_it_stays() -> None:
    prox = L1(strength=L1_WEIGHT)
    w = prox_sgd(
        ask_of(lambda w: SPECTRUM * (w - TARGET)), BEST, rounds=1, step_size=0.1, radius=7.0, prox=prox,
        follow=lambda _r, _w: None,
    )  # fmt: skip
    np.testing.assert_allclose(w, BEST, atol=1e-15)


def test_the_printed_step_of_algorithm_21_leaves_the_minimum() -> None:
    """1 / beta inside of the prox and 1 / (2 beta) of its penalty: a step from the minimum goes elsewhere."""
    prox, slope = L1(strength=L1_WEIGHT), SPECTRUM * (BEST - TARGET)
    assert np.abs(prox(1 / (2 * BETA), BEST - slope / BETA) - BEST).max() > 0.02
    np.testing.assert_allclose(prox(1 / (2 * BETA), BEST - slope / (2 * BETA)), BEST, atol=1e-15)


def test_without_a_penalty_it_is_gradient_descent_with_half_the_step() -> None:
    points, w = run(30, lambda w: SPECTRUM * (w - TARGET), prox=Zero()), np.zeros(D)
    for found in points[1:]:
        w = w - SPECTRUM * (w - TARGET) / (2 * BETA)
        np.testing.assert_allclose(found, w, atol=1e-14)


def test_its_bound_holds_with_noise() -> None:
    """Exact expectation on a quadratic: every coordinate is an autoregression."""
    rounds, variance = 40, 0.3
    eta, each = 1 / (2 * BETA), variance / D
    keep = (1 - eta * SPECTRUM) ** 2
    spread = eta**2 * each * (1 - keep**rounds) / (1 - keep)
    mean = float((SPECTRUM * (keep**rounds * TARGET**2 + spread)).sum() / 2)
    gap = float(SPECTRUM @ TARGET**2 / 2)
    bound = NoisyProximalSGD(mu=MU, gap=gap).error_bound(facts(variance=variance), rounds)
    assert bound / 200 < mean <= bound
    q = 1 - MU / (2 * BETA)
    assert bound == pytest.approx(gap * q**rounds + (1 - q**rounds) * variance / MU)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("eta", [1 / (8 * BETA), 1 / (5 * BETA)])
def test_the_bound_for_any_errors_holds_for_the_worst_constant_one(eta: float, average: bool) -> None:
    prox, size, rounds = L1(strength=L1_WEIGHT), 0.5, 60
    for seed in range(20):
        error = np.random.default_rng(seed).standard_normal(D)
        error *= size / np.linalg.norm(error)
        points = [np.zeros(D)]
        prox_sgd(
            ask_of(lambda w, error=error: SPECTRUM * (w - TARGET) + error), points[0], rounds=rounds,  # type: ignore[misc]
            step_size=eta, radius=7.0, prox=prox, follow=lambda _r, w, points=points: points.append(w),  # type: ignore[misc]
        )  # fmt: skip
        gaps = np.array([value(w) - value(BEST) for w in points])
        bound = inexact_descent_bound(
            step_size=eta,
            smoothness=BETA,
            mu=MU,
            rounds=rounds,
            gap=gaps[0],
            variance=size**2,
            average=average,
        )
        assert (gaps[1:].mean() if average else gaps[-1]) <= bound


def silos(sizes: tuple[int, ...]) -> list[Records]:
    rng = np.random.default_rng(1)
    made = []
    for n in sizes:
        X = clip_rows(rng.standard_normal((n, 3)), 1.0)
        made.append(Records.of(X, (X @ [3.0, -2.0, 1.0] > 0).astype(np.float64)))
    return made


def settings_with(algorithm: Any, trust: TrustModel | None = TrustModel.LOCAL, **changes: Any) -> Settings:
    budget = None if trust is None else BUDGET
    return Settings(objective=OBJECTIVE, algorithm=algorithm, trust=trust, budget=budget, clip=0.5, **changes)


def test_one_pass_costs_what_one_round_costs() -> None:
    prepared = prepare(settings_with(NoisyProximalSGD(rounds=7)), [100, 83])
    ((step, rounds),) = prepared.plan.kinds
    assert isinstance(step, Step)
    assert (step.batch, rounds) == (Disjoint(rate=1 / 7), 7)
    assert [step.batch.size_for(n) for n in (100, 83)] == [14, 11]
    assert prepared.noise_multiplier == pytest.approx(calibrate(Gaussian, BUDGET), rel=1e-6)


def test_it_chooses_rounds_that_fit_by_its_bound() -> None:
    found = prepare(settings_with(NoisyProximalSGD()), [50, 300])
    assert found.rounds in (10, 20, 40)
    more = prepare(settings_with(NoisyProximalSGD()), [30_000, 30_000])
    assert more.rounds > found.rounds


def test_it_trains_with_an_l1_penalty_under_every_trust() -> None:
    for trust in (None, TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL):
        settings = settings_with(NoisyProximalSGD(rounds=20), trust, regularizer=L1(strength=1e-3))
        data = silos((2000, 2000))
        federation = in_process(
            make_silos(
                data,
                OBJECTIVE,
                trusts_server=settings.trusts_server,
                trusts_shuffler=trust is TrustModel.SHUFFLE,
                seed=1,
            ),
            seed=1,
        )
        w = train(federation, settings).w
        assert np.mean([(one.X @ w > 0) == one.y for one in data]) > 0.9


@pytest.mark.parametrize(
    ("algorithm", "rounds", "message"),
    [
        ({}, 101, "rounds must be at most the 100 units of the smallest silo, got 101"),
        ({"mu": 0.3}, 5, "mu must be at most the smoothness 0.25"),
    ],
)
def test_bad_problems_are_refused(algorithm: dict[str, Any], rounds: int, message: str) -> None:
    problem = facts(smoothness=0.25, sizes=(100, 200))
    with pytest.raises(ParameterError, match=message):
        NoisyProximalSGD(**algorithm).check(problem, rounds)


def test_full_batches_make_no_pass() -> None:
    method = NoisyProximalSGD(rounds=101, batch=Full())
    prepared = prepare(settings_with(method), [100])
    assert prepared.noise_multiplier == pytest.approx(math.sqrt(101) * calibrate(Gaussian, BUDGET), rel=1e-6)
    assert math.isfinite(method.error_bound(prepared.problem, 101))


def test_unknown_smoothness_and_bad_options_are_refused() -> None:
    with pytest.raises(ParameterError, match="smoothness is unknown"):
        NoisyProximalSGD().check(facts(smoothness=math.inf), 5)
    with pytest.raises(ParameterError, match="mu must be a finite number > 0"):
        NoisyProximalSGD(mu=0.0)
    with pytest.raises(ParameterError, match="gap must be a finite number > 0"):
        NoisyProximalSGD(gap=-1.0)
