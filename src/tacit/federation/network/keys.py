"""Keys of parties: who signs (Ed25519), and who can open what is sealed (X25519); one private key per file.

A signature has a purpose, so that none that was made for one use passes in another. Verification follows
RFC 8032, and keys of small order are refused: under them, anybody's signature would be valid.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import stat
from pathlib import Path
from typing import Final, Literal, Self, get_args

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from tacit.errors import AuthenticationError, ParameterError, check_choice, shown
from tacit.federation.public_texts import save_new

__all__ = [
    "KEY_BYTES",
    "SIGNATURE_BYTES",
    "OpeningKey",
    "Purpose",
    "SealingKey",
    "SigningKey",
    "VerifyKey",
    "fingerprint",
    "read_private",
]

Purpose = Literal[
    "request",
    "reply",
    "upload",
    "order",
    "descriptor",
    "guarantee",
    "poll",
    "log",
    "card",
    "sum-1",
    "sum-2-keys",
    "sum-2-set",
]
"""What a signature is for; "order" is what a server tells a shuffler, "card" what a new party tells, those of
sums are about keys for masks, and about whose messages are in a sum (`tacit.federation.masking`)."""

KEY_BYTES: Final = 32
SIGNATURE_BYTES: Final = 64

_LONGEST_FILE: Final = 2**16
_GROUPS, _DIGITS = 6, 5  # of a fingerprint
_SMALL_ORDER: Final = frozenset(
    bytes.fromhex(text)
    for text in (
        "00" * 32,
        "01" + "00" * 31,
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ec" + "ff" * 30 + "7f",
        "ed" + "ff" * 30 + "7f",
        "ee" + "ff" * 30 + "7f",
    )
)
"""Ordinates, without the sign, of all points whose order divides 8, and the encodings of 0 and 1 beyond p."""


class VerifyKey:
    """Checks signatures; what everybody may know of a `SigningKey`.

    Args:
        raw: 32 bytes.

    Raises:
        ParameterError: Another length, or a key under which anybody's signature would pass.
    """

    __slots__ = ("_key", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = _raw("a key that verifies", raw)
        if self.raw[:-1] + bytes([self.raw[-1] & 0x7F]) in _SMALL_ORDER:
            raise ParameterError("a key that verifies must not be of small order: every signature would do.")
        self._key = Ed25519PublicKey.from_public_bytes(self.raw)

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote.

        Raises:
            ParameterError: Not the base64 of 32 bytes.
        """
        return cls(_from_text("a key that verifies", text))

    def to_text(self) -> str:
        """Return the key as base64, 44 characters."""
        return base64.b64encode(self.raw).decode()

    def verify(self, purpose: Purpose, data: bytes, signature: bytes) -> None:
        """Refuse a signature that is not by this key, for this purpose, about these bytes.

        Raises:
            AuthenticationError: It is not.
        """
        try:
            self._key.verify(signature, _for(purpose, data))
        except InvalidSignature:
            raise AuthenticationError(f"the signature of the {purpose} is not by the key {self!r}.") from None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VerifyKey) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return self.to_text()


class SigningKey:
    """A party's private key for signatures; `make` or `load` returns one."""

    __slots__ = ("_key", "public")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public = VerifyKey(key.public_key().public_bytes_raw())

    @classmethod
    def make(cls) -> Self:
        """Return a new key, by the operating system's randomness."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a PEM file (PKCS8); errors as `read_private`, and ParameterError for a key of another kind."""
        key = _loaded(path)
        if not isinstance(key, Ed25519PrivateKey):
            raise _other_kind(path, key, "Ed25519")
        return cls(key)

    def save(self, path: Path | str) -> None:
        """Write a PEM file that only its owner can read; errors as `save_new`."""
        save_new(_pem(self._key), path, private=True)

    def sign(self, purpose: Purpose, data: bytes) -> bytes:
        """Return 64 bytes that show that whoever holds this key meant `data`, for this purpose."""
        return self._key.sign(_for(purpose, data))

    def opening_key(self, purpose: str, salt: bytes) -> OpeningKey:
        """Return a key for what is sealed to this party, always the same: another for other arguments.

        HKDF (RFC 5869) with SHA-256 of the private key: nobody learns either of them from the other.
        """
        derived = HKDF(SHA256(), length=KEY_BYTES, salt=salt, info=b"tacit 1 " + purpose.encode())
        return OpeningKey(X25519PrivateKey.from_private_bytes(derived.derive(self._key.private_bytes_raw())))

    def __repr__(self) -> str:
        return f"SigningKey of {self.public!r}"


class SealingKey:
    """Seals what only the holder of the `OpeningKey` can open.

    Args:
        raw: 32 bytes.

    Raises:
        ParameterError: Another length, or a key of small order, for which everybody could open.
    """

    __slots__ = ("key", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = _raw("a key that seals", raw)
        self.key = X25519PublicKey.from_public_bytes(self.raw)
        try:
            X25519PrivateKey.generate().exchange(self.key)
        except ValueError:  # the shared secret is zero, whatever the private key (RFC 7748, section 6.1)
            raise ParameterError("a key that seals must not be of small order: anybody could open.") from None

    @classmethod
    def from_text(cls, text: str) -> Self:
        """Read what `to_text` wrote.

        Raises:
            ParameterError: Not the base64 of 32 bytes.
        """
        return cls(_from_text("a key that seals", text))

    def to_text(self) -> str:
        """Return the key as base64, 44 characters."""
        return base64.b64encode(self.raw).decode()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SealingKey) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return self.to_text()


class OpeningKey:
    """A server's private key for what is sealed to it; `make` or `load` returns one."""

    __slots__ = ("key", "public")

    def __init__(self, key: X25519PrivateKey) -> None:
        self.key = key
        self.public = SealingKey(key.public_key().public_bytes_raw())

    @classmethod
    def make(cls) -> Self:
        """Return a new key, by the operating system's randomness."""
        return cls(X25519PrivateKey.generate())

    @classmethod
    def load(cls, path: Path | str) -> Self:
        """Read a PEM file (PKCS8); errors as `read_private`, and ParameterError for a key of another kind."""
        key = _loaded(path)
        if not isinstance(key, X25519PrivateKey):
            raise _other_kind(path, key, "X25519")
        return cls(key)

    def save(self, path: Path | str) -> None:
        """Write a PEM file that only its owner can read; errors as `save_new`."""
        save_new(_pem(self.key), path, private=True)

    def __repr__(self) -> str:
        return f"OpeningKey of {self.public!r}"


def fingerprint(data: bytes) -> str:
    """Return 30 decimal digits that stand for some bytes, to be read out on the phone.

    Somebody who wants other bytes to have the same digits has to try about 2**99 of them.
    """
    number = int.from_bytes(hashlib.sha256(b"tacit fingerprint\0" + data).digest()) % 10 ** (
        _GROUPS * _DIGITS
    )
    digits = f"{number:0{_GROUPS * _DIGITS}d}"
    return " ".join(digits[k : k + _DIGITS] for k in range(0, len(digits), _DIGITS))


def read_private(path: Path | str) -> bytes:
    """Return the content of a file that only its owner can read.

    Raises:
        ParameterError: The file cannot be read, or is longer than any key.
        AuthenticationError: Others can read or change it.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(_LONGEST_FILE + 1)
    except OSError as error:
        raise ParameterError(f"the private key {path} cannot be read: {error.strerror}.") from error
    if mode & 0o077:
        raise AuthenticationError(
            f"others than its owner can read the private key {path} (mode {mode:03o}): `chmod 600 {path}`, "
            "and make a new key if anybody did."
        )
    if len(data) > _LONGEST_FILE:
        raise ParameterError(f"the private key {path} must have at most {_LONGEST_FILE:,} bytes.")
    return data


def _loaded(path: Path | str) -> object:
    """Return the private key of a PEM file."""
    try:
        return load_pem_private_key(read_private(path), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"{path} must hold a private key as PEM (PKCS8), without a password.") from None


def _other_kind(path: Path | str, key: object, wanted: str) -> ParameterError:
    """Return the refusal of a key of another kind."""
    found = type(key).__name__.lstrip("_").removesuffix("PrivateKey")
    return ParameterError(f"{path} must hold a key of {wanted}, got one of {found}.")


def _pem(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    """Return a private key as text."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _for(purpose: Purpose, data: bytes) -> bytes:
    """Return what is signed: no purpose is the beginning of another one and a zero."""
    check_choice("purpose", purpose, get_args(Purpose))
    return b"tacit 1 " + purpose.encode() + b"\0" + data


def _raw(what: str, raw: object) -> bytes:
    """Return the bytes of a public key."""
    if not isinstance(raw, bytes) or len(raw) != KEY_BYTES:
        raise ParameterError(f"{what} must be {KEY_BYTES} bytes, got {shown(raw)}.")
    return raw


def _from_text(what: str, text: object) -> bytes:
    """Return the bytes of a public key that is written as base64, in the one way to write them."""
    try:
        raw = base64.b64decode(text.encode(), validate=True) if isinstance(text, str) else b""
    except (binascii.Error, UnicodeEncodeError):
        raw = b""
    if len(raw) != KEY_BYTES or base64.b64encode(raw).decode() != text:
        raise ParameterError(f"{what} must be the base64 of {KEY_BYTES} bytes, got {shown(text)}.")
    return raw
