"""Sums of rounds whose noise is correlated: what one round adds, later rounds take back in part.

For a lower triangular matrix C with ones on the diagonal, sums G and independent noise Z, G + C^-1 Z is
C^-1 (C G + Z): noise goes on mixtures of sums, and is fresh in every round (Denisov et al. 2022,
arXiv:2202.08312). So nothing that was drawn is ever kept or drawn again, noise may be sampled exactly, and
C^-1 is taken of what has been released (docs/theory/correlated-noise.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError
from tacit.numerics import Array, IntArray, inverse_column

__all__ = ["CorrelatedSums", "Past", "correlated_noise"]


@dataclass(frozen=True)
class Past:
    """Rounds that the next one is mixed with.

    Attributes:
        next: The first round that may come now.
        rounds: Their numbers, rising, shape (k,); one that is left out counts as a sum of zero.
        sums: Their sums, shape (k, dim), int64 or float64: private.
        released: What was released of them, shape (k, dim).
    """

    next: int
    rounds: IntArray
    sums: Array
    released: Array

    @classmethod
    def nothing(cls, dim: int) -> Past:
        """Return what there is before the first round."""
        return cls(0, np.zeros(0, dtype=np.int64), np.zeros((0, dim)), np.zeros((0, dim)))


class CorrelatedSums:
    """The stream of one run: what noise goes on, and what is released once it is on it.

    Args:
        column: First column of C, as in `tacit.numerics.square_root_column`.
    """

    def __init__(self, column: Array) -> None:
        self._column = column

    def mixed(self, summed: Array, number: int, past: Past) -> Array:
        """Return what noise goes on: c[0] of this sum, c[1] of the one before, and so on.

        Raises:
            ParameterError: The round is not later than all that came before.
        """
        if number < past.next:
            raise ParameterError(f"rounds must come in order: the next may be {past.next}, got {number}.")
        return self._weighted(past.sums, number, past) + summed

    def released(self, noisy: Array, number: int, past: Past) -> Array:
        """Return the sum with correlated noise, from the mixture with fresh noise: C^-1, row by row."""
        return noisy - self._weighted(past.released, number, past)

    def followed(self, past: Past, number: int, *, summed: Array, released: Array) -> Past:
        """Return what the rounds after this one are mixed with."""
        rounds = np.append(past.rounds, number)
        near = number + 1 - rounds < len(self._column)
        sums = np.concatenate([past.sums.astype(summed.dtype), summed[None]])
        shown = np.concatenate([past.released, released[None]])
        return Past(number + 1, rounds[near], sums[near], shown[near])

    def _weighted(self, rows: Array, number: int, past: Past) -> Array:
        """Return the earlier rows within the band, each times its entry of the column, added up in order."""
        ago = number - past.rounds
        near = ago < len(self._column)
        return np.asarray((self._column[ago[near], None] * rows[near]).sum(axis=0, dtype=np.float64))


def correlated_noise(column: Array, noise: Array) -> Array:
    """Return C^-1 Z: x[t] = z[t] - sum over i >= 1 of c[i] x[t - i].

    Args:
        column: First column of C.
        noise: Z, shape (rounds, dim).

    Returns:
        Shape (rounds, dim).

    Example:
        >>> correlated_noise(np.array([1.0, 0.5]), np.ones((3, 1))).ravel().tolist()
        [1.0, 0.5, 0.75]
    """
    inverse = inverse_column(column, len(noise))
    return np.stack([inverse[t::-1] @ noise[: t + 1] for t in range(len(noise))])
