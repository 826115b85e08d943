"""Services that listen: whoever only opens connections does not keep them."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator

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
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A service that looks for idle connections all the time, and takes longer to answer."""
    monkeypatch.setattr(services, "_IDLE", 0.05)

    async def slow(_: Request) -> Response:
        await asyncio.sleep(0.5)
        return Response(b"slow")

    app = Starlette(routes=[Route("/slow", slow), Route("/quick", lambda _: Response(b"quick"))])
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none")
    with listening("127.0.0.1", 0) as place, app_running(config, place):
        yield place.getsockname()[1]


@pytest.mark.parametrize("said", [b"", b"G", HEAD[:-2] % b"quick", HEAD % b"quick", HEAD % b"quick" + b"G"])
def test_a_connection_without_a_request_is_ended(said: bytes, port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
        one.sendall(said)
        found = b""
        while part := one.recv(2**12):  # to the end, which comes from the other side
            found += part
    assert (b"quick" in found) is (HEAD % b"quick" in said)


def test_a_request_that_is_answered_is_waited_for(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=20) as one:
        one.sendall(HEAD % b"slow")
        found = b""
        while part := one.recv(2**12):
            found += part
    assert found.endswith(b"slow")
