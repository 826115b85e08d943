from __future__ import annotations

import asyncio
import base64
import datetime as dt
import logging
import socket as sockets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.polling import Polls
from tacit.federation.network.silo_doors import poll_hub, serve_socket, silo_app
from tacit.federation.network.wire import AskedRound, encode_query, open_reply
from tests.federation.network.silo_world import Lab
from tests.federation.world import GRID, ask_at, mean_of, plan_of

PLAN = plan_of(mean_of(GRID), rounds=4, parties=3)


class Hub:
    """What a server's hub does, with work that is handed out again until it is answered."""

    def __init__(self, lab: Lab, work: list[bytes]) -> None:
        self.polls, self.work, self.replies = Polls(lab.roster), list(work), list[bytes]()
        self.faults: list[Any] = []  # a status, or an exception, instead of the next answers
        self.asked = 0
        self.done = asyncio.Event()

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/v1/poll", self.poll, methods=["POST"]),
                Route("/v1/reply", self.reply, methods=["POST"]),
            ]
        )

    def fault(self) -> Response | None:
        self.asked += 1
        if not self.faults:
            return None
        fault = self.faults.pop(0)
        if isinstance(fault, Exception):
            raise fault
        return Response(status_code=fault)

    async def poll(self, request: Request) -> Response:
        if (fault := self.fault()) is not None:
            return fault
        try:
            self.polls.open(await request.body(), now=dt.datetime.now(dt.UTC))
        except AuthenticationError:
            return Response(status_code=401)
        if self.work:
            return Response(self.work[0], headers={"tacit-request": str(len(self.replies))})
        self.done.set()
        await asyncio.sleep(0.6)
        return Response(status_code=204)

    async def reply(self, request: Request) -> Response:
        if (fault := self.fault()) is not None:
            return fault
        assert request.headers["tacit-request"] == str(len(self.replies))
        self.polls.open(base64.b64decode(request.headers["tacit-poll"]), now=dt.datetime.now(dt.UTC))
        self.replies.append(await request.body())
        self.work.pop(0)
        return Response(status_code=204)


def polled(lab: Lab, work: list[bytes], faults: Sequence[Any] = (), kind: type[Hub] = Hub) -> Hub:
    """Run a silo at a hub until its work is done."""

    async def run() -> Hub:
        hub, stop = kind(lab, work), asyncio.Event()
        hub.faults = list(faults)
        transport = httpx.ASGITransport(app=hub.app())
        async with httpx.AsyncClient(transport=transport, base_url="https://server.test") as client:
            key = lab.keys["b"]
            polling = poll_hub(
                lab.service(), roster=lab.roster, key=key, client=client, stop=stop, pauses=(0.001,)
            )
            running = asyncio.ensure_future(polling)
            await asyncio.wait_for(hub.done.wait(), 20)
            stop.set()
            await asyncio.wait_for(running, 5)
        return hub

    return asyncio.run(run())


def requests(lab: Lab) -> list[bytes]:
    lab.agree(PLAN)
    return [
        lab.request("accept", lab.proposal(PLAN)),
        *(lab.request("ask", AskedRound(encode_query(ask_at(step)))) for step in range(3)),
    ]


def kinds(lab: Lab, work: list[bytes], replies: list[bytes]) -> list[str]:
    return [
        open_reply(reply, request=request, roster=lab.roster, now=lab.now).envelope.kind
        for request, reply in zip(work, replies, strict=True)
    ]


def test_a_silo_polls_answers_and_stops_when_it_is_told(lab: Lab) -> None:
    work = requests(lab)
    hub = polled(lab, work)
    assert kinds(lab, work, hub.replies) == ["accepted", *["answered"] * 3]
    assert lab.spent()[1] == 3


@pytest.mark.parametrize(
    "faults",
    [
        [500, 503],
        [429],
        [httpx.ConnectError("gone")] * 3,
        [401],
    ],
)
def test_whatever_goes_wrong_on_the_way_is_tried_again(lab: Lab, faults: list[Any]) -> None:
    work = requests(lab)
    hub = polled(lab, work, faults)
    assert kinds(lab, work, hub.replies) == ["accepted", *["answered"] * 3]
    assert lab.spent()[1] == 3


def test_a_reply_that_is_lost_is_asked_for_again_and_costs_nothing(lab: Lab) -> None:
    work = requests(lab)
    answers = iter([None, 503, None, None, None, 500])

    class Losing(Hub):
        def fault(self) -> Response | None:
            self.asked += 1
            status = next(answers, None)
            return None if status is None else Response(status_code=status)

    hub = polled(lab, work, kind=Losing)
    assert kinds(lab, work, hub.replies) == ["accepted", *["answered"] * 3]
    assert lab.spent()[1] == 3
    assert len(lab.lines("accepted")) == 2
    assert len(lab.lines("answered")) == 4


def test_a_silo_that_the_server_does_not_know_says_so_once(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, logger="tacit.silo"):
        polled(lab, [], [401] * 5)
    said = [record for record in caplog.records if record.message == "unreachable"]
    assert len(said) == 1
    assert "does not know this silo's key" in said[0].facts["why"]  # type: ignore[attr-defined]
    assert any(record.message == "reached" for record in caplog.records)


def test_a_server_that_ends_is_nothing_to_be_warned_of(lab: Lab, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="tacit.silo"):
        polled(lab, [], [503] * 3)
    said = [(one.message, one.levelno) for one in caplog.records if one.message in ("waiting", "unreachable")]
    assert said == [("waiting", logging.INFO)]


def test_a_request_without_end_is_cut_off(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.federation.network.silo_doors.LONGEST_REQUEST", 100)

    class Flooding(Hub):
        async def poll(self, request: Request) -> Response:
            if self.asked:
                self.done.set()
                await asyncio.sleep(0.6)
                return Response(status_code=204)
            self.asked += 1
            return Response(bytes(1000))

    assert polled(lab, [], kind=Flooding).replies == []


def test_a_poll_that_is_held_ends_when_the_silo_stops(lab: Lab) -> None:
    async def run() -> None:
        entered, stop = asyncio.Event(), asyncio.Event()

        async def held(_request: Request) -> Response:
            entered.set()
            await asyncio.sleep(3600)
            return Response()

        transport = httpx.ASGITransport(app=Starlette(routes=[Route("/v1/poll", held, methods=["POST"])]))
        async with httpx.AsyncClient(transport=transport, base_url="https://server.test") as client:
            running = asyncio.ensure_future(
                poll_hub(lab.service(), roster=lab.roster, key=lab.keys["b"], client=client, stop=stop)
            )
            await asyncio.wait_for(entered.wait(), 10)
            stop.set()
            await asyncio.wait_for(running, 5)

    asyncio.run(run())


# --- the door of a relay


Send = Callable[[httpx.AsyncClient], Any]


def relayed(lab: Lab, send: Send, **changes: Any) -> Any:
    """Send something to the app."""

    async def run() -> Any:
        transport = httpx.ASGITransport(app=silo_app(lab.service(), **changes))
        async with httpx.AsyncClient(transport=transport, base_url="http://silo") as client:
            return await send(client)

    return asyncio.run(run())


def test_a_relay_brings_a_request_and_takes_the_reply(lab: Lab) -> None:
    work = requests(lab)

    async def send(client: httpx.AsyncClient) -> list[bytes]:
        assert (await client.get("/v1/health")).json() == {"name": "b"}
        return [(await client.post("/v1/request", content=one)).content for one in work]

    assert kinds(lab, work, relayed(lab, send)) == ["accepted", *["answered"] * 3]


def test_a_relay_that_sends_too_much_or_something_else(lab: Lab) -> None:
    async def send(client: httpx.AsyncClient) -> list[int]:
        replies = [
            await client.post("/v1/request", content=bytes(101)),
            await client.post("/v1/request", content=bytes(50)),
            await client.get("/v1/request"),
            await client.post("/v1/health"),
        ]
        return [one.status_code for one in replies]

    assert relayed(lab, send, longest=100) == [413, 200, 405, 405]
    assert lab.lines()[-1].facts["code"] == "failed"


def test_requests_that_pile_up_are_sent_away(lab: Lab) -> None:
    work = requests(lab)

    async def send(client: httpx.AsyncClient) -> list[int]:
        replies = await asyncio.gather(*(client.post("/v1/request", content=work[0]) for _ in range(40)))
        return [one.status_code for one in replies]

    found = relayed(lab, send)
    assert set(found) == {200, 503}
    assert found.count(200) >= 8
    assert len({line.facts["plan"] for line in lab.lines("accepted")}) == 1


def test_the_socket_is_in_a_folder_of_its_own_and_goes_with_the_service(lab: Lab, tmp_path: Path) -> None:
    work, socket = requests(lab), tmp_path / "door" / "silo.sock"
    socket.parent.mkdir(mode=0o750)
    with sockets.socket(sockets.AF_UNIX) as left:  # what a killed process leaves
        left.bind(str(socket))

    async def run() -> bytes:
        stop, service = asyncio.Event(), lab.service()
        running = asyncio.ensure_future(serve_socket(service, socket, stop=stop))
        transport = httpx.AsyncHTTPTransport(uds=str(socket), retries=3)
        async with httpx.AsyncClient(transport=transport, base_url="http://silo") as client:
            for _ in range(200):
                try:
                    reply = await client.post("/v1/request", content=work[0])
                    break
                except httpx.ConnectError:
                    await asyncio.sleep(0.02)
            else:
                raise AssertionError
        stop.set()
        await asyncio.wait_for(running, 20)
        return reply.content

    assert kinds(lab, work[:1], [asyncio.run(run())]) == ["accepted"]
    assert stat.S_IMODE(socket.parent.stat().st_mode) == 0o750
    assert not socket.exists()


def test_a_socket_that_everybody_could_use_is_refused(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o755)
    service = lab.service()
    with pytest.raises(ParameterError, match="everybody may enter"):
        asyncio.run(serve_socket(service, folder / "silo.sock", stop=asyncio.Event()))
    folder.chmod(0o750)
    (folder / "silo.sock").write_text("a file")
    with pytest.raises(ParameterError, match="is a file"):
        asyncio.run(serve_socket(service, folder / "silo.sock", stop=asyncio.Event()))
