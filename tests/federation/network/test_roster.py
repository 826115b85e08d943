"""The roster: read back equal, checked field by field, and asked who may take part."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.roster import SERVER, SHUFFLER, Roster, SiloEntry
from tests.federation.network.parties import NOW, parties, signing_key

LAB = parties()
TEXT = LAB.roster.to_toml()
KEY = signing_key("one").public.to_text()


def changed(old: str, new: str, count: int = 1) -> str:
    assert old in TEXT
    return TEXT.replace(old, new, count)


def test_a_roster_comes_back_from_its_text_and_file(tmp_path: Path) -> None:
    for roster in (
        LAB.roster,
        LAB.with_silo("silo-2", revoked=True, expires=dt.date(2027, 1, 2)).roster,
        msgspec.structs.replace(LAB.roster, shuffler=None, federation="Bergen, 東"),
    ):
        assert Roster.from_toml(roster.to_toml()) == roster
        assert Roster.from_toml(roster.to_toml()).digest() == roster.digest()
    path = tmp_path / "roster.toml"
    LAB.roster.save(path)
    assert Roster.load(path) == LAB.roster
    with pytest.raises(ParameterError, match=r"roster.toml is there already, and is never overwritten"):
        LAB.roster.save(path)
    with pytest.raises(ParameterError, match="cannot be written: No such file"):
        LAB.roster.save(tmp_path / "none" / "roster.toml")


def test_any_other_roster_has_another_digest() -> None:
    others = [
        LAB.roster,
        LAB.with_silo("silo-1", size=7).roster,
        LAB.with_silo("silo-1", revoked=True).roster,
        LAB.with_silo("silo-1", expires=dt.date(2027, 1, 2)).roster,
        LAB.with_silo("silo-1", verify=KEY).roster,
        msgspec.structs.replace(LAB.roster, silos=LAB.roster.silos[::-1]),
        msgspec.structs.replace(LAB.roster, shuffler=None),
    ]
    assert len({one.digest() for one in others}) == len(others)


def test_silos_are_found_by_name_and_place() -> None:
    assert [LAB.roster.index(one.name) for one in LAB.roster.silos] == [0, 1, 2, 3]
    assert LAB.roster.silo("silo-3") is LAB.roster.silos[2]
    assert LAB.roster.sizes == (100,) * 4
    assert LAB.roster.verify_key("silo-3") == LAB.silos["silo-3"].public
    assert LAB.roster.verify_key(SERVER) == LAB.server.public
    assert LAB.roster.verify_key(SHUFFLER) == LAB.shuffler.public
    assert LAB.roster.sealing_key == LAB.opening.public
    for ask in (LAB.roster.silo, LAB.roster.index, LAB.roster.verify_key):
        with pytest.raises(AuthenticationError, match="silo 'silo-9' is not in the roster of 'lab'"):
            ask("silo-9")
    with pytest.raises(AuthenticationError, match="the roster of 'lab' names no shuffler"):
        msgspec.structs.replace(LAB.roster, shuffler=None).verify_key(SHUFFLER)


def test_revoked_and_expired_silos_are_not_active() -> None:
    last = NOW.date()
    roster = LAB.with_silo("silo-1", revoked=True).with_silo("silo-2", expires=last).roster
    assert [one.name for one in roster.active(NOW)] == ["silo-2", "silo-3", "silo-4"]
    end = dt.datetime.combine(last, dt.time(23, 59, 59), dt.UTC)
    assert [one.name for one in roster.active(end)] == ["silo-2", "silo-3", "silo-4"]
    late = end + dt.timedelta(seconds=1)
    assert [one.name for one in roster.active(late)] == ["silo-3", "silo-4"]
    assert roster.check_active("silo-3", late).name == "silo-3"
    with pytest.raises(AuthenticationError, match=f"the key of silo 'silo-2' has expired on {last}"):
        roster.check_active("silo-2", late)
    with pytest.raises(AuthenticationError, match="silo 'silo-1' is revoked in the roster"):
        roster.check_active("silo-1", NOW)
    with pytest.raises(AuthenticationError, match="silo 'x' is not in the roster"):
        roster.check_active("x", NOW)
    with pytest.raises(ParameterError, match="now must be a time with its zone"):
        roster.active(NOW.replace(tzinfo=None))


SERVER_KEY, SEAL = LAB.roster.server.verify, LAB.roster.server.seal
FIRST, SECOND = LAB.roster.silos[0].verify, LAB.roster.silos[1].verify
SHUFFLES = LAB.roster.shuffler.verify if LAB.roster.shuffler else ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (changed('federation = "lab"', 'federation = ""'), "federation must be a printable text"),
        (changed('federation = "lab"', "federation = 3"), "Expected `str`, got `int` - at `$.federation`"),
        (changed('federation = "lab"\n', ""), "missing required field `federation`"),
        (changed("version = 1", "version = 2"), "the roster has version 2; this tacit reads 1"),
        (changed("version = 1", 'version = 1\nname = "x"'), "unknown field `name`"),
        (changed(SERVER_KEY, "abc"), "server.verify: a key that verifies must be the base64 of 32 bytes"),
        (
            changed(SERVER_KEY, "A" * 43 + "="),
            "server.verify: a key that verifies must not be of small order",
        ),
        (changed(SEAL, "abc"), "server.seal: a key that seals must be the base64 of 32 bytes"),
        (changed(SEAL, "A" * 43 + "="), "server.seal: a key that seals must not be of small order"),
        (changed(SHUFFLES, "abc"), "shuffler.verify: a key that verifies must be the base64 of 32 bytes"),
        (changed("https://localhost:8443", "http://localhost"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://a/b"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://a:b"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://a:99999"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://u:p@a"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://a?x=1"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8443", "https://[::1"), "server.url must be 'https://host[:port]'"),
        (changed("https://localhost:8444", "localhost"), "shuffler.url must be 'https://host[:port]'"),
        (changed('"silo-1"', '""'), "the name of a silo must be a printable text"),
        (changed('"silo-1"', '"server"'), "the name of a silo must be none of 'server', 'shuffler'"),
        (changed('"silo-1"', '"shuffler"'), "the name of a silo must be none of 'server', 'shuffler'"),
        (changed('"silo-1"', '"../silo"'), "the name of a silo must be none of"),
        (changed('"silo-1"', '"a/b"'), "hold no slash, got 'a/b'"),
        (
            changed('"silo-1"', '"silo-2"'),
            "the name of a silo must stand once in a roster, got 'silo-2' twice",
        ),
        (changed("size = 100", "size = 0"), "the size of silo 'silo-1' must be a whole number from 1"),
        (changed("size = 100", "size = 1.5"), "Expected `int`, got `float` - at `$.silos[0].size`"),
        (changed("size = 100", "size = true"), "Expected `int`, got `bool`"),
        (changed(FIRST, "abc"), "the key of silo 'silo-1': a key that verifies must be the base64"),
        (changed(FIRST, SECOND), f"a key must stand once in a roster, got '{SECOND}' twice"),
        (changed(FIRST, SERVER_KEY), f"a key must stand once in a roster, got '{SERVER_KEY}' twice"),
        (changed(FIRST, SHUFFLES), f"a key must stand once in a roster, got '{SHUFFLES}' twice"),
        (changed("size = 100", "size = 100\nrevoked = 1"), "Expected `bool`, got `int`"),
        (changed("size = 100", 'size = 100\nexpires = "soon"'), "Expected `date | null`, got `str`"),
        (changed("size = 100", "size = 100\nexpires = 2027-13-01"), "the roster cannot be read"),
        (changed("size = 100", "size = 100\nplace = 1"), "unknown field `place` - at `$.silos[0]`"),
        (TEXT[: TEXT.index("[[silos]]")], "missing required field `silos`"),
        (
            TEXT[: TEXT.index("[[silos]]")].replace("version", "silos = []\nversion"),
            "the number of silos must be",
        ),
        ("federation = ", "the roster cannot be read"),
        ("x" * (2**22 + 1), "a roster must be a text of at most 4,194,304 characters"),
    ],
)
def test_every_field_is_checked(text: str, why: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(why)):
        Roster.from_toml(text)


def test_files_that_are_no_roster_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"the roster .*none.toml cannot be read: No such file"):
        Roster.load(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b"federation = '\xe9'")
    with pytest.raises(ParameterError, match=r"latin.toml must be a text in UTF-8"):
        Roster.load(tmp_path / "latin.toml")


def test_an_entry_is_checked_wherever_it_is_made() -> None:
    entry: dict[str, Any] = {"name": "a", "size": 1, "verify": KEY}
    assert SiloEntry(**entry).why_not(NOW) is None
    for change in ({"name": ".a"}, {"size": 2**63}, {"verify": ""}):
        with pytest.raises(ParameterError, match="silo"):
            SiloEntry(**{**entry, **change})
