"""Networks: gradients are those of the loss, sums those of clipped rows, and no record moves them further."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.federation import FusedStatistic
from tacit.learning import (
    ALGORITHMS,
    FeatureMap,
    Grouped,
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    NetworkObjective,
    NoisyFedSpider,
    NoisyMinibatchSGD,
    NoisySpider,
    PerPerson,
    PublicObjective,
    RecordDifference,
    RecordGradient,
    Records,
    Settings,
    Squared,
    difference_radius,
    in_process,
    make_algorithm,
    make_silos,
    train,
)
from tacit.learning.difference import FusedDifference
from tacit.learning.objective import LinearShape
from tacit.learning.preparation import prepare
from tacit.learning.training import sums_of
from tacit.numerics import L1, Array, L2Ball, Regularizer, Zero, clip_rows
from tacit.privacy import PrivacyBudget, TrustModel
from tests.loops import each

FEATURES, HIDDEN = 5, 4
CASES = [
    pytest.param(loss, activation, id=f"{type(loss).__name__}-{activation}")
    for loss in (Logistic(), Squared(), Huber(threshold=0.7), Multinomial())
    for activation in ("relu", "tanh", *(["softplus"] if isinstance(loss, Squared) else []))
]


def network(loss: Loss, activation: Any = "relu", **changes: Any) -> NetworkObjective:
    outputs = 4 if isinstance(loss, Multinomial) else 1
    facts = {"features": FEATURES, "hidden": HIDDEN, "outputs": outputs, **changes}
    return NetworkObjective(loss=loss, activation=activation, **facts)


def some_records(n: int, *, seed: int, dtype: Any = np.float64, features: int = FEATURES) -> Records:
    """Records of very different lengths, of labels that every loss has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, features)) * rng.choice([0.01, 1.0, 30.0], size=(n, 1))
    return Records.of(X.astype(dtype), rng.integers(2, size=n).astype(dtype))


def point(objective: NetworkObjective, seed: int, *, length: float = 2.0) -> Array:
    """Weights with biases that are not zero either."""
    return objective.start(seed, length=length) + 0.3 * np.random.default_rng(seed).standard_normal(
        objective.size
    )


def one_by_one(objective: NetworkObjective, w: Array, records: Records, radius: float) -> Array:
    """The sum of clipped gradients, record by record, in the words of the definition."""
    total = np.zeros(objective.size)
    for i in range(len(records)):
        (gradient,) = objective.gradients(w, records.take(np.array([i])))
        length = math.sqrt(math.fsum(float(g) ** 2 for g in gradient))
        total += gradient * min(1.0, radius / length) if length > 0 else 0
    return total


# Gradients


@pytest.mark.parametrize(("loss", "activation"), CASES)
def test_gradients_are_those_of_the_loss(loss: Loss, activation: str) -> None:
    objective, records, step = network(loss, activation), some_records(60, seed=1), 1e-6
    w = point(objective, 2)
    found = objective.gradients(w, records)
    for k, way in enumerate(np.eye(objective.size)):
        ahead, behind = (objective.value(w + side * step * way, records) for side in (1, -1))
        np.testing.assert_allclose(found[:, k], (ahead - behind) / (2 * step), rtol=1e-5, atol=2e-6)


def test_a_network_computes_what_it_says() -> None:
    objective = network(Multinomial(), "tanh")
    records, w = some_records(20, seed=3), point(objective, 4)
    W = w[: FEATURES * HIDDEN].reshape(FEATURES, HIDDEN)
    V = w[FEATURES * HIDDEN :].reshape(HIDDEN + 1, 4)
    hidden = np.column_stack([np.tanh(records.X @ W), np.ones(20)])
    np.testing.assert_allclose(objective.predictions(w, records.X), hidden @ V, atol=1e-12)
    assert objective.size == w.size == FEATURES * HIDDEN + 5 * 4


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("loss", "activation"), CASES)
def test_sums_are_those_of_clipped_rows(loss: Loss, activation: str, dtype: Any) -> None:
    objective, records = network(loss, activation), some_records(80, seed=5, dtype=dtype)
    w, tolerance = point(objective, 6), 1e-12 if dtype == np.float64 else 2e-4
    assert isinstance(RecordGradient(objective), FusedStatistic)
    for radius in (0.0, 0.05, 3.0, 1e4):
        fused = objective.clipped_sum(w, records, radius)
        assert fused.dtype == np.float64
        slow = one_by_one(objective, w, records, radius)
        np.testing.assert_allclose(fused, slow, rtol=0, atol=tolerance * max(radius, 1.0))
        rows = clip_rows(objective.gradients(w, records), radius).sum(axis=0, dtype=np.float64)
        np.testing.assert_allclose(fused, rows, rtol=0, atol=tolerance * max(radius, 1.0))


@pytest.mark.parametrize("clip", [None, 0.4])
@pytest.mark.parametrize(("loss", "activation"), CASES)
def test_sums_of_differences_are_those_of_clipped_rows(
    loss: Loss, activation: str, clip: float | None
) -> None:
    objective, records = network(loss, activation), some_records(80, seed=7)
    assert isinstance(objective, FusedDifference)
    for apart in (1e-5, 0.1, 3.0):
        w = point(objective, 8)
        at = {"w": w, "previous": w + apart * point(objective, 9)}
        if clip is not None:
            at["clip"] = np.asarray(clip)
        statistic = RecordDifference(objective)
        for radius in (0.0, 0.1 * apart, 0.8):
            rows = clip_rows(statistic(records, at), radius)
            np.testing.assert_allclose(
                statistic.clipped_sum(records, at, radius, np.float64), rows.sum(axis=0), rtol=0, atol=1e-12
            )


def test_parts_of_many_records_add_up(monkeypatch: pytest.MonkeyPatch) -> None:
    objective, records = network(Logistic()), some_records(1000, seed=10)
    w, v = point(objective, 11), point(objective, 12)
    whole = objective.clipped_sum(w, records, 0.5), objective.clipped_difference(w, v, records, 0.5)
    monkeypatch.setattr("tacit.learning.networks._AT_ONCE", 1)
    records = some_records(1000, seed=10)  # without the parts that are kept
    assert len(list(objective._parts(records))) == 16
    np.testing.assert_allclose(objective.clipped_sum(w, records, 0.5), whole[0], atol=1e-11)
    np.testing.assert_allclose(objective.clipped_difference(w, v, records, 0.5), whole[1], atol=1e-11)


def test_factors_of_all_records_are_kept_from_one_difference_to_the_next(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    goal, rng = network(Squared(), "softplus"), np.random.default_rng(7)
    points = [rng.normal(size=goal.size) for _ in range(3)]
    passes: list[int] = []
    back = NetworkObjective._losses_back

    def counted(self: NetworkObjective, w: Array, records: Records) -> Any:
        passes.append(1)
        return back(self, w, records)

    def found(records: Callable[[], Records], clip: float | None) -> list[Array]:
        passes.clear()
        return [
            one
            for w, previous in zip(points[1:], points, strict=False)
            for one in (
                goal.clipped_difference(w, previous, records(), 0.4, clip=clip),
                goal.clipped_sum(w, records(), 0.7),
            )
        ]

    def fresh() -> Records:
        return some_records(50, seed=3)

    monkeypatch.setattr(NetworkObjective, "_losses_back", counted)
    known = fresh()
    for clip, expected in ((0.7, 3), (None, 5)):  # in place of six: gradients have another clip than None
        known.memo.clear()
        wanted, kept = found(fresh, clip), found(lambda: known, clip)
        np.testing.assert_array_equal(kept, wanted)
        assert len(passes) == expected
    # Each differs in one thing from what is kept: the network, the point, the clip.
    others = [
        (network(Squared(), "tanh"), points[2], 0.7),
        (network(Logistic(), "softplus"), points[2], 0.7),
        (goal, points[1], 0.7),
        (goal, points[2], 0.6),
    ]
    for one, w, clip in others:
        goal.clipped_difference(points[2], points[1], known, 0.4, clip=0.7)
        sums = [one.clipped_sum(w, some, clip) for some in (known, fresh())]
        np.testing.assert_array_equal(sums[0], sums[1])
    monkeypatch.setattr("tacit.learning.networks._KEPT", 0)
    np.testing.assert_array_equal(found(lambda: known, 0.7), found(fresh, 0.7))
    assert known.memo["factors"] is None


def test_a_person_has_one_row() -> None:
    objective, records, persons = network(Logistic()), some_records(40, seed=13), np.arange(40) % 7
    at = {"w": point(objective, 14)}
    each = objective.gradients(at["w"], records)
    means = np.stack([each[persons == k].mean(axis=0) for k in range(7)])
    found = PerPerson(RecordGradient(objective)).clipped_sum(
        Grouped.of(records, persons), at, 0.1, np.float64
    )
    np.testing.assert_allclose(found, clip_rows(means, 0.1).sum(axis=0), atol=1e-12)


# Privacy


@pytest.mark.parametrize("activation", ["relu", "tanh", "softplus"])
def test_bad_records_count_as_zero(activation: Any) -> None:
    """Whatever overflows at whatever point: the sum is that of the other records, and no warning tells."""
    X = np.array(
        [[1e200, 1.0], [0.5, 1.0], [-1e200, 1.0], [0.25, 1.0], [np.nan, 1.0], [3.0, np.inf], [1.0, 1.0]]
    )
    records = Records.of(X, np.array([0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 1e280]))
    objective = NetworkObjective(loss=Squared(), features=2, hidden=3, activation=activation)
    w = point(objective, 15)
    w[:6] = [3.0, -2.0, 1.0, 0.1, 0.2, 0.3]
    w[6:9] *= 1e100
    rows = objective.gradients(w, records)
    sizes = np.sqrt((rows.astype(np.longdouble) ** 2).sum(axis=1))
    bad = ~(sizes <= 1e270)
    grows = activation != "tanh"
    assert bad.tolist() == [grows, False, grows, False, False, False, True]
    expected = clip_rows(rows[~bad], 1.0).sum(axis=0)
    at_zero = np.zeros(objective.size)
    found = objective.clipped_sum(w, records, 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    change = objective.clipped_difference(w, at_zero, records, 1.0)
    first, second = objective.gradients(w, records), objective.gradients(at_zero, records)
    np.testing.assert_allclose(change, clip_rows((first - second)[~bad], 1.0).sum(axis=0), atol=1e-12)
    # With gradients clipped first, the other point still counts where its own is good.
    here = clip_rows(np.where(bad[:, None], 0, first), 0.7)
    there = clip_rows(np.where(np.abs(second).max(axis=1, keepdims=True) > 1e270, 0, second), 0.7)
    both = objective.clipped_difference(w, at_zero, records, 1.0, clip=0.7)
    np.testing.assert_allclose(both, clip_rows(here - there, 1.0).sum(axis=0), atol=1e-12)
    # A record with a hole is that of zeros.
    zeros = Records.of(np.zeros((1, 2)), np.zeros(1))
    np.testing.assert_array_equal(objective.gradients(w, records)[4:6], objective.gradients(w, zeros)[[0, 0]])


@pytest.mark.parametrize(("loss", "activation"), CASES)
def test_no_pair_of_neighbours_is_further_apart_than_the_claim(loss: Loss, activation: str) -> None:
    """One record of 8 becomes another, at 200 pairs of points: sums are two radii apart at most.

    The smoothness is a guess, from far too small to infinite: it may cost accuracy and never privacy.
    """
    objective, rng = network(loss, activation), np.random.default_rng(16)
    gradient, change = RecordGradient(objective), RecordDifference(objective)
    furthest = [0.0, 0.0]
    pool = some_records(300, seed=17)
    for _ in range(200):
        w = point(objective, int(rng.integers(2**31)), length=10.0 ** rng.uniform(-2, 1))
        previous = w + 10.0 ** rng.uniform(-6, 2) * rng.standard_normal(objective.size)
        guess = math.inf if rng.random() < 0.2 else 10.0 ** rng.uniform(-3, 3)
        lipschitz = 10.0 ** rng.uniform(-2, 1)
        radius = difference_radius(w, previous, lipschitz=lipschitz, smoothness=guess)
        assert 0 < radius <= 2 * lipschitz
        at = {"w": w, "previous": previous, "clip": np.asarray(lipschitz)}
        some = rng.integers(len(pool), size=9)
        pair = [pool.take(np.append(some[:7], last)) for last in some[7:]]
        for k, reach in enumerate((lipschitz, radius)):
            statistic: Any = (gradient, change)[k]
            first, second = (statistic.clipped_sum(units, at, reach, np.float64) for units in pair)
            moved = float(np.linalg.norm(second - first))
            assert moved <= 2 * reach * (1 + 1e-12)
            furthest[k] = max(furthest[k], moved / reach)
    assert min(furthest) > 1.5  # the claim is of that size


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("loss", "activation"), CASES)
def test_a_record_that_comes_or_goes_moves_no_other_at_a_hostile_point(
    loss: Loss, activation: str, dtype: Any
) -> None:
    """At long points at right angles to all records, hidden sums are rounding and no more."""
    rng, objective = np.random.default_rng(18), network(loss, activation, features=300, hidden=9)
    x, away = rng.standard_normal((2, 300))
    x -= away * (x @ away) / (away @ away)
    X = np.tile((x / np.linalg.norm(x)).astype(dtype), (48, 1))
    first = np.outer(away / np.finfo(dtype).eps, rng.choice([-1.0, 1.0], 9)).ravel()
    w = np.concatenate([first, rng.standard_normal(objective.size - first.size)])
    gradient, change = RecordGradient(objective), RecordDifference(objective)
    at, radius = {"w": w, "previous": w * 0.5}, 0.01
    for statistic in (gradient, change):
        sums = [
            statistic.clipped_sum(Records.of(X[:k], np.zeros(k)), at, radius, np.float64) for k in range(49)
        ]
        assert (np.linalg.norm(np.diff(sums, axis=0), axis=1) <= radius * (1 + 1e-10)).all()
        rows = statistic(Records.of(X, np.zeros(48)), at)
        assert (rows == rows[0]).all()
        assert rows.any()


# A start


def test_a_start_is_public_and_no_saddle_point() -> None:
    objective = network(Logistic(), features=200, hidden=100)
    w = objective.start(7, length=3.0)
    assert (w == objective.start(7, length=3.0)).all()
    assert (w != objective.start(8, length=3.0))[:-1].all()
    first, second = w[:20000], w[20000:-1]
    # Uniform: the variance of a square is 4/5 of its squared mean; six standard errors are a rate below 1e-6.
    assert np.mean(first**2) == pytest.approx(2 / 9, rel=6 * math.sqrt(0.8 / 20000))
    assert np.mean(second**2) == pytest.approx(2 / 101, rel=6 * math.sqrt(0.8 / 100))
    assert w[-1] == 0
    assert np.mean(network(Logistic(), "tanh", features=200, hidden=100).start(7) ** 2) == pytest.approx(
        1, rel=0.05
    )
    # From zero on, hidden units get equal gradients for ever, which are zero at first.
    records = some_records(30, seed=19, features=200)
    at_zero = objective.gradients(np.zeros(objective.size), records)
    assert not at_zero[:, :-1].any()
    assert objective.gradients(w, records)[:, :20000].any()


@each("name", [name for name, kind in ALGORITHMS.items() if kind.unit is None])
def test_every_method_starts_where_it_is_told_to(name: str) -> None:
    """What is asked first of a point is asked at the start; where nothing is, a minimum has no start."""
    rng = np.random.default_rng(20)
    X = clip_rows(rng.standard_normal((40, 3)), 1.0)
    records = Records.of(X, (X[:, 0] > 0).astype(np.float64))
    goal = LinearObjective(loss=Squared() if name == "pda" else Logistic(), features=3, feature_norm=1.0)
    rounds = None if "perturbation" in name else 100 if name == "multistage" else 6
    # Else these start at the minimum on public records.
    starts: dict[str, dict[str, Any]] = {"semi-dp": {"start": "given"}, "pda": {"warm_start": False}}
    public = getattr(ALGORITHMS[name], "needs_public", False)
    settings = Settings(
        objective=goal,
        algorithm=make_algorithm(name, rounds=rounds, **starts.get(name, {})),
        clip=1.0,
        start=np.array([0.5, -2.0, 1.0]),
        public=PublicObjective(goal, records) if public else None,
    )
    prepared = prepare(settings, [40])
    seen: list[Array] = []
    ask = in_process(make_silos([records], goal, trusts_server=True, seed=1), seed=1).open(prepared.plan)

    def watched(step: int, at: Any, radius: tuple[float, ...]) -> tuple[Array, ...]:
        if "w" in at:
            back = np.linalg.inv(at["whitening"]) if "whitening" in at else np.eye(3)
            seen.append(np.linalg.inv(back) @ at["w"])
        return ask(step, at, radius)

    settings.algorithm.run(
        watched,
        settings.first_point,
        problem=prepared.problem,
        rounds=prepared.rounds,
        prox=Zero(),
        follow=lambda _r, _w: None,
    )
    if seen:
        np.testing.assert_allclose(seen[0], [0.5, -2.0, 1.0], atol=1e-8)
    else:
        assert "perturbation" in name


def test_a_start_is_the_runs_own() -> None:
    given = np.array([1.0, 2.0])
    goal = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
    settings = Settings(objective=goal, start=given)
    given[0] = 5.0
    assert settings.first_point.tolist() == [1.0, 2.0]
    settings.first_point[0] = 7.0
    assert settings.first_point.tolist() == [1.0, 2.0]
    assert Settings(objective=goal).first_point.tolist() == [0.0, 0.0]
    for wrong in (np.zeros(3), np.zeros((2, 1)), np.array([0.0, math.nan]), np.array([math.inf, 0.0])):
        with pytest.raises(ParameterError, match="start must be 2 finite numbers"):
            Settings(objective=goal, start=wrong)
    with pytest.raises(ParameterError, match="start must hold real numbers"):
        Settings(objective=goal, start=np.array(["a", "b"]))


# Runs


SIZES = (60, 50, 40)
NETWORK = network(Logistic())
START = NETWORK.start(1, length=1.0)


def silos() -> list[Records]:
    """Records of norm 1 whose labels no linear model knows."""
    rng, features = np.random.default_rng(21), FeatureMap(lower=np.full(4, -1.0), upper=np.full(4, 1.0))
    found = []
    for n in SIZES:
        X = rng.uniform(-1, 1, (n, 4))
        found.append(Records.of(features(X), (X[:, 0] * X[:, 1] > 0).astype(np.float64)))
    return found


def settings_with(algorithm: Any, trust: TrustModel | None, **changes: Any) -> Settings:
    facts: dict[str, Any] = {
        "budget": None if trust is None else PrivacyBudget(2.0, 1e-5), "clip": 0.6, "start": START, **changes,
    }  # fmt: skip
    return Settings(objective=NETWORK, algorithm=algorithm, trust=trust, **facts)


def run(settings: Settings, seed: int = 3) -> Any:
    parties = make_silos(
        silos(),
        NETWORK,
        trusts_server=settings.trusts_server,
        trusts_shuffler=settings.trusts_shuffler,
        sums=sums_of(settings),
        seed=seed,
    )
    return train(in_process(parties, seed=seed), settings)


def descent(rounds: int, eta: float, prox: Regularizer, radius: float) -> list[Array]:
    """Proximal gradient descent on the clipped gradients of the pooled records."""
    held = silos()
    records = Records.of(np.vstack([s.X for s in held]), np.concatenate([s.y for s in held]))
    points = [prox(1.0, START) if isinstance(prox, L2Ball) else START]  # a start is in the domain
    for _ in range(rounds):
        w = points[-1]
        mean = clip_rows(NETWORK.gradients(w, records), radius).mean(axis=0)
        points.append(prox(eta, w - eta * mean))
    return points


@each("clip", [0.6, 1e3])
@each("prox", [Zero(), L1(0.01), L2Ball(5.0)])
@each("period", [1, 2, 3, 7, 20])
def test_without_noise_differences_telescope(period: int, prox: Regularizer, clip: float) -> None:
    """Every round has the exact gradient, whether differences count on a smoothness or not."""
    first, *_, expected = descent(11, 0.8, prox, clip)
    for guess in (None, 1e6):
        algorithm = NoisySpider(rounds=11, period=period, step_size=0.8, smoothness=guess)
        found = run(settings_with(algorithm, None, regularizer=prox, clip=clip))
        np.testing.assert_allclose(found.w, expected, atol=1e-12)
    assert np.linalg.norm(expected - first) > 0.1


def test_without_noise_the_other_methods_descend_too() -> None:
    found = run(settings_with(NoisyFedSpider(rounds=8, step_size=0.8), None))
    np.testing.assert_allclose(found.w, descent(8, 0.8, Zero(), 0.6)[-1], atol=1e-12)
    found = run(settings_with(NoisyMinibatchSGD(rounds=8, step_size=0.8, average=0.1), None))
    np.testing.assert_allclose(found.w, descent(8, 0.8, Zero(), 0.6)[-2], atol=1e-12)


def test_a_guess_that_is_too_small_clips_differences() -> None:
    algorithm = NoisySpider(rounds=11, period=11, step_size=0.8, smoothness=1e-3)
    found = run(settings_with(algorithm, None))
    assert np.linalg.norm(found.w - descent(11, 0.8, Zero(), 0.6)[-1]) > 0.01


@pytest.mark.parametrize("trust", TrustModel)
@pytest.mark.parametrize(
    "algorithm",
    [
        NoisySpider(rounds=4, period=2, step_size=0.5, smoothness=2.0),
        NoisyFedSpider(rounds=4, step_size=0.5),
        NoisyMinibatchSGD(rounds=4, step_size=0.5),
    ],
    ids=lambda one: type(one).__name__,
)
def test_runs_meet_their_budget(algorithm: Any, trust: TrustModel) -> None:
    found = run(settings_with(algorithm, trust))
    assert np.isfinite(found.w).all()
    assert 0.95 * 2.0 < found.guarantee.epsilon <= 2.0


def test_a_network_learns_what_no_linear_model_can() -> None:
    rng = np.random.default_rng(22)
    X = rng.choice([-1.0, 1.0], (2000, 2))
    rows = np.column_stack([X / 2, np.full(2000, math.sqrt(0.5))])
    records = Records.of(rows, (X[:, 0] * X[:, 1] > 0).astype(np.float64))
    objective = NetworkObjective(loss=Logistic(), features=3, hidden=8)
    settings = Settings(
        objective=objective,
        algorithm=NoisySpider(rounds=60, period=3, step_size=3.0),
        trust=TrustModel.CENTRAL,
        budget=PrivacyBudget(3.0, 1e-5),
        clip=0.5,
        start=objective.start(0),
    )
    parties = make_silos([records], objective, trusts_server=True, seed=5)
    w = train(in_process(parties, seed=5), settings).w
    assert np.mean((objective.predictions(w, rows) > 0) == (records.y > 0)) > 0.95


# What is refused


def test_what_a_network_has_no_constant_for_is_refused() -> None:
    assert NETWORK.lipschitz == NETWORK.smoothness == math.inf
    assert not NETWORK.clip_safe
    assert not isinstance(NETWORK, LinearShape)
    with pytest.raises(ParameterError, match="clip must be a finite number > 0"):
        Settings(objective=NETWORK)
    for name in ("minibatch", "local", "accelerated", "spider", "fed-spider", "prox-sgd"):
        with pytest.raises(ParameterError, match="unknown: give the algorithm its step size"):
            prepare(settings_with(make_algorithm(name, rounds=5), TrustModel.LOCAL), SIZES)
    for name in ("preconditioned", "sufficient-statistics", "whitened"):
        with pytest.raises(ParameterError, match="features"):
            prepare(settings_with(make_algorithm(name, rounds=5), TrustModel.LOCAL), SIZES)
    for name in ("objective-perturbation", "output-perturbation"):
        with pytest.raises(ParameterError, match="needs the logistic loss of two classes"):
            prepare(settings_with(make_algorithm(name), TrustModel.CENTRAL), SIZES)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": 0}, "features must be a whole number >= 1"),
        ({"hidden": 0}, "hidden must be a whole number >= 1"),
        ({"outputs": 2}, "outputs must be a whole number from 1 to 1"),
        ({"loss": Multinomial(), "outputs": 1}, "outputs must be a whole number >= 2"),
        ({"loss": Multinomial(classes=3), "outputs": 4}, "outputs must be the 3 classes of the loss"),
        ({"activation": "sigmoid"}, "activation must be one of"),
    ],
)
def test_networks_that_are_none_are_refused(changes: dict[str, Any], message: str) -> None:
    facts: dict[str, Any] = {"loss": Logistic(), "features": 3, "hidden": 2, **changes}
    with pytest.raises(ParameterError, match=message):
        NetworkObjective(**facts)


def test_a_start_of_no_length_is_refused() -> None:
    with pytest.raises(ParameterError, match="length must be a finite number > 0"):
        NETWORK.start(0, length=0.0)
    with pytest.raises(ParameterError, match="seed must be a whole number >= 0"):
        NETWORK.start(-1)
