"""Methods across silos at equal privacy of every record, each with its best step size (Lowy 2023, B.1.10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from tacit.federation import Participation, RandomSubset
from tacit.learning import Algorithm, LinearObjective, Records, Settings, train
from tacit.learning.training import silos_for
from tacit.numerics import Array
from tacit.privacy import PrivacyBudget, Relation, TrustModel

__all__ = ["Case", "SiloSplit", "SiloTask", "TunedMethod", "compare", "tuned"]


@dataclass(frozen=True)
class TunedMethod:
    """A line of the figure: how its algorithm is built from a point of its grid, and the grids.

    Attributes:
        name: What the table calls it.
        build: The algorithm of a step size; of None, with its own step size, from public facts.
        grid: Step sizes that are tried, rising.
        clips: Clipping bounds that are tried; None is that of the task.
    """

    name: str
    build: Callable[[float | None], Algorithm]
    grid: tuple[float, ...]
    clips: tuple[float | None, ...] = (None,)


@dataclass(frozen=True)
class SiloSplit:
    """Silos with the records that they train on, and those that are held out."""

    silos: Sequence[Records]
    held: Records

    @property
    def pooled(self) -> Records:
        """The training records of all silos."""
        return Records.of(
            np.concatenate([one.X for one in self.silos]), np.concatenate([one.y for one in self.silos])
        )


@dataclass(frozen=True, kw_only=True)
class SiloTask:
    """What is learned across silos, and how it is measured.

    Attributes:
        objective: Loss of a record.
        split: Silos and held-out records of a trial; the same ones for all trials where there is one split.
        measure: The error of parameters on records, given the split that they are of.
        clip: Clipping bound where a method names none.
        diameter: Of the domain, for step sizes from public facts.
        tuned_on_training: Whether steps are chosen by the error on training records, not on held-out ones.
        own_step: Whether the error at the step size from public facts is measured too.
        relation: What neighbours differ in.
    """

    objective: LinearObjective
    split: Callable[[int], SiloSplit]
    measure: Callable[[Array, SiloSplit, Records], float]
    clip: float
    diameter: float = 10.0
    tuned_on_training: bool = False
    own_step: bool = False
    relation: Relation = Relation.REPLACE_ONE

    @property
    def size(self) -> int:
        """Records of the smallest silo."""
        return min(len(records) for records in self.split(0).silos)

    def error(
        self,
        algorithm: Algorithm,
        epsilon: float | None,
        trial: int,
        silos: int,
        *,
        clip: float | None = None,
        training: bool = False,
    ) -> float:
        """Train once, with delta = 1/n^2, and return the error on held-out records; infinite if it diverged.

        Args:
            algorithm: How.
            epsilon: Of every silo; None trains without privacy.
            trial: Number of the split, and seed of the noise.
            silos: How many of all silos take part in a round.
            clip: Clipping bound; None is that of the task.
            training: Whether the error is that on the training records.
        """
        split = self.split(trial)
        relation = Relation.REPLACE_ONE if epsilon is None else self.relation
        drawn: Participation | None = None if silos == len(split.silos) else RandomSubset(silos)
        settings = Settings(
            objective=self.objective,
            algorithm=algorithm,
            trust=None if epsilon is None else TrustModel.LOCAL,
            budget=None if epsilon is None else PrivacyBudget(epsilon, 1 / self.size**2),
            relation=relation,
            # Samples of a fixed size have a price under replace-one only.
            sampling="given" if relation is Relation.REPLACE_ONE else "poisson",
            clip=self.clip if clip is None else clip,
            diameter=self.diameter,
            weights="silos",
            participation=drawn,
        )
        names = [str(k) for k in range(len(split.silos))]
        # A step that is too long diverges, which is what the search for the best one is to find out.
        with np.errstate(over="ignore", invalid="ignore"):
            w = train(silos_for(settings, list(split.silos), names=names, seed=trial), settings).w
            found = self.measure(w, split, split.pooled if training else split.held)
        return found if math.isfinite(found) else math.inf


@dataclass(frozen=True, kw_only=True)
class Case:
    """A panel of the figure: a task, and how many silos take part in a round."""

    task: SiloTask
    silos: int
    panel: object


def compare(
    cases: Sequence[Case],
    *,
    methods: Callable[[SiloTask], Sequence[TunedMethod]],
    epsilons: Sequence[float],
    trials: int,
    further: int,
    metric: str,
    progress: Callable[[int, int], Any],
) -> list[dict[str, object]]:
    """Measure every method of every panel, at every budget and without privacy.

    Args:
        cases: The panels.
        methods: The lines of a panel.
        epsilons: Budgets.
        trials: Seeds per point, 2 or more; seed 0 chose the step.
        further: Points that a grid is continued by, at most, where its best one is at an end.
        metric: What the error is called.
        progress: Called with (done, total).
    """
    points = [(c, m, e) for c in cases for m in methods(c.task) for e in (None, *epsilons)]
    rows = []
    for done, (case, method, epsilon) in enumerate(points):
        progress(done, len(points))
        rows.append(_row(case, method, epsilon, trials=trials, further=further, metric=metric))
    progress(len(points), len(points))
    return rows


def _row(
    case: Case, method: TunedMethod, epsilon: float | None, *, trials: int, further: int, metric: str
) -> dict[str, object]:
    """Return one row: the best point of the grids, found on one trial and measured on others."""
    task, seeds = case.task, range(1, trials + 1)

    @cache
    def chosen_by(step: float, clip: float | None) -> float:
        return task.error(
            method.build(step), epsilon, 0, case.silos, clip=clip, training=task.tuned_on_training
        )

    found = {c: tuned(partial(chosen_by, clip=c), method.grid, further) for c in method.clips}
    clip = min(found, key=lambda c: chosen_by(found[c][0], clip=c))
    step, inside = found[clip]
    errors = np.array([task.error(method.build(step), epsilon, k, case.silos, clip=clip) for k in seeds])
    row: dict[str, object] = {
        "method": method.name,
        "silos per round": case.panel,
        "epsilon": epsilon,
        metric: float(errors.mean()),
        "standard error": float(errors.std(ddof=1) / math.sqrt(trials)),
        "step": step,
        "inside": inside,
    }
    if len(method.clips) > 1:
        row["clip"] = clip
    if task.own_step:
        own = [task.error(method.build(None), epsilon, seed, case.silos) for seed in seeds]
        row["own step"] = float(np.mean(own))
    return row


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
