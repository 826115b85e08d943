"""Envelopes against a numerical prox, their facts by search, and refusals that name what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize

from tacit.errors import ParameterError
from tacit.learning import (
    Absolute,
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    Hinge,
    LinearObjective,
    Logistic,
    Loss,
    MultiStageAcceleratedNoisyMinibatchSGD,
    NoisyMinibatchSGD,
    Quantile,
    Records,
    Settings,
    Smoothed,
    train,
)
from tacit.learning.difference import FusedDifference
from tacit.learning.training import silos_for
from tacit.numerics import clip_rows
from tacit.privacy import PrivacyBudget, TrustModel

RAW: list[Loss] = [
    Absolute(smoothing=math.inf),
    Quantile(quantile=0.8, smoothing=math.inf),
    Quantile(quantile=0.0, smoothing=math.inf),
    Hinge(smoothing=math.inf),
]
D = 3


def by_hand(loss: Loss, p: float, y: float) -> float:
    """The loss as textbooks write it."""
    if isinstance(loss, Hinge):
        return max(0.0, 1 - (2 * y - 1) * p)
    if isinstance(loss, Quantile):
        return max(loss.quantile * (y - p), (1 - loss.quantile) * (p - y))
    return abs(p - y)


@given(p=st.floats(-5, 5), y=st.sampled_from([0.0, 1.0]))
@pytest.mark.parametrize("loss", RAW, ids=str)
def test_without_smoothing_they_are_the_losses_of_textbooks(loss: Loss, p: float, y: float) -> None:
    assert loss.value(np.array([p]), np.array([y]))[0] == pytest.approx(by_hand(loss, p, y), abs=1e-12)
    slope, q = float(loss.slope(np.array([p]), np.array([y]))[0]), p + 0.37
    for other in (q, p - 0.37):  # a subgradient: the tangent stays below, everywhere
        assert by_hand(loss, other, y) >= by_hand(loss, p, y) + slope * (other - p) - 1e-9
    assert abs(slope) <= loss.lipschitz


@given(p=st.floats(-3, 3), y=st.sampled_from([0.0, 1.0]), beta=st.floats(0.5, 20))
@pytest.mark.parametrize("loss", [Absolute, Quantile, Hinge])
def test_by_default_they_are_their_envelopes(
    loss: type[Absolute | Quantile | Hinge], p: float, y: float, beta: float
) -> None:
    made = loss(smoothing=beta)
    kink = (2 * y - 1) if loss is Hinge else y

    def moved(v: float) -> float:
        return by_hand(made, v, y) + beta / 2 * (p - v) ** 2

    found = optimize.minimize_scalar(moved, bounds=(-8, 8), method="bounded", options={"xatol": 1e-10}).fun
    value = float(made.value(np.array([p]), np.array([y]))[0])
    assert value == pytest.approx(min(found, moved(kink)), abs=1e-7)
    plain = by_hand(made, p, y)
    assert plain - made.lipschitz**2 / (2 * beta) - 1e-12 <= value <= plain + 1e-12


def on_line(f: Callable[[np.ndarray], float], w: np.ndarray, x: np.ndarray, t: float) -> float:
    """f at w + t x."""
    return f(w + t * x)


@pytest.mark.parametrize("loss", RAW, ids=str)
def test_the_envelope_in_the_parameters_is_that_of_a_numerical_prox(loss: Loss) -> None:
    rng, beta = np.random.default_rng(1), 1.7
    goal = Smoothed(loss=loss, features=D, beta=beta)
    for _ in range(60):
        x, w, y = rng.normal(size=D), 2 * rng.normal(size=D), float(rng.integers(2))

        def moved(v: np.ndarray, x: np.ndarray = x, w: np.ndarray = w, y: float = y) -> float:
            return by_hand(loss, float(v @ x), y) + beta / 2 * float((w - v) @ (w - v))

        # The minimiser is on the line through w along x: one dimension, with the kink on it.
        along = partial(on_line, moved, w, x)
        line = optimize.minimize_scalar(along, bounds=(-9, 9), method="bounded", options={"xatol": 1e-11})
        kink = (2 * y - 1 if isinstance(loss, Hinge) else y) - float(w @ x)
        t = min((line.x, kink / float(x @ x)), key=along)
        record = Records.of(x[None], np.array([y]))
        assert goal.value(w, record)[0] == pytest.approx(moved(w + t * x), abs=1e-9)
        np.testing.assert_allclose(goal.gradients(w, record)[0], -beta * t * x, atol=1e-5)
        free = optimize.minimize(moved, w, method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
        assert goal.value(w, record)[0] <= free.fun + 1e-12


def test_gradients_have_the_printed_closed_forms() -> None:
    rng, beta = np.random.default_rng(2), 3.0
    X, y, w = rng.normal(size=(200, D)), rng.integers(2, size=200) * 1.0, rng.normal(size=D)
    s, records = (X**2).sum(axis=1), Records.of(X, y)
    r, sign = X @ w - y, 2 * y - 1
    expected = {
        Absolute: np.clip(beta * r / s, -1, 1),
        Quantile: -np.clip(beta * -r / s, 0.3 - 1, 0.3),
        Hinge: -sign * np.clip(beta * (1 - sign * (X @ w)) / s, 0, 1),
    }
    raw = math.inf
    for loss in (Absolute(smoothing=raw), Quantile(quantile=0.3, smoothing=raw), Hinge(smoothing=raw)):
        goal = Smoothed(loss=loss, features=D, beta=beta)
        np.testing.assert_allclose(goal.gradients(w, records), X * expected[type(loss)][:, None], atol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", RAW, ids=str)
def test_facts_of_the_envelope_hold_for_records_of_any_length(loss: Loss, dtype: type[np.floating]) -> None:
    """A search over points and records: half of each constant is refuted, itself it is not."""
    rng, beta, longest = np.random.default_rng(3), 2.0, 30.0
    goal = Smoothed(loss=loss, features=D, beta=beta, feature_norm=longest)
    raw = LinearObjective(loss=loss, features=D, feature_norm=longest)
    X = rng.normal(size=(4000, D)) * rng.choice([0.01, 1.0, 20.0], size=(4000, 1))
    records = Records.of(clip_rows(X, longest).astype(dtype), rng.integers(2, size=4000).astype(dtype))
    slack = 1e-3 if dtype == np.float32 else 1e-9
    steepest, longest_row, w = 0.0, 0.0, np.zeros(D)
    for _ in range(40):
        w = rng.normal(size=D) * 10.0 ** rng.uniform(-2, 1)
        v = w + rng.normal(size=D) * 10.0 ** rng.uniform(-3, 1)
        first, second = goal.gradients(w, records), goal.gradients(v, records)
        gap, moved = first - second, np.linalg.norm(w - v)
        steepest = max(steepest, float(np.linalg.norm(gap, axis=1).max() / moved))
        longest_row = max(longest_row, float(np.linalg.norm(first, axis=1).max()))
        assert np.all(gap @ (w - v) >= -slack)  # convex
        below, own = goal.value(w, records), raw.value(w, records)
        bound = (loss.lipschitz * records.norms) ** 2 / (2 * beta)
        assert np.all(below <= own + slack * (1 + own))
        assert np.all(below >= own - bound - slack * (1 + bound))
    assert beta / 2 < steepest <= goal.smoothness * (1 + slack) + (0.2 if dtype == np.float32 else 0)
    assert goal.lipschitz / 2 < longest_row <= goal.lipschitz * (1 + slack)
    fused = goal.clipped_sum(w, records, 0.4, dtype)
    slow = clip_rows(goal.gradients(w, records), 0.4).sum(axis=0, dtype=np.float64)
    np.testing.assert_allclose(fused, slow, atol=4000 * 0.4 * (1e-5 if dtype == np.float32 else 1e-12))
    assert isinstance(goal, FusedDifference)
    assert goal.clip_safe


def test_records_without_features_are_flat() -> None:
    goal = Smoothed(loss=Absolute(smoothing=math.inf), features=2, beta=1.0)
    record = Records.of(np.zeros((1, 2)), np.ones(1))
    assert goal.gradients(np.ones(2), record).tolist() == [[0.0, 0.0]]
    assert goal.value(np.ones(2), record).tolist() == [1.0]


def made(objective: LinearObjective, algorithm: Algorithm, *, private: bool = False) -> np.ndarray:
    rng = np.random.default_rng(5)
    X = clip_rows(rng.normal(size=(400, D)), 1.0)
    records = Records.of(X, np.asarray(X @ np.array([0.8, -0.5, 0.3])))
    settings = Settings(
        objective=objective,
        algorithm=algorithm,
        trust=TrustModel.LOCAL if private else None,
        budget=PrivacyBudget(2.0, 1e-5) if private else None,
        diameter=1.0,
    )
    return train(silos_for(settings, [records], names=["a"], seed=1), settings).w


def test_methods_that_need_smoothness_refuse_a_kink_by_its_name_and_run_on_the_envelope() -> None:
    loss = Absolute(smoothing=math.inf)
    raw = LinearObjective(loss=loss, features=D, feature_norm=1.0)
    smooth = Smoothed(loss=loss, features=D, feature_norm=1.0, beta=40.0)
    for algorithm in (
        NoisyMinibatchSGD(rounds=200),
        AcceleratedNoisyMinibatchSGD(rounds=200),
        MultiStageAcceleratedNoisyMinibatchSGD(rounds=200, mu=0.1),
    ):
        with pytest.raises(ParameterError, match=r"'absolute' has a kink|mu must be at most"):
            made(raw, algorithm)
    for goal, algorithm in (
        (smooth, AcceleratedNoisyMinibatchSGD(rounds=200)),
        (raw, NoisyMinibatchSGD(rounds=2000, step_size=0.05)),
    ):
        np.testing.assert_allclose(made(goal, algorithm), [0.8, -0.5, 0.3], atol=0.06)
    assert np.isfinite(made(smooth, AcceleratedNoisyMinibatchSGD(rounds=5), private=True)).all()


def test_what_has_no_kink_is_not_smoothed() -> None:
    for loss in (Logistic(), Absolute(), Hinge(smoothing=2.0)):
        with pytest.raises(ParameterError, match="loss must have a kink"):
            Smoothed(loss=loss, features=2, beta=1.0)
    for beta in (0.0, -1.0, math.nan, math.inf):
        with pytest.raises(ParameterError, match="beta must be a finite number > 0"):
            Smoothed(loss=Absolute(smoothing=math.inf), features=2, beta=beta)
    for smoothing in (0.0, -1.0, math.nan):
        with pytest.raises(ParameterError, match="smoothing must be a finite number > 0"):
            Absolute(smoothing=smoothing)
    with pytest.raises(ParameterError, match="quantile"):
        Quantile(quantile=1.1)
