"""Bounds for statistical assertions, at one stated false-alarm rate."""

from __future__ import annotations

from scipy import stats

FALSE_ALARM = 1e-7
"""Chance that a whole test fails on right code, over the choice of its seed."""


def z_bound(assertions: int) -> float:
    """How many standard deviations hold for that many two-sided normal assertions together (union bound)."""
    return float(stats.norm.isf(FALSE_ALARM / (2 * assertions)))
