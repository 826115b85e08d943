"""Noise on the sums of a batch of which every silo adds a share, and nobody sees more than the total."""

from __future__ import annotations

from functools import lru_cache

import msgspec
import numpy as np

from tacit.means import ModularSumMean, Round, counts_of_shares
from tacit.numerics import Array, IntArray
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteGaussianSum,
    Event,
    Neighbours,
    PrivacyBudget,
    Relation,
    TrustModel,
)

__all__ = ["count_mean", "event_of_shares", "less_noisy", "proxy_of_shares", "sums_of_shares"]

_ONE_COUNT = Neighbours(Relation.ZERO_OUT)
"""Replacing a reward, whose action stays, moves one number of high rewards by one; so does blanking a row."""


@lru_cache(maxsize=256)
def count_mean(epsilon: float, delta: float, shares: int) -> ModularSumMean:
    """Return the share of noise on one number of high rewards that meets a budget.

    Args:
        epsilon: Budget of one reward.
        delta: In (0, 1).
        shares: Honest shares that are surely in a sum, >= 2.

    Raises:
        BudgetError: No noise meets the budget.
    """
    budget = PrivacyBudget(epsilon, delta)
    return counts_of_shares(k=1, budget=budget, shares=shares, neighbours=_ONE_COUNT)


def event_of_shares(mean: ModularSumMean, neighbours: Neighbours, trust: TrustModel) -> Event:
    """Return what the sums of a batch release, or under local trust those of one party alone."""
    steps = float(mean.noise.steps)
    if trust is TrustModel.LOCAL:
        return DiscreteGaussian(mean.std, steps, neighbours, 1)
    return DiscreteGaussianSum(mean.std, mean.shares, steps, neighbours, 1)


def proxy_of_shares(mean: ModularSumMean, parties: int) -> float:
    """Return the variance by which the noise of all parties on one number is sub-Gaussian.

    Reference:
        Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4, Corollary 17, for every share.
    """
    return parties * (mean.std / mean.noise.steps) ** 2


def less_noisy(mean: ModularSumMean, factor: float) -> ModularSumMean:
    """Return shares of so many times the noise, for attacks."""
    noise = msgspec.structs.replace(mean.noise, noise_multiplier=mean.noise.noise_multiplier * factor)
    return msgspec.structs.replace(mean, noise=noise)


def sums_of_shares(high: IntArray, mean: ModularSumMean, parties: int, rng: np.random.Generator) -> Array:
    """Return numbers of high rewards with the noise of all parties: the law of their sum, not reduced.

    Args:
        high: Shape (c,).
        mean: What `count_mean` returned.
        parties: How many add a share.
        rng: Source of all shares.
    """
    wide = msgspec.structs.replace(mean, dim=len(high))
    rows = Round(n=max(int(high.sum()), parties, 1), radius=1.0, parties=parties)
    return high + wide.drawn_shares(rows, rng) / mean.noise.steps
