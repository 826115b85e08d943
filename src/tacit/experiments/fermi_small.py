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

from tacit.data import load_preset
from tacit.experiments.fermi_statements import cheapest, dominance, lines_of, near
from tacit.experiments.fermi_tasks import (
    FAIRLEARN,
    NOT_RUN,
    Split,
    counted,
    exponentiated,
    means,
    naive_line,
    row,
)
from tacit.experiments.report import Report, number, yes
from tacit.fairness import Groups, ermi, joint_table

__all__ = ["COMPAS", "GERMAN", "Small", "compute", "run_compas", "run_german", "statements"]

_NOTION = "demographic-parity"
_SHARES = (0.25, 0.5, 0.75, 1.0)
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

    def given(self) -> Split:
        """Return the split of the reference."""
        return Split.load(self.preset)

    def splits(self, which: slice, repeats: int) -> list[Split]:
        """Return splits, with these sensitive columns."""
        if not self.folds:
            return [
                _columns(load_preset(self.preset, rng=np.random.default_rng(seed)), which)
                for seed in range(5 * repeats)
            ]
        data = load_preset(self.preset, rng=np.random.default_rng(0))
        X, y = np.vstack([data.X_train, data.X_test]), np.concatenate([data.y_train, data.y_test])
        table = pd.concat([data.sensitive_train, data.sensitive_test], ignore_index=True).iloc[:, which]
        s = table.iloc[:, 0] if table.shape[1] == 1 else table
        made = []
        for seed in range(repeats):
            for inside, outside in StratifiedKFold(5, shuffle=True, random_state=seed).split(X, y):
                made.append(
                    Split(X[inside], y[inside], s.iloc[inside], X[outside], y[outside], s.iloc[outside])
                )
        return made


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
    given, rows = small.given(), []
    asked = [(panel, weight) for panel in small.panels for weight in small.weights]
    for panel, which in counted(list(small.panels.items()), progress):
        splits = small.splits(which, repeats)
        plain = [one.fit(weight=0.0, l2=small.l2) for one in splits]
        shares = [naive_line(one, model, _NOTION, _SHARES) for one, model in zip(splits, plain, strict=True)]
        for line, penalty in (("FERMI", "ermi"), ("covariance", "covariance")):
            for weight in small.weights if line == "FERMI" else (0.1, 1.0, 10.0):
                runs = [_worth(one, weight, small.l2, penalty) for one in splits]
                rows.append(row(small.experiment, panel, line, weight, *means(runs)))
        for place, share in enumerate(_SHARES):
            rows.append(row(small.experiment, panel, "naive", share, *means([one[place] for one in shares])))
        if FAIRLEARN:
            runs = [exponentiated(one, _NOTION, _BOUND) for one in splits]
            rows.append(row(small.experiment, panel, "exponentiated gradient", _BOUND, *means(runs)))
    first = next(iter(small.panels))
    one = [
        row(small.experiment, f"{first}, one split", "FERMI", weight, _all_worth(given, weight, small.l2))
        for weight in small.weights
    ]
    return Report(
        rows=rows,
        x="violation",
        y="error",
        error="standard error",
        line="line",
        panel="panel",
        log_x=False,
        shown=("panel", "line", "weight", "error", "violation", "standard error"),
        labels={"violation": "largest gap between groups, test half", "error": "test error"},
        notes=(
            f"Demographic parity, means over {5 * repeats} "
            + (f"folds ({repeats} x 5)" if small.folds else "random halves")
            + f"; l2 = {small.l2:g}, {len(asked)} weights over {len(small.panels)} panels. The weight of "
            "exponentiated gradient is its bound, of the naive mixture the chance that it says the majority.",
            "The second table has the split of the reference.",
            *(() if FAIRLEARN else (NOT_RUN,)),
            *statements(rows, one),
        ),
        more={
            "one-split": Report(
                rows=one,
                x="violation",
                y="error",
                error=None,
                line="line",
                log_x=False,
                title="FERMI on the split of the reference",
            )
        },
    )


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


def _worth(split: Split, weight: float, l2: float, penalty: str) -> dict[str, float]:
    """Return error and violation of a fit."""
    return split.worth_of(split.fit(weight=weight, l2=l2, regularizer=penalty), _NOTION)


def _all_worth(split: Split, weight: float, l2: float) -> dict[str, float]:
    """Return the same, and soft ERMI, of the test half."""
    model, groups = split.fit(weight=weight, l2=l2), Groups.of(split.s_new)
    table = joint_table(model.predict_proba(split.X_new), groups.codes, len(groups))
    return split.worth_of(model, _NOTION) | {"soft ERMI": ermi(table)}


def _columns(preset: Any, which: slice) -> Split:
    """Return the halves of a preset with some of its sensitive attributes."""
    train, test = preset.sensitive_train.iloc[:, which], preset.sensitive_test.iloc[:, which]
    if train.shape[1] == 1:
        train, test = train.iloc[:, 0], test.iloc[:, 0]
    return Split(preset.X_train, preset.y_train, train, preset.X_test, preset.y_test, test)
