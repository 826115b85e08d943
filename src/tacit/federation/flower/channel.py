"""Requests and replies as bytes over Flower: our own loop of sending and fetching, on Flower's `Grid`.

Flower's `send_and_receive` looks for replies every 3 s and gives up what a node that died had taken. Here a
silo that comes back is asked again, which costs nothing, because it stores what it has answered.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from flwr.app import Message
from flwr.serverapp import Grid

from tacit.errors import check_count, check_positive
from tacit.federation.flower.messages import NO_SILO, QUERY, bytes_of, content_of

__all__ = ["Directory", "FlowerChannel", "by_key", "by_name"]

Directory = Callable[[Grid], Mapping[str, int]]
"""Which node each silo that is online has."""

_LOOK_AGAIN: Final = 0.5
"""Seconds until a silo that is offline is looked for again."""
_ASK_AGAIN: Final = 1.0
"""Seconds until a silo that failed is asked again: one whose service is restarting must not be flooded."""
_EXTRA_TTL: Final = 60.0
"""Seconds that Flower keeps a message beyond the deadline, after which nobody asks for its reply."""

_log = logging.getLogger(__name__)


def by_name(grid: Grid) -> dict[str, int]:
    """Find silos by the name under which the operator registered their nodes' keys.

    A name that two nodes bear is nobody's: who would be asked is not for chance to say.
    """
    return _unambiguous([(node.name, node.node_id) for node in grid.get_nodes() if node.name])


def by_key(keys: Mapping[str, bytes]) -> Directory:
    """Find silos by the keys of their nodes.

    Args:
        keys: By name of the silo, its node's public key as Flower shows it (PEM).
    """
    names = {key.strip(): name for name, key in keys.items()}

    def find(grid: Grid) -> dict[str, int]:
        """Return the nodes that are online and whose keys are known."""
        known = [(names.get(node.public_key.strip()), node.node_id) for node in grid.get_nodes()]
        return _unambiguous([(name, node) for name, node in known if name is not None])

    return find


def _unambiguous(found: list[tuple[str, int]]) -> dict[str, int]:
    """Return the node of every name that one node bears."""
    bearers = Counter(name for name, _ in found)
    return {name: node for name, node in found if bearers[name] == 1}


class FlowerChannel:
    """A channel to silos behind Flower nodes; it carries bytes and reads none of them.

    Args:
        grid: Flower's, as a ServerApp gets it.
        directory: Which node a silo has, of those online.
        patience: Seconds after which a silo that has not replied is asked once more.
        attempts: How often a silo is asked in one exchange at most; None is until the deadline.
        pause: Seconds between two looks for replies.
        clock: Seconds from anywhere.
        sleep: Waits for seconds.
    """

    def __init__(
        self,
        grid: Grid,
        directory: Directory = by_name,
        *,
        patience: float = 90.0,
        attempts: int | None = None,
        pause: float = 0.1,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._grid, self._directory = grid, directory
        self._patience, self._pause = check_positive("patience", patience), check_positive("pause", pause)
        self._attempts = None if attempts is None else check_count("attempts", attempts)
        self._clock, self._sleep = clock, sleep
        self._exchanges = 0

    def present(self) -> set[str]:
        """Return the names of the silos whose nodes are online."""
        return set(self._directory(self._grid))

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        """Send one request to each silo, and yield replies as they come.

        A silo that is offline, fails or stays silent is asked again when it is back. What comes too late,
        from another node than was asked, or twice is dropped.

        Args:
            requests: By name of the silo.
            deadline: Seconds after which the exchange ends.

        Yields:
            The name of a silo and its reply; each silo at most once.
        """
        self._exchanges += 1
        under_way = _Exchange(dict(requests), str(self._exchanges), self._clock() + deadline)
        while under_way.open():
            self._ask(under_way)
            yield from self._replies(under_way)
            left = under_way.end - self._clock()
            if left <= 0:
                return
            if under_way.open():
                self._sleep(min(self._pause, left))

    def _ask(self, under_way: _Exchange) -> None:
        """Send what is due to silos that are online."""
        now = self._clock()
        due = [silo for silo, when in under_way.due.items() if when <= now]
        if not due:
            return
        nodes = self._directory(self._grid)
        for silo in due:
            under_way.due[silo] = now + _LOOK_AGAIN
        here = [silo for silo in due if silo in nodes]
        for silo, message_id in zip(here, self._push(under_way, {s: nodes[s] for s in here}), strict=True):
            if message_id is None:
                continue
            under_way.sent[message_id] = (silo, nodes[silo])
            under_way.asked[silo] += 1
            under_way.due[silo] = now + self._patience
            self._give_up(under_way, silo)

    def _give_up(self, under_way: _Exchange, silo: str) -> None:
        """Plan no further attempt for a silo that has had all of its own."""
        if self._attempts is not None and under_way.asked[silo] >= self._attempts:
            under_way.due.pop(silo, None)

    def _push(self, under_way: _Exchange, nodes: Mapping[str, int]) -> list[str | None]:
        """Send messages; return the id of each, None for one that was not taken."""
        ttl = max(under_way.end - self._clock(), 0.0) + _EXTRA_TTL
        messages = [
            Message(
                content_of(under_way.requests[silo]),
                dst_node_id=node,
                message_type=f"query.{QUERY}",
                group_id=under_way.group,
                ttl=ttl,
            )
            for silo, node in nodes.items()
        ]
        ids: list[str | None] = list(self._grid.push_messages(messages)) if messages else []
        if len(ids) == len(messages):
            return ids
        # Which of them was left out cannot be told: what was taken of these is not waited for.
        return [next(iter(self._grid.push_messages([message])), None) for message in messages]

    def _replies(self, under_way: _Exchange) -> Iterator[tuple[str, bytes]]:
        """Yield what has come; plan another attempt where something failed."""
        if not under_way.sent:
            return
        for reply in self._grid.pull_messages(list(under_way.sent)):
            silo, node = under_way.sent.pop(reply.metadata.reply_to_message_id, ("", 0))
            if silo not in under_way.requests:
                continue
            data = None
            if reply.has_error():
                # An error's text may quote what a silo holds: its number is all that is written down.
                _log.info("silo %s did not answer: Flower's error %d", silo, reply.error.code)
            elif reply.metadata.src_node_id == node:
                data = bytes_of(reply.content)
            if data is None or data == NO_SILO:
                if silo in under_way.due:
                    under_way.due[silo] = self._clock() + _ASK_AGAIN
                continue
            under_way.close(silo)
            yield silo, data


class _Exchange:
    """Who is still to reply.

    Attributes:
        requests: By silo, of those that have not replied.
        due: When a silo is asked next; those that will not be are not in it.
        sent: By id of the message, the silo and its node.
        asked: How often each silo was asked.
    """

    def __init__(self, requests: dict[str, bytes], group: str, end: float) -> None:
        self.requests, self.group, self.end = requests, group, end
        self.due = dict.fromkeys(requests, float("-inf"))
        self.sent: dict[str, tuple[str, int]] = {}
        self.asked: Counter[str] = Counter()

    def open(self) -> bool:
        """Whether anything can still come."""
        return bool(self.due) or any(silo in self.requests for silo, _ in self.sent.values())

    def close(self, silo: str) -> None:
        """Forget a silo that has replied."""
        del self.requests[silo]
        self.due.pop(silo, None)
