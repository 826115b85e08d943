"""The loss of what a module says: values and slopes, by a loss of this room or one of PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tacit.errors import ParameterError, shown
from tacit.learning.losses import Loss, Multinomial
from tacit.learning.modules.network import tensor_of
from tacit.numerics import Array

__all__ = ["LossSlopes"]


class LossSlopes:
    """A loss of records, differentiated in predictions.

    Args:
        loss: One of this room, or what takes tensors of predictions and labels.
        predictions: Of some public records, shape (n, ...).

    Raises:
        ParameterError: The loss does not fit the predictions, averages over records, or mixes them.
    """

    def __init__(self, loss: Loss | Callable[..., Any], predictions: Any) -> None:
        self.single = predictions.ndim == 1 or (predictions.ndim == 2 and predictions.shape[1] == 1)
        self.outputs = 1 if predictions.ndim == 1 else int(predictions.shape[1])
        self.own = hasattr(loss, "slope")
        if isinstance(loss, type) or not (self.own or callable(loss)):
            raise ParameterError(
                "loss must be a loss of tacit, as Logistic(), or what takes predictions and labels, as "
                f"functools.partial(binary_cross_entropy_with_logits, reduction='none'); got {shown(loss)}."
            )
        self._loss: Any = loss
        self._dtype = predictions.dtype
        if self.own:
            self._check_outputs(predictions)
        else:
            self._dtype = self._dtype_of_labels(predictions)

    def said(self, predictions: Any) -> Any:
        """Return predictions as the loss takes them: one of ours takes (n,) where there is one per record."""
        return predictions.reshape(len(predictions)) if self.single and self.own else predictions

    def values(self, predictions: Any, y: Array) -> Array:
        """Return the loss of each record, shape (n,), float64.

        Args:
            predictions: What the module says.
            y: Shape (n,).
        """
        said = self.said(predictions)
        with np.errstate(over="ignore", invalid="ignore"), torch.no_grad():
            if self.own:
                return np.asarray(self._loss.value(said.double().cpu().numpy(), y))
            values = self._loss(said, self._labels(y, said)[0])
            return np.asarray(values.double().cpu().numpy())

    def __call__(self, predictions: Any, y: Array) -> Any:
        """Return the derivative of each record's loss in what the module says, in its shape.

        That of a label which is none of the classes of a loss of PyTorch is zero.
        """
        said = self.said(predictions)
        if self.own:
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = said.cpu().numpy()
                slopes = np.asarray(self._loss.slope(numbers, y.astype(numbers.dtype)))
            return tensor_of(slopes, said.dtype, said.device).reshape(predictions.shape)
        labels, bad = self._labels(y, said)
        with torch.enable_grad():
            leaf = said.detach().requires_grad_()
            (found,) = torch.autograd.grad(self._loss(leaf, labels).sum(), leaf)
        if bad is not None:
            found[bad] = 0
        return found.reshape(predictions.shape)

    def _labels(self, y: Array, said: Any) -> tuple[Any, Any]:
        """Return labels as the loss takes them, and which are none of its classes."""
        if self._dtype != torch.int64:
            return tensor_of(y, self._dtype, said.device), None
        good = (y >= 0) & (y < self.outputs) & (np.floor(y) == y)
        bad = None if good.all() else tensor_of(~good, torch.bool, said.device)
        return tensor_of(np.where(good, y, 0), torch.int64, said.device), bad

    def _check_outputs(self, predictions: Any) -> None:
        """Refuse predictions that a loss of ours is not of."""
        many = isinstance(self._loss, Multinomial)
        name, shape = type(self._loss).__name__, tuple(predictions.shape)
        if many == self.single or predictions.ndim > 2:
            wanted = "(n, classes), 2 or more" if many else "(n,) or (n, 1)"
            raise ParameterError(f"module must return shape {wanted} for the loss {name}, got {shape}.")
        if many and self._loss.classes not in (None, self.outputs):
            raise ParameterError(
                f"module must return the {self._loss.classes} classes of the loss, got {self.outputs}."
            )

    def _dtype_of_labels(self, predictions: Any) -> Any:
        """Return the dtype of labels that a loss of PyTorch takes: that of predictions, or int64."""
        n, errors = len(predictions), []
        column = (
            "; labels have shape (n,): end the module in torch.nn.Flatten(0), so that predictions have it too"
            if predictions.ndim == 2 and predictions.shape[1] == 1
            else ""
        )
        for dtype in (predictions.dtype, torch.int64):
            y = torch.zeros(n, dtype=dtype, device=predictions.device)
            try:
                found = self._loss(predictions, y)
            except Exception as error:  # noqa: BLE001 - it may raise anything for labels of another dtype
                errors.append(f"{type(error).__name__}: {error!s:.120}")
                continue
            if tuple(found.shape) != (n,):
                raise ParameterError(
                    f"loss must return one number per record, shape ({n},), got {tuple(found.shape)}: "
                    f"one that averages or adds up takes reduction='none'{column}."
                )
            moved = predictions.clone()
            moved[0] = 3 * moved[0] + 1
            if not torch.equal(self._loss(moved, y)[1:], found[1:]):
                raise ParameterError("loss mixes records: another prediction changes the loss of one.")
            return dtype
        raise ParameterError(
            f"loss does not run on predictions of shape {tuple(predictions.shape)}: {errors[0]}{column}"
        )
