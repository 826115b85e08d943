"""Sign-SGD by majority vote: its loop by hand, its bound and exact laws, its price, and what it learns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from tacit.audits import audit_training, canary_settings
from tacit.errors import ParameterError
from tacit.federation import Disjoint, Fixed, Full, Poisson, RandomSubset
from tacit.learning import (
    FederatedLogisticRegression,
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    NoisySignSGD,
    Problem,
    Protection,
    Records,
    Settings,
    Squared,
    Trained,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms.minibatch import minibatch_sgd
from tacit.learning.algorithms.sign_vote import _certainty, directions
from tacit.learning.preparation import prepare
from tacit.means import GaussianNoise, Round, SignVoteMean
from tacit.numerics import Array, Zero, clip_rows
from tacit.privacy import (
    Gaussian,
    Neighbours,
    PrivacyBudget,
    Relation,
    Repeat,
    TrustModel,
    calibrate,
    epsilon_of,
)
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM, z_bound

LOCAL, CENTRAL = TrustModel.LOCAL, TrustModel.CENTRAL
D = 4
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
SIZES = [100, 140, 333]
TRUTH = np.array([3.0, -2.0, 1.0, 0.0])


def problem_with(variance: float = 0.0, **changes: Any) -> Problem:
    facts: dict[str, Any] = {"smoothness": 1.0, "radius": 10.0, "diameter": 2.0, "dim": 9}
    return Problem(**{**facts, "variance": variance, **changes})


def central(multiplier: float) -> Protection:
    return Protection(trust=CENTRAL, noise=GaussianNoise, multiplier=multiplier)


def settings_with(
    algorithm: NoisySignSGD | NoisyMinibatchSGD, trust: TrustModel | None = LOCAL, **changes: Any
) -> Settings:
    facts: dict[str, Any] = {"budget": None if trust is None else BUDGET, "diameter": 20.0}
    return Settings(**{"objective": OBJECTIVE, "algorithm": algorithm, "trust": trust, **facts, **changes})


def data_of(sizes: Sequence[int], *, seed: int = 1) -> list[Records]:
    """Silos of one population."""
    rng = simulated(seed, "data")
    silos = []
    for n in sizes:
        X = clip_rows(rng.standard_normal((n, D)), 1.0)
        silos.append(Records.of(X, (X @ TRUTH + 0.5 * rng.standard_normal(n) > 0).astype(np.float64)))
    return silos


def run(silos: Sequence[Records], settings: Settings) -> Trained:
    made = make_silos(silos, settings.objective, trusts_server=settings.trusts_server, seed=1)
    return train(in_process(made, seed=1), settings)


def loss(w: Array, silos: Sequence[Records]) -> float:
    return float(np.mean(np.concatenate([OBJECTIVE.value(w, one) for one in silos])))


# The loop


class Halving:
    """A regulariser that halves, and remembers the steps."""

    strong_convexity = 0.0

    def __init__(self) -> None:
        self.steps: list[float] = []

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        self.steps.append(eta)
        return np.asarray(z) / 2

    def value(self, w: npt.ArrayLike) -> float:
        return 0.0


def test_a_step_has_one_length_along_the_signs_and_ties_stay() -> None:
    answers = [np.array([5.0, -1e-9, 0.0, 2.0]), np.array([-1.0, -1.0, 0.0, 0.0])]
    seen: list[tuple[int, list[float]]] = []

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        assert radius == (3.0,)
        seen.append((step, at["w"].tolist()))
        return (answers[step],)

    prox = Halving()
    found = minibatch_sgd(
        directions(ask),
        np.zeros(4),
        rounds=2,
        step_size=0.8,
        radius=3.0,
        prox=prox,
        log_weights=iter([0.0, 0.0]),
        follow=lambda r, w: seen.append((10 + r, w.tolist())),
    )
    first, second = [-0.2, 0.2, 0.0, -0.2], [0.1, 0.3, 0.0, -0.1]
    assert [number for number, _ in seen] == [0, 10, 1, 11]
    for (_, w), expected in zip(seen, [[0.0] * 4, first, first, second], strict=True):
        np.testing.assert_allclose(w, expected, atol=1e-15)
    assert prox.steps == [0.8, 0.8]
    np.testing.assert_allclose(found, np.array(first) / 2)


@pytest.mark.parametrize(("average", "kept"), [(1.0, 10), (0.5, 5), (1e-9, 1)])
def test_the_share_of_iterates_that_are_averaged(average: float, kept: int) -> None:
    w = NoisySignSGD(step_size=0.3, average=average).run(
        lambda _step, _at, _radius: (np.ones(9),),
        np.zeros(9),
        problem=problem_with(),
        rounds=10,
        prox=Zero(),
        follow=lambda _r, _w: None,
    )
    np.testing.assert_allclose(w, -0.1 * np.mean(np.arange(10)[-kept:]))


# The bound


def test_what_noise_costs_a_majority_is_bounded_as_the_proof_says() -> None:
    worst = 0.0
    for silos in (1, 2, 3, 4, 5, 10, 51, 200):
        for ratio in np.geomspace(1e-3, 10, 60):  # |g| / sigma
            up = stats.norm.cdf(ratio)
            wrong = stats.binom.cdf((silos - 1) // 2, silos, up)  # fewer than half are right
            tied = stats.binom.pmf(silos // 2, silos, up) if silos % 2 == 0 else 0.0
            cost = ratio * (2 * wrong + tied)  # |g| - E g s, in sigmas
            assert cost <= math.sqrt(math.pi / 2 / silos)
            worst = max(worst, cost * math.sqrt(silos))
    assert worst > 0.2 * math.sqrt(math.pi / 2)  # and it is not far off


def test_the_bound_has_the_closed_form_of_its_docstring() -> None:
    alpha, rounds = 0.6 / 3, 50
    # One vote of nine coordinates, of which noise on the votes leaves half a certainty.
    half = central(1 / (2 * 3 * stats.norm.ppf(0.75)))
    problem = problem_with(0.25, protection=half)
    expected = (2 + alpha * rounds) * (
        2 / (alpha * rounds) + alpha * 9 / 2 + math.sqrt(9 * math.pi / 2) * 0.5
    )
    algorithm = NoisySignSGD(step_size=0.6)
    assert algorithm.error_bound(problem, rounds) == pytest.approx(expected / 0.5)
    # F(w_0) - F* is at most L D, whichever bound on the slope is known.
    for known in ({"radius": 0.1}, {"lipschitz": 0.1}):
        smaller = algorithm.error_bound(problem_with(0.25, protection=half, **known), rounds)
        assert smaller == pytest.approx((expected - (2 + alpha * rounds) * 1.8 / (alpha * rounds)) / 0.5)
    assert algorithm.error_bound(problem_with(smoothness=math.inf), rounds) == math.inf
    assert math.isinf(algorithm.error_bound(problem_with(protection=central(1e308)), rounds))


@pytest.mark.parametrize("variance", [0.0, 0.3, 100.0])
def test_the_default_step_minimises_the_bound(variance: float) -> None:
    problem = problem_with(variance)
    best = NoisySignSGD().error_bound(problem, 40)
    others = [NoisySignSGD(step_size=float(s)).error_bound(problem, 40) for s in np.geomspace(1e-3, 10, 2000)]
    assert best <= min(others) * (1 + 1e-12)
    assert best >= min(others) * (1 - 1e-4)


@pytest.mark.parametrize("sigma", [0.0, 0.2, 2.0])
@pytest.mark.parametrize("curvature", [0.05, 1.0])
def test_the_bound_holds_where_silos_are_alike(sigma: float, curvature: float) -> None:
    silos, rounds, dim = 5, 30, 9
    problem = problem_with(dim * sigma**2 / silos)
    rng, start = simulated(2, "silos"), np.full(dim, 2 / 3)  # at distance D = 2 of the optimum 0
    gaps = []
    for _ in range(20):

        def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
            sent = np.sign(curvature * at["w"] + sigma * rng.standard_normal((silos, dim)))
            return (np.sign(sent.sum(axis=0)),)

        w = NoisySignSGD(average=1.0).run(
            ask, start, problem=problem, rounds=rounds, prox=Zero(), follow=lambda _r, _w: None
        )
        gaps.append(curvature * float(w @ w) / 2)
    assert np.mean(gaps) <= NoisySignSGD(average=1.0).error_bound(problem, rounds)
    assert np.mean(gaps) < curvature * 2.0 or sigma == 2.0  # it moved towards the optimum


def test_unknown_smoothness_needs_a_step() -> None:
    unknown = problem_with(smoothness=math.inf)
    with pytest.raises(ParameterError, match="the objective's smoothness is unknown"):
        NoisySignSGD().check(unknown, 10)
    NoisySignSGD(step_size=0.1).check(unknown, 10)


# The price


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ZERO_OUT])
@pytest.mark.parametrize("batch", [Full(), Fixed(rate=0.1), Disjoint(size=4), Poisson(0.1)], ids=str)
def test_local_votes_need_the_noise_that_sums_need(batch: Any, relation: Relation) -> None:
    fits = isinstance(batch, Full | Disjoint) or isinstance(batch, Fixed) == (
        relation is Relation.REPLACE_ONE
    )
    if not fits:
        pytest.skip("no price is known for such samples")
    votes, sums = (
        prepare(settings_with(kind(rounds=12, batch=batch, step_size=0.1), relation=relation), SIZES)
        for kind in (NoisySignSGD, NoisyMinibatchSGD)
    )
    assert votes.noise_multiplier == sums.noise_multiplier
    assert votes.problem.variance == sums.problem.variance
    assert _certainty(votes.problem) == 1.0
    estimator = votes.plan.kinds[0][0].measures[0].estimator
    assert isinstance(estimator, SignVoteMean)
    assert estimator.neighbours == Neighbours(relation)


@pytest.mark.parametrize("relation", [Relation.REPLACE_ONE, Relation.ZERO_OUT])
@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
def test_central_votes_have_the_noise_that_calibrate_finds(noise: str, relation: Relation) -> None:
    settings = settings_with(NoisySignSGD(rounds=12, step_size=0.1), CENTRAL, relation=relation, noise=noise)
    prepared = prepare(settings, SIZES)
    ((step, rounds),) = prepared.plan.kinds
    mean = step.measures[0].estimator
    assert isinstance(mean, SignVoteMean)
    assert (mean.trust, mean.sensitivity, rounds) == (CENTRAL, 2, 12)
    price = epsilon_of(prepared.plan.event(SIZES, CENTRAL), BUDGET.delta)
    assert BUDGET.epsilon * (1 - 1e-6) <= price <= BUDGET.epsilon
    if noise == "gaussian":
        least = calibrate(lambda z: Repeat(Gaussian(z, Neighbours(relation)), 12), BUDGET)
        assert prepared.noise_multiplier == pytest.approx(least, rel=1e-9)


def test_noise_on_votes_is_certainty_and_not_variance() -> None:
    sizes = [50] * 20
    prepared = prepare(settings_with(NoisySignSGD(rounds=5, step_size=0.1), CENTRAL), sizes)
    assert prepared.problem.variance == 0.0
    std = 2 * prepared.noise_multiplier * math.sqrt(D)
    up = stats.norm.cdf(20 / std)
    assert _certainty(prepared.problem) == pytest.approx(2 * up - 1)
    # That is what a server's noise does to a unanimous vote.
    rows, rng, trials = np.ones((20, D)), simulated(3, "votes"), 4000
    ((step, _),) = prepared.plan.kinds
    mean = step.measures[0].estimator
    this_round = Round(n=1000, radius=1.0, parties=20)
    signs = np.array([np.sign(mean.estimate(rows, this_round, rng=rng)) for _ in range(trials)])
    tolerance = z_bound(1) / math.sqrt(trials * D)
    assert abs(signs.mean() - _certainty(prepared.problem)) < tolerance
    assert 0.1 < _certainty(prepared.problem) < 0.95
    fewer = settings_with(NoisySignSGD(rounds=5, step_size=0.1), CENTRAL, participation=RandomSubset(5))
    assert _certainty(prepare(fewer, sizes).problem) < _certainty(prepared.problem) / 2


def test_samples_are_in_the_variance_of_votes_too() -> None:
    settings = settings_with(NoisySignSGD(rounds=5, step_size=0.1, batch=Fixed(rate=0.2)), CENTRAL)
    variance = prepare(settings, [50, 500]).problem.variance
    # One vote each: the small silo's error is not weighed down by its size.
    assert variance == pytest.approx((40 / 49 / 10 + 400 / 499 / 100) / 4)


@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_an_attack_on_whole_runs_stays_below_the_claim_and_catches_half_the_noise(trust: TrustModel) -> None:
    plain = canary_settings(PrivacyBudget(1.0, 0.3), rounds=2, dim=1, trust=trust)
    settings = Settings(
        objective=plain.objective,
        algorithm=NoisySignSGD(rounds=2, step_size=0.1),
        trust=trust,
        budget=plain.budget,
        clip=1.0,
    )
    found = [
        audit_training(
            settings, noise_factor=factor, runs=800, confidence=1 - FALSE_ALARM, rng=simulated(4, "audit")
        )
        for factor in (1.0, 0.5)
    ]
    assert found[0].claimed_epsilon == pytest.approx(1.0, abs=1e-3)
    assert [one.refuted for one in found] == [False, True]


# What it learns


def test_without_noise_it_reaches_the_optimum_of_silos_that_are_alike() -> None:
    silos = data_of([400, 400, 400])
    best = run(
        silos, settings_with(NoisyMinibatchSGD(rounds=400, step_size=4.0, average=1e-9), None, clip=9.0)
    )
    found = run(silos, settings_with(NoisySignSGD(rounds=400, step_size=0.1), None, clip=9.0))
    zero, least = loss(np.zeros(D), silos), loss(best.w, silos)
    assert loss(found.w, silos) - least < 0.03 * (zero - least)


def test_rounds_and_steps_choose_themselves() -> None:
    silos = data_of([400, 400, 400])
    plain, private = (run(silos, settings_with(NoisySignSGD(), trust, clip=0.3)) for trust in (None, LOCAL))
    for found in (plain, private):
        assert loss(found.w, silos) < 0.8 * loss(np.zeros(D), silos)
        # d signs, a header and an envelope, whatever the noise.
        assert found.traffic.bits_up[0] <= found.rounds * 8 * 32
    assert private.guarantee.epsilon <= BUDGET.epsilon


@pytest.mark.parametrize(("weights", "direction"), [("records", 1.0), ("silos", -1.0), ((1, 1, 3), 1.0)])
def test_silos_vote_by_their_weights(weights: Any, direction: float) -> None:
    objective = LinearObjective(loss=Squared(), features=1, feature_norm=1.0)
    sizes, labels = (10, 10, 50), (-1.0, -1.0, 1.0)
    silos = [Records.of(np.ones((n, 1)), np.full(n, y)) for n, y in zip(sizes, labels, strict=True)]
    algorithm = NoisySignSGD(rounds=2, step_size=0.25, average=1e-9)
    settings = settings_with(algorithm, None, objective=objective, weights=weights, clip=5.0)
    assert run(silos, settings).w == pytest.approx([0.25 * direction])


def test_votes_that_balance_are_ties_and_subsets_are_majorities() -> None:
    objective = LinearObjective(loss=Squared(), features=1, feature_norm=1.0)
    silos = [Records.of(np.ones((9, 1)), np.full(9, y)) for y in (-1.0, -1.0, 1.0)]
    algorithm = NoisySignSGD(rounds=3, step_size=0.25, average=1e-9)
    for weights in ((0.1, 0.2, 0.3), (1.0, 1.0, 2.0), (1 / 3, 1 / 7, 1 / 3 + 1 / 7)):
        settings = settings_with(algorithm, None, objective=objective, weights=weights, clip=5.0)
        assert run(silos, settings).w == [0.0]
    seen: list[float] = []
    settings = settings_with(
        algorithm, None, objective=objective, clip=5.0, participation=RandomSubset(1), weights="records"
    )
    made = make_silos(
        [Records.of(np.ones((n, 1)), np.ones(n)) for n in (1, 5, 30)], objective, trusts_server=True, seed=0
    )
    train(in_process(made, seed=1), settings, follow=lambda _round, w: seen.append(float(w[0])))
    assert np.abs(np.diff([0.0, *seen])) == pytest.approx([0.25] * 3)


def test_one_round_would_return_the_start() -> None:
    with pytest.raises(ParameterError, match="rounds must be at least 2"):
        run(data_of([20]), settings_with(NoisySignSGD(rounds=1, step_size=0.1), None))


def test_under_central_trust_every_silo_has_one_vote() -> None:
    objective = LinearObjective(loss=Squared(), features=1, feature_norm=1.0)
    silos = [Records.of(np.ones((n, 1)), np.full(n, y)) for n, y in ((10, -1.0), (10, -1.0), (50, 1.0))]
    algorithm = NoisySignSGD(rounds=2, step_size=0.25, average=1e-9)
    budget = PrivacyBudget(500.0, 0.5)  # next to no noise
    settings = settings_with(algorithm, CENTRAL, objective=objective, clip=5.0, budget=budget)
    assert run(silos, settings).w == pytest.approx([-0.25])


def test_one_wild_silo_does_not_matter() -> None:
    silos = data_of([200] * 5)
    wild = [*silos[:4], Records.of(silos[4].X, 1 - silos[4].y)]
    settings = settings_with(NoisySignSGD(rounds=200, step_size=0.1), None, clip=9.0)
    assert loss(run(wild, settings).w, silos[:4]) < loss(run(silos, settings).w, silos[:4]) + 0.02


@pytest.mark.parametrize(
    "changes",
    [
        {"relation": Relation.ZERO_OUT},
        {"batch": Fixed(rate=0.25)},
        {"batch": Poisson(0.25), "relation": Relation.ZERO_OUT},
        {"batch": Disjoint(size=20)},
        {"participation": RandomSubset(2)},
        {"noise": "discrete-gaussian"},
    ],
    ids=str,
)
@pytest.mark.parametrize("trust", [LOCAL, CENTRAL])
def test_whole_runs_keep_to_the_budget(trust: TrustModel, changes: dict[str, Any]) -> None:
    batch = changes.get("batch", Full())
    rest = {name: value for name, value in changes.items() if name != "batch"}
    algorithm = NoisySignSGD(rounds=6, batch=batch)
    found = run(data_of([120, 120, 150]), settings_with(algorithm, trust, clip=0.3, **rest))
    assert found.guarantee.epsilon <= BUDGET.epsilon
    assert 0 < np.linalg.norm(found.w) < 1e3


def test_the_classifier_takes_the_name() -> None:
    rng = simulated(6, "classifier")
    X = rng.uniform(-1, 1, (900, 4))
    y = (X @ TRUTH > 0).astype(int)
    model = FederatedLogisticRegression(
        algorithm="sign-vote", budget=BUDGET, bounds=(-1, 1), classes=[0, 1], random_state=0
    ).fit(X, y, silos=np.arange(900) % 3)
    assert model.score(X, y) > 0.85
    assert model.guarantee_.epsilon <= 2.0
