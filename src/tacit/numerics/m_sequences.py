"""Bits of maximal period: every shift of one agrees with it in the same number of places."""

from __future__ import annotations

from functools import cache

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.numerics.arrays import IntArray

__all__ = ["HIGHEST_DEGREE", "m_sequence_support", "primitive_taps"]

_TAPS: dict[int, tuple[int, ...]] = {
    1: (),
    2: (1,),
    3: (1,),
    4: (1,),
    5: (2,),
    6: (1,),
    7: (1,),
    8: (4, 3, 2),
    9: (4,),
    10: (3,),
    11: (2,),
    12: (6, 4, 1),
    13: (4, 3, 1),
    14: (10, 6, 1),
    15: (1,),
    16: (12, 3, 1),
    17: (3,),
    18: (7,),
    19: (5, 2, 1),
    20: (3,),
    21: (2,),
    22: (1,),
    23: (5,),
    24: (4, 3, 1),
}

HIGHEST_DEGREE = max(_TAPS)
"""The largest degree in the table of primitive polynomials."""


def _times(a: int, b: int, modulus: int) -> int:
    """Multiply polynomials over two elements, whose coefficients are bits, modulo one of degree r."""
    top, product = 1 << modulus.bit_length() - 1, 0
    while b:
        if b & 1:
            product ^= a
        a, b = a << 1, b >> 1
        if a & top:
            a ^= modulus
    return product


def _power(exponent: int, modulus: int) -> int:
    """Return x**exponent modulo a polynomial."""
    result, square = 1, 2 if modulus > 3 else 1
    while exponent:
        if exponent & 1:
            result = _times(result, square, modulus)
        square, exponent = _times(square, square, modulus), exponent >> 1
    return result


def _primes(n: int) -> list[int]:
    """Return the prime divisors of n."""
    found, p = [], 2
    while p * p <= n:
        if n % p == 0:
            found.append(p)
            while n % p == 0:
                n //= p
        p += 1
    return found + [n] * (n > 1)


@cache
def primitive_taps(degree: int) -> tuple[int, ...]:
    """Return the exponents a of a primitive polynomial x^r + sum of x^a + 1 over two elements.

    Args:
        degree: r, from 1 to 24.

    Returns:
        Exponents between 0 and r. That x has order 2^r - 1, which is what primitive means, is computed.

    Raises:
        ParameterError: A degree that is not in the table.

    Example:
        >>> primitive_taps(3), primitive_taps(8)
        ((1,), (4, 3, 2))
    """
    r = check_count("degree", degree, high=HIGHEST_DEGREE)
    taps = _TAPS[r]
    if not _is_primitive(r, taps):
        raise ParameterError(f"degree {r} has taps {taps} in the table, which are not primitive.")
    return taps


def _is_primitive(r: int, taps: tuple[int, ...]) -> bool:
    """Whether x generates all 2^r - 1 polynomials modulo x^r + sum of x^a + 1."""
    modulus, order = 1 << r | 1 | sum(1 << a for a in taps), 2**r - 1
    return _power(order, modulus) == 1 and all(_power(order // p, modulus) != 1 for p in _primes(order))


def m_sequence_support(degree: int) -> IntArray:
    """Return where a sequence of bits of period 2^r - 1 is 1: half of a power of two of places.

    s[t + r] is the sum of s[t] and of all s[t + a], from r - 1 zeros and a one. The places are a difference
    set: each shift of them but the first shares 2^(r-2) places with them. So every coefficient of the Fourier
    transform of their indicator but the first has the square 2^(r-2).

    Args:
        degree: r, from 1 to 24.

    Returns:
        Shape (2^(r-1),), int64, increasing, from 0 to 2^r - 2.

    Raises:
        ParameterError: A degree that is not in the table.

    Example:
        >>> m_sequence_support(3).tolist(), m_sequence_support(2).tolist(), m_sequence_support(1).tolist()
        ([2, 4, 5, 6], [1, 2], [0])

    Reference:
        Golomb (1967), Shift Register Sequences; Singer (1938), Trans. AMS 43, for the difference set.
    """
    taps = primitive_taps(degree)
    period = 2**degree - 1
    bits = np.zeros(period, dtype=np.uint8)
    bits[degree - 1] = 1
    known = degree
    while known < period:
        # Squaring the polynomial doubles its exponents, so that the recurrence reaches further and further.
        stretch = 1 << (known // degree).bit_length() - 1
        width = min((degree - max(taps)) * stretch, period - known)
        start = known - degree * stretch
        new = bits[start : start + width].copy()
        for a in taps:
            new ^= bits[start + a * stretch : start + a * stretch + width]
        bits[known : known + width] = new
        known += width
    return np.flatnonzero(bits).astype(np.int64)
