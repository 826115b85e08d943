"""Private bandits: whole runs in closed form, designs, levels behind a shuffler, and live batches."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.bandits import (
    BanditPlan,
    LinearEnvironment,
    LiveBandit,
    RewardPrivacy,
    amplified_level,
    g_optimal_design,
    random_circle,
    reward_message,
    simulate_bandit,
)
from tacit.privacy import TrustModel

_BUDGETS = {
    "central": RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0),
    "shuffle": RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6),
    "local": RewardPrivacy(trust=TrustModel.LOCAL, epsilon=1.0),
}


def _runs(smoke: bool) -> dict[str, float]:
    actions, theta = random_circle(100 if smoke else 1000, 2, np.random.default_rng(0))
    world = LinearEnvironment(actions=actions, theta=theta)
    found: dict[str, float] = {"rounds": 10**5 if smoke else 10**7}
    for name, privacy in _BUDGETS.items():
        plan = BanditPlan(actions=actions, horizon=int(found["rounds"]), privacy=privacy)

        def play(plan: BanditPlan = plan) -> None:
            amplified_level.cache_clear()
            rng = np.random.default_rng(1)
            simulate_bandit(plan, world, rng_world=rng, rng_privacy=rng)

        found[name] = best_seconds(play, 1 if smoke else 3)
    return found


def _design(smoke: bool) -> dict[str, float]:
    rows, _ = random_circle(500 if smoke else 20_000, 5 if smoke else 50, np.random.default_rng(0))
    return {
        "rough": best_seconds(lambda: g_optimal_design(rows), 1 if smoke else 3),
        "fine": best_seconds(lambda: g_optimal_design(rows, 1.05), 1),
    }


def _live(smoke: bool) -> dict[str, float]:
    """Messages of a whole run, from the shuffler to decisions on disk; no action is better, so none drops."""
    actions, _ = random_circle(10, 2, np.random.default_rng(0))
    world = LinearEnvironment(actions=actions, theta=np.zeros(2))
    plan = BanditPlan(actions=actions, horizon=3000 if smoke else 3_000_000, privacy=_BUDGETS["shuffle"])
    rng = np.random.default_rng(1)
    with tempfile.TemporaryDirectory() as folder:
        bandit = LiveBandit.start(plan, Path(folder) / "run.json")
        answers, seconds = 0, 0.0
        while not (batch := bandit.next_batch()).final:
            dealt = batch.deal(rng)
            rewards = np.where(rng.random(dealt.size) < (1 + world.means[dealt]) / 2, 1.0, -1.0)
            messages = reward_message(rewards, batch.level, rng)
            seconds += best_seconds(lambda b=batch, d=dealt, m=messages: bandit.observe(b.number, d, m), 1)  # type: ignore[misc]
            answers += batch.rounds
    return {"answers": answers, "seconds": seconds}


CASES = (
    Case(
        "bandits/simulated",
        "1e7 rounds, 1000 actions, under each trust model in under 5 s",
        _runs,
        lambda m: (
            f"{m['rounds']:,.0f} rounds: central {m['central']:.2f} s, shuffle {m['shuffle']:.2f} s, "
            f"local {m['local']:.2f} s"
        ),
    ),
    Case(
        "bandits/design",
        "core set of 20,000 actions in 50 dimensions in under 5 s",
        _design,
        lambda m: f"tolerance 2 in {m['rough']:.2f} s, 1.05 in {m['fine']:.2f} s",
    ),
    Case(
        "bandits/live",
        "messages of a run answered and decided on disk, 1e6 in under 1 s",
        _live,
        lambda m: f"{m['answers']:,.0f} messages in {m['seconds']:.2f} s",
    ),
)
