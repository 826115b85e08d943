"""Composition of (epsilon, delta) claims: closed forms for statements that hold nothing but such a claim.

What a run is priced by is `tacit.privacy.pricing`. These hold for releases that may be chosen adaptively,
whatever the neighbouring relation, as long as it is one; other theorems, which price nothing, are in
`tacit.literature.composition`.

Source: Kairouz, Oh and Viswanath (2015), arXiv:1311.0776, "KOV15".
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.errors import check_count, check_positive, check_probability

__all__ = [
    "MOST_RELEASES",
    "Total",
    "basic_composition",
    "chance_of_any",
    "check_claim",
    "general_composition",
]

_ROUND_UP = 1 + 1e-12
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
    epsilon, delta, count, _ = check_claim(epsilon, delta, count)
    return Total(count * float(epsilon), chance_of_any(count, delta, 0.0), "basic")


def general_composition(epsilon: float, delta: float, count: int, slack: float) -> Total:
    """Return the least of three closed forms, and which one it is.

    Args:
        epsilon: Of each release, finite, > 0.
        delta: Of each release, in [0, 1).
        count: Number T of releases, 1 to 1e7.
        slack: delta' in (0, 1].

    Returns:
        The least of T epsilon ("basic", which needs no slack), epsilon sqrt(2 T ln(1/delta')) + T epsilon
        tanh(epsilon / 2) ("KOV"), and the same with ln(e + epsilon sqrt(T) / delta') ("KOV, large slack").

    Raises:
        ParameterError: A number out of its range.

    Reference:
        KOV15 Theorem 3.4; Jiang (2025), Theorem 3.3.3.

    Example:
        >>> total = general_composition(0.2676, 3e-4, 50, 1e-4)
        >>> round(total.epsilon, 3), round(total.delta, 3), total.term
        (9.901, 0.015, 'KOV')
    """
    slack = check_probability("slack", slack, low_open=True)
    epsilon, delta, count, _ = check_claim(epsilon, delta, count)
    drift = count * epsilon * math.tanh(epsilon / 2)
    size = {
        "KOV": -math.log(slack),
        "KOV, large slack": math.log(math.e + epsilon * math.sqrt(count) / slack),
    }
    forms = {term: (drift + epsilon * math.sqrt(2 * count * s)) * _ROUND_UP for term, s in size.items()}
    term = min(forms, key=lambda name: forms[name])
    if count * epsilon <= forms[term]:
        return basic_composition(epsilon, delta, count)
    return Total(forms[term], chance_of_any(count, delta, slack), term)


def check_claim(
    epsilon: float, delta: float, count: int, slack: float = 0.5
) -> tuple[float, float, int, float]:
    """Return them as Python's numbers; refuse what is not a claim, a number of releases or a slack."""
    return (
        check_positive("epsilon", epsilon),
        check_probability("delta", delta, high_open=True),
        check_count("count", count, high=MOST_RELEASES),
        check_probability("slack", slack, low_open=True, high_open=True),
    )


def chance_of_any(count: int, delta: float, other: float) -> float:
    """Return 1 - (1 - delta)^count (1 - other)."""
    if other >= 1:
        return 1.0
    return -math.expm1(count * math.log1p(-delta) + math.log1p(-other)) + 0.0
