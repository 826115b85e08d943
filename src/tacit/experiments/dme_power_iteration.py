"""Distributed power iteration on compressed means (Jiang 2025, Figures 2.4, A.3 and A.6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.experiments.dme_tasks import TaskSetting, compute, digits, of_images, split
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.learning.tasks import TaskRun, power_iteration, top_eigenvector
from tacit.means import MeanEstimator
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["run", "setting"]

ROUNDS = 30


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes the small digits only."""
    small = digits()
    classes, runs = np.asarray(small.groups), 4 if quick else 10
    settings = [
        setting("digits", small.X, classes, parties=10, alike=alike, ks=(2, 6), runs=runs)
        for alike in (True, False)
    ]
    notes = ["Digits: 1797 images of 8 x 8 pixels, pixels from 0 to 1, beside the images of the paper."]
    if not quick:
        more, said = of_images(setting, runs=runs)
        settings += more
        notes.append(said)
    notes.append("Points are centred; the loss is the distance to the top eigenvector, up to its sign.")
    return compute(settings, progress=progress, notes=notes, reference=reference("dme-power-iteration"))


def setting(
    data: str, points: Array, labels: Array, *, parties: int, alike: bool, ks: tuple[int, ...], runs: int,
    rounds: int = ROUNDS,
) -> TaskSetting:  # fmt: skip
    """Return power iteration on points dealt to parties at random (`alike`) or by label."""
    shards = split(points, labels, parties, alike=alike)
    top = top_eigenvector(shards)

    def task(estimator: MeanEstimator, seed: int) -> TaskRun:
        rng = simulated(seed, "dme-power-iteration")
        return power_iteration(shards, estimator, rounds=rounds, seed=seed, target=top, rng=rng)

    name = f"{data}, {'iid' if alike else 'by label'}, n = {parties}"
    return TaskSetting(name=name, parties=parties, dim=points.shape[1], ks=ks, runs=runs, task=task)
