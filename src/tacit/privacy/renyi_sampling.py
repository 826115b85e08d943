"""Rényi divergences of releases on a secret sample.

A fixed-size sample goes with replace-one neighbours, a Poisson sample with add-remove or zero-out. The
formulas of one are no bound for the other, so every function here takes the relation and refuses the wrong
one. All are for whole orders; `renyi.interpolate_orders` fills in what is between.

A release that is not Rényi-private at an order has no bound there by these formulas, and none is invented:
infinity goes in, infinity comes out.

Source: Wang, Balle and Kasiviswanathan (2019), arXiv:1808.00087, "WBK19"; Zhu and Wang (2019), ICML, "ZW19";
Mironov, Talwar and Zhang (2019), arXiv:1908.10530, "MTZ19".
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_positive, check_probability
from tacit.privacy.curve_sampling import amplified
from tacit.privacy.curves import Array
from tacit.privacy.divergences import check_orders, concentrated_renyi, log_add, pure_dp_renyi
from tacit.privacy.neighbours import Relation

__all__ = [
    "fixed_size_gaussian_renyi",
    "fixed_size_renyi",
    "poisson_gaussian_renyi",
    "poisson_renyi",
    "rdp_from_ternary",
    "ternary_from_renyi",
]

_ROUND_UP = 1 + 1e-10
"""The log-binomials of an order of 1e5 are off by some 1e-11; a sum of positive terms by no more."""
_LARGEST_MOMENT = 256


def rdp_from_ternary(log_ternary: npt.ArrayLike, rate: float, orders: npt.ArrayLike) -> Array:
    """Return the Rényi divergences of a release on a fixed-size sample from its ternary chi-moments.

    Args:
        log_ternary: Shape (m,): bounds on log E_r |(p - q) / r|^j for j = 2, 3, ..., m + 1 and all laws p, q,
            r of mutually neighbouring data sets. Infinity where there is none.
        rate: Size of the sample / number of units, in [0, 1].
        orders: Whole orders from 2 to m + 1, any shape.

    Returns:
        ln(1 + sum_{j=2}^alpha C(alpha, j) rate^j ternary_j) / (alpha - 1), shape of `orders`.

    Raises:
        ParameterError: An order that is not whole or above m + 1, a rate outside [0, 1], a NaN.

    Reference:
        WBK19 Proposition 16; Girgis (2023), Lemma 5.4.1. Replace-one neighbours.
    """
    alpha = check_orders(orders, whole=True)
    check_probability("rate", rate)
    moments = np.asarray(log_ternary, dtype=np.float64)
    if moments.ndim != 1 or np.any(np.isnan(moments)) or moments.size + 1 < alpha.max():
        raise ParameterError(
            f"log_ternary must be a vector of the moments 2 to {int(alpha.max())}, got shape {moments.shape}."
        )
    if rate == 0:
        return np.zeros(alpha.shape)
    power = np.arange(2.0, moments.size + 2)
    return _each(alpha, lambda a: _log_sum(a, power[: a - 1], math.log(rate), 0.0, moments[: a - 1]))


def ternary_from_renyi(divergences: npt.ArrayLike, pure_level: float = math.inf) -> Array:
    """Return bounds on the log ternary chi-moments of any release from its Rényi divergences.

    With L = e^pure_level - 1: for j = 2, min(4 (e^{d(2)} - 1), e^{d(2)} min(2, L^2)); for larger j,
    e^{(j-1) d(j)} min(2, L^j).

    Args:
        divergences: Shape (m,): bounds at the orders 2, 3, ..., m + 1, in both directions; infinity: none.
        pure_level: Pure-DP level of the release, infinity if none.

    Returns:
        Shape (m,), for the powers 2 to m + 1.

    Raises:
        ParameterError: A negative or NaN bound or level.

    Reference:
        WBK19 Theorem 9.
    """
    bound = np.asarray(divergences, dtype=np.float64)
    if bound.ndim != 1 or bound.size == 0 or not np.all(bound >= 0) or not pure_level >= 0:
        raise ParameterError("divergences must be a vector of bounds >= 0 with a pure level >= 0.")
    if pure_level == 0:
        return np.full(bound.shape, -math.inf)
    power = np.arange(2.0, bound.size + 2)
    # |p - q|^j <= max(p, q)^j <= p^j + q^j, and <= (L min(p, q))^j <= L^j p^(j - r) q^r.
    found: Array = (power - 1) * bound + np.minimum(math.log(2), power * _log_expm1(pure_level))
    # |p/r - q/r|^2 <= 2 |p/r - 1|^2 + 2 |q/r - 1|^2.
    found[0] = min(found[0], math.log(4) + _log_expm1(float(bound[0])))
    return found


def fixed_size_renyi(
    divergences: npt.ArrayLike,
    rate: float,
    orders: npt.ArrayLike,
    *,
    relation: Relation,
    pure_level: float = math.inf,
) -> Array:
    """Return the Rényi divergences of any release on a uniform sample of fixed size.

    Args:
        divergences: Shape (m,): what the release costs its own sample, at the orders 2, 3, ..., m + 1.
        rate: Size of the sample / number of units, in [0, 1].
        orders: Whole orders from 2 to m + 1, any shape.
        relation: Must be `Relation.REPLACE_ONE`.
        pure_level: Pure-DP level of the release, infinity if none.

    Returns:
        Shape of `orders`; never more than without sampling, nor than the amplified pure level allows.

    Raises:
        ParameterError: Another relation, orders out of range, negative or NaN bounds.

    Reference:
        WBK19 Theorem 9.

    Example:
        >>> at = np.arange(2.0, 65.0)
        >>> fixed_size_renyi(0.1 * at, 0.01, [8], relation=Relation.REPLACE_ONE).round(5).tolist()
        [0.00038]
    """
    _check_relation(relation, fixed=True)
    alpha = check_orders(orders, whole=True)
    sampled = rdp_from_ternary(ternary_from_renyi(divergences, pure_level), rate, alpha)
    # Divergences are jointly quasi-convex: revealing the sample cannot make them smaller.
    kept = np.asarray(divergences, dtype=np.float64)[alpha.astype(np.int64) - 2]
    return np.minimum(np.minimum(sampled, kept), _amplified_cap(pure_level, rate, alpha))


def fixed_size_gaussian_renyi(
    noise_multiplier: float,
    rate: float,
    orders: npt.ArrayLike,
    *,
    relation: Relation,
    single: bool = True,
) -> Array:
    """Return the Rényi divergences of Gaussian noise on a fixed-size sample, from its own chi-moments.

    m_j = E_Q |P / Q - 1|^j of P = N(mu, 1), Q = N(0, 1) takes the place of e^{(j-1) d(j)}, which does not get
    small with mu. For even j it is a forward difference of WBK19, here an integral of a positive function,
    because those cancel to nothing; odd ones follow by Cauchy and Schwarz. The second ternary moment of a
    single release is exact.

    Args:
        noise_multiplier: Standard deviation / L2 sensitivity under replace-one. Finite, > 0.
        rate: Size of the sample / number of units, in [0, 1].
        orders: Whole orders >= 2, any shape; above 256 the general bound is used.
        relation: Must be `Relation.REPLACE_ONE`.
        single: Whether it is one Gaussian release. Where several are chosen one after another, or where the
            Gaussian pair is only what dominates a release, three data sets are no triangle of means, and the
            second moment may be larger.

    Returns:
        Shape of `orders`.

    Raises:
        ParameterError: Another relation, an order that is not whole, a number out of range.

    Reference:
        WBK19, the bound by forward differences. Its factor 4: where p > q, r |(p - q) / r|^j is at most
        q |p / q - 1|^j if r >= q, and at most r |p / r - 1|^j if r < q; likewise where q > p.
    """
    _check_relation(relation, fixed=True)
    alpha = check_orders(orders, whole=True)
    check_positive("noise_multiplier", noise_multiplier)
    mu, most = 1 / float(noise_multiplier), int(alpha.max())
    moments = ternary_from_renyi(concentrated_renyi(mu * mu / 2, np.arange(2.0, most + 1)))
    if mu <= 30:  # beyond, nothing is private and the integrals get long
        own = _log_gaussian_moments(mu, min(most, _LARGEST_MOMENT))
        moments[: own.size] = np.minimum(moments[: own.size], math.log(4) + own)
    if single:
        # With means a, b of p, q around r, E_r ((p - q) / r)^2 =
        # e^{a^2} + e^{b^2} - 2 e^{(a^2 + b^2 - (a-b)^2) / 2}.
        # All three lengths are at most mu, and it rises with each: the worst is an equilateral triangle.
        moments[0] = min(moments[0], math.log(2) + mu * mu / 2 + _log_expm1(mu * mu / 2))
    sampled = rdp_from_ternary(moments, rate, alpha)
    return np.minimum(sampled, concentrated_renyi(mu * mu / 2, alpha))


def poisson_renyi(
    divergences: npt.ArrayLike,
    rate: float,
    orders: npt.ArrayLike,
    *,
    relation: Relation,
    pure_level: float = math.inf,
) -> Array:
    """Return the Rényi divergences of any release on a Poisson sample.

    With w_j = C(a, j) (1-q)^{a-j} q^j, in both directions:
    ln(w_0 + w_1 + w_2 e^{d(2)} + 3 sum_{j>=3} w_j e^{(j-1) d(j)}) / (a - 1).

    Args:
        divergences: Shape (m,): what the release costs its own sample, at the orders 2, 3, ..., m + 1.
        rate: Probability q of each unit, in [0, 1].
        orders: Whole orders from 2 to m + 1, any shape.
        relation: `Relation.ADD_REMOVE` or `Relation.ZERO_OUT`; replace-one is refused.
        pure_level: Pure-DP level of the release, infinity if none.

    Returns:
        Shape of `orders`; never more than without sampling, nor than the amplified pure level allows.

    Raises:
        ParameterError: Replace-one neighbours, orders out of range, negative or NaN bounds.

    Reference:
        ZW19 Theorem 5. Girgis (2023), Figure 5.5 feeds it replace-one divergences, for which it proves
        nothing (see docs/errata.md).
    """
    _check_relation(relation, fixed=False)
    alpha, bound = check_orders(orders, whole=True), np.asarray(divergences, dtype=np.float64)
    check_probability("rate", rate)
    if bound.ndim != 1 or not np.all(bound >= 0) or bound.size + 1 < alpha.max():
        raise ParameterError(f"divergences must be bounds >= 0 at the orders 2 to {int(alpha.max())}.")
    kept = bound[alpha.astype(np.int64) - 2]
    if rate in (0, 1):
        return kept if rate == 1 else np.zeros(alpha.shape)
    power = np.arange(2.0, bound.size + 2)
    moments = (power - 1) * bound + np.where(power > 2, math.log(3), 0.0)
    return np.minimum(
        np.minimum(_poisson_sum(alpha, power, rate, moments), kept), _amplified_cap(pure_level, rate, alpha)
    )


def poisson_gaussian_renyi(
    noise_multiplier: float, rate: float, orders: npt.ArrayLike, *, relation: Relation
) -> Array:
    """Return the Rényi divergences of Gaussian noise on a Poisson sample, exactly.

    ln(sum_j C(a, j) (1-q)^{a-j} q^j e^{j (j-1) / (2 z^2)}) / (a - 1); the other direction is smaller.

    Args:
        noise_multiplier: z = standard deviation / L2 sensitivity. Finite, > 0.
        rate: Probability q of each unit, in [0, 1].
        orders: Whole orders >= 2, any shape.
        relation: `Relation.ADD_REMOVE` or `Relation.ZERO_OUT`; replace-one is refused.

    Returns:
        Shape of `orders`.

    Raises:
        ParameterError: Replace-one neighbours, an order that is not whole, a number out of range.

    Reference:
        MTZ19 Theorems 4, 5 and section 3.3.
    """
    _check_relation(relation, fixed=False)
    alpha = check_orders(orders, whole=True)
    check_positive("noise_multiplier", noise_multiplier)
    check_probability("rate", rate)
    rho = 0.5 / float(noise_multiplier) / float(noise_multiplier)
    if rate in (0, 1):
        return concentrated_renyi(rho, alpha) if rate == 1 else np.zeros(alpha.shape)
    power = np.arange(2.0, float(alpha.max()) + 1)
    with np.errstate(over="ignore"):
        moments = (power - 1) * concentrated_renyi(rho, power)
    return np.minimum(_poisson_sum(alpha, power, rate, moments), concentrated_renyi(rho, alpha))


def _poisson_sum(alpha: Array, power: Array, rate: float, log_moments: Array) -> Array:
    """Return the divergences of (1-q) Q + q P from Q, given bounds on log E_Q[(P / Q)^j] for j >= 2.

    The binomial weights sum to 1, so the sum exceeds 1 by the mean of the moments minus 1: positive terms,
    and a small divergence keeps its digits.
    """
    excess = np.where(log_moments > 0, _log_expm1(np.maximum(log_moments, 1e-300)), -math.inf)
    return _each(
        alpha, lambda a: _log_sum(a, power[: a - 1], math.log(rate), math.log1p(-rate), excess[: a - 1])
    )


def _log_sum(alpha: int, power: Array, log_rate: float, log_rest: float, log_terms: Array) -> float:
    """Return log sum_{j=2}^alpha C(alpha, j) rate^j rest^(alpha - j) term_j."""
    weights = special.gammaln(alpha + 1) - special.gammaln(power + 1) - special.gammaln(alpha - power + 1)
    return log_add(weights + power * log_rate + (alpha - power) * log_rest + log_terms)


def _each(alpha: Array, log_excess: Callable[[int], float]) -> Array:
    """Return ln(1 + e^log_excess(alpha)) / (alpha - 1), once per distinct order."""
    distinct, places = np.unique(alpha, return_inverse=True)
    found = np.array([np.logaddexp(0.0, log_excess(int(a))) / (a - 1) for a in distinct])
    return (found * _ROUND_UP)[places].reshape(alpha.shape)


def _log_gaussian_moments(mu: float, most: int) -> Array:
    """Return log E_{Z ~ N(0,1)} |e^{mu Z - mu^2/2} - 1|^j for j = 2..most; odd ones by Cauchy and Schwarz."""
    even = np.arange(2, most + 2, 2)
    step = (
        0.05  # an entire function that falls like a Gaussian: the rule's error is about e^{-2 pi^2 / step^2}
    )
    low, high = -math.sqrt(even[-1]) - 12, even[-1] * mu + math.sqrt(even[-1]) + 12
    z = np.arange(math.floor(low / step), math.ceil(high / step) + 1) * step
    with np.errstate(divide="ignore"):
        log_ratio = _log_abs_expm1(mu * z - mu * mu / 2)
    log_density = math.log(step) - 0.5 * (z * z + math.log(2 * math.pi))
    log_even = np.array([log_add(j * log_ratio + log_density) for j in even]) + 1e-9
    found = np.empty(most - 1)
    found[::2] = log_even[: found[::2].size]
    found[1::2] = 0.5 * (log_even[:-1] + log_even[1:])[: found[1::2].size]
    return found


def _log_abs_expm1(u: Array) -> Array:
    """Return log |e^u - 1|; -infinity at 0."""
    large = np.maximum(u, 1.0)
    return np.where(u > 1, large + np.log1p(-np.exp(-large)), np.log(np.abs(np.expm1(np.minimum(u, 1.0)))))


def _log_expm1(value: npt.ArrayLike) -> Any:
    """Return log(e^value - 1) for value >= 0, without overflow; a number for a number."""
    at = np.asarray(value, dtype=np.float64)
    with np.errstate(divide="ignore"):
        found = np.where(np.isinf(at), math.inf, _log_abs_expm1(np.where(np.isinf(at), 1.0, at)))
    return found if found.ndim else float(found)


def _amplified_cap(pure_level: float, rate: float, alpha: Array) -> Array:
    """Return what the pure level of the sampled release allows."""
    if math.isinf(pure_level) or rate == 0:
        return np.full(alpha.shape, math.inf)
    return pure_dp_renyi(amplified(pure_level, rate), alpha)


def _check_relation(relation: Relation, *, fixed: bool) -> None:
    """Refuse neighbours for which the sampling formulas are not proven."""
    allowed = {Relation.REPLACE_ONE} if fixed else {Relation.ADD_REMOVE, Relation.ZERO_OUT}
    if not any(relation is one for one in allowed):
        names = " or ".join(sorted(r.value for r in allowed))
        kind = "a fixed-size" if fixed else "a Poisson"
        raise ParameterError(f"relation must be {names} for {kind} sample, got {relation!r}.")
