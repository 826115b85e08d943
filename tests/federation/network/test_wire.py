"""Messages: signed by whom they say, about what they say, and refused whatever else they are."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tacit.errors import ParameterError
from tacit.federation import Query
from tacit.federation.network import wire
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.roster import SERVER
from tacit.federation.network.wire import (
    Accepted,
    Answered,
    AskedRound,
    Closed,
    Closing,
    Considered,
    Envelope,
    MaskReply,
    MaskRequest,
    ProposedPlan,
    RefusalCode,
    Refused,
    Uploaded,
    WireError,
    decode_query,
    encode_query,
    open_reply,
    open_request,
    seal_reply,
    seal_request,
)
from tacit.privacy import PrivacyBudget
from tests.federation.network.parties import NOW, parties

LAB = parties()
ONE, TWO = "silo-1", "silo-2"

REQUESTS: list[tuple[Any, Any]] = [
    ("consider", ProposedPlan("plan = 1", "run", 0)),
    ("accept", ProposedPlan("plan = 1", "run", 3, 1.5, 1e-6)),
    ("mask", MaskRequest("agree", b"cards")),
    ("ask", AskedRound(b"query", b"descriptor")),
    ("close", Closing()),
]
REPLIES: list[tuple[Any, Any, Any]] = [
    ("consider", "considered", Considered(b"{}", b"", 100, None, simulated=False)),
    ("accept", "accepted", Accepted(b"{}", b"{}", 100, bytes(16), simulated=True, signature=bytes(64))),
    ("mask", "masked", MaskReply(b"card")),
    ("ask", "answered", Answered(b"answer")),
    ("ask", "uploaded", Uploaded()),
    ("close", "closed", Closed()),
    *((kind, "refused", Refused(RefusalCode.BUDGET)) for kind, _ in REQUESTS),
]


def request(kind: Any = "ask", body: Any = None, *, run: str = "run", to: str = ONE) -> bytes:
    body = dict(REQUESTS)[kind] if body is None else body
    return seal_request(kind, body, roster=LAB.roster, run=run, to=to, key=LAB.server)


def opened(data: bytes, *, silo: str = ONE, now: dt.datetime = NOW) -> wire.Opened:
    return open_request(data, roster=LAB.roster, silo=silo, now=now)


def reply(kind: Any, body: Any, asked: bytes, *, silo: str = ONE, key: SigningKey | None = None) -> bytes:
    envelope = opened(asked).envelope
    return seal_reply(kind, body, request=envelope, roster=LAB.roster, silo=silo, key=key or LAB.silos[silo])


def signed(fields: dict[str, Any], *, by: SigningKey, purpose: Any) -> bytes:
    """Return a message with any fields, signed whatever it says."""
    return Envelope(**fields).with_signature(by, purpose).to_bytes()


def fields_of(data: bytes) -> dict[str, Any]:
    return msgspec.structs.asdict(msgspec.msgpack.decode(data, type=Envelope))


def refused(data: bytes, code: RefusalCode, why: str, **where: Any) -> WireError:
    with pytest.raises(WireError, match=why) as caught:
        opened(data, **where)
    assert caught.value.code is code
    return caught.value


def refused_reply(data: bytes, asked: bytes, code: RefusalCode, why: str) -> None:
    with pytest.raises(WireError, match=why) as caught:
        open_reply(data, request=asked, roster=LAB.roster, now=NOW)
    assert caught.value.code is code


@pytest.mark.parametrize(("kind", "body"), REQUESTS)
def test_a_request_says_at_the_silo_what_the_server_wrote(kind: Any, body: Any) -> None:
    found = opened(request(kind, body))
    assert found.body == body
    assert type(found.body) is type(body)
    assert (found.envelope.kind, found.envelope.run, found.envelope.to) == (kind, "run", ONE)


@pytest.mark.parametrize(("asked", "kind", "body"), REPLIES)
def test_a_reply_says_at_the_server_what_the_silo_wrote(asked: str, kind: Any, body: Any) -> None:
    data = request(asked)
    found = open_reply(reply(kind, body, data), request=data, roster=LAB.roster, now=NOW)
    assert found.body == body
    assert type(found.body) is type(body)
    assert (found.envelope.sender, found.envelope.to) == (ONE, SERVER)


def test_every_kind_of_message_is_tested_here() -> None:
    assert {kind for kind, _ in REQUESTS} == set(wire._REQUESTS)
    assert {kind for _, kind, _ in REPLIES} == set(wire._REPLIES)
    assert {(asked, kind) for asked, kind, _ in REPLIES} == {
        (asked, kind) for asked, kinds in wire._REPLIES_TO.items() for kind in kinds
    }


def test_a_proposal_carries_its_budget() -> None:
    assert ProposedPlan("", "run", 0).budget is None
    assert ProposedPlan("", "run", 0, 2.0).budget == PrivacyBudget(2.0)
    assert ProposedPlan("", "run", 0, 2.0, 1e-6).budget == PrivacyBudget(2.0, 1e-6)
    for epsilon, delta in ((None, 1e-6), (0.0, None), (math.nan, None), (1.0, 1.0)):
        with pytest.raises(ParameterError, match=r"delta|epsilon"):
            ProposedPlan("", "run", 0, epsilon, delta)


def test_two_equal_requests_differ_so_that_an_old_reply_does_not_pass() -> None:
    first, second = request("consider"), request("consider")
    assert first != second
    old = reply("refused", Refused(RefusalCode.CONSENT), first)
    refused_reply(old, second, RefusalCode.SIGNATURE, "replied to another request")


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"version": 1}, RefusalCode.VERSION, "the message has version 1; this tacit reads 2"),
        ({"federation": "bal"}, RefusalCode.ROSTER, "must be of the federation 'lab', got 'bal'"),
        ({"run": "a\nb"}, RefusalCode.ROSTER, "run must be a printable text"),
        ({"sender": TWO}, RefusalCode.ROSTER, "must be by 'server', got 'silo-2'"),
        ({"to": TWO}, RefusalCode.ROSTER, "must be to 'silo-1', got 'silo-2'"),
        ({"kind": "answered"}, RefusalCode.FAILED, "must be one of consider, accept, mask, ask, close, got"),
        ({"kind": "close"}, RefusalCode.FAILED, "body of 'close' cannot be read"),
        ({"body": b"\x93"}, RefusalCode.FAILED, "body of 'ask' cannot be read"),
        ({"body": b""}, RefusalCode.FAILED, "body of 'ask' cannot be read"),
        ({"about": bytes(32)}, RefusalCode.SIGNATURE, "a request is about no other, and has a nonce"),
        ({"nonce": b""}, RefusalCode.SIGNATURE, "a request is about no other, and has a nonce"),
    ],
)
def test_a_silo_refuses_a_signed_request_that_is_not_for_it(
    change: dict[str, Any], code: RefusalCode, why: str
) -> None:
    refused(signed({**fields_of(request()), **change}, by=LAB.server, purpose="request"), code, why)


@pytest.mark.parametrize(
    ("change", "code", "why"),
    [
        ({"version": 0}, RefusalCode.VERSION, "the message has version 0"),
        ({"federation": "bal"}, RefusalCode.ROSTER, "must be of the federation 'lab', got 'bal'"),
        ({"run": "nur"}, RefusalCode.SIGNATURE, "'silo-1' replied to another request"),
        ({"sender": TWO}, RefusalCode.ROSTER, "must be by 'silo-1', got 'silo-2'"),
        ({"to": ONE}, RefusalCode.ROSTER, "must be to 'server', got 'silo-1'"),
        ({"kind": "ask"}, RefusalCode.FAILED, "'silo-1' replied 'ask' to 'ask'"),
        ({"kind": "closed"}, RefusalCode.FAILED, "'silo-1' replied 'closed' to 'ask'"),
        ({"body": b"\xc0"}, RefusalCode.FAILED, "body of 'answered' cannot be read"),
        ({"about": bytes(32)}, RefusalCode.SIGNATURE, "'silo-1' replied to another request"),
        ({"about": b""}, RefusalCode.SIGNATURE, "'silo-1' replied to another request"),
        ({"nonce": bytes(16)}, RefusalCode.SIGNATURE, "'silo-1' replied to another request"),
    ],
)
def test_the_server_refuses_a_signed_reply_that_belongs_elsewhere(
    change: dict[str, Any], code: RefusalCode, why: str
) -> None:
    asked = request()
    fields = {**fields_of(reply("answered", Answered(b"x"), asked)), **change}
    refused_reply(signed(fields, by=LAB.silos[ONE], purpose="reply"), asked, code, why)


def test_a_message_by_another_key_or_for_another_purpose_is_refused() -> None:
    asked = request()
    fields = fields_of(asked)
    for by, purpose in ((SigningKey.make(), "request"), (LAB.silos[ONE], "request"), (LAB.server, "reply")):
        refused(signed(fields, by=by, purpose=purpose), RefusalCode.SIGNATURE, "is not by the key")
    fields = fields_of(reply("answered", Answered(b"x"), asked))
    for by, purpose in ((LAB.silos[TWO], "reply"), (LAB.silos[ONE], "guarantee"), (LAB.server, "reply")):
        refused_reply(
            signed(fields, by=by, purpose=purpose), asked, RefusalCode.SIGNATURE, "is not by the key"
        )


def test_a_changed_body_or_signature_is_refused() -> None:
    fields = fields_of(request())
    body = fields["body"]
    for change in (
        {"body": body + b"\xc0"},
        {"signature": b""},
        {"signature": bytes(64)},
        {"nonce": bytes(16)},
    ):
        refused(Envelope(**{**fields, **change}).to_bytes(), RefusalCode.SIGNATURE, "is not by the key")


def test_a_silo_that_is_revoked_expired_or_unknown_neither_answers_nor_is_heard() -> None:
    asked = request()
    answer = reply("answered", Answered(b"x"), asked)
    last = NOW.date()
    for change, when, why in (
        ({"revoked": True}, NOW, "silo 'silo-1' is revoked in the roster"),
        ({"expires": last}, NOW + dt.timedelta(days=1), f"the key of silo 'silo-1' has expired on {last}"),
    ):
        roster = LAB.with_silo(ONE, **change).roster
        with pytest.raises(WireError, match=why) as caught:
            open_request(asked, roster=roster, silo=ONE, now=when)
        assert caught.value.code is RefusalCode.EXPIRED
        with pytest.raises(WireError, match=why) as caught:
            open_reply(answer, request=asked, roster=roster, now=when)
        assert caught.value.code is RefusalCode.EXPIRED
    # The last day counts, wherever on earth it is asked.
    roster = LAB.with_silo(ONE, expires=last).roster
    assert open_reply(answer, request=asked, roster=roster, now=NOW).body == Answered(b"x")
    away = NOW.astimezone(dt.timezone(dt.timedelta(hours=13)))
    assert away.date() > last
    assert open_reply(answer, request=asked, roster=roster, now=away).body == Answered(b"x")
    fewer = msgspec.structs.replace(LAB.roster, silos=LAB.roster.silos[1:])
    with pytest.raises(WireError, match="silo 'silo-1' is not in the roster of 'lab'") as caught:
        open_request(asked, roster=fewer, silo=ONE, now=NOW)
    assert caught.value.code is RefusalCode.ROSTER


def test_a_plan_for_another_run_than_the_messages_is_refused() -> None:
    data = request("accept", ProposedPlan("plan = 1", "other", 0))
    refused(data, RefusalCode.PLAN, "proposed for another run")


def test_a_refusal_is_about_the_request_that_was_refused() -> None:
    """Also of a request whose signature is wrong: and then it does not pass for a reply to the true one."""
    true = request()
    forged = Envelope(**{**fields_of(true), "signature": bytes(64)}).to_bytes()
    error = refused(forged, RefusalCode.SIGNATURE, "is not by the key")
    assert error.request is not None
    said = seal_reply(
        "refused", Refused(error.code), request=error.request, roster=LAB.roster, silo=ONE, key=LAB.silos[ONE]
    )
    body = open_reply(said, request=forged, roster=LAB.roster, now=NOW).body
    assert body == Refused(RefusalCode.SIGNATURE)
    refused_reply(said, true, RefusalCode.SIGNATURE, "replied to another request")


def test_length_is_checked_before_anything_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_REQUEST", 100)
    monkeypatch.setattr(wire, "LONGEST_REPLY", 100)
    refused(bytes(101), RefusalCode.FAILED, "at most 100 bytes, got 101")
    with pytest.raises(ParameterError, match="is too long to send"):
        request("ask", AskedRound(bytes(200)))
    monkeypatch.undo()
    asked = request()
    monkeypatch.setattr(wire, "LONGEST_REPLY", 100)
    refused_reply(bytes(101), asked, RefusalCode.FAILED, "at most 100 bytes, got 101")


def test_only_queries_and_answers_are_long(monkeypatch: pytest.MonkeyPatch) -> None:
    long = request("consider", ProposedPlan("x" * 300, "run", 0))
    monkeypatch.setattr(wire, "LONGEST_REST", 200)
    refused(long, RefusalCode.FAILED, "'consider' has at most 200 bytes, got 3")
    with pytest.raises(ParameterError, match="is too long to send"):
        request("consider", ProposedPlan("x" * 300, "run", 0))
    assert opened(request("ask", AskedRound(bytes(300)))).body == AskedRound(bytes(300))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "cannot be read"),
        (b"\xc1", "cannot be read"),
        (b"\x90", "cannot be read"),
        (b"\x91\x02", "cannot be read"),
        (b"\xdd\xff\xff\xff\xff\x02", "cannot be read"),
        (b"\x92\x02" + b"\x91" * 100_000 + b"\x02", "cannot be read"),
        (b"\x92\x02\xdb\xff\xff\xff\xff", "cannot be read"),
        (b"\x91\xcf" + b"\xff" * 8, "version"),
        (request() + b"\xc0", "cannot be read"),
    ],
)
def test_what_is_no_message_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why) as caught:
        opened(data)
    assert caught.value.request is None


def test_a_body_of_another_kind_is_not_sent() -> None:
    with pytest.raises(ParameterError, match=r"the body of 'ask' must be AskedRound, got Closing\(\)"):
        request("ask", Closing())
    with pytest.raises(ParameterError, match="must be one of consider, accept, mask, ask, close, got 'tell'"):
        seal_request("tell", Closing(), roster=LAB.roster, run="run", to=ONE, key=LAB.server)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"the body of 'accepted' must be Accepted, got Considered"):
        reply("accepted", REPLIES[0][2], request("accept"))
    with pytest.raises(ParameterError, match="run must be a printable text"):
        request(run="")


SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
FLOATS = (hnp.arrays(np.float64, SHAPES) | hnp.arrays(np.float32, SHAPES)).filter(
    lambda array: bool(np.isfinite(array).all())
)
QUERIES = st.builds(
    Query,
    st.integers(0, 2**63 - 1),
    st.dictionaries(st.text("abwé", min_size=1, max_size=3), FLOATS, max_size=3),
    st.lists(st.floats(), max_size=3).map(tuple),
)


def content(query: Query) -> Any:
    """Return all that tells two queries apart."""
    points = [(name, a.dtype.str, a.shape, a.tobytes()) for name, a in query.at.items()]
    return query.step, points, np.array(query.radius).tobytes()


@given(QUERIES)
def test_a_query_comes_back_to_the_bit(query: Query) -> None:
    back = decode_query(encode_query(query))
    assert content(back) == content(query)
    assert back.digest() == query.digest()
    assert back.form == query.form
    for array in back.at.values():
        assert type(array) is np.ndarray
        assert array.flags.owndata
        assert array.flags.c_contiguous
        assert not array.flags.writeable


@settings(max_examples=200)
@given(QUERIES, QUERIES)
def test_no_two_queries_share_bytes(one: Query, other: Query) -> None:
    assert (encode_query(one) == encode_query(other)) == (content(one) == content(other))


def test_queries_that_look_alike_have_other_bytes() -> None:
    zero = np.zeros(4)
    alike = [
        Query(0, {"w": zero}, ()),
        Query(0, {"w": -zero}, ()),
        Query(0, {"w": zero.reshape(2, 2)}, ()),
        Query(0, {"w": zero.reshape(4, 1)}, ()),
        Query(0, {"w": np.zeros(8, np.float32)}, ()),
        Query(0, {"v": zero}, ()),
        Query(0, {"w": np.zeros(3), "wv": np.zeros(1)}, ()),
        Query(0, {}, (0.0,)),
        Query(0, {}, (-0.0,)),
        Query(1, {"w": zero}, ()),
        Query(0, {"w": np.zeros((0, 2))}, ()),
        Query(0, {"w": np.zeros((2, 0))}, ()),
    ]
    assert len({encode_query(one) for one in alike}) == len(alike)


def packed(step: Any = 0, points: Any = (), radius: Any = ()) -> bytes:
    return msgspec.msgpack.encode((step, points, radius))


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (packed(-1), "step|>= 0"),
        (packed(2**63), "<="),
        (packed(True), "Expected `int`"),
        (packed(0.0), "Expected `int`"),
        (packed(points=[("w", "<f8", (2,), bytes(8))]), "must have the 16 bytes of its shape"),
        (packed(points=[("w", "<f4", (2,), bytes(16))]), "must have the 8 bytes of its shape"),
        (packed(points=[("w", "<f2", (2,), bytes(4))]), "Invalid enum value"),
        (packed(points=[("w", "|O", (1,), bytes(8))]), "Invalid enum value"),
        (packed(points=[("w", "<f8", (-1,), b"")]), ">= 0"),
        (packed(points=[("w", "<f8", (2**41, 0), b"")]), "<="),
        (packed(points=[("w", "<f8", (2**40, 2**40, 0), b"")]), "shape that no array can have"),
        (packed(points=[("w", "<f8", (1,) * 33, bytes(8))]), "<= 32"),
        (packed(points=[("w", "<f8", (1,), np.array([math.nan]).tobytes())]), "finite"),
        (packed(points=[("w", "<f4", (1,), np.array([math.inf], "<f4").tobytes())]), "finite"),
        (packed(points=[("", "<f8", (0,), b"")]), "name of a point"),
        (packed(points=[("w" * 201, "<f8", (0,), b"")]), "<= 200"),
        (packed(points=[("w", "<f8", (0,), b"")] * 2), "stands twice"),
        (packed(points=[(str(k), "<f8", (0,), b"") for k in range(101)]), "<= 100"),
        (packed(radius=(1.0,) * 101), "<= 100"),
        (packed(radius=("1",)), "Expected `float`"),
        (packed() + b"\xc0", "trailing"),
        (b"", "truncated"),
        (b"\x94\x00\x90\x90\x00", "length"),
    ],
)
def test_what_is_no_query_is_refused(data: bytes, why: str) -> None:
    with pytest.raises(WireError, match=why) as caught:
        decode_query(data)
    assert caught.value.code is RefusalCode.QUERY
