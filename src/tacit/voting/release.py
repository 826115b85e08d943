"""Publishing noisy majorities: exact coins, many queries at once.

One 64-bit word decides a query: 63 bits whether the majority is published, one bit the fair coin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError
from tacit.mechanisms.bernoulli import draw_words
from tacit.numerics import IntArray
from tacit.privacy.certified import GRID, output_probabilities

__all__ = ["ballot_counts", "noisy_majority"]


def ballot_counts(votes: npt.ArrayLike, teachers: int | None = None) -> IntArray:
    """Count the ones of every query.

    Args:
        votes: Shape (queries, K), booleans or whole numbers 0 and 1.
        teachers: K, to check the shape by.

    Returns:
        Shape (queries,), int64.

    Raises:
        ParameterError: Another shape or dtype, or a vote other than 0 and 1.
    """
    ballots = np.asarray(votes)
    if ballots.dtype.kind not in "biu":
        raise ParameterError(f"votes must be whole numbers 0 and 1, got dtype {ballots.dtype}.")
    if ballots.ndim != 2 or (teachers is not None and ballots.shape[1] != teachers):
        wanted = "K" if teachers is None else teachers
        raise ParameterError(
            f"votes must have shape (queries, {wanted}), one row per query; got shape {ballots.shape}."
        )
    if ballots.size and (ballots.min() < 0 or ballots.max() > 1):
        raise ParameterError("votes must be 0 or 1; for more classes use GNMax.")
    return np.asarray(ballots.sum(axis=1, dtype=np.int64))


def noisy_majority(
    counts: npt.ArrayLike, gamma: npt.ArrayLike, teachers: int, rng: np.random.Generator
) -> IntArray:
    """Publish the majority with probability gamma, else a fair coin. Whether gamma is private is not checked.

    Args:
        counts: Shape (queries,), how many of the teachers vote 1.
        gamma: Shape (ceil(K / 2),): values for l = h, ..., K, in [0, 1]; rounded down to multiples of 2^-52.
        teachers: K.
        rng: Source of the coins: one 64-bit word a query.

    Returns:
        Shape (queries,), 0 and 1.

    Raises:
        ParameterError: A count outside 0, ..., K, or a gamma of another shape or outside [0, 1].

    Reference:
        Jiang (2025), Algorithm 1.
    """
    ones = np.asarray(counts)
    if ones.ndim != 1 or ones.dtype.kind not in "iu":
        raise ParameterError(
            f"counts must be whole numbers of shape (queries,), got {ones.dtype} of shape {ones.shape}."
        )
    if ones.size and (ones.min() < 0 or ones.max() > teachers):
        raise ParameterError(f"counts must be from 0 to the number of teachers, {teachers}.")
    ones = ones.astype(np.int64)  # twice a count of 8 bits would wrap around
    output_probabilities(teachers, gamma)  # shape and range
    words = draw_words(ones.size, rng)
    half = [int(value * GRID) << 11 for value in np.asarray(gamma, dtype=np.float64).tolist()]
    thresholds = np.array([*half[::-1], *([] if teachers % 2 else [0]), *half], dtype=np.uint64)
    kept = (words >> np.uint64(1)) < thresholds[ones]
    coin = (words & np.uint64(1)).astype(np.int64)
    return np.where(kept, (2 * ones > teachers).astype(np.int64), coin)
