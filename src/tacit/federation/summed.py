"""The server's half of a round whose messages are added up unseen: what is opened of a step, and when."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.errors import RefusalError
from tacit.federation.answers import open_sum
from tacit.federation.plan import Plan
from tacit.federation.protocols import Exchange
from tacit.federation.query import Query
from tacit.numerics import IntArray

__all__ = ["SumOpener", "Summed", "SummedRounds", "UnmaskedSums", "added"]


class SumOpener(Protocol):
    """The server's half of a protocol that opens sums, for one run of one plan."""

    def prepare(self, step: int, exchange: Exchange) -> bool:
        """Do what has to be done before the parties send the messages of a step, most often nothing.

        Returns:
            Whether enough parties are ready for it.
        """
        ...

    def ready(self, step: int) -> Collection[int]:
        """Return the parties whose messages of a step can be in its sum, once it is prepared."""
        ...

    def open(
        self, step: int, query_digest: bytes, answers: Mapping[int, IntArray], exchange: Exchange
    ) -> tuple[IntArray, tuple[int, ...]] | None:
        """Open the sum of a step.

        Args:
            step: Number of the round.
            query_digest: What was asked, the same for all parties (`Query.digest`).
            answers: The messages that arrived, by party: shape (d,), centred residues.
            exchange: Reaches the parties.

        Returns:
            The sum modulo 2**64, of which the lowest bits count, and the parties in it, increasing; None
            where it cannot be opened.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class Summed:
    """What is opened of a step.

    Attributes:
        total: Shape (d,), int64: the sum of the messages, of which the lowest `width` bits count.
        parties: Whose messages are in it, increasing.
    """

    total: IntArray
    parties: tuple[int, ...]


class UnmaskedSums:
    """Adds messages that are not masked: whoever calls it sees each of them.

    Args:
        parties: How many there are.
        fewest: How many must have sent; fewer open nothing.
    """

    def __init__(self, parties: int, fewest: int) -> None:
        self._parties, self._fewest = parties, fewest

    def prepare(self, step: int, exchange: Exchange) -> bool:  # noqa: ARG002
        """Do nothing."""
        return True

    def ready(self, step: int) -> Collection[int]:  # noqa: ARG002
        """Return all parties."""
        return range(self._parties)

    def open(
        self,
        step: int,  # noqa: ARG002
        query_digest: bytes,  # noqa: ARG002
        answers: Mapping[int, IntArray],
        exchange: Exchange,  # noqa: ARG002
    ) -> tuple[IntArray, tuple[int, ...]] | None:
        """Return the sum, unless too few messages arrived."""
        if len(answers) < self._fewest:
            return None
        return added(list(answers.values())), tuple(sorted(answers))


class SummedRounds:
    """Opens the sums of one run, each once, whoever carries the messages.

    A step that was opened, or given up, is not tried again: of two sums of one step, over parties that differ
    by one, the difference would be what that one sent.

    Args:
        plan: What is asked.
        opener: By which protocol sums are opened.
    """

    def __init__(self, plan: Plan, opener: SumOpener) -> None:
        self._schedule, self._opener = plan.schedule(), opener
        self._last: tuple[int, bytes, Summed | None] | None = None

    def known(self, query: Query) -> bool:
        """Whether this was the newest step.

        Raises:
            RefusalError: It was, at another point.
        """
        if self._last is None or self._last[0] != query.step:
            return False
        if self._last[1] != query.digest():
            raise RefusalError(f"step {query.step} has been asked at another point; a step is asked once.")
        return True

    def round(
        self,
        query: Query,
        exchange: Exchange,
        gather: Callable[[Collection[int]], Mapping[int, bytes]],
    ) -> Summed | None:
        """Return the sum of a step; None where it is not opened.

        Args:
            query: What is asked.
            exchange: Reaches the parties, for what the protocol needs.
            gather: Asks those of these parties that take part, and returns the answers that came.

        Raises:
            RefusalError: The step was asked at another point.
            ParameterError: An answer of another form than the plan's.
        """
        if not self.known(query):
            found = None
            if self._opener.prepare(query.step, exchange):
                found = self.open(query, gather(self._opener.ready(query.step)), exchange)
            self._last = (query.step, query.digest(), found)
        assert self._last is not None  # noqa: S101 - set above, or known
        return self._last[2]

    def open(self, query: Query, answers: Mapping[int, bytes], exchange: Exchange) -> Summed | None:
        """Return the sum of answers; None where it cannot be opened."""
        step = self._schedule.step(query.step)
        vectors = {party: open_sum(step, data, party=party) for party, data in answers.items()}
        found = self._opener.open(query.step, query.digest(), vectors, exchange)
        return None if found is None else Summed(total=found[0], parties=found[1])


def added(vectors: list[IntArray]) -> IntArray:
    """Return the sum of vectors modulo 2**64: two's complement is the same for all widths below."""
    return np.asarray(np.array(vectors).view(np.uint64).sum(axis=0, dtype=np.uint64).view(np.int64))
