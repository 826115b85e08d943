"""A silo under shuffle trust: what it sends to whom, beside which descriptors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from tacit.errors import TacitError
from tacit.federation import Full, Measure, Plan, Query, Step, with_honest
from tacit.federation.answers import digest_of_run
from tacit.federation.network.descriptor import Descriptor, SignedDescriptor, about_upload
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.parcels import SealedBatch, open_batch, parcel_form
from tacit.federation.network.wire import RefusalCode
from tacit.means import BinomialMean
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tests.federation.network.silo_world import SIZE, Lab, Labs, at, code
from tests.federation.world import DIM, ask_at

MEAN = BinomialMean(dim=DIM, noise_bits=60, resolution=8)
KINDS = with_honest(
    ((Step(measures=(Measure(statistic="row", estimator=MEAN, max_radius=1.0),), batch=Full()), 3),),
    (SIZE,) * 3,
    n_min=2,
    colluding=0,
)
PLAN = Plan(steps=KINDS, parties=3, trust=TrustModel.SHUFFLE, delta=1e-6, n_min=2)
FORM = parcel_form(PLAN.kinds[0][0], SIZE)
ALL = PrivacyBudget(100.0, 1e-4)


@dataclass
class Door:
    """A shuffler's door that keeps what is brought, or is shut."""

    shut: Exception | None = None
    brought: list[tuple[str, bytes, str]] = field(default_factory=list)
    deadlines: list[float] = field(default_factory=list)

    def upload(
        self, round_id: str, parcel: bytes, *, silo: str, key: SigningKey, deadline: float = 0.0
    ) -> bool:
        self.deadlines.append(deadline)
        if self.shut is not None:
            raise self.shut
        key.public.verify(
            "upload", about_upload(round_id, parcel), key.sign("upload", about_upload(round_id, parcel))
        )
        self.brought.append((round_id, parcel, silo))
        return True


@pytest.fixture
def lab(labs: Labs) -> Lab:
    made = labs(door=Door())
    made.agree(PLAN, limit=ALL)
    return made


def account(lab: Lab) -> bytes:
    with lab.ledger() as ledger:
        return ledger.fingerprint


def about(lab: Lab, query: Query | None = None, **changes: Any) -> Descriptor:
    """The descriptor of a round, with changes."""
    asked = ask_at(0) if query is None else query
    fields: dict[str, Any] = {
        "federation": "lab",
        "run": digest_of_run(PLAN, "trial"),
        "step": asked.step,
        "query": asked.digest(),
        "parties": (0, 1, 2),
        "sizes": (SIZE,) * 3,
        "accounts": (b"a" * 32, account(lab), b"c" * 32),
        "session": b"s" * 16,
        "seal": lab.opening.public.raw,
        "n_min": 2,
        "seconds": 60.0,
        "blob_bytes": FORM.blob_bytes,
    }
    return Descriptor(**(fields | changes))


def signed(lab: Lab, query: Query | None = None, **changes: Any) -> SignedDescriptor:
    return SignedDescriptor.of(about(lab, query, **changes), lab.shuffler)


def test_an_answer_goes_to_the_shuffler_and_the_server_hears_one_word(lab: Lab) -> None:
    service = lab.service()
    accepted = lab.accept(service, PLAN).body
    shuffled, before = Guarantee.from_json(accepted.guarantee), Guarantee.from_json(accepted.alone)
    assert shuffled.epsilon < before.epsilon
    assert "shuffled batches" in shuffled.observer
    assert shuffled.assumptions[-1] == before.assumptions[-1] == "the clause of the run holds"
    beside = signed(lab)
    replies = [lab.ask(service, descriptor=beside.to_bytes()) for _ in range(2)]
    second = signed(lab, ask_at(1))
    replies.append(lab.ask(service, ask_at(1), descriptor=second.to_bytes()))
    assert {one.envelope.kind for one in replies} == {"uploaded"}
    assert len({len(one.envelope.to_bytes()) for one in replies}) == 1
    assert [name for _, _, name in lab.door.brought] == ["b"] * 3
    assert {len(parcel) for _, parcel, _ in lab.door.brought} == {FORM.size}
    assert all(0 < deadline <= 60 for deadline in lab.door.deadlines)
    assert lab.spent() == (shuffled.epsilon, 2)
    lines = lab.lines("uploaded")
    assert [line.facts["round"] for line in lines] == [beside.round_id] * 2 + [second.round_id]
    assert lines[0].facts["circle"] == "0,1,2"
    assert [line.facts for line in lab.lines("answered")] == [line.facts for line in lines]
    # Sealed anew, and still one answer: what the server opens of both is the same.
    first, again = (parcel for _, parcel, _ in lab.door.brought[:2])
    assert first != again
    opened = [
        open_batch(
            SealedBatch(rows=SIZE, parties=1, came=1, sealed=FORM.sealed, symbols=FORM.symbols, body=parcel),
            form=FORM,
            info=beside.info,
            key=lab.opening,
        )
        for parcel in (first, again)
    ]
    assert str(opened[0].messages) == str(opened[1].messages)


FORGED: dict[str, Callable[[Lab], bytes]] = {
    "none": lambda lab: b"",
    "noise": lambda lab: bytes(200),
    "not the shuffler's": lambda lab: SignedDescriptor.of(about(lab), lab.server).to_bytes(),
    "changed": lambda lab: signed(lab).to_bytes()[:-1] + b"\x07",
    "federation": lambda lab: signed(lab, federation="ward").to_bytes(),
    "run": lambda lab: signed(lab, run=digest_of_run(PLAN, "other")).to_bytes(),
    "step": lambda lab: signed(lab, step=1).to_bytes(),
    "query": lambda lab: signed(lab, at(0, 0.5)).to_bytes(),
    "key": lambda lab: signed(lab, seal=OpeningKey.make().public.raw).to_bytes(),
    "n_min": lambda lab: signed(lab, n_min=1).to_bytes(),
    "without it": lambda lab: signed(
        lab, parties=(0, 2), sizes=(SIZE,) * 2, accounts=(b"a" * 32, b"c" * 32)
    ).to_bytes(),
    "too few": lambda lab: signed(lab, parties=(1,), sizes=(SIZE,), accounts=(account(lab),)).to_bytes(),
    "sizes": lambda lab: signed(lab, sizes=(SIZE, SIZE, 10 * SIZE)).to_bytes(),
    "accounts": lambda lab: signed(lab, accounts=(None, account(lab), None)).to_bytes(),
    "its account": lambda lab: signed(lab, accounts=(b"a" * 32, b"b" * 32, b"c" * 32)).to_bytes(),
    "length": lambda lab: signed(lab, blob_bytes=FORM.blob_bytes + 1).to_bytes(),
}


@pytest.mark.parametrize("forge", FORGED.values(), ids=FORGED)
def test_a_descriptor_that_is_not_of_this_round_is_refused(lab: Lab, forge: Callable[[Lab], bytes]) -> None:
    service = lab.service()
    lab.accept(service, PLAN)
    spent = lab.spent()
    assert code(lab.ask(service, descriptor=forge(lab))) == RefusalCode.CIRCLE
    assert lab.lines()[-1].facts["code"] == "circle"
    assert lab.spent() == spent
    assert lab.door.brought == []
    assert lab.ask(service, descriptor=signed(lab).to_bytes()).envelope.kind == "uploaded"


def test_a_second_circle_for_one_step_is_refused(lab: Lab) -> None:
    """A shuffler that lost its memory, or one that helps the server to tell answers apart."""
    service = lab.service()
    lab.accept(service, PLAN)
    lab.ask(service, descriptor=signed(lab).to_bytes())
    spent = lab.spent()
    for changes in (
        {"session": b"t" * 16},
        {"parties": (0, 1), "sizes": (SIZE,) * 2, "accounts": (b"a" * 32, account(lab))},
    ):
        reply = lab.ask(service, descriptor=signed(lab, **changes).to_bytes())
        assert code(reply) == RefusalCode.ANSWERED
    assert lab.spent() == spent
    assert len(lab.door.brought) == 1


@pytest.mark.parametrize("why", [TacitError("down"), TimeoutError("late"), ValueError("anything")])
def test_a_shuffler_that_is_away_is_one_word_and_the_stored_answer_goes_later(
    lab: Lab, why: Exception
) -> None:
    service = lab.service()
    price = Guarantee.from_json(lab.accept(service, PLAN).body.guarantee)
    lab.door.shut = why
    beside = signed(lab).to_bytes()
    reply = lab.ask(service, descriptor=beside)
    assert code(reply) == RefusalCode.SHUFFLER
    assert lab.lines()[-1].facts["code"] == "shuffler"
    assert lab.spent() == (price.epsilon, 1)  # stored, and sent by nobody yet
    # A silo that dies while it sends has said so: its log finds an older ledger out.
    assert [line.facts["step"] for line in lab.lines("answered")] == [0]
    service.close()
    again = lab.service()
    assert code(lab.ask(again, descriptor=beside)) == RefusalCode.SHUFFLER
    lab.door.shut = None
    assert lab.ask(again, descriptor=beside).envelope.kind == "uploaded"
    assert lab.spent() == (price.epsilon, 1)


def test_a_silo_whose_owner_trusts_no_shuffler_or_knows_none(labs: Labs) -> None:
    lab = labs("mistrusts", trusts_shuffler=False, door=Door())
    lab.agree(PLAN, limit=ALL)
    assert code(lab.accept(lab.service(), PLAN)) == RefusalCode.PLAN
    lab = labs("knows none")
    lab.agree(PLAN, limit=ALL)
    service = lab.service()
    lab.accept(service, PLAN)
    assert code(lab.ask(service, descriptor=signed(lab).to_bytes())) == RefusalCode.SHUFFLER


def test_a_bad_record_changes_no_length_of_a_parcel(labs: Labs) -> None:
    seen = []
    for folder, entry in (("good", 0.1), ("bad", float("nan")), ("huge", 1e308)):
        lab = labs(folder, door=Door())
        lab.values[3] = entry
        lab.agree(PLAN, limit=ALL)
        service = lab.service()
        lab.accept(service, PLAN)
        reply = lab.ask(service, descriptor=signed(lab).to_bytes())
        seen.append((len(reply.envelope.to_bytes()), [len(parcel) for _, parcel, _ in lab.door.brought]))
    assert seen[0] == seen[1] == seen[2]


def test_a_message_of_the_descriptor_must_have_no_other_form(lab: Lab) -> None:
    service = lab.service()
    lab.accept(service, PLAN)
    body = msgspec.msgpack.encode([*msgspec.msgpack.decode(signed(lab).body), 1])  # a field more
    data = SignedDescriptor(body, lab.shuffler.sign("descriptor", body)).to_bytes()
    assert code(lab.ask(service, descriptor=data)) == RefusalCode.CIRCLE
