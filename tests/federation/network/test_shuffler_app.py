"""The shuffler over HTTP: statuses, bounded bodies, long polls, many parcels at once, counts of all."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tacit.errors import DataError
from tacit.federation.network import shuffler_app as app_room
from tacit.federation.network.descriptor import (
    RunOrder,
    SignedDescriptor,
    about_order,
    about_upload,
)
from tacit.federation.network.faults import Fault, RoundError
from tacit.federation.network.parcels import open_batch
from tacit.federation.network.shuffler_app import MOST_PACKED_BYTES, packed, shuffler_app, shuffler_config
from tacit.federation.network.shuffler_client import RemoteShuffler, ShufflerDownError
from tests.federation.network.deployed_world import IdleTime
from tests.federation.network.over_asgi import client_of
from tests.federation.network.parties import NOW
from tests.federation.network.shuffled import RUN, SIZES, Clock, World, parties_of, plan_of, world


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made(tmp_path: Path, clock: Clock) -> World:
    return world(plan_of(), tmp_path / "s", clock=clock, now=lambda: NOW)


@pytest.fixture
def client(made: World) -> Iterator[httpx.Client]:
    with client_of(shuffler_app(made.shuffling)) as found:
        yield found


@pytest.fixture
def door(client: httpx.Client) -> RemoteShuffler:
    return RemoteShuffler("https://app", client=client)


def opened(made: World, door: RemoteShuffler, step: int = 0, **changes: Any) -> SignedDescriptor:
    door.open_run(RunOrder(plan=made.plan.to_toml(), run=RUN), key=made.who.server)
    return door.open_round(made.order(step, **changes), key=made.who.server)


def headers(
    made: World, party: int, signed: SignedDescriptor, parcel: bytes, **changes: str
) -> dict[str, str]:
    name = f"silo-{party + 1}"
    signature = made.who.silos[name].sign("upload", about_upload(signed.round_id, parcel))
    digest = hashlib.sha256(parcel).hexdigest()
    made_of = {
        "tacit-silo": name,
        "tacit-signature": base64.b64encode(signature).decode(),
        "tacit-digest": digest,
    }
    return made_of | changes


def send(
    made: World,
    client: httpx.Client,
    party: int,
    signed: SignedDescriptor,
    parcel: bytes | None = None,
    **changes: Any,
) -> httpx.Response:
    body = made.parcel(party, signed) if parcel is None else parcel
    round_id = changes.pop("round_id", signed.round_id)
    head = headers(made, party, signed, body, **changes)
    return client.post(f"/rounds/{round_id}/parcel", content=body, headers=head)


def fetch(made: World, client: httpx.Client, signed: SignedDescriptor, wait: str = "0") -> httpx.Response:
    signature = made.who.server.sign("order", about_order(f"batch {signed.round_id}"))
    head = {"tacit-signature": base64.b64encode(signature).decode()}
    return client.get(f"/rounds/{signed.round_id}/batch", params={"wait": wait}, headers=head)


def fault(reply: httpx.Response) -> str:
    return str(reply.json()["fault"])


def test_a_round_over_http_is_a_round(made: World, door: RemoteShuffler) -> None:
    signed = opened(made, door)
    assert opened(made, door) == signed
    for party in range(3):
        name = f"silo-{party + 1}"
        assert door.upload(signed.round_id, made.parcel(party, signed), silo=name, key=made.who.silos[name])
    batch = door.batch(signed.round_id, key=made.who.server, deadline=5)
    assert door.batch(signed.round_id, key=made.who.server, deadline=5) == batch
    mixed = open_batch(batch, form=made.form(0), info=signed.info, key=made.who.opening)
    assert (mixed.rows, mixed.parties) == (sum(SIZES), 3)


def test_every_refusal_has_its_status(
    made: World, client: httpx.Client, door: RemoteShuffler, clock: Clock
) -> None:
    signed, other = opened(made, door), opened(made, door, 1)
    parcel = made.parcel(0, signed)
    first = send(made, client, 0, signed, parcel)
    assert (first.status_code, first.content) == (200, b"")
    seen = {
        "same": send(made, client, 0, signed, parcel),
        "another": send(made, client, 0, signed),
        "short": send(made, client, 1, signed, parcel[:-1]),
        "long": send(made, client, 1, signed, parcel + b"\0"),
        "empty": send(made, client, 1, signed, b""),
        "unknown": send(made, client, 1, signed, None, **{"tacit-silo": "nobody"}),
        "nobody": send(made, client, 1, signed, None, **{"tacit-silo": ""}),
        "another's": send(made, client, 1, signed, None, **{"tacit-silo": "silo-3"}),
        "another round's": send(made, client, 1, signed, round_id=other.round_id),
        "no digest": send(made, client, 1, signed, None, **{"tacit-digest": ""}),
        "another digest": send(made, client, 1, signed, None, **{"tacit-digest": "00" * 32}),
        "garbled": send(made, client, 1, signed, None, **{"tacit-signature": "%%%"}),
        "no round": send(made, client, 1, signed, round_id="00" * 16),
        "waiting": fetch(made, client, signed),
        "not the server": client.get(f"/rounds/{signed.round_id}/batch"),
        "another circle": _order(made, client, made.order(0, (0, 1))),
        "a small circle": _order(made, client, made.order(2, (0,))),
        "no order": _order(made, client, None),
    }
    clock.now = 60.0
    seen["late"] = send(made, client, 1, signed)
    seen["too few"] = fetch(made, client, signed)
    assert {
        name: (reply.status_code, fault(reply) if reply.content else "") for name, reply in seen.items()
    } == {
        "same": (200, ""),
        "another": (429, "quota"),
        "short": (422, "length"),
        "long": (422, "length"),
        "empty": (422, "length"),
        "unknown": (401, "unknown"),
        "nobody": (401, "unknown"),
        "another's": (401, "unknown"),
        "another round's": (401, "unknown"),
        "no digest": (401, "unknown"),
        "another digest": (401, "unknown"),
        "garbled": (401, "unknown"),
        "no round": (404, "no-round"),
        "waiting": (425, "waiting"),
        "not the server": (401, "unknown"),
        "another circle": (409, "conflict"),
        "a small circle": (422, "form"),
        "no order": (422, "form"),
        "late": (409, "late"),
        "too few": (425, "given-up"),
    }
    assert seen["too few"].json()["report"]["missing"] == ["silo-2", "silo-3"]
    assert client.get("/rounds").status_code == 405
    assert client.get("/other").status_code == 404


def _order(made: World, client: httpx.Client, order: Any) -> httpx.Response:
    body = b"\xc1" if order is None else msgspec.msgpack.encode(order)
    signature = made.who.server.sign("order", about_order("round", body))
    return client.post(
        "/rounds", content=body, headers={"tacit-signature": base64.b64encode(signature).decode()}
    )


def test_a_revoked_silo_is_nobody(tmp_path: Path) -> None:
    who = parties_of().with_silo("silo-2", revoked=True)
    made = world(plan_of(), tmp_path / "s", who=who, now=lambda: NOW)
    with client_of(shuffler_app(made.shuffling)) as client:
        door = RemoteShuffler("https://app", client=client)
        signed = opened(made, door, among=(0, 2))
        reply = send(made, client, 1, signed, bytes(made.form(1).size))
        assert (reply.status_code, fault(reply)) == (401, "unknown")


def test_bodies_are_not_read_beyond_what_they_may_be(
    made: World, client: httpx.Client, door: RemoteShuffler
) -> None:
    """Endless ones, of which no length is known."""
    signed = opened(made, door)
    given = 0

    def endless() -> Iterator[bytes]:
        nonlocal given
        for _ in range(200):
            given += 1
            yield bytes(2**16)

    head = headers(made, 0, signed, b"")
    reply = client.post(f"/rounds/{signed.round_id}/parcel", content=endless(), headers=head)
    assert (reply.status_code, fault(reply)) == (422, "length")
    assert given <= 2
    given, wrong = 0, head | {"tacit-silo": "silo-2"}  # of somebody else, nothing is read
    assert (
        client.post(f"/rounds/{signed.round_id}/parcel", content=endless(), headers=wrong).status_code == 401
    )
    assert given == 0
    for path, most in (("/runs", 4 * 2**19 + 2**16), ("/rounds", 4 * 2**19 + 2**16)):
        assert client.post(path, content=bytes(most + 1)).status_code == 413
        assert client.post(path, content=endless()).status_code == 413
    claimed = {"content-length": str(MOST_PACKED_BYTES + 1)}
    path = f"/rounds/{signed.round_id}/parcels"
    assert client.post(path, content=b"", headers=claimed).status_code == 413
    for text in ("-1", "1e3", "9" * 5000):
        assert client.post(path, content=b"", headers={"content-length": text}).status_code == 413


def test_the_server_waits_for_a_batch_and_gets_it_when_it_is_there(
    made: World, client: httpx.Client, door: RemoteShuffler
) -> None:
    signed = opened(made, door)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(fetch, made, client, signed, "20")
        for party in range(3):
            assert not waiting.done()
            send(made, client, party, signed)
        reply = waiting.result(10)
    assert reply.status_code == 200
    assert fetch(made, client, signed, "not a number").content == reply.content
    other = opened(made, door, 1)
    assert fault(fetch(made, client, other, "0.02")) == "waiting"
    assert fault(fetch(made, client, other, "nan")) == "waiting"


def test_many_parcels_of_many_silos_come_in_one_request(
    made: World, client: httpx.Client, door: RemoteShuffler
) -> None:
    signed = opened(made, door)
    sent = []
    for party in range(3):
        name, parcel = f"silo-{party + 1}", made.parcel(party, signed)
        sent.append(
            (name, made.who.silos[name].sign("upload", about_upload(signed.round_id, parcel)), parcel)
        )
    path = f"/rounds/{signed.round_id}/parcels"
    wrong = [("silo-1", sent[1][1], sent[0][2]), ("nobody", *sent[0][1:]), ("silo-1", sent[0][1], b"")]
    reply = client.post(path, content=packed([*wrong, sent[0], sent[1]]))
    assert (reply.status_code, reply.json()) == (200, {"taken": 2, "refused": {"unknown": 3}})
    body = packed([sent[2]])
    for cut in (1, 40, len(body) - 1):
        reply = client.post(path, content=body[:cut])
        assert (reply.status_code, fault(reply)) == (422, "form")
    assert client.post(path, content=body).json()["taken"] == 1
    assert client.post(path, content=b"").json() == {"taken": 0, "refused": {}}
    assert fetch(made, client, signed).status_code == 200
    assert client.post(path, content=body).json() == {"taken": 0, "refused": {"late": 1}}
    assert client.post("/rounds/ff/parcels", content=body).status_code == 404


def test_counts_are_of_all_together(made: World, client: httpx.Client, door: RemoteShuffler) -> None:
    signed = opened(made, door)
    parcel = made.parcel(0, signed)
    for _ in range(2):
        send(made, client, 0, signed, parcel)
    send(made, client, 1, signed, parcel[:-1])
    assert client.get("/health").json() == {"status": "ok", "waiting": 1}
    text = client.get("/metrics").text
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    expected = {
        "parcels_total": 1,
        "parcels_repeated_total": 1,
        "messages_total": 1,
        "rounds_opened_total": 1,
    }
    for name, count in expected.items():
        assert found[f"tacit_shuffler_{name}",] == count
    assert found["tacit_shuffler_refused_total", "length"] == 1
    assert "silo" not in text
    assert signed.round_id not in text


def test_no_answer_tells_a_time_or_who(made: World, client: httpx.Client, door: RemoteShuffler) -> None:
    signed = opened(made, door)
    for party in range(3):
        assert set(send(made, client, party, signed).headers) == {"content-length"}
    reply = fetch(made, client, signed)
    assert set(reply.headers) == {"content-length", "content-type"}
    assert b"silo" not in reply.content
    config = shuffler_config(made.shuffling, host="127.0.0.1", port=0)
    assert (config.access_log, config.date_header, config.server_header, config.workers) == (
        False,
        False,
        False,
        1,
    )


def test_nothing_is_logged_of_a_round(
    made: World, client: httpx.Client, door: RemoteShuffler, caplog: Any
) -> None:
    with caplog.at_level(logging.INFO):
        signed = opened(made, door)
        send(made, client, 0, signed)
    assert not [r for r in caplog.records if not r.name.startswith("httpx") and "silo" in r.getMessage()]


def test_a_full_disk_is_one_line_and_ends_nothing(
    made: World, client: httpx.Client, door: RemoteShuffler, caplog: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    signed = opened(made, door)

    def full(*_: Any) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    with monkeypatch.context() as during:
        during.setattr(made.shuffling, "take", full)
        during.setattr(app_room, "_LARGE", 0)
        assert send(made, client, 0, signed).status_code == 503
    told = [record for record in caplog.records if record.name == "tacit.shuffler"]
    assert [record.getMessage() for record in told] == [
        "the shuffler cannot keep what it is told: database or disk is full"
    ]
    assert told[0].exc_info is None
    assert send(made, client, 0, signed).status_code == 200


def test_rounds_are_settled_again_after_a_full_disk(made: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = list[None]()

    def settle() -> None:
        tried.append(None)
        if len(tried) < 3:
            raise sqlite3.OperationalError("database or disk is full")

    async def lived() -> None:
        app = shuffler_app(made.shuffling)
        async with app.router.lifespan_context(app):
            while len(tried) < 4:
                await asyncio.sleep(0)

    monkeypatch.setattr(made.shuffling, "settle", settle)
    monkeypatch.setattr(app_room, "_SETTLE_SECONDS", 0.0)
    asyncio.run(asyncio.wait_for(lived(), 30))
    assert len(tried) >= 4


# --- the client


def transport(*replies: Any) -> tuple[httpx.Client, list[str]]:
    """A client of something that answers one after the other, or is not there."""
    left, asked = list(replies), []

    def answer(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        reply = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(reply, Exception):
            raise reply
        return reply  # type: ignore[no-any-return]

    return httpx.Client(transport=httpx.MockTransport(answer), base_url="https://app"), asked


def test_a_client_tries_again_until_the_deadline(made: World, idle: IdleTime) -> None:
    signed = made.open()
    order = RunOrder(plan="", run=RUN)
    down, busy = httpx.ConnectError("refused"), httpx.Response(503)
    client, asked = transport(down, busy, httpx.ReadTimeout("slow"), httpx.Response(200))
    RemoteShuffler("https://app", client=client).open_run(order, key=made.who.server)
    assert asked == ["/runs"] * 4
    client, asked = transport(down)
    with pytest.raises(ShufflerDownError, match="cannot be reached: ConnectError"):
        RemoteShuffler("https://app", client=client).upload(
            signed.round_id, b"", silo="silo-1", key=made.who.silos["silo-1"], deadline=0.2
        )
    assert 2 <= len(asked) <= 5
    assert 0 < idle.monotonic() <= 5


def test_a_client_says_what_the_shuffler_said(made: World) -> None:
    signed = made.open()
    refusal = {"fault": "late", "message": "the round is over."}
    client, _ = transport(httpx.Response(409, content=json.dumps(refusal)))
    door = RemoteShuffler("https://app", client=client)
    with pytest.raises(RoundError, match="the round is over") as caught:
        door.upload(signed.round_id, b"", silo="silo-1", key=made.who.silos["silo-1"])
    assert caught.value.fault is Fault.LATE
    for strange in (httpx.Response(404, content=b"<html>"), httpx.Response(302, headers={"location": "/"})):
        client, _ = transport(strange)
        with pytest.raises(DataError, match="is none: status"):
            RemoteShuffler("https://app", client=client).open_run(
                RunOrder(plan="", run=RUN), key=made.who.server
            )


def test_a_second_parcel_of_a_silo_is_told_apart_from_a_fault(made: World, door: RemoteShuffler) -> None:
    signed = opened(made, door)
    key = made.who.silos["silo-1"]
    assert door.upload(signed.round_id, made.parcel(0, signed), silo="silo-1", key=key)
    assert not door.upload(signed.round_id, made.parcel(0, signed), silo="silo-1", key=key)
    with pytest.raises(RoundError) as caught:
        door.batch(signed.round_id, key=made.who.server, deadline=0.05)
    assert caught.value.fault is Fault.WAITING
    assert caught.value.report is not None
    assert caught.value.report.missing == ("silo-2", "silo-3")


def test_names_of_any_letters_travel(tmp_path: Path) -> None:
    who = parties_of()
    first = msgspec.structs.replace(who.roster.silos[0], name="Zürich 1/2".replace("/", "-"))
    roster = msgspec.structs.replace(who.roster, silos=(first, *who.roster.silos[1:]))
    who = type(who)(
        roster, who.server, who.opening, who.shuffler, {**who.silos, first.name: who.silos["silo-1"]}
    )
    made = world(plan_of(), tmp_path / "s", who=who)
    with client_of(shuffler_app(made.shuffling)) as client:
        door = RemoteShuffler("https://app", client=client)
        signed = opened(made, door)
        assert door.upload(
            signed.round_id, made.parcel(0, signed), silo=first.name, key=who.silos[first.name]
        )


def test_a_large_parcel_is_as_any_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tacit.federation.network.shuffler_app._LARGE", 10)
    made = world(plan_of(), tmp_path / "s")
    with client_of(shuffler_app(made.shuffling)) as client:
        signed = opened(made, RemoteShuffler("https://app", client=client))
        parcel = made.parcel(0, signed)
        assert send(made, client, 0, signed, parcel).status_code == 200
        assert fault(send(made, client, 0, signed, made.parcel(0, signed))) == "quota"
        assert made.shuffling.tally.parcels == 1


@pytest.mark.parametrize("path", ["/runs", "/rounds", "/rounds/none/parcels"])
def test_bodies_of_nobody_knows_whom_share_a_bounded_memory(
    path: str, made: World, door: RemoteShuffler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has no key cannot fill the memory by many bodies that do not end; those with keys are heard."""
    signed = opened(made, door)
    monkeypatch.setattr(app_room, "MOST_UNKNOWN_BYTES", 2**16)
    parcel = made.parcel(0, signed)

    async def attack() -> tuple[list[int], int, int, int]:
        transport = httpx.ASGITransport(shuffler_app(made.shuffling))
        async with httpx.AsyncClient(transport=transport, base_url="https://app") as many:
            began, end = [asyncio.Event() for _ in range(2)], asyncio.Event()

            async def slow(mine: asyncio.Event) -> AsyncIterator[bytes]:
                yield bytes(2**15)
                mine.set()
                await end.wait()

            held = [asyncio.create_task(many.post(path, content=slow(mine))) for mine in began]
            async with asyncio.timeout(20):
                await asyncio.gather(*(mine.wait() for mine in began))
                full = await many.post(path, content=b"x")
                known = await many.post(
                    f"/rounds/{signed.round_id}/parcel",
                    content=parcel,
                    headers=headers(made, 0, signed, parcel),
                )
                end.set()
                ended = [(await one).status_code for one in held]
                after = await many.post(path, content=b"x")
        return ended, full.status_code, known.status_code, after.status_code

    ended, full, known, after = asyncio.run(attack())
    assert (full, known) == (503, 200)
    assert 503 not in [*ended, after]
