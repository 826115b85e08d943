"""`Staircase`: the law of its bits, its price, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError
from tacit.privacy import ApproximateDP, Neighbours, PureDP, Relation
from tacit.privacy.certified import output_probabilities
from tacit.randomness import simulated
from tacit.voting import Staircase, gamma_staircase
from tests.statistics import FALSE_ALARM


@pytest.mark.parametrize("delta", [0.0, 3e-4])
def test_bits_follow_the_exact_law_and_one_flipped_vote_costs_what_is_claimed(delta: float) -> None:
    steps = Staircase(teachers=11, epsilon=0.2676, delta=delta)
    chance = output_probabilities(11, steps.gamma)
    rng = simulated(1, "staircase")
    for ones in (0, 5, 9):
        bits = steps.release(np.tile([1] * ones + [0] * (11 - ones), (50_000, 1)), rng)
        assert stats.binomtest(int(bits.sum()), bits.size, chance[ones]).pvalue > FALSE_ALARM
    for law in (chance, 1 - chance):
        needed = max(
            float(np.max(law[1:] - math.exp(0.2676) * law[:-1])),
            float(np.max(law[:-1] - math.exp(0.2676) * law[1:])),
        )
        assert needed <= delta + 1e-15
    # Nothing is given away: some flip costs all of it.
    assert max(chance[6] - math.exp(0.2676) * chance[5], chance[5] - math.exp(0.2676) * chance[6]) == (
        pytest.approx(delta, abs=1e-12)
    )


def test_the_event_is_what_was_asked_for() -> None:
    near = Neighbours(Relation.ZERO_OUT)
    assert Staircase(teachers=11, epsilon=0.5).event() == PureDP(0.5)
    assert Staircase(teachers=11, epsilon=0.5, delta=1e-4).event(near) == ApproximateDP(0.5, 1e-4, near)
    assert Staircase(teachers=4, epsilon=1.0).gamma.tolist() == gamma_staircase(4, 1.0).tolist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"teachers": 0}, "teachers must be"),
        ({"epsilon": 0.0}, "epsilon must be"),
        ({"epsilon": math.nan}, "epsilon must be"),
        ({"delta": 1.0}, "delta must be"),
    ],
)
def test_values_out_of_range_are_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        Staircase(**{"teachers": 11, "epsilon": 0.5, **change})


def test_votes_that_are_none_are_refused() -> None:
    steps = Staircase(teachers=3, epsilon=0.5)
    for votes in (np.full((2, 3), 2), np.ones((2, 4), dtype=int), np.ones((2, 3))):
        with pytest.raises(ParameterError, match="votes must"):
            steps.release(votes, simulated(0))
