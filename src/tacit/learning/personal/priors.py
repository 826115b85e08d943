"""Priors of personal parameters, and the alternating steps that find their mode together with the models.

Parameters theta_i of party i come from a common law P(Gamma), and records of the party from theta_i. What is
minimised over all theta_i and Gamma is sum_i f_i(theta_i) + R: f_i is the sum of the losses of the party's
records, and R the negative log density of the law. Nothing here is private.

Source: Ozkara, Girgis, Data and Diggavi (2023), ICLR, Section 3, with the sum over coordinates that the
Laplace law has.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self

import numpy as np

from tacit.errors import check_positive
from tacit.learning.objective import Objective, Records
from tacit.learning.personal.distillation import Distillation, distillable
from tacit.numerics import Array

__all__ = ["DistillationPrior", "GaussianPrior", "LaplacePrior", "Prior"]

FLOOR = 1e-3
"""Least spread: at zero spread and equal models the joint density has no bound."""


class Prior(Protocol):
    """A law of personal parameters with its own parameters, of which `center` is what all have in common."""

    @property
    def center(self) -> Array:
        """mu, shape (size,)."""
        ...

    @property
    def spread(self) -> float:
        """s2, b or psi."""
        ...

    def penalty(self, models: Array, parties: Sequence[Records]) -> float:
        """Return R of all models, shape (parties, size)."""
        ...

    def descend(self, theta: Array, party: Records, slope: Array, smoothness: float, *, step: float) -> Array:
        """Return a model after one step on f_i + R.

        Args:
            theta: The model, shape (size,).
            party: Its records.
            slope: Gradient of f_i at the model.
            smoothness: Of f_i.
            step: In units of one over the smoothness of what is minimised, in (0, 1].
        """
        ...

    def updated(self, models: Array, parties: Sequence[Records]) -> Self:
        """Return the law whose parameters fit the models best, no narrower than its floor."""
        ...


@dataclass(frozen=True, kw_only=True)
class GaussianPrior:
    """theta_i ~ N(mu, s2 I): R = (n d / 2) ln(2 pi s2) + sum_i |theta_i - mu|^2 / (2 s2).

    Attributes:
        center: mu.
        spread: s2, finite, > 0.
        floor: Least s2.
    """

    center: Array
    spread: float = 1.0
    floor: float = FLOOR

    def __post_init__(self) -> None:
        _check(self.spread, self.floor)

    def penalty(self, models: Array, parties: Sequence[Records]) -> float:  # noqa: ARG002 - numbers alone
        """Return R."""
        squares = float(((models - self.center) ** 2).sum())
        return models.size / 2 * math.log(2 * math.pi * self.spread) + squares / (2 * self.spread)

    def descend(
        self,
        theta: Array,
        party: Records,  # noqa: ARG002 - numbers alone
        slope: Array,
        smoothness: float,
        *,
        step: float,
    ) -> Array:
        """Return the model after a gradient step."""
        rate = step / (smoothness + 1 / self.spread)
        return theta - rate * (slope + (theta - self.center) / self.spread)

    def updated(self, models: Array, parties: Sequence[Records]) -> Self:  # noqa: ARG002 - numbers alone
        """Return mu = mean of theta_i, and s2 = their mean squared distance in a coordinate."""
        center = models.mean(axis=0)
        return replace(self, center=center, spread=max(float(((models - center) ** 2).mean()), self.floor))


@dataclass(frozen=True, kw_only=True)
class LaplacePrior:
    """Coordinates of density e^(-|t - mu| / b) / (2 b): R = n d ln(2 b) + sum_i |theta_i - mu|_1 / b.

    Attributes:
        center: mu.
        spread: b, finite, > 0.
        floor: Least b.
    """

    center: Array
    spread: float = 1.0
    floor: float = FLOOR

    def __post_init__(self) -> None:
        _check(self.spread, self.floor)

    def penalty(self, models: Array, parties: Sequence[Records]) -> float:  # noqa: ARG002 - numbers alone
        """Return R."""
        # The source prints n ln(2 b), which is right for one coordinate only.
        distances = float(np.abs(models - self.center).sum())
        return models.size * math.log(2 * self.spread) + distances / self.spread

    def descend(
        self,
        theta: Array,
        party: Records,  # noqa: ARG002 - numbers alone
        slope: Array,
        smoothness: float,
        *,
        step: float,
    ) -> Array:
        """Return the model after a proximal step: coordinates near mu are drawn onto it."""
        rate = step / smoothness
        moved = theta - rate * slope - self.center
        return np.asarray(self.center + np.sign(moved) * np.maximum(np.abs(moved) - rate / self.spread, 0))

    def updated(self, models: Array, parties: Sequence[Records]) -> Self:  # noqa: ARG002 - numbers alone
        """Return mu = median of theta_i in every coordinate, and b = their mean distance from it."""
        center = np.median(models, axis=0)
        return replace(self, center=center, spread=max(float(np.abs(models - center).mean()), self.floor))


@dataclass(frozen=True, kw_only=True)
class DistillationPrior:
    """Models that predict alike are near: R = sum_i (ln(2 psi) / 2 + f_KD(theta_i, mu) / (2 psi)).

    Attributes:
        objective: Whose predictions are compared; see `Predictive`.
        center: mu.
        spread: psi, finite, > 0.
        floor: Least psi.
        distillation: f_KD.

    Raises:
        ParameterError: The predictions are no logits of classes.
    """

    objective: Objective
    center: Array
    spread: float = 1.0
    floor: float = FLOOR
    distillation: Distillation = field(default_factory=Distillation)

    def __post_init__(self) -> None:
        _check(self.spread, self.floor)
        distillable(self.objective)

    def penalty(self, models: Array, parties: Sequence[Records]) -> float:
        """Return R."""
        total = sum(self._distances(models, parties))
        return len(models) / 2 * math.log(2 * self.spread) + total / (2 * self.spread)

    def descend(self, theta: Array, party: Records, slope: Array, smoothness: float, *, step: float) -> Array:
        """Return the model after a gradient step."""
        predictive = distillable(self.objective)
        own, common = (predictive.predictions(w, party.X) for w in (theta, self.center))
        pull = predictive.pullback(theta, party.X, self.distillation.slopes(own, common)[0])
        # Of the logits, a divergence is as smooth as the loss of one record, over the square of t.
        extra = smoothness / max(len(party), 1) / (2 * self.spread * self.distillation.temperature**2)
        return theta - step / (smoothness + extra) * (slope + pull / (2 * self.spread))

    def updated(self, models: Array, parties: Sequence[Records]) -> Self:
        """Return mu after a gradient step on the mean of f_KD, and psi = that mean there."""
        predictive, center = distillable(self.objective), self.center
        pulls = []
        for theta, party in zip(models, parties, strict=True):
            own, common = (predictive.predictions(w, party.X) for w in (theta, center))
            pulls.append(predictive.pullback(center, party.X, self.distillation.slopes(own, common)[1]))
        rate = self.distillation.temperature**2 / self.objective.smoothness
        rate = rate if math.isfinite(rate) and rate > 0 else 1.0
        moved = replace(self, center=center - rate * np.mean(pulls, axis=0))
        return replace(moved, spread=max(float(np.mean(moved._distances(models, parties))), self.floor))

    def _distances(self, models: Array, parties: Sequence[Records]) -> list[float]:
        """Return f_KD of every party."""
        predict = distillable(self.objective).predictions
        return [
            self.distillation.value(predict(theta, party.X), predict(self.center, party.X))
            for theta, party in zip(models, parties, strict=True)
        ]


def _check(spread: float, floor: float) -> None:
    """Refuse a law without width."""
    check_positive("floor", floor)
    check_positive("spread", spread)
