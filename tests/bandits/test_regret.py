"""Bounds on the regret, baselines, and runs at full size."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.bandits import (
    Amplification,
    BanditPlan,
    LinearEnvironment,
    RadiusMode,
    RewardNoise,
    RewardPrivacy,
    phased_elimination,
    random_circle,
    regret_bound,
    simulate_bandit,
)
from tacit.errors import ParameterError
from tacit.privacy import TrustModel

LAPLACE = RewardNoise.LAPLACE
BUDGETS = {
    "none": RewardPrivacy(),
    "central": RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0, noise=LAPLACE),
    "shuffle": RewardPrivacy(
        trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6, noise=LAPLACE, method=Amplification.PAPER
    ),
    "local": RewardPrivacy(trust=TrustModel.LOCAL, epsilon=1.0, noise=LAPLACE),
}


@pytest.mark.parametrize(
    ("name", "value"),
    [("none", 200369.9), ("central", 216271.2), ("shuffle", 305570.2), ("local", 708875.5)],
)
def test_bounds_have_the_tabled_values(name: str, value: float) -> None:
    found = regret_bound(BUDGETS[name], horizon=10**6, n_actions=10, dim=2, radius=RadiusMode.SEED)
    assert found.regret == pytest.approx(value, abs=0.06)
    assert found.proven == (name == "none")
    proven = regret_bound(BUDGETS[name], horizon=10**6, n_actions=10, dim=2)
    assert proven.proven
    assert proven.regret >= found.regret


def test_numerical_levels_lower_the_bound() -> None:
    paper = regret_bound(BUDGETS["shuffle"], horizon=10**6, n_actions=10, dim=2)
    numeric = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6, noise=LAPLACE)
    assert regret_bound(numeric, horizon=10**6, n_actions=10, dim=2).regret < paper.regret


def test_bounds_grow_with_what_is_harder_and_stop_at_the_worst() -> None:
    def bound(**given: object) -> float:
        asked: dict[str, object] = {"horizon": 10**5, "n_actions": 10, "dim": 2, **given}
        return regret_bound(BUDGETS["central"], **asked).regret  # type: ignore[arg-type]

    assert bound() < bound(dim=4) < bound(dim=4, n_actions=1000)
    assert bound() < bound(support=20)
    assert bound(zeta=0.01) == pytest.approx(min(bound() + 1000, 2e5))
    weak = RewardPrivacy(trust=TrustModel.LOCAL, epsilon=0.001)
    assert regret_bound(weak, horizon=1000, n_actions=10, dim=2).regret == 2000
    with pytest.raises(ParameterError, match="radius"):
        bound(radius=RadiusMode.SOUND)
    with pytest.raises(ParameterError, match="zeta"):
        bound(zeta=math.nan)


def test_runs_stay_below_their_bound() -> None:
    for name, privacy in BUDGETS.items():
        for seed in range(3):
            actions, theta = random_circle(10, 2, np.random.default_rng(seed))
            plan = BanditPlan(
                actions=actions, horizon=10**5, privacy=privacy, radius=RadiusMode.SEED_CORRECTED
            )
            rng = np.random.default_rng(seed)
            found = simulate_bandit(
                plan, LinearEnvironment(actions=actions, theta=theta), rng_world=rng, rng_privacy=rng
            )
            bound = regret_bound(privacy, horizon=10**5, n_actions=10, dim=2, support=4)
            assert found.regret <= bound.regret, name


def test_the_reference_regrets_in_small() -> None:
    """T = 1e6, 12 of the instances of the experiment; the tables, of 40, are met within half.

    Regrets of instances spread by about 0.6 of their mean, so that 12 of them are off by 17 % (one standard
    error); the experiment compares all 40 within a quarter.
    """
    expected = {"none": 6300, "central": 7800, "shuffle": 14_400, "local": 36_800}
    for name, privacy in BUDGETS.items():
        regrets = []
        for seed in range(12):
            actions, theta = random_circle(10, 2, np.random.default_rng(seed))
            rng, noise = np.random.default_rng(100 + seed), np.random.default_rng(200 + seed)
            plan = BanditPlan(actions=actions, horizon=10**6, privacy=privacy)
            world = LinearEnvironment(actions=actions, theta=theta)
            regrets.append(simulate_bandit(plan, world, rng_world=rng, rng_privacy=noise).regret)
        assert np.mean(regrets) == pytest.approx(expected[name], rel=0.5), name


def test_phased_elimination_is_near_the_reference() -> None:
    """6.6k over 40 instances; an arbitrary half is allowed for 20."""
    regrets = []
    for seed in range(20):
        actions, theta = random_circle(10, 2, np.random.default_rng(seed))
        world = LinearEnvironment(actions=actions, theta=theta)
        regrets.append(phased_elimination(world, 10**6, rng=np.random.default_rng(300 + seed)))
    assert np.mean(regrets) == pytest.approx(6600, rel=0.5)
