"""Services that listen: whoever only opens connections does not keep them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import suppress

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.federation.network import services
from tacit.federation.network.services import app_running, listening

HEAD = b"GET /%s HTTP/1.1\r\nhost: x\r\n\r\n"


@pytest.fixture
def port() -> Iterator[int]:
    """A service that takes longer to answer than it looks for idle connections."""

    async def slow(_: Request) -> Response:
        await asyncio.sleep(10 * services._IDLE)
        return Response(b"slow")

    app = Starlette(routes=[Route("/slow", slow), Route("/quick", lambda _: Response(b"quick"))])
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
    with listening("127.0.0.1", 0) as place, app_running(config, place):
        yield place.getsockname()[1]


def heard(said: bytes, port: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[bytes]:
    """What comes until the other side ends the connection; it looks more and more seldom.

    On a busy machine we may have said nothing yet when it looks for the first time.
    """
    for idle in (0.05, 0.5, 5.0):
        monkeypatch.setattr(services, "_IDLE", idle)
        found = b""
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one, suppress(ConnectionError):
            one.sendall(said)
            while part := one.recv(2**12):
                found += part
        yield found


@pytest.mark.parametrize("said", [b"", b"G", HEAD[:-2] % b"quick", HEAD % b"quick", HEAD % b"quick" + b"G"])
def test_a_connection_without_a_request_is_ended(
    said: bytes, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = HEAD % b"quick" in said
    assert any((b"quick" in found) is asked for found in heard(said, port, monkeypatch))


def test_a_request_that_is_answered_is_waited_for(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert any(found.endswith(b"slow") for found in heard(HEAD % b"slow", port, monkeypatch))
