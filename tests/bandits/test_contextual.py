"""Contexts of a known law: the reduction, and both regrets."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.bandits import (
    BanditPlan,
    RadiusMode,
    RewardNoise,
    RewardPrivacy,
    contextual_gap,
    reduce_contexts,
    simulate_bandit,
)
from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.privacy import TrustModel


def _features(contexts: int, actions: int, dim: int, seed: int = 0) -> Array:
    rows = np.random.default_rng(seed).standard_normal((contexts, actions, dim))
    return np.asarray(rows / np.linalg.norm(rows, axis=2, keepdims=True))


def test_the_reduction_averages_features_of_greedy_choices() -> None:
    """The printed average is of actions, which are no vectors."""
    phi = _features(20, 5, 2)
    found = reduce_contexts(phi)
    assert np.linalg.norm(found.actions, axis=1).max() <= 1
    theta = np.array([math.cos(0.3), math.sin(0.3)])
    best = (phi @ theta).max(axis=1).mean()
    # Every direction is covered: the best action of the reduction is greedy for theta itself.
    assert (found.actions @ theta).max() == pytest.approx(best, abs=1e-12)
    assert len(np.unique(found.actions.round(12), axis=0)) == len(found.actions)
    grid = reduce_contexts(phi, directions=360)
    assert len(grid.actions) <= len(found.actions)
    assert (grid.actions @ theta).max() <= best + 1e-12
    x = 3
    chosen = found.choose(x, phi[0])
    assert (
        chosen == int(np.argmax(phi[0] @ found.thetas[x])) == int(np.argmax(phi[0] @ (7 * found.thetas[x])))
    )


def test_one_context_is_the_plain_bandit() -> None:
    phi = np.array([[[1.0, 0.0], [0.0, 1.0], [-0.6, -0.8]]])
    found = reduce_contexts(phi)
    assert sorted(map(tuple, found.actions.tolist())) == sorted(map(tuple, phi[0].tolist()))


def test_both_regrets_agree_up_to_the_deviation_of_contexts() -> None:
    phi, rng = _features(20, 5, 2, seed=4), np.random.default_rng(9)
    found = reduce_contexts(phi, directions=360)
    theta = np.array([0.8, -0.6])
    horizon = 100_000
    plan = BanditPlan(actions=found.actions, horizon=horizon)
    run = simulate_bandit(plan, found.world(theta), rng_world=rng, rng_privacy=rng)
    against = found.regret(run.played, theta, rng)
    assert abs(against - run.regret) <= contextual_gap(horizon) + horizon * 1e-3
    assert contextual_gap(10**6) == pytest.approx(5386.8, abs=0.1)


@pytest.mark.parametrize(("epsilon", "reference"), [(math.inf, 45_034), (1.0, 47_586), (0.1, 76_423)])
def test_the_reference_regrets_and_sizes(epsilon: float, reference: float) -> None:
    """20 contexts of 5 actions, T = 1e6, printed radius: 4 instances, each off by 15 %; 40 % is allowed."""
    private = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=epsilon, noise=RewardNoise.LAPLACE)
    regrets, sizes = [], []
    for seed in range(4):
        rng = np.random.default_rng(seed)
        found = reduce_contexts(_features(20, 5, 2, seed=50 + seed), directions=360)
        theta = rng.standard_normal(2)
        plan = BanditPlan(actions=found.actions, horizon=10**6, privacy=private, radius=RadiusMode.SEED)
        world = found.world(theta / np.linalg.norm(theta))
        run = simulate_bandit(plan, world, rng_world=rng, rng_privacy=rng)
        regrets.append(run.regret)
        sizes.append(len(found.actions))
    assert np.mean(regrets) == pytest.approx(reference, rel=0.4)
    assert np.mean(sizes) == pytest.approx(87, rel=0.1)


def test_samples_and_more_dimensions() -> None:
    rng = np.random.default_rng(1)
    found = reduce_contexts(_features(100_000, 3, 3), directions=5, sampled=True, rng=rng)
    assert 0 < found.standard_error < 0.01
    assert found.actions.shape[1] == 3
    line = reduce_contexts(np.array([[[0.5], [-0.2]]]))
    assert sorted(line.actions.ravel().tolist()) == [-0.2, 0.5]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"features": np.ones((2, 2))}, "shape"),
        ({"features": np.full((1, 2, 2), 0.9)}, "norms of at most 1"),
        ({"features": np.full((1, 2, 2), math.nan)}, "norms of at most 1"),
        ({"features": np.zeros((2, 1, 2)), "law": [0.5, 0.6]}, "law"),
        ({"features": np.zeros((2, 1, 2)), "law": [1.5, -0.5]}, "law"),
        ({"features": np.zeros((2, 1, 2)), "sampled": True}, "100,000"),
        ({"features": np.zeros((2, 1, 3))}, "directions and rng"),
        ({"features": np.zeros((2, 1, 2)), "directions": 1}, "directions"),
    ],
)
def test_what_is_no_law_of_contexts_is_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        reduce_contexts(**given)  # type: ignore[arg-type]
