"""Signed guarantees: each party signs what it promises, so that a statement shows who stands behind it.

A silo signs its guarantees as they will stand in the statement, with the run, the digest of the plan that it
answers, and the name of the federation; a trusted server signs what it publishes. Whoever has the roster can
then tell a claim that its party made from one that somebody edited, added or took from elsewhere.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
from collections.abc import Sequence

from tacit.errors import AuthenticationError, VerificationError, shown
from tacit.federation.network.keys import SigningKey, VerifyKey
from tacit.federation.network.roster import SERVER, Roster
from tacit.federation.plan import Plan
from tacit.privacy import Guarantee
from tacit.privacy.signed import (
    TRUSTED_SIGNER,
    ClaimSignature,
    check_signatures,
    claims_of,
    raw_signature,
    signed_text,
    signer_of,
)
from tacit.privacy.statement import Statement

__all__ = ["check_claims", "plan_digest", "received_signature", "sign_claims", "verify_signatures"]


def plan_digest(plan: Plan) -> str:
    """Return the SHA-256 of a plan as a run folder holds it, plan.toml, in hexadecimal."""
    return hashlib.sha256(plan.to_toml().encode()).hexdigest()


def sign_claims(
    key: SigningKey, claims: Sequence[Guarantee], *, federation: str, run: str, plan: Plan, signer: str
) -> ClaimSignature:
    """Return a party's signature of its guarantees.

    Args:
        key: The party's.
        claims: All its guarantees, exactly as they will stand in the statement, in that order.
        federation: Name of the federation.
        run: Name of the run.
        plan: That the guarantees are of.
        signer: Name of the silo, or `SERVER`.
    """
    digest = plan_digest(plan)
    text = signed_text(federation=federation, run=run, plan=digest, signer=signer, claims=claims)
    raw = key.sign("guarantee", text)
    return received_signature(raw, federation=federation, run=run, plan=plan, signer=signer)


def received_signature(raw: bytes, *, federation: str, run: str, plan: Plan, signer: str) -> ClaimSignature:
    """Return a signature as statements hold it, from its 64 bytes (`Accepted.signature`, `raw_signature`)."""
    signature = base64.b64encode(raw).decode()
    return ClaimSignature(
        signer=signer, federation=federation, run=run, plan=plan_digest(plan), signature=signature
    )


def check_claims(one: ClaimSignature, claims: Sequence[Guarantee], *, key: VerifyKey) -> None:
    """Refuse a signature that is not by a key, about these guarantees.

    Raises:
        AuthenticationError: It is not.
    """
    text = signed_text(
        federation=one.federation, run=one.run, plan=one.plan, signer=one.signer, claims=claims
    )
    key.verify("guarantee", text, raw_signature(one))


def verify_signatures(statement: Statement, roster: Roster) -> tuple[str, ...]:
    """Return who stands behind each guarantee of a statement.

    Args:
        statement: As it was read; that its numbers follow from its events is not checked here.
        roster: Whose keys count, known to be the federation's.

    Returns:
        For each guarantee the name of the silo that signed it, or `SERVER`.

    Raises:
        VerificationError: A guarantee that nobody signed, or that is not what was signed; a signature of
            another federation, of nobody in the roster, by a key that is revoked, or that had expired when
            the statement was made; data of other silos than the roster's, or of other sizes.
    """
    check_signatures(statement)
    if statement.kind != "train":
        raise VerificationError("nobody signs a statement that is not of a run.")
    signed = {one.signer: one for one in statement.signatures}
    found = []
    for number in range(len(statement.guarantees)):
        signer = signer_of(statement, number)
        if signer is None:
            raise VerificationError(
                f"guarantee {number + 1} is about all silos together: nobody can sign it."
            )
        if signer not in signed:
            raise VerificationError(
                f"no signature of {_called(signer)} stands behind guarantee {number + 1}."
            )
        found.append(signer)
    for one in statement.signatures:
        _check_signer(one.signer, statement, roster)
        if one.federation != roster.federation:
            raise VerificationError(
                f"the signature of {_called(one.signer)} is of the federation {shown(one.federation)}, the "
                f"roster of {shown(roster.federation)}."
            )
        try:
            check_claims(one, claims_of(statement, one.signer), key=roster.verify_key(one.signer))
        except AuthenticationError:
            raise VerificationError(
                f"{_called(one.signer)} did not sign what the statement says of it: a guarantee was edited, "
                "or it is signed by another key or for another run or plan."
            ) from None
    _check_all(statement, roster)
    return tuple(found)


def _check_all(statement: Statement, roster: Roster) -> None:
    """Refuse a statement that leaves out a silo, and all that it has signed: runs ask the whole roster."""
    stated = {} if statement.data is None else statement.data.sizes
    for one in roster.silos:
        if one.name not in stated:
            raise VerificationError(
                f"silo {shown(one.name)} of the roster is missing: the data of the statement are of "
                f"{len(stated)} silos, the roster is of {len(roster.silos)}."
            )
        if stated[one.name] not in (None, one.size):
            raise VerificationError(
                f"silo {shown(one.name)} has {one.size} units in the roster, {stated[one.name]} in the "
                "statement."
            )
    if len(stated) > len(roster.silos):
        raise VerificationError("the data of the statement are of silos that are not in the roster.")


def _check_signer(signer: str, statement: Statement, roster: Roster) -> None:
    """Refuse a signer that is not in the roster, or whose key does not count."""
    if signer == SERVER:
        return
    try:
        entry = roster.silo(signer)
    except AuthenticationError as error:
        raise VerificationError(str(error)) from error
    # Without a date nobody can tell whether a key that has expired had done so.
    made = dt.datetime.now(dt.UTC) if statement.created is None else _time(statement.created)
    if (why := entry.why_not(made)) is not None:
        raise VerificationError(f"{why}, when the statement was made: its signature does not count.")


def _time(created: str) -> dt.datetime:
    """Return when a statement was made; without a zone, in UTC."""
    made = dt.datetime.fromisoformat(created)
    return made if made.tzinfo is not None else made.replace(tzinfo=dt.UTC)


def _called(signer: str) -> str:
    """Return how a message calls who signed."""
    return "the server" if signer == TRUSTED_SIGNER else f"silo {shown(signer)}"
