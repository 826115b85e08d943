"""The exponential mechanism over finitely many candidates: whole scores, and exactly the law that is priced.

Scores are whole numbers. Weights are whole numbers too, e^(-rate s) in units of 2^-192 rounded up, and a
candidate is drawn by comparing a uniform whole number with their sums: no rounding decides anything. What
rounding does to the law is in the rate.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from fractions import Fraction
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count
from tacit.mechanisms.bernoulli import draw_words, exp_bounds
from tacit.mechanisms.randomized_response import check_level
from tacit.numerics import Array

__all__ = ["exponential_law", "sample_exponential"]

_BITS = 192
_DEEPEST = 88
"""Scores count up to this over the rate, 2^-127 of the largest weight: that is 2^64 units or more."""

_SLACK = Fraction(1, 2**60)
"""Each weight is at most 1 + 2^-63 times what it stands for, and so is their sum: this is more than both."""


def _weights(scores: npt.ArrayLike, level: float, spread: int) -> list[int]:
    """Return the weight of every candidate in units of 2^-192."""
    found = np.asarray(scores)
    if found.ndim != 1 or found.size == 0 or found.dtype.kind not in "iu":
        raise ParameterError(
            f"scores must be whole numbers of shape (k,), k >= 1, got {found.dtype} of shape {found.shape}."
        )
    check_count("spread", spread)
    rate = (Fraction(check_level("level", level, high=500.0)) - _SLACK) / spread
    # Less than every score alike, and no more than the deepest: neither changes what one record may move.
    held, where = np.unique(found.astype(object) - int(found.min()), return_inverse=True)
    deepest = math.floor(_DEEPEST / rate)
    each = [exp_bounds(rate * min(int(score), deepest), _BITS)[1] for score in held]
    return [each[k] for k in where]


def exponential_law(scores: npt.ArrayLike, level: float, *, spread: int) -> Array:
    """Return the probability of every candidate.

    Args:
        scores: Whole numbers, shape (k,); smaller is better.
        level: Pure epsilon.
        spread: How far apart the changes of two scores may be when one record is replaced.

    Returns:
        Shape (k,), float64: about proportional to exp(-level score / spread).

    Raises:
        ParameterError: As in `sample_exponential`.

    Example:
        >>> exponential_law([0, 2], 1.0, spread=2).round(6).tolist()
        [0.731059, 0.268941]
    """
    weights = _weights(scores, level, spread)
    total = sum(weights)
    return np.array([weight / total for weight in weights])


def sample_exponential(scores: npt.ArrayLike, level: float, *, spread: int, rng: np.random.Generator) -> int:
    """Draw a candidate, the better the likelier.

    Args:
        scores: Whole numbers, shape (k,), k >= 1; smaller is better.
        level: Pure epsilon, in [2**-30, 500].
        spread: Largest difference between two changes of scores when one record is replaced, >= 1: twice the
            largest change where changes have either sign.
        rng: Source of the randomness.

    Returns:
        The position of the candidate.

    Guarantee:
        Pure epsilon = level for whole scores, whatever they are: if all scores change by between a and a +
        spread, weights over their sum change by at most e^(rate spread), and rounding takes 2^-60 of the
        level.

    Raises:
        ParameterError: Scores that are not whole numbers, or a value out of its range.

    Reference:
        McSherry and Talwar (2007), FOCS, with the range in place of twice the sensitivity (Dong, Durfee and
        Rogers 2020, ICML); whole weights after Ilvento (2020), CCS.
    """
    sums = list(accumulate(_weights(scores, level, spread)))
    return bisect_right(sums, _below(sums[-1], rng))


def _below(high: int, rng: np.random.Generator) -> int:
    """Draw a whole number from 0 to high - 1, exactly uniform."""
    bits = (high - 1).bit_length()
    words = -(-bits // 64)
    while True:
        drawn = int.from_bytes(draw_words(words, rng).astype("<u8").tobytes(), "little") >> (
            64 * words - bits
        )
        if drawn < high:
            return drawn
