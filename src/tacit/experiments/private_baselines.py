"""What DP-FERMI is compared with: a private Lagrangian, and post-processing by a noisy table."""

from __future__ import annotations

import numpy as np

from tacit.data import Preset
from tacit.fairness import (
    Conditions,
    DPEqualizedOddsPostprocessor,
    FairLogisticRegression,
    Fairness,
    FairUnits,
    LinearScores,
    PrivateFairLagrangian,
    PrivateTraining,
    PublicRecords,
    declared_groups,
    default_step,
    plain_fit,
)
from tacit.numerics import Array, IntArray
from tacit.privacy import PrivacyBudget
from tacit.randomness import simulated

__all__ = ["lagrangian", "postprocessed"]

_L2 = 1e-4


def lagrangian(
    data: Preset, budget: PrivacyBudget, *, fairness: str, most: float, rounds: int, seed: int
) -> IntArray:
    """Return what PF-LD predicts of test records.

    Args:
        data: Of two classes.
        budget: For the sensitive attribute.
        fairness: Name of the notion.
        most: Largest multiplier.
        rounds: Of training, on all records.
        seed: Of the noise.
    """
    y = data.y_train
    X = _with_constant(data.X_train)
    where = Conditions.of(Fairness.of(fairness), y, classes=[0, 1])
    names = sorted(set(data.sensitive_train.iloc[:, 0]))
    groups = declared_groups(data.sensitive_train.iloc[:, 0], names)
    model = LinearScores(X.shape[1], 2)
    method = PrivateFairLagrangian(
        model=model,
        conditions=len(where),
        groups=len(names),
        weight=most,
        rounds=rounds,
        step=default_step(X, 2, most),
        l2=_L2,
    )
    training = PrivateTraining(method=method, budget=budget)
    federation = training.federation([FairUnits.of(X, y, groups.codes, where.codes)], seed=seed)
    start = plain_fit(model, X, y, _L2)
    run = training.train(federation, start, public=PublicRecords(X, y, where.codes))
    return np.asarray(model.scores(run.theta, _with_constant(data.X_test)).argmax(axis=1))


def postprocessed(data: Preset, budget: PrivacyBudget, *, slack: float, seed: int) -> IntArray:
    """Return what mixed predictions of plain logistic regression are of test records, whose groups they use.

    Args:
        data: Of two classes.
        budget: For the sensitive attribute.
        slack: Largest difference of rates in the released table.
        seed: Of the noise and of the mixture.
    """
    plain = FairLogisticRegression(weight=0.0, standardise=False).fit(data.X_train, data.y_train)
    names = sorted(set(data.sensitive_train.iloc[:, 0]))
    train, test = (
        declared_groups(each.iloc[:, 0], names).codes for each in (data.sensitive_train, data.sensitive_test)
    )
    mixture = DPEqualizedOddsPostprocessor(budget, groups=len(names), slack=slack)
    mixture.fit(plain.predict(data.X_train), data.y_train, train, rng=simulated(seed, "table"))
    return mixture.predict(plain.predict(data.X_test), test, rng=simulated(seed, "mixture"))


def _with_constant(X: Array) -> Array:
    """Return features and the constant."""
    return np.column_stack([X, np.ones(len(X))])
