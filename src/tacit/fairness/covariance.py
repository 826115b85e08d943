"""The covariance of scores and group as a penalty: a linear relaxation of demographic parity."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.fairness.ermi import joint_tables
from tacit.fairness.penalty import Membership, Still
from tacit.numerics import Array

__all__ = ["CovariancePenalty"]


@dataclass(frozen=True)
class CovariancePenalty:
    """Squared covariances of each group's indicator and each centred score, added up.

    For two groups and two classes it is the squared covariance of the group and the difference of scores. It
    is convex in the scores, and 0 does not mean that predictions are independent of the group.

    Attributes:
        weights: Of conditions, shape (z,), summing to 1; one that a batch lacks adds nothing.
        groups: k.

    Reference:
        Zafar, Valera, Gomez Rodriguez and Gummadi (2017), with the square in place of their constraint.
    """

    weights: Array
    groups: int

    def evaluate(self, scores: Array, probabilities: Array, of: Membership) -> tuple[float, Array]:  # noqa: ARG002
        """Return the penalty of these records, and n times its derivative in their scores."""
        size = len(self.weights)
        centred = scores - scores.mean(axis=1, keepdims=True)
        counted = (of.groups >= 0) & (of.conditions >= 0)
        totals = np.bincount(of.conditions[counted], minlength=size)
        # Shares of groups, and sums of scores, of each condition: tables as if scores were probabilities.
        means = joint_tables(centred, of.groups, self.groups, of.conditions, size)
        shares = joint_tables(np.ones((len(of), 1)), of.groups, self.groups, of.conditions, size)
        covariances = means - shares * means.sum(axis=2, keepdims=True)
        value = float(np.sum(self.weights * np.sum(covariances**2, axis=(1, 2))))
        slopes = covariances - np.sum(shares * covariances, axis=2, keepdims=True)
        factors = self.weights * len(of) / np.maximum(totals, 1)
        return value, np.asarray(
            2 * (slopes[of.conditions, :, of.groups] * (factors[of.conditions] * counted)[:, None])
        )

    def climber(self) -> Still:
        """Return that there are no dual variables."""
        return Still(self)
