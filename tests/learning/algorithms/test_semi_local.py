"""Semi-local SGD: the recursion, its limits, second moments, its bound, price and attack, and refusals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest

from tacit.audits import audit
from tacit.errors import ParameterError
from tacit.federation import Crowd, Disjoint, Fixed
from tacit.learning import (
    LinearObjective,
    Problem,
    Protection,
    PublicObjective,
    Records,
    SemiLocalSGD,
    Settings,
    Squared,
    in_process,
    make_algorithm,
    make_silos,
    train,
)
from tacit.learning.algorithms import statistics_of
from tacit.learning.preparation import prepare
from tacit.mechanisms import PrivUnit, PrivUnitG
from tacit.numerics import Array, L2Ball
from tacit.privacy import PrivacyBudget, PureDP, Relation, TrustModel, epsilon_of
from tacit.randomness import simulated
from tests.statistics import FALSE_ALARM

D, N = 4, 300
OBJECTIVE = LinearObjective(loss=Squared(), features=D)
ONE = Disjoint(size=1)


def records(n: int, *, seed: int = 0) -> Records:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    return Records.of(X, X @ np.arange(1.0, D + 1) / 4 + 0.1 * rng.standard_normal(n))


def settings(epsilon: float | None, *, public: Records | None = None, **options: Any) -> Settings:
    algorithm = SemiLocalSGD(**{"batch": ONE, **options})
    return Settings(
        objective=OBJECTIVE,
        algorithm=algorithm,
        trust=None if epsilon is None else TrustModel.LOCAL,
        budget=None if epsilon is None else PrivacyBudget(epsilon),
        clip=1.0,
        diameter=2.0,
        public=None if public is None else PublicObjective(OBJECTIVE, public),
    )


def run(chosen: Settings, private: Records, *, seed: int = 1, follow: Any = None) -> Array:
    silos = make_silos([private], OBJECTIVE, seed=seed, trusts_server=chosen.trust is None)
    return train(in_process(silos, seed=seed), chosen, follow=follow).w


def problem(epsilon: float | None = None, **changes: Any) -> Problem:
    noise = Protection() if epsilon is None else Protection(multiplier=1 / epsilon, epsilon=epsilon)
    facts: dict[str, Any] = {
        "smoothness": 1.0, "radius": 2.0, "diameter": 3.0, "dim": D, "variance": 1.0, "lipschitz": 2.0,
        "protection": noise, "sizes": (N,), "rows": N, **changes,
    }  # fmt: skip
    return Problem(**facts)


# The recursion


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_without_noise_it_is_sgd_over_everybody_once(mu: float) -> None:
    """Points and averages by hand: uniform ones, or weights t + 1 and steps 2 / (mu (t + 2))."""
    public, answers = records(30), np.random.default_rng(5).standard_normal((N, D))
    asked: list[int] = []
    points: dict[int, Array] = {}

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        points[step] = at["w"]
        asked.append(step)
        return (answers[step],)

    method, domain = SemiLocalSGD(batch=ONE, mu=mu), L2Ball(radius=2.0)
    taken: list[Array] = []

    class Watched(LinearObjective):
        def gradients(self, w: Array, units: Records) -> Array:
            taken.append(units.X)
            return super().gradients(w, units)

    known = PublicObjective(Watched(loss=Squared(), features=D), public)
    facts = problem(public=known, variance=4.0)
    found = method.run(ask, np.zeros(D), problem=facts, rounds=N, prox=domain, follow=lambda _r, _w: None)
    assert asked == list(range(N))
    # Every public record is taken once, by itself, as private ones are.
    assert sorted(map(tuple, np.concatenate(taken))) == sorted(map(tuple, public.X))
    assert [len(rows) for rows in taken] == [1] * 30
    # Once more by hand; who is next shows in the points that were asked at.
    eta, w, total, weights, k, r = 3.0 / math.sqrt(N * 4.0 + 30 * 4.0), np.zeros(D), np.zeros(D), 0.0, 0, 0
    places: list[int] = []
    for t in range(N + 30):
        weight = t + 1.0 if mu else 1.0
        total, weights = total + weight * w, weights + weight
        step = 2 / (mu * (t + 2)) if mu else eta
        if r < N and np.allclose(points[r], w, atol=1e-12):
            g, r = answers[r], r + 1
        else:
            (row,), places = np.flatnonzero((taken[k] == public.X).all(axis=1)), [*places, t]
            g, k = public.X[row] * (public.X[row] @ w - public.y[row]), k + 1
        w = domain(step, w - step * g)
    assert (r, k) == (N, 30)
    np.testing.assert_allclose(found, total / weights, atol=1e-12)
    # Public steps lie all over the run.
    assert abs(np.mean(places) - (N + 30) / 2) < 5 * (N + 30) / math.sqrt(12 * 30)


def test_large_levels_and_small_dimensions_give_sgd_itself() -> None:
    found, plain = ([], [])  # type: tuple[list[Array], list[Array]]
    options = {"step_size": 0.05, "rounds": 200}
    for public in (None, records(40, seed=9)):
        for epsilon, points in ((256.0, found), (None, plain)):
            chosen = settings(epsilon, public=public, **options)
            run(chosen, records(N), follow=lambda _r, w, points=points: points.append(w))
    np.testing.assert_allclose(found, plain, atol=1e-5)


def test_reports_have_the_second_moment_of_their_scale_exactly() -> None:
    """Whatever the records: a step is as long as C / m times eta, for gradients as directions."""
    points = [np.zeros(D)]
    run(settings(4.0, normalise=True, step_size=0.1), records(50), follow=lambda _r, w: points.append(w))
    steps = np.linalg.norm(np.diff(points, axis=0), axis=1)
    np.testing.assert_allclose(steps, 0.1 / PrivUnit(D, 4.0).cap.scale, rtol=1e-6)  # float32 messages


@pytest.mark.parametrize("randomizer", ["privunit", "privunit-g"])
def test_matched_public_gradients_are_as_long_as_reports(randomizer: Any) -> None:
    public = records(5)
    public.X[3] = 0  # a gradient of length 0 stays that
    method = SemiLocalSGD(randomizer=randomizer, public_scale="match", normalise=True)
    facts = problem(4.0, public=PublicObjective(OBJECTIVE, public))
    unit = (PrivUnit if randomizer == "privunit" else PrivUnitG)(D, 4.0)
    for k in range(5):
        row = method._public_gradient(facts, np.array([k]), np.ones(D))
        assert np.linalg.norm(row) == pytest.approx(0.0 if k == 3 else 2.0 * math.sqrt(unit.mse + 1))
    raw = SemiLocalSGD()._public_gradient(facts, np.arange(5), np.ones(D))
    np.testing.assert_allclose(raw, OBJECTIVE.gradients(np.ones(D), public).mean(axis=0))


def test_the_step_minimises_the_bound_which_counts_every_report_at_its_second_moment() -> None:
    chosen = settings(8.0, public=records(60))
    prepared = prepare(chosen, [N])
    method = chosen.algorithm
    assert isinstance(method, SemiLocalSGD)
    best = method.error_bound(prepared.problem, N)
    # One record a step: C^2 / m^2 of the lifted report, but for its last entry; raw public ones have C^2.
    report = PrivUnit(D + 1, 8.0).squared_norm
    assert best == pytest.approx(2.0 * math.sqrt(N * report + 60 * 1.0) / (N + 60), rel=0.2)
    for factor in (0.8, 1.2):
        other = msgspec.structs.replace(method, step_size=factor * method._step(prepared.problem, N))
        assert other.error_bound(prepared.problem, N) > best
    # A larger batch leaves fewer steps of less noise.
    larger = prepare(settings(8.0, batch=Disjoint(size=10)), [N])
    assert larger.rounds == N // 10
    assert larger.problem.variance == pytest.approx(prepare(settings(8.0), [N]).problem.variance / 10)
    strong = msgspec.structs.replace(method, mu=0.5)
    moment = max(method._moments(prepared.problem))
    assert strong.error_bound(prepared.problem, N) == pytest.approx(2 * moment / (0.5 * (N + 61)))


def test_it_starts_at_the_public_minimum_of_a_linear_model_and_where_it_is_told() -> None:
    known = PublicObjective(OBJECTIVE, records(40))
    fitted = known.fitted(start=np.ones(D))
    for start, features, there in (
        (None, D, fitted), ("warm", D, fitted), ("warm", 0, fitted), ("given", D, np.ones(D)),
        (None, 0, np.ones(D)),
    ):  # fmt: skip
        method = SemiLocalSGD(batch=ONE, start=start, step_size=1e-300)  # type: ignore[arg-type]
        found = method.run(
            lambda *_: (np.zeros(D),), np.ones(D), problem=problem(public=known, features=features), rounds=3,
            prox=L2Ball(radius=50.0), follow=lambda _r, _w: None,
        )  # fmt: skip
        np.testing.assert_allclose(found, there, rtol=1e-12)
        assert method.clip_of_public(known) == (None if start == "given" else known.clip)
    inside = SemiLocalSGD(start="warm", step_size=1e-300).run(
        lambda *_: (np.zeros(D),), np.zeros(D), problem=problem(public=known), rounds=3,
        prox=L2Ball(radius=0.1), follow=lambda _r, _w: None,
    )  # fmt: skip
    assert np.linalg.norm(inside) <= 0.1 * (1 + 1e-9)


# Price and attack


def test_its_price_is_the_pure_level_of_one_report() -> None:
    for randomizer in ("privunit", "privunit-g"):
        prepared = prepare(settings(3.0, randomizer=randomizer), [N, 2 * N])
        event = prepared.plan.event([N], TrustModel.LOCAL)
        assert epsilon_of(event, 0.0) == pytest.approx(3.0, rel=1e-8)
        assert epsilon_of(event, 0.0) <= 3.0 * (1 + 1e-12)
        assert prepared.rounds == N
        (mean,) = prepared.means
        unit = (PrivUnit if randomizer == "privunit" else PrivUnitG)(D + 1, 3.0)
        assert 0.5 < mean.noise_multiplier / (math.sqrt(unit.mse / (D + 1)) / 2) < 1.5
        assert not prepared.plan.exact


def test_every_report_stands_and_one_of_twice_the_level_is_caught() -> None:
    """All records of a run are attacked at once, each by its own report: gradients e against -e."""
    n = 500
    X = np.tile(np.eye(1, D), (n, 1))
    sides = [Records.of(X, np.full(n, y)) for y in (-9.0, 9.0)]

    def attack(level: float) -> bool:
        chosen = settings(level, rounds=n)
        prepared = prepare(chosen, [n])

        def scores(present: bool, size: int, rng: np.random.Generator) -> Array:
            found: list[Array] = []
            while sum(map(len, found)) < size:
                silos = make_silos([sides[0 if present else 1]], OBJECTIVE, seed=int(rng.integers(2**62)))
                ask = in_process(silos, seed=0).open(prepared.plan)
                found.append(np.array([ask(r, {"w": np.zeros(D)}, (1.0,))[0][0] for r in range(n)]))
            return np.concatenate(found)[:size]

        claim = (PureDP(1.0, prepared.plan.neighbours), 0.0)
        return audit(
            scores, claim, runs=1000, confidence=1 - FALSE_ALARM, rng=simulated(1, "audit"), attack="side"
        ).refuted

    assert not attack(1.0)
    assert attack(2.0)


# Where it runs


def test_a_crowd_answers_as_silos_do() -> None:
    chosen, private = settings(64.0, rounds=250, step_size=0.05), records(N)
    crowd = Crowd(private, statistics_of(OBJECTIVE), clients=1, rng=simulated(1, "crowd"))
    found = train(crowd, chosen)
    assert found.guarantee.epsilon == pytest.approx(64.0)
    assert found.guarantee.delta == 0
    np.testing.assert_allclose(found.w, run(chosen, private), atol=0.3)


def test_several_silos_take_one_pass_each() -> None:
    chosen = settings(8.0, batch=Disjoint(rate=0.1), public=records(20))
    silos = make_silos([records(50), records(70, seed=2)], OBJECTIVE, seed=1)
    found = train(in_process(silos, seed=1), chosen)
    assert found.rounds == 10
    assert [g.epsilon for g in found.guarantees] == pytest.approx([8.0, 8.0])


def test_what_it_cannot_do_is_refused_before_anything_is_asked() -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"batch": Fixed(size=3)}, "batch must be a Disjoint, got Fixed"),
        ({"randomizer": "laplace"}, "randomizer must be one of"),
        ({"public_scale": "clip"}, "public_scale must be one of"),
        ({"normalise": 1}, "normalise must be True or False"),
        ({"average": 0.0}, "average"),
        ({"mu": -1.0}, "mu"),
        ({"start": "cold"}, "start must be one of"),
        ({"step_size": 0.0}, "step_size"),
    ]
    for options, message in refused:
        with pytest.raises(ParameterError, match=message):
            SemiLocalSGD(**options)
    with pytest.raises(ParameterError, match="batch must be a whole number, or a share below 1, or"):
        make_algorithm("semi-ldp", batch="full")
    with pytest.raises(ParameterError, match="start must be 'given' without public records"):
        prepare(settings(1.0, start="warm"), [N])
    # More rounds than one pass has, and another trust or relation.
    with pytest.raises(ParameterError, match="rounds"):
        prepare(settings(1.0, rounds=N + 1), [N])
    plain = settings(1.0)
    for trust in (TrustModel.CENTRAL, TrustModel.SHUFFLE, TrustModel.AGGREGATE):
        with pytest.raises(ParameterError, match="trust must be local for the algorithm 'semi-ldp'"):
            prepare(replace(plain, trust=trust), [N, N])
    with pytest.raises(ParameterError, match="replace-one"):
        prepare(replace(plain, relation=Relation.ZERO_OUT), [N])
