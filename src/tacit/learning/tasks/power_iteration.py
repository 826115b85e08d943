"""Distributed power iteration: parties multiply by their covariance, the server averages and normalises."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError
from tacit.learning.tasks.rounds import Asking, TaskRound, TaskRun, check_shards, normals
from tacit.means import MeanEstimator
from tacit.numerics import Array

__all__ = ["power_iteration", "top_eigenvector"]


def power_iteration(
    shards: Sequence[npt.ArrayLike],
    estimator: MeanEstimator,
    *,
    rounds: int = 30,
    seed: int = 0,
    target: npt.ArrayLike | None = None,
    rng: np.random.Generator,
) -> TaskRun:
    """Find the top eigenvector of the covariance of all points.

    Party i sends u_i = A_i v / ||A_i v|| with A_i = X_i^T X_i / N_i, or 0 where A_i v = 0; the server takes
    v <- estimate / ||estimate||. The norm bound of a round is 1.
    The mean of all points is taken off first, which the thesis does not say.

    Args:
        shards: For each party, shape (N_i, d): its points.
        estimator: Of the mean; its `dim` is d.
        rounds: Number of rounds, >= 1.
        seed: Public: of the start, which is the same for all estimators, and of the estimator's maps.
        target: Shape (d,), a unit vector; None for `top_eigenvector(shards)`.
        rng: Source of the estimator's private randomness.

    Returns:
        The unit vector; the loss is its distance to the target, up to the sign.

    Raises:
        ParameterError: An argument is out of range, or all points are 0.

    Reference:
        Jiang (2025), Section 2.5.
    """
    points = check_shards(shards, estimator, rounds)
    X = _centred(points)
    if not any(np.any(mine) for mine in X):
        raise ParameterError("shards must not be all zero.")
    top = top_eigenvector(points) if target is None else np.asarray(target, dtype=np.float64)
    if top.shape != (estimator.dim,):
        raise ParameterError(f"target must have shape ({estimator.dim},), got {top.shape}.")
    ask = Asking(estimator=estimator, seed=seed, rng=rng)
    v = _normalised(normals(seed, estimator.dim, "tasks/power-iteration"))
    done = []
    for t in range(rounds):
        U = np.stack([_normalised(mine.T @ (mine @ v)) for mine in X])
        asked = ask(U, radius=1.0, number=t)
        v = _normalised(asked.estimate) if np.any(asked.estimate) else v
        loss = min(float(np.linalg.norm(v - top)), float(np.linalg.norm(v + top)))
        done.append(TaskRound.of(t, loss, [asked]))
    return TaskRun(result=v, rounds=tuple(done))


def top_eigenvector(shards: Sequence[npt.ArrayLike]) -> Array:
    """Compute the top eigenvector of (1/n) sum_i X_i^T X_i / N_i, what exact power iteration tends to.

    Parties count alike, whatever their sizes; with equal sizes this is the covariance of all points.

    Args:
        shards: For each party, shape (N_i, d).

    Returns:
        Shape (d,), of length 1.

    Cost:
        O(N d^2 + d^3).
    """
    X = _centred([np.asarray(shard, dtype=np.float64) for shard in shards])
    A = sum(mine.T @ mine / len(mine) for mine in X)
    return np.asarray(np.linalg.eigh(A)[1][:, -1])


def _centred(points: list[Array]) -> list[Array]:
    """Return all points with their common mean taken off."""
    mean = sum(mine.sum(axis=0) for mine in points) / sum(map(len, points))
    return [mine - mean for mine in points]


def _normalised(v: Array) -> Array:
    """Return a vector at unit length; 0 stays 0."""
    size = float(np.linalg.norm(v))
    return v / size if size > 0 else v
