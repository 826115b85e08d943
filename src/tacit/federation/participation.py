"""Which silos take part in a round (spec 11 §0): everybody, some drawn at random, or those on a list.

Who takes part is visible, so it amplifies nothing: a silo's price does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.numerics import IntArray

__all__ = ["Everybody", "Participation", "RandomSubset", "Scheduled"]


class Participation(Protocol):
    """Draws the silos of a round."""

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:
        """Return the indices of the silos that are asked, increasing, without repetition; may be empty."""
        ...


@dataclass(frozen=True)
class Everybody:
    """All silos in all rounds."""

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Return all indices."""
        return np.arange(parties)


@dataclass(frozen=True)
class RandomSubset:
    """`size` silos, uniformly at random in every round: M_r = M."""

    size: int

    def __post_init__(self) -> None:
        check_count("size", self.size)

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Return `size` indices."""
        if self.size > parties:
            raise ParameterError(f"size must be at most the {parties} silos, got {self.size}.")
        return np.sort(rng.choice(parties, self.size, replace=False))


@dataclass(frozen=True)
class Scheduled:
    """A given list of silos for every round; rounds beyond the list start over."""

    schedule: Sequence[Sequence[int]]

    def __post_init__(self) -> None:
        if not self.schedule:
            raise ParameterError("schedule must name the silos of at least one round, got none.")

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Return the indices on the list."""
        chosen = np.unique(np.asarray(self.schedule[round % len(self.schedule)], dtype=np.int64))
        if chosen.size and not 0 <= chosen[0] <= chosen[-1] < parties:
            raise ParameterError(f"the schedule names silos outside 0 to {parties - 1}.")
        return chosen
