"""Batch lengths: the reference table, and what does not fit."""

from __future__ import annotations

import math

import pytest

from tacit.bandits import BatchSchedule
from tacit.errors import ParameterError


@pytest.mark.parametrize(
    ("horizon", "growth", "batches", "total"),
    [
        (10**3, 3.00519763, 5, 365.9),
        (10**4, 2.93074747, 8, 8260.4),
        (10**5, 2.88696564, 10, 61529.4),
        (10**6, 2.85814172, 12, 457097.2),
        (10**7, 2.83772957, 15, 9621757.7),
    ],
)
def test_lengths_have_the_tabled_values(horizon: int, growth: float, batches: int, total: float) -> None:
    found = BatchSchedule(horizon)
    assert found.growth == pytest.approx(growth, abs=5e-9)
    assert found.batches == batches == len(found.lengths)
    assert sum(found.lengths) == pytest.approx(total, abs=0.05)
    assert math.e <= found.growth <= math.e**2
    assert found.growth == pytest.approx((2 * horizon) ** (1 / math.log(horizon)), rel=1e-12)


def test_the_printed_batches_can_be_longer_than_the_horizon() -> None:
    """`for i = 1..log T - 1` says nothing of what to do where they do not fit: T = 2981 is the first."""
    over = [t for t in range(20, 3000) if sum(BatchSchedule(t).lengths) > t]
    assert over[0] == 2981


@pytest.mark.parametrize("horizon", [7, 0, -3, 2**53 + 1, 10.5, float("nan")])
def test_a_horizon_that_has_no_batch_is_refused(horizon: int) -> None:
    with pytest.raises(ParameterError, match="horizon"):
        BatchSchedule(horizon)
