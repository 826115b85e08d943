"""Test error against unfairness on Adult, by notion: FERMI and others (Lowy 2023, Figure 5.1).

The thesis shows curves without numbers; the columns of the reference hold what an independent computation
found on the same files, with the official halves and the same l2. Nothing is drawn but fairlearn's mixtures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from tacit.experiments.fermi_places import (
    Place,
    curves,
    fairlearn_notes,
    fairlearn_places,
    further,
    measured,
    naive_places,
    row,
)
from tacit.experiments.fermi_statements import cheapest, dominance, near
from tacit.experiments.fermi_tasks import Split
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
_NOTES = (
    "59 features, all standardised, and the official halves; l2 = 1e-4; L-BFGS with dual variables at "
    "their maximum. The thesis takes 2000 steps of descent and ascent.",
    "The weight of exponentiated gradient is its bound, of the naive mixture the chance that it says the "
    "majority; the threshold optimiser is told the group of new records, the others are not.",
    "On all records at once the penalties of Mary and others (2019) and of Baharlouei and others (2020) "
    "are FERMI's, for two labels and two groups: they have no line of their own. Not run: the methods of "
    "Feldman, Cho, Jiang, Prost, Rezaei, Donini and Zhang.",
)
_DEMOGRAPHIC_PARITY = Fairness.DEMOGRAPHIC_PARITY.value


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
    lines = WEIGHTS if weights is None else weights

    @cache
    def model(notion: str, line: str, weight: float) -> Any:
        return split.fit(fairness=notion, weight=weight, regularizer=_PENALTIES[line])

    places = [place for notion in notions for place in _places(split, model, notion, lines, bounds)]
    rows = measured(_NAME, places, progress)
    notion = _DEMOGRAPHIC_PARITY
    other = [_others(split, model(notion, "FERMI", weight), weight) for weight in lines["FERMI"]]
    title = "What a model that is trained for demographic parity is by other measures"
    return curves(
        rows,
        [*_NOTES, *fairlearn_notes(), *statements(rows, other)],
        more={"others": further(other, title, x="weight", y="soft ERMI", log_y=True)},
    )


def _places(
    split: Split,
    model: Callable[[str, str, float], Any],
    notion: str,
    lines: Mapping[str, Sequence[float]],
    bounds: Sequence[float],
) -> Iterator[Place]:
    """Yield the places of a panel."""

    def worth(line: str, weight: float) -> list[dict[str, float]]:
        return [split.worth_of(model(notion, line, weight), notion)]

    for line, weights in lines.items():
        for weight in weights:
            yield Place(notion, line, weight, partial(worth, line, weight))
    yield from naive_places(notion, [split], lambda _: model(notion, "FERMI", 0.0), notion)
    yield from fairlearn_places(notion, [split], notion, bounds)


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
