"""Clients of apps in this process, for code that is not asynchronous."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from threading import Thread
from typing import Any, TypeVar, cast

import httpx

_Result = TypeVar("_Result")


class OverAsgi(httpx.BaseTransport):
    """Runs an app in a loop of its own thread, so that requests can wait while others come in.

    Args:
        app: The app.
    """

    def __init__(self, app: Any) -> None:
        self._inner = httpx.ASGITransport(app)
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request, and wait for the whole answer."""

        async def send() -> tuple[int, list[tuple[bytes, bytes]], bytes]:
            async def parts() -> AsyncIterator[bytes]:  # no more of them than the app reads
                for part in cast("httpx.SyncByteStream", request.stream):
                    yield part

            anew = httpx.Request(request.method, request.url, headers=request.headers, content=parts())
            anew.extensions = request.extensions
            reply = await self._inner.handle_async_request(anew)
            return reply.status_code, reply.headers.raw, await reply.aread()

        status, headers, content = self._run(send())
        return httpx.Response(status, headers=headers, content=content, request=request)

    def close(self) -> None:
        """Stop the loop."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, _Result]) -> _Result:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)


def client_of(app: Any) -> httpx.Client:
    """Return a client of an app."""
    return httpx.Client(transport=OverAsgi(app), base_url="https://app")
