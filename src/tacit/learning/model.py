"""A trained linear model and the public map from raw features to what it sees."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from tacit.errors import DataError, ParameterError
from tacit.numerics import Array

__all__ = ["FeatureMap", "LinearModel", "bounds_arrays", "scale_target"]

_MANY = 64
"""Features of the same bounds (0, u) that make an image: handwritten digits have 8 by 8."""

_DARK = 0.2
"""Their centre, as a share of u: what digits-odd-even and digits are best at (docs/theory/defaults.md)."""


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """Clip to public bounds, centre, scale to width 2, append a constant, and bring rows into the unit ball.

    Every row has norm at most 1 afterwards, whatever the record, so theory's constants hold without looking
    at data. A row with a NaN stays one, and counts as zero in `Records`.

    Attributes:
        lower: Public lower bounds, shape (d,), finite.
        upper: Public upper bounds, shape (d,), finite, >= lower; a feature with equal bounds becomes 0.
        unit_rows: Divide each row by its own norm (classification, where only directions matter), else all
            rows by the largest norm that bounded features can have (regression).
    """

    lower: Array
    upper: Array
    unit_rows: bool = True

    def __post_init__(self) -> None:
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape:
            raise ParameterError(
                f"bounds must be two vectors of one length, got {self.lower.shape} and {self.upper.shape}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            width = self.upper - self.lower
        if not np.isfinite(width).all():
            raise ParameterError("bounds must be finite numbers, and their differences too.")
        if np.any(width < 0):
            raise ParameterError("bounds must have lower <= upper for every feature.")

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        return self.lower.size + 1

    @property
    def constant(self) -> float:
        """The constant feature, before rows are divided by their norm."""
        # A feature that is uniform within its bounds has a root mean square of 0.58. Rows of one length need
        # little of a constant: what it takes, the features lose.
        return 0.25 if self.unit_rows else max(0.15 * math.sqrt(self.lower.size), 0.5)

    @property
    def centre(self) -> Array:
        """Where features are 0 afterwards, shape (d,): the middle of their bounds, or for pixels a dark grey.

        Many features that share bounds (0, u) are pixels or counts: most of them are small in most records,
        and about their middle all records would look alike.
        """
        width = self.upper - self.lower
        shared = width.size > 0 and not self.lower.any() and bool((width == width[0]).all())
        share = _DARK if self.unit_rows and shared and width.size >= _MANY else 0.5
        return np.asarray(self.lower + share * width)

    def __call__(self, X: Array) -> Array:
        """Map raw features, shape (n, d), to rows of norm at most 1, shape (n, d + 1), float64."""
        if X.ndim != 2 or X.shape[1] != self.lower.size:
            raise DataError(f"X must have shape (n, {self.lower.size}), got {X.shape}.")
        width = self.upper - self.lower
        scale = np.divide(2.0, width, out=np.zeros(width.shape), where=width > 0)
        scaled = (np.clip(X, self.lower, self.upper) - self.centre) * scale
        rows = np.hstack([scaled, np.full((len(X), 1), self.constant)])
        if self.unit_rows:
            return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))
        return np.asarray(rows / math.hypot(math.sqrt(self.lower.size), self.constant))


@dataclass(frozen=True, kw_only=True)
class LinearModel:
    """Parameters with everything that predictions need.

    Attributes:
        features: Map of raw features.
        w: Parameters, shape (size,).
        classes: Labels by position; None for regression.
        target: Bounds that regression targets were scaled from; None for classification.
    """

    features: FeatureMap
    w: Array
    classes: Array | None = None
    target: tuple[float, float] | None = None

    @property
    def coef(self) -> Array:
        """Weights of the features scaled to [-1, 1] within their bounds, shape (outputs, d)."""
        return self.weights[:-1].T

    @property
    def intercept(self) -> Array:
        """The constant of each score, shape (outputs,)."""
        return np.asarray(self.weights[-1] * self.features.constant)

    @property
    def weights(self) -> Array:
        """Parameters by feature and output, shape (d + 1, outputs)."""
        return self.w.reshape(self.features.size, -1)

    def scores(self, X: Array) -> Array:
        """Return raw predictions: shape (n,) for two classes or regression, else (n, classes)."""
        rows = self.features(np.asarray(X, dtype=np.float64))
        if self.w.size == self.features.size:
            return np.asarray(rows @ self.w)
        return np.asarray(rows @ self.weights)

    def probabilities(self, X: Array) -> Array:
        """Return class probabilities, shape (n, classes)."""
        return self.probabilities_of(self.scores(X))

    def predict(self, X: Array) -> Array:
        """Return labels, or targets in their own units; shape (n,)."""
        return self.predictions_of(self.scores(X))

    def probabilities_of(self, scores: Array) -> Array:
        """Return the class probabilities that raw predictions stand for, shape (n, classes)."""
        if self.classes is None:
            raise ParameterError("probabilities need a classifier; this model is a regression.")
        if scores.ndim == 2:
            return np.asarray(special.softmax(scores, axis=1))
        positive = special.expit(scores)
        return np.column_stack([1 - positive, positive])

    def predictions_of(self, scores: Array) -> Array:
        """Return the labels, or targets in their own units, that raw predictions stand for; shape (n,)."""
        if self.classes is not None:
            picked = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(np.int64)
            return np.asarray(self.classes[picked])
        low, high = self.target if self.target is not None else (-1.0, 1.0)
        return np.asarray((scores + 1) / 2 * (high - low) + low)


def scale_target(y: Array, target: tuple[float, float]) -> Array:
    """Clip regression targets to public bounds and scale them to [-1, 1].

    Args:
        y: Shape (n,).
        target: Public (low, high), finite; where they are equal, every target becomes -1.

    Raises:
        ParameterError: Bounds that are not finite, or low > high.
    """
    low, high = target
    if not (math.isfinite(high - low) and low <= high):
        raise ParameterError(f"target_bounds must be finite with low <= high, got {target!r}.")
    width = high - low if high > low else 1.0
    return np.asarray((np.clip(y, low, high) - low) / width * 2 - 1)


def bounds_arrays(bounds: Any, dim: int) -> tuple[Array, Array]:
    """Return public bounds (lower, upper), each of shape (dim,), from numbers or vectors.

    Raises:
        ParameterError: Anything else.
    """
    try:
        lower, upper = bounds
        low, high = (np.broadcast_to(np.asarray(b, dtype=np.float64), (dim,)) for b in (lower, upper))
    except (TypeError, ValueError) as error:
        raise ParameterError(
            f"bounds must be a pair (lower, upper) of numbers or of {dim} numbers each, got {bounds!r}."
        ) from error
    return low, high
