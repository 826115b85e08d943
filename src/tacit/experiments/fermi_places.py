"""The shape of the experiments on fair learning: places to measure, rows beside the reference, one figure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.experiments import fermi_tasks
from tacit.experiments.fermi_tasks import Split, exponentiated, naive, thresholds
from tacit.experiments.reference import reference
from tacit.experiments.report import Report

__all__ = [
    "SHARES",
    "Place",
    "counted",
    "curves",
    "fairlearn_notes",
    "fairlearn_places",
    "further",
    "means",
    "measured",
    "naive_places",
    "row",
    "standard_error",
]

Worth = Mapping[str, float]
"""What was found of one model, by quantity."""

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Chances with which a naive mixture says the majority."""

_GAP = "largest gap between groups, test half"
_SHOWN = ("panel", "line", "weight", "error", "reference error", "violation", "reference violation")
_NOT_RUN = "fairlearn is not installed: its reductions and its threshold optimiser were not run."
_DIGITS = 4
_ZERO = 1e-12


@dataclass(frozen=True)
class Place:
    """A point of a figure: a method at one weight.

    Attributes:
        panel: That it is in.
        line: The method.
        weight: Of the penalty, or what else a point of the line is called by.
        measure: Trains, once for each split, draw or order, and returns what each model is worth.
    """

    panel: str
    line: str
    weight: float
    measure: Callable[[], Sequence[Worth]]


def measured(
    experiment: str, places: Sequence[Place], progress: Callable[[int, int], Any]
) -> list[dict[str, object]]:
    """Return a row for each place: means of what is measured there, beside the reference."""
    return [
        row(experiment, one.panel, one.line, one.weight, *means(one.measure()))
        for one in counted(places, progress)
    ]


def naive_places(
    panel: str,
    splits: Sequence[Split],
    plain: Callable[[Split], Any],
    fairness: str,
    shares: Sequence[float] = SHARES,
) -> Iterator[Place]:
    """Yield the naive mixtures of plain models, one for each split."""
    models: list[Any] = []

    def of_all(share: float) -> list[Worth]:
        if not models:
            models.extend(map(plain, splits))
        return [naive(one, model, fairness, share) for one, model in zip(splits, models, strict=True)]

    for share in shares:
        yield Place(panel, "naive", share, partial(of_all, share))


def fairlearn_places(
    panel: str, splits: Sequence[Split], fairness: str, bounds: Sequence[float], *, optimiser: bool = True
) -> Iterator[Place]:
    """Yield the baselines of fairlearn, none where it is not installed.

    Args:
        panel: That they are in.
        splits: To train on.
        fairness: The notion.
        bounds: Of exponentiated gradient.
        optimiser: Whether the threshold optimiser is among them.
    """
    if not fermi_tasks.FAIRLEARN:
        return
    for bound in bounds:
        measure = partial(_each, splits, partial(exponentiated, fairness=fairness, bound=bound))
        yield Place(panel, "exponentiated gradient", bound, measure)
    if optimiser:
        measure = partial(_each, splits, partial(thresholds, fairness=fairness))
        yield Place(panel, "threshold optimiser", 0.0, measure)


def fairlearn_notes() -> tuple[str, ...]:
    """Return what must be said where fairlearn is not installed."""
    return () if fermi_tasks.FAIRLEARN else (_NOT_RUN,)


def curves(
    rows: list[dict[str, object]],
    notes: Iterable[str],
    *,
    shown: tuple[str, ...] = _SHOWN,
    violation: str = _GAP,
    more: Mapping[str, Report] | None = None,
) -> Report:
    """Return test error against violation, a line for each method.

    Args:
        rows: Of `measured`.
        notes: What differs from the chapter, and what was found.
        shown: Columns that a terminal is wide enough for.
        violation: What stands beside its axis.
        more: Further tables.
    """
    return Report(
        rows=rows,
        x="violation",
        y="error",
        error="standard error",
        line="line",
        panel="panel",
        log_x=False,
        shown=shown,
        labels={"violation": violation, "error": "test error"},
        notes=tuple(notes),
        more=more or {},
    )


def further(rows: list[dict[str, object]], title: str, **shape: Any) -> Report:
    """Return a further table: error against violation, unless its shape is another."""
    usual: dict[str, Any] = {"x": "violation", "y": "error", "error": None, "line": "line", "log_x": False}
    return Report(rows=rows, title=title, **usual | shape)


def row(
    experiment: str,
    panel: str,
    line: str,
    weight: float,
    found: Worth,
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


def means(runs: Sequence[Worth]) -> tuple[dict[str, float], float | None]:
    """Return means over runs, and the standard error of that of "error"; None of one run."""
    mean = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    return mean, standard_error([run["error"] for run in runs])


def standard_error(values: Sequence[float]) -> float | None:
    """Return that of a mean of independent values; None of one."""
    return None if len(values) == 1 else float(np.std(values, ddof=1) / np.sqrt(len(values)))


def counted(asked: Sequence[Any], progress: Callable[[int, int], Any]) -> Iterator[Any]:
    """Yield what there is to do, and tell how far it is."""
    for done, one in enumerate(asked):
        progress(done, len(asked))
        yield one
    progress(len(asked), len(asked))


def _each(splits: Sequence[Split], measure: Callable[[Split], Worth]) -> list[Worth]:
    """Return what a method is worth on each split."""
    return [measure(one) for one in splits]


def _printed(value: float) -> float:
    """Return a number with the digits that a table shows: what is said of it then follows from the table."""
    return 0.0 if abs(value) < _ZERO else float(f"{value:.{_DIGITS}g}")
