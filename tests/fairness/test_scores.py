"""Scores, probabilities, and the derivatives that fair training asks of them."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax

from tacit.fairness import LinearScores
from tacit.fairness.scores import cross_entropy, probabilities, pull_back
from tests.fairness.problems import records, slope

RNG = np.random.default_rng(5)


@pytest.mark.parametrize("classes", [2, 3])
def test_probabilities_are_the_softmax_of_scores(classes: int) -> None:
    scores = 5 * RNG.standard_normal((20, classes))
    np.testing.assert_allclose(probabilities(scores), softmax(scores, axis=1), rtol=1e-12)
    extreme = probabilities(np.array([[0.0] * (classes - 1) + [800.0]]))
    assert extreme[0, -1] == 1
    assert np.isfinite(extreme).all()


def test_a_rare_class_keeps_its_digits() -> None:
    assert probabilities(np.array([[0.0, 60.0]]))[0, 0] == pytest.approx(np.exp(-60), rel=1e-12)


@pytest.mark.parametrize("classes", [2, 4])
def test_pull_back_is_the_derivative_of_costs_times_probabilities(classes: int) -> None:
    scores, costs = RNG.standard_normal((2, 5, classes))
    got = pull_back(probabilities(scores), costs)
    np.testing.assert_allclose(got, slope(lambda z: np.sum(costs * probabilities(z)), scores), atol=1e-9)
    np.testing.assert_allclose(got.sum(axis=1), 0, atol=1e-15)


@pytest.mark.parametrize("classes", [2, 3])
def test_pull_is_the_derivative_of_slopes_times_scores(classes: int) -> None:
    X, _, _ = records(classes=classes)
    model = LinearScores(X.shape[1], classes)
    theta, slopes = RNG.standard_normal(model.size), RNG.standard_normal((len(X), classes))
    slopes -= slopes.mean(axis=1, keepdims=True)
    wanted = slope(lambda t: np.sum(slopes * model.scores(t, X)), theta)
    np.testing.assert_allclose(model.pull(theta, X, slopes), wanted, atol=1e-7)


def test_the_loss_is_minus_the_log_of_the_true_class() -> None:
    scores = RNG.standard_normal((6, 3))
    y = np.array([0, 1, 2, 0, 1, 2])
    np.testing.assert_allclose(cross_entropy(scores, y), -np.log(softmax(scores, axis=1)[np.arange(6), y]))


@pytest.mark.parametrize("classes", [2, 3])
def test_narrow_records_are_not_widened_and_lose_no_more_than_their_digits(
    classes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.fairness.scores._BLOCK", 7)  # the rows are no multiple of it
    X, _, _ = records(classes=classes)
    model = LinearScores(X.shape[1], classes)
    theta, slopes = RNG.standard_normal(model.size), RNG.standard_normal((len(X), classes))
    narrow = X.astype(np.float32)
    np.testing.assert_allclose(model.scores(theta, narrow), model.scores(theta, X), atol=1e-5)
    pulled = model.pull(theta, narrow, slopes)
    assert pulled.dtype == np.float64
    np.testing.assert_allclose(pulled, model.pull(theta, X, slopes), atol=1e-4)
    kept = slopes[:, 1:] if classes == 2 else slopes
    np.testing.assert_allclose(model.pull(theta, X, slopes), (kept.T @ X).ravel(), rtol=1e-12)
