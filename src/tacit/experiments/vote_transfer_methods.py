"""How votes of 11 teachers become labels, and what that costs: the methods of Tables 3.1 to B.8.

Source: Jiang (2025), Section 3.7.2 and Appendix B.4.1; Papernot et al. (2018) for GNMax.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tacit.experiments.vote_transfer_thesis import printed_delta
from tacit.numerics import Array, IntArray
from tacit.privacy import ApproximateDP, Repeat, epsilon_of
from tacit.privacy.certified import output_probabilities
from tacit.voting import (
    GNMax,
    NoiseFunction,
    Shards,
    VotedBy,
    allowance,
    certified,
    design,
    gamma_staircase,
    gnmax_sigma_analytic,
    gnmax_sigma_rdp,
    majority_privacy_report,
    noisy_majority,
)

__all__ = [
    "ANALYTIC",
    "DELTA",
    "OPT",
    "PLAIN",
    "RENYI",
    "STAIRCASE",
    "SUB",
    "TEACHERS",
    "VoteMethod",
    "methods",
    "sigma_by_order",
]

TEACHERS, DELTA = 11, 1e-4
RENYI, ANALYTIC, STAIRCASE = "GNMax, Rényi", "GNMax, analytic", "staircase"
SUB, OPT, PLAIN = "Sub", "opt", "plain majority"


@dataclass(frozen=True, kw_only=True)
class VoteMethod:
    """How counts of ones become labels.

    Attributes:
        name: Of the line.
        private: Whether its teachers are private.
        chance: P(the label is 1) given l ones, shape (K + 1,).
        release: From counts and randomness to labels.
        price: From the number of labels and a delta to the sound total (epsilon, delta).
        sigma: Of GNMax.
        order: At which Rényi-DP proves that sigma.
    """

    name: str
    private: bool
    chance: Array
    release: Callable[[IntArray, np.random.Generator], IntArray]
    price: Callable[[int, float], tuple[float, float]]
    sigma: float | None = None
    order: float | None = None

    def expected(self, counts: IntArray, labels: IntArray) -> tuple[float, float]:
        """Return the exact mean accuracy of the labels of some rows, and its standard error over rows."""
        right = np.where(labels == 1, self.chance[counts], 1 - self.chance[counts])
        return float(right.mean()), float(right.std() / math.sqrt(len(right)))


def methods(epsilon: float, m: int, shards: Shards = Shards.DISJOINT) -> Iterator[VoteMethod]:
    """Yield all methods at the price of m private teachers per label.

    Args:
        epsilon: Of a private teacher, at delta 1e-4.
        m: The allowance.
        shards: SHARED leaves out the teachers that are not private.
    """
    one, lost = m * epsilon, printed_delta(m, DELTA)
    setting = allowance(TEACHERS, epsilon, m, delta=DELTA, target_delta=lost)
    yield _majority(SUB, design(setting, "subsampling"), shards)
    yield _majority(OPT, design(setting, "optimal"), shards)
    everything = allowance(TEACHERS, epsilon, TEACHERS, delta=DELTA)
    yield _majority(PLAIN, certified(np.ones(setting.free), everything), shards)
    if shards is Shards.SHARED:
        return
    sigma, order = gnmax_sigma_rdp(one, lost)
    yield _gnmax(RENYI, sigma, order)
    yield _gnmax(ANALYTIC, gnmax_sigma_analytic(one, lost), None)
    steps = gamma_staircase(TEACHERS, one, lost)
    yield VoteMethod(
        name=STAIRCASE,
        private=False,
        chance=output_probabilities(TEACHERS, steps),
        release=lambda counts, rng: noisy_majority(counts, steps, TEACHERS, rng),
        # The deltas of the labels may add up to a hair more than the delta of general composition.
        price=lambda q, delta: _total(Repeat(ApproximateDP(one, lost), q), max(delta, q * lost)),
    )


def sigma_by_order(epsilon: float, delta: float, orders: Array) -> Array:
    """Return the sigma of GNMax that each Rényi order proves, infinite below the least order: Figure B.8.

    Args:
        epsilon: Of one label.
        delta: Of one label.
        orders: Shape (n,), > 1.

    Reference:
        Papernot et al. (2018), converted as by Mironov (2017): sigma^2 = order / (epsilon - ln(1/delta)
        / (order - 1)).
    """
    left = epsilon + math.log(delta) / (np.asarray(orders, dtype=np.float64) - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(left > 0, np.sqrt(orders / left), np.inf)


def _total(event: Repeat, delta: float) -> tuple[float, float]:
    """Return the price (epsilon, delta) of some labels with fresh noise."""
    return epsilon_of(event, delta), delta


def _gnmax(name: str, sigma: float, order: float | None) -> VoteMethod:
    """Return GNMax for teachers on disjoint shards."""
    noise, ones = GNMax(sigma=sigma), np.arange(TEACHERS + 1)
    return VoteMethod(
        name=name,
        private=False,
        chance=noise.correct_probability(2 * ones - TEACHERS),
        release=lambda counts, rng: noise.release_counts(np.stack([TEACHERS - counts, counts], axis=1), rng),
        price=lambda q, delta: _total(Repeat(noise.event(), q), delta),
        sigma=sigma,
        order=order,
    )


def _majority(name: str, noise: NoiseFunction, shards: Shards) -> VoteMethod:
    """Return a majority of private teachers that were trained once."""

    def price(queries: int, _: float) -> tuple[float, float]:
        delta = DELTA if shards is Shards.DISJOINT else TEACHERS * DELTA
        report = majority_privacy_report(
            noise,
            queries=queries,
            delta=delta,
            voted_by=VotedBy.FIXED,
            shards=shards,
        )
        return report.best.epsilon, delta

    return VoteMethod(
        name=name,
        private=True,
        chance=noise.output_probabilities(),
        release=noise.release_counts,
        price=price,
    )
