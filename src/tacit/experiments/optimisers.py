"""Every algorithm at equal privacy, local by shuffle by central trust, on three tasks.

Nothing is tuned: an algorithm takes its step sizes from public facts, and its rounds by its own bound on the
error. Which orderings of the papers hold is computed from the rows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tacit.errors import TacitError
from tacit.experiments.optimisers_conditioning import conditioning
from tacit.experiments.optimisers_statements import statements
from tacit.experiments.optimisers_tasks import Task, tasks
from tacit.experiments.report import Report
from tacit.learning import ALGORITHMS, Prediction, Settings, make_algorithm, predict, train
from tacit.learning.training import silos_for
from tacit.privacy import PrivacyBudget, TrustModel

__all__ = ["OPTIONS", "TRUSTS", "Variant", "compute", "run", "variants"]

DELTA, EPSILON, MOST = 1e-6, 3.0, 35
"""MOST rounds, as in Lowy (2023): more gain little, and every one of them is shuffled for real."""
TRUSTS = (TrustModel.LOCAL, TrustModel.SHUFFLE, TrustModel.CENTRAL)

OPTIONS: Final[Mapping[str, Mapping[str, object]]] = {"local": {"local_steps": 10}}
"""What is set of an algorithm, beside what all have in common; everything else is its own default."""


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
    """Compute the tables; `quick` takes 10 silos, every fourth record, 2 seeds, not 25, every second, 3."""
    found = compute(
        tasks(every=4, most=10) if quick else tasks(every=2),
        epsilons=(EPSILON,),
        trials=2 if quick else 3,
        progress=progress,
    )
    rates = conditioning((2, 8) if quick else (2, 4, 8, 16), trials=2 if quick else 6)
    return replace(found, notes=(*found.notes, *rates.notes), more={"conditioning": rates})


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
        x="method",
        y="excess",
        error="standard error",
        line="trust",
        panel="task",
        log_x=False,
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
    }


def _said(task: Task) -> str:
    """Say what a task is."""
    start, w = task.value(np.zeros(task.objective.size)), task.best
    return (
        f"{task.name}: {len(task.silos)} silos of {min(len(one) for one in task.silos)} records or more, "
        f"{task.objective.size} parameters, l1 = {task.l1:g}, l2 = {task.l2:g}; D = {task.diameter:g}, the "
        f"minimum is {float(np.linalg.norm(w)):.3g} away, and the start {start - task.value(w):.4g} above it."
    )
