"""How requests reach silos: bytes out by name, bytes back. What they say is no matter of a channel."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from queue import Empty, SimpleQueue
from threading import Event
from typing import Final, Protocol

__all__ = ["Channel", "LocalChannel"]

_AT_ONCE: Final = 32
_PAUSE: Final = 0.005


class Channel(Protocol):
    """Carries opaque requests to named silos, and their replies back."""

    def present(self) -> set[str]:
        """Return the names of the silos that can be reached now."""
        ...

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        """Send one request to each of several silos; yield names and replies as they come.

        Ends when all have replied, or after `deadline` seconds. A silo that comes back meanwhile gets its
        request again: what it stored makes that free. Replies to earlier requests are dropped. Whether a
        reply is one, and the silo's own, is for the caller to find out.
        """
        ...


class LocalChannel:
    """Silos of this process, all asked at once.

    Args:
        handlers: What takes the requests of each silo, by name, in a thread of its own. One that raises
            ConnectionError is away for the moment, and asked again until the deadline.
    """

    def __init__(self, handlers: Mapping[str, Callable[[bytes], bytes]]) -> None:
        self._handlers = dict(handlers)
        self._pool = ThreadPoolExecutor(max(1, min(len(handlers), _AT_ONCE)), "silo")

    def close(self) -> None:
        """Wait for the silos that are at work, and end their threads."""
        self._pool.shutdown(cancel_futures=True)

    def present(self) -> set[str]:
        """Return all names: who is away is found out by asking."""
        return set(self._handlers)

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        """Send requests, and yield replies; an error of a handler is raised here."""
        until, over = time.monotonic() + deadline, Event()
        came: SimpleQueue[tuple[str, bytes | Exception]] = SimpleQueue()

        def ask(name: str, request: bytes) -> None:
            while not over.is_set():
                try:
                    came.put((name, self._handlers[name](request)))
                except ConnectionError:
                    over.wait(_PAUSE)
                except Exception as error:  # noqa: BLE001 - raised where somebody sees it
                    came.put((name, error))
                    return
                else:
                    return

        for name, request in requests.items():
            self._pool.submit(ask, name, request)
        try:
            for _ in requests:
                name, reply = came.get(timeout=max(0.0, until - time.monotonic()))
                if isinstance(reply, Exception):
                    raise reply
                yield name, reply
        except Empty:
            return
        finally:
            over.set()
