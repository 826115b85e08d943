"""Real runs: what is asked and taken, killed and resumed, and what is refused without spending."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

from tacit.bandits import (
    BanditPlan,
    Batch,
    LinearEnvironment,
    LiveBandit,
    RewardNoise,
    RewardPrivacy,
    Tail,
    reward_message,
    simulate_bandit,
)
from tacit.bandits.environment import random_circle
from tacit.errors import DataError, ParameterError, RefusalError
from tacit.numerics import Array, IntArray
from tacit.privacy import TrustModel, verify

ACTIONS, THETA = random_circle(6, 2, np.random.default_rng(2))
WORLD = LinearEnvironment(actions=ACTIONS, theta=THETA)
CENTRAL = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0)
LOCAL = RewardPrivacy(trust=TrustModel.LOCAL, epsilon=1.0)
SHUFFLE = RewardPrivacy(trust=TrustModel.SHUFFLE, epsilon=1.0, delta=1e-6)


def _plan(privacy: RewardPrivacy = CENTRAL, **given: object) -> BanditPlan:
    return BanditPlan(**{"actions": ACTIONS, "horizon": 3000, "privacy": privacy, **given})  # type: ignore[arg-type]


def _answers(batch: Batch, privacy: RewardPrivacy, rng: np.random.Generator) -> tuple[IntArray, Array]:
    """Play a batch: every client has a reward of its own, and sends what its trust model says."""
    dealt = batch.deal(rng)
    rewards = np.where(rng.random(dealt.size) < (1 + WORLD.means[dealt]) / 2, 1.0, -1.0)
    return dealt, reward_message(rewards, batch.level, rng) if privacy.by_message else rewards


def _play(bandit: LiveBandit, rng: np.random.Generator, batches: int = 99) -> list[Batch]:
    played = []
    for _ in range(batches):
        batch = bandit.next_batch()
        played.append(batch)
        if batch.final:
            break
        bandit.observe(batch.number, *_answers(batch, bandit.plan.privacy, rng))
    return played


@pytest.mark.parametrize("privacy", [RewardPrivacy(), CENTRAL, LOCAL, SHUFFLE])
def test_a_run_plays_every_round_and_says_what_it_cost(tmp_path: Path, privacy: RewardPrivacy) -> None:
    bandit = LiveBandit.start(_plan(privacy, horizon=20_000), tmp_path / "run.json")
    played = _play(bandit, np.random.default_rng(0))
    assert sum(batch.rounds for batch in played) == 20_000
    assert bandit.finished
    assert bandit.answered == len(played) - 1
    assert WORLD.means[bandit.best] >= WORLD.best - 0.5
    for claim in bandit.guarantees:
        verify(claim)
        assert not claim.simulated
        assert (
            claim.epsilon <= (1.0 if claim.observer != "an observer of one message and its sender" else 30)
            or not privacy.private
        )
    assert bandit.next_batch().final
    with pytest.raises(RefusalError, match="final batch takes no answers"):
        bandit.observe(played[-1].number, played[-1].in_order(), np.zeros(played[-1].rounds))


@pytest.mark.parametrize("privacy", [RewardPrivacy(), CENTRAL, LOCAL])
def test_a_run_that_is_killed_at_every_step_is_the_run_that_is_not(
    tmp_path: Path, privacy: RewardPrivacy
) -> None:
    whole = LiveBandit.start(_plan(privacy), tmp_path / "whole.json", seed=7)
    expected = _play(whole, np.random.default_rng(1))
    LiveBandit.start(_plan(privacy), tmp_path / "killed.json", seed=7)
    rng = np.random.default_rng(1)
    for batch in expected:
        again = LiveBandit.resume(tmp_path / "killed.json", plan=_plan(privacy), seed=7).next_batch()
        assert again.in_order().tolist() == batch.in_order().tolist()
        # Asked once more after another restart: the batch that is out stays out.
        bandit = LiveBandit.resume(tmp_path / "killed.json", seed=7)
        assert bandit.next_batch().in_order().tolist() == batch.in_order().tolist()
        if not batch.final:
            bandit.observe(batch.number, *_answers(batch, privacy, rng))
    files = [json.loads((tmp_path / name).read_text()) for name in ("whole.json", "killed.json")]
    assert files[0] == files[1]


def test_an_answered_batch_is_never_answered_again(tmp_path: Path) -> None:
    bandit = LiveBandit.start(_plan(), tmp_path / "run.json")
    batch = bandit.next_batch()
    rng = np.random.default_rng(0)
    stale = LiveBandit.resume(tmp_path / "run.json")
    bandit.observe(batch.number, *_answers(batch, CENTRAL, rng))
    before = (tmp_path / "run.json").read_bytes()
    with pytest.raises(RefusalError, match="batch 1 is answered"):
        bandit.observe(1, *_answers(batch, CENTRAL, rng))
    # A process that read the file before is refused as well: it would draw fresh noise for the same rewards.
    with pytest.raises(RefusalError, match="changed by another process"):
        stale.observe(1, *_answers(batch, CENTRAL, rng))
    with pytest.raises(RefusalError, match="batch 3 is not out"):
        bandit.observe(3, [0], [1.0])
    assert (tmp_path / "run.json").read_bytes() == before


def test_sums_that_a_killed_process_left_behind_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are sums of the same rewards under noise of their own, which the resumed run draws afresh."""
    bandit = LiveBandit.start(_plan(), tmp_path / "run.json")
    batch = bandit.next_batch()
    with monkeypatch.context() as killed:
        for way in ("replace", "unlink"):  # nothing is tidied up after a kill
            killed.setattr(Path, way, lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            bandit.observe(1, *_answers(batch, CENTRAL, np.random.default_rng(0)))
    assert b"sums" in (tmp_path / "run.json.new").read_bytes()
    assert LiveBandit.resume(tmp_path / "run.json").answered == 0
    assert sorted(file.name for file in tmp_path.iterdir()) == ["run.json", "run.json.lock"]


def test_another_seed_or_plan_is_refused_and_nothing_is_changed(tmp_path: Path) -> None:
    seeded = LiveBandit.start(_plan(), tmp_path / "seeded.json", seed=3)
    LiveBandit.start(_plan(), tmp_path / "secret.json")
    assert seeded.guarantees[0].simulated
    for path, seed in (("seeded.json", None), ("seeded.json", 4), ("secret.json", 3)):
        with pytest.raises(ParameterError, match="seed must be that of the run"):
            LiveBandit.resume(tmp_path / path, seed=seed)
    others = {
        "horizon": _plan(horizon=4000),
        "epsilon": _plan(RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=2.0)),
        "trust": _plan(LOCAL),
        "actions": _plan(actions=-ACTIONS),
        "tol": _plan(tol=1.5),
        "tail": _plan(tail=Tail.TRUNCATE),
        "reward_range": _plan(reward_range=(0.0, 1.0)),
    }
    for name, plan in others.items():
        with pytest.raises(ParameterError, match=f"{name} must be that of the run"):
            LiveBandit.resume(tmp_path / "secret.json", plan=plan)
    with pytest.raises(ParameterError, match="must not exist"):
        LiveBandit.start(_plan(), tmp_path / "secret.json")


def test_answers_that_are_not_those_of_the_batch_are_refused(tmp_path: Path) -> None:
    bandit = LiveBandit.start(_plan(LOCAL), tmp_path / "run.json")
    batch = bandit.next_batch()
    rows = batch.in_order()
    ones = np.ones(batch.rounds, dtype=np.int64)
    missing = next(a for a in range(6) if a not in batch.actions)
    for actions, answers, why in (
        (rows[:-1], ones[:-1], "takes .* answers for action"),
        (np.append(rows, rows[0]), np.append(ones, 1), "takes .* answers for action"),
        (np.append(rows[:-1], missing), ones, "others were given"),
        (np.append(rows[:-1], 10**6), ones, "others were given"),
        (rows, ones[:-1], "one length"),
        (rows.astype(float), ones, "whole numbers"),
        (rows, ones * 0.5, "messages 0 and 1"),
        (rows, np.full(batch.rounds, math.nan), "messages 0 and 1"),
    ):
        with pytest.raises(DataError, match=why):
            bandit.observe(batch.number, actions, answers)
    assert bandit.answered == 0
    with pytest.raises(DataError, match="high must hold"):
        bandit.observe_counts(1, {int(batch.actions[0]): 1})
    with pytest.raises(DataError, match="high must hold"):
        bandit.observe_counts(1, dict.fromkeys(batch.actions.tolist(), batch.rounds + 1))
    with pytest.raises(DataError, match="high must hold"):
        bandit.observe_counts(1, dict.fromkeys(batch.actions.tolist(), 0.5))  # type: ignore[arg-type]
    high = {int(a): int(c) for a, c in zip(batch.actions, batch.counts, strict=True)}
    by_count = bandit.observe_counts(1, high)
    other = LiveBandit.start(_plan(LOCAL), tmp_path / "other.json")
    other.next_batch()
    assert other.observe(1, rows, ones).estimates.tolist() == by_count.estimates.tolist()
    central = LiveBandit.start(_plan(), tmp_path / "central.json")
    central.next_batch()
    with pytest.raises(RefusalError, match="local and shuffle"):
        central.observe_counts(1, high)


def test_rewards_beyond_their_range_are_clipped_and_nothing_private_is_kept(tmp_path: Path) -> None:
    wild, tame = (LiveBandit.start(_plan(), tmp_path / f"{name}.json", seed=5) for name in ("wild", "tame"))
    batch = wild.next_batch()
    tame.next_batch()
    rows = batch.in_order()
    rewards = np.where(np.arange(rows.size) % 2 == 0, 1e9, math.nan)
    a = wild.observe(1, rows, rewards)
    b = tame.observe(1, rows, np.where(np.isnan(rewards), -1.0, 1.0))
    assert a.estimates.tolist() == b.estimates.tolist()
    assert "1000000000" not in (tmp_path / "wild.json").read_text()


def test_noise_is_fresh_for_each_batch_and_on_the_lattice(tmp_path: Path) -> None:
    """Sums of +1 and -1 keep the parity of their number: noise is even."""
    bandit = LiveBandit.start(_plan(), tmp_path / "run.json")
    _play(bandit, np.random.default_rng(3), batches=4)
    for found in json.loads((tmp_path / "run.json").read_text())["answered"]:
        for total, count in zip(found["sums"], found["counts"], strict=True):
            assert total == int(total)
            assert (int(total) - count) % 2 == 0


def test_a_live_run_has_the_regret_of_a_simulated_one(tmp_path: Path) -> None:
    plan = _plan(LOCAL, horizon=3000)
    live, drawn = [], []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        bandit = LiveBandit.start(plan, tmp_path / f"{seed}.json", seed=seed)
        live.append(sum(WORLD.regret(b.actions, b.counts) for b in _play(bandit, rng)))
        drawn.append(simulate_bandit(plan, WORLD, rng_world=rng, rng_privacy=rng).regret)
    assert 0.3 < np.mean(live) / np.mean(drawn) < 3


def test_continuous_noise_and_impossible_records_are_refused(tmp_path: Path) -> None:
    laplace = RewardPrivacy(trust=TrustModel.CENTRAL, epsilon=1.0, noise=RewardNoise.LAPLACE)
    with pytest.raises(ParameterError, match="noise must be discrete"):
        LiveBandit.start(_plan(laplace), tmp_path / "run.json")
    assert not (tmp_path / "run.json").exists()
    with pytest.raises(ParameterError, match="was started"):
        LiveBandit.resume(tmp_path / "run.json")
    started = LiveBandit.start(_plan(), tmp_path / "run.json")
    _play(started, np.random.default_rng(0), batches=2)
    started.next_batch()
    good = json.loads((tmp_path / "run.json").read_text())
    broken: list[dict[str, object]] = [
        {"version": 1},
        {"version": 3},
        {"run": ""},
        {"version": True},
        {"extra": 1},
        {"alive": []},
        {"alive": [0, 9]},
        {"best": 6},
        {"played": 1},
        {"answered": good["answered"][1:]},
        {"plan": {**good["plan"], "epsilon": 3.0, "tol": "2"}},
        {"plan": {**good["plan"], "actions_digest": "0"}},
        {"seed": "7"},
        {"issued": {**good["issued"], "level": 9.0}},
        {"issued": {**good["issued"], "level": None}},
        {"issued": {**good["issued"], "level": 0.0}},
        {"issued": {**good["issued"], "level": 0.5}},
        {"answered": [{**good["answered"][0], "level": 0.5}, *good["answered"][1:]]},
        {"answered": [{**good["answered"][0], "level": 2.0}, *good["answered"][1:]]},
        {"alive": [0], "best": 0},
    ]
    for change in broken:
        (tmp_path / "bad.json").write_text(json.dumps({**good, **change}))
        with pytest.raises(ParameterError, match=r"record of (a|the) bandit"):
            LiveBandit.resume(tmp_path / "bad.json")
    (tmp_path / "bad.json").write_text("{")
    with pytest.raises(ParameterError, match="no record of a bandit"):
        LiveBandit.resume(tmp_path / "bad.json")


@pytest.mark.parametrize("ends", [(0.0, 1e200), (1e200, 1.1e200), (0.0, 1e-200), (-1e308, 1e308), (1.0, 1.0)])
def test_ranges_of_rewards_that_overflow_are_refused(ends: tuple[float, float]) -> None:
    with pytest.raises(ParameterError, match="reward_range must"):
        _plan(reward_range=ends)


def test_a_run_without_a_first_batch_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(privacy: RewardPrivacy, counts: IntArray) -> float:
        raise ParameterError("no level")

    monkeypatch.setattr(RewardPrivacy, "level", refuse)
    with pytest.raises(ParameterError, match="no level"):
        LiveBandit.start(_plan(), tmp_path / "run.json")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("ends", [(-1e100, 1e100), (0.0, 1e-100), (1e16, 1e16 + 2)])
def test_ranges_at_the_edge_are_played(tmp_path: Path, ends: tuple[float, float]) -> None:
    bandit = LiveBandit.start(_plan(reward_range=ends), tmp_path / "run.json")
    batch = bandit.next_batch()
    found = bandit.observe(1, batch.in_order(), np.full(batch.rounds, ends[1]))
    assert math.isfinite(found.radius)
    assert np.all(np.isfinite(found.estimates))
