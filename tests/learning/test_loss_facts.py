"""What is known of each loss, measured, and as the page says it."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from tacit.learning import DistanceObjective, LinearObjective, LossChoice, Records
from tacit.learning.loss_choice import CLASS_LOSSES, LOSSES
from tacit.numerics import ElasticNet

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "losses.md"
NAMES = [(name, 2) for name in LOSSES] + [("logistic", 3)]


def objective(name: str, classes: int) -> LinearObjective:
    choice = LossChoice(name=name)
    many = name in CLASS_LOSSES
    loss = choice.scaled(classes=classes if many else 0, target=None if many else (0.0, 100.0))
    outputs = classes if classes > 2 else 1
    return LinearObjective(loss=loss, features=3, outputs=outputs, feature_norm=1.0)


def label_range(name: str) -> tuple[float, float]:
    if name in CLASS_LOSSES:
        return 0.0, 1.0
    return (0.0, math.exp(2)) if name == "poisson" else (-1.0, 1.0)


@pytest.mark.parametrize(("name", "classes"), NAMES)
def test_the_page_prints_the_facts(name: str, classes: int) -> None:
    goal = objective(name, classes)
    known = ElasticNet(l2=0.01).strong_convexity + goal.strong_convexity
    slope = f"{goal.lipschitz:.4g}" if math.isfinite(goal.lipschitz) else "none"
    title = f"`{name}`" + (", several classes" if classes > 2 else "")
    safe = "yes" if goal.clip_safe else "no"
    row = f"| {title} | {slope} | {goal.smoothness:.4g} | {goal.strong_convexity:g} | {known:g} | {safe} |"
    assert row in PAGE.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", LOSSES)
def test_slopes_and_curvatures_are_as_large_as_said_and_no_larger(name: str) -> None:
    goal = objective(name, 2)
    points, step = np.linspace(-8, 8, 160_001), 1e-4
    for y in label_range(name):
        slopes = goal.loss.slope(points, np.full(points.shape, y))
        assert np.all(np.diff(slopes) >= -1e-12)  # convex
        curvatures = np.diff(slopes) / step
        assert np.abs(slopes).max() <= goal.loss.lipschitz * (1 + 1e-12)
        assert curvatures.max() <= goal.loss.smoothness * (1 + 1e-6)
        # A shorter slope of the same sign is non-decreasing still: the gradient of a convex loss.
        assert np.all(np.diff(np.clip(slopes, -0.1, 0.1)) >= -1e-12)
    ends = [goal.loss.slope(points, np.full(points.shape, y)) for y in label_range(name)]
    if math.isfinite(goal.loss.lipschitz):
        assert max(np.abs(one).max() for one in ends) == pytest.approx(goal.loss.lipschitz, rel=1e-3)
    assert max(np.diff(one).max() / step for one in ends) == pytest.approx(goal.loss.smoothness, rel=1e-3)


def test_clipped_gradients_of_several_classes_are_those_of_no_function() -> None:
    """The Jacobian of a gradient is symmetric; that of softmax slopes clipped by their length is not."""
    goal = objective("logistic", 3)
    assert not goal.clip_safe
    record = Records.of(np.array([[1.0, 0.0, 0.0]]), np.zeros(1))

    def clipped(w: np.ndarray) -> np.ndarray:
        return goal.clipped_sum(w, record, 0.5)

    w, h = np.array([-1.0, 0.5, 0.2] + [0.0] * 6), 1e-6
    jacobian = np.array([(clipped(w + h * e) - clipped(w - h * e)) / (2 * h) for e in np.eye(9)])
    assert np.abs(jacobian - jacobian.T).max() > 1e-3


def test_no_linear_model_is_strongly_convex_and_squared_distances_are() -> None:
    for name, classes in NAMES:
        goal = objective(name, classes)
        assert goal.strong_convexity == 0
        record = Records.of(np.array([[1.0, 0.0, 0.0]]), np.zeros(1))
        away = np.zeros((3, goal.outputs))
        away[1] = 5.0  # at a right angle to the record: nothing changes
        assert goal.value(away.ravel(), record) == goal.value(np.zeros(goal.size), record)
    assert DistanceObjective(size=2, lipschitz=math.inf, smoothness=3.0).strong_convexity == 3.0
    assert DistanceObjective(size=2, lipschitz=1.0, smoothness=3.0).strong_convexity == 0.0


def test_a_clip_makes_another_quantile_of_all_but_the_median() -> None:
    """Slopes -q and 1 - q, clipped at c: those of the quantile c / (c + 1 - q) where 1 - q < c < q."""
    q, c = 0.9, 0.3
    loss = LossChoice(name="quantile", quantile=q, smoothing=0.0).scaled(target=(-1.0, 1.0))
    below, above = np.clip(loss.slope(np.array([-1.0, 1.0]), np.zeros(2)), -c, c)
    assert -below / (above - below) == pytest.approx(0.75)
    assert loss.clips_to_another
    median = LossChoice(name="absolute").scaled(target=(-1.0, 1.0))
    below, above = np.clip(median.slope(np.array([-1.0, 1.0]), np.zeros(2)), -c, c)
    assert -below / (above - below) == pytest.approx(0.5)
