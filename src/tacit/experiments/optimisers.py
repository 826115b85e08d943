"""Every algorithm at equal privacy, local by shuffle by central trust, on three tasks.

Nothing is tuned: an algorithm takes its step sizes from public facts, and its rounds by its own bound on the
error. Which orderings of the papers hold is computed from the rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy import optimize, special

from tacit.data import load, split_by_pairs
from tacit.errors import TacitError
from tacit.experiments.optimisers_statements import statements
from tacit.experiments.report import Report
from tacit.learning import (
    ALGORITHMS,
    FeatureMap,
    LinearObjective,
    Logistic,
    Prediction,
    Records,
    Settings,
    make_algorithm,
    predict,
    train,
)
from tacit.learning.algorithms import Convexity
from tacit.learning.training import silos_for
from tacit.numerics import Array, ElasticNet
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated

__all__ = ["OPTIONS", "TRUSTS", "Task", "Variant", "compute", "run", "tasks", "variants"]

DELTA, EPSILON, MOST = 1e-6, 3.0, 35
"""MOST rounds, as in Lowy (2023): more gain little, and every one of them is shuffled for real."""
TRUSTS = (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL)

OPTIONS: Final[Mapping[str, Mapping[str, object]]] = {"local": {"local_steps": 10}}
"""What is set of an algorithm, beside what all have in common; everything else is its own default."""


@dataclass(frozen=True)
class Task:
    """Silos, what is minimised over them, and the records that it is measured on.

    Attributes:
        name: What the table calls it.
        objective: Loss of a record.
        silos: Records of each.
        fresh: Records of the same law, which nobody trains on; None measures on those of the silos.
        diameter: D, public: how far from the start the minimum is looked for.
        l1: Strength of the L1 penalty.
        l2: Strength of the squared L2 penalty, and so the strong convexity.
    """

    name: str
    objective: LinearObjective
    silos: tuple[Records, ...]
    fresh: Records | None = None
    diameter: float = 10.0
    l1: float = 0.0
    l2: float = 0.0

    @property
    def regularizer(self) -> ElasticNet:
        """What is added to the mean loss."""
        return ElasticNet(l1=self.l1, l2=self.l2)

    @property
    def convexity(self) -> Convexity:
        """What is known of the sum of both."""
        return "strongly-convex" if self.l2 > 0 else "convex"

    @cached_property
    def measured(self) -> Records:
        """The records that the excess is of."""
        if self.fresh is not None:
            return self.fresh
        return Records.of(
            np.concatenate([one.X for one in self.silos]), np.concatenate([one.y for one in self.silos])
        )

    def value(self, w: Array) -> float:
        """Return the objective on the measured records, penalty and all."""
        return float(self.objective.value(w, self.measured).mean()) + self.regularizer.value(w)

    @cached_property
    def best(self) -> Array:
        """The minimum on the measured records within D of the start, by L-BFGS and bisection of a ridge."""
        w = self._minimum(0.0)
        if np.linalg.norm(w) <= self.diameter:
            return w

        def beyond(log_ridge: float) -> float:
            return float(np.linalg.norm(self._minimum(math.exp(log_ridge)))) - self.diameter

        return self._minimum(math.exp(optimize.brentq(beyond, math.log(1e-7), math.log(1.0), xtol=1e-3)))

    def _minimum(self, ridge: float) -> Array:
        """Return the minimum with a further squared L2 penalty, by its positive and negative parts."""
        d, records, l2 = self.objective.size, self.measured, self.l2 + ridge

        def value(parts: Array) -> tuple[float, Array]:
            w = parts[:d] - parts[d:]
            total = self.objective.clipped_sum(w, records, self.objective.lipschitz, np.float64)
            slope = total / len(records) + l2 * w
            smooth = float(self.objective.value(w, records).mean()) + l2 / 2 * float(w @ w)
            return smooth + self.l1 * float(parts.sum()), np.concatenate([self.l1 + slope, self.l1 - slope])

        found = optimize.minimize(
            value,
            np.zeros(2 * d),
            jac=True,
            method="L-BFGS-B",
            bounds=[(0, None)] * (2 * d),
            options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-13, "gtol": 1e-7},
        ).x
        return np.asarray(found[:d] - found[d:])

    def excess(self, w: Array) -> float:
        """Return how far the objective is above its minimum."""
        return self.value(w) - self.value(self.best)


@dataclass(frozen=True)
class Variant:
    """An algorithm on a task: with as many passes as it likes, or with one."""

    task: Task
    name: str
    one_pass: bool = False

    @property
    def method(self) -> str:
        """What the table calls it."""
        return f"{self.name}, one pass" if self.one_pass else self.name

    def settings(self, trust: TrustModel, epsilon: float, rounds: int | None) -> Settings:
        """Return what is trained with."""
        return Settings(
            objective=self.task.objective,
            algorithm=make_algorithm(self.name, rounds=rounds, **OPTIONS.get(self.name, {})),
            trust=trust,
            budget=PrivacyBudget(epsilon, DELTA),
            diameter=self.task.diameter,
            regularizer=self.task.regularizer,
        )

    def planned(self, trust: TrustModel, epsilon: float) -> tuple[Settings, Prediction]:
        """Return what is trained with: rounds by the bound, or `MOST` where it takes more or none."""
        own, found = self._planned(trust, epsilon, None)
        if found.runs and found.rounds <= MOST:
            return own, found
        short, fewer = self._planned(trust, epsilon, MOST)
        return (short, fewer) if fewer.runs else (own, found)

    def _planned(self, trust: TrustModel, epsilon: float, rounds: int | None) -> tuple[Settings, Prediction]:
        """Return the settings of least bound, and what it is."""
        settings, task = self.settings(trust, epsilon, rounds), self.task
        found = predict(
            settings,
            [len(one) for one in task.silos],
            convexity=task.convexity,
            mu=task.l2,
            one_pass=self.one_pass,
        )
        return replace(settings, algorithm=found.algorithm), found

    def trained(self, settings: Settings, seed: int) -> float:
        """Train once and return the excess."""
        names = [str(k) for k in range(len(self.task.silos))]
        federation = silos_for(settings, list(self.task.silos), names=names, seed=seed)
        return self.task.excess(train(federation, settings).w)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the table; `quick` takes every eighth record and 2 seeds, not every second and 3."""
    return compute(
        tasks(every=8 if quick else 2),
        epsilons=(EPSILON,),
        trials=2 if quick else 3,
        progress=progress,
    )


def compute(
    given: Sequence[Task],
    *,
    epsilons: Sequence[float],
    trials: int,
    names: Sequence[str] | None = None,
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure every algorithm on every task, under every trust model that it runs under.

    Args:
        given: The tasks.
        epsilons: Budgets.
        trials: Seeds of each, 2 or more.
        names: Of the algorithms; None takes all that there are.
        progress: Called with (done, total).
    """
    cases = [
        (variant, trust, epsilon)
        for task in given
        for variant in variants(task, names)
        for trust in TRUSTS
        for epsilon in epsilons
    ]
    rows: list[dict[str, object]] = []
    refused: dict[str, list[str]] = {}
    for done, (variant, trust, epsilon) in enumerate(cases):
        progress(done, len(cases))
        try:
            settings, found = variant.planned(trust, epsilon)
        except TacitError as error:
            reason = str(error)
        else:
            if found.runs and (found.population or not variant.one_pass):
                rows.append(_row(variant, settings, found, trust=trust, epsilon=epsilon, trials=trials))
                continue
            reason = "its records stand in several batches." if found.runs else found.reason
        refused.setdefault(f"{variant.method}: {reason}", []).append(
            f"{variant.task.name}, {trust.value} trust"
        )
    progress(len(cases), len(cases))
    return Report(
        rows=rows,
        x="epsilon",
        y="excess",
        error="standard error",
        line="method",
        panel="task and trust",
        log_y=True,
        shown=("task", "trust", "method", "passes", "epsilon", "excess", "standard error", "rounds"),
        notes=(
            f"delta = {DELTA:g}, replace-one records; gradients are clipped to the Lipschitz constant. "
            f"Means of {trials} seeds.",
            *(_said(task) for task in given),
            *statements(rows),
            *(f"{why} Not run: {'; '.join(dict.fromkeys(where))}." for why, where in refused.items()),
        ),
    )


def variants(task: Task, names: Sequence[str] | None = None) -> list[Variant]:
    """Return what a task is tried with: every algorithm, and on fresh records also in one pass.

    Args:
        task: The task.
        names: Of the algorithms; None takes all that there are.
    """
    chosen = list(ALGORITHMS if names is None else names)
    found = [Variant(task, name) for name in chosen]
    if task.fresh is None:
        return found
    with_batch = [name for name in chosen if "batch" in ALGORITHMS[name].__struct_fields__]
    return found + [Variant(task, name, one_pass=True) for name in with_batch]


def _row(
    variant: Variant,
    settings: Settings,
    found: Prediction,
    *,
    trust: TrustModel,
    epsilon: float,
    trials: int,
) -> dict[str, object]:
    """Return one row: the mean over seeds, which are the same ones for all."""
    began = time.perf_counter()
    excess = np.array([variant.trained(settings, seed) for seed in range(1, trials + 1)])
    seconds = (time.perf_counter() - began) / trials
    bounded = found.valid and found.bounded == "excess" and not found.caveat
    return {
        "task": variant.task.name,
        "trust": trust.value,
        "method": variant.method,
        "passes": "one" if found.population else "many",
        "epsilon": epsilon,
        "excess": float(excess.mean()),
        "standard error": float(excess.std(ddof=1) / math.sqrt(trials)),
        "bound": found.bound if bounded else None,
        "rounds": found.rounds,
        "seconds": seconds,
        "task and trust": f"{variant.task.name}, {trust.value} trust",
    }


def _said(task: Task) -> str:
    """Say what a task is."""
    start, w = task.value(np.zeros(task.objective.size)), task.best
    return (
        f"{task.name}: {len(task.silos)} silos of {min(len(one) for one in task.silos)} records or more, "
        f"{task.objective.size} parameters, l1 = {task.l1:g}, l2 = {task.l2:g}; D = {task.diameter:g}, the "
        f"minimum is {float(np.linalg.norm(w)):.3g} away, and the start {start - task.value(w):.4g} above it."
    )


def tasks(*, every: int = 1) -> tuple[Task, Task, Task]:
    """Return the three tasks: digits, the same with a penalty, and records that are made up.

    Args:
        every: Which record of a silo is kept: each, or each second and so on.
    """
    digits = load("mnist-odd-even")
    assert digits.groups is not None  # noqa: S101 - narrows the type: digits have groups
    side, wide = 7, 4  # fixed blocks of pixels: a map that looks at no record
    X = digits.X.reshape(-1, side, wide, side, wide).mean(axis=(2, 4)).reshape(-1, side**2)
    features = FeatureMap(lower=np.zeros(side**2), upper=np.ones(side**2))
    rows, labels = features(X), np.asarray(digits.y, dtype=np.float64)
    parts = [part[::every] for part in split_by_pairs(digits.groups)]
    silos = tuple(Records.of(rows[index], labels[index]) for index in parts)
    convex = Task("convex", _logistic(features.size), silos, diameter=20.0)
    strong = replace(convex, name="strongly convex", l1=1e-4, l2=1e-2, diameter=5.0)
    return convex, strong, made_up(silos=25, records=400 // every)


def made_up(*, silos: int, records: int, features: int = 20, fresh: int = 100_000) -> Task:
    """Return a task whose records are independent draws of one logistic law, for silos and for measuring.

    Args:
        silos: How many.
        records: Of each.
        features: Of a record, uniform on the sphere.
        fresh: Records that the excess is measured on.
    """
    rng = simulated(0, "optimisers/records")
    truth = rng.standard_normal(features)
    truth *= 4 / np.linalg.norm(truth)

    def drawn(n: int) -> Records:
        X = rng.standard_normal((n, features))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        return Records.of(X, (rng.random(n) < special.expit(X @ truth)).astype(np.float64))

    parts = tuple(drawn(records) for _ in range(silos))
    return Task("population", _logistic(features), parts, fresh=drawn(fresh), diameter=5.0)


def _logistic(features: int) -> LinearObjective:
    """Return the logistic loss of rows in the unit ball."""
    return LinearObjective(loss=Logistic(), features=features, feature_norm=1.0)
