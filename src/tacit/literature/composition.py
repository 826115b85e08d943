"""Theorems on the composition of (epsilon, delta) claims, each by its name, to compare with.

All are for releases that may be chosen adaptively, and hold whatever the neighbouring relation, as long as it
is one.

Source: Dwork and Roth (2014), "DR14"; Kairouz, Oh and Viswanath (2015), arXiv:1311.0776, "KOV15".
"""

from __future__ import annotations

import math

import numpy as np
from scipy import signal

from tacit.errors import check_choice, check_non_negative, check_probability
from tacit.privacy.budget import DECIMAL
from tacit.privacy.composition import Total, chance_of_any, check_claim
from tacit.privacy.curves import Array

__all__ = ["kov_composition", "optimal_composition", "optimal_composition_delta", "strong_composition"]

_ROUND_UP = 1 + 1e-12
_MASS_ROUND_UP = 1 + 1e-9  # the sum of up to 1e6 masses, each from a sum of as many logarithms


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
    epsilon, delta, count, slack = check_claim(epsilon, delta, count, slack)
    spread = epsilon * math.sqrt(-2 * count * math.log(slack))
    with np.errstate(over="ignore"):
        total = spread + count * epsilon * float(np.expm1(epsilon))
    return Total(total * _ROUND_UP, min(count * delta + slack, 1.0), "strong")


def kov_composition(epsilon: float, delta: float, count: int, slack: float) -> Total:
    """Return the closed form of KOV15 that replaces e^epsilon - 1 by tanh(epsilon / 2).

    Arguments and errors as `strong_composition`.

    Returns:
        epsilon sqrt(2 T ln(1/delta')) + T epsilon tanh(epsilon / 2), with 1 - (1 - delta)^T (1 - delta').

    Reference:
        KOV15 Theorem 3.4.
    """
    epsilon, delta, count, slack = check_claim(epsilon, delta, count, slack)
    total = epsilon * math.sqrt(-2 * count * math.log(slack)) + count * epsilon * math.tanh(epsilon / 2)
    return Total(total * _ROUND_UP, chance_of_any(count, delta, slack), "KOV")


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
    epsilon, delta, count, _ = check_claim(epsilon, delta, count)
    target_delta = check_probability("target_delta", target_delta, high_open=True)
    check_choice("form", form, ("continuous", "discrete"))
    hidden = chance_of_any(count, delta, 0.0)
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
    epsilon, delta, count, _ = check_claim(epsilon, delta, count)
    target_epsilon = check_non_negative("target_epsilon", target_epsilon)
    losses, deltas = _composed_pure(epsilon, count)
    if target_epsilon >= losses[-1]:
        return chance_of_any(count, delta, 0.0)
    after = int(np.searchsorted(losses, target_epsilon, side="right"))
    gap = float(losses[after] - losses[after - 1])
    share = math.expm1(min(target_epsilon - float(losses[after]), 0.0)) / math.expm1(-gap)
    pure = float(deltas[after] + min(share, 1.0) * (deltas[after - 1] - deltas[after]))
    return chance_of_any(
        count, delta, min(max(pure, 1e-300), 1.0)
    )  # masses below 1e-308 are lost, not absent


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
