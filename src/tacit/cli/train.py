"""`tacit train`: train one model across silos."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.cli.dry_run import show_preview
from tacit.cli.fairness.train import fair_train
from tacit.cli.flags import takes
from tacit.cli.interrupts import say_when_stopped
from tacit.cli.ledger_place import ledger_place
from tacit.cli.output import print_json, print_table, print_text, progress, results_alone
from tacit.cli.results import show_result
from tacit.cli.resuming import SpentByRun, check_is_new, note_of_another_folder
from tacit.cli.train_flags import TrainFlags

if TYPE_CHECKING:
    from tacit.jobs import JobConfig, JobData, Ledgers

__all__ = ["train"]


@takes(TrainFlags)
def train(flags: TrainFlags) -> None:
    """Train one model across silos that trust nobody.

    Without arguments, the demo: ten silos with different mixes of handwritten digits, trained without
    privacy, with a trusted server, with trust in a sum, with a shuffler, and with no trust at all. The run
    folder holds the model, the statement, the plan and a report.
    """
    if flags.algorithm == "list":
        _list_algorithms(json=flags.json)
        return
    job = flags.job()
    if job.sensitive_columns:
        fair_train(job, command=flags.command(job.run), dry_run=flags.dry_run, json=flags.json)
        return
    # Imported here so that `tacit --help` does not wait for scipy, pandas and matplotlib.
    from tacit.jobs import Job
    from tacit.reports import claim_folder, results_json, write_run

    with results_alone():
        loaded = Job(job)
    job = loaded.config
    ledgers = _ledgers(job, loaded.data)
    if flags.dry_run:
        show_preview(loaded, ledgers, json=flags.json)
        return
    if ledgers is None and job.seed is None:
        check_is_new(job)
    spent = SpentByRun(ledgers, loaded.data.silo_names, loaded.run_names, flags.command(job.run))
    with say_when_stopped(spent.when_stopped):
        # Made first: that it cannot be made must not be found when the budget is spent.
        folder = claim_folder(job, again=spent.again)
        try:
            with spent.said_on_failure():
                with results_alone(), progress("training") as show:
                    result = loaded.run(
                        ledgers=ledgers, progress=lambda trust, done, total: show(done, total, note=trust)
                    )
                write_run(result, folder)
        finally:
            folder.give_back()
    note_of_another_folder(folder)
    if flags.json:
        print_json(results_json(result, folder=folder.path))
    else:
        show_result(result, folder.path)


def _list_algorithms(*, json: bool) -> None:
    """Print what `--algorithm` and `--option` take."""
    from tacit.learning import ALGORITHMS, about

    known = [about(name) for name in ALGORITHMS]
    if json:
        print_json({"algorithms": known})
        return
    print_table(
        ("algorithm", "trust models", "needs", "penalties", "options"),
        [
            (one.name, ", ".join(one.trusts), one.needs, one.penalties, ", ".join(one.options))
            for one in known
        ],
    )
    print_text("\nWith --json: what each asks of silos and how often, and its paper.")


def _ledgers(job: JobConfig, data: JobData) -> Ledgers | None:
    """Open the ledgers of tables: those that were named, or those beside them."""
    folder = ledger_place(job, data)
    if folder is None:
        return None
    from tacit.jobs import Ledgers

    return Ledgers.open(folder, data.silo_names if {*job.trusts} - {"central", "none"} else ())
