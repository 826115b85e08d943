"""Odd against even MNIST digits over 25 silos, one per pair of digits (Lowy 2023, Figures 3.5 and B.1).

Four methods at equal record-level privacy of every silo, against their versions without privacy. As in the
paper, R = 35 rounds and each method's step size is the best of a grid by test error, which is tuning without
privacy; the last column says what the method's own step size from public facts gives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import msgspec
import numpy as np

from tacit.data import load, split_by_pairs
from tacit.experiments.isrl_statements import statements
from tacit.experiments.report import Report
from tacit.federation import Fixed, Participation, RandomSubset
from tacit.learning import (
    AcceleratedNoisyMinibatchSGD,
    Algorithm,
    FeatureMap,
    LinearObjective,
    Logistic,
    NoisyLocalSGD,
    NoisyMinibatchSGD,
    Records,
    Settings,
    train,
)
from tacit.learning.training import silos_for
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, Relation, TrustModel

__all__ = ["SiloTask", "TunedMethod", "compute", "methods", "mnist_pairs", "run", "tuned"]

ROUNDS = 35
EPSILONS = (0.75, 1.5, 3.0, 6.0, 12.0, 18.0)
RADIUS = 0.3
DIAMETER = 150.0
_FURTHER = 6  # points that a grid is continued by where its best one is at an end


@dataclass(frozen=True)
class TunedMethod:
    """A line of the figure: how its algorithm is built from a point of its grid, and the grid.

    Without a point (None) the algorithm takes its own step size, from public facts.
    """

    name: str
    build: Callable[[float | None], Algorithm]
    grid: tuple[float, ...]


@dataclass(frozen=True)
class SiloTask:
    """Silos with their records, the records held out, and what neighbours differ in."""

    objective: LinearObjective
    silos: list[Records]
    rows: Array
    labels: Array
    notes: tuple[str, ...]
    relation: Relation = Relation.REPLACE_ONE

    @property
    def size(self) -> int:
        """Records of the smallest silo."""
        return min(len(records) for records in self.silos)

    def error(self, algorithm: Algorithm, epsilon: float | None, seed: int, silos: int) -> float:
        """Return the test error of one trained model; `silos` of all take part in a round."""
        relation = Relation.REPLACE_ONE if epsilon is None else self.relation
        drawn: Participation | None = None if silos == len(self.silos) else RandomSubset(silos)
        settings = Settings(
            objective=self.objective,
            algorithm=algorithm,
            trust=None if epsilon is None else TrustModel.LOCAL,
            budget=None if epsilon is None else PrivacyBudget(epsilon, 1 / self.size**2),
            relation=relation,
            # Samples of a fixed size have a price under replace-one only.
            sampling="given" if relation is Relation.REPLACE_ONE else "poisson",
            clip=RADIUS,
            diameter=DIAMETER,
            weights="silos",
            participation=drawn,
        )
        names = [str(k) for k in range(len(self.silos))]
        w = train(silos_for(settings, self.silos, names=names, seed=seed), settings).w
        return float(np.mean((self.rows @ w > 0) != self.labels))


def run(
    quick: bool, progress: Callable[[int, int], Any], *, relation: Relation = Relation.REPLACE_ONE
) -> Report:
    """Compute the figure; `quick` takes 3 budgets, one participation and 2 trials instead of 6, 2 and 3."""
    task = replace(mnist_pairs(), relation=relation)
    epsilons = (0.75, 3.0, 18.0) if quick else EPSILONS
    participations = (25,) if quick else (25, 12)
    return compute(
        task,
        methods=methods(task.size, coarse=quick),
        epsilons=epsilons,
        participations=participations,
        trials=2 if quick else 3,
        further=0 if quick else _FURTHER,
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
        progress: Called with (done, total).
    """
    cases = [(m, e, s) for s in participations for m in methods for e in (None, *epsilons)]
    rows: list[dict[str, object]] = []
    for done, (method, epsilon, silos) in enumerate(cases):
        progress(done, len(cases))
        rows.append(_row(task, method, epsilon, silos=silos, trials=trials, further=further))
    progress(len(cases), len(cases))
    notes = (
        *task.notes,
        f"{len(task.silos)} silos of {task.size} records or more, {ROUNDS} rounds, delta = 1/n^2, "
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
        notes=notes,
    )


def _row(
    task: SiloTask, method: TunedMethod, epsilon: float | None, *, silos: int, trials: int, further: int
) -> dict[str, object]:
    """Return one row: the best point of the grid, found on one seed and measured on others."""
    best, inside = tuned(lambda x: task.error(method.build(x), epsilon, 0, silos), method.grid, further)
    errors = np.array([task.error(method.build(best), epsilon, seed, silos) for seed in _seeds(trials)])
    own = np.array([task.error(method.build(None), epsilon, seed, silos) for seed in _seeds(trials)])
    return {
        "method": method.name,
        "silos per round": silos,
        "epsilon": epsilon,
        "test error": float(errors.mean()),
        "standard error": float(errors.std(ddof=1) / np.sqrt(trials)),
        "step": best,
        "inside": inside,
        "own step": float(own.mean()),
    }


def tuned(error: Callable[[float], float], grid: Sequence[float], further: int) -> tuple[float, bool]:
    """Return the point of least error, and whether points on both sides of it err more or as much.

    A grid whose best point is at an end is continued there in the ratio of its last two points: a best step
    at an end says that the grid ended, not that the step is the best.

    Args:
        error: Of a point.
        grid: Points in rising order, two or more.
        further: Points to continue by, at most.
    """
    found = {x: error(x) for x in grid}
    for _ in range(further):
        points = sorted(found)
        best = min(found, key=lambda x: found[x])
        if points[0] < best < points[-1]:
            return best, True
        beyond = best**2 / points[1] if best == points[0] else best**2 / points[-2]
        found[beyond] = error(beyond)
    best = min(found, key=lambda x: found[x])
    return best, min(found) < best < max(found)


def _seeds(trials: int) -> Iterator[int]:
    """Return the seeds that errors are measured on; seed 0 chose the step."""
    return iter(range(1, trials + 1))


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


def mnist_pairs() -> SiloTask:
    """Load the digits and deal them to the 25 pairs."""
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
    return SiloTask(
        objective=LinearObjective(loss=Logistic(), features=features.size, feature_norm=1.0),
        silos=[Records.of(rows[index], labels[index]) for index in pairs],
        rows=rows[np.asarray(digits.test)],
        labels=labels[np.asarray(digits.test)] > 0,
        notes=digits.notes,
    )
