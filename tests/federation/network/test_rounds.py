"""Rounds between machines: who is late, gone, wrong or hostile, and a server that dies; all is paid once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tacit.errors import DataError, ParameterError, RefusalError, VerificationError
from tacit.federation import InProcess, Plan, Scheduled
from tacit.federation.answers import encode_answer
from tacit.federation.network.audit_log import read_log
from tacit.federation.network.bodies import Answered, Uploaded
from tacit.federation.network.channel import LocalChannel
from tacit.federation.network.consent import Consents
from tacit.federation.network.journal import RoundFacts, RunJournal
from tacit.federation.network.keys import SigningKey
from tacit.federation.network.remote import RemoteFederation
from tacit.federation.network.rounds import MissingSilosError
from tacit.federation.network.sealing import said_in, seal_padded
from tacit.federation.network.silo_service import CONSENT_FILE, LOG_FILE
from tacit.federation.network.wire import (
    Closing,
    decode_query,
    open_reply,
    open_request,
    seal_reply,
    seal_request,
)
from tacit.ledger import Ledger
from tacit.means import Message
from tacit.privacy import PrivacyBudget, TrustModel
from tests.federation.network.deployed_world import IdleTime, PatientChannel, World, server, whole_run
from tests.federation.network.parties import NOW
from tests.federation.network.test_soak import plan_under
from tests.federation.world import AT, DIM, GRID, RADIUS, ledger_at, mean_of, plan_of

ROUNDS = 4
PLAN = plan_of(mean_of(GRID), parties=3, rounds=ROUNDS)
Handler = Callable[[bytes], bytes]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., World]]:
    """Makes federations that end with the test."""
    made: list[World] = []

    def world(folder: str = "world", plan: Plan = PLAN, **fields: Any) -> World:
        made.append(World(plan, tmp_path / folder, **fields))
        return made[-1]

    yield world
    for one in made:
        one.close()


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The model of a run in which nothing goes wrong."""
    world = World(PLAN, tmp_path_factory.mktemp("quiet"))
    w = whole_run(world.begin(), ROUNDS)
    world.close()
    return w


def through(world: World, idle: IdleTime | None = None, **handlers: Handler) -> LocalChannel:
    """A channel in which some silos do something else; of "silo_2" the name is "silo-2"."""
    named = {name.replace("_", "-"): handler for name, handler in handlers.items()}
    doors = {name: named.get(name, world.handler(name)) for name in world.names}
    world.channel = LocalChannel(doors) if idle is None else PatientChannel(doors, idle)
    return world.channel


# --- silos that die, sleep, or are gone


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_silo_that_dies_and_comes_back_in_time_answers_once(
    make: Callable[..., World], quiet: Any, when: str
) -> None:
    world, calls = make(), 0

    def dying(request: bytes) -> bytes:
        nonlocal calls
        calls += 1
        dies = calls % 3 == 1
        if dies and when == "before":
            world.kill("silo-2")
            raise ConnectionError
        reply = world.service("silo-2").handle(request)
        if dies:
            world.kill("silo-2")
            raise ConnectionError
        return reply

    facts: list[RoundFacts] = []
    ask = world.begin(through(world, silo_2=dying), follow=facts.append)
    np.testing.assert_array_equal(whole_run(ask, ROUNDS), quiet)
    assert calls > ROUNDS + 2
    assert [one.answered for one in facts] == [(0, 1, 2)] * ROUNDS
    assert len(world.spent()) == 3


def test_a_silo_that_stays_away_ends_the_round_and_the_run_goes_on_later(
    make: Callable[..., World], quiet: Any, idle: IdleTime
) -> None:
    world, gone = make(), False

    def away(request: bytes) -> bytes:
        if gone:
            raise ConnectionError
        return world.service("silo-2").handle(request)

    ask = world.begin(through(world, idle, silo_2=away), deadline=0.3)
    first = ask(0, {"w": np.zeros(DIM)}, (RADIUS,))
    gone = True
    with pytest.raises(
        MissingSilosError, match=r"2 silos answer round 1, 3 are needed; no word from: 'silo-2'"
    ):
        ask(1, {"w": -0.1 * first[0]}, (RADIUS,))
    gone = False
    np.testing.assert_array_equal(whole_run(ask, ROUNDS), quiet)
    assert ask.traffic.answered.tolist() == [ROUNDS] * 3


def test_with_fewer_that_are_enough_the_mean_is_that_of_those_who_answered(
    make: Callable[..., World], idle: IdleTime
) -> None:
    world, here = make(), make("here", keeps=False)
    down = InProcess(
        [here.silo(name) for name in here.names], is_down=lambda step, k: k == 1 and step in (1, 2)
    ).open(PLAN)
    gone, present = False, {"silo-1", "silo-3"}

    def away(request: bytes) -> bytes:
        if gone:
            raise ConnectionError
        return world.service("silo-2").handle(request)

    channel = through(world, idle, silo_2=away)
    channel.present = lambda: present if gone else {*present, "silo-2"}  # type: ignore[method-assign]
    facts: list[RoundFacts] = []
    ask = world.begin(channel, deadline=0.3, at_least=2, follow=facts.append)
    for step in range(ROUNDS):
        gone = step in (1, 2)
        np.testing.assert_array_equal(ask(step, AT, (RADIUS,))[0], down(step, AT, (RADIUS,))[0])
    assert [one.answered for one in facts] == [(0, 1, 2), (0, 2), (0, 2), (0, 1, 2)]
    assert facts[1].seconds >= 0.3 > facts[2].seconds == 0  # who is known to be away is not waited for again
    assert ask.traffic.answered.tolist() == down.traffic.answered.tolist() == [4, 2, 4]


def test_a_late_reply_belongs_to_no_later_round(make: Callable[..., World]) -> None:
    world, release, kept = make(), threading.Event(), list[bytes]()

    def late(request: bytes) -> bytes:
        kept.append(request)
        if len(kept) == 3:  # after `consider` and `accept`
            release.wait(10)
        return world.service("silo-2").handle(kept[2] if len(kept) == 4 else request)

    ask = world.begin(through(world, silo_2=late), deadline=1.5, at_least=2)
    ask(0, AT, (RADIUS,))
    release.set()
    facts: list[RoundFacts] = []
    ask._follow, ask._deadline = facts.append, 10.0  # it ends when all have replied, on a slow machine too
    ask(1, AT, (RADIUS,))  # it replies to the round before, and then to this one
    assert facts[0].dropped == {"silo-2": 1}
    assert facts[0].answered == (0, 1, 2)


# --- opening


def test_if_one_silo_refuses_nobody_has_spent_anything(make: Callable[..., World], tmp_path: Path) -> None:
    world = make()
    (world.folder / "silo-2" / CONSENT_FILE).unlink()
    with pytest.raises(MissingSilosError, match=r"refused by: 'silo-2' \(consent\)"):
        world.begin()
    for name in world.names:
        world.kill(name)
        with Ledger.open(world.folder / name / "ledger.sqlite") as ledger:
            assert not ledger.entries()
    Consents(world.folder / "silo-2" / CONSENT_FILE).give(
        "lab", PLAN.digest(), "run", limit=PrivacyBudget(1e6, 0.5)
    )
    assert whole_run(world.begin(), ROUNDS).any()


def test_what_does_not_fit_the_roster_is_refused_before_anybody_is_asked(make: Callable[..., World]) -> None:
    world = make()

    def nobody(_: bytes) -> bytes:
        raise AssertionError("nobody is asked")

    channel = LocalChannel(dict.fromkeys(world.names, nobody))
    known = world.known
    with pytest.raises(ParameterError, match="key must be the server's"):
        RemoteFederation(known.roster, SigningKey.make(), channel, opening=known.opening)
    for fields in ({"deadline": 0.0}, {"at_least": 4}, {"at_least": 0}):
        with pytest.raises(ParameterError, match=next(iter(fields))):
            server(known, channel, **fields)
    with pytest.raises(ParameterError, match="needs `shuffler`"):
        server(known, channel).open(plan_under("shuffle", 4))
    with (
        pytest.raises(ParameterError, match="ledger is the trusted server's"),
        ledger_at(world.folder / "other") as ledger,
    ):
        server(known, channel, ledger=ledger).open(PLAN)
    gone = known.with_silo("silo-2", revoked=True)
    with pytest.raises(Exception, match="'silo-2' is revoked"):
        server(gone, channel).open(PLAN)
    channel.close()


@pytest.mark.parametrize(
    ("lie", "says"),
    [
        ("guarantee", "'silo-2' states the price of another plan"),
        ("size", r"'silo-2' says that it has \d+ units, the roster says \d+"),
    ],
)
def test_a_silo_that_states_another_price_or_size_ends_the_opening(
    lie: str, says: str, make: Callable[..., World]
) -> None:
    world = make()
    other = make("other", plan=plan_of(mean_of(GRID), parties=3, rounds=1))

    def lying(request: bytes) -> bytes:
        opened = open_request(request, roster=world.known.roster, silo="silo-2", now=NOW)
        reply = world.service("silo-2").handle(request)
        body = open_reply(reply, request=request, roster=world.known.roster, now=NOW).body
        lies = {"guarantee": other.silo("silo-2").consider(other.plan).to_json(), "size": body.size + 1}
        return seal_reply(
            "considered",
            replace(body, **{lie: lies[lie]}),
            request=opened.envelope,
            roster=world.known.roster,
            silo="silo-2",
            key=world.known.silos["silo-2"],
        )

    with pytest.raises(VerificationError, match=says):
        world.begin(through(world, silo_2=lying))


# --- what is no answer


def forged(
    world: World,
    answer: bytes,
    *,
    key: SigningKey | None = None,
    uploaded: bool = False,
    of: str = "silo-2",
    sealed: bool = True,
) -> Handler:
    """A silo that says anything, under its own key or another, once it has accepted the plan."""

    def handle(request: bytes) -> bytes:
        opened = open_request(request, roster=world.known.roster, silo="silo-2", now=NOW)
        if opened.envelope.kind != "ask":
            return world.service("silo-2").handle(request)
        about = said_in(federation="lab", run=world.run, step=decode_query(opened.body.query).step, silo=of)
        to = world.known.roster.sealing_key
        inside = seal_padded(answer, length=len(answer), key=to, info=about) if sealed else answer
        return seal_reply(
            "uploaded" if uploaded else "answered",
            Uploaded() if uploaded else Answered(inside),
            request=opened.envelope,
            roster=world.known.roster,
            silo="silo-2",
            key=key or world.known.silos["silo-2"],
        )

    return handle


def answers(*payloads: Any) -> bytes:
    """An answer to one statistic, well formed."""
    return encode_answer((tuple(Message(payload=one).to_bytes() for one in payloads),))


HOSTILE: dict[str, Callable[[World], Handler]] = {
    "nothing": lambda _: lambda _request: b"",
    "noise": lambda _: lambda _request: b"\xc1" * 1000,
    "the request": lambda _: lambda request: request,
    "another silo": lambda world: lambda request: world.service("silo-1").handle(request),
    "another key": lambda world: forged(world, b"", key=SigningKey.make()),
    "no answer": lambda world: forged(world, b"\x00" * 50),
    "two statistics": lambda world: forged(world, encode_answer(((), ()))),
    "no message": lambda world: forged(world, encode_answer(((),))),
    "another shape": lambda world: forged(world, answers(np.zeros(DIM + 2))),
    "nothing in it": lambda world: forged(world, answers(np.zeros(0))),
    "twice": lambda world: forged(world, answers(np.zeros(DIM), np.zeros(DIM + 1))),
    "too large": lambda world: forged(world, answers(np.full(DIM, 1e308))),
    "not a number": lambda world: forged(world, b"\x83" + encode_answer(((b"\x81",),))),
    "not sealed": lambda world: forged(world, answers(np.zeros(DIM)), sealed=False),
    "sealed as another's": lambda world: forged(world, answers(np.zeros(DIM)), of="silo-1"),
    "as if uploaded": lambda world: forged(world, b"", uploaded=True),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_what_is_no_answer_is_thrown_away_and_named(make: Callable[..., World], kind: str) -> None:
    world, here = make(), make("here", keeps=False)
    without = InProcess([here.silo(name) for name in here.names], is_down=lambda _, k: k == 1).open(PLAN)
    hostile, real = HOSTILE[kind](world), world.handler("silo-2")
    facts: list[RoundFacts] = []
    asked = 0

    def handle(request: bytes) -> bytes:
        nonlocal asked
        asked += 1
        return hostile(request) if asked > 2 else real(request)  # it has accepted the plan

    ask = world.begin(through(world, silo_2=handle), at_least=2, follow=facts.append, deadline=3.0)
    for step in range(2):
        np.testing.assert_array_equal(ask(step, AT, (RADIUS,))[0], without(step, AT, (RADIUS,))[0])
    for one in facts:
        assert one.answered == (0, 2)
        assert one.dropped["silo-2"] >= 1
    ask._at_least = None
    with pytest.raises(MissingSilosError, match="'silo-2'"):
        ask(2, AT, (RADIUS,))


class Repeating:
    """A channel that brings every reply three times, and some under names that nobody was asked by."""

    def __init__(self, inner: LocalChannel) -> None:
        self._inner = inner

    def present(self) -> set[str]:
        return self._inner.present()

    def exchange(self, requests: Mapping[str, bytes], *, deadline: float) -> Iterator[tuple[str, bytes]]:
        for name, reply in self._inner.exchange(requests, deadline=deadline):
            yield name, reply
            yield name, reply
            yield "silo-1", reply


def test_a_reply_counts_once(make: Callable[..., World], quiet: Any) -> None:
    world = make()
    ask = world.begin(Repeating(through(world)))
    np.testing.assert_array_equal(whole_run(ask, ROUNDS), quiet)
    assert ask.traffic.answered.tolist() == [ROUNDS] * 3


# --- a server that dies


@pytest.mark.parametrize("dies_after", range(ROUNDS + 1))
def test_a_server_that_dies_goes_on_and_asks_no_round_again(
    make: Callable[..., World], quiet: Any, dies_after: int
) -> None:
    world, asked = make(), list[str]()

    def counted(request: bytes) -> bytes:
        opened = open_request(request, roster=world.known.roster, silo="silo-2", now=NOW)
        asked.append(opened.envelope.kind)
        return world.service("silo-2").handle(request)

    whole_run(world.begin(through(world, silo_2=counted)), dies_after)
    for name in world.names:
        world.kill(name)
    facts: list[RoundFacts] = []
    ask = world.begin(through(world, silo_2=counted), follow=facts.append)
    np.testing.assert_array_equal(whole_run(ask, ROUNDS), quiet)
    assert asked == ["consider", "accept", *["ask"] * ROUNDS]
    assert [one.step for one in facts] == list(range(dies_after, ROUNDS))
    assert [one.step for one in ask.done] == list(range(ROUNDS))
    assert ask.traffic.answered.tolist() == [ROUNDS] * 3
    assert len(world.spent()) == 3


def test_a_server_that_dies_between_answers_and_journal_gets_the_same_answers(
    make: Callable[..., World], quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make()
    ask = world.begin()
    with monkeypatch.context() as patch:
        patch.setattr(RunJournal, "keep", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            ask(0, AT, (RADIUS,))
    np.testing.assert_array_equal(whole_run(world.begin(), ROUNDS), quiet)


def test_a_trusted_server_that_dies_publishes_one_mean_and_pays_once(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(mean_of(GRID, trust=TrustModel.CENTRAL), parties=3, rounds=ROUNDS)
    world = make(plan=plan)
    with ledger_at(world.folder / "ledger") as ledger:
        ask = world.begin(ledger=ledger)
        seen = list[Any]()

        def dies(_self: RunJournal, _query: Any, means: Any, _facts: RoundFacts) -> None:
            seen.append(means[0])
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr(RunJournal, "keep", dies)
            with pytest.raises(ZeroDivisionError):
                ask(0, AT, (RADIUS,))
        again = world.begin(ledger=ledger)
        np.testing.assert_array_equal(again(0, AT, (RADIUS,))[0], seen[0])
        other = {"w": np.ones(DIM)}
        with pytest.raises(RefusalError, match="another point"):
            again(0, other, (RADIUS,))
        assert again(1, other, (RADIUS,))[0].shape == (DIM,)
        (entry,) = ledger.entries()
        assert entry.epsilon == again.guarantees[0].epsilon


# --- silos that forget


@pytest.mark.parametrize("trust", ["local", "shuffle"])
@pytest.mark.parametrize("when", range(1, ROUNDS))
def test_a_run_that_somebody_closed_is_accepted_again_at_no_cost(
    make: Callable[..., World], trust: str, when: int
) -> None:
    plan = plan_under(trust, ROUNDS)
    expected = whole_run(make("quiet", plan=plan).begin(), ROUNDS)
    world = make(plan=plan)
    closing = seal_request(
        "close", Closing(), roster=world.known.roster, run="run", to="silo-2", key=world.known.server
    )
    whole_run(world.begin(), when)
    paid = world.spent()
    world.service("silo-2").handle(closing)  # as whoever had recorded it may
    world.kill("silo-1")
    np.testing.assert_array_equal(whole_run(world.begin(), ROUNDS), expected)
    assert world.spent() == paid
    accepted = [line for line in read_log(world.folder / "silo-2" / LOG_FILE) if line.kind == "accepted"]
    assert len(accepted) == 2


def test_a_round_that_was_answered_and_lost_is_answered_the_same_after_a_close(
    make: Callable[..., World], quiet: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make()
    ask = world.begin()
    with monkeypatch.context() as patch:
        patch.setattr(RunJournal, "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            ask(0, AT, (RADIUS,))
    ask.close()
    np.testing.assert_array_equal(whole_run(world.begin(), ROUNDS), quiet)


def test_a_silo_that_comes_with_another_ledger_is_not_asked_to_pay_again(make: Callable[..., World]) -> None:
    world = make()
    whole_run(world.begin(), 1)
    world.kill("silo-2")
    state = world.folder / "silo-2"
    for name in ("ledger.sqlite", LOG_FILE, f"{LOG_FILE}.head"):
        (state / name).unlink()
    for one in (state / "runs").iterdir():
        one.unlink()
    with pytest.raises(MissingSilosError, match=r"refused by: 'silo-2' \(plan\)"):
        whole_run(world.begin(), 2)
    with world.silo("silo-2").ledger or ledger_at(state / "x") as ledger:
        assert not ledger.entries()


# --- the journal


def test_a_journal_is_of_one_run(make: Callable[..., World], tmp_path: Path) -> None:
    world = make()
    ask = world.begin()
    ask(0, AT, (RADIUS,))
    with pytest.raises(RefusalError, match="step 0 has been asked at another point"):
        ask(0, {"w": np.ones(DIM)}, (RADIUS,))
    journal = world.journal
    assert journal is not None
    channel = world.channel
    assert channel is not None
    for fields, name in (
        ({"run": "other"}, "run"),
        ({"plan": plan_of(mean_of(GRID), parties=3, rounds=9)}, "plan"),
        ({"weights": "silos"}, "weights"),
        ({"budget": PrivacyBudget(1e5, 0.1)}, "budget"),
        ({"participation": Scheduled([[0, 1]])}, "participation"),
    ):
        facts: dict[str, Any] = {"plan": PLAN, "run": "run", **fields}
        with pytest.raises(RefusalError, match=f"of a run with another {name}"):
            server(world.known, channel, journal=journal).open(facts.pop("plan"), **facts)
    wrong = tmp_path / "wrong"
    wrong.write_bytes(b"no journal at all" * 100)
    with pytest.raises(DataError, match="cannot be used"):
        RunJournal(wrong)
    with pytest.raises(DataError, match="cannot be used"):
        RunJournal(tmp_path / "no" / "folder")
    ledger_at(tmp_path / "ledger").close()
    with pytest.raises(DataError, match="no journal of version 2"):
        RunJournal(tmp_path / "ledger")
    assert (world.folder / "run.journal").stat().st_mode & 0o077 == 0


# --- shuffled rounds


def test_a_round_of_too_few_is_skipped_and_says_why(make: Callable[..., World], idle: IdleTime) -> None:
    world, gone = make(plan=plan_under("shuffle", ROUNDS), clock=idle.monotonic), False

    def away(request: bytes) -> bytes:
        if gone:
            raise ConnectionError
        return world.service("silo-2").handle(request)

    facts: list[RoundFacts] = []
    ask = world.begin(through(world, idle, silo_2=away), deadline=0.4, follow=facts.append)
    assert ask(0, AT, (RADIUS,))[0].any()
    gone = True
    assert not ask(1, AT, (RADIUS,))[0].any()
    gone = False
    assert ask(2, AT, (RADIUS,))[0].any()
    assert [one.skipped for one in facts] == [False, True, False]
    assert "given up: 2 of 3" in facts[1].why
    assert ask.traffic.skipped == 1
    assert not ask(1, AT, (RADIUS,))[0].any()  # and is never asked again
    again = world.begin(through(world))
    assert not again(1, AT, (RADIUS,))[0].any()
    assert again.traffic.skipped == 1


def test_a_server_that_dies_before_it_fetches_a_batch_gets_that_batch(
    make: Callable[..., World], monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_under("shuffle", ROUNDS)
    expected = whole_run(make("quiet", plan=plan, keeps=False).begin(), ROUNDS)
    world = make(plan=plan)
    ask = world.begin()
    with monkeypatch.context() as patch:
        patch.setattr(RunJournal, "keep", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            whole_run(ask, 1)
    facts: list[RoundFacts] = []
    np.testing.assert_array_equal(whole_run(world.begin(follow=facts.append), ROUNDS), expected)
    assert facts[0].answered == (0, 1, 2)
    assert facts[0].bytes_up == (0, 0, 0)  # no silo was asked again
    assert world.spent()
