"""Public records as an objective: its minima, its gradients, their variance, its batches."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LogisticRegression

from tacit.errors import ParameterError
from tacit.learning import LinearObjective, Logistic, PublicObjective, Records, Squared
from tacit.learning import public_objective as module
from tacit.learning.kinks import Absolute, Quantile
from tacit.learning.losses import Multinomial
from tacit.learning.networks import NetworkObjective
from tacit.numerics import ElasticNet, L2Ball, SquaredL2, row_norms

D = 4


def made(n: int = 60, *, loss: Any = None, classes: int = 2, seed: int = 0) -> PublicObjective:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    raw = X @ rng.standard_normal((D, classes)) + rng.standard_normal((n, classes))
    loss = loss or Squared()
    y = raw[:, 0] if not loss.classifies else raw.argmax(axis=1).astype(float)
    outputs = classes if isinstance(loss, Multinomial) else 1
    return PublicObjective(LinearObjective(loss=loss, features=D, outputs=outputs), Records.of(X, y))


def test_least_squares_are_solved_at_once_with_the_least_norm() -> None:
    many, few = made(), made(3)
    for public in (many, few):
        X, y = public.records.X, public.records.y
        np.testing.assert_allclose(public.minimum(), np.linalg.pinv(X) @ y, atol=1e-10)
    X, y, m = many.records.X, many.records.y, len(many)
    np.testing.assert_allclose(
        many.minimum(SquaredL2(0.3)), np.linalg.solve(X.T @ X / m + 0.3 * np.eye(D), X.T @ y / m), atol=1e-10
    )


@pytest.mark.parametrize("classes", [2, 3])
def test_logistic_losses_reach_the_minimum_that_others_find(classes: int) -> None:
    public = made(loss=Logistic() if classes == 2 else Multinomial(), classes=classes)
    m = len(public)
    found = public.minimum(ElasticNet(l2=0.01))
    model = LogisticRegression(C=1 / (0.01 * m), fit_intercept=False, tol=1e-10, max_iter=10_000)
    model.fit(public.records.X, public.records.y)
    np.testing.assert_allclose(found.reshape(D, -1), model.coef_.T, atol=1e-4)


def test_penalties_and_domains_are_met_by_proximal_steps() -> None:
    public = made()
    found = public.minimum(ElasticNet(l1=0.1))
    lasso = Lasso(alpha=0.1, fit_intercept=False, tol=1e-12).fit(public.records.X, public.records.y)
    np.testing.assert_allclose(found, lasso.coef_, atol=1e-5)
    free = float(np.linalg.norm(public.minimum()))
    ball = L2Ball(radius=free / 2)
    inside = public.minimum(ball)
    assert np.linalg.norm(inside) == pytest.approx(free / 2)
    # At the minimum over a ball the gradient points at its centre.
    gradient = public.gradient(inside)
    assert gradient @ inside == pytest.approx(-np.linalg.norm(gradient) * np.linalg.norm(inside), rel=1e-4)


def test_a_network_gets_to_a_point_where_the_gradient_is_short() -> None:
    objective = NetworkObjective(loss=Logistic(), features=D, hidden=3, outputs=1, activation="tanh")
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, D))
    public = PublicObjective(objective, Records.of(X, (X[:, 0] * X[:, 1] > 0).astype(float)))
    start = objective.start(0)
    ridge = SquaredL2(0.01)
    found = public.minimum(ridge, start=start)
    assert np.linalg.norm(public.gradient(found) + 0.01 * found) < 1e-3 * np.linalg.norm(
        public.gradient(start) + 0.01 * start
    )


def test_no_minimum_of_a_kink_and_a_warning_where_none_was_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ParameterError, match="needs a smooth loss"):
        made(loss=Absolute(smoothing=math.inf)).minimum()
    monkeypatch.setattr(module, "_STEPS", 1)
    for regularizer in (ElasticNet(l2=0.01), ElasticNet(l1=0.01)):
        with pytest.warns(ConvergenceWarning, match="was not reached"):
            made(loss=Logistic()).minimum(regularizer)


def test_the_penalty_is_the_one_that_does_best_on_records_left_out() -> None:
    """With as many records as features and much noise, least squares are useless, and the fit is not."""
    rng = np.random.default_rng(2)
    truth = rng.standard_normal(40)
    X = rng.standard_normal((44, 40))
    public = PublicObjective(
        LinearObjective(loss=Squared(), features=40), Records.of(X, X @ truth + 3 * rng.standard_normal(44))
    )
    error = [float(np.sum((w - truth) ** 2)) for w in (public.fitted(), public.minimum(), np.zeros(40))]
    assert error[0] < min(error[1:])
    assert np.array_equal(public.fitted(), public.fitted())
    separable = made(6, loss=Logistic())
    assert np.isfinite(separable.fitted()).all()
    assert np.isfinite(made(1).fitted()).all()


def test_the_clip_is_how_long_gradients_of_records_left_out_are() -> None:
    """About the slope of the truth on new records, where few public ones are fitted too well themselves."""
    rng, d = np.random.default_rng(3), 30
    truth, objective = rng.standard_normal(d), LinearObjective(loss=Squared(), features=d)

    def drawn(n: int) -> PublicObjective:
        X = rng.standard_normal((n, d))
        return PublicObjective(objective, Records.of(X, X @ truth + rng.standard_normal(n)))

    public, others = drawn(90), drawn(4000)
    new = float(row_norms(others.gradients(public.fitted())).mean())
    own = float(row_norms(public.gradients(public.fitted())).mean())
    assert public.clip is not None
    assert own < 0.8 * public.clip
    assert 0.9 * new < public.clip < 1.5 * new  # a fifth fewer records fit somewhat worse
    assert public.clip == float(f"{public.clip:.2g}")  # machines that round otherwise agree on it
    many = drawn(3000)
    assert many.clip == pytest.approx(float(row_norms(others.gradients(truth)).mean()), rel=0.05)


def test_where_public_records_say_nothing_of_a_clip() -> None:
    still = PublicObjective(made().objective, Records.of(np.zeros((20, D)), np.zeros(20)))
    assert made(20).clip is not None
    for public in (made(1), made(19), still, made(loss=Logistic()), made(loss=Quantile(quantile=0.9))):
        assert public.clip is None
    for kinked in (Absolute(smoothing=math.inf), Absolute()):
        assert (made(loss=kinked).clip is None) == math.isinf(kinked.smoothing)


def test_gradients_are_raw_clipped_or_of_one_length() -> None:
    public, w = made(), np.ones(D)
    raw = public.gradients(w)
    clipped = public.gradients(w, radius=1.0, norm="clip")
    equal = public.gradients(w, radius=1.0, norm="rescale")
    assert np.array_equal(raw, public.objective.gradients(w, public.records))
    assert row_norms(raw).max() > 1
    np.testing.assert_allclose(clipped, raw * np.minimum(1, 1 / row_norms(raw))[:, None], rtol=1e-9)
    np.testing.assert_allclose(equal, raw / row_norms(raw)[:, None], rtol=1e-12)
    for norm, rows in (("raw", raw), ("clip", clipped), ("rescale", equal)):
        mean = public.gradient(w, radius=1.0, norm=norm)  # type: ignore[arg-type]
        np.testing.assert_allclose(mean, rows.mean(axis=0), rtol=1e-9)
        found = public.variance(w, radius=1.0, norm=norm)  # type: ignore[arg-type]
        assert found == pytest.approx(float(rows.var(axis=0, ddof=1).sum()))
    zero = PublicObjective(public.objective, Records.of(np.zeros((2, D)), np.zeros(2)))
    assert (zero.gradients(w, radius=1.0, norm="rescale") == 0).all()
    with pytest.raises(ParameterError, match="public_norm must be"):
        public.gradients(w, norm="longest")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="number of public records must be"):
        made(1).variance(w)


def test_batches_are_uniform_without_replacement_and_everybodys() -> None:
    public = made(10)
    counts = np.zeros(10)
    for number in range(600):
        batch = public.batch(number, 4)
        rows = [int(np.flatnonzero((x == public.records.X).all(axis=1))[0]) for x in batch.records.X]
        assert len(set(rows)) == 4
        counts[rows] += 1
    # Each of 10 records is in a batch with probability 0.4: six deviations of 12 for each.
    assert abs(counts - 240).max() < 72
    assert np.array_equal(public.batch(3, 4).records.X, public.batch(3, 4).records.X)
    assert public.batch(3, 10) is public
    with pytest.raises(ParameterError, match="size"):
        public.batch(0, 11)
    with pytest.raises(ParameterError, match="at least one record"):
        PublicObjective(public.objective, Records.of(np.zeros((0, D)), np.zeros(0)))


def test_its_digest_tells_records_apart() -> None:
    assert made().digest == made().digest
    assert made().digest != made(seed=1).digest
