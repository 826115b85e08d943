"""Gradients of heavy tails: clips made from a stated moment, against clips that only hindsight finds.

Every method spends the same budget under central trust. What is stated of a law - a moment, a smoothness, a
ball - is known to all methods alike; the clip of DP-SGD alone is the best of a grid by the risk itself, which
nobody could look at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from tacit.experiments.heavy_tails_means import clip_sweep, power_table, trust_table
from tacit.experiments.heavy_tails_statements import statements
from tacit.experiments.heavy_tails_tasks import (
    Absolutes,
    Lasso,
    LeastSquares,
    ParetoLogistic,
    ParetoMean,
    Task,
)
from tacit.experiments.report import Report, number
from tacit.learning import ALGORITHMS, AutoClip, Records, Settings, make_algorithm, train
from tacit.learning.preparation import Prepared, prepare
from tacit.learning.training import silos_for
from tacit.numerics import Array, row_norms
from tacit.privacy import TrustModel
from tacit.randomness import simulated

__all__ = ["GRID", "METHODS", "compute", "run"]

GRID: Final = tuple(2.0**k for k in range(-1, 6))
"""Clips of DP-SGD, over the stated moment's scale: 1 is the length of a solution in all tasks."""

METHODS: Final = (
    ("clipped-ac-sa", False),
    ("clipped-sgd", False),
    ("clipped-sgd", True),
    ("clipped-prox-sgd", False),
    ("clipped-ac-sa", True),
    ("clipped-prox-sgd", True),
)
"""What clips by a stated moment: in one pass, or with all records in every round."""

LONG: Final = AutoClip(quantile=0.999, scale=1.0)
"""An automatic clip about where the last bin shows above its noise: with more records, further out. Its bins
lie around the stated moment."""


@dataclass(frozen=True)
class Case:
    """A way to train on a task, with everything that it needs to know but the records.

    Attributes:
        task: The problem.
        n: Records.
        method: Name of the algorithm.
        full: Whether all records are in every round.
        clip: Where gradients are clipped; None is by the moment, infinity at the longest gradient there is.
        auto: How a priced round chooses the clip; None for no such round.
    """

    task: Task
    n: int
    method: str
    full: bool = True
    clip: float | None = None
    auto: AutoClip | None = None

    @property
    def said(self) -> str:
        """What the table calls it."""
        if self.auto is not None and self.method == self.task.plain:
            return "automatic clip"
        if self.clip is None:
            return f"{self.method}{', full' if self.full else ''}{', automatic clip' if self.auto else ''}"
        return "DP-SGD, longest" if math.isinf(self.clip) else f"DP-SGD, clip {self.clip:g}"

    def settings(self, longest: float) -> Settings:
        """Return what is trained with.

        Args:
            longest: The longest gradient at the start, for a clip at the sample's maximum.
        """
        task, options = self.task, {}
        if self.clip is None and self.method != task.plain:
            told = {"smoothness": task.smoothness, "mu": task.mu, **({"batch": "full"} if self.full else {})}
            options = {name: told[name] for name in told if name in _options(self.method)}
        bare = Settings(
            objective=task.objective,
            algorithm=make_algorithm(self.method, **options),
            trust=TrustModel.CENTRAL,
            budget=task.budget,
            clip=1.0,
            diameter=2 * task.radius,
            regularizer=task.ball,
        )
        if self.auto is not None:
            return replace(bare, auto_clip=self.auto)
        if self.clip is None:
            return replace(bare, clip=None, moment=task.moment)
        return replace(bare, clip=longest if math.isinf(self.clip) else self.clip)

    def outcomes(self, seeds: Sequence[int]) -> tuple[Array, Prepared]:
        """Return the excess risk of every seed, and what was planned for the last."""
        found = []
        prepared = prepare(self.settings(1.0), [self.n])
        for seed in seeds:
            records = self.task.draw(self.n, simulated(seed, "heavy-tails", self.task.name, self.n))
            settings = self.settings(_longest(self.task, records))
            # What is planned depends on no record, but where the clip does.
            if self.clip is not None and math.isinf(self.clip):
                prepared = prepare(settings, [self.n])
            federation = silos_for(settings, [records], names=["all"], seed=seed)
            found.append(self.task.excess(train(federation, settings, prepared=prepared).w))
        return np.array(found), prepared


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes one Pareto task, up to 2,000 records, 2 seeds, few methods."""
    found = compute(
        [ParetoMean()] if quick else [LeastSquares(), ParetoMean(), ParetoLogistic(), Lasso(), Absolutes()],
        sizes=(500, 2000) if quick else (1000, 10_000, 50_000),
        seeds=range(2 if quick else 3),
        methods=METHODS[2:4] if quick else METHODS,
        grid=GRID[1:7:5] if quick else GRID,
        progress=progress,
    )
    more = {"clip-sweep": clip_sweep(), "powers": power_table(), "trust": trust_table(quick=quick)}
    notes = [note for part in more.values() for note in part.notes]
    return replace(found, notes=(*found.notes, *notes), more={**found.more, **more})


def compute(
    tasks: Sequence[Task],
    *,
    sizes: Sequence[int],
    seeds: Sequence[int],
    methods: Sequence[tuple[str, bool]] = METHODS,
    grid: Sequence[float] = GRID,
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure every method at every size.

    Args:
        tasks: The problems.
        sizes: Numbers of records.
        seeds: Two or more.
        methods: What clips by a stated moment, and whether all records are in every round.
        grid: Clips of DP-SGD.
        progress: Called with (done, total).
    """
    cases = [
        case
        for task in tasks
        for n in task.sizes or sizes
        for case in _cases(task, n, task.methods or methods, grid)
    ]
    rows: list[dict[str, object]] = []
    for done, case in enumerate(cases):
        progress(done, len(cases))
        rows.append(_row(case, seeds))
    progress(len(cases), len(cases))
    shown = [
        {**row, "method": "DP-SGD, best clip"} if _is_best(row, rows) else row
        for row in rows
        if not _of_grid(row) or _is_best(row, rows)
    ]
    return Report(
        rows=shown,
        x="records",
        y="excess",
        error="standard error",
        line="method",
        panel="task",
        log_y=True,
        title="Excess risk on heavy-tailed records, at equal central privacy",
        labels={"excess": "risk above its minimum"},
        notes=tuple(statements(rows)),
        more={
            "all-clips": Report(
                rows=rows,
                x="clip",
                y="excess",
                error="standard error",
                line="method",
                panel="task",
                log_y=True,
                title="The same with every clip of DP-SGD",
            )
        },
    )


def _cases(task: Task, n: int, methods: Sequence[tuple[str, bool]], grid: Sequence[float]) -> list[Case]:
    """Return everything that is trained on a task of that size."""
    stated = [Case(task, n, method, full) for method, full in methods]
    asking = [] if task.methods else [Case(task, n, "clipped-sgd", auto=LONG.around(task.moment.value))]
    plain = [Case(task, n, task.plain, clip=clip) for clip in (*grid, math.inf)]
    return [*stated, *asking, Case(task, n, task.plain, auto=AutoClip()), *plain]


def _row(case: Case, seeds: Sequence[int]) -> dict[str, object]:
    """Return one row: the mean over seeds."""
    found, prepared = case.outcomes(seeds)
    bound = case.settings(1.0).algorithm.error_bound(prepared.problem, prepared.rounds)
    stated = case.clip is None and case.auto is None
    return {
        "task": case.task.name,
        "records": case.n,
        "method": case.said,
        "clip": None if case.auto else prepared.means[0].clip,
        "rounds": prepared.rounds,
        "excess": float(found.mean()),
        "standard error": float(found.std(ddof=1) / math.sqrt(len(found))),
        "bound": bound if stated else None,
    }


def _options(method: str) -> tuple[str, ...]:
    """Return the names of a method's options."""
    return ALGORITHMS[method].__struct_fields__


def _of_grid(row: dict[str, object]) -> bool:
    """Return whether a row is that of a clip of the grid."""
    return str(row["method"]).startswith("DP-SGD, clip")


def _is_best(row: dict[str, object], rows: Sequence[dict[str, object]]) -> bool:
    """Return whether a row is that of the best clip of the grid, of its task and size."""
    place = (row["task"], row["records"])
    grid = [one for one in rows if (one["task"], one["records"]) == place and _of_grid(one)]
    return row is min(grid, key=lambda one: number(one["excess"]))


def _longest(task: Task, records: Records) -> float:
    """Return the norm of the longest gradient at the start."""
    goal = task.objective
    return float(row_norms(goal.gradients(np.zeros(goal.size), records)).max())
