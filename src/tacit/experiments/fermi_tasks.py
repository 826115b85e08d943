"""What the experiments on fair learning share: halves, what predictions are worth, and rows of a table."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.linear_model import LogisticRegression

from tacit.data import Preset, load_preset
from tacit.experiments.reference import reference
from tacit.fairness import (
    FairLogisticRegression,
    Mixture,
    exponentiated_gradient,
    naive_majority_mixture,
    threshold_optimizer,
    violation,
)
from tacit.numerics import Array, IntArray

__all__ = [
    "FAIRLEARN",
    "NOT_RUN",
    "Split",
    "counted",
    "exponentiated",
    "means",
    "naive_line",
    "row",
    "thresholds",
]

FAIRLEARN = importlib.util.find_spec("fairlearn") is not None
NOT_RUN = "fairlearn is not installed: its reductions and its threshold optimiser were not run."
_DIGITS = 4
_ZERO = 1e-12


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
    def of(cls, preset: Preset, columns: int = 1) -> Self:
        """Return the halves of a preset, with its first sensitive attributes."""
        train, test = (
            part.iloc[:, 0] if columns == 1 else part.iloc[:, :columns]
            for part in (preset.sensitive_train, preset.sensitive_test)
        )
        return cls(preset.X_train, preset.y_train, train, preset.X_test, preset.y_test, test)

    @classmethod
    def load(cls, name: str, columns: int = 1, seed: int = 0) -> Self:
        """Return the halves of a preset, drawn from a seed where it has none of its own."""
        return cls.of(load_preset(name, rng=np.random.default_rng(seed)), columns)

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


def naive_line(split: Split, plain: Any, fairness: str, shares: Sequence[float]) -> list[dict[str, float]]:
    """Return error and violation of a plain model that says the majority with these chances."""
    return [split.worth_of(naive_majority_mixture(plain, split.y, p), fairness) for p in shares]


def row(
    experiment: str,
    panel: str,
    line: str,
    weight: float,
    found: Mapping[str, float],
    error: float | None = None,
) -> dict[str, object]:
    """Return a row: what was found, each beside what the chapter has, all as a table prints it.

    Args:
        experiment: Whose reference is read; its panels are named "panel: quantity".
        panel: Of the row.
        line: Of the row.
        weight: Of the penalty, or what else a point of the line is called by.
        found: By quantity.
        error: Standard error of the test error; None where a run has none.
    """
    known = reference(experiment)
    made: dict[str, object] = {"panel": panel, "line": line, "weight": weight}
    for quantity, value in found.items():
        made[quantity] = _printed(value)
        made[f"reference {quantity}"] = known.get((f"{panel}: {quantity}", line, weight))
    made["standard error"] = None if error is None else _printed(error)
    return made


def means(runs: Sequence[Mapping[str, float]]) -> tuple[dict[str, float], float | None]:
    """Return means over runs, and the standard error of that of "error"; None of one run."""
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    if len(runs) == 1:
        return mean, None
    return mean, float(np.std([run["error"] for run in runs], ddof=1) / np.sqrt(len(runs)))


def counted(asked: Sequence[Any], progress: Any) -> Iterator[Any]:
    """Yield what there is to do, and tell how far it is."""
    for done, one in enumerate(asked):
        progress(done, len(asked))
        yield one
    progress(len(asked), len(asked))


def _printed(value: float) -> float:
    """Return a number with the digits that a table shows: what is said of it then follows from the table."""
    return 0.0 if abs(value) < _ZERO else float(f"{value:.{_DIGITS}g}")


def _chances(chances: Array) -> Array:
    """Return chances of both labels; sums of weights are off 1 by rounding."""
    second = np.clip(chances[:, 1], 0.0, 1.0)
    return np.column_stack([1 - second, second])
