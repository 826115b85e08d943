"""The federation in one process: the deployed encode and decode, without the network between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from secrets import token_bytes
from threading import Lock

import numpy as np

from tacit.errors import LedgerError, ParameterError, RefusalError
from tacit.federation.circle import Circle
from tacit.federation.data_set import charge_data_set
from tacit.federation.participation import Everybody, Participation, asked_in, fewest_asked, public_seed
from tacit.federation.plan import Plan
from tacit.federation.protocols import Party, Traffic, Unsent, Weights
from tacit.federation.query import Query
from tacit.federation.server import Server
from tacit.federation.shuffler import Shuffler
from tacit.federation.store import SecretOf
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.randomness import secure

__all__ = ["InProcess", "InProcessRounds", "SiloDownError"]


_AT_ONCE = 32
"""Ledgers that wait for the disk together."""


class SiloDownError(ConnectionError):
    """A silo that was asked does not answer; the round goes on without it."""


class InProcess:
    """A federation of silos that are objects of this process; `open` starts a run.

    Args:
        parties: The parties, most often silos.
        ledger: The trusted server's account, for central trust.
        data_ledger: The account of all records together, charged first, under every trust model. Then
            whoever adds the noise must keep a ledger too: its stored answers are why a run is charged once.
        rng: Server randomness for simulation: noise under central trust. None is secret randomness.
        public_seed: Of random participation in simulations; None makes it from the names of run and plan, so
            that whoever goes on with the run asks the same silos again.
        is_down: For simulations: whether a silo is down in a round.
        shuffler_rng: Of the shuffler, under shuffle trust, for simulation; None is secret randomness.
    """

    def __init__(
        self,
        parties: Sequence[Party],
        *,
        ledger: Ledger | None = None,
        data_ledger: Ledger | None = None,
        rng: np.random.Generator | None = None,
        public_seed: int | None = None,
        is_down: Callable[[int, int], bool] | None = None,
        shuffler_rng: np.random.Generator | None = None,
    ) -> None:
        self._parties, self._shuffler_rng = list(parties), shuffler_rng
        self._ledger, self._data_ledger = ledger, data_ledger
        self._rng, self._public_seed, self._is_down = rng, public_seed, is_down

    @property
    def sizes(self) -> list[int]:
        """Public number of units of each party."""
        return [party.size for party in self._parties]

    def open(
        self,
        plan: Plan,
        *,
        run: str = "run",
        participation: Participation | None = None,
        weights: Weights = "records",
        budget: PrivacyBudget | None = None,
    ) -> InProcessRounds:
        """Make every party price and accept a plan, and reserve the price, before anything is asked.

        If one of them refuses the price, none has spent anything.

        Args:
            plan: Everything that will be asked.
            run: Name of the run in ledgers.
            participation: Which parties are asked in a round; None is everybody.
            weights: How parties count; `central` and `shuffle` trust count records.
            budget: What each party (the server, under central trust) agrees to spend on this plan.

        Returns:
            An `Ask` with the guarantees and the traffic of the run.

        Raises:
            ParameterError: The plan does not fit the parties or the weights.
            BudgetError: A price exceeds the budget or what a ledger has left.
            LedgerError: A ledger is about other neighbours, or knows the run with another plan; or, under
                shuffle trust, some parties keep a ledger and others do not.
            RefusalError: The plan has central trust or no noise, and a silo was not made with
                `trusts_server`; or shuffle trust, and it was not made with `trusts_shuffler`.
        """
        parties, chosen = self._parties, Everybody() if participation is None else participation
        central, theirs = self._budgets(plan, budget)
        self.consider(plan, run=run, participation=participation, weights=weights, budget=budget)
        server = self._server(plan, chosen, weights)
        simulated = self._simulates(plan)
        if self._data_ledger is not None:
            charge_data_set(self._data_ledger, plan, parties, run=run, server=self._ledger, rng=self._rng)
        prices = [
            party.accept(
                plan,
                party=k,
                run=run,
                budget=theirs,
                memory=None if self._ledger is None else SecretOf(self._ledger, run, k),
            )
            for k, party in enumerate(parties)
        ]
        if central:
            prices = [server.accept(run=run, budget=budget, ledger=self._ledger, simulated=simulated)]
        return InProcessRounds(
            parties,
            server,
            prices,
            shuffler=self._shuffler(plan, run),
            before_shuffling=self.before_shuffling(plan),
            participation=chosen,
            fewest=fewest_asked(chosen, len(parties)),
            public_seed=public_seed(run, plan.digest()) if self._public_seed is None else self._public_seed,
            is_down=self._is_down,
        )

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
        chosen = Everybody() if participation is None else participation
        fewest_asked(chosen, len(self._parties))
        central, theirs = self._budgets(plan, budget)
        self._check_accounts(plan)
        prices = [party.consider(plan, run=run, budget=theirs) for party in self._parties]
        server = self._server(plan, chosen, weights)
        if not central:
            return prices
        return [server.consider(run=run, budget=budget, ledger=self._ledger, simulated=self._simulates(plan))]

    def before_shuffling(self, plan: Plan) -> list[Guarantee]:
        """Return what each party's messages show before they are shuffled; nothing under other trust."""
        shuffled = plan.trust is TrustModel.SHUFFLE
        return [party.before_shuffling(plan) for party in self._parties] if shuffled else []

    def _shuffler(self, plan: Plan, run: str) -> Shuffler | None:
        """Return the shuffler of a run that has one."""
        if plan.trust is not TrustModel.SHUFFLE:
            return None
        return Shuffler(plan, run=run, rng=secure() if self._shuffler_rng is None else self._shuffler_rng)

    def _check_accounts(self, plan: Plan) -> None:
        """Refuse parties that come back with new noise beside others that do not: the old would stand out."""
        forgets = [party.name for party in self._parties if party.account is None]
        if plan.trust is TrustModel.SHUFFLE and 0 < len(forgets) < len(self._parties):
            raise LedgerError(
                f"silo {forgets[0]!r} must keep a ledger where others do: under shuffle trust it hides them, "
                "and would come back with other noise."
            )

    def _budgets(self, plan: Plan, budget: PrivacyBudget | None) -> tuple[bool, PrivacyBudget | None]:
        """Return whether a trusted server adds the noise, and what each party agrees to spend itself."""
        central = plan.trust is TrustModel.CENTRAL
        if self._ledger is not None and not central:
            raise ParameterError(
                "ledger is the trusted server's, under central trust; under local trust every silo keeps "
                "its own."
            )
        return central, None if central else budget  # the server's is of what it publishes

    def _server(self, plan: Plan, chosen: Participation, weights: Weights) -> Server:
        """Return the server's part of a run."""
        rng = secure() if self._rng is None else self._rng
        return Server(plan, self.sizes, weights=weights, uniform=chosen.uniform, rng=rng)

    def _simulates(self, plan: Plan) -> bool:
        """Whether a party's secret samples can be repeated."""
        return plan.samples and any(party.simulated for party in self._parties)


class InProcessRounds:
    """A run that all parties have accepted: calling it runs one round.

    The parties that take part answer, those that are down are left out, and the mean over those who answered
    is returned. That reveals nothing new: who answers is visible, and the number of units behind an answer is
    public, or planned where the true one is not. `InProcess.open` makes it.

    Attributes:
        guarantees: One in all under central trust, else one per party.
        guarantees_before_shuffling: One per party under shuffle trust, else none.
        traffic: Bits and answers so far.
    """

    def __init__(
        self,
        parties: Sequence[Party],
        server: Server,
        guarantees: list[Guarantee],
        *,
        shuffler: Shuffler | None,
        before_shuffling: list[Guarantee],
        participation: Participation,
        fewest: int,
        public_seed: int,
        is_down: Callable[[int, int], bool] | None,
    ) -> None:
        self._parties, self._server = list(parties), server
        self._accepted = [party.accepted for party in parties]
        self._participation, self._fewest, self._public_seed = participation, fewest, public_seed
        self._is_down = is_down
        self._lock = Lock()
        self._shuffler, self._session = shuffler, token_bytes(16)
        self.guarantees, self.guarantees_before_shuffling = guarantees, before_shuffling
        n = len(parties)
        self.traffic = Traffic(bits_up=np.zeros(n), answered=np.zeros(n, dtype=np.int64))

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Run one round and return the mean of every statistic, each of shape (dim,).

        A round that nobody answers is skipped: its means are zero, and points of walks stay. So is one that
        the shuffler gives up, because too few answer.

        Raises:
            RefusalError: The query is not one of the plan, or its step has been answered at another point.
        """
        query = Query(step, at, radius)
        known = self._server.released(query)
        if known is not None:
            return known
        asked = self._asked(step)
        if self._shuffler is not None:
            with self._lock:
                return self._shuffled(query, asked, self._shuffler)
        with self._lock:  # what a statistic keeps from round to round must not be read before it is stored
            answers = self._collect(query, asked)
        if not answers:
            self.traffic.skipped += 1
            return self._server.skip(query)
        return self._server.means(query, answers, asked=asked)

    def _shuffled(self, query: Query, asked: list[int], shuffler: Shuffler) -> tuple[Array, ...]:
        """Return the means of what the shuffler releases; nothing leaves a silo if too few are there."""
        present = self._present(query, asked)
        while shuffler.enough(len(present)):
            parties = [self._parties[k] for k in present]
            accounts = tuple(party.account for party in parties)
            session = self._session if None in accounts else b""
            circle = Circle(tuple(present), tuple(party.size for party in parties), accounts, session)
            prepared: dict[int, Unsent] = {}
            for k, party in zip(present, parties, strict=True):
                try:
                    prepared[k] = party.prepare(query, circle)
                except SiloDownError:
                    continue
            if len(prepared) < len(present):  # nobody has sent: others make a smaller circle
                present = list(prepared)
                continue
            answers = self._counted(_stored(prepared))
            if len(answers) < len(present):
                break  # what has arrived is bound to parties that are gone: nobody sees it
            batch = shuffler.release(query, circle, answers)
            return self._server.means_of_batch(query, batch, asked=asked)
        self.traffic.skipped += 1
        return self._server.skip(query)

    def _present(self, query: Query, asked: list[int]) -> list[int]:
        """Return the silos of a round that are not down; refuse those that have left the run."""
        up = [k for k in asked if self._is_down is None or not self._is_down(query.step, k)]
        for k in up:
            if self._parties[k].accepted is not self._accepted[k]:
                raise RefusalError(
                    f"silo {self._parties[k].name!r} has closed this run, or has accepted another one since."
                )
        return up

    def _asked(self, step: int) -> list[int]:
        """Return the silos of a round."""
        if type(self._participation) is Everybody:  # nothing to draw: a stream would be a sixth of a round
            return list(range(len(self._parties)))
        return asked_in(
            self._participation, step, len(self._parties), seed=self._public_seed, fewest=self._fewest
        )

    def _collect(self, query: Query, asked: list[int]) -> dict[int, bytes]:
        """Ask the silos of a round; return the answers of those that are up, and count the bits."""
        prepared: dict[int, Unsent] = {}
        for party in self._present(query, asked):
            try:
                prepared[party] = self._parties[party].prepare(query)
            except SiloDownError:
                continue
        return self._counted(_stored(prepared))

    def _counted(self, answers: dict[int, bytes]) -> dict[int, bytes]:
        """Return answers that are sent, and count their bits."""
        for party, answer in answers.items():
            self.traffic.bits_up[party] += 8 * len(answer)
            self.traffic.answered[party] += 1
        return answers


def _stored(prepared: Mapping[int, Unsent]) -> dict[int, bytes]:
    """Store what silos have computed; return what may be sent, when all of it is stored.

    Every ledger waits for the disk: once for all answers that it keeps, and for many files at the same time.
    """
    kept_in: dict[Ledger | None, dict[int, Unsent]] = {}
    for party, one in prepared.items():
        kept_in.setdefault(one.ledger, {})[party] = one
    if len(kept_in) <= 1:
        found = [_stored_together(*group) for group in kept_in.items()]
    else:
        with ThreadPoolExecutor(min(len(kept_in), _AT_ONCE)) as pool:
            found = list(pool.map(_stored_together, kept_in, kept_in.values()))
    answers = {party: answer for group in found for party, answer in group.items()}
    return {party: answers[party] for party in prepared if party in answers}


def _stored_together(ledger: Ledger | None, prepared: Mapping[int, Unsent]) -> dict[int, bytes]:
    """Store answers in one write; return those of silos that are not gone."""
    answers = {}
    with nullcontext() if ledger is None else ledger.together():
        for party, one in prepared.items():
            try:
                answers[party] = one.store()
            except SiloDownError:
                continue
    return answers
