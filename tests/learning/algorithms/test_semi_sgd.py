"""SGD on private and public gradients: its law, its limits, its price, what a record moves, its attack."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import Disjoint, Fixed, Full, Plan, Poisson
from tacit.learning import (
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    Problem,
    Protection,
    PublicObjective,
    Records,
    SemiLocalSGD,
    SemiPrivateSGD,
    Settings,
    Squared,
    in_process,
    make_silos,
    train,
)
from tacit.learning.kinks import Absolute
from tacit.learning.networks import NetworkObjective
from tacit.learning.preparation import prepare
from tacit.learning.training import silos_for
from tacit.means import GaussianNoise
from tacit.numerics import Array, L2Ball, Zero
from tacit.privacy import Gaussian, Neighbours, PrivacyBudget, Relation, Repeat, TrustModel, epsilon_of
from tests.learning.attacks import LOOSE, Canary, canaries, stands_and_half_the_noise_is_caught

D = 6
OBJECTIVE = LinearObjective(loss=Squared(), features=D)
BUDGET = PrivacyBudget(1.0, 1e-5)
PLAIN: dict[str, Any] = {"metric": "plain", "step_size": 0.1}
PAPER: dict[str, Any] = {"metric": "plain", "start": "given", "public_norm": "raw", "step_size": 1.0}
"""One step is the gradient itself."""


def records(n: int, *, d: int = D, seed: int = 0) -> Records:
    """Standard normal features, outcomes of the same parameters in all calls with noise of deviation 1/2."""
    rng, truth = np.random.default_rng(seed), np.random.default_rng(99).standard_normal(d)
    X = rng.standard_normal((n, d))
    return Records.of(X, X @ truth + 0.5 * rng.standard_normal(n))


def problem(public: Records, **changes: Any) -> Problem:
    facts: dict[str, Any] = {
        "smoothness": math.inf, "radius": 2.0, "diameter": 1.0, "dim": D, "variance": 0.0, "features": D,
        "loss": Squared(), "public": PublicObjective(OBJECTIVE, public), **changes,
    }  # fmt: skip
    return Problem(**facts)


def settings(public: Records | None, **changes: Any) -> Settings:
    d = changes.pop("d", D)
    objective = LinearObjective(loss=Squared(), features=d)
    facts: dict[str, Any] = {
        "objective": objective, "algorithm": SemiPrivateSGD(), "trust": TrustModel.CENTRAL,
        "budget": BUDGET, "clip": 1.0,
        "public": None if public is None else PublicObjective(objective, public), **changes,
    }  # fmt: skip
    return Settings(**facts)


def trained(private: Records, chosen: Settings, seed: int = 1) -> Array:
    silos = make_silos([private], chosen.objective, trusts_server=True, seed=seed)
    return train(in_process(silos, seed=seed), chosen).w


def one_step(algorithm: SemiPrivateSGD, ask: Any, public: Records, **facts: Any) -> Array:
    """Return where the first step leads from ones."""
    points: list[Array] = []
    algorithm.run(
        ask, np.ones(D), problem=problem(public, **facts), rounds=1, prox=Zero(),
        follow=lambda _r, w: points.append(w),
    )  # fmt: skip
    return points[0]


# Its law


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_a_step_is_unbiased_and_has_the_variance_of_the_formula(weight: float) -> None:
    """E |g - grad F|^2 = a^2 (d s^2 + V^2 / k_priv) + (1 - a)^2 V^2 / k_pub on a quadratic, 4000 steps."""
    rng, everyone, s = np.random.default_rng(0), records(4000), 0.3
    w = np.ones(D)
    rows = OBJECTIVE.gradients(w, everyone)
    whole, spread = rows.mean(axis=0), float(rows.var(axis=0).sum())
    algorithm = SemiPrivateSGD(weight=weight, **PAPER)

    def ask(_step: int, _at: Mapping[str, Array], _radius: tuple[float, ...]) -> tuple[Array]:
        return (rows[rng.integers(4000, size=8)].mean(axis=0) + s * rng.standard_normal(D),)

    found = []
    for _ in range(4000):
        public = everyone.take(rng.integers(4000, size=5))
        found.append(w - one_step(algorithm, ask, public) - whole)
    errors = np.array(found)
    formula = weight**2 * (D * s**2 + spread / 8) + (1 - weight) ** 2 * spread / 5
    squares = np.square(errors).sum(axis=1)
    # Five standard errors of either mean.
    assert abs(squares.mean() - formula) < 5 * squares.std() / math.sqrt(4000)
    assert np.linalg.norm(errors.mean(axis=0)) < 5 * math.sqrt(formula / 4000)


def test_without_noise_it_is_gradient_descent_on_all_records() -> None:
    private, public = records(30), records(10, seed=1)
    both = Records.of(np.vstack([private.X, public.X]), np.concatenate([private.y, public.y]))
    facts: dict[str, Any] = {"trust": None, "budget": None, "clip": 1e9}
    algorithm = SemiPrivateSGD(rounds=20, **PAPER | {"step_size": 0.1})
    ours = trained(private, settings(public, algorithm=algorithm, **facts))
    theirs = trained(both, settings(None, algorithm=NoisyMinibatchSGD(rounds=20, step_size=0.1), **facts))
    average = [theirs, ours]
    # One averages w_10..w_19 and the other w_11..w_20: both are one step of the same descent apart.
    step = average[0] - 0.1 * OBJECTIVE.gradients(average[0], both).mean(axis=0)
    np.testing.assert_allclose(ours, step, atol=1e-9)


def test_automatic_weights_are_inverse_variances_of_the_round() -> None:
    """d = 2000, k_priv = 1000, k_pub = 100, V^2 = 1 and s^2 = 2e-6: 0.666667, with variance 0.00333333."""
    private, public = 1000, Records.of(np.zeros((100, 1)), np.zeros(100))
    facts = problem(public, variance=2000 * 2e-6, rows=private, sizes=(private,))
    a = SemiPrivateSGD(weight="auto")._weight(facts, 1.0)
    assert a == pytest.approx(2 / 3)
    assert a**2 * (0.004 + 1 / 1000) + (1 - a) ** 2 / 100 == pytest.approx(0.00333333, abs=1e-8)
    few = records(7)
    found = one_step(SemiPrivateSGD(weight="auto", **PAPER), lambda *_: (np.zeros(D),), few, variance=2.0)
    objective = PublicObjective(OBJECTIVE, few)
    spread = objective.variance(np.ones(D))
    a = (spread / 7) / (2.0 + spread + spread / 7)
    np.testing.assert_allclose(found, np.ones(D) - (1 - a) * objective.gradient(np.ones(D)), rtol=1e-9)


def test_public_batches_are_the_same_for_everybody_and_differ_by_round() -> None:
    public = records(40)
    points: list[Array] = []
    for _ in range(2):
        SemiPrivateSGD(public_batch=5, weight=0.5, **PAPER | {"step_size": 0.1}).run(
            lambda *_: (np.zeros(D),), np.ones(D), problem=problem(public), rounds=2, prox=Zero(),
            follow=lambda _r, w: points.append(w),
        )  # fmt: skip
    assert np.array_equal(points[:2], points[2:])
    first = PublicObjective(OBJECTIVE, public).batch(0, 5).gradient(np.ones(D))
    np.testing.assert_allclose(points[0], np.ones(D) - 0.05 * first, rtol=1e-9)


def test_what_is_public_has_the_chosen_form() -> None:
    public = records(9)
    objective = PublicObjective(OBJECTIVE, public)
    for norm in ("raw", "clip", "rescale"):
        found = one_step(
            SemiPrivateSGD(weight=0.5, **PAPER | {"public_norm": norm}), lambda *_: (np.zeros(D),), public
        )
        expected = np.ones(D) - objective.gradient(np.ones(D), radius=2.0, norm=norm) / 2
        np.testing.assert_allclose(found, expected, rtol=1e-9)


# Starts, metrics, domains


def test_it_starts_at_the_public_minimum_and_where_it_is_told() -> None:
    public, seen = records(40), []

    def ask(_step: int, at: Mapping[str, Array], _radius: tuple[float, ...]) -> tuple[Array]:
        seen.append(at["w"])
        return (np.zeros(D),)

    for start in (None, "warm", "given"):
        one_step(SemiPrivateSGD(start=start), ask, public)
    fitted = PublicObjective(OBJECTIVE, public).fitted(start=np.ones(D))
    assert np.array_equal(seen[0], fitted)
    assert np.array_equal(seen[1], fitted)
    assert np.array_equal(seen[2], np.ones(D))


@pytest.mark.parametrize(
    "options", [{}, {"metric": "plain", "step_size": 0.1}, {"accelerated": True, "step_size": 0.1}]
)
def test_the_domain_is_kept(options: dict[str, Any]) -> None:
    points: list[Array] = []
    found = SemiPrivateSGD(**options).run(
        lambda *_: (np.full(D, 5.0),), np.zeros(D), problem=problem(records(40)), rounds=5,
        prox=L2Ball(radius=0.5), follow=lambda _r, w: points.append(w),
    )  # fmt: skip
    assert len(points) == 5
    assert all(np.linalg.norm(w) <= 0.5 * (1 + 1e-9) for w in [*points, found])


@pytest.mark.parametrize(
    "options", [{}, {"metric": "plain", "step_size": 0.2}, {"accelerated": True, "step_size": 0.2}]
)
def test_without_noise_all_forms_reach_the_minimum_of_all_records(options: dict[str, Any]) -> None:
    private, public = records(50), records(20, seed=1)
    both = Records.of(np.vstack([private.X, public.X]), np.concatenate([private.y, public.y]))
    chosen = settings(
        public, algorithm=SemiPrivateSGD(rounds=150, **options), trust=None, budget=None, clip=1e9
    )
    chosen = replace(chosen, algorithm=SemiPrivateSGD(rounds=150, public_norm="raw", **options))
    best = np.linalg.lstsq(both.X, both.y, rcond=None)[0]
    np.testing.assert_allclose(trained(private, chosen), best, atol=2e-3)


# Its price


@pytest.mark.parametrize(
    ("relation", "rate", "z", "rounds", "epsilon"),
    [
        (Relation.ADD_REMOVE, 0.01, 1.0, 1000, 1.833),
        (Relation.REPLACE_ONE, 0.01, 1.0, 1000, 2.20),
        (Relation.REPLACE_ONE, 0.1, 2.0, 100, 2.54),
    ],
)
def test_samples_cost_what_the_reference_says(
    relation: Relation, rate: float, z: float, rounds: int, epsilon: float
) -> None:
    """Under replace-one it is the price of the symmetric pair; of one direction, 2.337 at 0.1 is no bound."""
    protection = Protection(
        trust=TrustModel.CENTRAL, neighbours=Neighbours(relation), noise=GaussianNoise, multiplier=z
    )
    batch = Poisson(rate=rate) if relation is Relation.ADD_REMOVE else Fixed(rate=rate)
    kinds = SemiPrivateSGD(batch=batch).steps(problem(records(5), protection=protection), rounds)
    event = Plan(steps=kinds, parties=1, trust=TrustModel.CENTRAL).event([10_000], TrustModel.CENTRAL)
    assert epsilon_of(event, 1e-5) == pytest.approx(epsilon, rel=5e-3)


@pytest.mark.parametrize("batch", [Full(), Disjoint(rate=0.05), Fixed(rate=0.1), Poisson(rate=0.1)])
def test_every_batch_meets_the_budget_whatever_is_public(batch: Any) -> None:
    prices = []
    for count in (5, 50):
        algorithm = SemiPrivateSGD(rounds=20, batch=batch)
        prepared = prepare(settings(records(count), algorithm=algorithm), [500])
        event = prepared.plan.event([500], TrustModel.CENTRAL)
        assert epsilon_of(event, 1e-5) == pytest.approx(1.0, rel=1e-3)
        prices.append(prepared.noise_multiplier)
    assert prices[0] == prices[1]
    if isinstance(batch, Disjoint):
        assert prices[0] == pytest.approx(3.730632, rel=1e-5)
        with pytest.raises(ParameterError, match="500"):
            prepare(settings(records(5), algorithm=SemiPrivateSGD(rounds=21, batch=batch)), [500])


def test_one_pass_is_as_long_as_private_records_are() -> None:
    """Counted with public records, as is printed, a private one is in two batches: 1.465 in place of 1."""
    one_pass = SemiPrivateSGD(rounds=20, batch=Disjoint(size=25))
    noise = prepare(settings(records(50), algorithm=one_pass), [500]).noise_multiplier
    assert epsilon_of(Repeat(Gaussian(noise), 2), 1e-5) == pytest.approx(1.4652, abs=1e-3)
    for rounds in (21, 22):
        longer = SemiPrivateSGD(rounds=rounds, batch=Disjoint(size=25))
        with pytest.raises(ParameterError, match="500"):
            prepare(settings(records(50), algorithm=longer), [500])


def test_one_record_moves_a_step_by_its_clipped_gradient_and_no_more() -> None:
    """With the seed of the noise fixed: affine, and at most 2 C weight / n from one record to another."""
    public, n, weight = records(10, seed=1), 25, 0.7
    algorithm = SemiPrivateSGD(rounds=1, weight=weight, average=1.0, **PAPER)
    private = records(n)

    def with_first(slope: float) -> Array:
        X, y = private.X.copy(), private.y.copy()
        X[0], y[0] = np.eye(D)[0], -slope  # whose gradient at zero is the slope along the first axis
        return trained(Records.of(X, y), settings(public, algorithm=algorithm))

    there, middle, back, far = (with_first(slope) for slope in (0.5, 0.0, -0.5, 1e9))
    np.testing.assert_allclose(there - middle, middle - back, atol=1e-12)
    np.testing.assert_allclose(there - middle, -0.5 * weight / n * np.eye(D)[0], atol=1e-12)
    np.testing.assert_allclose(far - middle, -weight / n * np.eye(D)[0], atol=1e-9)
    assert np.linalg.norm(far - with_first(-1e9)) == pytest.approx(2 * weight / n)


@pytest.mark.parametrize(
    "trust", [TrustModel.LOCAL, TrustModel.AGGREGATE, TrustModel.SHUFFLE, TrustModel.CENTRAL]
)
def test_it_runs_under_every_trust_model_and_public_records_help(trust: TrustModel) -> None:
    d, silos = 20, 3
    private, public = [records(400, d=d, seed=k) for k in range(silos)], records(24, d=d, seed=9)
    chosen = settings(public, d=d, trust=trust, algorithm=SemiPrivateSGD(rounds=5), clip=4.0)
    assert prepare(chosen, [400] * silos).plan.trust is trust
    if trust is TrustModel.SHUFFLE:  # noise bits of a shuffled run take long to draw
        return
    federation = silos_for(chosen, private, names=["a", "b", "c"], seed=3)
    run = train(federation, chosen)
    assert run.trained_with == 24
    truth = np.random.default_rng(99).standard_normal(d)
    alone = PublicObjective(chosen.objective, public).fitted()
    assert np.sum((run.w - truth) ** 2) < np.sum((alone - truth) ** 2)


def test_three_percent_of_public_records_are_worth_more_with_private_ones_than_alone() -> None:
    """100 features, 112 public and 3638 private records, epsilon 1: test error below 0.351, not 2.5."""
    d, found, alone = 100, [], []
    for seed in range(3):
        public, private = records(112, d=d, seed=seed), records(3638, d=d, seed=10 + seed)
        truth = np.random.default_rng(99).standard_normal(d)
        algorithm = SemiPrivateSGD(rounds=20, metric="plain", step_size=2.0)
        w = trained(private, settings(public, d=d, algorithm=algorithm), seed=seed)
        found.append(0.25 + float(np.sum((w - truth) ** 2)))
        alone.append(0.25 + float(np.sum((PublicObjective(OBJECTIVE, public).minimum() - truth) ** 2)))
    assert np.mean(alone) > 1.0
    assert np.mean(found) < 0.351


def test_a_whole_run_stands_and_half_the_noise_is_caught() -> None:
    there, other = canaries((48,), settings(None).relation)
    canary = Canary()
    public = Records.of(np.eye(48), np.ones(48))
    algorithm = SemiPrivateSGD(rounds=3)
    chosen = settings(public, d=48, algorithm=algorithm, budget=LOOSE, clip=0.2)
    chosen = replace(chosen, objective=replace(chosen.objective, feature_norm=1.0))  # type: ignore[type-var]
    stands_and_half_the_noise_is_caught(
        chosen, there, other, canary.score, runs=960, statistics={"gradient": canary}
    )


# What is refused


@pytest.mark.parametrize(
    "bad",
    [
        {"weight": 0.0}, {"weight": -0.1}, {"weight": 1.5}, {"weight": math.nan}, {"weight": "best"},
        {"public_batch": 0}, {"public_norm": "long"}, {"start": "cold"}, {"metric": "curved"},
        {"step_size": 0.0}, {"damping": 0.0}, {"average": 0.0}, {"metric": "public", "accelerated": True},
    ],
)  # fmt: skip
def test_other_options_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=next(iter(bad))):
        SemiPrivateSGD(**bad)


def test_what_it_is_not_for_is_refused_before_anything_is_asked() -> None:
    public = records(5)
    with pytest.raises(ParameterError, match="'semi-dp' needs public records with labels"):
        prepare(settings(None), [500])
    with pytest.raises(ParameterError, match="public_batch must be"):
        prepare(settings(public, algorithm=SemiPrivateSGD(public_batch=6)), [500])
    with pytest.raises(ParameterError, match="that 'auto' weighs by must be"):
        prepare(settings(records(1), algorithm=SemiPrivateSGD(weight="auto")), [500])
    with pytest.raises(ParameterError, match="smoothness is unknown"):
        prepare(settings(public, algorithm=SemiPrivateSGD(metric="plain")), [500])
    kinked = LinearObjective(loss=Absolute(smoothing=math.inf), features=D, feature_norm=1.0)
    with pytest.raises(ParameterError, match="has a kink"):
        prepare(settings(public, objective=kinked), [500])


@pytest.mark.parametrize("warm", [SemiPrivateSGD(**PLAIN, start="warm"), SemiLocalSGD(start="warm")])
def test_a_public_minimum_that_nothing_finds_is_refused_before_anything_is_spent(warm: Any) -> None:
    """A run of it would fail once its budget is reserved; where nobody asks for it, it starts elsewhere."""
    kinked = LinearObjective(loss=Absolute(smoothing=math.inf), features=D, feature_norm=1.0)
    network = NetworkObjective(loss=Logistic(), features=D, hidden=3, outputs=1, activation="tanh")
    local = {"trust": TrustModel.LOCAL, "budget": PrivacyBudget(8.0)} if warm.pure_noise else {}
    for objective in (kinked, network):
        known = PublicObjective(objective, records(5))
        chosen = replace(settings(None, algorithm=warm, **local), objective=objective, public=known)
        with pytest.raises(ParameterError, match="start must be 'given' where the loss has a kink"):
            prepare(chosen, [500])
        here = replace(chosen, algorithm=msgspec.structs.replace(warm, start=None, rounds=3))
        silos = make_silos([records(500)], objective, trusts_server=not warm.pure_noise, seed=1)
        assert np.isfinite(train(in_process(silos, seed=1), here).w).all()


def test_its_bound_is_that_of_plain_steps_and_public_records_lower_it() -> None:
    logistic = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
    algorithm = SemiPrivateSGD(metric="plain", rounds=20)
    problems = [
        prepare(settings(records(n), objective=logistic, algorithm=algorithm, clip=None), [500]).problem
        for n in (1, 50, 5000)
    ]
    bounds = [algorithm.error_bound(one, 20) for one in problems]
    assert math.isinf(SemiPrivateSGD().error_bound(problems[0], 13))
    assert bounds == sorted(bounds, reverse=True)
    assert bounds[0] > 1.01 * bounds[2]
