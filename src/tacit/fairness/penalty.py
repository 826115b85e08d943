"""Penalties of training, and the one of FERMI: a linear cost per class and record, given dual variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, Self

import numpy as np

from tacit.errors import check_choice
from tacit.fairness.dual import ErmiDual
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions, complete_counts
from tacit.fairness.scores import pull_back
from tacit.numerics import Array, IntArray

__all__ = ["LEAST_SHARE", "Climber", "ErmiPenalty", "Membership", "Penalty", "Still"]

LEAST_SHARE: Final = 1e-8
"""A class that is predicted less often counts as this often: or its dual variables would be without bound."""


@dataclass(frozen=True)
class Membership:
    """The condition and the group of each record, and what its term counts.

    Attributes:
        conditions: Shape (n,); -1 where the notion does not look at the record.
        groups: Shape (n,); -1 where the attribute is not known.
        factors: Shape (n,): the mean over all records of factor times term is the weighted mean over
            conditions of the mean over their known records. 0 where a record has no term.
    """

    conditions: IntArray
    groups: IntArray
    factors: Array

    def __len__(self) -> int:
        return len(self.groups)

    def take(self, index: IntArray) -> Self:
        """Return the records of a batch."""
        return type(self)(self.conditions[index], self.groups[index], self.factors[index])

    def cells(self, groups: int) -> IntArray:
        """Return the place of each record's condition and group in a table of (z, k) cells, k = `groups`.

        Records without a term are in some cell, with factor 0.
        """
        return np.asarray(np.maximum(self.conditions * groups + self.groups, 0))

    def mass(self, probabilities: Array, conditions: int, groups: int) -> Array:
        """Return the mean over records of factor times probability, by condition and group, (z, k, m)."""
        cells, size = self.cells(groups), conditions * groups
        columns = [np.bincount(cells, self.factors * column, size) for column in probabilities.T]
        return np.stack(columns, axis=1).reshape(conditions, groups, -1) / len(self)


class Climber(Protocol):
    """The inner player of the min-max problem: dual variables, which climb from batch to batch."""

    @property
    def variables(self) -> Array:
        """The dual variables; empty where a penalty has none."""
        ...

    def slopes(self, scores: Array, probabilities: Array, of: Membership) -> Array:
        """Return the derivatives of the records' terms in their scores, shape (n, m), rows summing to 0."""
        ...

    def climb(self, probabilities: Array, of: Membership, step: float) -> None:
        """Take a step of gradient ascent on the mean term of these records."""
        ...


class Penalty(Protocol):
    """What unfairness costs, as a function of the scores of records."""

    def evaluate(self, scores: Array, probabilities: Array, of: Membership) -> tuple[float, Array]:
        """Return the penalty of these records, at its inner maximum, and n times its slope in the scores.

        Args:
            scores: Shape (n, m).
            probabilities: Their softmax.
            of: The same records.

        Returns:
            A number >= 0, and shape (n, m) with rows summing to 0.
        """
        ...

    def climber(self) -> Climber:
        """Return the inner player at its start, for training on batches."""
        ...


@dataclass(frozen=True)
class Still:
    """A penalty that is computed inside each batch: it has no dual variables, and is biased in small ones.

    Attributes:
        penalty: What is computed.
    """

    penalty: Penalty

    @property
    def variables(self) -> Array:
        """None, shape (0,)."""
        return np.empty(0)

    def slopes(self, scores: Array, probabilities: Array, of: Membership) -> Array:
        """Return the derivatives of the batch's own penalty, times its size."""
        return self.penalty.evaluate(scores, probabilities, of)[1]

    def climb(self, probabilities: Array, of: Membership, step: float) -> None:
        """Do nothing."""


@dataclass(frozen=True)
class ErmiPenalty:
    """The dual form of (conditional) ERMI, a function of probabilities and of dual variables W.

    Its value is the weighted sum over conditions z of the mean over records of psi_i - 1, with

        psi_i = sum_j F_j(x_i) (2 W_zrj / sqrt(p_zr) - |W_z.j|^2),   r the group of record i.

    A record's term is linear in its own group and probabilities, so that the mean over any batch is unbiased,
    of one record too: this is what a penalty computed inside a batch lacks.

    Attributes:
        frequencies: Shares p_zr of groups within each condition, shape (z, k), > 0.
        weights: Of conditions, shape (z,), summing to 1.
        classes: m.

    Reference:
        Lowy (2023), Proposition 65, Corollary 66, equation (FERMI obj.); Appendix D.2 for conditions.
    """

    frequencies: Array
    weights: Array
    classes: int

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of the dual variables W: conditions, groups, classes."""
        return (*self.frequencies.shape, self.classes)

    @property
    def radii(self) -> Array:
        """Norm that optimal dual variables never exceed, shape (z,): sqrt(m / min_r p_zr)."""
        return np.asarray(np.sqrt(self.classes / self.frequencies.min(axis=1)))

    @classmethod
    def of(
        cls, groups: Groups, conditions: Conditions, classes: int, *, weights: str = "frequency"
    ) -> tuple[Self, Membership]:
        """Measure the frequencies of records, which no private training may use as they are.

        Args:
            groups: Of n records.
            conditions: Of the same records.
            classes: m.
            weights: "frequency", by how many records of known group a condition has, or "uniform".

        Raises:
            DataError: A condition without records of some group.
        """
        check_choice("weights", weights, ["frequency", "uniform"])
        counts = complete_counts(groups, conditions)
        totals = counts.sum(axis=1)
        shares = totals / totals.sum() if weights == "frequency" else np.full(len(totals), 1 / len(totals))
        penalty = cls(counts / totals[:, None], shares, classes)
        return penalty, penalty.membership(groups.codes, conditions.codes, totals)

    def membership(self, groups: IntArray, conditions: IntArray, totals: Array) -> Membership:
        """Return what each record's term counts.

        Args:
            groups: Shape (n,); -1 where unknown.
            conditions: Shape (n,); -1 where the notion does not look.
            totals: Number of records with a term in each condition, shape (z,), > 0.
        """
        counted = (groups >= 0) & (conditions >= 0)
        factors = np.zeros(len(groups))
        factors[counted] = (self.weights * len(groups) / totals)[conditions[counted]]
        return Membership(conditions, groups, factors)

    def start(self) -> Array:
        """Return the optimal dual variables of predictions that are independent of the group: sqrt(p_zr)."""
        return np.repeat(np.sqrt(self.frequencies)[:, :, None], self.classes, axis=2)

    def costs(self, W: Array, of: Membership) -> Array:
        """Return the cost of each class for each record: the derivative of its term in the probabilities.

        Args:
            W: Dual variables, shape (z, k, m).
            of: n records.

        Returns:
            Shape (n, m), factors included; 0 where a record has no term.
        """
        table = self._table(W).reshape(-1, self.classes)
        each = np.take(table, of.cells(len(self.frequencies[0])), axis=0)
        each *= of.factors[:, None]
        return each

    def _table(self, W: Array) -> Array:
        """Return the cost of each class in each condition and group, shape (z, k, m)."""
        return np.asarray(2 * W / np.sqrt(self.frequencies)[:, :, None] - np.sum(W**2, axis=1, keepdims=True))

    def dual_gradient(self, W: Array, probabilities: Array, of: Membership) -> Array:
        """Return the gradient of the mean term of these records in W, shape (z, k, m).

        Args:
            W: Dual variables, shape (z, k, m).
            probabilities: Of n records, shape (n, m).
            of: The same records.
        """
        mass = of.mass(probabilities, *self.frequencies.shape)
        spread = mass / np.sqrt(self.frequencies)[:, :, None]
        return np.asarray(2 * (spread - W * mass.sum(axis=1, keepdims=True)))

    def optimal_dual(self, probabilities: Array, of: Membership) -> Array:
        """Return the dual variables that maximise the value on these records, shape (z, k, m).

        A class that is hardly ever predicted counts as predicted with a share of 1e-8.
        """
        return self._best(of.mass(probabilities, *self.frequencies.shape))

    def _best(self, mass: Array) -> Array:
        """Return the same, of the mass of the records."""
        joint = mass / self.weights[:, None, None]
        shares = np.maximum(joint.sum(axis=1, keepdims=True), LEAST_SHARE)
        return np.asarray(joint / shares / np.sqrt(self.frequencies)[:, :, None])

    def evaluate(self, scores: Array, probabilities: Array, of: Membership) -> tuple[float, Array]:  # noqa: ARG002
        """Return the (conditional) ERMI of all records and n times its derivative in their scores.

        It is the dual value at its maximiser; by Danskin's theorem, so is the derivative.
        """
        mass = of.mass(probabilities, *self.frequencies.shape)
        W = self._best(mass)
        value = float(np.sum(mass * self._table(W))) - 1
        return max(0.0, value), pull_back(probabilities, self.costs(W, of))

    def climber(self) -> ErmiDual:
        """Return dual variables that climb from batch to batch."""
        return ErmiDual(self)

    def project(self, W: Array) -> Array:
        """Return the nearest dual variables with norms within `radii`."""
        norms = np.sqrt(np.sum(W**2, axis=(1, 2)))
        return np.asarray(W * np.minimum(1.0, self.radii / np.maximum(norms, 1e-300))[:, None, None])
