"""A silo: data, its own secret randomness, its own ledger. It accepts a plan, then answers or refuses.

Whoever adds the noise enforces; under local trust that is the silo, and no curious, wrong or restarted server
can make it overspend. Nothing visible depends on the data: refusals, lengths and errors come from public
facts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from threading import Lock

import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, RefusalError, check_count, check_name
from tacit.federation.accepted import AcceptedRun, Begun, DrawnBatch
from tacit.federation.account import reserve
from tacit.federation.answers import binding, digest_of_run, encode_answer, one_message
from tacit.federation.asked import AskedKind
from tacit.federation.circle import Circle
from tacit.federation.contribution import Contributions
from tacit.federation.kept import Keeper, Kept
from tacit.federation.owner import Owner
from tacit.federation.plan import Plan
from tacit.federation.protocols import Memory, Unsent
from tacit.federation.query import AnyStatistic, Query, Units
from tacit.federation.silo_work import SiloWork
from tacit.federation.store import AnswerStore, LastAnswer, LedgerStore
from tacit.federation.sums import Sums
from tacit.ledger import Ledger
from tacit.means import Message
from tacit.numerics import Array
from tacit.privacy import Guarantee, PrivacyBudget, TrustModel, Unit
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

    def draw(self, query: Query, circle: Circle | None = None) -> DrawnBatch | None:
        """Draw the batch of a query that `prepare` is to answer next, so that others can add up its rows.

        It is for whoever holds the silo in its own process, as `kept` is: which units are in it is private.

        Returns:
            None where an answer is there already, or nothing adds up the rows of several silos.

        Raises:
            RefusalError: As by `answer`.
        """
        with self._lock:
            begun = self._begin(query, circle)
            if isinstance(begun, Unsent):
                return None
            begun.drawn = self._work(begun.run).draw(begun.task)
            begun.run.begun = begun
            return begun.drawn

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

    def _begin(self, query: Query, circle: Circle | None) -> Begun | Unsent:
        """Check a query; return its answer if there is one already."""
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
        return Begun(run, task, circle, digest)

    def _drawn(self, query: Query, circle: Circle | None) -> Begun | None:
        """Return the query whose batch was drawn, if it is this one; whichever it is, that is forgotten."""
        run = self._run
        if run is None or run.begun is None:
            return None
        begun, run.begun = run.begun, None
        return begun if begun.task.query is query and begun.circle is circle else None

    def _prepare(self, query: Query, circle: Circle | None) -> Unsent:
        """Compute an answer while nobody else does."""
        begun = self._drawn(query, circle) or self._begin(query, circle)
        if isinstance(begun, Unsent):
            return begun
        run = begun.run
        # A warning about an overflow would tell about a unit.
        with np.errstate(all="ignore"):
            kept = run.keeper.read(None if run.keeper.idle else run.store.state())
            answer = self._answer(begun, kept)
        keep = partial(run.store.keep, query.step, begun.digest, answer, run.keeper.write(kept))
        unsent = Unsent(keep, None if self._ledger is None else self._ledger.keeper)
        run.unsent = None if run.masks is None else (query.step, begun.digest, unsent)
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

    def _answer(self, begun: Begun, kept: Kept) -> bytes:
        """Return the bytes of one answer."""
        run, circle = begun.run, begun.circle
        if run.plan.trust is TrustModel.AGGREGATE and not begun.task.asked.step.alone:
            return encode_answer(((self._one_message(begun, kept).to_bytes(),),))
        bound = b"" if circle is None else binding(begun.task.query, circle, run.digest)
        return encode_answer(self._compute(begun, kept), bound)

    def _one_message(self, begun: Begun, kept: Kept) -> Message:
        """Return all that a silo says in a step as one vector, masked where there are masks."""
        run, query = begun.run, begun.task.query
        sent = one_message(self._work(run).means(begun, kept))
        if run.masks is None:
            return sent
        hidden = run.masks.mask(query.step, query.digest(), sent.payload, sent.width)
        return Message(payload=hidden, width=sent.width)

    def _compute(self, begun: Begun, kept: Kept) -> tuple[tuple[bytes, ...], ...]:
        """Return the messages of one round, statistic by statistic."""
        return self._work(begun.run).compute(begun, kept)

    def _work(self, run: AcceptedRun) -> SiloWork:
        """Return what computes answers of a run."""
        return SiloWork(self._units, self._contributions, self.size, self._owner.who, run, self._rng)
