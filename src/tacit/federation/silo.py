"""A silo: data, its own secret randomness, its own ledger. It accepts a plan, then answers or refuses.

Whoever adds the noise enforces; under local trust that is the silo, and no curious, wrong or restarted server
can make it overspend. Nothing visible depends on the data: refusals, lengths and errors come from public
facts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from tacit.errors import BudgetError, LedgerError, ParameterError, RefusalError
from tacit.federation.plan import Disjoint, Fixed, Plan, Poisson, Step
from tacit.federation.query import FusedStatistic, Query, Statistic, Units
from tacit.federation.store import AnswerStore, LastAnswer, LedgerStore
from tacit.means import Message, Round
from tacit.numerics import Array, disjoint_order, sample_fixed, sample_poisson
from tacit.privacy import Guarantee, PrivacyBudget, Relation, TrustModel, event_to_json, guarantee
from tacit.privacy.ledger import Ledger
from tacit.randomness import is_secure, secure

__all__ = ["Answer", "Silo", "open_answer"]


class Answer(msgspec.Struct, frozen=True):
    """What a silo sends back: the messages of every statistic, as bytes."""

    messages: tuple[tuple[bytes, ...], ...]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Answer)


@dataclass
class _Run:
    """What a silo remembers of the plan it accepted."""

    name: str
    plan: Plan
    steps: tuple[Step, ...]
    party: int
    store: AnswerStore
    order: Array | None = None
    used: int = 0


class Silo:
    """One party with its data.

    Args:
        units: The protected units; `len(units)` is public unless `planned` is given.
        statistics: What can be computed from them, by name.
        name: How statements call the silo.
        planned: Public number of units that plans divide by. None takes `len(units)`, which is public under
            replace-one and zero-out but not under add-remove.
        ledger: Account of the data set; without one the silo prices plans but keeps no account (simulation).
        rng: Seeded randomness for simulation; None takes secret randomness from the operating system.
    """

    def __init__(
        self,
        units: Units,
        statistics: Mapping[str, Statistic],
        *,
        name: str = "silo",
        planned: int | None = None,
        ledger: Ledger | None = None,
        rng: np.random.Generator | None = None,
    ) -> None:
        if len(units) < 1:
            raise ParameterError(f"silo {name!r} must hold at least one unit, got none.")
        self.name = name
        self._units = units
        self._statistics = dict(statistics)
        self._fused = {k: s for k, s in self._statistics.items() if isinstance(s, FusedStatistic)}
        self._planned = planned
        self._ledger = ledger
        self._rng = secure() if rng is None else rng
        self._run: _Run | None = None

    @property
    def size(self) -> int:
        """Number of units that plans count on; public."""
        return len(self._units) if self._planned is None else self._planned

    @property
    def simulated(self) -> bool:
        """Whether the silo's randomness can be repeated."""
        return not is_secure(self._rng)

    def accept(
        self, plan: Plan, *, party: int = 0, run: str = "run", budget: PrivacyBudget | None = None
    ) -> Guarantee:
        """Price a whole plan, reserve the price, and be ready to answer it.

        Args:
            plan: Everything that will be asked.
            party: The index of this silo in the run.
            run: Name of the run; the same run of the same plan is reserved once, however often it restarts.
            budget: What the silo is willing to spend on this plan; None leaves that to the ledger.

        Returns:
            What everybody outside the silo can learn from its answers. Under central trust that is no
            guarantee: there the server adds the noise.

        Raises:
            ParameterError: The plan does not fit the silo's data or statistics.
            BudgetError: The price exceeds `budget` or what the ledger has left; nothing is spent.
        """
        plan.check_statistics(list(self._statistics))
        if plan.relation is Relation.ADD_REMOVE and self._planned is None:
            raise ParameterError(
                f"silo {self.name!r} needs `planned`, a public number of units, under add-remove neighbours: "
                "there the true number is protected."
            )
        event = plan.event([self.size], TrustModel.LOCAL)
        secret = any(isinstance(step.batch, Fixed | Poisson | Disjoint) for step, _ in plan.steps)
        price = guarantee(
            event,
            plan.delta,
            observer=f"everybody outside silo {self.name!r}, the server included,",
            assumptions=("the silo keeps its batches secret",) if secret else (),
            simulated=self.simulated,
        )
        if plan.trust is TrustModel.LOCAL:
            self._reserve(plan, price, run=run, budget=budget)
        steps = tuple(step for step, _ in plan.steps)
        self._run = _Run(run, plan, steps, party, self._store(run))
        self._restore(self._run)
        return price

    def answer(self, query: Query) -> bytes:
        """Answer one query of the accepted plan, as bytes that `open_answer` reads.

        The same query gets the same bytes. The answer is stored before it is returned.

        Raises:
            RefusalError: No accepted plan, a step outside it, a point or radius that is not finite or not
                agreed, or a step that was answered at another point.
        """
        run = self._run
        if run is None:
            raise RefusalError("no plan was accepted; a silo answers only what it has priced.")
        step = self._check(query, run)
        digest = query.digest()
        stored = run.store.find(query.step, digest)
        if stored is not None:
            return stored
        answer = _ENCODER.encode(Answer(self._compute(step, query, run)))
        return run.store.keep(query.step, digest, answer, _state(run))

    def _reserve(self, plan: Plan, price: Guarantee, *, run: str, budget: PrivacyBudget | None) -> None:
        """Check the price of a plan against what was agreed, and enter it in the ledger."""
        if budget is not None and not budget.covers(price.epsilon, price.delta):
            raise BudgetError(
                f"the plan costs silo {self.name!r} epsilon {price.epsilon:.6g} at delta "
                f"{price.delta:.3g}, above the agreed epsilon {budget.epsilon:.6g} at delta {budget.delta:.3g}; nothing was spent."
            )
        if self._ledger is None:
            return
        if not math.isfinite(price.epsilon):
            raise BudgetError(f"the plan claims no privacy; the ledger of silo {self.name!r} refuses it.")
        if price.neighbours != self._ledger.neighbours:
            raise LedgerError(
                f"the ledger of silo {self.name!r} is about {self._ledger.neighbours}, the plan about "
                f"{price.neighbours}."
            )
        spent = PrivacyBudget(price.epsilon, price.delta)
        self._ledger.reserve(run, price=spent, plan_digest=plan.digest(), event=event_to_json(price.event))

    def _store(self, run: str) -> AnswerStore:
        """Return where answers are kept: the ledger, or memory for simulations."""
        return LastAnswer() if self._ledger is None else LedgerStore(self._ledger, run)

    def _check(self, query: Query, run: _Run) -> Step:
        """Return the step that the query is about; refuse anything the plan does not foresee."""
        try:
            step = run.plan.step_at(query.step)
        except ParameterError as error:
            raise RefusalError(f"the query is outside the accepted plan: {error}") from error
        if len(query.radius) != len(step.statistics):
            raise RefusalError(
                f"radius must have one entry per statistic ({len(step.statistics)}), got {len(query.radius)}."
            )
        for radius in query.radius:
            if not 0 <= radius <= run.plan.max_radius:
                raise RefusalError(f"radius must be in [0, {run.plan.max_radius!r}], got {radius!r}.")
        for name, array in query.at.items():
            if array.dtype.kind != "f" or not np.isfinite(array).all():
                raise RefusalError(f"the point {name!r} must hold finite floating-point numbers.")
        return step

    def _compute(self, step: Step, query: Query, run: _Run) -> tuple[tuple[bytes, ...], ...]:
        """Return the messages of one round."""
        if step.local_steps > 1:
            return (self._walk(step, query, run),)
        units = self._batch(step, run)
        rows = step.batch.size_for(self.size)
        sent = []
        for name, radius in zip(step.statistics, query.radius, strict=True):
            facts = Round(n=rows, radius=radius, number=query.step)
            messages = self._encode(step, name, units, at=query.at, facts=facts, party=run.party)
            sent.append(tuple(message.to_bytes() for message in messages))
        return tuple(sent)

    def _encode(
        self, step: Step, name: str, units: Any, *, at: Mapping[str, Array], facts: Round, party: int
    ) -> list[Message]:
        """Return the messages about one statistic; rows are added up unseen where that is possible."""
        estimator = step.estimator
        if name in self._fused and estimator.noise.norm == "l2":
            total = self._fused[name].clipped_sum(units, at, facts.radius)
            return estimator.encode_sum(total, rows=facts.n, round=facts, party=party, rng=self._rng)
        return estimator.encode(self._statistics[name](units, at), facts, party=party, rng=self._rng)

    def _batch(self, step: Step, run: _Run) -> Any:
        """Return the units of this round; the silo draws them with its own randomness and tells nobody."""
        match step.batch:
            case Fixed():
                return self._units.take(
                    sample_fixed(len(self._units), step.batch.size_for(self.size), self._rng)
                )
            case Poisson(rate=rate):
                return self._units.take(sample_poisson(len(self._units), rate, self._rng))
            case Disjoint():
                if run.order is None:
                    run.order = disjoint_order(len(self._units), self._rng)
                size = step.batch.size_for(self.size)
                index = run.order[run.used : run.used + size]
                run.used += size
                return self._units.take(np.sort(index))
            case _:
                return self._units

    def _walk(self, step: Step, query: Query, run: _Run) -> tuple[bytes, ...]:
        """Take local gradient steps, every gradient as private as a message, and return the last point."""
        if "w" not in query.at or "step_size" not in query.at:
            raise RefusalError("local steps need the points 'w' and 'step_size'.")
        w, step_size = query.at["w"].astype(np.float64), float(query.at["step_size"])
        facts = Round(n=step.batch.size_for(self.size), radius=query.radius[0], number=query.step)
        for _ in range(step.local_steps):
            units = self._batch(step, run)
            sent = self._encode(step, step.statistics[0], units, at={"w": w}, facts=facts, party=run.party)
            w = w - step_size * step.estimator.decode(sent, facts)
        return (Message(payload=w.astype(np.float32)).to_bytes(),)

    def _restore(self, run: _Run) -> None:
        """Continue the batch order of a run that was interrupted."""
        state = run.store.state()
        if state is not None:
            run.used, order = msgspec.msgpack.decode(state, type=tuple[int, bytes])
            run.order = np.frombuffer(order, dtype="<i8").astype(np.int64) if order else None


def open_answer(data: bytes, *, party: int) -> tuple[list[Message], ...]:
    """Read what `Silo.answer` returned: for every statistic its messages.

    Raises:
        ParameterError: The bytes are not an answer.
    """
    try:
        answer = _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise ParameterError(f"party {party} sent something that is not an answer: {error}.") from error
    return tuple([Message.from_bytes(m, sender=party) for m in group] for group in answer.messages)


def _state(run: _Run) -> bytes | None:
    """Return what must survive a restart: the secret order of disjoint batches and how far it is used."""
    if run.order is None:
        return None
    return msgspec.msgpack.encode((run.used, run.order.astype("<i8").tobytes()))
