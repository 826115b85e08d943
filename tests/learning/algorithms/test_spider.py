"""SPIDER and Fed-SPIDER: the textbook loop, what rows move sums by, what a run costs, and what is refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Batch, Fixed, Full, Poisson
from tacit.learning import (
    Algorithm,
    LinearObjective,
    Logistic,
    Multinomial,
    NoisyFedSpider,
    NoisyMinibatchSGD,
    NoisySpider,
    RecordDifference,
    Records,
    Settings,
    difference_radius,
    in_process,
    make_algorithm,
    make_silos,
    train,
)
from tacit.learning.algorithms.spider import (
    picked,
    spider,
    stationarity_bound,
)
from tacit.learning.preparation import prepare
from tacit.numerics import L1, Array, L2Ball, Regularizer, Zero, clip_rows
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, calibrate
from tacit.privacy import guarantee as guarantee_of

D = 4
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
SIZES = (60, 60, 60)
BUDGET = PrivacyBudget(2.0, 1e-5)
LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL


def data() -> list[Records]:
    rng = np.random.default_rng(1)
    silos = []
    for n in SIZES:
        X = clip_rows(rng.standard_normal((n, D)), 1.0)
        silos.append(Records.of(X, (X @ [3.0, -2.0, 1.0, 0.0] > 0).astype(np.float64)))
    return silos


def settings_with(algorithm: Algorithm, trust: TrustModel | None = LOCAL, **changes: Any) -> Settings:
    facts: dict[str, Any] = {"budget": None if trust is None else BUDGET, "clip": 1.0, **changes}
    return Settings(objective=OBJECTIVE, algorithm=algorithm, trust=trust, **facts)


def run(settings: Settings, seed: int = 3) -> Any:
    silos = make_silos(
        data(),
        OBJECTIVE,
        trusts_server=settings.trusts_server,
        trusts_shuffler=settings.trust is TrustModel.SHUFFLE,
        seed=seed,
    )
    return train(in_process(silos, seed=seed), settings)


def descent(rounds: int, eta: float, prox: Regularizer) -> list[Array]:
    """Proximal gradient descent on the pooled records."""
    silos = data()
    records = Records.of(np.vstack([s.X for s in silos]), np.concatenate([s.y for s in silos]))
    points = [np.zeros(D)]
    for _ in range(rounds):
        w = points[-1]
        points.append(prox(eta, w - eta * OBJECTIVE.gradients(w, records).mean(axis=0)))
    return points


# What it computes


@pytest.mark.parametrize("prox", [Zero(), L1(0.01), L2Ball(0.5)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("period", [1, 2, 3, 7, 20])
def test_without_noise_and_samples_differences_telescope(period: int, prox: Regularizer) -> None:
    algorithm = NoisySpider(rounds=11, period=period, step_size=1.5)
    found = run(settings_with(algorithm, None, regularizer=prox))
    np.testing.assert_allclose(found.w, descent(11, 1.5, prox)[-1], atol=1e-13)


@pytest.mark.parametrize("rounds", [3, 8, 9])
def test_fed_spider_without_noise_is_gradient_descent(rounds: int) -> None:
    found = run(settings_with(NoisyFedSpider(rounds=rounds, step_size=1.5), None))
    np.testing.assert_allclose(found.w, descent(rounds, 1.5, Zero())[-1], atol=1e-13)


def test_of_period_one_it_is_proximal_sgd_with_the_same_noise() -> None:
    """The same rounds, so a seed draws the same noise: point by point the same run."""
    spiders = run(settings_with(NoisySpider(rounds=6, period=1, step_size=0.3), regularizer=L1(0.01)))
    prepared = prepare(settings_with(NoisyMinibatchSGD(rounds=6)), SIZES)
    ask = in_process(make_silos(data(), OBJECTIVE, seed=3), seed=3).open(prepared.plan)
    w = np.zeros(D)
    for r in range(6):
        (gradient,) = ask(r, {"w": w}, (1.0,))
        w = L1(0.01)(0.3, w - 0.3 * gradient)
    np.testing.assert_array_equal(spiders.w, w)


def test_a_random_output_is_a_point_on_the_way() -> None:
    points = descent(9, 1.5, Zero())
    numbers = set()
    for seed in range(40):
        number = picked("random", 9, draw=seed)
        assert number is not None
        numbers.add(number)
        algorithm = NoisySpider(rounds=9, period=4, step_size=1.5, output="random", draw=seed)
        np.testing.assert_allclose(run(settings_with(algorithm, None)).w, points[number], atol=1e-13)
    assert numbers == set(range(9))  # the start is one of them; the seeds are fixed
    assert picked("last", 9, draw=0) is None


def test_at_one_point_nothing_is_asked_of_a_radius_above_zero() -> None:
    radii = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        radii.append(radius[0])
        return (np.zeros(2),)

    spider(
        ask, np.ones(2), rounds=4, period=3, step_size=0.5, lipschitz=2.0, smoothness=math.inf, prox=Zero(),
        follow=lambda _r, _w: None,
    )  # fmt: skip
    assert radii == [2.0, 0.0, 0.0, 2.0]


def test_a_difference_at_one_point_has_no_noise() -> None:
    prepared = prepare(settings_with(NoisySpider(rounds=4, period=4)), SIZES)
    ask = in_process(make_silos(data(), OBJECTIVE, seed=3), seed=3).open(prepared.plan)
    w = np.ones(D)
    ask(0, {"w": w}, (1.0,))
    (change,) = ask(1, {"w": w, "previous": w}, (0.0,))
    assert not change.any()


# What a record moves


def test_fused_sums_of_differences_are_sums_of_clipped_rows() -> None:
    rng = np.random.default_rng(5)
    many = LinearObjective(loss=Multinomial(), features=D, outputs=3, feature_norm=1.0)
    for objective in (OBJECTIVE, many):
        statistic = RecordDifference(objective)
        X, y = clip_rows(rng.normal(size=(50, D)), 1.0), rng.integers(2, size=50).astype(float)
        at = {"w": rng.normal(size=objective.size), "previous": rng.normal(size=objective.size)}
        for radius in (0.05, 0.2, 9.0):
            rows = statistic(Records.of(X, y), at)
            found = statistic.clipped_sum(Records.of(X, y), at, radius, np.float64)
            np.testing.assert_allclose(found, clip_rows(rows, radius).sum(axis=0), atol=1e-12)


def test_no_record_moves_a_sum_further_than_is_priced() -> None:
    """Thousands of pairs, at close points, far ones and unrelated ones that a hostile server makes up."""
    rng = np.random.default_rng(6)
    statistic, worst = RecordDifference(OBJECTIVE), 0.0
    for k in range(3000):
        w = rng.normal(size=D) * 10.0 ** rng.uniform(-3, 3)
        previous = w + rng.normal(size=D) * 10.0 ** rng.uniform(-3, 3)
        X, y = clip_rows(rng.normal(size=(2, D)) * 3, 1.0), np.array([0.0, 1.0])
        if k % 2:
            X[1] = -X[0]
        guess = 0.25 * 10.0 ** rng.uniform(-3, 0)
        radius = difference_radius(w, previous, lipschitz=1.0, smoothness=guess)
        at = {"w": w, "previous": previous}
        sums = [
            statistic.clipped_sum(Records.of(X[i : i + 1], y[i : i + 1]), at, radius, np.float64)
            for i in range(2)
        ]
        moved = float(np.linalg.norm(sums[0] - sums[1]))
        assert moved <= 2 * radius * (1 + 1e-12)
        worst = max(worst, moved / (2 * radius))
        # With the true smoothness nothing is clipped: no difference is longer than the bound.
        rows = statistic(Records.of(X, y), at)
        honest = difference_radius(w, previous, lipschitz=1.0, smoothness=OBJECTIVE.smoothness)
        assert np.linalg.norm(rows, axis=1).max() <= honest * (1 + 1e-9) + 1e-15
    assert worst > 0.99  # the bound is met


# What it costs


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize("split", [None, 0.3, 0.5])
@pytest.mark.parametrize("period", [1, 2, 5])
def test_the_price_is_the_sum_of_squares_by_hand(period: int, split: float | None, trust: TrustModel) -> None:
    rounds = 26
    algorithm = NoisySpider(rounds=rounds, period=period, split=split)
    prepared = prepare(settings_with(algorithm, trust, noise="gaussian"), SIZES)
    gradients = (rounds - 1) // period + 1
    counts: dict[str, int] = {}
    squares = {"gradient": 0.0, "difference": 0.0}
    for mean in prepared.means:
        counts[mean.statistic] = counts.get(mean.statistic, 0) + mean.rounds
        squares[mean.statistic] += mean.rounds / mean.noise_multiplier**2
    assert counts.get("gradient") == gradients
    assert counts.get("difference", 0) == rounds - gradients
    whole = calibrate(Gaussian, BUDGET)
    assert sum(squares.values()) == pytest.approx(1 / whole**2, rel=1e-6)
    if split is not None and period > 1:
        assert squares["gradient"] * whole**2 == pytest.approx(split, rel=1e-6)
    if split is None and period > 1:
        assert len({mean.noise_multiplier for mean in prepared.means}) == 1


@pytest.mark.parametrize("batch", [Full(), Fixed(rate=0.25), Poisson(rate=0.25)], ids=repr)
@pytest.mark.parametrize("kind", [NoisySpider, NoisyFedSpider])
def test_every_batch_meets_the_budget(kind: Any, batch: Batch) -> None:
    found = run(settings_with(kind(rounds=5, batch=batch), noise="gaussian"))
    assert found.guarantee.epsilon <= BUDGET.epsilon
    assert found.guarantee.epsilon == pytest.approx(BUDGET.epsilon, rel=1e-4)
    again = guarantee_of(found.guarantee.event, BUDGET.delta, observer="again")
    assert again.epsilon == pytest.approx(found.guarantee.epsilon, rel=1e-9)


def test_noise_is_a_multiple_of_what_a_query_names() -> None:
    """Units without gradient: all that leaves is noise, and its law follows the radius of the query."""
    wide = LinearObjective(loss=Logistic(), features=400, feature_norm=1.0)
    silent = [Records.of(np.zeros((50, 400)), np.zeros(50))]
    algorithm = NoisySpider(rounds=40, period=40, split=0.5)
    settings = Settings(objective=wide, algorithm=algorithm, trust=LOCAL, budget=BUDGET, clip=1.0)
    prepared = prepare(settings, [50])
    ask = in_process(make_silos(silent, wide, seed=4), seed=4).open(prepared.plan)
    zero = np.zeros(400)
    ask(0, {"w": zero}, (1.0,))
    multiplier = next(m.noise_multiplier for m in prepared.means if m.statistic == "difference")
    found = []
    for r, radius in enumerate(np.geomspace(1e-3, 2.0, 39), start=1):
        (answer,) = ask(r, {"w": zero, "previous": zero}, (float(radius),))
        found.append(answer / (multiplier * 2 * radius / 50))
    squares, size = float(np.square(found).sum()), 39 * 400
    assert abs(squares / size - 1) < math.sqrt(2 / size) * 6  # six standard deviations: below 1e-6
    for one in found:
        assert abs(float(np.mean(np.square(one))) - 1) < math.sqrt(2 / 400) * 6


@pytest.mark.parametrize("kind", [NoisySpider, NoisyFedSpider])
def test_shuffled_rounds_meet_the_budget_and_say_what_a_message_shows_before(kind: Any) -> None:
    found = run(settings_with(kind(rounds=4), TrustModel.SHUFFLE))
    assert found.guarantee.epsilon <= BUDGET.epsilon
    assert found.guarantee.epsilon > 0.95 * BUDGET.epsilon
    assert all(g.epsilon > BUDGET.epsilon for g in found.guarantees_alone)


# Theory


def test_the_bound_of_one_period_is_that_of_noisy_gradient_descent() -> None:
    found = stationarity_bound(
        step_size=0.5, rounds=10, period=1, gap=2.0, variance=0.3, change_variance=99.0
    )
    assert found == pytest.approx(0.6 + 8 * (2.0 / 5 + 0.15))
    assert (
        stationarity_bound(step_size=1.0, rounds=10, period=3, gap=2.0, variance=0.3, change_variance=0.25)
        == math.inf
    )


def test_gradients_are_as_stationary_as_the_bound_says() -> None:
    """A non-convex scalar function with noise of known size, over many runs."""
    rng = np.random.default_rng(8)
    beta, eta, rounds, period, runs = 1.0, 0.5, 40, 5, 400
    tau1, tau2 = 0.2, 0.3
    squares = []

    def slope(w: Array) -> Array:  # of 1 - cos: 1-smooth, gap at most 2
        return np.sin(w)

    for _ in range(runs):
        visited: list[float] = []

        def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
            visited.append(float(slope(at["w"])[0]) ** 2)  # noqa: B023
            if step % period == 0:
                return (slope(at["w"]) + tau1 * rng.standard_normal(1),)
            noise = tau2 * radius[0] / beta * rng.standard_normal(1)
            return (slope(at["w"]) - slope(at["previous"]) + noise,)

        spider(
            ask, np.array([2.5]), rounds=rounds, period=period, step_size=eta, lipschitz=9.0, smoothness=beta,
            prox=Zero(), follow=lambda _r, _w: None,
        )  # fmt: skip
        squares.append(np.mean(visited))
    bound = stationarity_bound(
        step_size=eta, rounds=rounds, period=period, gap=1 - math.cos(2.5), variance=tau1**2,
        change_variance=tau2**2,
    )  # fmt: skip
    assert np.mean(squares) < bound


def test_bounds_and_periods_by_hand() -> None:
    z, n, R = calibrate(Gaussian, BUDGET), 3000, 1000
    for trust, rows in ((CENTRAL, 3 * n), (LOCAL, n * math.sqrt(3))):
        problem = prepare(
            settings_with(NoisySpider(rounds=10, period=5), trust, noise="gaussian"), [n] * 3
        ).problem
        period = NoisySpider()._period(problem, R)
        assert 1 < period < R
        assert period == math.floor(1 / (8 * D * (z / rows) ** 2 * R))
        beta, changed, far = problem.smoothness, problem.errors["difference"], problem.diameter
        bound = stationarity_bound(
            step_size=1 / (2 * beta), rounds=R, period=7, gap=min(beta * far**2 / 2, far),
            variance=problem.variance, change_variance=changed * (beta / 2) ** 2,
        )  # fmt: skip
        assert NoisySpider(period=7).error_bound(problem, R) == pytest.approx(bound)
        fed = stationarity_bound(
            step_size=0.7, rounds=R, period=1, gap=min(far**2 / 2.8, far), change_variance=0.0,
            variance=problem.variance + changed / 2,
        )  # fmt: skip
        assert NoisyFedSpider(step_size=0.7).error_bound(problem, R) == pytest.approx(fed)


def test_rounds_and_periods_follow_from_public_facts() -> None:
    found = prepare(settings_with(NoisySpider(), clip=None), [3000, 3000])
    assert found.rounds in (10, 20, 40, 80, 160, 320)
    rich = prepare(settings_with(NoisySpider(rounds=10), clip=None), [30000, 30000])
    assert {mean.statistic for mean in rich.means} == {"gradient", "difference"}
    # A change that may be longer than a gradient is not worth asking.
    poor = NoisySpider(rounds=10, step_size=0.1)
    bare = LinearObjective(loss=Logistic(), features=D)
    settings = Settings(objective=bare, algorithm=poor, trust=LOCAL, budget=BUDGET, clip=1.0)
    assert {mean.statistic for mean in prepare(settings, SIZES).means} == {"gradient"}


def test_a_guess_stands_in_for_unknown_smoothness() -> None:
    bare = LinearObjective(loss=Logistic(), features=D)
    settings = Settings(
        objective=bare, algorithm=NoisySpider(rounds=4, period=2, smoothness=0.25), trust=LOCAL,
        budget=BUDGET, clip=1.0,
    )  # fmt: skip
    silos = make_silos(data(), bare, seed=3)
    assert np.isfinite(train(in_process(silos, seed=3), settings).w).all()


# What is refused


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NoisySpider(period=0), "period must be a whole number >= 1, got 0"),
        (lambda: make_algorithm("spider", period=0.5), "period must be"),
        (lambda: NoisySpider(step_size=0.0), "step_size must be"),
        (lambda: NoisySpider(smoothness=-1.0), "smoothness must be"),
        (lambda: NoisySpider(split=1.0), "split must be in"),
        (lambda: NoisySpider(split=0.0), "split must be in"),
        (lambda: make_algorithm("spider", output="best"), "output must be one of"),
        (lambda: NoisySpider(rounds=0), "rounds must be a whole number >= 1"),
        (lambda: NoisyFedSpider(rounds=2), "rounds must be at least 3 for fed-spider, got 2"),
        (lambda: NoisyFedSpider(split=2.0), "split must be in"),
    ],
)
def test_bad_parameters_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make()


def test_a_hostile_server_cannot_name_a_radius_or_points_that_cost_more() -> None:
    prepared = prepare(settings_with(NoisySpider(rounds=4, period=2)), SIZES)
    ask = in_process(make_silos(data(), OBJECTIVE, seed=3), seed=3).open(prepared.plan)
    with pytest.raises(Exception, match="radius must be a number in"):
        ask(1, {"w": np.ones(D), "previous": np.zeros(D)}, (2.5,))
    with pytest.raises(Exception, match="cannot be evaluated at such a point"):
        ask(1, {"w": np.ones(D)}, (1.0,))
