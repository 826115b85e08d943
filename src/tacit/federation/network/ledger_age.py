"""Whether a silo's ledger knows all that its log says it answered: one from a backup does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tacit.errors import LedgerError
from tacit.federation.batches import Disjoint
from tacit.federation.network.audit_log import LogLine
from tacit.federation.schedule import Schedule
from tacit.ledger import Ledger

__all__ = ["charged_runs", "check_not_older", "check_order_is_there", "check_state_not_older"]

_ANSWERS: Final = frozenset({"answered", "uploaded"})
_MASKED: Final = "masked"


def check_not_older(ledger: Ledger, lines: Iterable[LogLine]) -> None:
    """Refuse a ledger that has forgotten an answer: its silo would answer that step with new noise.

    Nor one that has forgotten what was said about masks: its silo would sign a second sum of a step. Nor
    another silo's of the same run: this one would go on from what is kept of the other's units.

    Args:
        ledger: Of the silo.
        lines: Of its log, which are written after the ledger is.

    Raises:
        LedgerError: The log names a run, an answer or a word about masks that the ledger does not hold, or
            another ledger.
    """
    seen, account = list(lines), ledger.fingerprint.hex()
    charged, answered = charged_runs(seen), dict[str, set[int]]()
    masked: dict[str, dict[str, LogLine]] = {}
    for line in seen:
        run, step = line.facts.get("run"), line.facts.get("step")
        if run not in charged or line.kind not in _ANSWERS | {"accepted", _MASKED}:
            continue
        if line.facts.get("account", account) != account:
            raise LedgerError(
                f"the ledger {ledger.path} is not that of the log beside it, whose line {line.number} says "
                f"that another one has paid for run {run!r}. Put the newest ledger of this silo back; if it "
                "is lost, all that it allowed counts as spent."
            )
        if run not in answered:
            if not ledger.knows(run):
                raise _older(ledger, line, f"run {run!r} was accepted")
            answered[run] = ledger.answered(run)
        if line.kind in _ANSWERS and step not in answered[run]:
            raise _older(ledger, line, f"step {step} of run {run!r} was answered")
        if line.kind == _MASKED and line.facts.get("kept"):
            masked.setdefault(str(run), {})[str(line.facts["kept"])] = line
    for one, words in masked.items():
        for name in ledger.secrets(one).lacking(words):
            raise _older(ledger, words[name], f"{name!r} of run {one!r} was said")


def check_state_not_older(newest: int, lines: Iterable[LogLine], *, run: str) -> None:
    """Refuse what a silo without a ledger kept of its units, if it is gone or older than the log.

    Args:
        newest: Last step that it knows to be answered; -1 for none.
        lines: Of the log, which are written after it is.
        run: Whose it is.

    Raises:
        LedgerError: The log names a later answer.
    """
    for line in lines:
        step = line.facts.get("step")
        if line.kind in _ANSWERS and line.facts.get("run") == run and isinstance(step, int) and step > newest:
            raise LedgerError(
                f"the silo has lost what it kept of its units in run {run!r}: line {line.number} of its log "
                f"says that step {step} was answered, and what is kept ends "
                f"{'before the first' if newest < 0 else f'with step {newest}'}. Put the newest state folder "
                "back, or name a new run."
            )


def check_order_is_there(lines: Iterable[LogLine], *, run: str, schedule: Schedule) -> None:
    """Refuse to draw the secret order of a run anew: a unit would be in two of its disjoint batches.

    Args:
        lines: Of the log of a silo that has no order of the run.
        run: Whose it is.
        schedule: Of its plan.

    Raises:
        LedgerError: The log names an answer about such a batch.
    """
    for line in lines:
        step = line.facts.get("step")
        if line.kind not in _ANSWERS or line.facts.get("run") != run or not isinstance(step, int):
            continue
        if isinstance(schedule.step(step).batch, Disjoint):
            raise LedgerError(
                f"the silo has lost the secret order of its units in run {run!r}: line {line.number} of its "
                f"log says that step {step} was answered with a part of them, and another order would use "
                "some of them again. Put the newest state folder back, or name a new run."
            )


def charged_runs(lines: Iterable[LogLine]) -> dict[str, LogLine]:
    """Return the runs whose price a ledger has reserved, each with the line that says so.

    Not those of a silo without a ledger, which sends exact sums to a server that its owner trusts.
    """
    paid = (line for line in lines if line.kind == "accepted" and line.facts.get("left") is not None)
    return {str(line.facts["run"]): line for line in paid}


def _older(ledger: Ledger, line: LogLine, what: str) -> LedgerError:
    return LedgerError(
        f"the ledger {ledger.path} is older than the log beside it, whose line {line.number} says that "
        f"{what}: a ledger that was restored or made anew would answer again with new noise. Put the newest "
        "ledger back; if it is lost, all that it allowed counts as spent."
    )
