"""Binomial noise from fair bits: what every party adds to a sum whose messages are shuffled."""

from __future__ import annotations

import math

import numpy as np

from tacit.errors import check_count
from tacit.mechanisms.bernoulli import draw_words
from tacit.numerics import IntArray

__all__ = ["sample_fair_binomial"]

_WORD_BITS = 64
_WORDS_AT_ONCE = 2**20


def sample_fair_binomial(trials: int, size: int | tuple[int, ...], rng: np.random.Generator) -> IntArray:
    """Count the ones among fair bits: Bin(trials, 1/2), exactly.

    Args:
        trials: Number of fair bits of one draw, 0 to 2**62.
        size: Shape of the result.
        rng: Source of the bits; every draw uses whole 64-bit words of it.

    Returns:
        Shape `size`, int64, from 0 to `trials`.

    Raises:
        ParameterError: `trials` is out of range.

    Cost:
        trials / 64 words a draw, about 3 ns each. The law has no rounding in it, unlike that of NumPy's
        `binomial`, which is for simulation.

    Example:
        >>> sample_fair_binomial(0, 3, np.random.default_rng(0)).tolist()
        [0, 0, 0]

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Algorithm 1; here the ones among random words are counted.
    """
    check_count("trials", trials, low=0, high=2**62)
    shape = (size,) if isinstance(size, int | np.integer) else tuple(size)
    draws = math.prod(shape)
    words, left = divmod(int(trials), _WORD_BITS)
    counts = np.zeros(draws, dtype=np.int64)
    # Blocks of draws where a draw is short, pieces of one draw where it is long: memory stays bounded.
    block = max(1, _WORDS_AT_ONCE // max(words, 1))
    for start in range(0, draws, block):
        stop = min(start + block, draws)
        for piece in range(0, words, _WORDS_AT_ONCE):
            width = min(_WORDS_AT_ONCE, words - piece)
            bits = np.bitwise_count(draw_words((stop - start) * width, rng))
            counts[start:stop] += bits.reshape(stop - start, width).sum(axis=1, dtype=np.int64)
        if left:
            mask = np.uint64((1 << left) - 1)
            counts[start:stop] += np.bitwise_count(draw_words(stop - start, rng) & mask)
    return counts.reshape(shape)
