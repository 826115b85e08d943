"""The exponential mechanism: its law, its price by enumeration in exact arithmetic, and refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.mechanisms import exponential_law, sample_exponential
from tacit.mechanisms.exponential import _below, _weights
from tests.statistics import z_bound


def test_the_law_is_that_of_scores_up_to_a_constant() -> None:
    scores = np.array([3, 0, 7, 7, 40])
    law = exponential_law(scores, 2.0, spread=5)
    ideal = np.exp(-2.0 / 5 * scores)
    np.testing.assert_allclose(law, ideal / ideal.sum(), rtol=1e-12)
    np.testing.assert_array_equal(law, exponential_law(scores + 2**40, 2.0, spread=5))
    # What is far off is as good as never drawn, and still can be.
    far = exponential_law([0, 10**12], 1.0, spread=1)
    assert 0 < far[1] < 2.0**-120
    np.testing.assert_array_equal(exponential_law([5], 1.0, spread=1), [1.0])


@pytest.mark.parametrize("level", [0.1, 1.0, 30.0])
def test_every_ratio_of_neighbours_is_within_the_level_in_exact_arithmetic(level: float) -> None:
    """Three candidates; a record moves every score by -2 to 2, so that two changes are 4 apart at most."""
    top = level - 2.0**-61
    worst = -math.inf
    moves = list(itertools.product((-2, 0, 2), repeat=3))
    for scores in itertools.product((0, 3, 50, 4000), repeat=3):
        mine = _weights(scores, level, 4)
        for move in moves:
            other = _weights([a + b for a, b in zip(scores, move, strict=True)], level, 4)
            for here, there in zip(mine, other, strict=True):
                # log of a ratio of whole numbers, to about 2^-50.
                ratio = math.log(here * sum(other) / (there * sum(mine)))
                worst = max(worst, ratio)
    assert worst <= top + 1e-12
    assert worst > 0.5 * level


def test_draws_follow_the_law() -> None:
    scores, rng = np.array([0, 1, 2, 5]), np.random.default_rng(1)
    law = exponential_law(scores, 1.0, spread=2)
    counts = np.bincount(
        [sample_exponential(scores, 1.0, spread=2, rng=rng) for _ in range(1500)], minlength=4
    )
    assert (np.abs(counts - 1500 * law) < z_bound(4) * np.sqrt(1500 * law * (1 - law)) + 1).all()
    assert {_below(3, rng) for _ in range(200)} == {0, 1, 2}
    assert _below(1, rng) == 0


@pytest.mark.parametrize(
    ("scores", "level", "spread", "message"),
    [
        ([], 1.0, 1, "scores must be whole numbers"),
        ([0.5], 1.0, 1, "scores must be whole numbers"),
        ([[1]], 1.0, 1, "scores must be whole numbers"),
        ([1], 0.0, 1, "level"),
        ([1], math.inf, 1, "level"),
        ([1], 1.0, 0, "spread"),
    ],
)
def test_bad_input_is_refused(scores: Any, level: float, spread: int, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        sample_exponential(scores, level, spread=spread, rng=np.random.default_rng(0))
