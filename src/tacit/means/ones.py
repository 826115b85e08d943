"""What sums of one-bit messages have in common: how many bits they need, and what a batch of them says."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.means.message import Message
from tacit.numerics import IntArray

__all__ = ["MOST_BITS", "bits_for_multiplier", "received_ones"]

MOST_BITS = 2**31 - 1
"""Noise bits and grid steps of a coordinate."""


def bits_for_multiplier(*, dim: int, multiplier: float, honest: int, fineness: float) -> tuple[int, int]:
    """Return the noise bits of a row and the grid steps of a coordinate; see `BinomialMean.for_multiplier`.

    Raises:
        ParameterError: A value is out of its range, or the noise takes more than `MOST_BITS` a row.
    """
    check_count("dim", dim, high=2**32)
    check_count("honest", honest)
    check_positive("multiplier", multiplier)
    check_positive("fineness", fineness)
    resolution = fineness * math.sqrt(dim)
    bits = (2 * max(resolution, 1.0) * multiplier) ** 2 / honest
    if not max(bits, resolution) < MOST_BITS:
        raise ParameterError(
            f"multiplier must be one that {honest} honest rows reach with fewer than 2**31 noise bits "
            f"each on a grid of {resolution:.3g} steps, got {multiplier!r}."
        )
    g = max(math.ceil(resolution * (1 - 1e-12)), 1)
    return max(math.ceil((2 * g * multiplier) ** 2 / honest * (1 - 1e-12)), 1), g


def received_ones(messages: Iterable[Message], dim: int, bits_per_row: int) -> tuple[IntArray, int]:
    """Add the counts of messages, shuffled or not.

    Args:
        messages: Each counts the ones of all coordinates.
        dim: Number of coordinates.
        bits_per_row: Bits that each row sends about each coordinate.

    Returns:
        The ones, shape (dim,), and how many rows they come from.

    Raises:
        ParameterError: A message of another form, or a count that its bits cannot have.
    """
    ones, received = np.zeros(dim, dtype=np.int64), 0
    for message in messages:
        counts, symbols = message.payload, message.symbols
        rows, left = divmod(symbols, bits_per_row)
        form = counts.dtype == np.int64 and counts.shape == (dim,) and message.label == 0
        if not form or rows < 1 or left:
            raise ParameterError(
                f"a message must count the ones of {dim} coordinates among {bits_per_row} bits of each row, "
                f"with the label 0, got dtype {counts.dtype}, shape {counts.shape}, {symbols} bits, "
                f"label {message.label!r}."
            )
        if not 0 <= counts.min() <= counts.max() <= symbols:
            raise ParameterError(f"every count of a message must be from 0 to its {symbols} bits.")
        ones += counts
        received += rows
    return ones, received
