"""Correlated noise: both forms are one, its covariance, and what is kept between rounds."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.mechanisms import CorrelatedSums, Past, correlated_noise
from tacit.numerics import Array, inverse_column, square_root_column
from tests.numerics.test_toeplitz import matrix

ROUNDS, DIM = 9, 3


def run(column: Array, sums: Array, noise: Array, *, asked: range | list[int] | None = None) -> Array:
    """All rounds of a stream."""
    stream, past, given = CorrelatedSums(column), Past.nothing(sums.shape[1]), []
    for t in range(len(sums)) if asked is None else asked:
        shown = stream.released(stream.mixed(sums[t], t, past) + noise[t], t, past)
        past = stream.followed(past, t, summed=sums[t], released=shown)
        given.append(shown)
    return np.stack(given)


@pytest.mark.parametrize("bands", [1, 2, 4, ROUNDS])
def test_fresh_noise_on_mixtures_is_correlated_noise_on_sums(bands: int) -> None:
    rng, column = np.random.default_rng(0), square_root_column(bands)
    sums, noise = rng.normal(size=(2, ROUNDS, DIM))
    np.testing.assert_allclose(run(column, sums, noise), sums + correlated_noise(column, noise), atol=1e-12)


@pytest.mark.parametrize("bands", [1, 3, ROUNDS])
def test_its_covariance_is_that_of_the_inverse(bands: int) -> None:
    column, wide = square_root_column(bands), 40_000
    x = run(column, np.zeros((ROUNDS, wide)), np.random.default_rng(1).normal(size=(ROUNDS, wide)) * 2)
    C = matrix(column, ROUNDS)
    np.testing.assert_allclose(x @ x.T / wide, 4 * np.linalg.inv(C.T @ C), atol=0.12)


def test_rounds_that_are_left_out_are_sums_of_zero() -> None:
    rng, column, asked = np.random.default_rng(2), square_root_column(4), [0, 1, 4, 6, 7]
    sums, noise = rng.normal(size=(2, ROUNDS, DIM))
    C = matrix(column, ROUNDS)[np.ix_(asked, asked)]
    expected = sums[asked] + np.linalg.solve(C, noise[asked])
    np.testing.assert_allclose(run(column, sums, noise, asked=asked), expected, atol=1e-12)


def test_only_what_later_rounds_need_is_kept() -> None:
    column, past = square_root_column(4), Past.nothing(1)
    for t in (0, 1, 2, 3, 7):
        past = CorrelatedSums(column).followed(past, t, summed=np.ones(1), released=np.ones(1))
        assert len(past.rounds) <= 3
    assert past.rounds.tolist() == [7]
    assert past.next == 8
    alone = CorrelatedSums(np.ones(1)).followed(Past.nothing(1), 5, summed=np.ones(1), released=np.ones(1))
    assert len(alone.sums) == 0
    assert alone.next == 6


def test_whole_numbers_stay_whole() -> None:
    big = np.array([2**60 + 1])
    past = CorrelatedSums(square_root_column(3)).followed(Past.nothing(1), 0, summed=big, released=np.ones(1))
    assert past.sums.dtype == np.int64
    assert past.sums[0, 0] == 2**60 + 1


def test_no_round_comes_twice() -> None:
    stream = CorrelatedSums(square_root_column(2))
    past = stream.followed(Past.nothing(1), 3, summed=np.ones(1), released=np.ones(1))
    for number in (3, 2, 0):
        with pytest.raises(ParameterError, match=f"the next may be 4, got {number}"):
            stream.mixed(np.ones(1), number, past)


def test_the_inverse_of_a_band_is_not_banded() -> None:
    noise = np.zeros((5, 1))
    noise[0] = 1
    column = square_root_column(2)
    np.testing.assert_allclose(correlated_noise(column, noise)[:, 0], inverse_column(column, 5))
