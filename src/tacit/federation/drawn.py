"""Rounds of means over some of the parties, of whom nobody learns who they are but the shuffler.

Every party answers, and its answer holds a word that it drew at random and that only the shuffler reads. Of
a fixed number of parties those with the smallest words are mixed; where parties join by themselves, those
whose word is small enough. A shuffler that has forgotten a round draws the same again from the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Self

import msgspec
import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, check_count
from tacit.federation.batches import Disjoint, Fixed, Poisson
from tacit.federation.measures import Kind
from tacit.means import Message
from tacit.numerics import IntArray
from tacit.privacy import Event, NonPrivate, TrustModel
from tacit.privacy.shuffling import drawn_round, self_drawn_round

__all__ = ["DrawnStep", "draw_parties", "drawn_by_words", "new_word", "read_word"]

_WORD_BITS = 64
_ALL = 2.0**64


class DrawnStep(Kind, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="drawn-means"):
    """A kind of round in which the means of some parties leave the shuffler, a secret sample of all.

    Each of them uses a batch of its units, as in `Step`. A round of few parties costs less, because it is
    hidden who was in it; how many they were is not.

    Attributes:
        measures: The means, all of one batch, under shuffle trust.
        batch: Which units of a drawn party take part: full, or fixed. `Fixed(size=1)` costs the least.
        honest: Units behind every mean whose parties are honest, at least; where parties join by themselves,
            those of one party.
        parties: Who is drawn, afresh in every round: `Fixed(size=k)` of all that arrive, or each with the
            probability of `Poisson(rate=q)`.
        among: Honest parties of whom they are drawn, at least: n_min - colluding of the plan.
        colluding: Drawn parties that hide nobody, at most.
    """

    parties: Fixed | Poisson
    among: int = 0
    colluding: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.trust is not TrustModel.SHUFFLE:
            raise ParameterError(
                f"parties are drawn in secret under shuffle trust only, got {self.trust.value}: whoever sees "
                "who answers knows who was drawn."
            )
        if isinstance(self.batch, Disjoint):
            raise ParameterError(
                "batch must not be disjoint where parties are drawn: who is drawn again would go on where it "
                "was, and rounds are priced as independent."
            )
        size, rate = self.parties.size, self.parties.rate
        if isinstance(self.parties, Fixed) and size is None:
            raise ParameterError(f"parties of a fixed number need a size, got the rate {rate!r}.")
        if isinstance(self.parties, Poisson) and rate is None:
            raise ParameterError(f"parties that join by themselves need a rate, got the size {size!r}.")
        check_count("among", self.among, low=0, high=LARGEST_COUNT)
        check_count("colluding", self.colluding, low=0, high=LARGEST_COUNT)

    @property
    def drawn(self) -> int | None:
        """k, or None where parties join by themselves."""
        return self.parties.size

    @property
    def rate(self) -> float:
        """Share of the parties that are drawn, of the fewest that may arrive, or on average."""
        if self.parties.rate is not None:
            return self.parties.rate
        return min((self.parties.size or 1) / max(self.among + self.colluding, 1), 1.0)

    def honest_rows(self, sizes: Sequence[int], fewest: int) -> int:  # noqa: ARG002 - of those that are drawn
        """Return how many rows are in the smallest batches: of k - colluding parties, or of one."""
        return super().honest_rows(sizes, 1 if self.drawn is None else max(self.drawn - self.colluding, 0))

    def counting_on(self, sizes: Sequence[int], *, n_min: int, colluding: int) -> Self:
        """Return the kind of round with what its price may count on."""
        counted = msgspec.structs.replace(self, among=n_min - colluding, colluding=colluding)
        counted.check_arrivals(n_min, colluding)
        return msgspec.structs.replace(counted, honest=counted.honest_rows(sizes, n_min - colluding))

    def check_arrivals(self, n_min: int, colluding: int) -> None:
        """Refuse more parties than arrive for sure, or so few that all may collude."""
        if self.drawn is not None and not colluding < self.drawn <= n_min:
            raise ParameterError(
                f"parties must be above the {colluding} that may collude and at most n_min ({n_min}), the "
                f"fewest that arrive, got {self.drawn}."
            )
        if not 1 <= self.among <= n_min - colluding:
            raise ParameterError(
                f"among must be from 1 to n_min - colluding ({n_min - colluding}), got {self.among}."
            )
        if self.colluding < colluding:
            raise ParameterError(
                f"colluding must be at least the {colluding} of the plan, got {self.colluding}."
            )

    def event(self, sizes: Sequence[int], trust: TrustModel) -> Event:
        """Return what one round costs: for messages with their senders, that of a batch of a party."""
        if trust is not TrustModel.SHUFFLE:
            return super().event(sizes, trust)
        if isinstance(self.joint(max(self.honest, 1), trust), NonPrivate):
            return NonPrivate(self.neighbours)
        # Only with one unit of every party, whatever its size, are samples of parties and of units one.
        single = isinstance(self.batch, Fixed) and self.batch.size == 1
        worst = min(sizes) if single else max(sizes, key=lambda n: self.batch.size_for(n) / n)
        units = {"records": worst, "sampled": self.batch.size_for(worst)}
        if self.drawn is None:
            return self_drawn_round(
                lambda joined: self.joint(joined * self.honest, trust),
                clients=self.among,
                rate=self.rate,
                whole=not single,
                **units,
            )
        return drawn_round(
            lambda _: self.joint(self.honest, trust),
            clients=max(self.among, self.drawn),
            drawn=self.drawn,
            whole=not single,
            **units,
        )


def new_word(rng: np.random.Generator) -> Message:
    """Return the word by which a party is drawn: 64 bits of its own randomness."""
    return Message(payload=rng.integers(-(2**63), 2**63, size=1, dtype=np.int64), width=_WORD_BITS)


def read_word(messages: Sequence[Message], *, party: int) -> int:
    """Return the word of a party, from 0 to 2**64 - 1.

    Raises:
        ParameterError: Not one message of one number of 64 bits.
    """
    sent = messages[0] if len(messages) == 1 else None
    if sent is None or sent.width != _WORD_BITS or sent.payload.shape != (1,):
        raise ParameterError(f"party {party} must send one word of 64 bits, by which it is drawn.")
    return int(sent.payload[0]) + 2**63


def drawn_by_words(step: DrawnStep, words: Mapping[int, int]) -> list[int]:
    """Return the parties that are drawn, increasing; of equal words the smaller index, once in 2**64."""
    if step.drawn is None:
        most = math.floor(step.rate * _ALL)  # the rate itself, but for less than 2**-64
        return sorted(party for party, word in words.items() if word < most)
    return sorted(sorted(words, key=lambda party: (words[party], party))[: step.drawn])


def draw_parties(step: DrawnStep, present: IntArray, rng: np.random.Generator) -> IntArray:
    """Return which of the parties that arrive are drawn, increasing: the law of `drawn_by_words`."""
    if step.drawn is None:
        return present[rng.random(len(present)) < step.rate]
    return np.sort(rng.choice(present, step.drawn, replace=False))
