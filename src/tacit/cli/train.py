"""`tacit train`: train one model across silos."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.dry_run import show_preview
from tacit.cli.fairness.train import fair_train
from tacit.cli.flags import takes
from tacit.cli.interrupts import say_when_stopped
from tacit.cli.ledger_place import ledger_place
from tacit.cli.output import print_json, print_line, print_table, print_text, progress
from tacit.cli.results import show_result
from tacit.cli.train_flags import TrainFlags
from tacit.errors import ParameterError, TacitError

if TYPE_CHECKING:
    from tacit.jobs import Job, JobConfig, JobData, Ledgers
    from tacit.ledger import Entry

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
        fair_train(job, dry_run=flags.dry_run, json=flags.json)
        return
    # Imported here so that `tacit --help` does not wait for scipy, pandas and matplotlib.
    from tacit.jobs import Job
    from tacit.reports import claim_folder, results_json, write_run

    loaded = Job(job)
    job = loaded.config
    ledgers = _ledgers(job, loaded.data)
    if flags.dry_run:
        show_preview(loaded, ledgers, json=flags.json)
        return
    if ledgers is None and job.seed is None:
        _check_is_new(job)
    spent = _Spent(loaded, ledgers, flags.command(job.run))
    with say_when_stopped(spent.when_stopped):
        # Made first: that it cannot be made must not be found when the budget is spent.
        folder = claim_folder(job, again=spent.again)
        try:
            with spent.said_on_failure():
                with progress("training") as show:
                    result = loaded.run(
                        ledgers=ledgers, progress=lambda trust, done, total: show(done, total, note=trust)
                    )
                write_run(result, folder)
        finally:
            folder.give_back()
    if folder.path != folder.wanted:
        text = f"{folder.wanted} is there already and stays as it is; this run is in {folder.path}."
        print_line(to_error=True, label="note", text=text, colour="yellow")
    if flags.json:
        print_json(results_json(result, folder=folder.path))
    else:
        show_result(result, folder.path)


@dataclass(frozen=True)
class _Spent:
    """What a run leaves in ledgers when it does not end, and how it goes on.

    Attributes:
        job: With its data loaded.
        ledgers: The accounts; None keeps none.
        command: What goes on with the run.
    """

    job: Job
    ledgers: Ledgers | None
    command: str

    @property
    def again(self) -> str:
        """What a person reads in the folder of a run that was killed."""
        if self.ledgers is None:
            return "No ledger has counted it, and nothing of it was kept.\n"
        return f"What it has reserved stays spent. This goes on with it at no cost:\n\n{self.command}\n"

    def when_stopped(self) -> dict[str, str]:
        """Return what is said after Ctrl-C."""
        if self.ledgers is None:
            return {"tacit": "interrupted; no ledger counts this run, and nothing of it was kept."}
        lines = self._lines(self._reserved())
        if not lines:
            return {"tacit": "interrupted; nothing was spent."}
        return {"tacit": "interrupted.", **lines}

    @contextmanager
    def said_on_failure(self) -> Iterator[None]:
        """Say before the error of the block what it has spent; where that is nothing, nothing is said."""
        before = self._reserved()
        try:
            yield
        except (TacitError, OSError):
            after = [one for one in self._reserved() if one not in before]
            for label, text in self._lines(after).items():
                print_line(to_error=True, label=label, text=text)
            raise

    def _reserved(self) -> list[tuple[str, Entry]]:
        """Return what the run has reserved, with whose account it is."""
        if self.ledgers is None:
            return []
        return self.ledgers.reserved(self.job.data.silo_names, self.job.run_names)

    def _lines(self, reserved: list[tuple[str, Entry]]) -> dict[str, str]:
        """Return what stays spent, accounts of one price together, and the command that goes on."""
        by_price: dict[str, list[str]] = {}
        for owner, entry in reserved:
            price = f"epsilon {entry.epsilon!r} at delta {entry.delta!r} for run {entry.run!r}"
            by_price.setdefault(price, []).append(owner)
        if not by_price:
            return {}
        parts = [f"{price}, by {', '.join(owners)}" for price, owners in by_price.items()]
        return {"spent": f"{'; '.join(parts)}. It stays spent.", "resume at no cost": self.command}


def _check_is_new(job: JobConfig) -> None:
    """Refuse the name of a finished run that no ledger knows: it would be trained, and told, once more."""
    from tacit.jobs import MODEL_FILE

    folder = Path(job.out) / job.run
    if (folder / MODEL_FILE).exists():
        raise ParameterError(
            f"name must be another than {job.run!r}, of which {folder} holds a run that no ledger counts; "
            "trained again it would tell more of the same records. With a ledger, a run of a known name goes "
            "on at no cost, and another job of that name is refused."
        )


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
