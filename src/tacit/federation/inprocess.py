"""The federation in one process: the deployed encode and decode, without the network between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, RefusalError
from tacit.federation.participation import Everybody, Participation
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.federation.server import Server, Weights
from tacit.federation.silo import Silo
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.privacy.ledger import Ledger
from tacit.randomness import secure

__all__ = ["InProcess", "SiloDownError", "Traffic"]


class SiloDownError(ConnectionError):
    """A silo that was asked does not answer; the round goes on without it."""


@dataclass
class Traffic:
    """What a run has sent, per silo.

    Attributes:
        bits_up: Bits that each silo sent, shape (parties,).
        answered: Rounds that each silo answered, shape (parties,).
        skipped: Rounds in which nobody answered.
    """

    bits_up: Array
    answered: Array
    skipped: int = 0


class InProcess:
    """Turns silos and a plan into an `Ask`.

    Building it makes every silo price and accept the plan (and reserve the price in its ledger) before
    anything is asked; if one of them refuses the price, none has spent anything. Calling it runs one round:
    the silos that take part answer, those that are down are left out, and the mean over those who answered is
    returned. That reveals nothing new: who answers is visible, and the number of units behind an answer is
    public, or planned where the true one is not.

    Args:
        silos: The parties.
        plan: Everything that will be asked.
        run: Name of the run in ledgers.
        participation: Which silos are asked in a round; None is everybody.
        weights: How silos count; `central` trust counts records.
        budget: What each silo (the server, under central trust) agrees to spend on this plan.
        ledger: The trusted server's account, under central trust.
        rng: Server randomness for simulation: schedules, and noise under central trust. None is secret
            randomness.
        is_down: For simulations: whether a silo is down in a round.

    Raises:
        ParameterError: The plan does not fit the silos or the weights.
        BudgetError: A price exceeds the budget or what a ledger has left.
        LedgerError: A ledger is about other neighbours, or knows the run with another plan.
        RefusalError: The plan has central trust or no noise, and a silo was not made with `trusts_server`.
    """

    def __init__(
        self,
        silos: Sequence[Silo],
        plan: Plan,
        *,
        run: str = "run",
        participation: Participation | None = None,
        weights: Weights = "records",
        budget: PrivacyBudget | None = None,
        ledger: Ledger | None = None,
        rng: np.random.Generator | None = None,
        is_down: Callable[[int, int], bool] | None = None,
    ) -> None:
        self._silos = list(silos)
        self._participation = Everybody() if participation is None else participation
        self._rng = secure() if rng is None else rng
        self._is_down = is_down
        central = plan.trust is TrustModel.CENTRAL
        if ledger is not None and not central:
            raise ParameterError(
                "ledger is the trusted server's, under central trust; under local trust every silo keeps "
                "its own."
            )
        theirs = None if central else budget  # of what a silo reveals; the server's is of what it publishes
        for silo in self._silos:
            silo.consider(plan, run=run, budget=theirs)
        self._server = Server(
            plan,
            [silo.size for silo in self._silos],
            weights=weights,
            uniform=self._participation.uniform,
            rng=self._rng,
        )
        prices = [s.accept(plan, party=k, run=run, budget=theirs) for k, s in enumerate(self._silos)]
        self._accepted = [silo.accepted for silo in self._silos]
        if central:
            simulated = plan.samples and any(silo.simulated for silo in self._silos)
            prices = [self._server.accept(run=run, budget=budget, ledger=ledger, simulated=simulated)]
        self.guarantees: list[Guarantee] = prices
        n = len(self._silos)
        self.traffic = Traffic(bits_up=np.zeros(n), answered=np.zeros(n, dtype=np.int64))

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Run one round and return the mean of every statistic, each of shape (dim,).

        A round that nobody answers is skipped: its means are zero, and points of local steps stay.

        Raises:
            RefusalError: The query is not one of the plan, or its step has been answered at another point.
        """
        query = Query(step, at, radius)
        known = self._server.released(query)
        if known is not None:
            return known
        asked = self._participation.silos(step, len(self._silos), self._rng).tolist()
        answers = self._collect(query, asked)
        if not answers:
            self.traffic.skipped += 1
            return self._server.skip(query)
        return self._server.means(query, answers, asked=asked)

    def _collect(self, query: Query, asked: list[int]) -> dict[int, bytes]:
        """Ask the silos of a round; return the answers of those that are up, and count the bits."""
        answers: dict[int, bytes] = {}
        for party in asked:
            if self._is_down is not None and self._is_down(query.step, party):
                continue
            silo = self._silos[party]
            if silo.accepted is not self._accepted[party]:
                raise RefusalError(f"silo {silo.name!r} has accepted another plan or run since this one.")
            try:
                answers[party] = silo.answer(query)
            except SiloDownError:
                continue
            self.traffic.bits_up[party] += 8 * len(answers[party])
            self.traffic.answered[party] += 1
        return answers
