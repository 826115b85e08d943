"""The minimum is that of scikit-learn, and its gradient as short as was asked, however hostile the rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tacit.errors import ParameterError
from tacit.numerics import Array, least_tolerance, logistic, logistic_minimum, row_norms


def rows_of(n: int, d: int, *, seed: int = 0, signal: float = 4.0) -> Array:
    """Signed rows of length 1, most of them on one side."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X /= row_norms(X)[:, None]
    labels = np.where(signal * X @ rng.normal(size=d) + rng.logistic(size=n) > 0, 1, -1)
    return np.asarray(X * labels[:, None])


def exact_gradient(rows: Array, w: Array, strength: float, push: Array) -> Array:
    """The gradient in 64 bits of mantissa, its sums without any error."""
    wide = rows.astype(np.longdouble)
    margins = (wide * w.astype(np.longdouble)).sum(axis=1)
    small = np.exp(-np.abs(margins))
    slopes = np.where(margins > 0, small, 1) / (1 + small)
    terms = (-slopes[:, None] * wide).astype(np.float64)
    return np.array(
        [math.fsum([*column, strength * v, b]) for column, v, b in zip(terms.T, w, push, strict=True)]
    )


@pytest.mark.parametrize(("n", "d", "strength"), [(300, 5, 1.0), (2000, 30, 0.2), (40, 60, 3.0)])
def test_the_minimum_is_that_of_scikit_learn(n: int, d: int, strength: float) -> None:
    rows = rows_of(n, d)
    signs = np.where(np.arange(n) % 2, 1, -1)
    other = LogisticRegression(C=1 / strength, fit_intercept=False, tol=1e-12, max_iter=10_000)
    expected = other.fit(rows * signs[:, None], signs).coef_[0]
    found = logistic_minimum(rows, strength=strength, push=np.zeros(d), tolerance=1e-8)
    assert found == pytest.approx(expected, abs=1e-6)


EXTREME = {
    "separable": np.tile([[0.6, 0.8, 0.0]], (50, 1)),
    "equal rows": np.tile([[1.0, 0.0, 0.0]], (100_000, 1)),
    "against each other": np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]] * 500),
    "in a line": np.outer(np.linspace(-1, 1, 999), [0.0, 1.0, 0.0]),
    "next to nothing": np.full((100, 3), 1e-200),
    "subnormal": np.full((100, 3), 5e-324),
    "one row": np.array([[0.0, 0.0, 1.0]]),
    "no rows": np.zeros((0, 3)),
    "at random": rows_of(500, 3, signal=1e3),
}


@pytest.mark.parametrize("push", [0.0, 5.0, -1e4])
@pytest.mark.parametrize("strength", [1e-6, 1e-2, 1.0, 1e6])
@pytest.mark.parametrize("name", EXTREME)
def test_the_gradient_is_as_short_as_was_asked(name: str, strength: float, push: float) -> None:
    rows, slope = EXTREME[name], np.array([push, -push, push / 2])
    least = least_tolerance(max(len(rows), 1), 3, strength=strength, push=float(np.linalg.norm(slope)))
    for tolerance in (least, 1e3 * least):
        w = logistic_minimum(rows, strength=strength, push=slope, tolerance=tolerance)
        assert np.linalg.norm(exact_gradient(rows, w, strength, slope)) <= tolerance


@pytest.mark.parametrize("name", ["separable", "in a line", "one row", "no rows", "at random"])
def test_steps_that_are_proven_to_arrive_do(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logistic, "_STEPS", 0)
    rows, slope = EXTREME[name], np.array([2.0, -3.0, 1.0])
    tolerance = least_tolerance(max(len(rows), 1), 3, strength=1.0, push=4.0)
    w = logistic_minimum(rows, strength=1.0, push=slope, tolerance=tolerance)
    assert np.linalg.norm(exact_gradient(rows, w, 1.0, slope)) <= tolerance


def test_an_ill_conditioned_minimum_takes_hundreds_of_newton_steps_and_no_billions_of_short_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Which of the two it takes is up to the rows: a silo that does not answer tells of them."""
    calls, slopes = [0], logistic._slopes

    def counted(rows: Array, weights: Array) -> Array:
        calls[0] += 1
        assert calls[0] < 100_000
        return slopes(rows, weights)

    monkeypatch.setattr(logistic, "_slopes", counted)
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(400, 10))
    rows = rows / row_norms(rows)[:, None] * np.logspace(0, -4, 10)
    push = 5 * rng.normal(size=10)
    tolerance = least_tolerance(400, 10, strength=1e-6, push=float(np.linalg.norm(push)))
    w = logistic_minimum(rows, strength=1e-6, push=push, tolerance=tolerance)
    assert np.linalg.norm(exact_gradient(rows, w, 1e-6, push)) <= tolerance


def test_a_way_along_which_nothing_bends_is_gone_by_newton_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first steps see the curvature of the loss, and go a billionth of the way."""
    monkeypatch.setattr(math, "ceil", lambda _: pytest.fail("it takes short steps"))
    rows, push = np.ones((2, 1)), np.array([42212.8764205])
    w = logistic_minimum(rows, strength=1.196e-6, push=push, tolerance=9.4e-5)
    assert abs(exact_gradient(rows, w, 1.196e-6, push)[0]) <= 9.4e-5


def test_the_bound_on_rounding_holds_and_is_not_wide() -> None:
    """Equal rows, almost orthogonal to a long point: one rounded prediction is added up a thousand times."""
    closest = 0.0
    for seed in range(10):
        (row,), w = rows_of(1, 200, seed=seed), 1e4 * np.random.default_rng(-seed % 100).normal(size=200)
        w, rows = w - row * (row @ w), np.tile(row, (1000, 1))
        computed = logistic._slopes(rows, -1 / (1 + np.exp(rows @ w)))
        apart = float(np.linalg.norm(computed - exact_gradient(rows, w, 0.0, np.zeros(200))))
        bound = logistic._rounding(1000, 200, strength=0.0, point=float(np.linalg.norm(w)), push=0.0)
        assert apart <= bound
        closest = max(closest, apart / bound)
    assert closest > 1e-3


@pytest.mark.parametrize("push", [0.0, 3.0])
def test_a_row_of_zeros_is_no_row(push: float) -> None:
    rows, slope = rows_of(60, 4), np.full(4, push)
    more = np.insert(rows, [0, 17, 60], 0.0, axis=0)
    first, second = (logistic_minimum(one, strength=0.7, push=slope, tolerance=1e-9) for one in (rows, more))
    assert np.array_equal(first, second)
    nothing = logistic_minimum(more[:1], strength=0.7, push=slope, tolerance=1e-9)
    assert nothing == pytest.approx(-slope / 0.7, abs=1e-8)


def test_what_is_not_positive_is_refused() -> None:
    for wrong in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ParameterError, match="strength"):
            logistic_minimum(np.ones((1, 1)), strength=wrong, push=np.zeros(1), tolerance=1.0)
        with pytest.raises(ParameterError, match="tolerance"):
            logistic_minimum(np.ones((1, 1)), strength=1.0, push=np.zeros(1), tolerance=wrong)
