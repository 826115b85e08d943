"""Masked sums between machines: who dies, who is gone for good, and a server that asks what it should not."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.errors import LedgerError, RefusalError
from tacit.federation import Plan, Query
from tacit.federation.answers import open_sum
from tacit.federation.masking import complete
from tacit.federation.masking.exchanges import number_to_bytes, parties_to_bytes
from tacit.federation.masking.recoverable import root_name
from tacit.federation.masking.trust import MaskedSums
from tacit.federation.network.audit_log import read_log
from tacit.federation.network.bodies import AskedRound, Closing, MaskRequest, ProposedPlan, RefusalCode
from tacit.federation.network.channel import LocalChannel
from tacit.federation.network.journal import RunJournal
from tacit.federation.network.masked_rounds import MaskedRounds, masking_roster_of
from tacit.federation.network.proposing import MissingSilosError
from tacit.federation.network.queries import encode_query
from tacit.federation.network.sealing import open_sealed, said_at
from tacit.federation.network.silo_service import CONSENT_FILE, LOG_FILE
from tacit.federation.network.wire import Opened, open_reply, seal_request
from tacit.federation.store import LedgerStore
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.randomness import simulated
from tests.federation.aggregates import SIZES, mean_of, plan_of, step_of
from tests.federation.network.deployed_world import (
    IdleTime,
    PatientChannel,
    SteadySilo,
    World,
    consent,
    parties_of,
    whole_run,
)
from tests.federation.network.parties import NOW, answer_in
from tests.federation.network.test_soak import DeadError, Grim
from tests.federation.world import AT, DIM, RADIUS, STATISTICS, Rows, ledger_at, rows

ROUNDS = 4
ROSTER = masking_roster_of(parties_of(SIZES).roster)
COMPLETE = plan_of(rounds=ROUNDS, roster=ROSTER.digest)
LONG = plan_of(rounds=12, roster=ROSTER.digest)
RECOVERS = plan_of(rounds=ROUNDS, roster=ROSTER.digest, n_min=3, recover=True)


class SteadyMasked(SteadySilo):
    """A silo whose noise follows from its name and the step alone; its masks are secret."""

    def _answer(self, begun: Any, kept: Any) -> bytes:
        self._rng = simulated(7, self.name, begun.task.query.step)
        return super()._answer(begun, kept)


class MaskedWorld(World):
    """A federation whose silos hide in sums; `colluding` has what owners expect, 0 where they say nothing."""

    def __post_init__(self) -> None:
        self.colluding: dict[str, int | None] = {}
        super().__post_init__()

    def silo(self, name: str) -> SteadySilo:
        k, path = self.names.index(name), self.folder / name / "ledger.sqlite"
        ledger = Ledger.open(path) if path.exists() else ledger_at(path, epsilon=1e6)
        return SteadyMasked(
            Rows(rows(k, self.sizes[k])),
            STATISTICS,
            name=name,
            ledger=ledger,
            sums=MaskedSums(ROSTER, self.known.silos[name], colluding=self.colluding.get(name, 0)),
            rng=simulated(7, name),
        )

    def say(self, name: str, kind: Any, body: Any) -> Opened:
        """What a silo replies to whatever the server says."""
        roster = self.known.roster
        request = seal_request(kind, body, roster=roster, run=self.run, to=name, key=self.known.server)
        return open_reply(self.service(name).handle(request), request=request, roster=roster, now=NOW)

    def code(self, name: str, kind: Any, body: Any) -> str:
        """Why a silo refuses."""
        reply = self.say(name, kind, body)
        assert reply.envelope.kind == "refused", reply
        return str(reply.body.code)

    def accepted(self, plan: Plan) -> None:
        """Have all silos accept a plan."""
        for k, name in enumerate(self.names):
            assert self.say(name, "accept", ProposedPlan(plan.to_toml(), self.run, k)).envelope.kind == (
                "accepted"
            )


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., MaskedWorld]]:
    made: list[MaskedWorld] = []

    def world(plan: Plan = COMPLETE, folder: str = "world", **fields: Any) -> MaskedWorld:
        made.append(MaskedWorld(plan, tmp_path / folder, sizes=SIZES, **fields))
        return made[-1]

    yield world
    for one in made:
        one.close()


def without(world: MaskedWorld, gone: set[str], idle: IdleTime) -> LocalChannel:
    """A channel in which silos of a set, which may grow, are not there."""

    def handler(name: str) -> Callable[[bytes], bytes]:
        def handle(request: bytes) -> bytes:
            if name in gone:
                raise ConnectionError
            return world.service(name).handle(request)

        return handle

    world.channel = PatientChannel({name: handler(name) for name in world.names}, idle)
    world.channel.present = lambda: set(world.names) - gone  # type: ignore[method-assign]
    return world.channel


@pytest.mark.parametrize("plan", [COMPLETE, RECOVERS], ids=["complete", "recovers"])
def test_whoever_dies_the_model_and_the_price_are_those_of_a_quiet_run(
    plan: Plan, make: Callable[..., MaskedWorld]
) -> None:
    expected = whole_run(make(plan, "quiet").begin(), ROUNDS)
    stormy, lives, deaths, w = make(plan, "stormy"), 0, 0, None
    while w is None:
        lives += 1
        grim = Grim(stormy, lives + 3)
        try:
            w = whole_run(stormy.begin(grim, deadline=20.0), ROUNDS)
        except DeadError:
            pass
        finally:
            grim.close()
            deaths += sum(grim.deaths.values())
    assert deaths > 3
    np.testing.assert_array_equal(w, expected)
    prices = [stormy.silo(name).consider(plan).epsilon for name in stormy.names]
    assert stormy.spent() == prices


@pytest.mark.parametrize(
    ("told", "observer"),
    [
        (0, "up to 0 other parties"),
        (1, "up to 1 other party"),
        (None, "who see the message of silo 'silo-2'"),
    ],
)
def test_every_owner_pays_for_as_many_colluders_as_it_expects(
    told: int | None, observer: str, make: Callable[..., MaskedWorld]
) -> None:
    world = make()
    world.colluding["silo-2"] = told
    ask = world.begin()
    assert ask(0, AT, (RADIUS,))[0].any()
    assert observer in ask.guarantees[1].observer
    assert "up to 0 other parties" in ask.guarantees[0].observer
    spent = world.spent()
    assert spent[1] == ask.guarantees[1].epsilon
    alone = ask.guarantees_alone[1].epsilon
    assert (spent[1] == alone) is (told is None)
    assert spent[0] == pytest.approx(ask.guarantees[2].epsilon, rel=0.01)
    assert (spent[1] > 1.1 * spent[0]) is (told != 0)


def test_without_recovery_a_missing_silo_stops_the_run_and_nobody_computes_again(
    make: Callable[..., MaskedWorld], idle: IdleTime
) -> None:
    expected = whole_run(make(folder="quiet").begin(), ROUNDS)
    world, gone = make(), set[str]()
    ask = world.begin(without(world, gone, idle), deadline=0.5)
    w = np.zeros(DIM) - 0.1 * ask(0, AT, (RADIUS,))[0]
    gone.add("silo-2")
    with pytest.raises(MissingSilosError, match="no word from: 'silo-2'"):
        ask(1, {"w": w}, (RADIUS,))
    gone.clear()
    np.testing.assert_array_equal(whole_run(world.begin(without(world, gone, idle)), ROUNDS), expected)
    for name in world.names:
        lines = [line for line in read_log(world.folder / name / LOG_FILE) if line.kind == "answered"]
        shown = {(line.facts["step"], line.facts["answer"]) for line in lines}
        assert len(shown) == ROUNDS  # one answer a step, however often it was sent


def test_with_recovery_a_run_ends_without_a_silo_that_is_gone_for_good(
    make: Callable[..., MaskedWorld], idle: IdleTime
) -> None:
    world, gone, facts = make(RECOVERS), set[str](), list[Any]()
    ask = world.begin(without(world, gone, idle), deadline=1.0, follow=facts.append)
    assert ask(0, AT, (RADIUS,))[0].any()
    gone.add("silo-4")
    for step in (1, 2):
        assert ask(step, AT, (RADIUS,))[0].any()
    gone.add("silo-1")
    assert not ask(3, AT, (RADIUS,))[0].any()  # two of four open nothing
    assert [one.answered for one in facts] == [(0, 1, 2, 3), (0, 1, 2), (0, 1, 2), ()]
    assert [one.asked for one in facts] == [(0, 1, 2, 3)] * 4
    assert [one.skipped for one in facts] == [False, False, False, True]
    gone.clear()
    again = world.begin(without(world, gone, idle))
    assert not again(3, AT, (RADIUS,))[0].any()  # and never will


def test_the_sum_is_that_of_the_silos_in_it(make: Callable[..., MaskedWorld], idle: IdleTime) -> None:
    loud = plan_of(step_of(mean_of(3, z=3.0)), rounds=2, n_min=3, recover=True, roster=ROSTER.digest)
    world, gone = make(loud), {"silo-4"}
    with pytest.raises(MissingSilosError):  # to begin, all must agree to the price
        world.begin(without(world, gone, idle), deadline=0.3)
    gone.clear()
    ask = world.begin(without(world, gone, idle), deadline=1.0)
    gone.add("silo-4")
    found = ask(0, AT, (RADIUS,))[0]
    values = np.concatenate([rows(k, n) for k, n in enumerate(SIZES[:3])])
    assert np.linalg.norm(found - values.mean(axis=0)) < 3.0  # noise: std 0.3 a coordinate


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("plan", [COMPLETE, RECOVERS], ids=["complete", "recovers"])
def test_a_closed_run_has_no_keys_left_and_is_never_masked_again(
    plan: Plan, restarted: bool, make: Callable[..., MaskedWorld]
) -> None:
    world = make(plan)
    ask = world.begin()
    w = np.zeros(DIM) - 0.1 * ask(0, AT, (RADIUS,))[0]
    for name in world.names if restarted else ():
        world.kill(name)
    before = world.spent()
    ask.close()
    for name in world.names:
        world.kill(name)
        with Ledger.open(world.folder / name / "ledger.sqlite") as ledger:
            kept = LedgerStore(ledger, "run").secrets
            name_of_key = root_name(0) if plan.recover else complete._KEY
            assert kept.find(name_of_key) is None
            with pytest.raises(RefusalError):
                kept.keep(name_of_key, lambda: b"new")
    if plan.recover:
        assert not world.begin(deadline=1.0)(1, {"w": w}, (RADIUS,))[0].any()
    else:
        with pytest.raises(MissingSilosError, match=r"\(masks|plan\)"):
            world.begin(deadline=1.0)(1, {"w": w}, (RADIUS,))
    assert world.spent() == before


# --- a server that asks what it should not


def cards_of(world: MaskedWorld) -> dict[int, bytes]:
    """What all silos advertise."""
    rounds = MaskedRounds(
        world.plan,
        "run",
        roster=world.known.roster,
        opening=world.known.opening,
        journal=world_journal(world),
    )
    found: dict[int, bytes] = {}

    def exchange(stage: str, data: Any) -> dict[int, bytes]:
        replies = {}
        for k, sent in data.items():
            said = world.say(world.names[k], "mask", MaskRequest(stage, sent))
            replies[k] = opened(world, said, stage, sent)
        if stage == "advertise":
            found.update(replies)
        return replies

    assert rounds.prepare(0, exchange)
    return found


def world_journal(world: MaskedWorld) -> Any:
    if world.journal is None:
        world.journal = RunJournal()
    return world.journal


def opened(world: MaskedWorld, said: Opened, stage: str, sent: bytes) -> bytes:
    """What only the server reads in a reply."""
    about = said_at(stage, sent, federation="lab", run="run", silo=said.envelope.sender)
    return open_sealed(said.body.sealed, key=world.known.opening, info=about)


def test_nothing_about_masks_leaves_before_consent(make: Callable[..., MaskedWorld]) -> None:
    world = make()
    (world.folder / "silo-1" / CONSENT_FILE).unlink()
    assert world.code("silo-1", "mask", MaskRequest("advertise", b"")) == RefusalCode.PLAN
    proposal = ProposedPlan(COMPLETE.to_toml(), "run", 0)
    assert world.code("silo-1", "accept", proposal) == RefusalCode.CONSENT
    assert world.code("silo-1", "mask", MaskRequest("advertise", b"")) == RefusalCode.PLAN


@pytest.mark.parametrize(
    ("stage", "data"),
    [("advertise", b"x"), ("agree", b""), ("agree", bytes(96 * 4)), ("reveal", b""), ("what", b"\xff" * 9)],
)
def test_what_no_honest_server_says_is_refused(
    stage: str, data: bytes, make: Callable[..., MaskedWorld]
) -> None:
    world = make()
    world.accepted(COMPLETE)
    assert world.code("silo-1", "mask", MaskRequest(stage, data)) == RefusalCode.MASKS


def test_cards_of_strangers_or_of_another_run_are_refused(make: Callable[..., MaskedWorld]) -> None:
    world, other = make(), make(folder="other")
    for one in (world, other):
        one.accepted(COMPLETE)
    good, foreign = cards_of(world), cards_of(other)
    mixed = b"".join((good | {2: foreign[2]})[k] for k in range(4))
    assert world.code("silo-1", "mask", MaskRequest("agree", mixed)) == RefusalCode.MASKS
    swapped = b"".join(good[k] for k in (0, 2, 1, 3))
    assert world.code("silo-1", "mask", MaskRequest("agree", swapped)) == RefusalCode.MASKS


@pytest.mark.parametrize(
    "plan",
    [
        plan_of(rounds=ROUNDS, roster="0" * 64),
        plan_of(rounds=ROUNDS),
        plan_of(rounds=ROUNDS, roster=ROSTER.digest, n_min=3, recover=True, colluding=1),
    ],
    ids=["another roster", "no roster", "a quorum that two sets could reach"],
)
def test_a_plan_of_other_silos_or_too_low_a_quorum_is_refused_whatever_the_owner_agreed_to(
    plan: Plan, make: Callable[..., MaskedWorld]
) -> None:
    world = make()
    low = MaskedSums(ROSTER, world.known.silos["silo-1"], colluding=2 if plan.recover else 0)
    world.service("silo-1")._silo._owner = _with_sums(world.service("silo-1")._silo._owner, low)
    world.service("silo-1")._silo._sums = low
    consent(world.known, plan, "run", world.folder / "silo-1")
    assert world.code("silo-1", "accept", ProposedPlan(plan.to_toml(), "run", 0)) == RefusalCode.PLAN
    with Ledger.open(world.folder / "silo-1" / "ledger.sqlite") as ledger:
        assert not ledger.entries()


def _with_sums(owner: Any, sums: MaskedSums) -> Any:
    return replace(owner, sums=sums)


@pytest.mark.parametrize("agreed", [True, False], ids=["as before", "consent taken back"])
def test_a_run_that_ends_after_a_restart_leaves_no_key(
    agreed: bool, make: Callable[..., MaskedWorld]
) -> None:
    world = make()
    world.accepted(COMPLETE)
    cards_of(world)
    path = world.folder / "silo-1" / "ledger.sqlite"
    with Ledger.open(path) as ledger:
        key = ledger.secrets("run").find("masks/key")
    assert key is not None
    assert key in path.read_bytes()
    world.kill("silo-1")
    if not agreed:
        (world.folder / "silo-1" / CONSENT_FILE).unlink()
    assert world.say("silo-1", "close", Closing()).envelope.kind == "closed"
    assert key not in path.read_bytes()


def test_a_ledger_that_has_forgotten_a_signed_set_is_not_gone_on_with(
    make: Callable[..., MaskedWorld],
) -> None:
    """Nothing was answered since the backup, and yet its silo would sign a second sum of the step."""
    world = make(RECOVERS)
    world.accepted(RECOVERS)
    cards_of(world)
    state = world.folder / "silo-1"
    for name in world.names:
        world.say(name, "ask", AskedRound(encode_query(Query(0, AT, (RADIUS,)))))
    world.kill("silo-1")
    backup = shutil.copy(state / "ledger.sqlite", state / "backup")
    sets = [number_to_bytes(0) + parties_to_bytes(one) for one in ((0, 1, 2), (0, 1, 3))]
    assert world.say("silo-1", "mask", MaskRequest("sign", sets[0])).envelope.kind == "masked"
    world.kill("silo-1")
    newest = shutil.copy(state / "ledger.sqlite", state / "newest")
    shutil.copy(backup, state / "ledger.sqlite")
    with pytest.raises(
        LedgerError, match=r"older than the log beside it, .*'masks/set/0' of run 'run' was said"
    ):
        world.service("silo-1")
    shutil.copy(newest, state / "ledger.sqlite")
    assert world.say("silo-1", "mask", MaskRequest("sign", sets[0])).envelope.kind == "masked"
    assert world.code("silo-1", "mask", MaskRequest("sign", sets[1])) == RefusalCode.MASKS
    assert world.say("silo-1", "close", Closing()).envelope.kind == "closed"
    world.kill("silo-1")
    world.service("silo-1")  # what was wiped is not forgotten


def vectors(world: MaskedWorld, queries: list[Query]) -> Array:
    """What the server finds in the answers of the silos, each to a query of its own."""
    found = []
    for name, query in zip(world.names, queries, strict=True):
        said = world.say(name, "ask", AskedRound(encode_query(query)))
        kind = world.plan.schedule().steps[0]
        answer = answer_in(said, query.step, opening=world.known.opening)
        found.append(open_sum(kind, answer, party=world.names.index(name)))
    return np.array(found)


def test_other_queries_to_other_silos_give_noise(make: Callable[..., MaskedWorld]) -> None:
    """Masks cancel for one query only: else each coordinate of the sum is uniform modulo 2**width."""
    world = make(LONG)
    world.accepted(LONG)
    cards_of(world)
    same = Query(0, AT, (RADIUS,))
    width = LONG.kinds[0][0].summed[0].width
    bound = 2 ** (width - 2)  # of honest sums, widths leave 2**-40
    total = _centred(vectors(world, [same] * 4).sum(axis=0), width)
    assert np.all(np.abs(total) < bound)
    far = 0
    for step in range(1, LONG.rounds):
        queries = [Query(step, {"w": np.full(DIM, float(k))}, (RADIUS,)) for k in range(4)]
        total = _centred(vectors(world, queries).sum(axis=0), width)
        far += int((np.abs(total) >= bound).sum())
        assert world.code("silo-1", "ask", AskedRound(encode_query(queries[1]))) == RefusalCode.ANSWERED
    assert far > 0  # 33 uniform numbers are all in the middle half once in 2**33 times


def _centred(total: Array, width: int) -> Array:
    half = 1 << (width - 1)
    return (total + half) % (1 << width) - half


def test_what_passes_a_relay_shows_no_masked_vector_and_a_masked_vector_no_row(
    make: Callable[..., MaskedWorld],
) -> None:
    world, seen = make(), list[bytes]()
    world.accepted(COMPLETE)
    cards_of(world)
    query = Query(0, AT, (RADIUS,))
    for name in world.names:
        said = world.say(name, "ask", AskedRound(encode_query(query)))
        plain = answer_in(said, 0, opening=world.known.opening)
        assert plain[-8:] not in said.body.sealed
        seen.append(plain)
    again = make(folder="again")
    again.accepted(COMPLETE)
    cards_of(again)
    for name, before in zip(again.names, seen, strict=True):
        said = again.say(name, "ask", AskedRound(encode_query(query)))
        assert answer_in(said, 0, opening=again.known.opening) != before  # same noise, other masks
