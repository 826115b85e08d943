"""The privacy condition of a noisy majority, and the finitely many worst cases it has to be checked on.

K independent teachers, each (epsilon, delta)-DP with a binary vote, send L ones. One bit is published: 1 with
probability phi(L). For symmetric phi it is (t, d)-DP for all such teachers iff

    H(p) - e^t H(p') <= d    for all pairs (p_i, p'_i) that an (epsilon, delta)-DP teacher may have,

with H(p) = E phi(L) and L Poisson-binomial with the probabilities p. H is affine in each pair, so the maximum
lies where every pair is one of eight vertices; only how often each is taken matters. Where phi does not fall
in L, three of them suffice. Where one change of the data reaches at most s teachers, the others have p = p',
that is, they are at (0,0) or (1,1): with t of them at (1,1) the s movable ones see phi(t), ..., phi(t + s), a
window of phi.

Source: Jiang (2025), Lemmas 3.4.4 and 3.6.1; the three vertices and the windows are derived in
docs/theory/voting.md, section 2.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.numerics import settle
from tacit.privacy.curves import Array

__all__ = [
    "MOST_EPSILON",
    "MOST_TEACHERS",
    "Counts",
    "Teachers",
    "check_scannable",
    "check_vote_level",
    "is_monotone",
    "number_of_types",
    "output_probabilities",
    "types",
    "vertex_pairs",
    "with_unmoved",
]

_MOST_VOTERS = 501
"""Certifying takes K^3 steps: seconds, which nobody can be made to exceed by what an event states."""

MOST_EPSILON = 300.0
"""Of one vote, and of a target: far above what protects anybody, and e to that power is still a float."""

MOST_TEACHERS = 61
"""With delta > 0 the scan over all eight vertices grows as K^6; it takes some 10 s."""

Counts = tuple[int, int, int, int, int, int, int, int]
"""How many teachers are at each vertex, in the order of `vertex_pairs`."""


@dataclass(frozen=True, kw_only=True)
class Teachers:
    """What is known of the voters: numbers only.

    Attributes:
        count: K, how many, 1 to 501.
        epsilon: Of each vote, > 0 and at most 300.
        delta: Of each vote, in [0, 1).
        affected: s, how many of them one change of the data may reach, 1 to K; None for all.
    """

    count: int
    epsilon: float
    delta: float = 0.0
    affected: int | None = None

    def __post_init__(self) -> None:
        settle(self)
        check_count("teachers", self.count, high=_MOST_VOTERS)
        check_vote_level("epsilon", self.epsilon)
        check_probability("delta", self.delta, high_open=True)
        if self.affected is not None:
            check_count("affected", self.affected, high=self.count)
        if self.windows * self.movable**3 > _MOST_VOTERS**3:
            raise ParameterError(
                f"affected must be None for {self.count} teachers, or far from half of them, got "
                f"{self.affected}: certifying that would take too long. None is always sound."
            )

    @property
    def movable(self) -> int:
        """s: the number of teachers that a change of the data may reach."""
        return self.count if self.affected is None else self.affected

    @property
    def windows(self) -> int:
        """How many counts of ones the unmoved teachers may have: K - s + 1."""
        return self.count - self.movable + 1

    @property
    def scannable(self) -> bool:
        """Whether one check of all cases of a gamma that is not monotone takes some 10 s at most."""
        return self.delta == 0 or self.windows * self.movable**6 <= MOST_TEACHERS**6

    @property
    def majority(self) -> int:
        """The first count of ones that is more than half."""
        return self.count // 2 + 1

    @property
    def worst_one(self) -> float:
        """The p of a vertex with p + p' = 1: a = (e^epsilon + delta) / (e^epsilon + 1)."""
        return float(special.expit(self.epsilon) + self.delta * special.expit(-self.epsilon))

    @property
    def worst_zero(self) -> float:
        """Its opposite, b = 1 - a = (1 - delta) / (e^epsilon + 1), without cancellation."""
        return float((1 - self.delta) * special.expit(-self.epsilon))


def vertex_pairs(teachers: Teachers) -> Array:
    """Return the vertices (p, p') of the region of one teacher.

    Args:
        teachers: Who votes.

    Returns:
        Shape (8, 2): (0,0), (1,1), (0,D), (D,0), (1-D,1), (1,1-D), (a,b), (b,a) with D = delta. At D = 0 the
        third to sixth repeat the first two.
    """
    a, b, d = teachers.worst_one, teachers.worst_zero, float(teachers.delta)
    return np.array(
        [(0, 0), (1, 1), (0, d), (d, 0), (1 - d, 1), (1, 1 - d), (a, b), (b, a)], dtype=np.float64
    )


def output_probabilities(teachers: int, gamma: npt.ArrayLike) -> Array:
    """Return phi(l): the probability that the published bit is 1 when l of the teachers vote 1.

    Args:
        teachers: K, the number of teachers.
        gamma: Shape (ceil(K / 2),): gamma(l) for l > K/2, in [0, 1].

    Returns:
        Shape (K + 1,): (1 + s(l) gamma(l)) / 2 with gamma(K - l) = gamma(l); 1/2 at a tie.

    Raises:
        ParameterError: Another shape, or a value outside [0, 1].
    """
    half = np.asarray(gamma)
    if half.dtype.kind not in "biuf":
        raise ParameterError(f"gamma must hold real numbers, got dtype {half.dtype}.")
    half = half.astype(np.float64)
    if half.shape != ((teachers + 1) // 2,):
        raise ParameterError(
            f"gamma must have shape ({(teachers + 1) // 2},), the values for more than half of {teachers} "
            f"votes, got shape {half.shape}."
        )
    if not np.all((half >= 0) & (half <= 1)):
        raise ParameterError("gamma must be in [0, 1] everywhere.")
    tie = [] if teachers % 2 else [0.5]
    return np.concatenate([(1 - half[::-1]) / 2, tie, (1 + half) / 2])


def is_monotone(gamma: npt.ArrayLike) -> bool:
    """Return whether gamma does not fall towards unanimity: then three vertices suffice."""
    return bool(np.all(np.diff(np.asarray(gamma, dtype=np.float64)) >= 0))


def types(teachers: Teachers, *, monotone: bool) -> Iterator[Counts]:
    """Yield every way to share the teachers out among the vertices.

    Args:
        teachers: Who votes.
        monotone: Only the three vertices that a monotone gamma needs.

    Returns:
        `number_of_types` types; some come twice where not all teachers are movable.
    """
    moving: tuple[int, ...]
    if teachers.delta > 0:
        moving = (3, 6, 5) if monotone else tuple(range(8))
    else:
        moving = (0, 6, 1) if monotone else (0, 1, 6, 7)
    for ones in range(teachers.windows):
        for shares in _shares(teachers.movable, len(moving)):
            counts = [0] * 8
            for vertex, number in zip(moving, shares, strict=True):
                counts[vertex] = number
            yield with_unmoved(teachers, tuple(counts), ones)  # type: ignore[arg-type]  # eight numbers


def with_unmoved(teachers: Teachers, counts: Counts, ones: int) -> Counts:
    """Return the counts of all teachers where `ones` of the unmoved ones vote 1 and the others 0."""
    return (counts[0] + teachers.windows - 1 - ones, counts[1] + ones, *counts[2:])


def check_vote_level(name: str, epsilon: float) -> None:
    """Refuse an epsilon that is not > 0 and at most 300."""
    check_positive(name, epsilon)
    if epsilon > MOST_EPSILON:
        raise ParameterError(f"{name} must be at most {MOST_EPSILON:g}, got {epsilon!r}.")


def check_scannable(teachers: Teachers) -> None:
    """Refuse to check a gamma that is not monotone where that would take too long."""
    if not teachers.scannable:
        raise ParameterError(
            f"gamma must be monotone for {teachers.count} teachers with delta > 0, of which a record reaches "
            f"{teachers.movable}: checking all cases of another gamma would take too long."
        )


def _shares(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Yield every tuple of `parts` whole numbers >= 0 with this sum."""
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _shares(total - first, parts - 1):
            yield (first, *rest)


def number_of_types(teachers: Teachers, *, monotone: bool) -> int:
    """Return how many types `types` yields: K - s + 1 times C(s + 2, 2), C(s + 3, 3) or C(s + 7, 7).

    The first where gamma is monotone, else the second at delta = 0; s = K where all teachers are movable.
    """
    free = 2 if monotone else 7 if teachers.delta > 0 else 3
    return teachers.windows * math.comb(teachers.movable + free, free)
