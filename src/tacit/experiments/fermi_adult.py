"""Test error against unfairness on Adult, by notion: FERMI and others (Lowy 2023, Figure 5.1).

The thesis shows curves without numbers; the columns of the reference hold what an independent computation
found on the same files, with the official halves and the same l2. Nothing is drawn but fairlearn's mixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.experiments.fermi_statements import cheapest, dominance, near
from tacit.experiments.fermi_tasks import (
    FAIRLEARN,
    NOT_RUN,
    Split,
    counted,
    exponentiated,
    naive_line,
    row,
    thresholds,
)
from tacit.experiments.report import Report
from tacit.fairness import Fairness, Groups, equalized_odds_violation, ermi, joint_table

__all__ = ["WEIGHTS", "compute", "run", "statements"]

_NAME = "fermi-adult"
_NOTIONS = tuple(notion.value for notion in Fairness)
WEIGHTS = {
    "FERMI": (0.0, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "mutual information": (0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
    "covariance": (0.01, 0.1, 1.0, 10.0, 100.0),
}
_PENALTIES = {"FERMI": "ermi", "mutual information": "mutual-information", "covariance": "covariance"}
_BOUNDS = (0.005, 0.01, 0.02, 0.05)
_SHARES = (0.25, 0.5, 0.75, 1.0)
_DEMOGRAPHIC_PARITY = Fairness.DEMOGRAPHIC_PARITY.value


@dataclass(frozen=True)
class _Point:
    """A fit: of a penalty with its weight, or of a baseline with its bound."""

    notion: str
    line: str
    weight: float


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the curves; `quick` takes demographic parity, and one bound of exponentiated gradient."""
    if quick:
        return compute((_DEMOGRAPHIC_PARITY,), _BOUNDS[2:3], progress)
    return compute(_NOTIONS, _BOUNDS, progress)


def compute(
    notions: Sequence[str],
    bounds: Sequence[float],
    progress: Callable[[int, int], Any],
    weights: dict[str, tuple[float, ...]] | None = None,
) -> Report:
    """Compute the curves of some notions.

    Args:
        notions: Names of `Fairness`.
        bounds: Of exponentiated gradient; none where fairlearn is not installed.
        progress: Called with (done, total).
        weights: Of each line; None takes all. FERMI at weight 0 must be among them.
    """
    split = Split.load("adult-ch5")
    penalties = WEIGHTS if weights is None else weights
    asked = [
        _Point(notion, line, weight)
        for notion in notions
        for line, several in penalties.items()
        for weight in several
    ]
    if FAIRLEARN:
        for notion in notions:
            asked += [_Point(notion, "exponentiated gradient", bound) for bound in bounds]
            asked.append(_Point(notion, "threshold optimiser", 0.0))
    rows, other = [], []
    for point in counted(asked, progress):
        if point.line not in _PENALTIES:
            found = (
                exponentiated(split, point.notion, point.weight)
                if point.line == "exponentiated gradient"
                else thresholds(split, point.notion)
            )
            rows.append(row(_NAME, point.notion, point.line, point.weight, found))
            continue
        model = split.fit(fairness=point.notion, weight=point.weight, regularizer=_PENALTIES[point.line])
        found = split.worth_of(model, point.notion)
        rows.append(row(_NAME, point.notion, point.line, point.weight, found))
        if point.line == "FERMI" and point.weight == 0:
            rows += [
                row(_NAME, point.notion, "naive", share, worth)
                for share, worth in zip(_SHARES, naive_line(split, model, point.notion, _SHARES), strict=True)
            ]
        if point.line == "FERMI" and point.notion == _DEMOGRAPHIC_PARITY:
            other.append(_others(split, model, point.weight))
    kinds = {
        "others": Report(
            rows=other,
            x="weight",
            y="soft ERMI",
            error=None,
            line="line",
            log_x=False,
            log_y=True,
            title="What a model that is trained for demographic parity is by other measures",
        )
    }
    return Report(
        rows=rows,
        x="violation",
        y="error",
        error=None,
        line="line",
        panel="panel",
        log_x=False,
        shown=("panel", "line", "weight", "error", "reference error", "violation", "reference violation"),
        labels={"violation": "largest gap between groups, test half", "error": "test error"},
        notes=(
            "59 features, all standardised, and the official halves; l2 = 1e-4; L-BFGS with dual "
            "variables at "
            "their maximum. The thesis takes 2000 steps of descent and ascent.",
            "The weight of exponentiated gradient is its bound, of the naive mixture the chance that "
            "it says the "
            "majority; the threshold optimiser is told the group of new records, the others are not.",
            "On all records at once the penalties of Mary and others (2019) and of Baharlouei and "
            "others (2020) "
            "are FERMI's, for two labels and two groups: they have no line of their own. Not run: "
            "the methods of "
            "Feldman, Cho, Jiang, Prost, Rezaei, Donini and Zhang.",
            *(() if FAIRLEARN else (NOT_RUN,)),
            *statements(rows, other),
        ),
        more=kinds if other else {},
    )


def statements(rows: Sequence[dict[str, object]], other: Sequence[dict[str, object]]) -> list[str]:
    """Return what holds, of the rows of both tables."""
    said = [near([*rows, *other])]
    said += cheapest(rows, "FERMI")
    said += dominance(rows, "FERMI")
    return said


def _others(split: Split, model: Any, weight: float) -> dict[str, object]:
    """Return soft ERMI and equalized odds of a model on the test half."""
    groups = Groups.of(split.s_new)
    said = np.asarray(model.predict(split.X_new))
    found = {
        "soft ERMI": ermi(joint_table(model.predict_proba(split.X_new), groups.codes, len(groups))),
        "equalized odds": equalized_odds_violation(split.y_new, said, split.s_new),
    }
    return row(_NAME, _DEMOGRAPHIC_PARITY, "FERMI", weight, found)
