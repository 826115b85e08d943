"""Rates by group as fairlearn's `MetricFrame`, for reports and people who know it: `tacit[fairness]`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from tacit.errors import DataError, ParameterError, TacitError, install_extra
from tacit.fairness.groups import Groups, group_text
from tacit.numerics import Array

__all__ = ["MetricTable", "metric_frame", "metric_table"]

Metrics = dict[str, Callable[[Array, Array], float]]

_PER_RECORD: Final = ["accuracy", "selection_rate", "true_positive_rate", "false_positive_rate"]


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
    truth, said, names = _known(labels, predictions, sensitive_features)
    wanted = _positive(positive, np.unique(np.concatenate([truth, said])).tolist())
    return metrics.MetricFrame(
        metrics=_metrics(wanted), y_true=truth, y_pred=said, sensitive_features=pd.Series(names, name="group")
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class MetricTable:
    """What a `MetricFrame` says of one label, as plain tables: the rates of `metric_frame`.

    Attributes:
        positive: The label that rates are about, against all others.
        by_group: A row for each group, with "count" and four rates; NaN for a rate of no record.
        overall: The same of all records.
        difference: Of each rate, the largest difference of two groups.
        ratio: Of each rate, the smallest of a group over the largest; NaN where all are 0.
        source: "fairlearn", or "tacit" where it is not installed: the numbers are the same.
    """

    positive: Any
    by_group: pd.DataFrame
    overall: pd.Series
    difference: pd.Series
    ratio: pd.Series
    source: str


def metric_table(
    labels: Any, predictions: Any, sensitive_features: Any, *, classes: Sequence[Any]
) -> list[MetricTable]:
    """Return the tables of `metric_frame` for the last of two classes, or for each of several.

    Fairlearn computes them where it is installed; else the same functions are applied group by group.

    Args:
        labels: As in `metric_frame`.
        predictions: As in `metric_frame`.
        sensitive_features: As in `metric_frame`.
        classes: All labels, in order; records need not have each.

    Raises:
        DataError: As in `metric_frame`.

    Example:
        >>> (table,) = metric_table([1, 0, 1, 0], [1, 0, 1, 1], ["a", "a", "b", "b"], classes=[0, 1])
        >>> table.by_group["selection_rate"].tolist(), float(table.difference["accuracy"])
        ([0.5, 1.0], 0.5)
    """
    truth, said, names = _known(labels, predictions, sensitive_features)
    return [_table(truth, said, names, label) for label in (classes[1:] if len(classes) == 2 else classes)]


def _table(truth: Array, said: Array, names: Array, positive: Any) -> MetricTable:
    """Return the table of one label."""
    metrics = _metrics(positive)
    try:
        from fairlearn.metrics import MetricFrame
    except ImportError:
        source, by_group = "tacit", _by_group(metrics, truth, said, names)
        overall = pd.Series({name: metric(truth, said) for name, metric in metrics.items()})
        low, high = by_group[_PER_RECORD].min(), by_group[_PER_RECORD].max()
        difference, ratio = high - low, low / high
    else:
        frame = MetricFrame(metrics=metrics, y_true=truth, y_pred=said, sensitive_features=names)
        source, by_group, overall = "fairlearn", frame.by_group, frame.overall
        difference, ratio = frame.difference()[_PER_RECORD], frame.ratio()[_PER_RECORD]
    return MetricTable(
        positive=positive,
        by_group=by_group,
        overall=overall,
        difference=difference,
        ratio=ratio,
        source=source,
    )


def _by_group(metrics: Metrics, truth: Array, said: Array, names: Array) -> pd.DataFrame:
    """Return metrics of each group, in the order of their names."""
    present, codes = np.unique(names, return_inverse=True)
    parts = np.split(np.argsort(codes, kind="stable"), np.cumsum(np.bincount(codes))[:-1])
    rows = [{name: metric(truth[of], said[of]) for name, metric in metrics.items()} for of in parts]
    return pd.DataFrame(rows, index=present)


def _metrics(positive: Any) -> Metrics:
    """Return the functions of labels and predictions, by name."""
    return {
        "count": lambda y, _: len(y),
        "accuracy": lambda y, p: float(np.mean(y == p)),
        "selection_rate": lambda _, p: float(np.mean(p == positive)),
        "true_positive_rate": lambda y, p: _share(p == positive, y == positive),
        "false_positive_rate": lambda y, p: _share(p == positive, y != positive),
    }


def _known(labels: Any, predictions: Any, sensitive_features: Any) -> tuple[Array, Array, Array]:
    """Return labels, predictions and names of groups of the records whose group is known."""
    groups = sensitive_features if isinstance(sensitive_features, Groups) else Groups.of(sensitive_features)
    known = groups.known
    if not known.any():
        raise DataError("sensitive_features must be known for at least one record.")
    truth, said = _vector("labels", labels, groups), _vector("predictions", predictions, groups)
    names = [group_text(name) for name in groups.names]
    if len(set(names)) < len(names):  # 1 and "1" are two groups
        names = [repr(name) for name in groups.names]
    return truth[known], said[known], np.array(names)[groups.codes[known]]


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
