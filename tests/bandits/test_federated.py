"""Batches of a bandit as steps of a plan: deals, prices, the law of sums, liars and ledgers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.bandits import (
    DEALT_REWARDS,
    OWN_REWARDS,
    BanditPlan,
    DealtRewards,
    LinearEnvironment,
    OwnRewards,
    Play,
    Players,
    RewardNoise,
    RewardPrivacy,
    bandit_rounds,
    begin,
    federated_bandit,
)
from tacit.bandits.answers import simulated_sums
from tacit.bandits.elimination import Batch
from tacit.bandits.federated import _dealt, _design, _drawn, _sums
from tacit.errors import BudgetError, ParameterError, RefusalError
from tacit.federation import InProcess, OpenSums, Plan, Silo
from tacit.ledger import Ledger
from tacit.means import AdditiveMean, ModularSumMean, SampledBinaryMean
from tacit.mechanisms import BinaryRandomizedResponse
from tacit.numerics import Array, IntArray
from tacit.privacy import Neighbours, PrivacyBudget, TrustModel, delta_of, guarantee
from tacit.randomness import secure, simulated

CENTRAL, AGGREGATE, SHUFFLE, LOCAL = (
    TrustModel.CENTRAL,
    TrustModel.AGGREGATE,
    TrustModel.SHUFFLE,
    TrustModel.LOCAL,
)
ACTIONS, THETA = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]]), np.array([0.6, -0.2])
SIZES = (5000, 4500, 4000)


def privacy(trust: TrustModel | None, **fields: Any) -> RewardPrivacy:
    usual: dict[str, Any] = {"trust": trust, "epsilon": 2.0}
    usual |= {"delta": 1e-6} if trust in (AGGREGATE, SHUFFLE) else {}
    return RewardPrivacy(**(usual | ({"parties": 3} if trust is AGGREGATE else {}) | fields))


def bandit(trust: TrustModel | None, *, horizon: int = 15_000, **fields: Any) -> BanditPlan:
    return BanditPlan(actions=ACTIONS, horizon=horizon, privacy=privacy(trust, **fields))


def world(n: int, seed: int) -> Play:
    """Clients with a luck of their own, whose reward for an action is 1 or -1."""
    luck = np.random.default_rng([seed, 17]).random(n)
    return lambda clients, actions: np.where(luck[clients] < (1 + actions @ THETA) / 2, 1.0, -1.0)


def silo(n: int, place: int, *, play: Play | None = None, seed: int | None = 0, **fields: Any) -> Silo:
    playing = world(n, place) if play is None else play
    rng = secure() if seed is None else simulated(seed, "silo", place)
    trusted: dict[str, Any] = {"trusts_server": True, "trusts_shuffler": True, "sums": OpenSums()} | fields
    return Silo(
        Players.of(n, simulated(seed or 0, "deal", place)),
        {DEALT_REWARDS: DealtRewards(playing, len(ACTIONS)), OWN_REWARDS: OwnRewards(playing)},
        name=f"silo {place}",
        rng=rng,
        **trusted,
    )


def silos(sizes: tuple[int, ...] = SIZES, **fields: Any) -> InProcess:
    return InProcess([silo(n, k, **fields) for k, n in enumerate(sizes)], rng=simulated(5, "server"))


@pytest.mark.parametrize("trust", list(TrustModel))
def test_every_trust_model_learns_at_the_price_of_one_batch(trust: TrustModel) -> None:
    plan = bandit(trust)
    asked = bandit_rounds(plan, SIZES)
    assert Plan.from_toml(asked.to_toml()) == asked
    found = federated_bandit(plan, silos(), asked=asked)
    assert found.best == 0
    assert len(found.decisions) >= 5
    assert len(found.guarantees) == (1 if trust is CENTRAL else 3)
    for one in found.guarantees:
        assert 1.99 < one.epsilon <= 2.0
        assert one.delta == plan.privacy.delta
        assert one.simulated
    assert len(found.guarantees_alone) == (3 if trust in (SHUFFLE, AGGREGATE) else 0)
    assert all(one.epsilon > 2.5 for one in found.guarantees_alone)
    for decision in found.decisions:
        rewards = ACTIONS[decision.state.alive] @ THETA
        assert rewards.max() == 0.6  # the best is never dropped
        assert np.abs(decision.theta - THETA).max() < 3 * decision.radius


@pytest.mark.parametrize(
    ("trust", "fields", "n_min"), [(SHUFFLE, {}, 2), (AGGREGATE, {"colluding": 1}, None)]
)
def test_silos_that_stay_away_or_tell_hide_nobody(
    trust: TrustModel, fields: dict[str, Any], n_min: int | None
) -> None:
    plan, sizes = bandit(trust, horizon=300, **fields), (60, 50, 40)
    asked = bandit_rounds(plan, sizes, n_min=n_min)
    found = federated_bandit(plan, silos(sizes), asked=asked)
    assert len(found.guarantees) == 3
    assert all(1.9 < one.epsilon <= 2.0 for one in found.guarantees)
    if trust is AGGREGATE:
        means = [step.measures[0].estimator for step, _ in asked.kinds]
        assert all(isinstance(mean, ModularSumMean) and mean.shares == 2 for mean in means)


@pytest.mark.parametrize("trust", [CENTRAL, AGGREGATE, LOCAL])
def test_sums_have_the_law_of_the_simulator(trust: TrustModel) -> None:
    """300 batches of fresh clients each: mean and variance of the sums of both actions, six deviations."""
    runs, block = 300, 6
    plan = bandit(trust, epsilon=1.0, **({"parties": 2} if trust is AGGREGATE else {}))
    sizes = (runs * block,) * 2
    step = bandit_rounds(plan, (block, block)).kinds[0][0]
    asked = bandit_rounds(plan, (block, block))
    step = msgspec.structs.replace(step, batch=msgspec.structs.replace(step.batch, size=block))
    asked = msgspec.structs.replace(asked, steps=((step, runs),))
    ask = silos(sizes).open(asked)
    state = begin(plan)
    estimator, clients = step.measures[0].estimator, 2 * block
    design = _design(plan, state, block)
    if isinstance(estimator, SampledBinaryMean):
        counts, at = _drawn(plan, design, estimator.dim, clients)
    else:
        counts, at = _dealt(plan, design, block, 2)
    batch = Batch(number=1, actions=design.actions, counts=np.asarray(counts), level=1.0)
    sums = np.array([_sums(plan, batch, ask(k, at, (1.0,))[0], estimator, clients) for k in range(runs)])
    mu = (ACTIONS @ THETA)[design.actions]
    if isinstance(estimator, SampledBinaryMean):
        share, gap = counts / clients, BinaryRandomizedResponse(estimator.local_epsilon).gap
        variance = counts * (1 / gap**2 - share * mu**2)
    else:
        rng = np.random.default_rng(1)
        theirs = LinearEnvironment(actions=ACTIONS, theta=THETA)
        drawn = np.array([simulated_sums(plan, batch, theirs, rng, rng) for _ in range(4 * runs)])
        assert drawn.mean(axis=0) == pytest.approx(
            counts * mu, abs=6 * math.sqrt(drawn.var(axis=0).max() / 4 / runs)
        )
        variance = drawn.var(axis=0)
    # Laplace noise and coins have a kurtosis of at most 6.
    assert sums.mean(axis=0) == pytest.approx(counts * mu, abs=6 * math.sqrt(variance.max() / runs))
    assert sums.var(axis=0) == pytest.approx(variance, rel=6 * math.sqrt(5 / runs) * 1.3)


def test_a_reward_moves_a_sum_by_what_is_priced_and_half_the_noise_costs_more() -> None:
    for trust in TrustModel:
        asked = bandit_rounds(bandit(trust), SIZES)
        prices = {}
        for factor in (1.0, 0.5):
            steps = []
            for step, count in asked.kinds:
                mean: Any = step.measures[0].estimator
                if isinstance(mean, SampledBinaryMean):
                    less: Any = msgspec.structs.replace(mean, local_epsilon=mean.local_epsilon / factor)
                else:
                    noise = msgspec.structs.replace(
                        mean.noise, noise_multiplier=mean.noise.noise_multiplier * factor
                    )
                    less = msgspec.structs.replace(mean, noise=noise)
                measure = msgspec.structs.replace(step.measures[0], estimator=less)
                steps.append((msgspec.structs.replace(step, measures=(measure,)), count))
            made = msgspec.structs.replace(asked, steps=tuple(steps))
            prices[factor] = guarantee(made.event(SIZES, trust), 1e-6, observer="a test").epsilon
        assert prices[1.0] <= 2.0 + 1e-5  # rounded up
        assert prices[0.5] > 3.5
    central = bandit_rounds(bandit(CENTRAL), SIZES).kinds[0][0].measures[0].estimator
    assert isinstance(central, AdditiveMean)
    # Rewards of -1 and 1 are two radii apart in one place: the pure level is one over the multiplier.
    assert 1.999 < 1 / central.noise_multiplier <= 2.0


def test_the_law_of_a_small_shuffled_batch_is_within_its_price() -> None:
    """Three clients, two slots, written out: any rewards of one against any others, all others anything."""
    epsilon, level = 0.4, 1.0
    kinds = list(itertools.product((0, 1), repeat=2))  # the reward for each slot

    def law(level: float, clients: tuple[tuple[int, ...], ...]) -> Counter[tuple[Any, ...]]:
        lie = BinaryRandomizedResponse(level).flip_prob
        found: Counter[tuple[Any, ...]] = Counter()
        for sent in itertools.product(itertools.product((0, 1), (0, 1)), repeat=3):
            p = 1.0
            for (slot, bit), rewards in zip(sent, clients, strict=True):
                p *= (1 - lie if bit == rewards[slot] else lie) / 2
            found[tuple(sorted(sent))] += p  # type: ignore[assignment]
        return found

    def worst(level: float) -> float:
        found = 0.0
        for others in itertools.combinations_with_replacement(kinds, 2):
            laws = [law(level, (mine, *others)) for mine in kinds]
            for P, Q in itertools.permutations(laws, 2):
                found = max(found, sum(max(P[m] - math.exp(epsilon) * Q[m], 0.0) for m in P))
        return found

    mean = SampledBinaryMean(dim=2, samples=1, local_epsilon=level, trust=SHUFFLE)
    claimed = delta_of(mean.event(3, SHUFFLE), epsilon)
    assert 0.5 * claimed < worst(level) <= claimed * (1 + 1e-9)
    assert worst(2 * level) > claimed


def test_nobody_plays_twice_and_deals_do_not_depend_on_rewards() -> None:
    asked: list[IntArray] = []
    actions: list[Array] = []
    fair = world(4000, 0)

    def noted(clients: IntArray, played: Array) -> Array:
        asked.append(clients)
        actions.append(played)
        return fair(clients, played)

    plan = bandit(CENTRAL, horizon=4000)
    federation = InProcess([silo(4000, 0, play=noted)], rng=simulated(1, "server"))
    found = federated_bandit(plan, federation)
    who = np.concatenate(asked)
    assert len(np.unique(who)) == len(who) >= sum(len(one) for one in asked[-2:])
    assert found.best == 0
    last = np.concatenate(actions)
    assert {tuple(one) for one in last} <= {tuple(one) for one in ACTIONS}

    batch = Players.of(100, np.random.default_rng(0)).take(np.arange(10, 60))
    at = {
        "actions": ACTIONS,
        "places": np.array([0.0, 1.0, 2.0]),
        "ends": np.array([0.5, 0.8, 1.0]),
        "range": np.array([-1.0, 1.0]),
    }
    rewards = np.linspace(-0.9, 0.9, 100)
    rows = DealtRewards(lambda clients, _: rewards[clients], 3)(batch, at)
    assert np.count_nonzero(rows, axis=0).tolist() == [25, 15, 10]
    other = rewards.copy()
    other[20] = 1e9
    changed = DealtRewards(lambda clients, _: other[clients], 3)(batch, at)
    moved = np.flatnonzero((rows != changed).any(axis=1))
    assert batch.clients[moved].tolist() == [20]
    assert np.abs(rows - changed).sum() <= 2
    parts = [batch.take(np.arange(20)), batch.take(np.arange(20, 50))]
    again = np.concatenate([DealtRewards(lambda clients, _: rewards[clients], 3)(one, at) for one in parts])
    assert np.array_equal(rows, again)
    different = Players.of(100, np.random.default_rng(1)).take(np.arange(10, 60))
    assert not np.array_equal(different.tickets, batch.tickets)


@pytest.mark.parametrize("trust", [CENTRAL, AGGREGATE, SHUFFLE, LOCAL])
def test_clients_that_fail_lie_or_shout_count_as_one_reward_and_nothing_shows(trust: TrustModel) -> None:
    def hostile(clients: IntArray, actions: Array) -> Array:
        if np.any(clients == 3):
            raise RuntimeError("a secret")
        return np.choose(clients % 4, [np.nan, np.inf, -1e300, 0.5]) * np.ones(len(actions))

    plan = bandit(trust, horizon=200, **({"parties": 2} if trust is AGGREGATE else {}))
    found = federated_bandit(plan, silos((60, 60), play=hostile))
    honest = federated_bandit(plan, silos((60, 60)))
    assert all(np.isfinite(decision.theta).all() for decision in found.decisions)
    first = found.decisions[0]
    assert np.isfinite(first.radius)
    assert min(found.bits, honest.bits) > 0
    if len(found.decisions) == len(honest.decisions):
        assert found.bits == honest.bits


def test_every_silo_pays_once_for_all_batches(tmp_path: Path) -> None:
    plan, limit = bandit(SHUFFLE, horizon=2000), PrivacyBudget(3.0, 1e-4)
    parties = [
        silo(
            1000,
            k,
            seed=None,
            ledger=Ledger.create(tmp_path / f"{k}.ledger", neighbours=Neighbours(), limit=limit),
        )
        for k in range(3)
    ]
    first = federated_bandit(plan, InProcess(parties), run="spring")
    spent = [Ledger.open(tmp_path / f"{k}.ledger").spent().epsilon for k in range(3)]
    assert spent == pytest.approx([2.0] * 3, abs=0.01)
    assert not first.guarantees[0].simulated
    with pytest.raises(BudgetError):
        federated_bandit(plan, InProcess(parties), run="summer")


def test_a_batch_of_which_a_silo_is_missing_is_left_out() -> None:
    plan = bandit(LOCAL, horizon=5000)
    asked = bandit_rounds(plan, SIZES)
    parties = [silo(n, k) for k, n in enumerate(SIZES)]
    whole = federated_bandit(plan, InProcess(parties), asked=asked)
    parties = [silo(n, k) for k, n in enumerate(SIZES)]
    missing = InProcess(parties, is_down=lambda step, party: (step, party) == (1, 2))
    assert len(federated_bandit(plan, missing, asked=asked).decisions) == len(whole.decisions) - 1


@pytest.mark.parametrize(
    ("plan", "sizes", "fields", "said"),
    [
        (bandit(None, epsilon=math.inf), SIZES, {}, "plan must be private, with discrete noise"),
        (bandit(LOCAL, noise=RewardNoise.LAPLACE), SIZES, {}, "plan must be private, with discrete noise"),
        (bandit(AGGREGATE), SIZES[:2], {}, "parties must be the 2 silos under aggregate trust, got 3"),
        (bandit(CENTRAL), (), {}, "the number of silos must be"),
        (bandit(CENTRAL), (1, 9), {}, "sizes must be enough for a first batch of 2 x 2 clients"),
        (bandit(SHUFFLE), SIZES, {"slots": 1}, "slots must be"),
        (bandit(SHUFFLE), SIZES, {"n_min": 4}, "n_min must be"),
        (
            BanditPlan(actions=np.eye(3), horizon=100, privacy=privacy(LOCAL)),
            SIZES,
            {"slots": 2},
            "slots must be at least 3",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(
    plan: BanditPlan, sizes: tuple[int, ...], fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ParameterError, match=said):
        bandit_rounds(plan, sizes, **fields)


def test_nobody_plays_for_whom_they_do_not_trust() -> None:
    with pytest.raises(RefusalError, match="trusts_server"):
        federated_bandit(bandit(CENTRAL), silos(trusts_server=False))
    with pytest.raises(RefusalError, match="trusts_shuffler"):
        federated_bandit(bandit(SHUFFLE), silos(trusts_shuffler=False))
