"""Sequences of maximal period: the table of polynomials, and the flat spectrum."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.numerics import HIGHEST_DEGREE, m_sequence_support, primitive_taps
from tacit.numerics.m_sequences import _is_primitive


def test_known_sequences() -> None:
    assert m_sequence_support(1).tolist() == [0]
    assert m_sequence_support(2).tolist() == [1, 2]
    assert m_sequence_support(3).tolist() == [2, 4, 5, 6]


@pytest.mark.parametrize("degree", range(1, 15))
def test_half_of_the_places_are_a_difference_set(degree: int) -> None:
    period = 2**degree - 1
    places = m_sequence_support(degree)
    assert places.size == 2 ** (degree - 1)
    inside = np.zeros(period)
    inside[places] = 1
    power = np.abs(np.fft.fft(inside)[1:]) ** 2
    np.testing.assert_allclose(power, 2.0 ** (degree - 2), rtol=1e-7)


def test_all_polynomials_of_the_table_are_primitive() -> None:
    for degree in range(1, HIGHEST_DEGREE + 1):
        primitive_taps(degree)


def test_other_polynomials_are_found_out() -> None:
    assert not _is_primitive(4, (2,))  # a square
    assert not _is_primitive(4, (3, 2, 1))  # irreducible, but x has order 5
    assert not _is_primitive(8, (4, 3, 1))  # that of AES: x has order 51
    with pytest.raises(ParameterError, match="degree"):
        m_sequence_support(HIGHEST_DEGREE + 1)
