"""What a training that does not end has spent, and the command that goes on with it at no cost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.cli.output import print_line
from tacit.errors import ParameterError, TacitError

if TYPE_CHECKING:
    from tacit.jobs import JobConfig, Ledgers
    from tacit.ledger import Entry
    from tacit.reports import RunFolder

__all__ = ["SpentByRun", "check_is_new", "note_of_another_folder"]


@dataclass(frozen=True)
class SpentByRun:
    """What a run leaves in ledgers when it does not end, and how it goes on.

    Attributes:
        ledgers: The accounts; None keeps none.
        silos: Names of the silos.
        runs: What ledgers call the run, one name or several.
        command: What goes on with the run.
    """

    ledgers: Ledgers | None
    silos: Sequence[str]
    runs: Collection[str]
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
        return [] if self.ledgers is None else self.ledgers.reserved(self.silos, self.runs)

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


def check_is_new(job: JobConfig) -> None:
    """Refuse the name of a finished run that no ledger knows: it would be trained, and told, once more."""
    from tacit.jobs import MODEL_FILE

    folder = Path(job.out) / job.run
    if (folder / MODEL_FILE).exists():
        raise ParameterError(
            f"name must be another than {job.run!r}, of which {folder} holds a run that no ledger counts; "
            "trained again it would tell more of the same records. With a ledger, a run of a known name goes "
            "on at no cost, and another job of that name is refused."
        )


def note_of_another_folder(folder: RunFolder) -> None:
    """Say where a run is that found its folder taken."""
    if folder.path != folder.wanted:
        text = f"{folder.wanted} is there already and stays as it is; this run is in {folder.path}."
        print_line(to_error=True, label="note", text=text, colour="yellow")
