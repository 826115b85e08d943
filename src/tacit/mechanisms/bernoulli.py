"""Exact Bernoulli(exp(-gamma)) decisions: floating point where it is certain, integers where it is not.

A decision compares a uniform number U in [0, 1) with p = exp(-gamma). 64 bits of U are drawn; where they lie
outside a rigorous error interval around the floating-point value of p, the comparison is already certain. The
rest (about one in 10**13) is settled by drawing more bits of U and by evaluating p between two integers, so
that the decision has exactly the probability exp(-gamma) and no rounding can be seen in it
(docs/theory/noise.md, section 1).

Which entries take the slow path depends on the noise alone, never on data.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
from randomgen import ChaCha

from tacit.errors import ParameterError, check_count
from tacit.numerics import Array, BoolArray

__all__ = [
    "LazyUniform",
    "below_exp",
    "decide_below_exp",
    "draw_below",
    "draw_words",
    "exp_bounds",
    "sample_bernoulli_exp",
]

_WORD_BITS = 64
_LARGEST_WORD = 2**_WORD_BITS - 1

# NumPy's exp is within 4 units in the last place (tests/mechanisms/test_bernoulli.py holds it to 32 of them);
# 64 are allowed for, which leaves room for the roundings of the comparison itself.
_EXP_ERROR = 2.0**-46


def draw_words(count: int, rng: np.random.Generator) -> Array:
    """Draw uniform 64-bit words.

    Args:
        count: How many.
        rng: Source of the words.

    Returns:
        Shape (count,), dtype uint64, uniform on 0, ..., 2**64 - 1.
    """
    if isinstance(rng.bit_generator, ChaCha):  # the same words, in half the time
        return np.asarray(rng.bit_generator.random_raw(count))
    # The full range is never rejected from, so that a word is 64 raw bits of the stream.
    return rng.integers(0, _LARGEST_WORD, size=count, dtype=np.uint64, endpoint=True)


def draw_below(threshold: int, count: int, rng: np.random.Generator) -> BoolArray:
    """Draw independent bits that are 1 with probability threshold / 2**64, exactly.

    A 64-bit word is compared with the threshold, its first byte first; one word in 256 has its others drawn
    as well. Nearly all bits cost an eighth of a word.

    Args:
        threshold: Whole number from 0 to 2**64 - 1.
        count: How many.
        rng: Source of the words.

    Returns:
        Shape (count,).
    """
    head, tail = divmod(threshold, 1 << 56)
    heads = np.ascontiguousarray(draw_words(-(-count // 8), rng)).view(np.uint8)[:count]
    below = heads < np.uint8(head)
    ties = np.flatnonzero(heads == np.uint8(head))
    below[ties] = draw_words(ties.size, rng) >> np.uint64(8) < np.uint64(tail)
    return below


def exp_bounds(gamma: Fraction, bits: int) -> tuple[int, int]:
    """Enclose 2**bits * exp(-gamma) between two integers.

    Args:
        gamma: Exact, >= 0.
        bits: Resolution, >= 1.

    Returns:
        (low, high) with low <= 2**bits * exp(-gamma) <= high and high - low <= 2.

    Raises:
        ParameterError: `gamma` is negative.
    """
    if gamma < 0:
        raise ParameterError(f"gamma must be a number >= 0, got {float(gamma)!r}.")
    if gamma == 0:
        return 1 << bits, 1 << bits
    if gamma > bits:  # exp(-gamma) < 2**-gamma; also keeps the digits below few
        return 0, 1
    # Division and exp are correctly rounded (the decimal module's documentation): half a unit in the last of
    # `digits` digits each, the first one magnified by gamma. The four digits to spare make the enclosure
    # narrower than 1.
    digits = math.ceil(bits * math.log10(2)) + len(str(math.floor(gamma))) + 4
    context = decimal.Context(
        prec=digits, rounding=decimal.ROUND_HALF_EVEN, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX
    )
    ratio = context.divide(decimal.Decimal(gamma.numerator), decimal.Decimal(gamma.denominator))
    value = Fraction(context.exp(ratio.copy_negate())) * (1 << bits)
    radius = value * Fraction(math.floor(gamma) + 2, 10 ** (digits - 1))
    return math.floor(value - radius), math.ceil(value + radius)


class LazyUniform:
    """A uniform number in [0, 1) of which only the leading bits have been drawn; it draws more when it must.

    All comparisons of one instance are with the same number.

    Args:
        word: The 64 leading bits, uniform.
        rng: Source of the bits to come.
    """

    __slots__ = ("_bits", "_head", "_rng")

    def __init__(self, word: int, rng: np.random.Generator) -> None:
        check_count("word", word, low=0, high=_LARGEST_WORD)
        self._head = int(word)
        self._bits = _WORD_BITS
        self._rng = rng

    def below_exp(self, gamma: Fraction) -> bool:
        """Decide exactly whether the number lies below exp(-gamma).

        Args:
            gamma: Exact, >= 0. No tie is possible: exp of a rational other than 0 is irrational.

        Returns:
            True with probability exp(-gamma) over the bits.

        Raises:
            ParameterError: `gamma` is negative.
        """
        while True:
            low, high = exp_bounds(gamma, self._bits)
            if self._head + 1 <= low:
                return True
            if self._head >= high:
                return False
            self._head = self._head << _WORD_BITS | int(draw_words(1, self._rng)[0])
            self._bits += _WORD_BITS


def decide_below_exp(words: Array, gamma: Array, error: Array | float) -> tuple[BoolArray, BoolArray]:
    """Compare uniform numbers with exp(-gamma) as far as 64 bits and floating point are certain.

    Args:
        words: Shape (n,), uint64; the number is in [word, word + 1) / 2**64.
        gamma: Shape (n,), float64, approximations of the exact exponents.
        error: Scalar or shape (n,); the exact exponents are within `gamma` +- `error`.

    Returns:
        (below, undecided), both shape (n,): where `undecided` is False, `below` is the exact answer.
    """
    centre = np.exp(-gamma) * 2.0**_WORD_BITS
    # exp(error) - 1 <= 2 error for error <= 1. The 2 covers the undrawn bits and a centre that underflowed.
    radius = centre * (2.0 * np.asarray(error) + _EXP_ERROR) + 2.0
    position = words.astype(np.float64)
    below = position < centre - radius
    # NaN fails both comparisons and is therefore undecided.
    undecided = ~(below | (position > centre + radius)) | (np.asarray(error) > 1.0)
    return below, undecided


def sample_bernoulli_exp(
    gamma: Array, *, error: Array | float, exact: Callable[[int], Fraction], rng: np.random.Generator
) -> BoolArray:
    """Draw independent Bernoulli(exp(-gamma)) bits, exactly.

    Args:
        gamma: Shape (n,), float64, approximations of the exponents.
        error: Scalar or shape (n,): a proven bound on |gamma - exact exponent|, entry by entry. The law is
            exact only if it is a bound; its size only decides how often `exact` is called.
        exact: Gives the exact exponent, >= 0, of the entry with this index.
        rng: Source of the bits.

    Returns:
        Shape (n,); entry i is True with probability exp(-exact(i)), with no rounding.

    Raises:
        ParameterError: `gamma` does not have one axis, or an exact exponent is negative.

    Cost:
        One 64-bit word and one exp per entry; about 1 entry in 10**13 takes some 50 microseconds instead.

    Example:
        >>> gamma = np.array([0.0, 1e3])
        >>> bits = sample_bernoulli_exp(
        ...     gamma, error=0.0, exact=lambda i: Fraction(float(gamma[i])), rng=np.random.default_rng(0)
        ... )
        >>> bits.tolist()
        [True, False]

    Reference:
        docs/theory/noise.md, section 1. Same law as Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4,
        Algorithm 1, which needs a random number of integer draws per bit.
    """
    if gamma.ndim != 1:
        raise ParameterError(f"gamma must have shape (n,), got shape {gamma.shape}.")
    return below_exp(draw_words(gamma.size, rng), gamma, error=error, exact=exact, rng=rng)


def below_exp(
    words: Array,
    gamma: Array,
    *,
    error: Array | float,
    exact: Callable[[int], Fraction],
    rng: np.random.Generator,
) -> BoolArray:
    """Return `sample_bernoulli_exp` for uniform numbers of which the 64 leading bits are drawn already."""
    below, undecided = decide_below_exp(words, gamma, error)
    for index in np.flatnonzero(undecided).tolist():
        below[index] = LazyUniform(int(words[index]), rng).below_exp(exact(index))
    return below
