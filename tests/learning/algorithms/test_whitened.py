"""Whitened features: what becomes of a record, what a run costs, attacks on whole runs, and what it finds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from tacit.errors import ParameterError, RefusalError
from tacit.federation import AnyStep, Fixed
from tacit.learning import (
    Grouped,
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    NoisyMinibatchSGD,
    Records,
    Settings,
    Squared,
    Trained,
    WhitenedNoisyGD,
    in_process,
    make_silos,
    train,
)
from tacit.learning.algorithms.whitened import Whitening
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.whitening import WhitenedGradient
from tacit.means import AdditiveMean
from tacit.numerics import Array, ElasticNet, SquaredL2, row_norms
from tacit.privacy import Gaussian, Neighbours, PrivacyBudget, Relation, TrustModel, Unit, guarantee, meets
from tests.learning.attacks import LOOSE, Score, stands_and_half_the_noise_is_caught

BUDGET = PrivacyBudget(1.0, 1e-5)


def objective(loss: Loss | None = None, d: int = 4, outputs: int = 1) -> LinearObjective:
    return LinearObjective(loss=loss or Logistic(), features=d, outputs=outputs, feature_norm=1.0)


def table(n: int = 300, d: int = 4, *, classes: int = 2) -> Records:
    """Rows of length at most 1 whose columns differ in size by a factor of 30, and noisy labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 30, d)
    X /= row_norms(X).max()
    if classes > 2:
        return Records.of(X, (rng.integers(0, classes, n) * (X[:, 0] > 0)).astype(float))
    return Records.of(X, (40 * X @ np.geomspace(1, 0.1, d) + rng.logistic(size=n) > 0).astype(float))


def fitted(units: Records | Grouped, goal: LinearObjective, **changes: Any) -> Trained:
    given: dict[str, Any] = {"algorithm": WhitenedNoisyGD(), "clip": 1e6} | changes
    settings = Settings(objective=goal, **given)
    silos = make_silos([units], goal, trusts_server=settings.trusts_server, seed=1)
    return train(in_process(silos, seed=1), settings)


# What becomes of a record


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_features_are_replaced_by_a_times_them_at_full_length(kind: type[Any]) -> None:
    rng = np.random.default_rng(1)
    goal = LinearObjective(loss=Logistic(), features=3, feature_norm=2.0)
    units = Records.of(rng.normal(size=(50, 3)).astype(kind), rng.integers(0, 2, 50))
    A, w = rng.normal(size=(3, 3)), rng.normal(size=3)
    rows = units.X @ A.T.astype(kind)
    rows *= (2 / np.linalg.norm(rows, axis=1))[:, None]
    expected = (1 / (1 + np.exp(-rows @ w)) - units.y)[:, None] * rows
    at = {"w": w, "whitening": A}
    statistic = WhitenedGradient(goal)
    assert statistic(units, at) == pytest.approx(expected, rel=1e-4 if kind is np.float32 else 1e-12)
    clipped = expected * np.minimum(1, 0.5 / np.linalg.norm(expected, axis=1))[:, None]
    found = statistic.clipped_sum(units, at, 0.5, np.float64)
    assert found == pytest.approx(clipped.sum(axis=0), rel=1e-4 if kind is np.float32 else 1e-10)


def test_a_row_is_the_same_bits_whoever_stands_beside_it() -> None:
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(37, 9)), rng.integers(0, 2, 37)
    at = {"w": 1e25 * rng.normal(size=9), "whitening": rng.normal(size=(9, 9))}
    statistic = WhitenedGradient(objective(d=9))
    whole = statistic(Records.of(X, y), at)
    for first in range(1, 12):
        assert np.array_equal(statistic(Records.of(X[first:], y[first:]), at), whole[first:])


def test_what_was_computed_is_used_again_for_the_same_matrix_only() -> None:
    units, statistic = table(), WhitenedGradient(objective())
    A = np.diag([1.0, 2.0, 3.0, 4.0])
    first = statistic(units, {"w": np.ones(4), "whitening": A})
    kept = units.memo["whitened"]
    statistic(units, {"w": np.zeros(4), "whitening": A.copy()})
    assert units.memo["whitened"] is kept
    other = statistic(units, {"w": np.ones(4), "whitening": np.eye(4)})
    assert not np.allclose(first, other)
    assert np.array_equal(statistic(units, {"w": np.ones(4), "whitening": A}), first)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e300])
def test_a_record_that_overflows_counts_as_zero(bad: float) -> None:
    X = np.array([[bad, bad], [1.0, 0.0]])
    at = {"w": np.zeros(2), "whitening": np.array([[1e300, 1e300], [0.0, 1.0]])}
    units = Records.of(X, np.zeros(2))
    found = WhitenedGradient(objective(d=2)).clipped_sum(units, at, 1.0, np.float64)
    assert np.isfinite(found).all()
    assert np.linalg.norm(found) <= 1 + 1e-12
    none = {"w": np.zeros(2), "whitening": np.zeros((2, 2))}
    assert not WhitenedGradient(objective(d=2))(units, none).any()


# The matrix


def test_a_whitening_makes_all_directions_alike() -> None:
    units = table()
    gram = units.X.T @ units.X / len(units)
    white = Whitening.of(gram, ridge=0.0)
    assert white.rank == pytest.approx(4.0)
    assert white.matrix @ gram @ white.matrix == pytest.approx(np.eye(4) / 4, abs=1e-9)
    assert white.matrix @ white.inverse == pytest.approx(np.eye(4), abs=1e-9)
    values = np.linalg.eigvalsh(gram)
    noisy = Whitening.of(gram, ridge=0.01)
    assert noisy.rank == pytest.approx((values / (values + 0.01)).sum())
    stretched = noisy.matrix @ gram @ noisy.matrix
    assert np.linalg.eigvalsh(stretched) == pytest.approx(
        np.sort(values / (values + 0.01)) / noisy.rank, rel=1e-9
    )
    assert np.trace(stretched) == pytest.approx(1.0)
    nothing = Whitening.of(-gram, ridge=0.0)
    assert nothing.rank == 1.0
    assert np.isfinite(nothing.matrix).all()


def test_the_units_of_columns_do_not_matter_without_noise() -> None:
    units, goal = table(), objective()
    shrunk = Records.of(units.X * [1.0, 0.02, 0.3, 0.5], units.y)
    here, there = fitted(units, goal).w, fitted(shrunk, goal).w
    assert shrunk.X @ there == pytest.approx(units.X @ here, rel=1e-6)
    plain = [fitted(one, goal, algorithm=NoisyMinibatchSGD(rounds=100)).w for one in (units, shrunk)]
    assert not np.allclose(shrunk.X @ plain[1], units.X @ plain[0], rtol=0.1)


# What is found


@pytest.mark.parametrize(("loss", "outputs"), [(Logistic(), 1), (Multinomial(), 3)])
@pytest.mark.parametrize("l2", [0.0, 0.02])
def test_without_noise_it_minimises_the_loss_of_whitened_rows(loss: Loss, outputs: int, l2: float) -> None:
    units, goal = table(classes=outputs), objective(loss, outputs=outputs)
    white = Whitening.of(units.X.T @ units.X / len(units), ridge=0.0)
    rows = units.X @ white.matrix
    rows /= row_norms(rows)[:, None]
    records = Records.of(rows, units.y)

    def back(w: Array) -> Array:
        return (white.inverse @ w.reshape(4, -1)).ravel()

    def value(w: Array) -> float:
        return float(goal.value(back(w), records).mean() + l2 / 2 * w @ w)

    best = optimize.minimize(value, np.zeros(goal.size), method="BFGS").fun
    found = fitted(units, goal, algorithm=WhitenedNoisyGD(rounds=800), regularizer=SquaredL2(l2)).w
    assert value(found) - best < 1e-4 * (value(np.zeros(goal.size)) - best)


def test_an_l1_penalty_makes_parameters_of_the_features_zero() -> None:
    found = fitted(table(), objective(), regularizer=ElasticNet(l1=0.01, l2=0.0)).w
    assert 0 < (found == 0).sum() < 4


def test_persons_samples_and_exact_noise() -> None:
    units, goal = table(), objective()
    private: dict[str, Any] = {"clip": 0.2, "budget": BUDGET, "trust": TrustModel.LOCAL}
    for algorithm, held in (
        (WhitenedNoisyGD(batch=Fixed(size=30), rounds=5), units),
        (WhitenedNoisyGD(rounds=5), Grouped.of(units, np.arange(300) // 3)),
    ):
        unit = Unit.RECORD if held is units else Unit.PERSON
        run = fitted(held, goal, algorithm=algorithm, noise="discrete-gaussian", unit=unit, **private)
        assert run.plan.exact
        assert run.guarantee.epsilon <= 1.0
    persons = fitted(Grouped.of(units, np.arange(300)), goal, unit=Unit.PERSON)
    assert persons.w == pytest.approx(fitted(units, goal).w)


# What it costs


def multiplier(step: AnyStep) -> float:
    """That of the only mean of a kind of round."""
    (measure,) = step.measures
    assert isinstance(measure.estimator, AdditiveMean)
    return measure.estimator.noise_multiplier


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
def test_the_price_is_that_of_one_gaussian_release(trust: TrustModel, relation: Relation) -> None:
    """mu^2 = 1 / z_G^2 + T / z^2, of which the Gram matrix has its share."""
    algorithm = WhitenedNoisyGD()
    settings = Settings(
        objective=objective(), algorithm=algorithm, trust=trust, budget=BUDGET, clip=0.2, relation=relation
    )
    prepared = prepare(settings, [300])
    (gram, once), (gradient, rounds) = prepared.plan.kinds
    assert (once, rounds) == (1, 100)
    level = 1 / multiplier(gram) ** 2 + rounds / multiplier(gradient) ** 2
    assert 1 / multiplier(gram) ** 2 == pytest.approx(algorithm.share * level)
    assert meets(prepared.plan.event([300], trust), BUDGET)
    priced = guarantee(Gaussian(1 / math.sqrt(level), Neighbours(relation)), 1e-5, observer="all")
    assert priced.epsilon == pytest.approx(1.0, abs=1e-6)


def test_what_cannot_be_done_is_refused_before_anything_is_asked() -> None:
    for goal, algorithm, said in (
        (objective(Squared()), WhitenedNoisyGD(), "needs a loss of classes"),
        (objective(Huber()), WhitenedNoisyGD(), "needs a loss of classes"),
        (LinearObjective(loss=Logistic(), features=3), WhitenedNoisyGD(), "smoothness|of known norm"),
        (objective(d=2001), WhitenedNoisyGD(), "at most 2000 features"),
        (objective(), WhitenedNoisyGD(rounds=1), "rounds must be at least 2"),
        (objective(), WhitenedNoisyGD(rounds=None), "no error bound is finite; give a number"),
    ):
        with pytest.raises(ParameterError, match=said):
            prepare(Settings(objective=goal, algorithm=algorithm, clip=1.0), [100])
    for options, said in (
        ({"share": 0.0}, "share must be in"),
        ({"share": 1.0}, "share must be in"),
        ({"ridge": -1.0}, "ridge must be a finite number >= 0"),
        ({"distance": 0.0}, "distance must be a finite number > 0"),
        ({"average": 0.0}, "average must be in"),
    ):
        with pytest.raises(ParameterError, match=said):
            WhitenedNoisyGD(**options)  # type: ignore[arg-type]


def test_a_silo_refuses_a_matrix_of_another_shape() -> None:
    goal = objective()
    settings = Settings(objective=goal, algorithm=WhitenedNoisyGD(rounds=2), clip=1.0)
    ask = in_process(make_silos([table()], goal, trusts_server=True)).open(prepare(settings, [300]).plan)
    ask(0, {}, (1.0,))
    for at in ({"w": np.zeros(4)}, {"w": np.zeros(4), "whitening": np.eye(3)}):
        with pytest.raises(RefusalError, match="whitened-gradient"):
            ask(1, at, (1.0,))


# Attacks on whole runs


CANARY = np.array([0.8, 0.6])


GOAL = LinearObjective(loss=Logistic(), features=2, feature_norm=1.0)


def of_canary(honest: Prepared) -> Score:
    """Along what the canary contributes: its square, then itself, whitened."""
    levels, schedule = [mean.noise_multiplier**-2 for mean in honest.means], honest.plan.schedule()

    def along(at: Mapping[str, Array]) -> Array:
        if "whitening" in at:
            return np.asarray(at["whitening"] @ CANARY / np.linalg.norm(at["whitening"] @ CANARY))
        x, y = CANARY
        return np.array([x * x, math.sqrt(2) * x * y, y * y])

    return lambda seen: np.array(
        [sum(levels[schedule.kind(one.step)] * float(one.means[0] @ along(one.at)) for one in seen)]
    )


@pytest.mark.parametrize(
    ("algorithm", "relation", "trust"),
    [
        (WhitenedNoisyGD(rounds=4), Relation.REPLACE_ONE, TrustModel.CENTRAL),
        (WhitenedNoisyGD(rounds=3, share=0.5), Relation.ADD_REMOVE, TrustModel.LOCAL),
        (WhitenedNoisyGD(rounds=2), Relation.ZERO_OUT, TrustModel.AGGREGATE),
    ],
)
def test_a_whole_run_stands_and_half_the_noise_is_caught(
    algorithm: Any, relation: Relation, trust: TrustModel
) -> None:
    """One record whose label is so far off that its gradient is as long as the clip at any w, or another."""
    settings = Settings(
        objective=GOAL, algorithm=algorithm, trust=trust, budget=LOOSE, clip=1.0, relation=relation
    )
    there = Records.of(np.array([CANARY, [0.0, 0.0]]), np.array([-1e9, 0.0]))
    other = {
        Relation.ZERO_OUT: Records.of(np.zeros((2, 2)), np.zeros(2)),
        Relation.ADD_REMOVE: there.take(np.array([1])),
        # Opposite gradients; a right angle would move the Gram matrix more and gradients less.
        Relation.REPLACE_ONE: Records.of(there.X, -there.y),
    }[relation]
    rest = [Records.of(np.zeros((2, 2)), np.zeros(2))] * (trust is TrustModel.AGGREGATE)
    runs = 400 if relation is Relation.REPLACE_ONE else 220
    stands_and_half_the_noise_is_caught(
        settings, [there, *rest], [other, *rest], of_canary, runs=runs, normal=True
    )
