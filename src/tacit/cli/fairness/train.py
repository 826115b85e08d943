"""`tacit train --sensitive`: train a fair classifier, and say what its fairness costs."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.cli.fairness.audit import show_summary
from tacit.cli.interrupts import say_when_stopped
from tacit.cli.ledger_place import ledger_place
from tacit.cli.output import print_json, print_table, print_text, print_whole, progress
from tacit.cli.resuming import SpentByRun, check_is_new, note_of_another_folder
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from tacit.jobs import FairResult, JobConfig

__all__ = ["curve_rows", "fair_train"]


def fair_train(job: JobConfig, *, command: str, dry_run: bool, json: bool) -> None:
    """Train the fair classifier of a job, and write its run folder.

    Args:
        job: It names a sensitive column.
        command: What goes on with the run.
        dry_run: Refused: there is no plan to show without privacy.
        json: Print one object for programs.
    """
    if dry_run:
        raise ParameterError("dry_run is not for a fair model: leave --dry-run out.")
    from tacit.jobs import FairJob
    from tacit.reports import claim_folder, write_fair_run

    loaded = FairJob(job)
    part = loaded.ledger_part
    ledger = None if part is None else ledger_place(loaded.config, loaded.data, part=part.value)
    if part is not None and ledger is None and loaded.config.seed is None:
        check_is_new(loaded.config)
    with ExitStack() as opened:
        ledgers = None if ledger is None else opened.enter_context(loaded.accounts(ledger))
        spent = SpentByRun(ledgers, loaded.data.silo_names, loaded.run_names, command)
        with say_when_stopped(spent.when_stopped):
            folder = claim_folder(loaded.config, again=spent.again)
            try:
                with spent.said_on_failure():
                    with progress("training") as show:
                        result = loaded.run(ledger=ledger, progress=show)
                    write_fair_run(result, folder)
            finally:
                folder.give_back()
    note_of_another_folder(folder)
    if json:
        print_json(_facts(result, folder.path))
    else:
        _show(result, folder.path)


def _facts(result: FairResult, folder: Path) -> dict[str, Any]:
    """Return the answer for programs."""
    from tacit.reports import fair_figures

    return {**fair_figures(result), "folder": folder}


def _show(result: FairResult, folder: Path) -> None:
    """Print scores by group, the curve, and what is guaranteed."""
    from tacit.reports import weight_words

    job = result.job
    groups = " x ".join(job.sensitive_columns)
    title = f"{job.source}: {result.notion} over {groups}, weight {result.weight:.4g}, held-out records"
    if result.fair is None:
        print_text(f"{title}: none has a known group and a label, and there is nothing to score")
    else:
        show_summary(result.fair, title=title)
    if result.curve:
        print_text("\nWhat fairness costs, on the held-out records:")
        columns, rows = curve_rows(result.curve)
        print_table(columns, rows, right=columns)
    if said := weight_words(result):
        print_text(f"\n{said}")
    print_text(f"\n{result.guarantee}")
    print_whole(f"\nReport:  {folder / 'report.html'}")
    print_whole(f"Model:   {folder / 'model.json'}")


def curve_rows(points: Any) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return the columns and the rows of a table of points."""
    return ("weight", "accuracy", "violation", "soft violation", "best"), [
        (
            f"{one.weight:g}",
            f"{one.accuracy:.4f}",
            f"{one.violation:.4f}",
            f"{one.soft_violation:.4f}",
            "yes" if one.pareto else "",
        )
        for one in points
    ]
