"""Losses of a linear prediction: value and slope of every record, with the constants that theory asks for."""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

import msgspec
import numpy as np
from scipy import special

from tacit.errors import ParameterError, check_count, check_positive, check_probability
from tacit.numerics import Array, BoolArray, settle

__all__ = ["Huber", "Logistic", "Loss", "Multinomial", "PoissonLoss", "Squared", "check_outputs", "loss_name"]


class Loss(Protocol):
    """A convex loss l(p, y) of predictions p; slopes are derivatives in p.

    Predictions have shape (n,), or (n, classes) for `Multinomial`; y has shape (n,). Labels are private, and
    so are never refused: for one outside the loss's range the value and the slope are just numbers.

    Attributes:
        lipschitz: Bound on the L2 norm of a slope, for labels in range; infinite if there is none.
        smoothness: Bound on the largest eigenvalue of the second derivative.
        classifies: Whether labels are classes, and only the sign or the order of predictions tells them.
        clips_to_another: Whether clipped slopes are those of a loss that estimates something else, as of
            another quantile: what is asked for by name is then clipped at the Lipschitz constant only.
    """

    classifies: ClassVar[bool]
    clips_to_another: ClassVar[bool]

    @property
    def lipschitz(self) -> float:
        """Bound on the size of a slope."""
        ...

    @property
    def smoothness(self) -> float:
        """Bound on the second derivative."""
        ...

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record, shape (n,)."""
        ...

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return the derivative of each record's loss, in the shape and dtype of the predictions."""
        ...


class Logistic(msgspec.Struct, frozen=True, tag_field="loss", tag="logistic"):
    """log(1 + e^p) - y p for labels y in {0, 1}."""

    classifies: ClassVar[bool] = True
    clips_to_another: ClassVar[bool] = False

    @property
    def lipschitz(self) -> float:
        """Return 1."""
        return 1.0

    @property
    def smoothness(self) -> float:
        """Return 1/4."""
        return 0.25

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record."""
        return np.asarray(np.logaddexp(0.0, predictions) - y * predictions)

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return sigmoid(p) - y."""
        return np.asarray(special.expit(predictions) - y)


class Multinomial(msgspec.Struct, frozen=True, tag_field="loss", tag="multinomial"):
    """Cross entropy of a softmax; predictions have shape (n, classes), labels are class numbers.

    Attributes:
        largest: Entries of slopes are clipped to [-largest, largest], class by class, in (0, 1]; 1 clips
            none. That is no longer the slope of a function.
        classes: Number of classes, where it is to count for the bound on clipped slopes; None holds for any.
    """

    largest: float = 1.0
    classes: int | None = None

    classifies: ClassVar[bool] = True
    clips_to_another: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        check_probability("largest", self.largest, low_open=True)
        if self.classes is not None:
            check_count("classes", self.classes, low=2)

    @property
    def lipschitz(self) -> float:
        """Return the largest norm of a slope: sqrt(2), the distance of two corners of the simplex, or less.

        One entry is at least -c. The others are probabilities that add up to at most 1: the sum of their
        squares is convex, so it is largest where f of them are clipped to c, and one has the rest.
        """
        c = self.largest
        full = math.floor(1 / c)
        if self.classes is not None and full >= self.classes - 1:
            return c * math.sqrt(self.classes)
        return math.sqrt(c * c * (1 + full) + min(c, max(1 - full * c, 0.0)) ** 2)

    @property
    def smoothness(self) -> float:
        """Return 1/2, the largest eigenvalue of diag(p) - p p^T; clipping entries makes none larger."""
        return 0.5

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record."""
        picked = np.where(_one_hot(y, predictions.shape[1]), predictions, 0).sum(axis=1)
        return np.asarray(special.logsumexp(predictions, axis=1) - picked)

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return softmax(p) - one-hot(y), its entries clipped."""
        slopes = np.asarray(special.softmax(predictions, axis=1) - _one_hot(y, predictions.shape[1]))
        return slopes if self.largest == 1 else np.clip(slopes, -self.largest, self.largest)


class Squared(msgspec.Struct, frozen=True, tag_field="loss", tag="squared"):
    """(p - y)^2 / 2."""

    classifies: ClassVar[bool] = False
    clips_to_another: ClassVar[bool] = False

    @property
    def lipschitz(self) -> float:
        """Return infinity: only clipping bounds a slope."""
        return math.inf

    @property
    def smoothness(self) -> float:
        """Return 1."""
        return 1.0

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record."""
        return np.asarray((predictions - y) ** 2 / 2)

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return p - y."""
        return np.asarray(predictions - y)


class Huber(msgspec.Struct, frozen=True, tag_field="loss", tag="huber"):
    """Squared loss up to `threshold`, linear beyond.

    Attributes:
        threshold: Largest slope, in units of y. Finite, > 0.
    """

    threshold: float = 1.0

    classifies: ClassVar[bool] = False
    clips_to_another: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_positive("threshold", self.threshold)

    @property
    def lipschitz(self) -> float:
        """Return the threshold."""
        return self.threshold

    @property
    def smoothness(self) -> float:
        """Return 1."""
        return 1.0

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record."""
        return np.asarray(special.huber(self.threshold, predictions - y))

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return p - y, clipped at the threshold."""
        return np.asarray(np.clip(predictions - y, -self.threshold, self.threshold))


class PoissonLoss(msgspec.Struct, frozen=True, tag_field="loss", tag="poisson"):
    """e^p - y p for counts y, with the log of the mean as the prediction; beyond log(most) a straight line.

    A count's loss has no constants: its slope e^p - y grows without end. Here counts are clipped to [0,
    most], and where e^p is more than that, the slope stays at `most`. That is convex still, and it moves no
    minimum: a mean of counts that are at most `most` is so too.

    Attributes:
        most: Public bound on counts, finite, > 0; both constants are that large.
    """

    most: float = 1.0

    classifies: ClassVar[bool] = False
    clips_to_another: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        check_positive("most", self.most)

    @property
    def lipschitz(self) -> float:
        """Return `most`."""
        return self.most

    @property
    def smoothness(self) -> float:
        """Return `most`."""
        return self.most

    def value(self, predictions: Array, y: Array) -> Array:
        """Return the loss of each record."""
        beyond = np.maximum(predictions - math.log(self.most), 0)
        return np.asarray(self._mean(predictions) + self.most * beyond - self._count(y) * predictions)

    def slope(self, predictions: Array, y: Array) -> Array:
        """Return min(e^p, most) - y."""
        return np.asarray(self._mean(predictions) - self._count(y))

    def _mean(self, predictions: Array) -> Array:
        """Return min(e^p, most)."""
        return np.asarray(np.exp(np.minimum(predictions, math.log(self.most))))

    def _count(self, y: Array) -> Array:
        """Return counts as near as they are in range: bounds hold for every label."""
        return np.asarray(np.clip(y, 0, self.most))


def _one_hot(y: Array, classes: int) -> BoolArray:
    """Return whether record i has class k, shape (n, classes); a label that is not a class has none."""
    return np.asarray(y[:, None] == np.arange(classes))


def check_outputs(loss: Loss, outputs: int) -> None:
    """Refuse a number of predictions per record that a loss is not of."""
    many = isinstance(loss, Multinomial)
    check_count("outputs", outputs, low=2 if many else 1, high=None if many else 1)
    if isinstance(loss, Multinomial) and loss.classes not in (None, outputs):
        raise ParameterError(f"outputs must be the {loss.classes} classes of the loss, got {outputs}.")


def loss_name(loss: Loss | None) -> str:
    """Return what people call a loss; for one of the user's own, the name of its class.

    Args:
        loss: None is that of an objective that is not linear.

    Example:
        >>> loss_name(Huber())
        'huber'
    """
    if loss is None:
        return "another objective"
    return str(loss.__struct_config__.tag) if isinstance(loss, msgspec.Struct) else type(loss).__name__
