"""Proximal SVRG: textbook SVRG without noise, its noise and price, an attack and hostile servers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats

from tacit.errors import ParameterError, RefusalError
from tacit.federation import Disjoint, Fixed, Full, RandomSubset
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyProximalPLSVRG,
    NoisyProximalSVRG,
    Problem,
    Records,
    Settings,
    in_process,
    make_silos,
    train,
)
from tacit.learning.preparation import prepare
from tacit.numerics import L1, Array, Zero, clip_rows
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, epsilon_of
from tacit.randomness import PublicStream
from tests.statistics import FALSE_ALARM

OBJECTIVE = LinearObjective(loss=Logistic(), features=4, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
LOCAL = TrustModel.LOCAL


def silos(sizes: tuple[int, ...]) -> list[Records]:
    rng = np.random.default_rng(1)
    made = []
    for n in sizes:
        X = clip_rows(rng.standard_normal((n, 4)), 1.0)
        made.append(Records.of(X, (X @ [3.0, -2.0, 1.0, 0.0] > 0).astype(np.float64)))
    return made


def settings_with(algorithm: Any, trust: TrustModel | None = LOCAL, **changes: Any) -> Settings:
    facts: dict[str, Any] = {"budget": None if trust is None else BUDGET, "clip": 0.3, **changes}
    return Settings(objective=OBJECTIVE, algorithm=algorithm, trust=trust, **facts)


def run(data: list[Records], settings: Settings, **made: Any) -> Any:
    return train(
        in_process(
            make_silos(
                data,
                OBJECTIVE,
                trusts_server=settings.trusts_server,
                trusts_shuffler=settings.trust is TrustModel.SHUFFLE,
                seed=3,
                **made,
            ),
            seed=3,
        ),
        settings,
    )


# Without noise


@pytest.mark.parametrize("period", [1, 4, 7])
def test_with_all_records_it_is_proximal_gradient_descent(period: int) -> None:
    """Of the clipped loss: gradients and differences are clipped alike."""
    data, prox = silos((40, 60)), L1(strength=0.01)
    X, y = np.vstack([s.X for s in data]), np.concatenate([s.y for s in data])
    method = NoisyProximalSVRG(rounds=20, period=period, step_size=0.8)
    w = np.zeros(4)
    for _ in range(20):
        rows = OBJECTIVE.gradients(w, Records.of(X, y))
        w = prox(0.8, w - 0.8 * clip_rows(rows, 0.3).mean(axis=0))
    found = run(data, settings_with(method, None, regularizer=prox))
    np.testing.assert_allclose(found.w, w, atol=1e-7)
    assert np.linalg.norm(found.w) > 0.5


def test_with_samples_it_is_textbook_svrg() -> None:
    rng, asked = np.random.default_rng(4), []
    A = rng.standard_normal((30, 5))
    b = rng.standard_normal(30)
    drawn = rng.integers(30, size=(24, 6))

    def gradient(w: Array, rows: Any) -> Array:
        return np.asarray(A[rows].T @ (A[rows] @ w - b[rows]) / len(A[rows]))

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        asked.append((step, "previous" in at))
        if "previous" not in at:
            return (gradient(at["w"], slice(None)),)
        return (gradient(at["w"], drawn[step]) - gradient(at["previous"], drawn[step]),)

    problem = Problem(smoothness=20.0, radius=9.0, diameter=1.0, dim=5, variance=0.0, sizes=(30,))
    method = NoisyProximalSVRG(batch=Fixed(size=6), step_size=0.01)
    found = method.run(ask, np.zeros(5), problem=problem, rounds=20, prox=Zero(), follow=lambda _r, _w: None)
    w = np.zeros(5)
    for epoch in range(4):
        reference, full = w, gradient(w, slice(None))
        for t in range(5):
            rows = drawn[5 * epoch + t]
            v = gradient(w, rows) - gradient(reference, rows) + full
            w = w - 0.01 * v
    np.testing.assert_allclose(found, w, atol=1e-14)
    assert [step for step, _ in asked] == list(range(20))
    assert [step for step, difference in asked if not difference] == [0, 5, 10, 15]


def test_restarts_go_on_from_what_was_kept() -> None:
    points: list[Array] = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        if step == 5:
            points.append(at["w"])
        return (np.ones(1),) if "previous" not in at else (np.zeros(1),)

    problem = Problem(smoothness=1.0, radius=9.0, diameter=1.0, dim=1, variance=0.0)
    for seed in range(30):
        method = NoisyProximalPLSVRG(period=2, step_size=0.1, restarts=2, seed=seed)
        method.run(ask, np.zeros(1), problem=problem, rounds=9, prox=Zero(), follow=lambda _r, _w: None)
    reached = {round(-10 * float(w[0])) for w in points}
    assert reached == {1, 2, 3, 4, 5}  # w_1..w_5 of the first run, all of them in turn
    last = NoisyProximalPLSVRG(period=2, step_size=0.1, restarts=3, output="last")
    w = last.run(ask, np.zeros(1), problem=problem, rounds=9, prox=Zero(), follow=lambda _r, _w: None)
    assert w[0] == pytest.approx(-0.9)


# What it costs, and its noise


@pytest.mark.parametrize("split", [None, 0.3])
@pytest.mark.parametrize("rounds", [12, 14])
@pytest.mark.parametrize("make", [NoisyProximalSVRG, NoisyProximalPLSVRG])
def test_the_price_of_full_batches_is_that_of_gaussians_by_hand(
    make: Any, rounds: int, split: float | None
) -> None:
    method = make(rounds=rounds, period=3, split=split)
    prepared = prepare(settings_with(method), [100, 100])
    levels = {"gradient": 0.0, "difference": 0.0}
    for mean in prepared.means:
        levels[mean.statistic] += mean.rounds / mean.noise_multiplier**2
        assert mean.clip == (0.3 if mean.statistic == "gradient" else 0.6)
    assert sum(mean.rounds for mean in prepared.means) == rounds
    mu = math.sqrt(sum(levels.values()))
    delta = stats.norm.cdf(-2 / mu + mu / 2) - math.exp(2) * stats.norm.cdf(-2 / mu - mu / 2)
    assert delta == pytest.approx(1e-5, rel=1e-4)
    price = epsilon_of(prepared.plan.event([100], LOCAL), 1e-5)
    assert price == pytest.approx(epsilon_of(Gaussian(1 / mu), 1e-5), rel=1e-6)
    if split is not None:
        assert levels["gradient"] / mu**2 == pytest.approx(split)


def test_the_noise_of_both_means_is_what_is_claimed_and_the_epoch_shares_one() -> None:
    """Records without gradient: all that leaves is noise, at the largest radii."""
    wide = LinearObjective(loss=Logistic(), features=500, feature_norm=1.0)
    silent = [Records.of(np.zeros((50, 500)), np.zeros(50)) for _ in range(3)]
    method = NoisyProximalSVRG(rounds=40, period=4)
    prepared = prepare(replace(settings_with(method), objective=wide), [50] * 3)
    ask = in_process(make_silos(silent, wide, seed=4), seed=4).open(prepared.plan)
    asked: dict[str, list[Array]] = {"gradient": [], "difference": []}

    def widest(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        name = "difference" if "previous" in at else "gradient"
        asked[name].append(ask(step, at, (0.6 if name == "difference" else 0.3,))[0])
        return (asked[name][-1],)

    points = [np.zeros(500)]
    method.run(
        widest, points[0], problem=prepared.problem, rounds=40, prox=Zero(),
        follow=lambda _r, w: points.append(w),
    )  # fmt: skip
    multipliers = {mean.statistic: mean.noise_multiplier for mean in prepared.means}
    for name, radius in (("gradient", 0.3), ("difference", 0.6)):
        found = np.concatenate(asked[name])
        variance = (multipliers[name] * 2 * radius / 50) ** 2 / 3
        low, high = stats.chi2.interval(1 - FALSE_ALARM, found.size)
        assert low <= np.square(found).sum() / variance <= high
        assert high / low < 2
    steps = np.diff(points, axis=0) / -method._step(prepared.problem)
    for k in range(40):
        full = asked["gradient"][k // 4]
        change = 0 if k % 4 == 0 else asked["difference"][k - k // 4 - 1]
        np.testing.assert_allclose(steps[k], full + change, rtol=1e-6, atol=1e-8)


def test_the_split_has_the_least_sum_of_variances() -> None:
    def added(split: float | None) -> float:
        method = NoisyProximalSVRG(rounds=12, period=4, split=split)
        means = prepare(settings_with(method), [100, 100]).means
        return sum((mean.noise_multiplier * mean.clip) ** 2 for mean in means)

    best = added(None)
    assert all(added(split) >= best * (1 - 1e-6) for split in (0.1, 0.2, 0.224, 0.3, 0.5, 0.8))


# A hostile server


def test_a_hostile_server_gains_nothing_by_other_rounds_points_or_radii() -> None:
    prepared = prepare(settings_with(NoisyProximalSVRG(rounds=8, period=4)), [100])
    ask = in_process(make_silos(silos((100,)), OBJECTIVE, seed=5), seed=5).open(prepared.plan)
    price = [g.epsilon for g in ask.guarantees]
    w, far = np.zeros(4), np.full(4, 1e30)
    (early,) = ask(1, {"w": far, "previous": -far}, (0.6,))  # no gradient was asked, the points are unrelated
    assert np.linalg.norm(early) < 0.6 + 40 * 0.6 * prepared.means[1].noise_multiplier / 100
    with pytest.raises(RefusalError, match="another point"):
        ask(1, {"w": w, "previous": w}, (0.0,))
    with pytest.raises(RefusalError, match=r"radius must be a number in \[0, 0.6\]"):
        ask(2, {"w": w, "previous": w}, (0.7,))
    with pytest.raises(RefusalError, match="cannot be evaluated"):
        ask(2, {"w": w}, (0.6,))
    assert ask(3, {"w": w, "previous": w + 1}, (0.0,))[0].tolist() == [0.0] * 4
    with pytest.raises(RefusalError, match=r"radius must be a number in \[0, 0.3\]"):
        ask(4, {"w": w}, (0.6,))
    assert [g.epsilon for g in ask.guarantees] == price == [pytest.approx(2.0, abs=1e-5)]


# Silos that are drawn


@dataclass
class Noted:
    """A participation that notes whom it drew in which round."""

    inner: RandomSubset
    drawn: dict[int, list[int]] = field(default_factory=dict)
    uniform: ClassVar[bool] = True

    def fewest(self, parties: int) -> int:
        return self.inner.fewest(parties)

    def silos(self, round: int, parties: int, stream: PublicStream) -> Any:
        found = self.inner.silos(round, parties, stream)
        self.drawn[round] = found.tolist()
        return found


@pytest.mark.parametrize(
    ("method", "epochs"),
    [
        (NoisyProximalSVRG(rounds=10, period=4, step_size=0.8), [4, 4, 2]),
        (
            NoisyProximalPLSVRG(rounds=11, period=4, step_size=0.8, restarts=2, output="last"),
            [4, 2, 4, 1],
        ),
    ],
)
def test_the_silos_of_an_epoch_are_those_that_its_gradient_is_of(method: Any, epochs: list[int]) -> None:
    """Then steps go along the exact gradient of these silos, at every point of the epoch."""
    data, chosen = silos((40, 60, 50, 30)), Noted(RandomSubset(2))
    found = run(data, settings_with(method, None, participation=chosen))
    starts = [sum(epochs[:k]) for k in range(len(epochs))]
    assert sorted(chosen.drawn) == starts
    assert len({tuple(drawn) for drawn in chosen.drawn.values()}) > 1
    w, total = np.zeros(4), sum(len(one) for one in data)
    for start, length in zip(starts, epochs, strict=True):
        for _ in range(length):
            # By records, and as many silos as there are over as many as were drawn.
            sums = [clip_rows(OBJECTIVE.gradients(w, data[k]), 0.3).sum(axis=0) for k in chosen.drawn[start]]
            w = w - 0.8 * (4 / 2) * np.sum(sums, axis=0) / total
    np.testing.assert_allclose(found.w, w, atol=1e-9)


# How it is used


@pytest.mark.parametrize("trust", [None, LOCAL, TrustModel.CENTRAL, TrustModel.SHUFFLE])
@pytest.mark.parametrize("make", [NoisyProximalSVRG, NoisyProximalPLSVRG])
@pytest.mark.parametrize("batch", [Full(), Fixed(size=100)])
def test_it_trains(make: Any, trust: TrustModel | None, batch: Any) -> None:
    data = silos((1000, 1000))
    found = run(data, settings_with(make(rounds=24, batch=batch), trust, regularizer=L1(strength=1e-3)))
    assert np.mean([(one.X @ found.w > 0) == one.y for one in data]) > 0.85
    assert found.rounds == 24


def test_it_chooses_its_rounds() -> None:
    few = prepare(settings_with(NoisyProximalSVRG()), [300, 300]).rounds
    assert few in (10, 20, 40, 80, 160, 320)


def test_its_defaults_are_those_of_the_theory() -> None:
    problem = Problem(smoothness=2.0, radius=1.0, diameter=1.0, dim=3, variance=0.0, sizes=(1000,), asked=4)
    method = NoisyProximalSVRG(batch=Fixed(size=50))
    assert method._period(problem) == 20
    assert method._step(problem) == pytest.approx(min(1, 50**1.5 * 2 / 1000) / 16)
    assert NoisyProximalSVRG()._step(problem) == 1 / 16


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"period": 0}, "period must be a whole number >= 1"),
        ({"split": 1.0}, "split must be"),
        ({"batch": Disjoint(size=3)}, "batch must be a Full or Fixed or Poisson"),
        ({"output": "best"}, "output must be one of last, random"),
        ({"step_size": 0.0}, "step_size must be a finite number > 0"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        NoisyProximalSVRG(**options)


def test_bad_problems_are_refused() -> None:
    problem = Problem(smoothness=2.0, radius=1.0, diameter=1.0, dim=3, variance=0.0, sizes=(1000,))
    NoisyProximalSVRG(step_size=0.1).check(problem, 5)
    with pytest.raises(ParameterError, match=r"step_size must be at most 1 / \(5 beta\) = 0.1, got 0.11"):
        NoisyProximalSVRG(step_size=0.11).check(problem, 5)
    with pytest.raises(ParameterError, match="smoothness is unknown"):
        NoisyProximalSVRG().check(replace(problem, smoothness=math.inf), 5)
    with pytest.raises(ParameterError, match="mu must be at most the smoothness"):
        NoisyProximalSVRG(mu=3.0).check(problem, 5)
    with pytest.raises(ParameterError, match="rounds must be a whole number >= 3, got 2"):
        NoisyProximalPLSVRG(restarts=3).check(problem, 2)
    with pytest.raises(ParameterError, match="restarts must be a whole number >= 1"):
        NoisyProximalPLSVRG(restarts=0)
    with pytest.raises(ParameterError, match="size must be at most the 100 units"):
        prepare(settings_with(NoisyProximalSVRG(rounds=4, batch=Fixed(size=101))), [100])
