"""`tacit fairness audit`: rates by group and violations, of any model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tacit.cli.output import JsonFlag, print_json, print_line, print_table, print_text
from tacit.errors import DataError, check_count

if TYPE_CHECKING:
    import pandas as pd

    from tacit.fairness import FairnessSummary

__all__ = ["audit"]

_MOST_CELLS: Final = 8
_MOST_CLASSES: Final = 100


def audit(
    data: Annotated[
        Path, typer.Option(help="Table with labels, predictions and groups.", show_default=False)
    ],
    label: Annotated[str, typer.Option(help="Column of true labels.", show_default=False)],
    prediction: Annotated[str, typer.Option(help="Column of predicted labels.", show_default=False)],
    sensitive: Annotated[
        list[str],
        typer.Option(
            help="Sensitive column; may be repeated, and each combination is then a group.",
            show_default=False,
        ),
    ],
    advantaged: Annotated[
        list[str] | None,
        typer.Option(
            help="Label that equal opportunity is about; may be repeated.",
            show_default="the last of two labels",
        ),
    ] = None,
    missing: Annotated[
        bool,
        typer.Option("--missing", help="Leave out records whose sensitive cell is empty; else refuse them."),
    ] = False,
    min_count: Annotated[
        int, typer.Option(help="Point out groups, or labels within one, of fewer records.")
    ] = 10,
    json: JsonFlag = False,
) -> None:
    """Tell how fair the predictions of any model are, by group and by every notion.

    The numbers are exact statistics of the table: nothing is private, and of private records they stay with
    their owner.
    """
    check_count("min_count", min_count)
    from tacit.fairness import Groups, summarise

    table = _read(data, [label, prediction, *sensitive])
    groups = Groups.of(_sensitive(table, sensitive), missing=missing)
    truth, said = (_labels(table, name, data) for name in (label, prediction))
    classes = _classes(truth, said, label, prediction)
    found = summarise(
        truth, said, groups, classes=classes, advantaged=advantaged or None, min_count=min_count
    )
    if json:
        print_json({"version": 1, "data": data, "sensitive": sensitive, **asdict(found)})
        return
    show_summary(found, title=f"{data}: {found.records:,} records, {', '.join(sensitive)}")


def show_summary(found: FairnessSummary, *, title: str) -> None:
    """Print the rates of groups, and the violations.

    Args:
        found: What is said of predictions.
        title: What they are of.
    """
    print_text(title)
    classes = list(found.groups[0].predicted)
    shown = classes[1:] if len(classes) == 2 else classes
    print_table(
        ("group", "records", "accuracy", *(f"predicted {name}" for name in shown)),
        [
            (
                one.group,
                f"{one.records:,}",
                f"{one.accuracy:.4f}",
                *(f"{one.predicted[name]:.4f}" for name in shown),
            )
            for one in found.groups
        ],
        right=("records", "accuracy", *(f"predicted {name}" for name in shown)),
    )
    print_text("")
    print_table(
        ("notion", "gap", "L-infinity", "mean gap"),
        [
            (name, f"{one.gap:.4f}", f"{one.linf:.4f}", f"{one.mean_gap:.4f}")
            for name, one in found.violations.items()
        ],
        right=("gap", "L-infinity", "mean gap"),
    )
    print_text(
        f"\nERMI {found.ermi:.5f}, mutual information {found.mutual_information:.5f} nats, maximal "
        f"correlation {found.renyi_correlation:.4f}."
    )
    if found.unknown:
        _note(f"{found.unknown:,} records of no known group are left out.")
    if found.empty:
        _note(f"there is no record of {_some(found.empty)}: no violation counts that.")
    if found.small:
        _note(f"few records, whose rates say little: {_some(found.small)}.")


def _note(text: str) -> None:
    """Print something to know."""
    print_line(to_error=False, label="note", text=text, colour="yellow")


def _some(cells: Sequence[str]) -> str:
    """Return a list that a person reads to its end; the report and --json have all of it."""
    more = len(cells) - _MOST_CELLS
    return "; ".join(cells[:_MOST_CELLS]) + (f"; and {more} more" if more > 0 else "")


def _read(path: Path, names: list[str]) -> pd.DataFrame:
    """Return the table with these columns, as text."""
    from tacit.data import read_table
    from tacit.data.encoding import check_columns

    table = read_table(path)
    check_columns(table, names)
    return table[list(dict.fromkeys(names))]


def _labels(table: pd.DataFrame, name: str, path: Path) -> Any:
    """Return a column of labels as text; none may be missing."""
    from tacit.data.cells import texts

    found = texts(table[name])
    if (found == "").any():
        raise DataError(
            f"{path}: column {name!r} must have a label in every record, and {int((found == '').sum())} "
            "have none."
        )
    return found


def _classes(truth: Any, said: Any, label: str, prediction: str) -> list[str]:
    """Return all classes; refuse scores, and predictions of something else."""
    for name, cells in ((label, truth), (prediction, said)):
        if len(set(cells)) > _MOST_CLASSES:
            raise DataError(
                f"column {name!r} must hold classes, and it has more than {_MOST_CLASSES} different values: "
                "cut scores first, and name the column of predicted labels."
            )
    if not {*truth} & {*said}:
        raise DataError(
            f"column {prediction!r} must predict what {label!r} holds, and no prediction is one of its "
            "labels: write both in the same way."
        )
    return sorted({*truth, *said})


def _sensitive(table: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Return sensitive columns as text, None where a cell says nothing."""
    import pandas as pd

    from tacit.data.cells import texts

    return pd.DataFrame(
        {name: pd.Series(texts(table[name]), dtype=object) for name in dict.fromkeys(names)}
    ).replace("", None)
