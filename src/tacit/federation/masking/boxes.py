"""Sealed boxes: what one party of a block tells another one, by way of a server that must not read it.

ChaCha20-Poly1305 (RFC 8439). Each direction of each pair has a key of its own, for one text in the whole run:
under one key for both directions, the two texts would show their difference.
"""

from __future__ import annotations

from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from tacit.errors import AuthenticationError
from tacit.federation.masking.agreement import derived_key
from tacit.federation.masking.blocks import MaskBlock
from tacit.federation.masking.fields import framed

__all__ = ["BOX_OVERHEAD", "open_box", "seal_box"]

BOX_OVERHEAD: Final = 16
"""Bytes by which a box is longer than what is in it."""

_NONCE: Final = bytes(12)  # safe because the key of a box is never used for another text


def seal_box(shared: bytes, text: bytes, *, block: MaskBlock, sender: int, receiver: int) -> bytes:
    """Return the one box from a sender to a receiver in a block.

    Args:
        shared: What the two share in this block.
        text: The one text that this sender ever has for this receiver in this block: it must be a function
            of what is on disk.
        block: Which.
        sender: Place in the roster.
        receiver: Place in the roster.
    """
    about = _about(block, sender, receiver)
    return ChaCha20Poly1305(derived_key(shared, *about)).encrypt(_NONCE, text, framed(*about))


def open_box(shared: bytes, box: bytes, *, block: MaskBlock, sender: int, receiver: int) -> bytes:
    """Return what is in a box.

    Raises:
        AuthenticationError: It was not sealed by this sender for this receiver in this block, or was changed.
    """
    about = _about(block, sender, receiver)
    try:
        return ChaCha20Poly1305(derived_key(shared, *about)).decrypt(_NONCE, box, framed(*about))
    except InvalidTag:
        names = block.context.roster.names
        raise AuthenticationError(
            f"what party {names[sender]!r} tells party {names[receiver]!r} in block {block.number} was "
            "sealed by or for somebody else, or changed."
        ) from None


def _about(block: MaskBlock, sender: int, receiver: int) -> tuple[str | bytes | int, ...]:
    """Return what key and box belong to, the direction included."""
    return "seal", *block.facts, sender, receiver
