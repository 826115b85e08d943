"""Fair training on batches of 1 to 512 records of Adult: FERMI and a plug-in (Lowy 2023, Figure 5.2).

Schedules are those of the independent computation in the columns of the reference: features within 5 standard
deviations, steps and epochs by batch size, the model's step halved at weights above 1, and 1 / (1 + 4 t / T).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

from tacit.experiments.fermi_places import Place, curves, measured, naive_places
from tacit.experiments.fermi_statements import at_violation, lines_of, near
from tacit.experiments.fermi_tasks import Split
from tacit.experiments.report import Report, number, yes

__all__ = ["SCHEDULES", "compute", "run", "statements"]

_NAME = "fermi-batch"
_NOTION = "demographic-parity"
SCHEDULES = {1: (0.002, 2), 4: (0.006, 4), 16: (0.02, 6), 64: (0.05, 10), 512: (0.2, 30)}
"""Step and epochs by batch size; of 4, which has no reference, between its neighbours."""
_PENALTIES = {"FERMI": "ermi", "plug-in": "ermi-plug-in"}
_SHARES = (0.0, 0.25, 0.5, 0.75)
_ERROR, _VIOLATION = 0.005, 0.02
"""How near single records must come to batches of 512."""


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Train on batches; `quick` takes the smallest and the largest, and one weight."""
    if quick:
        return compute((1, 512), (1.0,), 1, progress)
    return compute(tuple(SCHEDULES), (1.0, 5.0), 1, progress)


def compute(
    sizes: Sequence[int], weights: Sequence[float], seeds: int, progress: Callable[[int, int], Any]
) -> Report:
    """Train on batches of some sizes.

    Args:
        sizes: Of batches, among those with a schedule.
        weights: Of penalties, > 0.
        seeds: Orders of records; standard errors need 2 or more.
        progress: Called with (done, total).
    """
    split = Split.load("adult-ch5")
    plain = cache(lambda one: one.fit(weight=0.0))
    places: list[Place] = []
    for size in sizes:
        places += naive_places(_panel(size), [split], plain, _NOTION, _SHARES)
        places += [
            Place(_panel(size), line, weight, partial(_worth, split, size, line, weight, seeds))
            for line in _PENALTIES
            for weight in weights
        ]
    rows = measured(_NAME, places, progress)
    orders = f"{seeds} order{'s' if seeds > 1 else ''}"
    return curves(
        rows,
        [
            f"Adult, demographic parity, means over {orders} of records. Naive is plain logistic regression "
            "that says the majority with the chance in the column of the weight.",
            "The plug-in is the penalty of each batch's own table (Mary and others, 2019), which is that of "
            "Baharlouei and others (2020) for two labels and two groups. Not run: Cho and others (2020).",
            *statements(rows),
        ],
    )


def statements(rows: Sequence[dict[str, object]]) -> Iterator[str]:
    """Yield what holds of each statement."""
    yield near(rows)
    panels = lines_of(rows)
    single, large = panels[_panel(1)], panels[_panel(512)]
    for line in _PENALTIES:
        for one, many in zip(single[line], large[line], strict=True):
            error, gap = (abs(number(one[key]) - number(many[key])) for key in ("error", "violation"))
            yield (
                f"{line}, weight {number(one['weight']):g}: batches of 1 are within {_ERROR:g} of the "
                "error and "
                f"{_VIOLATION:g} of the violation of batches of 512: "
                f"{yes(round(error, 4) <= _ERROR and round(gap, 4) <= _VIOLATION)}, {error:.4f} and "
                f"{gap:.4f}."
            )
    for panel, lines in panels.items():
        for line in _PENALTIES:
            gains = [
                at_violation(lines["naive"], number(one["violation"])) - number(one["error"])
                for one in lines[line]
                if number(one["violation"]) < number(lines["naive"][0]["violation"])
            ]
            if not gains:
                yield f"{panel}: {line} beats the naive mixture: no, it is not fairer than plain regression."
                continue
            yield (
                f"{panel}: {line} beats the naive mixture: {yes(min(gains) > 0)}, by {min(gains):.4f} "
                "of error "
                "or more at equal violation."
            )


def _worth(split: Split, size: int, line: str, weight: float, seeds: int) -> list[dict[str, float]]:
    """Return what models are worth that were trained on batches, in several orders."""
    step, epochs = SCHEDULES[size]
    how: dict[str, Any] = {
        "weight": weight,
        "regularizer": _PENALTIES[line],
        "solver": "sgda",
        "batch_size": size,
        "epochs": epochs,
        "step": step / 2 if weight > 1 else step,
        "dual_step": step,
        "feature_bound": 5.0,
        "l2": 0.0,
    }
    return [split.worth_of(split.fit(**how, random_state=seed), _NOTION) for seed in range(seeds)]


def _panel(size: int) -> str:
    """Return what a batch size is called."""
    return f"batches of {size}"
