"""How far sums of discrete noise stray: quantiles by exact inversion of characteristic functions.

For an integer law with the real characteristic function phi and an odd number M of residues,

    P(|X mod M| <= m) = (1/M) sum_{j=0}^{M-1} phi(t_j) D_m(t_j),   t_j = 2 pi j / M,

with the Dirichlet kernel D_m(t) = sin((m + 1/2) t) / sin(t / 2) (the discrete Fourier transform). M is chosen
such that |X| > M/2 has a probability below 1e-30, and phi of a sum of independent terms is a product.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.errors import ParameterError, check_count, check_probability
from tacit.mechanisms.discrete_gaussian import discrete_gaussian_variance
from tacit.mechanisms.discrete_laplace import discrete_laplace_variance, exact_scale
from tacit.numerics import Array

__all__ = ["discrete_gaussian_sum_quantile", "discrete_laplace_sum_quantile"]

_HIGHEST = 1 - 1e-9  # quantiles beyond it would rest on the rounding of floats
_SAFETY = 1e-12  # what rounding and the terms left out may move a probability by
_DEVIATIONS = 64.0  # exp(-64 sqrt 2) is the tail of Laplace noise, the heaviest here, at M/2
_NEGLIGIBLE = -34.0  # ln phi below which terms are left out: each is below 2e-15 / j
_MOST_TERMS = 2**21


def discrete_laplace_sum_quantile(scale: float, confidence: float, *, count: int = 1) -> int:
    """Find the least m such that the sum of discrete Laplace draws lies in [-m, m] with some probability.

    Args:
        scale: Of one draw, in grid steps, in [2**-20, 2**55].
        confidence: The probability, above 0 and at most 1 - 1e-9.
        count: Number of independent draws that are added.

    Returns:
        m >= 0, never below the exact one.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> discrete_laplace_sum_quantile(1.0, 0.95), discrete_laplace_sum_quantile(1.0, 0.95, count=100)
        (3, 27)

    Reference:
        One draw: P(|X| > m) = 2 q^(m+1) / (1 + q) with q = exp(-1 / scale), in closed form.
    """
    _check(confidence, count)
    s = float(exact_scale("scale", scale))
    if count == 1:
        q = math.exp(-1 / s)
        return max(math.ceil(s * math.log(2 / ((1 + q) * (1 - confidence))) - 1), 0)

    def log_phi(t: Array) -> Array:
        # phi = (1 - q)^2 / ((1 - q)^2 + 4 q sin^2(t / 2)): this form keeps the digits of a wide law.
        ratio = math.exp(-1 / s) / math.expm1(-1 / s) ** 2
        return np.asarray(-count * np.log1p(4 * ratio * np.sin(t / 2) ** 2))

    return _quantile(log_phi, math.sqrt(count * discrete_laplace_variance(s)), confidence)


def discrete_gaussian_sum_quantile(std: float, confidence: float, *, count: int = 1) -> int:
    """Find the least m such that the sum of discrete Gaussian draws lies in [-m, m] with some probability.

    Args:
        std: Parameter of one draw, in grid steps, in [2**-20, 2**55].
        confidence: The probability, above 0 and at most 1 - 1e-9.
        count: Number of independent draws that are added.

    Returns:
        m >= 0, never below the exact one.

    Raises:
        ParameterError: An argument is out of range.

    Example:
        >>> [discrete_gaussian_sum_quantile(1000.0, 0.95, count=count) for count in (1, 4)]
        [1960, 3920]
    """
    _check(confidence, count)
    s = float(exact_scale("std", std))

    def log_phi(t: Array) -> Array:
        return count * np.log(_phi_gaussian(t, s))

    return _quantile(log_phi, math.sqrt(count * discrete_gaussian_variance(s)), confidence)


def _phi_gaussian(t: Array, std: float) -> Array:
    """Return the characteristic function: two theta series, of which Poisson summation gives the shorter."""
    if std >= 1:
        shifts = np.arange(-2, 3)
        terms = np.exp(-0.5 * (std * (t[:, None] - 2 * math.pi * shifts)) ** 2).sum(axis=1)
        whole = float(np.exp(-0.5 * (2 * math.pi * std * shifts) ** 2).sum())
        return np.asarray(np.maximum(terms / whole, np.finfo(np.float64).tiny))
    x = np.arange(1, 16)
    weights = np.exp(-0.5 * (x / std) ** 2)
    found = (1 + 2 * np.cos(t[:, None] * x) @ weights) / (1 + 2 * weights.sum())
    return np.asarray(np.maximum(found, np.finfo(np.float64).tiny))


def _quantile(log_phi: Callable[[Array], Array], std: float, confidence: float) -> int:
    """Return the least m with P(|X| <= m) >= confidence, by bisection."""
    half = math.ceil(_DEVIATIONS * std) + 64
    residues = 2 * half + 1
    t = (2 * math.pi / residues) * np.arange(1, _terms(log_phi, residues, half) + 1)
    weight = 2 * np.exp(log_phi(t)) / (residues * np.sin(t / 2))
    low, high = -1, half
    while high - low > 1:
        middle = (low + high) // 2
        inside = (2 * middle + 1) / residues + float(np.sin((middle + 0.5) * t) @ weight)
        low, high = (low, middle) if inside >= confidence + _SAFETY else (middle, high)
    return high


def _terms(log_phi: Callable[[Array], Array], residues: int, half: int) -> int:
    """Return how many terms are not negligible; phi falls with t up to pi."""
    terms = 64
    while terms < half:
        if float(log_phi(np.array([2 * math.pi * terms / residues]))[0]) < _NEGLIGIBLE:
            return terms
        if terms >= _MOST_TERMS:
            raise ParameterError(f"the law of the noise needs more than {_MOST_TERMS} terms.")
        terms *= 2
    return half


def _check(confidence: float, count: int) -> None:
    """Refuse what no quantile is computed for."""
    check_probability("confidence", confidence, low_open=True, high_open=True)
    if confidence > _HIGHEST:
        raise ParameterError(f"confidence must be at most 1 - 1e-9, got {confidence!r}.")
    check_count("count", count)
