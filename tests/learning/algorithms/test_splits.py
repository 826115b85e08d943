"""Splits of a budget: the least sum of variances, against a grid of all splits."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learning.algorithms.splits import check_shares, optimal_shares, split_shares


@pytest.mark.parametrize("rates", [(1.0, 1.0), (1.0, 0.25)])
@pytest.mark.parametrize("counts", [(3, 9), (1, 1), (10, 2)])
@pytest.mark.parametrize("weights", [(1.0, 4.0), (7.0, 0.1)])
def test_no_other_split_has_a_smaller_sum(
    counts: tuple[int, int], weights: tuple[float, float], rates: tuple[float, float]
) -> None:
    shares = optimal_shares(counts, weights, rates)
    check_shares(counts, shares, rates)
    found = sum(a / s for a, s in zip(weights, shares, strict=True))
    first = np.linspace(1e-3, 1 - 1e-3, 4001)
    others = weights[0] * counts[0] / first + weights[1] * counts[1] * rates[1] ** 2 / (1 - first)
    assert others.min() * (1 - 1e-5) <= found <= others.min()


def test_one_kind_gets_everything() -> None:
    assert optimal_shares([8], [3.0]) == [0.125]


@pytest.mark.parametrize("rate", [1.0, 0.25])
@pytest.mark.parametrize("split", [0.1, 0.5])
def test_gradients_have_their_share(split: float, rate: float) -> None:
    shares = split_shares(split, (2, 8), rate=rate)
    check_shares((2, 8), shares, (1.0, rate))
    assert 2 * shares[0] == pytest.approx(split)


@pytest.mark.parametrize("shares", [(0.25, 0.2), (0.2, 0.3), (0.5, 0.5)])
def test_a_split_that_does_not_add_up_is_refused(shares: tuple[float, float]) -> None:
    check_shares((2, 3), (0.2, 0.2))
    with pytest.raises(ParameterError, match="the shares of all rounds must add up to 1, got"):
        check_shares((2, 3), shares)


def test_bad_lists_are_refused() -> None:
    with pytest.raises(ParameterError, match="one entry for every kind"):
        optimal_shares([1, 2], [1.0])
    with pytest.raises(ParameterError, match="one entry for every kind"):
        check_shares([1, 2], [1.0])
    with pytest.raises(ParameterError, match=r"a rate must be in \(0, 1\], got 0.0"):
        optimal_shares([1], [1.0], [0.0])
    with pytest.raises(ParameterError, match="a share must be a finite number > 0"):
        check_shares([1, 1], [1.0, 0.0])
    with pytest.raises(ParameterError, match="a weight must be a finite number > 0"):
        optimal_shares([1], [math.nan])
