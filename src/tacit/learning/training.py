"""Train one model across silos: prepare a priced plan, then run it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from tacit.errors import ParameterError, printable
from tacit.federation import (
    AnyStatistic,
    Federation,
    InProcess,
    OpenSums,
    Participation,
    Party,
    Plan,
    Silo,
    StatefulStatistic,
    Statistic,
    Sums,
    Traffic,
)
from tacit.federation.participation import SameInTurn
from tacit.learning.algorithms import Algorithm, Method, algorithm_name, statistics_of, traits_of
from tacit.learning.clipping import after_histogram
from tacit.learning.gradient_norms import GradientNorms
from tacit.learning.objective import Grouped, Objective, PerPerson, Records
from tacit.learning.preparation import Prepared, at_clip, prepare
from tacit.learning.settings import Settings
from tacit.ledger import Ledger
from tacit.numerics import Array
from tacit.privacy import Guarantee, Relation, TrustModel, Unit
from tacit.randomness import simulated

__all__ = [
    "PartitionSilos",
    "Trained",
    "consider",
    "in_process",
    "make_silos",
    "silo_for",
    "silos_for",
    "starting_point",
    "train",
]


@dataclass(frozen=True, kw_only=True)
class Trained:
    """What a run leaves.

    Attributes:
        algorithm: Name of what ran, as `algorithm_name` gives it.
        algorithm_reason: Why that one, in one sentence.
        w: Parameters, shape (size,).
        plan: What was asked.
        rounds: Number of rounds.
        noise_multiplier: Standard deviation / sensitivity; 0 without privacy.
        guarantees: One in all under central trust, else one per silo.
        guarantees_alone: What the messages of a silo show alone, to who sees them before they are shuffled or
            hidden in a sum: one per silo under shuffle and aggregate trust, else none.
        traffic: Bits and answers per silo.
        trained_with: Number of public records that were trained on beside those of the silos.
        clip: The clip that a first round chose, which is a part of what the guarantees are about; None where
            it was public.
        personal: Parameters of each party's own model, where an algorithm makes such and one process has all
            parties: no guarantee covers them, and they are for their parties alone.
        parties: Name of each party of `personal`.
    """

    algorithm: str
    algorithm_reason: str
    w: Array
    plan: Plan
    rounds: int
    noise_multiplier: float
    guarantees: list[Guarantee]
    traffic: Traffic
    guarantees_alone: list[Guarantee] = field(default_factory=list)
    trained_with: int = 0
    clip: float | None = None
    personal: tuple[Array, ...] = ()
    parties: tuple[str, ...] = ()

    @property
    def guarantee(self) -> Guarantee:
        """The weakest of the guarantees."""
        return max(self.guarantees, key=lambda g: g.epsilon)

    @property
    def guarantee_alone(self) -> Guarantee | None:
        """The weakest of what messages show alone; None where each is seen alone anyway."""
        return max(self.guarantees_alone, key=lambda g: g.epsilon, default=None)


def make_silos(
    records: Sequence[Records | Grouped],
    objective: Objective,
    *,
    names: Sequence[str] | None = None,
    ledgers: Sequence[Ledger] | None = None,
    planned: Sequence[int] | None = None,
    trusts_server: bool = False,
    trusts_shuffler: bool = False,
    sums: Sums | Sequence[Sums] | None = None,
    statistics: Mapping[str, AnyStatistic] | None = None,
    seed: int | None = None,
) -> list[Silo]:
    """Make silos that can answer whatever an algorithm asks about an objective.

    Args:
        records: The units of each silo; all records, or all persons.
        objective: What will be trained.
        names: Of the silos, with what does not print written as an escape; None numbers them.
        ledgers: Of the silos; None keeps no account.
        planned: Public numbers of units, for add-remove and only there.
        trusts_server: Whether exact sums may leave a silo: under central trust, and without privacy.
        trusts_shuffler: Whether messages may leave a silo that a shuffler has to hide.
        sums: What the owners of silos say about sums, under aggregate trust: one word for all, or each one's.
        statistics: Of records, by name; None is what the library's algorithms ask.
        seed: Randomness for simulation; None takes secret randomness.
    """
    known = statistics_of(objective) if statistics is None else statistics
    return [
        _make_silo(
            units,
            known,
            name=str(k) if names is None else printable(names[k]),
            planned=None if planned is None else planned[k],
            ledger=None if ledgers is None else ledgers[k],
            trusts_server=trusts_server,
            trusts_shuffler=trusts_shuffler,
            sums=sums[k] if isinstance(sums, Sequence) else sums,
            rng=None if seed is None else simulated(seed, "silo", k),
        )
        for k, units in enumerate(records)
    ]


def silo_for(
    settings: Settings,
    units: Records | Grouped,
    *,
    name: str,
    ledger: Ledger | None = None,
    trusts_server: bool = True,
    trusts_shuffler: bool = True,
    sums: Sums | None = None,
    rng: np.random.Generator | None = None,
) -> Silo:
    """Return one of the silos of `silos_for`, for a federation whose silos are made where their data are.

    Args:
        settings: Of the run.
        units: What the silo holds.
        name: Of the silo.
        ledger: Of the silo; None keeps no account.
        trusts_server: Whether the owner trusts a server that the settings trust.
        trusts_shuffler: Whether the owner trusts a shuffler likewise.
        sums: What the owner says about sums, under aggregate trust; None is that one process adds them up.
        rng: Seeded randomness for simulation; None takes secret randomness.
    """
    own = {name: make(settings.objective) for name, make in settings.algorithm.statistics.items()}
    known = own if settings.unit is Unit.PARTY else {**statistics_of(settings.objective), **own}
    return _make_silo(
        units,
        known,
        unit=settings.unit,
        name=printable(name),
        planned=len(units) if settings.relation is Relation.ADD_REMOVE else None,
        ledger=ledger,
        trusts_server=trusts_server and settings.trusts_server,
        trusts_shuffler=trusts_shuffler and settings.trusts_shuffler,
        sums=sums_of(settings) if sums is None else sums,
        rng=rng,
    )


@dataclass(frozen=True)
class PartitionSilos:
    """Makes the silo of a partition wherever it is wanted, as simulations on many processors do.

    Attributes:
        settings: Of the run.
        load: Returns what the silo of a partition holds, by its number; a function of a module that other
            processes can import, or `functools.partial` of one.
    """

    settings: Settings
    load: Callable[[int], Records | Grouped]

    def __call__(self, partition: int, rng: np.random.Generator | None) -> Silo:
        """Return the silo of a partition, which draws from `rng`; None is secret randomness."""
        return silo_for(self.settings, self.load(partition), name=str(partition), rng=rng)


def _make_silo(
    units: Records | Grouped,
    known: Mapping[str, AnyStatistic],
    *,
    name: str,
    unit: Unit = Unit.RECORD,
    **facts: Any,
) -> Silo:
    """Return a silo of records or of persons, with statistics of records; or of one party, with its own."""
    if unit is Unit.PARTY:
        party = units if isinstance(units, Grouped) else Grouped.whole(units)
        return Silo(party, known, name=name, unit=unit, **facts)
    if not isinstance(units, Grouped):
        return Silo(units, known, name=name, unit=Unit.RECORD, **facts)
    for statistic, found in known.items():
        if isinstance(found, StatefulStatistic):
            raise ParameterError(
                f"the statistic {statistic!r} keeps a state of records, and the units are persons: give it a "
                "state of persons."
            )
    of_persons = {
        statistic: found.of_persons()
        if isinstance(found, GradientNorms)
        else PerPerson(cast(Statistic, found))
        for statistic, found in known.items()
    }
    return Silo(units, of_persons, name=name, unit=Unit.PERSON, **facts)


def sums_of(settings: Settings) -> Sums | None:
    """Return who adds up what silos of one process send; None but under aggregate trust."""
    return OpenSums(colluding=settings.colluding) if settings.trust is TrustModel.AGGREGATE else None


def in_process(
    parties: Sequence[Party],
    *,
    ledger: Ledger | None = None,
    data_ledger: Ledger | None = None,
    seed: int | None = None,
) -> InProcess:
    """Return the federation of parties that are objects of this process.

    Args:
        parties: Made by `make_silos`.
        ledger: The trusted server's account, under central trust.
        data_ledger: The account of all records together, under every trust model.
        seed: Of the server's noise and of who takes part, for simulation; None takes secret randomness.
    """
    return InProcess(
        parties,
        ledger=ledger,
        data_ledger=data_ledger,
        rng=None if seed is None else simulated(seed, "server"),
        public_seed=seed,
        shuffler_rng=None if seed is None else simulated(seed, "shuffler"),
    )


def silos_for(
    settings: Settings,
    units: Sequence[Records | Grouped],
    *,
    names: Sequence[str],
    seed: int | None = None,
    ledgers: Sequence[Ledger] | None = None,
    ledger: Ledger | None = None,
    data_ledger: Ledger | None = None,
) -> InProcess:
    """Return silos of units that one run can be trained across; arguments as for `make_silos`, `in_process`.

    The silos answer for the statistics of the library's algorithms, and for those of the one that is trained.
    Under add-remove, means are divided by the numbers of units that there are: they are taken to be public,
    and whoever states a guarantee must say so (`tacit.privacy.run_clauses.clauses_of_ids`).
    """
    silos = [
        silo_for(
            settings,
            one,
            name=names[k],
            ledger=None if ledgers is None else ledgers[k],
            rng=None if seed is None else simulated(seed, "silo", k),
        )
        for k, one in enumerate(units)
    ]
    return in_process(silos, ledger=ledger, data_ledger=data_ledger, seed=seed)


def consider(federation: InProcess, settings: Settings) -> tuple[Prepared, list[Guarantee]]:
    """Prepare a run as `train` does, and have it priced; nothing is reserved, and nothing is asked.

    Raises:
        TacitError: As in `train`.
    """
    prepared = prepare(settings, federation.sizes)
    guarantees = federation.consider(
        prepared.plan,
        run=settings.run,
        participation=_participation(settings, prepared),
        weights=settings.weights,
        budget=settings.budget,
    )
    return prepared, guarantees


def starting_point(settings: Settings) -> Array:
    """Return where a run starts, shape (size,): its first point, or one of the regulariser's domain near it.

    Averages of points hold the start too, so that it must not lie outside.

    Raises:
        ParameterError: The regulariser is of another number of parameters.
    """
    first, f1 = settings.first_point, settings.regularizer
    return first if math.isfinite(f1.value(first)) else f1(1.0, first)


def train(
    federation: Federation,
    settings: Settings,
    *,
    prepared: Prepared | None = None,
    begin: Callable[[int], None] | None = None,
    follow: Callable[[int, Array], None] | None = None,
) -> Trained:
    """Train one model across the parties of a federation.

    Args:
        federation: Who answers; `in_process` makes one of silos.
        settings: Everything else.
        prepared: The plan that parties have agreed to, where there is one; None makes it of the settings.
        begin: Called once with the number of rounds, when all is accepted and before anything is asked.
        follow: Called after each round with its number and the point. What it shows of private data is a
            release of its own: for progress bars, and for traces in simulation.

    Raises:
        ParameterError: The settings do not fit the parties; nothing is spent.
        BudgetError: The price exceeds the budget or a ledger; nothing is spent.
    """
    prepared = prepare(settings, federation.sizes) if prepared is None else prepared
    start = starting_point(settings)
    ask = federation.open(
        prepared.plan,
        run=settings.run,
        participation=_participation(settings, prepared),
        weights=settings.weights,
        budget=settings.budget,
    )
    if begin is not None:
        begin(prepared.rounds)
    problem, clip, own = prepared.problem, None, settings.auto_clip
    if own is not None:
        clip = own.choose(ask, start, problem, default=settings.radius)
        problem = at_clip(settings, prepared, federation.sizes, clip)
    w = settings.algorithm.run(
        ask if own is None else after_histogram(ask),
        start,
        problem=problem,
        rounds=prepared.rounds,
        prox=settings.regularizer,
        follow=follow or (lambda _r, _w: None),
    )
    personal = _personal(federation, settings.algorithm, w)
    return Trained(
        algorithm=algorithm_name(settings.algorithm),
        algorithm_reason=settings.reason,
        w=w,
        plan=prepared.plan,
        rounds=prepared.rounds,
        noise_multiplier=prepared.noise_multiplier,
        guarantees=ask.guarantees,
        guarantees_alone=ask.guarantees_alone,
        traffic=ask.traffic,
        trained_with=settings.trained_with,
        clip=clip,
        personal=tuple(personal),
        parties=tuple(federation.names) if personal and isinstance(federation, InProcess) else (),
    )


def _personal(federation: Federation, algorithm: Algorithm, common: Array) -> list[Array]:
    """Return the models that parties of this process keep; the common one of who has not been asked yet."""
    kept = traits_of(algorithm).personal
    if not kept or not isinstance(federation, InProcess) or not federation.holds_silos:
        return []
    return [row[0, :-1] if row[0, -1] else common.copy() for row in federation.kept(kept)]


def _participation(settings: Settings, prepared: Prepared) -> Participation | None:
    """Return who takes part: where rounds of an algorithm need the same silos, those of the first of them."""
    chosen, algorithm = settings.participation, settings.algorithm
    if chosen is None or not isinstance(algorithm, Method):
        return chosen
    first = algorithm.turns(prepared.problem, prepared.rounds)
    if first and settings.auto_clip is not None:  # the histogram is a turn of its own
        first = (0, *(r + 1 for r in first))
    return SameInTurn(chosen, first) if first else chosen
