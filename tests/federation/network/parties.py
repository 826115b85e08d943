"""A small federation of parties with keys, as tests need it."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass
from functools import cache
from typing import Any

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.roster import Roster, ServerEntry, ShufflerEntry, SiloEntry
from tacit.federation.network.sealing import open_sealed, said_in
from tacit.federation.network.wire import Opened

NOW = dt.datetime(2026, 6, 1, 12, tzinfo=dt.UTC)


@dataclass(frozen=True)
class Parties:
    """All keys of a federation, which no party of a real one has.

    Attributes:
        roster: What all know.
        server: The server's key for signatures.
        opening: The server's key for what is sealed.
        shuffler: The shuffler's key.
        silos: By name.
    """

    roster: Roster
    server: SigningKey
    opening: OpeningKey
    shuffler: SigningKey
    silos: dict[str, SigningKey]

    def with_silo(self, name: str, **changes: Any) -> Parties:
        """Return the same with another entry of a silo."""
        silos = tuple(
            msgspec.structs.replace(one, **changes) if one.name == name else one for one in self.roster.silos
        )
        roster = msgspec.structs.replace(self.roster, silos=silos)
        return Parties(roster, self.server, self.opening, self.shuffler, self.silos)


def answer_in(reply: Opened, step: int, *, opening: OpeningKey) -> bytes:
    """Return what the silo has answered in a reply, as only the server can read it."""
    envelope = reply.envelope
    assert envelope.kind == "answered", reply
    about = said_in(federation=envelope.federation, run=envelope.run, step=step, silo=envelope.sender)
    return open_sealed(reply.body.sealed, key=opening, info=about)


def _secret(whose: str) -> bytes:
    return hashlib.sha256(whose.encode()).digest()


def signing_key(whose: str) -> SigningKey:
    """Return a key that is the same in every run of the tests."""
    return SigningKey(Ed25519PrivateKey.from_private_bytes(_secret(whose)))


@cache
def parties(silos: int = 4, *, size: int = 100) -> Parties:
    """Return a federation of silos "silo-1", "silo-2", ... of the same size, with a shuffler."""
    server, shuffler = signing_key("server"), signing_key("shuffler")
    opening = OpeningKey(X25519PrivateKey.from_private_bytes(_secret("opening")))
    keys = {f"silo-{k}": signing_key(f"silo-{k}") for k in range(1, silos + 1)}
    roster = Roster(
        federation="lab",
        server=ServerEntry(
            verify=server.public.to_text(), seal=opening.public.to_text(), url="https://localhost:8443"
        ),
        shuffler=ShufflerEntry(verify=shuffler.public.to_text(), url="https://localhost:8444"),
        silos=tuple(
            SiloEntry(name=name, size=size, verify=key.public.to_text()) for name, key in keys.items()
        ),
    )
    return Parties(roster, server, opening, shuffler, keys)
