"""Parties that were killed between any two writes, or whose block or run is over, and bytes of anybody."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import AuthenticationError, RefusalError
from tacit.federation.masking.exchanges import number_to_bytes
from tacit.federation.masking.recoverable import root_name
from tests.federation.masking.recovery_world import (
    DIGEST,
    KilledError,
    World,
    about,
    refuses,
    sign_request,
    signed_world,
)


def test_the_same_stored_message_is_sent_again_and_never_another_one() -> None:
    """Killed before and after every write, asked for other sets: one text under each key, for ever."""
    seen: dict[tuple[int, int], set[bytes]] = {}
    world = World(4, 3)
    cards = world.cards()
    sets = [{k: cards[k] for k in chosen} for chosen in ((0, 1, 2, 3), (0, 1, 2), (0, 1, 3), (0, 2, 3))]
    for fuse in (0.0, 0.5, 1.0, float("inf")):
        for chosen in sets:
            world.disks[0].fuse = fuse
            try:
                for receiver, box in world.masks[0].share(0, chosen).items():
                    seen.setdefault((0, receiver), set()).add(box)
            except (KilledError, RefusalError):
                pass
            world.restart(0)
    assert {pair: len(boxes) for pair, boxes in seen.items()} == {(0, 1): 1, (0, 2): 1, (0, 3): 1}


def test_a_block_that_is_over_is_never_opened_again() -> None:
    """Its root is deleted when the next block begins; what was said of it is said again, word for word."""
    world, signatures = signed_world()
    shares = world.masks[0].reveal(0, signatures)
    request = about(0, signatures)
    said = world.masks[0].respond("reveal", request)
    card = world.masks[0].advertise(0)
    assert world.masks[0].advertise(1) != card
    assert root_name(0) not in world.disks[0].kept
    assert root_name(1) in world.disks[0].kept
    for _ in range(2):
        assert world.masks[0].advertise(0) == card
        assert world.masks[0].reveal(0, signatures) == shares
        assert world.masks[0].respond("reveal", request) == said
        refuses("block 0 of run 'run' is over", world.masks[0].mask, 0, DIGEST, world.vectors(3)[0], 16)
        world.restart(0)
    # A party that has signed, and not revealed before it went on, has nothing left to reveal.
    world.masks[1].advertise(1)
    refuses("block 0 of run 'run' is over", world.masks[1].reveal, 0, signatures)


def test_ten_blocks_are_not_eleven() -> None:
    """The name of the secret of block 1 is no beginning of that of block 10."""
    world = World(4, 3, rounds=12)
    world.masks[0].advertise(1)
    world.masks[0].advertise(10)
    world.masks[0].advertise(11)
    assert [name for name in world.disks[0].kept if "root" in name] == [root_name(11)]
    refuses(r"block must be in \[0, 11\], got 12", world.masks[0].advertise, 12)


def test_no_order_of_blocks_keeps_more_than_one_key() -> None:
    """A server that counts backwards would find the keys of all blocks on a disk that it steals later."""
    world = World(4, 3, rounds=20)
    world.masks[0].advertise(13)
    for number in (12, 8, 7, 0):
        refuses(f"block {number} of run 'run' is over", world.masks[0].advertise, number)
        world.restart(0)
    world.masks[0].advertise(14)
    assert [name for name in world.disks[0].kept if "root" in name] == [root_name(14)]


def test_a_block_far_away_is_set_up_at_once() -> None:
    """Blocks that were left out cost nothing: a party that looked for each would never reply again."""
    world = World(4, 3, rounds=2**60)
    for number in (3, 2**60 - 1):
        world.masks[0].advertise(number)
    assert len(world.disks[0].wiped) == 2 + 60
    assert [name for name in world.disks[0].kept if "root" in name] == [root_name(2**60 - 1)]


def test_after_wiping_nothing_is_made_again() -> None:
    world, signatures = signed_world()
    world.masks[0].wipe()
    world.restart(0)
    assert world.disks[0].kept == {}
    party = world.masks[0]
    for work in (
        lambda: party.advertise(0),
        lambda: party.advertise(1),
        lambda: party.sign(0, (0, 1, 2)),
        lambda: party.reveal(0, signatures),
        lambda: party.mask(0, DIGEST, world.vectors(3)[0], 16),
    ):
        with pytest.raises(RefusalError):
            work()


def test_every_write_may_be_the_last_one() -> None:
    """Killed before and after each write of a step, and again from disk: it says the same bytes."""

    def whole(world: World, party: int) -> list[bytes]:
        """What the party says in one step, honestly led."""
        cards = world.cards()
        sent = {k: masks.share(0, cards) for k, masks in enumerate(world.masks)}
        for k, masks in enumerate(world.masks):
            masks.agree(0, {j: boxes[k] for j, boxes in sent.items() if j != k})
        vectors = world.vectors(3)
        masked = [m.mask(0, DIGEST, vectors[k], world.width) for k, m in enumerate(world.masks)]
        signatures = {k: m.sign(0, (0, 1, 2, 3)) for k, m in enumerate(world.masks)}
        shares = world.masks[party].reveal(0, signatures)
        return [
            cards[party],
            *sent[party].values(),
            masked[party].tobytes(),
            signatures[party],
            *shares.values(),
        ]

    kills = 0
    for fuse in np.arange(0.0, 12.0, 0.5):
        world = World(4, 3)
        world.disks[2].fuse = fuse
        try:
            whole(world, 2)
        except KilledError:
            kills += 1
            world.restart(2)
            once = whole(world, 2)
            world.restart(2)
            assert whole(world, 2) == once
    assert kills == 14  # root, card, cards, boxes, context, set, shares: before and after


@pytest.mark.parametrize("stage", ["advertise", "share", "agree", "sign", "reveal"])
def test_bytes_of_anybody_crash_nothing(stage: str) -> None:
    """2,000 changed requests a stage: a reply as before, or a refusal."""
    rng = np.random.default_rng(len(stage))
    world, signatures = signed_world(block=2)
    cards = world.cards()
    sent = {k: masks.share(0, cards) for k, masks in enumerate(world.masks)}
    requests = {
        "advertise": number_to_bytes(0),
        "share": about(0, cards),
        "agree": about(0, {j: boxes[0] for j, boxes in sent.items() if j}),
        "sign": sign_request(0, [0, 1, 2, 3]),
        "reveal": about(0, signatures),
    }
    reply = world.masks[0].respond(stage, requests[stage])
    fresh = World(4, 3, block=2)
    fresh.cards()
    refused = 0
    for _ in range(2_000):
        data = bytearray(requests[stage])
        match rng.integers(0, 4):
            case 0:
                data[rng.integers(len(data))] ^= 1 << rng.integers(8)
            case 1:
                data = data[: rng.integers(len(data))]
            case 2:
                data += rng.bytes(int(rng.integers(1, 9)))
            case _:
                data = bytearray(rng.bytes(int(rng.integers(0, 300))))
        try:
            said = world.masks[0].respond(stage, bytes(data))
            assert said == reply or stage == "advertise"
        except (RefusalError, AuthenticationError):
            refused += 1
        try:
            fresh.masks[0].respond(stage, bytes(data))
        except (RefusalError, AuthenticationError):
            continue
    assert refused > 1_900
