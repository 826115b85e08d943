"""Exact privacy of one integer that is released with binomial noise.

The shuffled bits of a scalar sum say no more than their number, an integer plus eta ~ Bin(N, p). The
binomial law is log-concave, so the likelihood ratio of eta + k and eta grows along the integers, the best
test is a threshold, and a privacy curve is two binomial tails (docs/theory/noise.md, section 6).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_count, check_probability
from tacit.privacy.budget import PrivacyBudget
from tacit.privacy.curves import Array

__all__ = [
    "MOST_TRIALS",
    "binomial_delta",
    "binomial_hockey_stick",
    "check_budget",
]

MOST_TRIALS = 1 << 36
"""The most noise bits that are credited: more bits only hide more, so fewer may be assumed."""

_STIRLING_FROM = 64.0  # from here on four terms of Stirling's series are exact to float64

Integers = npt.NDArray[np.int64]


def binomial_hockey_stick(trials: int, probability: float, shift: int, epsilon: npt.ArrayLike) -> Array:
    """Return H_a(eta + shift || eta) for eta ~ Bin(trials, probability) and a = e^epsilon.

    delta = P(eta > t - 1 - k) - a P(eta > t - 1) with t the least integer where pmf(t - k) > a pmf(t).
    The opposite order, H_a(eta || eta + shift), is the divergence for `-shift`; both agree at p = 1/2.

    Args:
        trials: Number of noise bits N, from 1 to `MOST_TRIALS`.
        probability: That a noise bit is one, in (0, 1).
        shift: By how many steps the integer differs; any sign.
        epsilon: Any shape; any sign.

    Returns:
        Shape of `epsilon`, in [0, 1]; rounded up by at most (16 + 4 sqrt(N)) 2^-50 of the tails.

    Raises:
        ParameterError: A value out of its range, or an epsilon that is not a number.

    Cost:
        O(log N) likelihood ratios and three pairs of incomplete beta functions for each epsilon.

    Example:
        >>> f"{float(binomial_hockey_stick(10, 0.5, 1, 1.0)):.10e}"
        '2.5487206921e-02'

    Reference:
        Derived in docs/theory/noise.md, section 6.
    """
    check_count("trials", trials, high=MOST_TRIALS)
    check_probability("probability", probability, low_open=True, high_open=True)
    check_count("shift", shift, low=-(1 << 62))
    eps = np.asarray(epsilon, dtype=np.float64)
    if np.isnan(eps).any():
        raise ParameterError("epsilon must be a number, got NaN.")
    n, p, k = int(trials), float(probability), int(shift)
    if k == 0:
        return np.asarray(-np.expm1(np.minimum(eps, 0.0)))
    if abs(k) > n:
        return np.ones_like(eps)
    return _shifted_up(n, p, abs(k), eps, mirrored=k < 0)


def binomial_delta(trials: int, probability: float, shift: int, epsilon: npt.ArrayLike) -> Array:
    """Return the larger divergence of both orders; the worst over all shifts up to `shift` in size.

    Arguments, errors and source as `binomial_hockey_stick`. The divergence grows with the shift because
    eta + k is stochastically increasing in k and the best test is a threshold.
    """
    one = binomial_hockey_stick(trials, probability, shift, epsilon)
    if probability == 0.5:
        return one
    other = binomial_hockey_stick(trials, probability, -shift, epsilon)
    return np.asarray(np.maximum(one, other))


def check_budget(budget: PrivacyBudget) -> None:
    """Refuse a budget that binomial noise cannot be calibrated to."""
    if not isinstance(budget, PrivacyBudget):
        raise ParameterError(f"budget must be a PrivacyBudget, got {type(budget).__name__}.")
    if budget.delta <= 0:
        raise ParameterError("delta must be in (0, 1) for binomial noise, which has no pure level, got 0.0.")


def _shifted_up(n: int, p: float, k: int, eps: Array, *, mirrored: bool) -> Array:
    """Return H_a(eta + k || eta) for 0 < k <= n, rounded up; `mirrored`: for N - eta ~ Bin(N, 1 - p)."""
    low = np.full(eps.shape, k, dtype=np.int64)
    high = np.full(eps.shape, n + 1, dtype=np.int64)
    odds = (math.log1p(-p) - math.log(p)) * (-1 if mirrored else 1)
    while np.any(low < high):
        middle = (low + high) // 2
        above = _log_ratio(np.minimum(middle, n), n, k, odds) > eps
        low, high = np.where(above, low, np.minimum(middle + 1, high)), np.where(above, middle, high)
    # The ratio is computed with some error, which may move the threshold by one; every threshold is a test,
    # so the largest of the three values is the supremum.
    places: Integers = np.clip(low[..., None] + np.array([-1, 0, 1]), k, n + 1)
    distinct, back = np.unique(places, return_inverse=True)
    back = back.reshape(places.shape)
    first = _log_tail(distinct - 1 - k, n, p, mirrored=mirrored)[back]
    second = _log_tail(distinct - 1, n, p, mirrored=mirrored)[back]
    # scipy's incomplete beta was compared with 50 digits for N up to 1e9: within (4 + sqrt(N)) 2^-50.
    off = (16 + 4 * math.sqrt(n)) * 2.0**-50
    lost = np.exp(np.minimum(eps[..., None] + second, 0.0))
    values = np.exp(first) * (1 + off) - lost * (1 - off)
    return np.asarray(np.clip(values.max(axis=-1), 0.0, 1.0))


def _log_tail(j: Integers, n: int, p: float, *, mirrored: bool) -> Array:
    """Return log P(eta > j), or log P(N - eta > j)."""
    inside = (j >= 0) & (j < n)
    at = np.where(inside, j, 0).astype(np.float64)
    with np.errstate(divide="ignore"):
        # Never from 1 - p, which would lose the digits of a small p.
        tail = np.log(special.betaincc(n - at, at + 1, p) if mirrored else special.betainc(at + 1, n - at, p))
    return np.where(inside, tail, np.where(j < 0, 0.0, -np.inf))


def _log_ratio(z: Integers, n: int, k: int, odds: float) -> Array:
    """Return log pmf(z - k) - log pmf(z) for k <= z <= n; `odds` is log((1 - p) / p)."""
    return _log_falling(z, k) - _log_falling(n - z + k, k) + k * odds


def _log_falling(z: Integers, k: int) -> Array:
    """Return log z! - log (z - k)!, without the cancellation of two large logarithms."""
    x, y = z + 1.0, z - k + 1.0
    far = np.maximum(y, _STIRLING_FROM)
    base = far + k
    series = (
        k * np.log(base) - (far - 0.5) * np.log1p(-k / base) - k + _stirling_rest(base) - _stirling_rest(far)
    )
    return np.where(y >= _STIRLING_FROM, series, special.gammaln(x) - special.gammaln(y))


def _stirling_rest(x: Array) -> Array:
    """Return log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2)."""
    r = 1 / (x * x)
    return (1 / 12 - r * (1 / 360 - r * (1 / 1260 - r / 1680))) / x
