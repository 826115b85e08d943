"""What every federation of silos does, wherever they are: agree on a plan, then run its rounds."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock

import numpy as np

from tacit.errors import LedgerError, ParameterError
from tacit.federation.data_set import charge_data_set
from tacit.federation.participation import Everybody, Participation, asked_in, fewest_asked, public_seed
from tacit.federation.plan import Plan
from tacit.federation.protocols import Terms, Traffic, Weights
from tacit.federation.query import Query
from tacit.federation.server import Server
from tacit.federation.shuffler import Batched
from tacit.federation.steps import TurnWalk
from tacit.federation.summed import Summed
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.randomness import secure

__all__ = ["Agreed", "Gathered", "SiloFederation", "SiloRounds", "check_all_take_part"]


@dataclass(frozen=True, kw_only=True)
class Agreed:
    """A run that everybody has accepted, before its first round.

    Attributes:
        plan: What will be asked.
        run: Name of the run.
        server: The server's part.
        terms: Of every silo.
        guarantees: One in all under central trust, else one per silo.
        participation: Which silos are asked in a round.
        fewest: How many of them at least.
        public_seed: Of who is asked.
    """

    plan: Plan
    run: str
    server: Server
    terms: list[Terms]
    guarantees: list[Guarantee]
    participation: Participation
    fewest: int
    public_seed: int


class SiloFederation(ABC):
    """Silos that accept a plan together or not at all. How they are reached is left to subclasses.

    Args:
        ledger: The trusted server's account, for central trust.
        data_ledger: The account of all records together, charged first, under every trust model. Then
            whoever adds the noise must keep a ledger too: its stored answers are why a run is charged once.
        rng: Server randomness for simulation: noise under central trust. None is secret randomness.
        public_seed: Of random participation in simulations; None makes it from the names of run and plan, so
            that whoever goes on with the run asks the same silos again.
    """

    def __init__(
        self,
        *,
        ledger: Ledger | None,
        data_ledger: Ledger | None,
        rng: np.random.Generator | None,
        public_seed: int | None,
    ) -> None:
        self._ledger, self._data_ledger = ledger, data_ledger
        self._rng, self._public_seed = rng, public_seed

    @property
    @abstractmethod
    def sizes(self) -> list[int]:
        """Public number of units of each silo."""

    @abstractmethod
    def _considered(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Terms]:
        """Have every silo check and price a plan; nothing is reserved."""

    @abstractmethod
    def _accepted(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Guarantee]:
        """Have every silo accept a plan that all have considered."""

    def consider(
        self,
        plan: Plan,
        *,
        run: str = "run",
        participation: Participation | None = None,
        weights: Weights = "records",
        budget: PrivacyBudget | None = None,
    ) -> list[Guarantee]:
        """Check and price a plan as `open` does, and reserve nothing.

        Returns:
            What the run would guarantee: one in all under central trust, else one per party.

        Raises:
            TacitError: As in `open`.
        """
        return self._agree(plan, run, participation, weights, budget).guarantees

    def _agree(
        self,
        plan: Plan,
        run: str,
        participation: Participation | None,
        weights: Weights,
        budget: PrivacyBudget | None,
    ) -> Agreed:
        """Have a plan considered by everybody."""
        sizes, chosen = self.sizes, Everybody() if participation is None else participation
        check_all_take_part(plan, chosen)
        fewest = fewest_asked(chosen, len(sizes))
        central, theirs = self._budgets(plan, budget)
        terms = self._considered(plan, run=run, budget=theirs)
        _check_accounts(plan, terms)
        rng = secure() if self._rng is None else self._rng
        server = Server(plan, sizes, weights=weights, uniform=chosen.uniform, rng=rng)
        prices = [one.guarantee for one in terms]
        if central:
            simulated = _samples_repeat(plan, terms)
            prices = [server.consider(run=run, budget=budget, ledger=self._ledger, simulated=simulated)]
        seed = public_seed(run, plan.digest()) if self._public_seed is None else self._public_seed
        return Agreed(
            plan=plan,
            run=run,
            server=server,
            terms=terms,
            guarantees=prices,
            participation=chosen,
            fewest=fewest,
            public_seed=seed,
        )

    def _accept(self, agreed: Agreed, budget: PrivacyBudget | None) -> None:
        """Reserve the price of a considered plan: first of all records, then at every silo, or the server."""
        plan, run, terms = agreed.plan, agreed.run, agreed.terms
        central, theirs = self._budgets(plan, budget)
        if self._data_ledger is not None:
            charge_data_set(self._data_ledger, plan, terms, run=run, server=self._ledger, rng=self._rng)
        prices = self._accepted(plan, run=run, budget=theirs)
        if central:
            simulated = _samples_repeat(plan, terms)
            prices = [agreed.server.accept(run=run, budget=budget, ledger=self._ledger, simulated=simulated)]
        agreed.guarantees[:] = prices

    def _budgets(self, plan: Plan, budget: PrivacyBudget | None) -> tuple[bool, PrivacyBudget | None]:
        """Return whether a trusted server adds the noise, and what each silo agrees to spend itself."""
        central = plan.trust is TrustModel.CENTRAL
        if self._ledger is not None and not central:
            raise ParameterError(
                "ledger is the trusted server's, under central trust; under local trust every silo keeps "
                "its own."
            )
        return central, None if central else budget  # the server's is of what it publishes


Gathered = dict[int, bytes] | Batched | Summed | None
"""Answers of silos in their order, or what a shuffler or a sum has made of them; None skips a round."""


class SiloRounds(ABC):
    """A run that all silos have accepted: calling it runs one round.

    The silos that take part answer, those that are down are left out, and the mean over those who answered
    is returned. That reveals nothing new: who answers is visible, and the number of units behind an answer is
    public, or planned where the true one is not.

    Attributes:
        guarantees: One in all under central trust, else one per silo.
        guarantees_alone: One per silo under shuffle and aggregate trust, else none.
        traffic: Bits and answers so far.
    """

    def __init__(self, agreed: Agreed, traffic: Traffic) -> None:
        self._agreed, self._server, self._lock = agreed, agreed.server, Lock()
        self._names = [one.name for one in agreed.terms]
        walks = any(step.alone for step, _ in agreed.plan.kinds)
        self._schedule = agreed.plan.schedule() if walks else None
        self.guarantees: list[Guarantee] = agreed.guarantees
        self.guarantees_alone = [one.alone for one in agreed.terms if one.alone is not None]
        self.traffic = traffic

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Run one round and return the mean of every statistic, each of shape (dim,).

        A round that nobody answers is skipped: its means are zero, and points of walks stay. So is one that
        a shuffler gives up, or of which no sum is opened, because too few answer.

        Raises:
            RefusalError: The query is not one of the plan, or its step has been answered at another point.
        """
        query = Query(step, at, radius)
        with self._lock:  # what a statistic keeps from round to round must not be read before it is stored
            known = self._known(query)
            if known is not None:
                return known
            asked = self._asked(step)
            found = self._gather(query, asked)
            return self._done(query, self._means(query, found, asked))

    @abstractmethod
    def _gather(self, query: Query, asked: list[int]) -> Gathered:
        """Ask silos; return their answers in their order, or what was made of all of them; nothing skips."""

    def _means(self, query: Query, found: Gathered, asked: list[int]) -> tuple[Array, ...]:
        """Return the means of what was gathered."""
        if not found or (isinstance(found, Batched) and found.rows == 0):  # or nobody was drawn
            self.traffic.skipped += 1
            return self._server.skip(query)
        if isinstance(found, Summed):
            return self._server.means_of_sum(query, found.total, found.parties)
        if isinstance(found, Batched):
            return self._server.means_of_batch(query, found, asked=asked)
        return self._server.means(query, found, asked=asked)

    def _by_itself(self, query: Query) -> bool:
        """Whether one silo answers by itself, so that nothing is mixed or added up."""
        return self._schedule is not None and self._schedule.step(query.step).alone

    def _known(self, query: Query) -> tuple[Array, ...] | None:
        """Return what this query has been answered with; None if the step is new."""
        return self._server.released(query)

    def _done(self, query: Query, means: tuple[Array, ...]) -> tuple[Array, ...]:  # noqa: ARG002
        """Return the means of a round that is over."""
        return means

    def _asked(self, step: int) -> list[int]:
        """Return the silos of a round."""
        agreed, n = self._agreed, len(self._names)
        if self._schedule is not None:
            kind, earlier = self._schedule.place(step)
            one = self._schedule.steps[kind]
            if isinstance(one, TurnWalk):
                return [one.turn(earlier, n)]
        if type(agreed.participation) is Everybody:  # nothing to draw: a stream would be a sixth of a round
            return list(range(n))
        return asked_in(agreed.participation, step, n, seed=agreed.public_seed, fewest=agreed.fewest)


def check_all_take_part(plan: Plan, participation: Participation) -> None:
    """Refuse rounds of aggregate trust that leave parties out: their noise is in the price."""
    if plan.trust is TrustModel.AGGREGATE and type(participation) is not Everybody:
        raise ParameterError(
            "participation must be left out under aggregate trust, where all parties add a share of the "
            f"noise in every round; got {type(participation).__name__}."
        )


def _check_accounts(plan: Plan, terms: Sequence[Terms]) -> None:
    """Refuse silos that come back with new noise beside others that do not: the old would stand out."""
    forgets = [one.name for one in terms if one.account is None]
    if plan.hides_among_others and 0 < len(forgets) < len(terms):
        raise LedgerError(
            f"silo {forgets[0]!r} must keep a ledger where others do: under {plan.trust.value} trust it "
            "hides them, and would come back with other noise."
        )


def _samples_repeat(plan: Plan, terms: Sequence[Terms]) -> bool:
    """Whether a silo's secret samples can be repeated."""
    return plan.samples and any(one.simulated for one in terms)
