"""Bit planes under a shuffler, calibrated in two or three prices instead of twenty.

A shuffled batch of randomized responses is close to a Gaussian mechanism: of n - 1 messages some Bin(n - 1,
2p) are noise that is worth a fair bit each, and the target moves their sum by 1 - 2p. So the
parameters mu of all batches add up in squares, and a first guess needs no convolution. The guess is then
priced as it is; the price says which mu a Gaussian would have, and that corrects the scale. What leaves has
been priced: the approximation costs accuracy only where it is not followed by a step, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import optimize

from tacit.errors import BudgetError
from tacit.means.base import MeanEstimator
from tacit.means.planes import largest_scale, plane_levels
from tacit.means.problem import MeanProblem
from tacit.means.proposals import ComputeCost, Proposal, geometric
from tacit.means.randomized import batch_event
from tacit.numerics import Array
from tacit.privacy import (
    Event,
    Gaussian,
    Neighbours,
    PrivacyBudget,
    calibrate,
    curve_of,
    meets,
)

__all__ = ["plane_proposals", "shuffled_levels"]

_PLANES = range(1, 9)

_CLOSE = 5e-4
"""How far below the largest scale a calibrated one may stay."""

_MOST_PRICES = 12
_LEAST_MU = 1e-7


def plane_proposals(
    problem: MeanProblem,
    build: Callable[..., MeanEstimator],
    said: str,
    D: int,
    *,
    rotation: float = 0.0,
    **rest: Any,
) -> Iterator[Proposal]:
    """Offer m planes of D numbers, s of which are sent of each.

    Args:
        problem: What is asked.
        build: Builds the estimator from `samples` and `local_epsilons`.
        said: Family and its parameters in words, which m and s follow.
        D: Numbers of a row.
        rotation: Operations of what turns rows into them.
        **rest: Fields of the proposals.
    """
    if problem.trust not in ("local", "shuffle"):
        return
    n, budget = problem.n, problem.known_budget
    for m in _PLANES:
        for s in geometric(D):
            if problem.trust == "shuffle":
                guess = _guessed_levels(n, s, m, budget)
            else:
                # Pure levels add up; the last bits of the floats must not add up to more.
                epsilon = budget.epsilon * (1 - 1e-12)
                guess = plane_levels(epsilon, planes=m, samples=s, allocation="ldp", rule="level")

            def make(m: int = m, s: int = s, guess: tuple[float, ...] = guess) -> MeanEstimator:
                if problem.trust == "shuffle":
                    guess = shuffled_levels(n, s, m, budget, problem.near)
                return build(samples=s, local_epsilons=guess)

            sent, added = float(rotation + m * s), float(rotation + n * m * s + m * D)
            yield Proposal(
                name=f"{said}m={m}, s={s}",
                guess=build(samples=s, local_epsilons=guess),
                make=make,
                encode=ComputeCost("d log d + m s" if rotation else "m s", sent),
                decode=ComputeCost("n m s + d log d" if rotation else "n m s + d", added),
                **rest,
            )


@lru_cache(maxsize=4096)
def shuffled_levels(
    n: int, samples: int, planes: int, budget: PrivacyBudget, neighbours: Neighbours
) -> tuple[float, ...]:
    """Return levels of shuffled bit planes that meet a budget, within about 0.05 % of the largest.

    Args:
        n: Number of rows.
        samples: Number s of messages of a plane.
        planes: Number m of planes; their squares share the budget ("rdp").
        budget: For whoever sees the shuffled batch.
        neighbours: A replace-one relation.

    Returns:
        Shape (m,): the level of one message of each plane.

    Raises:
        BudgetError: Even the least levels cost more.
    """

    def levels(scale: float) -> tuple[float, ...]:
        return plane_levels(scale, planes=planes, samples=samples, allocation="rdp", rule="v")

    high = largest_scale(planes, samples, "rdp", "v")
    if planes * samples == 1 or budget.delta == 0:
        # One batch, or pure levels that add up: prices are cheap.
        x = calibrate(
            lambda x: _event(levels(1 / x), n, samples, neighbours), budget, low=1 / high, high=2.0**30
        )
        return levels(1 / x)
    target = _gaussian_mu(budget.epsilon, budget.delta)
    scale = _guess(n, samples, planes, target) * (1 - _CLOSE / 4)
    low, top = 0.0, high
    best: tuple[float, ...] = ()
    for _ in range(_MOST_PRICES):
        found = levels(scale)
        event = _event(found, n, samples, neighbours)
        within = meets(event, budget)
        if within:
            low, best = scale, found
        else:
            top = scale
        delta = float(curve_of(event, accuracy=budget.delta).delta(budget.epsilon))
        # What a Gaussian mechanism would need to change by; nothing is said where delta is 0.
        step = target / _gaussian_mu(budget.epsilon, min(delta, 0.5)) if delta > 0 else 2.0
        proposed = scale * step * (1 - _CLOSE / 4)
        if best and (top <= low * (1 + _CLOSE) or (within and proposed <= low * (1 + _CLOSE))):
            break
        if not low < proposed < top:
            proposed = math.sqrt(low * top) if low > 0 else top / 2
        scale = proposed
    if not best:
        raise BudgetError(
            f"the budget epsilon = {budget.epsilon:.6g}, delta = {budget.delta:.3g} cannot be met with "
            f"{planes * samples} messages a row."
        )
    return best


def _guessed_levels(n: int, samples: int, planes: int, budget: PrivacyBudget) -> tuple[float, ...]:
    """Return about the levels that `shuffled_levels` would, for ranking: nothing here is priced."""
    if budget.delta == 0:
        return plane_levels(budget.epsilon, planes=planes, samples=samples, allocation="rdp", rule="v")
    scale = _guess(n, samples, planes, _gaussian_mu(budget.epsilon, budget.delta))
    return plane_levels(scale, planes=planes, samples=samples, allocation="rdp", rule="v")


def _event(levels: tuple[float, ...], n: int, samples: int, neighbours: Neighbours) -> Event:
    """Return what the observer of the batch learns."""
    return batch_event(np.repeat(levels, samples), n, "2rr", neighbours)


@lru_cache(maxsize=4096)
def _gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the sensitivity / standard deviation of the Gaussian mechanism with that price."""
    try:
        return 1 / calibrate(Gaussian, PrivacyBudget(epsilon, delta))
    except BudgetError:
        return _LEAST_MU


def _composed_mu(levels: Array, n: int, samples: int) -> float:
    """Return about the mu of all batches together."""
    p = 1 / (1 + np.exp(levels))
    shift = np.tanh(levels / 2)
    each = shift**2 / (p * (n - 1) / 2 + p * (1 - p))
    return math.sqrt(samples * float(each.sum()))


@lru_cache(maxsize=4096)
def _guess(n: int, samples: int, planes: int, target: float) -> float:
    """Return the scale at which the composed mu is about `target`."""

    def gap(log_scale: float) -> float:
        levels = plane_levels(math.exp(log_scale), planes=planes, samples=samples, allocation="rdp", rule="v")
        return math.log(_composed_mu(np.array(levels), n, samples) / target)

    low, high = math.log(samples * 1e-8), math.log(largest_scale(planes, samples, "rdp", "v"))
    if gap(high) <= 0:
        return math.exp(high)
    if gap(low) >= 0:
        return math.exp(low)
    return math.exp(float(optimize.brentq(gap, low, high, xtol=1e-6)))
