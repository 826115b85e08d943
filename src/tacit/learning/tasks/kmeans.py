"""Distributed k-means (Lloyd): parties send local centroids, the server averages them cluster by cluster."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import sparse

from tacit.errors import check_count, check_non_negative
from tacit.learning.tasks.rounds import Asked, Asking, TaskRound, TaskRun, check_shards
from tacit.means import MeanEstimator
from tacit.numerics import Array, IntArray
from tacit.randomness import PublicStream

__all__ = ["kmeans"]


def kmeans(
    shards: Sequence[npt.ArrayLike],
    estimator: MeanEstimator,
    *,
    clusters: int = 10,
    rounds: int = 30,
    radius: float,
    delta: bool = False,
    seed: int = 0,
    rng: np.random.Generator,
) -> TaskRun:
    """Cluster all points.

    In a round every party assigns its points to the nearest global centroid and sends, for every cluster, its
    local centroid through `estimator`; the server averages them over the parties that take part in it. A
    party without points in a cluster stays away (one public bit), and a cluster without parties keeps its
    centroid: a global centroid that is sent again, as published, has its noise averaged over and over.

    Args:
        shards: For each party, shape (N_i, d): its points.
        estimator: Of the mean; its `dim` is d.
        clusters: Number C of centroids, at most as many as there are points.
        rounds: Number of rounds, >= 1.
        radius: Public bound on the norm of a point.
        delta: Whether parties send local minus global centroid, which converges where one estimate errs by
            less than the length of its vectors, and diverges where it errs by more.
        seed: Public: of the start, which is the same for all estimators, and of the estimator's maps.
        rng: Source of the estimator's private randomness.

    Returns:
        The centroids, shape (C, d); the loss is the sum over all points of the squared distance to the
        nearest centroid, the error of a round the average over its clusters.

    Raises:
        ParameterError: An argument is out of range, there are more clusters than points, or the run diverges
            beyond the largest radius of a round, 2**100.

    Reference:
        Jiang (2025), Section 2.5.
    """
    points = check_shards(shards, estimator, rounds)
    check_non_negative("radius", radius)
    everything = np.concatenate(points)
    check_count("clusters", clusters, high=len(everything))
    owner = np.repeat(np.arange(len(points)), [len(mine) for mine in points])
    ask = Asking(estimator=estimator, seed=seed, rng=rng)
    start = PublicStream(seed, 0, purpose="tasks/k-means").permutation(len(everything))[:clusters]
    centroids, done = everything[start].copy(), []
    nearest, _ = _assign(everything, centroids)
    for t in range(rounds):
        sums, counts = _local_sums(everything, owner, nearest, parties=len(points), clusters=clusters)
        asked: list[Asked] = []
        for c in range(clusters):
            here = np.flatnonzero(counts[:, c])
            if here.size == 0:
                continue
            known = centroids[c] if delta else np.zeros_like(centroids[c])
            bound = (radius + float(np.linalg.norm(known))) * (1 + 1e-9)
            local = sums[here, c] / counts[here, c, None] - known
            asked.append(ask(local, radius=bound, number=t * clusters + c))
            centroids[c] = asked[-1].estimate + known
        nearest, loss = _assign(everything, centroids)
        done.append(TaskRound.of(t, loss, asked))
    return TaskRun(result=centroids, rounds=tuple(done))


def _assign(points: Array, centroids: Array) -> tuple[IntArray, float]:
    """Return the nearest centroid of every point, and the sum of squared distances to them."""
    squares = np.einsum("cd,cd->c", centroids, centroids)
    scores = points @ centroids.T - 0.5 * squares
    nearest = np.argmax(scores, axis=1)
    best = np.take_along_axis(scores, nearest[:, None], axis=1)
    # Rounding may leave a distance of next to 0 negative.
    return nearest, max(float(np.vdot(points, points)) - 2 * float(best.sum()), 0.0)


def _local_sums(
    points: Array, owner: IntArray, nearest: IntArray, *, parties: int, clusters: int
) -> tuple[Array, IntArray]:
    """Return for every party and cluster the sum, shape (n, C, d), and number of its points, (n, C)."""
    cell, cells = owner * clusters + nearest, parties * clusters
    belongs = sparse.csr_array((np.ones(len(cell)), (cell, np.arange(len(cell)))), shape=(cells, len(cell)))
    counts = np.bincount(cell, minlength=cells)
    return np.asarray(belongs @ points).reshape(parties, clusters, -1), counts.reshape(parties, clusters)
