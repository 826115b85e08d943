"""The event of one bit that a noisy majority of private teachers publishes, priced by its gamma."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tacit.errors import check_probability
from tacit.privacy import curves, divergences
from tacit.privacy.certified.scan import monotone_pairs, worst_case
from tacit.privacy.certified.vertices import (
    Teachers,
    check_vote_level,
    is_monotone,
    number_of_types,
    output_probabilities,
)
from tacit.privacy.curves import Array, Curve, Profile
from tacit.privacy.events import Leaf, Zcdp
from tacit.privacy.neighbours import Neighbours, Relation

__all__ = ["INDEPENDENT", "Certified", "private_votes", "reached"]

INDEPENDENT = "the teachers share no randomness"
"""What every price of a majority rests on."""

_POINTS = 11  # levels at which a gamma that is not monotone is certified for its curve, besides the target
_PURE_POINTS = 23
_MOST_LINES = 46_000  # those of 301 teachers; beyond, only the target is certified
_MOST_FOR_CHORDS = 21  # with delta > 0; one level takes 0.1 s then


class Certified(Leaf, frozen=True, tag=True):
    """One bit: the majority of independent private teachers with probability gamma(L), else a fair coin.

    The price follows from these numbers alone, for the worst of all such teachers: nothing that is claimed
    enters it.

    Attributes:
        teachers: K, how many vote, >= 1. At even K a tie is a fair coin.
        epsilon: Each teacher's vote is (epsilon, delta)-DP under these neighbours. > 0, at most 300.
        delta: In [0, 1).
        gamma: The ceil(K / 2) values of gamma(l) for l > K/2, in [0, 1]; gamma(K - l) = gamma(l).
        target_epsilon: Where delta is certified; the pure level, if that delta is 0. > 0, at most 300.
        neighbours: The relation under which the teachers are private.
        affected: How many of the teachers such a change may reach, 1 to K; None for all.

    Where gamma is monotone the whole curve is exact; else it is exact at some levels and follows chords
    between them, as long as that many levels can be certified quickly (docs/theory/voting.md, section 2).
    """

    continuous: ClassVar[bool] = False

    teachers: int
    epsilon: float
    delta: float
    gamma: tuple[float, ...]
    target_epsilon: float
    neighbours: Neighbours = Neighbours()
    affected: int | None = None

    method: ClassVar[str] = "exact certificate of a noisy majority"

    def __post_init__(self) -> None:
        check_vote_level("epsilon", self.epsilon)
        check_probability("delta", self.delta, high_open=True)
        _ = self.voters
        check_vote_level("target_epsilon", self.target_epsilon)
        output_probabilities(self.teachers, self.gamma)

    @property
    def voters(self) -> Teachers:
        """What is known of the teachers."""
        return Teachers(count=self.teachers, epsilon=self.epsilon, delta=self.delta, affected=self.affected)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the votes are what the certificate takes them for."""
        most = self.voters.movable
        few = (reached(most, self.neighbours),) if most < self.teachers else ()
        return (private_votes(self.epsilon, self.delta), INDEPENDENT, *few)

    @property
    def certified_delta(self) -> float:
        """The delta at `target_epsilon`, rounded up; 0 is pure DP."""
        return _certified(self.voters, self.gamma, self.target_epsilon)

    @property
    def concentrated(self) -> Zcdp | None:
        """The level that the pure one implies, if there is one."""
        if self.certified_delta > 0:
            return None
        level = self.target_epsilon
        return Zcdp(max(level * math.tanh(level / 2), 1e-300), self.neighbours)

    def work(self, *, many: bool) -> float:
        """Return the work of certifying each level that the curve is exact at."""
        cubes = float(self.voters.windows * self.voters.movable**3)
        if is_monotone(self.gamma):
            lines = min(number_of_types(self.voters, monotone=True), _MOST_LINES)
            return 1e4 + cubes + (1e4 if many else 100) * math.sqrt(lines)
        if self.delta == 0:
            return 5e6 + 12 * cubes
        sixth = float(self.voters.windows * self.voters.movable**6)
        return 5e6 + sixth * (0.5 if self.teachers <= _MOST_FOR_CHORDS else 0.03)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        level, delta = self.target_epsilon, self.certified_delta
        one_point = curves.approximate_dp_curve(level, delta)
        exact = is_monotone(self.gamma) and number_of_types(self.voters, monotone=True) <= _MOST_LINES
        known = self._lines() if exact else self._chords()

        def profile(epsilon: Array) -> Array:
            return np.minimum(known(epsilon), one_point.forward(epsilon))

        return curves.symmetric(profile, max_loss=one_point.max_loss)

    def _lines(self) -> Profile:
        """Return the exact curve: the largest H - e^epsilon H' of all cases that a monotone gamma needs."""
        upper, lower = _envelope(*monotone_pairs(self.voters, np.array(self.gamma, dtype=np.float64))[:2])

        def profile(epsilon: Array) -> Array:
            with np.errstate(over="ignore", invalid="ignore"):
                lines = upper - np.exp(np.asarray(epsilon)[..., None]) * lower
            # Where e^epsilon overflows, a line with H' = 0 still needs its H, any other nothing.
            lines = np.where(np.isfinite(lines), lines, np.where(lower > 0, 0.0, upper))
            return np.asarray(np.maximum(lines.max(axis=-1), 0.0))

        return profile

    def _chords(self) -> Profile:
        """Return chords of the exact curve up to the target: delta is convex in e^epsilon."""
        level = self.target_epsilon
        few = number_of_types(self.voters, monotone=True) <= _MOST_LINES
        points = (
            _PURE_POINTS if self.delta == 0 and few else _POINTS if self.teachers <= _MOST_FOR_CHORDS else 0
        )
        levels = [level * i / (points + 1) for i in range(points + 1)] + [level]
        heights = np.array([_certified(self.voters, self.gamma, at) for at in levels])
        factors = np.exp(levels)

        def profile(epsilon: Array) -> Array:
            with np.errstate(over="ignore"):
                found: Array = np.interp(np.exp(epsilon), factors, heights) * (1 + 1e-12)
            return found

        return profile

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by the pure level; infinite where there is none."""
        if self.certified_delta > 0:
            return np.full(orders.shape, math.inf)
        return divergences.pure_dp_renyi(self.target_epsilon, orders)


def private_votes(epsilon: float, delta: float, who: str = "every vote") -> str:
    """Return the clause that votes, or the teachers who cast them, are as private as the price takes them."""
    level = f"epsilon {float(epsilon)!r}" + (f" and delta {float(delta)!r}" if delta else "")
    return f"{who} is private by itself with {level}"


def reached(most: int, neighbours: Neighbours) -> str:
    """Return the clause that one unit moves at most so many of the teachers."""
    # Replacing a record must not move it; adding one must not move the others.
    unit = neighbours.unit.value
    blindly = f"chosen without looking at any {unit}"
    if neighbours.relation is Relation.ADD_REMOVE:
        blindly = f"whatever the other {neighbours.unit.plural} are"
    how_many = "one teacher" if most == 1 else f"at most {most} of the teachers"
    return f"each {unit} reaches {how_many}, {blindly}"


@lru_cache(maxsize=4096)
def _certified(teachers: Teachers, gamma: tuple[float, ...], target_epsilon: float) -> float:
    """Return a certified delta, computed once."""
    return worst_case(teachers, np.array(gamma, dtype=np.float64), target_epsilon).delta


def _envelope(upper: npt.NDArray[np.float64], lower: npt.NDArray[np.float64]) -> tuple[Array, Array]:
    """Return the lines H - e^epsilon H' that are the largest somewhere, by an exact upper hull."""
    hull: list[tuple[float, float]] = []
    for at in np.lexsort((-upper, lower)).tolist():
        x, y = float(lower[at]), float(upper[at])
        if hull and y <= hull[-1][1]:  # below a line with a smaller H'
            continue
        while len(hull) > 1 and _is_above(hull[-2], hull[-1], (x, y)):
            hull.pop()
        hull.append((x, y))
    found = np.array(hull, dtype=np.float64)
    return found[:, 1], found[:, 0]


def _is_above(first: tuple[float, float], middle: tuple[float, float], last: tuple[float, float]) -> bool:
    """Return whether the chord from first to last is not below the middle point, without rounding."""
    (x0, y0), (x1, y1), (x2, y2) = (tuple(map(Fraction, point)) for point in (first, middle, last))
    return (y2 - y0) * (x1 - x0) >= (y1 - y0) * (x2 - x0)
