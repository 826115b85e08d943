"""What somebody can compute from what has left the parties: linear algebra, without the code that masks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import ChaCha20

PRIME = 2_147_483_647
"""Coefficients are small whole numbers: what is zero modulo this prime is zero."""


def stream_by_hand(key: bytes, dim: int, width: int) -> npt.NDArray[np.uint64]:
    """A stream as the specification has it: little-endian words of 32 or 64 bits, the low ones."""
    size = 4 if width <= 32 else 8
    raw = Cipher(ChaCha20(key, bytes(16)), mode=None).encryptor().update(bytes(size * dim))
    words = [int.from_bytes(raw[size * k : size * (k + 1)], "little") % 2**width for k in range(dim)]
    return np.array(words, dtype=np.uint64)


def learned(
    rows: Sequence[dict[object, int]], open_to_all: set[object], wanted: set[object]
) -> list[dict[object, int]]:
    """Return a basis of the sums of `wanted` unknowns that follow from linear equations.

    Args:
        rows: Equations: what is seen is the sum of unknowns with these coefficients.
        open_to_all: Unknowns that are known, and drop out.
        wanted: Unknowns that are asked for; all others hide.
    """
    names = sorted({name for row in rows for name in row} - open_to_all, key=repr)
    hiding = [name for name in names if name not in wanted]
    columns = hiding + [name for name in names if name in wanted]
    matrix = [[row.get(name, 0) % PRIME for name in columns] for row in rows]
    done = 0
    for column in range(len(columns)):
        pivot = next((k for k in range(done, len(matrix)) if matrix[k][column]), None)
        if pivot is None:
            continue
        matrix[done], matrix[pivot] = matrix[pivot], matrix[done]
        inverse = pow(matrix[done][column], -1, PRIME)
        matrix[done] = [value * inverse % PRIME for value in matrix[done]]
        for k, row in enumerate(matrix):
            if k != done and row[column]:
                factor = row[column]
                matrix[k] = [(a - factor * b) % PRIME for a, b in zip(row, matrix[done], strict=True)]
        done += 1
    found = [row for row in matrix[:done] if not any(row[: len(hiding)])]
    return [{name: value for name, value in zip(columns, row, strict=True) if value} for row in found]
