"""Three classes of crime and up to 18 sensitive attributes at once: Communities (Lowy 2023, Figure 5.5).

Groups are all combinations of attributes that occur, hundreds of them at 18. The violation is the largest of
any single attribute, of probabilities: the joint one of so many groups says nothing on 499 test records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from tacit.data import Preset, load_preset
from tacit.experiments.fermi_places import Place, curves, further, measured
from tacit.experiments.fermi_statements import at_violation, lines_of, near
from tacit.experiments.reference import reference
from tacit.experiments.report import Report, number, yes
from tacit.fairness import FairLogisticRegression, violation

__all__ = ["compute", "run", "statements"]

_NAME = "fermi-communities"
_PARITY, _ODDS = "demographic-parity", "equalized-odds"
_PENALTIES = {"FERMI": "ermi", "Renyi": "renyi"}
_ATTRIBUTES = (1, 3, 6, 12, 18)
_WEIGHTS = (0.0, 0.3, 1.0, 3.0, 5.0, 15.0, 50.0)
_CHECKED = (0.0, 0.3, 1.0, 5.0)
_LEVELS = (0.02, 0.03, 0.04, 0.05)
_L2 = 1e-3
Row = Mapping[str, object]
_TOLERANCES = {"error": 0.005, "violation": 0.01, "joint": 0.01}


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the curves; `quick` takes 1 and 18 attributes, and FERMI for demographic parity."""
    if quick:
        return compute((_PARITY,), ("FERMI",), (1, 18), _WEIGHTS, 1, progress)
    return compute((_PARITY, _ODDS), tuple(_PENALTIES), _ATTRIBUTES, _WEIGHTS, 1, progress)


def compute(
    notions: Sequence[str],
    lines: Sequence[str],
    attributes: Sequence[int],
    weights: Sequence[float],
    splits: int,
    progress: Callable[[int, int], Any],
) -> Report:
    """Compute the curves for some numbers of attributes.

    Args:
        notions: Of fairness.
        lines: "FERMI", "Renyi".
        attributes: How many of the 18, the first ones.
        weights: Of penalties.
        splits: Random halves.
        progress: Called with (done, total).
    """
    halves = [load_preset("communities", rng=np.random.default_rng(seed)) for seed in range(splits)]

    @cache
    def worth(seed: int, notion: str, line: str, q: int, weight: float) -> dict[str, float]:
        return _worth(halves[seed], notion, line, q, weight)

    def place(panel: str, seeds: int, notion: str, line: str, q: int, weight: float) -> Place:
        return Place(
            panel, line, weight, lambda: [worth(seed, notion, line, q, weight) for seed in range(seeds)]
        )

    asked = [(n, line, q, w) for n in notions for line in lines for q in attributes for w in weights]
    rows = measured(_NAME, [place(f"{each[0]}, {each[2]} of 18", splits, *each) for each in asked], progress)
    first = [
        place(f"one split, {q} of 18", 1, n, line, q, w)
        for n, line, q, w in asked
        if n == _PARITY and line == "FERMI" and q <= 3 and w in _CHECKED
    ]
    one = measured(_NAME, first, lambda *_: None)
    fixed = list(_fixed(rows))
    return curves(
        rows,
        [*_notes(halves, attributes), *statements(rows, one, fixed)],
        shown=("panel", "line", "weight", "error", "violation", "joint", "standard error"),
        violation="largest difference of an attribute's group from all, of probabilities, test half",
        more={
            "one-split": further(one, "FERMI on the split of the reference", line="panel"),
            "fixed-violation": further(
                fixed,
                "Test error at a violation, beside the curves of the chapter",
                x="attributes",
                panel="panel",
            ),
        },
    )


def _notes(halves: Sequence[Preset], attributes: Sequence[int]) -> Iterator[str]:
    """Yield what differs from the chapter."""
    several = f"{len(halves)} random half{'s' if len(halves) > 1 else ''}"
    unused = ", ".join(
        f"at {q} {100 * np.mean(pd.isna(_sensitive(halves[0], _ODDS, q))):.0f} %" for q in attributes
    )
    yield (
        f"Means over {several} of 1495 and 499 records; l2 = {_L2:g}; crime cut at .09 and .25, attributes "
        "at their medians. The joint column is the largest difference of any combination's group from all, "
        "of hard predictions."
    )
    yield (
        "Equalized odds needs records of every label in a group: combinations without count as unknown. That "
        f"is, of the training records: {unused}."
    )
    yield (
        "The thesis does not say how its violations are measured, nor cuts and halves: its curves, read off "
        "the files of its figures, are smoothed, and stand beside ours for their order. Cho and others "
        "(2020) was not run."
    )


def statements(
    rows: Sequence[Row],
    one: Sequence[Row],
    fixed: Sequence[Row],
) -> Iterator[str]:
    """Yield what holds, of the rows of the three tables."""
    yield near(one, _TOLERANCES)
    for panel, lines in lines_of(rows).items():
        for line, several in lines.items():
            plain, least = several[0], min(several, key=lambda made: number(made["violation"]))
            yield (
                f"{panel}: {line} takes the violation from {number(plain['violation']):.4f} to "
                f"{number(least['violation']):.4f}, at an error of {number(least['error']):.4f} for "
                f"{number(plain['error']):.4f}."
            )
    compared: dict[tuple[str, float], dict[str, float]] = {}
    for made in fixed:
        place = str(made["panel"]), number(made["attributes"])
        compared.setdefault(place, {})[str(made["line"])] = number(made["error"])
    for whose, names in (("chapter", ("FERMI, chapter", "Renyi, chapter")), ("here", ("FERMI", "Renyi"))):
        both = [found for found in compared.values() if set(names) <= set(found)]
        if both:
            below = sum(found[names[0]] <= found[names[1]] for found in both)
            yield (
                f"FERMI has at most the error of Renyi at a fixed violation, {whose}: {below} of {len(both)} "
                f"places; {yes(below == len(both))}."
            )


def _fixed(rows: Sequence[Row]) -> Iterator[dict[str, object]]:
    """Yield errors at fixed violations, ours where they are reached, and those of the chapter."""
    known = reference(_NAME)
    for panel, lines in lines_of(rows).items():
        notion, words = panel.split(", ")
        q = int(words.split()[0])
        for level in _LEVELS:
            name = f"{notion}, {level:g}"
            for line, several in lines.items():
                error = at_violation(several, level)
                if not np.isnan(error):
                    yield {"panel": name, "line": line, "attributes": q, "error": float(f"{error:.4g}")}
            for line in ("FERMI", "Renyi", "Cho"):
                if (found := known.get((f"{name}: error", line, float(q)))) is not None:
                    yield {"panel": name, "line": f"{line}, chapter", "attributes": q, "error": found}


def _worth(half: Preset, notion: str, line: str, q: int, weight: float) -> dict[str, float]:
    """Return error and violations of a fit on the test half."""
    model = FairLogisticRegression(
        fairness=notion, weight=weight, regularizer=_PENALTIES[line], l2=_L2, missing=True
    )
    model.fit(half.X_train, half.y_train, sensitive_features=_sensitive(half, notion, q))
    how: dict[str, Any] = {
        "fairness": notion,
        "measure": "linf",
        "labels": half.y_test,
        "classes": model.classes_,
    }
    said, chances = model.predict(half.X_test), model.predict_proba(half.X_test)
    single = [violation(chances, half.sensitive_test.iloc[:, i], **how) for i in range(q)]
    return {
        "error": float(np.mean(said != half.y_test)),
        "violation": max(single),
        "joint": violation(said, half.sensitive_test.iloc[:, :q], **how),
    }


def _sensitive(half: Preset, notion: str, q: int) -> Any:
    """Return combinations of attributes of training records; None where a label has none of them."""
    joined = half.sensitive_train.iloc[:, :q].agg(", ".join, axis=1)
    if notion == _PARITY:
        return joined.to_numpy(dtype=object)
    labels = pd.Series(half.y_train).groupby(joined.to_numpy()).nunique()
    whole = joined.map(labels) == len(half.classes)
    return joined.where(whole, None).to_numpy(dtype=object)
