"""Blocks of steps whose keys are set up at once: what a party draws for a block, and what it says of it.

Everything that a party draws for a block comes out of one secret of 32 bytes, its root: keys, seeds, and the
polynomials of its shares. So one secret is on disk before the first byte leaves; whoever goes on with the run
draws the same again; and the block is over, for good, once the root is wiped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from tacit.errors import AuthenticationError, RefusalError, check_count
from tacit.federation.masking.agreement import SHARED_BYTES, derived_key, public_of
from tacit.federation.masking.context import MaskContext
from tacit.federation.masking.fields import framed
from tacit.federation.masking.quorum import Quorum
from tacit.federation.masking.shamir import DRAW_BYTES, SHARE_BYTES, deal
from tacit.federation.masking.streams import stream_words
from tacit.federation.network.keys import SIGNATURE_BYTES, SigningKey

__all__ = ["STEPS_OF_BLOCK", "KeyCard", "MaskBlock", "MaskBlocks", "PartyKeys", "check_distinct"]

STEPS_OF_BLOCK: Final = 8
"""Steps whose keys are set up at once: more save exchanges, and keep out longer who missed a set-up."""

_WORD: Final = 8


@dataclass(frozen=True)
class MaskBlock:
    """Consecutive steps of a run whose keys are set up at once.

    Attributes:
        context: The run.
        number: Of the block, from 0.
        first: Its first step.
        steps: How many there are.
    """

    context: MaskContext
    number: int
    first: int
    steps: int

    @property
    def card_bytes(self) -> int:
        """Length of a card: a key for sealing, one key for masks for each step, and a signature."""
        return SHARED_BYTES * (1 + self.steps) + SIGNATURE_BYTES

    @property
    def share_bytes(self) -> int:
        """Length of what a party tells another one of its secrets: two shares for each step."""
        return 2 * SHARE_BYTES * self.steps

    @property
    def facts(self) -> tuple[bytes, int, int, int]:
        """What keys and signatures of the block are bound to."""
        return self.context.digest, self.number, self.first, self.steps


@dataclass(frozen=True)
class MaskBlocks:
    """A run, cut into blocks: of `length` steps each, but the last one, which has what is left.

    Attributes:
        context: The run.
        rounds: Steps of the plan.
        length: Steps of a block.
    """

    context: MaskContext
    rounds: int
    length: int = STEPS_OF_BLOCK

    def __post_init__(self) -> None:
        check_count("rounds", self.rounds)
        check_count("length", self.length)

    def of_step(self, step: int) -> MaskBlock:
        """Return the block of a step; refuse a step that the plan does not have."""
        if not 0 <= step < self.rounds:
            raise RefusalError(f"step must be in [0, {self.rounds - 1}], got {step}.")
        return self.block(step // self.length)

    def block(self, number: int) -> MaskBlock:
        """Return a block by its number; refuse one that the plan does not have."""
        first = number * self.length
        if not 0 <= first < self.rounds:
            raise RefusalError(f"block must be in [0, {(self.rounds - 1) // self.length}], got {number}.")
        return MaskBlock(self.context, number, first, min(self.length, self.rounds - first))


@dataclass(frozen=True)
class KeyCard:
    """The public keys of a party for one block.

    Attributes:
        sealing: For the shares that others send to it.
        masking: For the masks of each step.
        signature: By the party's key in the roster.
    """

    sealing: bytes
    masking: tuple[bytes, ...]
    signature: bytes

    @classmethod
    def from_bytes(cls, data: bytes, block: MaskBlock, place: int) -> Self:
        """Read the card of a party.

        Args:
            data: `block.card_bytes` bytes.
            block: Which it must be about.
            place: Of the party in the roster.

        Raises:
            RefusalError: Another length.
            AuthenticationError: Not signed by the party of this place, for this block of this run.
        """
        if len(data) != block.card_bytes:
            raise RefusalError(f"a card of keys has {block.card_bytes} bytes, got {len(data)}.")
        sealing, *masking = (
            data[k : k + SHARED_BYTES] for k in range(0, block.card_bytes - SIGNATURE_BYTES, SHARED_BYTES)
        )
        card = cls(sealing, tuple(masking), data[-SIGNATURE_BYTES:])
        roster = block.context.roster
        try:
            roster.verify_keys[place].verify("sum-2-keys", card._claim(block, place), card.signature)
        except AuthenticationError:
            raise AuthenticationError(
                f"the keys of party {roster.names[place]!r} are not signed by its key in the roster, for "
                f"block {block.number} of this run of this plan."
            ) from None
        return card

    @classmethod
    def signed(cls, keys: PartyKeys, signing: SigningKey) -> Self:
        """Return the card of a party's own keys."""
        sealing, masking = public_of(keys.sealing), tuple(public_of(key) for key in keys.masking)
        unsigned = cls(sealing, masking, b"")
        return cls(sealing, masking, signing.sign("sum-2-keys", unsigned._claim(keys.block, keys.place)))

    def to_bytes(self) -> bytes:
        """Write the card."""
        return b"".join((self.sealing, *self.masking, self.signature))

    def _claim(self, block: MaskBlock, place: int) -> bytes:
        """Return what is signed."""
        return framed(*block.facts, place, self.sealing, *self.masking)


def check_distinct(cards: Mapping[int, KeyCard]) -> None:
    """Refuse cards that have a key in common.

    Raises:
        RefusalError: They have: one of the parties would know what is meant for the other.
    """
    keys = [key for card in cards.values() for key in (card.sealing, *card.masking)]
    if len(set(keys)) < len(keys):
        raise RefusalError("a key for masks stands twice in a block: all must be different.")


class PartyKeys:
    """What one party draws for a block.

    Args:
        root: 32 secret bytes, uniform, of this party and block.
        block: Which.
        place: Of the party in the roster.
    """

    def __init__(self, root: bytes, block: MaskBlock, place: int) -> None:
        self._root, self.block, self.place = root, block, place
        self.sealing = self._derived("sealing key")
        self.masking = tuple(self._derived("masking key", step) for step in range(block.steps))
        self.seeds = tuple(self._derived("seed", step) for step in range(block.steps))

    def dealt(self, quorum: Quorum) -> tuple[bytes, ...]:
        """Return what each party of the roster is told, `block.share_bytes` bytes each.

        For each step: its share of the masking key, then its share of the seed.
        """
        words = DRAW_BYTES // _WORD * (quorum.least - 1)
        told: list[list[bytes]] = [[] for _ in range(quorum.parties)]
        for step in range(self.block.steps):
            for name, secret in (("masking key", self.masking[step]), ("seed", self.seeds[step])):
                drawn = stream_words(self._derived("polynomial", name, step), words, 8 * _WORD).tobytes()
                shares = deal(secret, least=quorum.least, parties=quorum.parties, randomness=drawn)
                for mine, share in zip(told, shares, strict=True):
                    mine.append(share.to_bytes(SHARE_BYTES))
        return tuple(b"".join(mine) for mine in told)

    def _derived(self, *what: str | int) -> bytes:
        """Return 32 bytes for one use."""
        return derived_key(self._root, "block", *self.block.facts, self.place, *what)
