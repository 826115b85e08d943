"""Steps of single records: as a plain loop takes them, in NumPy and in machine code, alone or many."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning import (
    DistanceObjective,
    Hinge,
    Huber,
    Kinked,
    LinearObjective,
    Logistic,
    Multinomial,
    PoissonLoss,
    Records,
    Squared,
)
from tacit.learning.shuffled import RecordSteps, ShuffledObjective
from tacit.learning.shuffled.compiled import can_compile, compiled_descent
from tacit.numerics import Array, clip_rows

N, D, STEPS = 7, 5, 12
OBJECTIVES: list[ShuffledObjective] = [
    *(
        LinearObjective(loss=loss, features=D)
        for loss in (Squared(), Logistic(), Huber(0.3), PoissonLoss(2.0))
    ),
    DistanceObjective(size=D, lipschitz=math.inf, smoothness=1.0),
    DistanceObjective(size=D, lipschitz=0.7, smoothness=2.0),
    DistanceObjective(size=D, lipschitz=0.7),
]
MACHINE = pytest.param(True, marks=pytest.mark.skipif(not can_compile(), reason="needs the extra fast"))
both = pytest.mark.parametrize("compiled", [False, MACHINE])


def records(seed: int = 0, n: int = N) -> Records:
    rng = np.random.default_rng(seed)
    return Records.of(rng.normal(size=(n, D)), rng.integers(0, 2, size=n).astype(np.float64))


def walked(
    objective: ShuffledObjective,
    held: Records,
    index: Array,
    w: Array,
    radius: float,
    step: float,
    moved: Array,
) -> Array:
    """Take the steps one by one, with the gradients of the objective and the clipping of the house."""
    for batch, noise in zip(index, moved, strict=True):
        rows = objective.gradients(w, held.take(np.atleast_1d(batch)))
        rows = rows if radius == math.inf else clip_rows(rows, radius)
        w = w - step * (rows.mean(axis=0) + noise)
    return w


@both
@pytest.mark.parametrize("radius", [math.inf, 0.4])
@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda one: type(getattr(one, "loss", one)).__name__)
def test_steps_are_those_of_a_plain_loop(objective: ShuffledObjective, radius: float, compiled: bool) -> None:
    rng, held = np.random.default_rng(1), records()
    steps = RecordSteps.of(objective, held, compiled=compiled)
    noise, start = rng.normal(size=(STEPS, D)), rng.normal(size=D)
    for index in (rng.integers(0, N, size=STEPS), rng.integers(0, N, size=(STEPS, 3))):
        found = steps(index, start, radius=radius, step_size=0.1, noise=noise, noise_std=0.5)
        wanted = walked(objective, held, index, start, radius, 0.1, 0.5 * noise)
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-12)
    quiet = steps(index, start, radius=radius, step_size=0.1)
    np.testing.assert_allclose(
        quiet,
        walked(objective, held, index, start, radius, 0.1, np.zeros((STEPS, 1))),
        rtol=1e-11,
        atol=1e-12,
    )


@both
@pytest.mark.parametrize("objective", OBJECTIVES[1:5:3])
def test_replicas_side_by_side_are_what_they_are_alone(objective: ShuffledObjective, compiled: bool) -> None:
    rng = np.random.default_rng(2)
    steps = RecordSteps.of(objective, records(), compiled=compiled)
    seeds, sizes, stds = 3, np.array([0.5, 0.1, 0.01, 0.3]), np.array([0.0, 1.0, 0.2, 3.0])
    index, noise = rng.integers(0, N, size=(seeds, STEPS, 2)), rng.normal(size=(seeds, STEPS, D))
    start = rng.normal(size=(seeds, len(sizes), D))
    before = start.copy()
    found = steps(index, start, radius=0.4, step_size=sizes, noise=noise, noise_std=stds)
    assert np.array_equal(start, before)
    for s in range(seeds):
        for k in range(len(sizes)):
            alone = steps(
                index[s], start[s, k], radius=0.4, step_size=sizes[k], noise=noise[s], noise_std=stds[k]
            )
            np.testing.assert_allclose(found[s, k], alone, rtol=1e-11, atol=1e-13)


@both
def test_nothing_visible_comes_of_records_that_overflow(compiled: bool) -> None:
    X = np.array([[1e200, 0.0], [1e-320, 3.0], [np.nan, 1.0], [1.0, np.inf], [1e300, 1e300]])
    held = Records.of(X, np.array([1e308, -1e308, 0.0, 1.0, np.nan]))
    losses = (Squared(), Logistic(), PoissonLoss(1.0))
    objectives: list[ShuffledObjective] = [LinearObjective(loss=loss, features=2) for loss in losses]
    objectives += [DistanceObjective(size=2, lipschitz=math.inf, smoothness=1.0), DistanceObjective(size=2)]
    start = np.array([1e150, -1e150])
    for objective in objectives:
        steps = RecordSteps.of(objective, held, compiled=compiled)
        for record in range(len(X)):
            moved = steps(np.array([record]), np.zeros(2), radius=1.0, step_size=1.0)
            assert np.linalg.norm(moved) <= 1.0
            assert np.isfinite(steps(np.array([record]), start, radius=1.0, step_size=1.0)).all()
    short = LinearObjective(loss=Squared(), features=2, feature_norm=1.0)
    far = RecordSteps.of(short, Records.of(np.array([[3.0, 4.0]]), np.ones(1)), compiled=compiled)
    assert np.array_equal(far(np.array([0]), np.zeros(2), radius=1.0, step_size=1.0), np.zeros(2))


@both
@pytest.mark.parametrize("objective", OBJECTIVES[:6])
def test_clipped_steps_bring_no_two_points_apart_up_to_twice_the_inverse_smoothness(
    objective: ShuffledObjective, compiled: bool
) -> None:
    rng, held = np.random.default_rng(3), records(n=40)
    steps = RecordSteps.of(objective, held, compiled=compiled)
    for record in range(len(held)):
        if isinstance(objective, LinearObjective):
            smoothness = objective.loss.smoothness * float(held.norms[record]) ** 2
        else:
            smoothness = objective.smoothness
        pair = rng.normal(size=(2, 1, D)) * 10 ** rng.uniform(-2, 1)
        index = np.full((2, 1), record)
        moved = steps(index, pair, radius=0.5, step_size=2 / smoothness)
        assert np.linalg.norm(moved[0] - moved[1]) <= np.linalg.norm(pair[0] - pair[1]) * (1 + 1e-12)


def test_what_does_not_fit_is_refused() -> None:
    held = records()
    with pytest.raises(ParameterError, match=r"loss of one prediction, got one of 3"):
        RecordSteps.of(LinearObjective(loss=Multinomial(), features=D, outputs=3), held)
    with pytest.raises(ParameterError, match=r"a linear objective or a distance, got str"):
        RecordSteps.of("squared", held)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="compiled steps need numba"):
        RecordSteps.of(LinearObjective(loss=Hinge(), features=D), held, compiled=True)
    steps = RecordSteps.of(OBJECTIVES[0], held, compiled=False)
    w, some = np.zeros(D), np.arange(3)
    for index in (np.array([0, N]), np.array([-1, 0])):
        with pytest.raises(ParameterError, match=r"index must be from 0 to 6"):
            steps(index, w, step_size=0.1)
    with pytest.raises(ParameterError, match="w must have 5 parameters"):
        steps(some, np.zeros(4), step_size=0.1)
    with pytest.raises(ParameterError, match=r"noise must have one row of 5 numbers per step"):
        steps(some, w, step_size=0.1, noise=np.zeros((2, D)))
    with pytest.raises(ParameterError, match=r"w must have shape"):
        steps(some[None], np.zeros((2, 1, D)), step_size=0.1)
    with pytest.raises(ParameterError, match="radius"):
        steps(some, w, step_size=0.1, radius=0.0)


def test_any_loss_of_one_prediction_runs_without_machine_code() -> None:
    objective = LinearObjective(loss=Hinge(), features=D)
    assert isinstance(objective.loss, Kinked)
    steps = RecordSteps.of(objective, records())
    assert not steps.compiled
    index = np.arange(N)
    found = steps(index, np.zeros(D), radius=0.4, step_size=0.1)
    np.testing.assert_allclose(
        found, walked(objective, records(), index, np.zeros(D), 0.4, 0.1, np.zeros((N, 1))), rtol=1e-12
    )


@pytest.mark.skipif(not can_compile(), reason="needs the extra fast")
def test_one_compilation_serves_runs_alone_and_many() -> None:
    steps, index = RecordSteps.of(OBJECTIVES[0], records(), compiled=True), np.arange(N)
    steps(index, np.zeros(D), step_size=0.1)
    before = len(compiled_descent().signatures)  # type: ignore[attr-defined]
    steps(
        np.broadcast_to(index, (2, N)),
        np.zeros((2, 1, D)),
        step_size=np.array([0.1]),
        noise=np.ones((2, N, D)),
    )
    assert len(compiled_descent().signatures) == before  # type: ignore[attr-defined]
