"""The price of a run with correlated noise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.numerics import participation_norm, square_root_column
from tacit.privacy import (
    Compose,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    Neighbours,
    NonPrivate,
    Relation,
    Repeat,
    correlated,
    epsilon_of,
)

NEAR = Neighbours(Relation.ZERO_OUT)
COLUMN = square_root_column(10)


def test_one_gaussian_of_the_sensitivity() -> None:
    once = Gaussian(20.0, NEAR)
    norm = participation_norm(COLUMN, separation=10, rounds=100)
    assert correlated(once, COLUMN, separation=10, rounds=100, n=50) == Gaussian(20.0 / norm, NEAR)


def test_without_bands_it_is_the_rounds_that_a_unit_is_in() -> None:
    found = correlated(Gaussian(20.0, NEAR), np.ones(1), separation=10, rounds=95, n=50)
    assert found == Gaussian(20.0 / math.sqrt(10), NEAR)


def test_whole_numbers_pay_for_rounding_in_every_round_that_may_differ() -> None:
    once = DiscreteGaussian(20.0 * 2**16, 2**16 + 28.0, NEAR, 784)
    found = correlated(once, COLUMN, separation=10, rounds=100, n=50)
    assert isinstance(found, DiscreteGaussian)
    norm = participation_norm(COLUMN, separation=10, rounds=100)
    assert found.std == once.std
    assert found.dim == 78400
    # 28 for rounding each mixture, in all 100 rounds.
    np.testing.assert_allclose(found.sensitivity, norm * once.sensitivity + 10 * 28, rtol=1e-9)
    assert found.sensitivity > norm * once.sensitivity + 10 * 28
    continuous = epsilon_of(correlated(Gaussian(20.0, NEAR), COLUMN, separation=10, rounds=100, n=50), 1e-5)
    assert continuous < epsilon_of(found, 1e-5) < continuous * 1.003


def test_one_number_a_round_is_not_one_number() -> None:
    once = DiscreteGaussian(5.0, 1.0, NEAR, 1)
    found = correlated(once, np.array([1.0, 0.5]), separation=2, rounds=2, n=1)
    assert isinstance(found, DiscreteGaussian)
    assert found.dim == 2
    # Mixed and rounded, (1, 0.5) and (0, 0) may be (1, 1) and (0, 0).
    assert found.sensitivity >= math.sqrt(2)


def test_only_rounds_that_can_differ_pay() -> None:
    once = DiscreteGaussian(1e6, 1e5, NEAR, 100)
    column = square_root_column(2)
    short = correlated(once, column, separation=1000, rounds=1000, n=50)
    assert isinstance(short, DiscreteGaussian)
    norm = math.sqrt(1.25)
    np.testing.assert_allclose(short.sensitivity, norm * 1e5 + math.sqrt(2) * 10, rtol=1e-9)


def test_more_rows_err_more() -> None:
    once = DiscreteGaussian(1e6, 1e5, NEAR, 100)

    def length(n: int) -> float:
        found = correlated(once, COLUMN, separation=10, rounds=20, n=n)
        assert isinstance(found, DiscreteGaussian)
        return found.sensitivity

    assert length(10**9) > length(10) + 0.1


def test_coordinates_that_cannot_be_counted_are_the_most() -> None:
    once = DiscreteGaussian(1e6, 1e5, NEAR, 2**30)
    found = correlated(once, COLUMN, separation=10, rounds=2**20, n=50)
    assert isinstance(found, DiscreteGaussian)
    assert found.dim is None


def test_what_claims_nothing_goes_on_claiming_nothing() -> None:
    assert correlated(NonPrivate(NEAR), COLUMN, separation=10, rounds=20, n=1) == NonPrivate(NEAR)


@pytest.mark.parametrize("once", [Laplace(1.0, 3, NEAR), Repeat(Gaussian(1.0), 2), Compose((Gaussian(1.0),))])
def test_only_gaussian_noise_has_this_price(once: object) -> None:
    with pytest.raises(ParameterError, match="correlated noise must be Gaussian"):
        correlated(once, COLUMN, separation=10, rounds=20, n=1)  # type: ignore[arg-type]
