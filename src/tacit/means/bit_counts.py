"""Multisets of bits: how many ones stand among so many symbols, and these bits in sorted order.

Of the one-bit messages of a party that a shuffler mixes, only the number of ones is left. Sorted, ones first,
the bits are a function of that number: whoever sees them learns as much as from any permutation of them.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tacit.errors import ParameterError
from tacit.numerics import Array, IntArray

__all__ = ["read_ones", "row_bytes", "write_ones"]

_WORD_BITS = 64


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
    if octets.shape[1] % 8:
        padded = np.zeros((count, 8 * (octets.shape[1] // 8 + 1)), dtype=np.uint8)
        padded[:, : octets.shape[1]] = octets
        octets = padded
    words = octets.view(np.uint64)
    filled = np.bitwise_count(words)
    ones = filled.sum(axis=1, dtype=np.uint32).astype(np.int64)
    # Words full of ones, the one where they end, and empty words: by their numbers of ones, and of that word
    # bit by bit.
    full, left = np.divmod(ones, _WORD_BITS)
    (some,) = np.nonzero(left)
    last = words[some, full[some]].view(">u8")
    ends = ~np.uint64(0) << (_WORD_BITS - left[some]).astype(np.uint64)
    ordered = np.array_equal(filled, _filled(full, left, words.shape[1])) and np.array_equal(last, ends)
    if not ordered or (ones.size and ones.max() > symbols):
        raise ParameterError("the bits of a count must be sorted, ones first, with zero bits behind them.")
    return np.asarray(ones)


def _sorted_bits(ones: IntArray, symbols: int) -> Array:
    """Return the bits behind each count as bytes, shape (m, row_bytes(symbols))."""
    full, left = np.divmod(ones, 8)
    octets = _runs(full, row_bytes(symbols), 255)
    (some,) = np.nonzero(left)
    octets[some, full[some]] = 256 - (256 >> left[some])
    return octets


def _filled(full: IntArray, left: IntArray, words: int) -> Array:
    """Return how many ones are in each word of sorted bits: full ones, then what is left; (m, words)."""
    filled = _runs(full, words, _WORD_BITS)
    (some,) = np.nonzero(left)
    filled[some, full[some]] = left[some]
    return filled


def _runs(lengths: IntArray, size: int, entry: int) -> Array:
    """Return rows that begin with so many entries and end in zeros, shape (m, size), uint8."""
    return np.asarray(_pieces(size, entry)[size - lengths])


@lru_cache(maxsize=8)
def _pieces(size: int, entry: int) -> Array:
    """Return all such rows, shape (size + 1, size), the longest first: pieces of one pattern."""
    pattern = np.zeros(2 * size, dtype=np.uint8)
    pattern[:size] = entry
    return np.lib.stride_tricks.sliding_window_view(pattern, size)
