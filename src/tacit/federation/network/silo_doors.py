"""The two doors of a silo's service: it asks the server's hub for work, or a relay on its machine brings it.

The silo dials out in the first case and listens on a Unix socket in the second; never on a network.
"""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import logging
import secrets
import ssl
import stat
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Final, TypeVar

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from tacit.errors import ParameterError
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.polling import HELD, make_poll
from tacit.federation.network.roster import Roster
from tacit.federation.network.services import QuietServer
from tacit.federation.network.silo_service import SiloService
from tacit.federation.network.wire import LONGEST_REQUEST

__all__ = ["hub_client", "poll_hub", "serve_socket", "silo_app"]

_AT_ONCE: Final = 8  # requests of a relay that wait; the service answers one at a time
_PAUSES: Final = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0)
_QUICK: Final = 0.5  # seconds below which a poll that brought nothing was not held
_ENDED: Final = "the server has ended (status 503)"
_LAST: Final = 10.0  # seconds for the last reply of a service that stops
_READ_SECONDS: Final = 120.0
_PRIVATE: Final = 0o750
_LOGGER: Final = logging.getLogger("tacit.silo")
_T = TypeVar("_T")


class _HubError(Exception):
    """The hub does not do its part, in words for the log."""


def hub_client(url: str, trust: ssl.SSLContext) -> httpx.AsyncClient:
    """Return a client of a server's hub.

    Args:
        url: "https://host[:port]".
        trust: Whose certificates are believed: the federation's own authority.
    """
    timeout = httpx.Timeout(10.0, read=HELD + 10.0)
    return httpx.AsyncClient(base_url=url, verify=trust, trust_env=False, timeout=timeout)


async def poll_hub(
    service: SiloService,
    *,
    roster: Roster,
    key: SigningKey,
    client: httpx.AsyncClient,
    stop: asyncio.Event,
    pauses: tuple[float, ...] = _PAUSES,
) -> None:
    """Ask the hub for requests and answer them until `stop` is set.

    Whatever goes wrong on the way is tried again, after pauses that grow: a reply that did not arrive is
    asked for again, and comes from what is stored.

    Args:
        service: Who answers.
        roster: Of the federation.
        key: The silo's.
        client: As `hub_client` makes it.
        stop: Set by whoever ends the service; a request that is being answered is finished.
        pauses: Seconds between attempts; the last one from then on.
    """

    def poll() -> bytes:
        return make_poll(key, federation=roster.federation, name=service.name, now=dt.datetime.now(dt.UTC))

    failed, away = 0, ""
    while not stop.is_set():
        began = time.monotonic()
        try:
            found = await _unless(stop, _polled(client, poll()))
            if found is not None:
                data, number = found
                reply = await asyncio.to_thread(service.handle, data)
                await asyncio.wait_for(_replied(client, reply, number=number, poll=poll()), HELD + _LAST)
            elif time.monotonic() - began < _QUICK:  # or a hub that holds nothing would keep both busy
                await _unless(stop, asyncio.sleep(_QUICK))
            if away:
                _LOGGER.info("reached", extra={"facts": {"server": str(client.base_url)}})
            failed, away = 0, ""
        except (httpx.HTTPError, ssl.SSLError, OSError, TimeoutError, _HubError) as error:
            why = str(error) if isinstance(error, _HubError) else f"{type(error).__name__}: {error}"
            if away == _ENDED and isinstance(error, httpx.ConnectError):
                why = _ENDED  # as it said: nobody needs to be warned
            if why != away:  # once, not at every attempt
                facts = {"server": str(client.base_url), "why": why}
                if why == _ENDED:
                    _LOGGER.info("waiting", extra={"facts": facts})
                else:
                    _LOGGER.warning("unreachable", extra={"facts": facts})
            away = why
            pause = pauses[min(failed, len(pauses) - 1)]
            failed += 1
            # All silos of a server that comes back must not come in the same moment.
            await _unless(stop, asyncio.sleep(pause * (0.5 + secrets.randbelow(1000) / 1000)))


async def _polled(client: httpx.AsyncClient, poll: bytes) -> tuple[bytes, str] | None:
    """Return a request and how the hub calls it; None if there is none."""
    async with client.stream("POST", "/v1/poll", content=poll) as reply:
        if reply.status_code == httpx.codes.NO_CONTENT:
            return None
        if reply.status_code != httpx.codes.OK:
            raise _refusal(reply)
        data = bytearray()
        async for part in reply.aiter_bytes():
            data += part
            if len(data) > LONGEST_REQUEST:
                raise _HubError(f"a request has at most {LONGEST_REQUEST:,} bytes")
        return bytes(data), reply.headers.get("tacit-request", "")


async def _replied(client: httpx.AsyncClient, data: bytes, *, number: str, poll: bytes) -> None:
    """Bring a reply to the hub."""
    headers = {"tacit-request": number, "tacit-poll": base64.b64encode(poll).decode()}
    reply = await client.post("/v1/reply", content=data, headers=headers)
    if reply.status_code not in (httpx.codes.NO_CONTENT, httpx.codes.GONE):
        raise _refusal(reply)


def _refusal(reply: httpx.Response) -> _HubError:
    """Return what a status means to a silo."""
    if reply.status_code == httpx.codes.SERVICE_UNAVAILABLE:
        return _HubError(_ENDED)
    if reply.status_code == httpx.codes.UNAUTHORIZED:
        return _HubError(
            "the server does not know this silo's key or clock, or has it revoked or expired (status 401)"
        )
    return _HubError(f"status {reply.status_code}")


async def _unless(stop: asyncio.Event, work: Awaitable[_T]) -> _T | None:
    """Return what some work returns; None, with the work ended, if `stop` is set first."""
    doing, stopped = asyncio.ensure_future(work), asyncio.ensure_future(stop.wait())
    try:
        await asyncio.wait({doing, stopped}, return_when=asyncio.FIRST_COMPLETED)
        return doing.result() if doing.done() else None
    finally:
        stopped.cancel()
        if not doing.done():
            doing.cancel()
        await asyncio.gather(doing, stopped, return_exceptions=True)


def silo_app(service: SiloService, *, longest: int = LONGEST_REQUEST) -> Starlette:
    """Return the app for a relay: POST /v1/request takes a request and returns the reply.

    | request | answer |
    |---|---|
    | POST /v1/request, the bytes | 200, the reply; 413 for too many; 503 while many others wait |
    | GET /v1/health | 200, the name of the silo |

    Args:
        service: Who answers.
        longest: Bytes of a request.
    """
    waiting = asyncio.Semaphore(_AT_ONCE)

    async def answer(request: Request) -> Response:
        if waiting.locked():
            return Response(status_code=503)
        async with waiting:
            try:
                async with asyncio.timeout(_READ_SECONDS):
                    data = await _body(request, longest)
            except ClientDisconnect:
                return Response(status_code=400)
            except TimeoutError:
                return Response(status_code=408)
            if data is None:
                return Response(status_code=413)
            reply = await asyncio.to_thread(service.handle, data)
        return Response(reply, media_type="application/octet-stream")

    async def health(_request: Request) -> Response:
        return JSONResponse({"name": service.name})

    return Starlette(
        routes=[
            Route("/v1/request", answer, methods=["POST"]),
            Route("/v1/health", health, methods=["GET"]),
        ]
    )


async def _body(request: Request, longest: int) -> bytes | None:
    """Return the body, read as it comes and never beyond its bound; None for a longer one."""
    data = bytearray()
    async for part in request.stream():
        data += part
        if len(data) > longest:
            return None
    return bytes(data)


async def serve_socket(service: SiloService, socket: Path, *, stop: asyncio.Event) -> None:
    """Serve a Unix socket until `stop` is set; requests that are being answered are finished.

    Args:
        service: Who answers.
        socket: Where; its folder is made for owner and group only, who may then write to the socket.
        stop: Set by whoever ends the service.

    Raises:
        ParameterError: Everybody may enter the folder, or something else is in the way of the socket.
    """
    _make_room(socket)
    config = uvicorn.Config(
        silo_app(service),
        uds=str(socket),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        timeout_graceful_shutdown=int(_LAST),
    )
    server = QuietServer(config)
    serving = asyncio.ensure_future(server.serve())
    try:
        await _unless(stop, asyncio.shield(serving))
    finally:
        server.should_exit = True
        await asyncio.gather(serving, return_exceptions=False)
        socket.unlink(missing_ok=True)


def _make_room(socket: Path) -> None:
    """Make the folder of a socket; take away a socket that a killed process has left."""
    folder = socket.parent
    try:
        if not folder.exists():
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(_PRIVATE)
        if folder.stat().st_mode & 0o007:
            # The socket itself is open to all, as uvicorn makes it: who may enter the folder may ask.
            raise ParameterError(
                f"everybody may enter {folder}, the folder of the socket: `chmod 750 {folder}`."
            )
        if socket.exists():
            if not stat.S_ISSOCK(socket.stat().st_mode):
                raise ParameterError(f"socket must be the name of a socket, and {socket} is a file.")
            socket.unlink()
    except OSError as error:
        raise ParameterError(f"the socket {socket} cannot be made: {error.strerror}.") from error
