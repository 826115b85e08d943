"""Keys that two parties share and nobody else has: X25519 (RFC 7748), then HKDF-SHA256 (RFC 5869)."""

from __future__ import annotations

import hmac
from collections.abc import Iterable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand

from tacit.errors import AuthenticationError
from tacit.federation.masking.fields import Field, framed

__all__ = [
    "SHARED_BYTES",
    "derived_key",
    "expanded",
    "extracted",
    "make_private",
    "public_of",
    "shared_secret",
    "shared_secrets",
]

SHARED_BYTES: Final = 32
"""Length of every key here: private, public, shared and derived."""

_PRIME: Final = 2**255 - 19


def make_private() -> bytes:
    """Return a new private key by the operating system's randomness: no seed makes it again."""
    return X25519PrivateKey.generate().private_bytes_raw()


def public_of(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def shared_secrets(private: bytes, publics: Iterable[bytes]) -> list[bytes]:
    """Return the secrets that whoever holds each of the other private keys computes, too.

    Args:
        private: One's own.
        publics: The others', from elsewhere.

    Raises:
        AuthenticationError: A public key is not 32 bytes, or of small order (the secret would be zero,
            whatever the private key), or is not the one way to write its point: two keys that look different
            would be the same.
    """
    mine = X25519PrivateKey.from_private_bytes(private)  # takes as long as one secret
    return [_shared(mine, public) for public in publics]


def shared_secret(private: bytes, public: bytes) -> bytes:
    """Return the secret of one pair, as `shared_secrets` does."""
    return shared_secrets(private, (public,))[0]


def derived_key(shared: bytes, *info: Field) -> bytes:
    """Return a key for one purpose, 32 bytes.

    Args:
        shared: What `shared_secret` returned.
        info: All that the key is for: equal for both parties, and different for every other use.
    """
    return HKDF(algorithm=SHA256(), length=SHARED_BYTES, salt=None, info=framed(*info)).derive(shared)


def extracted(shared: bytes) -> bytes:
    """Return the first half of `derived_key`, which is the same for all purposes: see `expanded`."""
    return hmac.digest(bytes(SHARED_BYTES), shared, "sha256")  # without salt: RFC 5869, section 2.2


def expanded(extracted_key: bytes, *info: Field) -> bytes:
    """Return `derived_key` of a secret from what was extracted of it, in half the time."""
    return HKDFExpand(algorithm=SHA256(), length=SHARED_BYTES, info=framed(*info)).derive(extracted_key)


def _shared(private: X25519PrivateKey, public: bytes) -> bytes:
    """Return the secret of one pair."""
    if len(public) != SHARED_BYTES or int.from_bytes(public, "little") >= _PRIME:
        raise AuthenticationError("a public key for masks must be 32 bytes of a number below 2**255 - 19.")
    try:
        return private.exchange(X25519PublicKey.from_public_bytes(public))
    except ValueError:  # the result is zero (RFC 7748, section 6.1)
        raise AuthenticationError(
            "a public key for masks must not be of small order: everybody would know the masks."
        ) from None
