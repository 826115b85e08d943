"""Binomial laws to full precision, and in groups that cover all of their mass.

Log-probabilities by `gammaln` lose the digits of n log n: at n = 1e9 that is 1e-6 of the result. Loader's
form (C. Loader 2000, "Fast and accurate computation of binomial probabilities") keeps them.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
from scipy import special

from tacit.privacy.curves import Array

__all__ = ["binomial_log_pmf", "counts_in_groups", "half_binomial", "half_binomial_bounds"]

_TAIL = 52.0  # -log of the mass on either side of the window
_FEWEST, _TAIL_GROUPS = 200, 60
_LEAST_SERIES = 1024.0  # trials from which on three terms of a series are as exact as the rest
_TABLED = 1024  # trials below which laws are tabulated: 8 MB
_UP_TO_16: Array = np.append(1.0, np.arange(1.0, 17.0))
_DIRECT: Array = (
    special.gammaln(_UP_TO_16 + 1)
    - (_UP_TO_16 + 0.5) * np.log(_UP_TO_16)
    + _UP_TO_16
    - 0.5 * math.log(2 * math.pi)
)
"""Stirling's error of small counts, where its series has too few digits; at 0 that of 1."""


def binomial_log_pmf(k: Array, n: Array | float, p: float) -> Array:
    """Return log Pr[Bin(n, p) = k] elementwise, 0 <= k <= n; accurate to about 1e-13 sqrt(n) absolutely."""
    k, n = np.asarray(k, dtype=np.float64), np.asarray(n, dtype=np.float64)
    rest, q = n - k, 1 - p
    inner = (k > 0) & (rest > 0)
    if p in (0.0, 1.0):
        return np.where(k == n * p, 0.0, -np.inf)
    x, y, size = np.where(inner, k, 1.0), np.where(inner, rest, 1.0), np.where(inner, n, 2.0)
    error = _stirling_error(np.maximum(n, 1.0)) - _stirling_error(x) - _stirling_error(y)
    deviance = _deviance(x, size * p) + _deviance(y, size * q)
    middle = error - deviance + 0.5 * np.log(size / (2 * math.pi * x * y))
    edge = np.where(k > 0, n * math.log(p), n * math.log1p(-p))
    return np.where(inner, middle, edge)


def _stirling_error(n: Array) -> Array:
    """Return log n! - log(sqrt(2 pi n) (n / e)^n) for whole n >= 1."""
    square = 1 / (n * n)
    series = (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / n
    return np.where(n < 16, _DIRECT[np.minimum(n, 16.0).astype(np.int64)], series)


def _deviance(x: Array, mean: Array) -> Array:
    """Return x log(x / mean) - x + mean."""
    d = (x - mean) / mean
    result: Array = mean * (special.xlog1py(1 + d, d) - d)
    return result


def half_binomial(n: Array, k: Array) -> tuple[Array, Array, Array]:
    """Return Pr[Bin(n, 1/2) = k], Pr[Bin(n, 1/2) < k] and how far off these may be, relatively; -1 <= k <= n.

    The allowance is over four times the largest error seen against 40 digits, up to n = 1e8 and 36 standard
    deviations (tests/privacy/shuffling/test_binomial.py).
    """
    n, at = np.broadcast_arrays(np.asarray(n, dtype=np.float64), np.maximum(k, 0.0))
    here, below = np.empty(n.shape), np.zeros(n.shape)
    slope = n + 1 - 2 * at
    series = (n >= _LEAST_SERIES) & (slope >= 0) & (slope**4 <= 16 * (n + 1) ** 3)
    size, count = n[series], at[series]
    here[series] = _half_pmf(count, size)
    below[series] = count * here[series] * _laplace_transform(slope[series], size + 1)
    rest = ~series
    here[rest] = np.exp(binomial_log_pmf(at[rest], n[rest], 0.5))
    rest &= at > 0
    below[rest] = special.betainc(n[rest] - at[rest] + 1, at[rest], 0.5)
    return here, below, 4e-14 + 4e-15 * np.sqrt(n) + 4e-15 * slope * (slope / (n + 1))


def half_binomial_bounds(n: Array, k: Array) -> tuple[Array, Array]:
    """Return Pr[Bin(n, 1/2) = k] rounded up, and Pr[Bin(n, 1/2) < k] rounded down; both 0 at k = -1.

    Args:
        n: Trials, not falling, shape (c,).
        k: Counts, each -1 <= k <= (n + 1) / 2, shape (r, c).
    """
    few = int(np.searchsorted(n, _TABLED))
    most, least = np.empty(k.shape), np.empty(k.shape)
    if few:
        tables = _half_tables()
        at = (n[:few] * tables[0].shape[1] + 1 + k[:, :few]).astype(np.intp)
        most[:, :few], least[:, :few] = (table.ravel().take(at) for table in tables)
    if few < n.size:
        here, below, off = half_binomial(n[few:], k[:, few:])
        most[:, few:] = np.where(k[:, few:] >= 0, here * (1 + off), 0.0)
        least[:, few:] = below * (1 - off)
    return most, least


@cache
def _half_tables() -> tuple[Array, Array]:
    """Return what `half_binomial_bounds` does, at [n, k + 1], by Pascal's rule.

    A step adds two positive numbers and halves the sum, which rounds once, by 2^-53; half as much again is
    for the steps that take the allowance itself.
    """
    width = _TABLED // 2 + 1
    most, least = np.zeros((2, _TABLED, width + 1))
    here, below = np.zeros(width + 1), np.ones(width + 1)
    here[1], below[:2] = 1.0, 0.0
    for n in range(_TABLED):
        off = 1.5 * 2.0**-53 * (n + 1)
        most[n], least[n] = here * (1 + off), below * (1 - off)
        here[1:], below[1:] = (here[1:] + here[:-1]) / 2, (below[1:] + below[:-1]) / 2
    return most, least


def _half_pmf(k: Array, n: Array) -> Array:
    """Return Pr[Bin(n, 1/2) = k], 0 < k < n: Loader's form, whose two deviances nearly cancel."""
    d = (n - 2 * k) / n
    error = _stirling_error(n) - _stirling_error(k) - _stirling_error(n - k)
    square = d * d
    log_odds = n * (d * np.arctanh(d) + 0.5 * np.log1p(-square))
    scale: Array = np.exp(error - log_odds) / np.sqrt(n * (1 - square) * (math.pi / 2))
    return scale


def _laplace_transform(slope: Array, size: Array) -> Array:
    """Return the integral of e^{-slope v} / cosh(v)^size over v > 0, with a relative error of O(size^-4).

    Pr[Bin(n, 1/2) < k] / Pr[Bin(n, 1/2) = k] is k times that at size = n + 1, slope = n + 1 - 2 k: the
    incomplete beta integral over t = (1 - tanh v) / 2. For w = v sqrt(size), cosh(v)^-size is e^{-w^2 / 2}
    times a power series in w and 1 / size; the moments of e^{-x w - w^2 / 2} follow from Mills' ratio by
    parts. Their digits cancel as x^i does, and count for size^(-i / 4): up to x^4 = 16 size, few
    are lost.
    """
    root = np.sqrt(size)
    x = slope / root
    moments = [math.sqrt(math.pi / 2) * special.erfcx(x / math.sqrt(2))]
    moments.append(1 - x * moments[0])
    for i in range(1, 12):
        moments.append(i * moments[i - 1] - x * moments[i])
    third = moments[12] / 10368 - moments[10] / 540 + moments[8] * (17 / 2520)
    second = moments[8] / 288 - moments[6] / 45 + third / size
    total: Array = (moments[0] + (moments[4] / 12 + second / size) / size) / root
    return total


def counts_in_groups(n: int, p: float, *, width: float) -> tuple[Array, Array, Array]:
    """Return (first, last, mass) of groups of consecutive counts of Bin(n, p), which cover 0..n.

    Counts around the mean stand alone, or in groups narrow against the mean. Far tails are cut into few
    groups, whose mass is bounded by that of their count nearest to the mean and the ratio of its neighbour.
    Nothing is dropped, so nothing has to be added; masses sum to a little over 1.

    Args:
        n: Number of trials, >= 0.
        p: Probability of each, in [0, 1].
        width: Largest width of a group around the mean, relative to the mean.
    """
    if p in (0.0, 1.0) or n == 0:
        count = np.array([n * p])
        return count, count, np.ones(1)
    mean, variance = n * p, n * p * (1 - p)
    reach = _TAIL / 3 + math.sqrt(_TAIL * _TAIL / 9 + 2 * _TAIL * variance)  # Bernstein
    low, high = max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), n)
    counts = np.arange(low, high + 1, dtype=np.float64)
    mass = np.exp(binomial_log_pmf(counts, float(n), p)) * (1 + 1e-13 + 1e-15 * math.sqrt(n))
    width = max(min(math.floor(width * mean), counts.size // _FEWEST), 1)
    starts = np.arange(0, counts.size, width)
    first, last = counts[starts], counts[np.append(starts[1:], counts.size) - 1]
    mass = np.add.reduceat(mass, starts)
    if low > 0:
        ends = np.unique(np.floor(np.linspace(0, low, _TAIL_GROUPS + 1)))[1:] - 1
        begins = np.append(0.0, ends[:-1] + 1)
        ratio = ends * (1 - p) / ((n - ends + 1) * p)
        tail = np.exp(binomial_log_pmf(ends, float(n), p)) / (1 - ratio)
        first, last, mass = np.append(begins, first), np.append(ends, last), np.append(tail, mass)
    if high < n:
        ratio_up = (n - high - 1) * p / ((high + 2) * (1 - p))
        beyond = np.exp(binomial_log_pmf(np.array([high + 1.0]), float(n), p)) / (1 - ratio_up)
        first, last, mass = np.append(first, high + 1.0), np.append(last, float(n)), np.append(mass, beyond)
    return first, last, mass
