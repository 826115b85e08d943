"""Multisets of bits: how many ones stand among so many symbols, and these bits in sorted order.

Of the one-bit messages of a party that a shuffler mixes, only the number of ones is left. Sorted, ones first,
the bits are a function of that number: whoever sees them learns as much as from any permutation of them.
"""

from __future__ import annotations

import numpy as np

from tacit.errors import ParameterError
from tacit.numerics import Array, IntArray

__all__ = ["read_ones", "row_bytes", "write_ones"]


def row_bytes(symbols: int) -> int:
    """Return the bytes of so many bits."""
    return (symbols + 7) // 8


def write_ones(ones: IntArray, symbols: int) -> memoryview:
    """Write the bits behind each count, ones first, and zero bits up to a whole byte.

    Args:
        ones: Shape (m,), from 0 to `symbols`.
        symbols: Bits behind each, >= 1.

    Raises:
        ParameterError: A count out of its range.
    """
    if ones.size and not 0 <= ones.min() <= ones.max() <= symbols:
        raise ParameterError(f"a count of ones must be from 0 to the number of symbols, {symbols}.")
    return _sorted_bits(ones, symbols).data


def read_ones(body: memoryview, count: int, symbols: int) -> IntArray:
    """Read what `write_ones` wrote, shape (count,), int64.

    Raises:
        ParameterError: Bits in another order, or padding that is not zero.
    """
    octets = np.frombuffer(body, dtype=np.uint8).reshape(count, row_bytes(symbols))
    words = octets
    if octets.shape[1] % 8:
        words = np.zeros((count, 8 * (octets.shape[1] // 8 + 1)), dtype=np.uint8)
        words[:, : octets.shape[1]] = octets
    ones = np.bitwise_count(words.view(np.uint64)).sum(axis=1, dtype=np.int64)
    if ones.size and (ones.max() > symbols or not np.array_equal(octets, _sorted_bits(ones, symbols))):
        raise ParameterError("the bits of a count must be sorted, ones first, with zero bits behind them.")
    return np.asarray(ones)


def _sorted_bits(ones: IntArray, symbols: int) -> Array:
    """Return the bits behind each count as bytes, shape (m, row_bytes(symbols))."""
    size = row_bytes(symbols)
    full, left = np.divmod(ones, 8)
    # A row is a piece of bytes full of ones and as many empty ones, but for the byte where the ones end.
    pattern = np.zeros(2 * size, dtype=np.uint8)
    pattern[:size] = 255
    octets = np.lib.stride_tricks.sliding_window_view(pattern, size)[size - full]
    (some,) = np.nonzero(left)
    octets[some, full[some]] = 256 - (256 >> left[some])
    return np.asarray(octets)
