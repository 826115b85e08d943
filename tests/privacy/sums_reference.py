"""The law of a sum of discrete Gaussians, by convolution with forty digits; written without the library."""

from __future__ import annotations

from decimal import Decimal, localcontext
from functools import cache

import numpy as np

from tacit.numerics import Array

DIGITS = 50
_ONE = 10**DIGITS


@cache
def gaussian_law(std: float, reach: int) -> tuple[Decimal, ...]:
    """Probabilities of -reach, ..., reach under P(y) ~ exp(-y^2 / (2 std^2)), rounded to `DIGITS` digits."""
    with localcontext(prec=DIGITS + 10):
        half = [(-(Decimal(y) ** 2) / (2 * Decimal(std) ** 2)).exp() for y in range(reach + 1)]
        whole = half[0] + 2 * sum(half[1:])
        return tuple(half[abs(y)] / whole for y in range(-reach, reach + 1))


@cache
def sum_law(std: float, shares: int) -> tuple[Decimal, ...]:
    """Probabilities of -r, ..., r under the sum of that many; what is left out has mass below 1e-43."""
    reach = int(15 * std) + 3
    one = np.array([int(p * _ONE) for p in gaussian_law(std, reach)], dtype=object)
    found = np.array([_ONE], dtype=object)
    for _ in range(shares):  # whole numbers: nothing is lost but what is cut below 1e-50
        found = np.convolve(found, one) // _ONE
    return tuple(Decimal(int(p)) / _ONE for p in found)


def exact_delta(law: tuple[Decimal, ...], shift: int, epsilon: float) -> Decimal:
    """Hockey-stick divergence of a law from its shift, summed over all outcomes."""
    with localcontext(prec=DIGITS):
        ratio, zeros = Decimal(epsilon).exp(), (Decimal(0),) * shift
        pairs = zip(law + zeros, zeros + law, strict=True)
        return sum((max(p - ratio * q, Decimal(0)) for p, q in pairs), Decimal(0))


def wrapped(law: tuple[Decimal, ...], modulus: int) -> list[Decimal]:
    """The same law modulo a number."""
    reach = len(law) // 2
    folded = [Decimal(0)] * modulus
    for y, p in enumerate(law, -reach):
        folded[y % modulus] += p
    return folded


def wrapped_delta(law: tuple[Decimal, ...], modulus: int, shift: int, epsilon: float) -> Decimal:
    """Hockey-stick divergence of a law from its shift, both modulo a number."""
    with localcontext(prec=DIGITS):
        folded, ratio = wrapped(law, modulus), Decimal(epsilon).exp()
        gaps = (folded[(y - shift) % modulus] - ratio * folded[y] for y in range(modulus))
        return sum((max(gap, Decimal(0)) for gap in gaps), Decimal(0))


def as_floats(law: tuple[Decimal, ...]) -> Array:
    """The probabilities as floats."""
    return np.array([float(p) for p in law])
