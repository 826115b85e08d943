"""Drop-outs in every phase: the sum of exactly those who stayed, or nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from itertools import product

import numpy as np
import pytest

from tacit.errors import RefusalError
from tacit.federation.masking.blocks import KeyCard
from tacit.federation.masking.fields import framed
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.shamir import SHARE_BYTES
from tacit.numerics import IntArray
from tests.federation.masking.recovery_world import (
    DIGEST,
    Disk,
    Exchanged,
    World,
    block_of,
    signing_keys,
    total,
)

PHASES = ("advertise", "share", "agree", "mask", "sign", "reveal")


Opened = tuple[IntArray, tuple[int, ...]] | None


def run(
    world: World, lost: tuple[int, ...], *, step: int = 0, dim: int = 3, seed: int = 0
) -> tuple[Opened, list[IntArray]]:
    """One step, in which party `k` is gone from phase `lost[k]` on: what is opened, and the vectors."""
    vectors = world.vectors(dim, seed)
    exchange = world.exchange(lambda stage, party: PHASES.index(stage) < lost[party])
    answers = {}
    if world.server.prepare(step, exchange):
        there = [k for k in range(world.parties) if lost[k] > PHASES.index("mask")]
        answers = {k: world.masks[k].mask(step, DIGEST, vectors[k], world.width) for k in there}
    opened = world.server.open(step, DIGEST, answers, exchange)
    assert not exchange.refused
    return opened, vectors


def expected(lost: tuple[int, ...], least: int) -> tuple[int, ...] | None:
    """Those who sent a vector, if a quorum was there to the end."""
    if sum(phase == len(PHASES) for phase in lost) < least:
        return None
    return tuple(k for k, phase in enumerate(lost) if phase > PHASES.index("mask"))


@cache
def outcome_of_four(lost: tuple[int, ...]) -> None:
    """Check one pattern of drop-outs of four parties, of whom three must stay."""
    world = World(4, 3)
    opened, vectors = run(world, lost)
    wanted = expected(lost, 3)
    if wanted is None:
        assert opened is None, lost
    else:
        assert opened is not None, lost
        assert opened[1] == wanted, lost
        assert world.same(opened[0], total([vectors[k] for k in wanted])), lost


def test_every_pattern_of_drop_outs_of_four_parties() -> None:
    """All 7^4; once two are gone nobody asks for more, so that patterns which agree until then are one."""
    opened = 0
    for lost in product(range(len(PHASES) + 1), repeat=4):
        ordered = sorted(lost)
        end = ordered[1]  # from this phase on, fewer than three are there
        outcome_of_four(tuple(min(phase, end) for phase in lost))
        opened += expected(lost, 3) is not None
    assert opened == 1 + 4 * len(PHASES)


@pytest.mark.parametrize("seed", range(60))
def test_random_runs(seed: int) -> None:
    """3 to 9 parties, widths from 8 to 63, blocks of one to three steps, whoever drops out whenever."""
    rng = np.random.default_rng(seed)
    parties = int(rng.integers(3, 10))
    colluding = int(rng.integers(0, max(1, parties // 3)))
    low = max((parties + colluding) // 2 + 1, colluding + 2)
    least = int(rng.integers(low, parties + 1))
    width = int(rng.choice([8, 21, 32, 40, 63]))
    world = World(parties, least, colluding, block=int(rng.integers(1, 4)), width=width)
    for step in range(world.rounds):
        # A party that has dropped out may be back in the next step.
        phases = np.where(rng.random(parties) < 0.85, len(PHASES), rng.integers(0, len(PHASES), parties))
        lost = [int(phase) for phase in phases]
        alive = lambda stage, party, lost=lost: PHASES.index(stage) < lost[party]  # noqa: E731
        exchange, vectors = world.exchange(alive), world.vectors(17, seed)
        ready = world.server.prepare(step, exchange)
        answers = {}
        for k in range(parties):
            if lost[k] > PHASES.index("mask"):
                try:
                    answers[k] = world.masks[k].mask(step, DIGEST, vectors[k], width)
                except RefusalError as error:
                    assert "have not been exchanged" in str(error) or "is over" in str(error)  # noqa: PT017
        opened = world.server.open(step, DIGEST, answers, exchange)
        if opened is None:
            staying = sum(phase == len(PHASES) and k in answers for k, phase in enumerate(lost))
            assert staying < least or not ready
        else:
            assert len(opened[1]) >= least
            assert set(opened[1]) <= set(answers)
            assert world.same(opened[0], total([vectors[k] for k in opened[1]]))


def test_a_party_that_missed_a_step_is_in_the_next_one_of_the_block() -> None:
    world = World(4, 3, block=4)
    everybody = len(PHASES)
    gone = run(world, (everybody, 3, everybody, everybody))[0]
    assert gone is not None
    assert gone[1] == (0, 2, 3)
    back, vectors = run(world, (everybody,) * 4, step=1, seed=1)
    assert back is not None
    assert back[1] == (0, 1, 2, 3)
    assert world.same(back[0], total(vectors))


def test_a_server_goes_on_in_another_process() -> None:
    """With what it has told on disk, whoever is there when it comes back."""
    world, kept = World(4, 3, block=2), Disk()
    world.server = world.new_server(kept)
    vectors, exchange = world.vectors(5), world.exchange()
    assert world.server.prepare(0, exchange)
    answers = {k: world.masks[k].mask(0, DIGEST, vectors[k], world.width) for k in range(3)}
    first = world.server.open(0, DIGEST, answers, exchange)
    for party in range(4):
        world.restart(party)
    world.server = world.new_server(kept)
    partly = world.exchange(lambda stage, party: party != 1)
    assert world.server.prepare(0, partly)
    assert world.server.open(0, DIGEST, {**answers, 3: vectors[3]}, partly) is None  # 0 and 2 are too few
    assert not partly.refused
    again = world.new_server(kept)
    assert again.prepare(0, exchange)
    second = again.open(0, DIGEST, {**answers, 3: vectors[3]}, exchange)
    assert first is not None
    assert second is not None
    assert first[1] == second[1] == (0, 1, 2)
    assert np.array_equal(first[0], second[0])


def test_a_server_that_asks_everything_again_opens_the_same_sums() -> None:
    """Blocks are over by then, and parties that were gone are back: what was decided is said again."""
    world, kept = World(4, 3, block=2), Disk()
    vectors, first = world.vectors(5), []
    for attempt in range(2):
        world.server = world.new_server(kept)
        for step in range(world.rounds):
            exchange = world.exchange()
            assert world.server.prepare(step, exchange)
            if attempt == 0:
                there = [k for k in range(4) if k != step]
                answers = {k: world.masks[k].mask(step, DIGEST, vectors[k], world.width) for k in there}
                first.append((answers, world.server.open(step, DIGEST, answers, exchange)))
            else:
                answers, opened = first[step]
                again = world.server.open(step, DIGEST, {**answers, step: vectors[step]}, exchange)
                assert opened is not None
                assert again is not None
                assert again[1] == opened[1] == tuple(answers)
                assert np.array_equal(again[0], opened[0])
                assert not exchange.refused
        for party in range(4):
            world.restart(party)


def lying(world: World, liar: int, about: int) -> Exchanged:
    """A party that tells another share of one party's secret than it was told."""

    class Lying(Exchanged):
        def __call__(self, stage: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
            replies = super().__call__(stage, requests)
            if stage == "reveal":
                shares = bytearray(replies[liar])
                shares[SHARE_BYTES * (about + 1) - 1] ^= 1
                replies[liar] = bytes(shares)
            return replies

    return Lying(world, lambda stage, party: True)


def test_a_key_that_is_not_the_one_that_was_shown_is_refused() -> None:
    """Party 0 lies about its share of the key of party 3, which has dropped out."""
    world = World(4, 3)
    vectors, exchange = world.vectors(5), lying(world, 0, 3)
    assert world.server.prepare(0, exchange)
    answers = {k: world.masks[k].mask(0, DIGEST, vectors[k], world.width) for k in range(3)}
    with pytest.raises(RefusalError, match="the shares of a secret of party 'silo-3' give back another one"):
        world.server.open(0, DIGEST, answers, exchange)


@pytest.mark.parametrize(
    ("stage", "rubbish"),
    [
        ("advertise", b""),
        ("advertise", bytes(128)),
        ("advertise", None),
        ("share", b"\0" * 7),
        ("sign", bytes(64)),
        ("reveal", b"\xff" * (4 * SHARE_BYTES)),
        ("reveal", bytes(SHARE_BYTES)),
    ],
)
def test_rubbish_from_a_party_costs_its_place_and_nothing_else(stage: str, rubbish: bytes | None) -> None:
    """A card, boxes, a signature and shares that are none, or somebody else's."""
    world = World(4, 3)
    vectors, honest = world.vectors(5), world.exchange()

    def exchange(asked: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
        replies = honest(asked, requests)
        if asked == stage:
            replies[1] = world.masks[2].advertise(0) if rubbish is None else rubbish
            replies[77] = b"somebody that nobody asked"
        return replies

    assert world.server.prepare(0, exchange)
    there = [k for k in range(4) if k != 1 or stage in ("sign", "reveal")]
    answers = {k: world.masks[k].mask(0, DIGEST, vectors[k], world.width) for k in there}
    opened = world.server.open(0, DIGEST, answers, exchange)
    assert opened is not None
    assert opened[1] == tuple(there)
    assert world.same(opened[0], total([vectors[k] for k in there]))


@pytest.mark.parametrize("none", [bytes(32), b"\xff" * 32], ids=["small order", "no point"])
def test_a_signed_key_that_is_none_costs_its_party_its_place(none: bytes) -> None:
    """All others would refuse the cards of a block with it: one party would stop the run."""
    world = World(4, 3)
    honest, block = world.exchange(), block_of(world)
    card = KeyCard.from_bytes(world.masks[1].advertise(0), block, 1)
    claim = framed(*block.facts, 1, card.sealing, none)
    bad = KeyCard(card.sealing, (none,), signing_keys(4)[1].sign("sum-2-keys", claim)).to_bytes()
    assert KeyCard.from_bytes(bad, block, 1).masking == (none,)

    def exchange(asked: str, requests: Mapping[int, bytes]) -> dict[int, bytes]:
        return {**honest(asked, requests), **({1: bad} if asked == "advertise" else {})}

    assert world.server.prepare(0, exchange)
    assert set(world.server.ready(0)) == {0, 2, 3}
    assert not honest.refused


def test_the_quorum_is_about_the_roster() -> None:
    world = World(4, 3)
    world.quorum = Quorum(5, 4, 0)
    with pytest.raises(RefusalError, match="the quorum is about 5 parties, the roster has 4"):
        world.new_server()
    with pytest.raises(RefusalError, match="the quorum is about 5 parties, the roster has 4"):
        world.started(0)


def test_bytes_of_every_exchange() -> None:
    """What docs/theory says of 25 parties, one step a block."""
    world = World(25, 17)
    exchange, vectors = world.exchange(), world.vectors(3)
    assert world.server.prepare(0, exchange)
    answers = {k: m.mask(0, DIGEST, vectors[k], world.width) for k, m in enumerate(world.masks)}
    assert world.server.open(0, DIGEST, answers, exchange)
    sizes = {stage: len(reply) for stage, _, _, reply in exchange.carried}
    assert sizes == {"advertise": 128, "share": 1_968, "agree": 0, "sign": 64, "reveal": 825}
