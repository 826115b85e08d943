"""The server's door for silos: a request is handed out until it is answered, to who proves who he is."""

from __future__ import annotations

import asyncio
import base64
import datetime as dt
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any

import httpx
import pytest

from tacit.errors import TacitError
from tacit.federation.network.hub import Hub, serving
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.polling import LONGEST_POLL, STALE, make_poll
from tests.federation.network.parties import NOW, Parties, parties


def poll_of(
    known: Parties, name: str = "silo-1", *, key: SigningKey | None = None, now: dt.datetime = NOW
) -> bytes:
    return make_poll(key or known.silos[name], federation="lab", name=name, now=now)


def hub_of(known: Parties, **fields: Any) -> Hub:
    return Hub(known.roster, clock=lambda: NOW, **{"held": 0.2, **fields})


@asynccontextmanager
async def visiting(hub: Hub) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(hub.app), base_url="http://hub") as client:
        yield client


async def polled(client: httpx.AsyncClient, known: Parties, name: str = "silo-1") -> httpx.Response:
    return await client.post("/v1/poll", content=poll_of(known, name))


async def handed(client: httpx.AsyncClient, known: Parties) -> str:
    """The number of the request that a silo is handed out, as soon as there is one."""
    while (found := await polled(client, known)).status_code == 204:
        pass
    return found.headers["tacit-request"]


async def replied(
    client: httpx.AsyncClient, known: Parties, number: str, data: bytes, name: str = "silo-1"
) -> int:
    headers = {"tacit-request": number, "tacit-poll": base64.b64encode(poll_of(known, name)).decode()}
    return (await client.post("/v1/reply", content=data, headers=headers)).status_code


def exchanged(hub: Hub, requests: dict[str, bytes]) -> Coroutine[Any, Any, dict[str, bytes]]:
    return asyncio.to_thread(lambda: dict(hub.exchange(requests, deadline=60)))


@pytest.fixture
def deadline(monkeypatch: pytest.MonkeyPatch) -> Event:
    """Set when the deadline of rounds is to pass."""
    passed = Event()

    class Queue(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            while not passed.is_set():
                with suppress(Empty):
                    return super().get(timeout=0.001)
            raise Empty

    monkeypatch.setattr("tacit.federation.network.hub.SimpleQueue", Queue)
    return passed


def visit(hub: Hub, work: Callable[[httpx.AsyncClient], Coroutine[Any, Any, None]]) -> None:
    async def go() -> None:
        async with visiting(hub) as client:
            await work(client)

    asyncio.run(go())


def test_a_request_is_handed_out_until_its_reply_is_taken_once() -> None:
    known = parties()
    hub = hub_of(known, held=60.0)

    async def work(client: httpx.AsyncClient) -> None:
        held = asyncio.ensure_future(polled(client, known))
        while not hub.present():
            await asyncio.sleep(0)
        assert hub.present() == {"silo-1"}
        round_ = asyncio.ensure_future(exchanged(hub, {"silo-1": b"one", "silo-2": b"two"}))
        first = await held
        assert (first.status_code, first.content) == (200, b"one")
        hub._held = 0.01
        again = await polled(client, known)  # it had died before it could answer
        assert (again.content, again.headers["tacit-request"]) == (b"one", first.headers["tacit-request"])
        number = first.headers["tacit-request"]
        assert await replied(client, known, number, b"not mine", "silo-2") == 410
        assert await replied(client, known, number, b"ONE") == 204
        assert await replied(client, known, number, b"ONE") == 410
        assert (await polled(client, known)).status_code == 204
        other = await polled(client, known, "silo-2")
        assert await replied(client, known, other.headers["tacit-request"], b"TWO", "silo-2") == 204
        assert await round_ == {"silo-1": b"ONE", "silo-2": b"TWO"}
        assert (await polled(client, known, "silo-2")).status_code == 204

    visit(hub, work)


def test_after_the_deadline_nothing_is_handed_out_and_late_replies_are_dropped(deadline: Event) -> None:
    known = parties()
    hub = hub_of(known)

    async def work(client: httpx.AsyncClient) -> None:
        round_ = asyncio.ensure_future(exchanged(hub, {"silo-1": b"one"}))
        number = await handed(client, known)
        deadline.set()
        assert await round_ == {}
        deadline.clear()
        assert await replied(client, known, number, b"ONE") == 410
        assert (await polled(client, known)).status_code == 204
        later = asyncio.ensure_future(exchanged(hub, {"silo-1": b"next"}))
        new = await handed(client, known)
        assert await replied(client, known, number, b"ONE") == 410
        assert await replied(client, known, new, b"NEXT") == 204
        assert await later == {"silo-1": b"NEXT"}

    visit(hub, work)


def test_a_reply_that_was_on_its_way_as_its_round_ended_is_not_taken_for_the_next(deadline: Event) -> None:
    known = parties()
    hub = hub_of(known)

    async def work(client: httpx.AsyncClient) -> None:
        begun, rest = asyncio.Event(), asyncio.Event()

        async def slow() -> AsyncIterator[bytes]:
            yield b"O"
            begun.set()
            await rest.wait()
            yield b"NE"

        round_ = asyncio.ensure_future(exchanged(hub, {"silo-1": b"one"}))
        number = await handed(client, known)
        headers = {"tacit-request": number, "tacit-poll": base64.b64encode(poll_of(known)).decode()}
        late = asyncio.ensure_future(client.post("/v1/reply", content=slow(), headers=headers))
        await begun.wait()
        deadline.set()
        assert await round_ == {}
        deadline.clear()
        later = asyncio.ensure_future(exchanged(hub, {"silo-1": b"next"}))
        new = await handed(client, known)
        rest.set()
        assert (await late).status_code == 410
        assert await replied(client, known, new, b"NEXT") == 204
        assert await later == {"silo-1": b"NEXT"}

    visit(hub, work)


def test_a_second_poll_ends_the_first() -> None:
    known = parties()
    hub = hub_of(known, held=60.0)

    async def work(client: httpx.AsyncClient) -> None:
        first = asyncio.ensure_future(polled(client, known))
        while not hub.present():
            await asyncio.sleep(0)
        second = asyncio.ensure_future(polled(client, known))
        assert (await first).status_code == 204
        round_ = asyncio.ensure_future(exchanged(hub, {"silo-1": b"one"}))
        found = await second
        assert found.content == b"one"
        assert await replied(client, known, found.headers["tacit-request"], b"ONE") == 204
        assert await round_ == {"silo-1": b"ONE"}

    visit(hub, work)


def test_whoever_is_not_a_silo_of_the_roster_gets_nothing() -> None:
    known = parties()
    revoked = known.with_silo("silo-3", revoked=True)
    expired = known.with_silo("silo-4", expires=NOW.date() - dt.timedelta(days=1))
    hub = hub_of(revoked)
    twice, stale = poll_of(known), NOW - dt.timedelta(seconds=STALE + 1)

    async def work(client: httpx.AsyncClient) -> None:
        assert (await client.post("/v1/poll", content=twice)).status_code == 204
        for poll in (
            b"",
            b"\xc1" * 40,
            twice,
            twice[:-1],
            poll_of(known, key=SigningKey.make()),
            poll_of(known, key=known.silos["silo-2"]),
            poll_of(known, now=stale),
            poll_of(known, "silo-3"),
            make_poll(known.silos["silo-1"], federation="lab", name="stranger", now=NOW),
            make_poll(known.silos["silo-1"], federation="other", name="silo-1", now=NOW),
        ):
            found = await client.post("/v1/poll", content=poll)
            assert (found.status_code, found.content) == (401, b"")
            headers = {"tacit-request": "00", "tacit-poll": base64.b64encode(poll).decode()}
            assert (await client.post("/v1/reply", content=b"x", headers=headers)).status_code == 401
        assert (await client.post("/v1/reply", content=b"x")).status_code == 401
        assert (await client.post("/v1/reply", headers={"tacit-poll": "%"})).status_code == 401
        assert (await client.post("/v1/poll", content=bytes(LONGEST_POLL + 1))).status_code == 413
        assert (await client.get("/v1/poll")).status_code == 405

    visit(hub, work)
    assert hub.refused > 20

    async def late(client: httpx.AsyncClient) -> None:
        assert (await polled(client, known, "silo-4")).status_code == 401

    visit(hub_of(expired), late)


def test_a_reply_that_is_too_long_is_not_read_to_its_end() -> None:
    known = parties()
    hub = hub_of(known, longest=1000)

    async def work(client: httpx.AsyncClient) -> None:
        round_ = asyncio.ensure_future(exchanged(hub, {"silo-1": b"one"}))
        number = await handed(client, known)
        read = 0

        async def endless() -> AsyncIterator[bytes]:
            nonlocal read
            while True:
                read += 1
                yield bytes(100)

        poll = base64.b64encode(poll_of(known)).decode()
        headers = {"tacit-request": number, "tacit-poll": poll}
        assert (await client.post("/v1/reply", content=endless(), headers=headers)).status_code == 413
        assert read < 20
        assert await replied(client, known, number, bytes(1000)) == 204
        assert await round_ == {"silo-1": bytes(1000)}

    visit(hub, work)


def test_an_address_that_is_taken_is_a_clear_error(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with (
            pytest.raises(TacitError, match=f"nothing can listen on 127.0.0.1:{port}"),
            serving(hub_of(parties()), host="127.0.0.1", port=port),
        ):
            pass


def test_a_hub_that_ends_lets_go_of_those_who_wait() -> None:
    known = parties()
    hub = hub_of(known, held=30.0)
    with serving(hub, host="127.0.0.1", port=0) as url:

        async def work() -> int:
            async with httpx.AsyncClient(base_url=url, trust_env=False) as client:
                held = asyncio.ensure_future(polled(client, known))
                await asyncio.sleep(0.1)
                hub.end()
                return (await held).status_code

        assert asyncio.run(work()) == 503
