"""What a batch of one-bit messages says: how many ones each coordinate has, and from how many rows."""

from __future__ import annotations

import numpy as np

from tacit.errors import ParameterError
from tacit.means.message import Message
from tacit.numerics import IntArray

__all__ = ["received_ones"]


def received_ones(messages: list[Message], dim: int, bits_per_row: int) -> tuple[IntArray, int]:
    """Count the ones of every coordinate.

    Args:
        messages: Of one-bit integers, labelled by coordinate; shuffled or not.
        dim: Number of coordinates.
        bits_per_row: Bits that each row sends about each coordinate.

    Returns:
        The ones, shape (dim,), and how many rows they come from.

    Raises:
        ParameterError: A message of another form, or coordinates from different numbers of rows.
    """
    ones, entries = np.zeros(dim, dtype=np.int64), np.zeros(dim, dtype=np.int64)
    for message in messages:
        bits = message.payload
        if bits.dtype != np.int64 or bits.ndim != 1 or not 0 <= message.label < dim:
            raise ParameterError(
                f"a message must hold one-bit integers and a label below {dim}, got dtype "
                f"{bits.dtype}, shape {bits.shape}, label {message.label!r}."
            )
        if bits.size and not -1 <= bits.min() <= bits.max() <= 0:
            raise ParameterError("every entry of a message must be one bit: -1 or 0.")
        ones[message.label] -= bits.sum()
        entries[message.label] += bits.size
    received, left = divmod(int(entries[0]), bits_per_row)
    if left or (entries != entries[0]).any():
        raise ParameterError(
            f"every coordinate must have {bits_per_row} bits of each row, got from "
            f"{entries.min()} to {entries.max()} bits."
        )
    return ones, received
