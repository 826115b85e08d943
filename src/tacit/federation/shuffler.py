"""The shuffler between silos and server: it waits for enough parties, forgets who sent what, and mixes.

What it must do is all that the price of a shuffled plan rests on: it counts distinct parties and their rows,
gives a round up before anything leaves if they are too few, erases senders, and releases a batch of a round
once. The one here runs in the process of a simulation; a deployed one is a service of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from threading import Lock

import numpy as np

from tacit.errors import ParameterError, RefusalError
from tacit.federation.answers import answer_bytes, binding, digest_of_run, open_answer
from tacit.federation.circle import Circle
from tacit.federation.drawn import DrawnStep, drawn_by_words, read_word
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.means import Message, shuffle

__all__ = ["Batched", "Shuffler"]


@dataclass(frozen=True, kw_only=True)
class Batched:
    """What leaves a shuffler: messages without senders, and public numbers.

    Attributes:
        messages: Of every statistic, mixed.
        rows: Units behind every mean.
        parties: How many parties sent them.
    """

    messages: tuple[list[Message], ...]
    rows: int
    parties: int


class Shuffler:
    """Mixes the answers of the rounds of one run.

    It keeps the newest batch. Answers to earlier rounds, and to those of a process before this one, come out
    of the ledgers of the silos, or lie about: they say which query, circle and run they were made for, and
    make the same batch or none.

    Args:
        plan: What is asked.
        run: Name of the run, as silos have accepted it.
        rng: Draws permutations; the shuffler's own.
    """

    def __init__(self, plan: Plan, *, run: str = "run", rng: np.random.Generator) -> None:
        self._plan, self._schedule, self._rng = plan, plan.schedule(), rng
        self._run = digest_of_run(plan, run)
        self._lock = Lock()
        self._last: tuple[int, bytes, Batched] | None = None
        self._length = cache(self._length_of)

    def enough(self, parties: int) -> bool:
        """Whether so many parties may make a batch."""
        return parties >= self._plan.n_min

    def release(self, query: Query, circle: Circle, answers: Mapping[int, bytes]) -> Batched:
        """Return the batch of a round, mixed when it is asked for the first time.

        Args:
            query: What was asked.
            circle: Whose messages were to be mixed.
            answers: What they sent, by their index.

        Raises:
            RefusalError: Fewer parties than `n_min`, not the parties of the circle, fewer rows than the plan
                counts on; an answer that was made for another query, circle or run; or the newest round has
                been released at another point, or of another circle.
            ParameterError: An answer of another length or form than the plan's.
        """
        bound = binding(query, circle, self._run)
        with self._lock:
            if self._last is not None and self._last[0] == query.step:
                if self._last[1] != bound:
                    raise RefusalError(
                        f"step {query.step} has been released at another point, or of other parties."
                    )
                return self._last[2]
            batch = self._mixed(query, circle, answers, bound)
            self._last = (query.step, bound, batch)
            return batch

    def _mixed(self, query: Query, circle: Circle, answers: Mapping[int, bytes], bound: bytes) -> Batched:
        """Return the messages of a circle without senders."""
        if tuple(sorted(answers)) != circle.parties or not self.enough(len(answers)):
            raise RefusalError(
                f"a batch of {len(answers)} parties is not released: the plan needs {self._plan.n_min}, and "
                f"all {len(circle.parties)} that were to be mixed."
            )
        self._plan.check_honest(circle.sizes)
        kind = self._schedule.kind(query.step)
        step = self._schedule.steps[kind]
        opened: dict[int, tuple[list[Message], ...]] = {}
        for party, data in answers.items():
            # All rows of a size have one length: whoever sends another is no party of this plan.
            if len(data) != self._length(kind, circle.size_of[party]):
                raise ParameterError(f"party {party} sent an answer of another length than was asked.")
            opened[party] = open_answer(data, party=party, bound=bound)
            if len(opened[party]) != len(step.measures) + isinstance(step, DrawnStep):
                raise ParameterError(f"party {party} sent answers to other statistics than it was asked.")
        parties, fewest = list(opened), self._plan.n_min
        if isinstance(step, DrawnStep):
            words = {party: read_word(groups[-1], party=party) for party, groups in opened.items()}
            parties = drawn_by_words(step, words)
            fewest = len(parties)  # of whom there are enough to be drawn from
            if not parties:
                return Batched(messages=tuple([] for _ in step.measures), rows=0, parties=0)
        sent = [[m for party in parties for m in opened[party][k]] for k in range(len(step.measures))]
        mixed = tuple(shuffle(one, rng=self._rng, n_min=fewest) for one in sent)
        rows = sum(step.batch.size_for(circle.size_of[party]) for party in parties)
        return Batched(messages=mixed, rows=rows, parties=len(parties))

    def _length_of(self, kind: int, size: int) -> int:
        """Return the length of the answer of a silo of that size, which no data changes."""
        return answer_bytes(self._schedule.steps[kind], size)
