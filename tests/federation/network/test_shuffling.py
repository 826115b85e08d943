"""The shuffler between machines: who may send, what is released, once, and what a crash leaves."""

from __future__ import annotations

import datetime as dt
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import AuthenticationError, DataError, RefusalError
from tacit.federation.network.descriptor import (
    RunOrder,
    about_order,
    about_upload,
)
from tacit.federation.network.faults import Fault
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.parcels import open_batch
from tacit.federation.network.shuffling import Shuffling
from tacit.federation.query import Query
from tests.federation.network.parties import NOW, Parties, parties
from tests.federation.network.shuffled import RUN, SIZES, Clock, World, parties_of, plan_of, refused, world
from tests.federation.world import DIM


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def made(tmp_path: Path, clock: Clock) -> World:
    return world(plan_of(), tmp_path / "shuffler" / "memory", clock=clock, now=lambda: NOW)


def again(made: World, path: Path | None = None, **fields: Any) -> World:
    """The shuffler after it was killed: nothing of the old process is left but its file."""
    old = made.shuffling
    at = old._memory.path
    old._memory._connection.close()
    new = Shuffling(
        at if path is None else path,
        **{
            "roster": made.who.roster,
            "key": made.who.shuffler,
            "clock": old._clock,
            "now": old._now,
            **fields,
        },
    )
    return World(made.plan, made.who, made.silos, new)


# --- a round


def test_a_round_is_released_when_all_have_sent(made: World) -> None:
    signed = made.open()
    for party in range(3):
        report = refused(Fault.WAITING, lambda: made.batch(signed)).report
        assert report is not None
        assert (report.came, report.circle, report.needed) == (party, 3, 2)
        assert report.missing == ("silo-1", "silo-2", "silo-3")[party:]
        assert made.send(party, signed)
    batch = made.batch(signed)
    assert (batch.rows, batch.parties) == (sum(SIZES), 3)
    assert made.batch(signed) == batch
    tally = made.shuffling.tally
    assert (tally.opened, tally.released, tally.parcels, tally.messages) == (1, 1, 3, 3)


def test_a_part_of_the_circle_is_released_at_the_deadline_and_the_rest_is_late(
    made: World, clock: Clock
) -> None:
    signed = made.open()
    made.send(0, signed)
    made.send(2, signed)
    clock.now = 59.9
    refused(Fault.WAITING, lambda: made.batch(signed))
    clock.now = 60.0
    refused(Fault.LATE, lambda: made.send(1, signed))
    batch = made.batch(signed)
    assert (batch.rows, batch.parties) == (12, 2)
    refused(Fault.LATE, lambda: made.send(1, signed))
    assert made.batch(signed) == batch
    mean = open_batch(batch, form=made.form(0), info=signed.info, key=made.who.opening)
    assert mean.messages[0][0].symbols == 12 * 68


def test_too_few_are_given_up_for_ever_with_a_report(made: World, clock: Clock) -> None:
    signed = made.open()
    made.send(1, signed)
    clock.now = 60.0
    report = refused(Fault.GIVEN_UP, lambda: made.batch(signed)).report
    assert report is not None
    assert (report.needed, report.came, report.circle, report.missing) == (2, 1, 3, ("silo-1", "silo-3"))
    refused(Fault.LATE, lambda: made.send(0, signed))
    # Neither by asking again, nor by another shuffler process.
    assert made.open() == signed
    anew = again(made)
    assert anew.open() == signed
    refused(Fault.LATE, lambda: anew.send(0, signed))
    refused(Fault.GIVEN_UP, lambda: anew.batch(signed))


def test_a_circle_may_be_some_of_the_silos(made: World) -> None:
    signed = made.open(among=(0, 2))
    refused(Fault.UNKNOWN, lambda: made.send(1, signed, b"\0" * made.form(1).size))
    made.send(2, signed)
    made.send(0, signed)
    assert made.batch(signed).rows == 12


def test_several_rounds_wait_side_by_side(made: World) -> None:
    one, other = made.open(0), made.open(1)
    assert one.round_id != other.round_id
    for party in range(3):
        made.send(party, one)
    assert made.shuffling.waiting == 2
    made.batch(one)
    refused(Fault.WAITING, lambda: made.batch(other))
    assert made.shuffling.waiting == 1


# --- once


def test_the_same_parcel_counts_once_and_another_is_refused(made: World) -> None:
    signed = made.open()
    parcel = made.parcel(0, signed)
    assert made.send(0, signed, parcel)
    assert made.send(0, signed, parcel)
    assert not made.send(0, signed, made.parcel(0, signed))  # the client's word for the fault QUOTA
    assert made.shuffling.tally.repeated == 1
    made.send(1, signed)
    made.send(2, signed)
    assert (
        open_batch(made.batch(signed), form=made.form(0), info=signed.info, key=made.who.opening).parties == 3
    )


def test_a_step_is_described_once(made: World) -> None:
    signed = made.open()
    assert made.open() == signed
    assert made.open(seconds=5.0) == signed  # also who waits no longer gets the first
    others: list[dict[str, Any]] = [
        {"query": Query(0, {"w": np.ones(DIM)}, (1.0,)).digest()},
        {"among": (0, 1)},
        {"accounts": (b"a" * 16,) * 3},
    ]
    for other in others:
        refused(Fault.CONFLICT, lambda other=other: made.open(**other))  # type: ignore[misc]


def test_a_round_is_never_released_at_two_subsets(made: World, clock: Clock) -> None:
    """Whatever comes after the deadline, is sent again, or starts anew: one batch, byte for byte."""
    signed = made.open()
    made.send(0, signed)
    made.send(1, signed)
    clock.now = 60.0
    batch = made.batch(signed)
    anew = again(made)
    refused(Fault.LATE, lambda: anew.send(2, signed))
    refused(Fault.LATE, lambda: anew.send(0, signed))
    assert anew.open() == signed
    clock.now = 1e6
    assert anew.shuffling.settle() == []
    assert anew.batch(signed) == batch
    # The file itself does not let anybody change its mind.
    connection = anew.shuffling._memory._connection
    for change in ("state = 'open'", "state = 'given-up'", "step = 3", "descriptor = x'00'"):
        with pytest.raises(Exception, match="changes its mind"):
            connection.execute(f"UPDATE rounds SET {change}")  # noqa: S608 - ours
    with pytest.raises(Exception, match="changes its mind"):
        connection.execute("DELETE FROM rounds")


# --- who sends


def test_only_silos_of_the_circle_are_heard_by_their_own_keys(made: World) -> None:
    signed = made.open()
    parcel = made.parcel(0, signed)
    wrong: list[dict[str, Any]] = [
        {"key": made.who.silos["silo-2"]},
        {"key": SigningKey.make()},
        {"silo": "silo-2"},
        {"silo": "nobody"},
        {"silo": ""},
        {"silo": "server", "key": made.who.server},
        {"silo": "shuffler", "key": made.who.shuffler},
    ]
    for change in wrong:
        refused(Fault.UNKNOWN, lambda change=change: made.send(0, signed, parcel, **change))  # type: ignore[misc]
    assert made.shuffling.tally.refused[Fault.UNKNOWN] == len(wrong)
    assert made.send(0, signed, parcel)


def test_a_signature_is_for_one_round_and_one_parcel(made: World) -> None:
    one, other = made.open(0), made.open(1)
    key, parcel = made.who.silos["silo-1"], made.parcel(0, one)
    take = made.shuffling.take
    signature = key.sign("upload", about_upload(one.round_id, parcel))
    refused(Fault.UNKNOWN, lambda: take(other.round_id, "silo-1", parcel, signature))
    refused(Fault.UNKNOWN, lambda: take(one.round_id, "silo-1", parcel[:-1] + b"\1", signature))
    refused(Fault.UNKNOWN, lambda: take(one.round_id, "silo-1", parcel, b""))
    refused(
        Fault.UNKNOWN,
        lambda: take(one.round_id, "silo-1", parcel, key.sign("reply", about_upload(one.round_id, parcel))),
    )
    refused(Fault.NO_ROUND, lambda: take("00" * 16, "silo-1", parcel, signature))
    assert not take(one.round_id, "silo-1", parcel, signature)


def test_a_parcel_of_another_run_does_not_open_in_this_one(tmp_path: Path, made: World) -> None:
    """A silo that signs an old parcel for a new round spoils it, and the server sees that it is none."""
    old, new = made.open(0), made.open(1)
    made.send(0, new, made.parcel(0, old))
    made.send(1, new)
    made.send(2, new)
    with pytest.raises(AuthenticationError, match="cannot be opened"):
        open_batch(made.batch(new), form=made.form(0), info=new.info, key=made.who.opening)


@pytest.mark.parametrize("length", [0, 1, -1])
def test_a_parcel_of_another_length_is_refused(made: World, length: int) -> None:
    signed = made.open()
    parcel = made.parcel(0, signed)
    wrong = b"" if not length else parcel + b"\0" if length > 0 else parcel[:-1]
    refused(Fault.LENGTH, lambda: made.send(0, signed, wrong))
    refused(Fault.LENGTH, lambda: made.send(0, signed, made.parcel(1, signed) + parcel))


@pytest.mark.parametrize("change", [{"revoked": True}, {"expires": dt.date(2026, 5, 31)}])
def test_a_silo_that_has_left_is_neither_heard_nor_counted(change: dict[str, Any], tmp_path: Path) -> None:
    who = parties_of().with_silo("silo-2", **change)
    made = world(plan_of(), tmp_path / "s", who=who, now=lambda: NOW)
    refused(Fault.FORM, made.open)
    signed = made.open(among=(0, 2))
    refused(Fault.UNKNOWN, lambda: made.send(1, signed, b"\0" * made.form(1).size))
    # It may also leave while a round is open.
    late = again(made, roster=who.with_silo("silo-3", revoked=True).roster)
    refused(Fault.UNKNOWN, lambda: late.send(2, signed))
    assert late.open(among=(0, 2)) == signed


def test_only_the_server_orders(made: World) -> None:
    order = msgspec.msgpack.encode(RunOrder(plan=made.plan.to_toml(), run=RUN))
    key = made.who.server
    signature = key.sign("order", about_order("run", order))
    refused(
        Fault.UNKNOWN, lambda: made.shuffling.open_run(order, made.who.silos["silo-1"].sign("order", order))
    )
    refused(Fault.UNKNOWN, lambda: made.shuffling.open_run(order + b"\0", signature))
    refused(Fault.UNKNOWN, lambda: made.shuffling.open_round(order, signature))
    refused(Fault.UNKNOWN, lambda: made.door.open_round(made.order(), key=key))  # before the run
    signed = made.open()
    for silo in made.who.silos.values():
        refused(Fault.UNKNOWN, lambda silo=silo: made.door.batch(signed.round_id, key=silo, deadline=0))  # type: ignore[misc]
    refused(Fault.NO_ROUND, lambda: made.door.batch("ff", key=key, deadline=0))


# --- killed between any two steps


def test_a_killed_shuffler_goes_on_wherever_it_was(made: World, clock: Clock) -> None:
    """Its process is gone after every step that it takes, and the round ends as if nothing had happened."""
    made.door.open_run(RunOrder(plan=made.plan.to_toml(), run=RUN), key=made.who.server)
    made = again(made)  # the run is known
    signed = made.door.open_round(made.order(), key=made.who.server)
    made = again(made)  # the descriptor was signed, and perhaps never seen
    assert made.door.open_round(made.order(), key=made.who.server) == signed
    made.send(0, signed)
    made.send(1, signed)
    made = again(made)  # what came is forgotten
    report = refused(Fault.WAITING, lambda: made.batch(signed)).report
    assert report is not None
    assert report.missing == ("silo-1", "silo-2", "silo-3")
    for party in range(3):  # from what they have stored: the same answers, sealed anew
        made.send(party, signed)
    made = again(made)  # whole, and not yet released
    refused(Fault.WAITING, lambda: made.batch(signed))
    for party in range(3):
        made.send(party, signed)
    made.shuffling.settle()
    made = again(made)  # released, and never fetched
    batch = made.batch(signed)
    made = again(made)  # fetched, perhaps in vain
    assert made.batch(signed) == batch
    assert open_batch(batch, form=made.form(0), info=signed.info, key=made.who.opening).rows == sum(SIZES)


def test_a_crash_while_a_batch_is_stored_leaves_no_batch(
    made: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The permutation is drawn before, and is lost: nobody has seen it."""
    signed = made.open()
    for party in range(3):
        made.send(party, signed)
    memory = made.shuffling._memory

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(memory, "end", killed)
    with pytest.raises(KeyboardInterrupt):
        made.batch(signed)
    anew = again(made)
    refused(Fault.WAITING, lambda: anew.batch(signed))
    for party in range(3):
        anew.send(party, signed)
    assert anew.batch(signed).parties == 3


def test_the_wait_starts_anew_with_the_process(made: World, clock: Clock) -> None:
    signed = made.open()
    clock.now = 59.0
    anew = again(made)
    clock.now = 118.0
    for party in range(3):
        anew.send(party, signed)
    assert anew.batch(signed).parties == 3


def test_a_shuffler_without_its_memory_is_another_one(made: World, tmp_path: Path) -> None:
    """Silos have answered for the circle of the old one, and give nothing to the new one."""
    signed = made.open()
    made.send(0, signed)
    other = again(made, tmp_path / "elsewhere")
    signed_anew = other.open()
    assert signed_anew.descriptor.session != signed.descriptor.session
    with pytest.raises(RefusalError, match="another point or for another party"):
        other.send(0, signed_anew)


def test_the_memory_belongs_to_one_process_one_federation_and_its_owner(made: World, tmp_path: Path) -> None:
    path = made.shuffling._memory.path
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700
    with pytest.raises(DataError, match="locked"):
        Shuffling(path, roster=made.who.roster, key=made.who.shuffler)
    made.shuffling.close()
    other = msgspec.structs.replace(made.who.roster, federation="other")
    with pytest.raises(DataError, match="belongs to the federation 'lab'"):
        Shuffling(path, roster=other, key=made.who.shuffler)
    with pytest.raises(AuthenticationError, match="not the one in its roster"):
        Shuffling(path, roster=made.who.roster, key=SigningKey.make())
    torn = tmp_path / "torn"
    shutil.copy(path, torn)
    torn.write_bytes(torn.read_bytes()[:-4096])
    text = tmp_path / "text"
    text.write_text("not a database, but a text that is long enough to look like one" * 20)
    for bad in (torn, text, tmp_path):
        with pytest.raises(DataError, match="cannot be used as the memory"):
            Shuffling(bad, roster=made.who.roster, key=made.who.shuffler)


def test_a_run_of_an_older_roster_is_not_gone_on_with(made: World) -> None:
    signed = made.open()
    grown = parties(4)
    who = Parties(
        msgspec.structs.replace(made.who.roster, silos=(*made.who.roster.silos, grown.roster.silos[3])),
        made.who.server,
        made.who.opening,
        made.who.shuffler,
        made.who.silos,
    )
    anew = again(made, roster=who.roster)
    refused(Fault.GIVEN_UP, lambda: anew.batch(signed))
    refused(Fault.UNKNOWN, lambda: anew.door.open_round(made.order(1), key=made.who.server))


# --- what is forgotten


def test_links_are_overwritten_when_the_batch_is_made(made: World) -> None:
    signed = made.open()
    parcels = [bytearray(made.parcel(party, signed)) for party in range(3)]
    for party, parcel in enumerate(parcels):
        name = f"silo-{party + 1}"
        key = made.who.silos[name]
        made.shuffling.take(
            signed.round_id, name, parcel, key.sign("upload", about_upload(signed.round_id, parcel))
        )
    held = made.shuffling._open[signed.round_id]
    made.batch(signed)
    assert all(parcel == bytes(len(parcel)) for parcel in parcels)
    assert not held.parcels
    assert not made.shuffling._open


def test_what_is_on_disk_tells_nothing_of_who_sent_what(made: World) -> None:
    signed = made.open()
    parcels = [made.parcel(party, signed) for party in range(3)]
    for party, parcel in enumerate(parcels):
        made.send(party, signed, parcel)
    path = made.shuffling._memory.path
    before = path.read_bytes()
    made.batch(signed)
    length = made.form(0).blob_bytes
    words = [parcel[length:] for parcel in parcels]
    assert not any(parcel[:length] in before for parcel in parcels)
    stored = path.read_bytes()
    assert all(stored.count(parcel[:length]) == 1 for parcel in parcels)  # in the batch
    assert not any(word in stored for word in words)  # only their sum


def test_a_batch_that_was_fetched_is_forgotten_with_the_next_round(made: World) -> None:
    first = made.open(0)
    for party in range(3):
        made.send(party, first)
    made.shuffling.settle()
    made.open(1)
    batch = made.batch(first)  # not yet fetched: it stays
    made.open(2)
    assert "forgotten" in str(refused(Fault.LATE, lambda: made.batch(first)))
    assert batch.body not in made.shuffling._memory.path.read_bytes()
    assert made.open(0) == first


def test_processes_that_are_killed_at_random_moments_hand_over_one_batch_a_round() -> None:
    """`python -m tests.federation.network.shuffler_kills --count 200` is the long one."""
    command = [sys.executable, "-m", "tests.federation.network.shuffler_kills", "--count", "12"]
    root = Path(__file__).parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - our own code
    assert done.returncode == 0, done.stderr
    assert re.search(r"^12 kills in \d+ rounds, 0 with two batches$", done.stdout, re.MULTILINE)
