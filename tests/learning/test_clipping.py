"""The clip that a first round chooses: its price, who can be told a clip late, and what moves it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, RefusalError
from tacit.federation import Ask, Kinds, Query, RandomSubset
from tacit.learning import (
    AutoClip,
    FederatedLinearRegression,
    FederatedLogisticRegression,
    Grouped,
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    NoisySpider,
    PrivateNeuralClassifier,
    Records,
    Settings,
    Squared,
    make_algorithm,
    train,
)
from tacit.learning.algorithms import Follow, Method, Problem
from tacit.learning.clipping import after_histogram, quantile_of, read_clip
from tacit.learning.preparation import Prepared, at_clip, prepare
from tacit.learning.training import silos_for
from tacit.means import AdditiveMean, GaussianNoise
from tacit.numerics import Array, Regularizer
from tacit.privacy import (
    Compose,
    Gaussian,
    PrivacyBudget,
    Relation,
    Repeat,
    TrustModel,
    Unit,
    calibrate,
    epsilon_of,
)
from tests.learning.attacks import LOOSE, Score, Seen, stands_and_half_the_noise_is_caught

BUDGET, SIZES = PrivacyBudget(1.0, 1e-5), [400, 600]
GOAL = LinearObjective(loss=Squared(), features=3, feature_norm=1.0)
PLAIN = Settings(
    objective=GOAL,
    algorithm=NoisyMinibatchSGD(rounds=20, step_size=0.5),
    trust=TrustModel.CENTRAL,
    budget=BUDGET,
    clip=0.3,
    auto_clip=AutoClip(),
)


def silos(sizes: list[int], *, far: float = 1.0) -> list[Records]:
    rng = np.random.default_rng(5)
    found = []
    for n in sizes:
        X = rng.uniform(-1, 1, (n, 3)) / 2
        found.append(Records.of(X, far * (X @ [1.0, -1.0, 0.5] + 0.1 * rng.normal(size=n))))
    return found


def trained(settings: Settings, units: list[Any], *, seed: int = 3) -> Any:
    names = [str(k) for k in range(len(units))]
    return train(silos_for(settings, units, names=names, seed=seed), settings)


# The price


@pytest.mark.parametrize("share", [0.05, 0.3])
def test_the_histogram_and_the_rest_are_one_calibrated_gaussian(share: float) -> None:
    """1 / z^2 adds up: the histogram has its share of what one release would have, the rounds the rest."""
    prepared = prepare(replace(PLAIN, auto_clip=AutoClip(share=share)), SIZES)
    whole = calibrate(Gaussian, BUDGET)
    first, rest = prepared.means
    assert (first.statistic, first.rounds, rest.statistic, rest.rounds) == (
        "gradient-norms",
        1,
        "gradient",
        20,
    )
    assert first.noise_multiplier == pytest.approx(whole / math.sqrt(share), rel=1e-8)
    assert rest.noise_multiplier == pytest.approx(whole * math.sqrt(20 / (1 - share)), rel=1e-8)
    said = Compose((Gaussian(first.noise_multiplier), Repeat(Gaussian(rest.noise_multiplier), 20)))
    event = prepared.plan.event(SIZES, TrustModel.CENTRAL)
    assert epsilon_of(event, BUDGET.delta) == pytest.approx(epsilon_of(said, BUDGET.delta), rel=1e-9)
    assert epsilon_of(event, BUDGET.delta) <= BUDGET.epsilon
    # Against the price of the same rounds without it.
    alone = prepare(replace(PLAIN, auto_clip=None), SIZES).noise_multiplier
    assert prepared.noise_multiplier / alone == pytest.approx(1 / math.sqrt(1 - share), rel=1e-8)


@pytest.mark.parametrize(
    ("relation", "moved"), [(Relation.REPLACE_ONE, math.sqrt(2)), (Relation.ZERO_OUT, 1)]
)
def test_a_unit_moves_the_histogram_by_what_its_noise_counts_on(relation: Relation, moved: float) -> None:
    prepared = prepare(replace(PLAIN, relation=relation), SIZES)
    mean = prepared.plan.kinds[0][0].measures[0].estimator
    assert isinstance(mean, AdditiveMean)
    assert mean.acute
    assert mean.moved == pytest.approx(moved, rel=1e-12)
    assert isinstance(mean.noise, GaussianNoise)


@pytest.mark.parametrize("trust", list(TrustModel))
def test_it_runs_under_every_trust_model_within_the_budget(trust: TrustModel) -> None:
    algorithm = NoisyMinibatchSGD(rounds=3, step_size=0.5)
    run = trained(replace(PLAIN, trust=trust, algorithm=algorithm), silos([500, 500]))
    assert run.clip is not None
    assert 0 < run.clip <= 1.0
    assert run.plan.rounds == 4
    assert run.guarantee.epsilon <= BUDGET.epsilon


def test_a_price_does_not_depend_on_the_bins_that_clips_may_come_from() -> None:
    wide = replace(PLAIN, auto_clip=AutoClip(low=1e-9, high=1e9, bins=30))
    assert prepare(wide, SIZES).noise_multiplier == pytest.approx(prepare(PLAIN, SIZES).noise_multiplier)


# What it does


def test_with_an_exact_histogram_it_is_the_method_at_that_clip() -> None:
    bare = replace(PLAIN, trust=None, budget=None)
    units = silos(SIZES)
    run = trained(bare, units)
    assert run.clip is not None
    fixed = trained(replace(bare, auto_clip=None, clip=run.clip), units)
    assert run.w.tolist() == fixed.w.tolist()
    assert run.w.tolist() != trained(replace(bare, auto_clip=None, clip=2 * run.clip), units).w.tolist()
    norms = np.concatenate([np.linalg.norm(GOAL.gradients(np.zeros(3), one), axis=1) for one in units])
    edges = AutoClip().edges(GOAL)
    # In the silos' weights, those of their records: the bin of the 0.9 quantile, halved.
    assert run.clip == 0.5 * edges[np.searchsorted(edges, np.quantile(norms, 0.9))]


def test_step_sizes_are_made_from_the_clip_that_was_chosen() -> None:
    settings = replace(PLAIN, algorithm=make_algorithm("accelerated", rounds=10))
    prepared = prepare(settings, SIZES)
    problem = at_clip(settings, prepared, SIZES, 0.01)
    fixed = replace(settings, auto_clip=None, clip=0.01)
    same = prepare(fixed, SIZES)
    assert problem.radius == same.problem.radius == 0.01
    # The noise is 1 / sqrt(1 - share) as large as if nothing had been spent on the choice.
    assert problem.noise_std == pytest.approx(same.problem.noise_std / math.sqrt(0.95), rel=1e-6)


def test_rounds_may_be_asked_with_every_clip_and_no_longer_one() -> None:
    prepared = prepare(PLAIN, SIZES)
    most = prepared.plan.kinds[1][0].measures[0].max_radius
    assert most == pytest.approx(AutoClip().clips(GOAL)[-1])
    query = Query(step=1, at={"w": np.zeros(3)}, radius=(1.01 * most,))
    with pytest.raises(RefusalError):
        query.check([most])


@pytest.mark.parametrize("far", [1.0, 1e-3])
def test_it_finds_the_scale_of_gradients_that_bounds_say_nothing_of(far: float) -> None:
    run = trained(PLAIN, silos([2000, 2000], far=far))
    assert 0.02 * far < run.clip < far


def test_one_outlier_moves_no_quantile() -> None:
    """A single unit is 1 of n; what it adds stays below the noise, wherever it lies."""
    rng = np.random.default_rng(0)
    counts = np.zeros(21)
    counts[8:12] = [100, 300, 400, 200]
    noise = 20 / 1000
    for place in range(21):
        other = counts.copy()
        other[9] -= 1
        other[place] += 1
        noisy = rng.normal(0, noise, (300, 21))
        # With the same noise, so that all that is left is what the outlier does.
        moved = [
            quantile_of(counts / 1000 + z, 0.9, noise=noise)
            != quantile_of(other / 1000 + z, 0.9, noise=noise)
            for z in noisy
        ]
        assert np.mean(moved) <= 0.05
        assert quantile_of(other / 1000, 0.9, noise=0.0) == 11


def test_quantiles_of_noisy_histograms() -> None:
    assert quantile_of(np.array([1.0, 0, 0]), 0.9, noise=0.01) == 0
    assert quantile_of(np.array([0, 0, 1.0]), 0.1, noise=0.01) == 2
    assert quantile_of(np.zeros(3), 0.5, noise=0.01) is None
    assert quantile_of(np.array([-5.0, -1.0, -0.5]), 0.5, noise=0.01) is None
    assert quantile_of(np.array([0.03, 0.5, 0.039]), 0.99, noise=0.01) == 1  # below 4 deviations: only noise
    assert quantile_of(np.array([0.5, 0.5]), 0.5, noise=0.0) == 0


def test_where_all_is_noise_the_default_is_taken() -> None:
    run = trained(replace(PLAIN, clip=0.123), silos([30, 30]))
    assert run.clip == 0.123


def test_units_without_a_finite_gradient_are_in_no_bin() -> None:
    units = Records.of(np.full((50, 3), 1e200), np.full(50, 1e200))
    run = trained(replace(PLAIN, trust=None, budget=None, clip=0.123), [units])
    assert run.clip == 0.123


def test_persons_are_clipped_by_the_norms_of_their_means() -> None:
    rng = np.random.default_rng(1)
    persons = [Grouped.of(one, rng.integers(0, 80, len(one))) for one in silos(SIZES)]
    run = trained(replace(PLAIN, unit=Unit.PERSON, trust=None, budget=None), persons)
    assert run.clip is not None
    assert run.clip <= trained(replace(PLAIN, trust=None, budget=None), silos(SIZES)).clip


def test_turns_of_the_same_silos_begin_after_the_histogram() -> None:
    spider = NoisySpider(rounds=6, period=3)
    settings = replace(PLAIN, algorithm=spider, trust=TrustModel.LOCAL, participation=RandomSubset(2))
    run = trained(settings, silos([300, 300, 300]))
    assert run.plan.rounds == 7


# Who can be told a clip late

TOLD = (
    *(
        "minibatch",
        "accelerated",
        "multistage",
        "local",
        "sign-vote",
        "p-sgd",
        "lan",
    ),
    *("phases", "spider", "fed-spider", "prox-sgd", "prox-svrg", "prox-pl-svrg"),
)
REFUSED = (
    *("whitened", "output-perturbation", "objective-perturbation"),
    *("ftrl", "preconditioned", "sufficient-statistics", "dp-shuffle"),  # plans that fix their radii
    *("diff2", "mb-psgm", "ce-psgm"),  # whose period or momentum goes by the clip, unless it is given
)


@pytest.mark.parametrize("name", [*TOLD, *REFUSED])
def test_who_can_be_told_a_clip_after_the_plan(name: str) -> None:
    algorithm = make_algorithm(name, rounds=10 if name == "local" else None)
    assert isinstance(algorithm, Method)
    trust = TrustModel.LOCAL if TrustModel.LOCAL in algorithm.trusts else TrustModel.CENTRAL
    goal = LinearObjective(loss=Logistic(), features=3, feature_norm=1.0)
    settings = replace(PLAIN, objective=goal, algorithm=algorithm, trust=trust)
    if name in REFUSED:
        with pytest.raises(ParameterError, match="clip must be a number or None for the algorithm"):
            prepare(settings, [1000])
        return
    assert prepare(settings, [1000]).plan.kinds[0][0].measures[0].statistic == "gradient-norms"


class ByClip(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="by-clip"):
    """A method whose rounds are planned for one clip."""

    def steps(self, problem: Problem, rounds: int) -> Kinds:
        return problem.gradients(rounds if problem.radius > 0.1 else rounds - 1, self.batch)


def test_a_method_whose_rounds_go_by_the_clip_is_refused() -> None:
    with pytest.raises(ParameterError, match="'ByClip', got 'auto': its rounds are planned for one clip"):
        prepare(replace(PLAIN, algorithm=ByClip(rounds=5, step_size=0.1)), SIZES)


def test_a_network_needs_its_algorithm_named() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-1, 1, (300, 4)), rng.integers(0, 2, 300)
    options: dict[str, Any] = {"budget": BUDGET, "bounds": (-1, 1), "classes": [0, 1], "random_state": 0}
    with pytest.raises(ParameterError, match="for a network whose algorithm is chosen by a rule"):
        PrivateNeuralClassifier(clip="auto", **options).fit(X, y)
    named = NoisyMinibatchSGD(rounds=3, step_size=0.1)
    model = PrivateNeuralClassifier(clip="auto", algorithm=named, **options).fit(X, y)
    assert model.trained_.clip is not None


# The words for it


@pytest.mark.parametrize("clip", ["often", 0.0, -1.0, math.nan, math.inf, True])
def test_a_clip_is_a_number_or_auto(clip: Any) -> None:
    with pytest.raises(ParameterError, match="clip must be"):
        read_clip(clip)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"quantile": 1.0}, "quantile must be"),
        ({"share": 0.0}, "share must be"),
        ({"scale": 0.0}, "scale must be"),
        ({"low": -1.0}, "low must be"),
        ({"bins": 1}, "bins must be"),
    ],
)
def test_numbers_out_of_range_are_refused(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ParameterError, match=says):
        AutoClip(**options)


def test_bins_that_end_where_they_begin_are_refused() -> None:
    with pytest.raises(ParameterError, match="low must be below high"):
        AutoClip(low=2.0, high=2.0).edges(GOAL)


@pytest.mark.parametrize(
    ("norm", "low", "high", "bins"), [(1.0, 2**-9, 2.0, 21), (math.inf, 2**-20, 2**20, 41)]
)
def test_bins_go_by_public_facts(norm: float, low: float, high: float, bins: int) -> None:
    edges = AutoClip().edges(LinearObjective(loss=Squared(), features=3, feature_norm=norm))
    assert (edges[0], edges[-1], len(edges)) == (pytest.approx(low), high, bins)
    bounded = AutoClip().edges(LinearObjective(loss=Logistic(), features=3, feature_norm=4.0))
    assert (bounded[-1], len(bounded)) == (4.0, 21)


def test_estimators_take_it_and_say_what_was_chosen() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (1000, 3))
    y = X @ [1.0, 0.0, -1.0]
    wide: dict[str, Any] = {"budget": PrivacyBudget(3.0, 1e-5), "bounds": (-50, 50), "random_state": 0}
    auto = FederatedLinearRegression(clip="auto", target_bounds=(-50, 50), **wide).fit(X, y)
    assert 0 < (auto.trained_.clip or 0) < 0.01  # gradients are a thousandth of what the bounds allow
    assert auto.trained_.algorithm == "accelerated"
    assert auto.score(X, y) > FederatedLinearRegression(target_bounds=(-50, 50), **wide).fit(X, y).score(X, y)
    model = FederatedLogisticRegression(clip=AutoClip(quantile=0.5), classes=[0, 1], **wide)
    assert model.fit(X, (y > 0).astype(int)).trained_.clip is not None
    assert (
        FederatedLogisticRegression(classes=[0, 1], **wide).fit(X, (y > 0).astype(int)).trained_.clip is None
    )


# An attack on all that is seen


class Told(NoisyMinibatchSGD, frozen=True, kw_only=True, tag="told"):
    """What `train` does with an automatic clip, as one algorithm."""

    auto: AutoClip

    def run(
        self, ask: Ask, w: Array, *, problem: Problem, rounds: int, prox: Regularizer, follow: Follow
    ) -> Array:
        clip = self.auto.choose(ask, w, problem, default=problem.radius)
        own = replace(problem, radius=clip)
        return super().run(after_histogram(ask), w, problem=own, rounds=rounds, prox=prox, follow=follow)


def ratio(honest: Prepared) -> Score:
    """The log-likelihood ratio of a unit of gradient -1/2 in the last bin, and one of 1/4 in the first."""
    first, rest = (mean.noise_multiplier for mean in honest.means)

    def score(seen: list[Seen]) -> Array:
        histogram = seen[0].means[0] * 4  # of four units
        total = float(histogram[1] - histogram[0]) / (math.sqrt(2) * first) ** 2
        for one in seen[1:]:
            clip = one.radius[0]
            total += -4 * float(one.means[0][0]) * 2 * clip / (2 * clip * rest) ** 2
        return np.array([total])

    return score  # type: ignore[return-value]


def test_the_best_attack_stays_below_the_claim() -> None:
    """One unit is in another bin, and its clipped gradient points the other way."""
    auto = AutoClip(share=0.3, low=0.3, high=0.6, bins=2, scale=0.1)
    goal = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
    settings = Settings(
        objective=goal,
        algorithm=Told(rounds=1, step_size=1e-6, auto=auto),
        trust=TrustModel.LOCAL,
        budget=LOOSE,
        clip=0.03,
        auto_clip=auto,
        noise="discrete-gaussian",
    )

    def unit(length: float, label: float) -> list[Records]:
        X = np.zeros((4, 2))
        X[0, 0] = length
        return [Records.of(X, np.array([label, 0.0, 0.0, 0.0]))]

    stands_and_half_the_noise_is_caught(settings, unit(1.0, 1.0), unit(0.5, 0.0), ratio, runs=450)


def test_beside_a_stated_moment_the_first_round_is_asked_for_and_finds_a_better_clip() -> None:
    """None takes the clip of the moment, which costs nothing and allows for the worst law there is."""
    rng = np.random.default_rng(0)
    X = rng.standard_t(4.5, (4000, 2))
    y = X @ [1.0, -1.0] + rng.standard_t(4.5, 4000) / 2
    options: dict[str, Any] = {"budget": BUDGET, "moment": (2, 20.0), "random_state": 0, "domain": "ball:3"}
    stated = FederatedLinearRegression(**options).fit(X, y)
    auto = FederatedLinearRegression(clip="auto", **options).fit(X, y)
    assert stated.trained_.clip is None
    assert auto.trained_.clip is not None
    assert (stated.trained_.algorithm, auto.trained_.algorithm) == ("accelerated", "minibatch")
    # Over 30 seeds: .015 on average with the automatic clip, and .30.
    assert 3 * max(np.abs(auto.coef_ - [1, -1])) < max(np.abs(stated.coef_ - [1, -1]))
    assert auto.guarantee_.epsilon == stated.guarantee_.epsilon


@pytest.mark.parametrize("unit", [1e-4, 1e6])
def test_beside_a_moment_the_units_of_the_target_do_not_matter(unit: float) -> None:
    """Bins, and the clip that rounds are planned for, lie around the moment that is stated."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(4.5, (2000, 2))
    y = X @ [1.0, -1.0] + rng.standard_t(4.5, 2000) / 2

    def fitted(unit: float) -> FederatedLinearRegression:
        model = FederatedLinearRegression(
            moment=(2, 20.0 * unit), clip="auto", domain=f"ball:{3 * unit}", budget=BUDGET, random_state=0
        )
        return model.fit(X, y * unit)

    one, other = fitted(1.0), fitted(unit)
    assert other.trained_.rounds == one.trained_.rounds
    assert other.trained_.clip == pytest.approx(unit * (one.trained_.clip or 0.0))
    np.testing.assert_allclose(other.coef_ / unit, one.coef_, rtol=1e-6)


def test_bins_around_a_length_are_those_that_are_not_given() -> None:
    found = AutoClip().around(3.0)
    assert (found.low, found.high, found.bins) == (3 / 1024, 3072.0, 41)
    assert AutoClip(low=1.0, bins=5).around(3.0) == AutoClip(low=1.0, high=3072.0, bins=5)
    assert AutoClip(low=1e9).around(3.0).high == 1e9 * 1024
