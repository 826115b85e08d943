"""Sums modulo a power of two, with a share of the noise of every party.

Statistical tests fail on right code with probability below 1e-6 each.
"""

from __future__ import annotations

import math

import numpy as np

from tacit.means import (
    DiscreteGaussianNoise,
    ModularSumMean,
    Round,
)
from tacit.privacy import (
    TrustModel,
    delta_of,
)
from tests.statistics import FALSE_ALARM

AGGREGATE, LOCAL = TrustModel.AGGREGATE, TrustModel.LOCAL


def mean(share: float = 0.35, *, dim: int = 1, shares: int = 4, width: int = 32) -> ModularSumMean:
    noise = DiscreteGaussianNoise(share, steps=16)
    return ModularSumMean(dim=dim, noise=noise, shares=shares, width=width)


def test_an_attack_on_the_honest_sum_stands_and_breaks_half_the_noise() -> None:
    """The best threshold between two sums, one row replaced by its opposite, against the price."""
    rows, others = np.array([[1.0], [0.0], [0.0], [0.0]]), np.array([[-1.0], [0.0], [0.0], [0.0]])
    facts, size, epsilon = Round(n=4, radius=1.0, parties=4), 20_000, 1.0
    claimed = delta_of(mean().event(1, AGGREGATE), epsilon)
    middle = mean().std ** 2 * 4 * epsilon / (2 * 16) / 16 / 4  # where the likelihood ratio is e^epsilon
    off = math.sqrt(math.log(2 / FALSE_ALARM) / (2 * size)) * (1 + math.exp(epsilon))
    found = {}
    for share in (0.35, 0.175):
        one, other = (
            mean(share).first_coordinates(x, facts, size=size, rng=np.random.default_rng(k))
            for k, x in enumerate((rows, others))
        )
        found[share] = (one > middle).mean() - math.exp(epsilon) * (other > middle).mean()
    assert 0.8 * claimed < found[0.35] <= claimed + off
    assert found[0.175] > claimed + off
