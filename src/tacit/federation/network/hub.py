"""The server's door for silos: they dial out, ask for work, and bring replies; nobody dials in to them.

| request | by whom | body | answer |
|---|---|---|---|
| POST /v1/poll | silo | a poll (`make_poll`) | 200, a request, its number in "tacit-request"; 204, none |
| POST /v1/reply | silo | a reply | 204, taken; 410, nobody waits for it any more |
| GET /health, /status, /status.json, /metrics | anybody | - | 200, public facts |

A reply has the headers "tacit-request", which it belongs to, and "tacit-poll", a fresh poll as base64: nobody
but the silo itself can take its place. Who is refused gets 401 without a reason, a body beyond its bound 413.
Polls are held for a while, so a request is on its way as soon as there is one. A silo that polls again while
it has not replied gets the same request again. Bodies are read as they come, and only of silos whose keys
count; a reply that nobody waits for is not read at all.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import datetime as dt
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from tacit.errors import AuthenticationError
from tacit.federation.network.polling import HELD, LONGEST_POLL, Polls
from tacit.federation.network.roster import Roster
from tacit.federation.network.services import app_running, listening, tls_of
from tacit.federation.network.wire import LONGEST_REPLY

__all__ = ["Hub", "serving"]

_HERE: Final = 3.0
"""Seconds for which a silo that neither polls nor works counts as present."""

_READ_SECONDS: Final = 120.0
_BYTES: Final = "application/octet-stream"


class _TooLongError(Exception):
    """A body that is longer than it may be."""


class Hub:
    """Requests of a server's rounds on one side, polls of silos on the other; a `Channel`.

    Args:
        roster: Who may come.
        clock: Returns the time, with its zone.
        held: Seconds for which a poll is held.
        longest: Bytes of a reply.
        routes: More pages.
    """

    def __init__(
        self,
        roster: Roster,
        *,
        clock: Callable[[], dt.datetime] = lambda: dt.datetime.now(dt.UTC),
        held: float = HELD,
        longest: int = LONGEST_REPLY,
        routes: tuple[BaseRoute, ...] = (),
    ) -> None:
        self._polls, self._clock, self._held, self._longest = Polls(roster), clock, held, longest
        self._lock = threading.Lock()
        self._requests: dict[str, tuple[str, bytes]] = {}
        self._waiting: dict[str, tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = {}
        self._seen: dict[str, float] = {}
        self._came: SimpleQueue[tuple[str, bytes]] = SimpleQueue()
        self._ending = False
        self.refused = 0
        self.app = Starlette(
            routes=[
                Route("/v1/poll", _guarded(self._poll), methods=["POST"]),
                Route("/v1/reply", _guarded(self._reply), methods=["POST"]),
                *routes,
            ]
        )

    def present(self) -> set[str]:
        """Return the names of the silos that wait for work, or have been here a moment ago."""
        now = time.monotonic()
        with self._lock:
            return {name for name, at in self._seen.items() if name in self._waiting or now - at < _HERE}

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        """Leave requests for silos to fetch; yield names and replies as they come."""
        until, came = time.monotonic() + deadline, SimpleQueue[tuple[str, bytes]]()
        with self._lock:
            self._came = came
            self._requests = {name: (_number(data), data) for name, data in requests.items()}
            for name in requests:
                self._wake(name)
        try:
            for _ in requests:
                yield came.get(timeout=max(0.0, until - time.monotonic()))
        except Empty:
            return
        finally:
            with self._lock:
                self._requests = {}

    def end(self) -> None:
        """Let go of all polls that are held, so that whoever serves the app can end."""
        with self._lock:
            self._ending = True
            for name in list(self._waiting):
                self._wake(name)

    def _wake(self, name: str) -> None:
        """End the poll that is held for a silo; the lock is taken."""
        loop, future = self._waiting.pop(name, (None, None))
        if loop is not None and future is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(_settle, future)

    async def _poll(self, request: Request) -> Response:
        """Hand out the request for a silo, as soon as there is one."""
        async with asyncio.timeout(_READ_SECONDS):
            name = self._named(await _body(request, LONGEST_POLL))
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        with self._lock:
            self._wake(name)  # a silo has one poll; the one before it may belong to a connection that is gone
            found = self._requests.get(name)
            if found is None and not self._ending:
                self._waiting[name] = (loop, future)
        if found is None and not self._ending:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(future, self._held)
        with self._lock:
            if self._waiting.get(name) == (loop, future):
                del self._waiting[name]
            self._seen[name] = time.monotonic()
            found = self._requests.get(name)
        if self._ending:
            return Response(status_code=503)
        if found is None:
            return Response(status_code=204)
        number, data = found
        return Response(data, media_type=_BYTES, headers={"tacit-request": number})

    async def _reply(self, request: Request) -> Response:
        """Take the reply of a silo, once."""
        try:
            poll = base64.b64decode(request.headers.get("tacit-poll", ""), validate=True)
        except (binascii.Error, ValueError):
            raise AuthenticationError("a reply comes with a poll.") from None
        name, number = self._named(poll), request.headers.get("tacit-request", "")
        if not self._waits(name, number):
            return Response(status_code=410)
        async with asyncio.timeout(_READ_SECONDS):
            data = await _body(request, self._longest)
        with self._lock:
            if self._requests.get(name, ("", b""))[0] != number:
                return Response(status_code=410)
            del self._requests[name]
            self._came.put((name, data))
        return Response(status_code=204)

    def _named(self, poll: bytes) -> str:
        """Return who polls."""
        try:
            name = self._polls.open(poll, now=self._clock())
        except AuthenticationError:
            self.refused += 1
            raise
        with self._lock:
            self._seen[name] = time.monotonic()
        return name

    def _waits(self, name: str, number: str) -> bool:
        """Whether a reply to this request is waited for."""
        with self._lock:
            return self._requests.get(name, ("", b""))[0] == number and number != ""


@contextlib.contextmanager
def serving(
    hub: Hub,
    *,
    host: str,
    port: int,
    certificate: Path | str | None = None,
    key: Path | str | None = None,
) -> Iterator[str]:
    """Serve a hub in a thread of this process, until the block ends.

    Args:
        hub: Of the server.
        host: To listen at.
        port: Likewise; 0 takes a free one.
        certificate: File of the chain of certificates; None where a proxy does TLS on this machine.
        key: File of its private key.

    Yields:
        The address, "https://host:port".

    Raises:
        TacitError: Nobody can listen there.
        ParameterError: The certificate or its key cannot be read.
        AuthenticationError: The key is another one's or readable by others.
    """
    config = uvicorn.Config(
        hub.app,
        log_config=None,
        access_log=False,
        date_header=False,
        server_header=False,
        proxy_headers=False,
        lifespan="off",
        ws="none",
        timeout_keep_alive=60,
        timeout_graceful_shutdown=1,
        log_level="critical",
    )
    if certificate is not None and key is not None:
        tls_of(config, certificate, key)
    with listening(host, port) as place, app_running(config, place):
        try:
            yield f"{'https' if config.ssl else 'http'}://{host}:{place.getsockname()[1]}"
        finally:
            hub.end()


def _guarded(handler: Callable[[Request], Awaitable[Response]]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that answers what goes wrong with a status and nothing else."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except AuthenticationError:
            return Response(status_code=401)
        except _TooLongError:
            return Response(status_code=413, headers={"connection": "close"})
        except TimeoutError:
            return Response(status_code=408, headers={"connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)

    return answer


async def _body(request: Request, longest: int) -> bytes:
    """Return a body, read as it comes and never beyond its bound."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > longest:
            raise _TooLongError
    return bytes(data)


def _number(data: bytes) -> str:
    """Return how a request is called."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def _settle(future: asyncio.Future[Any]) -> None:
    if not future.done():
        future.set_result(None)
