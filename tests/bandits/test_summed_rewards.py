"""Bandits whose silos trust in nothing but a sum: exact prices, the law of sums, radii and refusals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tacit.audits import audit
from tacit.audits.bandits import reward_target
from tacit.bandits import (
    BanditPlan,
    LinearEnvironment,
    LiveBandit,
    RadiusMode,
    RewardNoise,
    RewardPrivacy,
    begin,
    next_batch,
    regret_bound,
    simulate_bandit,
)
from tacit.bandits.answers import simulated_sums
from tacit.bandits.radius import Question, confidence_radius
from tacit.bandits.summed_rewards import less_noisy
from tacit.errors import ParameterError
from tacit.numerics import Array
from tacit.privacy import Part, TrustModel, delta_of
from tacit.randomness import secure

AGGREGATE = TrustModel.AGGREGATE
DELTA = 1e-6
COUNTS = np.array([60, 40])


def privacy(**fields: Any) -> RewardPrivacy:
    usual: dict[str, Any] = {"trust": AGGREGATE, "epsilon": 1.0, "delta": DELTA, "parties": 3}
    return RewardPrivacy(**(usual | fields))


def law(made: RewardPrivacy, factor: float = 1.0) -> Array:
    """The noise on one number of high rewards: honest shares, written out and added up."""
    mean = less_noisy(made.share, factor)
    reach = math.ceil(9 * mean.std)
    one = np.exp(-(np.arange(-reach, reach + 1.0) ** 2) / (2 * mean.std**2))
    whole = one = one / one.sum()
    for _ in range(mean.shares - 1):
        whole = np.convolve(whole, one)
    return np.pad(whole, mean.noise.steps)


@pytest.mark.parametrize("colluding", [0, 1])
def test_the_price_is_that_of_any_two_rewards_written_out(colluding: int) -> None:
    """A reward moves one number by one, or by less where it is rounded; of the honest shares alone."""
    made = privacy(colluding=colluding)
    assert made.share.shares == 3 - colluding
    event = made.event(COUNTS, made.level(COUNTS))
    noise, steps = law(made), made.share.noise.steps
    for epsilon in (0.5, 1.0):
        claimed = delta_of(event, epsilon)
        for p in (0.0, 0.3, 1.0):  # the other reward is rounded up so often
            P, Q = noise, p * noise + (1 - p) * np.roll(noise, steps)
            for one, other in ((P, Q), (Q, P)):
                found = float(np.maximum(one - math.exp(epsilon) * other, 0).sum())
                assert found <= claimed * (1 + 1e-9)
                if p == 0:
                    assert found > 0.9 * claimed
    assert delta_of(event, 1.0) <= DELTA
    halved = law(made, 0.5)
    assert np.maximum(halved - math.e * np.roll(halved, steps), 0).sum() > 1e-3


def test_two_views_are_priced_and_say_what_they_rest_on() -> None:
    made = privacy(parties=5, colluding=2)
    seen, alone = made.guarantees([(COUNTS, 1.0), (2 * COUNTS, 1.0)], simulated=False)
    assert seen.epsilon <= 1.0 < alone.epsilon
    assert seen.neighbours.part is Part.REWARD
    assert "up to 2 of them together" in seen.observer
    assert "nobody sees a message before all of them are added up" in seen.assumptions
    assert "no client answers more than one round" in seen.assumptions
    assert any("at least 3 honest parties" in one for one in seen.assumptions)
    nothing, _ = made.guarantees([], simulated=False)
    assert nothing.epsilon == 0


def test_sums_have_the_law_of_silos_that_add_up_one_by_one() -> None:
    """Many draws of a batch against counts and shares of single silos: mean and variance, six deviations."""
    actions, theta = np.eye(2), np.array([0.6, -0.2])
    world = LinearEnvironment(actions=actions, theta=theta)
    plan = BanditPlan(actions=actions, horizon=1000, privacy=privacy())
    batch = next_batch(plan, begin(plan))
    assert batch is not None
    rng = np.random.default_rng(0)
    sums = np.array([simulated_sums(plan, batch, world, rng, rng) for _ in range(3000)])
    share = plan.privacy.share
    noise = 4 * 3 * (share.std / share.noise.steps) ** 2
    variance = batch.counts * (1 - theta**2) + noise
    assert sums.mean(axis=0) == pytest.approx(batch.counts * theta, abs=6 * math.sqrt(variance.max() / 3000))
    assert sums.var(axis=0) == pytest.approx(variance, rel=6 * math.sqrt(2 / 3000))


def test_an_attack_on_the_total_stands_and_half_the_noise_is_caught() -> None:
    made = privacy(epsilon=0.5, delta=1e-3)
    for factor, caught in ((1.0, False), (0.4, True)):
        target = reward_target(made, COUNTS, noise_factor=factor)
        found = audit(target.run, (target.event, 1e-3), runs=40_000, rng=np.random.default_rng(1))
        assert found.refuted is caught


def test_radii_hold_and_the_closed_form_is_never_below_the_sound_one() -> None:
    rng = np.random.default_rng(0)
    made = privacy()
    for _ in range(20):
        d = int(rng.integers(2, 5))
        core = rng.standard_normal((d, d))
        core /= np.linalg.norm(core, axis=1, keepdims=True)
        q = float(rng.integers(10, 5000))
        counts = np.ceil(np.full(d, q / d)).astype(np.int64)
        inverse = np.linalg.inv((core * counts[:, None]).T @ core)
        influence = core @ inverse @ core.T
        spread = float((influence.diagonal() * q).max())
        asked = Question(
            horizon=10_000,
            batches=8,
            length=q,
            alive=d,
            rank=d,
            spread=spread,
            counts=counts,
            level=1.0,
            width=2.0,
        )
        sound = confidence_radius(RadiusMode.SOUND, made, asked, influence)
        assert sound <= confidence_radius(RadiusMode.SEED_CORRECTED, made, asked)
        free = confidence_radius(RadiusMode.SOUND, RewardPrivacy(), asked, influence)
        assert free < sound
        # Estimates of the worst arm stay inside: the noise is Gaussian to 1e-38.
        proxy = np.square(influence) @ (counts + 4 * 3 * (made.share.std / made.share.noise.steps) ** 2)
        assert sound == pytest.approx(math.sqrt(2 * proxy.max() * math.log(4 * d * 8 * 10_000)))


def test_a_run_finds_the_best_action_and_colluders_cost_regret() -> None:
    actions, theta = np.eye(3), np.array([0.5, 0.1, -0.5])
    world = LinearEnvironment(actions=actions, theta=theta)
    regrets = {}
    for colluding in (0, 18):
        plan = BanditPlan(
            actions=actions, horizon=200_000, privacy=privacy(epsilon=0.05, parties=20, colluding=colluding)
        )
        found = [
            simulate_bandit(
                plan,
                world,
                rng_world=np.random.default_rng([k, 1]),
                rng_privacy=np.random.default_rng([k, 2]),
            )
            for k in range(5)
        ]
        assert all(one.best == 0 and one.survived for one in found)
        assert all(0.049 < one.guarantees[0].epsilon <= 0.05 for one in found)
        regrets[colluding] = np.mean([one.regret for one in found])
    assert regrets[0] < regrets[18]
    fewer, more = (
        regret_bound(privacy(parties=20, colluding=c), horizon=10**6, n_actions=10, dim=2).regret
        for c in (0, 18)
    )
    central = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0)
    assert regret_bound(RewardPrivacy(), horizon=10**6, n_actions=10, dim=2).regret < fewer < more
    assert fewer < 1.05 * regret_bound(central, horizon=10**6, n_actions=10, dim=2).regret


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"parties": 1}, "parties must be"),
        ({"parties": 0}, "parties must be"),
        ({"colluding": 2}, "colluding must be"),
        ({"delta": 0.0}, "delta must be"),
        ({"epsilon": math.inf}, "epsilon must be in"),
        ({"epsilon": 1e-12}, "epsilon must be in"),
        ({"noise": RewardNoise.LAPLACE}, "noise must be discrete under aggregate trust"),
        ({"trust": TrustModel.CENTRAL, "delta": 0.0}, "parties and colluding are for aggregate trust"),
        ({"trust": None, "epsilon": math.inf, "delta": 0.0}, "parties and colluding are for aggregate"),
    ],
)
def test_what_no_sum_hides_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        privacy(**fields)


def test_what_goes_with_another_trust_model_is_refused(tmp_path: Path) -> None:
    plan = BanditPlan(actions=np.eye(2), horizon=100, privacy=privacy())
    with pytest.raises(ParameterError, match="sound or seed_corrected under aggregate trust"):
        BanditPlan(actions=np.eye(2), horizon=100, privacy=privacy(), radius=RadiusMode.SEED)
    with pytest.raises(ParameterError, match="sound or seed_corrected under aggregate trust"):
        regret_bound(privacy(), horizon=100, n_actions=2, dim=2, radius=RadiusMode.SEED)
    with pytest.raises(ParameterError, match="for a run that is kept in a file, got aggregate"):
        LiveBandit.start(plan, tmp_path / "run.json")
    assert not list(tmp_path.iterdir())
    assert plan.facts()["parties"] == 3
    world = LinearEnvironment(actions=np.eye(2), theta=np.array([0.5, 0.0]))
    real = simulate_bandit(plan, world, rng_world=np.random.default_rng(0), rng_privacy=secure())
    assert not real.guarantees[0].simulated
