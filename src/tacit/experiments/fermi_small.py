"""Fair training on two small data sets, COMPAS and German credit, over many splits (Lowy 2023, Chapter 5).

The columns of the reference hold an independent computation for one split; hundreds of test records say
little of a violation, so that means over splits stand beside it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import StratifiedKFold

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
from tacit.experiments.fermi_statements import cheapest, dominance, lines_of, near
from tacit.experiments.fermi_tasks import Split
from tacit.experiments.report import Report, number, yes
from tacit.fairness import Groups, ermi, joint_table

__all__ = ["COMPAS", "GERMAN", "Small", "compute", "run_compas", "run_german", "statements"]

_NOTION = "demographic-parity"
_COVARIANCE_WEIGHTS = (0.1, 1.0, 10.0)
_BOUND = 0.02
_SLACK = 0.005


@dataclass(frozen=True)
class Small:
    """A small data set.

    Attributes:
        experiment: Its name.
        preset: Of the data.
        l2: Of the model.
        weights: Of the penalty.
        panels: Sensitive attributes by name of a panel: how many columns, 1 or 2, or the second one alone.
        folds: Whether splits are folds of all records rather than halves drawn anew.
    """

    experiment: str
    preset: str
    l2: float
    weights: tuple[float, ...]
    panels: dict[str, slice]
    folds: bool

    def splits(self, which: slice, repeats: int) -> list[Split]:
        """Return splits, with these sensitive columns."""
        if not self.folds:
            return [Split.load(self.preset, which, seed) for seed in range(5 * repeats)]
        given = Split.load(self.preset, which)
        X, y = np.vstack([given.X, given.X_new]), np.concatenate([given.y, given.y_new])
        s = pd.concat([given.s, given.s_new], ignore_index=True)
        return [
            Split(X[inside], y[inside], s.iloc[inside], X[outside], y[outside], s.iloc[outside])
            for seed in range(repeats)
            for inside, outside in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y)
        ]


COMPAS = Small(
    "fermi-compas",
    "compas",
    1e-4,
    (0.0, 1.0, 5.0, 10.0, 20.0, 50.0),
    {"race": slice(0, 1), "race and sex": slice(0, 2)},
    folds=False,
)
GERMAN = Small(
    "fermi-german",
    "german",
    0.01,
    (0.0, 0.5, 1.0, 2.0, 5.0, 20.0),
    {"gender": slice(0, 1), "marital status": slice(1, 2)},
    folds=True,
)


def _run(small: Small, quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Train on many splits; `quick` takes 5 of them and one attribute, the full run 10."""
    if quick:
        first = next(iter(small.panels))
        return compute(replace(small, panels={first: small.panels[first]}), 1, progress)
    return compute(small, 2, progress)


run_compas, run_german = partial(_run, COMPAS), partial(_run, GERMAN)


def compute(small: Small, repeats: int, progress: Callable[[int, int], Any]) -> Report:
    """Train on many splits.

    Args:
        small: The data set.
        repeats: Of five splits.
        progress: Called with (done, total).
    """
    places = [place for panel in small.panels for place in _places(small, panel, repeats)]
    rows = measured(small.experiment, places, progress)
    given, first = Split.load(small.preset), next(iter(small.panels))
    one = [
        row(small.experiment, f"{first}, one split", "FERMI", weight, _all_worth(given, weight, small.l2))
        for weight in small.weights
    ]
    splits = f"{5 * repeats} folds ({repeats} x 5)" if small.folds else f"{5 * repeats} random halves"
    return curves(
        rows,
        [
            f"Demographic parity, means over {splits}; l2 = {small.l2:g}. The weight of exponentiated "
            "gradient is its bound, of the naive mixture the chance that it says the majority.",
            "The second table has the split of the reference.",
            *fairlearn_notes(),
            *statements(rows, one),
        ],
        shown=("panel", "line", "weight", "error", "violation", "standard error"),
        more={"one-split": further(one, "FERMI on the split of the reference")},
    )


def _places(small: Small, panel: str, repeats: int) -> Iterator[Place]:
    """Yield the places of a panel."""
    splits = small.splits(small.panels[panel], repeats)

    def worth(weight: float, penalty: str) -> list[dict[str, float]]:
        how: dict[str, Any] = {"weight": weight, "l2": small.l2, "regularizer": penalty}
        return [one.worth_of(one.fit(**how), _NOTION) for one in splits]

    for weight in small.weights:
        yield Place(panel, "FERMI", weight, partial(worth, weight, "ermi"))
    for weight in _COVARIANCE_WEIGHTS:
        yield Place(panel, "covariance", weight, partial(worth, weight, "covariance"))
    yield from naive_places(panel, splits, lambda one: one.fit(weight=0.0, l2=small.l2), _NOTION)
    yield from fairlearn_places(panel, splits, _NOTION, (_BOUND,), optimiser=False)


def statements(rows: Sequence[dict[str, object]], one: Sequence[dict[str, object]]) -> Iterator[str]:
    """Yield what holds, of the rows of both tables."""
    yield near(one)
    for panel, lines in lines_of(rows).items():
        gaps = [number(made["violation"]) for made in lines["FERMI"]]
        yield (
            f"{panel}: the mean violation falls with every weight: "
            f"{yes(all(b <= a + _SLACK for a, b in itertools.pairwise(gaps)))} (up to {_SLACK:g})."
        )
    yield from cheapest(rows, "FERMI")
    yield from dominance(rows, "FERMI")


def _all_worth(split: Split, weight: float, l2: float) -> dict[str, float]:
    """Return error, violation and soft ERMI of a fit on the test half."""
    model, groups = split.fit(weight=weight, l2=l2), Groups.of(split.s_new)
    table = joint_table(model.predict_proba(split.X_new), groups.codes, len(groups))
    return split.worth_of(model, _NOTION) | {"soft ERMI": ermi(table)}
