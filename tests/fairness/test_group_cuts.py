"""Cuts by group: the linear program against an oracle, the rule on records, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import check_estimator

from tacit.errors import DataError, ParameterError
from tacit.fairness import GroupCuts, equalized_odds_mixture, least_error_cuts, violation

N = 900
RNG = np.random.default_rng(5)
S = np.array(["a", "b", "c"])[RNG.choice(3, N, p=[0.5, 0.3, 0.2])]
X = np.column_stack([RNG.standard_normal(N) + 1.2 * (S == "a"), RNG.standard_normal(N)])
Y = np.where(X.sum(axis=1) + 0.7 * RNG.standard_normal(N) > 0.6, "yes", "no")


def fitted(**how: Any) -> GroupCuts:
    return GroupCuts(**how).fit(X, Y, sensitive_features=S)


def binary(table: Any) -> tuple[Any, Any]:
    """Return errors and rates of the cuts all, said yes, and none, of counts by said, label and group."""
    totals = table.sum(axis=0)
    yes = np.stack([np.ones_like(totals), table[1] / totals, np.zeros_like(totals)])  # (c, label, k)
    errors = (yes[:, 0] * totals[0] + (1 - yes[:, 1]) * totals[1]).T / table.sum()
    return errors, yes


@pytest.mark.filterwarnings("default")
def test_scikit_learn_accepts_it() -> None:
    found = check_estimator(GroupCuts(), on_skip=None, on_fail=None)
    assert [one for one in found if one["status"] not in ("passed", "skipped")] == []
    assert sum(one["status"] == "passed" for one in found) > 40


@pytest.mark.parametrize("slack", [0.0, 0.03, 0.2, 1.0])
def test_of_two_scores_it_is_the_mixture_of_hardt_price_and_srebro(slack: float) -> None:
    for k in (2, 4):
        table = RNG.integers(5, 60, (2, 2, k)) + 60.0 * np.eye(2)[:, :, None]
        errors, rates = binary(table)
        chances = least_error_cuts(errors, rates, slack)
        best = equalized_odds_mixture(table, slack)  # P(yes | said, group)
        totals, least = table.sum(), errors.min(axis=1).sum()
        oracle = (table[:, 0] * best).sum() / totals + (table[:, 1] * (1 - best)).sum() / totals
        error = (errors * chances).sum()
        # A hundredth of the price is spared for chances that do not look at the score.
        assert oracle - 1e-6 <= error <= oracle + 0.01 * (oracle - least) + 1e-6
        apart = np.ptp(np.einsum("czk,kc->zk", rates, chances), axis=1).max()
        assert apart <= slack + 1e-6


def test_of_nearly_equal_rules_it_takes_the_one_that_looks_least() -> None:
    rates = np.array([[[1.0, 1.0]], [[0.5, 0.5]], [[0.0, 0.0]]])
    errors = np.array([[0.3, 0.1995, 0.1], [0.5, 0.0, 0.5]])
    # Half of the first group is said yes either way: to look saves half a hundredth of the price, .1.
    chances = least_error_cuts(errors, rates, 0.0)
    np.testing.assert_allclose(chances, [[0.5, 0.0, 0.5], [0.0, 1.0, 0.0]], atol=0.01)


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds", "equal-opportunity"])
def test_any_violation_can_be_had_on_the_training_records(fairness: str) -> None:
    accuracies, model = [], GroupCuts()
    for most in (0.0, 0.03, 0.1, 1.0):
        model = fitted(fairness=fairness, max_violation=most)
        how: dict[str, Any] = {"fairness": fairness, "labels": Y, "classes": ["no", "yes"]}
        assert violation(model.chances_of(X, S), S, **how) == pytest.approx(model.violation_, abs=1e-12)
        assert model.violation_ <= most + 1e-6
        np.testing.assert_allclose(model.chances_.sum(axis=1), 1, atol=1e-12)
        accuracies.append(model.score(X, Y, sensitive_features=S))
    assert accuracies[0] < accuracies[3] + 0.005
    # Without a bound every group is cut where either label is as likely.
    assert (model.cuts_[model.chances_.argmax(axis=1)] == 0.5).all()
    np.testing.assert_allclose(model.chances_.max(axis=1), 1, atol=1e-6)


def test_draws_have_the_chances_that_are_said() -> None:
    model = fitted(max_violation=0.0)
    chances, rng = model.chances_of(X, S)[:, 1], np.random.default_rng(0)
    draws = np.mean([model.predict(X, S, rng) == "yes" for _ in range(40)], axis=0)
    torn = (chances > 0) & (chances < 1)
    np.testing.assert_array_equal(draws[~torn], chances[~torn])
    # 5.5 standard deviations of the mean of independent coins: false alarm 4e-8.
    spread = np.sqrt((chances * (1 - chances)).sum() / 40)
    assert torn.any()
    assert abs((draws - chances).sum()) < 5.5 * spread


def test_a_group_that_is_large_enough_has_scores_of_its_own() -> None:
    rarer = {r: np.unique(Y[r == S], return_counts=True)[1].min() for r in "abc"}
    features = max(rarer.values()) // 10  # ten records of the rarer label for each
    wide = np.column_stack([X, RNG.standard_normal((N, features - 2))])
    model = GroupCuts(estimator=LogisticRegression(), max_violation=1.0).fit(wide, Y, sensitive_features=S)
    has = [rarer[r] >= 10 * features for r in "abc"]
    assert [own is not None for own in model.own_estimators_] == has
    assert set(has) == {True, False}
    scores = model.estimator_.predict_proba(wide)[:, 1]
    for own, r in zip(model.own_estimators_, "abc", strict=True):
        if own is not None:
            scores[r == S] = (scores[r == S] + own.predict_proba(wide[r == S])[:, 1]) / 2
    np.testing.assert_array_equal(model.chances_of(wide, S)[:, 1] > 0.5, scores > 0.5)
    alone = np.where(S == "c", "yes", Y)  # one label only: no estimator of its own, but cuts of its own
    once = GroupCuts(max_violation=0.0).fit(X, alone, sensitive_features=S)
    assert once.own_estimators_[2] is None
    assert once.violation_ < 1e-6


def test_without_sensitive_features_it_is_its_estimator() -> None:
    plain = LogisticRegression().fit(X, Y)
    model = GroupCuts(estimator=LogisticRegression()).fit(X, Y)
    np.testing.assert_array_equal(model.predict(X), plain.predict(X))
    assert model.rates_ is model.violation_ is None


def test_what_is_refused() -> None:
    model = fitted()
    with pytest.raises(DataError, match=r"sensitive_features must be given: each group has cuts of its own"):
        model.predict(X)
    with pytest.raises(DataError, match="not among the declared groups"):
        model.predict(X, np.where(S == "a", "d", S))
    with pytest.raises(DataError, match=rf"one entry per record \({N}\), got 3"):
        model.predict(X, S[:3])
    with pytest.raises(DataError, match="one group only"):
        GroupCuts().fit(X, Y, sensitive_features=np.zeros(N, dtype=int))
    with pytest.raises(DataError, match="Only binary classification is supported"):
        GroupCuts().fit(X, S, sensitive_features=S)
    with pytest.raises(DataError, match="no record is of group 'c' among records of label 'no'"):
        GroupCuts(fairness="equalized-odds").fit(X, np.where(S == "c", "yes", Y), sensitive_features=S)
    with pytest.raises(ParameterError, match=r"max_violation must be in \[0, 1\], got 1.5"):
        fitted(max_violation=1.5)
    with pytest.raises(ParameterError, match="fairness"):
        fitted(fairness="calibration")
