"""The discrete Gaussian on the integers: exact sampler, law, and distance from the continuous one.

P(x) is proportional to exp(-x**2 / (2 std**2)). `std` is the parameter of the law; its standard deviation
sqrt(discrete_gaussian_variance(std)) is at most that, and equal to it within 1e-6 from std = 1 on.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_positive
from tacit.mechanisms.bernoulli import sample_bernoulli_exp
from tacit.mechanisms.discrete_laplace import Proposals, Size, check_integers, exact_scale, fill, propose
from tacit.numerics import Array, IntArray

__all__ = [
    "acceptance_exponent",
    "convolution_slack",
    "discrete_gaussian_log_pmf",
    "discrete_gaussian_variance",
    "sample_discrete_gaussian",
]

# Where both series of the theta function converge alike: terms exp(-pi k**2). Eight of them end below 1e-87.
_SELF_DUAL_STD = 1.0 / math.sqrt(2.0 * math.pi)
_TERMS = np.arange(1.0, 9.0)

_SMALLEST_TAU = 0.25


def acceptance_exponent(magnitude: int, offset: int, std: Fraction) -> Fraction:
    """Return the exact exponent with which `sample_discrete_gaussian` accepts a candidate.

    Args:
        magnitude: |x| of the candidate.
        offset: Its offset within a block, from `propose`.
        std: Exact.

    Returns:
        (magnitude - std)**2 / (2 std**2) + offset / std, which is the log-ratio of the candidate's weight to
        the target's, up to the constant that makes it >= 0.
    """
    return (magnitude / std - 1) ** 2 / 2 + offset / std


def _acceptance_exponents(candidates: Proposals, std: float) -> tuple[Array, Array]:
    """Return the acceptance exponents in float64, and a proven bound on their errors."""
    ratio = candidates.magnitude / std
    gamma = 0.5 * (ratio - 1.0) ** 2 + candidates.offset / std
    # ratio is off by a factor within 1 +- 4u, u = 2**-53, hence ratio - 1 by at most 6u (ratio + 1), and its
    # square by 12.1u (ratio + 1)**2; with the other roundings 8u (ratio + 1)**2 in all: docs/theory/noise.md,
    # section 3.
    return gamma, 2.0**-50 * (ratio + 1.0) ** 2


def _acceptance_rate(std: float) -> float:
    """Return the accepted share of the proposals: 0.76 for large `std`, 0.30 for small."""
    log_proposals = math.log(-2.0 / math.expm1(-1.0 / std))
    return math.exp(_log_normaliser(std) - 0.5 - log_proposals)


def sample_discrete_gaussian(std: float | Fraction, size: Size, rng: np.random.Generator) -> IntArray:
    """Draw from the discrete Gaussian law, P(x) proportional to exp(-x**2 / (2 std**2)), exactly.

    Args:
        std: Parameter of the law in grid steps, in [2**-20, 2**55]; a float stands for exactly the rational
            number that it is.
        size: Shape of the result.
        rng: Source of the noise; the secure stream when the noise leaves.

    Returns:
        Shape `size`, int64. The law is exact, conditioned on |x| < 2**62, which fails with probability
        < exp(-8000).

    Raises:
        ParameterError: `std` or `size` is out of range.

    Guarantee:
        Added to integer vectors of L2 sensitivity s, the result is s**2 / (2 std**2)-zCDP, and close to a
        post-processing of the continuous Gaussian (`convolution_slack`): docs/theory/noise.md, sections 4, 5.

    Cost:
        Four 64-bit words per sample from std = 100 on (ten for small std), some 0.2 microseconds.

    Example:
        >>> sample_discrete_gaussian(0.01, 3, np.random.default_rng(0)).tolist()
        [0, 0, 0]

    Reference:
        Rejection from the discrete Laplace law as in Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4,
        Algorithm 3, with scale `std` in place of floor(std) + 1 and the two acceptance steps made one:
        docs/theory/noise.md, section 3.
    """
    exact = exact_scale("std", std)

    def draw(count: int) -> IntArray:
        candidates = propose(count, exact, rng)
        gamma, error = _acceptance_exponents(candidates, float(exact))
        keep = sample_bernoulli_exp(
            gamma,
            error=error,
            exact=lambda index: acceptance_exponent(
                int(candidates.magnitude[index]), int(candidates.offset[index]), exact
            ),
            rng=rng,
        )
        return candidates.accepted(keep)

    return fill(size, _acceptance_rate(float(exact)), draw)


def _theta_terms(std: float) -> Array:
    """Return the terms k = 1, ... of the series of the normaliser that converges faster."""
    if std < _SELF_DUAL_STD:
        return np.asarray(np.exp(-0.5 * (_TERMS / std) ** 2))
    return np.asarray(np.exp(-2.0 * (math.pi * std * _TERMS) ** 2))


def _log_normaliser(std: float) -> float:
    """Return ln sum_x exp(-x**2 / (2 std**2)), by Poisson summation where that converges faster."""
    log_theta = math.log1p(2.0 * float(_theta_terms(std).sum()))
    return log_theta if std < _SELF_DUAL_STD else log_theta + math.log(std * math.sqrt(2.0 * math.pi))


def discrete_gaussian_log_pmf(x: npt.ArrayLike, std: float | Fraction) -> Array:
    """Log-probabilities of the discrete Gaussian law.

    Args:
        x: Integers, any shape.
        std: Parameter of the law in grid steps, in [2**-20, 2**55].

    Returns:
        The shape of `x`, float64.

    Raises:
        ParameterError: `x` is not integer or `std` is out of range.

    Example:
        >>> float(np.exp(discrete_gaussian_log_pmf(np.arange(-20, 21), 2.0)).sum().round(12))
        1.0

    Reference:
        Normaliser: Poisson summation, docs/theory/noise.md, section 4.
    """
    values = check_integers("x", x)
    s = float(exact_scale("std", std))
    return np.asarray(-0.5 * (values / s) ** 2 - _log_normaliser(s))


def discrete_gaussian_variance(std: float | Fraction) -> float:
    """Variance of the discrete Gaussian law, in squared grid steps.

    Args:
        std: Parameter of the law in grid steps, in [2**-20, 2**55].

    Returns:
        At most std**2; from std = 0.4 on the difference is below 80 std**4 exp(-2 pi**2 std**2).

    Raises:
        ParameterError: `std` is out of range.

    Example:
        >>> round(discrete_gaussian_variance(1.0), 6), round(discrete_gaussian_variance(0.1), 6)
        (1.0, 0.0)

    Reference:
        Minus the logarithmic derivative of the normaliser in 1 / (2 std**2): docs/theory/noise.md, section 4.
    """
    s = float(exact_scale("std", std))
    terms = _theta_terms(s)
    curvature = 2.0 * float(_TERMS**2 @ terms) / (1.0 + 2.0 * float(terms.sum()))
    return curvature if s < _SELF_DUAL_STD else s**2 * (1.0 - (2.0 * math.pi * s) ** 2 * curvature)


def convolution_slack(tau: float) -> float:
    """How far discrete Gaussian noise is from a post-processing of continuous Gaussian noise.

    Let std >= tau, x an integer or real. Round a draw of the continuous N(x, std**2 - tau**2) to a discrete
    Gaussian of parameter tau centred at it. Every integer then has its probability under the discrete
    Gaussian of parameter std centred at x, up to a factor in [exp(-eta), exp(eta)]. For d coordinates and T
    releases eta is taken d * T times.

    Args:
        tau: Parameter of the rounding, in grid steps, >= 0.25. 3 costs 9 / std**2 of the variance.

    Returns:
        eta, rounded up: 3e-77 for tau = 3, and close to 4 exp(-2 pi**2 tau**2) in general.

    Raises:
        ParameterError: `tau` is not finite or below 0.25.

    Guarantee:
        If M and M' add discrete Gaussian noise of parameter std to integer vectors at L2 distance s, then
        delta(epsilon) of the pair is at most exp(d eta) * delta_G(epsilon - 2 d eta), where delta_G is the
        curve of two continuous Gaussians at distance s with standard deviation sqrt(std**2 - tau**2).

    Example:
        >>> convolution_slack(3.0) < 1e-75
        True

    Reference:
        docs/theory/noise.md, section 5; the idea is the convolution lemma of Peikert (2010), "An efficient
        and parallel Gaussian sampler for lattices", Theorem 3.1.
    """
    tau = check_positive("tau", tau)
    if tau < _SMALLEST_TAU:
        raise ParameterError(f"tau must be >= {_SMALLEST_TAU}, got {tau!r}.")
    odd = np.arange(1.0, 80.0, 2.0)
    eta = 4.0 * float(np.arctanh(np.exp(-2.0 * (math.pi * tau) ** 2 * odd)).sum())
    # The factor covers rounding and the terms left out (below 1e-40); the addition covers underflow.
    return eta * (1.0 + 1e-12) + sys.float_info.min
