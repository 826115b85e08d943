"""What a role says while it runs: one line an event on the error stream, with who says it."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from types import FrameType
from typing import Annotated, Any

import msgspec
import typer

from tacit.errors import one_line

__all__ = ["JsonLogsFlag", "QuietFlag", "logs_of", "until_stopped"]

QuietFlag = Annotated[bool, typer.Option("--quiet", help="Say nothing but warnings while it runs.")]
JsonLogsFlag = Annotated[
    bool, typer.Option("--json-logs", help="Write every line of the log as a JSON object.")
]
"""The types of options that every role has; their default is False."""

_LOOK = 0.5


class _Lines(logging.Formatter):
    """Writes a time, who it is, what happened, and its facts as name=value."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        facts: dict[str, Any] = getattr(record, "facts", {})
        said = " ".join(f"{name}={one_line(str(value))}" for name, value in facts.items())
        level = "" if record.levelno <= logging.INFO else f"{record.levelname.lower()}: "
        text = f"{level}{one_line(record.getMessage())}{'  ' if said else ''}{said}"
        return f"{self.formatTime(record, '%H:%M:%S')} {self._role}: {text}"


class _JsonLines(_Lines):
    """Writes the same as a JSON object."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        facts: dict[str, Any] = getattr(record, "facts", {})
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        head = {"time": time, "role": self._role, "level": record.levelname.lower()}
        said = {**head, "event": record.getMessage(), **facts}
        return msgspec.json.encode(said, enc_hook=str).decode()


@contextlib.contextmanager
def logs_of(role: str, *, quiet: bool, json_lines: bool = False) -> Iterator[None]:
    """Print what this process logs while the block runs.

    Args:
        role: Who it is, such as "silo-1".
        quiet: Whether only warnings are printed.
        json_lines: Whether each line is a JSON object, for programs.
    """
    _end_with(os.environ.get("TACIT_PARENT"))
    logger, handler = logging.getLogger("tacit"), logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines(role) if json_lines else _Lines(role))
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before[0])
        logger.propagate = before[1]


def _end_with(parent: str | None) -> None:
    """End this process, as SIGTERM does, when the one that started it is gone; None waits for nobody."""

    def watch() -> None:
        while str(os.getppid()) == parent:
            time.sleep(_LOOK)
        os.kill(os.getpid(), signal.SIGTERM)

    if parent is not None:
        threading.Thread(target=watch, name="parent", daemon=True).start()


def until_stopped() -> None:
    """Wait for Ctrl-C or SIGTERM, either of which ends a service as it should be."""
    stopped = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopped.set()

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        stopped.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
