"""Records and persons: bad records count as zero, batches are the right ones, a person is one row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import DataError, ParameterError
from tacit.learning import (
    DistanceObjective,
    Grouped,
    LinearObjective,
    Logistic,
    Multinomial,
    PerPerson,
    RecordDifference,
    RecordGradient,
    Records,
)
from tacit.learning import objective as objective_module
from tacit.learning.objective import clip_slopes
from tacit.numerics import Array, clip_rows, row_norms
from tacit.randomness import simulated

OBJECTIVE = LinearObjective(loss=Logistic(), features=3)
X = np.random.default_rng(1).standard_normal((7, 3))
Y = np.array([0.0, 1, 1, 0, 1, 0, 1])
W = np.array([0.4, -1.0, 2.0])
PERSONS = np.array(["b", "a", "b", "c", "a", "b", "d"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_records_carry_their_norms(dtype: type[np.floating]) -> None:
    records = Records.of(X.astype(dtype), Y)
    assert records.X.dtype == records.y.dtype == np.dtype(dtype)
    assert records.norms.dtype == np.float64
    assert records.norms.tolist() == row_norms(X.astype(dtype)).tolist()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_record_counts_as_zero(bad: float) -> None:
    broken_x, broken_y = X.copy(), Y.copy()
    broken_x[2, 1] = bad
    broken_y[4] = bad
    records = Records.of(broken_x, broken_y)
    assert len(records) == 7
    gradients = OBJECTIVE.gradients(W, records)
    assert not gradients[[2, 4]].any()
    assert (
        gradients[[0, 1, 3, 5, 6]].tolist()
        == OBJECTIVE.gradients(W, Records.of(X, Y))[[0, 1, 3, 5, 6]].tolist()
    )


def test_a_target_that_float32_cannot_hold_is_a_bad_record() -> None:
    records = Records.of(np.ones((2, 3), dtype=np.float32), np.array([1e300, 1.0]))
    assert records.y.tolist() == [0.0, 1.0]
    assert records.norms[0] == 0


def test_taking_records_takes_everything() -> None:
    taken = Records.of(X, Y).take(np.array([4, 1]))
    assert taken.X.tolist() == X[[4, 1]].tolist()
    assert taken.y.tolist() == Y[[4, 1]].tolist()
    assert taken.norms.tolist() == row_norms(X)[[4, 1]].tolist()


@given(persons=arrays(np.int64, 12, elements=st.integers(0, 4)), data=st.data())
def test_taking_persons_takes_all_their_records(persons: Array, data: st.DataObject) -> None:
    values = np.arange(36.0).reshape(12, 3)
    grouped = Grouped.of(Records.of(values, np.arange(12.0)), persons)
    present = np.array(list(dict.fromkeys(persons.tolist())))  # as they come
    assert len(grouped) == len(present)
    index = np.array(data.draw(st.lists(st.integers(0, len(present) - 1), unique=True)), dtype=np.int64)
    taken = grouped.take(index)
    assert len(taken) == len(index)
    for k, person in enumerate(present[index]):
        held = slice(taken.starts[k], taken.starts[k + 1])
        assert taken.records.X[held].tolist() == values[persons == person].tolist()
        assert taken.records.y[held].tolist() == np.flatnonzero(persons == person).tolist()


def test_a_person_is_one_row_however_many_records() -> None:
    rows = PerPerson(RecordGradient(OBJECTIVE))(Grouped.of(Records.of(X, Y), PERSONS), {"w": W})
    each = OBJECTIVE.gradients(W, Records.of(X, Y))
    expected = [each[np.char.equal(PERSONS, person)].mean(axis=0) for person in "bacd"]
    np.testing.assert_allclose(rows, expected, rtol=1e-14)
    clipped = clip_rows(rows, 0.1)
    assert np.linalg.norm(clipped, axis=1).max() <= 0.1 * (1 + 1e-12)  # not 3 x 0.1 for "b"


def test_persons_with_one_record_each_are_records() -> None:
    records = Records.of(X, Y)
    rows = PerPerson(RecordGradient(OBJECTIVE))(Grouped.of(records, np.arange(7)), {"w": W})
    np.testing.assert_allclose(rows, RecordGradient(OBJECTIVE)(records, {"w": W}), rtol=1e-15)


@pytest.mark.parametrize("outputs", [1, 3])
def test_a_visit_more_of_one_person_changes_nobody_elses_row_even_at_a_hostile_point(outputs: int) -> None:
    rng = np.random.default_rng(6)
    loss = Logistic() if outputs == 1 else Multinomial()
    objective = LinearObjective(loss=loss, features=65, outputs=outputs)
    x, across = rng.standard_normal((120, 65)), rng.standard_normal(65)
    x -= np.outer(x @ across, across) / (across @ across)
    # Predictions at this point are all rounding: of size 1, sums of terms of size 1e16.
    hostile = np.outer(1e16 * across, rng.choice([-1, 1], outputs)).ravel()
    rows = []
    for visits in (1, 2, 3):
        persons = np.concatenate([np.zeros(visits), np.arange(1, 118)])
        records = Records.of(np.concatenate([x[:visits], x[3:]]), np.zeros(len(persons)))
        rows.append(PerPerson(RecordGradient(objective))(Grouped.of(records, persons), {"w": hostile}))
    np.testing.assert_array_equal(rows[0][1:], rows[1][1:])
    np.testing.assert_array_equal(rows[0][1:], rows[2][1:])


@pytest.mark.parametrize("at_once", [1, 9, 10**6])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_sum_of_persons_is_that_of_their_clipped_rows(
    dtype: Any, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(objective_module, "_AT_ONCE", at_once)
    rng = np.random.default_rng(9)
    records = Records.of((rng.standard_normal((60, 3)) * 3).astype(dtype), rng.integers(2, size=60) * 1.0)
    grouped = Grouped.of(records, rng.integers(9, size=60))
    statistic = PerPerson(RecordGradient(OBJECTIVE))
    for units in (grouped, grouped.take(np.array([4])), grouped.take(np.array([], dtype=np.int64))):
        rows = statistic(units, {"w": W})
        for radius in (0.0, 0.3, 1e6):
            total = statistic.clipped_sum(units, {"w": W}, radius, np.float64)
            np.testing.assert_allclose(total, clip_rows(rows, radius).sum(axis=0), rtol=1e-6, atol=1e-14)


def test_parts_hold_whole_persons_in_order() -> None:
    grouped = Grouped.of(Records.of(X, Y), np.array([1, 1, 1, 2, 3, 3, 4]))
    for most in range(1, 9):
        parts = list(grouped.parts(most))
        assert all(len(part.records) <= max(most, 3) and len(part) for part in parts)
        assert np.concatenate([part.records.X for part in parts]).tolist() == X.tolist()
        assert np.concatenate([np.diff(part.starts) for part in parts]).tolist() == [3, 1, 2, 1]
        if most < 3:
            assert all(len(part) == 1 or len(part.records) <= most for part in parts)


def test_a_record_that_a_statistic_drops_gives_no_person_the_row_of_another() -> None:
    def drops(units: Records, at: Any) -> Array:
        return units.X[units.X[:, 0] < 5]

    values = X.copy()
    values[3, 0] = 9.0
    with pytest.raises(ParameterError, match="one row per record"):
        PerPerson(drops)(Grouped.of(Records.of(values, Y), PERSONS), {})


def test_no_persons_give_no_rows() -> None:
    nobody = Grouped.of(Records.of(X, Y), PERSONS).take(np.zeros(0, dtype=np.int64))
    assert PerPerson(RecordGradient(OBJECTIVE))(nobody, {"w": W}).shape == (0, 3)


def test_the_statistic_is_the_gradient_and_its_fused_sum() -> None:
    records, statistic = Records.of(X, Y), RecordGradient(OBJECTIVE)
    assert statistic(records, {"w": W}).tolist() == OBJECTIVE.gradients(W, records).tolist()
    fused = statistic.clipped_sum(records, {"w": W}, 0.5, np.float64)
    np.testing.assert_allclose(fused, clip_rows(statistic(records, {"w": W}), 0.5).sum(axis=0), rtol=1e-12)


def exact_norm(slope: Array, x: Array) -> float:
    """The square of the norm of the gradient slope x, in exact arithmetic, over the square of 1/3."""
    squares = sum(Fraction(float(a)) ** 2 for a in np.atleast_1d(slope))
    return float(squares * sum(Fraction(float(b)) ** 2 for b in x) * 9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("outputs", [1, 3])
def test_clipped_gradients_are_inside_the_ball_in_exact_arithmetic(
    dtype: type[np.floating], outputs: int
) -> None:
    rng = np.random.default_rng(8)
    records = Records.of(rng.standard_normal((400, 5)).astype(dtype), np.zeros(400))
    shape = (400,) if outputs == 1 else (400, outputs)
    slopes = (rng.standard_normal(shape) * 10).astype(dtype)
    clipped = clip_slopes(slopes, records.norms, 1 / 3)
    assert clipped.dtype == dtype
    norms = [exact_norm(s, x) for s, x in zip(clipped, records.X, strict=True)]
    assert max(norms) <= 1
    assert max(norms) >= 1 - 1e-6  # and not far inside


@pytest.mark.parametrize("slope", [np.nan, np.inf, 1e308])
def test_a_slope_that_is_not_finite_counts_as_zero(slope: float) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        clipped = clip_slopes(np.array([slope, 2.0]), np.array([1e10, 1.0]), 1.0)
        both = clip_slopes(np.array([[slope, 1.0], [0.0, 0.5]]), np.array([1e10, 1.0]), 1.0)
    assert clipped[0] == 0
    assert clipped[1] == pytest.approx(1.0)
    assert both.tolist() == [[0.0, 0.0], [0.0, 0.5]]


@pytest.mark.parametrize("w", [None, np.zeros(2), np.zeros((3, 1))])
def test_a_point_of_another_shape_is_refused(w: Array | None) -> None:
    at = {} if w is None else {"w": w}
    for statistic in (RecordGradient(OBJECTIVE), PerPerson(RecordGradient(OBJECTIVE))):
        with pytest.raises(ParameterError, match=r"the point 'w' must have shape \(3,\)"):
            statistic(Grouped.of(Records.of(X, Y), PERSONS), at)


def test_shapes_and_dtypes_are_checked() -> None:
    with pytest.raises(DataError, match=r"X must have shape \(n, d\) and y \(n,\), got \(7, 3\) and \(6,\)"):
        Records.of(X, Y[:6])
    with pytest.raises(DataError, match="X must have shape"):
        Records.of(X[0], Y[:3])
    with pytest.raises(DataError, match="X must be float32 or float64, got int64"):
        Records.of(X.astype(np.int64), Y)
    with pytest.raises(DataError, match=r"persons must have one id per record \(7\), got shape \(6,\)"):
        Grouped.of(Records.of(X, Y), PERSONS[:6])


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_extreme_slopes_and_rows_stay_in_the_ball(kind: Any) -> None:
    """Subnormal factors and slopes are rounded coarsely; beside long rows that would leave the ball."""
    rng, radius = simulated(1, "extreme"), 2.0**-100
    largest, least = (250, -300) if kind is np.float64 else (38, -38)
    norms = 10.0 ** rng.uniform(-20, 300, 5000)
    slopes = (10.0 ** rng.uniform(least, largest, 5000) * rng.choice([-1, 1], 5000)).astype(kind)
    with np.errstate(over="ignore"):
        clipped = clip_slopes(slopes, norms, radius)
    assert clipped.dtype == kind
    limit = Fraction(radius)
    assert all(
        abs(Fraction(float(slope))) * Fraction(float(norm)) <= limit
        for slope, norm in zip(clipped, norms, strict=True)
    )
    assert (clipped != 0).sum() > 100


def test_sums_of_rows_count_one_that_is_not_finite_as_zero() -> None:
    """Or the sum of a whole batch is NaN, and all of it is computed anew, row by row, because of one unit."""
    dim, good = 3, np.array([[0.3, 0.1, 0.0], [3.0, 4.0, 0.0]])

    def rows(units: Records, at: Mapping[str, Array]) -> Array:
        return np.where(units.X > 1e300, np.inf, units.X)

    whole = np.vstack([good, [[1e305, 0.0, 1.0]]])
    expected = good[0] + good[1] / 5
    persons = Grouped.of(Records.of(whole, np.zeros(3)), np.arange(3))
    found = PerPerson(rows).clipped_sum(persons, {}, 1.0, np.float64)
    np.testing.assert_allclose(found, expected, rtol=1e-9)

    far = Records.of(np.vstack([good, [[1.7e308, 0.0, 0.0]]]), np.zeros(3))
    w = np.array([-1.7e308, 0.0, 0.0])
    objective = DistanceObjective(size=dim, lipschitz=math.inf, smoothness=1.0)
    with np.errstate(over="ignore", invalid="ignore"):
        assert not objective.clipped_sum(w, far, 1.0, np.float64).any()  # all rows are longer than 1e270

    class Own:
        size = dim

        def gradients(self, w: Array, records: Records) -> Array:
            return rows(records, {}) + w

    change = RecordDifference(cast(Any, Own()))
    at = {"w": np.zeros(dim), "previous": np.full(dim, 0.5)}
    records = Records.of(whole, np.zeros(3))
    expected = np.full(dim, -1.0)  # of two records; of the third it is infinity less infinity
    np.testing.assert_allclose(change.clipped_sum(records, at, 10.0, np.float64), expected, rtol=1e-9)
