"""Goodness-of-fit of integer samples to an enumerated law, and certainty about single floating-point
numbers."""

from __future__ import annotations

from decimal import Context, Decimal

import numpy as np
from scipy import stats

from tacit.numerics import Array, IntArray

PRECISE = Context(prec=60)


def chi_square_pvalue(samples: IntArray, support: IntArray, log_pmf: Array) -> float:
    """P-value of the samples under the law; support points are merged until each cell expects 100 samples.

    The two tails, and what the support leaves out, belong to the outermost cells.
    """
    assert np.all(np.diff(support) == 1)
    upper = np.cumsum(np.exp(log_pmf))
    cells = max(int(samples.size // 200), 2)
    cuts = np.unique(np.searchsorted(upper, np.arange(1, cells) / cells))
    cuts = cuts[(upper[cuts] > 0) & (upper[cuts] < 1)]
    cuts = cuts[np.diff(upper[cuts], prepend=0.0) * samples.size >= 100]
    cuts = cuts[(1 - upper[cuts]) * samples.size >= 100]
    expected = samples.size * np.diff(upper[cuts], prepend=0.0, append=1.0)
    observed = np.bincount(np.searchsorted(support[cuts], samples), minlength=expected.size)
    assert expected.size >= 3
    assert expected.min() >= 90
    return float(stats.chisquare(observed, expected).pvalue)


def low_bits_pvalue(samples: IntArray) -> float:
    """P-value of the lowest four bits being uniform, as they are under any law that is smooth at scale 16."""
    return float(stats.chisquare(np.bincount(samples & 15, minlength=16)).pvalue)


def precise_exp(gamma: float) -> Decimal:
    """Return exp(-gamma) with 60 digits."""
    return PRECISE.exp(-Decimal(gamma))


def precise_minus_log(numerator: int, bits: int) -> Decimal:
    """Return -ln(numerator / 2**bits) with 60 digits."""
    return PRECISE.subtract(bits * PRECISE.ln(Decimal(2)), PRECISE.ln(Decimal(numerator)))
