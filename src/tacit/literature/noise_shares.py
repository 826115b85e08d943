"""How far a sum of discrete Gaussian shares is from one discrete Gaussian, as it was first bounded."""

from __future__ import annotations

import math

from tacit.errors import check_count, check_positive

__all__ = ["paper_shares_slack"]

_TERMS = 1000


def paper_shares_slack(std: float, shares: int) -> float:
    """Return tau = 10 sum_(k < shares) exp(-2 pi^2 std^2 k / (k + 1)).

    The published constant, of which `tacit.mechanisms.shares_slack` is about 0.4.

    Args:
        std: Parameter of one share, in grid steps. Finite, > 0.
        shares: How many, >= 1.

    Returns:
        tau, to a relative 1e-12; beyond 1000 shares the terms that are left are bounded by the last.

    Raises:
        ParameterError: An argument is out of its range.

    Example:
        >>> f"{paper_shares_slack(1.0, 10):.3e}"
        '5.435e-04'

    Reference:
        Kairouz, Liu and Steinke (2021), arXiv:2102.06387, Theorem 1.
    """
    check_count("shares", shares)
    rate = 2 * (math.pi * check_positive("std", std)) ** 2
    alone = min(shares - 1, _TERMS)
    found = math.fsum(math.exp(-rate * k / (k + 1)) for k in range(1, alone + 1))
    return 10 * (found + (shares - 1 - alone) * math.exp(-rate * _TERMS / (_TERMS + 1)))
