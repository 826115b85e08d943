"""What the experiments on fair learning are made of: halves, methods, and what predictions are worth."""

from __future__ import annotations

import importlib.util
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.linear_model import LogisticRegression

from tacit.data import Preset, load_preset
from tacit.fairness import (
    FairLogisticRegression,
    Mixture,
    exponentiated_gradient,
    naive_majority_mixture,
    threshold_optimizer,
    violation,
)
from tacit.numerics import Array, IntArray

__all__ = ["FAIRLEARN", "Split", "exponentiated", "naive", "thresholds"]

FAIRLEARN = importlib.util.find_spec("fairlearn") is not None


@dataclass(frozen=True, eq=False)
class Split:
    """Records to train on, and others to measure on.

    Attributes:
        X: Shape (n, d).
        y: Labels, shape (n,).
        s: Sensitive attributes, shape (n,) or (n, columns).
        X_new: Of the others.
        y_new: Of the others.
        s_new: Of the others.
    """

    X: Array
    y: IntArray
    s: Any
    X_new: Array
    y_new: IntArray
    s_new: Any

    @classmethod
    def of(cls, preset: Preset, which: slice = slice(1)) -> Self:
        """Return the halves of a preset, with some of its sensitive attributes, the first one by default."""
        train, test = (
            part.iloc[:, which].squeeze(axis=1) for part in (preset.sensitive_train, preset.sensitive_test)
        )
        return cls(preset.X_train, preset.y_train, train, preset.X_test, preset.y_test, test)

    @classmethod
    def load(cls, name: str, which: slice = slice(1), seed: int = 0) -> Self:
        """Return the halves of a preset, drawn from a seed where it has none of its own."""
        return cls.of(load_preset(name, rng=np.random.default_rng(seed)), which)

    def fit(self, **how: Any) -> FairLogisticRegression:
        """Return a fitted model."""
        return FairLogisticRegression(**how).fit(self.X, self.y, sensitive_features=self.s)

    def worth(self, said: Array, fairness: str) -> dict[str, float]:
        """Return error and violation of labels of the other records, or of chances of all labels."""
        hard = said.ndim == 1
        right = said == self.y_new if hard else said[np.arange(len(said)), self.y_new]
        how: dict[str, Any] = {"labels": self.y_new, "classes": np.unique(self.y)}
        return {
            "error": 1 - float(np.mean(right)),
            "violation": violation(said, self.s_new, fairness=fairness, **how),
        }

    def worth_of(self, model: Any, fairness: str) -> dict[str, float]:
        """Return error and violation of a fitted model."""
        mixed = isinstance(model, Mixture)
        said = model.chances_of(self.X_new) if mixed else model.predict(self.X_new)
        return self.worth(said, fairness)


def exponentiated(split: Split, fairness: str, bound: float) -> dict[str, float]:
    """Return error and violation of fairlearn's exponentiated gradient, in expectation of its draws."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # fairlearn's, about versions
        made = exponentiated_gradient(
            LogisticRegression(max_iter=1000), fairness=fairness, max_violation=bound
        )
        made.fit(split.X, split.y, sensitive_features=split.s)
        chances = made._pmf_predict(split.X_new)  # no public method says them
    return split.worth(_chances(chances), fairness)


def thresholds(split: Split, fairness: str) -> dict[str, float]:
    """Return the same of fairlearn's threshold optimiser, which is told the group of new records."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = threshold_optimizer(LogisticRegression(max_iter=1000), fairness=fairness)
        made.fit(split.X, split.y, sensitive_features=split.s)
        chances = made._pmf_predict(split.X_new, sensitive_features=split.s_new)
    return split.worth(_chances(chances), fairness)


def naive(split: Split, plain: Any, fairness: str, share: float) -> dict[str, float]:
    """Return error and violation of a plain model that says the majority with this chance."""
    return split.worth_of(naive_majority_mixture(plain, split.y, share), fairness)


def _chances(chances: Array) -> Array:
    """Return chances of both labels; sums of weights are off 1 by rounding."""
    second = np.clip(chances[:, 1], 0.0, 1.0)
    return np.column_stack([1 - second, second])
