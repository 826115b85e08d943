"""Walsh-Hadamard matrices in Sylvester order and the fast transform.

The matrix has the entries H[a, b] = (-1)^popcount(a & b); it is symmetric, H H = dim * I, and nothing here
scales it. Sylvester order, not order of sign changes: rows multiply as H[a] * H[b] = H[a ^ b].

The transform works on H_(ab) = H_a (x) H_b: axis by axis it multiplies by small Hadamard matrices through
BLAS, which does more additions than the butterfly of log2(dim) stages, but keeps them in registers, and reads
long vectors from memory twice only. The sizes of the pieces are measured (benchmarks/transforms.py).
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_choice, check_count
from tacit.numerics.arrays import Array, IntArray, as_floats

__all__ = [
    "MAX_TRANSFORM_DIM",
    "fwht",
    "hadamard_entries",
    "hadamard_matrix",
    "next_power_of_two",
]

MAX_TRANSFORM_DIM = 2**24
"""Longest vector that `fwht` transforms."""


def fwht(x: npt.ArrayLike, *, out: Array | None = None) -> Array:
    """Multiply by the Hadamard matrix in Sylvester order, along the last axis, without scaling.

    Args:
        x: Shape (..., dim), dim a power of two up to 2**24. Floating point or whole numbers.
        out: Where to write, of the shape of `x` and the dtype of the result. `out=x` works in place.

    Returns:
        Shape (..., dim), `out` where it is given; `fwht(fwht(x)) == dim * x`. float32 stays float32, other
        floating point becomes float64. Whole numbers and booleans give exact sums, int64. A row with a NaN or
        an infinity has no finite entry afterwards; no other row notices: on one machine, the bits of a row
        depend on this row alone.

    Raises:
        ParameterError: `x` is a number, its last axis is not a power of two or is longer than 2**24, `out`
            has another shape or dtype or is read-only, or sums of whole numbers might exceed int64.

    Cost:
        O(dim log dim) time a row; work space of at most 2**17 numbers.

    Example:
        >>> fwht([1, 2, 3, 4]).tolist()
        [10, -2, -4, 0]
        >>> signal = np.array([[1.0, 0.0], [0.5, 0.5]], dtype=np.float32)
        >>> fwht(signal, out=signal).tolist()
        [[1.0, 1.0], [1.0, 0.0]]
    """
    values = np.asarray(x)
    if values.ndim == 0:
        raise ParameterError("x must have at least one axis, the coordinates; got a number.")
    _check_power("the last axis of x", values.shape[-1], high=MAX_TRANSFORM_DIM)
    whole = values.dtype.kind in "biu"
    values = _as_int64(values) if whole else as_floats("x", values)
    _check_out(out, values)
    source = np.ascontiguousarray(values)
    direct = out is not None and out.flags.c_contiguous and (_is_same(out, source) or not _meet(out, source))
    result = out if out is not None and direct else np.empty_like(source)
    dim = source.shape[-1]
    if whole:
        _transform_integers(source.reshape(-1, dim), result.reshape(-1, dim))
    else:
        _transform(source.reshape(-1, dim), result.reshape(-1, dim))
    if out is None or direct:
        return result
    out[...] = result
    return out


def hadamard_entries(rows: npt.ArrayLike, columns: npt.ArrayLike) -> npt.NDArray[np.int8]:
    """Entries (-1)^popcount(row & column), without the matrix.

    Args:
        rows: Whole numbers >= 0, any shape.
        columns: Whole numbers >= 0, of a shape that broadcasts with `rows`.

    Returns:
        The broadcast shape, entries +1 and -1. The same in every dimension that has the row and the column.

    Raises:
        ParameterError: an index is negative or not whole, or the shapes do not broadcast.

    Example:
        >>> hadamard_entries([0, 1, 2, 3], 3).tolist()
        [1, -1, -1, 1]
    """
    a, b = _as_indices("rows", rows), _as_indices("columns", columns)
    try:
        odd = np.bitwise_count(a & b) & np.uint8(1)
    except ValueError as error:
        raise ParameterError(
            f"rows and columns must broadcast, got shapes {a.shape} and {b.shape}."
        ) from error
    return np.asarray(1 - 2 * odd.astype(np.int8), dtype=np.int8)


def hadamard_matrix(dim: int, *, dtype: str = "float64") -> Array:
    """The dense matrix, for small dimensions.

    Args:
        dim: Power of two up to 4096.
        dtype: "float64", "float32", "int64" or "int8".

    Returns:
        Shape (dim, dim), entries +1 and -1; symmetric, and its own inverse times `dim`.

    Raises:
        ParameterError: `dim` is not a power of two or above 4096 (use `fwht`), or another dtype.

    Example:
        >>> hadamard_matrix(2).tolist()
        [[1.0, 1.0], [1.0, -1.0]]
    """
    _check_power("dim", dim, high=4096)
    check_choice("dtype", dtype, ("float64", "float32", "int64", "int8"))
    return hadamard_entries(np.arange(dim)[:, None], np.arange(dim)).astype(dtype)


def next_power_of_two(n: int) -> int:
    """The least power of two that is at least `n`.

    Args:
        n: Whole number >= 1.

    Raises:
        ParameterError: `n` is not a whole number >= 1.

    Example:
        >>> [next_power_of_two(n) for n in (1, 2, 3, 1000)]
        [1, 2, 4, 1024]
    """
    check_count("n", n)
    return 1 << (int(n) - 1).bit_length()


# Measured with OpenBLAS on a processor with 1 MiB of cache per core, both dtypes, 2**4 to 2**24.
_SLAB = 14  # log2 of the longest stretch that is transformed in one go
_WORK = 16  # log2 of the numbers in one of the two work buffers
_PRODUCT = 2**17  # multiplications in one product; OpenBLAS starts threads above 2**18
_EXACT = 2**53  # float64 adds whole numbers up to this size without rounding


def _transform(source: Array, target: Array) -> None:
    """Transform contiguous floating-point rows, shape (n, dim); `target` may be `source`."""
    dim = source.shape[-1]
    bits = dim.bit_length() - 1
    if bits <= 3:
        _butterfly(source, target)
        return
    # Stretches of a row first; then, where a row has several, the axis across them.
    high = max(4, bits - _SLAB) if bits > _SLAB else 0
    length, across = 1 << (bits - high), 1 << high
    spare = np.empty((2, min(1 << _WORK, max(source.size, 1))), dtype=source.dtype)
    with np.errstate(invalid="ignore", over="ignore"):  # infinite entries are an answer, not an error
        _along(source.reshape(-1, length), target.reshape(-1, length), spare)
        if across > 1:
            _across(target.reshape(-1, across, length), spare)


def _along(source: Array, target: Array, spare: Array) -> None:
    """Transform rows, shape (n, length) with 16 <= length <= 2**_SLAB, through the work buffers."""
    n, length = source.shape
    factors = _factors(length.bit_length() - 1)
    step = (1 << _WORK) // length
    for start in range(0, n, step):
        values, end = source[start : start + step], target[start : start + step]
        count = len(values)
        right = 1
        for i, factor in enumerate(factors):
            # Alternating buffers, and the last product straight into the target: `values` is never written.
            into = end if i == len(factors) - 1 else spare[i % 2, : count * length]
            _multiply(factor, values, into, right=right)
            values, right = into, right * factor


def _across(blocks: Array, spare: Array) -> None:
    """Transform the middle axis of blocks, shape (n, across, length), in place, some columns at a time."""
    _, across, length = blocks.shape
    factors = _factors(across.bit_length() - 1)
    width = min(length, (1 << _WORK) // across)
    for block in blocks:
        for start in range(0, length, width):
            columns = block[:, start : start + width]
            values, into = spare[:, : across * width]
            values.reshape(across, width)[...] = columns
            right = width
            for factor in factors:
                _multiply(factor, values, into, right=right)
                values, into, right = into, values, right * factor
            columns[...] = values.reshape(across, width)


def _multiply(factor: int, values: Array, into: Array, *, right: int) -> None:
    """Multiply the middle axis of contiguous values, shape (any, factor, right), by the matrix of its size.

    A stack of small products of one shape, never one tall product. BLAS may round the rows of a product by
    their position, and then a row more or less would move the others; and it would wake its threads, whose
    meeting costs more than they save, a thousandfold on a busy machine.
    """
    matrix = _block(factor, values.dtype.char)
    width = _PRODUCT // factor**2
    if right == 1:
        tall = min(width, values.shape[-1] // factor)
        np.matmul(values.reshape(-1, tall, factor), matrix, out=into.reshape(-1, tall, factor))
    else:
        shape = (-1, factor, max(1, right // width), min(right, width))
        np.matmul(matrix, values.reshape(shape).swapaxes(1, 2), out=into.reshape(shape).swapaxes(1, 2))


def _factors(bits: int) -> list[int]:
    """Two or more nearly equal powers of two, up to 32, whose product is 2**bits (one, if it is 16)."""
    if bits == 4:
        return [4, 4]
    parts = -(-bits // (5 if bits <= 10 else 4))
    small, larger = divmod(bits, max(parts, 2))
    return [1 << (small + (i < larger)) for i in range(max(parts, 2))]


@functools.cache
def _block(dim: int, kind: str) -> Array:
    """A small Hadamard matrix, shared and therefore read-only."""
    matrix = hadamard_matrix(dim).astype(kind)
    matrix.setflags(write=False)
    return matrix


def _butterfly(source: Array, target: Array) -> None:
    """Transform contiguous rows by the textbook's additions; for tiny dimensions, and exact for integers."""
    if target is not source:
        target[...] = source
    half = 1
    with np.errstate(invalid="ignore", over="ignore"):
        while half < target.shape[-1]:
            pairs = target.reshape(-1, target.shape[-1] // (2 * half), 2, half)
            left, right = pairs[:, :, 0], pairs[:, :, 1]
            total = left + right
            np.subtract(left, right, out=right)
            left[...] = total
            half *= 2


def _transform_integers(source: IntArray, target: IntArray) -> None:
    """Transform contiguous rows of int64 exactly; `target` may be `source`."""
    peak = max(int(source.max(initial=0)), -int(source.min(initial=0)))
    bound = peak * source.shape[-1]  # of every sum on the way
    if bound >= 2**63:
        raise ParameterError("x must be so small that dim * max |x| < 2**63, or sums might exceed int64.")
    if bound > _EXACT:
        _butterfly(source, target)
        return
    floats = source.astype(np.float64)
    _transform(floats, floats)
    target[...] = floats


def _as_int64(values: Array) -> IntArray:
    """Whole numbers and booleans as int64."""
    if values.dtype == np.uint64 and values.size and int(values.max()) >= 2**63:
        raise ParameterError("x must fit int64; an entry of its dtype uint64 is too large.")
    return values.astype(np.int64, copy=False)


def _as_indices(name: str, values: npt.ArrayLike) -> IntArray:
    """Whole numbers >= 0 as int64."""
    array = np.asarray(values)
    if array.size == 0 and not isinstance(values, np.ndarray):
        array = array.astype(np.int64)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"{name} must hold whole numbers, got dtype {array.dtype}.")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < 2**63:
        raise ParameterError(f"{name} must be from 0 to 2**63 - 1; at least one lies outside.")
    return array.astype(np.int64, copy=False)


def _check_power(name: str, value: int, *, high: int = 2**62) -> None:
    """Refuse anything but a power of two up to `high`."""
    check_count(name, value, high=high)
    if value & (value - 1):
        raise ParameterError(
            f"{name} must be a power of two, got {value}; pad with zeros to {next_power_of_two(value)}."
        )


def _check_out(out: Array | None, values: Array) -> None:
    """Refuse a place for the result that cannot hold it."""
    if out is None:
        return
    if out.shape != values.shape or out.dtype != values.dtype:
        raise ParameterError(
            f"out must have shape {values.shape} and dtype {values.dtype}, got {out.shape} and {out.dtype}."
        )
    if not out.flags.writeable:
        raise ParameterError("out must be writeable, got a read-only array.")


def _is_same(a: Array, b: Array) -> bool:
    """Whether two contiguous arrays of one shape are the same memory."""
    return bool(a.__array_interface__["data"][0] == b.__array_interface__["data"][0])


def _meet(a: Array, b: Array) -> bool:
    """Whether two arrays may overlap."""
    return bool(np.may_share_memory(a, b))
