"""Scores of a regression, by the loss that it was trained with, beside what the best constant gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from scipy import special

from tacit.jobs.held_out import HeldOut, Known, SiloScore, by_silo, standard_error_of
from tacit.learning.loss_choice import LossChoice
from tacit.learning.model import FittedModel, unscale_target
from tacit.numerics import Array

__all__ = ["FARTHEST", "NumberMetric", "NumberScores", "score_numbers", "true_targets"]

FARTHEST = 1e30
"""No prediction and no target counts as larger in scores: JSON has no infinity for squares."""

_LEAST_MEAN = 1e-300  # of counts: the deviance of a mean of 0 is infinite, and JSON has no infinity

Metric = Literal["rmse", "mae", "pinball", "deviance"]


class NumberScores(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="task",
    tag="regression",
):
    """Scores of a regression on held-out records, in the units of the target.

    Targets are clipped to their public bounds, as in training. A target that is missing counts as the middle
    of the bounds, everywhere; without bounds as 0.

    Attributes:
        records: Number of held-out records.
        units: Number of protected units that they belong to: records, or persons.
        unlabelled: How many of the records have no target.
        score: What `metric` says.
        standard_error: Of the score, over units; None where fewer than two units are held out, or there is
            no error.
        baseline: Score of always guessing the one number that does best on these records: their mean, where
            it is their standard deviation, or their median or another quantile.
        mae: Mean absolute error.
        r2: 1 - (root mean squared error / standard deviation)^2; None where all targets are equal.
        silos: By silo; empty where the held-out records belong to none.
        metric: What `score` is, by the loss that was trained: "rmse", the root mean squared error (squared);
            "mae" (huber, absolute); "pinball", the mean of max(q r, (q - 1) r) over what targets are above
            predictions, r (quantile); "deviance", the mean of 2 (y log(y / p) - y + p) (poisson).
        guess: What the baseline guesses: "mean", "median" or such as "0.9-quantile".
    """

    records: int
    units: int
    unlabelled: int
    score: float
    standard_error: float | None
    baseline: float
    mae: float
    r2: float | None
    silos: tuple[SiloScore, ...]
    metric: Metric = "rmse"
    guess: str = "mean"

    @property
    def auc(self) -> None:
        """There is none."""
        return None

    @property
    def auc_standard_error(self) -> None:
        """There is none."""
        return None


@dataclass(frozen=True)
class NumberMetric:
    """What a loss is scored by; everything is in units of the target."""

    loss: LossChoice

    @property
    def name(self) -> Metric:
        """As in `NumberScores.metric`."""
        names: dict[str, Metric] = {
            "huber": "mae",
            "absolute": "mae",
            "quantile": "pinball",
            "poisson": "deviance",
        }
        return names.get(self.loss.name, "rmse")

    @property
    def guess(self) -> str:
        """What the best constant is."""
        return {"mae": "median", "pinball": f"{self.loss.quantile:g}-quantile"}.get(self.name, "mean")

    def constant(self, y: Array) -> float:
        """Return the number that scores best as the guess for all of some targets."""
        q = {"mae": 0.5, "pinball": self.loss.quantile}.get(self.name)
        return float(np.mean(y) if q is None else np.quantile(y, q, method="inverted_cdf"))

    def costs(self, y: Array, predicted: Array) -> Array:
        """Return what each record adds to the mean, of squares for "rmse"; shape (n,)."""
        match self.name:
            case "mae":
                return np.asarray(np.abs(y - predicted))
            case "pinball":
                q, above = self.loss.quantile, y - predicted
                return np.asarray(np.maximum(q * above, (q - 1) * above))
            case "deviance":
                mean = np.maximum(predicted, _LEAST_MEAN)
                return np.asarray(2 * (special.xlogy(y, y) - y * np.log(mean) - y + mean))
            case _:
                return np.asarray((y - predicted) ** 2)

    def score(self, y: Array, predicted: Array) -> float:
        """Return the score."""
        return self.known(y, predicted, np.arange(y.size))[0]

    def known(self, y: Array, predicted: Array, units: Array) -> Known:
        """Return the score with its standard error over units."""
        costs = self.costs(y, predicted)
        mean = float(np.mean(costs))
        influence = (costs - mean) / y.size
        if self.name != "rmse":
            return mean, standard_error_of(influence, units)
        root = float(np.sqrt(mean))
        # The derivative of a root is 1 / (2 root).
        return root, standard_error_of(influence / (2 * root) if root > 0 else 0 * influence, units)


def true_targets(y: Array, target: tuple[float, float] | None) -> Array:
    """Return held-out targets in their own units, shape (n,).

    Args:
        y: As in `HeldOut`. What is missing is the middle of the bounds, and 0 where there are none.
        target: The bounds; None where `y` is in its own units.
    """
    # Squares of targets that nobody bounds must not overflow, any more than those of predictions.
    return unscale_target(np.clip(np.nan_to_num(y), -FARTHEST, FARTHEST), target)


def score_numbers(raw: Array, held_out: HeldOut, model: FittedModel) -> NumberScores:
    """Return the scores of a regression.

    Args:
        raw: What it says of each held-out record, as `FittedModel.scores`.
        held_out: The truth.
        model: Of which only the target, the loss and its link are looked at.
    """
    metric = NumberMetric(model.chosen)
    y = true_targets(held_out.y, held_out.target)
    predicted = model.predictions_of(raw.astype(np.float64))

    def known(index: Array) -> Known:
        return metric.known(y[index], predicted[index], held_out.units[index])

    def constant(index: Array) -> float:
        own = y[index]
        return metric.score(own, np.full(own.shape, metric.constant(own)))

    from sklearn import metrics  # half a second that a role which scores nothing can do without

    everything = np.arange(y.size)
    score, error = known(everything)
    return NumberScores(
        records=y.size,
        units=np.unique(held_out.units).size,
        unlabelled=int(np.isnan(held_out.y).sum()),
        score=score,
        standard_error=error,
        baseline=constant(everything),
        mae=float(metrics.mean_absolute_error(y, predicted)),
        r2=float(metrics.r2_score(y, predicted)) if np.ptp(y) > 0 else None,
        silos=by_silo(held_out, known, constant),
        metric=metric.name,
        guess=metric.guess,
    )
