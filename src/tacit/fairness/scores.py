"""Models of class scores: what fair training needs to know of one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from scipy.special import expit, log_softmax

from tacit.numerics import Array, IntArray

__all__ = ["LinearScores", "Scores", "cross_entropy", "probabilities", "pull_back"]

_BLOCK = 1 << 16


class Scores(Protocol):
    """A model x -> one score per class, with flat parameters; the softmax of the scores are probabilities.

    Everything a fairness penalty asks of a model is a cost per class and record, so that `pull` is the only
    derivative that is needed, and no gradient of a single record is ever made.

    Attributes:
        size: Number of parameters.
        classes: Number of classes m, >= 2.
    """

    @property
    def size(self) -> int:
        """Number of parameters."""
        ...

    @property
    def classes(self) -> int:
        """Number of classes."""
        ...

    def start(self) -> Array:
        """Return public parameters to start from, shape (size,)."""
        ...

    def scores(self, theta: Array, X: Array) -> Array:
        """Return the scores, shape (n, m)."""
        ...

    def pull(self, theta: Array, X: Array, slopes: Array) -> Array:
        """Return the gradient in theta of the sum of slopes times scores.

        Args:
            theta: Shape (size,).
            X: Shape (n, d).
            slopes: Shape (n, m), each row summing to 0: no softmax sees what all scores have in common.
        """
        ...


@dataclass(frozen=True)
class LinearScores:
    """Scores that are linear in x, whose last column is the constant feature.

    Two classes have one weight vector, of the score of the second; the score of the first is 0.

    Attributes:
        features: Length of x, the constant included.
        classes: m >= 2.
    """

    features: int
    classes: int = 2

    @property
    def size(self) -> int:
        """Number of parameters: one weight vector for two classes, else one per class."""
        return self.features * (1 if self.classes == 2 else self.classes)

    def start(self) -> Array:
        """Return zeros."""
        return np.zeros(self.size)

    def scores(self, theta: Array, X: Array) -> Array:
        """Return the scores, shape (n, m), float64 whatever the width of X."""
        # The parameters go to the width of X and not the other way round, which would copy X.
        weights = theta.astype(X.dtype, copy=False)
        if self.classes == 2:
            scores = np.zeros((len(X), 2))
            scores[:, 1] = X @ weights
            return scores
        return np.asarray(X @ weights.reshape(self.classes, self.features).T, dtype=np.float64)

    def pull(self, theta: Array, X: Array, slopes: Array) -> Array:  # noqa: ARG002  # others need theta
        """Return the gradient in theta of the sum of slopes times scores, shape (size,)."""
        kept = slopes[:, 1:] if self.classes == 2 else slopes
        total = np.zeros((kept.shape[1], self.features))
        # In blocks, whose sums are added in float64: a sum of a million float32 records has few digits left.
        for first in range(0, len(X), _BLOCK):
            part = slice(first, first + _BLOCK)
            total += kept[part].T.astype(X.dtype, copy=False) @ X[part]
        return total.ravel()


def cross_entropy(scores: Array, y: IntArray) -> Array:
    """Return the loss of each record, in nats, shape (n,).

    Args:
        scores: Shape (n, m).
        y: Place of each record's class, shape (n,).
    """
    if scores.shape[1] == 2:
        margins = scores[:, 1] - scores[:, 0]
        against = (1 - 2 * y) * margins
        return np.asarray(np.maximum(against, 0.0) + np.log1p(np.exp(-np.abs(against))))
    logs = log_softmax(scores, axis=1)
    return np.asarray(-logs[np.arange(len(y)), y])


def pull_back(probabilities: Array, costs: Array) -> Array:
    """Return the derivative in the scores of the sum over classes of cost times probability, shape (n, m).

    Args:
        probabilities: Softmax of the scores, shape (n, m).
        costs: Shape (n, m).
    """
    if costs.shape[1] == 2:
        second = probabilities[:, 0] * probabilities[:, 1] * (costs[:, 1] - costs[:, 0])
        return np.stack([-second, second], axis=1)
    means = np.einsum("nj,nj->n", probabilities, costs)
    return np.asarray(probabilities * (costs - means[:, None]))


def probabilities(scores: Array) -> Array:
    """Return the softmax of scores, shape (n, m)."""
    if scores.shape[1] == 2:
        margins = scores[:, 1] - scores[:, 0]
        F = np.empty_like(scores)
        F[:, 0], F[:, 1] = expit(-margins), expit(margins)  # not 1 - F: the rest of a sure class has digits
        return F
    raised = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
