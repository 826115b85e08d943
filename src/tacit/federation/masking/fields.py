"""Fields as bytes and digests: with its kind and its length first, no field passes for a part of others."""

from __future__ import annotations

import hashlib
import struct

from tacit.errors import ParameterError, shown

__all__ = ["Field", "framed", "hashed"]

Field = int | str | bytes
"""What a digest, a signature or a key is about."""


def framed(*fields: Field) -> bytes:
    """Return bytes that no other sequence of fields has.

    Args:
        fields: Whole numbers in [0, 2**64), texts or bytes.

    Raises:
        ParameterError: A field of another kind.
    """
    return struct.pack(">Q", len(fields)) + b"".join(_framed(field) for field in fields)


def hashed(*fields: Field) -> bytes:
    """Return the SHA-256 of `framed` fields, of which the first says what they are; 32 bytes."""
    return hashlib.sha256(framed(*fields)).digest()


def _framed(field: Field) -> bytes:
    """Return one field with its kind and its length."""
    if type(field) is int and 0 <= field < 2**64:
        return b"i" + struct.pack(">Q", field)
    if type(field) is str:
        text = field.encode("utf-8", "surrogatepass")
        return b"s" + struct.pack(">Q", len(text)) + text
    if type(field) is bytes:
        return b"b" + struct.pack(">Q", len(field)) + field
    raise ParameterError(f"a field must be an integer in [0, 2**64), a str or bytes, got {shown(field)}.")
