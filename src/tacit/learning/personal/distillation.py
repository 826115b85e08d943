"""Knowledge distillation: how far what one model predicts is from what another does, with both slopes."""

from __future__ import annotations

from typing import Any, Literal, Protocol, get_args, runtime_checkable

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_choice, check_positive
from tacit.learning.losses import Logistic, Multinomial, loss_name
from tacit.numerics import Array, settle

__all__ = ["Direction", "Distillation", "Predictive", "distillable"]

Direction = Literal["forward", "reverse"]
"""Which of the two distributions expectations are of: the common model's, or the personal one's."""


@runtime_checkable
class Predictive(Protocol):
    """An objective whose predictions can be compared with those of the same model at another point.

    Attributes:
        loss: Loss of a prediction, which says what a prediction is.
    """

    @property
    def loss(self) -> Any:
        """Loss of a prediction."""
        ...

    def predictions(self, w: Array, X: Any) -> Array:
        """Return logits: shape (n,) of the second of two classes, or (n, classes)."""
        ...

    def pullback(self, w: Array, X: Any, slopes: Array) -> Array:
        """Return the sum over records of the Jacobian of predictions times slopes, shape (size,).

        Args:
            w: Parameters, shape (size,).
            X: Of n records.
            slopes: In the shape of predictions.
        """
        ...


def distillable(objective: object) -> Predictive:
    """Return an objective whose predictions are logits of classes.

    Raises:
        ParameterError: It has no predictions, or another loss: what is distilled are class probabilities.
    """
    if not isinstance(objective, Predictive) or not isinstance(objective.loss, Logistic | Multinomial):
        loss = getattr(objective, "loss", None)
        raise ParameterError(
            "distillation needs an objective with `predictions` and `pullback` and the loss 'logistic' or "
            f"'multinomial', got {type(objective).__name__} with {loss_name(loss)!r}."
        )
    return objective


class Distillation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """f_KD(theta, mu): the mean over records of KL(softmax(z_mu / t) || softmax(z_theta / t)).

    z are the logits of the common model mu and of the personal model theta. The source leaves f_KD open; this
    is the usual one.

    Attributes:
        direction: "forward" as above; "reverse" exchanges the two distributions.
        temperature: t, finite, > 0.

    Reference:
        Hinton, Vinyals and Dean (2015), arXiv:1503.02531; Ozkara, Girgis, Data and Diggavi (2023), "A
        statistical framework for personalized federated learning and estimation", ICLR.

    Example:
        >>> import numpy as np
        >>> Distillation().value(np.array([[0.0, 0.0]]), np.array([[0.0, 0.0]]))
        0.0
    """

    direction: Direction = "forward"
    temperature: float = 1.0

    def __post_init__(self) -> None:
        settle(self)
        check_choice("direction", self.direction, get_args(Direction))
        check_positive("temperature", self.temperature)

    def value(self, personal: Array, common: Array) -> float:
        """Return f_KD of the logits of both models, shape (n,) or (n, classes); 0 of no records."""
        if len(personal) == 0:
            return 0.0
        p, q = self._logs(personal, common)
        return float(np.mean(np.sum(np.exp(p) * (p - q), axis=1)))

    def slopes(self, personal: Array, common: Array) -> tuple[Array, Array]:
        """Return the derivatives of f_KD in the personal and in the common logits, each in their shape."""
        p, q = self._logs(personal, common)
        P, gap = np.exp(p), p - q
        scale = 1 / (self.temperature * max(len(personal), 1))
        of_second = (np.exp(q) - P) * scale
        of_first = P * (gap - np.sum(P * gap, axis=1, keepdims=True)) * scale
        pair = (of_second, of_first) if self.direction == "forward" else (of_first, of_second)
        if personal.ndim == 1:
            pair = (pair[0][:, 1], pair[1][:, 1])
        return pair

    def _logs(self, personal: Array, common: Array) -> tuple[Array, Array]:
        """Return log-probabilities, shape (n, classes): of what expectations are of, and of the other."""
        both = [_log_softmax(_columns(one) / self.temperature) for one in (common, personal)]
        return (both[0], both[1]) if self.direction == "forward" else (both[1], both[0])


def _log_softmax(logits: Array) -> Array:
    """Return the logarithms of class probabilities, shape (n, classes): of few records, sooner than SciPy."""
    with np.errstate(invalid="ignore"):  # of a logit that is infinite; a warning would tell that there is one
        below = logits - logits.max(axis=1, keepdims=True)
        return np.asarray(below - np.log(np.exp(below).sum(axis=1, keepdims=True)))


def _columns(logits: Array) -> Array:
    """Return one logit per class, shape (n, classes), float64: the first of two classes has none."""
    wide = logits.astype(np.float64, copy=False)
    if wide.ndim == 2:
        return wide
    columns = np.zeros((len(wide), 2))
    columns[:, 1] = wide
    return columns
