"""The best release of one answer of teachers that are not private, each on a shard of its own.

Derived in docs/theory/voting.md, section 6.
"""

from __future__ import annotations

import math
from fractions import Fraction

import msgspec
import numpy as np
import numpy.typing as npt

from tacit.errors import check_count, check_positive, check_probability
from tacit.mechanisms.bernoulli import exp_bounds
from tacit.numerics import Array, IntArray
from tacit.privacy import ApproximateDP, Leaf, Neighbours, PureDP
from tacit.privacy.certified import GRID
from tacit.voting.release import ballot_counts, noisy_majority

__all__ = ["Staircase", "gamma_staircase"]


class Staircase(msgspec.Struct, frozen=True, kw_only=True):
    """Publish the majority of two classes by the largest noise function that is private when one vote flips.

    For one answer no release of the votes is more accurate at the same price; over many answers `GNMax`
    composes better.

    Attributes:
        teachers: K >= 1, each on its own shard; they need not be private.
        epsilon: Of one published bit. Finite, > 0.
        delta: Of one published bit, in [0, 1).

    Raises:
        ParameterError: A value out of its range.

    Reference:
        Derived in docs/theory/voting.md, section 6.
    """

    teachers: int
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        _ = self.gamma

    @property
    def classes(self) -> int:
        """Two."""
        return 2

    @property
    def gamma(self) -> Array:
        """The noise function, shape (ceil(K / 2),)."""
        return gamma_staircase(self.teachers, self.epsilon, self.delta)

    def release(self, votes: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Publish one bit for each query.

        Args:
            votes: Shape (queries, K), whole numbers 0 and 1 or booleans.
            rng: Source of the coins; the secure stream when the bits leave.

        Returns:
            Shape (queries,), 0 and 1. The law is exact.

        Raises:
            ParameterError: Votes of another shape or other than 0 and 1.
        """
        return noisy_majority(ballot_counts(votes, self.teachers), self.gamma, self.teachers, rng)

    def event(self, neighbours: Neighbours | None = None) -> Leaf:
        """Return what one published bit reveals; each record reaches one teacher."""
        near = neighbours or Neighbours()
        return ApproximateDP(self.epsilon, self.delta, near) if self.delta else PureDP(self.epsilon, near)


def gamma_staircase(teachers: int, epsilon: float, delta: float = 0.0) -> Array:
    """Return the best noise function for teachers that are not private, when one vote may flip.

    Args:
        teachers: K >= 1, each on its own shard.
        epsilon: Of the published bit. Finite, > 0.
        delta: Of the published bit, in [0, 1).

    Returns:
        Shape (ceil(K / 2),), multiples of 2^-52 for `noisy_majority`: 1 - 2 psi(l), with psi(h) =
        (1 - delta) / (1 + e^epsilon) and psi(l + 1) = max(0, (psi(l) - delta) / e^epsilon), each psi rounded
        up, so that the bit is (epsilon, delta)-DP exactly. No other (epsilon, delta)-DP gamma is larger
        anywhere, but for the rounding.

    Raises:
        ParameterError: A value out of its range.

    Reference:
        Derived in docs/theory/voting.md, section 6. At even K the tie is a fair coin, and
        psi(h) = (1/2 - delta) / e^epsilon.

    Example:
        >>> gamma_staircase(11, 0.2676, 3e-4).round(6).tolist()
        [0.133267, 0.337223, 0.493293, 0.61272, 0.704107, 0.774038]
    """
    check_count("teachers", teachers, high=10**5)
    check_positive("epsilon", epsilon)
    check_probability("delta", delta, high_open=True)
    bits = 192
    shrink = Fraction(exp_bounds(Fraction(float(epsilon)), bits)[1], 1 << bits)
    lost, step = Fraction(float(delta)), Fraction(1, 2 * GRID)
    psi = Fraction(1, 2) if teachers % 2 == 0 else shrink * (1 - lost) / (1 + shrink)
    if teachers % 2 == 0:
        psi = shrink * max(psi - lost, Fraction(0))
    found = []
    for _ in range((teachers + 1) // 2):
        psi = min(math.ceil(psi / step) * step, Fraction(1, 2))
        found.append(float(1 - 2 * psi))
        psi = shrink * max(psi - lost, Fraction(0))
    return np.array(found)
