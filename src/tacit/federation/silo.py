"""A silo: data, its own secret randomness, its own ledger. It accepts a plan, then answers or refuses.

Whoever adds the noise enforces; under local trust that is the silo, and no curious, wrong or restarted server
can make it overspend. Nothing visible depends on the data: refusals, lengths and errors come from public
facts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
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
from tacit.federation.accepted import AcceptedRun, CheckedQuery
from tacit.federation.account import reserve
from tacit.federation.answers import binding, digest_of_run, encode_answer, one_message
from tacit.federation.asked import AskedKind
from tacit.federation.batches import Disjoint, Fixed, Poisson
from tacit.federation.circle import Circle
from tacit.federation.contribution import Contributions, States
from tacit.federation.correlated import CorrelatedStep, release
from tacit.federation.drawn import DrawnStep, new_word
from tacit.federation.epochs import run_epochs
from tacit.federation.kept import Keeper, Kept
from tacit.federation.owner import Owner
from tacit.federation.plan import Plan
from tacit.federation.protocols import Memory, Unsent
from tacit.federation.query import AnyStatistic, Query, Units
from tacit.federation.steps import HiddenRun, HiddenWalk, Measure, TurnWalk, Walk
from tacit.federation.store import AnswerStore, LastAnswer, LedgerStore
from tacit.federation.sums import Sums
from tacit.ledger import Ledger
from tacit.means import SMALLEST_RADIUS, Message, Round
from tacit.numerics import (
    Array,
    IntArray,
    draw_disjoint_order,
    sample_fixed,
    sample_poisson,
    take_disjoint_batch,
)
from tacit.privacy import Guarantee, Order, PrivacyBudget, TrustModel, Unit
from tacit.randomness import is_secure, secure

__all__ = ["Silo"]


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
        sums: What the owner says about who is added up with the silo, under aggregate trust. Without it a
            plan costs what a message alone shows, whoever else hides it.
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
        sums: Sums | None = None,
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
        self._ledger = ledger
        self._sums = sums
        self._rng = secure() if rng is None else rng
        self._owner = Owner(
            name=name,
            planned=planned is not None,
            unit=unit,
            ledger=ledger,
            trusts_server=trusts_server,
            trusts_shuffler=trusts_shuffler,
            sums=sums,
            simulated=not is_secure(self._rng),
        )
        self._run: AcceptedRun | None = None
        self._checked: Plan | None = None
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

    def keeps(self, plan: Plan) -> bool:
        """Whether a statistic of the plan keeps a state of the silo's units.

        Raises:
            ParameterError: In a way that it cannot be asked.
        """
        return bool(self._contributions.states(plan, units=len(self._units)))

    def consider(self, plan: Plan, *, run: str = "run", budget: PrivacyBudget | None = None) -> Guarantee:
        """Check and price a whole plan as `accept` does, and reserve nothing."""
        check_name("run", run)
        if plan is not self._checked:  # what is accepted has most often been considered just before
            self._check_plan(plan)
            self._checked = plan
        return self._owner.price(plan, self.size, run=run, budget=budget)

    def alone(self, plan: Plan) -> Guarantee:
        """Return what is learnt by who sees the silo's messages alone, with their sender.

        Under shuffle trust before they are mixed; under aggregate trust if all others collude.
        """
        return self._owner.alone(plan, self.size)

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
            if self._sums is not None and plan.trust is TrustModel.AGGREGATE:
                self._sums.check(plan, party)
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
            masks = None
            if self._sums is not None and plan.trust is TrustModel.AGGREGATE:
                masks = self._sums.masks(plan, run, party, store.secrets)
            self._run = AcceptedRun(
                plan, digest, schedule, asked, blocks, party, store, keeper, tried={}, masks=masks
            )
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

    def exchange(self, stage: str, data: bytes) -> bytes:
        """Reply to the server at a stage of the protocol by which it opens sums, under aggregate trust.

        Raises:
            RefusalError: Nothing is masked, or an honest server would send something else.
        """
        with self._lock:
            if self._run is None or self._run.masks is None:
                raise RefusalError(f"silo {self.name!r} masks nothing in the run that it has accepted.")
            return self._run.masks.respond(stage, data)

    def close(self) -> None:
        """End the accepted run, for good: nothing more is answered, and keys of its masks are deleted."""
        with self._lock:
            if self._run is not None and self._run.masks is not None:
                self._run.masks.wipe()
            self._run = None

    def kept(self, statistic: str) -> Array:
        """Return what a stateful statistic keeps of the silo's units, for the owner: it never leaves.

        Args:
            statistic: Its name.

        Returns:
            Shape (units, state_size); zeros before the first answer.

        Raises:
            ParameterError: No accepted plan asks for it.
            LedgerError: What was kept is of other statistics, versions or data.
        """
        with self._lock:
            run = self._run
            states = {} if run is None else run.keeper.read(run.store.state()).states
            if statistic not in states:
                raise ParameterError(
                    f"statistic must keep a state in the run that {self._owner.who} has accepted, got "
                    f"{statistic!r}."
                )
            return states[statistic]

    def rest(self) -> None:
        """Free what the accepted run holds in memory; a later `accept` of the run goes on with it."""
        with self._lock:
            self._run = None

    def _prepare(self, query: Query, circle: Circle | None) -> Unsent:
        """Compute an answer while nobody else does."""
        run = self._run
        if run is None:
            raise RefusalError("no plan was accepted; a silo answers only what it has priced.")
        task = run.task(query, self._contributions)
        alone = task.asked.step.alone
        mixed = run.mixed_with(circle, alone=alone, size=self.size, account=self.account, who=self._owner.who)
        digest = query.digest(party=run.party, circle=mixed)
        stored = run.store.find(query.step, digest)
        if stored is not None:
            return Unsent(lambda: stored)
        # Two vectors under the masks of one step would show their difference, stored or not: there is one.
        if run.unsent is not None and run.unsent[:2] == (query.step, digest):
            return run.unsent[2]
        # A warning about an overflow would tell about a unit.
        with np.errstate(all="ignore"):
            kept = run.keeper.read(None if run.keeper.idle else run.store.state())
            answer = self._answer(task, run, kept, circle)
        keep = partial(run.store.keep, query.step, digest, answer, run.keeper.write(kept))
        unsent = Unsent(keep, None if self._ledger is None else self._ledger.keeper)
        run.unsent = None if run.masks is None else (query.step, digest, unsent)
        return unsent

    def _check_plan(self, plan: Plan) -> None:
        """Refuse a plan that does not fit the silo; only public facts decide."""
        plan.check_statistics(self._contributions.names)
        plan.check_sizes([self.size])
        plan.check_answers([self.size])
        plan.check_widths([self.size])
        self._contributions.states(plan, units=len(self._units))
        self._contributions.check_hidden(plan)
        self._contributions.check_acute(plan)
        self._contributions.check_aligned(plan)

    def _answer(self, task: CheckedQuery, run: AcceptedRun, kept: Kept, circle: Circle | None) -> bytes:
        """Return the bytes of one answer."""
        if run.plan.trust is TrustModel.AGGREGATE and not task.asked.step.alone:
            return encode_answer(((self._one_message(task, run, kept).to_bytes(),),))
        bound = b"" if circle is None else binding(task.query, circle, run.digest)
        return encode_answer(self._compute(task, run, kept), bound)

    def _one_message(self, task: CheckedQuery, run: AcceptedRun, kept: Kept) -> Message:
        """Return all that a silo says in a step as one vector, masked where there are masks."""
        sent = one_message(self._means(task, run, kept))
        if run.masks is None:
            return sent
        hidden = run.masks.mask(task.query.step, task.query.digest(), sent.payload, sent.width)
        return Message(payload=hidden, width=sent.width)

    def _compute(self, task: CheckedQuery, run: AcceptedRun, kept: Kept) -> tuple[tuple[bytes, ...], ...]:
        """Return the messages of one round, statistic by statistic."""
        asked = task.asked
        if isinstance(asked.step, HiddenRun):
            return (self._hidden_run(task, asked.step),)
        if isinstance(asked.step, TurnWalk):
            return (self._turn_walk(task, asked.step, run),)
        if isinstance(asked.step, Walk):
            return (self._walk(task, asked.step, run),)
        if isinstance(asked.step, CorrelatedStep) and asked.mixes:
            return (self._correlated(task, asked.step, run, kept),)
        sent = self._means(task, run, kept)
        if isinstance(asked.step, DrawnStep):
            sent.append([new_word(self._rng)])
        return tuple(tuple(message.to_bytes() for message in messages) for messages in sent)

    def _means(self, task: CheckedQuery, run: AcceptedRun, kept: Kept) -> list[list[Message]]:
        """Return the messages about the means of one batch."""
        asked, index = task.asked, self._index(task, run)
        units = self._units if index is None else self._units.take(index)
        states = kept.states if index is None else {name: all_[index] for name, all_ in kept.states.items()}
        messages = [
            self._messages(
                measure,
                units,
                at=task.at,
                round=_round(asked.rows, radius, task.query.step),
                fused=fused,
                states=states,
                run=run,
            )
            for measure, radius, fused in zip(asked.sent, task.query.radius, task.fused, strict=True)
        ]
        if index is not None:
            for name, state in states.items():
                kept.states[name][index] = state
        return messages

    def _messages(
        self,
        measure: Measure,
        units: Any,
        *,
        at: Mapping[str, Array],
        round: Round,
        fused: bool,
        states: States,
        run: AcceptedRun,
    ) -> list[Message]:
        """Return the messages about one mean of a batch."""
        return self._contributions.messages(
            measure, units, at=at, round=round, fused=fused, party=run.party, states=states, rng=self._rng
        )

    def _batch(self, task: CheckedQuery, run: AcceptedRun, *, local: int = 0) -> Any:
        """Return the units of a round."""
        index = self._index(task, run, local=local)
        return self._units if index is None else self._units.take(index)

    def _index(self, task: CheckedQuery, run: AcceptedRun, *, local: int = 0) -> IntArray | None:
        """Return which units are in a round, None for all; a silo draws them in secret and tells nobody."""
        step, size = task.asked.step, task.asked.rows
        match step.batch:
            case Fixed():
                return sample_fixed(len(self._units), size, self._rng)
            case Poisson():
                return sample_poisson(len(self._units), step.batch.rate_for(self.size), self._rng)
            case Disjoint():
                block = (task.earlier * step.batches + local) // step.batch.repeats
                start = run.blocks[task.kind] + step.start(block, self.size)
                held = step.batch.block_for(self.size)
                index = take_disjoint_batch(self._order(run), start, held)
                if step.batch.sample is not None:
                    index = index[sample_fixed(held, size, self._rng)]
                return index
            case _:
                return None

    def _order(self, run: AcceptedRun) -> IntArray:
        """Return the secret order of the run, stored before anything is computed with it."""
        if run.order is None:
            n = len(self._units)
            stored = run.store.secret(lambda: draw_disjoint_order(n, self._rng).astype("<i8").tobytes())
            run.order = np.frombuffer(stored, dtype="<i8").astype(np.int64)
            if len(run.order) != n:
                raise LedgerError(f"the data of silo {self.name!r} have changed since the run began.")
        return run.order

    def _correlated(
        self, task: CheckedQuery, step: CorrelatedStep, run: AcceptedRun, kept: Kept
    ) -> tuple[bytes, ...]:
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

    def _hidden_run(self, task: CheckedQuery, step: HiddenRun) -> tuple[bytes, ...]:
        """Take all steps of a hidden run, and return its last iterate."""
        (measure,), n, size = task.asked.sent, self.size, task.asked.rows
        radius, epochs = task.query.radius[0], step.epochs_of(n)
        std = step.noise_std(radius, size)
        if std == 0:
            epochs = [replace(epoch, noise=False, public_noise=False) for epoch in epochs]
        public = self._contributions.public_units(measure, task.at) if step.uses_public else None
        w = run_epochs(
            self._contributions.descend(measure, public, radius=radius),
            w=step.first_point(task.at["w"], n),
            n=n,
            epochs=epochs,
            order=step.order,
            step_size=step.step_size,
            noise_std=std,
            prox=step.prox,
            rng=self._rng,
            batch=size,
        )
        return (Message(payload=w.astype(np.float32)).to_bytes(),)

    def _walk(self, task: CheckedQuery, step: Walk, run: AcceptedRun) -> tuple[bytes, ...]:
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

    def _turn_walk(self, task: CheckedQuery, step: TurnWalk, run: AcceptedRun) -> tuple[bytes, ...]:
        """Walk along an estimate that the silo's own noisy differences carry on; return where it is."""
        if step.turn(task.earlier, run.plan.parties) != run.party:
            raise RefusalError(f"silo {self.name!r} walks in its own turns only, which it pays for.")
        # Under another number it would have other turns as well.
        number = str(run.party).encode()
        if run.store.secrets.keep("turn", lambda: number) != number:
            raise RefusalError(f"silo {self.name!r} has walked in this run as another party.")
        (measure,), (fused,), at = task.asked.sent, task.fused, task.query.at
        n, (longest,), clip = task.asked.rows, task.query.radius, task.at["clip"]
        eta, smoothness = float(at["step_size"]), float(at["smoothness"])
        w, previous, v = task.at["w"], task.at["w"], at["v"].astype(np.float64)
        for local in range(step.check_taken(at["taken"])):
            radius = min(longest, smoothness * float(np.linalg.norm(w - previous)))
            if radius >= SMALLEST_RADIUS:
                here = _round(n, radius, task.query.step)
                points = {"w": w, "previous": previous, "clip": clip}
                units = self._batch(task, run, local=local - 1)
                sent = self._messages(measure, units, at=points, round=here, fused=fused, states={}, run=run)
                v = v + measure.estimator.decode(sent, here) * (n / step.batch.expected(self.size))
            previous, w = w, w - eta * v
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
