"""How a silo asks the server for work: a signed word that says who is there, fresh every time."""

from __future__ import annotations

import datetime as dt
import secrets
from collections import OrderedDict
from threading import Lock
from typing import Annotated, Final

import msgspec

from tacit.errors import AuthenticationError
from tacit.federation.network.bodies import Name
from tacit.federation.network.keys import SIGNATURE_BYTES, SigningKey
from tacit.federation.network.roster import Roster

__all__ = ["HELD", "LONGEST_POLL", "STALE", "Polls", "make_poll"]

HELD: Final = 20.0
"""Seconds for which the server holds a poll that it has no work for."""

STALE: Final = 300.0
"""Seconds that the clocks of a silo and of the server may differ by."""

LONGEST_POLL: Final = 4096
"""Bytes of a poll."""

_VERSION: Final = 1
_NONCE: Final = 16


class _Poll(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Who is there, and when."""

    version: int
    federation: Name
    name: Name
    time: int  # UTC, nanoseconds
    nonce: Annotated[bytes, msgspec.Meta(min_length=_NONCE, max_length=_NONCE)]
    signature: Annotated[bytes, msgspec.Meta(max_length=SIGNATURE_BYTES)] = b""

    @property
    def signed(self) -> bytes:
        return _ENCODER.encode(msgspec.structs.replace(self, signature=b""))


_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(_Poll)


def make_poll(key: SigningKey, *, federation: str, name: str, now: dt.datetime) -> bytes:
    """Return a poll of a silo.

    Args:
        key: The silo's.
        federation: Its name.
        name: Of the silo.
        now: The time, with its zone.
    """
    poll = _Poll(_VERSION, federation, name, round(now.timestamp() * 1e9), secrets.token_bytes(_NONCE))
    return _ENCODER.encode(msgspec.structs.replace(poll, signature=key.sign("poll", poll.signed)))


class Polls:
    """Who polls, at the server; each poll counts once.

    Args:
        roster: Of the federation.
    """

    def __init__(self, roster: Roster) -> None:
        self._roster, self._lock = roster, Lock()
        self._seen: OrderedDict[bytes, float] = OrderedDict()

    def open(self, data: bytes, *, now: dt.datetime) -> str:
        """Return the name of the silo that polls.

        Args:
            data: What came.
            now: The time, with its zone.

        Raises:
            AuthenticationError: Not a poll of this federation by a silo whose key counts, one of another
                time, or one that came before.
        """
        if len(data) > LONGEST_POLL:
            raise AuthenticationError(f"a poll has at most {LONGEST_POLL} bytes, got {len(data)}.")
        try:
            poll = _DECODER.decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise AuthenticationError("the poll cannot be read.") from error
        if poll.version != _VERSION or poll.federation != self._roster.federation:
            raise AuthenticationError("the poll is of another version or federation.")
        self._roster.check_active(poll.name, now)
        self._roster.verify_key(poll.name).verify("poll", poll.signed, poll.signature)
        at = now.timestamp()
        if abs(at - poll.time / 1e9) > STALE:
            raise AuthenticationError(
                f"the clock of silo {poll.name!r} differs by {poll.time / 1e9 - at:+.0f} s, more than the "
                f"{STALE:.0f} s that are allowed."
            )
        with self._lock:
            # A nonce is kept for longer than its poll is fresh; polls without a signature leave none.
            while self._seen and next(iter(self._seen.values())) < at - 2 * STALE:
                self._seen.popitem(last=False)
            if poll.nonce in self._seen:
                raise AuthenticationError(f"a poll of silo {poll.name!r} came twice.")
            self._seen[poll.nonce] = at
        return poll.name
