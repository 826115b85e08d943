"""Words by which parties are drawn, between machines: sealed to the shuffler, and to nobody on the way.

A shuffler that cannot read messages can still be told by a number who takes part. The number says nothing of
any record; whoever else knew it would know who was drawn, which the price of a round counts on being secret.
"""

from __future__ import annotations

from typing import Final

import msgspec

from tacit.errors import AuthenticationError
from tacit.federation.network.keys import OpeningKey, SealingKey, SigningKey
from tacit.federation.network.sealing import SEALED_OVERHEAD, open_sealed, seal_padded

__all__ = ["SEALED_DRAW_BYTES", "draw_key", "open_draw", "seal_draw"]

_BYTES: Final = 8

SEALED_DRAW_BYTES: Final = _BYTES + SEALED_OVERHEAD
"""Bytes of a sealed word."""


def draw_key(key: SigningKey, session: bytes) -> OpeningKey:
    """Return the shuffler's key for words, one for each memory of what it released.

    Args:
        key: Its key for signatures.
        session: Its identity.
    """
    return key.opening_key("words of drawn parties", session)


def seal_draw(word: int, *, party: int, info: bytes, key: SealingKey) -> bytes:
    """Seal the word of a party.

    Args:
        word: From 0 to 2**64 - 1.
        party: Its index. In the name of another one it does not open: else who repeats it would be drawn as
            that party is, and could tell.
        info: `SignedDescriptor.info` of the round.
        key: The shuffler's, as its descriptor says.

    Returns:
        `SEALED_DRAW_BYTES` bytes, which differ with every call.
    """
    return seal_padded(word.to_bytes(_BYTES), length=_BYTES, key=key, info=_about(party, info))


def open_draw(sealed: bytes, *, party: int, info: bytes, key: OpeningKey) -> int:
    """Return the word of a party.

    Raises:
        AuthenticationError: It was sealed for another key, round or party, or changed.
    """
    plain = open_sealed(sealed, key=key, info=_about(party, info))
    if len(plain) != _BYTES:
        raise AuthenticationError(f"a word must have {_BYTES} bytes, got {len(plain)}.")
    return int.from_bytes(plain)


def _about(party: int, info: bytes) -> bytes:
    return msgspec.msgpack.encode(("tacit draw", info, party))
