"""What private fair training takes from public features and labels: where it starts, and its step."""

from __future__ import annotations

import math

import numpy as np

from tacit.fairness.fermi import FairProblem, fermi_exact
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions
from tacit.fairness.penalty import ErmiPenalty
from tacit.fairness.scores import LinearScores
from tacit.numerics import Array, IntArray

__all__ = ["default_step", "plain_fit"]


def plain_fit(model: LinearScores, rows: Array, codes: IntArray, l2: float) -> Array:
    """Return the parameters of logistic regression without a penalty: what features and labels say."""
    nobody = Groups(np.zeros(len(codes), dtype=np.int64), (None,))
    everywhere = Conditions(np.zeros(len(codes), dtype=np.int64), (None,))
    penalty, of = ErmiPenalty.of(nobody, everywhere, model.classes)
    return fermi_exact(FairProblem(model, rows, codes, penalty, of, 0.0, l2), iterations=100).theta


def default_step(rows: Array, classes: int, weight: float) -> float:
    """Return a step of the model below 2 / smoothness, of public features.

    Args:
        rows: Shape (n, d + 1).
        classes: m.
        weight: Of the penalty.
    """
    largest = float(np.linalg.eigvalsh(rows.T @ rows / len(rows))[-1])
    curvature = largest * (0.25 if classes == 2 else 0.5)
    return 1.5 / (max(curvature, 1e-300) * math.sqrt(1 + weight))
