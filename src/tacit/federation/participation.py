"""Which silos take part in a round: everybody, some drawn at random, or those on a list.

Who takes part is visible, so it amplifies nothing: a silo's price does not depend on it. That is why random
sets come from the run's public stream: whoever goes on with a run asks the same silos again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from tacit.errors import ParameterError, check_count
from tacit.numerics import IntArray
from tacit.randomness import PublicStream

__all__ = [
    "Everybody",
    "Participation",
    "RandomSubset",
    "SameInTurn",
    "Scheduled",
    "asked_in",
    "check_participation",
    "fewest_asked",
    "public_seed",
]


@runtime_checkable
class Participation(Protocol):
    """Draws the silos of a round; a function of its arguments, so that a run which goes on asks the same."""

    @property
    def uniform(self) -> bool:
        """Whether, given how many silos take part, all sets of that many are equally likely."""
        ...

    def fewest(self, parties: int) -> int:
        """Return the fewest of the silos that any round asks; 0 where a round may ask nobody.

        Step sizes are made for that many. Called before anything is spent.

        Raises:
            ParameterError: There are too few silos.
        """
        ...

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
        """Return the indices of the silos that are asked, increasing, without repetition; may be empty.

        `stream` is the round's own, fresh in every call.
        """
        ...


@dataclass(frozen=True)
class Everybody:
    """All silos in all rounds."""

    uniform: ClassVar[bool] = True

    def fewest(self, parties: int) -> int:
        """Return all."""
        return parties

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:  # noqa: ARG002
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

    def fewest(self, parties: int) -> int:
        """Return the smallest size."""
        if max(self._sizes) > parties:
            raise ParameterError(f"size must be at most the {parties} silos, got {max(self._sizes)}.")
        return min(self._sizes)

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:  # noqa: ARG002
        """Return M_r indices."""
        self.fewest(parties)
        sizes = self._sizes
        size = sizes[0] if len(sizes) == 1 else sizes[int(stream.integers(len(sizes), 1)[0])]
        return np.sort(stream.permutation(parties)[:size])

    @property
    def _sizes(self) -> tuple[int, ...]:
        return self.size if isinstance(self.size, tuple) else (self.size,)


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

    def fewest(self, parties: int) -> int:
        """Return the length of the shortest round."""
        largest = max((silo for chosen in self.schedule for silo in chosen), default=0)
        if largest >= parties:
            raise _outside(largest, parties)
        return min(len(set(chosen)) for chosen in self.schedule)

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:  # noqa: ARG002
        """Return the indices on the list."""
        chosen = np.unique(np.asarray(self.schedule[round % len(self.schedule)], dtype=np.int64))
        if chosen.size and chosen[-1] >= parties:
            raise _outside(int(chosen[-1]), parties)
        return chosen


@dataclass(frozen=True)
class SameInTurn:
    """The silos that are drawn for the first round of a turn are asked in all of its rounds.

    Attributes:
        participation: Draws them.
        first: Number of the first round of every turn, increasing, from 0 on.
    """

    participation: Participation
    first: tuple[int, ...]

    @property
    def uniform(self) -> bool:
        """Whether all sets of as many silos are equally likely."""
        return self.participation.uniform

    def fewest(self, parties: int) -> int:
        """Return the fewest of the silos that any round asks."""
        return self.participation.fewest(parties)

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
        """Return the silos of a round that begins a turn."""
        return self.participation.silos(round, parties, stream)

    def drawn_in(self, round: int) -> int:
        """Return the round that began the turn."""
        return self.first[bisect_right(self.first, round) - 1]


def check_participation(given: object) -> None:
    """Refuse what is no `Participation`, and say what it lacks."""
    lacks = ", ".join(name for name in ("uniform", "fewest", "silos") if not hasattr(given, name))
    if lacks:
        raise ParameterError(
            f"participation must be a Participation, got {type(given).__name__}, which lacks {lacks}."
        )


def fewest_asked(participation: Participation, parties: int) -> int:
    """Return the fewest silos that a round asks, checked: also of a participation from elsewhere.

    Raises:
        ParameterError: Something that is no `Participation`, that does not fit the silos, or whose `fewest`
            is not a number of them.
    """
    check_participation(participation)
    fewest = participation.fewest(parties)
    check_count("fewest of the participation", fewest, low=0, high=parties)
    return int(fewest)


def asked_in(participation: Participation, round: int, parties: int, *, seed: int, fewest: int) -> list[int]:
    """Return the silos of a round, checked: a wrong index would ask another silo.

    Args:
        participation: Draws them, from a public stream of the round, or of the one that began its turn.
        round: Number of the round.
        parties: How many silos there are.
        seed: Of the run's public randomness.
        fewest: How many the participation said that it asks at least.

    Raises:
        ParameterError: Indices that are not increasing, or not those of silos; or fewer than `fewest`.
    """
    drawn = participation.drawn_in(round) if isinstance(participation, SameInTurn) else round
    stream = PublicStream(seed, drawn, purpose="participation")
    index = np.asarray(participation.silos(drawn, parties, stream))
    whole = index.ndim == 1 and (index.size == 0 or np.issubdtype(index.dtype, np.integer))
    asked = [int(silo) for silo in index] if whole else []
    in_order = all(low < high for low, high in zip([-1, *asked], [*asked, parties], strict=True))
    if not whole or not in_order or len(asked) < fewest:
        raise ParameterError(
            f"a participation must return at least {fewest} increasing indices from 0 to {parties - 1}, as "
            f"its `fewest` says, got {index.tolist()!r} for round {round}."
        )
    return asked


def public_seed(run: str, plan_digest: bytes) -> int:
    """Return the seed of a run's public randomness: everybody who knows the run and its plan knows it."""
    # The length of the digest is fixed, so that no name can pass for a part of it.
    digest = hashlib.blake2b(plan_digest + run.encode(errors="surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest, "little")


def _outside(silo: int, parties: int) -> ParameterError:
    """Return the refusal of a silo that is not there."""
    return ParameterError(f"the schedule names silo {silo}, outside 0 to {parties - 1}.")
