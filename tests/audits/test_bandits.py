"""Attacks on the rewards of bandits: right ones stand for every observer, half the noise is caught."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tacit.audits import Target, audit, mechanism_target, reward_target
from tacit.bandits import RewardNoise, RewardPrivacy
from tacit.errors import ParameterError
from tacit.privacy import PrivacyBudget, TrustModel
from tests.statistics import FALSE_ALARM

BUDGET = PrivacyBudget(1.0, 1e-5)


def found(target: Target) -> tuple[float, float]:
    """Return what is found but for a false alarm, and what is claimed."""
    rng = np.random.default_rng(3)
    one = audit(target.run, (target.event, BUDGET.delta), runs=300_000, confidence=1 - FALSE_ALARM, rng=rng)
    return one.empirical_epsilon_lower, one.claimed_epsilon


@pytest.mark.parametrize("trust", [TrustModel.CENTRAL, TrustModel.LOCAL, TrustModel.SHUFFLE])
def test_every_observer_finds_less_than_is_claimed_and_half_the_noise_is_caught(trust: TrustModel) -> None:
    right = mechanism_target("bandit", BUDGET, trust=trust)
    broken = mechanism_target("bandit", BUDGET, trust=trust, noise_factor=0.5)
    games = [(right, broken)]
    if right.alone is not None and broken.alone is not None:
        games.append((right.alone, broken.alone))
    assert len(games) == (2 if trust is TrustModel.SHUFFLE else 1)
    for stands, falls in games:
        most, claimed = found(stands)
        assert most <= claimed
        # What is pure is found nearly whole.
        assert most >= (0.2 if "shuffled" in stands.attack else 0.97) * claimed
        assert found(falls)[0] > claimed


def test_the_attacked_batch_has_the_law_of_messages() -> None:
    """A number of ones, against the mixture of one client and the noise of all others; 2e5 draws."""
    privacy = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-3)
    counts = np.array([30, 20])
    flip = 1 / (1 + np.exp(privacy.level(counts)))
    rng = np.random.default_rng(0)
    for present in (True, False):
        ones = reward_target(privacy, counts).run(present, 200_000, rng).astype(int)
        mine = 1 - flip if present else flip
        law = np.convolve(stats.binom.pmf(np.arange(50), 49, flip), [1 - mine, mine])
        seen = np.bincount(ones, minlength=51)
        # Bernoulli noise of each cell, six and a half deviations: 51 cells, twice.
        assert np.all(np.abs(seen / 2e5 - law) <= 6.5 * np.sqrt(law / 2e5) + 1e-4)


@pytest.mark.parametrize(
    "privacy",
    [
        RewardPrivacy(),
        RewardPrivacy(trust=TrustModel.LOCAL, epsilon=1.0, noise=RewardNoise.LAPLACE),
    ],
)
def test_what_claims_nothing_or_is_not_deployed_is_not_attacked(privacy: RewardPrivacy) -> None:
    with pytest.raises(ParameterError, match="privacy must claim something"):
        reward_target(privacy, np.array([2, 2]))
