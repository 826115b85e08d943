"""DP-FTRL: its loop by hand, plan, price and bound, what correlated noise is worth, attacks on whole runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import msgspec
import numpy as np
import pytest
from scipy.linalg import toeplitz

from tacit.errors import ParameterError
from tacit.federation import Batch, CorrelatedStep, Disjoint, Fixed, Full, Poisson
from tacit.jobs import Job, JobConfig
from tacit.learning import (
    FederatedLogisticRegression,
    LinearObjective,
    Logistic,
    NoisyFTRL,
    Problem,
    Records,
    Settings,
    Squared,
    in_process,
    make_algorithm,
    make_silos,
    train,
)
from tacit.learning.preparation import prepare
from tacit.ledger import create_ledgers
from tacit.numerics import (
    Array,
    IntArray,
    SquaredL2,
    Zero,
    clip_rows,
    participation_norm,
    prefix_sum_errors,
    square_root_column,
)
from tacit.privacy import Gaussian, Neighbours, PrivacyBudget, Relation, TrustModel, calibrate
from tests.learning.attacks import parted

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
OBJECTIVE = LinearObjective(loss=Logistic(), features=4, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
SIZES = [100, 140, 333]


def problem_with(variance: float = 0.0, **changes: Any) -> Problem:
    facts: dict[str, Any] = {"smoothness": 1.0, "radius": 0.5, "diameter": 2.0, "dim": 2, "sizes": (100,)}
    return Problem(variance=variance, **(facts | changes))


def settings_with(algorithm: NoisyFTRL, **changes: Any) -> Settings:
    facts: dict[str, Any] = {"trust": LOCAL, "budget": BUDGET, "noise": "gaussian"}
    return Settings(objective=OBJECTIVE, algorithm=algorithm, **(facts | changes))


class Asked:
    """Answers with given gradients, and writes the points down."""

    def __init__(self, gradients: Array) -> None:
        self.gradients, self.points = gradients, [np.zeros(0)][:0]

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        self.points.append(at["w"])
        return (self.gradients[step],)


def walked(algorithm: NoisyFTRL, gradients: Array, prox: Any = None) -> tuple[Array, list[Array]]:
    """The result, and all points that were asked at."""
    ask = Asked(gradients)
    w = algorithm.run(
        ask,
        np.ones(2),
        problem=problem_with(),
        rounds=len(gradients),
        prox=Zero() if prox is None else prox,
        follow=lambda _r, _w: None,
    )
    return w, ask.points


# --- the loop


def test_it_goes_along_the_sum_of_all_gradients() -> None:
    gradients = np.random.default_rng(0).normal(size=(6, 2))
    w, points = walked(NoisyFTRL(step_size=0.3, average=0.5), gradients)
    expected = 1 - 0.3 * np.concatenate([np.zeros((1, 2)), np.cumsum(gradients, axis=0)[:-1]])
    np.testing.assert_allclose(points, expected)
    np.testing.assert_allclose(w, expected[3:].mean(axis=0))


def test_momentum_keeps_the_length_of_a_direction() -> None:
    _, points = walked(NoisyFTRL(step_size=0.3, momentum=0.5), np.ones((4, 2)))
    np.testing.assert_allclose(points[3], 1 - 0.3 * (0.5 + 0.75 + 0.875) * np.ones(2))
    long = walked(NoisyFTRL(step_size=0.3, momentum=0.5), np.ones((40, 2)))[1]
    np.testing.assert_allclose(long[39] - long[38], -0.3 * np.ones(2))


def test_a_regulariser_acts_on_the_sum_of_all_rounds() -> None:
    gradients, prox = np.random.default_rng(1).normal(size=(3, 2)), SquaredL2(0.7)
    _, points = walked(NoisyFTRL(step_size=0.3), gradients, prox)
    np.testing.assert_allclose(points[2], prox(0.6, 1 - 0.3 * gradients[:2].sum(axis=0)))


# --- the plan and its price


def kind_of(algorithm: NoisyFTRL, sizes: list[int], **changes: Any) -> tuple[CorrelatedStep, int]:
    ((step, rounds),) = prepare(settings_with(algorithm, **changes), sizes).plan.kinds
    assert isinstance(step, CorrelatedStep)
    return step, rounds


def test_noise_reaches_as_far_as_a_pass_in_every_silo() -> None:
    step, rounds = kind_of(NoisyFTRL(), SIZES)
    assert (rounds, step.passes, step.bands) == (60, 6, 10)
    step, rounds = kind_of(NoisyFTRL(batch=Disjoint(size=16), passes=2), SIZES)
    assert (rounds, step.passes, step.bands) == (12, 2, 6)  # the smallest silo has six batches


def test_a_share_may_leave_larger_silos_with_fewer_batches() -> None:
    step, rounds = kind_of(NoisyFTRL(passes=1), [19, 20, 100])  # 19, 10 and 10 batches
    assert (rounds, step.bands) == (10, 10)


def test_rounds_that_are_given_make_the_passes() -> None:
    for rounds, passes in ((160, 16), (60, 6), (25, 3), (4, 1)):
        step, asked = kind_of(NoisyFTRL(rounds=rounds), SIZES)
        assert (asked, step.passes, step.bands) == (rounds, passes, min(10, rounds))
    assert kind_of(NoisyFTRL(rounds=25, bands=3), SIZES)[0].bands == 3


def test_full_batches_have_independent_noise() -> None:
    step, rounds = kind_of(NoisyFTRL(batch=Full(), rounds=30), SIZES)
    assert (rounds, step.passes, step.bands) == (30, 30, 1)
    assert kind_of(NoisyFTRL(batch=Full()), SIZES)[1] in (10, 20, 40, 80, 160, 320)


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
@pytest.mark.parametrize(
    "algorithm", [NoisyFTRL(), NoisyFTRL(bands=1), NoisyFTRL(passes=1), NoisyFTRL(bands=40)]
)
def test_its_noise_is_that_of_one_release_times_the_norm(trust: TrustModel, algorithm: NoisyFTRL) -> None:
    prepared = prepare(settings_with(algorithm, trust=trust), SIZES)
    bands = algorithm.bands or 10
    norm = participation_norm(square_root_column(bands), separation=10, rounds=prepared.rounds)
    np.testing.assert_allclose(prepared.noise_multiplier, calibrate(Gaussian, BUDGET) * norm, rtol=1e-6)


def test_a_pass_more_costs_less_than_its_share() -> None:
    one, two = (prepare(settings_with(NoisyFTRL(passes=k)), SIZES).noise_multiplier for k in (1, 2))
    np.testing.assert_allclose(two, math.sqrt(2) * one, rtol=1e-6)


@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_a_run_keeps_its_budget(trust: TrustModel, noise: str) -> None:
    rng = np.random.default_rng(0)
    records = [
        Records.of(clip_rows(rng.normal(size=(n, 4)), 1.0), rng.integers(2, size=n) * 1.0) for n in SIZES
    ]
    silos = make_silos(records, OBJECTIVE, trusts_server=True, seed=0)
    found = train(in_process(silos, seed=0), settings_with(NoisyFTRL(), trust=trust, noise=noise))
    assert 0.999 * BUDGET.epsilon < found.guarantee.epsilon <= BUDGET.epsilon
    assert found.algorithm == "ftrl"


# --- the bound


def test_the_bound_is_that_of_regret_with_noisy_sums() -> None:
    algorithm, problem = NoisyFTRL(step_size=0.2), problem_with(4.0)
    rms, _ = prefix_sum_errors(square_root_column(10), 20)
    expected = 4 / (2 * 0.2 * 20) + 0.2 * (0.5**2 / 2 + 0.5 * 2 * rms)
    np.testing.assert_allclose(algorithm.error_bound(problem, 20), expected)


def test_no_step_has_a_smaller_bound() -> None:
    problem = problem_with(4.0, smoothness=math.inf)
    best = NoisyFTRL().error_bound(problem, 60)
    for step in (0.001, 0.01, 0.1, 1.0):
        assert NoisyFTRL(step_size=step).error_bound(problem, 60) >= best
    steep = problem_with(0.0, smoothness=100.0)
    assert NoisyFTRL().error_bound(steep, 60) == NoisyFTRL(step_size=0.04).error_bound(steep, 60)


def test_correlated_noise_has_the_smaller_bound_at_the_same_price() -> None:
    bounds = []
    for bands in (1, 10):
        prepared = prepare(settings_with(NoisyFTRL(bands=bands)), SIZES)
        bounds.append(NoisyFTRL(bands=bands).error_bound(prepared.problem, 60))
    assert bounds[1] < 0.8 * bounds[0]


# --- what it is worth


def test_it_learns_more_than_independent_noise_on_the_same_batches() -> None:
    rng = np.random.default_rng(3)
    X = clip_rows(rng.normal(size=(4000, 4)), 1.0)
    y = (X @ np.array([3.0, -2.0, 1.0, 0.0]) > 0).astype(np.float64)
    silos = [Records.of(X[k::4], y[k::4]) for k in range(4)]

    def loss(seed: int, bands: int, budget: PrivacyBudget | None) -> float:
        federation = in_process(
            make_silos(silos, OBJECTIVE, trusts_server=budget is None, seed=seed), seed=seed
        )
        algorithm = NoisyFTRL(bands=bands, step_size=4.0)
        trust = None if budget is None else LOCAL
        w = train(federation, settings_with(algorithm, clip=0.5, trust=trust, budget=budget)).w
        return float(np.logaddexp(0, -(2 * y - 1) * (X @ w)).mean())

    exact = loss(0, 10, None)
    correlated, independent = (
        np.mean([loss(seed, bands, PrivacyBudget(0.5, 1e-5)) - exact for seed in range(6)])
        for bands in (10, 1)
    )
    assert correlated < 0.6 * independent


# --- doors


def test_a_number_is_a_batch_that_nobody_meets_twice() -> None:
    assert make_algorithm("ftrl", batch=32) == NoisyFTRL(batch=Disjoint(size=32))
    assert make_algorithm("ftrl", batch=0.25) == NoisyFTRL(batch=Disjoint(rate=0.25))
    assert make_algorithm("ftrl", batch="full") == NoisyFTRL(batch=Full())
    assert JobConfig(algorithm="ftrl", batch=32, sampling="disjoint").chosen == NoisyFTRL(
        batch=Disjoint(size=32)
    )


@pytest.mark.parametrize("batch", [Fixed(size=3), Poisson(rate=0.1)])
def test_samples_are_refused(batch: Batch) -> None:
    with pytest.raises(ParameterError, match="batch must be a Full or Disjoint"):
        NoisyFTRL(batch=batch)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"batch must be .*disjoint.*got Poisson"):
        _ = JobConfig(algorithm="ftrl", batch=3, sampling="poisson").chosen


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"bands": 0}, "bands must be"),
        ({"passes": 0}, "passes must be"),
        ({"momentum": 1.0}, r"momentum must be in \[0, 1\)"),
        ({"average": 0.0}, r"average must be in \(0, 1\]"),
        ({"step_size": 0.0}, "step_size must be a finite number > 0"),
    ],
)
def test_values_out_of_range_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        NoisyFTRL(**change)


def test_more_bands_than_rounds_are_refused() -> None:
    with pytest.raises(ParameterError, match="bands must be at most the 20 rounds, got 30"):
        prepare(settings_with(NoisyFTRL(rounds=20, bands=30)), SIZES)


def test_passes_and_rounds_exclude_each_other() -> None:
    with pytest.raises(ParameterError, match="passes must be left out where rounds are given, got 2"):
        NoisyFTRL(rounds=61, passes=2)


def test_an_estimator_with_a_ledger_pays_for_it_once(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).clip(-1, 1)
    y = (X[:, 0] > 0).astype(int)
    silos = np.repeat(["a", "b"], 150)
    create_ledgers(tmp_path / "l", ["a", "b"], limit=PrivacyBudget(5.0, 1e-4), neighbours=Neighbours())
    model = FederatedLogisticRegression(
        algorithm=NoisyFTRL(passes=2),
        trust="local",
        budget=PrivacyBudget(3.0, 1e-5),
        bounds=(-1, 1),
        classes=[0, 1],
        ledger=tmp_path / "l",
    )
    model.fit(X, y, silos=silos)
    assert len(model.guarantees_) == 2
    assert max(g.epsilon for g in model.guarantees_) <= 3.0


def test_a_job_dry_runs_it() -> None:
    job = Job(JobConfig(algorithm="ftrl", trust="local", epsilon=3.0, delta=1e-5, seed=0))
    (planned,) = job.preview()
    assert planned.algorithm == "ftrl"
    assert planned.rounds == 60
    assert planned.means[0].noise_multiplier > 0


# --- an attack on whole runs


@dataclass(frozen=True)
class Watched(Records):
    """Records that write down whom each round took: the price holds against those who know."""

    taken: list[bool] = field(default_factory=list, compare=False)

    def take(self, index: IntArray) -> Self:
        if len(index):  # else it is asked what a row looks like
            self.taken.append(0 in index)
        return type(self)(self.X.take(index, axis=0), self.y.take(index), self.norms.take(index))


@pytest.mark.parametrize(
    ("trust", "noise", "relation"),
    [
        (LOCAL, "discrete-gaussian", Relation.REPLACE_ONE),
        (CENTRAL, "gaussian", Relation.ZERO_OUT),
        (CENTRAL, "gaussian", Relation.REPLACE_ONE),
    ],
)
@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_a_whole_run_stands_and_half_the_noise_is_caught(
    trust: TrustModel, noise: str, relation: Relation, factor: float
) -> None:
    """A record as long as can be, met in two of four rounds; the score is the likelihood ratio of all."""
    loose, algorithm = PrivacyBudget(1.0, 0.3), NoisyFTRL(batch=Disjoint(size=1), passes=2)
    goal = LinearObjective(loss=Squared(), features=1, feature_norm=1.0)
    settings = settings_with(algorithm, trust=trust, noise=noise, relation=relation, budget=loose, clip=1.0)
    honest = prepare(replace(settings, objective=goal), [2])
    ((step, rounds),) = honest.plan.kinds
    assert isinstance(step, CorrelatedStep)
    protection = replace(honest.problem.protection, multiplier=factor * honest.noise_multiplier)
    steps = algorithm.steps(replace(honest.problem, protection=protection), rounds)
    plan = msgspec.structs.replace(honest.plan, steps=steps)
    mixed = toeplitz(np.pad(square_root_column(step.bands), (0, rounds - step.bands)), np.zeros(rounds))
    rows = {True: (1.0, -1e9), False: (1.0, 1e9) if relation is Relation.REPLACE_ONE else (0.0, 0.0)}

    def once(present: bool, seed: int) -> float:
        x, y = rows[present]
        units = Watched(np.array([[x], [0.0]]), np.array([y, 0.0]), np.array([x, 0.0]))
        (silo,) = make_silos([units], goal, trusts_server=True, seed=seed)
        asked, given = in_process([silo], seed=seed).open(plan), []

        def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
            means = asked(step, at, radius)
            given.append(float(means[0][0]))
            return means

        algorithm.run(
            ask, np.zeros(1), problem=honest.problem, rounds=rounds, prox=Zero(), follow=lambda _r, _w: None
        )
        moved = np.array(units.taken, dtype=float)
        return float((mixed @ moved) @ (mixed @ np.array(given)))

    def run(present: bool, size: int, rng: np.random.Generator) -> Array:
        return np.array([once(present, int(seed)) for seed in rng.integers(0, 2**62, size)])

    claim = honest.plan.event([2], trust), loose.delta
    found = parted(run, claim, runs=220)
    assert found.claimed_epsilon == pytest.approx(1.0, abs=1e-3)
    assert found.refuted == (factor < 1)
