"""A program that uses a ledger until killed; it prints one line for all that the ledger acknowledged."""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import signal
import sys
from functools import cache
from itertools import count
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import tacit
from tacit.errors import BudgetError

if TYPE_CHECKING:
    from tacit.ledger import Ledger

STEPS = 12
PRICE = (0.001, 1e-9)


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()


def answer_bytes(run: str, step: int, size: int) -> bytes:
    return hashlib.shake_256(f"{run}/{step}/{size}".encode()).digest(size)


def state_bytes(run: str, step: int) -> bytes:
    return f"after step {step} of {run}".encode()


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def work(path: str, first: int, size: int, *, die_at: int | None = None) -> None:
    """Reserve and answer run after run, from run number `first` on, until killed.

    With `die_at`, the process kills itself just before the SQLite statement of that number, of those that
    begin, write or end: before a SELECT the file is as it is before the next of these.
    """
    ledger_type, budget_type = _light_import()
    with ledger_type.open(path) as ledger:
        if die_at is not None:
            ledger._file._connection.set_trace_callback(_Countdown(die_at))
        say("ready")
        for number in count(first):
            run = f"run-{number}"
            ledger.reserve(run, price=budget_type(*PRICE), plan_digest=digest(run), event=run.encode())
            say(f"reserved {run}")
            for step in range(STEPS):
                ledger.store_answer(
                    run,
                    step,
                    query_digest=digest(f"{run}/{step}"),
                    answer=answer_bytes(run, step, size),
                    state=state_bytes(run, step),
                )
                say(f"answered {run} {step}")


class _Countdown:
    def __init__(self, statements: int) -> None:
        self._left = statements

    def __call__(self, statement: str) -> None:
        self._left -= statement.startswith(("BEGIN", "INSERT", "UPDATE", "COMMIT"))
        if self._left < 0:
            os.kill(os.getpid(), signal.SIGKILL)


def race(path: str, name: str, tries: int) -> None:
    """When told to go: try to reserve `tries` runs of 0.1, and answer steps that all others answer too."""
    ledger_type, budget_type = _light_import()
    with ledger_type.open(path) as ledger:
        say("ready")
        sys.stdin.readline()
        for number in range(tries):
            run = f"{name}-{number}"
            try:
                ledger.reserve(run, price=budget_type(0.1, 0.0), plan_digest=digest(run), event=b"")
                say(f"reserved {run}")
            except BudgetError:
                say(f"refused {run}")
            sent = ledger.store_answer(
                "shared", number, query_digest=b"same", answer=f"{name} {number}".encode()
            )
            say(f"sent {number} {sent.hex()}")


def nursery() -> None:
    """Fork a worker for each line of JSON: where it writes, and what `work` takes; say its pid and its end.

    To fork takes a hundredth of what a start takes, and what is killed is a process all the same.
    """
    _light_import()
    for line in sys.stdin:
        out, path, first, size, die_at = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os.dup2(os.open(out, os.O_WRONLY), sys.stdout.fileno())
            work(path, first, size, die_at=die_at)
        say(str(pid))
        say(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))


@cache
def _light_import() -> tuple[type[Ledger], type]:
    """The ledger without the rest of its room, which takes seconds to import."""
    room = ModuleType("tacit.privacy")
    room.__path__ = [str(Path(tacit.__file__).parent / "privacy")]
    sys.modules["tacit.privacy"] = room
    ledger = importlib.import_module("tacit.ledger.ledger")
    return ledger.Ledger, ledger.PrivacyBudget


if __name__ == "__main__":
    if sys.argv[1] == "nursery":
        nursery()
    else:
        race(sys.argv[2], sys.argv[3], int(sys.argv[4]))
