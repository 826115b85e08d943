"""What fairness costs in accuracy: one fit for each weight, and which of them nothing beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

from tacit.errors import ParameterError, check_choice, check_non_negative
from tacit.fairness.metrics import violation
from tacit.numerics import Array

__all__ = ["pareto", "tradeoff"]


def tradeoff(
    estimator: Any,
    weights: Sequence[float],
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    held_out: tuple[Any, Any, Any] | None = None,
    measure: str = "gap",
) -> pd.DataFrame:
    """Return accuracy and violation for each weight.

    Args:
        estimator: `FairLogisticRegression`, or another with `weight` and `fairness`; it stays unfitted.
        weights: Each >= 0.
        X: Training records, shape (n, d).
        y: Labels, shape (n,).
        sensitive_features: As its `fit` takes them.
        held_out: Other records (X, y, sensitive features) that the columns are about. None is the training
            records, on which a model looks fairer and more accurate than it is.
        measure: "gap" or "linf", as in `violation`.

    Returns:
        A row for each weight, in their order: "weight", "accuracy", "violation" of hard and "soft_violation"
        of soft predictions, "pareto" (no other row is as fair and more accurate, or as accurate and fairer),
        and "model", the fitted estimator.

    Raises:
        ParameterError: No weights, or one below 0.
        DataError: As in the estimator's `fit` and in `violation`.
    """
    if len(weights) == 0:
        raise ParameterError("weights must be one number >= 0 at least, got none.")
    checked = [check_non_negative("weights", weight) for weight in weights]
    check_choice("measure", measure, ["gap", "linf"])
    inside, labels, sensitive = (X, y, sensitive_features) if held_out is None else held_out
    rows = []
    for weight in checked:
        model = clone(estimator).set_params(weight=weight).fit(X, y, sensitive_features=sensitive_features)
        how: dict[str, Any] = {
            "fairness": model.fairness,
            "labels": np.asarray(labels),
            "classes": model.classes_,
            "advantaged": getattr(model, "advantaged", None),
            "measure": measure,
        }
        said = model.predict(inside)
        rows.append(
            {
                "weight": weight,
                "accuracy": float(np.mean(said == np.asarray(labels))),
                "violation": violation(said, sensitive, **how),
                "soft_violation": violation(model.predict_proba(inside), sensitive, **how),
                "model": model,
            }
        )
    table = pd.DataFrame(rows)
    table.insert(4, "pareto", pareto(table["accuracy"].to_numpy(), table["violation"].to_numpy()))
    return table


def pareto(accuracies: Array, violations: Array) -> Array:
    """Return which points no other one beats, truth values of shape (n,).

    Args:
        accuracies: Shape (n,).
        violations: Shape (n,).
    """
    a, v = np.asarray(accuracies, dtype=np.float64), np.asarray(violations, dtype=np.float64)
    as_good = (a[:, None] >= a) & (v[:, None] <= v)
    better = (a[:, None] > a) | (v[:, None] < v)
    return np.asarray(~(as_good & better).any(axis=0))
