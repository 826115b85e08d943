"""What a party knows of a block once it has the keys of the others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from tacit.federation.masking.agreement import derived_key, shared_secrets
from tacit.federation.masking.blocks import KeyCard, PartyKeys, check_distinct
from tacit.federation.masking.boxes import open_box, seal_box
from tacit.federation.masking.quorum import Quorum

__all__ = ["SetUp"]


class SetUp:
    """A party's keys for a block, and what it shares with every other party of it.

    Args:
        keys: The party's own.
        cards: Of all who have shown keys, this party included, by their places.
        quorum: By which secrets are shared.

    Raises:
        RefusalError: A key stands twice.
        AuthenticationError: A card is not signed by its party for this block, or its keys are none.
    """

    def __init__(self, keys: PartyKeys, cards: Mapping[int, bytes], quorum: Quorum) -> None:
        self.keys, self._quorum = keys, quorum
        read = {place: KeyCard.from_bytes(card, keys.block, place) for place, card in cards.items()}
        check_distinct(read)
        others = {place: card for place, card in read.items() if place != keys.place}
        # All at once, so that a key that is none is refused before anything is told to anybody.
        sealing = shared_secrets(keys.sealing, [card.sealing for card in others.values()])
        self._sealing = dict(zip(others, sealing, strict=True))
        self._masking = [
            dict(
                zip(
                    others, shared_secrets(key, [card.masking[step] for card in others.values()]), strict=True
                )
            )
            for step, key in enumerate(keys.masking)
        ]

    @property
    def others(self) -> tuple[int, ...]:
        """Everybody else who has shown keys, ascending."""
        return tuple(sorted(self._sealing))

    @cached_property
    def dealt(self) -> tuple[bytes, ...]:
        """What each party of the roster is told of this party's secrets, this party too."""
        return self.keys.dealt(self._quorum)

    def seal(self, receiver: int) -> bytes:
        """Return the box for another party."""
        shared, mine = self._sealing[receiver], self.keys.place
        return seal_box(shared, self.dealt[receiver], block=self.keys.block, sender=mine, receiver=receiver)

    def open(self, box: bytes, sender: int) -> bytes:
        """Return what another party tells; AuthenticationError if it does not."""
        shared, mine = self._sealing[sender], self.keys.place
        return open_box(shared, box, block=self.keys.block, sender=sender, receiver=mine)

    def mask_key(self, other: int, step: int, context: bytes) -> bytes:
        """Return the key of the mask with another party in a step, which is part of the context."""
        shared = self._masking[step - self.keys.block.first][other]
        return derived_key(shared, "mask", context, *sorted((self.keys.place, other)))
