"""Odd against even MNIST digits over 25 silos, one per pair of digits (Lowy 2023, Figures 3.5 and B.1).

Four methods at equal record-level privacy of every silo, against their versions without privacy. As in the
paper, R = 35 rounds and each method's step size is the best of a grid by test error, which is tuning without
privacy; the last column says what the method's own step size from public facts gives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from tacit.data import load, split_by_pairs
from tacit.experiments.isrl_compare import Case, SiloSplit, SiloTask, TunedMethod, compare
from tacit.experiments.isrl_statements import statements
from tacit.experiments.report import Report
from tacit.federation import Fixed
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    FeatureMap,
    LinearObjective,
    Logistic,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Records,
)
from tacit.numerics import Array
from tacit.privacy import Relation

__all__ = ["compute", "methods", "pairs_task", "run"]

ROUNDS = 35
EPSILONS = (0.75, 1.5, 3.0, 6.0, 12.0, 18.0)
RADIUS = 0.3
DIAMETER = 150.0
_FURTHER = 6  # points that a grid is continued by where its best one is at an end


def run(
    quick: bool, progress: Callable[[int, int], Any], *, relation: Relation = Relation.REPLACE_ONE
) -> Report:
    """Compute the figure; `quick` takes 3 budgets, one participation and 2 trials instead of 6, 2 and 3."""
    task, notes = _mnist_pairs()
    task = replace(task, relation=relation)
    epsilons = (0.75, 3.0, 18.0) if quick else EPSILONS
    participations = (25,) if quick else (25, 12)
    return compute(
        task,
        methods=methods(task.size, coarse=quick),
        epsilons=epsilons,
        participations=participations,
        trials=2 if quick else 3,
        further=0 if quick else _FURTHER,
        notes=notes,
        progress=progress,
    )


def compute(
    task: SiloTask,
    *,
    methods: Sequence[TunedMethod],
    epsilons: Sequence[float],
    participations: Sequence[int],
    trials: int,
    further: int = 0,
    notes: Sequence[str] = (),
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure every method at every budget and participation.

    Args:
        task: Silos and held-out records.
        methods: Lines of the figure.
        epsilons: Budgets; training without privacy is measured as well.
        participations: Numbers of silos that take part in a round.
        trials: Seeds per point.
        further: Points that a grid is continued by, at most, where its best one is at an end.
        notes: What must be said of the data.
        progress: Called with (done, total).
    """
    rows = compare(
        [Case(task=task, silos=silos, panel=silos) for silos in participations],
        methods=lambda _task: methods,
        epsilons=epsilons,
        trials=trials,
        further=further,
        metric="test error",
        progress=progress,
    )
    said = (
        *notes,
        f"{len(task.split(0).silos)} silos of {task.size} records or more, {ROUNDS} rounds, delta = 1/n^2, "
        f"{task.relation.value} neighbours.",
        "Pixels mapped as by every classifier of tacit (FeatureMap), where the paper has a PCA, which would "
        "have to be private itself.",
        "Full batches for minibatch and accelerated SGD: for a fixed number of rounds they need least noise.",
        "Step sizes are the best of a grid by test error, as in the paper: that tuning is not private.",
        f"A grid whose best step is at an end is continued by up to {further} points. Errors are means of "
        f"{trials} trials; the paper takes 20.",
        *statements(rows),
    )
    return Report(
        rows=rows,
        x="epsilon",
        y="test error",
        error="standard error",
        line="method",
        panel="silos per round",
        notes=said,
    )


def methods(n: int, *, coarse: bool) -> Sequence[TunedMethod]:
    """Return the lines of the figure; K of local SGD is the paper's share 443 / 1238 of a silo."""
    steps = (2.0, 8.0, 32.0) if coarse else (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    nus = (0.02, 0.2, 1.0) if coarse else (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0)
    short = (0.1, 0.5, 2.0) if coarse else (0.05, 0.2, 0.5, 1.0, 3.0)
    local = NoisyLocalSGD(rounds=ROUNDS, local_steps=round(n * 443 / 1238), batch=Fixed(size=1))
    return (
        TunedMethod("accelerated", lambda x: AcceleratedNoisyMinibatchSGD(rounds=ROUNDS, nu=x), nus),
        TunedMethod("minibatch", lambda x: NoisyMinibatchSGD(rounds=ROUNDS, step_size=x), steps),
        TunedMethod("local", lambda x: msgspec.structs.replace(local, step_size=x), short),
    )


def _mnist_pairs() -> tuple[SiloTask, tuple[str, ...]]:
    """Load the digits and deal them to the 25 pairs; return what must be said of them as well."""
    digits = load("mnist-odd-even")
    assert digits.train is not None  # noqa: S101 - narrows the type: MNIST has halves
    assert digits.test is not None  # noqa: S101
    assert digits.groups is not None  # noqa: S101
    d = digits.X.shape[1]
    features = FeatureMap(lower=np.zeros(d), upper=np.ones(d))
    rows = features(digits.X).astype(np.float32)
    train_index = np.asarray(digits.train)
    pairs = [train_index[part] for part in split_by_pairs(digits.groups[train_index])]
    labels = np.asarray(digits.y, dtype=np.float64)
    held = np.asarray(digits.test)
    silos = [Records.of(rows[index], labels[index]) for index in pairs]
    return pairs_task(silos, Records.of(rows[held], labels[held])), digits.notes


def pairs_task(silos: Sequence[Records], held: Records) -> SiloTask:
    """Return the task of silos and held-out records: the logistic loss, and the share of wrong signs.

    Args:
        silos: Rows in the unit ball, labels 0 and 1.
        held: The same of other records.
    """
    split = SiloSplit(silos, held)

    def wrong(w: Array, _split: SiloSplit, records: Records) -> float:
        return float(np.mean((records.X @ w > 0) != (records.y > 0)))

    return SiloTask(
        objective=LinearObjective(loss=Logistic(), features=held.X.shape[1], feature_norm=1.0),
        split=lambda _trial: split,
        measure=wrong,
        clip=RADIUS,
        diameter=DIAMETER,
        own_step=True,
    )
