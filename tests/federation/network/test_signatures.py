"""Signed guarantees: what is signed is written down, and travels as 64 bytes."""

from __future__ import annotations

import hashlib
import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tacit.errors import AuthenticationError
from tacit.federation import Plan
from tacit.federation.network.roster import SERVER
from tacit.federation.network.signatures import check_claims, plan_digest, received_signature, sign_claims
from tacit.privacy import PureDP, guarantee
from tacit.privacy.signed import TRUSTED_SIGNER, raw_signature
from tests.federation.network.parties import signing_key
from tests.federation.world import plan_of

KEY = signing_key("a silo")
CLAIMS = [guarantee(PureDP(k), 0.0, observer=f"observer {k}") for k in (1.0, 2.0)]


def plan(rounds: int = 2) -> Plan:
    return plan_of(rounds=rounds)


def test_a_signature_travels_as_bytes_and_holds_for_what_was_signed_only() -> None:
    one = sign_claims(KEY, CLAIMS, federation="lab", run="run", plan=plan(), signer="a")
    raw = raw_signature(one)
    assert len(raw) == 64
    assert received_signature(raw, federation="lab", run="run", plan=plan(), signer="a") == one
    check_claims(one, CLAIMS, key=KEY.public)
    others = (
        received_signature(raw, federation="lab", run="run", plan=plan(), signer="b"),
        received_signature(raw, federation="lab", run="other", plan=plan(), signer="a"),
        received_signature(raw, federation="other", run="run", plan=plan(), signer="a"),
        received_signature(raw, federation="lab", run="run", plan=plan(3), signer="a"),
        received_signature(raw[:-1], federation="lab", run="run", plan=plan(), signer="a"),
    )
    for other in others:
        with pytest.raises(AuthenticationError, match="the signature of the guarantee is not by the key"):
            check_claims(other, CLAIMS, key=KEY.public)
    for claims in (CLAIMS[:1], CLAIMS[::-1], [*CLAIMS, CLAIMS[0]], []):
        with pytest.raises(AuthenticationError, match="the signature of the guarantee is not by the key"):
            check_claims(one, claims, key=KEY.public)
    with pytest.raises(AuthenticationError, match="is not by the key"):
        check_claims(one, CLAIMS, key=signing_key("another silo").public)


def test_what_is_signed_is_written_down() -> None:
    """Other software must be able to check a signature, from the statement and the roster alone."""
    one = sign_claims(KEY, CLAIMS, federation="lab", run="run", plan=plan(), signer="a")
    digest = hashlib.sha256(plan().to_toml().encode()).hexdigest()
    assert one.plan == plan_digest(plan()) == digest
    said = ["lab", "run", digest, "a", [claim.to_builtins() for claim in CLAIMS]]
    text = json.dumps(said, separators=(",", ":"), ensure_ascii=False).encode()
    Ed25519PublicKey.from_public_bytes(KEY.public.raw).verify(
        raw_signature(one), b"tacit 1 guarantee\0" + text
    )


def test_the_server_is_called_the_same_everywhere() -> None:
    assert TRUSTED_SIGNER == SERVER
