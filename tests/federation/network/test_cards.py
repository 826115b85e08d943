"""Cards: what is read is what was written and signed, and digits that tell every other card apart."""

from __future__ import annotations

import base64
import re
import stat
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tacit.errors import AuthenticationError, ParameterError
from tacit.federation.network.cards import Card, roster_of_cards
from tacit.federation.network.certificates import ServiceKey
from tacit.federation.network.keys import OpeningKey, Purpose, fingerprint
from tests.federation.network.parties import signing_key

URL = "https://server.example.org:8443"


def card(role: str, name: str | None = None, *, key: str | None = None, **changes: Any) -> Card:
    """Return a signed card with a key of its own."""
    signing = signing_key(key or name or role)
    fields: dict[str, Any] = {"role": role, "name": name or role, "verify": signing.public.to_text()}
    if role != "silo":
        fields |= {"url": URL, "tls": ServiceKey.make().public}
    if role == "server":
        fields["seal"] = OpeningKey.make().public.to_text()
    return Card(**(fields | changes)).signed(signing)


CARDS = [card("server"), card("shuffler"), card("silo", "north", size=60), card("silo", "south")]


@pytest.mark.parametrize("one", CARDS, ids=lambda one: one.name)
def test_a_card_is_read_as_it_was_written(tmp_path: Path, one: Card) -> None:
    path = tmp_path / "a.card.toml"
    one.save(path)
    assert Card.load(path) == one
    assert stat.S_IMODE(path.stat().st_mode) & 0o044  # public
    with pytest.raises(ParameterError, match="never overwritten"):
        one.save(path)


@pytest.mark.parametrize("one", CARDS, ids=lambda one: one.name)
def test_a_card_that_was_changed_is_refused(one: Card) -> None:
    """Every field is signed; somebody with another key cannot sign for this one."""
    others: dict[str, Any] = {
        "name": "west",
        "verify": signing_key("somebody").public.to_text(),
        "size": 61,
        "url": "https://elsewhere.example.org",
        "seal": OpeningKey.make().public.to_text(),
        "tls": ServiceKey.make().public,
    }
    seen = {one.fingerprint()}
    changed = 0
    for field, value in others.items():
        try:
            edited = msgspec.structs.replace(one, **{field: value})
        except ParameterError:  # no field of this role
            continue
        changed += 1
        with pytest.raises(AuthenticationError, match="is not signed by its own key"):
            Card.from_toml(edited.to_toml())
        with pytest.raises(AuthenticationError):
            Card.from_toml(edited.signed(signing_key("mallory")).to_toml())
        seen.add(edited.fingerprint())
    assert changed >= 2
    assert len(seen) == changed + 1


def test_another_purpose_signs_no_card() -> None:
    one = CARDS[2]
    purposes: tuple[Purpose, ...] = ("poll", "guarantee")
    for purpose in purposes:
        raw = signing_key("north").sign(purpose, one._text())
        forged = msgspec.structs.replace(one, signature=base64.b64encode(raw).decode())
        with pytest.raises(AuthenticationError):
            forged.check_signature()
    for text in ("", "abc", "****"):
        with pytest.raises(AuthenticationError):
            msgspec.structs.replace(one, signature=text).check_signature()


def test_digits_are_the_same_on_all_machines() -> None:
    """SHA-256 of the prefix and the bytes, modulo 10**30."""
    assert re.fullmatch(r"(\d{5} ){5}\d{5}", CARDS[0].fingerprint())
    assert fingerprint(b"") == "05793 22432 04020 25474 75357 27222"
    assert fingerprint(b"a") != fingerprint(b"")
    signed_by_nobody = msgspec.structs.replace(CARDS[0], signature="")
    assert signed_by_nobody.fingerprint() == CARDS[0].fingerprint()


@pytest.mark.parametrize(
    ("role", "changes", "says"),
    [
        ("silo", {"name": "../a"}, "the name of a silo must be none of"),
        ("silo", {"name": "server"}, "the name of a silo must be none of"),
        ("silo", {"size": 0}, "size"),
        ("silo", {"size": -3}, "size"),
        ("silo", {"url": URL}, "url must not stand on the card of a silo"),
        ("silo", {"seal": "a"}, "seal must not stand on the card of a silo"),
        ("silo", {"verify": "a"}, "must be the base64 of 32 bytes"),
        ("server", {"name": "main"}, "name must be 'server' on the card of the server"),
        ("server", {"url": None}, "url must stand on the card of a server"),
        ("server", {"url": "http://a"}, "server.url must be 'https://host"),
        ("server", {"seal": None}, "seal must stand on the card of a server"),
        ("server", {"tls": "AAAA"}, "tls must be the base64 of a compressed point of P-256"),
        ("server", {"tls": "A" * 44}, "tls must be the base64 of a compressed point of P-256"),
        ("server", {"size": 3}, "size must not stand on the card of a server"),
        ("shuffler", {"seal": "a"}, "seal must not stand on the card of a shuffler"),
        ("shuffler", {"tls": None}, "tls must stand on the card of a shuffler"),
        ("shuffler", {"version": 2}, "the card has version 2; this tacit reads 1"),
    ],
)
def test_what_stands_on_no_card(role: str, changes: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError) as caught:
        card(role, key="a", **({"name": "north"} if role == "silo" else {}) | changes)
    assert says in str(caught.value)


def test_files_that_are_no_cards(tmp_path: Path) -> None:
    path = tmp_path / "a.card.toml"
    with pytest.raises(ParameterError, match=r"a\.card\.toml cannot be read: No such file"):
        Card.load(path)
    for data, says in [
        (b"\xff", "must be a text in UTF-8"),
        (b"role = ", "the card cannot be read"),
        (b"version = 7\nfuture = 1", "has version 7"),
        (CARDS[0].to_toml().encode() + b"more = 1\n", "unknown field `more`"),
        (b"#" * 2**17, "must have at most 65,536 bytes"),
    ]:
        path.write_bytes(data)
        with pytest.raises(ParameterError, match=re.escape(says)) as caught:
            Card.load(path)
        assert str(path) in str(caught.value)


def test_a_roster_of_cards() -> None:
    roster = roster_of_cards("lab", CARDS, [60, 70])
    assert [(one.name, one.size, one.verify) for one in roster.silos] == [
        ("north", 60, CARDS[2].verify), ("south", 70, CARDS[3].verify),
    ]  # fmt: skip
    assert (roster.server.url, roster.server.seal) == (URL, CARDS[0].seal)
    assert roster_of_cards("lab", [CARDS[2], CARDS[0]], [60]).shuffler is None


@pytest.mark.parametrize(
    ("cards", "sizes", "says"),
    [
        (CARDS[1:], [60, 70], "got 0 of a server"),
        ([*CARDS, card("server", key="other")], [60, 70], "got 2 of a server"),
        ([*CARDS, card("shuffler", key="other")], [60, 70], "2 of a shuffler"),
        (CARDS[:2], [], "the number of silos"),
        (CARDS, [61, 70], "the size of silo 'north' must be 61, got 60 on its card"),
        ([*CARDS, card("silo", "north", key="x")], [60, 70, 80], "the name of a silo must stand once"),
        ([*CARDS, card("silo", "west", key="south")], [60, 70, 80], "a key must stand once"),
        ([*CARDS, card("silo", "west", key="server")], [60, 70, 80], "a key must stand once"),
    ],
)
def test_cards_that_make_no_roster(cards: list[Card], sizes: list[int], says: str) -> None:
    with pytest.raises(ParameterError, match=re.escape(says)):
        roster_of_cards("lab", cards, sizes)
