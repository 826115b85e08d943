"""Rates by group as fairlearn's `MetricFrame`, for reports and people who know it: `tacit[fairness]`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from tacit.errors import DataError, ParameterError, TacitError, install_extra
from tacit.fairness.groups import Groups
from tacit.numerics import Array

__all__ = ["metric_frame"]


def metric_frame(labels: Any, predictions: Any, sensitive_features: Any, *, positive: Any = None) -> Any:
    """Return the usual rates of each group, and of all records, as a `fairlearn.metrics.MetricFrame`.

    On training data these are no private numbers; of other records they are exact statistics of them.

    Args:
        labels: True labels, shape (n,).
        predictions: Predicted labels, shape (n,).
        sensitive_features: Shape (n,), or (n, columns), discrete; or `Groups`, whose unknown records are left
            out. Of several columns, each combination that occurs is a group.
        positive: The label that rates are about, against all others; None is the last of two classes.

    Returns:
        A frame with "count", "accuracy", "selection_rate", "true_positive_rate" and "false_positive_rate",
        `by_group` and `overall`. A rate of no record is NaN and left out of differences, where the functions
        of fairlearn have 0; apart from that, `difference()` of a rate is what they and `violation` say.

    Raises:
        TacitError: The extra `tacit[fairness]` is not installed.
        DataError: Arrays of other lengths, soft predictions, or no record of a known group.
        ParameterError: `positive` is no class, or not given where there are not two.

    Example:
        >>> frame = metric_frame([1, 0, 1, 0], [1, 0, 1, 1], ["a", "a", "b", "b"])  # doctest: +SKIP
        >>> frame.by_group["selection_rate"].tolist()  # doctest: +SKIP
        [0.5, 1.0]

    Reference:
        Weerts et al. (2023), "Fairlearn: assessing and improving fairness of AI systems".
    """
    try:
        from fairlearn import metrics
    except ImportError as error:
        raise TacitError(
            f"a MetricFrame needs fairlearn; {install_extra('fairness')} installs it."
        ) from error
    groups = sensitive_features if isinstance(sensitive_features, Groups) else Groups.of(sensitive_features)
    known = groups.known
    if not known.any():
        raise DataError("sensitive_features must be known for at least one record.")
    truth, said = _vector("labels", labels, groups), _vector("predictions", predictions, groups)
    wanted = _positive(positive, np.unique(np.concatenate([truth, said])).tolist())
    names = np.array([_text(name) for name in groups.names])
    return metrics.MetricFrame(
        metrics={
            "count": metrics.count,
            "accuracy": lambda y, p: np.mean(y == p),
            "selection_rate": lambda _, p: np.mean(p == wanted),
            "true_positive_rate": lambda y, p: _share(p == wanted, y == wanted),
            "false_positive_rate": lambda y, p: _share(p == wanted, y != wanted),
        },
        y_true=truth[known],
        y_pred=said[known],
        sensitive_features=pd.Series(names[groups.codes[known]], name="group"),
    )


def _share(event: Array, within: Array) -> float:
    """Return how often an event is among some records; NaN where there are none."""
    return float(event[within].mean()) if within.any() else math.nan


def _vector(name: str, values: Any, groups: Groups) -> Array:
    """Return labels, one for each record."""
    array = np.asarray(values)
    if array.shape != groups.codes.shape:
        raise DataError(f"{name} must have shape ({len(groups.codes)},), got {array.shape}.")
    return array


def _positive(positive: Any, classes: list[Any]) -> Any:
    """Return the label that rates are about."""
    if positive is None and len(classes) != 2:
        raise ParameterError(f"positive must name a label where there are {len(classes)} classes, got None.")
    if positive is not None and positive not in classes:
        raise ParameterError(f"positive must be one of the classes {classes}, got {positive!r}.")
    return classes[-1] if positive is None else positive


def _text(name: Any) -> str:
    """Return what a group is called, such as "Female, White"."""
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
