"""DIFF2-BVR-LSGD: estimates with restarts and walks of one silo at a time, and what they cost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Fixed, Full, TurnWalk
from tacit.learning import NoisyDiff2, NoisyLocalStorm, Records
from tacit.learning.preparation import prepare
from tacit.numerics import L1, Array, Zero
from tacit.privacy import Compose, Gaussian, Relation, Repeat, Sampled, TrustModel, epsilon_of
from tests.learning.algorithms.test_attacks import settings_with as attacked_settings
from tests.learning.algorithms.test_ce_psgm import finished
from tests.learning.algorithms.test_spider import OBJECTIVE, SIZES, D, data, settings_with
from tests.learning.attacks import Canary, canaries, stands_and_half_the_noise_is_caught

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL


def bvr(**options: Any) -> NoisyDiff2:
    return NoisyDiff2(routine="bvr-lsgd", **options)


@pytest.mark.parametrize(("rounds", "period"), [(8, 2), (13, 2), (14, 3), (11, 4), (13, 7), (7, 1)])
def test_without_noise_it_is_bvr_l_sgd(rounds: int, period: int) -> None:
    """Also where plans write periods out in other ways, which the rounds that are asked do not show."""
    H, eta = 3, 1.2
    algorithm = bvr(rounds=rounds, period=period, local_steps=H, local_batch=Full(), step_size=eta)
    w, prepared, ask = finished(settings_with(algorithm, None))
    silos = data()
    everyone = Records.of(np.vstack([s.X for s in silos]), np.concatenate([s.y for s in silos]))

    def slope(at: Array, records: Records) -> Array:
        return np.asarray(OBJECTIVE.gradients(at, records).mean(axis=0))

    x = np.zeros(D)
    for r in range(rounds // 2):
        u, before, own = slope(x, everyone), x, silos[r % 3]
        for k in range(H):
            if k > 0:
                u = u + slope(x, own) - slope(before, own)
            before, x = x, x - eta * u
    if rounds % 2:
        x = x - eta * slope(x, everyone)
    np.testing.assert_allclose(w, x, rtol=1e-5, atol=1e-6)  # walks are sent as float32
    restarts = ["previous" not in one.at for one in ask.seen[::2]]
    assert restarts == [r % period == 0 for r in range(-(-rounds // 2))]
    schedule = prepared.plan.schedule()
    places = [schedule.place(r) for r in range(1, rounds, 2)]
    walks = [(schedule.steps[kind], earlier) for kind, earlier in places]
    turns = [walk.turn(earlier, 3) for walk, earlier in walks if isinstance(walk, TurnWalk)]
    assert turns == [r % 3 for r in range(rounds // 2)]


def test_with_one_period_it_is_ce_psgm_that_forgets_nothing() -> None:
    facts: Any = {"rounds": 8, "local_steps": 3, "local_batch": Fixed(size=5), "step_size": 0.3}
    one, _, _ = finished(settings_with(bvr(period=4, **facts), LOCAL))
    other, _, _ = finished(settings_with(NoisyLocalStorm(beta=0.0, **facts), LOCAL))
    np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("trust", list(TrustModel))
def test_it_runs_under_every_trust(trust: TrustModel) -> None:
    w, prepared, ask = finished(settings_with(bvr(rounds=5, period=2, output="random", draw=4), trust))
    assert np.isfinite(w).all()
    assert len(ask.seen) <= 5
    assert all(step.trust is (LOCAL if step.alone else trust) for step, _ in prepared.plan.kinds)


@pytest.mark.parametrize("period", [2, 5])
def test_a_silo_pays_for_all_estimates_and_its_own_turns(period: int) -> None:
    """Ten walks of three silos: the first silo has four of them, in either way to write the plan."""
    algorithm = bvr(rounds=20, period=period, local_steps=4, local_batch=Fixed(size=6), split=0.3)
    prepared = prepare(settings_with(algorithm, CENTRAL), SIZES)
    noise: dict[str, set[float]] = {"gradient": set(), "difference": set(), "walk": set()}
    for step, _ in prepared.plan.kinds:
        (measure,) = step.measures
        noise["walk" if step.alone else measure.statistic].add(measure.estimator.noise_multiplier)  # type: ignore[union-attr]
    (gradient,), (difference,), (local,) = noise.values()
    restarts = 10 // period
    server = Compose((Repeat(Gaussian(gradient), restarts), Repeat(Gaussian(difference), 10 - restarts)))
    expected = epsilon_of(Compose((server, Repeat(Sampled(Gaussian(local), 0.1), 4 * 3))), 1e-5)
    assert epsilon_of(prepared.plan.event(SIZES, CENTRAL), 1e-5) == pytest.approx(expected, rel=1e-6)
    assert expected == pytest.approx(2.0, rel=1e-3)
    # Of what estimates may spend, in squares, gradients have 0.3.
    spent = [restarts / gradient**2, (10 - restarts) / difference**2]
    assert spent[0] / sum(spent) == pytest.approx(0.3)


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_a_whole_run_stands_and_half_the_noise_is_caught(trust: TrustModel) -> None:
    """A gradient, a walk whose second step shows a noisy difference, and a difference of the server's."""
    algorithm = bvr(rounds=3, period=2, local_steps=2, local_batch=Full(), step_size=0.1, smoothness=1e3)
    chosen = attacked_settings(algorithm, trust, Relation.REPLACE_ONE, Zero())
    canary, (there, other) = Canary(), canaries((48,), Relation.REPLACE_ONE)
    statistics = dict.fromkeys(algorithm.statistics, canary)
    stands_and_half_the_noise_is_caught(chosen, there, other, canary.score, runs=960, statistics=statistics)


def test_a_run_of_many_estimates_needs_few_kinds() -> None:
    for period in (1, 7, 30, 400):
        plan = prepare(settings_with(bvr(rounds=1001, period=period, step_size=0.1), None), SIZES).plan
        assert plan.rounds == 1001
        assert len(plan.kinds) <= 70
        often = np.zeros(3, dtype=np.int64)
        for step, count in plan.kinds:
            if isinstance(step, TurnWalk):
                often += step.turns(count, 3)
        assert sorted(often) == [166, 167, 167]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"routine": "sgd"}, "routine must be"),
        ({"routine": "bvr-lsgd", "local_steps": 1}, "local_steps must be a whole number >= 2"),
        ({"routine": "bvr-lsgd", "local_split": 1.0}, "local_split must be"),
        ({"local_steps": 6}, "local_steps must be left out for the routine 'gd', got 6"),
        ({"local_batch": Full()}, "local_batch must be left out"),
        ({"heterogeneity": 1.0}, "heterogeneity must be left out"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        NoisyDiff2(**options)


def test_walks_take_no_penalty_and_steps_of_the_server_do() -> None:
    with pytest.raises(ParameterError, match="takes no penalty"):
        prepare(settings_with(bvr(rounds=4), LOCAL, regularizer=L1(0.1)), SIZES)
    prepare(settings_with(NoisyDiff2(rounds=4), LOCAL, regularizer=L1(0.1)), SIZES)
