"""Malformed and mutated bytes at every door of the shuffler, and of those who read what it says."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from benchmarks.messages import mutated

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation.network.descriptor import (
    RunOrder,
    SignedDescriptor,
    about_order,
    about_upload,
    check_descriptor,
)
from tacit.federation.network.faults import Fault
from tacit.federation.network.parcels import SealedBatch, open_batch
from tacit.federation.network.shuffler_app import packed, shuffler_app
from tests.federation.network.over_asgi import client_of
from tests.federation.network.shuffled import RUN, World, plan_of, query, world

COUNT = 1500


@pytest.fixture
def made(tmp_path: Path) -> World:
    return world(plan_of(), tmp_path / "s")


def attack(made: World, count: int, rng: random.Random) -> Counter[str]:
    """Bring bad bytes to all doors, most of them signed by who should not have; count what came of them."""
    signed = made.open()
    parcels = [made.parcel(party, signed) for party in range(3)]
    run = msgspec.msgpack.encode(RunOrder(plan=made.plan.to_toml(), run=RUN))
    order = msgspec.msgpack.encode(made.order())
    key, silo = made.who.server, made.who.silos["silo-1"]
    batch = _batch_elsewhere(made, signed)

    def to_run(data: bytes) -> None:
        made.shuffling.open_run(data, key.sign("order", about_order("run", data)))

    def to_round(data: bytes) -> None:
        made.shuffling.open_round(data, key.sign("order", about_order("round", data)))

    def to_parcel(data: bytes) -> None:
        held = bytearray(data)
        made.shuffling.take(
            signed.round_id, "silo-1", held, silo.sign("upload", about_upload(signed.round_id, data))
        )

    def to_silo(data: bytes) -> None:
        check_descriptor(data, roster=made.who.roster, plan=made.plan, run=RUN, query=query(), name="silo-1")

    def to_silo_signed(data: bytes) -> None:
        to_silo(made.who.shuffler.sign("descriptor", data) + data)

    def to_server(data: bytes) -> None:
        read = SealedBatch.from_bytes(data)
        open_batch(read, form=made.form(0), info=signed.info, key=made.who.opening)

    doors: list[tuple[Callable[[bytes], None], tuple[bytes, ...]]] = [
        (to_run, (run, order)),
        (to_round, (order, run)),
        (to_parcel, tuple(parcels)),
        (to_silo, (signed.to_bytes(),)),
        (to_silo_signed, (signed.body,)),
        (to_server, (batch.to_bytes(), signed.body)),
    ]
    found: Counter[str] = Counter()
    for k in range(count):
        door, true = doors[k % len(doors)]
        if (data := mutated(rng, true)) in true:
            continue
        try:
            door(data)
            found[f"{door.__name__} read"] += 1
        except (RefusalError, ParameterError, AuthenticationError) as error:
            found[type(error).__name__] += 1
    return found


def _batch_elsewhere(made: World, signed: SignedDescriptor) -> SealedBatch:
    """A batch of parcels that the shuffler itself has not seen."""
    parcels, length = [made.parcel(party, signed) for party in range(3)], made.form(0).blob_bytes
    sums: Any = sum(int.from_bytes(parcel[length:], "little") for parcel in parcels) % 2**64
    body = b"".join(parcel[:length] for parcel in parcels) + bytes(8 * made.form(0).words)
    assert sums >= 0
    return SealedBatch(rows=21, parties=3, came=3, sealed=(3,), symbols=(21 * 68,), body=body)


def test_no_bytes_crash_a_door_or_enter_a_round(made: World) -> None:
    found = attack(made, COUNT, random.Random(1))  # noqa: S311 - no secrets
    # What is signed may be read, if a mistake changed nothing that matters: a name, or a time to wait.
    read = sum(n for what, n in found.items() if what.endswith("read"))
    assert read < COUNT / 10
    assert found["to_silo read"] == found["to_server read"] == 0
    assert found["RoundError"] > COUNT / 4
    assert made.shuffling.tally.parcels <= 1
    assert made.shuffling.tally.released == 0


def test_no_packed_parcels_crash_the_app(made: World) -> None:
    signed = made.open()
    rng = random.Random(2)  # noqa: S311 - no secrets
    parts = []
    for party in range(2):
        name, parcel = f"silo-{party + 1}", made.parcel(party, signed)
        parts.append(
            (name, made.who.silos[name].sign("upload", about_upload(signed.round_id, parcel)), parcel)
        )
    true = (packed(parts), packed(parts[:1]))
    with client_of(shuffler_app(made.shuffling)) as client:
        statuses = Counter(
            client.post(f"/rounds/{signed.round_id}/parcels", content=mutated(rng, true)).status_code
            for _ in range(200)
        )
        odd = [
            client.post("/rounds/%00/parcel", content=b"x").status_code,
            client.post("/rounds/..%2f/parcel", content=b"x").status_code,
            client.get(f"/rounds/{'a' * 5000}/batch").status_code,
        ]
    assert set(statuses) == {200, 422}
    assert set(odd) <= {401, 404}
    assert made.shuffling.tally.refused[Fault.UNKNOWN] > 50
