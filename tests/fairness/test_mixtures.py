"""Mixtures of models, the naive baseline, and the curve of accuracy against violation."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.errors import DataError, ParameterError, TacitError
from tacit.fairness import (
    CutModel,
    FairLogisticRegression,
    Mixture,
    equalized_odds_violation,
    exponentiated_gradient,
    fair_mixture,
    grid_search,
    naive_majority_mixture,
    pareto,
    parity_violation,
    threshold_optimizer,
    tradeoff,
)

N = 400
RNG = np.random.default_rng(3)
S = RNG.integers(0, 2, N)
X = np.column_stack([RNG.standard_normal(N) + 1.2 * S, RNG.standard_normal(N)])
Y = (X.sum(axis=1) + 0.5 * RNG.standard_normal(N) > 0.6).astype(int)
MODELS = [FairLogisticRegression(weight=w).fit(X, Y, sensitive_features=S) for w in (0.0, 1.0, 10.0, 100.0)]


def test_the_naive_baseline_is_a_straight_line() -> None:
    model, often = MODELS[0], int(np.bincount(Y).argmax())
    unfair, wrong = parity_violation(model.predict(X), S), np.mean(model.predict(X) != Y)
    for p in (0.0, 0.25, 0.7, 1.0):
        chances = naive_majority_mixture(model, Y, p).chances_of(X)
        error = np.mean(1 - chances[np.arange(N), Y])
        assert error == pytest.approx((1 - p) * wrong + p * np.mean(often != Y), abs=1e-12)
        assert parity_violation(chances, S, classes=[0, 1]) == pytest.approx((1 - p) * unfair, abs=1e-12)
    with pytest.raises(ParameterError, match=r"share must be in \[0, 1\], got 1.5"):
        naive_majority_mixture(model, Y, 1.5)


def test_draws_have_the_chances_that_are_said() -> None:
    mixed = Mixture((MODELS[0], MODELS[2]), np.array([0.3, 0.7]))
    rng = np.random.default_rng(0)
    draws = np.mean([mixed.predict(X, rng) for _ in range(400)], axis=0)
    chances = mixed.chances_of(X)[:, 1]
    np.testing.assert_array_equal(draws[np.isin(chances, [0, 1])], chances[np.isin(chances, [0, 1])])
    torn = ~np.isin(chances, [0, 1])
    assert torn.sum() > 10
    # The mean of all draws has 400 times so many coins: 5.5 standard deviations, false alarm 4e-8.
    spread = np.sqrt(0.3 * 0.7 / (400 * torn.sum()))
    assert abs(draws[torn].mean() - chances[torn].mean()) < 5.5 * spread


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds"])
def test_a_mixture_keeps_the_violation_and_beats_every_part(fairness: str) -> None:
    cut = [CutModel(m, c) for m in MODELS for c in np.linspace(-1.5, 1.5, 41)]

    def unfair(said: Any) -> float:
        if fairness == "demographic-parity":
            return parity_violation(said, S, classes=[0, 1])
        return equalized_odds_violation(Y, said, S, classes=[0, 1])

    singles = [(np.mean(one.predict(X) == Y), unfair(one.predict(X))) for one in cut]
    before = 0.0
    for most in (0.02, 0.1, 0.3):
        mixed = fair_mixture(MODELS, X, Y, S, max_violation=most, fairness=fairness)
        chances = mixed.chances_of(X)
        right = np.mean(chances[np.arange(N), Y])
        assert unfair(chances) <= most + 1e-9
        assert len(mixed.models) <= 5
        # A cut is worth its accuracy less a standard error: nothing beats it by more than the largest one.
        assert right >= max((a for a, v in singles if v <= most), default=0.0) - 1 / np.sqrt(N)
        assert right >= before - 1 / np.sqrt(N)
        before = float(right)


def test_models_that_are_not_cut_are_mixed_as_they_are() -> None:
    s = np.arange(N) % 3  # several groups
    plain = fair_mixture(MODELS, X, Y, s, max_violation=0.5, cuts=1)
    assert all(isinstance(one, FairLogisticRegression) for one in plain.models)
    with pytest.raises(DataError, match=r"max_violation must be at least 0\.\d+ for mixtures"):
        fair_mixture(MODELS[:1], X, Y, S, max_violation=0.01, cuts=1)
    with pytest.raises(ParameterError, match="models must be one at least"):
        fair_mixture([], X, Y, S, max_violation=0.01)


@pytest.mark.parametrize("chances", [[0.5, 0.6], [1.5, -0.5], [1.0]])
def test_chances_are_chances(chances: list[float]) -> None:
    with pytest.raises(ParameterError, match="chances must be one number >= 0 for each of the 2 models"):
        Mixture((MODELS[0], MODELS[1]), np.array(chances))


def test_models_of_other_labels_do_not_mix() -> None:
    other = LogisticRegression().fit(X, np.where(Y, "a", "b"))
    with pytest.raises(ParameterError, match="models must have the same classes"):
        Mixture((MODELS[0], other), np.array([0.5, 0.5]))


def test_the_tradeoff_has_a_row_for_each_weight() -> None:
    estimator = FairLogisticRegression(fairness="equalized-odds")
    table = tradeoff(estimator, [0, 1.0, 20.0], X, Y, S, held_out=(X[::2], Y[::2], S[::2]))
    assert list(table["weight"]) == [0, 1, 20]
    for row in table.to_dict("records"):
        said, soft = row["model"].predict(X[::2]), row["model"].predict_proba(X[::2])
        assert row["accuracy"] == np.mean(said == Y[::2])
        assert row["violation"] == equalized_odds_violation(Y[::2], said, S[::2])
        assert row["soft_violation"] == equalized_odds_violation(Y[::2], soft, S[::2], classes=[0, 1])
    assert table["pareto"].any()
    assert not hasattr(estimator, "coef_")
    with pytest.raises(ParameterError, match="weights must be one number"):
        tradeoff(estimator, [], X, Y, S)
    with pytest.raises(ParameterError, match="weights must be a finite number >= 0, got -1"):
        tradeoff(estimator, [-1.0], X, Y, S)


def test_what_nothing_beats() -> None:
    accuracies, violations = np.array([0.9, 0.9, 0.8, 0.7, 0.9]), np.array([0.2, 0.3, 0.1, 0.1, 0.2])
    assert pareto(accuracies, violations).tolist() == [True, False, True, False, True]


@pytest.mark.parametrize("fairness", ["demographic-parity", "equalized-odds", "equal-opportunity"])
def test_baselines_are_those_of_fairlearn(fairness: str) -> None:
    reductions = pytest.importorskip("fairlearn.reductions")
    postprocessing = pytest.importorskip("fairlearn.postprocessing")
    plain = LogisticRegression()
    reduced = exponentiated_gradient(plain, fairness=fairness, max_violation=0.05)
    assert isinstance(reduced, reductions.ExponentiatedGradient)
    assert isinstance(grid_search(plain, fairness=fairness), reductions.GridSearch)
    cut = threshold_optimizer(plain, fairness=fairness)
    assert isinstance(cut, postprocessing.ThresholdOptimizer)
    said = cut.fit(X, Y, sensitive_features=S).predict(X, sensitive_features=S, random_state=0)
    measured = FairLogisticRegression(fairness=fairness, weight=0).fit(X, Y, sensitive_features=S).violation_
    if fairness == "demographic-parity":
        assert parity_violation(said, S) < 0.3 * measured


def test_without_fairlearn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fairlearn", None)
    for make in (exponentiated_gradient, grid_search, threshold_optimizer):
        with pytest.raises(TacitError, match=r"`pip install 'tacit\[fairness\]'`"):
            make(LogisticRegression())
    with pytest.raises(ParameterError, match="fairness must be one of"):
        exponentiated_gradient(LogisticRegression(), fairness="parity")
