"""Sealing: what only the server can open, all of one length, and masks that hide what is added up.

HPKE (RFC 9180) in base mode with X25519, HKDF-SHA256 and AES-128-GCM: nothing in a sealed text tells who
sealed it, and all texts of one length look alike. Who may send is for the shuffler to check.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec
import numpy as np
import numpy.typing as npt
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite

from tacit.errors import AuthenticationError, ParameterError, check_count
from tacit.federation.network.keys import OpeningKey, SealingKey

__all__ = [
    "MASK_SEED_BYTES",
    "SEALED_OVERHEAD",
    "Words",
    "mask",
    "open_sealed",
    "said_at",
    "said_in",
    "seal_padded",
]

SEALED_OVERHEAD: Final = 48
"""Bytes by which a sealed text is longer: a public key of its own, and a tag."""

MASK_SEED_BYTES: Final = 32

Words = npt.NDArray[np.uint64]
"""Whole numbers modulo 2**64."""

_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.AES_128_GCM)
_WIRE: Final = np.dtype("<u8")


def seal_padded(plain: bytes, *, length: int, key: SealingKey, info: bytes) -> bytes:
    """Seal a text for the holder of a key, padded with zeros to `length` bytes.

    Args:
        plain: At most `length` bytes; the reader knows by its beginning how long it is.
        length: Of all texts that must look alike.
        key: Of the reader.
        info: What the text belongs to: it opens under the same only. Never anything about the sender.

    Returns:
        `length + SEALED_OVERHEAD` bytes, which differ with every call.

    Raises:
        ParameterError: The text is longer.
    """
    if len(plain) > length:
        raise ParameterError(f"a text to be sealed must have at most {length} bytes, got {len(plain)}.")
    return _SUITE.encrypt(plain.ljust(length, b"\0"), key.key, info)


def open_sealed(sealed: bytes, *, key: OpeningKey, info: bytes) -> bytes:
    """Return the padded text that was sealed.

    Raises:
        AuthenticationError: Sealed for another key, as a part of something else, or changed.
    """
    try:
        return _SUITE.decrypt(sealed, key.key, info)
    # A key of small order inside is a ValueError: the shared secret would be zero.
    except (InvalidTag, ValueError):
        raise AuthenticationError(
            "a sealed message cannot be opened: it was sealed for another key or round, or changed."
        ) from None


def said_in(*, federation: str, run: str, step: int, silo: str) -> bytes:
    """Return what the answer of a silo belongs to, for `info`: as that of no other silo or step it opens."""
    return msgspec.msgpack.encode(("tacit answer", federation, run, step, silo))


def said_at(stage: str, data: bytes, *, federation: str, run: str, silo: str) -> bytes:
    """Return what the reply of a silo at a stage about masks belongs to, given what it was sent."""
    sent = hashlib.sha256(data).digest()
    return msgspec.msgpack.encode(("tacit masks", federation, run, silo, stage, sent))


def mask(seed: bytes, words: int) -> Words:
    """Expand a seed to numbers that nobody without it can tell from uniform ones.

    Args:
        seed: `MASK_SEED_BYTES` secret bytes, for this one mask only: the keystream of ChaCha20 (RFC 8439)
            under it starts at zero.
        words: How many numbers, >= 0.

    Raises:
        ParameterError: A seed of another length.
    """
    check_count("words", words, low=0)
    if len(seed) != MASK_SEED_BYTES:
        raise ParameterError(f"the seed of a mask must have {MASK_SEED_BYTES} bytes, got {len(seed)}.")
    stream = Cipher(ChaCha20(seed, bytes(16)), mode=None).encryptor().update(bytes(8 * words))
    return np.frombuffer(stream, dtype=_WIRE).astype(np.uint64)
