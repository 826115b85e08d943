"""How messages about frequencies travel: version, kind, what exactly made them, and packed bits."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError

__all__ = ["HEAD_BYTES", "bytes_of_rows", "rows_of_bytes"]

_VERSION = 2
HEAD_BYTES = 3
"""Bytes before the packed bits: version and kind, and two of a digest of the mechanism with its level."""


def bytes_of_rows(code: int, mechanism: str, body: npt.NDArray[np.uint8]) -> bytes:
    """Write messages one after the other.

    Args:
        code: Kind of the mechanism, 1 to 15.
        mechanism: All that is public about it, its level included.
        body: Shape (n, bytes): packed bits.
    """
    head = np.frombuffer(_head(code, mechanism), dtype=np.uint8)
    return np.concatenate([np.tile(head, (len(body), 1)), body], axis=1).tobytes()


def rows_of_bytes(code: int, mechanism: str, data: bytes, width: int) -> npt.NDArray[np.uint8]:
    """Read what `bytes_of_rows` wrote, shape (n, width).

    Args:
        code: As it was written.
        mechanism: As it was written.
        data: From anybody.
        width: Bytes of packed bits of one message.

    Raises:
        ParameterError: Another version, mechanism or level, or a length that is no multiple of one message.
    """
    if not isinstance(data, bytes | bytearray | memoryview):
        raise ParameterError(f"data must be bytes, got {type(data).__name__}.")
    rows = np.frombuffer(data, dtype=np.uint8)
    if rows.size % (HEAD_BYTES + width):
        raise ParameterError(
            f"data must have a multiple of {HEAD_BYTES + width} bytes, one message each, got {rows.size}."
        )
    rows = rows.reshape(-1, HEAD_BYTES + width)
    if np.any(rows[:, :HEAD_BYTES] != np.frombuffer(_head(code, mechanism), dtype=np.uint8)):
        raise ParameterError("a message has another version, or is of another mechanism or level.")
    return rows[:, HEAD_BYTES:]


def _head(code: int, mechanism: str) -> bytes:
    """Return version and kind, and two bytes that tell levels and variants of a kind apart."""
    digest = hashlib.blake2b(mechanism.encode(), digest_size=HEAD_BYTES - 1).digest()
    return bytes([_VERSION << 4 | code]) + digest
