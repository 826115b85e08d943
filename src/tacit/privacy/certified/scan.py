"""The least delta of a noisy majority, in floating point: rounded up by a proven bound on all errors.

Source: Jiang (2025), Lemmas 3.4.4 and 3.6.1; docs/theory/voting.md, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tacit.errors import ParameterError, check_non_negative
from tacit.privacy.certified.tables import Tables, Violator
from tacit.privacy.certified.vertices import (
    MOST_EPSILON,
    Counts,
    Teachers,
    check_scannable,
    is_monotone,
    output_probabilities,
    with_unmoved,
)
from tacit.privacy.curves import Array

__all__ = ["Worst", "monotone_pairs", "worst_case", "worst_types"]

_TINY = 1e-290  # what underflow may hide


class Worst(NamedTuple):
    """The dearest case of a noisy majority.

    Attributes:
        needed: The largest H - e^t H' of a case in which some teacher differs, rounded up.
        counts: Teachers at each vertex in that case, in the order of `vertex_pairs`.
    """

    needed: float
    counts: Counts

    @property
    def delta(self) -> float:
        """At most this delta is needed at the target epsilon; 0 is pure DP."""
        return min(max(self.needed, 0.0), 1.0)


def worst_case(teachers: Teachers, gamma: Array, target_epsilon: float) -> Worst:
    """Return the least delta at which a noisy majority is (target_epsilon, delta)-DP, rounded up.

    Args:
        teachers: Who votes; independent of each other given the data.
        gamma: Shape (ceil(K / 2),): the noise function for more than half of the votes.
        target_epsilon: From 0 to 300.

    Returns:
        What is needed, with a proven bound on all rounding errors, and where.

    Raises:
        ParameterError: A gamma of another shape or outside [0, 1]; more than 61 teachers with delta > 0 and a
            gamma that is not monotone, which would take too long.

    Cost:
        O(s^2) vectors where gamma is monotone, O(s^3) numbers at delta = 0, else O(s^6), with s movable
        teachers; K - s + 1 times that.

    Reference:
        Jiang (2025), Lemma 3.4.4, and docs/theory/voting.md, section 2: necessary and sufficient over all
        independent (epsilon, delta)-DP teachers.
    """
    check_non_negative("target_epsilon", target_epsilon)
    if target_epsilon > MOST_EPSILON:
        raise ParameterError(f"target_epsilon must be at most {MOST_EPSILON:g}, got {target_epsilon!r}.")
    if not is_monotone(gamma):
        found = max(worst_types(teachers, gamma, target_epsilon), key=lambda violator: violator.value)
        return Worst(float(found.value), found.counts)
    upper, lower, counts_of = monotone_pairs(teachers, gamma)
    values = upper - math.exp(target_epsilon) * lower
    at = int(values.argmax())
    return Worst(float(values[at]), counts_of(at))


def monotone_pairs(teachers: Teachers, gamma: Array) -> tuple[Array, Array, Callable[[int], Counts]]:
    """Return H, rounded up, and H', rounded down, of all cases that a monotone gamma needs.

    Args:
        teachers: Who votes.
        gamma: Shape (ceil(K / 2),), nondecreasing.

    Returns:
        (upper, lower, counts): two arrays of shape (cases,), and what finds the counts of a case. The
        rounding also covers a later product of `lower` with a power of e.
    """
    chains = [tables.chain() for tables in _windows(teachers, gamma, 1.0)]
    if len(chains) == 1:
        return chains[0]
    size = len(chains[0][0])

    def counts_of(at: int) -> Counts:
        return with_unmoved(teachers, chains[at // size][2](at % size), at // size)

    return np.concatenate([one[0] for one in chains]), np.concatenate([one[1] for one in chains]), counts_of


def worst_types(
    teachers: Teachers, gamma: Array, target_epsilon: float, *, above: float = -math.inf
) -> Iterator[Violator]:
    """Yield the worst case of every block of cases that needs more than `above`, over all eight vertices.

    Arguments, errors and rounding as `worst_case`; gamma need not be monotone here.

    Args:
        teachers: Who votes.
        gamma: Shape (ceil(K / 2),).
        target_epsilon: Finite, >= 0.
        above: Blocks that need no more are passed over.
    """
    check_scannable(teachers)
    for ones, tables in enumerate(_windows(teachers, gamma, math.exp(target_epsilon))):
        for value, counts in tables.blocks(above):
            yield Violator(value, with_unmoved(teachers, counts, ones))


def _windows(teachers: Teachers, gamma: Array, factor: float) -> Iterator[Tables]:
    """Yield the tables in floating point, for 0, 1, ... ones of the unmoved teachers; H' times `factor`."""
    # All terms are >= 0 and every p and 1 - p is within 4 units in the last place, so each of the K steps is
    # off by a factor within 1 +- 6u; phi and e^t add a few more.
    relative = 8 * (teachers.count + 4) * 2.0**-53
    # The smallest probability there is: where it is below 1e-290, digits are lost to underflow.
    least = teachers.count * math.log(min(teachers.worst_zero, teachers.delta or 1.0))
    absolute = _TINY if least < math.log(_TINY) else 0.0
    a, b, d = teachers.worst_one, teachers.worst_zero, float(teachers.delta)
    phi = output_probabilities(teachers.count, gamma)
    for ones in range(teachers.windows):
        yield Tables(
            phi=phi[ones : ones + teachers.movable + 1],
            one=(a, b),
            zero=(b, a),
            tail=(d, 1 - d) if d > 0 else None,
            above=lambda high: high * (1 + relative) + absolute,
            below=lambda low: low * ((1 - relative) * factor),
        )
