"""A silo: data, its own secret randomness, its own ledger. It accepts a plan, then answers or refuses.

Whoever adds the noise enforces; under local trust that is the silo, and no curious, wrong or restarted server
can make it overspend. Nothing visible depends on the data: refusals, lengths and errors come from public
facts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from threading import Lock
from typing import Any

import numpy as np

from tacit.errors import (
    LARGEST_COUNT,
    LedgerError,
    ParameterError,
    RefusalError,
    check_count,
    check_name,
)
from tacit.federation.account import check_exact, check_price, price_of_silo, reserve
from tacit.federation.answers import binding, digest_of_run, encode_answer
from tacit.federation.asked import AskedKind
from tacit.federation.batches import Disjoint, Fixed, Poisson
from tacit.federation.circle import Circle, CircleError, check_circle
from tacit.federation.contribution import Contributions, States
from tacit.federation.correlated import CorrelatedStep, release
from tacit.federation.kept import Keeper, Kept
from tacit.federation.plan import Plan, Schedule
from tacit.federation.protocols import Memory, Unsent
from tacit.federation.query import AnyStatistic, Query, Units
from tacit.federation.steps import HiddenWalk, Measure, Walk
from tacit.federation.store import AnswerStore, LastAnswer, LedgerStore
from tacit.ledger import Ledger
from tacit.means import Message, Round
from tacit.numerics import (
    Array,
    IntArray,
    draw_disjoint_order,
    sample_fixed,
    sample_poisson,
    take_disjoint_batch,
)
from tacit.privacy import Guarantee, Order, PrivacyBudget, Relation, TrustModel, Unit
from tacit.randomness import is_secure, secure

__all__ = ["Silo"]


_FORMS = 64  # a server that keeps inventing forms must not fill the memory


@dataclass
class _Run:
    """What a silo remembers of the plan it accepted.

    Attributes:
        tried: Kinds of rounds with forms of points that were tried on no units, and what came of it.
    """

    plan: Plan
    digest: bytes
    schedule: Schedule
    asked: list[AskedKind]
    blocks: list[int]
    party: int
    store: AnswerStore
    keeper: Keeper
    tried: dict[tuple[Any, ...], list[bool]]
    order: IntArray | None = None
    circle: Circle | None = None


@dataclass(slots=True)
class _Task:
    """A query that was checked, with what is needed to answer it."""

    query: Query
    kind: int
    earlier: int
    asked: AskedKind
    at: Mapping[str, Array]
    fused: list[bool]


class Silo:
    """One party with its data.

    Args:
        units: The protected units; their number is public unless `planned` is given.
        statistics: What can be computed from them, by name.
        name: How statements call the silo.
        planned: Public number of units that plans divide by, for add-remove neighbours, under which the true
            number is protected. At least half of the true number.
        unit: What one unit is; a plan about another unit is refused. None leaves that to the ledger.
        ledger: Account of the data set. Without one the silo prices plans but keeps no account: every
            accepted plan starts afresh (simulation).
        trusts_server: Whether the owner lets sums leave that carry no noise of the silo's own: under central
            trust, where the server adds it, and where a plan has no noise at all. The word of a plan is not
            enough for either.
        trusts_shuffler: Whether the owner lets messages leave that hide a unit only when they are mixed with
            those of others, under shuffle trust. The word of a plan is not enough for it.
        rng: Seeded randomness for simulation; None takes secret randomness from the operating system.

    Raises:
        ParameterError: No units without `planned`, or `planned` is out of its range.
    """

    def __init__(
        self,
        units: Units,
        statistics: Mapping[str, AnyStatistic],
        *,
        name: str = "silo",
        planned: int | None = None,
        unit: Unit | None = None,
        ledger: Ledger | None = None,
        trusts_server: bool = False,
        trusts_shuffler: bool = False,
        rng: np.random.Generator | None = None,
    ) -> None:
        self.name = check_name("name", name)
        if planned is None and len(units) < 1:
            raise ParameterError(f"silo {name!r} must hold at least one unit, got none.")
        if planned is not None:
            planned = check_count("planned", planned)
            if len(units) > 2 * planned:  # what prices allow for
                raise ParameterError(f"planned must be at least half the number of units, got {planned}.")
        self._units = units
        self._contributions = Contributions(units, statistics)
        self._planned = planned
        self._unit = unit
        self._ledger = ledger
        self._trusts_server, self._trusts_shuffler = trusts_server, trusts_shuffler
        self._rng = secure() if rng is None else rng
        self._run: _Run | None = None
        # One answer at a time: two threads that both find a step unanswered would answer it at two points.
        self._lock = Lock()

    @property
    def size(self) -> int:
        """Number of units that plans count on; public."""
        return len(self._units) if self._planned is None else self._planned

    @property
    def simulated(self) -> bool:
        """Whether the silo's randomness can be repeated."""
        return not is_secure(self._rng)

    @property
    def ledger(self) -> Ledger | None:
        """The account of the data set; None keeps none."""
        return self._ledger

    @property
    def account(self) -> bytes | None:
        """Fingerprint of the ledger, by which the silo remembers its answers; None keeps none."""
        return None if self._ledger is None else self._ledger.fingerprint

    @property
    def accepted(self) -> object:
        """What stands for the accepted plan and its run; every `accept` makes a new one."""
        return self._run

    def consider(self, plan: Plan, *, run: str = "run", budget: PrivacyBudget | None = None) -> Guarantee:
        """Check and price a whole plan as `accept` does, and reserve nothing."""
        check_name("run", run)
        self._check_plan(plan)
        self._check_trust(plan, budget)
        price = self._priced(plan, shuffled=plan.trust is TrustModel.SHUFFLE)
        if plan.trust is not TrustModel.CENTRAL:
            who = f"silo {self.name!r}"
            check_exact(plan, who=who, ledger=self._ledger, simulated=self.simulated)
            check_price(price, who=who, run=run, budget=budget, ledger=self._ledger, plan=plan)
            if not math.isfinite(price.epsilon) and not self._trusts_server:
                raise RefusalError(
                    f"the plan adds no noise to what {who} sends, and its owner has not allowed that: a silo "
                    "that may send exact sums is made with trusts_server=True."
                )
        return price

    def alone(self, plan: Plan) -> Guarantee:
        """Return what is learnt by who sees the silo's messages under shuffle trust with their sender."""
        return self._priced(plan)

    def accept(
        self,
        plan: Plan,
        *,
        party: int = 0,
        run: str = "run",
        budget: PrivacyBudget | None = None,
        memory: Memory | LastAnswer | None = None,
    ) -> Guarantee:
        """Price a whole plan, reserve the price, and be ready to answer it.

        Args:
            plan: Everything that will be asked.
            party: The index of this silo in the run.
            run: Name of the run; the same run of the same plan is reserved once, however often it restarts.
            budget: What the silo is willing to spend on this plan; None leaves that to the ledger, and
                without a ledger to who reads the price. Under central trust it belongs to the server.
            memory: Where a silo without a ledger keeps the order of disjoint batches, for whoever goes on
                with the run; None forgets it with this process. A store keeps the answers too.

        Returns:
            What everybody outside the silo can learn from its answers. Under central trust that is no
            guarantee: there the server adds the noise.

        Raises:
            ParameterError: The plan does not fit the silo's data or statistics.
            BudgetError: The price exceeds `budget` or what the ledger has left; nothing is spent.
            LedgerError: The ledger is about other neighbours, or knows the run with another plan.
            RefusalError: The plan sends sums without noise of the silo's own, and the owner has not said
                `trusts_server`, or needs a shuffler, and the owner has not said
                `trusts_shuffler`; a budget under central trust, which the silo could not enforce; or the silo
                keeps a ledger, and the plan trusts the server or has continuous noise.
        """
        party = check_count("party", party, low=0, high=LARGEST_COUNT)
        with self._lock:
            price = self.consider(plan, run=run, budget=budget)
            schedule, blocks = plan.schedule(), plan.blocks(self.size)
            asked = [AskedKind.of(step, self.size) for step in schedule.steps]
            n, who = len(self._units), f"silo {self.name!r}"
            states = self._contributions.states(plan, units=n)
            keeper = Keeper(plan, TrustModel.LOCAL, statistics=states, units=n, who=who)
            store: AnswerStore = memory if isinstance(memory, LastAnswer) else LastAnswer(memory)
            if self._ledger is not None:
                reserve(self._ledger, plan, price, run=run)
                store = LedgerStore(self._ledger, run)
            digest = digest_of_run(plan, run)
            self._run = _Run(plan, digest, schedule, asked, blocks, party, store, keeper, tried={})
        return price

    def answer(self, query: Query, circle: Circle | None = None) -> bytes:
        """Answer one query of the accepted plan, as bytes that `open_answer` reads.

        The same query gets the same bytes. The answer is stored before it is returned.

        Args:
            query: What is asked.
            circle: Whose messages the answer is mixed with, under shuffle trust and only there.

        Raises:
            RefusalError: No accepted plan, a step outside it, a point or radius that is not finite or not
                agreed, or a step that was answered at another point or for another circle; a circle that is
                too small for the plan, or without this silo.
        """
        with self._lock:
            return self._prepare(query, circle).store()

    def prepare(self, query: Query, circle: Circle | None = None) -> Unsent:
        """Compute an answer as `answer` does, and leave it to the caller to store it.

        An answer that is never stored has never left. Of two that are computed for one step, one is stored.
        """
        with self._lock:
            return self._prepare(query, circle)

    def close(self) -> None:
        """End the accepted run: nothing more is answered, and what it held in memory is freed."""
        with self._lock:
            self._run = None

    def _prepare(self, query: Query, circle: Circle | None) -> Unsent:
        """Compute an answer while nobody else does."""
        run = self._run
        if run is None:
            raise RefusalError("no plan was accepted; a silo answers only what it has priced.")
        task = self._check(query, run)
        digest = query.digest(party=run.party, circle=self._mixed_with(circle, run))
        stored = run.store.find(query.step, digest)
        if stored is not None:
            return Unsent(lambda: stored)
        # A warning about an overflow would tell about a unit.
        with np.errstate(all="ignore"):
            kept = run.keeper.read(None if run.keeper.idle else run.store.state())
            bound = b"" if circle is None else binding(query, circle, run.digest)
            answer = encode_answer(self._compute(task, run, kept), bound)
        keep = partial(run.store.keep, query.step, digest, answer, run.keeper.write(kept))
        return Unsent(keep, None if self._ledger is None else self._ledger.keeper)

    def _priced(self, plan: Plan, *, shuffled: bool = False) -> Guarantee:
        """Return what an observer learns of the silo from a whole plan."""
        return price_of_silo(plan, self.size, name=self.name, simulated=self.simulated, shuffled=shuffled)

    def _mixed_with(self, circle: Circle | None, run: _Run) -> bytes:
        """Return the digest of the parties of a batch; refuse those that do not hide this silo."""
        plan, who = run.plan, f"silo {self.name!r}"
        if (circle is None) == (plan.trust is TrustModel.SHUFFLE):
            raise CircleError("a circle says who is mixed with a silo, under shuffle trust and only there.")
        if circle is None:
            return b""
        if circle is not run.circle:  # most often every round has the same one
            check_circle(circle, plan, party=run.party, size=self.size, account=self.account, who=who)
            run.circle = circle
        return circle.digest

    def _check_plan(self, plan: Plan) -> None:
        """Refuse a plan that does not fit the silo; only public facts decide."""
        plan.check_statistics(self._contributions.names)
        plan.check_sizes([self.size])
        plan.check_answers([self.size])
        self._contributions.states(plan, units=len(self._units))
        self._contributions.check_hidden(plan)
        self._contributions.check_acute(plan)
        self._contributions.check_aligned(plan)
        if (plan.neighbours.relation is Relation.ADD_REMOVE) != (self._planned is not None):
            raise ParameterError(
                f"silo {self.name!r} needs `planned`, a public number of units, under add-remove neighbours, "
                "where the true number is protected, and only there; the plan has "
                f"{plan.neighbours.relation}."
            )
        unit = plan.neighbours.unit
        if self._unit is not None and unit is not self._unit:
            raise ParameterError(
                f"the units of silo {self.name!r} are of kind {self._unit}, those of the plan of kind {unit}."
            )
        if unit is Unit.PARTY and self.size != 1:
            raise ParameterError(
                f"plans that protect whole parties need silos of one unit, {self.name!r} has {self.size}."
            )
        if plan.trust is TrustModel.CENTRAL and self._ledger is not None:
            raise RefusalError(
                f"silo {self.name!r} keeps a ledger, so it sends nothing without noise of its own; under "
                "central trust the server keeps the ledger."
            )

    def _check_trust(self, plan: Plan, budget: PrivacyBudget | None) -> None:
        """Refuse trust that only the plan claims, and a budget that the silo could not enforce."""
        if plan.trust is TrustModel.SHUFFLE and not self._trusts_shuffler:
            raise RefusalError(
                f"the plan trusts a shuffler, the owner of silo {self.name!r} does not: make the silo with "
                "trusts_shuffler=True, or ask for a plan of local trust."
            )
        if plan.trust is not TrustModel.CENTRAL:
            return
        if not self._trusts_server:
            raise RefusalError(
                f"the plan trusts the server with exact sums, the owner of silo {self.name!r} does not: make "
                "the silo with trusts_server=True, or ask for a plan of local trust."
            )
        if budget is not None:
            raise RefusalError(
                f"silo {self.name!r} cannot enforce a budget under central trust, where the server adds the "
                "noise: give it to the server."
            )

    def _check(self, query: Query, run: _Run) -> _Task:
        """Return what the query asks for; refuse anything the plan does not foresee."""
        try:
            kind, earlier = run.schedule.place(query.step)
        except ParameterError as error:
            raise RefusalError(f"the query is outside the accepted plan: {error}") from error
        asked = run.asked[kind]
        at = asked.points(query)
        form = (kind, query.form)
        fused = run.tried.get(form)
        if fused is None:
            fused = self._contributions.check(asked.step, at)
            if len(run.tried) >= _FORMS:
                run.tried.clear()
            run.tried[form] = fused
        return _Task(query, kind, earlier, asked, at, fused)

    def _compute(self, task: _Task, run: _Run, kept: Kept) -> tuple[tuple[bytes, ...], ...]:
        """Return the messages of one round."""
        asked = task.asked
        if isinstance(asked.step, Walk):
            return (self._walk(task, asked.step, run),)
        if isinstance(asked.step, CorrelatedStep) and asked.mixes:
            return (self._correlated(task, asked.step, run, kept),)
        units = self._batch(task, run)
        sent = []
        for measure, radius, fused in zip(asked.sent, task.query.radius, task.fused, strict=True):
            this_round = _round(asked.rows, radius, task.query.step)
            messages = self._messages(
                measure, units, at=task.at, round=this_round, fused=fused, states=kept.states, run=run
            )
            sent.append(tuple(message.to_bytes() for message in messages))
        return tuple(sent)

    def _messages(
        self,
        measure: Measure,
        units: Any,
        *,
        at: Mapping[str, Array],
        round: Round,
        fused: bool,
        states: States,
        run: _Run,
    ) -> list[Message]:
        """Return the messages about one mean of a batch."""
        return self._contributions.messages(
            measure, units, at=at, round=round, fused=fused, party=run.party, states=states, rng=self._rng
        )

    def _batch(self, task: _Task, run: _Run, *, local: int = 0) -> Any:
        """Return the units of a round; the silo draws them with its own randomness and tells nobody."""
        step, size = task.asked.step, task.asked.rows
        match step.batch:
            case Fixed():
                index = sample_fixed(len(self._units), size, self._rng)
            case Poisson():
                index = sample_poisson(len(self._units), step.batch.rate_for(self.size), self._rng)
            case Disjoint():
                start = run.blocks[task.kind] + step.start(task.earlier * step.batches + local, self.size)
                index = take_disjoint_batch(self._order(run), start, size)
            case _:
                return self._units
        return self._units.take(index)

    def _order(self, run: _Run) -> IntArray:
        """Return the secret order of the run, stored before anything is computed with it."""
        if run.order is None:
            n = len(self._units)
            stored = run.store.secret(lambda: draw_disjoint_order(n, self._rng).astype("<i8").tobytes())
            run.order = np.frombuffer(stored, dtype="<i8").astype(np.int64)
            if len(run.order) != n:
                raise LedgerError(f"the data of silo {self.name!r} have changed since the run began.")
        return run.order

    def _correlated(self, task: _Task, step: CorrelatedStep, run: _Run, kept: Kept) -> tuple[bytes, ...]:
        """Return the mean of a batch, with noise that goes on from that of the rounds before."""
        n, radius, units = task.asked.rows, task.query.radius[0], self._batch(task, run)
        this_round = _round(n, radius, task.query.step)
        (exact,) = self._messages(
            step.exact, units, at=task.at, round=this_round, fused=task.fused[0], states={}, run=run
        )
        released, kept.pasts[task.kind] = release(
            step, exact.payload, task.earlier, kept.pasts[task.kind], radius=radius, rows=n, rng=self._rng
        )
        return (Message(payload=(released / n).astype(np.float32)).to_bytes(),)

    def _walk(self, task: _Task, step: Walk, run: _Run) -> tuple[bytes, ...]:
        """Take all steps of a walk, every mean as private as a message, and return the last point."""
        (measure,), (fused,), w = task.asked.sent, task.fused, task.at["w"]
        n, radius = task.asked.rows, task.query.radius[0]
        this_round = _round(n, radius, task.query.step)
        if isinstance(step, HiddenWalk):
            step_size, batches = step.step_size, self._blocks(step)
        else:
            # Messages are about whole rows, a Poisson sample expects a fraction of one.
            step_size = float(task.query.at["step_size"]) * n / step.batch.expected(self.size)
            batches = (self._batch(task, run, local=local) for local in range(step.steps))
        w = step.project(w)
        for units in batches:
            sent = self._messages(
                measure, units, at={"w": w}, round=this_round, fused=fused, states={}, run=run
            )
            w = step.project(w - step_size * measure.estimator.decode(sent, this_round))
        return (Message(payload=w.astype(np.float32)).to_bytes(),)

    def _blocks(self, step: HiddenWalk) -> Iterator[Any]:
        """Yield the units of every step of a hidden walk: the blocks of an order, epoch after epoch."""
        n, size = self.size, step.batch.size_for(self.size)
        order: IntArray = np.arange(n)
        for local in range(step.steps):
            start = local % step.epoch(n) * size
            if start == 0 and (step.order is Order.RR or (step.order is Order.SO and local == 0)):
                order = draw_disjoint_order(n, self._rng)
            yield self._units.take(take_disjoint_batch(order, start, size))


@lru_cache(maxsize=8)
def _round(n: int, radius: float, number: int) -> Round:
    """Return the facts of a round, one object for all silos of a size: to check them takes longer."""
    return Round(n=n, radius=radius, number=number)
