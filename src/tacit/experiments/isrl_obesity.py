"""Levels of obesity by softmax regression across silos of one class each (Lowy 2023, Figure 3.7).

Private and plain minibatch and local SGD, each with its best step size by test error, which is tuning
without privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tacit.data import load, split_by_label, train_test_split_silos
from tacit.experiments.isrl_compare import Case, SiloSplit, SiloTask, TunedMethod, compare
from tacit.experiments.isrl_convex import HELD, ROUNDS, noise_report, silo_methods, splits
from tacit.experiments.isrl_convex_statements import obesity_statements
from tacit.experiments.report import Report
from tacit.learning import LinearObjective, Multinomial, Records
from tacit.literature.silo_learning import experiment_batch
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["EPSILONS", "compute", "levels", "lines", "run"]

EPSILONS = (0.5, 1.0, 3.0, 6.0, 9.0)
_FURTHER = 4  # points that a grid is continued by where its best one is at an end


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes 7 silos a round, 2 budgets, coarse grids and 2 trials, not 3."""
    table = load("obesity")
    task = levels(table.X, np.asarray(table.y))
    if quick:
        return compute(task, (7,), epsilons=(1.0, 9.0), trials=2, coarse=True, progress=progress)
    return compute(task, (7, 3), epsilons=EPSILONS, trials=3, coarse=False, progress=progress)


def compute(
    task: SiloTask,
    participations: Sequence[int],
    *,
    epsilons: tuple[float, ...],
    trials: int,
    coarse: bool,
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure both methods at every budget, and without privacy.

    Args:
        task: Made by `levels`.
        participations: Numbers of silos that take part in a round.
        epsilons: Budgets.
        trials: Fresh splits per point, 2 or more.
        coarse: Whether few steps are tried.
        progress: Called with (done, total).
    """
    rows = compare(
        [Case(task=task, silos=some, panel=some) for some in participations],
        methods=lambda one: lines(one.size, epsilons, coarse=coarse),
        epsilons=epsilons,
        trials=trials,
        further=2 if coarse else _FURTHER,
        metric="test error",
        progress=progress,
    )
    taken = experiment_batch(task.size, max(epsilons), rounds=ROUNDS)
    split = task.split(0)
    return Report(
        rows=rows,
        x="epsilon",
        y="test error",
        error="standard error",
        line="method",
        panel="silos per round",
        notes=(
            f"{len(split.silos)} silos of {task.size} records, each of one class; {len(split.held)} held "
            f"out. {ROUNDS} rounds, delta = 1/n^2, replace-one records; K = {taken} local steps.",
            "Numbers and codes of categories stand in [-1, 1] by public bounds, which also bound the "
            "gradient; the paper standardises by the data and reads the bound off it: both are releases.",
            "Step sizes are the best of a grid by test error on one split, as in the paper: that tuning is "
            f"not private. Errors are means over {trials} further splits.",
            *obesity_statements(rows),
        ),
        more={"noise": noise_report([(f"{len(split.silos)}", task, taken)], epsilons)},
    )


def levels(X: Array, y: Array) -> SiloTask:
    """Return the task of one class per silo, training halves cut to the size of the smallest.

    Args:
        X: Features in [-1, 1].
        y: Classes, as numbers from 0.
    """
    parts, classes = split_by_label(y), len(np.unique(y))

    def halves(trial: int) -> tuple[list[Array], list[Array]]:
        rng = simulated(trial, "isrl-obesity/split")
        training, held = train_test_split_silos(parts, HELD, rng)
        fewest = min(map(len, training))
        return [np.sort(rng.permutation(part)[:fewest]) for part in training], held

    d = X.shape[1] + 1
    objective = LinearObjective(
        loss=Multinomial(classes=classes), features=d, outputs=classes, feature_norm=math.sqrt(d)
    )

    def wrong(w: Array, _split: SiloSplit, records: Records) -> float:
        return float(np.mean(objective.predictions(w, records.X).argmax(axis=1) != records.y))

    return SiloTask(
        objective=objective,
        split=splits(X, y.astype(np.float64), halves),
        measure=wrong,
        clip=objective.lipschitz,
    )


def lines(n: int, epsilons: tuple[float, ...], *, coarse: bool) -> tuple[TunedMethod, TunedMethod]:
    """Return both methods, with the grid of the paper.

    Args:
        n: Training records of a silo.
        epsilons: Budgets.
        coarse: Whether few steps are tried.
    """
    grid = np.exp(np.linspace(-7, -1, 4 if coarse else 8)).tolist()
    return silo_methods(n, most_epsilon=max(epsilons), steps=grid, local_steps=grid)
