"""Envelopes agree with the minimum that defines them, with their derivative and with their bounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import ParameterError
from tacit.numerics import moreau_absolute, moreau_hinge, moreau_pinball

Loss = Callable[[Any], Any]
Envelope = Callable[..., tuple[Any, Any]]
LOSSES: dict[str, tuple[Loss, Envelope, float, float]] = {
    "hinge": (lambda t: np.maximum(0, 1 - t), moreau_hinge, 1.0, 1.0),
    "absolute": (np.abs, moreau_absolute, 1.0, 0.0),
    "pinball": (
        lambda t: np.maximum(0.8 * t, -0.2 * t),
        lambda t, beta, **scale: moreau_pinball(t, beta, quantile=0.8, **scale),
        0.8,
        0.0,
    ),
}  # loss, envelope, Lipschitz constant, kink
BETAS = st.floats(0.05, 50)
POINTS = arrays(np.float64, 5, elements=st.floats(-30, 30))


@pytest.mark.parametrize("name", LOSSES)
@given(t=POINTS, beta=BETAS)
def test_the_envelope_is_the_minimum(name: str, t: Any, beta: float) -> None:
    loss, envelope, _, kink = LOSSES[name]
    value, slope = envelope(t, beta)

    def at(v: Any) -> Any:
        return loss(v) + beta / 2 * (t - v) ** 2

    nearest = t - slope / beta
    np.testing.assert_allclose(at(nearest), value, rtol=1e-9, atol=1e-9)
    rivals = [nearest + move for move in np.linspace(-3, 3, 61)] + [np.full_like(t, kink), t]
    assert all(np.all(at(v) >= value - 1e-9) for v in rivals)


@pytest.mark.parametrize("name", LOSSES)
@given(t=POINTS, beta=BETAS, scale=st.floats(0.01, 20))
def test_the_slope_is_the_derivative(name: str, t: Any, beta: float, scale: float) -> None:
    envelope, h = LOSSES[name][1], 1e-6
    numeric = (envelope(t + h, beta, scale=scale)[0] - envelope(t - h, beta, scale=scale)[0]) / (2 * h)
    # The slope moves by at most beta / scale per unit.
    np.testing.assert_allclose(
        envelope(t, beta, scale=scale)[1], numeric, rtol=0, atol=2 * h * beta / scale + 1e-7
    )


@pytest.mark.parametrize("name", LOSSES)
@given(t=POINTS, s=POINTS, beta=BETAS)
def test_bounds_smoothness_and_lipschitz_constant(name: str, t: Any, s: Any, beta: float) -> None:
    loss, envelope, L, _ = LOSSES[name]
    value, slope = envelope(t, beta)
    assert np.all(value <= loss(t) + 1e-12)
    assert np.all(value >= loss(t) - L**2 / (2 * beta) - 1e-12)
    assert np.all(np.abs(slope) <= L)  # L, not the 2 L of Lowy (2023), Lemma 105
    assert np.all(np.abs(slope - envelope(s, beta)[1]) <= beta * np.abs(t - s) + 1e-12)


def test_the_absolute_loss_becomes_huber() -> None:
    t = np.linspace(-2, 2, 41)
    value, slope = moreau_absolute(t, 4.0)
    np.testing.assert_allclose(slope, np.clip(4.0 * t, -1, 1), rtol=1e-15)
    np.testing.assert_allclose(value, np.where(np.abs(t) <= 0.25, 2 * t**2, np.abs(t) - 0.125), atol=1e-15)


@given(x=arrays(np.float64, 3, elements=st.floats(-3, 3)), w=arrays(np.float64, 3, elements=st.floats(-3, 3)))
def test_scale_gives_the_envelope_over_all_weights(x: Any, w: Any) -> None:
    beta, scale = 2.0, float(x @ x)
    value, slope = moreau_hinge(x @ w, beta, scale=scale)

    def at(v: Any) -> Any:
        return np.maximum(0, 1 - v @ x) + beta / 2 * np.square(w - v).sum(axis=-1)

    nearest = w - slope * x / beta
    assert at(nearest) == pytest.approx(float(value), abs=1e-9)
    moves = np.random.default_rng(0).standard_normal((200, 3)) * np.logspace(-3, 0, 200)[:, None]
    assert np.all(at(nearest + moves) >= value - 1e-9)


def test_a_record_without_features_raises_nothing() -> None:
    t = np.array([-1.0, 0.0, 1.0, 3.0])
    for loss, envelope, L, _ in LOSSES.values():
        value, slope = envelope(t, 2.0, scale=np.zeros(4))
        np.testing.assert_allclose(value, loss(t))
        assert np.all(np.abs(slope) <= L)


def test_huge_and_bad_entries_raise_nothing() -> None:
    value, slope = moreau_absolute(np.array([1e308, -1e308, np.nan]), 1e10)
    assert slope.tolist()[:2] == [1.0, -1.0]
    assert np.isnan(value[2])
    assert moreau_hinge(np.array([0.5], dtype=np.float32), 2.0)[1].dtype == np.float32


def test_bad_parameters_are_refused() -> None:
    for envelope in (moreau_hinge, moreau_absolute):
        with pytest.raises(ParameterError, match="beta must be a finite number > 0, got 0"):
            envelope(np.ones(1), 0)
    with pytest.raises(ParameterError, match=r"quantile must be in \[0, 1\], got 1.5"):
        moreau_pinball(np.ones(1), 1.0, quantile=1.5)
