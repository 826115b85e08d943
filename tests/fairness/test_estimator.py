"""The fair logistic regression: scikit-learn's contract, what a weight does, and what it refuses."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import check_estimator

from tacit.errors import DataError, ParameterError
from tacit.fairness import (
    FairLogisticRegression,
    PenaltyName,
    best_cut,
    equalized_odds_violation,
    parity_violation,
)
from tacit.fairness.penalty import Membership

N = 400
RNG = np.random.default_rng(7)
S = RNG.integers(0, 2, N)
X = np.column_stack([RNG.standard_normal(N) + 1.2 * S, RNG.standard_normal(N), 3 + RNG.standard_normal(N)])
Y = np.where(X[:, 0] + X[:, 1] + 0.5 * RNG.standard_normal(N) > 0.6, "yes", "no")
Y3 = np.clip(np.round(X[:, 0] + 0.3 * RNG.standard_normal(N)), 0, 2).astype(int)


def fitted(sensitive: Any = S, y: Any = Y, **how: Any) -> FairLogisticRegression:
    return FairLogisticRegression(random_state=0, **how).fit(X, y, sensitive_features=sensitive)


@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it() -> None:
    found = check_estimator(FairLogisticRegression(), on_skip=None, on_fail=None)
    assert [one for one in found if one["status"] not in ("passed", "skipped")] == []
    assert sum(one["status"] == "passed" for one in found) > 40


def test_without_sensitive_features_it_is_logistic_regression_whatever_the_weight() -> None:
    plain = LogisticRegression(C=1 / (1e-4 * N), tol=1e-10).fit((X - X.mean(0)) / X.std(0), Y)
    for weight in (0, 50):
        ours = fitted(None, weight=weight, l2=1e-4)
        np.testing.assert_allclose(ours.coef_, plain.coef_, rtol=2e-2)  # theirs leaves the constant free
        assert (ours.predict(X) == plain.predict((X - X.mean(0)) / X.std(0))).mean() > 0.99
        assert ours.weight_ == 0
        assert ours.rates_ is ours.violation_ is ours.soft_violation_ is None
    np.testing.assert_array_equal(fitted(None, weight=0).coef_, fitted(weight=0).coef_)


def test_a_weight_buys_fairness_with_accuracy() -> None:
    plain, fair = fitted(weight=0), fitted(weight=20)
    assert plain.violation_ > 0.3
    assert fair.violation_ < 0.1
    assert fair.penalty_ < 0.01 < plain.penalty_
    assert plain.score(X, Y) > fair.score(X, Y) > 0.6
    assert fair.violation_ == parity_violation(fair.predict(X), S)
    assert fair.soft_violation_ == pytest.approx(
        parity_violation(fair.predict_proba(X), S, classes=fair.classes_)
    )
    odds = fitted(weight=20, fairness="equalized-odds")
    assert odds.violation_ == equalized_odds_violation(Y, odds.predict(X), S)
    assert odds.violation_ < fitted(weight=0, fairness="equalized-odds").violation_


def test_opportunity_is_about_the_advantaged() -> None:
    how: dict[str, Any] = {"fairness": "equal-opportunity", "weight": 20.0}
    last, first = fitted(**how), fitted(**how, advantaged=["no"])
    np.testing.assert_allclose(fitted(**how, advantaged="yes").coef_, last.coef_)
    assert not np.allclose(first.coef_, last.coef_, atol=0.05)


def test_it_says_that_nothing_is_private() -> None:
    said = str(fitted().guarantee_)
    assert said == "No privacy is claimed: whoever sees the model may learn anything about the data."


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds", "equal-opportunity"])
def test_a_violation_is_kept_with_as_little_weight_as_it_takes(fairness: str) -> None:
    for most in (0.2, 0.1):
        found = fitted(max_violation=most, fairness=fairness)
        assert found.violation_ <= most
        assert found.score(X, Y) > 0.65
    assert fitted(max_violation=1.0, fairness=fairness).weight_ == 0


def test_the_threshold_is_that_of_predictions() -> None:
    model = next(one for most in (0.05, 0.1, 0.15, 0.2) if (one := fitted(max_violation=most)).threshold_)
    margins = np.log(model.predict_proba(X)[:, 1] / model.predict_proba(X)[:, 0])
    np.testing.assert_allclose(model.decision_function(X), margins - model.threshold_, atol=1e-9)
    np.testing.assert_array_equal(model.predict(X) == "yes", margins > model.threshold_)


def test_an_impossible_violation_says_the_least_there_is() -> None:
    # The group is the label: only a constant is fair, and three classes have no cut to choose.
    s = (Y3 > 0).astype(int)
    with pytest.raises(ParameterError, match=r"max_violation must be at least 0\.\d+ .*got 1e-09"):
        FairLogisticRegression(max_violation=1e-9, l2=1.0).fit(
            np.column_stack([X, 100 * s]), Y3, sensitive_features=np.roll(s, 1)
        )


def test_several_classes_and_several_columns() -> None:
    both = pd.DataFrame({"sex": np.where(S, "m", "f"), "old": RNG.integers(0, 2, N)})
    plain, fair = (FairLogisticRegression(weight=w).fit(X, Y3, sensitive_features=both) for w in (0.0, 20.0))
    assert fair.coef_.shape == (3, 3)
    assert fair.predict_proba(X).shape == (N, 3)
    assert fair.rates_ is not None
    assert fair.rates_.groups == (("f", 0), ("f", 1), ("m", 0), ("m", 1))
    assert fair.violation_ < plain.violation_
    within = FairLogisticRegression(max_violation=0.25).fit(X, Y3, sensitive_features=both)
    assert within.violation_ <= 0.25
    assert within.threshold_ == 0


@pytest.mark.parametrize(("missing", "mark"), [(True, None), (True, np.nan), (-1, -1)])
def test_attributes_that_are_declared_missing(missing: Any, mark: Any) -> None:
    hidden = S.astype(object)
    hidden[::2] = mark
    part = fitted(hidden, missing=missing, weight=20.0)
    assert part.rates_ is not None
    assert part.rates_.groups == (0, 1)
    assert part.rates_.counts.sum() == N // 2
    assert parity_violation(part.predict(X), S) < 0.5 * parity_violation(fitted(weight=0).predict(X), S)
    if mark != -1:
        with pytest.raises(DataError, match="200 records without a value"):
            fitted(hidden)


@pytest.mark.parametrize("batch", [1, 16, 400])
def test_batches_of_any_size_agree_with_the_whole(batch: int) -> None:
    exact = fitted(weight=2.0, l2=1e-2)
    epochs, step = {1: (12, 0.02), 16: (60, 0.1), 400: (500, 0.3)}[batch]
    how: dict[str, Any] = {"solver": "sgda", "batch_size": batch, "epochs": epochs, "step": step, "tail": 0.5}
    some = fitted(weight=2.0, l2=1e-2, **how)
    assert some.score(X, Y) == pytest.approx(exact.score(X, Y), abs=0.02)
    assert some.violation_ == pytest.approx(exact.violation_, abs=0.04)
    assert some.n_iter_ == epochs * N // batch


def test_one_pass_uses_each_record_once() -> None:
    assert fitted(solver="sgda", batch_size=10, one_pass=True).n_iter_ == N // 10
    with pytest.raises(ParameterError, match="epochs must be 1 or None with one_pass, got 3"):
        fitted(solver="sgda", one_pass=True, epochs=3)
    for how in ({"one_pass": True}, {"epochs": 2}, {"step": 0.1}, {"tail": 0.5}):
        with pytest.raises(ParameterError, match="is for solver='sgda'"):  # else it would be ignored
            fitted(**how)


@pytest.mark.parametrize("regularizer", [name for name in PenaltyName if name != "ermi"])
def test_other_penalties_are_fair_too(regularizer: str) -> None:
    assert fitted(regularizer=regularizer, weight=50.0).soft_violation_ < 0.1


def test_narrow_features_stay_narrow_and_change_little() -> None:
    wide = fitted()
    narrow = FairLogisticRegression().fit(X.astype(np.float32), Y, sensitive_features=S)
    np.testing.assert_allclose(narrow.coef_, wide.coef_, atol=1e-3)


def test_features_are_scaled_and_bounded() -> None:
    far = X.copy()
    far[0, 0] = 1e6
    bound = FairLogisticRegression(feature_bound=2.0).fit(far, Y, sensitive_features=S)
    free = FairLogisticRegression(standardise=False).fit(X, Y, sensitive_features=S)
    assert np.isfinite(bound.coef_).all()
    np.testing.assert_array_equal(free.scaling_.transform(X), np.column_stack([X, np.ones(N)]))
    with pytest.raises(ParameterError, match="feature_bound must be a finite number > 0"):
        fitted(feature_bound=0.0)


def test_it_clones_pickles_and_searches() -> None:
    model = fitted()
    again = pickle.loads(pickle.dumps(model))  # noqa: S301  # ours
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
    search = GridSearchCV(FairLogisticRegression(), {"weight": [0.0, 5.0]}, cv=2)
    assert search.fit(X, Y, sensitive_features=S).best_params_ == {"weight": 0.0}


@pytest.mark.parametrize(
    ("how", "error", "message"),
    [
        ({"weight": -0.5}, ParameterError, "weight must be a finite number >= 0, got -0.5"),
        ({"l2": -1}, ParameterError, "l2 must be a finite number >= 0"),
        ({"fairness": "parity"}, ParameterError, "did you mean 'demographic-parity'"),
        ({"max_violation": 1.5}, ParameterError, r"max_violation must be in \[0, 1\]"),
        ({"solver": "sgd"}, ParameterError, "solver must be one of exact, sgda"),
        ({"batch_size": 0}, ParameterError, "batch_size must be a whole number >= 1"),
        ({"dual_step": 0.6}, ParameterError, "dual_step must be at most 0.5"),
        ({"advantaged": ["yes"]}, ParameterError, "advantaged is for equal-opportunity"),
        (
            {"advantaged": ["maybe"], "fairness": "equal-opportunity"},
            ParameterError,
            "advantaged must be some of the classes",
        ),
        ({"condition_weights": "equal"}, ParameterError, "condition_weights must be one of"),
        ({"groups": [0, 1, 2]}, DataError, "no record is of group 2"),
        ({"sensitive": np.zeros(N, int)}, DataError, "two groups or more, got one group only"),
        ({"sensitive": S[:-1]}, DataError, r"one entry per record \(400\), got 399"),
        ({"sensitive": X[:, 0]}, DataError, "sensitive_features is continuous"),
        ({"sensitive": np.where(S, 1.0, np.nan)}, DataError, "records without a value"),
        ({"y": np.full(N, "yes")}, DataError, "two classes or more, got one class only"),
        (
            {"sensitive": np.where(Y == "yes", "a", S.astype(str)), "fairness": "equalized-odds"},
            DataError,
            "no record is of group 'a' among records of label 'no'",
        ),
    ],
)
def test_bad_input_is_refused(how: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fitted(**how)


def test_a_cut_is_the_best_of_all_by_brute_force() -> None:
    rng = np.random.default_rng(0)
    margins, y, s = rng.standard_normal(80), rng.integers(0, 2, 80), rng.integers(0, 3, 80)
    z = rng.integers(-1, 2, 80)
    of, scores = Membership(z, s, np.ones(80)), np.column_stack([np.zeros(80), margins])
    for measure in ("gap", "linf"):
        tried = []
        near = np.sort(margins[np.abs(margins) <= 1])
        for cut in [0.0, *((near[1:] + near[:-1]) / 2)]:
            hat = margins > cut
            apart = []
            for c in (0, 1):
                rates = [hat[(z == c) & (s == r)].mean() for r in range(3)]
                apart.append(np.ptp(rates) if measure == "gap" else np.abs(rates - hat[z == c].mean()).max())
            doubt = np.sqrt(np.sum(hat != (margins > 0))) / 80
            tried.append(((hat == y).mean(), max(apart), (hat == y).mean() - doubt))
        for most in (0.15, 0.3):
            got = best_cut(scores, y, of, most, measure=measure)
            assert got.violation <= most
            assert got.accuracy == pytest.approx(max((w, a) for a, v, w in tried if v <= most)[1])
        least = best_cut(scores, y, of, 0.0, measure=measure)
        assert least.violation == pytest.approx(min(v for _, v, _ in tried))
        at_0 = best_cut(scores, y, of, 0.0, measure=measure, within=0.0)
        assert (at_0.threshold, at_0.accuracy, at_0.violation) == (0.0, *map(pytest.approx, tried[0][:2]))
