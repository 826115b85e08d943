"""Training where only sums are seen: one share of noise for all silos, two guarantees, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

from tacit.errors import BudgetError, ParameterError
from tacit.federation import Fixed, Group, OpenSums, Poisson, RandomSubset, Scheduled
from tacit.learning import (
    ALGORITHMS,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    FederatedLinearRegression,
    FederatedLogisticRegression,
    Grouped,
    LinearObjective,
    Logistic,
    NoisyMinibatchSGD,
    PrivateNeuralClassifier,
    PublicObjective,
    Records,
    Settings,
    Squared,
    Trained,
    in_process,
    make_algorithm,
    make_silos,
    train,
)
from tacit.learning.preparation import Prepared, prepare
from tacit.ledger import DATA_SET, Ledger, create_ledgers, ledger_path
from tacit.means import ModularSumMean
from tacit.numerics import L1, NORM_SLACK, clip_rows
from tacit.privacy import Neighbours, PrivacyBudget, Relation, TrustModel, Unit, epsilon_of, verify
from tests.loops import each

D = 4
OBJECTIVE = LinearObjective(loss=Logistic(), features=D, feature_norm=1.0)
BUDGET = PrivacyBudget(2.0, 1e-5)
SIZES = (30, 50, 20, 40)
AGGREGATE = TrustModel.AGGREGATE


def data(sizes: tuple[int, ...] = SIZES) -> list[Records]:
    rng = np.random.default_rng(1)
    truth, silos = rng.standard_normal(D), []
    for n in sizes:
        X = clip_rows(rng.standard_normal((n, D)), 1.0)
        silos.append(Records.of(X, (X @ truth > 0).astype(np.float64)))
    return silos


def settings(algorithm: Algorithm, **fields: Any) -> Settings:
    return Settings(
        **{"objective": OBJECTIVE, "algorithm": algorithm, "trust": AGGREGATE, "budget": BUDGET, **fields}
    )


def run(algorithm: Algorithm, *, seed: int | None = 3, silos: Any = None, **fields: Any) -> Trained:
    chosen = settings(algorithm, **fields)
    made = make_silos(
        data() if silos is None else silos,
        chosen.objective,
        planned=SIZES if chosen.relation is Relation.ADD_REMOVE else None,
        sums=OpenSums(),
        seed=seed,
    )
    return train(in_process(made, seed=seed), chosen)


def sums_of(prepared: Prepared) -> list[tuple[ModularSumMean, int]]:
    """The means of a run, with how often each is asked."""
    found = []
    for step, count in prepared.plan.kinds:
        for measure in step.measures:
            assert isinstance(measure.estimator, ModularSumMean)
            found.append((measure.estimator, count))
    return found


# Every algorithm


# Methods of whole parties keep other statistics: tests/learning/personal has them.
RECORDS = [name for name, kind in ALGORITHMS.items() if kind.unit is None or AGGREGATE not in kind.trusts]


@each("name", RECORDS)
def test_every_algorithm_trains_or_says_in_one_line_why_not(name: str) -> None:
    options: dict[str, Any] = {"mu": 0.1} if name in ("multistage", "phases") else {}
    rounds = {"output-perturbation": 1, "objective-perturbation": 1, "multistage": 12, "phases": 6}
    algorithm = make_algorithm(name, rounds=rounds.get(name, 4), **options)
    more: dict[str, Any] = {"regularizer": L1(strength=1e-3)} if name.startswith("prox") else {}
    if getattr(ALGORITHMS[name], "needs_public", False):
        objective = replace(OBJECTIVE, loss=Squared()) if name == "pda" else OBJECTIVE
        more |= {"objective": objective, "public": PublicObjective(objective, data((25,))[0]), "clip": 1.0}
    if AGGREGATE in ALGORITHMS[name].trusts:
        found = run(algorithm, colluding=1, **more)
        assert np.isfinite(found.w).all()
        assert found.w.any()
        assert 0.98 * 2.0 < found.guarantee.epsilon <= 2.0
        assert found.guarantee_alone is not None
        # Of CE-PSGM, walks are as private alone, and most of what a small silo pays is for them.
        least = 1.05 if name == "ce-psgm" else 1.5
        assert found.guarantee_alone.epsilon > least * found.guarantee.epsilon
        for claim in (*found.guarantees, *found.guarantees_alone):
            verify(claim)
        return
    with pytest.raises(ParameterError) as caught:
        run(algorithm, **more)
    said = str(caught.value)
    assert "\n" not in said
    assert f"for the algorithm {name!r}, got aggregate: " in said
    assert len(said.split("aggregate: ")[1]) > 20


def test_what_asks_for_sums_of_rows_runs_where_only_sums_are_seen() -> None:
    kept_out = {name for name, kind in ALGORITHMS.items() if AGGREGATE not in kind.trusts}
    others = {"local", "sign-vote", "ftrl", "output-perturbation", "objective-perturbation", "semi-ldp"}
    others |= {"cldp-sgd", "dss-sgd"}
    others |= {"dp-shuffle", "private-public-shuffle", "public-private-shuffle", "interleaved-shuffle"}
    assert kept_out == others
    assert all(bool(kind.why_no_sums) == (name in others) for name, kind in ALGORITHMS.items())


# The noise, and its price


def epsilon_of_gaussian(mu: float, delta: float) -> float:
    """Balle and Wang (2018): the least epsilon of a mu-Gaussian release, by its own formula."""

    def excess(epsilon: float) -> float:
        other = math.exp(epsilon + special.log_ndtr(-mu / 2 - epsilon / mu))
        return float(special.ndtr(mu / 2 - epsilon / mu)) - other - delta

    return float(optimize.brentq(excess, 0.0, 200.0, xtol=1e-12))


def level(mean: ModularSumMean, size: int, *, alone: bool = False, lost: float = 9.0) -> float:
    """mu of one sum for a record of a silo of that size, from the plan's numbers alone.

    Noise on a grid is as good as rounded noise of real numbers of 9 steps^2 less, and not better than that of
    all of its variance.
    """
    s, steps = mean.noise.noise_multiplier * mean.moved * mean.noise.steps, mean.noise.steps
    # Two sums of n rows in float64, each off by n + 4 roundings, and by half a step a coordinate.
    slack = 2 * size * steps * (size + 4) * 2.0**-53
    moved = mean.moved * steps * (1 + NORM_SLACK) + math.sqrt(mean.dim) + slack
    honest = 1 if alone else mean.shares
    return moved / math.sqrt(honest * s * s - lost)


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("name", ["minibatch", "whitened"])
def test_both_guarantees_are_those_of_an_independent_computation(name: str, relation: Relation) -> None:
    algorithm = make_algorithm(name, rounds=9)
    chosen = settings(algorithm, colluding=1, relation=relation)
    found, prepared = run(algorithm, colluding=1, relation=relation), prepare(chosen, SIZES)
    for guarantees, alone in ((found.guarantees, False), (found.guarantees_alone, True)):
        for guarantee, size in zip(guarantees, SIZES, strict=True):
            # A silo makes sure that it has at most twice the planned number.
            most = 2 * size if relation is Relation.ADD_REMOVE else size
            least, wanted = (
                epsilon_of_gaussian(
                    math.sqrt(
                        sum(
                            count * level(mean, most, alone=alone, lost=lost) ** 2
                            for mean, count in sums_of(prepared)
                        )
                    ),
                    BUDGET.delta,
                )
                for lost in (0.0, 9.0)
            )
            assert (least if alone else wanted) - 1e-8 <= guarantee.epsilon <= wanted + 2e-6
            assert guarantee.neighbours == Neighbours(relation)
    assert max(g.epsilon for g in found.guarantees) <= BUDGET.epsilon


def test_all_silos_draw_one_share_and_only_prices_know_their_sizes() -> None:
    """A silo of a million rows moves a sum by a little more than the others, and adds no more noise."""
    sizes = (30, 1_000_000, 20)
    prepared = prepare(settings(NoisyMinibatchSGD(rounds=5), colluding=1), sizes)
    ((mean, _),) = sums_of(prepared)
    assert mean.shares == 2
    z = prepared.noise_multiplier
    assert mean.noise_multiplier == pytest.approx(z, rel=1e-12)
    assert mean.noise.steps == 2 ** math.ceil(math.log2(50 * math.sqrt(D)))
    share = z * mean.moved * mean.noise.steps / math.sqrt(2)
    assert mean.noise.noise_multiplier * mean.moved * mean.noise.steps == pytest.approx(share, rel=1e-12)
    levels = [level(mean, size) for size in sizes]
    assert levels[1] > levels[0] > levels[2]
    for size, mu in zip(sizes, levels, strict=True):
        event = prepared.plan.event([size], AGGREGATE)
        alike = epsilon_of_gaussian(math.sqrt(5) * mu, 1e-5)
        assert alike - 1e-8 <= epsilon_of(event, 1e-5) <= alike + 2e-6
        assert alike <= 2.0 * (1 + 1e-8)


def test_a_step_of_two_means_has_one_width_for_the_whole_plan() -> None:
    prepared = prepare(settings(make_algorithm("spider", rounds=4)), SIZES)
    for step, _ in prepared.plan.kinds:
        assert len({mean.estimator.width for mean in step.measures}) == 1  # type: ignore[union-attr]
        assert all(mean.estimator.width < 40 for mean in step.measures)  # type: ignore[union-attr]


def test_little_noise_of_many_silos_is_still_of_whole_steps() -> None:
    """3 steps a share, and 9 together, are the least that has a price, whatever the budget."""
    loose = PrivacyBudget(200.0, 1e-2)
    for sizes in ((500,) * 2, (500,) * 400):
        prepared = prepare(settings(NoisyMinibatchSGD(rounds=1), budget=loose), sizes)
        ((mean, _),) = sums_of(prepared)
        s = mean.noise.noise_multiplier * mean.moved * mean.noise.steps
        assert s >= 3
        assert len(sizes) * s**2 >= 81
        assert epsilon_of(prepared.plan.event([500], AGGREGATE), loose.delta) <= loose.epsilon


def test_fewer_sure_silos_need_larger_shares_and_all_of_them_are_in_the_error() -> None:
    algorithm = NoisyMinibatchSGD(rounds=5)
    found = {}
    for n_min, colluding, recover in ((None, 0, False), (None, 2, False), (4, 1, True), (3, 1, True)):
        prepared = prepare(settings(algorithm, n_min=n_min, colluding=colluding, recover=recover), SIZES)
        ((mean, _),) = sums_of(prepared)
        honest = (n_min or 4) - colluding
        assert (prepared.plan.n_min, prepared.plan.colluding) == (n_min or 4, colluding)
        assert prepared.plan.recover is recover
        assert mean.shares == honest
        # Of the whole sum: n shares, of which `honest` are the noise of the price.
        share = mean.noise.noise_multiplier * 2 * prepared.problem.radius
        assert prepared.problem.variance == pytest.approx(4 * D * share**2 / sum(SIZES) ** 2, rel=1e-9)
        found[honest] = prepared.problem.variance
    assert found[2] / found[4] == pytest.approx(2, rel=1e-2)
    assert found[3] / found[4] == pytest.approx(4 / 3, rel=1e-2)


def test_a_gram_matrix_and_gradients_are_priced_together() -> None:
    """Aligned rounds cost less than the same rounds one by one."""
    prepared = prepare(settings(make_algorithm("preconditioned", rounds=6), colluding=1), SIZES)
    (group, _), *rest = prepared.plan.steps
    assert not rest
    assert isinstance(group, Group)
    assert group.aligned
    squares = sum(count * level(mean, 20) ** 2 for mean, count in sums_of(prepared))
    apart = epsilon_of_gaussian(math.sqrt(squares), BUDGET.delta)
    assert apart > 1.02 * BUDGET.epsilon


def test_the_noise_of_a_run_is_that_of_the_plan() -> None:
    """Parameters after one long step, over seeds: deviations to within 5 standard errors."""
    algorithm, runs = NoisyMinibatchSGD(rounds=2, step_size=1.0, average=1e-9), 150
    found = np.array([run(algorithm, seed=seed, colluding=2).w for seed in range(runs)])
    wanted = math.sqrt(prepare(settings(algorithm, colluding=2), SIZES).problem.variance / D)
    measured = found.std(axis=0, ddof=1)
    assert np.all(abs(measured / wanted - 1) < 5 / math.sqrt(2 * runs))


# Runs


@pytest.mark.parametrize("batch", [Fixed(rate=0.5), Poisson(rate=0.5)])
def test_samples_that_silos_keep_secret_are_cheaper(batch: Any) -> None:
    full, part = (
        run(NoisyMinibatchSGD(rounds=5, batch=one) if one else NoisyMinibatchSGD(rounds=5), colluding=1)
        for one in (None, batch)
    )
    assert part.guarantee.epsilon <= 2.0
    assert part.noise_multiplier < 0.8 * full.noise_multiplier


def test_seeds_repeat_and_differ_and_without_one_noise_is_secret() -> None:
    algorithm = NoisyMinibatchSGD(rounds=3, batch=Fixed(rate=0.5))
    one, again, other = (run(algorithm, seed=seed) for seed in (3, 3, 4))
    assert one.w.tolist() == again.w.tolist() != other.w.tolist()
    assert one.guarantee.simulated
    secret = run(algorithm, seed=None)
    assert secret.w.tolist() != run(algorithm, seed=None).w.tolist()
    assert not secret.guarantee.simulated


def test_a_warm_start_and_a_penalty_cost_nothing() -> None:
    algorithm = NoisyMinibatchSGD(rounds=4)
    plain = run(algorithm)
    started = run(algorithm, start=np.ones(D), regularizer=L1(strength=0.01))
    assert started.guarantees == plain.guarantees
    assert started.w.tolist() != plain.w.tolist()


def test_persons_are_protected_as_a_whole() -> None:
    silos = [Grouped.of(one, np.arange(len(one)) // 2) for one in data()]
    found = run(NoisyMinibatchSGD(rounds=4), silos=silos, unit=Unit.PERSON, colluding=1)
    assert found.guarantee.neighbours.unit is Unit.PERSON
    assert 1.99 < found.guarantee.epsilon <= 2.0


@pytest.mark.parametrize("recover", [False, True])
def test_a_run_of_a_silo_with_a_ledger_goes_on_with_the_answers_that_it_gave(
    tmp_path: Path, recover: bool
) -> None:
    """Interrupted after two of four rounds, it is charged once and ends where it would have ended."""
    chosen = settings(NoisyMinibatchSGD(rounds=4), run="r", recover=recover, n_min=4 if recover else None)
    ledgers = [
        Ledger.create(tmp_path / f"{k}.ledger", limit=PrivacyBudget(3.0, 1e-4), neighbours=Neighbours())
        for k in range(len(SIZES))
    ]

    class StoppedError(Exception):
        pass

    def trained(last: int) -> tuple[np.ndarray, list[np.ndarray]]:
        seen: list[np.ndarray] = []

        def follow(number: int, w: np.ndarray) -> None:
            seen.append(w.copy())
            if number == last:
                raise StoppedError

        silos = make_silos(data(), OBJECTIVE, ledgers=ledgers, sums=OpenSums())
        try:
            return train(in_process(silos), chosen, follow=follow).w, seen
        except StoppedError:
            return seen[-1], seen

    _, before = trained(1)
    w, after = trained(99)
    again, _ = trained(99)
    assert [one.tolist() for one in after[:2]] == [one.tolist() for one in before]
    assert again.tolist() == w.tolist()
    assert all(1.99 < ledger.spent().epsilon <= 2.0 for ledger in ledgers)
    for ledger in ledgers:
        ledger.close()


# What is refused


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"budget": None}, "aggregate trust needs a budget: a sum alone protects nobody"),
        ({"participation": RandomSubset(3)}, "participation must be that of everybody under aggregate trust"),
        ({"participation": Scheduled([[0, 1, 2]])}, "participation must be that of everybody"),
        ({"weights": "silos"}, "weights must be 'records' under aggregate trust"),
        ({"weights": np.ones(4)}, "weights must be 'records' under aggregate trust"),
        ({"colluding": 3}, "colluding must be at most n_min - 2"),
        ({"n_min": 3}, r"n_min must be the number of silos \(4\) under aggregate trust without recover"),
        ({"n_min": 5, "recover": True}, r"n_min must be at most the number of silos \(4\), got 5"),
        ({"n_min": 3, "colluding": 2, "recover": True}, "colluding must be at most n_min - 2"),
        ({"n_min": 2, "recover": True}, "n_min must be above half of silos and colluders together"),
        ({"n_min": 1}, "n_min must be"),
        ({"colluding": -1}, "colluding must be"),
        ({"recover": 1}, "recover must be True or False"),
        (
            {"trust": TrustModel.LOCAL, "recover": True},
            "roster and recover are for aggregate trust, got recover=True with local trust",
        ),
        ({"recover": True}, "n_min must be given with recover, got None"),
        ({"trust": TrustModel.LOCAL, "colluding": 1}, "are for shuffle and aggregate trust"),
        ({"budget": PrivacyBudget(1.0)}, "delta must be > 0"),
    ],
)
def test_what_a_sum_cannot_be_asked_for_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        run(NoisyMinibatchSGD(rounds=2), **fields)


def test_one_silo_alone_and_too_many_that_recover_are_refused() -> None:
    with pytest.raises(ParameterError, match="trust must not be aggregate with 1 silo"):
        prepare(settings(NoisyMinibatchSGD(rounds=2)), [50])
    many = settings(NoisyMinibatchSGD(rounds=2), recover=True, n_min=150)
    with pytest.raises(ParameterError, match="recover needs at most 200 silos"):
        prepare(many, [50] * 201)
    assert prepare(many, [50] * 200).plan.recover


# Estimators

ROWS = np.random.default_rng(5).uniform(-1, 1, (240, 3))
LABELS = (ROWS[:, 0] + ROWS[:, 1] > 0).astype(int)
WHERE = np.arange(240) % 4


def classifier(**changes: Any) -> FederatedLogisticRegression:
    facts = {"trust": "aggregate", "budget": PrivacyBudget(3.0, 1e-5), "bounds": (-1, 1), "classes": [0, 1]}
    return FederatedLogisticRegression(**{**facts, "colluding": 1, "random_state": 0, **changes})


def test_estimators_learn_and_state_both_guarantees() -> None:
    linear = FederatedLinearRegression(
        trust="aggregate",
        budget=PrivacyBudget(3.0, 1e-5),
        bounds=(-1, 1),
        target_bounds=(-2, 2),
        colluding=1,
        random_state=0,
    )
    network = PrivateNeuralClassifier(
        trust="aggregate",
        budget=PrivacyBudget(3.0, 1e-5),
        bounds=(-1, 1),
        classes=[0, 1],
        colluding=1,
        random_state=0,
        rounds=20,
    )
    for model, y in ((classifier(), LABELS), (linear, ROWS @ [1.0, 0.5, 0.0]), (network, LABELS)):
        model.fit(ROWS, y, silos=WHERE)
        assert model.score(ROWS, y) > 0.5
        assert len(model.guarantees_) == len(model.guarantees_alone_) == 4
        assert 2.9 < model.guarantee_.epsilon <= 3.0
        assert model.guarantees_alone_[0].epsilon > 4.5
        assert model.trained_.plan.trust is AGGREGATE


def test_what_is_chosen_under_aggregate_trust_is_as_under_central_trust() -> None:
    for trust in ("aggregate", "central"):
        changes: dict[str, Any] = {} if trust == "aggregate" else {"colluding": 0}
        model = classifier(trust=trust, **changes).fit(ROWS, LABELS, silos=WHERE)
        assert model.trained_.algorithm == "whitened"


def test_a_ledger_of_silos_pays(tmp_path: Path) -> None:
    with Ledger.create(
        tmp_path / "one.ledger", limit=PrivacyBudget(9.0, 1e-3), neighbours=Neighbours()
    ) as ledger:
        with pytest.raises(ParameterError):
            classifier(random_state=None, ledger=ledger, rounds=2).fit(ROWS, LABELS)
        assert ledger.spent().epsilon == 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"budget": None}, "trust 'aggregate' needs a budget: a sum alone protects nobody"),
        ({"noise": "gaussian"}, "noise must be 'auto' or 'discrete-gaussian' under aggregate trust"),
        ({"colluding": 3}, "colluding must be at most n_min - 2"),
        ({"algorithm": "ftrl"}, "'ftrl', got aggregate: later rounds take noise"),
        ({"algorithm": AcceleratedNoisyMinibatchSGD(), "n_min": 3}, "without recover"),
    ],
)
def test_estimators_refuse_before_anything_is_asked(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        classifier(**changes).fit(ROWS, LABELS, silos=WHERE)


def test_in_a_folder_every_silo_pays_the_price_of_the_sums_and_the_data_set_besides(tmp_path: Path) -> None:
    folder, limit = tmp_path / "t.ledger", PrivacyBudget(7.0, 1e-3)
    create_ledgers(folder, ["0", "1", "2", "3"], limit=limit, neighbours=Neighbours())
    for spent in (3.0, 6.0):
        model = classifier(random_state=None, ledger=folder, rounds=2).fit(ROWS, LABELS, silos=WHERE)
        assert not model.guarantee_.simulated
        for name in ("0", "1", "2", "3", DATA_SET):
            with Ledger.open(ledger_path(folder, name)) as account:
                assert account.spent().epsilon == pytest.approx(spent, rel=1e-3)
    with pytest.raises(BudgetError, match="nothing was spent"):
        classifier(random_state=None, ledger=folder, rounds=2).fit(ROWS, LABELS, silos=WHERE)
