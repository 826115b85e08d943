"""Composition of (epsilon, delta) claims: the classical theorems, each by its name.

What a run is priced by is `tacit.privacy.pricing`; these are the closed forms of the literature, to compare
with and for statements that hold nothing but an epsilon and a delta. All are for releases that may be chosen
adaptively, and all hold whatever the neighbouring relation, as long as it is one.

Source: Dwork and Roth (2014), "DR14"; Kairouz, Oh and Viswanath (2015), arXiv:1311.0776, "KOV15".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import signal

from tacit.errors import (
    ParameterError,
    check_choice,
    check_count,
    check_non_negative,
    check_positive,
    check_probability,
)
from tacit.privacy.curves import Array, amplified
from tacit.privacy.events import Sample
from tacit.privacy.neighbours import Relation
from tacit.privacy.pricing import DECIMAL

__all__ = [
    "MOST_RELEASES",
    "Total",
    "advanced_composition_instance",
    "basic_composition",
    "general_composition",
    "kov_composition",
    "optimal_composition",
    "optimal_composition_delta",
    "strong_composition",
    "subsampled_guarantee",
]

_ROUND_UP = 1 + 1e-12
_MASS_ROUND_UP = 1 + 1e-9  # the sum of up to 1e6 masses, each from a sum of as many logarithms
MOST_RELEASES = 10**7
"""Releases up to which the theorems are evaluated."""


class Total(NamedTuple):
    """What a composition theorem proves for the whole.

    Attributes:
        epsilon: Rounded up; infinity where nothing is proven.
        delta: At most 1.
        term: Which part of the theorem gave epsilon, in a word.
    """

    epsilon: float
    delta: float
    term: str


def basic_composition(epsilon: float, delta: float, count: int) -> Total:
    """Return (count epsilon, 1 - (1 - delta)^count), which is at most (count epsilon, count delta).

    Args:
        epsilon: Of each release, finite, > 0.
        delta: Of each release, in [0, 1).
        count: Number of releases, 1 to 1e7.

    Raises:
        ParameterError: A number out of its range.

    Reference:
        Jiang (2025), Theorem 3.3.2; the smaller delta is KOV15 Theorem 3.3 with i = 0.

    Example:
        >>> basic_composition(0.1, 0.0, 100)
        Total(epsilon=10.0, delta=0.0, term='basic')
    """
    epsilon, delta, count, _ = _check_claim(epsilon, delta, count)
    return Total(count * float(epsilon), _any_of(count, delta, 0.0), "basic")


def strong_composition(epsilon: float, delta: float, count: int, slack: float) -> Total:
    """Return the strong composition theorem of DR14: sound and loose, a baseline.

    Args:
        epsilon: Of each release, finite, > 0.
        delta: Of each release, in [0, 1).
        count: Number T of releases, 1 to 1e7.
        slack: delta' in (0, 1).

    Returns:
        epsilon sqrt(2 T ln(1/delta')) + T epsilon (e^epsilon - 1), with T delta + delta'.

    Raises:
        ParameterError: A number out of its range.

    Reference:
        DR14 Theorem 3.20; Girgis (2023), Lemma 2.1.2.
    """
    epsilon, delta, count, slack = _check_claim(epsilon, delta, count, slack)
    spread = epsilon * math.sqrt(-2 * count * math.log(slack))
    total = spread + count * epsilon * float(_expm1(epsilon))
    return Total(total * _ROUND_UP, min(count * delta + slack, 1.0), "strong")


def kov_composition(epsilon: float, delta: float, count: int, slack: float) -> Total:
    """Return the closed form of KOV15 that replaces e^epsilon - 1 by tanh(epsilon / 2).

    Arguments and errors as `strong_composition`.

    Returns:
        epsilon sqrt(2 T ln(1/delta')) + T epsilon tanh(epsilon / 2), with 1 - (1 - delta)^T (1 - delta').

    Reference:
        KOV15 Theorem 3.4.
    """
    epsilon, delta, count, slack = _check_claim(epsilon, delta, count, slack)
    total = epsilon * math.sqrt(-2 * count * math.log(slack)) + count * epsilon * math.tanh(epsilon / 2)
    return Total(total * _ROUND_UP, _any_of(count, delta, slack), "KOV")


def general_composition(epsilon: float, delta: float, count: int, slack: float) -> Total:
    """Return the least of three closed forms, and which one it is.

    Arguments and errors as `strong_composition`; a slack of 1 is allowed.

    Returns:
        The least of T epsilon ("basic", which needs no slack), epsilon sqrt(2 T ln(1/delta')) + T epsilon
        tanh(epsilon / 2) ("KOV"), and the same with ln(e + epsilon sqrt(T) / delta') ("KOV, large slack").

    Reference:
        KOV15 Theorem 3.4; Jiang (2025), Theorem 3.3.3.

    Example:
        >>> total = general_composition(0.2676, 3e-4, 50, 1e-4)
        >>> round(total.epsilon, 3), round(total.delta, 3), total.term
        (9.901, 0.015, 'KOV')
    """
    slack = check_probability("slack", slack, low_open=True)
    epsilon, delta, count, _ = _check_claim(epsilon, delta, count)
    drift = count * epsilon * math.tanh(epsilon / 2)
    size = {
        "KOV": -math.log(slack),
        "KOV, large slack": math.log(math.e + epsilon * math.sqrt(count) / slack),
    }
    forms = {term: (drift + epsilon * math.sqrt(2 * count * s)) * _ROUND_UP for term, s in size.items()}
    term = min(forms, key=lambda name: forms[name])
    if count * epsilon <= forms[term]:
        return basic_composition(epsilon, delta, count)
    return Total(forms[term], _any_of(count, delta, slack), term)


def optimal_composition(
    epsilon: float, delta: float, count: int, target_delta: float, *, form: str = "continuous"
) -> Total:
    """Return the least epsilon of `count` (epsilon, delta)-DP releases at `target_delta`; none is less.

    Args:
        epsilon: Of each release, finite, > 0.
        delta: Of each release, in [0, 1).
        count: Number T of releases, 1 to 1e7; O(T) time and memory.
        target_delta: In [0, 1). Below 1 - (1 - delta)^T no epsilon is finite.
        form: "continuous": any epsilon; "discrete": one of (T - 2i) epsilon, as the theorem is stated.

    Raises:
        ParameterError: A number out of its range, an unknown form.

    Reference:
        KOV15 Theorem 3.3.

    Example:
        >>> round(optimal_composition(0.1, 0.0, 100, 1e-5).epsilon, 6)
        4.306791
    """
    epsilon, delta, count, _ = _check_claim(epsilon, delta, count)
    target_delta = check_probability("target_delta", target_delta, high_open=True)
    check_choice("form", form, ("continuous", "discrete"))
    hidden = _any_of(count, delta, 0.0)
    if target_delta * DECIMAL < hidden:
        return Total(math.inf, 1.0, "none")
    # 1 - (1 - delta)^T (1 - d) = target, solved for d.
    room = max(-math.expm1(math.log1p(-target_delta) - count * math.log1p(-delta)), 0.0)
    losses, deltas = _composed_pure(epsilon, count)
    at = int(np.searchsorted(-deltas, -room))  # deltas fall: the first loss whose delta is within the room
    if at == 0:
        return Total(max(float(losses[0]), 0.0), target_delta, "optimal")
    found = float(losses[at])
    if form == "continuous" and room > 0:
        # Linear in e^epsilon between two losses.
        share = (room - deltas[at]) / (deltas[at - 1] - deltas[at])
        gap = float(losses[at] - losses[at - 1])
        found = min((found + math.log1p(share * math.expm1(-gap))) * _ROUND_UP, found)
    return Total(max(found, 0.0), target_delta, "optimal")


def optimal_composition_delta(epsilon: float, delta: float, count: int, target_epsilon: float) -> float:
    """Return the least delta of `count` (epsilon, delta)-DP releases at `target_epsilon`, rounded up.

    Args:
        epsilon: Of each release, finite, > 0.
        delta: Of each release, in [0, 1).
        count: Number T of releases, 1 to 1e7; O(T) time and memory.
        target_epsilon: Of the whole, finite, >= 0.

    Returns:
        1 - (1 - delta)^T (1 - E[(1 - e^{target - loss})_+]) with loss = epsilon (2K - T) and
        K ~ Bin(T, 1 / (1 + e^-epsilon)).

    Raises:
        ParameterError: A number out of its range.

    Reference:
        KOV15 Theorem 3.3.
    """
    epsilon, delta, count, _ = _check_claim(epsilon, delta, count)
    target_epsilon = check_non_negative("target_epsilon", target_epsilon)
    losses, deltas = _composed_pure(epsilon, count)
    if target_epsilon >= losses[-1]:
        return _any_of(count, delta, 0.0)
    after = int(np.searchsorted(losses, target_epsilon, side="right"))
    gap = float(losses[after] - losses[after - 1])
    share = math.expm1(min(target_epsilon - float(losses[after]), 0.0)) / math.expm1(-gap)
    pure = float(deltas[after] + min(share, 1.0) * (deltas[after - 1] - deltas[after]))
    return _any_of(count, delta, min(max(pure, 1e-300), 1.0))  # masses below 1e-308 are lost, not absent


def advanced_composition_instance(
    epsilons: Sequence[float], deltas: Sequence[float], slack: float, *, method: str = "sharp"
) -> Total:
    """Return an advanced composition of releases that differ in their claims.

    Args:
        epsilons: Of the releases, each finite, >= 0; at least one.
        deltas: Of the releases, as many, each in [0, 1).
        slack: gamma in (0, 1).
        method: "paper": sum e_j (e^{e_j} - 1) + 2 sqrt(ln(1/gamma) sum e_j^2), with sum delta_j + gamma, as
            printed. "sharp": sum e_j tanh(e_j / 2) + sqrt(2 ln(1/gamma) sum e_j^2), with
            1 - (1 - gamma) prod (1 - delta_j), and the sum of all e_j without slack where that is less.

    Raises:
        ParameterError: No release, sequences of different lengths, a number out of range, an unknown method.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Lemma 3.3, where the factor is 2 and not sqrt(2). Sharp: the worst
        releases are randomised responses (KOV15), their losses have mean e tanh(e / 2) and lie in [-e, e];
        then Hoeffding's inequality.
    """
    check_choice("method", method, ("sharp", "paper"))
    check_probability("slack", slack, low_open=True, high_open=True)
    if len(epsilons) == 0 or len(epsilons) != len(deltas):
        raise ParameterError(
            f"epsilons and deltas must have one length >= 1, got {len(epsilons)} and {len(deltas)}."
        )
    for e, d in zip(epsilons, deltas, strict=True):
        check_non_negative("epsilons", e)
        check_probability("deltas", d, high_open=True)
    each = np.asarray(epsilons, dtype=np.float64)
    squares = math.fsum(e * e for e in each.tolist())
    if method == "paper":
        total = float((each * _expm1(each)).sum()) + 2 * math.sqrt(-math.log(slack)) * math.sqrt(squares)
        return Total(total * _ROUND_UP, min(math.fsum([*deltas, slack]), 1.0), "paper")
    log_kept = math.fsum(math.log1p(-d) for d in deltas)
    total = float((each * np.tanh(each / 2)).sum()) + math.sqrt(-2 * math.log(slack)) * math.sqrt(squares)
    if math.fsum(epsilons) <= total * _ROUND_UP:
        return Total(math.fsum(epsilons), -math.expm1(log_kept), "basic")
    return Total(total * _ROUND_UP, -math.expm1(log_kept + math.log1p(-slack)), "sharp")


def subsampled_guarantee(
    epsilon: float, delta: float, rate: float, *, relation: Relation, how: Sample
) -> Total:
    """Return (ln(1 + q (e^epsilon - 1)), q delta): what an (epsilon, delta)-DP release costs on a sample.

    Args:
        epsilon: Of the release on its own sample, finite, >= 0.
        delta: Of the release on its own sample, in [0, 1].
        rate: q, the size of the sample / number of units, or the probability of each; in [0, 1].
        relation: Neighbours of the release and of the whole.
        how: A fixed size goes with replace-one, Poisson with add-remove and zero-out.

    Raises:
        ParameterError: A pair of relation and sample that the lemma does not cover, a number out of range.

    Reference:
        Balle, Barthe and Gaboardi (2018), arXiv:1807.01647, Theorems 8 and 9; Girgis (2023), Lemma 2.1.1.

    Example:
        >>> total = subsampled_guarantee(1.0, 1e-4, 0.01, relation=Relation.REPLACE_ONE, how=Sample.FIXED)
        >>> round(total.epsilon, 12), round(total.delta, 12)
        (0.017036863236, 1e-06)
    """
    epsilon = check_non_negative("epsilon", epsilon)
    delta = check_probability("delta", delta)
    rate = check_probability("rate", rate)
    if not all(isinstance(value, kind) for value, kind in ((relation, Relation), (how, Sample))):
        raise ParameterError(f"relation and how must be a Relation and a Sample, got {relation!r}, {how!r}.")
    if (relation is Relation.REPLACE_ONE) != (how is Sample.FIXED):
        raise ParameterError(
            f"a {how.value} sample is not covered under {relation.value} neighbours: use a fixed size with "
            "replace-one, Poisson with add-remove or zero-out."
        )
    if rate in (0, 1):
        return Total(rate * float(epsilon), rate * float(delta), "sampled")
    return Total(amplified(float(epsilon), rate) * (1 + 2.0**-50), rate * delta, "sampled")


def _check_claim(
    epsilon: float, delta: float, count: int, slack: float = 0.5
) -> tuple[float, float, int, float]:
    """Return them as Python's numbers; refuse what is not a claim, a number of releases or a slack."""
    return (
        check_positive("epsilon", epsilon),
        check_probability("delta", delta, high_open=True),
        check_count("count", count, high=MOST_RELEASES),
        check_probability("slack", slack, low_open=True, high_open=True),
    )


def _any_of(count: int, delta: float, other: float) -> float:
    """Return 1 - (1 - delta)^count (1 - other)."""
    if other >= 1:
        return 1.0
    return -math.expm1(count * math.log1p(-delta) + math.log1p(-other)) + 0.0


def _expm1(value: float | Array) -> Array:
    """Return e^value - 1, infinity where it overflows."""
    with np.errstate(over="ignore"):
        return np.asarray(np.expm1(value))


def _composed_pure(epsilon: float, count: int) -> tuple[Array, Array]:
    """Return the losses of `count` randomised responses from the largest below 0 on, and the delta at each.

    Losses rise to count * epsilon, where delta is 0. Between two of them delta is linear in e^epsilon.
    """
    # log pmf(k+1) - log pmf(k) = log((T-k)/(k+1)) + epsilon; added up from the mode, where the mass is,
    # because the difference of log-factorials would lose digits.
    k = np.arange(count, dtype=np.float64)
    ratio = np.log((count - k) / (k + 1)) + epsilon
    log_mass = np.zeros(count + 1)
    mode = int(np.count_nonzero(ratio > 0))
    log_mass[mode + 1 :] = np.cumsum(ratio[mode:])
    log_mass[:mode] = -np.cumsum(ratio[:mode][::-1])[::-1]
    mass = np.exp(log_mass)
    mass /= mass.sum()
    first = (count - 1) // 2 if count % 2 else count // 2 - 1  # the largest k with a negative loss
    above = np.append(np.cumsum(mass[:first:-1])[::-1], 0.0)
    # H_k = e^{-2 eps} H_{k+1} + (1 - e^{-2 eps}) P(K > k): positive terms, summed from the top.
    fall: Array = signal.lfilter([-math.expm1(-2 * epsilon)], [1.0, -math.exp(-2 * epsilon)], above[::-1])[
        ::-1
    ]
    losses = epsilon * (2.0 * np.arange(first, count + 1) - count)
    return np.asarray(losses, dtype=np.float64), np.minimum(fall * _MASS_ROUND_UP, 1.0)
