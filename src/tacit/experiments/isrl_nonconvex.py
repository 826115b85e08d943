"""Networks with one hidden layer over silos without a trusted server (Lowy 2023, Figure 3.12).

Minibatch SGD, local SGD, SPIDER and Fed-SPIDER at equal record-level privacy of every silo. As in the paper,
every method has the best step size, clip and period of a grid, which is tuning without privacy; here it is
done on other splits of the records than those that are measured.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.data import load, split_by_label
from tacit.experiments.isrl_compare import tuned
from tacit.experiments.nonconvex_statements import gains, statements
from tacit.experiments.report import Report
from tacit.federation import Fixed, RandomSubset
from tacit.learning import (
    Algorithm,
    Logistic,
    NetworkObjective,
    NoisyFedSpider,
    NoisyLocalSGD,
    NoisySpider,
    Records,
    Settings,
    train,
)
from tacit.learning.training import silos_for
from tacit.numerics import Array, IntArray
from tacit.privacy import PrivacyBudget, TrustModel
from tacit.randomness import simulated

__all__ = ["Errors", "Grid", "NetworkTask", "Setup", "breast_cancer", "compute", "measured", "run"]

EPSILONS = (0.75, 1.0, 1.5, 3.0, 6.0, 12.0, 18.0)
_FURTHER = 4  # points that the steps are continued by where the best one is at an end

Errors = Mapping[tuple[str, float | None], Array]
"""Test errors by method and epsilon, one for each split."""

Setup = tuple["NetworkTask", "Grid", Sequence[float], int, int]
"""A task with its grid, its budgets, the splits that it is tuned on, and those that are measured."""


@dataclass(frozen=True, kw_only=True)
class NetworkTask:
    """Records of silos, and the network that is trained on four fifths of each.

    Attributes:
        name: What the table calls it.
        X: Shape (n, features), the constant feature included.
        y: Labels 0 and 1, shape (n,).
        silos: Records of each.
        strata: Records that are divided by themselves; None is the silos. A record that several silos hold
            is trained on by all of them, or held out of all.
        rounds: R.
        drawn: Silos that take part in a round, drawn anew for each; None is all.
        hidden: Units of the hidden layer.
        length: About the norm of a row of X.
        note: What the report says of it.
    """

    name: str
    X: Array
    y: Array
    silos: tuple[IntArray, ...]
    hidden: int
    length: float
    note: str
    strata: tuple[IntArray, ...] | None = None
    rounds: int = 25
    drawn: int | None = None

    @property
    def objective(self) -> NetworkObjective:
        """What is minimised."""
        return NetworkObjective(loss=Logistic(), features=self.X.shape[1], hidden=self.hidden)

    @property
    def size(self) -> int:
        """Records that the smallest silo trains on."""
        return min(_share(len(one)) for one in self.silos)

    def split(self, seed: int) -> tuple[list[IntArray], IntArray]:
        """Return four fifths of every silo, at random, and what is left of all."""
        rng = simulated(seed, "split", self.name)
        orders = [rng.permutation(one) for one in self.strata or self.silos]
        held = np.concatenate([one[_share(len(one)) :] for one in orders])
        return [one[~np.isin(one, held)] for one in self.silos], held

    def error(self, algorithm: Algorithm, *, clip: float, epsilon: float | None, seed: int) -> float:
        """Return the test error of one trained model; the seed is of the split, the start and the noise."""
        goal, (parts, held) = self.objective, self.split(seed)
        settings = Settings(
            objective=goal,
            algorithm=algorithm,
            trust=None if epsilon is None else TrustModel.LOCAL,
            budget=None if epsilon is None else PrivacyBudget(epsilon, 1 / self.size**2),
            clip=clip,
            weights="silos",
            start=goal.start(seed, length=self.length),
            participation=None if self.drawn is None else RandomSubset(self.drawn),
        )
        silos = [Records.of(self.X[index], self.y[index]) for index in parts]
        names = [str(k) for k in range(len(silos))]
        w = train(silos_for(settings, silos, names=names, seed=seed), settings).w
        return float(np.mean((goal.predictions(w, self.X[held]) > 0) != (self.y[held] > 0)))


@dataclass(frozen=True, kw_only=True)
class Grid:
    """What methods are tuned over.

    Attributes:
        steps: Step sizes times the clip, in rising order: how far a step of clipped gradients can go.
        local: The same, of a local step; none leaves local SGD out.
        clips: Norms that gradients are clipped to.
        local_clips: The same, in local steps, which take much longer.
        periods: q of SPIDER, 2 or more; a period of 1 is minibatch SGD.
        guesses: Smoothness that SPIDER counts on, over the clip; None is none.
        splits: Shares of the privacy that SPIDER spends on gradients.
        further: Points that steps are continued by, at most, where the best one is at an end.
    """

    steps: tuple[float, ...] = (0.0625, 0.25, 1.0, 4.0)
    local: tuple[float, ...] = (0.015625, 0.0625, 0.25)
    clips: tuple[float, ...] = (0.1, 1.0, 5.0)
    local_clips: tuple[float, ...] = (0.1, 1.0)
    periods: tuple[int, ...] = (2, 3, 5)
    guesses: tuple[float | None, ...] = (None, 0.1)
    splits: tuple[float, ...] = (0.5, 0.9)
    further: int = _FURTHER

    def families(self, local_steps: int) -> dict[str, list[_Family]]:
        """Return what every method is tuned over beside its step size."""
        local_clips = self.local_clips if self.local else ()
        spiders = itertools.product(self.clips, self.periods, self.guesses, self.splits)
        families = {
            "minibatch": [_Family(clip, self.steps) for clip in self.clips],
            "local": [_Family(clip, self.local, local_steps=local_steps) for clip in local_clips],
            "spider": [_Family(c, self.steps, period=q, guess=g, split=s) for c, q, g, s in spiders],
            "fed-spider": [_Family(clip, self.steps, fed=True) for clip in self.clips],
        }
        return {name: found for name, found in families.items() if found}


@dataclass(frozen=True)
class _Family:
    """An algorithm but for its step size."""

    clip: float
    steps: tuple[float, ...]
    period: int = 1
    guess: float | None = None
    split: float | None = None
    local_steps: int = 0
    fed: bool = False

    def build(self, step: float, rounds: int) -> Algorithm:
        """Return the algorithm; minibatch SGD is SPIDER of period 1, which returns the last point too."""
        eta = step / self.clip
        if self.local_steps:
            batch = Fixed(size=1)
            return NoisyLocalSGD(rounds=rounds, local_steps=self.local_steps, batch=batch, step_size=eta)
        if self.fed:
            return NoisyFedSpider(rounds=rounds, step_size=eta)
        guess = None if self.guess is None else self.guess * self.clip
        return NoisySpider(
            rounds=rounds, period=self.period, step_size=eta, smoothness=guess, split=self.split
        )


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the figure; `quick` takes 3 budgets, a coarse grid and 3 splits."""
    if quick:
        grid = Grid(
            steps=(0.25, 1.0), local=(0.0625,), clips=(0.1, 1.0), periods=(2, 5), guesses=(0.1,),
            splits=(0.9,), further=0,
        )  # fmt: skip
        return compute([(breast_cancer(), grid, (0.75, 3.0, 18.0), 1, 3)], progress=progress)
    return compute([(breast_cancer(), Grid(), EPSILONS, 2, 10)], progress=progress)


def compute(tasks: Sequence[Setup], *, progress: Callable[[int, int], Any]) -> Report:
    """Measure every method on every task at every budget.

    Args:
        tasks: What is measured.
        progress: Called with (done, total).
    """
    cases = [
        (at, name, epsilon)
        for at, (task, grid, epsilons, _, _) in enumerate(tasks)
        for name in grid.families(2)
        for epsilon in (None, *epsilons)
    ]
    found: list[dict[tuple[str, float | None], Array]] = [{} for _ in tasks]
    rows: list[dict[str, object]] = []
    best: dict[tuple[int, float | None], tuple[float, str]] = {}
    for done, (at, name, epsilon) in enumerate(cases):
        progress(done, len(cases))
        task, grid, epsilons, tuning, trials = tasks[at]
        local = local_steps(task, max(epsilons))
        tried, row, errors = measured(
            task, grid.families(local)[name], epsilon, tuning=tuning, trials=trials, further=grid.further
        )
        rows.append({"task": task.name, "method": name, **row})
        found[at][name, epsilon] = errors
        if name != "local":
            best[at, epsilon] = min(best.get((at, epsilon), (math.inf, "")), (tried, name))
    for (at, epsilon), (_, name) in best.items():
        found[at]["best spider", epsilon] = found[at][name, epsilon]
        rows.append(_best(rows, tasks[at][0].name, name, epsilon))
    progress(len(cases), len(cases))
    more = [line for at, one in enumerate(tasks) for line in gains(one[0].name, found[at])]
    return Report(
        rows=rows,
        x="epsilon",
        y="test error",
        error="standard error",
        line="method",
        panel="task",
        notes=(*_notes(tasks), *statements(rows, more)),
        more={"gains": _gains(more)},
    )


def measured(
    task: NetworkTask,
    families: Sequence[_Family],
    epsilon: float | None,
    *,
    tuning: int,
    trials: int,
    further: int,
) -> tuple[float, dict[str, object], Array]:
    """Return the error that the best of a grid has where it is tuned, its row, and its errors elsewhere."""

    def mean(family: _Family, step: float, seeds: Iterator[int] | range) -> Array:
        algorithm = family.build(step, task.rounds)
        return np.array(
            [task.error(algorithm, clip=family.clip, epsilon=epsilon, seed=seed) for seed in seeds]
        )

    least, chosen = math.inf, (families[0], 0.0, True)
    for family in families:
        tried: dict[float, float] = {}

        def error(step: float, family: _Family = family, tried: dict[float, float] = tried) -> float:
            tried[step] = float(mean(family, step, range(tuning)).mean())
            return tried[step]

        step, inside = tuned(error, family.steps, further)
        if tried[step] < least:
            least, chosen = tried[step], (family, step, inside)
    family, step, inside = chosen
    errors = mean(family, step, range(tuning, tuning + trials))
    row: dict[str, object] = {
        "epsilon": epsilon,
        "test error": float(errors.mean()),
        "standard error": float(errors.std(ddof=1) / math.sqrt(trials)),
        "step": step / family.clip,
        "inside": inside,
        "clip": family.clip,
        "period": None if family.local_steps else 2 if family.fed else family.period,
        "guess": None if family.guess is None else family.guess * family.clip,
        "share": family.split,
    }
    return least, row, errors


def local_steps(task: NetworkTask, epsilon: float) -> int:
    """Return K = n sqrt(epsilon) / (2 sqrt(R)) for the largest epsilon, as the paper has it."""
    return max(2, round(task.size * math.sqrt(epsilon) / (2 * math.sqrt(task.rounds))))


def breast_cancer() -> NetworkTask:
    """Return the breast cancers of Wisconsin, one silo per diagnosis, standardised by all of them."""
    cancers = load("breast-cancer")
    X = (cancers.X - cancers.X.mean(axis=0)) / cancers.X.std(axis=0)
    rows = np.column_stack([X, np.ones(len(X))])
    labels = np.asarray(cancers.y, dtype=np.float64)
    return NetworkTask(
        name="breast cancer",
        X=rows,
        y=labels,
        silos=tuple(split_by_label(labels)),
        hidden=5,
        length=math.sqrt(rows.shape[1]),
        note="features are standardised by the means and spreads of all records, as in the paper, which no "
        "guarantee covers",
    )


def _share(n: int) -> int:
    """Return how many of n records are trained on."""
    return round(0.8 * n)


def _best(
    rows: Sequence[Mapping[str, object]], task: str, method: str, epsilon: float | None
) -> dict[str, object]:
    """Return the row of the method that is best where it is tuned, as a line of its own."""
    found = next(
        row for row in rows if (row["task"], row["method"], row["epsilon"]) == (task, method, epsilon)
    )
    return {**found, "method": "best spider"}


def _gains(rows: list[dict[str, object]]) -> Report:
    """Return the table of improvements."""
    return Report(
        rows=rows,
        x="epsilon",
        y="gain in %",
        error="standard error",
        line="method",
        panel="task",
        title="By how much of its test error a method is improved on",
    )


def _notes(tasks: Sequence[Setup]) -> Iterator[str]:
    """Yield how it was run."""
    for task, grid, epsilons, tuning, trials in tasks:
        local = f"local steps {local_steps(task, max(epsilons))}" if grid.local else "no local SGD"
        drawn = f", {task.drawn} of them in a round" if task.drawn else ""
        yield (
            f"{task.name}: {len(task.silos)} silos of {task.size} records or more{drawn}, "
            f"{task.objective.size} parameters, {task.hidden} hidden units; {task.note}; {task.rounds} "
            f"rounds, delta = 1/n^2 for n = {task.size}, {local}; tuned on {tuning} splits, measured on "
            f"{trials} others."
        )
    yield "Noise is calibrated by numerical accounting under replace-one; that of the paper is too small."
    yield "Full batches for all but local SGD: for a fixed number of rounds they need the least noise."
    yield (
        "Step sizes, clips, periods and guesses of the smoothness are the best of a grid by test error, as "
        "in the paper: that tuning is not private."
    )
    yield (
        "best spider: minibatch, SPIDER or Fed-SPIDER, whichever errs least where they are tuned, at each "
        "epsilon: the line SPIDER of the paper, whose periods include 1."
    )
