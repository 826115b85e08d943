"""The server's half of a round whose messages are added up unseen: what is opened of a step, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tacit.numerics import IntArray

__all__ = ["Exchange", "SumOpener", "Summed", "UnmaskedSums", "added"]

Exchange = Callable[[str, Mapping[int, bytes]], dict[int, bytes]]
"""Sends every party its bytes for a stage of a protocol; returns the replies of those that replied."""


class SumOpener(Protocol):
    """The server's half of a protocol that opens sums, for one run of one plan."""

    def prepare(self, step: int, exchange: Exchange) -> None:
        """Do what has to be done before the parties send the messages of a step, most often nothing."""
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
        fewest: Parties below which nothing is opened.
    """

    def __init__(self, fewest: int) -> None:
        self._fewest = fewest

    def prepare(self, step: int, exchange: Exchange) -> None:
        """Do nothing."""

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


def added(vectors: list[IntArray]) -> IntArray:
    """Return the sum of vectors modulo 2**64: two's complement is the same for all widths below."""
    return np.asarray(np.array(vectors).view(np.uint64).sum(axis=0, dtype=np.uint64).view(np.int64))
