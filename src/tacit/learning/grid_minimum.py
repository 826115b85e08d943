"""Minimise a loss over finitely many points by the exponential mechanism, with public records or without."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from tacit.errors import (
    DataError,
    ParameterError,
    check_count,
    check_non_negative,
    check_positive,
)
from tacit.learning.objective import Objective, Records
from tacit.means.public import PRIVATE_RECORD
from tacit.mechanisms import exponential_law, sample_exponential
from tacit.numerics import Array, IntArray, as_rows, project_l2_ball, settle
from tacit.privacy import Neighbours, PureDP

__all__ = ["GridMinimum", "ball_grid"]

_STEPS = 2**30
"""Steps of a loss at the point that is farthest from the centre: rounding is far below every other error."""

_MOST_POINTS = 10**6


def ball_grid(radius: float, mesh: float, dim: int) -> Array:
    """Return points of a ball such that every point of it is near one of them.

    Args:
        radius: Of the ball around 0, > 0.
        mesh: How near, > 0 and at most the radius.
        dim: From 1 to 3: beyond, there are too many.

    Returns:
        Shape (k, dim): the lattice of step 2 mesh / sqrt(dim), of which what lies a little outside is
        projected; 0 is one of them.

    Raises:
        ParameterError: A value out of its range, or more than a million points.

    Example:
        >>> ball_grid(1.0, 0.5, 1).tolist()
        [[-1.0], [0.0], [1.0]]
    """
    check_positive("radius", radius)
    check_positive("mesh", mesh)
    check_count("dim", dim, high=3)
    if mesh > radius:
        raise ParameterError(f"mesh must be at most the radius {radius!r}, got {mesh!r}.")
    step = 2 * mesh / math.sqrt(dim)
    reach = math.floor((radius + mesh) / step)
    if (2 * reach + 1) ** dim > _MOST_POINTS:
        raise ParameterError(
            f"mesh must leave at most {_MOST_POINTS} points, got {mesh!r} for the radius {radius!r}."
        )
    lattice = step * np.array(list(product(range(-reach, reach + 1), repeat=dim)), dtype=np.float64)
    near = lattice[np.linalg.norm(lattice, axis=1) <= radius + mesh]
    return np.unique(project_l2_ball(near, radius), axis=0)


@dataclass(frozen=True, kw_only=True)
class GridMinimum:
    """A point of a finite set, drawn the likelier the smaller the loss of all records: pure privacy.

    Losses are compared with those at a centre w0, so that what they have in common cancels, and of a private
    record f(w) - f(w0) is clipped to L |w - w0|: an L-Lipschitz loss is not clipped, and none is taken for
    one. One record then moves the sums of two points apart by at most 4 L r, for points up to r from w0: of a
    ball around w0 that is 2 L D, and elsewhere up to twice that.

    Attributes:
        points: Shape (k, d), finite: public.
        epsilon: Pure level.
        lipschitz: L, > 0.
        centre: w0, shape (d,); None is 0.
        strength: m >= 0 of the penalty (m / 2) |w - w0|^2 on the mean loss, which costs nothing.

    Guarantee:
        epsilon for replacing one private record. Losses are whole numbers of a public unit before they are
        added up, and the choice is exact (`tacit.mechanisms.sample_exponential`).

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> from tacit.learning import LinearObjective, Squared
        >>> found = GridMinimum(points=ball_grid(1.0, 0.25, 1), epsilon=50.0, lipschitz=2.0)
        >>> rows = Records.of(np.ones((100, 1)), np.full(100, 0.5))
        >>> objective = LinearObjective(loss=Squared(), features=1)
        >>> found.choose(objective, rows, rng=np.random.default_rng(0)).tolist()
        [0.5]

    Reference:
        McSherry and Talwar (2007); Bassily, Smith and Thakurta (2014), Algorithm 2; as the baseline of Lowy
        (2023), Chapter 2.
    """

    points: Array = field(repr=False)
    epsilon: float
    lipschitz: float
    centre: Array | None = field(default=None, repr=False)
    strength: float = 0.0

    def __post_init__(self) -> None:
        settle(self)
        points = np.array(as_rows("points", self.points), dtype=np.float64)
        w0 = np.zeros(points.shape[1]) if self.centre is None else np.array(self.centre, dtype=np.float64)
        if not np.isfinite(points).all() or len(points) < 2:
            raise ParameterError(f"points must be 2 or more of finite numbers, got shape {points.shape}.")
        if w0.shape != points.shape[1:] or not np.isfinite(w0).all():
            raise ParameterError(f"centre must be {points.shape[1]} finite numbers, got shape {w0.shape}.")
        check_positive("epsilon", self.epsilon)
        check_positive("lipschitz", self.lipschitz)
        check_non_negative("strength", self.strength)
        for one in (points, w0):
            one.flags.writeable = False
        object.__setattr__(self, "points", points)
        object.__setattr__(self, "centre", w0)

    @property
    def event(self) -> PureDP:
        """What a choice costs."""
        return PureDP(self.epsilon, self.neighbours)

    @property
    def neighbours(self) -> Neighbours:
        """Replacing one private record."""
        return PRIVATE_RECORD

    @property
    def unit(self) -> float:
        """What losses are whole numbers of."""
        return self.lipschitz * float(self._distances.max()) / _STEPS

    @property
    def _distances(self) -> Array:
        return np.asarray(np.linalg.norm(self.points - self.centre, axis=1))

    @property
    def _bounds(self) -> IntArray:
        """Return how large the loss of a private record may be at every point, in units."""
        return np.asarray(np.floor(self.lipschitz * self._distances / self.unit).astype(np.int64))

    @property
    def spread(self) -> int:
        """How far apart one record may move the scores of two points, in units."""
        first, second = np.sort(self._bounds)[-2:].tolist()
        return int(2 * (first + second))

    def scores(self, objective: Objective, private: Records, *, public: Records | None = None) -> IntArray:
        """Return the sum of the losses at every point, less that at the centre, in units, shape (k,).

        Args:
            objective: Of parameters of shape (d,).
            private: Each clipped; one whose loss is not finite counts as zero.
            public: As they are.

        Raises:
            ParameterError: An objective of another number of parameters.
            DataError: A public loss that is not finite, or too large to be counted.
        """
        if objective.size != self.points.shape[1]:
            raise ParameterError(
                f"points must have the {objective.size} coordinates of the objective, got "
                f"{self.points.shape[1]}."
            )
        bounds, total = self._bounds, np.zeros(len(self.points), dtype=np.int64)
        start, n = np.asarray(self.centre), len(private) + (0 if public is None else len(public))
        with np.errstate(over="ignore", invalid="ignore"):
            base = objective.value(start, private)
            known = None if public is None else objective.value(start, public)
            for k, w in enumerate(self.points):
                own = np.nan_to_num((objective.value(w, private) - base) / self.unit, nan=0.0)
                total[k] = np.rint(np.clip(own, -bounds[k], bounds[k])).astype(np.int64).sum()
                if public is not None:
                    total[k] += _counted((objective.value(w, public) - known) / self.unit)
        return total + np.rint(self.strength * n / 2 * self._distances**2 / self.unit).astype(np.int64)

    def law(self, objective: Objective, private: Records, *, public: Records | None = None) -> Array:
        """Return the probability of every point, shape (k,): of private data, for tests."""
        return exponential_law(
            self.scores(objective, private, public=public), self.epsilon, spread=self.spread
        )

    def choose(
        self,
        objective: Objective,
        private: Records,
        *,
        public: Records | None = None,
        rng: np.random.Generator,
    ) -> Array:
        """Draw a point, shape (d,); arguments as of `scores`, and the source of the randomness."""
        scores = self.scores(objective, private, public=public)
        k = sample_exponential(scores, self.epsilon, spread=self.spread, rng=rng)
        return np.asarray(self.points[k].copy())

    def excess_bound(self, n: int) -> float:
        """Return a bound on the expected excess mean loss over the best point of the set, of n records.

        ln(k) spread / (n epsilon), by the variational formula of Gibbs: a law proportional to e^(-a s) has
        a E[s] <= a min s + ln k. What a grid adds to it is L times its mesh.
        """
        check_count("n", n)
        rounding = 1 / _STEPS * self.lipschitz * float(self._distances.max())
        return math.log(len(self.points)) * self.spread * self.unit / (n * self.epsilon) + rounding


def _counted(losses: Array) -> int:
    """Return the sum of public losses as whole numbers."""
    if not (np.abs(losses) <= 2.0**52).all():
        raise DataError("public losses must be finite, and at most 2**22 times lipschitz x diameter.")
    return int(np.rint(losses).astype(np.int64).sum())
