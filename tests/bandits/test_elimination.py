"""The loop: radii of the reference, unbiased estimates of stated variance, and who is dropped."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tacit.bandits import (
    BanditPlan,
    LinearEnvironment,
    RadiusMode,
    RewardModel,
    RewardNoise,
    RewardPrivacy,
    Tail,
    begin,
    decide,
    laplace_sum_radius,
    next_batch,
    regret_bound,
    simulate_bandit,
)
from tacit.bandits.answers import noisy_high, reward_message, simulated_sums
from tacit.bandits.elimination import Batch, Elimination
from tacit.bandits.environment import random_circle
from tacit.bandits.radius import Question, confidence_radius
from tacit.bandits.tails import chernoff_radii
from tacit.errors import ParameterError
from tacit.mechanisms import BinaryRandomizedResponse, discrete_laplace_variance
from tacit.numerics import Array
from tacit.privacy import TrustModel
from tests.statistics import z_bound

CENTRAL = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0, noise=RewardNoise.LAPLACE)
LOCAL = RewardPrivacy(trust=TrustModel.LOCAL, epsilon=1.0, noise=RewardNoise.LAPLACE)
NONE = RewardPrivacy()
EXACT = [
    RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0),
    RewardPrivacy(trust=TrustModel.LOCAL, epsilon=1.0),
    RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6),
]


def _radii(privacy: RewardPrivacy) -> list[float]:
    bound = regret_bound(privacy, horizon=10**6, n_actions=10, dim=2, radius=RadiusMode.SEED)
    assert [batch.rounds for batch in bound.batches] == [
        4, 10, 24, 68, 192, 546, 1560, 4454, 12728, 36378, 103974, 297172
    ]  # fmt: skip
    return [batch.radius for batch in bound.batches]


def test_printed_radii_have_the_tabled_values() -> None:
    """With sensitivity 2: T = 1e6, two dimensions, ten actions, core sets of two."""
    assert _radii(CENTRAL) == pytest.approx(
        [102.626079, 38.168919, 14.692639, 5.932170, 2.543736, 1.166940, 0.572099, 0.297061, 0.161250,
         0.090320, 0.051654, 0.029934], abs=6e-7,
    )  # fmt: skip
    assert _radii(NONE) == pytest.approx(
        [9.362963, 5.538236, 3.275892, 1.937705, 1.146161, 0.677960, 0.401016, 0.237203, 0.140307,
         0.082992, 0.049090, 0.029037], abs=6e-7,
    )  # fmt: skip
    assert _radii(LOCAL) == pytest.approx(
        [40.691954, 22.869596, 12.669977, 7.470182, 4.398771, 2.597044, 1.535965, 0.908176, 0.537157,
         0.317729, 0.187939, 0.111167], abs=6e-7,
    )  # fmt: skip


def _random_question(rng: np.random.Generator, privacy: RewardPrivacy) -> tuple[Question, Array]:
    """Return a batch with a design of tolerance 2, and how its sums weigh in the estimates."""
    dim = int(rng.integers(2, 6))
    rows, _ = random_circle(int(rng.integers(dim, 40)), dim, rng)
    plan = BanditPlan(actions=rows, horizon=int(10 ** rng.uniform(2, 7)), privacy=privacy)
    number = int(rng.integers(1, plan.schedule.batches + 1))
    state = Elimination(alive=np.arange(len(rows)), number=number)
    batch = next_batch(plan, state)
    assert batch is not None
    core = rows[batch.actions]
    inverse = np.linalg.inv((core * batch.counts[:, None]).T @ core)
    asked = Question(
        horizon=plan.horizon,
        batches=plan.schedule.batches,
        length=batch.length,
        alive=len(rows),
        rank=dim,
        spread=2.0 * dim,
        counts=batch.counts,
        level=privacy.epsilon,
        width=2.0,
    )
    return asked, rows @ inverse @ core.T


@pytest.mark.parametrize("privacy", [CENTRAL, LOCAL, *EXACT[:2]])
def test_sound_radii_are_never_above_the_corrected_closed_form(privacy: RewardPrivacy) -> None:
    rng = np.random.default_rng(17)
    for _ in range(60):
        asked, influence = _random_question(rng, privacy)
        if asked.length > asked.horizon / 2:
            continue
        sound = confidence_radius(RadiusMode.SOUND, privacy, asked, influence)
        corrected = confidence_radius(RadiusMode.SEED_CORRECTED, privacy, asked)
        assert sound <= corrected * (1 + 1e-9)


def test_the_printed_local_radius_can_be_too_small() -> None:
    """Its noise part is below what the tail of the noise takes, at the printed failure probability."""
    asked = Question(
        horizon=10**6, batches=12, length=1e5, alive=10, rank=2, spread=4.0,
        counts=np.array([50_000, 50_000]), level=1.0, width=2.0,
    )  # fmt: skip
    lg = math.log(4 * 10 * 10**12)
    printed = confidence_radius(RadiusMode.SEED, LOCAL, asked) - confidence_radius(
        RadiusMode.SEED, NONE, asked
    )
    worst = np.array([[math.sqrt(2.0), math.sqrt(2.0)]]) / 1e5 * math.sqrt(2)  # ||a||^2 = 4 / q, as g = 2 m
    needed = chernoff_radii(worst, np.array([50_000.0, 50_000.0]), 2.0, lg)[0]
    assert printed < needed
    corrected = confidence_radius(RadiusMode.SEED_CORRECTED, LOCAL, asked)
    assert corrected - confidence_radius(RadiusMode.SEED, NONE, asked) >= needed


def _variance(privacy: RewardPrivacy, counts: Array, means: Array, level: float) -> Array:
    """Return the exact variance of each noisy sum of rewards of +1 and -1."""
    rewards = counts * (1 - means**2)
    if not privacy.private:
        return np.asarray(rewards)
    if privacy.noise is RewardNoise.LAPLACE:
        return np.asarray(rewards + 8 / level**2 * (counts if privacy.by_message else 1))
    if not privacy.by_message:
        return np.asarray(rewards + 4 * discrete_laplace_variance(1 / level))
    return np.asarray(counts * (1 / BinaryRandomizedResponse(level).gap ** 2 - means**2))


@pytest.mark.parametrize("privacy", [NONE, CENTRAL, LOCAL, *EXACT])
def test_sums_are_unbiased_with_the_stated_variance(privacy: RewardPrivacy) -> None:
    """Over 4000 batches, false alarm below 1e-6; A = I, so that estimates are sums over counts."""
    world = LinearEnvironment(actions=np.eye(2), theta=np.array([0.6, -0.2]))
    plan = BanditPlan(actions=np.eye(2), horizon=10**6, privacy=privacy)
    batch = Batch(number=1, actions=np.array([0, 1]), counts=np.array([100, 50]), level=privacy.epsilon)
    rng, noise = np.random.default_rng(1), np.random.default_rng(2)
    sums = np.array([simulated_sums(plan, batch, world, rng, noise) for _ in range(4000)])
    variance = _variance(privacy, batch.counts, world.means, privacy.epsilon)
    bound = z_bound(4)
    assert np.all(np.abs(sums.mean(axis=0) - batch.counts * world.means) <= bound * np.sqrt(variance / 4000))
    # A Laplace variable has a fourth moment of 6 variances squared: the spread of a variance is at most
    # sqrt(5 / n), and the normal bound is kept with room.
    assert np.all(np.abs(sums.var(axis=0) / variance - 1) <= bound * math.sqrt(5 / 4000))


@pytest.mark.parametrize("level", [0.3, 1.0])
def test_noise_on_high_rewards_follows_its_law(level: float) -> None:
    """20,000 draws: how often it is 0, and its variance; false alarm below 1e-6. Half the noise fails."""

    def strays(at: float) -> tuple[float, float]:
        noise = noisy_high(np.zeros(20_000, dtype=np.int64), at, np.random.default_rng(3))
        zero = math.tanh(level / 2)
        variance = discrete_laplace_variance(1 / level)
        fourth = 6.0 + 1 / variance  # of a discrete Laplace variable, over its variance squared
        return (
            abs((noise == 0).mean() - zero) / math.sqrt(zero * (1 - zero) / 20_000),
            abs(noise.var() / variance - 1) / math.sqrt((fourth - 1) / 20_000),
        )

    assert max(strays(level)) <= z_bound(4)
    assert min(strays(2 * level)) > z_bound(4)


@pytest.mark.parametrize("level", [0.5, 2.0])
def test_messages_lie_as_often_as_they_must(level: float) -> None:
    """20,000 messages of certain rewards; false alarm below 1e-6. A level twice as high fails."""
    flip = 1 / (1 + math.exp(level))
    for at, right in ((level, True), (2 * level, False)):
        bits = reward_message(np.ones(20_000), at, np.random.default_rng(4))
        strays = abs((bits == 0).mean() - flip) / math.sqrt(flip * (1 - flip) / 20_000)
        assert bool(strays <= z_bound(2)) is right


def test_a_sound_radius_by_hand() -> None:
    """Two actions at a right angle, played n times each: one sum counts for each, with weight 1 / n."""
    n, horizon, batches = 50, 10**4, 8
    asked = Question(
        horizon=horizon, batches=batches, length=100.0, alive=2, rank=2, spread=4.0,
        counts=np.array([n, n]), level=0.5, width=2.0,
    )  # fmt: skip
    influence = np.eye(2) / n
    lb = math.log(4 * 2 * batches * horizon)
    found = {
        p.trust: confidence_radius(RadiusMode.SOUND, p, asked, influence) for p in (NONE, CENTRAL, LOCAL)
    }
    rewards = math.sqrt(2 * lb / n)
    assert found[None] == pytest.approx(rewards)
    assert found[TrustModel.CENTRAL] == pytest.approx(
        rewards + laplace_sum_radius([1 / n], 1, 4.0, math.exp(-lb)), rel=1e-6
    )
    assert found[TrustModel.LOCAL] == pytest.approx(
        rewards + laplace_sum_radius([1 / n], n, 4.0, math.exp(-lb)), rel=1e-6
    )
    message = confidence_radius(RadiusMode.SOUND, EXACT[1], asked, influence)
    assert message == pytest.approx(rewards / math.tanh(0.25))


def test_the_variance_of_the_example() -> None:
    counts, means = np.array([100, 50]), np.array([0.6, -0.2])
    assert (_variance(CENTRAL, counts, means, 1.0) / counts**2).tolist() == pytest.approx([0.0072, 0.0224])
    assert (_variance(LOCAL, counts, means, 1.0) / counts**2).tolist() == pytest.approx([0.0864, 0.1792])
    exact = _variance(EXACT[0], counts, means, 1.0) - counts * (1 - means**2)
    assert exact.tolist() == pytest.approx([7.365, 7.365], abs=5e-4)


def test_drawn_sums_have_the_law_of_messages_one_by_one() -> None:
    """Mean and variance of 3000 batches of messages against the exact ones, false alarm below 1e-6."""
    privacy = EXACT[1]
    plan = BanditPlan(actions=np.eye(2), horizon=10**6, privacy=privacy)
    world = LinearEnvironment(actions=np.eye(2), theta=np.array([0.5, 0.1]), model=RewardModel.UNIFORM)
    rng, gap = np.random.default_rng(4), BinaryRandomizedResponse(1.0).gap
    rewards = world.draw(0, 3000 * 20, rng)
    bits = reward_message(rewards, 1.0, rng).reshape(3000, 20)
    sums = ((2 * bits - 1) / gap).sum(axis=1)
    variance = 20 * (1 / gap**2 - 0.25)
    assert abs(sums.mean() - 10) <= z_bound(2) * math.sqrt(variance / 3000)
    assert abs(sums.var() / variance - 1) <= z_bound(2) * math.sqrt(2 / 3000) * 1.2
    batch = Batch(number=1, actions=np.array([0]), counts=np.array([20]), level=1.0)
    drawn = np.array([simulated_sums(plan, batch, world, rng, rng)[0] for _ in range(3000)])
    assert abs(drawn.mean() - 10) <= z_bound(2) * math.sqrt(variance / 3000)
    assert abs(drawn.var() / variance - 1) <= z_bound(2) * math.sqrt(2 / 3000) * 1.2


def _run(privacy: RewardPrivacy, *, horizon: int = 10**5, seed: int = 0, **given: object) -> float:
    actions, theta = random_circle(10, 2, np.random.default_rng(seed))
    found = simulate_bandit(
        BanditPlan(actions=actions, horizon=horizon, privacy=privacy, **given),  # type: ignore[arg-type]
        LinearEnvironment(actions=actions, theta=theta),
        rng_world=np.random.default_rng(100 + seed),
        rng_privacy=np.random.default_rng(200 + seed),
    )
    assert sum(count for _, count in found.played) == horizon
    return found.regret


@pytest.mark.parametrize("noise", list(RewardNoise))
@pytest.mark.parametrize("trust", [TrustModel.CENTRAL, TrustModel.LOCAL])
def test_no_noise_is_the_bandit_without_privacy_to_the_last_bit(
    noise: RewardNoise, trust: TrustModel
) -> None:
    without = RewardPrivacy(trust=trust, epsilon=math.inf, noise=noise)
    assert _run(without) == _run(NONE)


def test_less_trust_costs_more_regret_and_the_best_action_survives() -> None:
    budgets = [
        RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=0.1),
        RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=0.1, delta=1e-6),
        RewardPrivacy(trust=TrustModel.LOCAL, epsilon=0.1),
    ]
    none, central, shuffle, local = (
        float(np.mean([_run(privacy, seed=seed) for seed in range(6)])) for privacy in (NONE, *budgets)
    )
    # Shuffled and central regrets are close; which is lower on few instances is chance.
    assert none < min(central, shuffle)
    assert 1.5 * max(central, shuffle) < local
    actions, theta = random_circle(10, 2, np.random.default_rng(5))
    world = LinearEnvironment(actions=actions, theta=theta)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        for privacy in (CENTRAL, EXACT[1]):
            plan = BanditPlan(actions=actions, horizon=10_000, privacy=privacy)
            assert simulate_bandit(plan, world, rng_world=rng, rng_privacy=rng).survived


def test_exact_noise_is_no_worse_than_laplace_noise() -> None:
    exact = np.mean([_run(EXACT[1], seed=seed) for seed in range(12)])
    laplace = np.mean([_run(LOCAL, seed=seed) for seed in range(12)])
    assert exact < laplace


def test_stored_sums_replay_the_run() -> None:
    """Everything after the sums is post-processing."""
    actions, theta = random_circle(10, 2, np.random.default_rng(3))
    plan = BanditPlan(actions=actions, horizon=50_000, privacy=EXACT[0])
    world = LinearEnvironment(actions=actions, theta=theta)
    rng = np.random.default_rng(8)
    found = simulate_bandit(plan, world, rng_world=rng, rng_privacy=rng)
    state, played = begin(plan), []
    for report in found.batches:
        batch = next_batch(plan, state)
        assert batch is not None
        played += list(zip(batch.actions.tolist(), batch.counts.tolist(), strict=True))
        if not batch.final:
            state = decide(plan, state, batch, report.sums).state
    assert tuple(played) == found.played


def test_dropped_actions_play_no_part_in_what_is_dropped_next() -> None:
    """The maximum is over the actions that are left; the printed one is over all, estimated or not."""
    actions = np.array([[0.0, 1.0], [1.0, 0.0], [0.9, 0.0]])
    plan = BanditPlan(actions=actions, horizon=10**6)
    state = Elimination(alive=np.array([1, 2]), number=12, played=0)
    batch = next_batch(plan, state)
    assert batch is not None
    decision = decide(plan, state, batch, 0.5 * batch.counts * actions[batch.actions, 0])
    assert decision.estimates.tolist() == pytest.approx([0.5, 0.45])
    assert decision.theta.tolist() == pytest.approx([0.5, 0.0])
    assert 1 in decision.state.alive


def test_a_gap_of_twice_the_radius_may_survive_and_one_of_four_times_may_not() -> None:
    """Estimates may be off by a radius each; the text has half of a gap, the proof a quarter."""
    plan = BanditPlan(actions=np.eye(2), horizon=10**6)
    state = Elimination(alive=np.array([0, 1]), number=10)
    batch = next_batch(plan, state)
    assert batch is not None
    radius = decide(plan, state, batch, np.zeros(2)).radius
    for gap, stays in ((2.1 * radius, True), (3.9 * radius, True), (4.1 * radius, False)):
        off = np.array([0.5 - radius, 0.5 - gap + radius])
        assert (1 in decide(plan, state, batch, batch.counts * off).state.alive) == stays


@pytest.mark.parametrize("horizon", [8, 20, 2981, 3000, 10_000])
@pytest.mark.parametrize("tail", list(Tail))
def test_every_round_is_played_once_whatever_the_horizon(horizon: int, tail: Tail) -> None:
    rng = np.random.default_rng(0)
    actions, theta = random_circle(3, 2, rng)
    plan = BanditPlan(actions=actions, horizon=horizon, tail=tail)
    world = LinearEnvironment(actions=actions, theta=theta)
    found = simulate_bandit(plan, world, rng_world=rng, rng_privacy=rng)
    assert sum(count for _, count in found.played) == horizon
    assert found.batches[-1].batch.final or sum(b.batch.rounds for b in found.batches) == horizon


def test_a_first_batch_that_does_not_fit_is_refused() -> None:
    actions, _ = random_circle(40, 20, np.random.default_rng(0))
    with pytest.raises(ParameterError, match="horizon must be at least"):
        begin(BanditPlan(actions=actions, horizon=15))


def test_one_action_is_played_at_once() -> None:
    plan = BanditPlan(actions=np.array([[1.0, 0.0]]), horizon=100, privacy=EXACT[0])
    batch = next_batch(plan, begin(plan))
    assert batch is not None
    assert (batch.final, batch.counts.tolist()) == (True, [100])


def test_without_a_core_set_all_actions_are_played() -> None:
    actions, _ = random_circle(30, 2, np.random.default_rng(0))
    plan = BanditPlan(actions=actions, horizon=10**5, core=False)
    batch = next_batch(plan, Elimination(alive=np.arange(30), number=6))
    assert batch is not None
    assert len(batch.actions) == 30
    assert batch.spread >= 2.0


def test_a_dealt_batch_is_a_permutation_of_the_batch() -> None:
    batch = Batch(number=1, actions=np.array([2, 5]), counts=np.array([30, 20]))
    dealt = batch.deal(np.random.default_rng(0))
    assert sorted(dealt.tolist()) == batch.in_order().tolist()
    assert dealt.tolist() != batch.in_order().tolist()


@pytest.mark.parametrize("model", list(RewardModel))
def test_rewards_have_the_means_that_are_said(model: RewardModel) -> None:
    """20,000 rewards in [-1, 1], false alarm below 1e-6."""
    world = LinearEnvironment(actions=np.eye(2), theta=np.array([0.9, -0.1]), model=model, spread=0.7)
    rng = np.random.default_rng(6)
    for action in (0, 1):
        rewards = world.draw(action, 20_000, rng)
        assert np.all(np.abs(rewards) <= 1)
        tolerance = z_bound(6) * rewards.std() / math.sqrt(20_000)
        assert abs(rewards.mean() - world.reward_means[action]) <= tolerance
    assert (model is RewardModel.CLIPPED_GAUSSIAN) == bool(np.any(world.reward_means != world.means))
    total = world.draw_sums(np.array([0]), np.array([2000]), rng)[0]
    assert abs(total - 2000 * world.reward_means[0]) <= z_bound(6) * math.sqrt(2000)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"horizon": 5}, "horizon"),
        ({"tol": 0.5}, "tol"),
        ({"reward_range": (1.0, 1.0)}, "reward_range"),
        ({"reward_range": (0.0, math.inf)}, "reward_range"),
        ({"reward_range": 3}, "reward_range"),
        ({"core": 1}, "core"),
        ({"radius": "sound"}, "radius"),
        ({"privacy": "central"}, "privacy"),
        ({"actions": [[2.0, 0.0]]}, "norm of at most 1"),
    ],
)
def test_plans_that_mean_nothing_are_refused(given: dict[str, object], why: str) -> None:
    with pytest.raises(ParameterError, match=why):
        BanditPlan(**{"actions": np.eye(2), "horizon": 100, **given})  # type: ignore[arg-type]


def test_worlds_that_mean_nothing_are_refused() -> None:
    for theta in ([1.0, 1.0], [math.nan, 0.0], [1.0]):
        with pytest.raises(ParameterError, match="theta"):
            LinearEnvironment(actions=np.eye(2), theta=np.array(theta))
    world = LinearEnvironment(actions=np.eye(2), theta=np.array([0.5, 0.0]))
    rng = np.random.default_rng(0)
    with pytest.raises(ParameterError, match="actions of the plan"):
        simulate_bandit(BanditPlan(actions=np.eye(3), horizon=100), world, rng_world=rng, rng_privacy=rng)
    shifted = BanditPlan(actions=np.eye(2), horizon=100, reward_range=(0.0, 1.0))
    with pytest.raises(ParameterError, match="reward_range"):
        simulate_bandit(shifted, world, rng_world=rng, rng_privacy=rng)
