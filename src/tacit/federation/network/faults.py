"""Why a shuffler refuses, in words that travel."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tacit.errors import RefusalError

__all__ = ["Fault", "Refusal", "RoundError", "RoundReport"]


class Fault(StrEnum):
    """Why the shuffler refuses something."""

    UNKNOWN = "unknown"  # party, key, or signature for something else
    NO_ROUND = "no-round"  # never opened
    LENGTH = "length"  # of a parcel
    QUOTA = "quota"  # another parcel of the party is in already
    LATE = "late"  # the round is over
    WAITING = "waiting"  # for more parties
    GIVEN_UP = "given-up"  # with fewer than n_min
    CONFLICT = "conflict"  # with what was agreed before
    FORM = "form"  # cannot be read, or is not allowed


class RoundReport(msgspec.Struct, frozen=True, kw_only=True):
    """Who has sent in a round that waits, or was given up.

    Attributes:
        needed: Parties that the plan needs.
        came: Parties that sent.
        circle: Parties that were to send.
        missing: Names of those that did not. A shuffler that was started anew has forgotten what came to
            rounds that wait: whoever is missing has to send again.
    """

    needed: int
    came: int
    circle: int
    missing: tuple[str, ...]


class RoundError(RefusalError):
    """The shuffler refuses.

    Attributes:
        fault: Why, in a word.
        report: Of a round that waits or was given up.
    """

    def __init__(self, fault: Fault, message: str, report: RoundReport | None = None) -> None:
        super().__init__(message)
        self.fault, self.report = fault, report


class Refusal(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A `RoundError` as it travels."""

    fault: Fault
    message: str
    report: RoundReport | None = None
