"""Slopes are derivatives of values; constants are true bounds, and no larger than they have to be."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import optimize

from tacit.errors import ParameterError
from tacit.learning import (
    Absolute,
    Hinge,
    Huber,
    LinearObjective,
    Logistic,
    Loss,
    Multinomial,
    PoissonLoss,
    Quantile,
    Squared,
)
from tacit.numerics import Array

SINGLE: list[Loss] = [
    Logistic(),
    Squared(),
    Huber(threshold=0.7),
    Hinge(smoothing=3.0),
    Absolute(smoothing=3.0),
    Quantile(quantile=0.8, smoothing=3.0),
    PoissonLoss(most=2.5),
]
LOSSES: list[Loss] = [*SINGLE, Multinomial()]
CLASSES = 4


def some_records(loss: Loss, n: int, *, seed: int, scale: float = 3.0) -> tuple[Array, Array]:
    """Predictions and labels that the loss is made for."""
    rng = np.random.default_rng(seed)
    if isinstance(loss, Multinomial):
        return scale * rng.standard_normal((n, CLASSES)), rng.integers(CLASSES, size=n).astype(np.float64)
    y = rng.integers(2, size=n) * 1.0 if loss.classifies else rng.standard_normal(n)
    return scale * rng.standard_normal(n), y


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_slopes_are_derivatives(loss: Loss) -> None:
    p, y = some_records(loss, 300, seed=1)
    step = 1e-6
    slopes = loss.slope(p, y).reshape(300, -1)
    for k in range(slopes.shape[1]):
        moved = np.zeros(p.shape)
        moved.reshape(300, -1)[:, k] = step
        numeric = (loss.value(p + moved, y) - loss.value(p - moved, y)) / (2 * step)
        np.testing.assert_allclose(slopes[:, k], numeric, atol=1e-5)


@pytest.mark.parametrize("loss", [*LOSSES, Multinomial(largest=0.2)], ids=str)
def test_constants_bound_every_slope_and_every_difference_of_slopes(loss: Loss) -> None:
    p, y = some_records(loss, 20_000, seed=2)
    q, _ = some_records(loss, 20_000, seed=3)
    q = p + (q - p) * np.logspace(-3, 0, 20_000).reshape(-1, *[1] * (p.ndim - 1))
    gap = (loss.slope(p, y) - loss.slope(q, y)).reshape(20_000, -1)
    distance = np.linalg.norm((p - q).reshape(20_000, -1), axis=1)
    assert np.all(np.linalg.norm(gap, axis=1) <= loss.smoothness * distance + 1e-12)
    sizes = np.linalg.norm(loss.slope(p, y).reshape(20_000, -1), axis=1)
    assert np.all(sizes <= loss.lipschitz + 1e-12)


def test_slopes_that_are_clipped_class_by_class_have_the_reference_norms() -> None:
    """c sqrt(classes) where all may be clipped, and less where probabilities do not add up to that."""
    for largest, norm in ((0.05, 0.1581), (0.1, 0.3162), (0.3, 0.6083), (1.0, math.sqrt(2))):
        assert Multinomial(largest=largest, classes=10).lipschitz == pytest.approx(norm, abs=5e-5)
        assert Multinomial(largest=largest).lipschitz >= Multinomial(largest=largest, classes=10).lipschitz
    assert Multinomial().lipschitz == math.sqrt(2)


@pytest.mark.parametrize("largest", [0.02, 0.05, 0.1, 0.24, 0.3, 0.5, 0.7, 1.0])
@pytest.mark.parametrize("classes", [2, 3, 10, 40])
def test_no_point_of_the_simplex_has_a_longer_clipped_slope(classes: int, largest: float) -> None:
    rng = np.random.default_rng(classes)
    # Softmax at any temperature: from the middle of the simplex to its corners, and edges between them.
    p = rng.normal(size=(20_000, classes)) * np.geomspace(0.01, 300, 20_000)[:, None]
    y = rng.integers(-1, classes, 20_000).astype(float)  # -1 is no class
    p[::2] = np.where(rng.random((10_000, classes)) < 0.3, 0.0, -200.0)
    f = min(int(1 / largest + 1e-9), classes - 1)
    corner = np.full((1, classes), -200.0)  # f entries of `largest`, and one of what is left
    corner[0, 1 : 1 + f] = math.log(largest)
    if f < classes - 1 and 1 - f * largest > 1e-9:
        corner[0, 1 + f] = math.log(1 - f * largest)
    elif f == classes - 1 and f * largest < 1:
        corner[0, 0] = math.log(1 - f * largest)
    plain = Multinomial().slope(p, y)
    for loss in (Multinomial(largest=largest), Multinomial(largest=largest, classes=classes)):
        slopes = loss.slope(p, y)
        assert np.array_equal(slopes, np.clip(plain, -largest, largest))
        assert np.linalg.norm(slopes, axis=1).max() <= loss.lipschitz * (1 + 1e-12)
    loss = Multinomial(largest=largest, classes=classes)
    reached = np.linalg.norm(loss.slope(corner, np.zeros(1)))
    assert reached <= loss.lipschitz * (1 + 1e-12)
    # Where the true class has little enough of what is left, the bound is reached.
    if f < classes - 1 or 1 - f * largest <= 1 - largest:
        assert reached == pytest.approx(loss.lipschitz, rel=1e-6)


def test_clipping_class_by_class_is_refused_out_of_range() -> None:
    for largest in (0.0, -0.1, 1.1, math.nan):
        with pytest.raises(ParameterError, match="largest must be in"):
            Multinomial(largest=largest)
    with pytest.raises(ParameterError, match="classes must be"):
        Multinomial(classes=1)
    with pytest.raises(ParameterError, match="outputs must be the 10 classes of the loss, got 3"):
        LinearObjective(loss=Multinomial(classes=10), features=2, outputs=3)


@pytest.mark.parametrize("loss", SINGLE, ids=lambda x: type(x).__name__)
def test_constants_are_not_larger_than_necessary(loss: Loss) -> None:
    p, y = np.linspace(-30, 30, 600_001), np.zeros(600_001)
    slopes = loss.slope(p, y)
    # A Poisson loss is that curved at one point only, between two of these.
    assert np.max(np.diff(slopes) / np.diff(p)) >= loss.smoothness * (1 - 2e-4)
    if math.isfinite(loss.lipschitz):
        assert np.abs(slopes).max() >= loss.lipschitz * (1 - 1e-6)


def test_the_constants_of_the_multinomial_loss_are_reached() -> None:
    loss = Multinomial()
    wrong = np.array([[40.0, 0.0, 0.0]])
    assert np.linalg.norm(loss.slope(wrong, np.array([1.0]))) == pytest.approx(loss.lipschitz)
    tie, step = np.array([[0.0, 0.0, -50.0]]), 1e-4 * np.array([[1.0, -1.0, 0.0]])
    gap = loss.slope(tie + step, np.zeros(1)) - loss.slope(tie - step, np.zeros(1))
    assert np.linalg.norm(gap) / np.linalg.norm(2 * step) == pytest.approx(loss.smoothness, rel=1e-6)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_losses_are_convex_in_the_prediction(loss: Loss) -> None:
    p, y = some_records(loss, 5000, seed=4)
    q, _ = some_records(loss, 5000, seed=5)
    assert np.all(loss.value((p + q) / 2, y) <= (loss.value(p, y) + loss.value(q, y)) / 2 + 1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda x: type(x).__name__)
def test_float32_stays_float32(loss: Loss) -> None:
    p, y = some_records(loss, 10, seed=6)
    slopes = loss.slope(p.astype(np.float32), y.astype(np.float32))
    assert slopes.dtype == np.float32
    np.testing.assert_allclose(slopes, loss.slope(p, y), atol=1e-5)


def test_two_classes_of_a_softmax_are_the_logistic_loss() -> None:
    p, y = some_records(Logistic(), 100, seed=7)
    both = np.column_stack([np.zeros(100), p])
    np.testing.assert_allclose(Multinomial().value(both, y), Logistic().value(p, y), rtol=1e-12)
    np.testing.assert_allclose(Multinomial().slope(both, y)[:, 1], Logistic().slope(p, y), atol=1e-15)


@given(t=st.floats(-3, 3), smoothing=st.floats(0.5, 20))
def test_the_hinge_is_its_moreau_envelope(t: float, smoothing: float) -> None:
    def moved(v: float) -> float:
        return max(0.0, 1 - v) + smoothing / 2 * (t - v) ** 2

    best = min(optimize.minimize_scalar(moved, bounds=(-6, 6), options={"xatol": 1e-10}).fun, moved(1.0))
    value = Hinge(smoothing=smoothing).value(np.array([t, -t]), np.array([1.0, 0.0]))
    np.testing.assert_allclose(value, best, atol=1e-8)  # a label 0 mirrors the prediction
    plain = max(0.0, 1 - t)
    assert plain - 1 / (2 * smoothing) - 1e-12 <= value[0] <= plain + 1e-12


def test_huber_is_squared_inside_and_linear_outside() -> None:
    loss = Huber(threshold=2.0)
    assert loss.value(np.array([1.5, 5.0]), np.zeros(2)).tolist() == [1.125, 8.0]
    assert loss.slope(np.array([1.5, 5.0, -5.0]), np.zeros(3)).tolist() == [1.5, 2.0, -2.0]


@given(y=arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)))
def test_no_label_is_refused(y: Array) -> None:
    loss = Multinomial()
    p = np.array([[0.0, 1.0], [2.0, -1.0], [0.0, 0.0]])
    assert np.isfinite(loss.value(p, y)).all()
    assert np.all(np.linalg.norm(loss.slope(p, y), axis=1) <= loss.lipschitz)


def test_a_poisson_loss_is_that_of_its_mean_where_counts_may_be() -> None:
    """The minimum is the log of the mean count, for any counts in range: capping the slope moves none."""
    loss, y = PoissonLoss(most=6.0), np.array([0.0, 1.0, 6.0, 6.0, 5.0])
    best = optimize.minimize_scalar(lambda p: float(loss.value(np.full(5, p), y).sum()), bounds=(-9, 9))
    assert best.x == pytest.approx(math.log(3.6), abs=1e-6)
    p = np.linspace(-3, math.log(6.0), 50)
    np.testing.assert_allclose(loss.value(p, np.full(50, 4.0)), np.exp(p) - 4 * p, rtol=1e-12)
    assert loss.slope(np.array([50.0, 50.0]), np.array([0.0, 1e9])).tolist() == [6.0, 0.0]


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_parameters_out_of_range_are_refused(value: float) -> None:
    with pytest.raises(ParameterError, match="threshold must be a finite number > 0"):
        Huber(threshold=value)
    with pytest.raises(ParameterError, match="most must be a finite number > 0"):
        PoissonLoss(most=value)
    if value == math.inf:
        return
    with pytest.raises(ParameterError, match="smoothing must be a finite number > 0"):
        Hinge(smoothing=value)
