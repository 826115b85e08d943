"""The same maximum without floating point: whole numbers on a grid of 2^-bits, every rounding outwards.

e^epsilon is irrational, so b = (1 - D) / (e^epsilon + 1) and e^-t are replaced by grid points on the safe
side: a smaller b means teachers with a larger epsilon, a larger e^-t a smaller target. a = 1 - b, D and gamma
are then grid points themselves, and H and H' differ from exact numbers by the roundings of K sums, all of
which go the safe way. What passes here has the stated guarantee for sure.

Source: docs/theory/voting.md, sections 2 and 3.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.errors import ParameterError
from tacit.privacy.certified.tables import Tables, Violator
from tacit.privacy.certified.vertices import (
    Counts,
    Teachers,
    check_scannable,
    check_vote_level,
    is_monotone,
    output_probabilities,
    with_unmoved,
)
from tacit.privacy.curves import Array

__all__ = ["GRID", "exact_worst_case"]

GRID = 2**52
"""Released values of gamma are whole multiples of 1 / GRID: then (1 +- gamma) / 2 are floats, exactly."""


def exact_worst_case(
    teachers: Teachers, gamma: Array, target_epsilon: float, *, full: bool = False
) -> tuple[Fraction, Counts]:
    """Return the least delta of a noisy majority as a fraction, rounded up by less than 2^-100.

    Args:
        teachers: Who votes.
        gamma: Shape (ceil(K / 2),), whole multiples of 1 / `GRID`.
        target_epsilon: > 0 and at most 300.
        full: Scan all eight vertices even where gamma is monotone, which needs only three.

    Returns:
        (needed, counts): the largest H - e^t H', not above 0 for pure DP, and where it is attained.

    Raises:
        ParameterError: As `worst_case`, or a gamma off the grid.

    Cost:
        Some 100 times that of floating point: 1 to 2 s for 21 teachers over all vertices.
    """
    check_vote_level("target_epsilon", target_epsilon)
    chances = output_probabilities(teachers.count, gamma)
    if np.any(np.asarray(gamma) * GRID % 1):
        raise ParameterError("gamma must consist of multiples of 2**-52 for an exact certificate.")
    # H' may be as small as b^K, and must not be lost beside 2^-bits.
    bits = 192 + min(math.ceil(-teachers.movable * math.log2(teachers.worst_zero)), 4096)
    bits += math.ceil(target_epsilon / math.log(2))  # differences are divided by e^-t in the end
    one = 1 << bits
    d = math.ceil(Fraction(float(teachers.delta)) * one)
    shrunk = _exp_below(Fraction(float(teachers.epsilon)), bits)
    b = math.floor((one - d) * shrunk / (1 + shrunk))
    discount = _exp_above(Fraction(float(target_epsilon)), bits)

    def mix_down(v: Array, p: Any, q: Any) -> Array:
        return np.asarray((q * v[..., :-1] + p * v[..., 1:]) >> bits)

    def mix_up(v: Array, p: Any, q: Any) -> Array:
        return np.asarray(-((q * v[..., :-1] + p * v[..., 1:]) // -one))

    chain = is_monotone(gamma) and not full
    if not chain:
        check_scannable(teachers)
    phi = np.array([int(Fraction(chance) * one) for chance in chances.tolist()], dtype=object)
    best, where = -2 * one, (teachers.count, 0, 0, 0, 0, 0, 0, 0)
    for ones in range(teachers.windows):
        tables = Tables(
            phi=phi[ones : ones + teachers.movable + 1],
            one=(one - b, b),
            zero=(b, one - b),
            tail=(d, one - d) if d else None,
            above=lambda high: np.asarray(-(high * discount // -one)),
            below=lambda low: low,
            mix_up=mix_up,
            mix_down=mix_down,
            never=4 * one,
        )
        for value, counts in _cases(tables, best, chain=chain):
            if value > best:
                best, where = int(value), with_unmoved(teachers, counts, ones)
    # `best` is H e^-t - H' with e^-t above; divided by e^-t it must not get smaller.
    low_discount = math.floor(_exp_below(Fraction(float(target_epsilon)), bits) * one)
    return Fraction(best, low_discount if best > 0 else discount), where


def _cases(tables: Tables, above: int, *, chain: bool) -> Iterator[Violator]:
    """Yield the worst case of all that a monotone gamma needs, or of each block of all cases."""
    if not chain:
        yield from tables.blocks(above)
        return
    upper, lower, counts_of = tables.chain()
    at = int(np.argmax(upper - lower))
    yield Violator(int((upper - lower)[at]), counts_of(at))


def _exp_below(x: Fraction, bits: int) -> Fraction:
    """Return a number below e^-x, x > 0, by less than 2^-bits e^-x."""
    return _exp(x, bits) * (1 - Fraction(1, 1 << (bits + 8)))


def _exp_above(x: Fraction, bits: int) -> int:
    """Return 2^bits e^-x, x > 0, rounded up."""
    return math.ceil(_exp(x, bits) * (1 + Fraction(1, 1 << (bits + 8))) * (1 << bits))


def _exp(x: Fraction, bits: int) -> Fraction:
    """Return e^-x within a factor 1 +- 2^-(bits + 8)."""
    # Division and exp of decimals are correctly rounded: half a unit in the last digit each, the first one
    # magnified by x < 10^len(str(x)).
    digits = math.ceil((bits + 8) * math.log10(2)) + len(str(math.floor(x))) + 4
    context = decimal.Context(prec=digits, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
    ratio = context.divide(decimal.Decimal(x.numerator), decimal.Decimal(x.denominator))
    return Fraction(context.exp(ratio.copy_negate()))
