"""The rounds of a run whose silos are on other machines: those of `InProcess`, with a network between."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import (
    AuthenticationError,
    ParameterError,
    RefusalError,
)
from tacit.federation.network.asking import Replies
from tacit.federation.network.bodies import Answered, AskedRound, Closing
from tacit.federation.network.journal import KeptTerms, RoundFacts, RunJournal
from tacit.federation.network.keys import OpeningKey
from tacit.federation.network.masked_rounds import MaskedRounds
from tacit.federation.network.proposing import MissingSilosError, RunAsker, missing_silos
from tacit.federation.network.queries import encode_query
from tacit.federation.network.sealing import open_sealed, said_in
from tacit.federation.network.shuffled_rounds import ShuffledRounds
from tacit.federation.protocols import Traffic
from tacit.federation.query import Query
from tacit.federation.shuffler import Batched
from tacit.federation.silos import Agreed, Gathered, SiloRounds
from tacit.federation.summed import Summed
from tacit.numerics import Array, IntArray

__all__ = ["MissingSilosError", "RemoteRounds", "RemoteTraffic"]


@dataclass(kw_only=True)
class RemoteTraffic(Traffic):
    """What a run has sent, with all that stands around the answers.

    Attributes:
        bytes_up: Bytes that the server got of each silo, shape (parties,).
        bytes_down: Bytes that it sent to each, shape (parties,).
    """

    bytes_up: IntArray
    bytes_down: IntArray

    @classmethod
    def of(cls, parties: int) -> RemoteTraffic:
        """Return that of a run before its first round."""
        zeros = [np.zeros(parties, dtype=np.int64) for _ in range(3)]
        return cls(bits_up=np.zeros(parties), answered=zeros[0], bytes_up=zeros[1], bytes_down=zeros[2])

    def count(self, facts: RoundFacts) -> None:
        """Add what was sent in a round."""
        self.bits_up[list(facts.answered)] += facts.bits_up
        self.answered[list(facts.answered)] += 1
        self.bytes_up[list(facts.asked)] += facts.bytes_up
        self.bytes_down[list(facts.asked)] += facts.bytes_down


class RemoteRounds(SiloRounds):
    """A run that all silos of a `RemoteFederation` have accepted; `RemoteFederation.open` makes it.

    A round asks all of its silos at once, and those that do not reply again until the deadline. What is no
    answer of the silo that was asked is thrown away and counted; it never ends a run by itself.

    Attributes:
        terms: What silos said as they accepted the run, with their signatures.
        traffic: Bits and bytes so far, also of the rounds before a restart.
    """

    traffic: RemoteTraffic

    def __init__(
        self,
        agreed: Agreed,
        *,
        terms: Sequence[KeptTerms],
        asking: RunAsker,
        opening: OpeningKey,
        federation: str,
        journal: RunJournal,
        shuffled: ShuffledRounds | None,
        masked: MaskedRounds | None,
        deadline: float,
        at_least: int | None,
        follow: Callable[[RoundFacts], None] | None,
    ) -> None:
        super().__init__(agreed, RemoteTraffic.of(len(agreed.terms)))
        self.terms = list(terms)
        self._asking, self._journal, self._shuffled = asking, journal, shuffled
        self._opening, self._federation, self._masked = opening, federation, masked
        self._deadline, self._at_least, self._follow = deadline, at_least, follow
        self._away: set[int] = set()
        self._replies, self._answered, self._began = Replies(), dict[int, int](), 0.0
        self._round, self._skipped, self._why = list[int](), False, ""
        for facts in self.done:
            self.traffic.count(facts)
            self.traffic.skipped += facts.skipped

    @property
    def done(self) -> list[RoundFacts]:
        """What may be told of the rounds that are over, also of those before a restart."""
        return self._journal.rounds()

    def close(self, *, deadline: float = 10.0) -> None:
        """Tell all silos that the run is over; one that does not hear it loses nothing."""
        bodies = {k: Closing() for k in range(len(self._names))}
        self._asking.ask("close", bodies, deadline=deadline)

    def _known(self, query: Query) -> tuple[Array, ...] | None:
        """Return what the journal holds of a round."""
        known = self._journal.find(query)
        if known is None:
            super()._known(query)  # which refuses a step that a trusted server has answered at another point
        return known

    def _gather(self, query: Query, asked: list[int]) -> Gathered:
        """Ask silos over the channel; return their answers, or what was made of them."""
        self._began, self._round = time.monotonic(), asked
        self._answered, self._replies, self._why = {}, Replies(), ""
        if not self._by_itself(query):  # who answers alone has all its noise, and hides among nobody
            if self._shuffled is not None:
                return self._mixed(query, asked, self._shuffled)
            if self._masked is not None:
                return self._summed(query, asked, self._masked)
        needed, encoded = self._needed(asked), encode_query(query)
        bodies = {k: AskedRound(encoded) for k in self._reachable(asked, needed)}
        found = self._asking.ask("ask", bodies, deadline=self._deadline, enough=needed)
        self._replies = replies = Replies().then(found, wanted=Answered)
        answers = self._unsealed(query.step, replies)
        self._away = set(bodies) - set(answers) - set(replies.refused)
        self._check_enough(query, answers, needed)
        return answers

    def _summed(self, query: Query, asked: list[int], masked: MaskedRounds) -> Summed | None:
        """Have silos answer under masks, and open the sum; without recovery all of them are needed."""
        plan = self._agreed.plan
        here, n_min = list(self._reachable(asked, plan.n_min)), plan.n_min
        came: Collection[int] = ()

        def exchange(stage: str, data: Mapping[int, bytes]) -> dict[int, bytes]:
            nonlocal came
            reached = {k: sent for k, sent in data.items() if k in here}
            found, said = masked.ask(
                stage, reached, self._asking, deadline=self._deadline, all_needed=not plan.recover
            )
            self._replies.count(said)
            self._away |= set(reached) - set(found) - set(said.refused)
            if plan.recover:  # who is silent at one stage is not waited for at the next
                here[:] = [k for k in here if k not in reached or k in found]
            came = found
            return found

        self._away = set(asked) - set(here)
        if not masked.prepare(query.step, exchange):
            if not plan.recover:
                self._check_enough(query, dict.fromkeys(came), len(asked))
            self._why = f"fewer than {n_min} silos have agreed on masks"
            return None
        bodies = {k: AskedRound(encode_query(query)) for k in here if k in masked.ready(query.step)}
        found = self._asking.ask("ask", bodies, deadline=self._deadline, enough=n_min)
        replies = Replies().then(found, wanted=Answered)
        answers = self._unsealed(query.step, replies)
        for k in [k for k, answer in answers.items() if not masked.reads(query, k, answer)]:
            replies.dropped[k] += 1
            del answers[k]
        self._replies.count(replies)
        self._away |= set(bodies) - set(answers) - set(replies.refused)
        if not plan.recover:
            self._check_enough(query, answers, len(asked))
        try:
            opened = masked.open(query, answers, exchange)
        except RefusalError as error:
            self._why = str(error)
            return None
        if opened is None:
            self._why = f"fewer than {n_min} silos have answered, signed and helped to open the sum"
            return None
        self._answered = {k: 8 * len(answers[k]) for k in opened.parties}
        return opened

    def _unsealed(self, step: int, replies: Replies) -> dict[int, bytes]:
        """Return what silos have sealed in their replies; what does not open is thrown away."""
        answers = {}
        for k, body in replies.bodies.items():
            about = said_in(federation=self._federation, run=self._agreed.run, step=step, silo=self._names[k])
            try:
                answers[k] = open_sealed(body.sealed, key=self._opening, info=about)
            except AuthenticationError:
                replies.dropped[k] += 1
        return answers

    def _mixed(self, query: Query, asked: list[int], shuffled: ShuffledRounds) -> Batched | None:
        """Have the silos of a round send their answers to the shuffler; return what it releases."""
        here = self._reachable(asked, self._agreed.plan.n_min)
        circle, known = self._journal.circle(query, tuple(here if shuffled.enough(here) else asked))
        accounts = {k: self._agreed.terms[k].account for k in circle}
        found = shuffled.round(query, accounts, self._asking, known=known, deadline=self._deadline)
        self._replies = found.replies
        self._away = set(found.replies.down) - set(found.replies.bodies) - set(found.replies.refused)
        self._answered = {k: shuffled.bits(query.step, k) for k in found.replies.bodies}
        self._why = found.why
        return found.batch

    def _means(self, query: Query, found: Gathered, asked: list[int]) -> tuple[Array, ...]:
        """Return the means; answers of another form than the plan's are thrown away."""
        if isinstance(found, Batched):
            found = self._readable(query, found, asked)
        self._skipped = not found
        if not isinstance(found, dict):
            return super()._means(query, found, asked)
        try:
            means = super()._means(query, found, asked)
        except (ParameterError, ValueError, OverflowError):
            good = {k: answer for k, answer in found.items() if self._server.reads(query, k, answer)}
            if len(good) == len(found):
                raise
            self._replies.dropped.update(found.keys() - good.keys())
            self._check_enough(query, good, self._needed(asked))
            found = good
            means = super()._means(query, found, asked)
        self._answered = {k: 8 * len(answer) for k, answer in found.items()}
        return means

    def _readable(self, query: Query, batch: Batched, asked: list[int]) -> Batched | None:
        """Return a batch of which there is a mean; else nobody can say whose message is at fault."""
        if batch.rows == 0:
            self._why = "nobody was drawn"
            return None
        try:
            self._server.means_of_batch(query, batch, asked=asked)
        except (ParameterError, ValueError, OverflowError) as error:
            self._why = str(error)
            return None
        return batch

    def _done(self, query: Query, means: tuple[Array, ...]) -> tuple[Array, ...]:
        """Write the round down, and tell whoever follows."""
        replies, names, asked = self._replies, self._names, tuple(self._round)
        facts = RoundFacts(
            step=query.step,
            asked=asked,
            answered=tuple(self._answered),
            refused={names[k]: code.value for k, code in replies.refused.items()},
            dropped={names[k]: many for k, many in replies.dropped.items() if many},
            bits_up=tuple(self._answered.values()),
            bytes_up=tuple(replies.up[k] for k in asked),
            bytes_down=tuple(replies.down[k] for k in asked),
            seconds=time.monotonic() - self._began,
            skipped=self._skipped,
            why=self._why,
        )
        self._journal.keep(query, means, facts)
        self.traffic.count(facts)
        if self._follow is not None:
            self._follow(facts)
        return means

    def _needed(self, asked: list[int]) -> int:
        """Return how many of the silos of a round must answer."""
        return len(asked) if self._at_least is None else min(self._at_least, len(asked))

    def _check_enough(self, query: Query, answers: Mapping[int, object], needed: int) -> None:
        """Refuse to go on with too few; the round is asked again when the run goes on."""
        if len(answers) < needed:
            raise missing_silos(
                f"answer round {query.step}",
                [self._names[k] for k in self._round if k not in answers],
                {self._names[k]: code for k, code in self._replies.refused.items()},
                came=len(answers),
                needed=needed,
            )

    def _reachable(self, asked: list[int], needed: int) -> list[int]:
        """Return whom to ask: not those that missed the last round and are not back, if others do."""
        if not self._away:
            return asked
        here = [k for k in asked if k not in self._away or k in self._asking.present()]
        return here if len(here) >= needed else asked
