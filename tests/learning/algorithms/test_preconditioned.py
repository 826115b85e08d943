"""A noisy Gram matrix for all steps: closed forms without noise, its price, and attacks on whole runs."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import optimize

from tacit.errors import ParameterError
from tacit.federation import AnyStep, Fixed
from tacit.federation.steps import repeated
from tacit.learning import (
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    NoisyMinibatchSGD,
    NoisySufficientStatistics,
    PreconditionedNoisyGD,
    Records,
    Settings,
    Squared,
    Trained,
    in_process,
    make_algorithm,
    make_silos,
    train,
)
from tacit.learning.algorithms.preconditioned import Curvature
from tacit.learning.algorithms.registry import statistics_of
from tacit.learning.defaults import choose
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.public import PublicSample
from tacit.means import AdditiveMean, ModularSumMean
from tacit.numerics import Array, ElasticNet, SquaredL2, clip_rows, row_norms
from tacit.privacy import (
    Aligned,
    Gaussian,
    Gdp,
    Neighbours,
    PrivacyBudget,
    Relation,
    TrustModel,
    guarantee,
    meets,
)
from tacit.privacy.merging import flatten, merge
from tests.learning.attacks import LOOSE, Score, stands_and_half_the_noise_is_caught

BUDGET = PrivacyBudget(1.0, 1e-5)


def objective(loss: Loss | None = None, d: int = 4, outputs: int = 1) -> LinearObjective:
    return LinearObjective(loss=loss or Logistic(), features=d, outputs=outputs, feature_norm=1.0)


def table(n: int = 300, d: int = 4, *, seed: int = 0, classes: int = 0) -> Records:
    """Rows of length 1 whose columns differ in size by a factor of 30, and noisy labels or targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * np.geomspace(1, 30, d)
    X /= row_norms(X)[:, None]
    score = 8 * X @ np.geomspace(1, 0.1, d)
    if classes > 2:
        return Records.of(X, rng.integers(0, classes, n).astype(float))
    return Records.of(X, (score + rng.logistic(size=n) > 0).astype(float) if classes else np.tanh(score))


def fitted(algorithm: Any, units: Records, goal: LinearObjective, **changes: Any) -> Trained:
    settings = Settings(objective=goal, algorithm=algorithm, **({"clip": 1e6} | changes))
    silos = make_silos([units], goal, trusts_server=settings.trusts_server, seed=1)
    return train(in_process(silos, seed=1), settings)


# Without noise


def test_least_squares_are_solved_at_once() -> None:
    units = table()
    expected: Array = np.linalg.lstsq(units.X, units.y, rcond=None)[0]
    found = fitted(NoisySufficientStatistics(), units, objective(Squared()))
    assert found.w == pytest.approx(expected, rel=1e-6)
    ridge = fitted(NoisySufficientStatistics(), units, objective(Squared()), regularizer=SquaredL2(0.1))
    gram = units.X.T @ units.X / 300
    expected = np.linalg.solve(gram + 0.1 * np.eye(4), units.X.T @ units.y / 300)
    assert ridge.w == pytest.approx(expected, rel=1e-5)


def test_labels_are_fitted_by_the_first_newton_step() -> None:
    units = table(classes=2)
    least = np.linalg.lstsq(units.X, 2 * units.y - 1, rcond=None)[0]
    assert fitted(NoisySufficientStatistics(), units, objective()).w == pytest.approx(2 * least, rel=1e-6)
    many = table(classes=3)
    expected = np.linalg.lstsq(many.X, np.eye(3)[many.y.astype(int)] - 1 / 3, rcond=None)[0]
    found = fitted(NoisySufficientStatistics(), many, objective(Multinomial(), outputs=3))
    assert found.w.reshape(4, 3) == pytest.approx(2 * expected, rel=1e-6)


@pytest.mark.parametrize(
    ("loss", "classes", "outputs"), [(Logistic(), 2, 1), (Multinomial(), 3, 3), (Squared(), 0, 1)]
)
def test_a_dozen_steps_reach_what_plain_descent_does_not(loss: Loss, classes: int, outputs: int) -> None:
    units, goal = table(classes=classes), objective(loss, outputs=outputs)

    def value(w: Array) -> float:
        return float(goal.value(w, units).mean())

    def slope(w: Array) -> Array:
        return np.asarray(goal.gradients(w, units).mean(axis=0))

    best = optimize.minimize(value, np.zeros(goal.size), jac=slope, method="BFGS").fun
    start = value(np.zeros(goal.size)) - best
    here = value(fitted(PreconditionedNoisyGD(rounds=40), units, goal).w) - best
    plain = value(fitted(NoisyMinibatchSGD(rounds=40), units, goal).w) - best
    assert here < 2e-3 * start < 0.2 * plain


def test_a_regulariser_is_met_in_the_metric() -> None:
    units, goal = table(classes=2), objective()
    penalty = ElasticNet(l1=0.02, l2=0.05)
    w = fitted(PreconditionedNoisyGD(rounds=60), units, goal, regularizer=penalty).w
    far = fitted(NoisyMinibatchSGD(rounds=4000), units, goal, regularizer=penalty).w
    assert w == pytest.approx(far, abs=1e-4)
    assert (w == 0).any()
    metric = Curvature(np.array([1.0, 4.0]), np.eye(2))
    z = np.array([3.0, -2.0])
    best = z * [1 / 2, 4 / 5]
    for start in (z, np.zeros(2), np.array([9.0, 9.0])):
        assert metric.prox(SquaredL2(1.0), z, start=start) == pytest.approx(best, rel=1e-7)
        assert np.array_equal(metric.prox(ElasticNet(l1=0.0, l2=0.0), z, start=start), z)
    # From the minimum itself no step leads away: so stopping early moves no minimum.
    assert metric.prox(SquaredL2(1.0), z, start=best) == pytest.approx(best, rel=1e-14)


# What it costs


def multiplier(step: AnyStep) -> float:
    """That of the only mean of a kind of round."""
    (measure,) = step.measures
    assert isinstance(measure.estimator, AdditiveMean | ModularSumMean)
    return measure.estimator.noise_multiplier


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("trust", [TrustModel.LOCAL, TrustModel.CENTRAL])
@pytest.mark.parametrize("algorithm", [PreconditionedNoisyGD(), NoisySufficientStatistics()], ids=str)
def test_the_price_is_that_of_one_gaussian_release(
    algorithm: Any, trust: TrustModel, relation: Relation
) -> None:
    """mu^2 = 1 / z_G^2 + T / z^2, of which the Gram matrix has its share; less where all are of one x."""
    settings = Settings(
        objective=objective(), algorithm=algorithm, trust=trust, budget=BUDGET, clip=0.6, relation=relation
    )
    prepared = prepare(settings, [300])
    (gram, once), (gradient, rounds) = prepared.plan.kinds
    z_gram, z = multiplier(gram), multiplier(gradient)
    assert (once, rounds) == (1, prepared.rounds - 1)
    level = 1 / z_gram**2 + rounds / z**2
    assert 1 / z_gram**2 == pytest.approx(algorithm.share * level)
    event = prepared.plan.event([300], trust)
    assert meets(event, BUDGET)
    if relation is Relation.REPLACE_ONE:
        squares, rows = 1 / z_gram**2, rounds / z**2
        assert event == Aligned(Gaussian(z_gram), repeated(Gaussian(z), rounds))
        level = squares + rows / 2 + rows**2 / (16 * squares)
        assert level < 0.8 * (squares + rows)
    priced = guarantee(Gaussian(1 / math.sqrt(level), Neighbours(relation)), 1e-5, observer="all")
    assert priced.epsilon == pytest.approx(1.0, abs=1e-6)


def test_whole_runs_under_exact_noise_and_with_samples() -> None:
    units = table(classes=2)
    exact = fitted(
        PreconditionedNoisyGD(batch=Fixed(size=30), rounds=5),
        units,
        objective(),
        clip=0.6,
        trust=TrustModel.LOCAL,
        budget=BUDGET,
        noise="discrete-gaussian",
    )
    assert exact.plan.exact
    assert exact.guarantee.epsilon <= 1.0


def test_what_cannot_be_done_is_refused_before_anything_is_asked() -> None:
    unknown = LinearObjective(loss=Squared(), features=3)
    wide = objective(d=2001)
    for goal, algorithm, said in (
        (unknown, PreconditionedNoisyGD(), "smoothness is unknown|features of known norm"),
        (wide, PreconditionedNoisyGD(), "at most 2000 features"),
        (objective(), PreconditionedNoisyGD(rounds=1), "rounds must be at least 2"),
        (objective(), PreconditionedNoisyGD(rounds=None), "no error bound is finite; give a number"),
    ):
        settings = Settings(objective=goal, algorithm=algorithm, clip=1.0)
        with pytest.raises(ParameterError, match=said):
            prepare(settings, [100])
    for options, said in (
        ({"share": 0.0}, "share must be in"),
        ({"share": 1.0}, "share must be in"),
        ({"damping": 0.0}, "damping must be a finite number > 0"),
        ({"average": 0.0}, "average must be in"),
    ):
        with pytest.raises(ParameterError, match=said):
            PreconditionedNoisyGD(**options)  # type: ignore[arg-type]


# With a public matrix

PUBLIC = ((1.0, 0.0), (0.0, 1e-3))


def gram_of(units: Records) -> Array:
    return np.asarray(units.X.T @ units.X / len(units))


def test_with_the_true_matrix_the_steps_are_those_of_newton() -> None:
    units, goal = table(), objective(Squared())
    expected: Array = np.linalg.lstsq(units.X, units.y, rcond=None)[0]
    algorithm = NoisySufficientStatistics(preconditioner=gram_of(units), rounds=1)  # type: ignore[arg-type]
    assert fitted(algorithm, units, goal).w == pytest.approx(expected, rel=1e-6)
    steps = PreconditionedNoisyGD(preconditioner=gram_of(units), damping=1.0, rounds=2)  # type: ignore[arg-type]
    assert fitted(steps, units, goal).w == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("relation", list(Relation))
@pytest.mark.parametrize("kind", [PreconditionedNoisyGD, NoisySufficientStatistics])
def test_the_price_of_a_public_matrix_is_that_of_the_gradients_alone(kind: Any, relation: Relation) -> None:
    """All of the budget goes on gradients: the plan is that of plain steps, to the last bit."""
    settings = Settings(
        objective=objective(d=2),
        algorithm=kind(preconditioner=PUBLIC, rounds=7),
        trust=TrustModel.CENTRAL,
        budget=BUDGET,
        clip=0.6,
        relation=relation,
    )
    plain = prepare(replace(settings, algorithm=NoisyMinibatchSGD(rounds=7)), [300])
    found = prepare(settings, [300])
    assert found.plan == plain.plan
    assert found.noise_multiplier == plain.noise_multiplier
    paid = prepare(replace(settings, algorithm=kind(rounds=8)), [300])  # seven gradients, and a matrix
    assert multiplier(paid.plan.kinds[1][0]) > found.noise_multiplier


def test_gradients_are_clipped_before_they_meet_the_matrix() -> None:
    """What a record moves a step by is the radius over the least eigenvalue of the metric, and no more."""
    there = Records.of(np.array([[0.6, 0.8], [0.0, 0.0]]), np.array([-1e9, 0.0]))
    algorithm = PreconditionedNoisyGD(preconditioner=PUBLIC, damping=1.0, rounds=1)
    moved = fitted(algorithm, there, GOAL, clip=0.5).w
    # 0.5 (0.6, 0.8) / 2 records, along each eigenvector over its eigenvalue.
    assert moved == pytest.approx([-0.15, -200], rel=1e-9)


def test_flat_directions_of_a_public_matrix_are_damped_by_the_noise_of_gradients() -> None:
    """Without that, the noise would be carried as far as the matrix is flat."""
    flat = np.diag([1.0, 1e-6])
    sizes = {}
    for budget in (PrivacyBudget(0.1, 1e-5), PrivacyBudget(10.0, 1e-5)):
        algorithm = PreconditionedNoisyGD(preconditioner=flat, rounds=5)  # type: ignore[arg-type]
        found = fitted(
            algorithm,
            table(d=2, classes=2),
            objective(d=2),
            clip=0.6,
            trust=TrustModel.CENTRAL,
            budget=budget,
        )
        sizes[budget.epsilon] = np.linalg.norm(found.w)
    assert max(sizes.values()) < 60


def test_a_matrix_is_written_in_toml_and_as_an_array() -> None:
    given = make_algorithm("preconditioned", preconditioner=[[1, 0], [0, 0.001]])
    assert given == PreconditionedNoisyGD(preconditioner=PUBLIC)
    made = given
    for kind in (np.float32, np.float64, np.longdouble):
        made = PreconditionedNoisyGD(preconditioner=np.array([[1, 0.5], [0.5, 2]], dtype=kind))  # type: ignore[arg-type]
        assert made == PreconditionedNoisyGD(preconditioner=((1.0, 0.5), (0.5, 2.0)))
    assert made.with_gram(np.eye(2)) == made
    assert PreconditionedNoisyGD().with_gram(np.eye(2)).preconditioner == ((1.0, 0.0), (0.0, 1.0))
    assert NoisyMinibatchSGD().with_gram(np.eye(2)) == NoisyMinibatchSGD()


@pytest.mark.parametrize(
    ("matrix", "said"),
    [
        (np.eye(3)[:2], "d rows of d numbers, 1 <= d <= 2000, got 2 of 3"),
        (((1.0, 0.0), (0.0,)), "got 2 of 1 or 2"),
        ((), "got 0 of 0"),
        (np.zeros((0, 0)), "got 0 of 0"),
        (np.array([[1.0, np.nan], [np.nan, 1.0]]), "must hold finite numbers"),
        (np.array([[np.inf, 0.0], [0.0, 1.0]]), "must hold finite numbers"),
        (np.array([[1.0, 0.1], [0.2, 1.0]]), "must be symmetric"),
        (np.zeros((2, 2)), "must be positive definite"),
        (-np.eye(2), "must be positive definite"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "must be positive definite"),
        (np.ones((2, 2)), "must be positive definite"),
        (np.diag([1.0, 1e-10]), r"at most 1e\+09 times the least; got 1e-10 to 1"),
        (np.ones(2), "preconditioner"),
        (np.ones((2, 2, 2)), "preconditioner"),
        (np.eye(2, dtype=bool), "preconditioner"),
        ([[1.0]], "preconditioner"),
        ("identity", "preconditioner"),
    ],
)
def test_another_matrix_is_refused(matrix: Any, said: str) -> None:
    for kind in (PreconditionedNoisyGD, NoisySufficientStatistics):
        with pytest.raises(ParameterError, match=said):
            kind(preconditioner=matrix)


def test_a_matrix_of_another_number_of_features_is_refused_before_anything_is_asked() -> None:
    settings = Settings(
        objective=objective(), algorithm=PreconditionedNoisyGD(preconditioner=PUBLIC), clip=1.0
    )
    with pytest.raises(
        ParameterError, match="as many rows as records have features, 4 with the constant, got 2"
    ):
        prepare(settings, [100])


# Attacks on whole runs


GOAL = LinearObjective(loss=Squared(), features=2, feature_norm=1.0)


def stands(
    algorithm: Any, relation: Relation, trust: TrustModel, *, goal: LinearObjective = GOAL, clip: float = 1.0
) -> None:
    """One record, as long as can be and with a gradient of the radius at any w, or another in its place.

    Where it is replaced, the other one has a gradient that is opposite but for an angle: the larger it is,
    the further apart are their matrices, and the nearer their gradients. The best angle is known.
    """
    settings = Settings(
        objective=goal, algorithm=algorithm, trust=trust, budget=LOOSE, clip=clip, relation=relation
    )
    summed = trust is TrustModel.AGGREGATE
    rest = [Records.of(np.zeros((2, 2)), np.zeros(2))] * summed
    sizes = [2] * (1 + len(rest))
    levels = [n / multiplier(step) ** 2 for step, n in prepare(settings, sizes).plan.kinds]
    cosine = min(1.0, levels[-1] / levels[0] / 4) if len(levels) > 1 else 1.0
    there = Records.of(np.array([[1.0, 0.0], [0.0, 0.0]]), np.array([-1e9, 0.0]))
    turned = np.array([[cosine, math.sqrt(1 - cosine**2)], [0.0, 0.0]])
    other = {
        Relation.ZERO_OUT: Records.of(np.zeros((2, 2)), np.zeros(2)),
        Relation.ADD_REMOVE: there.take(np.array([1])),
        Relation.REPLACE_ONE: Records.of(turned, -there.y),
    }[relation]

    def likelihood_ratio(honest: Prepared) -> Score:
        statistics, ways, moved = statistics_of(goal), [], 0.0
        for step, n in honest.plan.kinds:
            (measure,), mean = step.measures, step.measures[0].estimator
            assert isinstance(mean, AdditiveMean | ModularSumMean)
            asked, radius = statistics[measure.statistic], measure.max_radius
            rows = (asked(records, {"w": np.zeros(2)}) for records in (there, other))
            one, two = (clip_rows(each, radius).sum(axis=0) for each in rows)
            ways += [(one - two) / (mean.moved * mean.noise_multiplier * radius) ** 2] * n
            moved += n * float((one - two) @ ways[-1])
        # The pair is as far apart, over the whole run, as the price allows for, rounding to the grid aside.
        (level,) = merge(flatten(honest.plan.event(sizes, trust)))
        assert isinstance(level, Gdp)
        assert moved <= level.mu**2 * (1 + 1e-6)
        assert moved == pytest.approx(level.mu**2, rel=0.05 if summed else 1e-6)
        return lambda seen: np.array([sum(float(ways[each.step] @ each.means[0]) for each in seen)])

    parties, neighbours = [there, *rest], [other, *rest]
    stands_and_half_the_noise_is_caught(
        settings, parties, neighbours, likelihood_ratio, runs=220, normal=True
    )


ATTACKED = [
    (PreconditionedNoisyGD(rounds=4), Relation.ZERO_OUT, TrustModel.CENTRAL),
    (PreconditionedNoisyGD(rounds=4, share=0.1), Relation.REPLACE_ONE, TrustModel.CENTRAL),
    (PreconditionedNoisyGD(rounds=4), Relation.REPLACE_ONE, TrustModel.LOCAL),
    (PreconditionedNoisyGD(rounds=3), Relation.ADD_REMOVE, TrustModel.LOCAL),
    (PreconditionedNoisyGD(rounds=2), Relation.REPLACE_ONE, TrustModel.AGGREGATE),
    (NoisySufficientStatistics(), Relation.ZERO_OUT, TrustModel.LOCAL),
    (PreconditionedNoisyGD(rounds=4, preconditioner=PUBLIC), Relation.REPLACE_ONE, TrustModel.CENTRAL),
    (NoisySufficientStatistics(preconditioner=PUBLIC), Relation.ADD_REMOVE, TrustModel.LOCAL),
]


@pytest.mark.parametrize(("algorithm", "relation", "trust"), ATTACKED)
def test_a_whole_run_stands_and_half_the_noise_is_caught(
    algorithm: Any, relation: Relation, trust: TrustModel
) -> None:
    stands(algorithm, relation, trust)


def test_a_whole_run_by_the_rule_with_public_records_stands_and_half_the_noise_is_caught() -> None:
    """A Huber loss: its gradient can be as long at any w, and the rule takes it as it does a logistic one."""
    goal = LinearObjective(loss=Huber(), features=2, feature_norm=1.0)
    gram = PublicSample.of([[0.3], [-0.2]], lower=-np.ones(1), upper=np.ones(1))
    features = gram.features(unit_rows=True)
    choice = choose(
        goal,
        trust=TrustModel.CENTRAL,
        budget=LOOSE,
        relation=Relation.REPLACE_ONE,
        sizes=[2],
        gram=gram.gram(features),
    )
    assert isinstance(choice.algorithm, PreconditionedNoisyGD)
    stands(choice.algorithm, Relation.REPLACE_ONE, TrustModel.CENTRAL, goal=goal, clip=choice.share)
