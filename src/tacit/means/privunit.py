"""Means of vectors in an L2 ball from private unit vectors: PrivUnit and its Gaussian surrogate."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from tacit.errors import check_count
from tacit.means.base import Error
from tacit.means.message import SMALLEST_RADIUS, Round
from tacit.means.problem import MeanProblem
from tacit.means.proposals import Proposal
from tacit.means.randomized import RandomizedMean
from tacit.means.vectors import Vectors
from tacit.means.violations import clipped_to_unit
from tacit.mechanisms import (
    HIGHEST_LEVEL,
    HIGHEST_UNIT_LEVEL,
    PrivUnit,
    PrivUnitG,
    ball_to_sphere,
    check_level,
)
from tacit.numerics import Array, row_norms
from tacit.privacy import TrustModel

__all__ = ["PrivUnitGMean", "PrivUnitMean"]


class _HasUnit(Protocol):
    """What `_UnitMean` asks of an estimator: its fields, and a randomizer of unit vectors."""

    @property
    def dim(self) -> int: ...
    @property
    def lift(self) -> bool: ...
    @property
    def local_epsilon(self) -> float: ...
    @property
    def trust(self) -> TrustModel: ...
    @property
    def unit(self) -> PrivUnit | PrivUnitG: ...


class _UnitMean(RandomizedMean, frozen=True, kw_only=True):
    """A mean of float reports on the unit vectors of rows."""

    local_epsilon: float
    lift: bool = True

    @classmethod
    def proposals(cls, problem: MeanProblem) -> tuple[Proposal, ...]:
        """Offer the level that meets the budget."""
        return cls._one_message(problem, note="real numbers, priced as if exact: for simulation")

    @property
    def randomizer(self: _HasUnit) -> Vectors:
        """How a row becomes a report on its unit vector, for rows divided by the radius."""
        if not self.lift:
            check_count("dim, without lift,", self.dim, low=2)
        # Shuffled messages of higher levels have no price.
        high = HIGHEST_LEVEL if self.trust is TrustModel.SHUFFLE else HIGHEST_UNIT_LEVEL
        level = check_level("local_epsilon", self.local_epsilon, high=high)
        unit = self.unit
        return Vectors(
            ball="l2",
            dim=self.dim,
            level=level,
            # Sets of the measure of the cap, on which the density is e^epsilon times as high.
            law=f"privunit:{unit.cap.measure!r}",
            dtype=np.float32,
            drawn=lambda rows, rng: _reports(unit, rows, rng, lift=self.lift),
            worst=lambda: _worst(unit, self.dim, lift=self.lift),
            numbers_at_once=2**21,
        )

    def variance_on(self: _HasUnit, rows: Array, round: Round) -> float:
        """Return the exact variance of the estimate on these rows, shape (k, dim)."""
        x = clipped_to_unit(rows, round, self.dim, "l2")
        squares = (x**2).sum(axis=1) if self.lift else np.ones(len(x))
        variances = (_row_variance(self.unit, self.dim, s, lift=self.lift) for s in squares)
        return float(sum(variances)) * (round.radius / round.n) ** 2


def _reports(unit: PrivUnit | PrivUnitG, rows: Array, rng: np.random.Generator, *, lift: bool) -> Array:
    """Randomise rows of the unit ball; shape (k, dim)."""
    if lift:
        return unit.sample(ball_to_sphere(rows), rng)[:, :-1]
    norms = row_norms(rows)
    # A row without direction gets a fixed one: that is its best known value, and no error. Subnormal rows
    # have none either: divided by their rounded norms, they are not unit vectors.
    known = norms >= SMALLEST_RADIUS
    units = np.where(known[:, None], rows, np.eye(1, rows.shape[1])) / np.where(known, norms, 1.0)[:, None]
    return unit.sample(units, rng)


def _worst(unit: PrivUnit | PrivUnitG, dim: int, *, lift: bool) -> Error:
    """Largest error of the report on a row of the unit ball.

    Without lift, a row counts as its direction: the bias is up to one radius.
    """
    # Linear in the squared norm of the row, so that one end is the worst.
    variance = max(_row_variance(unit, dim, s, lift=lift) for s in ((0.0, 1.0) if lift else (1.0,)))
    return Error(variance=variance, bias=0.0 if lift else 1.0, exact=False)


def _row_variance(unit: PrivUnit | PrivUnitG, dim: int, square: float, *, lift: bool) -> float:
    """Variance of the report on a row of the unit ball with that squared norm.

    The last entry of the lifted vector has the square u = 1 - square; the report's last entry, dropped, has
    the second moment (A u + (norm - A) (1 - u) / d) / m^2 with A = E<V, v>^2.
    """
    if not lift:
        return max(unit.squared_norm - square, 0.0)  # as rounded, where reports are nearly exact
    cap, u = unit.cap, 1 - square
    along = cap.second_moment / cap.scale**2
    dropped = along * u + (unit.squared_norm - along) * (1 - u) / dim
    return max(unit.squared_norm - dropped - square, 0.0)


class PrivUnitMean(_UnitMean, frozen=True, kw_only=True, tag="privunit"):
    """Every row sends one PrivUnit report of its unit vector: real numbers, for simulation.

    The report with the least error of all unbiased ones on the sphere, at d floats a row.

    Attributes:
        dim: Number of coordinates, >= 1; >= 2 without `lift`.
        local_epsilon: Pure level of one report, in [2**-30, 256], or up to 30 to be shuffled (in exact
            arithmetic).
        lift: True: a row x of norm < radius becomes (x, sqrt(radius^2 - ||x||^2)) in one dimension more,
            unbiased. False: it counts as radius x / ||x||; right for rows of norm radius, biased else.
        trust: `local` or `shuffle`.
        neighbours: A replace-one relation.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.means import Facts
        >>> mean = PrivUnitMean(dim=10, local_epsilon=1.0, lift=False)
        >>> round(mean.error(1).variance, 3)
        59.733

    Reference:
        Bhowmick et al. (2018); Asi, Feldman and Talwar (2022), ICML.
    """

    @property
    def unit(self) -> PrivUnit:
        """The randomizer of unit vectors."""
        return PrivUnit(self.dim + self.lift, self.local_epsilon)


class PrivUnitGMean(_UnitMean, frozen=True, kw_only=True, tag="privunit-g"):
    """Every row sends one report of PrivUnit's Gaussian surrogate; attributes as `PrivUnitMean`.

    Example:
        >>> mean = PrivUnitGMean(dim=100, local_epsilon=1.0, lift=False)
        >>> round(mean.error(1).variance, 3)
        633.002

    Reference:
        Asi, Feldman and Talwar (2022), ICML.
    """

    @property
    def unit(self) -> PrivUnitG:
        """The randomizer of unit vectors."""
        return PrivUnitG(self.dim + self.lift, self.local_epsilon)
