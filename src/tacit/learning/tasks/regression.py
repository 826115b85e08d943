"""Distributed least squares by gradient descent: parties send local gradients, the server takes a step."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.learning.tasks.rounds import Asking, TaskRound, TaskRun, check_shards
from tacit.means import MeanEstimator
from tacit.numerics import Array

__all__ = ["linear_regression"]


def linear_regression(
    shards: Sequence[npt.ArrayLike],
    targets: Sequence[npt.ArrayLike],
    estimator: MeanEstimator,
    *,
    rounds: int = 50,
    learning_rate: float = 1e-3,
    row_norm: float,
    target_bound: float,
    seed: int = 0,
    rng: np.random.Generator,
) -> TaskRun:
    """Minimise the mean squared error of a linear model without intercept.

    Party i sends g_i = (2 / N_i) X_i^T (X_i theta - y_i); the server steps against the estimate, from
    theta = 0. The norm bound of a round follows from theta, which is public:
    2 * row_norm * (row_norm * ||theta|| + target_bound).

    Args:
        shards: For each party, shape (N_i, d): its features.
        targets: For each party, shape (N_i,).
        estimator: Of the mean; its `dim` is d.
        rounds: Number of rounds, >= 1.
        learning_rate: Size of a step, > 0.
        row_norm: Public bound on the norm of a row of features.
        target_bound: Public bound on the size of a target.
        seed: Public: of the estimator's maps.
        rng: Source of the estimator's private randomness.

    Returns:
        theta, shape (d,); the loss is the mean squared error over the rows of all parties.

    Raises:
        ParameterError: An argument is out of range.

    Reference:
        Jiang (2025), Section 2.5.
    """
    X = check_shards(shards, estimator, rounds)
    y = _checked_targets(targets, X)
    check_positive("learning_rate", learning_rate)
    check_non_negative("row_norm", row_norm)
    check_non_negative("target_bound", target_bound)
    ask = Asking(estimator=estimator, seed=seed, rng=rng)
    theta, done = np.zeros(estimator.dim), []
    all_rows, all_targets = np.concatenate(X), np.concatenate(y)
    for t in range(rounds):
        gradients = np.stack(
            [(2 / len(rows)) * rows.T @ (rows @ theta - wanted) for rows, wanted in zip(X, y, strict=True)]
        )
        bound = 2 * row_norm * (row_norm * float(np.linalg.norm(theta)) + target_bound)
        asked = ask(gradients, radius=bound * (1 + 1e-9), number=t)
        theta = theta - learning_rate * asked.estimate
        loss = float(np.mean((all_rows @ theta - all_targets) ** 2))
        done.append(TaskRound.of(t, loss, [asked]))
    return TaskRun(result=theta, rounds=tuple(done))


def _checked_targets(targets: Sequence[npt.ArrayLike], X: list[Array]) -> list[Array]:
    """Return finite targets, as many as rows."""
    found = [np.asarray(mine, dtype=np.float64) for mine in targets]
    if [mine.shape for mine in found] != [(len(rows),) for rows in X]:
        raise ParameterError("targets must have one number for each row of each shard.")
    if not all(np.all(np.isfinite(mine)) for mine in found):
        raise ParameterError("targets must be finite, got a NaN or an infinity.")
    return found
