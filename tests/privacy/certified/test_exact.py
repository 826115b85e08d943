"""The certificate in whole numbers: above the truth by next to nothing, and floats above it."""

from __future__ import annotations

import decimal
import functools
import itertools
import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.privacy.certified import (
    GRID,
    Teachers,
    exact_worst_case,
    output_probabilities,
    worst_case,
)
from tacit.randomness import simulated


def teachers(count: int, epsilon: float, delta: float = 0.0) -> Teachers:
    return Teachers(count=count, epsilon=epsilon, delta=delta)


@pytest.mark.parametrize("target", [0.3, 3.0, 30.0, 150.0])
@pytest.mark.parametrize("delta", [0.0, 2.0**-10])
def test_whole_numbers_are_above_the_truth_by_next_to_nothing(delta: float, target: float) -> None:
    """The truth in decimals of 300 digits; rounding any one step the wrong way would fall below it."""
    decimal.getcontext().prec = 300
    weight = Decimal(target).exp()
    for epsilon, seed in itertools.product((0.1, 0.7, 2.0), range(3)):
        gamma = np.round(simulated(seed, "whole").random(2) * 2**52) / 2**52
        chances = [Decimal(c) for c in output_probabilities(3, gamma).tolist()]
        truth = max(
            Decimal(sum(c * (x - weight * y) for c, x, y in zip(chances, here, there, strict=True)))
            for here, there in decimal_laws(epsilon, delta)
        )
        found, _ = exact_worst_case(teachers(3, epsilon, delta), gamma, target)
        above = Decimal(found.numerator) / Decimal(found.denominator) - truth
        assert 0 <= above <= Decimal(2) ** -100 * max(Decimal(1), abs(truth))


@functools.cache
def decimal_laws(epsilon: float, delta: float) -> list[list[list[Decimal]]]:
    """The laws of the number of ones of three teachers with one record there or not, of all types."""
    one, d = Decimal(1), Decimal(delta)
    b = (one - d) / (Decimal(epsilon).exp() + 1)
    pairs = [(0 * one, 0 * one), (one, one), (d, 0 * one), (0 * one, d)]
    pairs += [(one - d, one), (one, one - d), (one - b, b), (b, one - b)]
    return [
        [decimal_law([pairs[v][side] for v in chosen]) for side in (0, 1)]
        for chosen in itertools.combinations_with_replacement(range(8), 3)
        if any(pairs[v][0] != pairs[v][1] for v in chosen)
    ]


def decimal_law(p: list[Decimal]) -> list[Decimal]:
    """The law of the number of ones, in decimals."""
    found = [Decimal(1)]
    for chance in p:
        none, more = (
            [x * (1 - chance) for x in found] + [Decimal(0)],
            [Decimal(0)] + [x * chance for x in found],
        )
        found = [x + y for x, y in zip(none, more, strict=True)]
    return found


@pytest.mark.parametrize("delta", [0.0, 1e-5, 0.05])
def test_floats_are_rounded_above_exact_numbers_by_almost_nothing(delta: float) -> None:
    for seed, rising in itertools.product(range(4), (True, False)):
        gamma = np.floor(simulated(seed, "exact").random(5) * GRID) / GRID
        gamma = np.sort(gamma) if rising else gamma
        voters = teachers(9, 0.3, delta)
        exact, counts = exact_worst_case(voters, gamma, 0.6)
        assert sum(counts) == 9
        rounded = worst_case(voters, gamma, 0.6).needed
        assert exact <= Fraction(rounded) <= exact + Fraction(1e-12)
        if rising:
            assert exact == exact_worst_case(voters, gamma, 0.6, full=True)[0]


def test_exact_numbers_agree_with_fractions() -> None:
    # epsilon = ln 2 up to its rounding: then a = (2 + D)/3 and E = 4 are known fractions.
    gamma, d = [Fraction(1, 4), Fraction(7, 8)], Fraction(1, 16)
    chance = [(1 - gamma[1]) / 2, (1 - gamma[0]) / 2, (1 + gamma[0]) / 2, (1 + gamma[1]) / 2]
    a = (2 + d) / 3
    pairs = [
        (Fraction(0), Fraction(0)),
        (Fraction(1), Fraction(1)),
        (Fraction(0), d),
        (d, Fraction(0)),
        (1 - d, Fraction(1)),
        (Fraction(1), 1 - d),
        (a, 1 - a),
        (1 - a, a),
    ]

    def mean(p: list[Fraction]) -> Fraction:
        values = list(chance)
        for one in p:
            values = [(1 - one) * low + one * high for low, high in itertools.pairwise(values)]
        return values[0]

    best = max(
        mean([pairs[v][0] for v in chosen]) - 4 * mean([pairs[v][1] for v in chosen])
        for chosen in itertools.product(range(8), repeat=3)
    )
    found, _ = exact_worst_case(
        teachers(3, math.log(2), 1 / 16), np.array([0.25, 0.875]), 2 * math.log(2), full=True
    )
    assert float(found) == pytest.approx(float(best), abs=1e-15)


def test_a_gamma_off_the_grid_has_no_exact_certificate() -> None:
    with pytest.raises(ParameterError, match="multiples of 2"):
        exact_worst_case(teachers(3, 1.0), np.array([1 / 3, 1.0]) * (1 - 2.0**-53), 1.0)
