"""About how much noise sampled batches need, by the central limit theorem, before a plan is priced."""

from __future__ import annotations

import math
from collections.abc import Sequence

from scipy import optimize, special

from tacit.federation import AnyStep, Batch, Disjoint, DrawnStep, Full, Poisson
from tacit.learning.round_errors import multiplier_of
from tacit.privacy import Gaussian, PrivacyBudget, Relation, calibrate

__all__ = ["rough_multiplier"]


def rough_multiplier(
    kinds: Sequence[tuple[AnyStep, int]],
    sizes: Sequence[int],
    budget: PrivacyBudget,
    *,
    relation: Relation,
    unit: float,
) -> float:
    """Return about the noise multiplier with which rounds meet a budget.

    The central limit theorem of sampling without replacement says that T mu_1-Gaussian releases at rate q are
    together about mu-Gaussian with mu^2 = 2 T q^2 (e^(mu_1^2) Phi(3 mu_1 / 2) + 3 Phi(-mu_1 / 2) - 2) (Dong,
    Roth and Su 2022, J. R. Stat. Soc. B 84(1), §5); mu^2 of several kinds add up. For a replaced unit of
    Poisson samples it is T times the chi-square of the two mixtures about N(0, 1), mu^2 = 4 T q^2
    sinh(mu_1^2 / 4). The noise of the run is calibrated exactly.

    Args:
        kinds: Of rounds, with how often each is asked, at the multiplier `unit`.
        sizes: Public number of units of each silo.
        budget: Of the run.
        relation: Of its neighbours.
        unit: Multiplier at which the kinds are.
    """
    whole = calibrate(Gaussian, budget)
    rates = [
        max(step.batch.size_for(n) / _drawn_from(step.batch, n) for n in sizes)
        * (step.rate if isinstance(step, DrawnStep) else 1.0)
        for step, _ in kinds
    ]
    # mu_1^2 at the multiplier 1: it is 1 where the shares of a step add up to 1.
    levels = [
        sum((unit / multiplier_of(step, measure)) ** 2 for measure in step.measures) for step, _ in kinds
    ]

    def excess(log_z: float) -> float:
        again, once = 0.0, 0.0
        for (step, count), rate, level in zip(kinds, rates, levels, strict=True):
            mu, batch = math.sqrt(level) * math.exp(-log_z), step.batch
            if isinstance(batch, Disjoint) and batch.sample is None:
                once = max(once, min(batch.repeats, count) * mu**2)
                continue
            spread = 2 * rate**2 * max(_spread(batch, mu, relation), 1e-300)
            if isinstance(batch, Disjoint):
                once = max(once, min(batch.repeats, count) * spread)
            else:
                again += step.batches * count * spread
        return math.log((again + once) * whole**2)

    facts = zip(kinds, rates, levels, strict=True)
    steps = sum(step.batches * count * rate**2 * level for (step, count), rate, level in facts)
    low, high = min(0.05, whole / 10) * math.sqrt(max(levels)), 10 * whole * max(math.sqrt(steps), 1.0)
    while excess(math.log(high)) > 0:
        high *= 2
    return math.exp(optimize.brentq(excess, math.log(low), math.log(high), xtol=1e-3))


def _spread(batch: Batch, mu: float, relation: Relation) -> float:
    """Return what mu^2 of one release has in place of 2 q^2."""
    if isinstance(batch, Poisson) and relation is Relation.REPLACE_ONE:
        return 2 * math.sinh(min(mu**2 / 4, 600))
    if isinstance(batch, Full):
        return mu**2 / 2
    return float(math.exp(min(mu**2, 600)) * special.ndtr(1.5 * mu) + 3 * special.ndtr(-mu / 2) - 2)


def _drawn_from(batch: Batch, n: int) -> int:
    """Return of how many of n units a round draws its own."""
    return batch.block_for(n) if isinstance(batch, Disjoint) and batch.sample is not None else n
