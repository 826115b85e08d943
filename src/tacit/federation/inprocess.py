"""The federation in one process: the deployed encode and decode, without the network between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from secrets import token_bytes
from typing import TYPE_CHECKING

import numpy as np

from tacit.errors import ParameterError, RefusalError
from tacit.federation.circle import Circle
from tacit.federation.joined import join_sums
from tacit.federation.participation import Participation
from tacit.federation.plan import Plan
from tacit.federation.protocols import Party, Terms, Traffic, Unsent, Weights
from tacit.federation.query import Query
from tacit.federation.shuffler import Shuffler
from tacit.federation.silo import Silo
from tacit.federation.silos import Agreed, Gathered, SiloFederation, SiloRounds
from tacit.federation.store import SecretOf
from tacit.federation.summed import SummedRounds, UnmaskedSums
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.randomness import secure

if TYPE_CHECKING:
    from tacit.federation.masking.roster import MaskingRoster

__all__ = ["InProcess", "InProcessRounds", "SiloDownError"]


_AT_ONCE = 32
"""Ledgers that wait for the disk together."""


class SiloDownError(ConnectionError):
    """A silo that was asked does not answer; the round goes on without it."""


class InProcess(SiloFederation):
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
        masks: The roster that plans of aggregate trust name, whose silos hide their messages as they would
            between machines; None for plans that name none, whose messages are added up in the open.
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
        masks: MaskingRoster | None = None,
    ) -> None:
        super().__init__(ledger=ledger, data_ledger=data_ledger, rng=rng, public_seed=public_seed)
        self._parties, self._shuffler_rng, self._masks = list(parties), shuffler_rng, masks
        self._is_down = is_down

    @property
    def sizes(self) -> list[int]:
        """Public number of units of each party."""
        return [party.size for party in self._parties]

    @property
    def names(self) -> list[str]:
        """Name of each party."""
        return [party.name for party in self._parties]

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
            participation: Which parties are asked in a round; None is everybody, as aggregate trust needs.
            weights: How parties count; `central`, `aggregate` and `shuffle` trust count records.
            budget: What each party (the server, under central trust) agrees to spend on this plan.

        Returns:
            An `Ask` with the guarantees and the traffic of the run.

        Raises:
            ParameterError: The plan does not fit the parties or the weights.
            BudgetError: A price exceeds the budget or what a ledger has left.
            LedgerError: A ledger is about other neighbours, or knows the run with another plan; or, under
                shuffle trust, some parties keep a ledger and others do not.
            RefusalError: The plan has central trust or no noise, and a silo was not made with
                `trusts_server`; or shuffle trust, and it was not made with `trusts_shuffler`; or it names a
                roster that the silo does not know.
        """
        sums = self._sums(plan, run)
        agreed = self._agree(plan, run, participation, weights, budget)
        self._accept(agreed, budget)
        return InProcessRounds(
            self._parties, agreed, shuffler=self._shuffler(plan, run), sums=sums, is_down=self._is_down
        )

    @property
    def holds_silos(self) -> bool:
        """Whether all parties are silos of this process, whose owners may read what they keep."""
        return all(isinstance(party, Silo) for party in self._parties)

    def kept(self, statistic: str) -> list[Array]:
        """Return what a stateful statistic keeps in each silo, where one process holds all of them.

        Raises:
            ParameterError: A party is no silo, or keeps nothing of that name.
        """
        if not self.holds_silos:
            raise ParameterError("what parties keep can be read where all of them are silos of this process.")
        return [party.kept(statistic) for party in self._parties if isinstance(party, Silo)]

    def alone(self, plan: Plan) -> list[Guarantee]:
        """Return what each party's messages show alone, under shuffle and aggregate trust; else nothing."""
        return [party.alone(plan) for party in self._parties] if plan.hides_among_others else []

    def _considered(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Terms]:
        """Have every party check and price a plan."""
        prices = [party.consider(plan, run=run, budget=budget) for party in self._parties]
        shown = self.alone(plan)
        return [
            Terms(
                name=party.name,
                size=party.size,
                account=party.account,
                simulated=party.simulated,
                guarantee=price,
                alone=shown[k] if shown else None,
            )
            for k, (party, price) in enumerate(zip(self._parties, prices, strict=True))
        ]

    def _accepted(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> list[Guarantee]:
        """Have every party accept a plan."""
        return [
            party.accept(
                plan,
                party=k,
                run=run,
                budget=budget,
                memory=None if self._ledger is None else SecretOf(self._ledger, run, k),
            )
            for k, party in enumerate(self._parties)
        ]

    def _shuffler(self, plan: Plan, run: str) -> Shuffler | None:
        """Return the shuffler of a run that has one."""
        if plan.trust is not TrustModel.SHUFFLE:
            return None
        return Shuffler(plan, run=run, rng=secure() if self._shuffler_rng is None else self._shuffler_rng)

    def _sums(self, plan: Plan, run: str) -> SummedRounds | None:
        """Return how the sums of a plan are opened; None where it asks for none."""
        if plan.trust is not TrustModel.AGGREGATE:
            return None
        if not plan.roster:
            return SummedRounds(plan, UnmaskedSums(plan.parties, plan.n_min))
        if self._masks is None:
            raise ParameterError("a plan that names a roster needs `masks`, the roster.")
        from tacit.federation.masking.opener import opener_of  # an extra: most runs have no masks

        return SummedRounds(plan, opener_of(plan, run, self._masks))


class InProcessRounds(SiloRounds):
    """A run that all parties of an `InProcess` have accepted; `InProcess.open` makes it."""

    def __init__(
        self,
        parties: Sequence[Party],
        agreed: Agreed,
        *,
        shuffler: Shuffler | None,
        sums: SummedRounds | None,
        is_down: Callable[[int, int], bool] | None,
    ) -> None:
        n = len(parties)
        super().__init__(agreed, Traffic(bits_up=np.zeros(n), answered=np.zeros(n, dtype=np.int64)))
        self._parties, self._is_down = list(parties), is_down
        self._accepted = [party.accepted for party in parties]
        self._shuffler, self._session = shuffler, token_bytes(16)
        self._sums = sums

    def _gather(self, query: Query, asked: list[int]) -> Gathered:
        """Return what the parties of a round answer, or what is made of all of it."""
        plan = self._agreed.plan
        if self._by_itself(query):
            return self._collect(query, asked)
        if self._sums is not None:
            ask = self._bound if plan.has_circles else self._hidden
            return self._sums.round(
                query,
                partial(self._exchange, query.step),
                lambda ready: ask(query, [k for k in asked if k in ready]),
            )
        if self._shuffler is None:
            return self._collect(query, asked)
        found = self._together(query, asked)
        return None if found is None else self._shuffler.release(query, *found)

    def _bound(self, query: Query, asked: list[int]) -> dict[int, bytes]:
        """Return messages that are added up in the open, all bound to one another, or none."""
        found = self._together(query, asked)
        return {} if found is None else found[1]

    def _hidden(self, query: Query, asked: list[int]) -> dict[int, bytes]:
        """Return masked messages, or none where too few parties are there for a sum."""
        present = self._present(query, asked)
        return self._collect(query, present) if len(present) >= self._agreed.plan.n_min else {}

    def _exchange(self, step: int, stage: str, data: Mapping[int, bytes]) -> dict[int, bytes]:
        """Reach parties for a stage of the protocol by which sums are opened; count the bits of replies."""
        replies = {}
        for k, body in data.items():
            if self._is_down is not None and self._is_down(step, k):
                continue
            try:
                replies[k] = self._parties[k].exchange(stage, body)
            except SiloDownError:
                continue
            self.traffic.bits_up[k] += 8 * len(replies[k])
        return replies

    def _together(self, query: Query, asked: list[int]) -> tuple[Circle, dict[int, bytes]] | None:
        """Return answers that are bound to one another; nothing leaves a silo if too few are there."""
        present = self._present(query, asked)
        while len(present) >= self._agreed.plan.n_min:
            parties = [self._parties[k] for k in present]
            accounts = tuple(party.account for party in parties)
            session = self._session if None in accounts else b""
            circle = Circle(tuple(present), tuple(party.size for party in parties), accounts, session)
            prepared: dict[int, Unsent] = {}
            join_sums(query, parties, circle)
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
            return circle, answers
        return None

    def _present(self, query: Query, asked: list[int]) -> list[int]:
        """Return the silos of a round that are not down; refuse those that have left the run."""
        up = [k for k in asked if self._is_down is None or not self._is_down(query.step, k)]
        for k in up:
            if self._parties[k].accepted is not self._accepted[k]:
                raise RefusalError(
                    f"silo {self._parties[k].name!r} has closed this run, or has accepted another one since."
                )
        return up

    def _collect(self, query: Query, asked: list[int]) -> dict[int, bytes]:
        """Ask the silos of a round; return the answers of those that are up, and count the bits."""
        prepared: dict[int, Unsent] = {}
        present = self._present(query, asked)
        join_sums(query, [self._parties[k] for k in present])
        for party in present:
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
