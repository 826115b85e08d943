"""The discrete Gaussian on the integers: exact sampler, law, and distance from the continuous one.

P(x) is proportional to exp(-x**2 / (2 std**2)). `std` is the parameter of the law; its standard deviation
sqrt(discrete_gaussian_variance(std)) is at most that, and equal to it within 1e-6 from std = 1 on.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_positive
from tacit.mechanisms.bernoulli import below_exp, draw_words
from tacit.mechanisms.blocks import HEAD_BITS, Blocks
from tacit.mechanisms.discrete_laplace import Size, check_integers, exact_scale, fill
from tacit.numerics import Array, BoolArray, IntArray

__all__ = [
    "convolution_slack",
    "discrete_gaussian_log_pmf",
    "discrete_gaussian_variance",
    "sample_discrete_gaussian",
    "shares_slack",
]

# Where both series of the theta function converge alike: terms exp(-pi k**2). Eight of them end below 1e-87.
_SELF_DUAL_STD = 1.0 / math.sqrt(2.0 * math.pi)
_TERMS = np.arange(1.0, 9.0)

_SMALLEST_TAU = 0.25

_SHARES_ALONE = 1000
"""Terms of a sum that are computed; the others are bounded by the last of them."""

_LARGEST = 2**62
_TO_SPARE = 32  # candidates among which one at most, most often, needs a second word
_WIDEST = 24  # bits of an offset from which a candidate takes two words


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
        About one 64-bit word per sample from std = 1 on (two from 2**29 on, and for the smallest), some 50
        nanoseconds; the first call with a std some milliseconds.

    Example:
        >>> sample_discrete_gaussian(0.01, 3, np.random.default_rng(0)).tolist()
        [0, 0, 0]

    Reference:
        Law: Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4. Rejection from blocks in which the law is
        nearly flat, found by a table whose bounds are exact numbers: docs/theory/noise.md, section 3.
    """
    blocks, rate = _of_float(std) if type(std) is float else _blocks(exact_scale("std", std))
    return fill(size, rate, lambda count: _accepted(count, blocks, rng))


@lru_cache(maxsize=64)
def _blocks(std: Fraction) -> tuple[Blocks, float]:
    """Return the blocks of a law, and the share of candidates that are accepted."""
    blocks = Blocks.of(std)
    # Candidates are two signs of each magnitude, every one with the weight of the first of its block.
    log_candidates = math.log(2.0 * blocks.total) + blocks.shift * math.log(2.0)
    return blocks, math.exp(_log_normaliser(float(std)) - log_candidates)


@lru_cache(maxsize=64)
def _of_float(std: float) -> tuple[Blocks, float]:
    """Return the same of the number that a float is, without making a fraction of it every time."""
    return _blocks(exact_scale("std", std))


def _accepted(count: int, blocks: Blocks, rng: np.random.Generator) -> IntArray:
    """Make that many proposals and return the accepted ones.

    The upper half of a word says which block; the lower one the sign, the offset, and from the top the number
    that decides whether the candidate is kept. Wide blocks take a second word for that.
    """
    words, shift = draw_words(count + count // _TO_SPARE + 8, rng), blocks.shift
    words, more = words[:count], words[count:]
    quotient, undecided = blocks.quotients((words >> np.uint64(HEAD_BITS)).astype(np.uint32))
    keep = np.ones(count, dtype=np.bool_)
    for index in undecided.tolist():
        exact = blocks.exact_quotient(int(words[index]) >> HEAD_BITS, rng)
        keep[index] = exact << shift < _LARGEST
        quotient[index] = exact if keep[index] else 0
    # At least eight bits must be left, or too many candidates would need more.
    spare = 32 if shift < _WIDEST else 64
    rest = words & np.uint64(2**32 - 1) if spare == 32 else draw_words(count, rng)
    negative = (rest & np.uint64(1)).astype(np.bool_)
    magnitude = quotient << shift
    if shift:
        offset = ((rest >> np.uint64(1)) & np.uint64((1 << shift) - 1)).view(np.int64)
        magnitude += offset
        gamma, bits = blocks.exponents(quotient, offset), spare - shift - 1
        heads = rest >> np.uint64(shift + 1)
        unclear, late = _compared(heads, gamma, bits)
        if unclear.size > more.size:
            more = draw_words(unclear.size, rng)
        keep[unclear[late]] = False
        at = unclear[~late]
        if at.size:
            keep[at] &= below_exp(
                (heads[at] << np.uint64(64 - bits)) | (more[: late.size][~late] >> np.uint64(bits)),
                gamma[at],
                error=2.0**-50 * gamma[at],
                exact=lambda k: blocks.exact_exponent(int(quotient[at[k]]), int(offset[at[k]])),
                rng=rng,
            )
    if np.count_nonzero(magnitude) < count:
        keep &= (magnitude > 0) | ~negative  # or zero would come twice
    np.negative(magnitude, out=magnitude, where=negative)
    return magnitude[keep]


def _compared(heads: Array, gamma: Array, bits: int) -> tuple[IntArray, BoolArray]:
    """Compare numbers that start with `bits` bits with exp(-gamma), without an exp.

    Args:
        heads: Shape (n,), uint64: the number is in [head, head + 1) / 2**bits.
        gamma: Shape (n,), within a relative 2**-50.
        bits: 8 to 39.

    Returns:
        Indices of those that may not be below it, and which of them are above it for certain.
    """
    top = 2.0**bits
    # exp is at least the first two terms of its series.
    unclear = np.flatnonzero(heads > ((1.0 - 2.0**-48) * top - 1.0) - gamma * top)
    steep = gamma[unclear]
    # The other bound: exp is at most the first three terms of its series.
    return unclear, heads[unclear] > (1.0 + 2.0**-48 - steep * (1.0 - 0.5 * steep)) * top


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


def shares_slack(std: float, shares: int) -> float:
    """How far a sum of discrete Gaussians is from the discrete Gaussian of its variance.

    Every integer has its probability under the sum of `shares` independent draws of parameter std, up to a
    factor in [exp(-kappa), exp(kappa)], under the law of parameter sqrt(shares) * std.

    Args:
        std: Parameter of each, in grid steps; std / sqrt(2) >= 0.25.
        shares: How many, >= 1.

    Returns:
        kappa, rounded up: the sum over k < shares of eta(std sqrt(k / (k + 1))), with eta as in
        `convolution_slack`. About 4 exp(-pi^2 std^2): 2e-4 for std = 1, 1.1e-38 for std = 3.

    Raises:
        ParameterError: An argument is out of its range.

    Example:
        >>> f"{shares_slack(1.0, 2):.3e} {shares_slack(1.0, 10):.3e}"
        '2.069e-04 2.174e-04'

    Reference:
        docs/theory/noise.md, section 7.
    """
    check_count("shares", shares)
    std = check_positive("std", std)
    alone = min(shares - 1, _SHARES_ALONE)
    slack = math.fsum(convolution_slack(std * math.sqrt(k / (k + 1))) for k in range(1, alone + 1))
    # eta falls with its argument, so that each of those to come is below the last.
    return (
        slack
        if alone == shares - 1
        else slack + (shares - 1 - alone) * convolution_slack(std * math.sqrt(alone / (alone + 1)))
    )
