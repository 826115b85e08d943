"""Distributed regression on compressed means (Jiang 2025, Figures 2.4, A.5 and A.8)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.data import split_iid, split_sorted_target
from tacit.experiments.dme_tasks import TaskSetting, compute
from tacit.experiments.reference import reference
from tacit.experiments.report import Report
from tacit.learning.tasks import TaskRun, linear_regression
from tacit.means import MeanEstimator
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["low_rank", "run", "setting"]

ROUNDS, LEARNING_RATE, FACTORS = 50, 1e-3, 16


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes 2000 rows of 128 features only, a smaller stand-in."""
    runs = 4 if quick else 10
    settings = [setting(2000, 128, parties=10, alike=alike, ks=(12,), runs=runs) for alike in (True, False)]
    if not quick:
        for parties, ks in ((10, (5, 25, 50)), (50, (1, 5, 10))):
            settings += [
                setting(10_000, 512, parties=parties, alike=alike, ks=ks, runs=runs)
                for alike in (True, False)
            ]
    notes = (
        f"Made-up rows of {FACTORS} hidden factors and little noise in place of UJIIndoorLoc, which is not "
        "there; in full runs d = 512 and 10,000 rows as in the paper. The reference (d = 128) "
        "has factors too, but their sizes are not stated, so that its errors are comparable in order only.",
        f"Full gradients, learning rate {LEARNING_RATE:g}, {ROUNDS} rounds; the loss is the mean squared "
        "error.",
    )
    return compute(settings, progress=progress, notes=notes, reference=reference("dme-linear-regression"))


def setting(
    rows: int, dim: int, *, parties: int, alike: bool, ks: tuple[int, ...], runs: int, rounds: int = ROUNDS
) -> TaskSetting:
    """Return regression on made-up rows dealt to parties at random (`alike`) or sorted by target."""
    X, y = low_rank(rows, dim)
    parts = (
        split_iid(rows, parties, simulated(0, "dme/split", parties))
        if alike
        else split_sorted_target(y, parties)
    )
    row_norm, target_bound = float(np.linalg.norm(X, axis=1).max()), float(np.abs(y).max())

    def task(estimator: MeanEstimator, seed: int) -> TaskRun:
        return linear_regression(
            [X[index] for index in parts],
            [y[index] for index in parts],
            estimator,
            rounds=rounds,
            learning_rate=LEARNING_RATE,
            row_norm=row_norm,
            target_bound=target_bound,
            seed=seed,
            rng=simulated(seed, "dme-linear-regression"),
        )

    name = f"d = {dim}, {'iid' if alike else 'sorted'}, n = {parties}"
    return TaskSetting(name=name, parties=parties, dim=dim, ks=ks, runs=runs, task=task)


def low_rank(rows: int, dim: int) -> tuple[Array, Array]:
    """Make features of 16 hidden factors, entries of about unit size, and centred targets.

    Returns:
        Features, shape (rows, dim), and targets, shape (rows,). Public: nobody's data.
    """
    rng = simulated(0, "dme-linear-regression/data", rows, dim)
    factors = rng.normal(size=(rows, FACTORS))
    loadings = rng.normal(size=(FACTORS, dim)) / math.sqrt(FACTORS)
    X = factors @ loadings + 0.1 * rng.normal(size=(rows, dim))
    y = factors @ rng.normal(size=FACTORS) + 0.1 * rng.normal(size=rows)
    return X, y - y.mean()
