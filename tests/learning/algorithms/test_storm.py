"""MB-PSGM and DIFF2: the STORM estimator, what its rounds cost, and what is refused."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError, PlanWarning, RefusalError
from tacit.federation import Fixed, Full, Step
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyDiff2,
    NoisySpider,
    NoisyStorm,
    Problem,
    RecordDifference,
    RecordGradient,
    Records,
    Settings,
    Squared,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms.prox_sgd import starting_gap
from tacit.learning.algorithms.storm import estimate, hemisphere_level, storm, storm_bound, storm_momentum
from tacit.learning.preparation import prepare
from tacit.means import HemisphereMean, Round
from tacit.mechanisms import hemisphere_scale
from tacit.numerics import L1, Array, Regularizer, Zero
from tacit.privacy import (
    Compose,
    Gaussian,
    PrivacyBudget,
    Repeat,
    Sampled,
    Shuffled,
    TrustModel,
    calibrate,
    curve_of,
    epsilon_of,
)
from tests.learning.algorithms.test_spider import OBJECTIVE, SIZES, D, data, descent, run, settings_with
from tests.statistics import z_bound

CENTRAL, SHUFFLE = TrustModel.CENTRAL, TrustModel.SHUFFLE
LARGE = (1651, 1651) + (1651,) * 6 + (1652, 1652)
"""The silos of the paper's experiment: 16512 records."""


def planned(algorithm: Any, budget: PrivacyBudget, *, dim: int = 1, sizes: Any = LARGE) -> Any:
    goal = LinearObjective(loss=Squared(), features=dim, feature_norm=1.0)
    trust = SHUFFLE if isinstance(algorithm, NoisyStorm) else CENTRAL
    settings = Settings(objective=goal, algorithm=algorithm, trust=trust, budget=budget, clip=1.0)
    return prepare(settings, sizes)


# What it computes


@pytest.mark.parametrize("prox", [Zero(), L1(0.01)], ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("beta", [0.0, 0.05, 0.5, 1.0])
def test_without_noise_the_estimate_is_the_gradient(beta: float, prox: Regularizer) -> None:
    algorithm = NoisyStorm(rounds=11, beta=beta, step_size=1.5)
    found = run(settings_with(algorithm, None, regularizer=prox))
    np.testing.assert_allclose(found.w, descent(11, 1.5, prox)[-1], atol=1e-13)


def test_the_printed_loop_at_equal_answers() -> None:
    """v_r = (1 - rho) v_(r-1) + (1 - rho) g1 + rho g2, rho = 1 in the first round, on one query a round."""
    rng, asked, answers = np.random.default_rng(2), [], []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        asked.append((dict(at), radius))
        answers.append(tuple(rng.normal(size=3) for _ in radius))
        return answers[-1]

    w = storm(
        ask, np.ones(3), rounds=5, beta=0.2, step_size=0.1, lipschitz=2.0, smoothness=1.5, prox=Zero(),
        follow=lambda _r, _w: None,
    )  # fmt: skip
    x, v = [np.ones(3)], np.zeros(3)
    for r, answer in enumerate(answers):
        rho, g1 = (1.0, np.zeros(3)) if r == 0 else (0.2, answer[0])
        v = (1 - rho) * v + (1 - rho) * g1 + rho * answer[-1]
        x.append(x[-1] - 0.1 * v)
        at, radius = asked[r]
        np.testing.assert_allclose(at["w"], x[r])
        if r > 0:
            np.testing.assert_allclose(at["previous"], x[r - 1])
            assert radius == pytest.approx((min(4.0, 1.5 * float(np.linalg.norm(x[r] - x[r - 1]))), 2.0))
    assert asked[0][1] == (2.0,)
    np.testing.assert_allclose(w, x[-1])


@pytest.mark.parametrize("period", [1, 2, 5, 11])
def test_diff2_without_noise_is_gradient_descent(period: int) -> None:
    found = run(settings_with(NoisyDiff2(rounds=11, period=period, step_size=1.5), None))
    np.testing.assert_allclose(found.w, descent(11, 1.5, Zero())[-1], atol=1e-13)


def test_the_printed_gradient_at_the_point_before_is_no_estimate() -> None:
    """As printed, g2 is at x_(r-1): even without noise v is then not the gradient at x_r."""
    silos = data()
    records = Records.of(np.vstack([s.X for s in silos]), np.concatenate([s.y for s in silos]))
    points, printed = descent(4, 1.5, Zero()), np.zeros(D)
    slopes = [OBJECTIVE.gradients(w, records).mean(axis=0) for w in points]
    printed = slopes[0]
    for r in range(1, 4):
        printed = 0.5 * (printed + slopes[r] - slopes[r - 1]) + 0.5 * slopes[r - 1]
    assert np.linalg.norm(printed - slopes[3]) > 0.05 * np.linalg.norm(slopes[3])


def test_with_all_weight_on_gradients_it_is_proximal_sgd_with_the_same_noise() -> None:
    plain = run(settings_with(NoisySpider(rounds=6, period=1, step_size=0.3)))
    for algorithm in (
        NoisyStorm(rounds=6, beta=1.0, step_size=0.3),
        NoisyDiff2(rounds=6, period=1, step_size=0.3),  # DP-GD
    ):
        np.testing.assert_array_equal(run(settings_with(algorithm)).w, plain.w)


@pytest.mark.parametrize("kind", [NoisyStorm(beta=1.0), NoisyDiff2(period=1)], ids=["mb-psgm", "dp-gd"])
def test_gradients_alone_take_longer_steps_than_their_bound_is_for(kind: Any) -> None:
    """Of classes: noise takes a score 1.5 away, by steps from 1 / (2 beta) to 15 / beta; beta is 1/4."""
    rounds = 6

    def step(loss: Any, variance: float, method: Any = kind) -> float:
        facts: dict[str, Any] = {"radius": 0.3, "diameter": 9.0, "dim": rounds, "variance": variance}
        shape: dict[str, Any] = {"features": 6, "feature_norm": 0.7, "smoothness": 0.25}
        problem = Problem(**facts, **shape, loss=loss)
        w = method.run(
            lambda _step, _at, _radius: (np.ones(rounds),), np.zeros(rounds), problem=problem, rounds=1,
            prox=Zero(), follow=lambda _r, _w: None,
        )  # fmt: skip
        return -float(w[0])

    assert step(Logistic(), 6.0) == pytest.approx(1.5 / 0.7)
    assert step(Logistic(), 6.0 * 4) == pytest.approx(2.0)  # not below 1 / (2 beta)
    assert step(Logistic(), 1e-9) == pytest.approx(60.0)
    assert step(Logistic(), 0.0) == step(Squared(), 6.0) == step(None, 6.0) == pytest.approx(2.0)
    assert step(Logistic(), 6.0, msgspec.structs.replace(kind, step_size=0.1)) == pytest.approx(0.1)
    # Differences add errors of their own with every step.
    other = NoisyStorm(beta=0.5) if isinstance(kind, NoisyStorm) else NoisyDiff2(period=2)
    problem = Problem(
        radius=0.3, diameter=9.0, dim=6, variance=0.6, smoothness=0.25, loss=Logistic(), features=6,
        feature_norm=0.7,
    )  # fmt: skip
    assert other._taken(problem, 4) == pytest.approx(2.0)
    assert kind._taken(problem, 4) == pytest.approx(1.5 / 0.7 / math.sqrt(0.1 * 4))


def test_gradients_have_the_share_that_is_said_of_what_a_round_spends() -> None:
    method = NoisyStorm(rounds=3, beta=0.5, split=0.2, messages="hemispheres")
    found = planned(method, PrivacyBudget(1.0, 1e-5))
    (_, later) = (step for step, _ in found.plan.kinds)
    for measure in later.measures:
        share, longest = (0.2, 1.0) if measure.statistic == "gradient" else (0.8, 2.0)
        level = hemisphere_level(found.noise_multiplier / math.sqrt(share), 16512)
        assert measure.estimator.local_epsilon == pytest.approx(level)
        assert measure.max_radius == longest


def test_diff2_asks_what_spider_asks() -> None:
    """So that what is said of SPIDER's privacy, by attacks too, is said of it."""
    for trust in (TrustModel.LOCAL, CENTRAL):
        plans = [
            prepare(settings_with(kind(rounds=9, period=4, split=None), trust), SIZES).plan
            for kind in (NoisyDiff2, NoisySpider)
        ]
        assert plans[0] == plans[1]


def test_a_random_output_is_a_point_on_the_way() -> None:
    """One of x_0..x_(R-1), the start included: those before a step, which bounds are about."""
    points, facts = descent(3, 1.5, Zero()), {"rounds": 3, "step_size": 1.5}
    for kind in (NoisyStorm(beta=0.3, **facts), NoisyDiff2(period=2, **facts)):  # type: ignore[arg-type]
        numbers = set()
        for seed in range(10):
            random = msgspec.structs.replace(kind, output="random", draw=seed)
            ends = [np.abs(run(settings_with(random, None)).w - point).max() for point in points]
            assert min(ends) < 1e-13
            numbers.add(int(np.argmin(ends)))
        assert numbers == {0, 1, 2}


def reports(level: float, n: int, rng: np.random.Generator) -> Any:
    """An ask of hemisphere reports about fixed records, and the rows that they are about."""
    records = Records.of(rng.normal(size=(n, D)), rng.normal(size=n))
    goal = LinearObjective(loss=Squared(), features=D)
    mean = HemisphereMean(dim=D, local_epsilon=level, trust=SHUFFLE, on_violation="clip")

    def rows(at: Mapping[str, Array]) -> list[Array]:
        made = [RecordDifference(goal)(records, at)] if "previous" in at else []
        return [*made, RecordGradient(goal)(records, at)]

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        return tuple(
            mean.estimate(one, Round(n=n, radius=r, number=step), rng=rng) if r > 0 else np.zeros(D)
            for one, r in zip(rows(at), radius, strict=True)
        )

    return ask, rows


def test_the_estimate_is_unbiased_with_the_stated_variance() -> None:
    rng, n, beta, trials = np.random.default_rng(5), 20, 0.3, 1500
    ask, rows = reports(1.0, n, rng)
    w, previous = rng.normal(size=D), rng.normal(size=D)
    change, gradient = rows({"w": w, "previous": previous})
    longest = [float(np.linalg.norm(one, axis=1).max()) for one in (change, gradient)]
    facts = {"beta": beta, "lipschitz": 1.001 * longest[1]}
    facts["smoothness"] = 1.001 * longest[0] / float(np.linalg.norm(w - previous))
    v = rows({"w": previous})[0].mean(axis=0)
    found = np.stack([estimate(ask, 1, w, previous, v, **facts) for _ in range(trials)])
    scale = hemisphere_scale(D, 1.0)
    radii = min(1.001 * longest[0], 2 * facts["lipschitz"]), facts["lipschitz"]
    variance = sum(
        (weight / n) ** 2 * float(n * (scale * radius) ** 2 - (one**2).sum())
        for weight, radius, one in zip((1 - beta, beta), radii, (change, gradient), strict=True)
    )
    error = found - gradient.mean(axis=0)
    sizes = (error**2).sum(axis=1)
    assert sizes.mean() == pytest.approx(variance, abs=z_bound(2) * sizes.std() / math.sqrt(trials))
    off = np.abs(error.mean(axis=0)) / error.std(axis=0) * math.sqrt(trials)
    assert off.max() < z_bound(2 * D)


def test_noise_of_a_frozen_point_settles() -> None:
    """Var = beta B^2 / ((2 - beta) N), but for what the rows themselves have: differences send nothing."""
    rng, n, beta = np.random.default_rng(6), 50, 0.2
    ask, rows = reports(0.5, n, rng)
    w, v, total = np.ones(D), np.zeros(D), []
    radius = float(np.linalg.norm(rows({"w": w})[0], axis=1).max())
    for _ in range(3000):
        v = estimate(ask, 1, w, w, v, beta=beta, lipschitz=radius, smoothness=10.0)
        total.append(v - rows({"w": w})[0].mean(axis=0))
    each = (n * (hemisphere_scale(D, 0.5) * radius) ** 2 - (rows({"w": w})[0] ** 2).sum()) / n**2
    # Correlated in time: about beta / 2 of them count, which makes 1,200 numbers of a relative spread of 1.4.
    spread = (np.stack(total[100:]) ** 2).sum(axis=1).mean()
    assert spread == pytest.approx(beta / (2 - beta) * each, rel=z_bound(1) * 1.5 / math.sqrt(1200))


# What it costs


def test_the_first_round_sends_no_differences() -> None:
    prepared = planned(
        NoisyStorm(rounds=5, beta=0.2, messages="hemispheres"),
        PrivacyBudget(1.0, 1e-2),
        sizes=(9, 9),
    )
    asked = [([m.statistic for m in step.measures], count) for step, count in prepared.plan.kinds]
    assert asked == [(["gradient"], 1), (["difference", "gradient"], 4)]
    levels = [m.estimator.local_epsilon for step, _ in prepared.plan.kinds for m in step.measures]
    shares = [hemisphere_level(prepared.noise_multiplier / math.sqrt(part), 18) for part in (1.0, 0.5, 0.5)]
    assert levels == pytest.approx(shares)


@pytest.mark.parametrize(("epsilon", "level"), [(0.4, 0.425174), (0.8, 0.745918), (1.6, 1.253893)])
def test_levels_of_the_paper_s_experiment(epsilon: float, level: float) -> None:
    """N = 16512 and 999 shuffles of one level: R = 500, where the paper's constants allow none of these."""
    assert epsilon_of(Repeat(Shuffled(level, sum(LARGE), "2rr"), 999), 1e-5) == pytest.approx(
        epsilon, rel=2e-4
    )
    # A rule names about the level, and the price of its reports is what is calibrated.
    mu = {0.4: 0.1158805809, 0.8: 0.2186862240, 1.6: 0.4104287307}[epsilon]
    assert hemisphere_level(math.sqrt(999) / mu, sum(LARGE)) == pytest.approx(level, rel=1e-3)


@pytest.mark.parametrize(
    ("epsilon", "multiplier"),
    [(0.4, 192.963132), (0.8, 102.250061), (1.6, 54.481273), (3.0, 31.094615), (5.0, 19.942781)],
)
def test_multipliers_of_diff2(epsilon: float, multiplier: float) -> None:
    """All 500 rounds of one multiple, whatever the period: sqrt(R) / mu."""
    prepared = planned(NoisyDiff2(rounds=500, period=7, smoothness=1.0), PrivacyBudget(epsilon, 1e-5))
    assert prepared.noise_multiplier == pytest.approx(multiplier, rel=1e-6)
    assert {mean.noise_multiplier for mean in prepared.means} == {prepared.noise_multiplier}


def test_the_whole_of_server_and_silo() -> None:
    shuffles = Repeat(Shuffled(0.6, 16512, "2rr"), 999)
    local = Repeat(Sampled(Gaussian(4.0), 0.05), 450)
    assert epsilon_of(shuffles, 1e-5) == pytest.approx(0.608403, rel=2e-4)
    assert epsilon_of(Compose((shuffles, local)), 1e-5) == pytest.approx(1.295497, rel=2e-3)


def test_a_shuffled_view_by_enumeration() -> None:
    """One coordinate, two silos of two records, one of each in a round: all data sets, both orders."""
    algorithm = NoisyStorm(
        rounds=2, beta=0.5, batch=Fixed(size=1), messages="hemispheres", smoothness=1.0, step_size=0.1
    )
    prepared = planned(algorithm, PrivacyBudget(2.0, 1e-2), sizes=(2, 2))
    step = prepared.plan.kinds[1][0]
    assert isinstance(step, Step)
    levels = [one.estimator.local_epsilon for one in step.measures]  # type: ignore[union-attr]
    claimed = curve_of(step.event((2, 2), SHUFFLE), accuracy=1e-9)
    grid = np.linspace(-2.0, 2.0, 41)
    keep = [1 / (1 + math.exp(-level)) for level in levels]
    signs = list(itertools.product((0, 1), repeat=2))  # of the difference, of the gradient

    def sent(record: tuple[int, int]) -> Array:
        """The law of a record's two bits."""
        ones = [p if bit else 1 - p for p, bit in zip(keep, record, strict=True)]
        return np.outer([1 - ones[0], ones[0]], [1 - ones[1], ones[1]])

    def view(own: Any, others: Any) -> Array:
        """The law of both counts, (3, 3), where each silo draws one of its two records."""
        first, second = (np.mean([sent(one) for one in silo], axis=0) for silo in (own, others))
        found = np.zeros((3, 3))
        for (a, b), (c, d) in itertools.product(signs, signs):
            found[a + c, b + d] += first[a, b] * second[c, d]
        return found.ravel()

    worst = 0.0
    for beside, *others in itertools.product(signs, repeat=3):
        for one, two in itertools.permutations(signs, 2):
            p, q = view((one, beside), others), view((two, beside), others)
            exact = np.maximum(p - np.exp(grid)[:, None] * q, 0).sum(axis=1)
            bound = claimed.delta(grid)
            assert (exact <= bound + 1e-12).all()
            worst = max(worst, float((exact / np.maximum(bound, 1e-9))[np.abs(grid) < 0.3].max()))
    assert worst > 0.9  # no budget is wasted


# What it is chosen by


def test_the_bound_holds_on_a_quadratic() -> None:
    """F(w) = |w|^2 / 2 with errors of stated sizes: the mean squared gradient is below the bound."""
    rng, rounds, beta, dim = np.random.default_rng(8), 60, 0.3, 5
    tau, change, eta = 0.4, 0.5, 0.3
    start = np.full(dim, 1.0)

    def once() -> float:
        seen: list[Array] = []

        def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
            seen.append(at["w"])
            noise = rng.normal(size=(2, dim)) / math.sqrt(dim)
            gradient = at["w"] + tau * noise[0]
            if "previous" not in at:
                return (gradient,)
            moved = at["w"] - at["previous"]
            return moved + math.sqrt(change) * np.linalg.norm(moved) * noise[1], gradient

        storm(
            ask, start, rounds=rounds, beta=beta, step_size=eta, lipschitz=1e3, smoothness=1.0, prox=Zero(),
            follow=lambda _r, _w: None,
        )  # fmt: skip
        return float(np.mean([point @ point for point in seen]))

    facts: Any = {"step_size": eta, "rounds": rounds, "momentum": beta, "gap": dim / 2, "variance": tau**2}
    bound = storm_bound(smoothness=1.0, change_variance=change, **facts)
    found = np.mean([once() for _ in range(100)])
    assert 0.1 * bound < found < bound < math.inf
    assert storm_bound(smoothness=2.0, change_variance=change, **facts) == math.inf  # too long a step
    assert storm_bound(smoothness=1.0, change_variance=6.0, **facts) == math.inf


def test_errors_of_two_means_of_one_sample_count_twice() -> None:
    """Here they are equal: (1 - b) a + b a is a, and as if independent ((1 - b)^2 + b^2) |a|^2 < |a|^2."""
    values = np.arange(12.0)
    samples = np.array(list(itertools.combinations(values, 3))).mean(axis=1) - values.mean()
    for beta in (0.1, 0.5, 0.9):
        both = np.mean(((1 - beta) * samples + beta * samples) ** 2)
        apart = ((1 - beta) ** 2 + beta**2) * np.mean(samples**2)
        assert apart < both <= 2 * apart * (1 + 1e-12)
    for batch, counted in ((Full(), 1), (Fixed(size=20), 2)):
        algorithm = NoisyStorm(rounds=9, beta=0.3, batch=batch, step_size=0.1)
        problem = prepare(settings_with(algorithm), SIZES).problem
        alone = msgspec.structs.replace(algorithm, beta=1.0).error_bound(problem, 9)
        gap = 2 * starting_gap(None, problem, smoothness=problem.smoothness) / (0.1 * 9)
        found = algorithm.error_bound(problem, 9) - gap
        assert found == pytest.approx(counted * (1 / 9 + 0.09) / (0.3 * 1.7) * (alone - gap) / (1 + 1 / 9))


def test_momentum_is_the_rule_of_the_paper() -> None:
    d, R, G, L, gap, M, n, K, b, eps = 101, 500, 3.0, 10.0, 1.0, 10, 1651, 10, 16, 0.5
    own = (M * n * eps) ** (2 / 3) * (gap * L) ** (2 / 3) / (d ** (1 / 3) * R * G ** (4 / 3))
    samples = (M * K * b) ** (1 / 3) * (gap * L) ** (2 / 3) / (R ** (2 / 3) * G ** (4 / 3))
    facts: Any = {"rounds": R, "gap": gap, "smoothness": L, "lipschitz": G}
    assert storm_momentum(error=math.sqrt(d * R) * G / (M * n * eps), **facts) == pytest.approx(own)
    assert storm_momentum(error=G / math.sqrt(M * K * b), **facts) == pytest.approx(samples)
    assert storm_momentum(error=1e9, **facts) == 1 / R
    assert storm_momentum(error=0.0, **facts) == storm_momentum(error=1e-9, **facts) == 1.0


def test_weights_steps_and_periods_follow_from_the_budget() -> None:
    """The noise is foreseen as that of 2 R - 1 equal releases, and a rule of DIFF2 with it, at two trusts."""
    R, d, radius, gap, z = 400, 4, 0.8, 0.7, calibrate(Gaussian, PrivacyBudget(2.0, 1e-5))
    for trust, rows, of_period in ((CENTRAL, 6000, 6000), (TrustModel.LOCAL, 2000 * math.sqrt(3), 2000)):
        facts: Any = {"gap": gap, "smoothness": 0.25}
        chosen = settings_with(NoisyStorm(rounds=R, batch=Fixed(size=500), **facts), trust, clip=radius)
        problem = prepare(chosen, (2000,) * 3).problem
        error = 2 * R * d * (2 * radius * z / rows) ** 2 + radius**2 * (1 / 500 - 1 / 2000) / 3
        algorithm: Any = chosen.algorithm
        beta = algorithm._momentum(problem, R)
        assert 1 / R < beta < 1
        assert beta == pytest.approx((gap * 0.25 / (R * radius * math.sqrt(error))) ** (2 / 3), rel=1e-3)
        change = 2 * problem.errors["difference"] * (0.25 / (2 * radius)) ** 2
        longest = math.sqrt(beta * (2 - beta) / (2 * (1 - beta) ** 2 * change))
        assert algorithm._step(problem, R) == pytest.approx(min(1 / (2 * 0.25), longest))
        longest, slow = math.sqrt(1e-7 / change), msgspec.structs.replace(algorithm, beta=1e-7)
        assert longest < 2
        assert slow._step(problem, R) == pytest.approx(longest, rel=1e-5)
        period = NoisyDiff2(rounds=R, **facts)._period(problem, R)
        assert 1 < period < R
        assert period == round((radius**2 * math.sqrt(d) / (0.25 * gap * of_period * 2.0)) ** (2 / 3) * R)


def test_defaults_run_and_have_a_finite_bound() -> None:
    for algorithm in (NoisyStorm(), NoisyStorm(batch=Fixed(size=20)), NoisyDiff2()):
        prepared = prepare(settings_with(algorithm), SIZES)
        assert math.isfinite(algorithm.error_bound(prepared.problem, prepared.rounds))
        run(settings_with(algorithm))
    # Where nobody knows the smoothness, differences may be as long as gradients: none are asked for.
    facts = settings_with(NoisyStorm(rounds=4, step_size=0.1))
    unknown = Settings(
        objective=LinearObjective(loss=Squared(), features=D), algorithm=facts.algorithm,
        trust=TrustModel.LOCAL, budget=PrivacyBudget(1.0, 1e-5), clip=1.0,
    )  # fmt: skip
    assert {m.statistic for step, _ in prepare(unknown, SIZES).plan.kinds for m in step.measures} == {
        "gradient"
    }


def test_a_first_batch_of_too_few_units_is_said() -> None:
    """b0 >= B1 / (R beta^2): of 20 units and beta = .1, 20 / (50 / 100) = 40 in 50 rounds."""
    facts: dict[str, Any] = {"rounds": 50, "beta": 0.1, "batch": Fixed(size=20), "step_size": 0.1}
    facts["first"] = Fixed(size=39)
    with pytest.warns(PlanWarning, match="39 units of a silo and should have 40 or more.*first='full'"):
        prepare(settings_with(NoisyStorm(**facts)), SIZES)
    for enough in (
        {"first": Fixed(size=40)},
        {"first": Full()},
        {"first": None},
        {"beta": 0.11},
        {"batch": Full()},
    ):
        prepare(settings_with(NoisyStorm(**{**facts, **enough})), SIZES)


# What is refused


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beta": -0.1}, "beta must be"),
        ({"beta": 1.1}, "beta must be"),
        ({"beta": math.nan}, "beta must be"),
        ({"step_size": 0.0}, "step_size must be"),
        ({"smoothness": 0.0}, "smoothness must be"),
        ({"split": 1.0}, "split must be"),
        ({"messages": "words"}, "messages must be one of"),
        ({"rounds": 0}, "rounds must be"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        NoisyStorm(**options)


def test_reports_without_a_shuffler_are_refused() -> None:
    reports = NoisyStorm(rounds=3, messages="hemispheres")
    for trust in (CENTRAL, TrustModel.LOCAL):
        with pytest.raises(ParameterError, match=f"messages must be 'sums' under {trust.value} trust"):
            prepare(settings_with(reports, trust), SIZES)
    prepare(settings_with(reports, None), SIZES)  # nothing is random there


def test_a_batch_of_more_than_a_silo_has_is_refused() -> None:
    with pytest.raises(ParameterError, match="size must be at most the 60 units"):
        prepare(settings_with(NoisyStorm(rounds=3, batch=Fixed(size=61))), SIZES)


def test_a_run_that_diverges_stops() -> None:
    goal = LinearObjective(loss=Squared(), features=D)
    settings = Settings(objective=goal, algorithm=NoisyStorm(rounds=99, beta=0.5, step_size=1e307), clip=1e29)
    far = [Records.of(one.X, 1e6 * one.y) for one in data()]
    silos = in_process(make_silos(far, goal, trusts_server=True, seed=1), seed=1)
    with pytest.raises((RefusalError, ParameterError), match="finite"), np.errstate(all="ignore"):
        train(silos, settings)


def test_a_level_names_about_the_price_of_gaussian_noise() -> None:
    for level in (0.2, 0.5, 1.0, 2.0):
        mu = math.sqrt(2) * math.expm1(level) / math.sqrt((math.exp(level) + 1) * 16512)
        assert hemisphere_level(1 / mu, 16512) == pytest.approx(level)
    assert hemisphere_level(0.0, 5) == 30.0
    assert hemisphere_level(1e30, 5) == 2.0**-30
