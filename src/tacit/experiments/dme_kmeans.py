"""Distributed k-means on compressed means (Jiang 2025, Figures 2.4, A.4 and A.7)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.experiments.dme_tasks import TaskSetting, compute, digits, of_images, split
from tacit.experiments.report import Report
from tacit.learning.tasks import TaskRun, kmeans
from tacit.means import MeanEstimator
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["run", "setting"]

CLUSTERS, ROUNDS = 10, 30
IMAGE_RUNS = 2  # of d = 1024, where one run of all settings takes minutes and the paper takes 10


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes the small digits, 2 runs and the split at random."""
    small, runs = digits(), 2 if quick else 10
    classes = np.asarray(small.groups)
    settings = [
        setting("digits", small.X, classes, parties=10, alike=alike, ks=(6,), runs=runs, delta=delta)
        for alike, delta in ((True, False), (True, True), (False, False))[: 2 if quick else 3]
    ]
    notes = ["Digits: 1797 images of 8 x 8 pixels, pixels from 0 to 1, beside the images of the paper."]
    if not quick:
        more, said = of_images(setting, runs=IMAGE_RUNS)
        settings += more
        notes.append(said)
    notes += [
        "A party without points in a cluster stays away from it; `differences`: parties send local minus "
        "global centroids. Common random start; the loss is the sum of squared distances to the nearest "
        "centroid. RPS(opt) is left out: every cluster has parties, and so a correlation, of its own.",
        "Losses of an independent computation on the same digits (iid, k = 6), other starts: exact 4676, "
        "Rand-k 26183, RkS(avg) 17773, RPS(avg) 14575, Wangni 14302, Induced 38985; with differences 6384, "
        "5397, 5351, 4836 and 9621.",
    ]
    return compute(settings, progress=progress, notes=notes)


def setting(
    data: str, points: Array, labels: Array, *, parties: int, alike: bool, ks: tuple[int, ...], runs: int,
    delta: bool = False, rounds: int = ROUNDS,
) -> TaskSetting:  # fmt: skip
    """Return k-means on points dealt to parties at random (`alike`) or by label; pixels are from 0 to 1."""
    shards = split(points, labels, parties, alike=alike)
    radius = math.sqrt(points.shape[1])

    def task(estimator: MeanEstimator, seed: int) -> TaskRun:
        rng = simulated(seed, "dme-kmeans")
        return kmeans(
            shards,
            estimator,
            clusters=CLUSTERS,
            rounds=rounds,
            radius=radius,
            delta=delta,
            seed=seed,
            rng=rng,
        )

    name = f"{data}, {'iid' if alike else 'by label'}, n = {parties}{', differences' if delta else ''}"
    return TaskSetting(
        name=name, parties=parties, dim=points.shape[1], ks=ks, runs=runs, task=task, together=False
    )
