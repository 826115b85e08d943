"""Divergences of two laws: of finite laws by enumeration, of the classical pairs in closed form.

D_alpha(P || Q) = ln E_{x ~ Q}[(P(x) / Q(x))^alpha] / (alpha - 1), for alpha > 1; at infinity, sup ln P / Q.
Everything is computed in logarithms and, where the truth is close to 0, as a sum of positive terms, so that
no digit of a small divergence is lost.

Source: Mironov (2017), arXiv:1702.07476, for the closed forms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_non_negative, shown
from tacit.privacy.curves import Array, as_numbers, pmf_curve

__all__ = [
    "check_orders",
    "concentrated_renyi",
    "hockey_stick",
    "laplace_renyi",
    "log_add",
    "pure_dp_renyi",
    "renyi_divergence",
    "renyi_of_mixture",
    "worst_renyi_divergence",
]

_LEAST_RHO = 1e-300  # a smaller level, which may have been rounded to 0, is priced as this one


def check_orders(orders: npt.ArrayLike, *, whole: bool = False) -> Array:
    """Return Rényi orders as an array; refuse none, and any that is not > 1 or, if asked, not whole."""
    found = as_numbers("orders", orders)
    if found.size == 0 or not np.all(found > 1):
        raise ParameterError(f"orders must be numbers > 1, at least one, got {shown(orders)}.")
    if whole and not (np.all(np.isfinite(found)) and np.all(found == np.floor(found))):
        raise ParameterError(
            f"orders must be whole numbers >= 2, got {shown(orders)}; interpolate between them."
        )
    return found


def hockey_stick(log_p: npt.ArrayLike, log_q: npt.ArrayLike, epsilon: npt.ArrayLike) -> Array:
    """Return sum of (p - e^epsilon q)_+ of two finite laws: the least delta, in this order of the two.

    Args:
        log_p: Log-probabilities, shape (m,); -infinity is an impossible outcome.
        log_q: Log-probabilities of the same outcomes, shape (m,).
        epsilon: Any shape and sign.

    Returns:
        Shape of `epsilon`.

    Raises:
        ParameterError: Something is not a law, or the shapes differ.

    Reference:
        docs/theory/accounting.md, section 1. The probability that the loss exceeds epsilon is *not* this
        number (misprinted in Girgis 2023, Section 2.1.1: see docs/errata.md).

    Example:
        >>> laws = np.log([0.6, 0.4]), np.log([0.4, 0.6])
        >>> round(float(hockey_stick(*laws, 0.0)), 12)
        0.2
    """
    return pmf_curve(log_p, log_q).forward(as_numbers("epsilon", epsilon))


def renyi_divergence(log_p: npt.ArrayLike, log_q: npt.ArrayLike, orders: npt.ArrayLike) -> Array:
    """Return the Rényi divergences D_alpha(P || Q) of two finite laws.

    Args:
        log_p: Log-probabilities, shape (m,); -infinity is an impossible outcome.
        log_q: Log-probabilities of the same outcomes, shape (m,).
        orders: Orders alpha > 1, any shape; infinity is the largest loss.

    Returns:
        Shape of `orders`; infinity where P has an outcome that Q has not.

    Raises:
        ParameterError: Something is not a law, the shapes differ, or an order is not > 1.

    Example:
        >>> laws = np.log([0.6, 0.4]), np.log([0.4, 0.6])
        >>> renyi_divergence(*laws, [2.0, np.inf]).round(6).tolist()
        [0.154151, 0.405465]
    """
    alpha = check_orders(orders)
    pmf_curve(log_p, log_q)  # refuses what is not a law
    p, q = np.asarray(log_p, dtype=np.float64), np.asarray(log_q, dtype=np.float64)
    p, q = p[p > -np.inf], q[p > -np.inf]
    if np.any(np.isneginf(q)):
        return np.full(alpha.shape, math.inf)
    loss = p - q
    largest = float(loss.max())
    found = [_one_divergence(q, loss, a) if math.isfinite(a) else largest for a in alpha.ravel().tolist()]
    return np.array([max(value, 0.0) for value in found]).reshape(alpha.shape)


def worst_renyi_divergence(log_p: npt.ArrayLike, log_q: npt.ArrayLike, orders: npt.ArrayLike) -> Array:
    """Return the larger of D_alpha(P || Q) and D_alpha(Q || P); arguments as `renyi_divergence`."""
    return np.maximum(renyi_divergence(log_p, log_q, orders), renyi_divergence(log_q, log_p, orders))


def concentrated_renyi(rho: float, orders: npt.ArrayLike) -> Array:
    """Return alpha * rho, which is the divergence of N(mu, 1) from N(0, 1) for rho = mu^2 / 2."""
    alpha = check_orders(orders)
    with np.errstate(over="ignore"):
        return np.asarray(alpha * max(rho, _LEAST_RHO))


def pure_dp_renyi(epsilon0: float, orders: npt.ArrayLike) -> Array:
    """Return the largest Rényi divergences that `epsilon0`-DP allows, those of randomised response.

    Args:
        epsilon0: Pure level, >= 0; infinity allows everything.
        orders: Orders > 1, any shape; infinity gives `epsilon0`.

    Returns:
        ln(pi^a (1 - pi)^(1-a) + (1 - pi)^a pi^(1-a)) / (a - 1) with pi = 1 / (1 + e^epsilon0), by Mironov
        (2017), Proposition 5.

    Raises:
        ParameterError: `epsilon0` negative or NaN, an order not > 1.

    Example:
        >>> pure_dp_renyi(0.5, [2.0, 64.0]).round(9).tolist()
        [0.227336294, 0.492474969]
    """
    alpha = check_orders(orders)
    if math.isinf(epsilon0) and epsilon0 > 0:
        return np.full(alpha.shape, math.inf)
    check_non_negative("epsilon0", epsilon0)
    if epsilon0 == 0:
        return np.zeros(alpha.shape)
    finite = np.where(np.isfinite(alpha), alpha, 2.0)
    # The sum is cosh((a - 1/2) e) / cosh(e / 2) = 1 + 2 sinh(a e / 2) sinh((a - 1) e / 2) / cosh(e / 2).
    e = float(epsilon0)
    with np.errstate(over="ignore", divide="ignore"):
        log_excess = (
            _log_twice_sinh(finite * e / 2)
            + _log_twice_sinh((finite - 1) * e / 2)
            - float(np.logaddexp(e / 2, -e / 2))
        )
        divergence = np.logaddexp(0.0, log_excess) / (finite - 1)
    return np.where(np.isfinite(alpha), np.fmin(divergence, e), e)


def renyi_of_mixture(bounds: Array, weights: Sequence[float], orders: Array) -> Array:
    """Return bounds for one of several releases, drawn in sight of all; for none with what weights leave.

    Args:
        bounds: Of each release at each order, shape (k, m).
        weights: Shape (k,), together at most 1.
        orders: Shape (m,), > 1.

    Returns:
        Shape (m,): ln(1 + sum of weights (e^((order - 1) bound) - 1)) / (order - 1).
    """
    power = (orders - 1) * bounds
    # Without the 1 where it is small beside the rest: no digit of a small bound is lost.
    near = np.log1p(np.asarray(weights) @ np.expm1(np.minimum(power, 600.0)))
    with np.errstate(divide="ignore"):
        far = special.logsumexp(power + np.log(weights)[:, None], axis=0)
    return np.asarray(np.where(power.max(axis=0) > 600, np.logaddexp(far, 0.0), near) / (orders - 1))


def laplace_renyi(level: float, orders: npt.ArrayLike) -> Array:
    """Return the divergences of one-dimensional Laplace noise with sensitivity / scale = `level`.

    (a / (2a - 1) e^((a-1) level) + (a - 1) / (2a - 1) e^(-a level)) is the moment (Mironov 2017, Table II).

    Raises:
        ParameterError: `level` negative or NaN, an order not > 1.
    """
    alpha = check_orders(orders)
    if math.isinf(level) and level > 0:
        return np.full(alpha.shape, math.inf)
    check_non_negative("level", level)
    if level == 0:
        return np.zeros(alpha.shape)
    finite = np.where(np.isfinite(alpha), alpha, 2.0)
    # The linear terms of both exponentials cancel: what exceeds 1 is a mean of e^u - 1 - u >= 0.
    with np.errstate(over="ignore", invalid="ignore"):
        log_excess = np.logaddexp(
            np.log(finite) + _log_exp_minus_linear((finite - 1) * level),
            np.log(finite - 1) + _log_exp_minus_linear(-finite * level),
        ) - np.log(2 * finite - 1)
        divergence = np.logaddexp(0.0, log_excess) / (finite - 1)
    # No number where an order overflows: the level is a bound at all of them.
    return np.where(np.isfinite(alpha), np.fmin(divergence, level), level)


def _one_divergence(log_q: Array, loss: Array, alpha: float) -> float:
    """Return D_alpha of laws with full support, from log q and log p / q."""
    largest = float(np.abs(loss).max())
    if (alpha - 1) * largest > 0.1:
        return log_add(log_q + alpha * loss) / (alpha - 1)
    if largest > 0.1:  # an order near 1: E_P[e^{(alpha - 1) loss}] - 1
        return math.log1p(max(float(np.exp(log_q + loss) @ np.expm1((alpha - 1) * loss)), 0.0)) / (alpha - 1)
    # E_Q[r^a] - 1 = E_Q[(r^a - 1) - a (r - 1)], because E_Q[r - 1] = 0; every term of the right side is >= 0.
    excess = np.exp(log_q) * (_exp_minus_linear(alpha * loss) - alpha * _exp_minus_linear(loss))
    return math.log1p(max(float(excess.sum()), 0.0)) / (alpha - 1)


def log_add(terms: Array) -> float:
    """Return log sum exp of an array: SciPy's takes far longer for few numbers."""
    top = float(terms.max())
    return top + math.log(float(np.exp(terms - top).sum())) if math.isfinite(top) else top


def _exp_minus_linear(u: Array) -> Array:
    """Return e^u - 1 - u, to full relative accuracy near 0."""
    small = np.where(np.abs(u) < 0.1, u, 0.0)
    series = np.ones_like(small)
    for k in range(12, 2, -1):
        series = 1 + small / k * series
    large = np.where(np.abs(u) < 0.1, 0.0, u)
    with np.errstate(over="ignore"):
        return np.where(np.abs(u) < 0.1, small * small / 2 * series, np.expm1(large) - large)


def _log_exp_minus_linear(u: Array) -> Array:
    """Return log(e^u - 1 - u) without overflow; -infinity at 0."""
    high = np.maximum(u, 20.0)
    low = np.minimum(u, 20.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.where(u > 20, high + np.log1p(-(1 + high) * np.exp(-high)), np.log(_exp_minus_linear(low)))


def _log_twice_sinh(u: Array) -> Array:
    """Return log(2 sinh(u)) for u > 0."""
    return np.asarray(u + np.log(-np.expm1(-2 * u)))
