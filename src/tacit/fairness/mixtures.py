"""Classifiers that draw which of several models decides: every point between two models can be had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize
from sklearn.dummy import DummyClassifier

from tacit.errors import DataError, ParameterError, check_probability
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions, Fairness
from tacit.fairness.thresholds import doubt_at, rates_at, wrong_at
from tacit.numerics import Array

__all__ = ["CutModel", "Mixture", "fair_mixture", "naive_majority_mixture"]

_SPREAD = 1.5
_LEAST_CHANCE = 1e-9


@dataclass(frozen=True)
class CutModel:
    """A fitted classifier of two classes whose score is cut elsewhere.

    Attributes:
        model: Has `decision_function` and `classes_`.
        threshold: Scores above it are of the second class.
    """

    model: Any
    threshold: float

    @property
    def classes_(self) -> Array:
        """Labels."""
        return np.asarray(self.model.classes_)

    def predict(self, X: Any) -> Array:
        """Return labels, shape (n,)."""
        return np.asarray(self.classes_[(self.model.decision_function(X) > self.threshold).astype(np.int64)])


@dataclass(frozen=True)
class Mixture:
    """Fitted classifiers, one of which is drawn for each record anew.

    Its error and its rates are means of theirs, so that it is at most as unfair as their mean.

    Attributes:
        models: Fitted classifiers of the same labels, with `predict` and `classes_`.
        chances: Of each to be drawn, shape (models,), summing to 1.
    """

    models: tuple[Any, ...]
    chances: Array

    def __post_init__(self) -> None:
        chances = np.asarray(self.chances, dtype=np.float64)
        if chances.shape != (len(self.models),) or not (chances >= 0).all() or abs(chances.sum() - 1) > 1e-9:
            raise ParameterError(
                f"chances must be one number >= 0 for each of the {len(self.models)} models, summing to 1."
            )
        if any(list(one.classes_) != list(self.models[0].classes_) for one in self.models):
            raise ParameterError("models must have the same classes, in the same order.")

    @property
    def classes_(self) -> Array:
        """Labels."""
        return np.asarray(self.models[0].classes_)

    def chances_of(self, X: Any) -> Array:
        """Return how often each label is said of each record, shape (n, classes): soft predictions."""
        said = np.stack([one.predict(X)[:, None] == self.classes_ for one in self.models])
        return np.asarray(np.tensordot(self.chances, said, axes=1))

    def predict(self, X: Any, rng: np.random.Generator) -> Array:
        """Return drawn labels, shape (n,).

        Args:
            X: Shape (n, d).
            rng: Draws a model for each record.
        """
        said = np.stack([one.predict(X) for one in self.models])
        n = said.shape[1]
        return np.asarray(said[rng.choice(len(self.models), n, p=self.chances), np.arange(n)])


def naive_majority_mixture(model: Any, y: Any, share: float) -> Mixture:
    """Return the mixture that says the most frequent label with that probability, else what the model says.

    What any fair classifier has to beat: its error and its violation of demographic parity lie on a straight
    line between those of the model and those of a constant.

    Args:
        model: A fitted classifier.
        y: Labels of records, shape (n,), whose majority is said.
        share: In [0, 1].

    Raises:
        ParameterError: A share out of range, or labels other than the model's.

    Reference:
        Lowy (2023), section 5.4.
    """
    p = check_probability("share", share)
    labels = np.asarray(y)
    majority = DummyClassifier(strategy="most_frequent").fit(np.zeros((len(labels), 1)), labels)
    return Mixture((majority, model), np.array([p, 1 - p]))


def fair_mixture(
    models: Sequence[Any],
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    max_violation: float,
    fairness: str | Fairness = Fairness.DEMOGRAPHIC_PARITY,
    advantaged: Sequence[Any] | None = None,
    cuts: int = 41,
) -> Mixture:
    """Return the most accurate mixture of models, and of cuts of their scores, within a violation.

    A linear program on the training records: rates by group of a mixture are means of those of its parts, so
    that parts that favour one group make up for parts that favour another. At most a few parts are left. What
    a cut gains over the model's own is counted less one standard error of it.

    Args:
        models: Fitted classifiers, such as one for each of several weights.
        X: Shape (n, d).
        y: Labels, shape (n,).
        sensitive_features: As in `group_rates`.
        max_violation: Largest gap between groups, in [0, 1], of these records.
        fairness: A name of `Fairness`.
        advantaged: As in `group_rates`.
        cuts: Of two classes, how many cuts of each model's score are tried, within 1.5 of its own; 1 keeps
            that.

    Raises:
        ParameterError: A number out of range, or no models.
        DataError: No mixture of these models has so small a violation: the message says the least there is.

    Reference:
        After Agarwal, Beygelzimer, Dudik, Langford and Wallach (2018), whose classifier is such a mixture.
    """
    most = check_probability("max_violation", max_violation)
    if not models:
        raise ParameterError("models must be one at least, got none.")
    labels, classes = np.asarray(y), np.asarray(models[0].classes_)
    groups = sensitive_features if isinstance(sensitive_features, Groups) else Groups.of(sensitive_features)
    where = Conditions.of(Fairness.of(fairness), labels, classes=classes, advantaged=advantaged)
    parts: list[Any] = []
    errors, rates = [], []
    for model in models:
        if len(classes) == 2 and cuts > 1:
            tried = np.linspace(-_SPREAD, _SPREAD, cuts | 1)  # an odd number has 0 among them
            parts += [CutModel(model, float(cut)) for cut in tried]
            margins = [model.decision_function(X)]
            wrong = wrong_at(margins[0], (labels == classes[1]).astype(np.int64), tried)
            errors.append(wrong / len(labels) + doubt_at(margins[0], tried))
        else:
            tried, said = np.zeros(1), model.predict(X)
            parts.append(model)
            # Of two classes one is enough: what is not the second is the first.
            margins = [np.where(said == name, 1.0, -1.0) for name in classes[len(classes) == 2 :]]
            errors.append(np.array([np.mean(said != labels)]))
        rates.append(np.stack([rates_at(one, groups, where, tried) for one in margins], axis=1))
    table = np.concatenate(rates)
    chances = _least_error(np.concatenate(errors), table, most)
    if chances is None:
        least = _least_violation(table)
        raise DataError(
            f"max_violation must be at least {least:.4g} for mixtures of these models, got {max_violation!r}."
        )
    kept = np.flatnonzero(chances > _LEAST_CHANCE)
    return Mixture(tuple(parts[i] for i in kept), chances[kept] / chances[kept].sum())


def _bounds(rates: Array) -> tuple[Array, Array, int]:
    """Return the constraints low_jz <= rate of the mixture <= low_jz + v, as rows for (chances, low, v)."""
    parts, m, z, k = rates.shape
    flat = np.moveaxis(rates, 0, -1).reshape(m * z, k, parts)
    rows = []
    for cell in range(z * m):
        low = np.zeros(z * m)
        low[cell] = 1.0
        for rate in flat[cell][~np.isnan(flat[cell]).any(axis=1)]:
            rows.append(np.concatenate([rate, -low, [-1.0]]))
            rows.append(np.concatenate([-rate, low, [0.0]]))
    return np.array(rows), np.zeros(len(rows)), z * m


def _least_error(errors: Array, rates: Array, most: float) -> Array | None:
    """Return the chances of the mixture of least error within a violation; None where there is none."""
    A, b, cells = _bounds(rates)
    parts = len(errors)
    found = optimize.linprog(
        np.concatenate([errors, np.zeros(cells)]),
        A_ub=A[:, :-1],
        b_ub=b - most * A[:, -1],
        A_eq=np.concatenate([np.ones(parts), np.zeros(cells)])[None],
        b_eq=[1.0],
        bounds=(0, 1),
    )
    return None if found.x is None or not found.success else np.asarray(found.x[:parts])


def _least_violation(rates: Array) -> float:
    """Return the least violation of any mixture."""
    A, b, cells = _bounds(rates)
    parts = len(rates)
    cost = np.zeros(parts + cells + 1)
    cost[-1] = 1.0
    sums = np.concatenate([np.ones(parts), np.zeros(cells + 1)])[None]
    found = optimize.linprog(cost, A_ub=A, b_ub=b, A_eq=sums, b_eq=[1.0], bounds=(0, 1))
    return 1.0 if found.fun is None else float(found.fun)
