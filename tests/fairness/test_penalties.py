"""Every penalty: its derivative, what it measures, and what it is on one record."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import DataError, ParameterError
from tacit.fairness import (
    Conditions,
    ErmiPenalty,
    Fairness,
    FairProblem,
    Groups,
    PenaltyName,
    conditional_ermi,
    ermi,
    ermi_bounds,
    ermi_optimal_dual,
    joint_table,
    penalty_of,
    plug_in_bias,
)
from tacit.fairness.scores import probabilities
from tests.fairness.problems import problem, slope
from tests.loops import each

RNG = np.random.default_rng(11)
T1, T2 = [[0.4, 0.2], [0.1, 0.3]], [[0.2, 0.05, 0.05], [0.1, 0.15, 0.05], [0.05, 0.05, 0.3]]
NOTIONS = list(Fairness)


def drawn(of: FairProblem) -> tuple[np.ndarray, np.ndarray]:
    """Return some scores for the records of a problem, and their softmax."""
    scores = np.random.default_rng(2).standard_normal((len(of.y), of.model.classes))
    return scores, probabilities(scores)


@each("classes", [2, 3])
@each("groups", [2, 3])
@each("fairness", NOTIONS)
@each("name", PenaltyName)
def test_slopes_are_the_derivative_of_the_value(name: str, fairness: str, groups: int, classes: int) -> None:
    of = problem(regularizer=name, fairness=fairness, groups=groups, classes=classes, n=24)
    scores, F = drawn(of)
    _, slopes = of.penalty.evaluate(scores, F, of.membership)
    wanted = slope(lambda z: of.penalty.evaluate(z, probabilities(z), of.membership)[0], scores)
    np.testing.assert_allclose(slopes / len(scores), wanted, atol=1e-9)
    np.testing.assert_allclose(slopes.sum(axis=1), 0, atol=1e-12)


@pytest.mark.parametrize("table", [T1, T2])
def test_each_measures_what_it_is_named_after(table: list[list[float]]) -> None:
    # A table as twenty records of each cell's share: hard predictions.
    p = np.array(table)
    j, r = (np.repeat(index.ravel(), np.round(p.ravel() * 20).astype(int)) for index in np.indices(p.shape))
    groups, where = Groups(r, tuple(range(p.shape[1]))), Conditions(np.zeros(20, dtype=int), (None,))
    F = np.eye(len(p))[j]
    bounds = ermi_bounds(p)
    wanted = {
        "ermi": bounds.ermi,
        "ermi-plug-in": bounds.ermi,
        "log-ermi": bounds.log_ermi,
        "renyi": bounds.renyi_correlation**2,
        "mutual-information": bounds.mutual_information,
        "covariance": sum(np.sum(np.cov(F.T, r == k, bias=True)[-1, :-1] ** 2) for k in range(len(groups))),
    }
    for name in PenaltyName:
        penalty, of = penalty_of(name, groups, where, len(p))
        # The covariance is of scores: for it, the table of predictions stands for centred scores.
        scores = F - F.mean(axis=1, keepdims=True)
        assert penalty.evaluate(scores, F, of)[0] == pytest.approx(wanted[name], abs=1e-12), name


def test_renyi_is_ermi_for_two_groups_and_the_square_of_the_correlation() -> None:
    of = problem(regularizer="renyi", classes=3)
    same = problem(regularizer="ermi-plug-in", classes=3)
    scores, F = drawn(of)
    value, slopes = of.penalty.evaluate(scores, F, of.membership)
    same_value, same_slopes = same.penalty.evaluate(scores, F, of.membership)
    assert value == pytest.approx(same_value, abs=1e-12)
    np.testing.assert_allclose(slopes, same_slopes, atol=1e-12)


@pytest.mark.parametrize("fairness", NOTIONS)
def test_on_the_whole_data_the_plug_in_is_ermi(fairness: str) -> None:
    ours, plain = (
        problem(regularizer=name, fairness=fairness, groups=3) for name in ("ermi", "ermi-plug-in")
    )
    scores, F = drawn(ours)
    value, slopes = ours.penalty.evaluate(scores, F, ours.membership)
    same_value, same_slopes = plain.penalty.evaluate(scores, F, plain.membership)
    assert value == pytest.approx(same_value, abs=1e-12)
    np.testing.assert_allclose(slopes, same_slopes, atol=1e-12)


def test_the_covariance_of_two_groups_and_two_classes_is_that_of_group_and_logit() -> None:
    of = problem(regularizer="covariance")
    scores, F = drawn(of)
    wanted = np.cov(scores[:, 1] - scores[:, 0], of.membership.groups, bias=True)[0, 1] ** 2
    assert of.penalty.evaluate(scores, F, of.membership)[0] == pytest.approx(wanted, rel=1e-12)


@pytest.mark.parametrize("weights", ["frequency", "uniform"])
@pytest.mark.parametrize("fairness", NOTIONS)
def test_conditions_are_weighted_as_said(fairness: str, weights: str) -> None:
    of = problem(fairness=fairness, groups=3, classes=3, weights=weights)
    scores, F = drawn(of)
    codes = of.membership.conditions
    inside = range(codes.max() + 1)
    tables = [joint_table(F[codes == z], of.membership.groups[codes == z], 3) for z in inside]
    shares = [np.sum(codes == z) for z in inside]
    wanted = conditional_ermi(np.array(tables), np.array(shares, dtype=float), weights=weights)
    assert of.penalty.evaluate(scores, F, of.membership)[0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("name", ["ermi-plug-in", "log-ermi", "renyi", "covariance"])
def test_what_is_computed_in_a_batch_has_no_signal_in_one_record_or_one_group(name: str) -> None:
    of = problem(regularizer=name)
    scores, F = drawn(of)
    one, even = np.array([4]), np.arange(0, 60, 2)  # even records are all of group 0
    for batch in (one, even):
        value, slopes = of.penalty.evaluate(scores[batch], F[batch], of.membership.take(batch))
        assert value == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(slopes, 0, atol=1e-12)
    assert of.penalty.climber().variables.size == 0


def test_the_plug_in_of_a_batch_sees_dependence_where_there_is_none() -> None:
    rng, b, trials = np.random.default_rng(3), 16, 1500
    groups = Groups(np.arange(b) % 2, (0, 1))
    penalty, of = penalty_of("ermi-plug-in", groups, Conditions(np.zeros(b, dtype=int), (None,)), 2)
    hard = np.eye(2)[np.stack([rng.permutation(np.arange(b) < b // 2).astype(int) for _ in range(trials)])]
    seen = np.array([penalty.evaluate(F, F, of)[0] for F in hard])
    spread = seen.std() / np.sqrt(trials)
    assert spread < 0.004  # power: the bias is 1/15
    assert abs(seen.mean() - plug_in_bias(2, 2, b)) < 5.5 * spread  # false alarm 4e-8, near normal


@pytest.mark.parametrize("name", PenaltyName)
def test_a_group_without_records_is_refused(name: str) -> None:
    groups = Groups(np.array([0, 0, 1]), ("f", "m", "x"))
    with pytest.raises(DataError, match="no record is of group 'x'"):
        penalty_of(name, groups, Conditions(np.zeros(3, dtype=int), (None,)), 2)
    where = Conditions.of(Fairness.EQUALIZED_ODDS, np.array([1, 1, 0]), classes=[0, 1])
    with pytest.raises(DataError, match="of group 'f' among records of label 0"):
        penalty_of(name, Groups(np.array([0, 1, 1]), ("f", "m")), where, 2)


def test_unknown_names_and_weights_are_refused() -> None:
    groups, where = Groups(np.array([0, 1]), (0, 1)), Conditions(np.zeros(2, dtype=int), (None,))
    with pytest.raises(ParameterError, match="regularizer must be one of"):
        penalty_of("chi-square", groups, where, 2)
    with pytest.raises(ParameterError, match="weights must be one of"):
        penalty_of("ermi", groups, where, 2, weights="equal")


# The dual form


def pieces(fairness: str = "demographic-parity", **how: object) -> tuple[ErmiPenalty, FairProblem]:
    of = problem(fairness=fairness, **how)  # type: ignore[arg-type]
    assert isinstance(of.penalty, ErmiPenalty)
    return of.penalty, of


@pytest.mark.parametrize("table", [T1, T2])
def test_the_dual_of_a_table_is_its_ermi_at_the_best_w(table: list[list[float]]) -> None:
    p = np.array(table)
    penalty = ErmiPenalty(p.sum(axis=0)[None], np.ones(1), len(p))
    j, r = (index.ravel() for index in np.indices(p.shape))
    of = penalty.membership(r, np.zeros_like(r), np.array([len(r)]))
    F = np.eye(len(p))[j] * p.ravel()[:, None] * len(r)  # one "record" for each cell, as heavy as its share
    W = penalty.optimal_dual(F, of)
    np.testing.assert_allclose(W[0], ermi_optimal_dual(p), rtol=1e-12)
    assert np.mean(np.sum(F * penalty.costs(W, of), axis=1)) - 1 == pytest.approx(ermi(p), abs=1e-12)
    assert np.linalg.norm(W) <= penalty.radii[0]


@pytest.mark.parametrize("fairness", NOTIONS)
def test_the_dual_gradient_is_the_derivative_in_w(fairness: str) -> None:
    penalty, of = pieces(fairness, groups=3, classes=3)
    _, F = drawn(of)
    W = np.random.default_rng(1).standard_normal(penalty.shape)
    wanted = slope(lambda W: np.mean(np.sum(F * penalty.costs(W, of.membership), axis=1)), W)
    np.testing.assert_allclose(penalty.dual_gradient(W, F, of.membership), wanted, atol=1e-8)
    best = penalty.optimal_dual(F, of.membership)
    np.testing.assert_allclose(penalty.dual_gradient(best, F, of.membership), 0, atol=1e-14)


@pytest.mark.parametrize("name", ["covariance", "ermi-plug-in", "log-ermi", "renyi"])
def test_a_condition_that_a_batch_lacks_adds_nothing(name: str) -> None:
    of = problem(regularizer=name, fairness="equalized-odds")
    scores, F = drawn(of)
    some = np.flatnonzero(of.y == 1)
    with np.errstate(all="raise"):
        value, slopes = of.penalty.evaluate(scores[some], F[some], of.membership.take(some))
    assert value > 0
    assert np.isfinite(slopes).all()


def test_what_tells_nothing_of_the_group_costs_nothing() -> None:
    """Rounding must not make it less than nothing, which a tolerance of the solver would chase."""
    for seed in range(50):
        rng = np.random.default_rng(seed)
        groups = Groups(np.concatenate([np.arange(3), rng.integers(0, 3, 40)]), ("a", "b", "c"))
        where = Conditions(np.zeros(43, dtype=np.int64), (None,))
        penalty, of = penalty_of("ermi", groups, where, 3)
        F = np.tile(rng.dirichlet(np.ones(3)), (43, 1))
        value, slopes = penalty.evaluate(F, F, of)
        assert 0 <= value < 1e-14
        np.testing.assert_allclose(slopes, 0, atol=1e-14)


def test_the_dual_of_mutual_information_stays_below_what_any_law_needs() -> None:
    of = problem(regularizer="mutual-information", groups=3)
    climber = of.penalty.climber()
    _, F = drawn(of)
    for _ in range(5):
        climber.climb(F * 100, of.membership, 1e3)
    most = 1 - np.log(np.bincount(of.membership.groups).min() / len(of.y))
    assert climber.variables.max() == pytest.approx(most)


@pytest.mark.parametrize("fairness", NOTIONS)
@pytest.mark.parametrize("batch", [1, 5, 60])
def test_w_climbs_as_the_dense_step_says(fairness: str, batch: int) -> None:
    penalty, of = pieces(fairness, groups=4, classes=3)
    scores, F = drawn(of)
    rng, lazy, W = np.random.default_rng(4), penalty.climber(), penalty.start()
    for step in (0.05, 0.5, 3.0):  # the last one leaves the ball, and is projected
        for _ in range(20):
            index = rng.choice(60, batch, replace=False)
            some = of.membership.take(index)
            np.testing.assert_allclose(
                lazy.slopes(scores[index], F[index], some),
                F[index]
                * (penalty.costs(W, some) - np.sum(F[index] * penalty.costs(W, some), axis=1, keepdims=True)),
                atol=1e-9 * np.abs(W).max() ** 2,
            )
            lazy.climb(F[index], some, step)
            W = penalty.project(W + step * penalty.dual_gradient(W, F[index], some))
            np.testing.assert_allclose(lazy.variables, W, atol=1e-9)
            np.testing.assert_allclose(lazy.norms, np.sum(W**2, axis=1), atol=1e-9)


def test_a_column_that_a_step_wipes_out_comes_back() -> None:
    penalty, of = pieces()
    F = np.tile([1.0, 0.0], (60, 1))
    lazy = penalty.climber()
    for _ in range(3):
        lazy.climb(F, of.membership, 0.5)  # the whole mass is on one class: 1 - 2 step mass = 0
    np.testing.assert_allclose(lazy.variables[0, :, 0], np.sqrt(penalty.frequencies[0]), rtol=1e-12)


@pytest.mark.parametrize("name", ["ermi", "mutual-information"])
@pytest.mark.parametrize("fairness", NOTIONS)
def test_w_converges_to_the_best_one_where_predictions_stand_still(name: str, fairness: str) -> None:
    of = problem(regularizer=name, fairness=fairness, groups=3)
    scores, F = drawn(of)
    dual = of.penalty.climber()
    for _ in range(2000):
        dual.climb(F, of.membership, 0.5)
    wanted = of.penalty.evaluate(scores, F, of.membership)[1]
    np.testing.assert_allclose(dual.slopes(scores, F, of.membership), wanted, atol=1e-6)


@pytest.mark.parametrize("name", ["ermi", "mutual-information"])
@pytest.mark.parametrize("fairness", NOTIONS)
def test_single_records_add_up_to_the_whole(name: str, fairness: str) -> None:
    codes = np.where(np.arange(60) % 4 == 3, -1, np.arange(60) % 3)  # and a quarter is not known
    of = problem(regularizer=name, fairness=fairness, groups=3, codes=codes)
    scores, F = drawn(of)
    dual = of.penalty.climber()
    dual.climb(F, of.membership, 0.1)
    whole = dual.slopes(scores, F, of.membership)
    ones = [dual.slopes(scores[[i]], F[[i]], of.membership.take(np.array([i])))[0] for i in range(60)]
    np.testing.assert_allclose(whole, ones, atol=1e-14)
    # The mean of the steps of W from one point is the step of the whole.
    moves = []
    for i in [slice(None), *range(60)]:
        fresh, index = of.penalty.climber(), np.arange(60)[i].reshape(-1)
        before = fresh.variables.copy()
        fresh.climb(F[index], of.membership.take(index), 1e-3)
        moves.append(fresh.variables - before)
    np.testing.assert_allclose(np.mean(moves[1:], axis=0), moves[0], atol=1e-15)


@pytest.mark.parametrize("fairness", NOTIONS)
def test_attributes_that_are_missing_at_random_leave_the_mean_unbiased(fairness: str) -> None:
    # Exactly: over all records that could be the one whose attribute is lost, at the same frequencies and W.
    penalty, of = pieces(fairness, n=24)
    _, F = drawn(of)
    W = np.random.default_rng(1).standard_normal(penalty.shape)
    z, s = of.membership.conditions, of.membership.groups
    looked = np.flatnonzero(z >= 0)
    means = []
    for lost in looked:
        codes = np.where(np.arange(24) == lost, -1, s)
        totals = np.bincount(z[(z >= 0) & (codes >= 0)], minlength=penalty.shape[0])
        some = penalty.membership(codes, z, totals)
        assert some.factors[lost] == 0
        means.append(np.mean(np.sum(F * penalty.costs(W, some), axis=1)))
    assert np.ptp(means) > 0.01  # power: it does matter which one
    assert np.mean(means) == pytest.approx(np.mean(np.sum(F * penalty.costs(W, of.membership), axis=1)))


def test_permuting_group_codes_permutes_rows() -> None:
    penalty, of = pieces(groups=3)
    _, F = drawn(of)
    turned = np.array([2, 0, 1])
    other, same = pieces(groups=3, codes=turned[of.membership.groups])
    np.testing.assert_allclose(
        other.optimal_dual(F, same.membership)[:, turned], penalty.optimal_dual(F, of.membership), rtol=1e-12
    )
    assert other.evaluate(F, F, same.membership)[0] == pytest.approx(
        penalty.evaluate(F, F, of.membership)[0], abs=1e-14
    )


def test_a_class_that_is_never_predicted_does_not_blow_up() -> None:
    for name in PenaltyName:
        of = problem(regularizer=name, classes=3)
        scores = np.tile([0.0, -1000.0, 5.0], (60, 1)) + of.membership.groups[:, None] * [0, 0, 1.0]
        value, slopes = of.penalty.evaluate(scores, probabilities(scores), of.membership)
        assert np.isfinite(value)
        assert np.isfinite(slopes).all()
