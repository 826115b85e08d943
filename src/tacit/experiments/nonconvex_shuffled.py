"""Networks by gradients that differences carry on, behind a shuffler and with a trusted server.

The shape of California housing: 10 silos, 16,510 records of 8 features, 10 softplus units, squared loss. Its
data are not at hand, so the records are made up; the figure of the paper has no numbers to stand beside. What
does stand there are errors that were computed once for records of this shape, which are not known any more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import msgspec
import numpy as np

from tacit.experiments.nonconvex_shuffled_statements import level_statements, statements
from tacit.experiments.report import Report
from tacit.federation import Fixed
from tacit.learning import (
    Algorithm,
    HalvedStep,
    HalvingTuner,
    NetworkObjective,
    NoisyDiff2,
    NoisyLocalStorm,
    NoisySpider,
    NoisyStorm,
    Records,
    Settings,
    Squared,
    train,
)
from tacit.learning.algorithms.base import Follow
from tacit.learning.algorithms.storm import hemisphere_level, storm
from tacit.learning.training import silos_for
from tacit.mechanisms import hemisphere_scale
from tacit.numerics import Array, Zero
from tacit.privacy import PrivacyBudget, Repeat, Shuffled, TrustModel, calibrate
from tacit.randomness import simulated

__all__ = ["HousingTask", "compute", "run"]

SILOS, EACH, DELTA = 10, 1651, 1e-5
EPSILONS = (0.4, 0.8, 1.6)
CLIP, STEP = 1.5, 0.1
"""Of (p - y)^2 / 2: half and twice of what they are for (p - y)^2."""

_ALL = 1e100
"""A radius that clips no gradient of a record."""

LEVELS = (0.4252, 0.7459, 1.2539)
"""Of a report: what 500 rounds with two reports each may have at epsilon 0.4, 0.8 and 1.6."""

_KNOWN: Mapping[str, tuple[float, ...]] = {
    "beta 0.05, C1 10": (0.397, 0.685, 0.591, 0.501),
    "beta 0.1, C1 3": (0.448, 0.613, 0.537, 0.501),
    "plain": (0.457, 0.542, 0.499, 0.481),
}
"""Errors after 300 rounds without noise and at each level, of records that are not known."""


Law = Literal["bent", "linear"]
"""How the target depends on the features, beside noise."""


@dataclass(frozen=True, kw_only=True)
class HousingTask:
    """Made-up records, and the network that is trained on them.

    Attributes:
        rows: Records of all silos, silo by silo.
        held: A fourth as many others, by the same law.
        each: Records of a silo.
    """

    rows: Records
    held: Records
    each: int

    @classmethod
    def made(cls, each: int, *, law: Law = "bent", skewed: bool = False) -> HousingTask:
        """Return the task with that many records a silo, mixed or sorted by the target."""
        n = each * SILOS
        X, y = _made(simulated(0, "housing"), n, law)
        others = _made(simulated(0, "housing", "held"), n // 4, law)
        middle, width, level, spread = X.mean(axis=0), X.std(axis=0), y.mean(), y.std()

        def records(X: Array, y: Array) -> Records:
            return Records.of(np.column_stack([(X - middle) / width, np.ones(len(X))]), (y - level) / spread)

        rows = records(X, y)
        order = np.argsort(rows.y) if skewed else np.arange(n)
        return cls(rows=rows.take(order), held=records(*others), each=each)

    @property
    def goal(self) -> NetworkObjective:
        """What is minimised."""
        return NetworkObjective(loss=Squared(), features=9, hidden=10, activation="softplus")

    @property
    def start(self) -> Array:
        """Public weights, of variance about 1/4: the error starts at several times that of the mean."""
        return self.goal.start(0, length=2.0)

    def error(self, w: Array) -> float:
        """Return the mean squared error on all records; 1 for the mean of the target."""
        return 2 * float(self.goal.value(w, self.rows).mean())

    def scores(self, w: Array) -> list[float]:
        """Return that error, the squared length of its gradient, and the error on records held out."""
        slope = 2 * self.goal.clipped_sum(w, self.rows, _ALL) / len(self.rows)
        return [self.error(w), float(slope @ slope), 2 * float(self.goal.value(w, self.held).mean())]

    def trained(
        self,
        algorithm: Algorithm,
        epsilon: float | None,
        seed: int,
        *,
        trust: TrustModel = TrustModel.CENTRAL,
    ) -> Array:
        """Return where one run of the library ends, with exact sums where the server is trusted."""
        settings = Settings(
            objective=self.goal,
            algorithm=algorithm,
            trust=None if epsilon is None else trust,
            budget=None if epsilon is None else PrivacyBudget(epsilon, DELTA),
            clip=CLIP,
            start=self.start,
        )
        parts = [self.rows.take(np.arange(k * self.each, (k + 1) * self.each)) for k in range(SILOS)]
        names = [str(k) for k in range(SILOS)]
        return train(silos_for(settings, parts, names=names, seed=seed), settings).w

    def tuned(
        self, algorithm: NoisyStorm, epsilon: float | None, seed: int, *, tuner: HalvingTuner
    ) -> HalvedStep:
        """Return the run on shuffled reports that halving finds, as the paper does: tuned non-privately."""

        def run(step_size: float, follow: Follow) -> Array:
            stepped = msgspec.structs.replace(algorithm, step_size=step_size)
            return self.walked(stepped, level_of(stepped, epsilon, len(self.rows)), seed, follow=follow)

        return tuner.tune(run, self.error)

    def shuffled(self, algorithm: NoisyStorm, epsilon: float | None, seed: int) -> Array:
        """Return where one run on shuffled hemisphere reports ends."""
        return self.walked(algorithm, level_of(algorithm, epsilon, len(self.rows)), seed)

    def walked(
        self,
        algorithm: NoisyStorm,
        level: float | None,
        seed: int,
        *,
        printed: bool = False,
        follow: Follow = lambda _r, _w: None,
    ) -> Array:
        """Return where a run on shuffled hemisphere reports ends, by the normal limit of their mean.

        Each report has the same length B and covariance (B^2 / d) I - x x^T; of 16,510 of them, the mean is
        normal for all that a step can tell.

        Args:
            algorithm: With its rounds and weights.
            level: Epsilon of a report by itself; None is without noise.
            seed: Of the noise.
            printed: Whether gradients are subtracted before they are clipped, as the paper has it, and not
                after.
            follow: Called after each round.
        """
        goal, n, rng = self.goal, len(self.rows), simulated(seed, "limit")
        spread = 0.0 if level is None else hemisphere_scale(goal.size, level) / math.sqrt(goal.size * n)
        before = None if printed else CLIP

        def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:  # noqa: ARG001
            w, sums = at["w"], []
            if "previous" in at:
                sums.append(goal.clipped_difference(w, at["previous"], self.rows, radius[0], clip=before))
            sums.append(goal.clipped_sum(w, self.rows, radius[-1]))
            return tuple(
                one / n + spread * r * rng.standard_normal(goal.size)
                for one, r in zip(sums, radius, strict=True)
            )

        return storm(
            ask,
            self.start,
            rounds=algorithm.rounds or 1,
            beta=algorithm.beta or 0.0,
            step_size=algorithm.step_size or STEP,
            lipschitz=CLIP,
            smoothness=algorithm.smoothness or 0.0,
            prox=Zero(),
            follow=follow,
        )


def _made(rng: np.random.Generator, n: int, law: Law) -> tuple[Array, Array]:
    """Return features and targets of n records."""
    X = rng.standard_normal((n, 8))
    if law == "linear":
        return X, X.sum(axis=1) / math.sqrt(8) + rng.standard_normal(n) / 2
    bent = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.3 * X[:, 3] ** 2
    return X, bent + 0.3 * rng.standard_normal(n)


def level_of(algorithm: NoisyStorm, epsilon: float | None, messages: int) -> float | None:
    """Return the level of reports whose whole run costs epsilon, priced exactly; None without one."""
    if epsilon is None:
        return None
    rounds = algorithm.rounds or 1
    shuffles = rounds if algorithm.beta == 1 else 2 * rounds - 1
    multiplier = calibrate(
        lambda z: Repeat(Shuffled(hemisphere_level(z, messages), messages, "2rr"), shuffles),
        PrivacyBudget(epsilon, DELTA),
    )
    return hemisphere_level(multiplier, messages)


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes a fifth of the records, 40 rounds, two budgets and one seed."""
    if quick:
        return compute(330, 40, EPSILONS[::2], seeds=1, progress=progress)
    return compute(EACH, 150, EPSILONS, seeds=2, progress=progress)


def compute(
    each: int,
    rounds: int,
    epsilons: tuple[float, ...],
    *,
    seeds: int,
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure every method at every budget, and reports at every level.

    Args:
        each: Records of a silo.
        rounds: Rounds of a run; of walks a fifth as many estimates, and twice as many at fixed levels.
        epsilons: Budgets beside none, in rising order.
        seeds: Runs of each.
        progress: Called with (done, total).
    """
    cases, plain = list(_cases(each, rounds)), list(_levels(each, 2 * rounds))
    rows: list[dict[str, object]] = []
    total = len(cases) * (1 + len(epsilons)) + len(plain)
    for panel, method, task, measure in cases:
        for epsilon in (None, *epsilons):
            progress(len(rows), total)
            many = seeds if epsilon is not None else 1
            found = np.array([task.scores(measure(epsilon, seed)) for seed in range(many)])
            spread = found.std(axis=0, ddof=1) / math.sqrt(many) if many > 1 else np.zeros(3)
            rows.append(
                {
                    "panel": panel,
                    "method": method,
                    "epsilon": epsilon,
                    "squared error": float(found[:, 0].mean()),
                    "standard error": float(spread[0]),
                    "squared gradient": float(found[:, 1].mean()),
                    "its error": float(spread[1]),
                    "held-out error": float(found[:, 2].mean()),
                }
            )
    levels: list[dict[str, object]] = []
    for done, (kind, at) in enumerate(plain, start=len(rows)):
        progress(done, total)
        levels.append({**kind, "squared error": at()})
    progress(total, total)
    walks = [row for row in rows if str(row["panel"]).startswith("walks")]
    facts: Any = {"x": "epsilon", "y": "squared error", "error": "standard error", "line": "method"}
    return Report(
        rows=[row for row in rows if row not in walks],
        **facts,
        panel="panel",
        title="Error behind a shuffler and with a trusted server",
        notes=(*_notes(each, rounds, seeds), *statements(rows), *level_statements(levels)),
        more={
            "walks": Report(
                rows=walks, **facts, panel="panel", log_y=True, title="Error where single silos walk"
            ),
            "levels": Report(
                rows=levels,
                x="level",
                y="squared error",
                error=None,
                line="method",
                panel="records",
                title=f"Error after {2 * rounds} rounds of the printed rule, by the level of a report",
            ),
        },
    )


Case = tuple[str, str, HousingTask, Callable[[float | None, int], Array]]


def _levels(each: int, rounds: int) -> Iterator[tuple[dict[str, object], Callable[[], float]]]:
    """Yield what is measured at the levels of `LEVELS`, and how."""
    kinds = {"beta 0.05, C1 10": (5.0, 0.05), "beta 0.1, C1 3": (1.5, 0.1), "plain": (1.5, 1.0)}
    laws: tuple[Law, ...] = ("bent", "linear")
    for law in laws:
        task = HousingTask.made(each, law=law)
        for name, (smoothness, beta) in kinds.items():
            kind = NoisyStorm(rounds=rounds, beta=beta, step_size=STEP, smoothness=smoothness)
            for known, level in zip(_KNOWN[name], (None, *LEVELS), strict=True):

                def at(task: HousingTask = task, kind: Any = kind, level: float | None = level) -> float:
                    return task.error(task.walked(kind, level, 0, printed=True))

                yield {"records": law, "method": name, "level": level, "known": known}, at


def _cases(each: int, rounds: int) -> Iterator[Case]:
    """Yield what is measured: the panel, the method, the task, and where it ends by epsilon and seed."""
    mixed, skewed = HousingTask.made(each), HousingTask.made(each, skewed=True)
    for smoothness, beta in ((5.0, 0.05), (1.5, 0.1), (1.5, 1.0)):
        kind = NoisyStorm(rounds=rounds, beta=beta, step_size=STEP, smoothness=smoothness)
        name = "plain" if beta == 1 else f"mb-psgm-fg, beta {beta:g}"
        yield "behind a shuffler", f"{name}, reports", mixed, partial(mixed.shuffled, kind)
    facts: Any = {"rounds": rounds, "step_size": STEP, "smoothness": 1.5}
    # Nothing forgets what a guess of the smoothness that is too small clips away.
    far = facts | {"smoothness": 5.0}
    central: dict[str, Algorithm] = {
        "mb-psgm-fg": NoisyStorm(beta=0.1, **facts),
        "mb-psgm": NoisyStorm(beta=0.1, batch=Fixed(rate=0.1), **facts),
        "diff2-gd": NoisyDiff2(period=10, **far),
        "spider": NoisySpider(period=10, **far),
        "dp-gd": NoisyDiff2(period=1, **facts),
    }
    for name in ("mb-psgm-fg", "spider"):
        shuffled = partial(mixed.trained, central[name], trust=TrustModel.SHUFFLE)
        yield "behind a shuffler", f"{name}, sums", mixed, shuffled
    for name, method in central.items():
        yield "trusted server", name, mixed, partial(mixed.trained, method)
    few = max(2, rounds // 5)
    for task, where in ((mixed, "walks, equal silos"), (skewed, "walks, sorted silos")):
        base: Any = {"step_size": STEP, "smoothness": 1.5, "beta": 0.3}
        local: Any = {"rounds": 2 * few, "local_batch": Fixed(rate=0.1)}
        walks: dict[str, Algorithm] = {"mb-psgm-fg, 1 step": NoisyStorm(rounds=few, **base)}
        for steps in (5, 10):
            walks[f"ce-psgm-fg, {steps} steps"] = NoisyLocalStorm(local_steps=steps, **base, **local)
            walks[f"diff2-bvr-lsgd, {steps} steps"] = NoisyDiff2(
                routine="bvr-lsgd",
                local_steps=steps,
                period=10,
                step_size=STEP,
                smoothness=5.0,
                local_smoothness=1.5,
                **local,
            )
        walks["ce-psgm, 5 steps"] = NoisyLocalStorm(batch=Fixed(rate=0.1), local_steps=5, **base, **local)
        for name, method in walks.items():
            yield where, name, task, partial(task.trained, method)


def _notes(each: int, rounds: int, seeds: int) -> Iterator[str]:
    """Yield how it was run."""
    yield (
        f"{SILOS} silos of {each} made-up records, 101 parameters, {rounds} rounds (walks: "
        f"{max(2, rounds // 5)} estimates), steps {STEP}, gradients clipped to {CLIP}, {seeds} "
        "seeds; features and target are standardised by all records, which no guarantee covers."
    )
    yield (
        "Reports are drawn by the normal limit of their mean; their level is priced exactly. Everything else "
        "is a run of the library; behind a shuffler, `sums` are binomial."
    )
    yield "Steps, clips and beta were chosen beforehand; tuning on these records would not be private."
