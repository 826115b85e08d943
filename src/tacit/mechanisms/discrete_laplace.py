"""The discrete Laplace law on the integers, sampled exactly.

P(x) is proportional to exp(-|x| / scale). A magnitude is written as width * quotient + offset with a power of
two as width: the quotient is geometric and comes from one uniform number by inversion, the offset is nearly
uniform (docs/theory/noise.md, section 2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_positive
from tacit.mechanisms.bernoulli import LazyUniform, draw_words, sample_bernoulli_exp
from tacit.numerics import Array, BoolArray, IntArray

__all__ = [
    "Proposals",
    "block_width",
    "check_integers",
    "discrete_laplace_log_pmf",
    "discrete_laplace_variance",
    "exact_scale",
    "fill",
    "geometric_quotients",
    "propose",
    "sample_discrete_laplace",
]

Size = int | tuple[int, ...]

_SMALLEST_SCALE = 2.0**-20
_LARGEST_SCALE = 2.0**55
_LARGEST_MAGNITUDE = 2**62  # 128 times the largest scale: beyond it lies less than exp(-128) of the law
_BLOCKS_PER_SCALE = 128  # an offset is kept with probability > 1 - 1/128; quotients are below 17 * 256
_BATCH = 2**13  # the arrays of a batch stay in the second-level cache


def exact_scale(name: str, value: float | Fraction) -> Fraction:
    """Read a scale as the exact rational number that it is.

    Args:
        name: What an error calls the argument.
        value: In [2**-20, 2**55], in units of the integer grid.

    Returns:
        The same number.

    Raises:
        ParameterError: `value` is not finite or out of range: above, results may not fit 64 bits; below, the
            law is the constant 0 for all purposes, which is no noise.
    """
    if not isinstance(value, Fraction):
        value = check_positive(name, value)
    if not _SMALLEST_SCALE <= value <= _LARGEST_SCALE:
        raise ParameterError(f"{name} must be in [2**-20, 2**55] grid steps, got {value!r}.")
    return Fraction(value)


def check_integers(name: str, values: npt.ArrayLike) -> Array:
    """View integers as float64.

    Args:
        name: What an error calls the argument.
        values: Any shape, integer dtype.

    Returns:
        The same shape, float64.

    Raises:
        ParameterError: another dtype.
    """
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ParameterError(f"{name} must be integers, got dtype {array.dtype}.")
    return array.astype(np.float64)


def fill(size: Size, rate: float, draw: Callable[[int], IntArray]) -> IntArray:
    """Collect what a rejection sampler accepts until an array is full.

    Args:
        size: Shape of the result.
        rate: Roughly the accepted share of the proposals; a wrong value costs time only.
        draw: Makes that many proposals and returns the accepted ones, in order.

    Returns:
        Shape `size`, int64: the first accepted values.

    Raises:
        ParameterError: `size` has an entry that is not a whole number >= 0.
    """
    shape = size if isinstance(size, tuple) else (size,)
    for length in shape:
        check_count("size", length, low=0)
    out = np.empty(math.prod(shape), dtype=np.int64)
    filled = 0
    while filled < out.size:
        missing = out.size - filled
        accepted = draw(min(_BATCH, math.ceil(1.05 * missing / rate) + 8))[:missing]
        out[filled : filled + accepted.size] = accepted
        filled += accepted.size
    return out.reshape(shape)


def block_width(scale: Fraction) -> int:
    """Return the width of a block: the largest power of two up to scale / 128, or 1."""
    blocks = math.floor(scale / _BLOCKS_PER_SCALE)
    return 1 << max(blocks.bit_length() - 1, 0)


def _exact_quotient(word: int, scale: Fraction, rng: np.random.Generator) -> int:
    """Return floor(-scale * ln U) for a number U in [0, 1) that starts with `word`."""
    uniform = LazyUniform(word, rng)
    # Where the search starts has no influence on where it ends.
    quotient = max(math.floor(-float(scale) * math.log((word + 1) / 2**64)), 0)
    while quotient and not uniform.below_exp(quotient / scale):
        quotient -= 1
    while uniform.below_exp((quotient + 1) / scale):
        quotient += 1
    return quotient


def geometric_quotients(words: Array, scale: Fraction, rng: np.random.Generator) -> IntArray:
    """Invert the tail of the geometric law with ratio exp(-1 / scale), exactly.

    Args:
        words: Shape (n,), uint64, uniform: the leading bits of U in [0, 1).
        scale: Exact, in [2**-20, 256].
        rng: Source of further bits, for the few entries (1 in 10**7) that 64 bits do not settle in float64.

    Returns:
        Shape (n,): floor(-scale * ln U), which is at least k with probability exp(-k / scale).
    """
    centre = np.log((words.astype(np.float64) + 0.5) * 2.0**-64) * -float(scale)
    # For words from 2**40 on, -ln U is known within 2**-40: derivation in docs/theory/noise.md, section 2.
    slack = float(scale) * 2.0**-39
    low = np.floor(centre - slack)
    undecided = (low != np.floor(centre + slack)) | (words < 2**40)
    quotients = low.astype(np.int64)
    for index in np.flatnonzero(undecided).tolist():
        quotients[index] = _exact_quotient(int(words[index]), scale, rng)
    return quotients


class Proposals(NamedTuple):
    """Candidates for two-sided rejection sampling; entries of shape (n,).

    Attributes:
        magnitude: |x| = width * quotient + offset, int64.
        offset: Uniform on 0, ..., width - 1, int64.
        negative: Sign.
        valid: False for a second zero (magnitude 0, negative) and for magnitudes from 2**62 on. To be
            rejected.
    """

    magnitude: IntArray
    offset: IntArray
    negative: BoolArray
    valid: BoolArray

    def accepted(self, keep: BoolArray) -> IntArray:
        """Return the signed values of the candidates that are valid and kept."""
        keep = keep & self.valid
        magnitude = self.magnitude[keep]
        return np.where(self.negative[keep], -magnitude, magnitude)


def propose(count: int, scale: Fraction, rng: np.random.Generator) -> Proposals:
    """Draw candidates x with P(x) proportional to exp(-(|x| - offset(x)) / scale).

    Args:
        count: How many.
        scale: From `exact_scale`.
        rng: Source of two words per candidate.

    Returns:
        Independent candidates. Keeping one with probability exp(-offset / scale) gives the discrete Laplace
        law.
    """
    width = block_width(scale)
    quotient = geometric_quotients(draw_words(count, rng), scale / width, rng)
    largest = _LARGEST_MAGNITUDE // width
    valid = quotient < largest
    words = draw_words(count, rng)
    offset = ((words >> np.uint64(1)) & np.uint64(width - 1)).astype(np.int64)
    negative = (words & np.uint64(1)).astype(np.bool_)
    magnitude = np.minimum(quotient, largest) * width + offset
    valid &= ~(negative & (magnitude == 0))
    return Proposals(magnitude, offset, negative, valid)


def sample_discrete_laplace(scale: float | Fraction, size: Size, rng: np.random.Generator) -> IntArray:
    """Draw from the discrete Laplace law, P(x) proportional to exp(-|x| / scale), exactly.

    Args:
        scale: In grid steps, in [2**-20, 2**55]; a float stands for exactly the rational number that it is.
        size: Shape of the result.
        rng: Source of the noise; the secure stream when the noise leaves.

    Returns:
        Shape `size`, int64. The law is exact, conditioned on |x| < 2**62, which fails with probability <
        exp(-128) at the largest scale and < exp(-4096) up to 2**50.

    Raises:
        ParameterError: `scale` or `size` is out of range.

    Guarantee:
        Added to an integer of sensitivity s, the result is (s / scale)-DP, pure: log P(x) - log P(x + s) is
        at most s / scale.

    Cost:
        About 0.1 microseconds and three 64-bit words per sample.

    Example:
        >>> sample_discrete_laplace(0.01, 3, np.random.default_rng(0)).tolist()
        [0, 0, 0]

    Reference:
        Law: Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4, Section 5.2; sampler:
            docs/theory/noise.md,
        section 2.
    """
    exact = exact_scale("scale", scale)

    def draw(count: int) -> IntArray:
        candidates = propose(count, exact, rng)
        gamma = candidates.offset / float(exact)
        keep = sample_bernoulli_exp(
            gamma,
            error=2.0**-50 * gamma,  # three roundings, each within a factor 1 +- 2**-53
            exact=lambda index: int(candidates.offset[index]) / exact,
            rng=rng,
        )
        return candidates.accepted(keep)

    # Only the second zero is rejected often: half of the mass 1 - exp(-1 / scale) at magnitude 0.
    rate = 1.0 - 0.5 * -math.expm1(-1.0 / float(exact))
    return fill(size, rate, draw)


def discrete_laplace_log_pmf(x: npt.ArrayLike, scale: float | Fraction) -> Array:
    """Log-probabilities of the discrete Laplace law.

    Args:
        x: Integers, any shape.
        scale: In grid steps, in [2**-20, 2**55].

    Returns:
        The shape of `x`, float64: ln tanh(1 / (2 scale)) - |x| / scale.

    Raises:
        ParameterError: `x` is not integer or `scale` is out of range.

    Example:
        >>> float(np.exp(discrete_laplace_log_pmf(np.arange(-99, 100), 2.0)).sum().round(12))
        1.0
    """
    values = check_integers("x", x)
    s = float(exact_scale("scale", scale))
    # Sum over the integers: (1 + e^(-1/s)) / (1 - e^(-1/s)) = coth(1 / (2 s)).
    return np.asarray(math.log(math.tanh(0.5 / s)) - np.abs(values) / s)


def discrete_laplace_variance(scale: float | Fraction) -> float:
    """Variance of the discrete Laplace law, in squared grid steps.

    Args:
        scale: In grid steps, in [2**-20, 2**55].

    Returns:
        2 e^(-1/scale) / (1 - e^(-1/scale))**2, which lies below 2 scale**2.

    Raises:
        ParameterError: `scale` is out of range.

    Example:
        >>> round(discrete_laplace_variance(100.0), 3)
        19999.833
    """
    s = float(exact_scale("scale", scale))
    return 2.0 * math.exp(-1.0 / s) / math.expm1(-1.0 / s) ** 2
