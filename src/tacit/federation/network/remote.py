"""The federation whose silos are on other machines: it agrees on a plan with them, and opens the rounds."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from typing import Final

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.federation.network.asking import Asker
from tacit.federation.network.channel import Channel
from tacit.federation.network.journal import KeptTerms, RoundFacts, RunHead, RunJournal
from tacit.federation.network.keys import OpeningKey, SigningKey
from tacit.federation.network.masked_rounds import MaskedRounds
from tacit.federation.network.proposing import PlanProposals, RunAsker
from tacit.federation.network.roster import Roster
from tacit.federation.network.rounds import RemoteRounds
from tacit.federation.network.shuffled_rounds import ShuffledRounds
from tacit.federation.network.shuffler_client import ShufflerDoor
from tacit.federation.participation import Everybody, Participation
from tacit.federation.plan import Plan
from tacit.federation.protocols import Terms, Weights
from tacit.federation.silos import SiloFederation
from tacit.ledger import Ledger
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel

__all__ = ["RemoteFederation"]

_DEADLINE: Final = 120.0


def _now() -> dt.datetime:
    return dt.datetime.now(dt.UTC)


class RemoteFederation(SiloFederation):
    """Silos of a roster that a channel reaches; `open` starts a run, or goes on with it.

    The same plan, seeds and silos give the same model as `InProcess`, bit for bit where answers are exact.

    Args:
        roster: Who takes part; the place of a silo is its index.
        key: The server's, for signatures.
        channel: How silos are reached.
        opening: The server's key for what silos have sealed to it.
        journal: Of the run, so that it can go on after a restart; None remembers it for this process.
        shuffler: The way to the shuffler, for shuffle trust.
        ledger: The trusted server's account, for central trust.
        data_ledger: The account of all records together, see `InProcess`.
        deadline: Seconds that a round waits for silos.
        at_least: How many of the silos that a round asks must answer; None is all of them. Under shuffle
            trust the plan's `n_min` says it.
        follow: Called with the facts of every round.
        rng: Server randomness for simulation; None is secret.
        public_seed: Of random participation in simulations; see `InProcess`.
        clock: Returns the time, with its zone.

    Raises:
        ParameterError: The key is not that of the roster, or a number is not allowed.
    """

    def __init__(
        self,
        roster: Roster,
        key: SigningKey,
        channel: Channel,
        *,
        opening: OpeningKey,
        journal: RunJournal | None = None,
        shuffler: ShufflerDoor | None = None,
        ledger: Ledger | None = None,
        data_ledger: Ledger | None = None,
        deadline: float = _DEADLINE,
        at_least: int | None = None,
        follow: Callable[[RoundFacts], None] | None = None,
        rng: np.random.Generator | None = None,
        public_seed: int | None = None,
        clock: Callable[[], dt.datetime] = _now,
    ) -> None:
        super().__init__(ledger=ledger, data_ledger=data_ledger, rng=rng, public_seed=public_seed)
        if key.public.to_text() != roster.server.verify:
            raise ParameterError("key must be the server's in the roster; it is another one.")
        if opening.public != roster.sealing_key:
            raise ParameterError("opening must belong to the key that the roster says to seal with.")
        check_positive("deadline", deadline)
        if at_least is not None:
            check_count("at_least", at_least, high=len(roster.silos))
        self._roster, self._key, self._clock = roster, key, clock
        self._asking = Asker(roster, key, channel, clock=clock)
        self._shuffler, self._opening = shuffler, opening
        self._deadline, self._at_least, self._follow = deadline, at_least, follow
        self._journal = RunJournal() if journal is None else journal
        self._kept: list[KeptTerms] | None = None

    @property
    def sizes(self) -> list[int]:
        """Public number of units of each silo."""
        return list(self._roster.sizes)

    def open(
        self,
        plan: Plan,
        *,
        run: str = "run",
        participation: Participation | None = None,
        weights: Weights = "records",
        budget: PrivacyBudget | None = None,
    ) -> RemoteRounds:
        """Have every silo consider a plan, then every one accept it; arguments as for `InProcess.open`.

        A run that its journal knows is gone on with: only a silo that has forgotten it, as the first round
        tells, is asked to accept it again.

        Raises:
            MissingSilosError: A silo does not reply, or refuses; none has accepted the plan, or all that did
                will accept it again at no cost.
            RefusalError: The journal is of another run.
        """
        shuffled, masked = self._shuffler_of(plan, run), self._masks_of(plan, run)
        head = self._head(plan, run, participation, weights, budget)
        self._kept = known = self._journal.terms(head)
        try:
            agreed = self._agree(plan, run, participation, weights, budget)
            if shuffled is not None:
                shuffled.begin(deadline=self._deadline)
            self._accept(agreed, budget)
            if known is None and self._kept is not None:
                self._journal.agree(head, self._kept)
            kept = self._kept or []
        finally:
            self._kept = None
        _, theirs = self._budgets(plan, budget)
        proposals = self._proposals(plan, run, theirs)
        return RemoteRounds(
            agreed,
            terms=kept,
            asking=RunAsker(self._asking, run, proposals=proposals, terms=kept),
            opening=self._opening,
            federation=self._roster.federation,
            journal=self._journal,
            shuffled=shuffled,
            masked=masked,
            deadline=self._deadline,
            at_least=self._at_least,
            follow=self._follow,
        )

    def _considered(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Terms]:
        """Have every silo check and price a plan; of a run that goes on, return what they said."""
        proposals = self._proposals(plan, run, budget)
        kept = proposals.propose("consider") if self._kept is None else self._kept
        return [proposals.terms(k, one) for k, one in enumerate(kept)]

    def _accepted(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Guarantee]:
        """Have every silo accept a plan."""
        proposals = self._proposals(plan, run, budget)
        if self._kept is None:
            self._kept = proposals.propose("accept")
        signed = plan.trust is not TrustModel.CENTRAL  # there the server promises, and signs
        return [proposals.terms(k, one, signed=signed).guarantee for k, one in enumerate(self._kept)]

    def _proposals(self, plan: Plan, run: str, budget: PrivacyBudget | None) -> PlanProposals:
        """Return what is proposed to silos."""
        return PlanProposals(
            plan,
            run,
            budget,
            roster=self._roster,
            asking=self._asking,
            deadline=self._deadline,
            clock=self._clock,
        )

    def _shuffler_of(self, plan: Plan, run: str) -> ShuffledRounds | None:
        """Return the way of shuffled rounds; refuse a plan for which there is none."""
        if plan.trust is not TrustModel.SHUFFLE:
            return None
        if self._shuffler is None:
            raise ParameterError("a plan of shuffle trust needs `shuffler`, the way to it.")
        return ShuffledRounds(
            plan, run, roster=self._roster, door=self._shuffler, key=self._key, opening=self._opening
        )

    def _masks_of(self, plan: Plan, run: str) -> MaskedRounds | None:
        """Return the way of rounds whose messages are added up unseen; refuse a plan without masks."""
        if plan.trust is not TrustModel.AGGREGATE:
            return None
        return MaskedRounds(plan, run, roster=self._roster, opening=self._opening, journal=self._journal)

    def _head(
        self,
        plan: Plan,
        run: str,
        participation: Participation | None,
        weights: Weights,
        budget: PrivacyBudget | None,
    ) -> RunHead:
        """Return what a run that goes on must have in common with what it was."""
        return RunHead(
            federation=self._roster.federation,
            run=run,
            plan=plan.digest(),
            silos=tuple((one.name, one.size) for one in self._roster.silos),
            weights=weights if isinstance(weights, str) else repr([float(one) for one in weights]),
            participation=repr(Everybody() if participation is None else participation),
            budget=None if budget is None else (budget.epsilon, budget.delta),
        )
