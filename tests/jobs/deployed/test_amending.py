"""Changes of a federation: keys are replaced, revoked and limited in a new roster; every place is kept."""

from __future__ import annotations

import datetime as dt
import json
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import msgspec
import pytest

from tacit.cli import main
from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.certificates import check_certificate, client_context, server_context
from tacit.federation.network.faults import Fault, RoundError
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.polling import Polls, make_poll
from tacit.federation.network.roster import Roster
from tacit.jobs.deployed.amending import amend, amended_roster, latest_roster, renew_certificate
from tacit.jobs.deployed.joining import join
from tests.federation.network.parties import NOW, parties, signing_key
from tests.federation.network.shuffled import parties_of, plan_of, world
from tests.federation.network.test_cards import card
from tests.federation.network.test_certificates import shake_hands
from tests.jobs.deployed.world import founded

LAB = parties().roster
DAY = dt.timedelta(days=1)


def test_a_new_key_counts_from_its_roster_on_and_the_old_one_until_then() -> None:
    old = parties().with_silo("silo-2", revoked=True, expires=dt.date(2026, 5, 1)).roster
    new = amended_roster(old, cards=[card("silo", "silo-2", key="new")], expire={})
    assert [one.name for one in new.silos] == [one.name for one in old.silos]
    assert new.sizes == old.sizes
    assert new.silos[1].why_not(NOW) is None
    signed = {who: SigningKey.sign(key, "poll", b"x") for who, key in parties().silos.items()}
    for silo in new.silos:
        if silo.name == "silo-2":
            with pytest.raises(AuthenticationError):
                new.verify_key(silo.name).verify("poll", b"x", signed[silo.name])
        else:
            new.verify_key(silo.name).verify("poll", b"x", signed[silo.name])
        old.verify_key(silo.name).verify("poll", b"x", signed[silo.name])
    assert new.server == old.server
    assert new.shuffler == old.shuffler


def test_server_and_shuffler_are_replaced_by_their_cards() -> None:
    server, shuffler = card("server", key="new server"), card("shuffler", key="new shuffler")
    new = amended_roster(LAB, cards=[server, shuffler], expire={})
    assert new.silos == LAB.silos
    assert new.shuffler is not None
    assert (new.server.verify, new.server.seal) == (server.verify, server.seal)
    assert (new.server.url, new.shuffler.verify) == (server.url, shuffler.verify)


def test_silos_are_revoked_and_limited() -> None:
    last = dt.date(2026, 6, 30)
    new = amended_roster(LAB, revoke=["silo-3"], expire={"silo-1": last, "silo-3": last})
    assert [one.name for one in new.active(NOW)] == ["silo-1", "silo-2", "silo-4"]
    assert [one.name for one in new.active(NOW + 30 * DAY)] == ["silo-2", "silo-4"]
    assert new.silos[0].expires == new.silos[2].expires == last
    assert Roster.from_toml(new.to_toml()) == new


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({}, "cards, revoke or expire must say what changes"),
        ({"revoke": ["silo-9"]}, "silo 'silo-9' is not in the roster"),
        ({"revoke": ["server"]}, "must name silos, got 'server'"),
        ({"revoke": ["silo-1", "silo-1"]}, "must name a party once, got 'silo-1' twice"),
        ({"expire": {"shuffler": dt.date(2026, 6, 1)}}, "must name silos, got 'shuffler'"),
        ({"expire": {"silo-9": dt.date(2026, 6, 1)}}, "is not in the roster"),
        ({"cards": [card("silo", "silo-9", key="new")]}, "silo 'silo-9' is not in the roster"),
        ({"cards": [card("silo", "silo-1", key="silo-1")]}, "must bring a new key"),
        ({"cards": [card("silo", "silo-1", key="silo-2")]}, "must bring a new key"),
        ({"cards": [card("silo", "silo-1", key="server")]}, "must bring a new key"),
        ({"cards": [card("server", key="server")]}, "must bring a new key"),
        ({"cards": [card("silo", "silo-1", key="new", size=101)]}, "must not change its size, 100, got 101"),
        ({"cards": [card("silo", "silo-1", key="new")], "revoke": ["silo-1"]}, "once, got 'silo-1' twice"),
        (
            {"cards": [card("silo", "silo-1", key="a"), card("silo", "silo-1", key="b")]},
            "once, got 'silo-1' twice",
        ),
        ({"cards": [card("silo", f"silo-{k}", key="a") for k in (1, 2)]}, "a key must stand once"),
    ],
)
def test_changes_that_are_none(changes: dict[str, Any], says: str) -> None:
    with pytest.raises((ParameterError, AuthenticationError)) as caught:
        amended_roster(LAB, **({"expire": {}} | changes))
    assert says in str(caught.value)


def test_hub_and_shuffler_hear_a_silo_while_its_key_counts(tmp_path: Path) -> None:
    """With the new roster neither the revoked key nor the one that was replaced is anybody's."""
    lab = parties()
    new = amended_roster(lab.roster, cards=[card("silo", "silo-2", key="new")], revoke=["silo-3"], expire={})
    for name, heard in (("silo-1", True), ("silo-2", False), ("silo-3", False)):
        poll = make_poll(lab.silos[name], federation="lab", name=name, now=NOW)
        assert Polls(lab.roster).open(poll, now=NOW) == name
        if heard:
            assert Polls(new).open(poll, now=NOW) == name
        else:
            with pytest.raises(AuthenticationError):
                Polls(new).open(poll, now=NOW)
    poll = make_poll(signing_key("new"), federation="lab", name="silo-2", now=NOW)
    assert Polls(new).open(poll, now=NOW) == "silo-2"

    who = parties_of()
    roster = amended_roster(who.roster, revoke=["silo-2"], expire={})
    made = world(plan_of(), tmp_path / "s", who=replace(who, roster=roster), now=lambda: NOW)
    signed = made.open(among=(0, 2))
    made.send(0, signed)
    with pytest.raises(RoundError) as caught:
        made.send(1, signed, b"\0" * made.form(1).size)
    assert caught.value.fault is Fault.UNKNOWN


def test_files_are_numbered_and_never_overwritten(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    before = {path: path.read_bytes() for path in fed.folder.rglob("*") if path.is_file()}
    joined = join(tmp_path / "new", role="server", url="https://127.0.0.1:9443")
    first = amend(fed.folder, cards=[joined.card], now=dt.datetime.now(dt.UTC))
    second = amend(fed.folder, revoke=["silo-1"], now=dt.datetime.now(dt.UTC))
    assert (first.file.name, first.old.name) == ("roster-2.toml", "roster.toml")
    assert (second.file.name, second.old.name) == ("roster-3.toml", "roster-2.toml")
    assert latest_roster(fed.folder) == second.file
    assert second.roster.server.verify == joined.card.verify
    third = amend(fed.folder, old=fed.folder / "roster.toml", revoke=["silo-2"], now=dt.datetime.now(dt.UTC))
    assert third.file.name == "roster-4.toml"
    assert [one.revoked for one in third.roster.silos] == [False, True, False]
    certificate = first.certificates["server"]
    assert certificate == fed.folder / "server" / "tls-2.pem"
    shake_hands(
        client_context(fed.folder / "ca.pem"),
        server_context(certificate, joined.folder / "server" / "tls.key"),
        "localhost",
    )
    assert all(path.read_bytes() == data for path, data in before.items())
    with pytest.raises(AuthenticationError, match="is not that of the certificate"):
        server_context(certificate, fed.folder / "server" / "tls.key")


def test_a_certificate_is_renewed_beside_the_old_one(tmp_path: Path) -> None:
    fed = founded(tmp_path)
    old, later = fed.folder / "server" / "tls.pem", dt.datetime.now(dt.UTC) + 500 * DAY
    with pytest.raises(AuthenticationError, match="has expired"):
        check_certificate(old, now=later)
    path, until = renew_certificate(old, folder=fed.folder, now=later, days=30)
    assert path.name == "tls-2.pem"
    assert check_certificate(path, now=later) == until
    again, _ = renew_certificate(path, folder=fed.folder, now=dt.datetime.now(dt.UTC))
    assert again.name == "tls-3.pem"
    shake_hands(
        client_context(fed.folder / "ca.pem"), server_context(again, old.with_name("tls.key")), "localhost"
    )
    other = founded(tmp_path / "other")
    with pytest.raises(AuthenticationError, match="was not issued by this authority"):
        renew_certificate(old, folder=other.folder, now=later)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(
            client_context(other.folder / "ca.pem"),
            server_context(again, old.with_name("tls.key")),
            "localhost",
        )


def test_the_command_says_what_everybody_must_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fed = founded(tmp_path)
    digits = join(tmp_path / "new", name="silo-1").card.fingerprint()
    words = ["federation", "amend", "--folder", str(fed.folder), "--cards", f"{tmp_path}/new"]
    words += ["--revoke", "silo-2", "--expire", "silo-3=2031-01-31"]
    assert main(words) == 0
    text = " ".join(capsys.readouterr().out.split())
    for said in (
        f"card of silo-1 {digits}",
        "Compare the digits of the card of silo-1 by phone first.",
        "gets roster-2.toml, compares its digits",
        "silo-1: stops, runs `tacit silo rotate`, and then names its new keys",
        "silo-2: nothing that its key signs counts any more",
        "Keep the old roster",
        "counts until 2031-01-31",
    ):
        assert said in text
    assert main([*words[:4], "--expire", "silo-3=2032-01-31", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    roster = Roster.load(said["roster"])
    assert said["digest"] == roster.digest().hex()
    assert said["fingerprint"] == roster.fingerprint()
    assert said["silos"] == {"silo-1": "counts", "silo-2": "revoked", "silo-3": "counts until 2032-01-31"}
    assert main([*words[:4], "--expire", "silo-3=tomorrow"]) == 2
    assert "expire must be NAME=YYYY-MM-DD, got 'silo-3=tomorrow'" in capsys.readouterr().err


def test_a_roster_without_a_shuffler_gets_one() -> None:
    alone = msgspec.structs.replace(LAB, shuffler=None)
    new = amended_roster(alone, cards=[card("shuffler", key="first")], expire={})
    assert new.shuffler is not None


def test_of_changes_at_the_same_time_each_has_a_file_of_its_own_or_is_refused(tmp_path: Path) -> None:
    fed, start = founded(tmp_path), Barrier(4)
    now = dt.datetime.now(dt.UTC)

    def change(k: int) -> Path | None:
        start.wait()
        try:
            return amend(fed.folder, expire={"silo-1": dt.date(2031, 1, k + 1)}, now=now).file
        except ParameterError:  # the name was taken, or the latest roster is not whole yet
            return None

    with ThreadPoolExecutor(4) as pool:
        made = {k: path for k, path in enumerate(pool.map(change, range(4))) if path is not None}
    assert made
    assert len(set(made.values())) == len(made)
    for k, path in made.items():
        assert Roster.load(path).silos[0].expires == dt.date(2031, 1, k + 1)
    assert Roster.load(fed.folder / "roster.toml") == fed.roster
