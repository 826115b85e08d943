"""Whole runs: without noise the plain algorithms, with noise DP-SGD, and guarantees that can be checked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression, Ridge

from tacit.errors import BudgetError, ParameterError
from tacit.federation import Disjoint, Fixed, Poisson, Query, RandomSubset
from tacit.federation.protocols import Unsent
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    Grouped,
    LinearObjective,
    Logistic,
    Multinomial,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Records,
    Settings,
    Squared,
    Trained,
    in_process,
    make_silos,
    train,
)
from tacit.ledger import Ledger
from tacit.mechanisms import sample_gaussian
from tacit.numerics import Array, IntArray, L2Ball, SquaredL2, clip_rows
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel, Unit, verify
from tacit.randomness import PublicStream, simulated
from tests.statistics import FALSE_ALARM

D = 4
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
LAST = NoisyMinibatchSGD(rounds=30, step_size=1.5, average=1e-9)
SIZES = (30, 50, 20)


def data_of(sizes: Sequence[int], *, seed: int = 1, classes: int = 2) -> list[Records]:
    """Silos that differ: each has its own mean."""
    rng = np.random.default_rng(seed)
    silos = []
    for k, n in enumerate(sizes):
        X = clip_rows(rng.standard_normal((n, D)) + 0.3 * k, 1.0)
        y = (X @ rng.standard_normal((D, classes)) + 0.5 * rng.standard_normal((n, classes))).argmax(axis=1)
        silos.append(Records.of(X, y.astype(np.float64)))
    return silos


def pooled(silos: Sequence[Records]) -> Records:
    return Records.of(np.vstack([s.X for s in silos]), np.concatenate([s.y for s in silos]))


def run(
    silos: Sequence[Records | Grouped],
    algorithm: Algorithm,
    trust: TrustModel | None = None,
    *,
    objective: LinearObjective = OBJECTIVE,
    seed: int | None = 5,
    **changes: Any,
) -> Trained:
    facts: dict[str, Any] = {"budget": None if trust is None else BUDGET, "clip": 1e6, **changes}
    settings = Settings(objective=objective, algorithm=algorithm, trust=trust, **facts)
    made = make_silos(silos, objective, trusts_server=settings.trusts_server, seed=seed)
    return train(in_process(made, seed=seed), settings)


# Without noise and clipping


def test_without_noise_it_is_projected_gradient_descent() -> None:
    silos = data_of(SIZES)
    records, ball, w = pooled(silos), L2Ball(0.8), np.zeros(D)
    for _ in range(29):
        w = ball(1.5, w - 1.5 * OBJECTIVE.gradients(w, records).mean(axis=0))
    np.testing.assert_allclose(run(silos, LAST, regularizer=ball).w, w, atol=1e-12)
    assert np.linalg.norm(w) == pytest.approx(0.8)


@pytest.mark.parametrize("weights", ["silos", [0.5, 0.2, 0.3]], ids=str)
def test_weights_make_the_objective_of_theorem_140(weights: Any) -> None:
    silos, w = data_of(SIZES), np.zeros(D)
    p = np.full(3, 1 / 3) if weights == "silos" else np.array(weights)
    for _ in range(29):
        w = w - 1.5 * sum(
            share * OBJECTIVE.gradients(w, records).mean(axis=0)
            for share, records in zip(p, silos, strict=True)
        )
    np.testing.assert_allclose(run(silos, LAST, weights=weights).w, w, atol=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(("kind", "rounds"), [(AcceleratedNoisyMinibatchSGD, 400), (NoisyMinibatchSGD, 1500)])
def test_it_reaches_the_solution_of_scikit_learn(
    kind: type[AcceleratedNoisyMinibatchSGD | NoisyMinibatchSGD], rounds: int, classes: int
) -> None:
    silos = data_of(SIZES, classes=classes)
    objective = OBJECTIVE
    if classes > 2:
        objective = LinearObjective(loss=Multinomial(), features=D, outputs=classes, feature_norm=1.0)
    w = run(silos, kind(rounds=rounds), objective=objective, regularizer=SquaredL2(0.01)).w
    records = pooled(silos)
    model = LogisticRegression(C=1 / (0.01 * 100), fit_intercept=False, tol=1e-10, max_iter=10_000)
    best = model.fit(records.X, records.y).coef_.T.ravel()
    np.testing.assert_allclose(w, best, atol=2e-4)


def test_least_squares_reach_the_ridge_solution() -> None:
    silos, objective = data_of(SIZES), LinearObjective(loss=Squared(), features=D, feature_norm=1.0)
    records = pooled(silos)
    best = Ridge(alpha=0.05 * 100, fit_intercept=False).fit(records.X, records.y).coef_
    algorithm = AcceleratedNoisyMinibatchSGD(rounds=400)
    np.testing.assert_allclose(
        run(silos, algorithm, objective=objective, regularizer=SquaredL2(0.05)).w, best, atol=1e-5
    )


def test_stages_reach_the_solution_too() -> None:
    silos = data_of(SIZES)
    algorithm = MultiStageAcceleratedNoisyMinibatchSGD(mu=0.01, rounds=600)
    slow = run(silos, AcceleratedNoisyMinibatchSGD(rounds=2000), regularizer=SquaredL2(0.01)).w
    np.testing.assert_allclose(run(silos, algorithm, regularizer=SquaredL2(0.01)).w, slow, atol=1e-3)


def test_walks_on_all_records_are_federated_averaging() -> None:
    silos, w = data_of(SIZES), np.zeros(D)
    for _ in range(6):
        ends = []
        for records in silos:
            v = w
            for _ in range(4):
                v = v - 0.7 * OBJECTIVE.gradients(v, records).mean(axis=0)
            ends.append(v)
        w = np.average(ends, axis=0, weights=SIZES)
    local = NoisyLocalSGD(rounds=6, local_steps=4, step_size=0.7, batch=Fixed(rate=1.0))
    np.testing.assert_allclose(run(silos, local).w, w, atol=1e-6)  # points travel as float32


def test_clipping_is_per_record_and_before_the_mean() -> None:
    silos, w = data_of(SIZES), np.zeros(D)
    records = pooled(silos)
    for _ in range(29):
        w = w - 1.5 * clip_rows(OBJECTIVE.gradients(w, records), 0.05).mean(axis=0)
    np.testing.assert_allclose(run(silos, LAST, clip=0.05).w, w, atol=1e-12)


def test_a_person_is_clipped_as_one() -> None:
    records = data_of([40])[0]
    persons = np.arange(40) % 7
    grouped = Grouped.of(records, persons)
    w = np.zeros(D)
    for _ in range(29):
        each = OBJECTIVE.gradients(w, records)
        rows = np.stack([each[persons == k].mean(axis=0) for k in range(7)])
        w = w - 1.5 * clip_rows(rows, 0.1).mean(axis=0)
    trained = run([grouped], LAST, unit=Unit.PERSON, clip=0.1)
    np.testing.assert_allclose(trained.w, w, atol=1e-12)


# With noise


def test_one_silo_under_central_trust_is_dp_sgd() -> None:
    records, radius = data_of([60])[0], 0.3
    trained = run([records], LAST, TrustModel.CENTRAL, clip=radius)
    rng, w = simulated(5, "server"), np.zeros(D)
    std = trained.noise_multiplier * 2 * radius
    for _ in range(29):
        total = clip_rows(OBJECTIVE.gradients(w, records), radius).sum(axis=0)
        w = w - 1.5 * (total + sample_gaussian(std, D, rng, dtype=np.float32)) / 60
    np.testing.assert_allclose(trained.w, w, atol=1e-5)  # sums leave as float32
    assert np.linalg.norm(trained.w - run([records], LAST, clip=radius).w) > 0.1


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
def test_the_noise_of_a_mean_has_the_variance_that_steps_are_made_for(noise: str, trust: TrustModel) -> None:
    objective = LinearObjective(loss=Logistic(), features=200, feature_norm=1.0)
    silent = [Records.of(np.zeros((n, 200)), np.zeros(n)) for n in SIZES]  # no gradient at all
    path = [np.zeros(200)]
    algorithm = NoisyMinibatchSGD(rounds=20, step_size=1.0)
    settings = Settings(
        objective=objective, algorithm=algorithm, trust=trust, budget=BUDGET, clip=0.5, noise=noise
    )
    trained = train(
        in_process(make_silos(silent, objective, trusts_server=settings.trusts_server, seed=7), seed=7),
        settings,
        follow=lambda _r, w: path.append(np.asarray(w)),
    )
    noises = np.diff(path, axis=0).ravel()
    parties = 3 if trust is TrustModel.LOCAL else 1
    variance = parties * (trained.noise_multiplier * 2 * 0.5 / 100) ** 2
    low, high = stats.chi2.interval(1 - FALSE_ALARM, noises.size)
    assert low <= np.square(noises).sum() / variance <= high
    assert high / low < 1.4  # power
    # Full batches: what steps are made for is the noise, and nothing else.
    assert stats.kstest(noises / np.sqrt(variance), "norm").pvalue > FALSE_ALARM


def test_messages_of_a_silo_do_not_depend_on_another_silos_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the same point silo 0 sends the same bytes: its noise and its batches are its own."""
    first, *others = data_of(SIZES)
    algorithm = NoisyMinibatchSGD(rounds=1, step_size=1.0, batch=Fixed(size=5))
    settings = Settings(objective=OBJECTIVE, algorithm=algorithm, trust=TrustModel.LOCAL, budget=BUDGET)
    sent: list[bytes] = []
    ends = []
    for rest in (others, data_of(SIZES, seed=2)[1:]):
        silos = make_silos([first, *rest], OBJECTIVE, seed=5)
        prepare = silos[0].prepare

        def listening(query: Query, prepare: Callable[[Query], Unsent] = prepare) -> Unsent:
            one = prepare(query)

            def stored() -> bytes:
                sent.append(one.store())
                return sent[-1]

            return Unsent(stored)

        monkeypatch.setattr(silos[0], "prepare", listening)
        path: list[Array] = []
        federation = in_process(silos, seed=5)
        train(federation, settings, follow=lambda _r, w, path=path: path.append(w))  # type: ignore[misc]
        ends.append(path[0].tolist())
    assert len(sent) == 2
    assert sent[0] == sent[1]
    assert ends[0] != ends[1]


@pytest.mark.parametrize(
    "algorithm",
    [
        NoisyMinibatchSGD(rounds=5),
        NoisyMinibatchSGD(rounds=5, mu=0.1),
        NoisyMinibatchSGD(batch=Disjoint(size=4)),
        AcceleratedNoisyMinibatchSGD(rounds=5, batch=Fixed(rate=0.3)),
        MultiStageAcceleratedNoisyMinibatchSGD(mu=0.1, rounds=60),
        NoisyLocalSGD(rounds=2, local_steps=3),
    ],
    ids=str,
)
@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
def test_guarantees_meet_the_budget_and_can_be_priced_again(algorithm: Algorithm, noise: str) -> None:
    trained = run(data_of(SIZES), algorithm, TrustModel.LOCAL, noise=noise, clip=0.3)
    assert len(trained.guarantees) == 3
    for guarantee in trained.guarantees:
        verify(guarantee)
        assert guarantee.epsilon <= 2.0
        assert guarantee.delta == 1e-5
        assert guarantee.neighbours == Neighbours()
        assert guarantee.simulated
    assert trained.guarantee.epsilon == pytest.approx(2.0, abs=2e-6)
    assert np.isfinite(trained.w).all()


def test_one_guarantee_under_central_trust() -> None:
    trained = run(data_of(SIZES), LAST, TrustModel.CENTRAL)
    assert [g.epsilon for g in trained.guarantees] == [2.0]
    verify(trained.guarantee)
    assert "trusted server" in trained.guarantee.observer


def test_a_guarantee_about_persons_says_persons() -> None:
    silos = [Grouped.of(records, np.arange(len(records)) // 3) for records in data_of(SIZES)]
    trained = run(silos, LAST, TrustModel.LOCAL, unit=Unit.PERSON)
    assert trained.guarantee.neighbours.unit is Unit.PERSON
    assert "replacing one person" in str(trained.guarantee)
    verify(trained.guarantee)


def test_without_a_budget_nothing_is_claimed() -> None:
    trained = run(data_of(SIZES), LAST)
    assert trained.noise_multiplier == 0
    assert all(np.isinf(g.epsilon) for g in trained.guarantees)
    assert "No privacy is claimed" in str(trained.guarantee)


@pytest.mark.parametrize("noise", ["gaussian", "discrete-gaussian"])
@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_seeds_repeat_and_differ(noise: str, trust: TrustModel) -> None:
    silos, algorithm = data_of(SIZES), NoisyMinibatchSGD(rounds=3, batch=Fixed(rate=0.5))
    one, again = (run(silos, algorithm, trust, noise=noise, seed=3) for _ in range(2))
    other = run(silos, algorithm, trust, noise=noise, seed=4)
    assert one.w.tolist() == again.w.tolist()
    assert one.w.tolist() != other.w.tolist()


@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_without_a_seed_the_noise_is_secret(trust: TrustModel) -> None:
    silos, algorithm = data_of(SIZES), NoisyMinibatchSGD(rounds=2)
    one, other = (run(silos, algorithm, trust, noise="discrete-gaussian", seed=None) for _ in range(2))
    assert one.w.tolist() != other.w.tolist()
    assert not one.guarantee.simulated


@pytest.mark.parametrize("relation", Relation)
def test_poisson_batches(relation: Relation) -> None:
    silos = data_of(SIZES)
    algorithm = NoisyMinibatchSGD(rounds=4, batch=Poisson(rate=0.3))
    settings = Settings(
        objective=OBJECTIVE,
        algorithm=algorithm,
        trust=TrustModel.LOCAL,
        budget=BUDGET,
        relation=relation,
    )
    planned = SIZES if relation is Relation.ADD_REMOVE else None
    trained = train(in_process(make_silos(silos, OBJECTIVE, planned=planned, seed=2), seed=2), settings)
    assert trained.guarantee.neighbours.relation is relation
    assert trained.guarantee.epsilon <= 2.0


def test_traffic_counts_who_answered() -> None:
    trained = run(data_of(SIZES), LAST, TrustModel.LOCAL, participation=RandomSubset(2))
    assert trained.traffic.answered.sum() == 60
    assert trained.traffic.skipped == 0
    per_answer = trained.traffic.bits_up / trained.traffic.answered
    assert np.all((per_answer >= 32 * D) & (per_answer <= 32 * D + 400))


@dataclass(frozen=True)
class InTurns:
    """A user's own participation: pairs of neighbours, round after round."""

    uniform: ClassVar[bool] = False

    def fewest(self, parties: int) -> int:
        return 2

    def silos(self, round: int, parties: int, stream: PublicStream) -> IntArray:
        return np.sort([round % parties, (round + 1) % parties])


def test_with_a_participation_of_the_users_own_it_is_the_loop_written_by_hand() -> None:
    silos, rounds = data_of(SIZES), 7
    algorithm = NoisyMinibatchSGD(rounds=rounds, average=1.0)
    found = run(silos, algorithm, weights="silos", participation=InTurns(), diameter=2.0)
    # V^2 for 2 of 3 silos of equal weight (Lowy 2023, Lemma 128), gradients of norm 1 at most.
    variance = (3 - 2) / ((3 - 1) * 2)
    eta = 2.0 / np.sqrt(variance * rounds)
    assert eta < 1 / OBJECTIVE.smoothness  # the step of everybody, who sample no silos
    w, visited = np.zeros(D), []
    for r in range(rounds):
        visited.append(w)
        gradients = []
        for k in (r % 3, (r + 1) % 3):
            X, y = silos[k].X, silos[k].y
            gradients.append(X.T @ (1 / (1 + np.exp(-X @ w)) - y) / len(y))
        w = w - eta * np.mean(gradients, axis=0)
    np.testing.assert_allclose(found.w, np.mean(visited, axis=0), rtol=1e-9)


def test_every_round_is_followed() -> None:
    seen: list[int] = []
    settings = Settings(objective=OBJECTIVE, algorithm=LAST)
    train(
        in_process(make_silos(data_of(SIZES), OBJECTIVE, trusts_server=True, seed=1), seed=1),
        settings,
        follow=lambda r, _w: seen.append(r),
    )
    assert seen == list(range(30))


def test_only_sizes_decide_about_rounds_and_noise() -> None:
    algorithm = AcceleratedNoisyMinibatchSGD()
    one, other = (run(data_of(SIZES, seed=s), algorithm, TrustModel.LOCAL, clip=0.3) for s in (1, 2))
    assert one.plan == other.plan
    assert one.rounds == other.rounds
    assert one.noise_multiplier == other.noise_multiplier


def test_one_bad_record_changes_nothing_visible() -> None:
    silos = data_of(SIZES)
    X = silos[0].X.copy()
    X[3] = np.nan
    broken = [Records.of(X, silos[0].y), *silos[1:]]
    trained = run(broken, LAST, TrustModel.LOCAL, clip=0.3)
    assert np.isfinite(trained.w).all()
    assert trained.guarantees == run(silos, LAST, TrustModel.LOCAL, clip=0.3).guarantees


# Nothing is spent on what cannot run


@pytest.fixture
def ledgers(tmp_path: Path) -> list[Ledger]:
    limit = PrivacyBudget(3.0, 1e-4)
    return [
        Ledger.create(tmp_path / f"{k}.ledger", limit=limit, neighbours=Neighbours(), label=str(k))
        for k in range(3)
    ]


def with_ledgers(ledgers: list[Ledger], algorithm: Algorithm, **changes: Any) -> Trained:
    facts: dict[str, Any] = {"objective": OBJECTIVE, "trust": TrustModel.LOCAL, "budget": BUDGET, **changes}
    silos = make_silos(data_of(SIZES), facts["objective"], ledgers=ledgers, names=["a", "b", "c"])
    return train(in_process(silos), Settings(algorithm=algorithm, noise="discrete-gaussian", **facts))


def test_every_silo_pays_once(ledgers: list[Ledger]) -> None:
    with_ledgers(ledgers, NoisyMinibatchSGD(rounds=2))
    assert [ledger.spent().epsilon for ledger in ledgers] == pytest.approx([2.0] * 3, abs=2e-6)
    with pytest.raises(BudgetError):
        with_ledgers(ledgers, NoisyMinibatchSGD(rounds=3), run="again")
    assert [ledger.spent().epsilon for ledger in ledgers] == pytest.approx([2.0] * 3, abs=2e-6)


@pytest.mark.parametrize(
    ("algorithm", "changes", "message"),
    [
        (MultiStageAcceleratedNoisyMinibatchSGD(mu=0.01, rounds=2), {}, "for the first stage"),
        (MultiStageAcceleratedNoisyMinibatchSGD(mu=0.9, rounds=99), {}, "mu must be at most the smoothness"),
        (AcceleratedNoisyMinibatchSGD(mu=0.9, rounds=2), {}, "mu must be at most the smoothness"),
        (NoisyMinibatchSGD(mu=0.9, rounds=2), {}, "mu must be at most the smoothness"),
        (
            NoisyMinibatchSGD(rounds=2),
            {"objective": LinearObjective(loss=Logistic(), features=D), "clip": 1.0},
            "smoothness is unknown",
        ),
        (NoisyMinibatchSGD(rounds=2, batch=Fixed(size=21)), {}, "size must be at most the 20 units"),
        (NoisyMinibatchSGD(rounds=3, batch=Disjoint(size=7)), {}, "rounds x batch must be at most the 20"),
        (NoisyMinibatchSGD(rounds=2), {"weights": [1.0, 1.0]}, "weights must be 3 finite numbers"),
        (NoisyMinibatchSGD(rounds=2), {"weights": [1.0, 1.0, -1.0]}, "weights must be 3 finite numbers"),
        (NoisyMinibatchSGD(rounds=2), {"participation": RandomSubset(4)}, "size must be at most the 3 silos"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_what_cannot_run_spends_nothing(
    ledgers: list[Ledger], algorithm: Algorithm, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ParameterError, match=message):
        with_ledgers(ledgers, algorithm, **changes)
    assert [ledger.spent().epsilon for ledger in ledgers] == [0.0] * 3


def test_central_trust_counts_records_only() -> None:
    with pytest.raises(ParameterError, match="weights must be 'records' under central trust"):
        run(data_of(SIZES), LAST, TrustModel.CENTRAL, weights="silos")


def test_records_cannot_be_claimed_as_persons() -> None:
    objective = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)
    records = Records.of(np.eye(2), np.array([0.0, 1.0]))
    settings = Settings(
        objective=objective,
        trust=TrustModel.LOCAL,
        budget=PrivacyBudget(1.0, 1e-5),
        unit=Unit.PERSON,
    )
    with pytest.raises(ParameterError, match="are of kind record, those of the plan of kind person"):
        train(in_process(make_silos([records], objective, trusts_server=True, seed=0), seed=0), settings)
