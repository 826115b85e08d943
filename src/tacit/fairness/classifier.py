"""What fair linear classifiers share: predictions of scaled features, with a threshold of two classes."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from tacit.data.validated import validated
from tacit.fairness.scores import LinearScores, probabilities
from tacit.numerics import Array, IntArray

__all__ = ["FairClassifier"]


class FairClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted linear classifier; what fits it sets these attributes.

    Attributes:
        classes_: Labels.
        coef_: Weights of scaled features, shape (1, d) for two classes, else (classes, d).
        intercept_: Constants, shape (1,) or (classes,).
        threshold_: Of two classes: scores above it are of the second one.
        scaling_: What `transform` scales features by, and appends the constant.
    """

    classes_: Array
    coef_: Array
    intercept_: Array
    threshold_: float
    scaling_: Any

    def decision_function(self, X: Any) -> Array:
        """Return scores: shape (n,) for two classes, less `threshold_`, else (n, classes)."""
        scores = self._scores(X)
        return scores[:, 1] - self.threshold_ if len(self.classes_) == 2 else scores

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, shape (n, classes), which `threshold_` does not move."""
        return probabilities(self._scores(X))

    def predict(self, X: Any) -> Array:
        """Return labels, shape (n,)."""
        scores = self._scores(X)
        return np.asarray(self.classes_[self._hard(scores)])

    def _scores(self, X: Any) -> Array:
        """Return the score of each class, shape (n, classes)."""
        check_is_fitted(self)
        X = validated(self, X, reset=False, dtype=(np.float64, np.float32))
        theta = np.column_stack([self.coef_, self.intercept_]).ravel()
        return LinearScores(X.shape[1] + 1, len(self.classes_)).scores(theta, self.scaling_.transform(X))

    def _hard(self, scores: Array) -> IntArray:
        """Return the place of each record's class."""
        if scores.shape[1] == 2:
            return np.asarray(scores[:, 1] - self.threshold_ > 0, dtype=np.int64)
        return np.asarray(scores.argmax(axis=1))

    def _keep_parameters(self, model: LinearScores, theta: Array) -> None:
        """Keep flat parameters, of which the constants are the last column."""
        weights = theta.reshape(-1, model.features)
        self.coef_, self.intercept_ = weights[:, :-1], weights[:, -1]
