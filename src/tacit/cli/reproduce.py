"""`tacit reproduce`: redraw a figure or table of a paper by name."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.output import JsonFlag, print_json, print_table, print_text, progress

__all__ = ["reproduce"]


def reproduce(
    name: Annotated[str, typer.Argument(help="Name of an experiment; without one, the list.")] = "list",
    quick: Annotated[bool, typer.Option("--quick", help="Fewer points and trials.")] = False,
    out: Annotated[Path, typer.Option(help="Folder for the table and the figure.")] = Path("runs/reproduce"),
    json: JsonFlag = False,
) -> None:
    """Redraw a figure or table of a paper.

    Prints the table and writes it, as Markdown and CSV, with the figure, into OUT/NAME.
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
    with progress(name) as show:
        report = experiment.run(quick, show)
    folder = out / name
    _write(folder, report, title=experiment.title, source=experiment.source)
    if json:
        print_json({"name": name, "rows": report.rows, "notes": report.notes, "folder": folder})
        return
    keys = tuple(report.rows[0])
    print_text(experiment.title)
    print_table(keys, [tuple(_cell(row[k]) for k in keys) for row in report.rows], right=keys[1:])
    for note in report.notes:
        print_text(f"- {note}")
    print_text(f"Written to {folder}")


def _write(folder: Path, report: object, *, title: str, source: str) -> None:
    """Write the table and the figure."""
    import pandas as pd

    from tacit.experiments import Report
    from tacit.reports import draw_lines

    assert isinstance(report, Report)  # noqa: S101 - narrows the type without importing at start-up
    folder.mkdir(parents=True, exist_ok=True)
    notes = "".join(f"- {note}\n" for note in report.notes)
    (folder / "table.md").write_text(f"# {title}\n\n{source}.\n\n{report.markdown()}\n{notes}")
    pd.DataFrame(report.rows).to_csv(folder / "table.csv", index=False)
    draw_lines(
        report.rows,
        folder / "figure.png",
        x=report.x,
        y=report.y,
        error=report.error,
        line=report.line,
        panel=report.panel,
        log_x=report.log_x,
        log_y=report.log_y,
        title=title,
        legend="dotted: without privacy" if any(row[report.x] is None for row in report.rows) else None,
    )


def _cell(value: object) -> str:
    """Return a value as a table shows it."""
    if isinstance(value, float):
        return f"{value:.4g}"
    return "-" if value is None else str(value)
