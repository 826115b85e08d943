"""Mutual information as a penalty, in a dual form whose terms are as linear as those of ERMI."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.fairness.ermi import joint_tables
from tacit.fairness.penalty import LEAST_SHARE, Membership
from tacit.fairness.scores import pull_back
from tacit.numerics import Array

__all__ = ["MutualInformationPenalty"]

_LOWEST = -10.0
"""Dual variables stay above it: that of a cell without records has no lower bound."""


@dataclass(frozen=True)
class MutualInformationPenalty:
    """Shannon's mutual information of prediction and group, averaged over conditions, as a maximum over V.

    In each condition it is the maximum of sum_jr p_jr V_rj - p_r p_j exp(V_rj - 1), at
    V_rj = 1 + ln(p_jr / (p_j p_r)), and the mean over records of terms that are linear in probabilities.

    Attributes:
        frequencies: Shares p_zr of groups within each condition, shape (z, k), > 0.
        weights: Of conditions, shape (z,), summing to 1.
        classes: m.

    Reference:
        Nguyen, Wainwright and Jordan (2010), Lemma 1 for the Kullback-Leibler divergence.
    """

    frequencies: Array
    weights: Array
    classes: int

    def evaluate(self, scores: Array, probabilities: Array, of: Membership) -> tuple[float, Array]:  # noqa: ARG002
        """Return the mutual information of these records in nats, and n times its derivative in scores."""
        z, k = self.frequencies.shape
        p = np.moveaxis(joint_tables(probabilities, of.groups, k, of.conditions, z), 1, 2)
        classes = np.maximum(p.sum(axis=1, keepdims=True), LEAST_SHARE)
        logs = np.log(np.maximum(p, LEAST_SHARE**2) / classes / self.frequencies[:, :, None])
        value = float(np.sum(self.weights[:, None, None] * p * logs))
        return max(0.0, value), pull_back(probabilities, self.costs(1 + logs, of))

    def costs(self, V: Array, of: Membership) -> Array:
        """Return the cost of each class for each record at V, shape (z, k, m): shape (n, m)."""
        table = V - np.sum(self.frequencies[:, :, None] * np.exp(V - 1), axis=1, keepdims=True)
        return np.asarray(table[of.conditions, of.groups] * of.factors[:, None])

    def climber(self) -> MutualInformationDual:
        """Return dual variables that climb from batch to batch."""
        return MutualInformationDual(self)


class MutualInformationDual:
    """V of the dual form of mutual information, and how it climbs.

    Args:
        penalty: What it is of; V starts where predictions that are independent of the group have it.
    """

    def __init__(self, penalty: MutualInformationPenalty) -> None:
        self._penalty = penalty
        self._V = np.ones((*penalty.frequencies.shape, penalty.classes))
        self._highest = 1 - math.log(penalty.frequencies.min())

    @property
    def variables(self) -> Array:
        """V, shape (z, k, m)."""
        return self._V

    def slopes(self, scores: Array, probabilities: Array, of: Membership) -> Array:  # noqa: ARG002
        """Return the derivatives of the terms of these records in their scores, shape (n, m)."""
        return pull_back(probabilities, self._penalty.costs(self._V, of))

    def climb(self, probabilities: Array, of: Membership, step: float) -> None:
        """Take a step of gradient ascent on the mean term of these records, and stay in bounds."""
        z, k, _ = self._V.shape
        mass = of.mass(probabilities, z, k)
        expected = self._penalty.frequencies[:, :, None] * mass.sum(axis=1, keepdims=True)
        self._V = np.clip(self._V + step * (mass - expected * np.exp(self._V - 1)), _LOWEST, self._highest)
