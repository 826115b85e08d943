"""How large the error of one round is: its noise, the sampling of records, and which silos answer."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tacit.errors import ParameterError
from tacit.federation import (
    AnyStep,
    Batch,
    Disjoint,
    DrawnStep,
    Fixed,
    Full,
    HiddenRun,
    Measure,
    Poisson,
    Walk,
)
from tacit.learning.algorithms import Problem
from tacit.learning.settings import Settings
from tacit.means import BinomialMean, Facts, RandomizedRows, clip_variance
from tacit.means.additive import is_acute
from tacit.numerics import Array
from tacit.privacy import Relation, TrustModel

__all__ = ["errors_of", "multiplier_of"]


def multiplier_of(step: AnyStep, measure: Measure) -> float:
    """Return the noise multiplier of one mean."""
    mean = measure.estimator
    if isinstance(mean, BinomialMean):
        return math.sqrt(step.honest * mean.noise_bits) / (2 * mean.resolution)
    if isinstance(mean, RandomizedRows):  # of a coordinate of all reports, over what one row moves
        hidden = step.honest if step.trust is TrustModel.SHUFFLE else 1
        if isinstance(step, DrawnStep) and step.drawn is None:
            hidden = math.ceil(step.honest * step.rate * step.among)
        return math.sqrt(mean.error(1).variance / mean.dim * hidden) / 2
    return mean.noise_multiplier


def errors_of(
    settings: Settings, problem: Problem, sizes: Sequence[int], kinds: Sequence[tuple[AnyStep, int]]
) -> dict[str, float]:
    """Return V^2 of every statistic that is asked, for the kinds of rounds that ask for it the largest.

    Args:
        settings: Of the run.
        problem: Its public facts, without these errors.
        sizes: Public number of units of each silo.
        kinds: Of rounds, with how often each is asked.
    """
    found: dict[str, float] = {}
    for step, _ in kinds:
        for measure in () if step.alone else step.measures:  # the errors of one silo are those of no mean
            error = _error(settings, problem, sizes, step, measure)
            found[measure.statistic] = max(error, found.get(measure.statistic, 0.0))
    return found


def _error(
    settings: Settings, problem: Problem, sizes: Sequence[int], step: AnyStep, measure: Measure
) -> float:
    """Return V^2 of Lowy (2023), Theorem 36, `_spread` bounding phi and v; for walks, of one step.

    A server's noise on votes is not in it: no gradient gets any.
    """
    mean, multiplier = measure.estimator, multiplier_of(step, measure)
    spread = _spread(settings, measure.max_radius)
    trust = problem.protection.trust
    central = trust is TrustModel.CENTRAL
    votes = mean.weighs == "parties"
    rows = np.array([step.batch.expected(size) for size in sizes], dtype=np.float64)
    moved: float = 2 if settings.relation is Relation.REPLACE_ONE else 1
    moved = math.sqrt(moved) if is_acute(mean) else moved
    noise = mean.dim * (multiplier * moved * measure.max_radius) ** 2  # of one noisy sum, or noisy row
    sampling = spread**2 * _sampled(step.batch, np.asarray(sizes, dtype=np.float64), rows) / rows
    if isinstance(step, HiddenRun | Walk):
        return float((noise / rows**2 + sampling).max())
    total, asked = len(sizes), _heard(step, problem.asked)
    shares = np.full(total, 1 / total) if central and votes else _shares(settings, sizes)
    if central and votes:
        error = shares**2 @ sampling * total / asked
    elif trust is TrustModel.SHUFFLE:
        answered = max(1, int(rows.sum() * asked / total))
        own = mean.error(answered, Facts(radius=measure.max_radius)).mse  # of all rows, colluders' included
        error = own + shares**2 @ sampling * total / asked
    elif central:
        error = noise / (rows.sum() * asked / total) ** 2 + shares**2 @ sampling * total / asked
    elif trust is TrustModel.AGGREGATE:
        # All silos add a share of the noise of which a price counts only those that are sure and honest.
        added = total / problem.protection.fewest
        error = added * noise / rows.sum() ** 2 + shares**2 @ sampling
    else:
        noises = rows if isinstance(mean, RandomizedRows) else np.ones_like(rows)
        error = shares**2 @ (noise * noises / rows**2 + sampling) * total / asked
    # Which silos answer: Lowy (2023), Lemma 128, for the vectors N p_i grad F_i.
    silos = (total - asked) / max((total - 1) * asked, 1) * total * (shares @ shares) * spread**2
    return float(error + silos)


def _heard(step: AnyStep, asked: int) -> float:
    """Return 1 / E(1 / K) for the K >= 1 silos whose rows are in a mean, of those that are asked."""
    if not isinstance(step, DrawnStep):
        return asked
    if step.drawn is not None:
        return min(step.drawn, asked)
    from scipy import stats  # half a second that most commands can do without

    joined = np.arange(1, asked + 1)
    law = stats.binom.pmf(joined, asked, step.rate)
    return float(law.sum() / (law @ (1 / joined)))


def _spread(settings: Settings, radius: float) -> float:
    """Return how far gradients clipped to a radius are from their mean, about.

    A stated moment bounds it, and so does the Lipschitz constant. Where a loss has neither, gradients change
    by at most beta D within D: without clipping, the radius says nothing of it.
    """
    lipschitz, beta = settings.objective.lipschitz, settings.objective.smoothness
    if settings.moment is not None:
        moment = settings.moment.for_ball("l2", dim=settings.objective.size)
        return min(math.sqrt(clip_variance(moment, radius)), lipschitz)
    known = lipschitz if math.isfinite(lipschitz) else beta * settings.diameter
    return min(settings.radius, known, radius)


def _sampled(batch: Batch, n: Array, rows: Array) -> Array:
    """Return the variance of a batch's mean times its size, for gradients of variance at most 1, per silo."""
    match batch:
        case Full():
            return np.zeros_like(n)
        case Fixed():
            return np.asarray((n - rows) / np.maximum(n - 1, 1))
        case Poisson():
            return 1 - rows / n
        case Disjoint():  # one pass is about the population
            return np.ones_like(n)


def _shares(settings: Settings, sizes: Sequence[int]) -> Array:
    """Return how much each silo counts in the mean, adding up to 1."""
    if isinstance(settings.weights, str):
        weights = np.asarray(
            sizes if settings.weights == "records" else np.ones(len(sizes)), dtype=np.float64
        )
    else:
        weights = np.asarray(settings.weights, dtype=np.float64)
        if weights.shape != (len(sizes),):
            raise ParameterError(
                f"weights must be {len(sizes)} finite numbers > 0, got {settings.weights!r}."
            )
    return np.asarray(weights / weights.sum())
