"""`tacit report`: what finished runs say, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.files import check_picture, find_run
from tacit.cli.output import JsonFlag, print_json, print_line, print_table
from tacit.errors import ParameterError

__all__ = ["app"]

app = typer.Typer(help="Finished runs: their numbers, side by side.", no_args_is_help=True)


@app.callback()
def _group() -> None:
    """Keep `compare` a command of its own: typer makes the only command of a group the group."""


@app.command()
def compare(
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Names or folders of runs.", show_default=False)
    ],
    plot: Annotated[
        Path | None,
        typer.Option(help="Picture of score against epsilon: .svg, .png or .pdf.", show_default="no picture"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Compare runs: score and standard error, baseline, privacy, bits and rounds.

    Scores are on held-out records and computed without privacy. A note says where runs are about other data,
    another label or other held-out records. Of fair runs it says accuracy, violation and what is protected.
    """
    if plot is not None:
        check_picture(plot)
    names = [str(run) for run in runs]
    if len(set(names)) < max(2, len(names)):
        raise ParameterError(f"RUN must be two or more folders, each once, got {', '.join(names)}.")
    from tacit.reports.comparison import (
        COMPARED_COLUMNS,
        comparison_cells,
        comparison_json,
        comparison_notes,
        draw_comparison,
    )
    from tacit.reports.fair_comparison import is_fair_run
    from tacit.reports.metrics import read_metrics

    fair = [str(run) for run in runs if is_fair_run(find_run(run))]
    if len(fair) == len(runs):
        _compare_fair(runs, plot, json=json)
        return
    if fair:
        for run in (run for run in runs if str(run) not in fair):
            read_metrics(find_run(run))
        raise ParameterError(
            f"RUN must be fair runs or others, which have other numbers, got both: {', '.join(fair)} of "
            f"{', '.join(names)}."
        )
    found = {name: read_metrics(find_run(run)) for name, run in zip(names, runs, strict=True)}
    if plot is not None:
        draw_comparison(found, plot)
    if json:
        print_json(comparison_json(found))
        return
    print_table(COMPARED_COLUMNS, comparison_cells(found), right=COMPARED_COLUMNS[3:])
    for note in comparison_notes(found):
        print_line(to_error=False, label="note", text=note, colour="yellow")


def _compare_fair(runs: list[Path], plot: Path | None, *, json: bool) -> None:
    """Compare runs of fair trainings."""
    if plot is not None:
        raise ParameterError(
            "plot is not for fair runs, got a picture to draw: their reports have the curve of each."
        )
    from tacit.reports.fair_comparison import FAIR_COLUMNS, fair_cells, fair_json, read_fair_numbers

    found = {str(run): read_fair_numbers(find_run(run)) for run in runs}
    said = fair_json(found)
    if json:
        print_json(said)
        return
    print_table(FAIR_COLUMNS, fair_cells(found), right=FAIR_COLUMNS[4:])
    for note in said["notes"]:
        print_line(to_error=False, label="note", text=note, colour="yellow")
