"""Shuffled gradients with hidden iterates and public records (Jiang 2025, Figures 4.2 and C.1 to C.4).

Every method runs with the noise that the chapter's accountant asks for, and with that of tacit, which hides
steps across epochs, averages over orders and converts by the exact curve. Step sizes are the best of a grid
by the last loss, as in the chapter: that choice is not private.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.experiments.report import Report
from tacit.experiments.shuffled_statements import order_statements, statements
from tacit.experiments.shuffled_tasks import ShuffledTask, shuffled_tasks
from tacit.learning.shuffled import ShuffledGradient, ShuffledMethod, ShuffledRun
from tacit.learning.shuffled.compiled import can_compile
from tacit.literature import paper_noise
from tacit.numerics import Array, BoolArray
from tacit.privacy import Order, Placement, PrivacyBudget, calibrate
from tacit.randomness import simulated

__all__ = ["Level", "levels", "measured", "run"]

Row = dict[str, object]

_DELTA = 1e-6
_EPOCHS = 50
_GRID = tuple(x * 10.0**-b for b in range(1, 10) for x in (5, 1))
_QUICK_GRID = (0.1, 0.01, 1e-3, 1e-4, 1e-5)
_TRIED, _LARGE = 3, 100_000
"""Seeds by which step sizes are chosen where private records hold that many numbers; elsewhere all."""

_ORDERED = {"orders": 2, "orders-mean": 0}
"""Tasks with all orders and shares: Crime and MNIST, since on Credit no method gets away from the start."""

_NAMES = {
    ShuffledMethod.PRIVATE: "DP-ShuffleG",
    ShuffledMethod.PRIVATE_PUBLIC: "Priv-Pub",
    ShuffledMethod.PUBLIC_PRIVATE: "Pub-Priv",
    ShuffledMethod.INTERLEAVED: "Interleaved",
}


@dataclass(frozen=True, kw_only=True)
class Level:
    """An amount of noise, and who counted it.

    Attributes:
        epsilon: Of the budget.
        by: Whose accountant: "chapter", "tacit", or nobody's, "".
        multiplier: Standard deviation / clip.
        hidden: Whether the price needs steps that are contractions.
    """

    epsilon: float
    by: str
    multiplier: float
    hidden: bool


def levels(run: ShuffledRun, epsilon: float, order: Order) -> list[Level]:
    """Return the noise of a run at a budget, replace-one: of the chapter where it knows the run, and ours."""
    if run.method is ShuffledMethod.PUBLIC:
        return [Level(epsilon=epsilon, by="", multiplier=0.0, hidden=False)]
    found = []
    if run.placement is Placement.EVERY_STEP:
        once = paper_noise(epsilon, _DELTA, n=run.steps, epochs=run.private_epochs, private=run.private_steps)
        hidden = run.method is ShuffledMethod.INTERLEAVED
        found.append(Level(epsilon=epsilon, by="chapter", multiplier=2 * once, hidden=hidden))
    ours = calibrate(
        lambda z: run.event(z, order=order, step_times_smoothness=2.0), PrivacyBudget(epsilon, _DELTA)
    )
    return [*found, Level(epsilon=epsilon, by="tacit", multiplier=2 * ours, hidden=True)]


def measured(
    task: ShuffledTask,
    run: ShuffledRun,
    wanted: Sequence[Level],
    *,
    grid: Sequence[float],
    seeds: int,
    order: Order = Order.RR,
    follow: Callable[[Array], object] | None = None,
) -> list[Row]:
    """Run one method with every amount of noise, each at its best step size.

    Args:
        task: What is minimised.
        run: Which method.
        wanted: Amounts of noise.
        grid: Step sizes; where the price needs contractions only those up to 2 / smoothness.
        seeds: With the best step size.
        order: Of private records.
        follow: Gets the excess of all levels at the end of every epoch, shape (seeds, levels).
    """
    problem = ShuffledGradient(
        objective=task.objective,
        private=task.private,
        public=task.public,
        regularizer=task.regularizer,
        clip=task.clip,
        order=order,
        compiled=can_compile(),  # many runs, each of them short
    )
    sizes = np.array(grid)
    step = np.tile(sizes, (len(wanted), 1))
    std = np.array([[one.multiplier * task.clip] for one in wanted]) + np.zeros_like(step)
    allowed: BoolArray = np.array([not one.hidden for one in wanted])[:, None] | (step * task.smoothness <= 2)

    def excess(w: Array) -> Array:
        return task.value(w) - task.minimum

    def ended(steps: Array, stds: Array, count: int, **more: Any) -> Array:
        streams = [
            [simulated(seed, "shuffled-gradient", task.name, kind) for seed in range(count)]
            for kind in ("noise", "order")
        ]
        with np.errstate(all="ignore"):  # steps that are too long
            ends = problem.run(
                run.schedule, step_size=steps, noise_std=stds, rng=streams[0], order_rng=streams[1], **more
            )
        return excess(ends)

    tried = np.full(step.shape, np.inf)
    count = seeds if task.private.X.size < _LARGE else min(_TRIED, seeds)
    tried[allowed] = ended(step[allowed], std[allowed], count).mean(axis=0)
    best = np.argmin(tried, axis=1)
    chosen = sizes[best]
    more = {} if follow is None else {"follow": lambda w: follow(excess(w))}
    found = ended(chosen, std[:, 0], seeds, **more)
    return [
        {
            "task": task.name,
            "epsilon": level.epsilon,
            "method": _label(run, level),
            "noise / clip": level.multiplier,
            "step size": float(chosen[i]),
            "excess": float(found[:, i].mean()),
            "standard error": float(found[:, i].std(ddof=1) / np.sqrt(seeds)),
        }
        for i, level in enumerate(wanted)
    ]


def _label(run: ShuffledRun, level: Level) -> str:
    """Return what the table calls a run."""
    if not level.by:
        return "Public only" if run.method is ShuffledMethod.PUBLIC else "without noise"
    late = " at epoch ends" if run.placement is Placement.EPOCH_END else ""
    return f"{_NAMES[run.method]}{late}, {level.by}"


def _methods(steps: int, epochs: int, share: float = 0.5) -> list[ShuffledRun]:
    """Return the runs of the figure, and ours with noise at the ends of epochs."""
    found = [ShuffledRun(method=method, steps=steps, epochs=epochs, share=share) for method in ShuffledMethod]
    return [*found, replace(found[0], placement=Placement.EPOCH_END)]


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Run all tasks; `quick` takes 100 records, 10 epochs, 5 step sizes and 3 seeds of 10."""
    tasks = [task.part(100) if quick else task for task in shuffled_tasks()]
    epochs, grid, seeds = (10, _QUICK_GRID, 3) if quick else (_EPOCHS, _GRID, 10)
    rows: list[Row] = []
    curves: list[Row] = []
    for done, task in enumerate(tasks):
        progress(done, len(tasks) + len(_ORDERED))
        for method in _methods(len(task.private), epochs):
            wanted = [level for eps in task.epsilons for level in levels(method, eps, Order.RR)]
            seen: list[Array] = []
            follow = seen.append if done == 0 else None
            part = measured(task, method, wanted, grid=grid, seeds=seeds, follow=follow)
            rows += part
            curves += _curves(part, seen, task.epsilons[0])
        without = Level(epsilon=task.epsilons[0], by="", multiplier=0.0, hidden=False)
        plain = ShuffledRun(method=ShuffledMethod.PRIVATE, steps=len(task.private), epochs=epochs)
        rows += measured(task, plain, [without], grid=grid, seeds=seeds)
        rows += [_start(task, epsilon) for epsilon in task.epsilons]
    orders: dict[str, list[Row]] = {}
    for done, (name, at) in enumerate(_ORDERED.items(), start=len(tasks)):
        progress(done, len(tasks) + len(_ORDERED))
        orders[name] = _orders(tasks[at], epochs, grid, seeds)
    progress(len(tasks) + len(_ORDERED), len(tasks) + len(_ORDERED))
    return Report(
        rows=rows,
        x="epsilon",
        y="excess",
        error="standard error",
        line="method",
        panel="task",
        log_x=False,
        log_y=True,
        title="Excess of the last iterate, with the noise of the chapter and with that of tacit",
        labels={"excess": "objective above its minimum"},
        notes=(
            *(
                f"{task.name}: {task.note}; n = {len(task.private)}, d = {task.private.X.shape[1]}."
                for task in tasks
            ),
            f"{epochs} epochs, delta = {_DELTA:g}, half of all steps private, random reshuffling, {seeds} "
            "seeds, replace-one.",
            f"Step sizes are the best of a grid by the last loss of all seeds, of {_TRIED} where records "
            f"hold {_LARGE:,} numbers or more: that choice is not private.",
            *statements(rows),
            *(said for found in orders.values() for said in order_statements(found)),
        ),
        more={
            "epochs": Report(
                rows=curves,
                x="epoch",
                y="excess",
                error=None,
                line="method",
                log_x=False,
                log_y=True,
                title=f"Excess after every epoch: {tasks[0].name}, epsilon {tasks[0].epsilons[0]:g}",
                labels={"excess": "objective above its minimum"},
            ),
            **{name: _about_orders(tasks[at], orders[name]) for name, at in _ORDERED.items()},
        },
    )


def _about_orders(task: ShuffledTask, rows: list[Row]) -> Report:
    """Return the table of all orders and shares of a task."""
    return Report(
        rows=rows,
        x="share",
        y="excess",
        error="standard error",
        line="method",
        panel="order",
        log_x=False,
        log_y=True,
        title=f"Orders and shares: {task.name}, epsilon {task.epsilons[0]:g}",
        labels={"excess": "objective above its minimum", "share": "share of private steps"},
    )


def _start(task: ShuffledTask, epsilon: float) -> Row:
    """Return the row of a run that takes no step."""
    excess = float(task.value(np.zeros(task.private.X.shape[1]))) - task.minimum
    return {
        "task": task.name,
        "epsilon": epsilon,
        "method": "start",
        "noise / clip": 0.0,
        "step size": 0.0,
        "excess": excess,
        "standard error": 0.0,
    }


def _curves(part: Sequence[Row], seen: Sequence[Array], epsilon: float) -> list[Row]:
    """Return the mean excess after every epoch at one budget."""
    return [
        {"epoch": epoch, "method": row["method"], "excess": float(values[:, i].mean())}
        for i, row in enumerate(part)
        if row["epsilon"] == epsilon
        for epoch, values in enumerate(seen, start=1)
    ]


def _orders(task: ShuffledTask, epochs: int, grid: Sequence[float], seeds: int) -> list[Row]:
    """Return rows of all orders at half, and of reshuffling at other shares, at the small epsilon."""
    found: list[Row] = []
    kinds = [(Order.IG, 0.5), (Order.SO, 0.5), (Order.RR, 0.25), (Order.RR, 0.5), (Order.RR, 0.75)]
    for order, share in kinds:
        for method in _methods(len(task.private), epochs, share)[:4]:
            if not method.method.splits and share != 0.5:
                continue
            part = measured(
                task, method, levels(method, task.epsilons[0], order), grid=grid, seeds=seeds, order=order
            )
            found += [{"order": order.value, "share": share} | row for row in part]
    return found
