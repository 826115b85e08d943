"""`tacit reproduce`: redraw a figure or table of a paper by name."""

from __future__ import annotations

import numbers
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.files import make_folder
from tacit.cli.neighbours import RelationOption, neighbours_named
from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress

if TYPE_CHECKING:
    from tacit.experiments import Report

__all__ = ["reproduce"]

_MOST_ROWS = 500  # of a table that people read


def reproduce(
    name: Annotated[str, typer.Argument(help="Name of an experiment; without one, the list.")] = "list",
    quick: Annotated[bool, typer.Option("--quick", help="Compute fewer points and trials.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the table and the figure.")] = Path("runs/reproduce"),
    neighbours: RelationOption = "replace-one",
    json: JsonFlag = False,
) -> None:
    """Redraw a figure or table of a paper.

    Prints the table and writes it, as Markdown and CSV, with the figure, into OUT/NAME; a quick run into
    OUT/NAME-quick, and one under other neighbours than those of the papers into OUT/NAME-NEIGHBOURS, so that
    neither ever replaces a full one.
    """
    from tacit.experiments import EXPERIMENTS, find

    if name == "list":
        listed = [{"name": e.name, "title": e.title, "source": e.source} for e in EXPERIMENTS.values()]
        if json:
            print_json({"experiments": listed})
        else:
            print_table(("name", "title", "source"), [tuple(e.values()) for e in listed])
        return
    experiment = find(name)
    compute = experiment.under(neighbours_named(neighbours).relation)
    others = "" if neighbours == "replace-one" else f"-{neighbours}"
    folder = out / f"{name}{others}{'-quick' if quick else ''}"
    make_folder("out", folder)
    with progress(name) as show:
        report = compute(quick, show)
    source = f"{experiment.source}. A quick run: fewer points and trials" if quick else experiment.source
    _write(folder, report, title=experiment.title, source=source)
    if json:
        more = {key: part.rows for key, part in report.more.items()}
        print_json({"name": name, "rows": report.rows, "more": more, "notes": report.notes, "folder": folder})
        return
    keys = report.shown or tuple(report.rows[0])
    print_text(experiment.title)
    right = tuple(k for k in keys if all(_is_number(row[k]) for row in report.rows))
    print_table(keys, [tuple(_cell(row[k]) for k in keys) for row in report.rows], right=right)
    for note in report.notes:
        print_text(f"- {note}")
    further = f", with further tables: {', '.join(report.more)}" if report.more else ""
    print_text(f"Written to {folder}{further}")


def _write(folder: Path, report: Report, *, title: str, source: str) -> None:
    """Write the tables and the figures."""
    import pandas as pd

    sections = [f"# {title}\n\n{source}.\n"]
    for name, part in {"": report, **report.more}.items():
        ending = f"-{name}" if name else ""
        heading = f"## {name}: {part.title}\n\n" if name else ""
        notes = "".join(f"- {note}\n" for note in part.notes)
        table = part.markdown() if len(part.rows) <= _MOST_ROWS else f"See table{ending}.csv.\n"
        sections.append(f"{heading}{table}\n{notes}")
        pd.DataFrame(part.rows).to_csv(folder / f"table{ending}.csv", index=False)
        _draw(folder / f"figure{ending}.png", part, title=part.title or title)
    (folder / "table.md").write_text("\n".join(sections))


def _draw(path: Path, report: Report, *, title: str) -> None:
    """Draw the figure of one table."""
    from tacit.reports import draw_lines

    draw_lines(
        report.rows,
        path,
        x=report.x,
        y=report.y,
        error=report.error,
        line=report.line,
        panel=report.panel,
        axis=report.axis,
        log_x=report.log_x,
        log_y=report.log_y,
        title=title,
        labels=report.labels,
        legend="dotted: without privacy" if any(row[report.x] is None for row in report.rows) else None,
    )


def _is_number(value: object) -> bool:
    """Tell a number, or one that is missing, from text."""
    return value is None or (isinstance(value, numbers.Real) and not isinstance(value, bool))


def _cell(value: object) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
