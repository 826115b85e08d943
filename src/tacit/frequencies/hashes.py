"""Texts as whole numbers of a large domain, by a public function."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from tacit.errors import check_count

__all__ = ["hashed_items"]


def hashed_items(texts: Iterable[str], bits: int, *, seed: int = 0) -> npt.NDArray[np.uint64]:
    """Return the first bits of a hash of each text, which every client computes by itself.

    Anybody can hash a list of texts and read back which of them was found; a text on no list stays a number.
    Two texts share one with probability 2**-bits over the seed: m texts beside it raise the frequency of a
    value by the sum of theirs times 2**-bits, on average.

    Args:
        texts: As they stand in cells.
        bits: Of the domain; from 1 to 64.
        seed: Of the run, from 0 to 2**64 - 1. Public.

    Returns:
        One number below 2**bits for each text, the same on all machines: the first bits of BLAKE2b of 8
        bytes, keyed by the seed in 8 little-endian bytes, of the text in UTF-8.

    Raises:
        ParameterError: `bits` or `seed` is out of range.

    Example:
        >>> hashed_items(["a.example", "b.example"], 32).tolist()
        [2591919208, 1975773619]
    """
    bits = check_count("bits", bits, high=64)
    key = check_count("seed", seed, low=0, high=2**64 - 1).to_bytes(8, "little")
    new = hashlib.blake2b
    digests = b"".join(
        new(text.encode("utf-8", "surrogatepass"), digest_size=8, key=key, person=b"tacit.items").digest()
        for text in texts
    )
    return np.frombuffer(digests, dtype=">u8").astype(np.uint64) >> np.uint64(64 - bits)
