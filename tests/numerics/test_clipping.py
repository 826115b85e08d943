"""Clipping holds the radius in exact arithmetic, keeps directions, and never trips over an entry."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tacit.errors import ParameterError
from tacit.numerics import NORM_SLACK, Norm, as_rows, clip_box, clip_rows, row_norms

NORMS: tuple[Norm, ...] = ("l1", "l2", "linf")
ENTRIES: dict[type, Any] = {
    np.float32: st.floats(width=32),
    np.float64: st.floats(),
}  # NaN and infinities too


def exact_power(row: np.ndarray[Any, Any], norm: Norm) -> Fraction:
    """The norm of a row without rounding; for l2 its square."""
    entries = [abs(Fraction(float(x))) for x in row]
    if norm == "linf":
        return max(entries, default=Fraction(0))
    return sum((x if norm == "l1" else x * x for x in entries), Fraction(0))


def holds(row: np.ndarray[Any, Any], norm: Norm, radius: Fraction) -> bool:
    return exact_power(row, norm) <= (radius**2 if norm == "l2" else radius)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data(), radius=st.floats(1e-10, 1e10))
def test_the_radius_holds_in_exact_arithmetic(
    norm: Norm, dtype: type, data: st.DataObject, radius: float
) -> None:
    shape = data.draw(array_shapes(min_dims=2, max_dims=2, max_side=6))
    rows: Any = data.draw(arrays(dtype, shape, elements=ENTRIES[dtype]))
    clipped = clip_rows(rows, radius, norm=norm)
    assert clipped.dtype == dtype
    assert clipped.shape == rows.shape
    for before, after in zip(rows, clipped, strict=True):
        kept = np.array_equal(before, after)
        slack = Fraction(NORM_SLACK) if kept and norm != "linf" else Fraction(0)
        assert holds(after, norm, Fraction(radius) * (1 + slack))
        if np.isfinite(before).all() and holds(before, norm, Fraction(radius) * (1 - Fraction(NORM_SLACK))):
            assert kept
    assert np.array_equal(clip_rows(clipped, radius, norm=norm), clipped)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("dim", [1, 3, 129, 5000])
def test_the_radius_holds_for_long_rows(norm: Norm, dtype: type, dim: int) -> None:
    rows: Any = np.random.default_rng(dim).standard_normal((5, dim)).astype(dtype)
    clipped = clip_rows(rows, 0.1, norm=norm)
    assert all(holds(row, norm, Fraction(0.1)) for row in clipped)
    loss = 1e-6 if dtype is np.float32 else 1e-13
    long = row_norms(rows, norm=norm) > 0.1
    assert np.all(row_norms(clipped, norm=norm)[long] >= 0.1 * (1 - loss))  # and nothing is given away


@pytest.mark.parametrize("norm", NORMS)
@given(rows=arrays(np.float64, (4, 3), elements=st.floats(-1e6, 1e6)), radius=st.floats(1e-3, 1e3))
def test_the_direction_stays(norm: Norm, rows: Any, radius: float) -> None:
    order = {"l1": 1, "l2": 2, "linf": np.inf}[norm]
    size = np.linalg.norm(rows, ord=order, axis=1)
    expected = rows * (radius / np.maximum(size, radius))[:, None]
    np.testing.assert_allclose(clip_rows(rows, radius, norm=norm), expected, rtol=1e-12, atol=1e-300)


def test_rows_on_the_sphere_stay_bit_for_bit() -> None:
    rows = np.vstack([np.eye(4), [[0.6, 0.8, 0.0, 0.0]], np.full((1, 4), -0.5)])
    assert clip_rows(rows, 1.0).tolist() == rows.tolist()
    signs = np.array([[1.0, -1.0, 1.0]])
    assert clip_rows(3 * signs, 1.0, norm="linf").tolist() == signs.tolist()
    assert clip_rows([[-7.0], [0.25]], 1.0).tolist() == [[-1.0], [0.25]]


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_bad_record_counts_as_zero_and_moves_no_other(norm: Norm, bad: float) -> None:
    rows = np.array([[1.0, 2.0], [3.0, bad], [0.1, 0.1], [bad, bad]])
    clipped = clip_rows(rows, 0.5, norm=norm)
    assert not clipped[[1, 3]].any()
    assert clipped[[0, 2]].tolist() == clip_rows(rows[[0, 2]], 0.5, norm=norm).tolist()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("size", [1e308, 1e200, 1e-200, 5e-324])
def test_extreme_records_are_clipped_without_overflow(norm: Norm, size: float) -> None:
    rows = np.array([[size, -size], [size, 0.0]])
    small = clip_rows(rows, 1e-3, norm=norm)
    if size < 1:
        assert small.tolist() == rows.tolist()
    else:
        norms = row_norms(small, norm=norm)
        np.testing.assert_allclose(norms, 1e-3, rtol=1e-13)
        assert np.array_equal(np.sign(small), np.sign(rows))


def test_float32_extremes() -> None:
    rows = np.array([[3e38, 3e38], [1e-45, 0.0]], dtype=np.float32)
    assert clip_rows(rows, 1e39).tolist() == rows.tolist()
    np.testing.assert_allclose(clip_rows(rows, 1.0)[0], np.sqrt(0.5), rtol=1e-6)
    # 0.1 is no float32; the nearest one is above it.
    assert float(clip_rows(np.array([[5.0, 1.0]], dtype=np.float32), 0.1, norm="linf").max()) <= 0.1


def test_radius_zero_and_empty_batches() -> None:
    assert clip_rows([[1.0, -2.0]], 0.0).tolist() == [[0.0, 0.0]]
    assert clip_rows(np.zeros((0, 3)), 1.0).shape == (0, 3)
    assert clip_rows(np.zeros((2, 0)), 1.0).shape == (2, 0)


def test_clipping_leaves_its_argument_alone() -> None:
    rows = np.array([[3.0, 4.0], [0.1, 0.1]])
    clipped = clip_rows(rows, 1.0)
    clipped[:] = 7.0
    assert rows.tolist() == [[3.0, 4.0], [0.1, 0.1]]
    assert clip_rows([[3, 4]], 10).dtype == np.float64


@pytest.mark.parametrize("radius", [-1.0, np.nan, np.inf])
def test_a_bad_radius_is_refused(radius: float) -> None:
    with pytest.raises(ParameterError, match=r"radius must be a finite number >= 0"):
        clip_rows(np.ones((1, 1)), radius)


def test_bad_shapes_dtypes_and_norms_are_refused_without_quoting_data() -> None:
    with pytest.raises(ParameterError, match=r"rows must have shape \(n, d\).*got shape \(3,\)"):
        clip_rows(np.ones(3), 1.0)
    with pytest.raises(ParameterError, match=r"rows must hold real numbers, got dtype <U6\.") as caught:
        clip_rows(np.array([["secret"]]), 1.0)
    assert "secret" not in str(caught.value)
    with pytest.raises(ParameterError, match="dtype complex128"):
        as_rows("X", np.ones((1, 1), dtype=np.complex128))
    with pytest.raises(ParameterError, match="norm must be one of l1, l2, linf, got 'l3'"):
        clip_rows(np.ones((1, 1)), 1.0, norm="l3")  # type: ignore[arg-type]  # the refusal is what is tested


@pytest.mark.parametrize("norm", NORMS)
@given(rows=arrays(np.float64, (3, 4), elements=st.floats(-1e300, 1e300)))
def test_norms_agree_with_exact_arithmetic(norm: Norm, rows: Any) -> None:
    for row, size in zip(rows, row_norms(rows, norm=norm), strict=True):
        exact, found = exact_power(row, norm), Fraction(float(size))
        found = found**2 if norm == "l2" else found
        # Below 1e-300 the rounding of subnormal numbers shows.
        assert abs(found - exact) <= 2 * Fraction(NORM_SLACK) * exact or size < 1e-300


def test_norms_of_a_vector_and_of_bad_rows() -> None:
    assert float(row_norms([3.0, -4.0])) == 5.0
    assert row_norms([3.0, -4.0], norm="l1").shape == ()
    found = row_norms([[np.inf, 1.0], [np.nan, 1.0], [1e308, 1e308], [0.0, 0.0]], norm="l1")
    assert found.tolist()[0] == np.inf
    assert np.isnan(found[1])
    assert found.tolist()[2:] == [np.inf, 0.0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@given(data=st.data())
def test_a_box_holds(dtype: type, data: st.DataObject) -> None:
    rows: Any = data.draw(arrays(dtype, (4, 3), elements=ENTRIES[dtype]))
    low = data.draw(arrays(np.float64, 3, elements=st.floats(-10, 10)))
    high = low + data.draw(arrays(np.float64, 3, elements=st.floats(0.1, 10)))
    clipped = clip_box(rows, lower=low, upper=high)
    assert clipped.dtype == dtype
    assert np.all((clipped.astype(np.float64) >= low) & (clipped.astype(np.float64) <= high))
    inside = np.isfinite(rows).all(axis=1)[:, None] & (rows >= low) & (rows <= high)
    assert np.array_equal(clipped[inside], rows[inside])


def test_a_bad_record_in_a_box_counts_as_zero() -> None:
    rows = np.array([[np.inf, 5.0], [np.nan, 5.0], [3.0, 5.0]])
    assert clip_box(rows, lower=-1.0, upper=6.0).tolist() == [[0.0, 0.0], [0.0, 0.0], [3.0, 5.0]]
    assert clip_box(rows, lower=1.0, upper=6.0).tolist()[0] == [1.0, 1.0]


def test_a_bad_box_is_refused() -> None:
    rows = np.ones((2, 2))
    with pytest.raises(ParameterError, match=r"lower must be <= upper, got lower=2.0, upper=1.0"):
        clip_box(rows, lower=2.0, upper=1.0)
    with pytest.raises(ParameterError, match=r"upper must be finite, got \[1.0, nan\]"):
        clip_box(rows, lower=0.0, upper=[1.0, np.nan])
    with pytest.raises(
        ParameterError, match=r"lower must be a number or have shape \(2,\), got shape \(3,\)"
    ):
        clip_box(rows, lower=np.zeros(3), upper=1.0)
