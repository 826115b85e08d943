"""Processes that were started here, with all that they have started, and their end."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Process", "descendants", "end_processes"]

_PROC: Final = Path("/proc")
_ZOMBIE: Final = "Z"
_PARENT, _STARTED = 1, 19  # fields of /proc/PID/stat after the name, from proc(5): 4 and 22


class Process(NamedTuple):
    """A process that a later one with the same number is not taken for.

    Attributes:
        pid: Its number.
        started: When it started, in ticks since the machine did.
    """

    pid: int
    started: int

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        facts = _facts(self.pid)
        return facts is not None and facts[0] != _ZOMBIE and int(facts[_STARTED]) == self.started

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, if it still runs."""
        if self.alive:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return


def descendants(pid: int) -> set[Process]:
    """Return all processes that a process has started, directly or not; none where there is no /proc."""
    children: dict[int, list[Process]] = {}
    for folder in _PROC.glob("[0-9]*"):
        facts = _facts(int(folder.name))
        if facts is not None:
            children.setdefault(int(facts[_PARENT]), []).append(
                Process(int(folder.name), int(facts[_STARTED]))
            )
    found: set[Process] = set()
    waiting = [pid]
    while waiting:
        for child in children.get(waiting.pop(), []):
            if child not in found:
                found.add(child)
                waiting.append(child.pid)
    return found


def end_processes(processes: Iterable[Process], *, patience: float = 15.0, asked: bool = False) -> None:
    """End processes: ask, wait, and then make them.

    Args:
        processes: Collected while their parents still ran: an orphan is nobody's descendant.
        patience: Seconds to end by themselves.
        asked: Whether they have been asked before.
    """
    processes = set(processes)
    if not asked:
        for one in processes:
            one.send(signal.SIGTERM)
    end = time.monotonic() + patience
    while any(one.alive for one in processes) and time.monotonic() < end:
        time.sleep(0.05)
    for one in processes:
        one.send(signal.SIGKILL)
    end = time.monotonic() + patience
    while any(one.alive for one in processes) and time.monotonic() < end:
        time.sleep(0.05)


def _facts(pid: int) -> list[str] | None:
    """Return what /proc says of a process, from its state on."""
    try:
        text = (_PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()  # the name before it may hold anything
