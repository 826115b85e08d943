"""Whether a silo's ledger knows all that its log says it answered: one from a backup does not."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tacit.errors import LedgerError
from tacit.federation.network.audit_log import LogLine
from tacit.ledger import Ledger

__all__ = ["check_not_older"]

_ANSWERS: Final = frozenset({"answered", "uploaded"})


def check_not_older(ledger: Ledger, lines: Iterable[LogLine]) -> None:
    """Refuse a ledger that has forgotten an answer: its silo would answer that step with new noise.

    Args:
        ledger: Of the silo.
        lines: Of its log, which are written after the ledger is.

    Raises:
        LedgerError: The log names a run or an answer that the ledger does not hold.
    """
    answered: dict[str, set[int]] = {}
    for line in lines:
        run, step = line.facts.get("run"), line.facts.get("step")
        if not isinstance(run, str) or line.kind not in _ANSWERS | {"accepted"}:
            continue
        if run not in answered:
            if not ledger.knows(run):
                raise _older(ledger, line, f"run {run!r} was accepted")
            answered[run] = ledger.answered(run)
        if line.kind in _ANSWERS and step not in answered[run]:
            raise _older(ledger, line, f"step {step} of run {run!r} was answered")


def _older(ledger: Ledger, line: LogLine, what: str) -> LedgerError:
    return LedgerError(
        f"the ledger {ledger.path} is older than the log beside it, whose line {line.number} says that "
        f"{what}: a ledger that was restored or made anew would answer again with new noise. Put the newest "
        "ledger back; if it is lost, all that it allowed counts as spent."
    )
