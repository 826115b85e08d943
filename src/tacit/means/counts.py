"""Counts of which every party adds a share of the noise, on the grid that costs next to nothing."""

from __future__ import annotations

import math

from tacit.errors import ParameterError, check_count
from tacit.means.modular import ModularSumMean
from tacit.privacy import Gaussian, Neighbours, PrivacyBudget, calibrate

__all__ = ["counts_of_shares"]

_RECORDS = Neighbours()
_LEAST_SHARE = 4.5
"""Deviation of one share, in grid steps: sums of shares have a price from 3 on, and less noise moves less."""
_FINE_SUM = 64.0
"""Deviation of all shares, in grid steps, at which the price of the grid is a thousandth of the noise."""


def counts_of_shares(
    *, k: int, budget: PrivacyBudget, shares: int, neighbours: Neighbours = _RECORDS
) -> ModularSumMean:
    """Return the counts of the least noise that meets a budget, of which every party adds a share.

    Args:
        k: Number of items.
        budget: For whoever sees the sum; delta > 0.
        shares: Honest shares that are surely in the sum, >= 2.
        neighbours: Relation of the guarantee.

    Raises:
        ParameterError: A delta of 0, whose noise is not Gaussian, or a number out of range.
        BudgetError: No noise meets the budget.

    Example:
        >>> mean = counts_of_shares(k=10, budget=PrivacyBudget(1.0, 1e-6), shares=3)
        >>> mean.noise.steps, round(mean.std * math.sqrt(3) / mean.noise.steps, 2)
        (16, 5.98)
    """
    check_count("shares", shares, low=2)
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 under aggregate trust, whose noise is Gaussian, got 0.0.")

    usual = calibrate(lambda z: Gaussian(z, neighbours), budget) * math.sqrt(2)  # in counts, or more
    finest = max(_LEAST_SHARE * math.sqrt(shares), _FINE_SUM) / usual
    return ModularSumMean.calibrated(
        dim=k,
        budget=budget,
        shares=shares,
        steps=2 ** max(0, math.ceil(math.log2(finest))),
        neighbours=neighbours,
        one_hot=True,
    )
