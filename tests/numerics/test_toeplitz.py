"""Banded square roots of prefix sums: inverses, errors, and by brute force how far one unit moves rows."""

from __future__ import annotations

from itertools import combinations, pairwise, product

import numpy as np
import pytest
from scipy import linalg

from tacit.errors import ParameterError
from tacit.numerics import (
    Array,
    inverse_column,
    participation_norm,
    prefix_sum_errors,
    square_root_column,
)


def matrix(column: Array, rounds: int) -> Array:
    """The lower triangular Toeplitz matrix of a column."""
    long = np.concatenate([column, np.zeros(rounds)])[:rounds]
    return np.asarray(linalg.toeplitz(long, np.zeros(rounds)))


def brute_force(column: Array, *, separation: int, rounds: int) -> float:
    """The largest norm over all sets of rounds with that separation, and all signs."""
    C, best = matrix(column, rounds), 0.0
    for many in range(1, -(-rounds // separation) + 1):
        for chosen in combinations(range(rounds), many):
            if all(b - a >= separation for a, b in pairwise(chosen)):
                for signs in product((1.0, -1.0), repeat=many - 1):
                    moved = C[:, chosen] @ np.array([1.0, *signs])
                    best = max(best, float(np.linalg.norm(moved)))
    return best


def test_the_column_is_the_square_root_of_prefix_sums() -> None:
    column = square_root_column(6)
    assert column.tolist() == [1, 0.5, 0.375, 0.3125, 0.2734375, 0.24609375]
    long = square_root_column(50)
    np.testing.assert_allclose(matrix(long, 50) @ matrix(long, 50), np.tril(np.ones((50, 50))), atol=1e-13)


@pytest.mark.parametrize("bands", [1, 2, 7, 40])
def test_the_inverse_is_the_inverse(bands: int) -> None:
    column = square_root_column(bands)
    inverse = inverse_column(column, 40)
    np.testing.assert_allclose(matrix(column, 40) @ matrix(inverse, 40), np.eye(40), atol=1e-13)


@pytest.mark.parametrize("rounds", [7, 8])
@pytest.mark.parametrize("separation", [1, 2, 3, 4, 5, 8, 11])
def test_no_pattern_of_participation_moves_more(separation: int, rounds: int) -> None:
    for bands in range(1, rounds + 1):
        column = square_root_column(bands)
        found = participation_norm(column, separation=separation, rounds=rounds)
        expected = brute_force(column, separation=separation, rounds=rounds)
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_any_column_may_be_as_wide_as_the_separation() -> None:
    column = np.array([1.0, -2.0, 3.0])
    found = participation_norm(column, separation=3, rounds=8)
    np.testing.assert_allclose(found, brute_force(column, separation=3, rounds=8))


@pytest.mark.parametrize("column", [[1.0, -0.5, 0.1], [1.0, 0.2, 0.3]])
def test_wider_ones_must_fall_and_stay_positive(column: list[float]) -> None:
    with pytest.raises(ParameterError, match=r"at most the separation 2 where .* got 3"):
        participation_norm(np.array(column), separation=2, rounds=8)
    # What the rule is for: the pattern that is taken for the worst is not.
    rising = np.array([1.0, 1.0, -1.0])
    start = float(np.linalg.norm(matrix(rising, 8)[:, [0, 2, 4, 6]].sum(axis=1)))
    assert brute_force(rising, separation=2, rounds=8) > 1.2 * start


def test_no_more_bands_than_rounds() -> None:
    with pytest.raises(ParameterError, match="bands must be at most the 5 rounds, got 6"):
        participation_norm(square_root_column(6), separation=10, rounds=5)


@pytest.mark.parametrize("column", [[], [2.0, 1.0], [[1.0]], [1.0, np.nan]])
def test_a_column_starts_with_one(column: list[float]) -> None:
    with pytest.raises(ParameterError, match="starts with 1"):
        inverse_column(np.array(column), 3)


_TABLE = [
    (100, 1, 1, 71.063, 100.000),
    (100, 10, 1, 22.472, 31.623),
    (100, 10, 10, 9.611, 12.798),
    (100, 100, 1, 7.106, 10.000),
    (100, 100, 100, 2.371, 2.531),
    (1000, 1, 1, 707.460, 1000.0),
    (1000, 10, 1, 223.719, 316.228),
    (1000, 10, 10, 86.112, 120.916),
    (1000, 10, 32, 81.759, 112.444),
    (1000, 100, 1, 70.746, 100.0),
    (1000, 100, 100, 12.103, 15.689),
]
"""Rounds, separation, bands, then error x sensitivity, which were computed from dense matrices."""


@pytest.mark.parametrize(("rounds", "separation", "bands", "rms", "last"), _TABLE)
def test_errors_of_prefix_sums(rounds: int, separation: int, bands: int, rms: float, last: float) -> None:
    column = square_root_column(bands)
    norm = participation_norm(column, separation=separation, rounds=rounds)
    np.testing.assert_allclose(
        norm * np.array(prefix_sum_errors(column, rounds)), (rms, last), rtol=0, atol=6e-4
    )


def test_errors_are_those_of_the_matrix() -> None:
    column = square_root_column(4)
    B = np.tril(np.ones((30, 30))) @ np.linalg.inv(matrix(column, 30))
    expected = np.linalg.norm(B) / np.sqrt(30), np.linalg.norm(B[-1])
    np.testing.assert_allclose(prefix_sum_errors(column, 30), expected)


def test_a_run_of_a_million_rounds_is_priced_at_once() -> None:
    wide = participation_norm(square_root_column(1000), separation=10, rounds=10**9)
    assert 0 < wide < 1e9
    np.testing.assert_allclose(participation_norm(np.ones(1), separation=10**12, rounds=10**9), 1.0)
