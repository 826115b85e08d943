from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import AuthenticationError, ParameterError, VerificationError
from tacit.federation import Plan, Query, open_answer
from tacit.federation.network.audit_log import verify_log
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.sealing import SEALED_OVERHEAD
from tacit.federation.network.signatures import check_claims, received_signature
from tacit.federation.network.silo_refusals import LogQuota
from tacit.federation.network.silo_service import LOG_FILE, SiloService
from tacit.federation.network.wire import (
    AskedRound,
    Envelope,
    RefusalCode,
    encode_query,
    open_reply,
    seal_request,
)
from tacit.means import DiscreteGaussianNoise
from tacit.privacy import Guarantee, PrivacyBudget, Relation, TrustModel
from tests.federation.network.parties import answer_in
from tests.federation.network.silo_world import NOW, SIZE, Lab, Labs, at, code, words
from tests.federation.world import GAUSSIAN, GRID, ask_at, mean_of, plan_of, rows

PLAN = plan_of(mean_of(GRID), rounds=4, parties=3)


def refuses(lab: Lab, reply: Any, why: RefusalCode, *, spent: tuple[float, int] = (0.0, 0)) -> None:
    """Every refusal: its code, its line in the log, and a ledger that is as it was."""
    assert code(reply) == why
    line = lab.lines()[-1]
    assert (line.kind, line.facts["code"]) == ("refused", why.value)
    assert line.facts["why"]
    assert lab.spent() == spent


# --- a run as it should be


def test_a_run_is_considered_accepted_answered_and_closed(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    considered = lab.sent(service, "consider", lab.proposal(PLAN))
    assert considered.envelope.kind == "considered"
    assert lab.spent() == (0.0, 0)
    accepted = lab.accept(service, PLAN)
    assert accepted.envelope.kind == "accepted"
    price = Guarantee.from_json(accepted.body.guarantee)
    assert accepted.body.guarantee == considered.body.guarantee
    assert price.assumptions[-1] == "the clause of the run holds"
    assert price.observer == "everybody outside silo 'b', the server included,"
    assert (accepted.body.size, accepted.body.alone, accepted.body.simulated) == (SIZE, b"", False)
    answers = [lab.answer(service, ask_at(step)) for step in range(4)]
    for one in answers:
        ((message,),) = open_answer(one, party=1)
        assert message.payload.shape == (3,)
    assert lab.spent() == (price.epsilon, 4)
    assert lab.end(service).envelope.kind == "closed"
    service.close()
    kinds = ["started", "considered", "accepted", *["answered"] * 4, "closed"]
    assert [line.kind for line in lab.lines()] == kinds
    assert verify_log(lab.state / LOG_FILE, lab.keys["b"].public).number == len(kinds)


def test_only_the_server_reads_an_answer_and_only_as_that_of_its_silo_and_step(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    one, two = lab.ask(service), lab.ask(service)
    plain = answer_in(one, 0, opening=lab.opening)
    assert answer_in(two, 0, opening=lab.opening) == plain
    assert one.body.sealed != two.body.sealed  # sealed anew
    assert len(one.body.sealed) == len(plain) + SEALED_OVERHEAD
    assert plain[-16:] not in one.body.sealed
    for step, opening in ((1, lab.opening), (0, OpeningKey.make())):
        with pytest.raises(AuthenticationError, match="cannot be opened"):
            answer_in(one, step, opening=opening)
    for name, value in (("run", "other"), ("sender", "a"), ("federation", "another")):
        moved = one._replace(envelope=msgspec.structs.replace(one.envelope, **{name: value}))
        with pytest.raises(AuthenticationError, match="cannot be opened"):
            answer_in(moved, 0, opening=lab.opening)


def test_the_same_query_gets_the_same_bytes_whenever_it_is_asked(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    first = lab.answer(service)
    assert lab.answer(service) == first
    request = lab.request("ask", AskedRound(encode_query(ask_at(0))))
    replies = [service.handle(request) for _ in range(3)]  # a replay, byte for byte
    opened = [open_reply(one, request=request, roster=lab.roster, now=NOW) for one in replies]
    assert {answer_in(one, 0, opening=lab.opening) for one in opened} == {first}
    assert lab.spent()[1] == 1


def test_several_proposals_over_time(lab: Lab) -> None:
    other = plan_of(mean_of(GRID), rounds=2, parties=3)
    lab.agree(PLAN)
    lab.agree(other, "second")
    service = lab.service()
    lab.accept(service, PLAN)
    first = lab.answer(service)
    lab.accept(service, other, run="second")
    second = lab.answer(service, run="second")
    assert lab.answer(service) == first  # back to the first run, without being proposed again
    assert lab.answer(service, run="second") == second
    lab.end(service)
    assert code(lab.ask(service)) == RefusalCode.PLAN
    assert lab.answer(service, run="second") == second


def test_what_is_accepted_is_signed_with_its_plan_run_and_federation(lab: Lab) -> None:
    lab.agree(PLAN)
    accepted = lab.accept(lab.service(), PLAN).body
    claims = [Guarantee.from_json(accepted.guarantee)]
    signed = received_signature(accepted.signature, federation="lab", run="trial", plan=PLAN, signer="b")
    key = lab.keys["b"].public
    check_claims(signed, claims, key=key)
    less = msgspec.structs.replace(claims[0], epsilon=claims[0].epsilon / 2)
    for one, said in ((signed, [less]), (msgspec.structs.replace(signed, run="other"), claims)):
        with pytest.raises(AuthenticationError):
            check_claims(one, said, key=key)


# --- restarts


def test_a_restart_goes_on_with_stored_answers(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    price = Guarantee.from_json(lab.accept(service, PLAN).body.guarantee)
    first = lab.answer(service)
    service.close()
    again = lab.service()
    assert lab.answer(again) == first
    refuses(lab, lab.ask(again, at(0, 0.5)), RefusalCode.ANSWERED, spent=(price.epsilon, 1))
    assert lab.ask(again, ask_at(1)).envelope.kind == "answered"
    assert lab.spent() == (price.epsilon, 2)
    assert [line.kind for line in lab.lines()[3:]] == [
        "started", "resumed", "answered", "refused", "answered"
    ]  # fmt: skip


class KilledError(BaseException):
    """The process is gone: nothing after it runs."""


WRITES = {
    "reserve": ("tacit.ledger.ledger.Ledger.reserving", "accept"),
    "store": ("tacit.ledger.ledger.Ledger.store_answer", "ask"),
    "keep": ("tacit.federation.network.accepted_runs.AcceptedRuns.keep", "accept"),
    "log": ("tacit.federation.network.audit_log.AuditLog.write", "both"),
    "head": ("tacit.federation.network.audit_log.AuditLog._write_head", "both"),
}


@pytest.mark.parametrize("late", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("place", [name for name, _ in WRITES.values()], ids=WRITES)
def test_a_kill_between_any_two_durable_writes_costs_nothing(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, place: str, late: bool
) -> None:
    """Whatever was written when the process died, the next one has one price and one answer for each step."""
    lab.agree(PLAN)
    sent: dict[int, set[bytes]] = {}

    def whole_run(service: SiloService) -> None:
        lab.accept(service, PLAN)
        for step in range(2):
            sent.setdefault(step, set()).add(lab.answer(service, ask_at(step)))

    for kill in range(1, 8):
        service, left = lab.service(), kill
        module, name = place.rsplit(".", 2)[0], place.rsplit(".", 2)[1:]
        owner = getattr(__import__(module, fromlist=["x"]), name[0])
        original = getattr(owner, name[1])

        def killed(*args: Any, original: Callable[..., Any] = original, **kwargs: Any) -> Any:
            nonlocal left
            left -= 1
            if left == 0 and not late:
                raise KilledError
            done = original(*args, **kwargs)
            if left == 0:
                raise KilledError
            return done

        with monkeypatch.context() as patched:
            patched.setattr(owner, name[1], killed)
            try:
                whole_run(service)
                survived = True
            except KilledError:
                survived = False
        # What a dead process held open is gone, without any of its clean ends.
        service._log.close()
        assert service._silo.ledger is not None
        service._silo.ledger.close()
        if survived:
            break
    service = lab.service()
    whole_run(service)
    service.close()
    assert all(len(answers) == 1 for answers in sent.values())
    with lab.ledger() as ledger:
        assert len(ledger.entries()) == 1
        assert ledger.answered("trial") == {0, 1}
    verify_log(lab.state / LOG_FILE, lab.keys["b"].public)


def test_consent_that_was_taken_back_ends_a_run_at_the_next_start(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    spent = lab.spent()
    service.close()
    lab.consents.path.unlink()
    refuses(lab, lab.ask(lab.service()), RefusalCode.CONSENT, spent=spent)


# --- what is refused before anything is read


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ({"version": 1}, RefusalCode.VERSION),
        ({"federation": "ward"}, RefusalCode.ROSTER),
        ({"to": "a"}, RefusalCode.ROSTER),
        ({"sender": "a"}, RefusalCode.ROSTER),
        ({"run": "other"}, RefusalCode.SIGNATURE),
        ({"kind": "close"}, RefusalCode.SIGNATURE),
        ({"signature": bytes(64)}, RefusalCode.SIGNATURE),
    ],
)
def test_an_envelope_that_is_not_the_servers(lab: Lab, edit: dict[str, Any], why: RefusalCode) -> None:
    lab.agree(PLAN)
    service = lab.service()
    good = msgspec.msgpack.decode(lab.request("accept", lab.proposal(PLAN)), type=Envelope)
    data = msgspec.structs.replace(good, **edit).to_bytes()
    reply = msgspec.msgpack.decode(service.handle(data), type=Envelope)
    assert msgspec.msgpack.decode(reply.body) == [why.value]
    assert lab.lines()[-1].facts["code"] == why.value
    assert lab.spent() == (0.0, 0)


def test_another_server_is_refused(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    request = lab.request("accept", lab.proposal(PLAN), key=SigningKey.make())
    reply = open_reply(service.handle(request), request=request, roster=lab.roster, now=NOW)
    refuses(lab, reply, RefusalCode.SIGNATURE)
    request = lab.request("accept", lab.proposal(PLAN), key=lab.keys["a"])  # one of the silos
    reply = open_reply(service.handle(request), request=request, roster=lab.roster, now=NOW)
    refuses(lab, reply, RefusalCode.SIGNATURE)


def test_another_federation_with_the_same_server_is_refused(lab: Lab) -> None:
    lab.agree(PLAN)
    ward = msgspec.structs.replace(lab.roster, federation="ward")
    request = seal_request("accept", lab.proposal(PLAN), roster=ward, run="trial", to="b", key=lab.server)
    lab.service().handle(request)
    line = lab.lines()[-1]
    assert (line.facts["code"], lab.spent()) == ("roster", (0.0, 0))


@pytest.mark.parametrize("change", [{"revoked": True}, {"expires": dt.date(2031, 4, 30)}])
def test_a_silo_that_is_revoked_or_expired_answers_nothing(lab: Lab, change: dict[str, Any]) -> None:
    lab.agree(PLAN)
    lab.roster = lab.roster_with(**change)
    request = lab.request("accept", lab.proposal(PLAN))
    service = lab.service()
    service.handle(request)
    assert lab.lines()[-1].facts["code"] == "expired"
    assert lab.spent() == (0.0, 0)


def test_any_bytes_get_a_reply(lab: Lab) -> None:
    service, rng = lab.service(), np.random.default_rng(5)
    good = bytearray(lab.request("accept", lab.proposal(PLAN)))
    for _ in range(300):
        bad = bytearray(good)
        for place in rng.integers(len(bad), size=3):
            bad[place] = rng.integers(256)
        bad = bad[: rng.integers(len(bad) + 1)] if rng.random() < 0.3 else bad
        reply = msgspec.msgpack.decode(service.handle(bytes(bad)), type=Envelope)
        assert reply.kind == "refused"
    assert lab.spent() == (0.0, 0)


def test_refusals_without_end_do_not_fill_the_disk(lab: Lab) -> None:
    service, now = lab.service(), 0.0
    service._quota = LogQuota(lambda: now)
    for _ in range(1100):
        service.handle(b"\x00")
    assert len(lab.lines("refused")) == 1000
    now = 2.0  # one more a second
    for _ in range(20):
        service.handle(b"\x00")
    assert [line.facts["left_out"] for line in lab.lines("refused")[1000:]] == [100, 0]


# --- plans that are refused


def test_without_consent_nothing_is_said_of_a_price(lab: Lab) -> None:
    service = lab.service()
    for kind in ("consider", "accept"):
        refuses(lab, lab.sent(service, kind, lab.proposal(PLAN)), RefusalCode.CONSENT)
    lab.agree(PLAN, "another")
    refuses(lab, lab.accept(service, PLAN), RefusalCode.CONSENT)
    assert "nobody has agreed to plan" in str(lab.lines()[-1].facts["why"])
    other = plan_of(mean_of(GRID), rounds=2, parties=3)
    lab.agree(other)
    refuses(lab, lab.accept(service, PLAN), RefusalCode.CONSENT)
    assert f"but to {other.digest().hex()}" in str(lab.lines()[-1].facts["why"])
    lab.agree(PLAN, limit=None)  # a price without a limit
    refuses(lab, lab.accept(service, PLAN), RefusalCode.CONSENT)
    lab.agree(PLAN)
    assert lab.accept(service, PLAN).envelope.kind == "accepted"


def test_a_consent_that_cannot_be_read_is_none(lab: Lab) -> None:
    service = lab.service()
    lab.agree(PLAN)
    lab.consents.path.chmod(0o666)
    refuses(lab, lab.accept(service, PLAN), RefusalCode.CONSENT)
    lab.consents.path.chmod(0o600)
    lab.consents.path.write_text("[[consent]]")
    refuses(lab, lab.accept(service, PLAN), RefusalCode.CONSENT)


@pytest.mark.parametrize("where", ["consent", "server", "ledger"])
def test_a_price_above_any_limit_is_refused(lab: Lab, where: str) -> None:
    least, dear = PrivacyBudget(0.01, 1e-6), plan_of(mean_of(DiscreteGaussianNoise(0.2)), parties=3)
    plan = dear if where == "ledger" else PLAN
    lab.agree(plan, limit=least if where == "consent" else PrivacyBudget(1000.0, 1e-4))
    service = lab.service()
    proposal = lab.proposal(plan, budget=least if where == "server" else None)
    for kind in ("consider", "accept"):
        refuses(lab, lab.sent(service, kind, proposal), RefusalCode.BUDGET)


PLANS: dict[str, Callable[[], Plan]] = {
    "statistic": lambda: plan_of(mean_of(GRID), statistics=("label",), parties=3),
    "alone": lambda: plan_of(mean_of(GRID), parties=1),
    "more": lambda: plan_of(mean_of(GRID), parties=4),
    "relation": lambda: plan_of(mean_of(GRID, relation=Relation.ZERO_OUT), parties=3),
    "continuous": lambda: plan_of(mean_of(GAUSSIAN), parties=3),
    "no noise": lambda: plan_of(mean_of(), parties=3),
    "central": lambda: plan_of(mean_of(GRID, trust=TrustModel.CENTRAL), parties=3),
}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS)
def test_a_plan_that_does_not_fit_is_refused(lab: Lab, make: Callable[[], Plan]) -> None:
    plan = make()
    lab.agree(plan, limit=None if plan.trust is TrustModel.CENTRAL else PrivacyBudget(1e9, 0.5))
    service = lab.service()
    for kind in ("consider", "accept"):
        reply = lab.sent(service, kind, lab.proposal(plan))
        assert code(reply) in (RefusalCode.PLAN, RefusalCode.BUDGET)
        assert lab.lines()[-1].facts["why"]
        assert lab.spent() == (0.0, 0)


def test_another_place_or_run_in_the_proposal_is_refused(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    refuses(lab, lab.sent(service, "accept", lab.proposal(PLAN, party=0)), RefusalCode.PLAN)
    refuses(lab, lab.sent(service, "accept", lab.proposal(PLAN, run="other")), RefusalCode.PLAN)


def test_another_map_from_records_is_refused(labs: Labs) -> None:
    lab = labs(encoding="the map")
    lab.agree(PLAN)
    service = lab.service()
    refuses(lab, lab.accept(service, PLAN), RefusalCode.PLAN)
    plan = msgspec.structs.replace(PLAN, encoding="the map")
    lab.agree(plan)
    assert lab.accept(service, plan).envelope.kind == "accepted"


def test_another_plan_under_the_same_run_is_refused(lab: Lab) -> None:
    more = plan_of(mean_of(GRID), rounds=5, parties=3)
    lab.agree(PLAN)
    lab.agree(more)
    service = lab.service()
    lab.accept(service, PLAN)
    spent = lab.spent()
    refuses(lab, lab.accept(service, more), RefusalCode.PLAN, spent=spent)
    assert lab.ask(service).envelope.kind == "answered"  # the run that was accepted goes on


# --- queries that are refused


QUERIES: dict[str, tuple[Query, RefusalCode]] = {
    "more rounds": (ask_at(4), RefusalCode.QUERY),
    "far outside": (ask_at(2**40), RefusalCode.QUERY),
    "another model": (at(0, 0.5), RefusalCode.ANSWERED),
    "another radius": (ask_at(0, radius=(0.5,)), RefusalCode.ANSWERED),
    "a larger radius": (ask_at(1, radius=(1.5,)), RefusalCode.QUERY),
    "two radii": (ask_at(1, radius=(1.0, 1.0)), RefusalCode.QUERY),
}


@pytest.mark.parametrize(("query", "why"), QUERIES.values(), ids=QUERIES)
def test_a_query_outside_the_plan_is_refused(lab: Lab, query: Query, why: RefusalCode) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    lab.ask(service)
    spent = lab.spent()
    refuses(lab, lab.ask(service, query), why, spent=spent)
    refuses(lab, lab.ask(service, query, run="other"), RefusalCode.PLAN, spent=spent)
    refuses(lab, lab.ask(service, ask_at(1), descriptor=b"d"), RefusalCode.CIRCLE, spent=spent)


def test_a_query_that_cannot_be_read(lab: Lab) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    spent = lab.spent()
    refuses(lab, lab.sent(service, "ask", AskedRound(b"\x00")), RefusalCode.QUERY, spent=spent)


def test_nothing_is_answered_before_a_plan_is_accepted(lab: Lab) -> None:
    service = lab.service()
    refuses(lab, lab.ask(service), RefusalCode.PLAN)
    lab.agree(PLAN)
    lab.sent(service, "consider", lab.proposal(PLAN))
    refuses(lab, lab.ask(service), RefusalCode.PLAN)


# --- nothing visible depends on the records


BAD = {
    "nan": np.nan,
    "infinite": np.inf,
    "huge": 1e308,
    "raises": 7.0,  # of which `fails` makes an exception that quotes it
}


@pytest.mark.parametrize("value", BAD.values(), ids=BAD)
@pytest.mark.parametrize("statistic", ["row", "fused", "fails", "drops"])
def test_a_bad_record_changes_no_length_and_no_code(labs: Labs, statistic: str, value: float) -> None:
    plan = plan_of(mean_of(GRID), statistics=(statistic,), parties=3)
    queries = [ask_at(0), ask_at(1, radius=(0.0,)), ask_at(9), at(0, 1.0), ask_at(2)]
    seen = []
    for folder, entry in (("good", 0.1), ("bad", value)):
        values = rows(1, SIZE)
        values[3] = entry
        lab = labs(folder, values=values)
        lab.agree(plan)
        service = lab.service()
        replies = [lab.sent(service, "consider", lab.proposal(plan)), lab.accept(service, plan)]
        replies += [lab.ask(service, query) for query in queries]
        lengths = [len(one.envelope.to_bytes()) for one in replies]
        codes = [one.body.code if one.envelope.kind == "refused" else one.envelope.kind for one in replies]
        claims = [one.body.guarantee for one in replies[:2]]
        seen.append((lengths, codes, claims))
        said = words(lab.lines())
        assert "label" not in said
        assert "7.0" not in said
    assert seen[0] == seen[1]


def test_an_exception_from_anywhere_is_one_word(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)
    spent = lab.spent()

    def broken(*_: object) -> bytes:
        raise ValueError("record 17 of Mrs Smith")

    monkeypatch.setattr("tacit.federation.silo.Silo._compute", broken)
    reply = lab.ask(service)
    refuses(lab, reply, RefusalCode.FAILED, spent=spent)
    assert b"Smith" not in reply.envelope.to_bytes()
    assert "Smith" not in words(lab.lines())


def test_a_log_that_cannot_be_written_stops_the_silo(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.agree(PLAN)
    service = lab.service()
    lab.accept(service, PLAN)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr("tacit.federation.network.audit_log.AuditLog._append", full)
        assert code(lab.ask(service)) == RefusalCode.FAILED
    first = lab.ask(service)
    assert first.envelope.kind == "answered"
    assert lab.spent()[1] == 1


# --- silos without a ledger


def test_without_a_ledger_only_exact_sums_leave_and_only_if_the_owner_says_so(labs: Labs) -> None:
    central = plan_of(mean_of(GRID, trust=TrustModel.CENTRAL), parties=3)
    bare = plan_of(mean_of(), parties=3)
    for trusts in (False, True):
        lab = labs(str(trusts), keeps=False, trusts_server=trusts)
        service = lab.service()
        for run, plan in (("central", central), ("bare", bare)):
            lab.agree(plan, run, limit=None)
            reply = lab.accept(service, plan, run=run)
            assert reply.envelope.kind == ("accepted" if trusts else "refused")
        lab.agree(PLAN)
        assert code(lab.accept(service, PLAN)) == RefusalCode.PLAN
        if trusts:
            first = lab.answer(service, run="bare")
            assert lab.answer(service, run="bare") == first
            budget = lab.proposal(central, run="central", budget=PrivacyBudget(1.0, 1e-6))
            assert code(lab.sent(service, "accept", budget, run="central")) == RefusalCode.PLAN


# --- what is refused when the service starts


def test_a_roster_that_does_not_fit_is_refused_at_the_start(lab: Lab) -> None:
    lab.roster = lab.roster_with(size=41)
    with pytest.raises(ParameterError, match="says that silo 'b' has 41 units, its data have 40"):
        lab.service()
    lab.roster = lab.roster_with(verify=SigningKey.make().public.to_text())
    with pytest.raises(ParameterError, match="another key for silo 'b'"):
        lab.service()
    lab.roster = lab.roster_with(name="z")
    with pytest.raises(AuthenticationError, match="'b' is not in the roster"):
        lab.service()


def test_a_changed_log_or_a_second_process_is_refused_at_the_start(lab: Lab) -> None:
    service = lab.service()
    with pytest.raises(ParameterError, match="another process writes the log"):
        lab.service()
    service.close()
    (lab.state / LOG_FILE).write_bytes(b"")
    with pytest.raises(VerificationError):
        lab.service()


def test_a_state_that_others_can_write_is_refused(lab: Lab) -> None:
    lab.service().close()
    lab.state.chmod(0o770)
    with pytest.raises(ParameterError, match="others can write into"):
        lab.service()


@pytest.mark.parametrize("trust", [TrustModel.CENTRAL, TrustModel.LOCAL])
def test_the_log_holds_no_hash_of_an_exact_sum(trust: TrustModel, labs: Labs) -> None:
    """An auditor who knows all records but one could find that one by trying."""
    lab = labs(trusts_server=True, keeps=False)
    noise = DiscreteGaussianNoise(5.0) if trust is TrustModel.CENTRAL else None
    plan = plan_of(mean_of(noise, trust=trust), parties=3)
    lab.agree(plan, limit=None)
    service = lab.service()
    lab.accept(service, plan)
    answer = lab.answer(service)
    (line,) = lab.lines("answered")
    assert set(line.facts) == {"run", "step", "query", "bytes"}
    assert hashlib.sha256(answer).hexdigest() not in words(lab.lines())
