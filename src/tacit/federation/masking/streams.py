"""Streams that hide vectors: ChaCha20 (RFC 8439) under a key that is used once, as words modulo 2**width."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

from tacit.errors import ParameterError, check_count, shown
from tacit.numerics import IntArray

__all__ = ["LONGEST", "WIDEST", "Words", "centred", "check_vector", "masked", "stream_words"]

WIDEST: Final = 64
"""Bits of a coordinate, at most."""

LONGEST: Final = 2**32
"""Coordinates of a vector, at most: ChaCha20 counts 2**32 blocks of 64 bytes."""

Words = npt.NDArray[np.unsignedinteger[Any]]
"""Whole numbers modulo 2**32 or 2**64."""

_NARROW: Final = 32


def stream_words(key: bytes, dim: int, width: int) -> Words:
    """Return the numbers of a stream, of which the low `width` bits are meant.

    Args:
        key: 32 secret bytes, for this one stream only: it starts at zero.
        dim: How many.
        width: 1 to 64: little-endian words of 32 bits up to 32, of 64 beyond.
    """
    kind = "<u4" if width <= _NARROW else "<u8"
    zeros = bytes(dim * int(kind[-1]))
    return np.frombuffer(Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(zeros), dtype=kind)


def masked(vector: IntArray, width: int, *, plus: Iterable[bytes], minus: Iterable[bytes]) -> IntArray:
    """Return a vector with streams added and subtracted modulo 2**width, centred.

    Args:
        vector: Checked by `check_vector`.
        width: Bits of a coordinate.
        plus: Keys of streams to add.
        minus: Keys of streams to subtract.
    """
    # Sums modulo 2**32 and 2**64 are right modulo every smaller power of two: reduced once, at the end.
    total: Words = vector.astype(np.uint32 if width <= _NARROW else np.uint64)
    for key in plus:
        np.add(total, stream_words(key, len(vector), width), out=total)
    for key in minus:
        np.subtract(total, stream_words(key, len(vector), width), out=total)
    return centred(total, width)


def centred(total: Words, width: int) -> IntArray:
    """Return numbers reduced modulo 2**width to [-2**width / 2, 2**width / 2)."""
    spare = np.uint64(WIDEST - width)
    # The arithmetic shift back copies the highest bit that is meant into all above it.
    return (total.astype(np.uint64) << spare).view(np.int64) >> spare.astype(np.int64)


def check_vector(name: str, vector: object, width: int) -> IntArray:
    """Return a vector of centred residues modulo 2**width; refuse anything else.

    Raises:
        ParameterError: Not int64, not one-dimensional, empty, longer than `LONGEST`, an entry outside
            [-2**width / 2, 2**width / 2), or a width that is not from 1 to 64.
    """
    check_count("width", width, high=WIDEST)
    if not isinstance(vector, np.ndarray) or vector.dtype != np.int64 or vector.ndim != 1:
        what = f"{vector.dtype} of shape {vector.shape}" if isinstance(vector, np.ndarray) else shown(vector)
        raise ParameterError(f"{name} must be an int64 array of one dimension, got {what}.")
    check_count(f"the length of {name}", len(vector), high=LONGEST)
    # Never the entry: it is private.
    if width < WIDEST and not (-(2 ** (width - 1)) <= vector.min() and vector.max() < 2 ** (width - 1)):
        raise ParameterError(f"{name} must have entries in [-2**{width - 1}, 2**{width - 1}).")
    return vector
