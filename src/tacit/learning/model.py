"""A trained model, and the public map from raw features to what it sees."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from scipy import special

from tacit.errors import DataError, ParameterError, check_positive
from tacit.learning.images import ImageMap
from tacit.learning.loss_choice import LogLink, LossChoice
from tacit.numerics import Array, IntArray, settle

__all__ = [
    "FeatureMap",
    "FittedModel",
    "LinearModel",
    "RowMap",
    "Scaling",
    "bounds_arrays",
    "likeliest",
    "scale_target",
    "unscale_target",
]

_AT_ONCE = 2**15
"""Numbers of rows that are mapped at once: they stay in the cache."""

_MANY = 64
"""Features of the same bounds (0, u) that make an image: handwritten digits have 8 by 8."""

_DARK = 0.2
"""Their centre, as a share of u: what digits-odd-even and digits are best at (docs/theory/defaults.md)."""

_CONSTANT = 1.0
"""The constant feature beside features that are centred at their means (docs/theory/defaults.md)."""

_NARROWEST = 1e-6
"""Of the width of the bounds: what is divided by less would make a row too long for its own norm."""


class RowMap(Protocol):
    """The public map from raw features to the rows that an objective sees, the same for all parties."""

    @property
    def law(self) -> str:
        """What is made of features, with a version, where a model's own numbers do not say it."""
        ...

    @property
    def dim(self) -> int:
        """Number d of raw features."""
        ...

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        ...

    @property
    def constant(self) -> float:
        """The constant feature, which is the last of a row."""
        ...

    @property
    def facts(self) -> tuple[object, ...]:
        """What makes rows, for a fingerprint."""
        ...

    def __call__(self, X: Array) -> Array:
        """Map raw features, shape (n, d), to rows, shape (n, size)."""
        ...


class Scaling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How features are scaled where that does not follow from their bounds; public.

    Attributes:
        means: Where each feature is centred, within its bounds.
        spreads: What it is then divided by, > 0.
        longest: For a regression: what rows are divided by; those that are longer are shortened to it.
    """

    means: tuple[float, ...]
    spreads: tuple[float, ...]
    longest: float

    def __post_init__(self) -> None:
        settle(self)
        check_positive("longest", self.longest)


@dataclass(frozen=True, kw_only=True)
class FeatureMap:
    """Clip to public bounds, centre, scale, append a constant, and bring rows into the unit ball.

    Every row has norm at most 1 afterwards, whatever the record, so theory's constants hold without looking
    at data. A row with a NaN stays one, and counts as zero in `Records`.

    Attributes:
        lower: Public lower bounds, shape (d,), finite.
        upper: Public upper bounds, shape (d,), finite, >= lower; a feature with equal bounds becomes 0.
        unit_rows: Divide each row by its own norm (classification, where only directions matter), else all
            rows by one length (regression): the largest that bounded features can have, without a scaling.
        scaling: How features are centred and scaled, from public knowledge; None goes by the bounds.
    """

    law: ClassVar[str] = ""

    lower: Array
    upper: Array
    unit_rows: bool = True
    scaling: Scaling | None = None

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
        if self.scaling is not None:
            self._check_scaling(self.scaling)

    @property
    def dim(self) -> int:
        """Number d of features."""
        return int(self.lower.size)

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        return self.dim + 1

    @property
    def facts(self) -> tuple[object, ...]:
        """What makes rows, for a fingerprint."""
        return (self.lower.tolist(), self.upper.tolist(), self.unit_rows, self.scaling)

    @property
    def constant(self) -> float:
        """The constant feature, before rows are divided by their norm."""
        if self.unit_rows and self.scaling is not None:
            # About their means, features say nothing of how common a class is: that is left to the constant.
            return _CONSTANT
        # A feature that is uniform within its bounds has a root mean square of 0.58. Rows of one length need
        # little of a constant: what it takes, the features lose.
        return 0.25 if self.unit_rows else max(0.15 * math.sqrt(self.lower.size), 0.5)

    @property
    def centre(self) -> Array:
        """Where features are 0 afterwards, shape (d,): their means, the middle of their bounds, or dark grey.

        Pixels are small in most records, and about their middle all records would look alike.
        """
        if self.scaling is not None:
            return np.array(self.scaling.means)
        share = _DARK if self.unit_rows and self.pixels else 0.5
        return np.asarray(self.lower + share * (self.upper - self.lower))

    @property
    def pixels(self) -> bool:
        """Whether features are so many, all of the same bounds (0, u), that they are pixels or counts."""
        many = self.lower.size >= _MANY
        return many and not self.lower.any() and bool((self.upper == self.upper[0]).all())

    @property
    def scale(self) -> Array:
        """What centred features are multiplied by, shape (d,); 0 where the bounds are equal."""
        width = self.upper - self.lower
        over, under = (2.0, width) if self.scaling is None else (1.0, np.array(self.scaling.spreads))
        return np.asarray(np.divide(over, under, out=np.zeros(width.shape), where=width > 0))

    @property
    def longest(self) -> float:
        """What rows of a regression are divided by, or shortened to: no row of bounded features is longer."""
        if self.scaling is not None:
            return self.scaling.longest
        return math.hypot(math.sqrt(self.lower.size), self.constant)

    def __call__(self, X: Array) -> Array:
        """Map raw features, shape (n, d), to rows of norm at most 1, shape (n, d + 1), float64."""
        if X.ndim != 2 or X.shape[1] != self.lower.size:
            raise DataError(f"X must have shape (n, {self.lower.size}), got {X.shape}.")
        rows, centre, scale = np.empty((len(X), self.size)), self.centre, self.scale
        some = max(1, _AT_ONCE // self.size)
        for start in range(0, len(X), some):
            part = rows[start : start + some]
            features = np.clip(X[start : start + some], self.lower, self.upper, out=part[:, :-1])
            features -= centre
            features *= scale
            part[:, -1] = self.constant
            lengths: Any = self.longest
            if self.unit_rows or self.scaling is not None:
                lengths = np.linalg.norm(part, axis=1, keepdims=True)
            part /= lengths if self.unit_rows else np.maximum(lengths, self.longest)
        return rows

    def _check_scaling(self, scaling: Scaling) -> None:
        """Refuse means outside the bounds, and spreads that would make rows too long for their own norms."""
        d, narrowest = self.lower.size, _NARROWEST * (self.upper - self.lower)
        means, spreads = np.array(scaling.means), np.array(scaling.spreads)
        # Said so that a NaN is refused.
        if means.size != d or not np.all((means >= self.lower) & (means <= self.upper)):
            raise ParameterError(f"means must be {d} numbers within the bounds.")
        if spreads.size != d or not np.all((spreads > 0) & (spreads >= narrowest) & (spreads < math.inf)):
            raise ParameterError(
                f"spreads must be {d} finite numbers > 0, at least {_NARROWEST:g} of the bounds' width."
            )


@dataclass(frozen=True, kw_only=True)
class FittedModel(ABC):
    """Parameters with everything that predictions need.

    Attributes:
        features: Map of raw features; one that leaves them raw goes with a target without bounds.
        w: Parameters, shape (size,).
        classes: Labels by position; None for regression.
        target: Bounds that regression targets were scaled from; None for classification, and where targets
            are in their own units.
        loss: What was minimised; None is logistic or squared.
        link: What makes predictions of scores; None where targets were scaled, or are classes.
    """

    features: RowMap
    w: Array
    classes: Array | None = None
    target: tuple[float, float] | None = None
    loss: LossChoice | None = None
    link: LogLink | None = None

    @abstractmethod
    def scores(self, X: Array) -> Array:
        """Return raw predictions: shape (n,) for two classes or regression, else (n, classes)."""

    @property
    def chosen(self) -> LossChoice:
        """What was minimised."""
        return self.loss or LossChoice.default(classifies=self.classes is not None)

    @property
    def outputs(self) -> int:
        """Raw predictions per record."""
        return len(self.classes) if self.classes is not None and len(self.classes) > 2 else 1

    @property
    def why_no_weights(self) -> str:
        """Why no raw feature has a weight, as a sentence; empty where each has."""
        return ""

    @property
    def why_no_probabilities(self) -> str:
        """Why scores stand for no probabilities, as a sentence; empty where they do."""
        if self.classes is None:
            return "probabilities need a classifier; this model is a regression."
        if not self.chosen.has_probabilities:
            return (
                f"probabilities need loss='logistic', and this model is of loss={self.chosen.name!r}, whose "
                "scores are margins: use decision_function, or train with 'logistic'."
            )
        return ""

    def probabilities(self, X: Array) -> Array:
        """Return class probabilities, shape (n, classes)."""
        return self.probabilities_of(self.scores(X))

    def predict(self, X: Array) -> Array:
        """Return labels, or targets in their own units; shape (n,)."""
        return self.predictions_of(self.scores(X))

    def probabilities_of(self, scores: Array) -> Array:
        """Return the class probabilities that raw predictions stand for, shape (n, classes).

        Raises:
            ParameterError: They stand for none: those of a regression, or of the hinge loss.
        """
        if self.why_no_probabilities:
            raise ParameterError(self.why_no_probabilities)
        return _class_probabilities(scores)

    def predictions_of(self, scores: Array) -> Array:
        """Return the labels, or targets in their own units, that raw predictions stand for; shape (n,)."""
        if self.classes is not None:
            return np.asarray(self.classes[likeliest(scores)])
        return unscale_target(scores, self.target) if self.link is None else self.link(scores)


@dataclass(frozen=True, kw_only=True)
class LinearModel(FittedModel):
    """A linear model of mapped features; attributes as of `FittedModel`."""

    @property
    def coef(self) -> Array:
        """Weights of the features as they are mapped, shape (outputs, size - 1)."""
        return self.weights[:-1].T

    @property
    def intercept(self) -> Array:
        """The constant of each score, shape (outputs,)."""
        return np.asarray(self.weights[-1] * self.features.constant)

    @property
    def weights(self) -> Array:
        """Parameters by mapped feature and output, shape (size, outputs)."""
        return self.w.reshape(self.features.size, -1)

    @property
    def why_no_weights(self) -> str:
        """Why no raw feature has a weight, as a sentence; empty where each has."""
        if not isinstance(self.features, ImageMap):
            return ""
        seen = "filtered pixels" if self.features.size == self.features.dim + 1 else "wavelet features"
        return f"weights by feature need a linear model; this one is linear in {seen} of images."

    def scores(self, X: Array) -> Array:
        """Return raw predictions: shape (n,) for two classes or regression, else (n, classes)."""
        rows = self.features(np.asarray(X, dtype=np.float64))
        if self.w.size == self.features.size:
            return np.asarray(rows @ self.w)
        return np.asarray(rows @ self.weights)


def _class_probabilities(scores: Array) -> Array:
    """Return the class probabilities that raw predictions stand for, shape (n, classes).

    Args:
        scores: Shape (n,) for two classes, else (n, classes).
    """
    if scores.ndim == 2:
        return np.asarray(special.softmax(scores, axis=1))
    positive = special.expit(scores)
    return np.column_stack([1 - positive, positive])


def likeliest(scores: Array) -> IntArray:
    """Return the positions of the classes that raw predictions name, shape (n,)."""
    return np.asarray(scores.argmax(axis=1) if scores.ndim == 2 else scores > 0, dtype=np.int64)


def scale_target(y: Array, target: tuple[float, float] | None) -> Array:
    """Clip regression targets to public bounds and scale them to [-1, 1].

    Args:
        y: Shape (n,).
        target: Public (low, high), finite; where they are equal, every target becomes -1. None leaves targets
            as they are.

    Raises:
        ParameterError: Bounds that are not finite, or low > high.
    """
    if target is None:
        return y
    low, high = target
    if not (math.isfinite(high - low) and low <= high):
        raise ParameterError(f"target_bounds must be finite with low <= high, got {target!r}.")
    width = high - low if high > low else 1.0
    return np.asarray((np.clip(y, low, high) - low) / width * 2 - 1)


def unscale_target(y: Array, target: tuple[float, float] | None) -> Array:
    """Return what `scale_target` scaled to [-1, 1], in its own units."""
    if target is None:
        return y
    low, high = target
    return np.asarray((y + 1) / 2 * (high - low) + low)


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
