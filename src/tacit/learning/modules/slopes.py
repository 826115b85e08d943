"""The loss of what a module says: values and slopes, by a loss of this room or one of PyTorch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from torch.nn.functional import binary_cross_entropy

from tacit.errors import ParameterError, shown
from tacit.learning.losses import Loss, Multinomial
from tacit.learning.modules.flat import tensor_of
from tacit.numerics import Array

__all__ = ["LossSlopes"]


class LossSlopes:
    """A loss of records, differentiated in predictions.

    Args:
        loss: One of this room, or what takes tensors of predictions and labels.
        predictions: Of some public records, shape (n, ...).

    Attributes:
        single: Whether there is one prediction per record.
        outputs: Predictions per record.
        label: A public one, on which the loss is known to run.
        plain: Whether it is the most usual loss, whose derivative is known, and which raises for no record.

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
        self._of_probabilities = not self.own and _of_probabilities(loss)
        self.plain = (
            isinstance(loss, partial)
            and loss.func is torch.nn.functional.cross_entropy
            and (loss.args, loss.keywords) == ((), {"reduction": "none"})
        )
        self._dtype, self.label = predictions.dtype, 0.0
        if self.own:
            self._check_outputs(predictions)
        else:
            self._dtype, self.label = self._tried_labels(predictions)

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
            said, labels, bad = self._within(said, y)
            found = np.asarray(self._loss(said, labels).double().cpu().numpy())
            return found if bad is None else np.where(bad.cpu().numpy(), np.nan, found)

    def __call__(self, predictions: Any, y: Array) -> Any:
        """Return the derivative of each record's loss in what the module says, in its shape.

        Where the loss is not defined it is zero: at a label that is none of the classes of a loss of PyTorch,
        and at what is no probability where it takes these.
        """
        said = self.said(predictions)
        if self.own:
            with np.errstate(over="ignore", invalid="ignore"):
                numbers = said.cpu().numpy()
                slopes = np.asarray(self._loss.slope(numbers, y.astype(numbers.dtype)))
            return tensor_of(slopes, said.dtype, said.device).reshape(predictions.shape)
        told, labels, bad = self._within(said, y)
        if self.plain and told.ndim == 2 and labels.dtype == torch.int64:
            # Along records it is faster, and rounds by where threads part them.
            found = torch.softmax(told, 1)
            found.scatter_add_(1, labels[:, None], found.new_full((len(found), 1), -1))
        else:
            with torch.enable_grad():
                leaf = told.detach().requires_grad_()
                (found,) = torch.autograd.grad(self._loss(leaf, labels).sum(), leaf)
        if bad is not None:
            found[bad] = 0
        return found.reshape(predictions.shape)

    def _within(self, said: Any, y: Array) -> tuple[Any, Any, Any]:
        """Return predictions and labels that the loss is defined at, and which records are at others."""
        if self._dtype == torch.int64:
            with np.errstate(invalid="ignore"):
                labels = y.astype(np.int64)
            good = (labels == y) & (labels.view(np.uint64) < self.outputs)
            if good.all():
                return said, torch.from_numpy(labels).to(said.device), None
            labels[~good] = int(self.label)
            return said, torch.from_numpy(labels).to(said.device), tensor_of(~good, torch.bool, said.device)
        labels = tensor_of(y, self._dtype, said.device)
        if not self._of_probabilities:
            return said, labels, None
        # An accelerator does not come back from the error that PyTorch raises for others.
        inside = (said >= 0) & (said <= 1) & (labels >= 0) & (labels <= 1)
        return said.where(inside, 0.5), labels.where(inside, 0), None if bool(inside.all()) else ~inside

    def _check_outputs(self, predictions: Any) -> None:
        """Refuse predictions that a loss of ours is not of."""
        many = isinstance(self._loss, Multinomial)
        name, shape = type(self._loss).__name__, tuple(predictions.shape)
        if many == self.single or predictions.ndim > 2:
            wanted = "(n, classes), 2 or more" if many else "(n,) or (n, 1)"
            two = "; of two classes it says one number, of the second" if name == "Logistic" else ""
            raise ParameterError(f"module must return shape {wanted} for the loss {name}, got {shape}{two}.")
        if many and self._loss.classes not in (None, self.outputs):
            raise ParameterError(
                f"module must return the {self._loss.classes} classes of the loss, got {self.outputs}."
            )

    def _tried_labels(self, predictions: Any) -> tuple[Any, float]:
        """Return the dtype of labels that a loss of PyTorch takes, and one of them: 0, or 1."""
        n, errors, name = len(predictions), [], _name(self._loss)
        for label, dtype in product((0, 1), (predictions.dtype, torch.int64)):
            y = torch.full((n,), label, dtype=dtype, device=predictions.device)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # of shapes, which are looked at below
                    found = self._loss(predictions.clone().requires_grad_(), y)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything
                errors.append(f"{type(error).__name__}: {' '.join(str(error).split()):.120}")
                continue
            shape = tuple(getattr(found, "shape", ())) if isinstance(found, torch.Tensor) else None
            if shape != (n,):
                got = f"a {type(found).__name__}" if shape is None else str(shape)
                raise ParameterError(
                    f"loss must return one number per record, shape ({n},), got {got}: "
                    f"one that averages or adds up takes reduction='none'{_column(predictions)}."
                )
            if not (found.requires_grad and found.is_floating_point()):
                raise ParameterError(
                    f"loss must be real and have a derivative in predictions, and {name} has none: leave "
                    "detach(), comparisons and whole numbers out of it."
                )
            if self._mixes(predictions, y, found):
                raise ParameterError(
                    "loss mixes records: another prediction or label changes the loss of one."
                )
            return dtype, float(label)
        cure = _sigmoid(predictions) if self._of_probabilities else ""
        raise ParameterError(
            f"loss {name} does not run on predictions of shape {tuple(predictions.shape)} and labels 0 or 1 "
            f"of shape ({n},): {cure or errors[0]}{'' if cure else _column(predictions)}."
        )

    def _mixes(self, predictions: Any, y: Any, found: Any) -> bool:
        """Whether another prediction or label of the first record changes the loss of others."""
        moved, other = [predictions.clone() for _ in range(2)], y.clone()
        moved[0][0], moved[1][0] = predictions[-1], 3 * predictions[0] + 1
        other[0] = 1 - y[0]
        for said, labels in ((moved[0], y), (moved[1], y), (predictions, other)):
            try:
                again = self._loss(said, labels)
            except (Exception, SystemExit):  # noqa: BLE001, S112 - it may not be defined there
                continue
            if not torch.equal(again[1:].nan_to_num(), found[1:].nan_to_num()):
                return True
        return False


def _name(loss: Any) -> str:
    """Return what a person calls a loss."""
    loss = getattr(loss, "func", loss)
    return str(getattr(loss, "__name__", type(loss).__name__))


def _of_probabilities(loss: Any) -> bool:
    """Whether PyTorch defines a loss for predictions and labels in [0, 1] only."""
    return getattr(loss, "func", loss) is binary_cross_entropy or type(loss) is torch.nn.BCELoss


def _column(predictions: Any) -> str:
    """Return what is missing where labels have another shape than one prediction per record."""
    if predictions.ndim != 2 or predictions.shape[1] != 1:
        return ""
    return "; labels have shape (n,): end the module in torch.nn.Flatten(0), so that predictions have it too"


def _sigmoid(predictions: Any) -> str:
    """Return what to do where a loss of probabilities raises because predictions are none."""
    if predictions.ndim != 1 or bool(((predictions >= 0) & (predictions <= 1)).all()):
        return ""
    return (
        "it takes probabilities, and the module returns others: take binary_cross_entropy_with_logits, or "
        "end the module in torch.nn.Sigmoid()"
    )
