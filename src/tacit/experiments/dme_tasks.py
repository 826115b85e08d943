"""Tasks on compressed means: what the three experiments on them share (Jiang 2025, Section 2.5)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data import Dataset, load, split_iid, split_noniid_shards
from tacit.errors import DataError
from tacit.experiments.dme_statements import statements
from tacit.experiments.reference import Reference
from tacit.experiments.report import Report
from tacit.learning.tasks import TaskRound, TaskRun
from tacit.means import (
    AdditiveMean,
    Error,
    Facts,
    Induced,
    MeanEstimator,
    NoNoise,
    RandK,
    RandKSpatial,
    RandProjSpatial,
    Wangni,
)
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["ESTIMATORS", "TaskSetting", "compute", "digits", "exact", "images", "of_images", "split"]

Maker = Callable[[int, int, float], MeanEstimator]

ESTIMATORS: Mapping[str, Maker] = {
    "Rand-k": lambda dim, k, _: RandK(dim=dim, k=k),
    "RkS(avg)": lambda dim, k, _: RandKSpatial(dim=dim, k=k),
    "RPS(avg)": lambda dim, k, _: RandProjSpatial(dim=dim, k=k),
    "RPS(opt)": lambda dim, k, R: RandProjSpatial(dim=dim, k=k, transform="opt", correlation=R),
    "Wangni": lambda dim, k, _: Wangni(dim=dim, k=k),
    "Induced": lambda dim, k, _: Induced(dim=dim, k=k),
}
"""Estimators by name: functions of the dimension, the numbers a party sends, and a correlation (opt only)."""

_MOST_RHO = 0.95  # beyond it, RPS amplifies what two vectors do not share
_LAST = 10

_SAID_OF_ERRORS = {
    True: "error: ||estimate - mean||^2 over the mean ||x_i||^2 of the round, averaged over rounds and runs; "
    "predicted: by formula, from the lengths and the correlation R of each round. RPS(opt) was given the "
    "mean R of an exact run.",
    False: "error: ||estimate - mean||^2, averaged over means, rounds and runs.",
}


@dataclass(frozen=True, kw_only=True)
class TaskSetting:
    """One task on one split.

    Attributes:
        name: Of the panel.
        parties: Number n of parties.
        dim: Coordinates of what they send.
        ks: Numbers that a party may send.
        runs: Seeds per estimator.
        task: Runs it: (estimator, seed) to a finished run.
        together: Whether all parties take part in every mean. Only then errors are relative to the length of
            their vectors, can be predicted, and RPS(opt) has one correlation.
    """

    name: str
    parties: int
    dim: int
    ks: tuple[int, ...]
    runs: int
    task: Callable[[MeanEstimator, int], TaskRun]
    together: bool = True


def exact(dim: int) -> AdditiveMean:
    """Return the estimator without any error."""
    return AdditiveMean(dim=dim, noise=NoNoise())


def compute(
    settings: Sequence[TaskSetting],
    *,
    progress: Callable[[int, int], Any],
    notes: Sequence[str],
    reference: Reference | None = None,
) -> Report:
    """Measure every estimator in every setting.

    Args:
        settings: What to run.
        progress: Called with (done, total).
        notes: What to say of the data.
        reference: What an independent computation found, by setting, estimator and k: errors over the mean
            squared norm.
    """
    cases = [(setting, k) for setting in settings for k in setting.ks]
    rows: list[dict[str, object]] = []
    plain: list[TaskRun] = []  # exact runs of the setting
    for done, (setting, k) in enumerate(cases):
        progress(done, len(cases))
        if k == setting.ks[0]:
            plain = [setting.task(exact(setting.dim), seed) for seed in range(setting.runs)]
        R = _correlation(setting, plain[0]) if setting.together else 0.0
        best = float(np.mean([_late(run) for run in plain]))
        for name, make in ESTIMATORS.items():
            if name == "RPS(opt)" and not setting.together:
                continue
            estimator = make(setting.dim, k, R)
            runs = [setting.task(estimator, seed) for seed in range(setting.runs)]
            known = (reference or {}).get((setting.name, name, k))
            rows.append(
                _row(setting, name, k, estimator, runs)
                | {"exact loss": best, "runs": setting.runs, "reference": known}
            )
    progress(len(cases), len(cases))
    return Report(
        rows=rows,
        x="k",
        y="error",
        error="standard error",
        line="estimator",
        panel="setting",
        log_y=True,
        notes=(
            *notes,
            _SAID_OF_ERRORS[settings[0].together],
            f"loss: after the last {_LAST} rounds, on average; exact loss: the same without compression.",
            "Induced sends half of its numbers as Top-k; the paper says neither this nor its preprocessing.",
            *statements(rows),
        ),
    )


def _correlation(setting: TaskSetting, plain: TaskRun) -> float:
    """Return the mean R of the vectors of an exact run, at most 0.95 (n - 1) and at least 0."""
    mean = float(np.mean([one.correlation for one in plain.rounds if one.correlation is not None]))
    return min(max(mean, 0.0), _MOST_RHO * (setting.parties - 1))


def _row(
    setting: TaskSetting, name: str, k: int, estimator: MeanEstimator, runs: Sequence[TaskRun]
) -> dict[str, object]:
    """Return the row of one estimator."""
    rounds = [[one for one in run.rounds if one.squared_norms > 0] for run in runs]
    n = setting.parties
    off = np.array([np.mean([one.squared_error * _scale(setting, one) for one in run]) for run in rounds])
    alike = [one.correlation for run in rounds for one in run if one.correlation is not None]
    predicted = [
        error.variance * _scale(setting, one)
        for run in rounds
        for one in run
        if setting.together and (error := _predicted(estimator, n, one.squared_norms, one.correlation)).exact
    ]
    return {
        "setting": setting.name,
        "estimator": name,
        "k": k,
        "error": float(off.mean()),
        "standard error": float(off.std(ddof=1) / math.sqrt(len(runs))),
        "predicted": float(np.mean(predicted)) if predicted else None,
        "R": float(np.mean(alike)),
        "loss": float(np.mean([_late(run) for run in runs])),
        "bits per party": estimator.bits_per_party(1),
        "ms per round": 1000 * float(np.mean([one.seconds for run in rounds for one in run])),
    }


def _scale(setting: TaskSetting, one: TaskRound) -> float:
    """Return what brings a squared error into the units of the column."""
    return setting.parties / one.squared_norms if setting.together else 1.0


def _predicted(estimator: MeanEstimator, n: int, S1: float, R: float | None) -> Error:
    """Return the error that the lengths and the correlation of a round predict."""
    return estimator.error(n, Facts(parties=n, squared_norms=S1, correlation=R))


def _late(run: TaskRun) -> float:
    """Return the mean loss of the last rounds."""
    return float(run.losses[-_LAST:].mean())


def digits() -> Dataset:
    """Load the 1797 digits of 8 x 8 pixels that come with scikit-learn, pixels from 0 to 1."""
    return load("digits-odd-even")


def images(limit: int | None = None) -> tuple[Array, Array, str]:
    """Load 10,000 images, zero-padded from 28 x 28 to 32 x 32 pixels from 0 to 1.

    Args:
        limit: Take that many of them; None takes all.

    Returns:
        Shape (N, 1024), their classes, shape (N,), and what must be said of them.
    """
    try:
        found, note = load("fashion-mnist", download=False), "Fashion-MNIST"
    except DataError:
        found = load("mnist")
        note = "MNIST in place of Fashion-MNIST, whose files are not there"
    pick = slice(None) if found.test is None or found.n <= 10_000 else np.asarray(found.test)
    X, y = found.X[pick][:limit], found.y[pick][:limit]
    padded = np.zeros((len(X), 32, 32))
    padded[:, 2:30, 2:30] = X.reshape(-1, 28, 28)
    said = f"Images: {len(X)} test images of {note}, zero-padded from 28 x 28 to 32 x 32, pixels from 0 to 1."
    return padded.reshape(-1, 1024), np.asarray(y), said


def of_images(setting: Callable[..., TaskSetting], *, runs: int) -> tuple[list[TaskSetting], str]:
    """Return the settings of a task on all images, as the paper takes them, and what must be said of them."""
    X, y, said = images()
    settings = [
        setting("images", X, y, parties=parties, alike=alike, ks=ks, runs=runs)
        for parties, ks in ((10, (5, 25, 51, 102)), (50, (5, 10, 20)))
        for alike in (True, False)
    ]
    return settings, said


def split(points: Array, labels: Array, parties: int, *, alike: bool) -> list[Array]:
    """Deal points to parties: at random, or by two shards of sorted labels each."""
    rng = simulated(0, "dme/split", parties)
    parts = split_iid(len(points), parties, rng) if alike else split_noniid_shards(labels, parties, rng)
    return [points[index] for index in parts]
