"""The batches of one pass over all units, by the tuning rules, where a method is not told its own."""

from __future__ import annotations

import math

from tacit.federation import Batch, Disjoint, Full
from tacit.learning.algorithms.base import Problem
from tacit.learning.tuning import accelerated_batch, plain_batch
from tacit.privacy import Gaussian, PrivacyBudget, TrustModel, calibrate

__all__ = ["tuned_batch"]


def tuned_batch(batch: Batch | None, problem: Problem, *, accelerated: bool) -> Batch:
    """Return a batch, or disjoint ones of the size that `tacit.learning.tuning` gives where there is none.

    Args:
        batch: As the method was told; None lets the rule choose, and without a budget takes all units.
        problem: Of the run.
        accelerated: Whether steps are those of accelerated SGD; else those of plain SGD.
    """
    protection = problem.protection
    if batch is not None:
        return batch
    if not math.isfinite(protection.epsilon) or protection.delta == 0:
        return Full()
    # Silos that add noise by themselves add as many noises.
    noises = problem.asked if protection.trust is TrustModel.LOCAL else 1
    z = calibrate(Gaussian, PrivacyBudget(protection.epsilon, protection.delta))
    n, level = problem.rows, 1 / (z * math.sqrt(noises))
    if accelerated:
        size = accelerated_batch(
            n=n,
            dim=problem.dim,
            level=level,
            smoothness=problem.known_smoothness,
            lipschitz=problem.radius,
            diameter=problem.diameter,
        )
    else:
        size = float(plain_batch(dim=problem.dim, level=level))
    return Disjoint(rate=min(size / n, 1.0))
