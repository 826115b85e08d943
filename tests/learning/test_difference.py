"""Differences of gradients: fused or not, no record moves their sum by more than the claim."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation import FusedStatistic, Plan, Step
from tacit.learning import (
    Grouped,
    Hinge,
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    PerPerson,
    Problem,
    RecordDifference,
    Records,
    Squared,
    difference_radius,
    in_process,
    make_silos,
)
from tacit.learning.algorithms import Protection
from tacit.means import DiscreteGaussianNoise, GaussianNoise
from tacit.numerics import Array, clip_rows
from tests.loops import each

LOSSES: list[Loss] = [Logistic(), Squared(), Huber(threshold=0.7), Hinge(smoothing=3.0), Multinomial()]
FEATURES = 3


def objective_of(loss: Loss, features: int = FEATURES) -> LinearObjective:
    outputs = 4 if isinstance(loss, Multinomial) else 1
    return LinearObjective(loss=loss, features=features, outputs=outputs, feature_norm=2.0)


@dataclass(frozen=True)
class Plain:
    """The same objective without a fused sum of differences."""

    inner: LinearObjective

    @property
    def size(self) -> int:
        return self.inner.size

    def gradients(self, w: Array, records: Any) -> Array:
        return self.inner.gradients(w, records)


def some_records(loss: Loss, n: int, *, seed: int, dtype: Any = np.float64) -> Records:
    rng = np.random.default_rng(seed)
    high = 4 if isinstance(loss, Multinomial) else 2
    X = clip_rows(rng.standard_normal((n, FEATURES)) * rng.choice([0.01, 1.0, 30.0], size=(n, 1)), 2.0)
    return Records.of(X.astype(dtype), rng.integers(high, size=n).astype(dtype))


def points(objective: LinearObjective, *, seed: int, apart: float = 1.0, clip: float | None = None) -> Any:
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(objective.size)
    at = {"w": w, "previous": w + apart * rng.standard_normal(objective.size)}
    return at if clip is None else {**at, "clip": np.array(clip)}


@each("dtype", [np.float32, np.float64])
@each("clip", [None, 0.3])
@each("radius", [0.0, 1e-3, 0.2, 1e9])
@each("loss", LOSSES)
def test_the_fused_sum_adds_up_clipped_differences(
    loss: Loss, radius: float, clip: float | None, dtype: Any
) -> None:
    objective, records = objective_of(loss), some_records(loss, 500, seed=3, dtype=dtype)
    at = points(objective, seed=4, clip=clip)
    statistic = RecordDifference(objective)
    assert isinstance(statistic, FusedStatistic)
    first, second = objective.gradients(at["w"], records), objective.gradients(at["previous"], records)
    if clip is not None:
        first, second = clip_rows(first, clip), clip_rows(second, clip)
    slow = clip_rows(first - second, radius).sum(axis=0, dtype=np.float64)
    tolerance = 500 * min(radius, 10) * (1e-5 if dtype == np.float32 else 1e-12)
    plain: Any = Plain(objective)
    for one in (statistic, RecordDifference(plain)):
        fused = one.clipped_sum(records, at, radius, dtype)
        assert fused.dtype == np.float64
        assert fused.shape == (objective.size,)
        np.testing.assert_allclose(fused, slow, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(statistic(records, at), first - second)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_at_equal_points_all_differences_are_zero(loss: Loss) -> None:
    objective, records = objective_of(loss), some_records(loss, 50, seed=5)
    w = np.random.default_rng(6).standard_normal(objective.size)
    at = {"w": w, "previous": w.copy()}
    assert not RecordDifference(objective)(records, at).any()
    assert not RecordDifference(objective).clipped_sum(records, at, 1.0, np.float64).any()
    assert difference_radius(w, w.copy(), lipschitz=1.0, smoothness=math.inf) == 0.0


@pytest.mark.parametrize("clip", [None, 0.4])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_no_pair_of_neighbours_is_further_apart_than_the_claim(loss: Loss, clip: float | None) -> None:
    """One record of 8 becomes any other, at 700 pairs of points: sums are two radii apart at most."""
    objective, rng = objective_of(loss), np.random.default_rng(7)
    statistic, furthest = RecordDifference(objective), 0.0
    pool = some_records(loss, 400, seed=8)
    for _ in range(700):
        at = points(objective, seed=int(rng.integers(2**31)), apart=10.0 ** rng.uniform(-6, 2), clip=clip)
        radius = difference_radius(at["w"], at["previous"], lipschitz=0.4, smoothness=objective.smoothness)
        assert 0 < radius <= 0.8
        some = rng.integers(len(pool), size=9)
        sums = [
            statistic.clipped_sum(pool.take(np.append(some[:7], last)), at, radius, np.float64)
            for last in some[7:]
        ]
        moved = float(np.linalg.norm(sums[1] - sums[0]))
        assert moved <= 2 * radius * (1 + 1e-12)
        furthest = max(furthest, moved / radius)
    assert furthest > 0.5  # the claim is of that size


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_the_radius_clips_no_difference_of_clipped_gradients(loss: Loss) -> None:
    """Clipping is a projection, which brings no two gradients further apart."""
    objective, rng, longest = objective_of(loss), np.random.default_rng(9), 0.0
    records = some_records(loss, 300, seed=10)
    for _ in range(100):
        at = points(objective, seed=int(rng.integers(2**31)), apart=10.0 ** rng.uniform(-4, 1), clip=0.4)
        radius = difference_radius(at["w"], at["previous"], lipschitz=0.4, smoothness=objective.smoothness)
        longest = max(
            longest, float(np.linalg.norm(RecordDifference(objective)(records, at), axis=1).max() / radius)
        )
    assert 0.3 < longest <= 1 + 1e-9


def test_radius_is_the_smaller_bound() -> None:
    w, v = np.array([3.0, 4.0]), np.zeros(2)
    assert difference_radius(w, v, lipschitz=1.0, smoothness=0.25) == 1.25
    assert difference_radius(w, v, lipschitz=0.5, smoothness=0.25) == 1.0
    assert difference_radius(w, v, lipschitz=0.5, smoothness=math.inf) == 1.0
    assert difference_radius(w, w * (1 + 1e-16), lipschitz=0.5, smoothness=math.inf) == 0.0
    assert (
        difference_radius(np.array([1e-32]), np.zeros(1), lipschitz=1.0, smoothness=1.0) == 0.0
    )  # below 2^-100
    with pytest.raises(ParameterError, match="lipschitz must be a finite number > 0"):
        difference_radius(w, v, lipschitz=0.0, smoothness=1.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_a_record_that_comes_or_goes_moves_no_other_at_a_hostile_point(loss: Loss, dtype: Any) -> None:
    """At points 1e25 long and at right angles to all records, predictions are rounding and no more."""
    rng, outputs = np.random.default_rng(12), 3 if isinstance(loss, Multinomial) else 1
    x, away = rng.standard_normal((2, 785))
    x -= away * (x @ away) / (away @ away)
    X = np.tile((x / np.linalg.norm(x)).astype(dtype), (48, 1))
    w = np.outer(away * 1e25, rng.choice([-1.0, 1.0], outputs)).ravel()
    objective = LinearObjective(loss=loss, features=785, outputs=outputs)
    statistic, at, radius = RecordDifference(objective), {"w": w, "previous": -w[::-1].copy()}, 0.01
    for n in range(1, 48):
        sums = [
            statistic.clipped_sum(Records.of(X[:k], np.zeros(k)), at, radius, np.float64) for k in (n, n + 1)
        ]
        assert np.linalg.norm(sums[1] - sums[0]) <= radius * (1 + 1e-10)
    rows = statistic(Records.of(X, np.zeros(48)), at)
    assert (rows == rows[0]).all()


def test_bad_rows_count_as_zero() -> None:
    objective = LinearObjective(loss=Squared(), features=1)
    records = Records.of(np.array([[1e200], [0.5], [np.nan]]), np.array([0.0, 0.0, 0.0]))
    at = {"w": np.array([1e200]), "previous": np.zeros(1)}
    good = {"w": np.array([1.0]), "previous": np.zeros(1)}
    statistic = RecordDifference(objective)
    assert clip_rows(statistic(records, at), 1.0).ravel().tolist() == [0.0, 1.0, 0.0]
    assert statistic.clipped_sum(records, at, 1.0, np.float64)[0] == pytest.approx(1.0, rel=1e-12)
    assert statistic(records, good)[2] == 0.0
    clipped = {**at, "clip": np.array(0.25)}
    assert statistic(records, clipped).ravel().tolist() == [0.0, 0.25, 0.0]


def test_a_person_has_one_row() -> None:
    objective, records = objective_of(Logistic()), some_records(Logistic(), 40, seed=11)
    persons = np.arange(40) % 7
    at = points(objective, seed=12)
    rows = PerPerson(RecordDifference(objective))(Grouped.of(records, persons), at)
    each = RecordDifference(objective)(records, at)
    expected = np.stack([each[persons == k].mean(axis=0) for k in range(7)])
    np.testing.assert_allclose(rows, expected, atol=1e-14)
    fused = PerPerson(RecordDifference(objective)).clipped_sum(
        Grouped.of(records, persons), at, 0.1, np.float64
    )
    np.testing.assert_allclose(fused, clip_rows(expected, 0.1).sum(axis=0), atol=1e-12)


@pytest.mark.parametrize("noise", [GaussianNoise, DiscreteGaussianNoise])
def test_a_round_about_equal_points_is_zero_and_costs_what_it_costs(noise: Any) -> None:
    objective = objective_of(Logistic())
    problem = Problem(
        smoothness=1.0, radius=0.5, diameter=1.0, dim=objective.size, variance=0.0,
        protection=Protection(noise=noise, multiplier=3.0),
    )  # fmt: skip
    step = Step(measures=(problem.measure("difference", max_radius=1.0),))
    plan = Plan(steps=((step, 2),), parties=1, delta=1e-5)
    statistics = {"difference": RecordDifference(objective)}
    (silo,) = make_silos([some_records(Logistic(), 20, seed=13)], objective, statistics=statistics, seed=1)
    ask = in_process([silo], seed=1).open(plan)
    w = np.ones(objective.size)
    at = {"w": w, "previous": w}
    radius = difference_radius(w, w, lipschitz=0.5, smoothness=1.0)
    assert not ask(0, at, (radius,))[0].any()
    assert ask(1, {"w": w, "previous": 2 * w}, (0.5,))[0].any()
    with pytest.raises(RefusalError, match=r"radius must be a number in \[0, 1.0\]"):
        ask(1, at, (1.1,))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"previous": np.zeros(2)}, r"the point 'previous' must have shape \(3,\), got \(2,\)"),
        ({"w": np.zeros((3, 1))}, r"the point 'w' must have shape \(3,\)"),
        ({"clip": np.zeros(1)}, "the point 'clip' must be one number >= 0"),
        ({"clip": np.array(-1.0)}, "the point 'clip' must be one number >= 0"),
    ],
)
def test_points_of_other_shapes_are_refused(changes: Mapping[str, Array], message: str) -> None:
    statistic, none = RecordDifference(objective_of(Logistic())), Records.of(np.zeros((0, 3)), np.zeros(0))
    with pytest.raises(ParameterError, match=message):
        statistic(none, {"w": np.zeros(3), "previous": np.zeros(3), **changes})
    with pytest.raises(ParameterError, match=r"'previous' must have shape .* got None"):
        statistic(none, {"w": np.zeros(3)})
