"""Medical costs by linear regression across silos that are sorted by cost (Lowy 2023, Figures 3.6, B.2, B.3).

Private and plain minibatch and local SGD, each with its best step size and clipping bound by training error,
which is tuning without privacy. Errors are relative to those of the mean cost as a prediction.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.data import load, split_sorted_target, train_test_split_silos, unscale
from tacit.experiments.isrl_compare import Case, SiloSplit, SiloTask, TunedMethod, compare
from tacit.experiments.isrl_convex import HELD, ROUNDS, noise_report, silo_methods, splits
from tacit.experiments.isrl_convex_statements import insurance_statements
from tacit.experiments.report import Report
from tacit.learning import LinearObjective, Records, Squared
from tacit.literature.silo_learning import experiment_batch
from tacit.numerics import Array
from tacit.randomness import simulated

__all__ = ["EPSILONS", "PANELS", "compute", "costs", "lines", "relative_error", "run"]

EPSILONS = (0.125, 0.25, 0.5, 1.0, 2.0, 3.0)
PANELS = ((3, 2), (5, 5), (3, 3))
"""Silos, and how many of them take part in a round."""

_CLIPS = (100.0, 1e4, 1e6)  # dollars
METRIC = "relative RMSE"


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes one panel, 3 budgets, coarser grids and 2 trials, not 8."""
    if quick:
        return compute(PANELS[:1], epsilons=(0.5, 1.0, 3.0), trials=2, coarse=True, progress=progress)
    return compute(PANELS, epsilons=EPSILONS, trials=8, coarse=False, progress=progress)


def compute(
    panels: tuple[tuple[int, int], ...],
    *,
    epsilons: tuple[float, ...],
    trials: int,
    coarse: bool,
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure both methods at every budget, and without privacy.

    Args:
        panels: Silos, and how many of them take part in a round.
        epsilons: Budgets.
        trials: Fresh splits per point, 2 or more.
        coarse: Whether few steps and bounds are tried.
        progress: Called with (done, total).
    """
    X, y = _data()
    tasks = {n: costs(X, y, n) for n in dict.fromkeys(n for n, _ in panels)}
    rows = compare(
        [Case(task=tasks[n], silos=some, panel=_named(n, some)) for n, some in panels],
        methods=lambda task: lines(_records(len(y), len(task.split(0).silos)), epsilons, coarse=coarse),
        epsilons=epsilons,
        trials=trials,
        further=2 if coarse else 4,
        metric=METRIC,
        progress=progress,
    )
    said = [
        (f"{n}", task, experiment_batch(_records(len(y), n), max(epsilons), rounds=ROUNDS))
        for n, task in tasks.items()
    ]
    return Report(
        rows=rows,
        x="epsilon",
        y=METRIC,
        error="standard error",
        line="method",
        panel="silos per round",
        notes=(
            f"{len(y)} records, sorted by cost and cut into silos; {1 - HELD:.0%} of each train. {ROUNDS} "
            "rounds, delta = 1/n^2, replace-one records.",
            "Numbers and codes of categories stand in [-1, 1] by public bounds; the paper standardises age "
            "and bmi by their means and deviations, which are releases.",
            "Step size and clipping bound are the best of grids by training error on one split: that tuning "
            f"is not private. Errors are means over {trials} further splits.",
            *insurance_statements(rows),
        ),
        more={"noise": noise_report(said, epsilons)},
    )


def costs(X: Array, y: Array, silos: int) -> SiloTask:
    """Return the regression across so many silos.

    Args:
        X: Features in [-1, 1].
        y: Costs in dollars.
        silos: How many; each holds costs of a range of its own.
    """
    parts = split_sorted_target(y, silos)

    def halves(trial: int) -> tuple[list[Array], list[Array]]:
        return train_test_split_silos(parts, HELD, simulated(trial, "isrl-insurance/split", silos))

    d = X.shape[1] + 1
    return SiloTask(
        objective=LinearObjective(loss=Squared(), features=d, feature_norm=math.sqrt(d)),
        split=splits(X, y, halves),
        measure=relative_error,
        clip=_CLIPS[-1],
        tuned_on_training=True,
    )


def lines(n: int, epsilons: tuple[float, ...], *, coarse: bool) -> tuple[TunedMethod, TunedMethod]:
    """Return both methods; the ends of the grids are those of the paper, which has 10 steps and 5 bounds.

    No gradient within reach is longer than 1e6 dollars, so that its bounds 1e8 and 1e32 add noise only.

    Args:
        n: Records of the largest silo, held-out ones included.
        epsilons: Budgets.
        coarse: Whether few steps and bounds are tried.
    """
    count = 4 if coarse else 6
    return silo_methods(
        n,
        most_epsilon=max(epsilons),
        steps=np.exp(np.linspace(-8, 1, count)).tolist(),
        local_steps=np.exp(np.linspace(-10, 0, count)).tolist(),
        clips=_CLIPS[1:] if coarse else _CLIPS,
    )


def relative_error(w: Array, split: SiloSplit, records: Records) -> float:
    """Return the root mean squared error over that of the mean training cost as the prediction."""
    off = records.y - records.X @ w
    naive = records.y - split.pooled.y.mean()
    return math.sqrt(float(off @ off) / float(naive @ naive))


def _data() -> tuple[Array, Array]:
    """Return features in [-1, 1], and costs in dollars."""
    table = load("insurance")
    assert table.label_bounds is not None  # noqa: S101 - narrows the type: costs have bounds
    lower, upper = table.label_bounds
    return table.X, unscale(np.asarray(table.y, dtype=np.float64), lower=lower, upper=upper)


def _records(n: int, silos: int) -> int:
    """Return the records of a silo, but for the last one."""
    return -(-n // silos)


def _named(silos: int, some: int) -> str:
    """Return what a panel is called."""
    return f"{some} of {silos}"
