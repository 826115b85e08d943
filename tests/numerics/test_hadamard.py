"""The fast transform is the matrix, exactly where that is possible, and no row notices another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg

from tacit.errors import ParameterError
from tacit.numerics import fwht, hadamard_entries, hadamard_matrix, next_power_of_two
from tacit.randomness import simulated

Numbers = np.ndarray[Any, Any]
SMALL = [2**k for k in range(11)]
FLOATS = [np.float32, np.float64]
ERROR: dict[Any, float] = {np.float32: 1e-6, np.float64: 1e-14}  # relative to the norm of the transform


def butterfly(x: Numbers) -> Numbers:
    """The textbook's stages, in long double."""
    x, half = x.astype(np.longdouble), 1
    while half < x.shape[-1]:
        pairs = x.reshape(*x.shape[:-1], -1, 2, half)
        left, right = pairs[..., 0, :], pairs[..., 1, :]
        x = np.stack([left + right, left - right], axis=-2).reshape(x.shape)
        half *= 2
    return x


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
@pytest.mark.parametrize("dim", SMALL)
def test_unit_vectors_give_the_matrix(dim: int, dtype: type) -> None:
    result = fwht(np.eye(dim, dtype=dtype))
    assert result.dtype == dtype
    assert np.array_equal(result, linalg.hadamard(dim))


@pytest.mark.parametrize("dim", SMALL)
def test_entries_and_matrix_agree_with_scipy(dim: int) -> None:
    expected, index = linalg.hadamard(dim), np.arange(dim)
    assert np.array_equal(hadamard_matrix(dim), expected)
    assert np.array_equal(hadamard_entries(index[:, None], index), expected)


def test_rows_multiply_by_xor_of_their_numbers() -> None:
    # What tells Sylvester order from all others.
    rows = hadamard_matrix(64, dtype="int8")
    a, b = np.meshgrid(np.arange(64), np.arange(64))
    assert np.array_equal(rows[a] * rows[b], rows[a ^ b])


def test_entries_far_beyond_any_matrix() -> None:
    rows, columns = [2**62 + 1, 2**40, 0], [2**62 + 3, 2**41, 2**62]
    assert hadamard_entries(rows, columns).tolist() == [1, 1, 1]
    assert hadamard_entries(2**62 + 1, 2**62).tolist() == -1
    assert hadamard_entries([], []).tolist() == []


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bits", range(21))
def test_rounding_is_that_of_a_butterfly(bits: int, dtype: type) -> None:
    # Every length takes other pieces: 2**3 | 2**4, 2**10 | 2**11 and 2**14 | 2**15 are where the ways part.
    n = 3 if bits < 18 else 1
    x: Any = simulated(1, "x", bits).standard_normal((n, 2**bits)).astype(dtype)
    result, expected = fwht(x), butterfly(x)
    assert result.dtype == dtype
    scale = np.linalg.norm(x.astype(np.float64), axis=-1, keepdims=True)  # typical size of an entry
    assert np.abs((result - expected) / scale).max() <= 10 * ERROR[dtype]
    assert np.linalg.norm(result - expected.astype(np.float64)) <= ERROR[dtype] * np.linalg.norm(result)
    assert np.linalg.norm(fwht(result) / 2**bits - x) <= 2 * ERROR[dtype] * np.linalg.norm(x)


@pytest.mark.parametrize("bits", [21, 22])
def test_long_vectors(bits: int) -> None:
    # Against single rows of the matrix: a stage skipped or doubled changes most of them.
    x = simulated(2, "x", bits).standard_normal(2**bits)
    result = fwht(x)
    for index in (0, 1, 2**bits - 1, *simulated(2, "rows").integers(2**bits, size=5).tolist()):
        assert abs(result[index] - hadamard_entries(index, np.arange(2**bits)) @ x) <= 1e-9
    assert abs(np.linalg.norm(result) / np.linalg.norm(x) / 2 ** (bits / 2) - 1) <= 1e-13


@pytest.mark.parametrize("shape", [(8,), (5, 1), (3, 64), (2, 3, 32), (2, 1, 3, 16), (0, 4), (2, 0, 128)])
@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
def test_batches_are_their_rows(shape: tuple[int, ...], dtype: type) -> None:
    x: Any = simulated(3, "x").integers(-50, 50, size=shape).astype(dtype)
    result = fwht(x)
    assert result.shape == shape
    assert np.array_equal(result, x @ linalg.hadamard(shape[-1]))  # whole numbers: exact in every dtype


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("bits", [1, 3, 4, 5, 7, 10, 11, 14, 15, 17])
def test_a_row_has_the_same_bits_in_every_batch(bits: int, dtype: type) -> None:
    n = 67 if bits <= 7 else 7
    x: Any = simulated(4, "x", bits).standard_normal((n, 2**bits)).astype(dtype)
    together = fwht(x)
    assert np.array_equal(together[2:], fwht(x[2:]))
    assert np.array_equal(together[::-1], fwht(x[::-1]))
    for row, alone in zip(x, together, strict=True):
        assert np.array_equal(fwht(row), alone)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("bits", [1, 4, 9, 14, 15])
def test_a_bad_row_does_not_spread(bits: int, bad: float) -> None:
    x = simulated(5, "x", bits).standard_normal((9, 2**bits)).astype(np.float32)
    expected = fwht(x)
    x[4, [0, -1]] = bad
    result = fwht(x)
    others = np.arange(9) != 4
    assert np.array_equal(result[others], expected[others])
    if not np.isfinite(bad):
        assert not np.isfinite(result[4]).any()


@pytest.mark.parametrize("bits", [2, 6, 15])
def test_strides_do_not_matter(bits: int) -> None:
    dim = 2**bits
    wide = simulated(6, "x", bits).standard_normal((6, 2 * dim))
    assert np.array_equal(fwht(wide[::2, ::2]), fwht(wide[::2, ::2].copy()))
    assert np.array_equal(fwht(wide[:, ::-2]), fwht(wide[:, ::-2].copy()))
    columns = np.asfortranarray(wide[:, :dim])
    assert np.array_equal(fwht(columns), fwht(columns.copy(order="C")))
    read_only = wide[:, :dim].copy()
    read_only.setflags(write=False)
    assert np.array_equal(fwht(read_only), fwht(columns))


@pytest.mark.parametrize("dtype", [*FLOATS, np.int64])
@pytest.mark.parametrize("bits", [0, 2, 4, 9, 15])
def test_out_and_in_place(bits: int, dtype: type) -> None:
    dim = 2**bits
    source: Any = simulated(7, "x", bits).integers(-99, 99, size=(5, 2 * dim)).astype(dtype)
    x = source[:, :dim].copy()
    kept, expected = x.copy(), x @ linalg.hadamard(dim) if bits < 10 else fwht(x)
    out = np.full_like(x, 77)
    assert fwht(x, out=out) is out
    assert np.array_equal(out, expected)
    assert np.array_equal(x, kept)  # without `out=x`, the argument is left alone
    assert fwht(x, out=x) is x
    assert np.array_equal(x, expected)
    view = source[:, :dim]  # not contiguous, in place
    assert fwht(view, out=view) is view
    assert np.array_equal(view, expected)
    line = np.concatenate([kept.ravel(), np.zeros(dim, dtype=dtype)])
    shifted = line[dim:].reshape(5, dim)  # overlaps its source by four rows
    fwht(line[:-dim].reshape(5, dim), out=shifted)
    assert np.array_equal(shifted, expected)


def test_whole_numbers_are_exact() -> None:
    rng = simulated(8, "x")
    for size in (2**20, 2**52, 2**55):  # through floating point, at its border, beyond it
        x = rng.integers(-size, size, size=(2, 64))
        exact = x.astype(object) @ linalg.hadamard(64).astype(object)
        result = fwht(x)
        assert result.dtype == np.int64
        assert result.tolist() == exact.tolist()
    counts = rng.integers(0, 1000, size=2**16)
    assert np.array_equal(fwht(fwht(counts)), 2**16 * counts)
    assert fwht(np.array([True, True, False, True])).tolist() == [3, -1, 1, 1]
    assert fwht(np.array([200, 100], dtype=np.uint8)).tolist() == [300, 100]
    assert fwht(np.array([2**62, 2**62 - 1], dtype=np.uint64)[:1]).tolist() == [2**62]


@pytest.mark.parametrize(
    "x",
    [
        np.array([2**62, 0]),
        np.array([-(2**63), 0]),
        np.array([-(2**63)]),
        np.array([2**63, 0], dtype=np.uint64),
    ],
)
def test_sums_beyond_int64_are_refused(x: Numbers) -> None:
    with pytest.raises(ParameterError, match="int64"):
        fwht(x)


@given(data=st.data(), bits=st.integers(0, 7))
def test_linear_and_a_scaled_isometry(data: st.DataObject, bits: int) -> None:
    entries = arrays(np.float64, 2**bits, elements=st.floats(-1e3, 1e3))
    x, y, c = data.draw(entries), data.draw(entries), data.draw(st.floats(-10, 10))
    slack = 1e-12 * 2**bits * 1e4
    np.testing.assert_allclose(fwht(c * x + y), c * fwht(x) + fwht(y), rtol=0, atol=slack)
    np.testing.assert_allclose(fwht(x) @ fwht(y), 2**bits * (x @ y), rtol=1e-12, atol=slack * 1e3)
    np.testing.assert_allclose(fwht(fwht(x)), 2**bits * x, rtol=0, atol=slack)


def test_other_dtypes() -> None:
    assert fwht(np.array([1, 2], dtype=np.float16)).dtype == np.float64
    assert fwht(np.array([1, 2], dtype=">f8")).tolist() == [3.0, -1.0]
    assert fwht([1.5, 0.5]).tolist() == [2.0, 1.0]


@pytest.mark.parametrize("n", range(1, 70))
def test_next_power_of_two(n: int) -> None:
    p = next_power_of_two(n)
    assert p in SMALL
    assert n <= p < 2 * n


BAD: list[tuple[Any, str]] = [
    (lambda: fwht(1.0), "at least one axis"),
    (lambda: fwht([]), "last axis of x must be a whole number from 1 to 16777216, got 0"),
    (lambda: fwht(np.ones((4, 6))), "power of two, got 6; pad with zeros to 8"),
    (lambda: fwht(np.broadcast_to(np.int8(0), 2**25)), "from 1 to 16777216"),
    (lambda: fwht(["a", "b"]), "real numbers, got dtype <U1"),
    (lambda: fwht([1j, 0]), "real numbers"),
    (lambda: fwht(np.ones(4), out=np.ones(8)), r"shape \(4,\)"),
    (lambda: fwht(np.ones(4), out=np.ones(4, dtype=np.float32)), "dtype float64"),
    (lambda: fwht(np.ones(4), out=np.broadcast_to(0.0, 4)), "writeable"),
    (lambda: hadamard_matrix(8192), "from 1 to 4096"),
    (lambda: hadamard_matrix(12), "power of two, got 12"),
    (lambda: hadamard_matrix(4, dtype="int4"), "dtype must be one of"),
    (lambda: hadamard_entries(-1, 4), "at least one lies outside"),
    (lambda: hadamard_entries(1.0, 4), "whole numbers, got dtype float64"),
    (lambda: hadamard_entries([1, 2], [1, 2, 3]), "broadcast"),
    (lambda: next_power_of_two(0), "n must be a whole number >= 1"),
]


@pytest.mark.parametrize(("call", "message"), BAD)
def test_bad_input(call: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        call()
