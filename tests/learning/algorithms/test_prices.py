"""Every method under every trust, with every batch: its plan has the price of an independent composition.

Privacy losses of all rounds are rounded down, and up, to a grid, and convolved: the truth lies between. Fixed
samples have the curve q H(1 + (a - 1) / q) of one release's curve H under replace-one; Poisson samples the
pair of mixtures on opposite sides; a unit is in one of disjoint batches.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pytest
from scipy import special

from tacit.federation import AnyStep, Batch, Disjoint, Fixed, Full, Measure, Plan, Poisson, Walk
from tacit.learning import (
    LinearObjective,
    LocalizedSubgradient,
    Logistic,
    NoisyLocalSGD,
    PhasedLocalizedSubgradient,
    Settings,
    WhitenedNoisyGD,
)
from tacit.learning.preparation import prepare
from tacit.means import AdditiveMean, BinomialMean, ModularSumMean
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, TrustModel, epsilon_of, meets
from tests.learning.algorithms.test_attacks import RUNS
from tests.privacy.binomial_reference import log_pmf

LOCAL, CENTRAL, SHUFFLE, AGGREGATE = (
    TrustModel.LOCAL,
    TrustModel.CENTRAL,
    TrustModel.SHUFFLE,
    TrustModel.AGGREGATE,
)
BUDGET = PrivacyBudget(2.0, 1e-5)
SIZES = (60, 90)
STEP, BINS = 2e-4, 1 << 16  # losses to 6.5 either way: what is beyond has a mass below 1e-15


@dataclass(frozen=True)
class Law:
    """A law of privacy losses: cells from `low` to `high` with their mass, and what is infinite."""

    low: Array
    high: Array
    mass: Array
    infinite: float = 0.0


def gaussian(multiplier: float) -> Law:
    """One Gaussian release: losses mu x - mu^2 / 2 of x ~ N(mu, 1)."""
    mu = 1 / multiplier
    x = mu + np.linspace(-9.5, 9.5, 40_001)
    loss = mu * x - mu**2 / 2
    return Law(loss[:-1], loss[1:], np.diff(special.ndtr(x - mu)), 2 * float(special.ndtr(-9.5)))


def mixtures(multiplier: float, rate: float) -> Law:
    """A replaced unit of a Poisson sample: (1-q) N(0, 1) + q N(+-b, 1), b = norm bound / noise."""
    b = 1 / (2 * multiplier)
    x = np.linspace(-9.5, 9.5 + b, 40_001)
    there, other = (np.log1p(rate * np.expm1(side * b * x - b * b / 2)) for side in (1, -1))
    cdf = (1 - rate) * special.ndtr(x) + rate * special.ndtr(x - b)
    loss = there - other
    return Law(loss[:-1], loss[1:], np.diff(cdf), 2 * float(special.ndtr(-9.5)))


def binomial(trials: int, shift: int) -> Law:
    """A shuffled sum that one unit moves by `shift`, by enumeration."""
    z = np.arange(trials + 1, dtype=np.float64)
    mass, other = log_pmf(z, trials, 0.5), log_pmf(z + shift, trials, 0.5)
    known = np.isfinite(other)
    loss = (mass - other)[known]
    return Law(loss, loss, np.exp(mass[known]), float(np.exp(mass[~known]).sum()))


def added_up(mean: ModularSumMean) -> Law:
    """The sum of all shares, which one unit moves by that many steps, rounding included: by convolution."""
    share = mean.noise.noise_multiplier * mean.moved * mean.noise.steps
    reach = math.ceil(9.5 * share)
    one = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * share * share))
    total = one / one.sum()
    for _ in range(mean.shares - 1):
        total = np.convolve(total, one / one.sum())
    shift = math.floor(mean.moved * mean.noise.steps + 1)
    here, there = total[:-shift], total[shift:]
    seen = (here > 0) & (there > 0)
    loss = np.log(here[seen] / there[seen])
    return Law(loss, loss, here[seen], float(total.sum() - here[seen].sum()))


def sampled(law: Law, rate: float) -> Law:
    """A symmetric law on a fixed sample: its positive losses shrink, and so do the negative ones."""
    middle = (law.low + law.high) / 2
    chosen = middle > 0
    other = law.mass[chosen] * np.exp(-middle[chosen])
    low, high = (np.log1p(rate * np.expm1(np.maximum(ends[chosen], 0))) for ends in (law.low, law.high))
    mass = other * (1 + rate * np.expm1(middle[chosen]))
    rest = 1 - mass.sum() - other.sum() - rate * law.infinite
    zero = np.zeros(1)
    return Law(
        np.concatenate([low, -high, zero]),
        np.concatenate([high, -low, zero]),
        np.concatenate([mass, other, [rest]]),
        rate * law.infinite,
    )


def composed(laws: Sequence[tuple[Law, int]], epsilon: float) -> tuple[float, float]:
    """The delta of all releases together, from below and from above."""
    found = []
    for up in (False, True):
        spectrum, finite = np.ones(BINS // 2 + 1, dtype=np.complex128), 1.0
        for law, count in laws:
            index = (np.ceil(law.high / STEP) if up else np.floor(law.low / STEP)).astype(np.int64)
            ring = np.bincount(index % BINS, weights=law.mass, minlength=BINS)
            spectrum *= np.fft.rfft(ring) ** count
            finite *= (1 - law.infinite) ** count
        mass = np.maximum(np.fft.irfft(spectrum, BINS), 0)
        loss = ((np.arange(BINS) + BINS // 2) % BINS - BINS // 2) * STEP
        above = loss > epsilon
        delta = float(mass[above] @ -np.expm1(epsilon - loss[above]))
        found.append(delta + (1 - finite) * up)
    return found[0], found[1]


def releases(step: AnyStep, size: int) -> list[Law]:
    """What one round tells of a unit of a silo of that size: laws of independent noise."""
    if len(step.measures) > 1 and not isinstance(step.batch, Full | Disjoint):
        # Both means are of one sample: one Gaussian release, of which the sample is taken.
        means = [one.estimator for one in step.measures if isinstance(one.estimator, AdditiveMean)]
        law = gaussian(math.fsum(mean.noise_multiplier**-2 for mean in means) ** -0.5)
        return [sampled(law, step.batch.size_for(size) / size)]
    return [release(step, measure, size) for measure in step.measures]


def release(step: AnyStep, measure: Measure, size: int) -> Law:
    """What one mean of a round tells of a unit of a silo of that size."""
    mean, batch = measure.estimator, step.batch
    if isinstance(mean, BinomialMean):
        rows = sum(batch.size_for(n) for n in SIZES)  # all silos arrive, and none colludes
        law = binomial(rows * mean.noise_bits, mean.resolution)
    elif isinstance(mean, ModularSumMean):
        law = added_up(mean)
        if isinstance(batch, Poisson):
            rounded = 1 + 1 / mean.noise.steps  # half a step of rounding on either side of one radius
            return mixtures(mean.noise_multiplier / rounded, batch.rate_for(size))
    else:
        assert isinstance(mean, AdditiveMean)
        law = gaussian(mean.noise_multiplier)
        if isinstance(batch, Poisson):
            return mixtures(mean.noise_multiplier, batch.rate_for(size))
    if isinstance(batch, Disjoint) and batch.sample is not None:
        return sampled(law, batch.size_for(size) / batch.block_for(size))
    return sampled(law, batch.size_for(size) / size) if isinstance(batch, Fixed) else law


def independent(plan: Plan, epsilon: float) -> tuple[float, float]:
    """Delta of a plan for the smallest silo, whose rates are largest."""
    laws: list[tuple[Law, int]] = []
    once: list[list[tuple[Law, int]]] = []
    for step, count in plan.kinds:
        found = releases(step, min(SIZES))
        if isinstance(step.batch, Disjoint):
            once.append([(law, min(count, step.batch.repeats)) for law in found])
        else:
            laws += [(law, count * (step.steps if isinstance(step, Walk) else 1)) for law in found]
    if not once:
        return composed(laws, epsilon)
    each = [composed([*laws, *one], epsilon) for one in once]
    return max(low for low, _ in each), max(high for _, high in each)


BATCHES: dict[str, Batch] = {
    "full": Full(),
    "fixed": Fixed(size=15),
    "poisson": Poisson(rate=0.25),
    "disjoint": Disjoint(size=6),
}
METHODS: dict[str, tuple[Any, Sequence[str]]] = {
    **{name: (method, tuple(BATCHES)) for name, method in RUNS.items() if ", one pass" not in name},
    "ftrl": (RUNS["ftrl"], ("full",)),
    "mb-psgm": (RUNS["mb-psgm"], ("full", "disjoint")),
    "mb-psgm, samples": (RUNS["mb-psgm"], ("fixed",)),
    "prox-sgd": (RUNS["prox-sgd"], ("full", "disjoint")),
    "prox-svrg": (RUNS["prox-svrg"], ("full", "fixed", "poisson")),
    "prox-pl-svrg": (RUNS["prox-pl-svrg"], ("full", "fixed", "poisson")),
    **{name: (RUNS[name], ("disjoint",)) for name in ("clipped-ac-sa", "clipped-sgd", "clipped-prox-sgd")},
    "localized": (LocalizedSubgradient(rounds=12), ("full",)),
    "localized, samples": (LocalizedSubgradient(rounds=12, sample="sqrt"), ("full",)),
    "localized-phases": (PhasedLocalizedSubgradient(rounds=12, mu=0.1), ("full",)),
    "local": (NoisyLocalSGD(rounds=2, local_steps=3), ("fixed", "poisson")),
    "whitened": (WhitenedNoisyGD(rounds=5), ("full", "fixed")),
}


def trusts_of(method: Any, turn: int, *, all_of_them: bool) -> list[TrustModel]:
    """All trust models that a method runs under, or every second of them, the others at the next turn."""
    found = [trust for trust in (LOCAL, CENTRAL, SHUFFLE, AGGREGATE) if trust in method.trusts]
    return found if all_of_them or len(found) == 1 else found[turn % 2 :: 2]


# A method asks for the same rounds with every batch, and a round costs the same in every method: each has its
# first batch under all trusts, and the others in turn.
CASES = [
    (name, trust, batch)
    for turn, (name, (method, batches)) in enumerate(METHODS.items())
    for k, batch in enumerate(batches)
    for trust in trusts_of(method, turn + k, all_of_them=k == 0)
    if (trust, batch) != (SHUFFLE, "poisson")
    and (name != "mb-psgm, samples" or trust in (LOCAL, CENTRAL))
    # Rounded rates of samples differ from silo to silo, and below only the smallest one's is composed.
    and (name != "localized, samples" or trust is LOCAL)
]


def test_every_batch_has_a_price_in_every_method_and_under_every_trust() -> None:
    pairs = {(trust, batch) for _, trust, batch in CASES}
    assert {(trust, batch) for trust in TrustModel for batch in BATCHES} == pairs | {(SHUFFLE, "poisson")}
    every = {(name, batch) for name, (_, batches) in METHODS.items() for batch in batches}
    assert {(name, batch) for name, _, batch in CASES} == every


@pytest.mark.parametrize(("name", "trust", "batch"), CASES, ids=lambda one: getattr(one, "value", one))
def test_the_price_of_a_plan_is_that_of_an_independent_composition(
    name: str, trust: TrustModel, batch: str
) -> None:
    """One coordinate, for which the law of a shuffled sum is known; more cost rounding as well."""
    settings = Settings(
        objective=LinearObjective(loss=Logistic(), features=1, feature_norm=1.0),
        algorithm=msgspec.structs.replace(METHODS[name][0], batch=BATCHES[batch]),
        trust=trust,
        budget=BUDGET,
        clip=0.2,
        noise="gaussian",
    )
    prepared = prepare(settings, SIZES)
    event = prepared.plan.event([min(SIZES)] if settings.silos_pay and trust is not SHUFFLE else SIZES, trust)
    assert meets(event, BUDGET)
    claimed = epsilon_of(event, BUDGET.delta)
    low, high = independent(prepared.plan, claimed)
    # Behind a shuffler a binomial law is bounded by Gaussian ones, and that costs a little; so does it that
    # noise on a grid, of hundreds of steps, is bounded by rounded noise of 9 steps^2 less.
    assert low <= BUDGET.delta <= high * {SHUFFLE: 1.1, AGGREGATE: 1.01}.get(trust, 1)
    # What a run says of its noise is not more than it has.
    assert prepared.noise_multiplier <= min(mean.noise_multiplier for mean in prepared.means) * (1 + 1e-9)
