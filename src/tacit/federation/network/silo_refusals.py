"""What leaves a silo about a failure: one word of a closed set. The reason goes to its own log only."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from tacit.errors import BudgetError, ParameterError, RefusalError, TacitError
from tacit.federation.circle import CircleError
from tacit.federation.network.bodies import RefusalCode, WireError
from tacit.federation.store import AnsweredError

__all__ = ["LogQuota", "code_of", "words_of"]

_BURST: Final = 1000
_A_SECOND: Final = 1.0


def code_of(error: BaseException, *, proposed: bool) -> RefusalCode:
    """Return what is said of a failure.

    Args:
        error: Whatever was raised.
        proposed: Whether a plan was proposed; else a round was asked.
    """
    match error:
        case WireError():
            return error.code
        case BudgetError():
            return RefusalCode.BUDGET
        case AnsweredError():
            return RefusalCode.ANSWERED
        case CircleError():
            return RefusalCode.CIRCLE
        case RefusalError() | ParameterError():
            return RefusalCode.PLAN if proposed else RefusalCode.QUERY
        case _:
            return RefusalCode.FAILED


def words_of(error: BaseException) -> str:
    """Return a failure in words, for the silo's own log.

    Our errors never quote a record. What a foreign exception says may come from one: only its kind is kept.
    """
    if isinstance(error, TacitError):
        return str(error)
    if isinstance(error, OSError):
        return f"{type(error).__name__}: {error.strerror}"
    return f"{type(error).__name__}, whose words are not written down: they may tell of a record"


class LogQuota:
    """How many refusals a log takes: whoever sends requests without end must not fill the disk.

    Args:
        clock: Seconds, of which only differences count.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._last, self._left = clock, clock(), float(_BURST)
        self._unsaid = 0

    def take(self) -> int | None:
        """Return how many refusals were left out since one was written; None leaves this one out too."""
        now = self._clock()
        self._left = min(self._left + (now - self._last) * _A_SECOND, _BURST)
        self._last = now
        if self._left < 1:
            self._unsaid += 1
            return None
        self._left -= 1
        unsaid, self._unsaid = self._unsaid, 0
        return unsaid
