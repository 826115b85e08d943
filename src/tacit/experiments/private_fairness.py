"""Fair logistic regression whose sensitive attribute, or whole records, are private (Lowy 2023, Chapter 6).

Figures 6.2, 6.3 and E.2 are curves without numbers; the column of the reference holds what an independent
computation of the corrected algorithm found, with the last of 200 points and other clips, over three seeds.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.data import Preset, load_preset
from tacit.errors import PrivacyWarning
from tacit.experiments.fermi_places import counted, standard_error
from tacit.experiments.private_fairness_statements import statements
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.fairness import FairLogisticRegression, PrivateFairLogisticRegression, parity_violation
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated

__all__ = ["EXPERIMENTS_OF", "Setting", "compute", "run"]

_SPREAD = 3.0
"""Public bounds of a standardised number, where records are private."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """One figure.

    Attributes:
        preset: Name of the data.
        epsilons: Places of the horizontal axis.
        weights: Of the penalty: a line each.
        protect: "sensitive" or "record".
        options: Of the private estimator.
    """

    preset: str
    epsilons: tuple[float, ...] = (0.5, 1.0, 3.0, 9.0)
    weights: tuple[float, ...] = (0.5, 1.0, 2.0)
    protect: str = "sensitive"
    options: tuple[tuple[str, Any], ...] = ()


EXPERIMENTS_OF = {
    "dp-fermi-adult": Setting(preset="adult-ch6", weights=(0.5, 1.0, 2.0, 4.0)),
    "dp-fermi-credit": Setting(preset="credit-default"),
    "dp-fermi-parkinsons": Setting(preset="parkinsons"),
    "dp-fermi-record": Setting(
        preset="adult-ch6", epsilons=(1.0, 3.0), weights=(0.0, 1.0, 2.0), protect="record"
    ),
}
"""Settings by the name of the experiment."""


def run(name: str, quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute a figure; `quick` takes one seed, two weights and the two ends of the axis."""
    setting = EXPERIMENTS_OF[name]
    if quick:
        ends = (setting.epsilons[0], setting.epsilons[-1])
        return compute(name, ends, setting.weights[-2:], 1, progress)
    return compute(name, setting.epsilons, setting.weights, 3, progress)


def compute(
    name: str,
    epsilons: Sequence[float],
    weights: Sequence[float],
    seeds: int,
    progress: Callable[[int, int], Any],
) -> Report:
    """Compute some places of a figure.

    Args:
        name: Of the experiment.
        epsilons: At a delta of one over the square of the number of training records.
        weights: Of the penalty.
        seeds: How many splits and draws of noise.
        progress: Called with (done, total).
    """
    setting = EXPERIMENTS_OF[name]
    data = [load_preset(setting.preset, rng=simulated(0, "fair split", seed)) for seed in range(seeds)]
    lines = [
        (0.0, math.inf),
        *((w, math.inf) for w in weights if w),
        *((w, e) for w in weights for e in epsilons),
    ]
    rows: list[dict[str, object]] = []
    for weight, epsilon in counted(lines, progress):
        found = [_measured(setting, each, weight, epsilon, seed) for seed, each in enumerate(data)]
        places = epsilons if math.isinf(epsilon) else (epsilon,)
        rows += [row for at in places for row in _rows(name, weight, epsilon, at, found)]
    return Report(
        rows=sorted(rows, key=lambda row: str(row["measure"])),
        x="epsilon",
        y="value",
        error="standard error",
        line="line",
        panel="measure",
        labels={"value": "share of test records, or difference of shares"},
        notes=(*_notes(name, data, seeds), *statements(rows)),
    )


def _measured(
    setting: Setting, data: Preset, weight: float, epsilon: float, seed: int
) -> tuple[float, float]:
    """Return the error on test records and the gap of positive rates between groups."""
    groups, n = data.sensitive_train.iloc[:, 0], len(data.y_train)
    if math.isinf(epsilon):
        model: Any = FairLogisticRegression(weight=weight, standardise=False)
    else:
        model = PrivateFairLogisticRegression(
            weight=weight,
            budget=PrivacyBudget(epsilon, n**-2),
            protect=setting.protect,
            groups=sorted(set(groups)),
            classes=list(range(len(data.classes))),
            bounds=_bounds(data.X_train) if setting.protect == "record" else None,
            standardise=False,
            random_state=seed,
            **dict(setting.options),
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(data.X_train, data.y_train, sensitive_features=groups)
    hard = model.predict(data.X_test)
    return float(np.mean(hard != data.y_test)), parity_violation(hard, data.sensitive_test.iloc[:, 0])


def _bounds(X: Any) -> tuple[list[float], list[float]]:
    """Return bounds of columns: indicators are 0 or 1, and all others standardised with public constants."""
    indicator = np.isin(X[:1000], (0.0, 1.0)).all(axis=0)
    return np.where(indicator, 0.0, -_SPREAD).tolist(), np.where(indicator, 1.0, _SPREAD).tolist()


def _rows(
    name: str, weight: float, epsilon: float, at: float, found: Sequence[tuple[float, float]]
) -> Iterator[dict[str, object]]:
    """Yield the row of each measure."""
    line = f"weight {weight:g}" + (", without privacy" if math.isinf(epsilon) else "")
    for place, measure in enumerate(("error", "gap")):
        values = [each[place] for each in found]
        mean = float(np.mean(values))
        expected = reference(name).get((measure, line, at))
        yield {
            "measure": measure,
            "line": line,
            "epsilon": at,
            "value": mean,
            "standard error": standard_error(values),
            "reference": expected,
            "difference": None if expected is None else mean - expected,
        }


def _notes(name: str, data: Sequence[Preset], seeds: int) -> Iterator[str]:
    """Yield what differs from the chapter."""
    n = len(data[0].y_train)
    yield from data[0].notes
    yield (
        f"Means over {seeds} splits and draws of noise, {n:,} training records, delta = 1/n^2; the gap is "
        "the largest difference of positive rates between groups, of hard predictions of test records. Noise "
        "has a seed: these runs show what private ones would, and protect nobody."
    )
    yield (
        "The chapter's figures have no numbers, use noise that is no guarantee, and batches whose sampling "
        "hides nobody (docs/theory/private-fairness.md). Rounds are on all records, with averaged points."
    )
    if EXPERIMENTS_OF[name].protect == "record":
        yield (
            f"Whole records are private: features are clipped to public bounds (standardised ones to "
            f"±{_SPREAD:g}), gradients to norm 1, and training starts at 0."
        )


RUNS = {name: partial(run, name) for name in EXPERIMENTS_OF}
"""What computes each experiment."""
