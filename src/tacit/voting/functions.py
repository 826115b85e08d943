"""Noise functions with a formula: constants, subsampling, double subsampling.

A noise function gives the probability gamma(l) with which the majority of l ones among K votes is published;
else a fair coin is. Here it is the vector of its values for l = h, ..., K, with gamma(K - l) = gamma(l).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.numerics import Array
from tacit.privacy.certified import Teachers, vertex_pairs, worst_case
from tacit.privacy.composition import basic_composition
from tacit.voting.setting import Setting

__all__ = [
    "full_gamma",
    "gamma_constant",
    "gamma_double_subsampling",
    "gamma_subsampling",
    "rr_probability_composed",
    "rr_probability_tight",
]

_MOST_VOTERS = 10**6
_MOST_SUBSAMPLED = 2001  # whole numbers with very many digits: some seconds


def full_gamma(teachers: int, gamma: npt.ArrayLike) -> Array:
    """Return gamma(0), ..., gamma(K) from the values for more than half of the votes.

    Args:
        teachers: K.
        gamma: Shape (ceil(K / 2),).

    Returns:
        Shape (K + 1,); 0 at a tie.
    """
    half = np.asarray(gamma, dtype=np.float64)
    return np.concatenate([half[::-1], [] if teachers % 2 else [0.0], half])


def gamma_constant(teachers: int, probability: float) -> Array:
    """Return the noise function of randomized response: one probability whatever the votes.

    Args:
        teachers: K >= 1.
        probability: In [0, 1].

    Returns:
        Shape (ceil(K / 2),).

    Reference:
        Jiang (2025), Algorithm 7.
    """
    check_count("teachers", teachers, high=_MOST_VOTERS)
    check_probability("probability", probability)
    return np.full((teachers + 1) // 2, float(probability))


def gamma_subsampling(teachers: int, size: int) -> Array:
    """Return the noise function with the law of the majority of a uniform sample of the votes.

    Args:
        teachers: K >= 1.
        size: How many votes are drawn without replacement, 1 to K. Ties in the sample are a fair coin, so an
            even size 2k has the law of 2k - 1.

    Returns:
        Shape (ceil(K / 2),): 2 q(l) - 1, with q(l) the chance that the sample has more ones. Exact but for
        one rounding.

    Raises:
        ParameterError: A size outside 1, ..., K.

    Example:
        >>> gamma_subsampling(5, 3).tolist()
        [0.4, 1.0, 1.0]

    Reference:
        Jiang (2025), Lemma 3.4.1, with a fair coin for ties (misprinted in Algorithm 8: see docs/errata.md).
    """
    check_count("teachers", teachers, high=_MOST_SUBSAMPLED)
    check_count("size", size, high=teachers)
    k, m = int(teachers), int(size)
    total = math.comb(k, m)
    found = []
    for ones in range(k // 2 + 1, k + 1):
        # P(more ones) - P(more zeros), in whole numbers.
        wins = sum(
            math.comb(ones, j) * math.comb(k - ones, m - j) * (1 if 2 * j > m else -1)
            for j in range(max(0, m - k + ones), min(ones, m) + 1)
            if 2 * j != m
        )
        found.append(float(Fraction(wins, total)))
    return np.array(found)


def gamma_double_subsampling(teachers: int, allowance: float) -> Array:
    """Return the noise function of the majority of 2m - 1 sampled votes, which costs no more than m votes.

    Args:
        teachers: K >= 1.
        allowance: m in [1, K], rounded down to a whole number.

    Returns:
        Shape (ceil(K / 2),). For independent (epsilon, delta)-DP votes the published bit is
        (m epsilon, 1 - (1 - delta)^m)-DP.

    Raises:
        ParameterError: An allowance outside [1, K].

    Reference:
        Jiang (2025), Theorem 3.5.1, for equal and pure teachers; for all others derived in
        docs/theory/voting.md, section 4.
    """
    check_count("teachers", teachers, high=_MOST_SUBSAMPLED)
    check_positive("allowance", allowance)
    if not 1 <= allowance <= teachers:
        raise ParameterError(f"allowance must be in [1, {teachers}], got {allowance!r}.")
    return gamma_subsampling(teachers, min(2 * math.floor(allowance) - 1, int(teachers)))


def rr_probability_composed(
    setting: Setting, *, votes_epsilon: float | None = None, votes_delta: float = 0.0
) -> float:
    """Return the largest constant gamma that composition alone proves; the teachers may depend on each other.

    Args:
        setting: The teachers and the target.
        votes_epsilon: What all votes that a change may reach cost together by a composition theorem; by the
            basic one if not given.
        votes_delta: The delta that goes with it.

    Returns:
        min(1, ((E - 1)/2 + target_delta) / max(q - E q' + (E - 1)/2)), the maximum over the vertices (q, q')
        of the laws that a majority of such votes may have, rounded down.

    Raises:
        ParameterError: A level or delta out of its range.

    Reference:
        Jiang (2025), Lemma B.1.1. The printed formula is the vertex (a, b) and wrong where that is not the
        largest: where the votes cost less than the target.
    """
    if votes_epsilon is None:
        total = basic_composition(setting.epsilon, setting.delta, setting.voters.movable)
        votes_epsilon, votes_delta = total.epsilon, total.delta
    check_positive("votes_epsilon", votes_epsilon)
    pairs = vertex_pairs(Teachers(count=1, epsilon=votes_epsilon, delta=votes_delta))
    half = math.expm1(setting.target_epsilon) / 2
    largest = float(np.max(pairs[:, 0] - pairs[:, 1] - 2 * half * pairs[:, 1] + half))
    if largest <= 0:
        return 1.0
    return min((half + setting.target_delta) / largest * (1 - 1e-14), 1.0)


def rr_probability_tight(setting: Setting) -> float:
    """Return the largest constant gamma that meets the target, for independent teachers.

    Args:
        setting: The teachers and the target.

    Returns:
        The room E - 1 + 2 target_delta over the cost of gamma = 1, which is linear in the constant; rounded
        down, and 1 where nothing is needed.

    Reference:
        Derived here: the cost of a constant gamma is linear in it, so the largest constant is the ratio of
        what is allowed to the cost of gamma = 1 (Jiang 2025, Lemma 3.4.4).
    """
    worst = worst_case(setting.voters, np.ones(setting.free), setting.target_epsilon)
    cost = 2 * max(worst.needed, setting.target_delta) + math.expm1(setting.target_epsilon)
    return min(setting.room / cost, 1.0)
