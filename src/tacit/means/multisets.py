"""Symbols without their order, in as few bits as there are multisets: for a party with several messages.

Only the link to the shuffler may be coded so: it takes the symbols apart again before it mixes those of all.
Source: Girgis (2023), Section 4.3, Remark on the histogram of s messages.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import partial

from tacit.errors import ParameterError, check_count

__all__ = ["multiset_bits", "read_multiset", "write_multiset"]


def multiset_bits(count: int, alphabet: int) -> int:
    """Return ceil(log2 binom(s + B - 1, s)), exactly: the bits of s symbols of B values without their order.

    Args:
        count: s, >= 0.
        alphabet: B, >= 1.

    Raises:
        ParameterError: A number out of its range.

    Example:
        >>> multiset_bits(10, 2**15), 10 * 15
        (129, 150)
    """
    check_count("count", count, low=0)
    check_count("alphabet", alphabet)
    return (math.comb(count + alphabet - 1, count) - 1).bit_length()


def write_multiset(symbols: Sequence[int], alphabet: int) -> int:
    """Return the number of a multiset, below binom(s + B - 1, s).

    Sorted symbols, each moved by its place, are a set, which the combinatorial number system counts.

    Args:
        symbols: Each from 0 to alphabet - 1, in any order.
        alphabet: B.

    Raises:
        ParameterError: A symbol that is not in the alphabet.
    """
    check_count("alphabet", alphabet)
    ordered = sorted(int(symbol) for symbol in symbols)
    if ordered and not 0 <= ordered[0] <= ordered[-1] < alphabet:
        raise ParameterError(f"symbols must be from 0 to {alphabet - 1}, got {ordered[0]} to {ordered[-1]}.")
    return sum(math.comb(symbol + place, place + 1) for place, symbol in enumerate(ordered))


def read_multiset(number: int, count: int, alphabet: int) -> list[int]:
    """Return the symbols of a multiset, in order, from what `write_multiset` returned.

    Args:
        number: Of the multiset.
        count: s.
        alphabet: B.

    Raises:
        ParameterError: No multiset has that number.
    """
    check_count("count", count, low=0)
    check_count("alphabet", alphabet)
    if not 0 <= number < math.comb(count + alphabet - 1, count):
        raise ParameterError(
            f"number must be one of a multiset of {count} symbols of {alphabet}, got {number}."
        )
    found = []
    for place in range(count - 1, -1, -1):
        moved = bisect_right(range(alphabet + place), number, key=partial(_sets, place + 1)) - 1
        number -= _sets(place + 1, moved)
        found.append(moved - place)
    return found[::-1]


def _sets(size: int, values: int) -> int:
    """Return how many sets of that size there are of so many values."""
    return math.comb(values, size)
