"""The federation in one process: the deployed encode and decode, without the network between them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tacit.errors import BudgetError, LedgerError, ParameterError, check_choice
from tacit.federation.participation import Everybody, Participation
from tacit.federation.plan import Disjoint, Fixed, Plan, Poisson, Step
from tacit.federation.query import Query
from tacit.federation.silo import Silo, open_answer
from tacit.means import Message, Round
from tacit.numerics import Array
from tacit.privacy import (
    Guarantee,
    PrivacyBudget,
    TrustModel,
    event_to_json,
    guarantee,
)
from tacit.privacy.ledger import Ledger
from tacit.randomness import is_secure, secure

__all__ = ["InProcess", "SiloDownError", "Traffic", "Weights"]

Weights = Literal["records", "silos"] | Sequence[float]
"""How silos count in the mean: by their records, equally, or by given p_i that add up to 1."""


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


@dataclass(frozen=True, kw_only=True)
class _Server:
    """The server's own randomness, for schedules and for noise under central trust, and its ledger."""

    rng: np.random.Generator = field(repr=False)
    ledger: Ledger | None


class InProcess:
    """Turns silos and a plan into an `Ask`.

    Building it makes every silo price and accept the plan (and reserve the price in its ledger) before
    anything is asked. Calling it runs one round: the silos that take part answer, those that are down are
    left out, and the mean over those who answered is returned. Under replace-one the number of rows behind an
    answer is public, so dividing by what was answered reveals nothing; under other relations the planned
    number is the divisor.

    Args:
        silos: The parties.
        plan: Everything that will be asked.
        run: Name of the run in ledgers.
        participation: Which silos are asked in a round.
        weights: How silos count; `central` trust counts records.
        budget: What each silo (the server, under central trust) agrees to spend on this plan.
        ledger: The trusted server's account, under central trust.
        rng: Server randomness for simulation: schedules, and noise under central trust. None is secret
            randomness.
        is_down: Test hook for simulations: whether a silo is down in a round.
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
        if len(silos) != plan.parties:
            raise ParameterError(f"the plan is for {plan.parties} silos, got {len(silos)}.")
        self._silos, self._plan = list(silos), plan
        self._participation = Everybody() if participation is None else participation
        self._server = _Server(rng=secure() if rng is None else rng, ledger=ledger)
        self._is_down = is_down
        self._sizes = np.array([silo.size for silo in silos])
        self._weights = self._public_weights(weights)
        plan.check_sizes(self._sizes.tolist())
        self._check_divisor()
        self.traffic = Traffic(bits_up=np.zeros(len(silos)), answered=np.zeros(len(silos), dtype=np.int64))
        self.guarantees = self._accept(run, budget)

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Run one round and return the mean of every statistic, each of shape (dim,).

        A round that nobody answers is skipped: its means are zero.
        """
        kind = self._plan.step_at(step)
        query = Query(step, at, radius)
        answers = self._collect(query)
        if not answers:
            self.traffic.skipped += 1
            return tuple(np.zeros(kind.estimator.dim) for _ in kind.statistics)
        opened = {party: open_answer(data, party=party) for party, data in answers.items()}
        return tuple(
            self._mean(kind, {p: groups[k] for p, groups in opened.items()}, radius[k], number=step)
            for k in range(len(kind.statistics))
        )

    def _collect(self, query: Query) -> dict[int, bytes]:
        """Ask the silos of a round; return the answers of those that are up, and count the bits."""
        answers = {}
        for party in self._participation.silos(query.step, len(self._silos), self._server.rng).tolist():
            if self._is_down is not None and self._is_down(query.step, party):
                continue
            try:
                answers[party] = self._silos[party].answer(query)
            except SiloDownError:
                continue
            self.traffic.bits_up[party] += 8 * len(answers[party])
            self.traffic.answered[party] += 1
        return answers

    def _mean(self, step: Step, sent: dict[int, list[Message]], radius: float, *, number: int) -> Array:
        """Return the weighted mean of what silos sent about one statistic."""
        parties = list(sent)
        if step.local_steps > 1:
            points = np.stack([sent[p][0].payload.astype(np.float64) for p in parties])
            return np.asarray(self._share(parties) @ points)
        rows = {p: step.batch.size_for(int(self._sizes[p])) for p in parties}
        if self._pools(step):
            everything = [message for p in parties for message in sent[p]]
            whole = Round(n=sum(rows.values()), radius=radius, number=number, parties=len(parties))
            return step.estimator.decode(everything, whole, rng=self._server.rng)
        means = [
            step.estimator.decode(sent[p], Round(n=rows[p], radius=radius, number=number)) for p in parties
        ]
        return np.asarray(self._share(parties) @ np.stack(means))

    def _pools(self, step: Step) -> bool:
        """Whether the weighted mean is simply the mean of all rows."""
        if self._plan.trust is not TrustModel.LOCAL or self._weights is None:
            return True
        sizes = {step.batch.size_for(int(n)) for n in self._sizes}
        return len(sizes) == 1 and bool(np.ptp(self._weights) == 0)

    def _share(self, parties: list[int]) -> Array:
        """Return the weights of those who answered; they add up to 1."""
        weights = self._sizes[parties] if self._weights is None else self._weights[parties]
        return np.asarray(weights / weights.sum())

    def _public_weights(self, weights: Weights) -> Array | None:
        """Return p_i per silo, or None where every record counts the same."""
        if isinstance(weights, str):
            check_choice("weights", weights, ["records", "silos"])
            given = None if weights == "records" else np.full(len(self._silos), 1 / len(self._silos))
        else:
            given = np.asarray(weights, dtype=np.float64)
            if given.shape != (len(self._silos),) or not np.all(given > 0):
                raise ParameterError(
                    f"weights must be {len(self._silos)} numbers > 0, got shape {given.shape}."
                )
        if given is not None and self._plan.trust is TrustModel.CENTRAL:
            # Noise is scaled to one record's share 1/n of a pooled sum; other weights would exceed it.
            raise ParameterError("weights must be 'records' under central trust.")
        return given

    def _check_divisor(self) -> None:
        """Refuse Poisson batches with silos that may be absent: the divisor would tell who took part."""
        poisson = any(isinstance(step.batch, Poisson) for step, _ in self._plan.steps)
        if poisson and not isinstance(self._participation, Everybody):
            raise ParameterError("Poisson batches need the participation of everybody.")

    def _accept(self, run: str, budget: PrivacyBudget | None) -> list[Guarantee]:
        """Make whoever adds the noise price the plan and reserve the price; return the guarantees."""
        prices = [
            silo.accept(self._plan, party=k, run=run, budget=budget) for k, silo in enumerate(self._silos)
        ]
        if self._plan.trust is TrustModel.LOCAL:
            return prices
        sampled = any(isinstance(step.batch, Fixed | Disjoint | Poisson) for step, _ in self._plan.steps)
        price = guarantee(
            self._plan.event(self._sizes.tolist(), TrustModel.CENTRAL),
            self._plan.delta,
            observer="everybody but the trusted server",
            assumptions=("silos keep their batches secret",) if sampled else (),
            simulated=not is_secure(self._server.rng),
        )
        if budget is not None and not budget.covers(price.epsilon, price.delta):
            raise BudgetError(
                f"the plan costs epsilon {price.epsilon:.6g} at delta {price.delta:.3g}, above the agreed "
                f"epsilon {budget.epsilon:.6g} at delta {budget.delta:.3g}; nothing was spent."
            )
        if self._server.ledger is not None:
            self._reserve(self._server.ledger, run, price)
        return [price]

    def _reserve(self, ledger: Ledger, run: str, price: Guarantee) -> None:
        """Enter the price in the trusted server's ledger."""
        if price.neighbours != ledger.neighbours:
            raise LedgerError(f"the ledger is about {ledger.neighbours}, the plan about {price.neighbours}.")
        spent = PrivacyBudget(price.epsilon, price.delta)
        ledger.reserve(run, price=spent, plan_digest=self._plan.digest(), event=event_to_json(price.event))
