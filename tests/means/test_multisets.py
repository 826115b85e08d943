"""Multisets as numbers: the bits of the chapter, and every multiset read back."""

from __future__ import annotations

import math
from itertools import combinations_with_replacement

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.means import multiset_bits, read_multiset, write_multiset


@pytest.mark.parametrize(
    ("count", "bits", "wanted"),
    [(2, 15, 30), (10, 15, 129), (100, 15, 976), (10, 4, 22), (100, 4, 62), (1, 15, 15)],
)
def test_bits(count: int, bits: int, wanted: int) -> None:
    assert multiset_bits(count, 2**bits) == wanted


@pytest.mark.parametrize(("count", "alphabet"), [(0, 3), (1, 1), (3, 1), (1, 5), (3, 4), (5, 3)])
def test_multisets_are_numbered_without_gaps(count: int, alphabet: int) -> None:
    numbers = {
        write_multiset(symbols, alphabet): list(symbols)
        for symbols in combinations_with_replacement(range(alphabet), count)
    }
    assert sorted(numbers) == list(range(math.comb(count + alphabet - 1, count)))
    assert all(read_multiset(number, count, alphabet) == symbols for number, symbols in numbers.items())


def test_large_ones_come_back_whatever_their_order() -> None:
    symbols = np.random.default_rng(0).integers(0, 2**15, 100).tolist()
    number = write_multiset(symbols, 2**15)
    assert number.bit_length() <= multiset_bits(100, 2**15)
    assert read_multiset(number, 100, 2**15) == sorted(symbols)
    assert write_multiset(symbols[::-1], 2**15) == number


def test_rejects() -> None:
    with pytest.raises(ParameterError, match="symbols must be from 0 to 3"):
        write_multiset([0, 4], 4)
    with pytest.raises(ParameterError, match="number must be"):
        read_multiset(10, 2, 4)
    with pytest.raises(ParameterError, match="alphabet"):
        multiset_bits(2, 0)
