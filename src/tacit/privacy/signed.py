"""What a party signs of a statement, and what can be told of signatures without any key.

Whether a signature is by the key that it should be by is checked where keys are known
(`tacit.federation.network.signatures`).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import msgspec

from tacit.errors import VerificationError
from tacit.privacy.guarantee import Guarantee

if TYPE_CHECKING:
    from tacit.privacy.statement import Statement

__all__ = [
    "TRUSTED_SIGNER",
    "ClaimSignature",
    "check_signatures",
    "claims_of",
    "raw_signature",
    "signed_text",
    "signer_of",
]

TRUSTED_SIGNER: Final = "server"
"""Who signs what a trusted server publishes; no silo of a federation is called so."""
_PLAN: Final = "plan.toml"
_BYTES: Final = 64


class ClaimSignature(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """That a party stands behind its guarantees in a statement.

    Attributes:
        signer: The name of a silo, or `TRUSTED_SIGNER`.
        federation: Name of the federation.
        run: Name of the run.
        plan: SHA-256 of the plan as TOML, in hexadecimal: that of plan.toml among the digests.
        signature: Of `signed_text`, as base64.
    """

    signer: str
    federation: str
    run: str
    plan: str
    signature: str


def signed_text(*, federation: str, run: str, plan: str, signer: str, claims: Sequence[Guarantee]) -> bytes:
    """Return what a party signs: all its guarantees, to the last word, and what they belong to.

    Args:
        federation: Name of the federation.
        run: Name of the run.
        plan: SHA-256 of the plan as TOML, in hexadecimal.
        signer: Who signs.
        claims: As they stand in the statement, in that order.

    Returns:
        One JSON array of these five, without blanks; guarantees as `Guarantee.to_builtins` has them.
    """
    return msgspec.json.encode([federation, run, plan, signer, [one.to_builtins() for one in claims]])


def signer_of(statement: Statement, number: int) -> str | None:
    """Return who has to sign a guarantee of a statement, by its index; None where that is nobody."""
    about = statement.about[number]
    if about.silo is not None:
        return about.silo
    return TRUSTED_SIGNER if about.trust == "central" else None


def claims_of(statement: Statement, signer: str) -> tuple[Guarantee, ...]:
    """Return the guarantees of a statement that a party has to sign, in their order."""
    return tuple(claim for k, claim in enumerate(statement.guarantees) if signer_of(statement, k) == signer)


def check_signatures(found: Statement) -> None:
    """Refuse signatures that contradict the statement, whoever made them.

    Raises:
        VerificationError: A signature about nothing that is there, two by one party, one of another run,
            plan or federation than the others, or one that is none.
    """
    if not found.signatures:
        return
    if found.kind != "train":
        raise VerificationError(f"a statement of kind {found.kind!r} carries no signatures.")
    seen: set[str] = set()
    federation = found.signatures[0].federation
    for one in found.signatures:
        who = f"the signature of {one.signer!r:.80}"
        if one.signer in seen:
            raise VerificationError(f"{who} comes twice.")
        seen.add(one.signer)
        if not claims_of(found, one.signer):
            raise VerificationError(f"{who} is about no guarantee that is there.")
        for what, stated, wanted in (
            ("run", one.run, found.run),
            ("federation", one.federation, federation),
            ("plan", one.plan, found.digests.get(_PLAN)),
        ):
            if stated != wanted:
                raise VerificationError(
                    f"{who} is of the {what} {stated!r:.80}, the statement of {wanted!r:.80}."
                )
        if len(raw_signature(one)) != _BYTES:
            raise VerificationError(f"{who} is not the base64 of {_BYTES} bytes.")


def raw_signature(one: ClaimSignature) -> bytes:
    """Return the bytes of a signature, none where it is not base64."""
    try:
        return base64.b64decode(one.signature, validate=True)
    except (binascii.Error, ValueError):
        return b""
