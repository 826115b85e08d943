"""What silos hold for fair training, and what they answer: counts of groups, masses and gradients."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tacit.errors import DataError
from tacit.fairness.penalty import ErmiPenalty, Membership
from tacit.fairness.scores import LinearScores, probabilities, pull_back
from tacit.learning.objective import clip_slopes
from tacit.numerics import Array, IntArray, row_norms, row_products, weighted_sum

__all__ = ["FairUnits", "GroupCounts", "GroupDecisions", "GroupGradient", "GroupMass", "PenalisedGradient"]


@dataclass(frozen=True)
class FairUnits:
    """Records of one silo with their groups.

    Attributes:
        X: Shape (n, d), the constant feature included; a record with a NaN or infinity, or with a label
            that is no class, is all zero.
        y: Place of each record's class, shape (n,); 0 for a bad record.
        groups: Place of each record's group, shape (n,); -1 where it is none of the declared ones.
        conditions: Place of each record's condition, shape (n,); -1 where the notion does not look.
        norms: Of the rows of X, shape (n,).
    """

    X: Array
    y: IntArray
    groups: IntArray
    conditions: IntArray
    norms: Array

    @classmethod
    def of(cls, X: Array, y: IntArray, groups: IntArray, conditions: IntArray) -> Self:
        """Prepare records; a bad one counts as zero, since refusing it would tell about it.

        Raises:
            DataError: Arrays of other lengths.
        """
        n = len(X)
        if X.ndim != 2 or any(each.shape != (n,) for each in (y, groups, conditions)):
            raise DataError(
                "X must have shape (n, d), and labels, groups and conditions (n,), got "
                f"{X.shape}, {y.shape}, {groups.shape} and {conditions.shape}."
            )
        good = np.asarray(np.isfinite(X).all(axis=1)) & (y >= 0)
        X = np.ascontiguousarray(np.where(good[:, None], X, 0.0))
        return cls(X, np.maximum(y, 0), np.where(good, groups, -1), conditions, row_norms(X))

    def __len__(self) -> int:
        return len(self.X)

    def take(self, index: IntArray) -> Self:
        """Return the records of a batch."""
        return type(self)(
            self.X.take(index, axis=0),
            self.y.take(index),
            self.groups.take(index),
            self.conditions.take(index),
            self.norms.take(index),
        )


@dataclass(frozen=True)
class GroupCounts:
    """One-hot row of a record's condition and group; zero where it has none.

    Attributes:
        shape: Numbers of conditions and groups.
    """

    shape: tuple[int, int]
    acute: ClassVar[bool] = True

    def __call__(self, units: FairUnits, at: Mapping[str, Array]) -> Array:  # noqa: ARG002 - of no point
        """Return rows of shape (n, conditions * groups)."""
        return _one_hot(units, self.shape)


@dataclass(frozen=True)
class GroupMass:
    """A record's probabilities in the cell of its condition and group: no longer than 1.

    Attributes:
        model: What has probabilities at the point "theta".
        shape: Numbers of conditions, groups and classes.
    """

    model: LinearScores
    shape: tuple[int, int, int]
    acute: ClassVar[bool] = True

    def __call__(self, units: FairUnits, at: Mapping[str, Array]) -> Array:
        """Return rows of shape (n, conditions * groups * classes)."""
        z, k, m = self.shape
        cells = _one_hot(units, (z, k))
        F = probabilities(_scores(self.model, at["theta"], units.X))
        return np.asarray(cells[:, :, None] * F[:, None, :]).reshape(len(units), z * k * m)

    def clipped_sum(
        self, units: FairUnits, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of rows, each clipped to the radius, shape (conditions * groups * classes,)."""
        del dtype
        z, k, m = self.shape
        F = probabilities(_scores(self.model, at["theta"], units.X))
        F = F * np.minimum(1.0, radius * (1 - 1e-12) / np.maximum(row_norms(F), 1e-300))[:, None]
        counted, cells = _cells(units, k)
        columns = [np.bincount(cells, weights=column[counted], minlength=z * k) for column in F.T]
        return np.stack(columns, axis=1).reshape(z * k * m)


@dataclass(frozen=True)
class GroupDecisions:
    """One-hot row of a record's condition, group and likeliest class; zero where it has no cell.

    Attributes:
        model: What has scores at the point "theta".
        shape: Numbers of conditions, groups and classes.
    """

    model: LinearScores
    shape: tuple[int, int, int]
    acute: ClassVar[bool] = True

    def __call__(self, units: FairUnits, at: Mapping[str, Array]) -> Array:
        """Return rows of shape (n, conditions * groups * classes)."""
        z, k, m = self.shape
        decided = np.eye(m)[_scores(self.model, at["theta"], units.X).argmax(axis=1)]
        return np.asarray(_one_hot(units, (z, k))[:, :, None] * decided[:, None, :]).reshape(
            len(units), z * k * m
        )


@dataclass(frozen=True)
class _SlopeStatistic:
    """Gradients that are an outer product of slopes and x, of which sums need no rows.

    Attributes:
        model: The classifier.
        shape: Numbers of conditions, groups and classes.
    """

    model: LinearScores
    shape: tuple[int, int, int]

    def slopes(self, units: FairUnits, at: Mapping[str, Array]) -> Array:
        """Return the derivative of each record's term in the scores, shape (n, m)."""
        raise NotImplementedError

    def __call__(self, units: FairUnits, at: Mapping[str, Array]) -> Array:
        """Return one gradient per record, shape (n, size)."""
        slopes = self._free(self.slopes(units, at))
        return np.asarray(slopes[:, :, None] * units.X[:, None, :]).reshape(len(units), self.model.size)

    def clipped_sum(
        self, units: FairUnits, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the gradients, each clipped to the radius, shape (size,)."""
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = clip_slopes(self._free(self.slopes(units, at)), units.norms, radius)
        return weighted_sum(units.X, slopes, dtype=dtype).T.reshape(self.model.size)

    def _free(self, slopes: Array) -> Array:
        """Return the slopes of scores that have weights: of two classes, the second."""
        return slopes[:, 1:] if self.model.classes == 2 else slopes

    def _membership(self, units: FairUnits, at: Mapping[str, Array]) -> tuple[ErmiPenalty, Membership]:
        """Return the penalty and what each record's term counts, of what the query says."""
        z, k, m = self.shape
        penalty = ErmiPenalty(at["frequencies"].reshape(z, k), np.full(z, 1 / z), m)
        counted = (units.groups >= 0) & (units.conditions >= 0)
        factors = np.zeros(len(units))
        factors[counted] = at["factors"][units.conditions[counted]]
        return penalty, Membership(units.conditions, units.groups, factors)


@dataclass(frozen=True)
class GroupGradient(_SlopeStatistic):
    """What a record's group alone says of the gradient of the penalty: its term less the mean over groups.

    Everything else of the gradient is a function of features and labels.
    """

    def slopes(self, units: FairUnits, at: Mapping[str, Array]) -> Array:
        """Return the derivative of each record's centred term in the scores, shape (n, m)."""
        penalty, of = self._membership(units, at)
        F = probabilities(_scores(self.model, at["theta"], units.X))
        return pull_back(F, centred_costs(penalty, at["dual"].reshape(self.shape), of))


@dataclass(frozen=True)
class PenalisedGradient(_SlopeStatistic):
    """The gradient of a record's loss and, times the weight, of its term of the penalty."""

    def slopes(self, units: FairUnits, at: Mapping[str, Array]) -> Array:
        """Return the derivative of each record's loss and term in the scores, shape (n, m)."""
        penalty, of = self._membership(units, at)
        F = probabilities(_scores(self.model, at["theta"], units.X))
        weight = float(at["weight"][0])
        slopes = F + weight * pull_back(F, penalty.costs(at["dual"].reshape(self.shape), of))
        slopes[np.arange(len(units)), units.y] -= 1.0
        return slopes


def centred_costs(penalty: ErmiPenalty, W: Array, of: Membership) -> Array:
    """Return the costs of classes less their mean over groups, shape (n, m): 0 where a record has no term."""
    table = 2 * W / np.sqrt(penalty.frequencies)[:, :, None]
    table = table - table.mean(axis=1, keepdims=True)
    return np.asarray(table[of.conditions, of.groups] * of.factors[:, None])


def mean_costs(penalty: ErmiPenalty, W: Array, conditions: IntArray, factors: Array) -> Array:
    """Return the mean over groups of the costs of classes, shape (n, m), which no group is needed for.

    Args:
        penalty: Of declared groups.
        W: Shape (z, k, m).
        conditions: Shape (n,).
        factors: Shape (n,), 0 where the notion does not look.
    """
    table = 2 * W / np.sqrt(penalty.frequencies)[:, :, None] - np.sum(W**2, axis=1, keepdims=True)
    return np.asarray(table.mean(axis=1)[conditions] * factors[:, None])


def _scores(model: LinearScores, theta: Array, X: Array) -> Array:
    """Return scores of which each depends on its own record only, to the last bit."""
    if model.classes == 2:
        z = row_products(X, theta)
        return np.stack([np.zeros_like(z), z], axis=1)
    return row_products(X, np.ascontiguousarray(theta.reshape(model.classes, model.features).T))


def _cells(units: FairUnits, k: int) -> tuple[Array, IntArray]:
    """Return which records have a cell, and the place of each of these cells."""
    counted = (units.groups >= 0) & (units.conditions >= 0)
    return counted, units.conditions[counted] * k + units.groups[counted]


def _one_hot(units: FairUnits, shape: tuple[int, int]) -> Array:
    """Return one-hot rows of conditions and groups, shape (n, z * k)."""
    rows = np.zeros((len(units), shape[0] * shape[1]))
    counted, cells = _cells(units, shape[1])
    rows[np.flatnonzero(counted), cells] = 1.0
    return rows
