"""Choosing silos in secret amplifies for one row a silo, and not for several: exact enumeration."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from tacit.privacy.binomial import binomial_delta
from tests.privacy.reference import Array, hockey_stick

TRIALS, SILOS, CHOSEN = 100, 4, 2
EPSILONS = (0.05, 0.1, 0.2, 0.4, 0.8)


def _seen(totals: list[int]) -> Array:
    """Return the law of the shuffled sum of the chosen silos' bits, plus noise; the choice is secret."""
    law = np.zeros(TRIALS + sum(totals) + 1)
    choices = list(combinations(totals, CHOSEN))
    noise = stats.binom.pmf(np.arange(TRIALS + 1), TRIALS, 0.5)
    for chosen in choices:
        law[sum(chosen) : sum(chosen) + TRIALS + 1] += noise / len(choices)
    return law


def _delta(rows: int, others: list[int], epsilon: float) -> float:
    """Return the exact delta of a bit of silo 0, which holds rows - 1 ones besides."""
    first, second = _seen([rows, *others]), _seen([rows - 1, *others])
    second = np.concatenate([second, np.zeros(first.size - second.size)])
    return max(hockey_stick(first, second, epsilon), hockey_stick(second, first, epsilon))


def _amplified(epsilon: float) -> float:
    """Return what sampling at rate q = M/N would give: q times the delta of the inner epsilon."""
    q = CHOSEN / SILOS
    return q * float(binomial_delta(TRIALS, 0.5, 1, math.log1p(math.expm1(epsilon) / q)))


@pytest.mark.parametrize("others", [[0, 0, 0], [1, 1, 1], [0, 1, 1]])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_one_row_a_silo_is_amplified(others: list[int], epsilon: float) -> None:
    # Swapping two silos replaces one row by one row.
    assert _delta(1, others, epsilon) <= _amplified(epsilon) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_many_rows_a_silo_are_not(epsilon: float) -> None:
    # The other rows of a silo tell whether it was chosen, and then there is nothing left to hide behind.
    exact = _delta(150, [0, 0, 0], epsilon)
    assert exact > 1.02 * _amplified(epsilon)
    # What holds: epsilon stays, and delta is multiplied by the chance of being chosen. It is attained.
    rest = CHOSEN / SILOS * float(binomial_delta(TRIALS, 0.5, 1, epsilon))
    assert exact == pytest.approx(rest, rel=1e-9)


@pytest.mark.parametrize("rows", [1, 2, 5, 20, 60, 150])
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_delta_times_the_chance_holds_for_any_number_of_rows(rows: int, epsilon: float) -> None:
    for others in ([0, 0, 0], [rows, rows, rows], [0, rows // 2, rows]):
        most = CHOSEN / SILOS * float(binomial_delta(TRIALS, 0.5, 1, epsilon))
        assert _delta(rows, others, epsilon) <= most * (1 + 1e-9)
