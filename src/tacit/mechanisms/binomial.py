"""Binomial numbers from fair bits: what parties add to a sum, and how many of them gave an answer."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.errors import check_count
from tacit.mechanisms.bernoulli import draw_words
from tacit.numerics import IntArray

__all__ = ["sample_binomial", "sample_fair_binomial"]

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


def sample_binomial(trials: npt.ArrayLike, threshold: int, rng: np.random.Generator) -> IntArray:
    """Count the words below a threshold among random 64-bit words: Bin(trials, threshold / 2**64), exactly.

    Words are compared bit by bit, and those alike so far are only counted: two fair bits a trial decide.

    Args:
        trials: Shape (m,), whole numbers >= 0.
        threshold: Whole number from 0 to 2**64 - 1.
        rng: Source of the bits.

    Returns:
        Shape (m,), int64, each from 0 to its number of trials.

    Raises:
        ParameterError: `threshold` is out of range.

    Cost:
        About trials / 32 words for each number.

    Example:
        >>> counts = sample_binomial([1000, 0], 2**62, np.random.default_rng(0))
        >>> bool(200 < counts[0] < 300), int(counts[1])
        (True, 0)
    """
    check_count("threshold", threshold, low=0, high=2**_WORD_BITS - 1)
    alike = np.array(trials, dtype=np.int64)
    below = np.zeros_like(alike)
    for bit in reversed(range(_WORD_BITS)):
        if not threshold % (2 << bit) or not alike.any():
            break  # what is alike to the end is not below
        ones = _ones(alike, rng)
        if threshold >> bit & 1:
            below += alike - ones
            alike = ones
        else:
            alike = alike - ones
    return below


def _ones(bits: IntArray, rng: np.random.Generator) -> IntArray:
    """Count the ones among so many fair bits each, shape (m,)."""
    counts, left = np.zeros_like(bits), bits.copy()
    width = _WORD_BITS * max(1, _WORDS_AT_ONCE // max(bits.size, 1))
    while (some := np.flatnonzero(left)).size:
        now = np.minimum(left[some], width)
        words = -(-now // _WORD_BITS)
        ends = np.cumsum(words)
        drawn = draw_words(int(ends[-1]), rng)
        drawn[ends - 1] >>= (words * _WORD_BITS - now).astype(np.uint64)
        counts[some] += np.add.reduceat(np.bitwise_count(drawn), ends - words, dtype=np.int64)
        left[some] -= now
    return counts
