"""Small problems that fair training is tested on."""

from __future__ import annotations

from typing import Any

import numpy as np

from tacit.fairness import Conditions, Fairness, FairProblem, Groups, LinearScores, penalty_of
from tacit.numerics import Array, IntArray

N, D = 60, 3


def records(n: int = N, classes: int = 2, groups: int = 2, seed: int = 0) -> tuple[Array, IntArray, IntArray]:
    """Return features with the constant, labels and groups that depend on each other; all of each occur."""
    rng = np.random.default_rng(seed)
    s = np.arange(n) % groups
    X = np.column_stack([rng.standard_normal((n, D - 1)) + s[:, None] / 2, np.ones(n)])
    y = np.clip(np.round(X[:, 0] + rng.standard_normal(n) / 2 + (classes - 1) / 2), 0, classes - 1)
    y[: groups * classes] = np.repeat(np.arange(classes), groups)
    return X, y.astype(np.int64), s


def problem(
    *,
    weight: float = 1.0,
    fairness: str = "demographic-parity",
    regularizer: str = "ermi",
    classes: int = 2,
    groups: int = 2,
    n: int = N,
    l2: float = 0.01,
    weights: str = "frequency",
    codes: Any = None,
) -> FairProblem:
    X, y, s = records(n, classes, groups)
    of = Groups(s if codes is None else codes, tuple(range(groups)))
    advantaged = [classes - 1] if fairness == "equal-opportunity" else None
    where = Conditions.of(Fairness(fairness), y, classes=list(range(classes)), advantaged=advantaged)
    penalty, membership = penalty_of(regularizer, of, where, classes, weights=weights)
    return FairProblem(LinearScores(D, classes), X, y, penalty, membership, weight, l2)


def slope(value: Any, at: Array, step: float = 1e-6) -> Array:
    """Return a gradient by central differences."""
    moves = step * np.eye(at.size).reshape(-1, *at.shape)
    return np.array([(value(at + move) - value(at - move)) / (2 * step) for move in moves]).reshape(at.shape)
