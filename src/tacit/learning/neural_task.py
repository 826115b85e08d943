"""The public shape of a network: its features, what it predicts, and where training starts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np

from tacit.errors import ParameterError
from tacit.learning.loss_choice import LossChoice
from tacit.learning.losses import Loss
from tacit.learning.model import FittedModel, RowMap
from tacit.learning.objective import NeuralObjective
from tacit.learning.public import PublicSample
from tacit.learning.regularization import Regularization
from tacit.learning.task import DEFAULT_DIAMETER, PosedTask
from tacit.numerics import Array, Regularizer

__all__ = ["LongFeatures", "NetworkModel", "NeuralTask", "OutputShape"]


@dataclass(frozen=True)
class LongFeatures:
    """The same rows, so long that a feature is about 1, as random weights of a network expect it.

    Attributes:
        of: The map that is made longer.
        stretch: How much longer still: what is the same in all rows is no use, and where a map has taken it
            away already, the rest may be longer.
    """

    of: RowMap
    stretch: float = 1.0

    @property
    def law(self) -> str:
        """What is made of features, with a version, where a model's own numbers do not say it."""
        return self.of.law and f"{self.of.law} x {self.stretch:g}"

    @property
    def dim(self) -> int:
        """Number d of raw features."""
        return self.of.dim

    @property
    def size(self) -> int:
        """Length of a mapped row."""
        return self.of.size

    @property
    def length(self) -> float:
        """What rows are multiplied by: those of norm 1 get it for their norm."""
        return self.stretch * math.sqrt(self.of.size)

    @property
    def constant(self) -> float:
        """The constant feature."""
        return self.of.constant * self.length

    @property
    def facts(self) -> tuple[object, ...]:
        """What makes rows, for a fingerprint."""
        return ("long", self.stretch, *self.of.facts)

    def __call__(self, X: Array) -> Array:
        """Map raw features, shape (n, d), to rows, shape (n, size), float64."""
        rows = self.of(X)
        rows *= self.length
        return rows


class OutputShape(NamedTuple):
    """What a network predicts.

    Attributes:
        outputs: Predictions per record.
        loss: Of a prediction.
    """

    outputs: int
    loss: Loss

    @classmethod
    def of(
        cls,
        *,
        classes: Array | None = None,
        target: tuple[float, float] | None = None,
        loss: LossChoice | None = None,
        sample: PublicSample | None = None,  # noqa: ARG003 - so that facts of a task are one
    ) -> Self:
        """Return what is predicted of these labels; arguments as of `NeuralTask`.

        Raises:
            ParameterError: The loss is for other labels.
        """
        many = 0 if classes is None else len(classes)
        chosen = loss or LossChoice.default(classifies=many > 0)
        chosen.check(classes=many, target=target)
        return cls(many if many > 2 else 1, chosen.scaled(classes=many, target=target))


@dataclass(frozen=True, kw_only=True)
class NetworkModel(FittedModel):
    """Parameters of a network with everything that predictions need; attributes as of `FittedModel`.

    Attributes:
        objective: Their network.
    """

    objective: NeuralObjective

    @property
    def why_no_weights(self) -> str:
        """Why no feature has a weight."""
        return "weights by feature need a linear model; this one is a network."

    def scores(self, X: Array) -> Array:
        """Return raw predictions: shape (n,) for two classes or regression, else (n, classes)."""
        return self.objective.predictions(self.w, self.features(np.asarray(X, dtype=np.float64)))


@dataclass(frozen=True, kw_only=True)
class NeuralTask(PosedTask):
    """The public shape of a network; the other attributes are as of `PosedTask`.

    Attributes:
        objective: What is minimised, on mapped rows.
        start: The first point, of public weights, shape (size,).
    """

    objective: NeuralObjective
    start: Array

    @property
    def gram(self) -> None:
        """Nothing: no method of networks has use for a Gram matrix of the features."""
        return

    @property
    def diameter(self) -> float:
        """About how far a solution is."""
        return DEFAULT_DIAMETER

    def regularizer(self, chosen: Regularization) -> Regularizer:
        """Return what is added to the mean loss, on all weights.

        Raises:
            ParameterError: Groups of features, or a domain: they are about the weights of a linear model.
        """
        if chosen.group_lasso > 0 or chosen.domain is not None:
            raise ParameterError("group_lasso and domain must be left out for a network: l1 and l2 are not.")
        return chosen.of_linear(features=self.objective.size, outputs=1)

    def predictions(self, w: Array, rows: Array) -> Array:
        """Return raw predictions of mapped rows: shape (n,), or (n, classes)."""
        return self.objective.predictions(w, rows)

    def model(self, w: Array) -> NetworkModel:
        """Return the network with those parameters, ready to predict."""
        return NetworkModel(
            features=self.features,
            objective=self.objective,
            w=w,
            classes=self.classes,
            target=self.target,
            loss=self.chosen,
            link=self.chosen.link(self.target),
        )
