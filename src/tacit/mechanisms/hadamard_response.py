"""Hadamard response: a symbol whose likely half of a block is a row of a Hadamard matrix."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.randomized_response import (
    KaryRandomizedResponse,
    check_level,
    sampled_level,
    whole_values,
)
from tacit.numerics import IntArray, hadamard_blocks, hadamard_entries, settle

__all__ = ["HadamardRandomizer"]


@dataclass(frozen=True)
class HadamardRandomizer:
    """Send a symbol out of B b, more often from the half of a block that the value stands for.

    Value x belongs to block i = x // (b - 1) and to row r = x mod (b - 1) + 1 of the matrix of dimension b;
    the symbols i b + y with entry +1 at (r, y) are e^epsilon times as likely as all others.

    Attributes:
        epsilon: Pure level of one report, in [2**-30, 30].
        values: Number k of values, from 2 to 2**31.

    Guarantee:
        Pure epsilon-DP in floating-point arithmetic too. Which half of a block is reported is randomized
        response on 2 B halves, drawn exactly; the symbol within it is uniform.

    Example:
        >>> response = HadamardRandomizer(1.0, 10)
        >>> response.shape, response.symbols
        ((2, 8), 16)
        >>> response.sample(np.array([0, 9]), np.random.default_rng(0)).shape
        (2,)

    Reference:
        Acharya, Sun and Zhang (2019), AISTATS, section 5; Girgis (2023), (7.49).
    """

    epsilon: float
    values: int

    def __post_init__(self) -> None:
        settle(self)
        check_level("epsilon", self.epsilon)
        hadamard_blocks(self.values, self.epsilon)

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number B of blocks and their dimension b."""
        return hadamard_blocks(self.values, self.epsilon)

    @property
    def symbols(self) -> int:
        """Number B b of symbols."""
        blocks, dim = self.shape
        return blocks * dim

    @cached_property
    def halves(self) -> KaryRandomizedResponse:
        """Randomized response on the 2 B halves of blocks."""
        return KaryRandomizedResponse(self.epsilon, 2 * self.shape[0])

    @property
    def level(self) -> float:
        """Pure level of what is sampled, rounded up, at most `epsilon`."""
        return sampled_level(self.epsilon, 2 * self.shape[0])

    @property
    def likely_prob(self) -> float:
        """Probability of each of the b / 2 symbols that the value stands for, as sampled."""
        return (1 - self.halves.lie_prob) / (self.shape[1] // 2)

    @property
    def other_prob(self) -> float:
        """Probability of each of the other symbols, as sampled."""
        blocks, dim = self.shape
        return self.halves.lie_prob / (blocks * dim - dim // 2)

    def place(self, values: IntArray) -> tuple[IntArray, IntArray]:
        """Return the block of each value, and its row there, from 1 on."""
        rows = self.shape[1] - 1
        return values // rows, values % rows + 1

    def sample(self, held: npt.ArrayLike, rng: np.random.Generator) -> IntArray:
        """Randomize values, any shape, 0 to k - 1.

        Returns:
            Same shape, int64: symbols from 0 to B b - 1.

        Raises:
            ParameterError: A value is out of range, or the dtype is not whole.
        """
        return self.draw(whole_values("held", held, self.values), rng)

    def draw(self, values: IntArray, rng: np.random.Generator) -> IntArray:
        """Randomize whole numbers that are known to be from 0 to k - 1; see `sample`."""
        block, row = self.place(values)
        half = self.halves.draw(2 * block, rng)
        place = rng.integers(0, self.shape[1], size=values.shape)
        # Every non-constant row halves every block. Changing the lowest bit of the row in the place of a
        # symbol goes to the other half, one to one.
        odd = np.bitwise_count(row & place) & 1
        place ^= np.where(odd != half & 1, row & -row, 0)
        return np.asarray((half >> 1) * self.shape[1] + place, dtype=np.int64)

    def log_pmf(self, report: int, held: int) -> float:
        """Log-probability of `report` from a party that holds `held`."""
        block, row = self.place(np.array([held]))
        where, place = divmod(report, self.shape[1])
        likely = where == block[0] and hadamard_entries(row, place)[0] == 1
        return math.log(self.likely_prob if likely else self.other_prob)
