"""Signatures of statements, as far as they can be judged without a key."""

from __future__ import annotations

import base64
from typing import Any

import msgspec
import pytest

from tacit.errors import VerificationError
from tacit.privacy.signed import ClaimSignature, claims_of, signed_text, signer_of
from tacit.privacy.statement import About, Statement
from tests.privacy.test_statement import claim, read_again, run_of

PLAN = "5" * 64


def signed_run(*signatures: ClaimSignature) -> Statement:
    statement = run_of({"a": 3, "b": 4})
    digests = {**statement.digests, "plan.toml": PLAN}
    return msgspec.structs.replace(statement, digests=digests, signatures=signatures)


def signature(**changed: Any) -> ClaimSignature:
    fields = {"signer": "a", "federation": "lab", "run": "demo", "plan": PLAN}
    return ClaimSignature(**{**fields, "signature": base64.b64encode(bytes(64)).decode(), **changed})


BOTH = (signature(), signature(signer="b"))


def test_signatures_are_read_back_and_left_out_where_there_are_none() -> None:
    assert read_again(signed_run(*BOTH)) == signed_run(*BOTH)
    read_again(signed_run(*BOTH)).verify()
    read_again(signed_run(BOTH[1])).verify()  # who must sign is for those to say who have a roster
    assert "signatures" not in signed_run().to_builtins()


@pytest.mark.parametrize(
    ("signatures", "said"),
    [
        ((BOTH[0], BOTH[0]), "the signature of 'a' comes twice."),
        ((signature(signer="c"),), "the signature of 'c' is about no guarantee that is there."),
        ((signature(signer="server"),), "the signature of 'server' is about no guarantee that is there."),
        ((signature(run="other"),), "of 'a' is of the run 'other', the statement of 'demo'."),
        ((signature(plan="6" * 64),), "of 'a' is of the plan '66"),
        (
            (BOTH[0], signature(signer="b", federation="x")),
            "of 'b' is of the federation 'x', the statement of",
        ),
        ((signature(signature=""),), "of 'a' is not the base64 of 64 bytes."),
        ((signature(signature="é"),), "of 'a' is not the base64 of 64 bytes."),
        ((signature(signature=BOTH[0].signature + "\n"),), "of 'a' is not the base64 of 64 bytes."),
    ],
)
def test_a_signature_that_contradicts_the_statement_is_refused_without_any_key(
    signatures: tuple[ClaimSignature, ...], said: str
) -> None:
    with pytest.raises(VerificationError) as caught:
        signed_run(*signatures).verify()
    assert said in str(caught.value)


def test_a_plan_that_the_statement_does_not_name_cannot_be_signed_for() -> None:
    statement = msgspec.structs.replace(signed_run(*BOTH), digests={})
    with pytest.raises(VerificationError, match=r"is of the plan '5+', the statement of None"):
        statement.verify()


def test_only_runs_are_signed() -> None:
    statement = Statement(kind="guarantee", guarantees=(claim("a"),), signatures=BOTH)
    with pytest.raises(VerificationError, match="a statement of kind 'guarantee' carries no signatures"):
        statement.verify()


def test_a_signature_of_another_form_is_not_read() -> None:
    data = signed_run(*BOTH).to_builtins()
    for change in ({"more": 1}, {"run": 3}, {"signer": None}):
        wrong = {**data, "signatures": [{**msgspec.to_builtins(BOTH[0]), **change}]}
        with pytest.raises(VerificationError, match="it cannot be read"):
            from_builtins(wrong)


def from_builtins(data: dict[str, Any]) -> Statement:
    from tacit.privacy.statement_file import read_statement

    return read_statement(msgspec.json.encode(data))


def test_each_party_signs_its_own() -> None:
    claims = tuple(claim(name, level) for name in "ab" for level in (1.0, 2.0))
    about = [About(trust="shuffle", silo=name, alone=late) for name in "ab" for late in (False, True)]
    statement = msgspec.structs.replace(signed_run(), guarantees=claims, about=tuple(about))
    assert claims_of(statement, "a") == claims[:2]
    assert claims_of(statement, "b") == claims[2:]
    assert claims_of(statement, "server") == ()
    for trust, who in (("central", "server"), ("local", None), ("shuffle", None)):
        whole = msgspec.structs.replace(statement, about=(About(trust=trust),), guarantees=claims[:1])
        assert signer_of(whole, 0) == who


def test_no_two_claims_share_what_is_signed() -> None:
    fields: dict[str, Any] = {"federation": "f", "run": "r", "plan": PLAN, "signer": "a"}
    texts = {signed_text(**fields, claims=[claim("a")])}
    texts |= {signed_text(**{**fields, name: "other"}, claims=[claim("a")]) for name in fields}
    texts |= {
        signed_text(**fields, claims=claims)
        for claims in ([], [claim("a"), claim("a")], [claim("b")], [claim("a", 1.5)])
    }
    # A name that looks like the text between two names is still another name.
    texts.add(signed_text(**{**fields, "federation": 'f","r'}, claims=[claim("a")]))
    assert len(texts) == 1 + 4 + 4 + 1
    one = claim("a")
    for change in ({"simulated": True}, {"assumptions": ("x",)}, {"observer": "y"}, {"delta": 1e-9}):
        changed = msgspec.structs.replace(one, **change)
        assert signed_text(**fields, claims=[changed]) not in texts
