"""The corrected theorem of shuffled gradients, its dissimilarity, and the exact risk of means beside it."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Epoch
from tacit.learning import DistanceObjective, LinearObjective, Logistic, Records
from tacit.learning.shuffled import (
    MeanInstance,
    RecordSteps,
    ShuffledGradient,
    ShuffledMethod,
    ShuffledRun,
    SurrogateEpoch,
    largest_step_size,
    mean_risk,
    order_dissimilarity,
    surrogate_bound,
    surrogate_epochs,
)
from tacit.literature import paper_noise
from tacit.numerics import Array
from tacit.privacy import Order, Placement, PrivacyBudget, calibrate

MEANS = DistanceObjective(size=1, lipschitz=math.inf, smoothness=1.0)
FACTS: dict[str, Any] = {
    "steps": 100, "dim": 10, "start_distance": 3.0, "gradient_variance": 4.0, "smoothness": 1.0
}  # fmt: skip
NOISY = SurrogateEpoch(smoothness=1.0, noise_std=5.0)


def of(rows: Any) -> Records:
    X = np.asarray(rows, dtype=np.float64)
    return Records.of(X, np.zeros(len(X)))


def test_the_bound_at_its_largest_step() -> None:
    epochs = [NOISY] * 20
    eta = largest_step_size(epochs, steps=100, smoothness=1.0)
    assert eta == pytest.approx(0.0007909914945696308)
    found = surrogate_bound(epochs, step_size=eta, **FACTS)
    assert found.start == pytest.approx(5.689062437)
    assert found.orders == pytest.approx(1.0)
    harmonic = sum(1 / k for k in range(1, 21))  # what 1 + log K bounds
    assert found.noise * (1 + math.log(20)) / harmonic == pytest.approx(2.205295121)
    assert found.total == pytest.approx(found.start + found.orders + found.noise)
    with pytest.raises(ParameterError, match="step_size must be at most"):
        surrogate_bound(epochs, step_size=1.01 * eta, **FACTS)


def test_the_sum_over_epochs_is_its_largest() -> None:
    # Noise in the first two of four epochs: the sums are e, 3/2 e, 5/6 e and 7/12 e.
    epochs = [NOISY, NOISY, replace(NOISY, noise_std=0.0), replace(NOISY, noise_std=0.0)]
    found = surrogate_bound(epochs, step_size=1e-4, **FACTS)
    assert found.noise == pytest.approx(2 * 1.5 * NOISY.noise_error(steps=100, dim=10, step_size=1e-4))


def test_noise_at_the_end_of_an_epoch_is_one_draw_among_its_steps() -> None:
    end = replace(NOISY, at_end=True)
    assert end.noise_error(steps=100, dim=10, step_size=1e-3) == pytest.approx(1e-3 * 10 * 25 / 100)


def test_the_noise_of_a_step_moves_the_end_by_up_to_the_step_size() -> None:
    # (1/n) sum_i <-rho_i, end> has the expectation -(sigma^2 / n) times the trace of the Jacobians.
    steps, n, eta = RecordSteps.of(MEANS, of([[0.0]]), compiled=False), 5, 0.02
    moved = [
        steps(np.zeros(n, dtype=np.int64), np.zeros(1), step_size=eta, noise=np.eye(n)[:, [i]])[0]
        for i in range(n)
    ]
    exact = -sum(moved) / n
    assert exact == pytest.approx(0.01921584064)
    assert (
        0.002
        < exact
        < 0.02
        < SurrogateEpoch(smoothness=1.0, noise_std=1.0).noise_error(steps=n, dim=1, step_size=eta)
    )


def test_surrogates_need_a_regulariser_that_is_convex_enough() -> None:
    other = SurrogateEpoch(smoothness=1.0, dissimilarity=50.0, partial_squares=30.0, smoothness_gap=0.1)
    for convexity in (0.0, 0.1):
        with pytest.raises(ParameterError, match="strong_convexity must be more than"):
            surrogate_bound([other], step_size=1e-4, strong_convexity=convexity, **FACTS)
    found = surrogate_bound([other], step_size=1e-4, strong_convexity=0.35, **FACTS)
    assert found.surrogate == pytest.approx(2 * (50**2 / (2 * 100**2 * 0.25) + 5e-8 * 30))
    with pytest.raises(ParameterError, match=r"beta must be in"):
        surrogate_bound([other], step_size=1e-4, strong_convexity=0.35, beta=0.3, **FACTS)


def test_public_records_that_are_the_private_ones_need_no_regulariser() -> None:
    # In another order: the sums come apart on the way, and together at the end.
    same = SurrogateEpoch(smoothness=1.0, partial_squares=30.0)
    found = surrogate_bound([same], step_size=1e-4, **FACTS)
    assert found.surrogate == pytest.approx(2 * 5e-8 * 30)


@pytest.mark.parametrize(
    "change", [{"smoothness": math.nan}, {"smoothness": 0.0}, {"strong_convexity": -1.0}, {"steps": 0}]
)
def test_bounds_of_nothing_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(change))):
        surrogate_bound([NOISY], step_size=1e-5, **{**FACTS, **change})


def test_named_runs_have_the_facts_of_the_tables() -> None:
    ours = SurrogateEpoch(smoothness=1.0, largest_smoothness=2.0, noise_std=3.0)
    theirs = SurrogateEpoch(smoothness=0.5, largest_smoothness=4.0, dissimilarity=7.0, partial_squares=2.0)

    def facts(method: ShuffledMethod) -> tuple[SurrogateEpoch, ...]:
        return surrogate_epochs(ShuffledRun(method=method, steps=8, epochs=4, share=0.25), ours, theirs)

    assert facts(ShuffledMethod.PRIVATE) == (ours,) * 4
    assert facts(ShuffledMethod.PRIVATE_PUBLIC) == (ours, theirs, theirs, theirs)
    assert facts(ShuffledMethod.PUBLIC_PRIVATE) == (theirs, theirs, theirs, ours)
    assert facts(ShuffledMethod.PUBLIC) == (theirs,) * 4
    mixed = replace(theirs, smoothness=0.625, largest_smoothness=4.0, noise_std=3.0)
    assert facts(ShuffledMethod.INTERLEAVED) == (mixed,) * 4
    with pytest.raises(ParameterError, match="public must say"):
        surrogate_epochs(ShuffledRun(method=ShuffledMethod.PUBLIC, steps=8, epochs=4), ours)


def test_dissimilarity_of_means_does_not_depend_on_the_point() -> None:
    rng = np.random.default_rng(0)
    D, P = rng.normal(size=(6, 3)), rng.normal(size=(6, 3))
    objective = DistanceObjective(size=3, lipschitz=math.inf, smoothness=1.0)
    found = order_dissimilarity(objective, of(D), of(P), points=10 * rng.normal(size=(4, 3)))
    assert found[-1] == pytest.approx(6 * np.linalg.norm(P.mean(axis=0) - D.mean(axis=0)))
    sums = np.linalg.norm(np.cumsum(P - D, axis=0), axis=1)
    np.testing.assert_allclose(found, sums, rtol=1e-12)
    order = rng.permutation(6)
    shuffled = order_dissimilarity(objective, of(D), of(D[order]), points=np.zeros((1, 3)))
    assert shuffled[-1] == pytest.approx(0, abs=1e-12)  # public records that are the private ones
    assert shuffled[:-1].max() > 0.1


def test_fewer_public_steps_may_come_more_apart() -> None:
    D, P, at = of([[-1.0], [1.0]]), of([[1.0], [-1.0]]), np.zeros((1, 1))
    assert order_dissimilarity(MEANS, D, P, points=at)[-1] == 0
    assert order_dissimilarity(MEANS, D, of([[-1.0]]), points=at, first=1)[-1] == 2


def test_dissimilarity_is_the_largest_over_points_and_orders() -> None:
    rng = np.random.default_rng(1)
    X, P = rng.normal(size=(4, 2)), rng.normal(size=(2, 2))
    ours, theirs = (Records.of(rows, rng.integers(0, 2, len(rows)).astype(float)) for rows in (X, P))
    objective, points = LinearObjective(loss=Logistic(), features=2), rng.normal(size=(3, 2))
    orders = np.array(list(itertools.permutations(range(4))))
    found = order_dissimilarity(objective, ours, theirs, points=points, orders=orders, first=2)
    for i in (1, 2):
        wanted = max(
            float(
                np.linalg.norm(
                    sum(
                        objective.gradients(x, ours.take(np.array([p[2 + j]])))[0]
                        - objective.gradients(x, theirs.take(np.array([j])))[0]
                        for j in range(i)
                    )
                )
            )
            for x in points
            for p in orders
        )
        assert found[i - 1] == pytest.approx(wanted)
    for bad in ({"first": 4}, {"orders": orders[:, :3]}, {"first": 1}):
        with pytest.raises(ParameterError, match=r"first|orders|public"):
            order_dissimilarity(objective, ours, theirs, points=points, **bad)


INSTANCE = MeanInstance(n=200, dim=50, spread=25.0, start=np.array([3.0, 0.0]), shift=np.array([0.0, 0.5]))


def run_of(method: ShuffledMethod, placement: Placement = Placement.EVERY_STEP) -> ShuffledRun:
    return ShuffledRun(method=method, steps=200, epochs=50, placement=placement)


@pytest.mark.parametrize(
    ("method", "risk"),
    [
        (ShuffledMethod.PRIVATE, 0.012527147604),
        (ShuffledMethod.INTERLEAVED, 0.048370826707),
        (ShuffledMethod.PRIVATE_PUBLIC, 0.123325943728),
        (ShuffledMethod.PUBLIC_PRIVATE, 0.012532152757),
    ],
)
def test_the_exact_risk_of_a_mean(method: ShuffledMethod, risk: float) -> None:
    found = mean_risk(INSTANCE, run_of(method).schedule, step_size=1e-3, noise_std=1.0)
    assert float(found) == pytest.approx(risk, rel=1e-9)


@pytest.mark.parametrize(
    ("facts", "epoch", "message"),
    [
        ({"step_size": 0.0}, Epoch(private=200), "step_size"),
        ({"step_size": np.array([0.1, math.nan])}, Epoch(private=200), "step_size"),
        ({"noise_std": -1.0}, Epoch(private=200), "noise_std"),
        ({}, Epoch(private=201), "private steps of an epoch"),
    ],
)
def test_means_that_no_run_has_are_refused(facts: Any, epoch: Epoch, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        mean_risk(INSTANCE, [epoch], **{"step_size": 0.1, "noise_std": 1.0, **facts})


@pytest.mark.parametrize("change", [{"start": np.zeros(1)}, {"shift": np.array([0.0, math.inf])}])
def test_means_need_points_of_one_basis(change: Any) -> None:
    with pytest.raises(ParameterError, match=r"start|shift"):
        replace(INSTANCE, **change)


GRID = np.array([x * 10.0**-b for b in range(1, 10) for x in (5, 1)])


def least(method: ShuffledMethod, std: float, placement: Placement = Placement.EVERY_STEP) -> float:
    return float(mean_risk(INSTANCE, run_of(method, placement).schedule, step_size=GRID, noise_std=std).min())


@pytest.mark.parametrize(
    ("epsilon", "paper", "ours", "end"),
    [
        (5.0, (4.226114, 0.125000, 3.838901, 0.899419), (0.924293, 0.116500, 0.823395, 0.365802), 0.662368),
        (1.0, (4.490824, 0.125000, 4.446497, 3.812996), (3.445446, 0.125000, 2.659106, 1.667235), 2.367611),
    ],
)
def test_the_best_risk_of_a_mean_by_who_counts_the_noise(
    epsilon: float, paper: tuple[float, ...], ours: tuple[float, ...], end: float
) -> None:
    methods = [m for m in ShuffledMethod if m is not ShuffledMethod.PUBLIC]
    budget = PrivacyBudget(epsilon, 1e-6)

    def noise(run: ShuffledRun) -> float:
        return 20 * calibrate(lambda z: run.event(z, order=Order.RR, step_times_smoothness=1.0), budget)

    for method, printed, hidden in zip(methods, paper, ours, strict=True):
        run = run_of(method)
        std = 20 * paper_noise(epsilon, 1e-6, n=200, epochs=run.private_epochs, private=run.private_steps)
        assert least(method, std) == pytest.approx(printed, abs=2e-6)
        assert least(method, noise(run)) == pytest.approx(hidden, rel=2e-4)
    assert least(ShuffledMethod.PUBLIC, 0.0) == pytest.approx(0.123527, abs=1e-6)
    late = run_of(ShuffledMethod.PRIVATE, Placement.EPOCH_END)
    assert least(late.method, noise(late), late.placement) == pytest.approx(end, rel=2e-4)


@pytest.mark.parametrize("placement", Placement)
def test_runs_have_the_risk_that_is_said(placement: Placement) -> None:
    rng = np.random.default_rng(2)
    Q = rng.normal(size=(12, 2))
    Q -= Q.mean(axis=0)
    shift, start = np.array([0.5, -0.2]), np.array([1.0, 2.0])
    problem = ShuffledGradient(
        objective=replace(MEANS, size=2), private=of(Q), public=of(np.tile(shift, (12, 1))), order=Order.RR
    )
    run = ShuffledRun(method=ShuffledMethod.INTERLEAVED, steps=12, epochs=3, share=0.4, placement=placement)
    epochs = (*run.schedule, Epoch(private=12, noise=False))
    seeds = 400
    ends = problem.run(
        epochs,
        step_size=np.array([0.05, 0.2]),
        noise_std=np.array([0.7, 0.3]),
        rng=[np.random.default_rng([9, s]) for s in range(seeds)],
        start=start,
    )
    spread = float(np.mean(np.sum(Q**2, axis=1)))
    said = mean_risk(
        MeanInstance(n=12, dim=2, spread=spread, start=start, shift=shift),
        epochs,
        step_size=np.array([0.05, 0.2]),
        noise_std=np.array([0.7, 0.3]),
    )
    risks = np.sum(ends**2, axis=2) / 2
    # A normal limit of 400 draws of sums of squares: 6 standard errors leave a false alarm below 1e-6.
    assert np.all(np.abs(risks.mean(axis=0) - said) < 6 * risks.std(axis=0) / math.sqrt(seeds))


def test_the_bound_is_above_the_exact_risk() -> None:
    run = run_of(ShuffledMethod.PRIVATE)
    epoch = SurrogateEpoch(smoothness=1.0, noise_std=1.0)
    most = largest_step_size([epoch] * 50, steps=200, smoothness=1.0)
    for eta in (most, most / 10, most / 100):
        bound = surrogate_bound(
            surrogate_epochs(run, epoch),
            steps=200, dim=50, step_size=eta, start_distance=3.0, gradient_variance=25.0, smoothness=1.0,
        ).total  # fmt: skip
        assert float(mean_risk(INSTANCE, run.schedule, step_size=eta, noise_std=1.0)) < bound


def test_scalars_and_arrays_of_steps_agree() -> None:
    sizes: Array = np.array([[1e-3, 1e-2], [1e-4, 2e-2]])
    epochs = run_of(ShuffledMethod.INTERLEAVED).schedule
    found = mean_risk(INSTANCE, epochs, step_size=sizes, noise_std=1.0)
    assert found.shape == (2, 2)
    assert found[0, 1] == pytest.approx(float(mean_risk(INSTANCE, epochs, step_size=1e-2, noise_std=1.0)))
