"""Malformed and mutated messages of a deployed federation: none may crash a party or stay in its memory."""

from __future__ import annotations

import datetime as dt
import gc
import os
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from benchmarks.case import Case
from tacit.federation import Query
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster, ServerEntry, SiloEntry
from tacit.federation.network.wire import (
    Accepted,
    Answered,
    AskedRound,
    Closing,
    Envelope,
    ProposedPlan,
    RefusalCode,
    Refused,
    WireError,
    decode_query,
    encode_query,
    open_reply,
    open_request,
    seal_reply,
    seal_request,
)

NOW = dt.datetime(2026, 6, 1, tzinfo=dt.UTC)
RUN, SILO = "run", "silo-1"
HEADS = (b"\xdd\xff\xff\xff\xff", b"\xdf\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xdb\x7f\xff\xff\xff")
"""Beginnings of a list, a map, bytes and a text of four thousand million parts."""


@dataclass(frozen=True)
class Victims:
    """A server and a silo, and what true messages look like."""

    roster: Roster
    server: SigningKey
    silo: SigningKey
    request: bytes
    queries: tuple[bytes, ...]
    messages: tuple[bytes, ...]
    true: frozenset[bytes]


def victims() -> Victims:
    """Return parties with new keys, and one message of every kind."""
    server, silo = SigningKey.make(), SigningKey.make()
    roster = Roster(
        federation="lab",
        server=ServerEntry(
            verify=server.public.to_text(), seal=OpeningKey.make().public.to_text(), url="https://localhost"
        ),
        silos=(SiloEntry(name=SILO, size=100, verify=silo.public.to_text()),),
    )
    points = {"w": np.arange(6.0).reshape(2, 3), "v": np.ones(3, np.float32), "s": np.array(-0.0)}
    queries = tuple(encode_query(Query(k, points, (1.0, 0.5))) for k in range(3))
    bodies: list[tuple[Any, Any, Any, Any]] = [
        ("accept", ProposedPlan("version = 3\n" * 10, RUN, 0, 1.0, 1e-6), "accepted", _accepted()),
        ("ask", AskedRound(queries[0], bytes(100)), "answered", Answered(bytes(300))),
        ("close", Closing(), "refused", Refused(RefusalCode.BUSY)),
    ]
    requests, replies = [], []
    for kind, body, answer, said in bodies:
        requests.append(seal_request(kind, body, roster=roster, run=RUN, to=SILO, key=server))
        envelope = open_request(requests[-1], roster=roster, silo=SILO, now=NOW).envelope
        replies.append(seal_reply(answer, said, request=envelope, roster=roster, silo=SILO, key=silo))
    messages = (*requests, *replies)
    true = frozenset(msgspec.msgpack.decode(one, type=Envelope).signed for one in messages)
    return Victims(roster, server, silo, requests[1], queries, messages, true)


def _accepted() -> Accepted:
    return Accepted(b'{"epsilon": 1}', b"", 100, bytes(16), simulated=False, signature=bytes(64))


def mutated(rng: random.Random, messages: tuple[bytes, ...]) -> bytes:
    """Return a message with one to four mistakes of any kind, or noise."""
    data = rng.choice(messages) if rng.random() < 0.97 else rng.randbytes(rng.randrange(200))
    for _ in range(rng.randint(1, 4)):
        data = _with_mistake(rng, data, rng.choice(messages))
    return data


def _with_mistake(rng: random.Random, data: bytes, other: bytes) -> bytes:
    """Return a message with one mistake."""
    at, length = rng.randrange(len(data) + 1), rng.randrange(12)
    before, taken, after = data[:at], data[at : at + length], data[at + length :]
    match rng.randrange(9):
        case 0:
            flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in taken[:1])
            return before + flipped + taken[1:] + after
        case 1:
            return before + rng.randbytes(len(taken)) + after
        case 2:
            return before + after
        case 3:
            return before + rng.randbytes(length) + taken + after
        case 4:
            return before + taken + taken + after
        case 5:
            return before
        case 6:
            return before + other[rng.randrange(len(other)) :]
        case 7:
            return before + rng.choice(HEADS) + after
        case _:
            return before + b"\x91" * rng.choice((10, 3000)) + after


def signed_anyway(rng: random.Random, who: Victims) -> tuple[bytes, bool]:
    """Return a message whose sender signed what it should not have; whether it goes to the silo."""
    to_silo = rng.random() < 0.5
    source = rng.choice(who.messages[:3] if to_silo else who.messages[3:])
    fields = msgspec.structs.asdict(msgspec.msgpack.decode(source, type=Envelope))
    fields["body"] = mutated(rng, (fields["body"] or b"\x90", *who.queries))
    if rng.random() < 0.3:
        fields["kind"] = rng.choice(("consider", "ask", "accepted", "uploaded", "refused", "", "x" * 16))
    if not to_silo:
        fields["about"] = msgspec.msgpack.decode(who.request, type=Envelope).digest
    envelope = Envelope(**fields)
    key, purpose = (who.server, "request") if to_silo else (who.silo, "reply")
    return envelope.with_signature(key, purpose).to_bytes(), to_silo  # type: ignore[arg-type]


def attack(count: int, who: Victims, rng: random.Random) -> dict[str, int]:
    """Send bad messages to all doors; return how many were refused, and how many said what a true one says.

    Raises:
        AssertionError: A message that nobody signed was read.
        Exception: Anything but a `WireError`: that would be a crash.
    """
    found = {"refused": 0, "true_after_all": 0, "read": 0}
    for k in range(count):
        if k % 8 == 0:
            data, to_silo = signed_anyway(rng, who)
            read: Callable[[bytes], Any] = _at_silo(who) if to_silo else _at_server(who)
        elif k % 8 < 3:
            data, read = mutated(rng, who.queries), decode_query
        else:
            data, read = mutated(rng, who.messages), _at_silo(who) if k % 2 else _at_server(who)
        try:
            opened = read(data)
        except WireError:
            found["refused"] += 1
            continue
        if k % 8 >= 3:  # nothing that was signed has changed: other bytes that say the same, or a copy
            if opened.envelope.signed not in who.true:
                raise AssertionError(f"a message that nobody signed was read: {data!r}")
            found["true_after_all"] += 1
        else:  # a sender may sign what it likes, and a query with another bit is another query
            found["read"] += 1
    return found


def _at_silo(who: Victims) -> Callable[[bytes], Any]:
    return lambda data: open_request(data, roster=who.roster, silo=SILO, now=NOW)


def _at_server(who: Victims) -> Callable[[bytes], Any]:
    return lambda data: open_reply(data, request=who.request, roster=who.roster, now=NOW)


def resident() -> float:
    """Return the memory of this process in MB."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGESIZE") / 1e6


def _bad(smoke: bool) -> dict[str, float]:
    count = 2_000 if smoke else 1_000_000
    who, rng = victims(), random.Random(0)  # noqa: S311  # what is tried is no secret
    attack(count // 10, who, rng)
    before, start = resident(), time.perf_counter()
    found = attack(count - count // 10, who, rng)
    return {
        "messages": count,
        **found,
        "growth_mb": resident() - before,
        "microseconds": 1e6 * (time.perf_counter() - start) / (count - count // 10),
    }


def _one(smoke: bool) -> dict[str, float]:
    who, repeats = victims(), 50 if smoke else 2_000
    start = time.perf_counter()
    for _ in range(repeats):
        data = seal_request(
            "ask", AskedRound(who.queries[0]), roster=who.roster, run=RUN, to=SILO, key=who.server
        )
        envelope = open_request(data, roster=who.roster, silo=SILO, now=NOW).envelope
        reply = seal_reply(
            "answered", Answered(bytes(100)), request=envelope, roster=who.roster, silo=SILO, key=who.silo
        )
        open_reply(reply, request=data, roster=who.roster, now=NOW)
    return {"microseconds": 1e6 * (time.perf_counter() - start) / repeats}


CASES = (
    Case(
        "messages/malformed",
        "1e6 malformed or mutated messages without a crash, memory grown by less than 10 MB",
        _bad,
        lambda m: (
            f"{m['messages']:,.0f} messages at {m['microseconds']:.0f} us, memory {m['growth_mb']:+.1f} MB; "
            f"refused {m['refused']:,.0f}, as true ones {m['true_after_all']:,.0f}, read {m['read']:,.0f}"
        ),
    ),
    Case(
        "messages/round-trip",
        "a signed request and reply, both written and read, in under 2 ms",
        _one,
        lambda m: f"{m['microseconds']:.0f} us for a request and its reply",
    ),
)
