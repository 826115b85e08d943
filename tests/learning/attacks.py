"""Attacks on whole runs: all that a run shows tests two neighbouring data sets, beside what is claimed.

Every attack on training is this one loop: prepare a run for a budget, take some of the noise away, run the
algorithm on either of two data sets, score what its server saw, and hold the audit's bound against the price.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np
from scipy import stats

from tacit.audits import Audit, audit
from tacit.federation import Ask, Group, Plan, Statistic, Units
from tacit.learning import Records, Settings, in_process, make_silos
from tacit.learning.algorithms import statistics_of
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.training import sums_of
from tacit.means import AdditiveMean, BinomialMean, ModularSumMean
from tacit.numerics import Array
from tacit.privacy import Event, Gaussian, PrivacyBudget, Relation, TrustModel, calibrate, guarantee
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

LOOSE = PrivacyBudget(1.0, 0.3)
"""A delta at which some hundred runs show what noise of half the size gives away."""


@dataclass(frozen=True)
class Seen:
    """One round, as the server sees it."""

    step: int
    at: Mapping[str, Array]
    radius: tuple[float, ...]
    means: tuple[Array, ...]


Score = Callable[[Sequence[Seen]], Array]
"""What the rounds of a run say of the unit, shape (k,): of k units, each attacked by itself."""


@dataclass(frozen=True)
class Parted:
    """What `parted` finds.

    Attributes:
        claimed_epsilon: The price, at the delta of the claim.
        refuted: Whether it is false, wrongly so once in 1 / FALSE_ALARM.
    """

    claimed_epsilon: float
    refuted: bool


def parted(
    run: Callable[[bool, int, np.random.Generator], Array], claim: tuple[Event, float], *, runs: int
) -> Parted:
    """Attack as `audit` does, by scores that are sums of Gaussian noise about a mean of either data set.

    Two normal laws of one variance are (epsilon, delta)-close just if no more than mu deviations part their
    means, where mu is that of the Gaussian release with this price. Then a two-sample t statistic exceeds the
    quantile of its noncentral law rarely enough. Guesses, which hold for all laws, take three times the runs.
    """
    price = guarantee(*claim, observer="an observer")
    mu = 1 / calibrate(Gaussian, PrivacyBudget(price.epsilon, price.delta))
    rng, size = simulated(1, "audit"), runs // 2
    there, other = (run(present, size, rng) for present in (True, False))
    found = stats.ttest_ind(there, other, alternative="greater").statistic
    chance = stats.nct.sf(found, 2 * size - 2, mu * math.sqrt(size / 2))
    return Parted(price.epsilon, bool(chance < FALSE_ALARM))


@dataclass
class Overheard:
    """An `Ask` that keeps what it shows."""

    ask: Ask
    seen: list[Seen] = field(default_factory=list)

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        means = self.ask(step, at, radius)
        self.seen.append(Seen(step, dict(at), radius, means))
        return means


def attacked(
    settings: Settings,
    there: Sequence[Records],
    other: Sequence[Records],
    score: Callable[[Prepared], Score],
    *,
    factor: float = 1.0,
    runs: int = 600,
    normal: bool = False,
    statistics: Mapping[str, Statistic] | None = None,
    honest: Prepared | None = None,
) -> Audit | Parted:
    """Attack whole runs that add that share of the noise of their price; wrong once in 1 / FALSE_ALARM.

    Args:
        normal: Whether scores are normal, with a variance that is the same wherever the unit is: a linear
            function of Gaussian noise. Then some 200 runs show what half the noise gives away.
        honest: The run as it is priced, where it is at hand.
    """
    sizes, trust = [len(units) for units in there], settings.trust
    assert trust is not None
    assert settings.budget is not None
    honest = prepare(settings, sizes) if honest is None else honest
    plan, judge = quieter(honest.plan, factor), score(honest)
    # Some thousand silos are made, and most of their time goes into statistics that no plan names.
    asked = {measure.statistic for step, _ in plan.kinds for measure in step.measures}
    known = statistics_of(settings.objective) if statistics is None else statistics
    known = {name: statistic for name, statistic in known.items() if name in asked}

    def once(seed: int, *, present: bool) -> Array:
        silos = make_silos(
            there if present else other,
            settings.objective,
            planned=sizes if settings.relation is Relation.ADD_REMOVE else None,
            trusts_server=settings.trusts_server,
            trusts_shuffler=settings.trusts_shuffler,
            sums=sums_of(settings),
            statistics=known,
            seed=seed,
        )
        overheard = Overheard(in_process(silos, seed=seed).open(plan))
        settings.algorithm.run(
            overheard,
            np.zeros(settings.objective.size),
            problem=honest.problem,
            rounds=honest.rounds,
            prox=settings.regularizer,
            follow=lambda _r, _w: None,
        )
        return judge(overheard.seen)

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        found: list[Array] = []
        while sum(map(len, found)) < size:
            found.append(once(int(rng.integers(2**62)), present=present))
        return np.concatenate(found or [np.empty(0)])[:size]

    claim = honest.plan.event(sizes, trust), settings.budget.delta
    if normal:
        return parted(run, claim, runs=runs)
    return audit(
        run,
        claim,
        runs=runs,
        confidence=1 - FALSE_ALARM,
        rng=simulated(1, "audit"),
        attack="canary",
    )


def stands_and_half_the_noise_is_caught(
    settings: Settings,
    there: Sequence[Records],
    other: Sequence[Records],
    score: Callable[[Prepared], Score],
    **options: Any,
) -> None:
    """Assert that the best attack does not refute the price, and refutes that of half the noise."""
    honest = prepare(settings, [len(units) for units in there])
    found = attacked(settings, there, other, score, honest=honest, **options)
    assert settings.budget is not None
    # Noise under shuffle trust comes in whole bits, so that a price may be less than what it may be.
    least = 0.75 if settings.trust is TrustModel.SHUFFLE else 1 - 1e-3
    assert least <= found.claimed_epsilon / settings.budget.epsilon <= 1 + 1e-9
    assert not found.refuted
    assert attacked(settings, there, other, score, factor=0.5, honest=honest, **options).refuted


def quieter(plan: Plan, factor: float) -> Plan:
    """The same plan with that share of the noise's standard deviation; nobody would price it so."""

    def mean(estimator: Any) -> Any:
        if isinstance(estimator, BinomialMean):
            bits = round(estimator.noise_bits * factor**2)
            return msgspec.structs.replace(estimator, noise_bits=max(bits, 1))
        assert isinstance(estimator, AdditiveMean | ModularSumMean)
        noise: Any = estimator.noise
        noise = msgspec.structs.replace(noise, noise_multiplier=noise.noise_multiplier * factor)
        return msgspec.structs.replace(estimator, noise=noise)

    def kind(one: Any) -> Any:
        if isinstance(one, Group):
            return msgspec.structs.replace(one, steps=tuple((kind(step), n) for step, n in one.steps))
        measures = (msgspec.structs.replace(m, estimator=mean(m.estimator)) for m in one.measures)
        return msgspec.structs.replace(one, measures=tuple(measures))

    return msgspec.structs.replace(plan, steps=tuple((kind(one), n) for one, n in plan.steps))


# A canary on every coordinate


@dataclass
class Canary:
    """A statistic and a score: every unit of a silo has its own coordinate, and all are attacked at once.

    Rows go along the features of a unit and are longer than every radius, at any point: no record does more.
    Noise is independent on all coordinates, so that a run is as many attacks as there are units.

    Attributes:
        taken: Which units were in the batch that was asked at a point: prices hold against those who know.
    """

    taken: dict[bytes, Array] = field(default_factory=dict)

    def __call__(self, units: Units, at: Mapping[str, Array]) -> Array:
        assert isinstance(units, Records)
        taken = self.taken.setdefault(at["w"].tobytes(), np.zeros(units.X.shape[1]))
        taken[units.y[units.y >= 0].astype(int)] = 1
        return np.asarray(1e9 * units.X)

    def score(self, honest: Prepared) -> Score:
        """The log-likelihood ratio of every unit and its neighbour, for Gaussian noise."""
        schedule, sizes = honest.plan.schedule(), honest.problem.protection.silos or honest.problem.sizes
        levels: dict[int, list[float]] = {}
        for mean in honest.means:
            levels.setdefault(mean.kind - 1, []).append(1 / mean.noise_multiplier**2)

        def score(seen: Sequence[Seen]) -> Array:
            total = np.zeros(honest.problem.dim)
            for one in (one for one in seen if max(one.radius) > 0):
                kind = schedule.kind(one.step)
                rows = sum(schedule.steps[kind].batch.size_for(n) for n in sizes)
                means, radii, point = one.means, one.radius, one.at["w"]
                # Walks release the point where they end: the gradients of their steps, added up.
                if "step_size" in one.at:
                    means = ((point - means[0]) / one.at["step_size"],)
                # One step along v, and one along v and a difference, whose clip goes by the first.
                if "taken" in one.at:
                    moved = one.at["step_size"] * one.at["v"]
                    means, point = (means[0] - 2 * one.at["v"],), point - moved
                    radii = (min(radii[0], float(one.at["smoothness"] * np.linalg.norm(moved))),)
                taken = self.taken[point.tobytes()]
                for level, shown, radius in zip(levels[kind], means, radii, strict=True):
                    total += taken * level * rows * shown / radius if radius > 0 else 0
            self.taken.clear()
            return total

        return score


def canaries(sizes: Sequence[int], relation: Relation) -> tuple[list[Records], list[Records]]:
    """Silos of which the units of the first have a coordinate each, as far as can be, and their neighbours.

    The label of a unit is its coordinate, or -1.
    """
    dim = sizes[0]
    rest = [Records.of(np.zeros((n, dim)), np.full(n, -1.0)) for n in sizes[1:]]
    other = -np.eye(dim) if relation is Relation.REPLACE_ONE else np.zeros((dim, dim))
    there, away = (Records.of(X, np.arange(dim)) for X in (np.eye(dim), other))
    return [there, *rest], [away, *rest]
