"""Signed guarantees: what is signed is written down, and travels as 64 bytes."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tacit.errors import AuthenticationError, VerificationError
from tacit.federation import Plan, Silo
from tacit.federation.network.channel import LocalChannel
from tacit.federation.network.roster import SERVER
from tacit.federation.network.signatures import check_claims, plan_digest, received_signature, sign_claims
from tacit.federation.network.wire import Accepted, open_reply, open_request, seal_reply
from tacit.means import AnyNoise, DiscreteGaussianNoise, GaussianNoise
from tacit.privacy import CONTINUOUS, Guarantee, PureDP, guarantee
from tacit.privacy.signed import TRUSTED_SIGNER, raw_signature
from tacit.randomness import simulated
from tests.federation.network.deployed_world import consent, parties_of, server, service
from tests.federation.network.parties import NOW, signing_key
from tests.federation.world import STATISTICS, Rows, mean_of, plan_of, rows

NOISE = DiscreteGaussianNoise(3.0)
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


def accepted(
    folder: Path, change: Callable[[Accepted], Accepted], noise: AnyNoise = NOISE
) -> list[Guarantee]:
    """Open a run of two silos; what the second says as it accepts is changed, under its own key."""
    known = parties_of([40, 40])
    plan = plan_of(mean_of(noise), parties=2)
    with ExitStack() as stack:
        services = []
        for name in known.silos:
            named = Silo(Rows(rows(0, 40)), STATISTICS, name=name, rng=simulated(0, name))
            consent(known, plan, "run", folder / name)
            services.append(stack.enter_context(closing(service(known, named, folder / name))))
        first, second = services

        def lying(request: bytes) -> bytes:
            reply = second.handle(request)
            asked = open_request(request, roster=known.roster, silo="silo-2", now=NOW)
            said = open_reply(reply, request=request, roster=known.roster, now=NOW).body
            if not isinstance(said, Accepted):
                return reply
            return seal_reply(
                "accepted",
                change(said),
                request=asked.envelope,
                roster=known.roster,
                silo="silo-2",
                key=known.silos["silo-2"],
            )

        channel = LocalChannel({"silo-1": first.handle, "silo-2": lying})
        stack.callback(channel.close)
        return server(known, channel).open(plan, run="run").guarantees


def test_a_server_opens_no_run_with_a_silo_that_does_not_stand_behind_its_word(tmp_path: Path) -> None:
    claims = accepted(tmp_path / "true", lambda said: said)
    assert len(claims) == 2
    assert all(claim.simulated for claim in claims)

    def honest(said: Accepted) -> Accepted:
        """Return the claim of a silo that denies its seed, priced truly and signed as before."""
        claim = Guarantee.from_json(said.guarantee)
        other = msgspec.structs.replace(claim, simulated=False, assumptions=(*claim.assumptions, CONTINUOUS))
        return msgspec.structs.replace(said, guarantee=other.to_json(), simulated=False)

    for k, change in enumerate(
        (
            honest,
            lambda said: msgspec.structs.replace(said, signature=b""),
            lambda said: msgspec.structs.replace(said, signature=bytes(64)),
        )
    ):
        with pytest.raises(VerificationError, match="silo 'silo-2' has not signed what it guarantees"):
            accepted(tmp_path / str(k), change)


LIES: dict[str, Callable[[Guarantee], dict[str, object]]] = {
    "a lower price": lambda _: {"epsilon": 0.001},
    "no price": lambda _: {"epsilon": math.inf},
    "another method": lambda _: {"method": "trust me"},
    "another observer": lambda _: {"observer": "nobody but silo 'silo-2'"},
    "no seed": lambda _: {"simulated": False},
    "a condition less": lambda _: {"assumptions": ()},
}


@pytest.mark.parametrize("lie", LIES)
def test_a_server_opens_no_run_with_a_silo_whose_word_is_not_the_price(lie: str, tmp_path: Path) -> None:
    """It would be printed beside true prices, and whoever verifies the statement would refuse all of it."""
    known, noise = parties_of([40, 40]), GaussianNoise(3.0) if lie == "a condition less" else NOISE
    asked = plan_of(mean_of(noise), parties=2)

    def lied(said: Accepted) -> Accepted:
        claim = Guarantee.from_json(said.guarantee)
        simulated = lie != "a condition less"
        other = msgspec.structs.replace(claim, **({"simulated": simulated} | LIES[lie](claim)))
        signed = sign_claims(
            known.silos["silo-2"], [other], federation="lab", run="run", plan=asked, signer="silo-2"
        )
        return msgspec.structs.replace(
            said, guarantee=other.to_json(), signature=raw_signature(signed), simulated=simulated
        )

    with pytest.raises(VerificationError, match="silo 'silo-2' states"):
        accepted(tmp_path, lied, noise)
