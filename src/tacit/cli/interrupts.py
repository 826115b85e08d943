"""Ctrl-C and SIGTERM: what a command says when it is stopped, and where it must not be stopped halfway."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from tacit.cli.output import print_line

__all__ = ["INTERRUPTED", "Stopped", "say_when_stopped", "uninterrupted"]

INTERRUPTED: Final = 130
"""The exit code, 128 + SIGINT as shells report it; also of SIGTERM, as both leave the same behind."""

_STOPS: Final = (signal.SIGINT, signal.SIGTERM)


class Stopped(Exception):  # noqa: N818 - it is no error
    """A command was stopped, and has said what that means."""


@contextmanager
def say_when_stopped(explain: Callable[[], Mapping[str, str]]) -> Iterator[None]:
    """End the command on Ctrl-C and SIGTERM in the block, by `Stopped`, after a few lines.

    Args:
        explain: Called when stopped; returns labels and texts, each printed as one line on the error stream.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled({signal.SIGTERM: stop}):
        try:
            yield
        except KeyboardInterrupt:
            with _handled(dict.fromkeys(_STOPS, signal.SIG_IGN)):  # an impatient second Ctrl-C
                for label, text in explain().items():
                    print_line(to_error=True, label=label, text=text)
            raise Stopped from None


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM wait until the block is done: what was just paid for must come out."""
    waiting: list[int] = []

    def wait(number: int, _frame: FrameType | None) -> None:
        waiting.append(number)

    with _handled(dict.fromkeys(_STOPS, wait)):
        yield
    if waiting:
        raise KeyboardInterrupt


@contextmanager
def _handled(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Handle signals in this way; only the main thread may, and only it is interrupted."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
