"""The magnitudes of a discrete Gaussian in blocks: which block a uniform number falls into, exactly.

Block q starts at q * width and has the probability of its first magnitude, times a constant. Bounds between
blocks are enclosed by integers; a table of their leading 32 bits settles all but one draw in some million,
and the others draw more bits (docs/theory/noise.md, section 3).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.bernoulli import draw_words, exp_bounds
from tacit.numerics import Array, IntArray

__all__ = ["HEAD_BITS", "Blocks", "bounds_of_blocks", "width_bits"]

HEAD_BITS = 32
_GUIDE_BITS = 12
_BLOCKS_PER_STD = 32  # at least; a candidate is kept with probability 0.98 or more
_GUARD_BITS = 64  # more bits than are asked for: see bounds_of_blocks
_FIRST_BITS = 160

_Words = npt.NDArray[np.uint32]


def width_bits(std: Fraction) -> int:
    """Return k, where 2**k is the width of a block: the largest power of two up to std / 32, or 1."""
    return max(math.floor(std / _BLOCKS_PER_STD).bit_length() - 1, 0)


@lru_cache(maxsize=64)
def bounds_of_blocks(std: Fraction, bits: int) -> tuple[list[int], list[int], float]:
    """Enclose the bounds between blocks.

    Args:
        std: Exact.
        bits: Resolution.

    Returns:
        Integers low and high per block, low <= 2**bits * P(an earlier block) <= high <= low + 2, for all
        blocks of which the probability can be seen at that resolution; and the sum of the weights
        exp(-(q * width)**2 / (2 std**2)) of all blocks.
    """
    fine = bits + _GUARD_BITS
    step = Fraction(1 << width_bits(std)) / std
    weight, (ratio, _), (shrink, _) = 1 << fine, exp_bounds(step**2 / 2, fine), exp_bounds(step**2, fine)
    before = [0]
    while weight:  # exp(-(q + 1)**2 a) = exp(-q**2 a) exp(-(2 q + 1) a), all rounded down
        before.append(before[-1] + weight)
        weight, ratio = weight * ratio >> fine, ratio * shrink >> fine
    error = 5 * (len(before) + 1) ** 3  # of any sum, the one over all blocks included
    total = before[-1]
    low = [(part << bits) // (total + error) for part in before]
    high = [0, *(-((-(part + error) << bits) // total) for part in before[1:])]
    return low, high, total / (1 << fine)


@dataclass(frozen=True, slots=True, eq=False)
class Blocks:
    """The table of one law; make it with `of`.

    Attributes:
        std: Exact.
        shift: Width of a block, as a power of two.
        total: Sum of the weights of all blocks.
    """

    std: Fraction
    shift: int
    total: float
    _first: _Words  # the leading bits of the bound below each block, rounded down
    _inside: _Words  # from where on a head is above that bound, and how many more are below the next one's
    _span: _Words
    _guide: IntArray

    @classmethod
    @lru_cache(maxsize=64)
    def of(cls, std: Fraction) -> Blocks:
        """Return the table."""
        low, _, total = bounds_of_blocks(std, _FIRST_BITS)
        first = np.array([bound >> (_FIRST_BITS - HEAD_BITS) for bound in low], dtype=np.uint32)
        last = np.uint32(2**HEAD_BITS - 1)
        first = first[: int(np.searchsorted(first, last)) + 1]  # what comes later looks the same
        guide = np.searchsorted(
            first, np.arange(2**_GUIDE_BITS) << (HEAD_BITS - _GUIDE_BITS), side="right"
        ).astype(np.int64)
        # The bound itself is less than two above what the table holds of it.
        span = np.maximum(np.diff(first, append=last), 2).astype(np.uint32) - np.uint32(2)
        return cls(std, width_bits(std), total, first, first + np.uint32(2), span, guide - 1)

    def quotients(self, heads: _Words) -> tuple[IntArray, IntArray]:
        """Look up blocks as far as the leading bits of uniform numbers tell.

        Args:
            heads: Shape (n,): the number is in [head, head + 1) / 2**32.

        Returns:
            The block of each, and the indices of those that are undecided.
        """
        found = self._guide[heads >> np.uint32(HEAD_BITS - _GUIDE_BITS)]
        # Below `_inside` the difference wraps around, and is no less than any span.
        unclear = np.flatnonzero(heads - self._inside[found] >= self._span[found])
        if not unclear.size:
            return found, unclear
        heads = heads[unclear]
        found[unclear] = at = np.searchsorted(self._first, heads, side="right") - 1
        return found, unclear[(heads - self._first[at] <= 1) & (at > 0)]  # the bound below block 0 is 0

    def exact_quotient(self, head: int, rng: np.random.Generator) -> int:
        """Return the block of a uniform number that starts with a head, drawing more bits as needed."""
        known, resolution = HEAD_BITS, _FIRST_BITS
        while True:
            low, high, _ = bounds_of_blocks(self.std, resolution)
            room = resolution - known
            block = bisect_right(high, head << room) - 1
            if block + 1 < len(low) and (head + 1) << room <= low[block + 1]:
                return block
            head = head << 64 | int(draw_words(1, rng)[0])
            known += 64
            resolution = max(resolution, known + _FIRST_BITS - HEAD_BITS)

    def exponents(self, quotients: IntArray, offsets: IntArray) -> Array:
        """Return what candidates are kept with, as -ln of a probability, within a relative 2**-50.

        Seven roundings at most meet in a term, and no term is negative.
        """
        std = float(self.std)
        relative = offsets / std
        return np.asarray(relative * (quotients * (float(1 << self.shift) / std) + 0.5 * relative))

    def exact_exponent(self, quotient: int, offset: int) -> Fraction:
        """Return the same as a rational number: ((first + offset)**2 - first**2) / (2 std**2)."""
        return Fraction(offset * (2 * (quotient << self.shift) + offset)) / (2 * self.std**2)
