"""CE-PSGM: walks of one silo at a time, in rounds of every trust model, and what they cost."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation import Fixed, Full, Group, Query, TurnWalk
from tacit.learning import (
    LinearObjective,
    NoisyDiff2,
    NoisyLocalStorm,
    NoisyStorm,
    Records,
    Settings,
    Squared,
    in_process,
    make_silos,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.training import sums_of
from tacit.ledger import Ledger
from tacit.numerics import L1, Array, Zero
from tacit.privacy import (
    Compose,
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    Sampled,
    TrustModel,
    epsilon_of,
)
from tests.learning.algorithms.test_attacks import settings_with as attacked_settings
from tests.learning.algorithms.test_spider import OBJECTIVE, SIZES, D, data, settings_with
from tests.learning.attacks import Canary, Overheard, canaries, stands_and_half_the_noise_is_caught

LOCAL, CENTRAL, SHUFFLE = TrustModel.LOCAL, TrustModel.CENTRAL, TrustModel.SHUFFLE


def started(settings: Settings, seed: int = 3, silos: Any = None) -> tuple[Prepared, Overheard]:
    made = make_silos(
        data() if silos is None else silos,
        settings.objective,
        trusts_server=settings.trusts_server,
        trusts_shuffler=settings.trusts_shuffler,
        sums=sums_of(settings),
        seed=seed,
    )
    prepared = prepare(settings, SIZES)
    return prepared, Overheard(in_process(made, seed=seed).open(prepared.plan))


def finished(settings: Settings, seed: int = 3, silos: Any = None) -> tuple[Array, Prepared, Overheard]:
    prepared, ask = started(settings, seed, silos)
    start = np.zeros(settings.objective.size)
    w = settings.algorithm.run(
        ask, start, problem=prepared.problem, rounds=prepared.rounds, prox=Zero(), follow=lambda _r, _w: None
    )
    return w, prepared, ask


# What it computes


def test_without_noise_it_is_ce_lsgd() -> None:
    """SARAH steps on the records of the silo whose turn it is, from the gradient of all."""
    H, eta, rounds = 3, 1.2, 8
    algorithm = NoisyLocalStorm(rounds=rounds, local_steps=H, local_batch=Full(), step_size=eta, beta=0.3)
    w, _, ask = finished(settings_with(algorithm, None))
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
    np.testing.assert_allclose(w, x, rtol=1e-5, atol=1e-6)  # walks are sent as float32
    asked = [one.at["w"].tobytes() for one in ask.seen]
    assert asked[::2] == asked[1::2]


def test_equal_silos_walk_along_the_gradient_itself() -> None:
    """tau = 0: u_k is grad F(w_k) on a quadratic whose silos are equal."""
    one = data()[0]
    algorithm = NoisyLocalStorm(rounds=6, local_steps=4, local_batch=Full(), step_size=0.5, beta=0.1)
    goal = LinearObjective(loss=Squared(), features=D, feature_norm=1.0)
    w, _, _ = finished(Settings(objective=goal, algorithm=algorithm, clip=100.0), silos=[one] * 3)
    x = np.zeros(D)
    for _ in range(12):
        x = x - 0.5 * goal.gradients(x, one).mean(axis=0)
    np.testing.assert_allclose(w, x, rtol=1e-5, atol=1e-6)


def test_a_random_output_is_any_point_before_a_step() -> None:
    H, rounds = 3, 6
    whole = NoisyLocalStorm(rounds=rounds, local_steps=H, local_batch=Full(), step_size=1.2, beta=0.3)
    points = []
    for steps in range(rounds // 2 * H):
        prepared, ask = started(settings_with(whole, None))
        points.append(
            whole._walks.along(
                ask, np.zeros(D), problem=prepared.problem, rounds=rounds, weights=(1.0, 0.3, 0.3),
                step_size=1.2, smoothness=0.25, follow=lambda _r, _w: None, kept=steps,
            )
        )  # fmt: skip
    assert not points[0].any()  # w_(1, 1) is the start
    for draw in range(6):
        random = msgspec.structs.replace(whole, output="random", draw=draw)
        w, _, ask = finished(settings_with(random, None))
        near = [float(np.abs(w - point).max()) for point in points]
        assert min(near) < 1e-7
        assert len(ask.seen) == 2 * -(-int(np.argmin(near)) // H)  # and no more is asked


@pytest.mark.parametrize("trust", list(TrustModel))
def test_it_runs_under_every_trust(trust: TrustModel) -> None:
    algorithm = NoisyLocalStorm(rounds=5, beta=0.4)
    w, prepared, ask = finished(settings_with(algorithm, trust))
    assert np.isfinite(w).all()
    asked = [sorted(one.at) for one in ask.seen]
    assert asked[1::2] == [["clip", "smoothness", "step_size", "taken", "v", "w"]] * 2
    answered = ask.ask.traffic.answered  # type: ignore[attr-defined]
    assert answered.tolist() == [4, 4, 3]  # three estimates of all, then walks of silos 0 and 1
    assert all(step.trust is (LOCAL if step.alone else trust) for step, _ in prepared.plan.kinds)


# What it costs


def test_a_silo_pays_for_all_estimates_and_its_own_turns() -> None:
    """Seven walks of three silos: the first silo has three of them."""
    algorithm = NoisyLocalStorm(rounds=14, local_steps=4, local_batch=Fixed(size=6), beta=0.4, split=0.3)
    prepared = prepare(settings_with(algorithm, CENTRAL), SIZES)
    (first, one), (walk, once), (group, often) = prepared.plan.steps
    assert isinstance(group, Group)
    assert (one, once, often) == (1, 1, 6)
    server, local = (Gaussian(one.measures[0].estimator.noise_multiplier) for one in (first, walk))  # type: ignore[union-attr]
    expected = epsilon_of(Compose((Repeat(server, 7), Repeat(Sampled(local, 0.1), 3 * 3))), 1e-5)
    assert epsilon_of(prepared.plan.event(SIZES, CENTRAL), 1e-5) == pytest.approx(expected, rel=1e-6)
    assert expected == pytest.approx(2.0, rel=1e-3)
    # In squares, and of samples by the squares of their rates, walks have as much as estimates.
    assert 9 * (0.1 / local.noise_multiplier) ** 2 == pytest.approx(7 / server.noise_multiplier**2)


def test_turns_are_counted_and_kept() -> None:
    walk = prepare(settings_with(NoisyLocalStorm(rounds=4), LOCAL), SIZES).plan.kinds[1][0]
    assert isinstance(walk, TurnWalk)
    for offset in (0, 1, 7):
        for rounds in (1, 2, 5, 9):
            shifted = msgspec.structs.replace(walk, offset=offset)
            for stride in (1, 2, 3, 4, 9):
                wider = msgspec.structs.replace(shifted, stride=stride)
                turns = np.bincount([wider.turn(r, 4) for r in range(rounds)], minlength=4)
                np.testing.assert_array_equal(wider.turns(rounds, 4), turns)


def test_a_silo_walks_in_its_own_turns_only() -> None:
    settings = settings_with(NoisyLocalStorm(rounds=4, step_size=0.1), LOCAL)
    prepared = prepare(settings, SIZES)
    silos = make_silos(data(), OBJECTIVE, seed=1)
    numbers = {"step_size": 0.1, "smoothness": 1.0, "clip": 1.0, "taken": 5.0}
    at = {"w": np.zeros(D), "v": np.ones(D), **{name: np.asarray(value) for name, value in numbers.items()}}
    for k, silo in enumerate(silos):
        silo.accept(prepared.plan, party=k)
    silos[0].answer(Query(1, at, (2.0,)))
    with pytest.raises(RefusalError, match="its own turns"):
        silos[1].answer(Query(1, at, (2.0,)))
    for name, value in (("taken", 6.0), ("taken", 0.5), ("taken", -1.0)):
        with pytest.raises(RefusalError, match="taken must be a whole number from 0 to 5"):
            silos[1].answer(Query(3, {**at, name: np.asarray(value)}, (2.0,)))
    with pytest.raises(RefusalError, match="radius"):
        silos[1].answer(Query(3, at, (2.1,)))


def test_a_silo_with_a_ledger_has_the_turns_of_one_party(tmp_path: Path) -> None:
    settings = settings_with(NoisyLocalStorm(rounds=12, step_size=0.1), LOCAL, noise="discrete-gaussian")
    plan = prepare(settings, SIZES).plan
    numbers = {"step_size": 0.1, "smoothness": 1.0, "clip": 1.0, "taken": 5.0}
    at = {"w": np.zeros(D), "v": np.ones(D), **{name: np.asarray(value) for name, value in numbers.items()}}
    limit = PrivacyBudget(4.0, 1e-4)
    with Ledger.create(tmp_path / "a.ledger", limit=limit, neighbours=Neighbours()) as ledger:
        (silo,) = make_silos(data()[:1], OBJECTIVE, ledgers=[ledger])
        silo.accept(plan, party=0)
        first = silo.answer(Query(1, at, (2.0,)))
        silo.accept(plan, party=1)  # the same run, reserved once
        with pytest.raises(RefusalError, match="as another party"):
            silo.answer(Query(3, at, (2.0,)))
        silo.accept(plan, party=0)
        assert silo.answer(Query(1, at, (2.0,))) == first
        silo.answer(Query(7, at, (2.0,)))


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL, SHUFFLE])
def test_a_whole_run_stands_and_half_the_noise_is_caught(trust: TrustModel) -> None:
    """Two rounds of which the first silo walks one: of its two steps, the second shows a noisy difference."""
    algorithm = NoisyLocalStorm(
        rounds=3, beta=0.4, local_steps=2, local_batch=Full(), step_size=0.1, smoothness=1e3
    )
    chosen = attacked_settings(algorithm, trust, Relation.REPLACE_ONE, Zero())
    sizes = (48,) if trust in (LOCAL, CENTRAL) else (48, 2, 2)
    canary, (there, other) = Canary(), canaries(sizes, Relation.REPLACE_ONE)
    statistics = dict.fromkeys(algorithm.statistics, canary)
    runs = 2000 if trust is SHUFFLE else 960
    stands_and_half_the_noise_is_caught(chosen, there, other, canary.score, runs=runs, statistics=statistics)


def test_steps_are_no_longer_than_their_batches_allow() -> None:
    """PSGM (2024), Theorem 4.2: of eta <= c min(1/L, 1/(K tau), sqrt(b)/(sqrt(K) L), ...) with c = 1/2."""
    sizes, tau = (1000,) * 3, 1e-3
    for batch, longest in ((Fixed(size=2), math.sqrt(2 / 8)), (Fixed(size=50), 1.0), (Full(), 1.0)):
        walks = NoisyLocalStorm(local_steps=8, local_batch=batch, heterogeneity=tau)._walks
        problem = prepare(settings_with(NoisyLocalStorm(rounds=4), None), sizes).problem
        assert walks.longest_step(problem, 1.0) == pytest.approx(longest / (2 * problem.smoothness))


def test_shares_count_samples_of_the_server_and_points_count_its_last_step() -> None:
    """A sample of a tenth hides ten times as much: its mean may spend a hundred times as much, in squares."""
    problem = prepare(settings_with(NoisyLocalStorm(rounds=4), None), (1000,) * 3).problem
    ratios = []
    for batch in (Full(), Fixed(rate=0.1)):
        server, local = NoisyLocalStorm(batch=batch)._shares(problem, 20)
        assert max(server, local) == 1.0
        ratios.append(server / local)
    assert ratios[1] == pytest.approx(100 * ratios[0])
    assert ratios[0] == pytest.approx(4 * 4 / 10 / 100)  # 4 turns of 4 differences of a tenth, 10 estimates
    server, local = NoisyLocalStorm(local_split=0.2)._shares(problem, 20)
    assert server / local == pytest.approx(4 * ratios[0])  # .8 to .2, in place of one half each
    assert [NoisyLocalStorm(local_steps=7)._walks.points(rounds) for rounds in (1, 4, 5)] == [1, 14, 15]


def test_steps_are_no_longer_than_silos_noise_and_estimates_allow() -> None:
    """And 1/(K tau), tau = 2 L where nothing is known; 1/(sqrt(K d) L sigma); a K-th of the server's."""
    H, L, near = 8, OBJECTIVE.smoothness, 1e-6
    bare = prepare(settings_with(NoisyLocalStorm(rounds=4), None), SIZES).problem
    walks = NoisyLocalStorm(local_steps=H, local_batch=Full())._walks
    assert walks.longest_step(bare, 1.0) == pytest.approx(1 / (2 * H * 2 * L))
    for relation, moved in ((Relation.REPLACE_ONE, 2), (Relation.ZERO_OUT, 1)):
        some = NoisyLocalStorm(rounds=4, beta=0.4, local_batch=Full())
        problem = prepare(settings_with(some, LOCAL, relation=relation, noise="gaussian"), SIZES).problem
        walks = NoisyLocalStorm(local_steps=H, local_batch=Full(), heterogeneity=near)._walks
        (mean,) = walks.kind(problem, 0.01, 0).measures
        sigma = moved * mean.estimator.noise_multiplier / min(SIZES)  # type: ignore[union-attr]
        assert walks.longest_step(problem, 0.01) == pytest.approx(1 / (2 * math.sqrt(H * D) * L * sigma))
        rare = NoisyLocalStorm(
            beta=1e-4, local_steps=H, local_batch=Full(), heterogeneity=near, local_split=0.99
        )
        change = problem.errors["difference"] * (L / (2 * problem.radius)) ** 2
        server = math.sqrt(1e-4 * (2 - 1e-4) / (2 * (1 - 1e-4) ** 2 * change))
        assert rare._step(problem, 4) == pytest.approx(server / H)


def test_local_differences_are_clipped_by_a_smoothness_of_their_own_or_that_of_the_server() -> None:
    problem = prepare(settings_with(NoisyLocalStorm(rounds=4), None), SIZES).problem
    cases: tuple[tuple[dict[str, Any], float], ...] = (
        ({}, OBJECTIVE.smoothness),
        ({"smoothness": 0.3}, 0.3),
        ({"smoothness": 0.3, "local_smoothness": 0.5}, 0.5),
    )
    for facts, known in cases:
        for algorithm in (NoisyLocalStorm(**facts), NoisyDiff2(routine="bvr-lsgd", **facts)):
            assert algorithm._walks.known_smoothness(problem) == known


def test_bounds_are_those_of_the_estimates_alone() -> None:
    facts: dict[str, Any] = {"beta": 0.4, "step_size": 0.1}
    problem = prepare(settings_with(NoisyLocalStorm(rounds=9, **facts), LOCAL), SIZES).problem
    alone = NoisyStorm(**facts).error_bound(problem, 5)
    assert NoisyLocalStorm(**facts).error_bound(problem, 9) == pytest.approx(alone)
    facts = {"period": 2, "step_size": 0.1}
    walked = NoisyDiff2(routine="bvr-lsgd", **facts).error_bound(problem, 9)
    assert walked == pytest.approx(NoisyDiff2(**facts).error_bound(problem, 5))


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"local_steps": 1}, "local_steps must be a whole number >= 2"),
        ({"local_smoothness": 0.0}, "local_smoothness must be"),
        ({"local_split": 0.0}, "local_split must be"),
        ({"heterogeneity": -1.0}, "heterogeneity must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        NoisyLocalStorm(**options)


def test_penalties_and_local_batches_beyond_a_silo_are_refused() -> None:
    with pytest.raises(ParameterError, match="takes no penalty"):
        prepare(settings_with(NoisyLocalStorm(rounds=4), LOCAL, regularizer=L1(0.1)), SIZES)
    with pytest.raises(ParameterError, match="size must be at most the 60 units"):
        prepare(settings_with(NoisyLocalStorm(rounds=4, local_batch=Fixed(size=61)), LOCAL), SIZES)


def test_more_walks_cost_more_and_larger_silos_less() -> None:
    def price(rounds: int, sizes: tuple[int, ...]) -> float:
        prepared = prepare(settings_with(NoisyLocalStorm(rounds=rounds, beta=0.4), LOCAL), sizes)
        return prepared.noise_multiplier

    assert price(4, SIZES) < price(10, SIZES) < price(30, SIZES)
    assert math.isfinite(price(4, (1000,) * 3))
