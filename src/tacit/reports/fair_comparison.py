"""Fair runs side by side: what is claimed, how right they are, and how they treat groups."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from tacit.errors import DataError, printable
from tacit.privacy.run_clauses import SCORED
from tacit.reports.fair_run import FAIR_FIGURES_FILE
from tacit.reports.tables import format_delta, format_epsilon, format_score

__all__ = ["FAIR_COLUMNS", "FairNumbers", "fair_cells", "fair_json", "is_fair_run", "read_fair_numbers"]

FAIR_COLUMNS: Final = (
    "run", "notion", "over", "protects", "epsilon", "delta", "weight", "accuracy", "violation",
    "unconstrained",
)  # fmt: skip
"""Names of the columns of `fair_cells`; the last one is the violation of a model with weight 0."""


class FairNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """What a comparison reads of `fairness.json`; see `fair_figures` for what it means.

    Attributes:
        version: Of the file.
        run: Its name.
        data: What was trained on.
        sensitive: The sensitive columns.
        fairness: The notion.
        fairness_weight: Of the penalty.
        records: Held-out records of known group.
        accuracy: Of them; None where there are none.
        violation: The same.
        unconstrained_violation: Of a model with weight 0; None where none was trained.
        protect: What is private; None claims nothing.
        epsilon: Of the weakest guarantee; None without.
        delta: The same.
        public: Whether the data are public, as the statement beside it says.
    """

    version: int
    run: str
    data: str
    sensitive: tuple[str, ...]
    fairness: str
    fairness_weight: float
    records: int
    accuracy: float | None
    violation: float | None
    unconstrained_violation: float | None
    protect: str | None = None
    epsilon: float | None = None
    delta: float | None = None
    public: bool = False

    @property
    def standard_error(self) -> float | None:
        """Standard error of the accuracy."""
        if self.accuracy is None or self.records == 0:
            return None
        return math.sqrt(self.accuracy * (1 - self.accuracy) / self.records)


class _Data(msgspec.Struct, frozen=True):
    """What a statement says of data."""

    public: bool


class _Said(msgspec.Struct, frozen=True):
    """What is read of a statement."""

    data: _Data


def is_fair_run(folder: Path) -> bool:
    """Return whether a folder is that of a fair training."""
    return (folder / FAIR_FIGURES_FILE).is_file()


def read_fair_numbers(folder: Path) -> FairNumbers:
    """Read the numbers of a fair run.

    Args:
        folder: Of the run.

    Raises:
        DataError: There is no such file, or it holds something else.
    """
    file = folder / FAIR_FIGURES_FILE
    try:
        found = msgspec.json.decode(file.read_bytes(), type=FairNumbers)
        said = msgspec.json.decode((folder / "statement.json").read_bytes(), type=_Said)
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(f"{str(file)!r} holds no numbers of a fair run: {printable(str(error))}.") from error
    if found.version != 1:
        raise DataError(f"{str(file)!r} is of version {found.version}, this tacit reads version 1.")
    return msgspec.structs.replace(found, public=said.data.public)


def fair_cells(runs: Mapping[str, FairNumbers]) -> list[tuple[str, ...]]:
    """Return one row per run, with the cells of `FAIR_COLUMNS`."""
    return [
        (
            name,
            one.fairness,
            " x ".join(one.sensitive),
            one.protect or "nothing",
            "none" if one.epsilon is None else format_epsilon(one.epsilon),
            "none" if one.delta is None else format_delta(one.delta),
            f"{one.fairness_weight:.4g}",
            "none" if one.accuracy is None else format_score("accuracy", one.accuracy, one.standard_error),
            _number(one.violation),
            _number(one.unconstrained_violation),
        )
        for name, one in runs.items()
    ]


def fair_json(runs: Mapping[str, FairNumbers]) -> dict[str, Any]:
    """Return the comparison for programs: `version`, `comparable`, `notes`, and the rows as `results`.

    Args:
        runs: Two or more, by the name that a reader knows them by.
    """
    public = all(one.public for one in runs.values())
    subjects: dict[str, set[Any]] = {
        "data set": {one.data for one in runs.values()},
        "sensitive columns": {frozenset(one.sensitive) for one in runs.values()},
        "notion": {one.fairness for one in runs.values()},
    }
    other = [what for what, values in subjects.items() if len(values) > 1]
    notes = [f"These runs are not comparable: they differ in {', '.join(other)}."] if other else []
    if not other and not public:
        notes.append(
            "Runs without a seed hold out records of their own: a part of each difference is chance, and "
            "more of it where groups are small."
        )
    return {
        "version": 1,
        "comparable": not other,
        "notes": notes if public else [*notes, SCORED],
        "results": [
            {key: value for key, value in msgspec.to_builtins(one).items() if key != "version"}
            | {"run": name, "standard_error": one.standard_error}
            for name, one in runs.items()
        ],
    }


def _number(value: float | None) -> str:
    """Write a violation."""
    return "none" if value is None else f"{value:.4f}"
