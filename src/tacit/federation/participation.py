"""Which silos take part in a round (spec 11 §0): everybody, some drawn at random, or those on a list.

Who takes part is visible, so it amplifies nothing: a silo's price does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.numerics import IntArray

__all__ = ["Everybody", "Participation", "RandomSubset", "Scheduled"]


class Participation(Protocol):
    """Draws the silos of a round.

    Attributes:
        uniform: Whether, given how many silos take part, all sets of that many are equally likely.
    """

    uniform: ClassVar[bool]

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:
        """Return the indices of the silos that are asked, increasing, without repetition; may be empty."""
        ...


@dataclass(frozen=True)
class Everybody:
    """All silos in all rounds."""

    uniform: ClassVar[bool] = True

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Return all indices."""
        return np.arange(parties)


@dataclass(frozen=True)
class RandomSubset:
    """M_r silos, uniformly at random in every round.

    Attributes:
        size: M_r = M; or several sizes, of which every round draws one, all equally likely. 0 among them is a
            round without anybody.
    """

    size: int | tuple[int, ...]
    uniform: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if not isinstance(self.size, tuple):
            check_count("size", self.size)
            return
        if not self.size:
            raise ParameterError("size must name at least one number of silos, got none.")
        for size in self.size:
            check_count("size", size, low=0)

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Return M_r indices."""
        sizes = self.size if isinstance(self.size, tuple) else (self.size,)
        if max(sizes) > parties:
            raise ParameterError(f"size must be at most the {parties} silos, got {max(sizes)}.")
        size = sizes[0] if len(sizes) == 1 else sizes[rng.integers(len(sizes))]
        return np.sort(rng.choice(parties, size, replace=False))


@dataclass(frozen=True)
class Scheduled:
    """A given list of silos for every round; rounds beyond the list start over."""

    schedule: Sequence[Sequence[int]]
    uniform: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not self.schedule:
            raise ParameterError("schedule must name the silos of at least one round, got none.")
        for chosen in self.schedule:
            for silo in chosen:
                check_count("a silo of the schedule", silo, low=0)

    def silos(self, round: int, parties: int, rng: np.random.Generator) -> IntArray:  # noqa: ARG002
        """Return the indices on the list."""
        chosen = np.unique(np.asarray(self.schedule[round % len(self.schedule)], dtype=np.int64))
        if chosen.size and chosen[-1] >= parties:
            raise ParameterError(f"the schedule names silo {chosen[-1]}, outside 0 to {parties - 1}.")
        return chosen
