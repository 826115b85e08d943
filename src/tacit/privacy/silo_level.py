"""From records to whole silos: what a guarantee per record says of a silo, and the least noise for a silo.

Source: Lowy (2023), Appendices B.1.3 and B.1.5.5.
"""

from __future__ import annotations

import math

from tacit.errors import ParameterError, check_count
from tacit.privacy.budget import Budget, PrivacyBudget
from tacit.privacy.calibration import calibrate
from tacit.privacy.events import Gaussian, Repeat
from tacit.privacy.neighbours import Neighbours, Unit

__all__ = ["calibrate_user_level", "whole_silo_budget"]

_ROUND_UP = 1 + 1e-12
MOST_ROUNDS = 10**7
"""Rounds up to which noise is calibrated for a whole silo."""


def whole_silo_budget(record: PrivacyBudget, n: int) -> PrivacyBudget:
    """Return what a guarantee for replacing one record says of replacing all n records of a silo.

    It is (n eps, n e^((n-1) eps) delta), rounded up. It grows fast: a guarantee per record says little of a
    silo of many. A guarantee for replacing a silo, in turn, covers each of its records as it is.

    Args:
        record: (eps, delta) for replacing one record.
        n: Records of the silo, >= 1; the same number in both neighbours.

    Raises:
        ParameterError: n < 1; or a result that says nothing: delta >= 1, or an epsilon that is not finite.

    Reference:
        Lowy (2023), Appendix B.1.3.

    Example:
        >>> silo = whole_silo_budget(PrivacyBudget(0.1, 1e-8), 10)
        >>> round(silo.epsilon, 9), f"{silo.delta:.6e}"
        (1.0, '2.459603e-07')
    """
    n = check_count("n", n)
    if n == 1:
        return record
    epsilon = n * record.epsilon * _ROUND_UP
    if record.delta == 0 and math.isfinite(epsilon):
        return PrivacyBudget(epsilon, 0.0)
    # In logarithms: the factor overflows long before the claim is refused.
    log_delta = math.log(n) + (n - 1) * record.epsilon + math.log(record.delta) if record.delta else math.inf
    if log_delta >= -1e-9:
        raise ParameterError(
            f"n must be small enough for a claim with delta < 1, got n={n!r} at epsilon={record.epsilon!r}, "
            f"delta={record.delta!r} per record: nothing follows for a whole silo."
        )
    return PrivacyBudget(epsilon, math.exp(log_delta) * _ROUND_UP)


def calibrate_user_level(budget: Budget, *, rounds: int) -> float:
    """Return the least noise multiplier with which a whole silo may be replaced within `budget`.

    Replacing a silo moves its mean of K rows, each bounded by L, by at most 2L, whatever K is; K is public.
    The noise has standard deviation multiplier * 2L in every coordinate of every mean the silo sends. All
    `rounds` compose: a replaced silo changes every batch, so neither secret samples nor disjoint batches of
    records make it cheaper. Beside budgets of eps/n per record (`tacit.literature.user_level_budget`) it is
    far less noise.

    Args:
        budget: For replacing one silo, seen by whoever reads its messages.
        rounds: Means that the silo sends, by a schedule that depends on no data; 1 to 1e7.

    Returns:
        Standard deviation / 2L, on the safe side, for continuous noise.

    Raises:
        ParameterError: `rounds` out of range.
        BudgetError: The budget cannot be met, as with delta = 0.

    Reference:
        Lowy (2023), Appendix B.1.5.5, for the target.

    Example:
        >>> round(calibrate_user_level(PrivacyBudget(1.0, 1e-5), rounds=1), 6)
        3.730632
    """
    rounds = check_count("rounds", rounds, high=MOST_ROUNDS)
    silo = Neighbours(unit=Unit.PARTY)
    return calibrate(lambda z: Repeat(Gaussian(z, neighbours=silo), rounds), budget)
