"""The federation in one process: the deployed encode and decode, without the network between them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, RefusalError
from tacit.federation.data_set import charge_data_set
from tacit.federation.participation import Everybody, Participation, asked_in, fewest_asked
from tacit.federation.plan import Plan
from tacit.federation.query import Query
from tacit.federation.server import Server, Weights
from tacit.federation.silo import Silo
from tacit.federation.store import SecretOf
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel
from tacit.privacy.ledger import Ledger
from tacit.randomness import PublicStream, secure

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
        data_ledger: The account of all records together, charged first, under every trust model. Then
            whoever adds the noise must keep a ledger too: its stored answers are why a run is charged once.
        rng: Server randomness for simulation: noise under central trust. None is secret randomness.
        public_seed: Of random participation in simulations; None makes it from the names of run and plan, so
            that whoever goes on with the run asks the same silos again.
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
        data_ledger: Ledger | None = None,
        rng: np.random.Generator | None = None,
        public_seed: int | None = None,
        is_down: Callable[[int, int], bool] | None = None,
    ) -> None:
        self._silos = list(silos)
        self._participation = Everybody() if participation is None else participation
        self._fewest = fewest_asked(self._participation, len(self._silos))
        self._public_seed = _public_seed(run, plan) if public_seed is None else public_seed
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
            rng=secure() if rng is None else rng,
        )
        simulated = plan.samples and any(silo.simulated for silo in self._silos)
        if central:
            self._server.consider(run=run, budget=budget, ledger=ledger, simulated=simulated)
        if data_ledger is not None:
            charge_data_set(data_ledger, plan, self._silos, run=run, server=ledger, rng=rng)
        trusted = ledger if central else None
        prices = [
            silo.accept(
                plan,
                party=k,
                run=run,
                budget=theirs,
                memory=None if trusted is None else SecretOf(trusted, run, k),
            )
            for k, silo in enumerate(self._silos)
        ]
        self._accepted = [silo.accepted for silo in self._silos]
        if central:
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
        asked = self._asked(step)
        answers = self._collect(query, asked)
        if not answers:
            self.traffic.skipped += 1
            return self._server.skip(query)
        return self._server.means(query, answers, asked=asked)

    def _asked(self, step: int) -> list[int]:
        """Return the silos of a round."""
        if type(self._participation) is Everybody:  # nothing to draw: a stream would be a sixth of a round
            return list(range(len(self._silos)))
        stream = PublicStream(self._public_seed, step, purpose="participation")
        return asked_in(self._participation, step, len(self._silos), stream, fewest=self._fewest)

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


def _public_seed(run: str, plan: Plan) -> int:
    """Return the seed of a run's public randomness: everybody who knows the run and its plan knows it."""
    # The length of the digest is fixed, so that no name can pass for a part of it.
    digest = hashlib.blake2b(plan.digest() + run.encode(errors="surrogatepass"), digest_size=16).digest()
    return int.from_bytes(digest, "little")
