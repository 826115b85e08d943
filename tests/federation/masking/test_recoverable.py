"""What a party refuses, whoever says it, and what it says again after it was killed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import AuthenticationError, ParameterError, RefusalError
from tacit.federation.masking.agreement import derived_key, public_of, shared_secret
from tacit.federation.masking.blocks import KeyCard, MaskBlock, PartyKeys
from tacit.federation.masking.boxes import open_box, seal_box
from tacit.federation.masking.exchanges import number_to_bytes, parties_to_bytes
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.recoverable import RecoverableMasks, set_claim
from tacit.federation.masking.shamir import FIELD, SHARE_BYTES, Interpolation
from tacit.federation.network.keys import SigningKey
from tests.federation.masking.recovery_world import (
    DIGEST,
    Disk,
    World,
    block_of,
    context_of,
    own_keys,
    refuses,
    signed_world,
    signing_keys,
)

COLLUDER = 3  # in the worlds below, of four parties with a quorum of three


def forged(world: World, root: bytes, *, party: int = COLLUDER, number: int = 0, **facts: Any) -> bytes:
    """A card with good signatures, of whatever a colluder likes to sign."""
    block = facts.pop("about", block_of(world, number))
    signed_by = signing_keys(world.parties)[facts.pop("by", party)]
    assert not facts
    return KeyCard.signed(PartyKeys(root, block, party), signed_by).to_bytes()


def test_shares_are_taken_from_a_quorum_with_this_party_and_its_own_keys() -> None:
    world = World(4, 3)
    cards = world.cards()
    party = world.masks[0]
    other = World(4, 3).cards()
    refuses("the keys of a block must be at least 3, got 2", party.share, 0, {k: cards[k] for k in (0, 1)})
    refuses("own keys are missing or were replaced", party.share, 0, {k: cards[k] for k in (1, 2, 3)})
    refuses("own keys are missing or were replaced", party.share, 0, {**cards, 0: other[0]})
    assert set(party.share(0, cards)) == {1, 2, 3}
    # The first good ones decide: never a second text under the key of a box.
    refuses("another request before", party.share, 0, {k: cards[k] for k in (0, 1, 2)})
    refuses("another request before", party.share, 0, {**cards, 1: forged(world, b"x" * 32, party=1)})


def test_keys_are_signed_for_their_block_plan_run_place_and_length() -> None:
    world = World(4, 3, block=2)
    cards, root = world.cards(), b"c" * 32
    block = block_of(world)
    assert world.masks[0].share(0, {**cards, COLLUDER: forged(world, root)})
    elsewhere = {
        "another run": MaskBlock(context_of(4, run="other"), 0, 0, 2),
        "another plan": MaskBlock(context_of(4, plan=b"other"), 0, 0, 2),
        "another block": MaskBlock(world.context, 1, 0, 2),
        "another first step": MaskBlock(world.context, 0, 2, 2),
    }
    wrong = {name: forged(world, root, about=facts) for name, facts in elsewhere.items()}
    wrong["the key of another party"] = forged(world, root, by=2)
    wrong["a stranger"] = KeyCard.signed(PartyKeys(root, block, COLLUDER), SigningKey.make()).to_bytes()
    wrong["the place of another party"] = KeyCard.signed(
        PartyKeys(root, block, 2), signing_keys(4)[COLLUDER]
    ).to_bytes()
    wrong["another key for sealing"] = b"k" * 32 + forged(world, root)[32:]
    wrong["the keys of two steps swapped"] = (
        (good := forged(world, root))[:32] + good[64:96] + good[32:64] + good[96:]
    )
    for name, card in wrong.items():
        party = World(4, 3, block=2)
        party.disks[0], party.context = world.disks[0], world.context
        world.disks[0].kept.pop("masks/cards/0", None)
        party.restart(0)
        with pytest.raises(AuthenticationError, match="'silo-3' are not signed by its key in the roster"):
            party.masks[0].share(0, {**cards, COLLUDER: card})
        assert name
    short = forged(world, root, about=MaskBlock(world.context, 0, 0, 1))
    refuses("a card of keys has 160 bytes, got 128", world.masks[1].share, 0, {**cards, COLLUDER: short})


def test_keys_of_small_order_and_keys_that_stand_twice_are_refused() -> None:
    world = World(4, 3)
    cards = world.cards()
    block, signing = block_of(world), signing_keys(4)[COLLUDER]
    good = PartyKeys(b"c" * 32, block, COLLUDER)

    def card(sealing: bytes, masking: bytes) -> bytes:
        unsigned = KeyCard(sealing, (masking,), b"")
        claim = unsigned._claim(block, COLLUDER)
        return KeyCard(sealing, (masking,), signing.sign("sum-2-keys", claim)).to_bytes()

    sealing, masking = public_of(good.sealing), public_of(good.masking[0])
    small = bytes(32)
    for bad in (card(small, masking), card(sealing, small), card(b"\1" + bytes(31), masking)):
        refuses("small order", world.masks[0].share, 0, {**cards, COLLUDER: bad}, kind=AuthenticationError)
    theirs = KeyCard.from_bytes(cards[1], block, 1)
    for bad in (card(theirs.sealing, masking), card(sealing, theirs.masking[0]), card(masking, masking)):
        refuses("stands twice", world.masks[0].share, 0, {**cards, COLLUDER: bad})
    assert world.masks[0].share(0, {**cards, COLLUDER: card(sealing, masking)})


def shared_boxes(world: World) -> dict[int, dict[int, bytes]]:
    cards = world.cards()
    return {k: masks.share(0, cards) for k, masks in enumerate(world.masks)}


def test_boxes_are_authentic_and_bound_to_their_pair() -> None:
    world = World(4, 3)
    sent = shared_boxes(world)
    mine = {j: sent[j][0] for j in (1, 2, 3)}
    party = world.masks[0]
    about_another = "was sealed by or for somebody else, or changed"
    swapped = {**mine, 1: mine[2], 2: mine[1]}
    for name, bad in {
        "changed": {**mine, 1: bytes([mine[1][0] ^ 1]) + mine[1][1:]},
        "for another receiver": {**mine, 1: sent[1][2]},
        "from another sender": swapped,
        "one's own, sent back": {**mine, 1: sent[0][1]},
        "of another run": {**mine, 1: shared_boxes(World(4, 3, run="other"))[1][0]},
    }.items():
        refuses(about_another, party.agree, 0, bad, kind=AuthenticationError)
        assert name
    refuses("the parties of a block must be at least 3, got 2", party.agree, 0, {1: mine[1]})
    refuses("from another party whose keys", party.agree, 0, {**mine, 0: mine[1]})
    party.agree(0, mine)
    refuses("another request before", party.agree, 0, {1: mine[1], 2: mine[2]})
    party.agree(0, mine)


def test_boxes_only_from_parties_whose_keys_were_exchanged() -> None:
    world = World(4, 3)
    cards = world.cards()
    three = {k: cards[k] for k in (0, 1, 2)}
    sent = {k: world.masks[k].share(0, three) for k in three}
    refuses("have not been exchanged", world.masks[3].agree, 0, {k: bytes(82) for k in three})
    refuses(
        "from another party whose keys", world.masks[0].agree, 0, {1: sent[1][0], 2: sent[2][0], 3: bytes(82)}
    )


def test_a_share_that_is_no_number_of_the_field_is_refused() -> None:
    world = World(4, 3)
    cards, root = world.cards(), b"c" * 32
    block = block_of(world)
    mine = PartyKeys(root, block, COLLUDER)
    cards[COLLUDER] = forged(world, root)
    sent = {k: world.masks[k].share(0, cards) for k in (0, 1, 2)}
    shared = shared_secret(mine.sealing, KeyCard.from_bytes(cards[0], block, 0).sealing)
    for text, good in ((FIELD.to_bytes(33) + bytes(33), False), (bytes(33) + (FIELD - 1).to_bytes(33), True)):
        box = seal_box(shared, text, block=block, sender=COLLUDER, receiver=0)
        boxes = {1: sent[1][0], 2: sent[2][0], COLLUDER: box}
        if good:
            world.masks[0].agree(0, boxes)
        else:
            refuses("a share must be a number below", world.masks[0].agree, 0, boxes)


def test_each_direction_has_a_key_of_its_own() -> None:
    """With one key for both, the two texts of a pair would show their difference (a two-time pad)."""
    world = World(4, 3)
    sent = shared_boxes(world)
    xor = bytes(a ^ b for a, b in zip(sent[0][1], sent[1][0], strict=True))
    plain = [own_keys(world, k).dealt(world.quorum)[1 - k] for k in (0, 1)]
    assert xor[: len(plain[0])] != bytes(a ^ b for a, b in zip(*plain, strict=True))
    # Every key is used for one text: the key of a box names block, sender and receiver.
    facts = block_of(world).facts
    shared = shared_secret(own_keys(world, 0).sealing, public_of(own_keys(world, 1).sealing))
    keys = {derived_key(shared, "seal", *facts, a, b) for a, b in ((0, 1), (1, 0))}
    assert len(keys) == 2
    assert open_box(shared, sent[0][1], block=block_of(world), sender=0, receiver=1) == plain[0]


def test_a_set_is_signed_once_by_those_in_it() -> None:
    world = World(4, 3)
    world.set_up()
    refuses("no vector in step 0", world.masks[0].sign, 0, (0, 1, 2))
    for k, vector in enumerate(world.vectors(3)):
        world.masks[k].mask(0, DIGEST, vector, world.width)
    party = world.masks[0]
    for bad in ((1, 2, 3), (0, 2, 1), (0, 1, 1, 2), (0, 1, 2, 4), (-1, 0, 1)):
        refuses("must be ascending, this party among them", party.sign, 0, bad)
    refuses("the parties of a sum must be at least 3, got 2", party.sign, 0, (0, 1))
    signature = party.sign(0, (0, 1, 2))
    world.context.roster.verify_keys[0].verify(
        "sum-2-set",
        set_claim(world.context.step(0, DIGEST, world.width, 3), (0, 1, 2, 3), (0, 1, 2)),
        signature,
    )
    for second in ((0, 1, 2, 3), (0, 1, 3)):
        refuses("another request before", party.sign, 0, second)
        world.restart(0)
        party = world.masks[0]
    assert party.sign(0, (0, 1, 2)) == signature


def test_a_set_holds_only_parties_whose_shares_are_here() -> None:
    world = World(5, 4)
    cards = world.cards()
    sent = {k: masks.share(0, cards) for k, masks in enumerate(world.masks)}
    world.masks[0].agree(0, {j: sent[j][0] for j in (1, 2, 3)})
    world.masks[0].mask(0, DIGEST, np.zeros(2, dtype=np.int64), world.width)
    refuses("all of them of its block", world.masks[0].sign, 0, (0, 1, 2, 4))
    assert world.masks[0].sign(0, (0, 1, 2, 3))


def test_shares_are_revealed_for_a_quorum_of_signatures_of_the_very_set() -> None:
    world, signatures = signed_world()
    party = world.masks[0]
    two = {k: signatures[k] for k in (0, 1)}
    refuses("the signatures of a set must be at least 3, got 2", party.reveal, 0, two)
    # The same signature twice: a set of parties has each of them once, and a signature is of its party.
    twice = number_to_bytes(0) + parties_to_bytes((0, 1, 1)) + signatures[0] + signatures[1] * 2
    refuses("ascending indices below 4, each once", party.respond, "reveal", twice)
    refuses("is not by the key", party.reveal, 0, {**two, 2: signatures[1]}, kind=AuthenticationError)
    here = world.context.step(0, DIGEST, world.width, 3)
    everybody = (0, 1, 2, 3)
    for name, other in {
        "another set": set_claim(here, everybody, (0, 1, 2)),
        "another set-up": set_claim(here, (0, 1, 2), everybody),
        "another step": set_claim(world.context.step(1, DIGEST, world.width, 3), everybody, everybody),
        "another query": set_claim(world.context.step(0, b"other", world.width, 3), everybody, everybody),
        "another width": set_claim(world.context.step(0, DIGEST, world.width + 1, 3), everybody, everybody),
    }.items():
        bad = {**two, COLLUDER: signing_keys(4)[COLLUDER].sign("sum-2-set", other)}
        refuses("is not by the key", party.reveal, 0, bad, kind=AuthenticationError)
        assert name
    shares = party.reveal(0, {k: signatures[k] for k in (1, 2, 3)})
    assert {k: len(share) for k, share in shares.items()} == dict.fromkeys(range(4), SHARE_BYTES)
    refuses("has signed no set of step 0", World(4, 3).masks[0].reveal, 0, signatures)


def test_nobody_outside_a_set_counts_for_it() -> None:
    world = World(4, 3)
    world.set_up()
    for k, vector in enumerate(world.vectors(3)):
        world.masks[k].mask(0, DIGEST, vector, world.width)
    signatures = {k: world.masks[k].sign(0, (0, 1, 2)) for k in (0, 1, 2)}
    claim = set_claim(world.context.step(0, DIGEST, world.width, 3), (0, 1, 2, 3), (0, 1, 2))
    outsider = {0: signatures[0], 1: signatures[1], 3: signing_keys(4)[3].sign("sum-2-set", claim)}
    refuses("party 3 signs a set that it is not in", world.masks[0].reveal, 0, outsider)


def test_what_is_revealed_follows_from_the_signed_set() -> None:
    """Shares of seeds of those in the sum, of keys of the others: never both of one party, whoever asks."""
    world = World(4, 3)
    world.set_up()
    for k, vector in enumerate(world.vectors(3)):
        world.masks[k].mask(0, DIGEST, vector, world.width)
    signatures = {k: world.masks[k].sign(0, (0, 1, 2)) for k in (0, 1, 2)}
    shares = {k: world.masks[k].reveal(0, signatures) for k in (0, 1, 2)}
    given = Interpolation((0, 1, 2))
    for about_whom in range(4):
        secret = given.secret([int.from_bytes(shares[k][about_whom]) for k in (0, 1, 2)])
        keys = own_keys(world, about_whom)
        assert secret == (keys.masking[0] if about_whom == 3 else keys.seeds[0])
    refuses("has signed no set of step 0", world.masks[3].reveal, 0, signatures)
    for k in (0, 1, 2):
        refuses("another request before", world.masks[k].sign, 0, (0, 1, 2, 3))


def test_one_vector_a_step() -> None:
    world = World(4, 3)
    party, vector = world.masks[0], np.array([5, -7], dtype=np.int64)
    refuses("have not been exchanged", party.mask, 0, DIGEST, vector, 16)
    world.set_up()
    masked = party.mask(0, DIGEST, vector, 16)
    assert np.array_equal(party.mask(0, DIGEST, vector, 16), masked)
    again = "step 0 has been masked with another vector, query or width"
    refuses(again, party.mask, 0, DIGEST, vector + 1, 16)
    refuses(again, party.mask, 0, b"another query", vector, 16)
    refuses(again, party.mask, 0, DIGEST, vector, 17)
    refuses(again, party.mask, 0, DIGEST, vector[:1], 16)
    world.restart(0)
    refuses(again, world.masks[0].mask, 0, b"another query", vector, 16)
    assert np.array_equal(world.masks[0].mask(0, DIGEST, vector, 16), masked)
    for bad in (vector.astype(float), vector.reshape(1, 2), np.array([2**15]), np.array([], dtype=np.int64)):
        with pytest.raises(ParameterError):
            world.masks[1].mask(0, DIGEST, bad, 16)
    with pytest.raises(ParameterError):
        world.masks[1].mask(0, DIGEST, vector, 65)
    refuses("step must be in", world.masks[1].mask, 4, DIGEST, vector, 16)


def test_a_masked_vector_is_what_the_formula_says() -> None:
    """Y = y + PRG(seed) + streams with those behind, minus streams with those before, modulo 2**width."""
    from tests.federation.masking.algebra import stream_by_hand

    world = World(4, 3, block=2, width=40)
    world.set_up()
    keys = [own_keys(world, k) for k in range(4)]
    vector = world.vectors(6)[1]
    context = world.context.step(1, DIGEST, 40, 6)
    want = vector.view(np.uint64) + stream_by_hand(derived_key(keys[1].seeds[1], "self", context, 1), 6, 40)
    for other, sign in ((0, -1), (2, 1), (3, 1)):
        shared = shared_secret(keys[1].masking[1], public_of(keys[other].masking[1]))
        stream = stream_by_hand(derived_key(shared, "mask", context, *sorted((1, other))), 6, 40)
        want = want + stream if sign > 0 else want - stream
    got = world.masks[1].mask(1, DIGEST, vector, 40)
    assert world.same(got, want.view(np.int64))
    assert np.all(np.abs(got) <= 2**39)


def test_what_is_no_stage_and_who_is_nobody() -> None:
    world = World(4, 3)
    refuses("have no stage 'unmask'", world.masks[0].respond, "unmask", number_to_bytes(0))
    with pytest.raises(RefusalError, match="not in the roster"):
        RecoverableMasks(world.context, SigningKey.make(), Disk(), quorum=Quorum(4, 3, 0), rounds=1)
