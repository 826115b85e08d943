"""Attacks on whole runs of DP-FERMI: one person's attribute, or whole record, by its likelihood ratio.

The attacker sees every answer of a run, knows all other records, and takes the likelihood ratio, which no
other test beats (Neyman and Pearson). Wrong once in 1 / FALSE_ALARM.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from tacit.audits import Audit, audit
from tacit.fairness import FairUnits, PrivateFermi, PublicRecords, Shares
from tacit.federation import Plan
from tacit.numerics import Array
from tacit.privacy import Part
from tacit.randomness import simulated
from tests.fairness.private import (
    Overheard,
    Seen,
    clipped,
    method_of,
    names_of,
    noisy_ask,
    training_of,
    units_of,
)
from tests.fairness.problems import D, records
from tests.learning.attacks import LOOSE, quieter
from tests.statistics import FALSE_ALARM

N = 6
RUNS = 500
SHARES = {Part.SENSITIVE: Shares(0.45, 0.45, 0.1), Part.ALL: Shares(0.2, 0.2, 0.6)}
"""At first W says the same of all groups, and the share of the gradient is asked for nothing then."""


def neighbours(part: Part, groups: int) -> tuple[FairUnits, FairUnits, PublicRecords | None]:
    """Two data sets that differ in the first record, as far from each other as the method sees."""
    X, y, s = records(N, 2, groups)
    X[0] = [3.0, -2.0, 1.0]
    other, Xo, yo = s.copy(), X.copy(), y.copy()
    other[0] = 1
    if part is Part.ALL:
        Xo[0], yo[0] = -X[0], y[0]
    where = np.zeros(N, dtype=np.int64)
    public = PublicRecords(X, y, where) if part is Part.SENSITIVE else None
    return units_of(X, y, s), units_of(Xo, yo, other), public


def ratio(
    method: PrivateFermi, there: FairUnits, other: FairUnits, deviations: list[tuple[float, ...]]
) -> Callable[[list[Seen]], float]:
    """The log-likelihood ratio of the data sets, for Gaussian noise of these deviations at the radius 1."""

    def score(seen: list[Seen]) -> float:
        total = 0.0
        for one in seen:
            kind = min(one.step, 1)
            asked = zip(names_of(method)[kind], one.radius, one.means, deviations[kind], strict=True)
            for name, radius, mean, deviation in asked:
                if radius == 0:
                    continue
                means = [clipped(method, name, units, one.at, radius) / N for units in (there, other)]
                off = [float(np.sum((mean - each) ** 2)) for each in means]
                total += (off[1] - off[0]) / (2 * (deviation * radius) ** 2)
        return total

    return score


def attacked(
    part: Part, groups: int, factor: float, target: float | None = None, *, only: str | None = None
) -> Audit:
    """Attack a run with that share of its noise, in all of its means or in one of them."""
    there, other, public = neighbours(part, groups)
    method = method_of(
        part=part, groups=groups, rounds=2, clip=0.02, weight=2.0, shares=SHARES[part], target=target
    )
    training = training_of(method, LOOSE)
    honest = training.plan(training.multiplier([N]), [N])
    plan = quieter(honest, factor) if only is None else quiet_in(honest, factor, only)
    start = np.array([1.2, -0.8, 0.1])[:D]
    deviations = [
        tuple(m.estimator.noise.noise_multiplier * m.estimator.moved / N for m in step.measures)  # type: ignore[union-attr]
        for step, _ in (honest if only is None else plan).kinds
    ]
    score = ratio(method, there, other, deviations)

    def once(units: FairUnits, seed: int) -> float:
        overheard = Overheard(noisy_ask(method, plan, units, simulated(seed, "noise")))
        method.run(overheard, start, n=N, public=public)
        return score(overheard.seen)

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        units = there if present else other
        return np.array([once(units, int(rng.integers(2**62))) for _ in range(size)])

    return audit(
        run,
        (honest.event([N], training.trust), LOOSE.delta),
        runs=RUNS,
        confidence=1 - FALSE_ALARM,
        rng=simulated(3, "audit"),
        attack="likelihood ratio",
    )


def quiet_in(plan: Plan, factor: float, name: str) -> Plan:
    """The plan with less noise in one mean of its rounds."""
    steps = []
    for (step, n), (quiet, _) in zip(plan.kinds, quieter(plan, factor).kinds, strict=True):
        pairs = zip(step.measures, quiet.measures, strict=True)
        measures = tuple(two if one.statistic == name else one for one, two in pairs)
        steps.append((msgspec.structs.replace(step, measures=measures), n))
    return msgspec.structs.replace(plan, steps=tuple(steps))


@pytest.mark.parametrize(
    ("part", "target"), [(Part.SENSITIVE, None), (Part.SENSITIVE, 0.01), (Part.ALL, 0.01)]
)
def test_the_claim_stands_and_half_the_noise_is_caught(part: Part, target: float | None) -> None:
    """With a target a run releases all that it does without, and counts of decisions besides."""
    groups = 2
    found = attacked(part, groups, 1.0, target)
    assert found.claimed_epsilon == pytest.approx(LOOSE.epsilon, rel=1e-6)
    assert not found.refuted
    assert attacked(part, groups, 0.5, target).refuted


def test_counts_of_decisions_with_less_noise_are_caught() -> None:
    """The counts that move the weight are a release of their own, with noise of their own."""
    assert attacked(Part.SENSITIVE, 2, 0.25, 0.01, only="group-decisions").refuted
