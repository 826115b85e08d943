"""The model of a fair training as a file holds it."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.fairness import Standard
from tacit.jobs.data import JobData
from tacit.jobs.model import TrainedModel
from tacit.learning.model import FeatureMap, LinearModel
from tacit.numerics import Array
from tacit.privacy import Guarantee

__all__ = ["saved_model"]


def saved_model(model: Any, data: JobData, *, run: str, trust: str, promise: Guarantee) -> TrainedModel:
    """Return a fair model as people use it, of features as they come.

    Args:
        model: A fitted estimator.
        data: What is public of the columns.
        run: Name of the run.
        trust: The trust model, or "none".
        promise: What is guaranteed.
    """
    known = [str(one) for one in data.classes]
    classes = np.array([data.classes[known.index(one)] for one in model.classes_], dtype=object)
    if isinstance(model.scaling_, Standard):
        coef = model.coef_ / model.scaling_.scale
        constant = model.intercept_ - coef @ model.scaling_.shift
        if len(model.classes_) == 2:
            constant = constant - model.threshold_
        linear = _within_bounds(coef, constant, classes, lower=data.lower, upper=data.upper)
    else:  # rows of one length, by public bounds
        weights = np.vstack([model.coef_.T, model.intercept_[None, :]])
        linear = LinearModel(features=model.scaling_.features, w=weights.ravel(), classes=classes)
    return TrainedModel(
        fitted=linear,
        feature_names=data.feature_names,
        columns=data.columns,
        run=run,
        trust=trust,
        privacy=str(promise),
    )


def _within_bounds(
    coef: Array, constant: Array, classes: Array, *, lower: float, upper: float
) -> LinearModel:
    """Return the linear model whose scores are coef x + constant, of features within bounds.

    Args:
        coef: Shape (outputs, d).
        constant: Shape (outputs,).
        classes: Labels.
        lower: Of every feature.
        upper: Of every feature.
    """
    d = coef.shape[1]
    features = FeatureMap(lower=np.full(d, lower), upper=np.full(d, upper), unit_rows=False)
    # A mapped row is (x - centre) * scale and the constant, all over one length.
    weights = np.vstack([coef.T / features.scale[:, None], (constant + coef @ features.centre)[None, :]])
    weights[-1] /= features.constant
    return LinearModel(features=features, w=(weights * features.longest).ravel(), classes=classes)
