"""One request to each of several silos at once: who replied, who refused, and what was thrown away."""

from __future__ import annotations

import datetime as dt
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tacit.federation.network.bodies import Refused, RequestBody, RequestKind, WireError
from tacit.federation.network.channel import Channel
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.roster import Roster
from tacit.federation.network.wire import RefusalCode, open_reply, seal_request

__all__ = ["Asker", "Replies"]

_AGAIN: Final = frozenset({RefusalCode.BUSY})
"""What may be otherwise in a moment; all other refusals stand until the next round."""

_MOST_BAD: Final = 3
_FIRST_PAUSE, _LONGEST_PAUSE = 0.02, 1.0


@dataclass
class Replies:
    """What came back; parties by their indices, in increasing order.

    Attributes:
        bodies: What silos replied.
        refused: Why others do not.
        dropped: How many messages of each silo were thrown away: not its own, of another form, too long.
        down: Bytes that were sent to each.
        up: Bytes that each has sent.
        seconds: How long all of it took.
    """

    bodies: dict[int, Any] = field(default_factory=dict)
    refused: dict[int, RefusalCode] = field(default_factory=dict)
    dropped: Counter[int] = field(default_factory=Counter)
    down: Counter[int] = field(default_factory=Counter)
    up: Counter[int] = field(default_factory=Counter)
    seconds: float = 0.0

    def count(self, other: Replies) -> None:
        """Add what another exchange has sent, and who refused in it."""
        self.dropped += other.dropped
        self.down += other.down
        self.up += other.up
        self.refused |= other.refused
        self.seconds += other.seconds

    def then(self, later: Replies, *, wanted: type[Any]) -> Replies:
        """Return what came of asking the same twice; a reply of the `wanted` kind stands."""
        bodies = {k: body for k, body in (self.bodies | later.bodies).items() if isinstance(body, wanted)}
        others = Counter(k for k, body in later.bodies.items() if not isinstance(body, wanted))
        return Replies(
            bodies=dict(sorted(bodies.items())),
            refused={k: code for k, code in (self.refused | later.refused).items() if k not in bodies},
            dropped=self.dropped + later.dropped + others,
            down=self.down + later.down,
            up=self.up + later.up,
            seconds=self.seconds + later.seconds,
        )


class Asker:
    """Writes requests, and reads only what the silo that was asked has signed about them.

    Args:
        roster: Of the federation.
        key: The server's.
        channel: How silos are reached.
        clock: Returns the time, with its zone.
    """

    def __init__(
        self, roster: Roster, key: SigningKey, channel: Channel, *, clock: Callable[[], dt.datetime]
    ) -> None:
        self._roster, self._key, self._channel, self._clock = roster, key, channel, clock
        self._names = [one.name for one in roster.silos]

    def present(self) -> set[int]:
        """Return the indices of the silos that can be reached now."""
        here = self._channel.present()
        return {k for k, name in enumerate(self._names) if name in here}

    def ask(
        self,
        kind: RequestKind,
        bodies: Mapping[int, RequestBody],
        *,
        run: str,
        deadline: float,
        enough: int = 0,
    ) -> Replies:
        """Ask several silos at once.

        Args:
            kind: What is wanted.
            bodies: Of the request to each party.
            run: Name of the run.
            deadline: Seconds to wait at most.
            enough: Nobody is waited for once so many refuse that fewer than this can reply.
        """
        began, found = time.monotonic(), Replies()
        requests = {
            k: seal_request(kind, body, roster=self._roster, run=run, to=self._names[k], key=self._key)
            for k, body in bodies.items()
        }
        waiting, pause = dict.fromkeys(requests), _FIRST_PAUSE
        while waiting and (left := deadline - (time.monotonic() - began)) > 0:
            sent = {self._names[k]: requests[k] for k in waiting}
            for k in waiting:
                found.down[k] += len(requests[k])
            for name, data in self._channel.exchange(sent, deadline=left):
                k = self._roster.index(name)
                found.up[k] += len(data)
                if k not in waiting:
                    found.dropped[k] += 1
                elif self._read(k, data, requests[k], found):
                    del waiting[k]
                if not waiting or len(requests) - len(found.refused) < enough:
                    break
            if len(requests) - len(found.refused) < enough:
                break
            if waiting:  # who comes back must not find us asking without a pause
                left = deadline - (time.monotonic() - began)
                time.sleep(max(0.0, min(pause, left)))
                pause = min(2 * pause, _LONGEST_PAUSE)
        found.bodies = dict(sorted(found.bodies.items()))
        found.seconds = time.monotonic() - began
        return found

    def _read(self, party: int, data: bytes, request: bytes, found: Replies) -> bool:
        """Enter a reply; return whether that is the silo's last word."""
        try:
            body = open_reply(data, request=request, roster=self._roster, now=self._clock()).body
        except WireError as error:
            found.dropped[party] += 1
            if found.dropped[party] < _MOST_BAD:
                return False
            found.refused[party] = error.code
            return True
        if not isinstance(body, Refused):
            found.bodies[party] = body
        elif body.code in _AGAIN:
            return False
        else:
            found.refused[party] = body.code
        return True
