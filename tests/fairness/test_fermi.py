"""FERMI: the same minimum from the whole data and from batches of any size."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy import optimize

from tacit.errors import ParameterError
from tacit.fairness import (
    Climber,
    ErmiPenalty,
    FairProblem,
    Groups,
    PenaltyName,
    StepSizes,
    ermi,
    fermi,
    fermi_exact,
    force_attributes,
    hide_attributes,
    joint_table,
)
from tacit.fairness.scores import cross_entropy, probabilities
from tests.fairness.problems import D, problem, records, slope

STEPS = StepSizes(0.2, 0.2)


def loss(of: FairProblem, theta: np.ndarray) -> float:
    """Return the objective of plain logistic regression, written out."""
    return float(cross_entropy(of.model.scores(theta, of.X), of.y).mean() + of.l2 / 2 * np.sum(theta**2))


@pytest.mark.parametrize("classes", [2, 3])
def test_without_weight_it_is_logistic_regression(classes: int) -> None:
    of = problem(weight=0, classes=classes)
    wanted = optimize.minimize(partial(loss, of), of.model.start(), tol=1e-12).x
    np.testing.assert_allclose(fermi_exact(of, tolerance=1e-14).theta, wanted, atol=1e-5)
    full = fermi(of, steps=StepSizes(1.0), batch_size=60, epochs=800, rng=np.random.default_rng(0))
    np.testing.assert_allclose(full.theta, wanted, atol=1e-3)


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds", "equal-opportunity"])
@pytest.mark.parametrize("name", PenaltyName)
def test_the_gradient_is_that_of_the_objective(name: str, fairness: str) -> None:
    of = problem(regularizer=name, fairness=fairness, classes=3, groups=3, weight=2.0)
    theta = np.random.default_rng(0).standard_normal(of.model.size)
    np.testing.assert_allclose(of.both(theta)[1], slope(of.value, theta), atol=1e-7)


def test_the_objective_is_the_loss_and_the_weighted_ermi() -> None:
    of = problem(weight=3.0, groups=3)
    theta = np.random.default_rng(0).standard_normal(of.model.size)
    F = probabilities(of.model.scores(theta, of.X))
    unfair = ermi(joint_table(F, of.membership.groups, 3))
    assert of.value(theta) == pytest.approx(loss(of, theta) + 3 * unfair, rel=1e-12)


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds"])
def test_single_records_have_the_gradient_of_the_whole_on_average(fairness: str) -> None:
    of = problem(fairness=fairness, groups=3, weight=2.0)
    theta, dual = np.random.default_rng(0).standard_normal(of.model.size), of.penalty.climber()
    ones = [of.gradient(theta, dual, np.array([i]))[0] for i in range(60)]
    np.testing.assert_allclose(np.mean(ones, axis=0), of.gradient(theta, dual)[0], atol=1e-14)


def test_twice_the_data_is_the_same_objective() -> None:
    of, theta = problem(), np.random.default_rng(0).standard_normal(D)
    X, y, s = (np.concatenate([part, part]) for part in records())
    assert isinstance(of.penalty, ErmiPenalty)
    twice = of.penalty.membership(s, np.zeros(120, dtype=int), np.array([120]))
    doubled = replace(of, X=X, y=y, membership=twice)
    (value, gradient), (wanted, slopes) = doubled.both(theta), of.both(theta)
    assert value == pytest.approx(wanted, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-12)


@pytest.mark.parametrize("name", ["ermi", "renyi", "log-ermi", "mutual-information"])
def test_a_large_weight_leaves_no_dependence(name: str) -> None:
    left = []
    for weight in (0.0, 1.0, 1000.0):
        of = problem(regularizer=name, weight=weight, groups=3)
        F = probabilities(of.model.scores(fermi_exact(of).theta, of.X))
        left.append(ermi(joint_table(F, of.membership.groups, 3)))
    assert left[0] > 0.01
    assert left[0] > left[1] > left[2]
    assert left[2] < 1e-5


@pytest.mark.parametrize("batch", [1, 4, 60])
def test_batches_of_any_size_reach_the_minimum(batch: int) -> None:
    of = problem(weight=1.0)
    best = fermi_exact(of, tolerance=1e-14)
    epochs = {1: 120, 4: 250, 60: 1500}[batch]
    steps = StepSizes({1: 0.02, 4: 0.05, 60: 0.3}[batch])
    got = fermi(of, steps=steps, batch_size=batch, epochs=epochs, rng=np.random.default_rng(1), tail=0.5)
    start = of.value(of.model.start())
    assert of.value(got.theta) - of.value(best.theta) < 0.01 * (start - of.value(best.theta))
    F = probabilities(of.model.scores(best.theta, of.X))
    assert isinstance(of.penalty, ErmiPenalty)
    np.testing.assert_allclose(got.dual, of.penalty.optimal_dual(F, of.membership), atol=0.1)


def test_the_plug_in_does_nothing_at_one_record() -> None:
    of = problem(regularizer="ermi-plug-in", weight=5.0)
    how = {"steps": STEPS, "batch_size": 1, "epochs": 1}
    got, plain = (fermi(p, **how, rng=np.random.default_rng(0)) for p in (of, replace(of, weight=0.0)))  # type: ignore[arg-type]
    np.testing.assert_allclose(got.theta, plain.theta, atol=1e-12)


def test_warmup_is_unregularised_and_the_dual_follows() -> None:
    of = problem(weight=5.0)
    how = {"steps": STEPS, "batch_size": 60, "rng": np.random.default_rng(0)}
    warm = fermi(of, warmup=50, epochs=1, **how)  # type: ignore[arg-type]
    theta = of.model.start()
    for _ in range(50):
        theta = theta - 0.2 * replace(of, weight=0.0).both(theta)[1]
    last = of.gradient(theta, _dual_after(of, 50), slice(None))[0]
    np.testing.assert_allclose(warm.theta, theta - 0.2 * last, atol=1e-12)
    assert warm.steps == 51


def _dual_after(of: FairProblem, steps: int) -> Climber:
    dual, theta, plain = of.penalty.climber(), of.model.start(), replace(of, weight=0.0)
    for _ in range(steps):
        down, F, members = plain.gradient(theta, dual)
        dual.climb(F, members, 0.2)
        theta = theta - 0.2 * down
    return dual


def test_the_tail_is_averaged() -> None:
    of, thetas = problem(), []
    how = {"steps": STEPS, "batch_size": 15, "epochs": 5}
    for tail in (0.0, 0.05, 0.1):  # of 20 steps: the last one, also the last one, the last two
        thetas.append(fermi(of, **how, rng=np.random.default_rng(0), tail=tail).theta)  # type: ignore[arg-type]
    np.testing.assert_allclose(thetas[1], thetas[0], rtol=1e-12)
    assert not np.allclose(thetas[2], thetas[0], atol=1e-6)


def test_an_epoch_uses_every_record_once() -> None:
    seen: list[int] = []
    of = problem()

    class Watched:
        size, classes = of.model.size, of.model.classes

        def start(self) -> np.ndarray:
            return of.model.start()

        def scores(self, theta: np.ndarray, X: np.ndarray) -> np.ndarray:
            seen.extend(int(np.flatnonzero((x == of.X).all(axis=1))[0]) for x in X)
            return of.model.scores(theta, X)

        def pull(self, theta: np.ndarray, X: np.ndarray, slopes: np.ndarray) -> np.ndarray:
            return of.model.pull(theta, X, slopes)

    watched = replace(of, model=Watched())
    one_pass = fermi(watched, steps=STEPS, batch_size=7, epochs=1, rng=np.random.default_rng(0))
    assert sorted(seen) == list(range(60))
    assert seen != sorted(seen)
    assert one_pass.steps == 9  # eight batches of 7 and the four records that are left


def test_of_very_many_possible_groups_there_are_those_that_occur() -> None:
    bits = np.random.default_rng(0).integers(0, 2, (60, 18))
    bits[30:] = bits[:30]
    groups = Groups.of(bits)
    assert len(groups) == len({tuple(row) for row in bits.tolist()}) <= 30  # of 2^18
    got = fermi(
        problem(codes=groups.codes, groups=len(groups)),
        steps=STEPS,
        batch_size=1,
        epochs=1,
        rng=np.random.default_rng(0),
    )
    assert got.dual.shape == (1, len(groups), 2)


def test_progress_counts_steps() -> None:
    said: list[tuple[int, int]] = []
    fermi(
        problem(),
        steps=STEPS,
        batch_size=20,
        epochs=2,
        warmup=1,
        rng=np.random.default_rng(0),
        progress=lambda t, total: said.append((t, total)),
    )
    assert said == [(t + 1, 9) for t in range(9)]


def test_only_steps_behind_the_warm_up_are_averaged() -> None:
    of = problem()
    last, mean = (
        fermi(
            of,
            steps=STEPS,
            batch_size=30,
            epochs=1,
            warmup=2,
            tail=tail,
            rng=np.random.default_rng(0),
        ).theta
        for tail in (0.0, 0.5)
    )
    np.testing.assert_allclose(mean, last, rtol=1e-12)  # one of two steps, and none of the four before


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weight": -1.0}, "weight must be a finite number >= 0, got -1.0"),
        ({"weight": float("nan")}, "weight must be a finite number >= 0"),
        ({"l2": -0.1}, "l2 must be a finite number >= 0"),
    ],
)
def test_bad_problems_are_refused(change: dict[str, float], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        problem(**change)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"batch_size": 0}, "batch_size must be a whole number from 1 to 60, got 0"),
        ({"batch_size": 61}, "batch_size must be a whole number from 1 to 60, got 61"),
        ({"epochs": 0}, "epochs must be a whole number >= 1"),
        ({"warmup": -1}, "warmup must be a whole number >= 0"),
        ({"tail": 1.0}, r"tail must be in \[0, 1\)"),
    ],
)
def test_bad_training_is_refused(change: dict[str, float], message: str) -> None:
    rng = np.random.default_rng(0)
    before = rng.bit_generator.state
    with pytest.raises(ParameterError, match=message):
        fermi(problem(), **{"steps": STEPS, "batch_size": 10, "epochs": 1, "rng": rng, **change})  # type: ignore[arg-type]
    assert rng.bit_generator.state == before


@pytest.mark.parametrize("steps", [(0.0, None), (-1.0, None), (1.0, 0.0)])
def test_bad_steps_are_refused(steps: tuple[float, float | None]) -> None:
    with pytest.raises(ParameterError, match="step must be a finite number > 0"):
        StepSizes(*steps)


def test_attributes_are_hidden_and_forced() -> None:
    groups = Groups(np.arange(100) % 2, ("f", "m"))
    hidden = hide_attributes(groups, 0.9, np.random.default_rng(0))
    assert hidden.known.sum() == 10
    np.testing.assert_array_equal(hidden.codes[hidden.known], groups.codes[hidden.known])
    forced = force_attributes(groups, 0.1, "f", np.random.default_rng(0))
    changed = forced.codes != groups.codes
    assert 0 < changed.sum() <= 10
    assert (forced.codes[changed] == 0).all()
    with pytest.raises(ParameterError, match="to must be one of the 2 groups, got 'x'"):
        force_attributes(groups, 0.1, "x", np.random.default_rng(0))
    with pytest.raises(ParameterError, match="share must be in"):
        hide_attributes(groups, 1.0, np.random.default_rng(0))


def test_training_with_hidden_attributes_is_near_that_with_all() -> None:
    codes = np.where(np.arange(60) % 3 == 2, -1, np.arange(60) % 2)
    whole, part = problem(weight=20.0), problem(weight=20.0, codes=codes)
    F, G = (probabilities(p.model.scores(fermi_exact(p).theta, whole.X)) for p in (whole, part))
    plain = probabilities(whole.model.scores(fermi_exact(problem(weight=0.0)).theta, whole.X))
    unfair = [ermi(joint_table(probs, whole.membership.groups, 2)) for probs in (F, G, plain)]
    assert unfair[0] < unfair[1] < 0.2 * unfair[2]
