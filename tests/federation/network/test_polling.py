from __future__ import annotations

import datetime as dt

import msgspec
import pytest

from tacit.errors import AuthenticationError
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.polling import LONGEST_POLL, STALE, Polls, make_poll
from tests.federation.network.parties import NOW, parties

LAB = parties()
KEY = LAB.silos["silo-1"]


def poll(key: SigningKey = KEY, *, federation: str = "lab", name: str = "silo-1", late: float = 0.0) -> bytes:
    return make_poll(key, federation=federation, name=name, now=NOW + dt.timedelta(seconds=late))


def test_a_poll_says_who_is_there_once() -> None:
    polls, data = Polls(LAB.roster), poll()
    assert polls.open(data, now=NOW) == "silo-1"
    with pytest.raises(AuthenticationError, match="came twice"):
        polls.open(data, now=NOW)
    assert polls.open(poll(), now=NOW) == "silo-1"


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (poll(SigningKey.make()), "not by the key"),
        (poll(LAB.silos["silo-2"]), "not by the key"),
        (poll(LAB.server), "not by the key"),
        (poll(name="silo-9"), "not in the roster"),
        (poll(federation="ward"), "another version or federation"),
        (poll(late=STALE + 1), "differs by"),
        (poll(late=-STALE - 1), "differs by"),
        (b"", "cannot be read"),
        (b"\xff" * 40, "cannot be read"),
        (bytes(LONGEST_POLL + 1), "at most"),
    ],
)
def test_a_poll_that_is_not_the_silos_is_refused(data: bytes, match: str) -> None:
    with pytest.raises(AuthenticationError, match=match):
        Polls(LAB.roster).open(data, now=NOW)


def test_every_field_of_a_poll_is_signed() -> None:
    fields = msgspec.msgpack.decode(poll())
    for place, other in ((2, "silo-2"), (3, fields[3] + 1), (4, bytes(16))):
        changed = [*fields[:place], other, *fields[place + 1 :]]
        with pytest.raises(AuthenticationError):
            Polls(LAB.roster).open(msgspec.msgpack.encode(changed), now=NOW)


def test_a_silo_that_is_revoked_or_expired_is_not_there() -> None:
    for change in ({"revoked": True}, {"expires": dt.date(2026, 5, 31)}):
        with pytest.raises(AuthenticationError):
            Polls(LAB.with_silo("silo-1", **change).roster).open(poll(), now=NOW)


def test_polls_are_forgotten_when_they_are_stale() -> None:
    polls, old = Polls(LAB.roster), poll()
    polls.open(old, now=NOW)
    for k in range(5):
        late = (k + 1) * STALE
        polls.open(poll(late=late), now=NOW + dt.timedelta(seconds=late))
        with pytest.raises(AuthenticationError):
            polls.open(old, now=NOW + dt.timedelta(seconds=late))
    assert len(polls._seen) <= 4
