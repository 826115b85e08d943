"""Many clients with a few units each, simulated in one vectorised call a round: the law of `InProcess`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, RefusalError, check_choice, check_count, check_name
from tacit.federation.account import check_price, price_of
from tacit.federation.answers import answer_bytes
from tacit.federation.batches import Disjoint, Fixed, Poisson
from tacit.federation.contribution import Contributions, States
from tacit.federation.correlated import CorrelatedStep
from tacit.federation.drawn import DrawnStep, draw_parties
from tacit.federation.owner import counted_by
from tacit.federation.participation import Everybody, Participation, asked_in, fewest_asked, public_seed
from tacit.federation.plan import Plan
from tacit.federation.protocols import Memory, Traffic, Weights
from tacit.federation.query import AnyStatistic, Query, Units
from tacit.federation.server import Server
from tacit.federation.silos import check_all_take_part
from tacit.federation.steps import HiddenRun, Walk
from tacit.federation.store import LastAnswer, SecretOf, from_bytes, to_bytes
from tacit.federation.sums import Sums
from tacit.ledger import Ledger
from tacit.means import HemisphereMean, Round
from tacit.numerics import Array, IntArray
from tacit.privacy import Guarantee, NonPrivate, PrivacyBudget, Relation, TrustModel, Unit
from tacit.privacy.run_clauses import clauses_of_sums
from tacit.randomness import is_secure, secure

__all__ = ["Crowd", "CrowdRounds"]


class Crowd:
    """A federation of many clients that hold the same number of units; `open` starts a run.

    Every round is one call of `MeanEstimator.estimate` on the rows of all clients that answer, which has the
    law of encoding client by client and decoding the messages; public maps of compressed means are drawn for
    the places of clients among those who answer. Clients count alike, and how many units they hold is public.
    They keep no ledgers of their own, and so a crowd is for simulation: a deployed client is a `Silo`.

    Args:
        units: All units, client by client.
        statistics: What can be computed from them, by name.
        clients: Number of clients, a divisor of the number of units; None is one for each unit.
        unit: What one unit is; a plan about another unit is refused. None takes any.
        ledger: The trusted server's account, for central trust.
        trusts_server: Whether exact sums may leave a client, as for `Silo`.
        trusts_shuffler: Whether messages may leave that a shuffler has to hide, as for `Silo`.
        sums: What clients say about who is added up with them, as for `Silo`; nothing is masked.
        rng: Randomness of clients and server; None is secret randomness, which makes the guarantee of a
            trusted server real. What clients would send is simulated in either case, and says so.
        public_seed: Of random participation; None makes it from the names of run and plan.
        is_down: Which clients are down in a round: maps its number to shape (clients,), bool.
        normal_limit: Whether means of hemisphere reports are draws of `HemisphereMean.normal_limit`, for
            sweeps of many runs. It shows what the same plan reaches, and its guarantee claims nothing.

    Raises:
        ParameterError: No units, or a number of clients that does not divide theirs.
    """

    def __init__(
        self,
        units: Units,
        statistics: Mapping[str, AnyStatistic],
        *,
        clients: int | None = None,
        unit: Unit | None = None,
        ledger: Ledger | None = None,
        trusts_server: bool = False,
        trusts_shuffler: bool = False,
        sums: Sums | None = None,
        rng: np.random.Generator | None = None,
        public_seed: int | None = None,
        is_down: Callable[[int], npt.NDArray[np.bool_]] | None = None,
        normal_limit: bool = False,
    ) -> None:
        check_count("the number of units of a crowd", len(units))
        self._clients = check_count("clients", len(units) if clients is None else clients, high=len(units))
        if len(units) % self._clients:
            raise ParameterError(
                f"clients must divide the number of units ({len(units)}), since all of them hold the same "
                f"number, got {clients}."
            )
        self._units, self._statistics, self._unit = units, statistics, unit
        self._ledger, self._trusts_server = ledger, trusts_server
        self._trusts_shuffler, self._sums = trusts_shuffler, sums
        self._rng = secure() if rng is None else rng
        self._public_seed, self._is_down, self._normal_limit = public_seed, is_down, normal_limit

    @property
    def size(self) -> int:
        """Number of units of each client."""
        return len(self._units) // self._clients

    @property
    def sizes(self) -> list[int]:
        """Number of units of every client."""
        return [self.size] * self._clients

    def open(
        self,
        plan: Plan,
        *,
        run: str = "run",
        participation: Participation | None = None,
        weights: Weights = "records",
        budget: PrivacyBudget | None = None,
    ) -> CrowdRounds:
        """Price a plan once, for all clients alike, and start the run; see `InProcess.open`.

        Returns:
            An `Ask` with the guarantee of any client (of the server, under central trust) and the traffic.

        Raises:
            ParameterError: The plan does not fit the clients, has a walk, or weights tell clients apart.
            BudgetError: The price exceeds the budget or what the ledger has left.
            LedgerError: The ledger is about other neighbours, or knows the run with another plan.
            RefusalError: The plan has central trust or no noise, and the crowd was not made with
                `trusts_server`.
        """
        check_name("run", run)
        contributions = Contributions(self._units, self._statistics)
        self._check(plan, contributions, weights)
        chosen = Everybody() if participation is None else participation
        check_all_take_part(plan, chosen)
        fewest = fewest_asked(chosen, self._clients)
        server = Server(plan, self.sizes, weights=weights, uniform=chosen.uniform, rng=self._rng)
        if plan.trust is TrustModel.CENTRAL:
            drawn = plan.samples and not is_secure(self._rng)
            price = server.accept(run=run, budget=budget, ledger=self._ledger, simulated=drawn)
        else:
            price = self._priced(plan, run=run, budget=budget)
        seed = public_seed(run, plan.digest()) if self._public_seed is None else self._public_seed

        def present(number: int) -> IntArray:
            asked = np.array(
                asked_in(chosen, number, self._clients, seed=seed, fewest=fewest), dtype=np.int64
            )
            return asked[~self._down(number)[asked]]

        return CrowdRounds(
            plan,
            self._units,
            contributions,
            server,
            price,
            alone=self._alone(plan),
            size=self.size,
            present=present,
            memory=None if self._ledger is None else SecretOf(self._ledger, run, 0),
            rng=self._rng,
            normal_limit=self._normal_limit,
        )

    def _down(self, number: int) -> npt.NDArray[np.bool_]:
        """Return which clients are down, checked: indices in place of a mask would count a client twice."""
        if self._is_down is None:
            return np.zeros(self._clients, dtype=np.bool_)
        down = np.asarray(self._is_down(number))
        if down.shape != (self._clients,) or down.dtype != np.bool_:
            got = f"{down.dtype} of shape {down.shape}"
            raise ParameterError(f"is_down must return bool of shape ({self._clients},), got {got}.")
        return down

    def _check(self, plan: Plan, contributions: Contributions, weights: Weights) -> None:
        """Refuse a plan that does not fit the clients."""
        plan.check_statistics(contributions.names)
        contributions.states(plan, units=len(self._units))
        contributions.check_acute(plan)
        contributions.check_aligned(plan)
        if plan.neighbours.relation is Relation.ADD_REMOVE:
            raise ParameterError(
                "a crowd needs replace-one or zero-out neighbours, got add-remove: "
                "how many units it has is public."
            )
        if any(isinstance(step, Walk | HiddenRun) for step, _ in plan.kinds):
            raise ParameterError("a crowd answers with means only: clients that walk are silos.")
        if any(isinstance(step, CorrelatedStep) for step, _ in plan.kinds):
            raise ParameterError("a crowd has noise of its own in every round: correlated noise needs silos.")
        if not isinstance(weights, str):
            raise ParameterError(
                f"weights must be 'records' or 'silos': a crowd counts all alike; got {weights!r}."
            )
        check_choice("weights", weights, ["records", "silos"])
        unit = plan.neighbours.unit
        if self._unit is not None and unit is not self._unit:
            raise ParameterError(
                f"the units of the crowd are of kind {self._unit}, those of the plan of kind {unit}."
            )
        if unit is Unit.PARTY and self.size != 1:
            raise ParameterError(
                f"plans that protect whole parties need clients of one unit, got {self.size}."
            )
        if plan.trust is TrustModel.CENTRAL and not self._trusts_server:
            raise RefusalError(
                "the plan trusts the server with exact sums: make the crowd with trusts_server=True."
            )
        if plan.trust is TrustModel.SHUFFLE and not self._trusts_shuffler:
            raise RefusalError(
                "the plan trusts a shuffler: make the crowd with trusts_shuffler=True, or ask for a plan of "
                "local trust."
            )
        means = [measure.estimator for step, _ in plan.kinds for measure in step.measures]
        if self._normal_limit and not all(isinstance(mean, HemisphereMean) for mean in means):
            raise ParameterError(
                "normal_limit must be False for a plan with other means than of hemispheres."
            )
        if self._ledger is not None and plan.trust is not TrustModel.CENTRAL:
            raise ParameterError("ledger is the trusted server's, under central trust; clients keep none.")

    def _priced(self, plan: Plan, *, run: str, budget: PrivacyBudget | None) -> Guarantee:
        """Price the plan as every client does."""
        price = self._charged(plan)
        if self._normal_limit:
            return price
        check_price(price, who="a client", run=run, budget=budget, ledger=None, plan=plan)
        if not math.isfinite(price.epsilon) and not self._trusts_server:
            raise RefusalError(
                "the plan adds no noise to what clients send: a crowd that may send exact sums is made with "
                "trusts_server=True."
            )
        return price

    def _charged(self, plan: Plan) -> Guarantee:
        """Return what is learnt of a client under the trust that it shares."""
        match plan.trust:
            case TrustModel.SHUFFLE:
                seen = "everybody who sees the shuffled batches, the server included,"
            case TrustModel.AGGREGATE:
                (alone,) = self._alone(plan)
                if self._sums is None:
                    return alone
                plan = counted_by(self._sums, plan, alone, who="a client")
                others = f"{plan.colluding} other client{'' if plan.colluding == 1 else 's'}"
                seen = f"everybody but a client itself, the server and up to {others} together,"
            case _:
                seen = "everybody but a client itself, the server included,"
        return self._seen(plan, plan.trust, seen)

    def _alone(self, plan: Plan) -> list[Guarantee]:
        """Return what the messages of any client show alone, where the guarantee is not about that."""
        match plan.trust:
            case TrustModel.SHUFFLE:
                seen = "anybody who sees the messages of a client before they are shuffled"
            case TrustModel.AGGREGATE:
                seen = "the server and all other clients together, who see the message of a client alone,"
            case _:
                return []
        return [self._seen(plan, TrustModel.LOCAL, seen)]

    def _seen(self, plan: Plan, trust: TrustModel, observer: str) -> Guarantee:
        """Return what an observer would learn of any client, whose noise is simulated, always.

        However secret its source: `estimate` draws the noise of all clients at once, by NumPy's samplers
        where they are faster, which a price of exact integers does not describe.
        """
        summed = trust is TrustModel.AGGREGATE
        if self._normal_limit:
            return price_of(
                NonPrivate(plan.neighbours),
                plan.delta,
                observer=observer,
                assumptions=("means are draws of a normal law in place of reports, for simulation only",),
                simulated=True,
            )
        return price_of(
            plan.event([self.size], trust),
            plan.delta,
            observer=observer,
            assumptions=clauses_of_sums(roster=plan.roster, recover=plan.recover) if summed else (),
            simulated=True,
        )


class CrowdRounds:
    """A run of a crowd: calling it runs one round. `Crowd.open` makes it.

    Attributes:
        guarantees: One: of any client, or of the server under central trust.
        guarantees_alone: One of any client under shuffle and aggregate trust, else none.
        traffic: Bits and answers of every client so far.
    """

    def __init__(
        self,
        plan: Plan,
        units: Units,
        contributions: Contributions,
        server: Server,
        price: Guarantee,
        *,
        alone: list[Guarantee],
        size: int,
        present: Callable[[int], IntArray],
        memory: Memory | None,
        rng: np.random.Generator,
        normal_limit: bool,
    ) -> None:
        self._schedule, self._units, self._contributions, self._server = (
            plan.schedule(),
            units,
            contributions,
            server,
        )
        self._blocks = plan.blocks(size)
        self._size, self._present, self._rng = size, present, rng
        self._memory, self._normal_limit = memory, normal_limit
        self._order: IntArray | None = None
        kept = contributions.states(plan, units=len(units)).items()
        self._states: States = {name: np.zeros((len(units), size)) for name, (_, size) in kept}
        self._last = LastAnswer()
        self._central = plan.trust is TrustModel.CENTRAL
        self._bits = [8 * answer_bytes(step, size) for step in self._schedule.steps]
        self._fewest = max(plan.n_min, 1)
        self.guarantees, self.guarantees_alone = [price], alone
        clients = plan.parties
        self.traffic = Traffic(bits_up=np.zeros(clients), answered=np.zeros(clients, dtype=np.int64))

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Run one round and return the mean of every statistic, each of shape (dim,).

        Raises:
            RefusalError: The query is not one of the plan, or its step has been answered at another point.
        """
        query = Query(step, at, radius)
        kind = self._kind(query)
        known = self._server.released(query) if self._central else self._known(query)
        if known is not None:
            return known
        present = self._present(query.step)
        if len(present) < self._fewest:
            self.traffic.skipped += 1
            return self._server.skip(query)
        drawn = self._schedule.steps[kind]
        if isinstance(drawn, DrawnStep):  # the others send nothing that is mixed
            present = draw_parties(drawn, present, self._rng)
            if not len(present):
                self.traffic.skipped += 1
                return self._server.skip(query)
        # A warning about an overflow would tell about a unit.
        with np.errstate(all="ignore"):
            means = self._means(query, kind, present)
        self.traffic.bits_up[present] += self._bits[kind]
        self.traffic.answered[present] += 1
        if self._central:
            return self._server.publish(query, means)
        return from_bytes(self._last.keep(query.step, query.digest(), to_bytes(means)))

    def _kind(self, query: Query) -> int:
        """Return the kind of round that a query asks for, or refuse what the plan does not foresee."""
        try:
            kind = self._schedule.kind(query.step)
        except ParameterError as error:
            raise RefusalError(f"the query is outside the accepted plan: {error}") from error
        step = self._schedule.steps[kind]
        query.check([measure.max_radius for measure in step.measures])
        self._contributions.check(step, query.at)
        return kind

    def _known(self, query: Query) -> tuple[Array, ...] | None:
        """Return the answer if it was given already."""
        stored = self._last.find(query.step, query.digest())
        return None if stored is None else from_bytes(stored)

    def _means(self, query: Query, kind: int, present: IntArray) -> tuple[Array, ...]:
        """Return the means over the clients that answer."""
        step = self._schedule.steps[kind]
        index, sampled = self._batch(kind, query.step, present)
        units = self._units.take(index)
        rows, n = step.batch.size_for(self._size), len(present) * step.batch.size_for(self._size)
        means, states = [], {name: kept[index] for name, kept in self._states.items()}
        for measure, radius in zip(step.measures, query.radius, strict=True):
            values = self._contributions.rows(measure, units, query.at, states)
            if sampled is not None:  # a client whose unit is not drawn still sends its noise
                values = values * sampled[:, None]
            this_round = Round(n=n, radius=radius, number=query.step, parties=len(present))
            estimator = measure.estimator
            if self._normal_limit and isinstance(estimator, HemisphereMean):
                mean = estimator.normal_limit(values, this_round, rng=self._rng)
            else:
                mean = estimator.estimate(values, this_round, rng=self._rng)
            if isinstance(step.batch, Poisson) and estimator.linear:
                mean = mean * (rows / step.batch.expected(self._size))
            means.append(mean)
        drawn = slice(None) if sampled is None else sampled > 0
        for name, kept in states.items():
            self._states[name][index[drawn]] = kept[drawn]
        return tuple(means)

    def _batch(self, kind: int, number: int, present: IntArray) -> tuple[IntArray, Array | None]:
        """Return the units of a round, client by client, and which of them a Poisson sample holds."""
        batch, size, rng = self._schedule.steps[kind].batch, self._size, self._rng
        within: IntArray = np.broadcast_to(np.arange(size), (len(present), size))
        sampled = None
        match batch:
            case Fixed():
                within = rng.permuted(within, axis=1)[:, : batch.size_for(size)]
            case Poisson():
                rate = batch.rate_for(size)
                sampled = (rng.random(within.size) < rate).astype(np.float64)
            case Disjoint():
                held = batch.block_for(size)
                start = self._blocks[kind] + self._schedule.place(number)[1] // batch.repeats * held
                within = self._secret_order()[present, start : start + held]
                if batch.sample is not None:
                    within = rng.permuted(within, axis=1)[:, : batch.size_for(size)]
            case _:
                pass
        return (present[:, None] * size + within).ravel(), sampled

    def _secret_order(self) -> IntArray:
        """Return the order of every client's units; where a server keeps a ledger, it is kept there."""
        if self._order is None:
            clients, size = len(self.traffic.answered), self._size
            everybody = np.broadcast_to(np.arange(size), (clients, size))

            def drawn() -> bytes:
                return self._rng.permuted(everybody, axis=1).astype("<i8").tobytes()

            stored = drawn() if self._memory is None else self._memory(drawn)
            self._order = np.frombuffer(stored, dtype="<i8").reshape(clients, size).astype(np.int64)
        return self._order
