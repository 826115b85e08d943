"""Predictions and weighted sums of rows, such that no row has a say in how another one is rounded.

A matrix product takes rows in groups, and the rows of the last, incomplete group go through other code. At a
hostile point, where a prediction is all rounding, that turns one row more into other gradients of many rows.
So a product with one column is taken row by row; with several, in blocks of one number of rows, the last one
filled up with zeros, once it was tried that all places of such a block are alike. Only sums over rows, whose
rounding is bounded in any order, are left to a matrix product of any shape (docs/theory/sums.md).
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

import numpy as np
from threadpoolctl import ThreadpoolController

from tacit.numerics.arrays import Array

__all__ = ["row_products", "weighted_sum"]

_CACHE_LINE = 64
_ROWS = 16  # of a product with several columns
_LONGEST_DOT = 2**13  # OpenBLAS hands longer ones to as many threads as there are
_BLOCK = 2**16  # numbers that are added up at once: they stay in the cache
_FEWEST = {np.float32: 512, np.float64: 128}  # rows of a block


def row_products(rows: Array, columns: Array) -> Array:
    """Multiply rows with columns; each product depends on its row and its column only, to the last bit.

    Args:
        rows: Shape (n, d), C-contiguous, float32 or float64.
        columns: Shape (d,), or (d, k); of the same dtype.

    Returns:
        Shape (n,), or (n, k): as `rows @ columns`, wherever a row stands, in memory and among the others.

    Example:
        >>> row_products(np.eye(2), np.array([3.0, 4.0])).tolist()
        [3.0, 4.0]
    """
    if not (rows.flags.c_contiguous and rows.flags.aligned):
        rows = np.require(rows, requirements=["C", "A"])
    if columns.ndim == 2 and columns.shape[1] > 1 and _alike(*columns.shape, rows.itemsize, _threads()):
        return _in_blocks(rows, columns)
    each = np.ascontiguousarray(columns.T)
    if columns.ndim == 2:
        rows = rows[:, None]
    products = _dots(rows[..., :_LONGEST_DOT], each[..., :_LONGEST_DOT])
    for at in range(_LONGEST_DOT, len(columns), _LONGEST_DOT):
        part = slice(at, at + _LONGEST_DOT)
        products = products + _dots(rows[..., part], each[..., part])
    return products


def weighted_sum(rows: Array, weights: Array, *, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Add up rows times their weights, in float64 from block to block.

    Args:
        rows: Shape (n, d), float32 or float64.
        weights: Shape (n,), or (n, k); of the same dtype.
        dtype: float32 or float64: in which float32 rows are added up within a block of some hundred.

    Returns:
        Shape (d,), or (d, k), float64. But for `dtype` float32, an entry errs by at most n u / (1 - n u)
        times the sum of sizes of what is added, u = 2^-53, in whatever order that is.

    Example:
        >>> weighted_sum(np.eye(2, dtype=np.float32), np.array([3, 4], dtype=np.float32)).tolist()
        [3.0, 4.0]
    """
    # This way round, a product for few columns copies the weights and not the rows.
    across = weights.T
    if rows.dtype == np.float64:
        dtype = np.float64
        if weights.ndim == 1:
            return np.asarray(across @ rows)
    size = max(_FEWEST[dtype], _BLOCK // max(rows.shape[1], 1))
    if len(rows) <= size and rows.dtype == dtype:
        return np.asarray(across @ rows, dtype=np.float64).T
    across, total = across.astype(dtype), np.zeros((*weights.shape[1:], rows.shape[1]))
    block = np.empty((min(size, len(rows)), rows.shape[1]), dtype=dtype)  # fresh ones take longer to fill
    for start in range(0, len(rows), size):
        part = rows[start : start + size]
        if rows.dtype != dtype:
            block[: len(part)] = part
            part = block[: len(part)]
        total += across[..., start : start + size] @ part
    return total.T


def _in_blocks(rows: Array, columns: Array) -> Array:
    """Return rows times columns, in blocks that are all the same call of the same library."""
    (n, d), columns = rows.shape, _at_boundary(columns)
    k, blocks = columns.shape[1], n // _ROWS
    whole, found = blocks * _ROWS, np.empty((n, k), dtype=rows.dtype)
    np.matmul(rows[:whole].reshape(blocks, _ROWS, d), columns, out=found[:whole].reshape(blocks, _ROWS, k))
    if whole < n:
        last = np.zeros((_ROWS, d), dtype=rows.dtype)
        last[: n - whole] = rows[whole:]
        found[whole:] = np.matmul(last, columns)[: n - whole]
    return found


def _at_boundary(numbers: Array, *, after: int = 0) -> Array:
    """Return a copy that begins so many numbers after a boundary of the cache."""
    per_line = _CACHE_LINE // numbers.itemsize
    room = np.empty(numbers.size + 2 * per_line, dtype=numbers.dtype)
    start = -(room.ctypes.data // numbers.itemsize) % per_line + after
    copied = room[start : start + numbers.size].reshape(numbers.shape)
    copied[...] = numbers
    return copied


@lru_cache(maxsize=256)
def _alike(d: int, k: int, size: int, threads: tuple[int, ...]) -> bool:  # noqa: ARG001 - products go by it
    """Whether equal rows have equal products to the last bit, at all places of a block and of memory.

    Which additions a product makes, and in which order, goes by its shape and not by its numbers. Vectors
    whose product is zero but for rounding show another order.
    """
    numbers, others = _all_rounding(d, size)
    columns = _at_boundary(np.repeat(others[:, None], k, axis=1))
    block = np.repeat(numbers[None], _ROWS, axis=0)
    found = [np.matmul(_at_boundary(block, after=at), columns) for at in range(_CACHE_LINE // size)]
    return all(bool((each == found[0][0]).all()) for each in found)


def _threads() -> tuple[int, ...]:
    """Return how many threads a product may take."""
    return tuple(library.get_num_threads() for library in _libraries())


@cache
def _libraries() -> list[Any]:
    """Return the libraries of linear algebra that are loaded."""
    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _dots(rows: Array, columns: Array) -> Array:
    """Return one dot product each, over the last axis."""
    if _any_address(columns.shape[-1], columns.itemsize):
        return np.asarray(np.vecdot(rows, columns))
    # NumPy's own loop: one for each entry, whose order of additions depends on its length only.
    return np.asarray(np.einsum("...d,...d->...", rows, columns))


@lru_cache(maxsize=256)
def _any_address(length: int, size: int) -> bool:
    """Whether a dot product of so many floats of such a size is the same bits wherever in memory they begin.

    No standard promises that of BLAS. Vectors whose product is zero but for rounding show another order.
    """
    places = _CACHE_LINE // size
    numbers, others = _all_rounding(length, size)
    # Each row begins one number further from a boundary of the cache.
    stride = -(-length // places) * places + 1
    at_all = np.zeros((2, places, stride), dtype=numbers.dtype)[..., :length]
    at_all[0], at_all[1] = numbers, others
    found = np.vecdot(at_all[0, :, None], at_all[1, None])
    return bool((found == found[0, 0]).all())


def _all_rounding(length: int, size: int) -> tuple[Array, Array]:
    """Return two vectors of floats of such a size, whose product is zero but for rounding."""
    dtype = np.dtype(f"f{size}")
    numbers = np.sin(np.arange(1.0, length + 1) ** 2).astype(dtype)
    others = np.cos(np.arange(1.0, length + 1) ** 3).astype(dtype)
    half = length // 2
    numbers[length - half :], others[length - half :] = -numbers[:half][::-1], others[:half][::-1]
    return numbers, others
