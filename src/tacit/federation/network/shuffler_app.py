"""The shuffler on the network: an ASGI app around `Shuffling`, to be run in one process behind TLS.

| request | by whom | body | answer |
|---|---|---|---|
| POST /runs | server | `RunOrder` | 200 |
| POST /rounds | server | `RoundOrder` | 200, the signed descriptor |
| GET /rounds/ID/batch?wait=S | server | - | 200, the `SealedBatch` |
| POST /rounds/ID/parcel | silo | its parcel | 200 |
| POST /rounds/ID/parcels | anybody | parcels that silos have signed (`packed`) | 200, how many counted |
| GET /health, /metrics | anybody | - | 200, counts of all parties together |

What the shuffler refuses is a `Refusal` as JSON, with the status of its fault. Signatures travel in the
header "tacit-signature" as base64, the name of a silo in "tacit-silo", percent-encoded, the SHA-256 of its
parcel in "tacit-digest". Bodies are read as they come and never beyond what they may be; of a parcel, length
and sender are known before. Nothing is logged of a request, and no answer tells a time: who runs the app must
switch access logs off (`shuffler_config` does).
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import logging
import re
import sqlite3
import struct
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import unquote

import msgspec
import uvicorn
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.federation.network.faults import Fault, Refusal, RoundError
from tacit.federation.network.keys import SIGNATURE_BYTES
from tacit.federation.network.shuffling import LONGEST_ORDER, Shuffling

__all__ = ["MOST_PACKED_BYTES", "MOST_UNKNOWN_BYTES", "packed", "shuffler_app", "shuffler_config"]

MOST_PACKED_BYTES: Final = 2**24
"""Bytes of many parcels in one request."""

MOST_UNKNOWN_BYTES: Final = 2**27
"""Bytes that are held at one time of bodies of which nobody knows yet who sent them."""

_STATUS: Final = {
    Fault.UNKNOWN: 401,
    Fault.NO_ROUND: 404,
    Fault.LENGTH: 422,
    Fault.QUOTA: 429,
    Fault.LATE: 409,
    Fault.WAITING: 425,
    Fault.GIVEN_UP: 425,
    Fault.CONFLICT: 409,
    Fault.FORM: 422,
}
_HEAD: Final = struct.Struct(f">HI{SIGNATURE_BYTES}s")  # bytes of the name, bytes of the parcel, signature
_LONGEST_NAME: Final = 800  # bytes
_LONGEST_WAIT: Final = 30.0
_LOOK_SECONDS: Final = 0.01
_SETTLE_SECONDS: Final = 1.0
_DIGEST: Final = re.compile("[0-9a-f]{64}")
_LARGE: Final = 2**18  # bytes of a parcel whose digest takes longer than to go to another thread
_AT_ONCE: Final = 64  # parcels, of which each takes the time of a signature
_READ_SECONDS: Final = 120.0

_LOGGER: Final = logging.getLogger("tacit.shuffler")
_Handler = Callable[[Request], Awaitable[Response]]


class _TooLongError(Exception):
    """A body that is longer than it may be, or comes too slowly."""


class _FullError(Exception):
    """Too many others send at this moment."""


class _Room:
    """Room for bodies of which nobody knows yet who sent them: many must not fill the memory, either."""

    def __init__(self) -> None:
        self._held = 0

    @contextlib.asynccontextmanager
    async def read(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """Read a body as it comes; it counts for as long as the block runs."""
        mine = 0

        def count(octets: int) -> None:
            nonlocal mine
            if self._held + octets > MOST_UNKNOWN_BYTES:
                raise _FullError
            mine += octets
            self._held += octets

        try:
            yield bytes(await _read(request, most, count=count))
        finally:
            self._held -= mine


def shuffler_app(shuffling: Shuffling) -> Starlette:
    """Return the app of a shuffler; whoever runs it closes the shuffler afterwards."""
    app = _App(shuffling)
    routes = [
        Route("/runs", _answered(app.open_run), methods=["POST"]),
        Route("/rounds", _answered(app.open_round), methods=["POST"]),
        Route("/rounds/{id}/batch", _answered(app.batch), methods=["GET"]),
        Route("/rounds/{id}/parcel", _answered(app.parcel), methods=["POST"]),
        Route("/rounds/{id}/parcels", _answered(app.parcels), methods=["POST"]),
        Route("/health", _answered(app.health), methods=["GET"]),
        Route("/metrics", _answered(app.metrics), methods=["GET"]),
    ]
    return Starlette(routes=routes, lifespan=app.lifespan)


def shuffler_config(
    shuffling: Shuffling, *, host: str, port: int, certificate: str | None = None, key: str | None = None
) -> uvicorn.Config:
    """Return how the app is run: one worker, no access log, no date in answers.

    Args:
        shuffling: The shuffler.
        host: To listen at.
        port: Likewise.
        certificate: File of the chain of certificates; None where a proxy does TLS on this machine.
        key: File of its private key.
    """
    return uvicorn.Config(
        shuffler_app(shuffling),
        host=host,
        port=port,
        ssl_certfile=certificate,
        ssl_keyfile=key,
        workers=1,
        ws="none",
        access_log=False,
        date_header=False,
        server_header=False,
        proxy_headers=False,
        log_level="warning",
        timeout_keep_alive=60,
        timeout_graceful_shutdown=10,
    )


def packed(parcels: Iterable[tuple[str, bytes, bytes]]) -> bytes:
    """Return many parcels as one body, for a relay of many small clients.

    Args:
        parcels: Name of the silo, its signature about the upload, and its parcel.
    """
    parts: list[bytes] = []
    for silo, signature, parcel in parcels:
        name = silo.encode()
        parts += [_HEAD.pack(len(name), len(parcel), signature), name, parcel]
    return b"".join(parts)


class _App:
    """The handlers."""

    def __init__(self, shuffling: Shuffling) -> None:
        self._shuffling, self._metrics = shuffling, CollectorRegistry(auto_describe=False)
        self._metrics.register(_Counts(shuffling))
        self._room = _Room()

    @contextlib.asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Settle rounds that nobody asks for, while the app runs."""

        async def settle() -> None:
            while True:
                await asyncio.sleep(_SETTLE_SECONDS)
                with contextlib.suppress(sqlite3.OperationalError):  # such as a full disk, which may end
                    await run_in_threadpool(self._shuffling.settle)

        task = asyncio.create_task(settle())
        try:
            yield
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    async def open_run(self, request: Request) -> Response:
        """Open a run."""
        async with self._room.read(request, LONGEST_ORDER) as order:
            await run_in_threadpool(self._shuffling.open_run, order, _signature(request))
        return Response()

    async def open_round(self, request: Request) -> Response:
        """Open a round."""
        async with self._room.read(request, LONGEST_ORDER) as order:
            return _bytes(await run_in_threadpool(self._shuffling.open_round, order, _signature(request)))

    async def batch(self, request: Request) -> Response:
        """Hand a batch over, once it is there."""
        round_id, signature = request.path_params["id"], _signature(request)
        until = time.monotonic() + _seconds(request.query_params.get("wait", "0"))
        while True:
            try:
                return _bytes(await run_in_threadpool(self._shuffling.batch, round_id, signature))
            except RoundError as error:
                if error.fault is not Fault.WAITING or time.monotonic() >= until:
                    raise
            while not self._shuffling.is_over(round_id) and time.monotonic() < until:
                await asyncio.sleep(_LOOK_SECONDS)

    async def parcel(self, request: Request) -> Response:
        """Take a parcel."""
        round_id, silo, signature = request.path_params["id"], _silo(request), _signature(request)
        digest = request.headers.get("tacit-digest", "")
        said = bytes.fromhex(digest) if _DIGEST.fullmatch(digest) else b""
        length = self._shuffling.parcel_bytes(round_id, silo, said, signature)
        try:
            parcel = await _read(request, length)
        except _TooLongError:
            self._shuffling.tally.refused[Fault.LENGTH] += 1
            raise RoundError(Fault.LENGTH, f"the parcel must have {length} bytes.") from None
        if length > _LARGE:
            await run_in_threadpool(self._shuffling.take, round_id, silo, parcel, signature)
        else:
            self._shuffling.take(round_id, silo, parcel, signature)
        return Response()

    async def parcels(self, request: Request) -> Response:
        """Take parcels of many silos that somebody has gathered; each proves itself."""
        async with self._room.read(request, MOST_PACKED_BYTES) as body:
            return await self._taken(request.path_params["id"], memoryview(body))

    async def _taken(self, round_id: str, body: memoryview) -> Response:
        """Take packed parcels one by one."""
        taken, refused = 0, dict.fromkeys(Fault, 0)
        at = seen = 0
        while at < len(body):
            silo, signature, end = _unpacked(body, at)
            try:
                self._shuffling.take(round_id, silo, bytearray(body[end[0] : end[1]]), signature)
                taken += 1
            except RoundError as error:
                if error.fault is Fault.NO_ROUND:
                    raise
                refused[error.fault] += 1
            at, seen = end[1], seen + 1
            if seen % _AT_ONCE == 0:
                await asyncio.sleep(0)  # others have their turn
        return _json({"taken": taken, "refused": {fault: n for fault, n in refused.items() if n}})

    async def health(self, _: Request) -> Response:
        """Say that the process lives, and its memory can be read."""
        return _json({"status": "ok", "waiting": self._shuffling.waiting})

    async def metrics(self, _: Request) -> Response:
        """Say what was counted, for Prometheus."""
        return Response(generate_latest(self._metrics), media_type="text/plain; version=0.0.4; charset=utf-8")


class _Counts(Collector):
    """What is counted: never by party."""

    def __init__(self, shuffling: Shuffling) -> None:
        self._shuffling = shuffling

    def collect(self) -> Iterable[Metric]:
        """Return all counts."""
        tally = self._shuffling.tally
        waiting = GaugeMetricFamily("tacit_shuffler_rounds_waiting", "Rounds that wait for parcels.")
        waiting.add_metric([], self._shuffling.waiting)
        yield waiting
        for name, what, count in (
            ("runs", "Runs that were opened.", tally.runs),
            ("rounds_opened", "Rounds that were opened.", tally.opened),
            ("rounds_released", "Rounds whose batch was made.", tally.released),
            ("rounds_given_up", "Rounds of too few parties.", tally.given_up),
            ("parcels", "Parcels that count.", tally.parcels),
            ("parcels_repeated", "Parcels that came again.", tally.repeated),
            ("messages", "Sealed messages in parcels that count.", tally.messages),
        ):
            yield CounterMetricFamily(f"tacit_shuffler_{name}", what, value=count)
        refused = CounterMetricFamily("tacit_shuffler_refused", "What was refused.", labels=["fault"])
        for fault, count in tally.refused.items():
            refused.add_metric([fault.value], count)
        yield refused


def _answered(handler: _Handler) -> _Handler:
    """Return a handler that says why it refuses."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except RoundError as error:
            refusal = Refusal(fault=error.fault, message=str(error), report=error.report)
            return _json(refusal, status=_STATUS[error.fault])
        except _TooLongError:
            refusal = Refusal(fault=Fault.FORM, message="the body is longer than it may be, or too slow.")
            return _json(refusal, status=413)
        except _FullError:
            return Response(status_code=503, headers={"connection": "close"})
        except sqlite3.OperationalError as error:  # such as a full disk: whoever asked tries again
            _LOGGER.error("the shuffler cannot keep what it is told: %s", error)
            return Response(status_code=503, headers={"connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)

    return answer


async def _read(request: Request, most: int, *, count: Callable[[int], None] = lambda _: None) -> bytearray:
    """Return a body of at most so many bytes; of a longer one, no more is held.

    Args:
        request: Whose body.
        most: Bytes.
        count: Called with the bytes of each part, before it is held.
    """
    said = request.headers.get("content-length")
    if said is not None and (not said.isdecimal() or len(said) > len(str(most)) or int(said) > most):
        raise _TooLongError
    body = bytearray()
    try:
        async with asyncio.timeout(_READ_SECONDS):
            async for part in request.stream():
                if len(body) + len(part) > most:
                    raise _TooLongError
                count(len(part))
                body += part
    except TimeoutError:
        raise _TooLongError from None
    return body


def _unpacked(body: memoryview, at: int) -> tuple[str, bytes, tuple[int, int]]:
    """Return the name and the signature of a packed parcel, and where it lies."""
    try:
        name_bytes, parcel_bytes, signature = _HEAD.unpack_from(body, at)
        start = at + _HEAD.size + name_bytes
        silo = str(body[at + _HEAD.size : start], "utf-8")
    except (struct.error, UnicodeDecodeError):
        raise RoundError(Fault.FORM, "the packed parcels cannot be read.") from None
    if start + parcel_bytes > len(body):
        raise RoundError(Fault.FORM, "the packed parcels are cut off.")
    return silo, signature, (start, start + parcel_bytes)


def _signature(request: Request) -> bytes:
    """Return the signature of a request; one that cannot be read is nobody's."""
    try:
        return base64.b64decode(request.headers.get("tacit-signature", ""), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _silo(request: Request) -> str:
    """Return the name of the silo that a request says it is by."""
    name = request.headers.get("tacit-silo", "")
    return unquote(name) if len(name) <= 3 * _LONGEST_NAME else ""


def _seconds(text: str) -> float:
    """Return how long to wait for a batch."""
    try:
        seconds = float(text)
    except ValueError:
        return 0.0
    return min(seconds, _LONGEST_WAIT) if seconds > 0 else 0.0  # stated as what is allowed: NaN fails it


def _bytes(content: bytes) -> Response:
    return Response(content, media_type="application/octet-stream")


def _json(content: Any, *, status: int = 200) -> Response:
    return Response(msgspec.json.encode(content), status_code=status, media_type="application/json")
