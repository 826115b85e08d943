"""Rounds by number: which kind of round of a plan each of them is."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from tacit.errors import check_count
from tacit.federation.steps import AnyStep

__all__ = ["Schedule"]


@dataclass(frozen=True)
class Schedule:
    """Which kind of round a number is; made once per run, because every round asks.

    Attributes:
        steps: Kinds of rounds.
        groups: For each group the number of its first round, the index of its first kind, and where its kinds
            start within one turn, with the length of the turn; a kind in no group is a group of its own.
        rounds: Number of rounds.
    """

    steps: tuple[AnyStep, ...]
    groups: tuple[tuple[int, int, tuple[int, ...]], ...]
    rounds: int

    def kind(self, number: int) -> int:
        """Return the index of the kind of round `number`, or refuse a number outside the plan."""
        return self.place(number)[0]

    def step(self, number: int) -> AnyStep:
        """Return what round `number` is."""
        return self.steps[self.kind(number)]

    def place(self, number: int) -> tuple[int, int]:
        """Return the same index, and how many rounds of that kind come before."""
        if type(number) is not int or not 0 <= number < self.rounds:
            check_count("step", number, low=0, high=self.rounds - 1)
        start, first, turn = self.groups[bisect_right(self._starts, number) - 1]
        turns, within = divmod(number - start, turn[-1])
        k = bisect_right(turn, within) - 1
        return first + k, turns * (turn[k + 1] - turn[k]) + within - turn[k]

    @cached_property
    def _starts(self) -> list[int]:
        """Number of the first round of each group."""
        return [start for start, _, _ in self.groups]
