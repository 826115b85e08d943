"""Networks by gradients that differences carry on, behind a shuffler and with a trusted server.

The shape of California housing: 10 silos, 16,510 records of 8 features, 10 softplus units, squared loss. Its
data are not at hand, so the records are made up; the figure of the paper has no numbers to stand beside.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec
import numpy as np

from tacit.experiments.nonconvex_shuffled_statements import statements
from tacit.experiments.report import Report
from tacit.federation import Crowd, Fixed
from tacit.learning import (
    Algorithm,
    HalvedStep,
    HalvingTuner,
    NetworkObjective,
    NoisyDiff2,
    NoisyLocalStorm,
    NoisyStorm,
    Records,
    Settings,
    Squared,
    train,
)
from tacit.learning.algorithms import statistics_of
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
"""Of (p - y)^2 / 2; twice and half of what they are for (p - y)^2."""


@dataclass(frozen=True, kw_only=True)
class HousingTask:
    """Made-up records, and the network that is trained on them.

    Attributes:
        rows: Records of all silos, silo by silo.
        each: Records of a silo.
    """

    rows: Records
    each: int

    @classmethod
    def made(cls, each: int, *, skewed: bool = False) -> HousingTask:
        """Return the task with that many records a silo, mixed or sorted by the target."""
        rng, n = simulated(0, "housing"), each * SILOS
        X = rng.standard_normal((n, 8))
        bent = 3 * np.sin(1.5 * X[:, 0]) + X[:, 1] * X[:, 2] + X[:, 3] ** 2 + X[:, 4] / 2
        y = bent + rng.standard_normal(n)
        X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
        order = np.argsort(y) if skewed else np.arange(n)
        return cls(rows=Records.of(np.column_stack([X, np.ones(n)])[order], y[order]), each=each)

    @property
    def goal(self) -> NetworkObjective:
        """What is minimised."""
        return NetworkObjective(loss=Squared(), features=9, hidden=10, activation="softplus")

    @property
    def start(self) -> Array:
        """Public weights."""
        return self.goal.start(0, length=3.0)

    def error(self, w: Array) -> float:
        """Return the mean squared error on all records; 1 for the mean of the target."""
        return 2 * float(self.goal.value(w, self.rows).mean())

    def trained(
        self, algorithm: Algorithm, epsilon: float | None, seed: int, *, silos: bool = False
    ) -> float:
        """Return the error of one run of the library, with a trusted server and exact sums."""
        goal = self.goal
        settings = Settings(
            objective=goal,
            algorithm=algorithm,
            trust=None if epsilon is None else TrustModel.CENTRAL,
            budget=None if epsilon is None else PrivacyBudget(epsilon, DELTA),
            clip=CLIP,
            start=self.start,
        )
        if not silos:
            crowd = Crowd(
                self.rows,
                statistics_of(goal),
                clients=SILOS,
                trusts_server=settings.trusts_server,
                rng=simulated(seed, "crowd"),
            )
            return self.error(train(crowd, settings).w)
        parts = [self.rows.take(np.arange(k * self.each, (k + 1) * self.each)) for k in range(SILOS)]
        names = [str(k) for k in range(SILOS)]
        return self.error(train(silos_for(settings, parts, names=names, seed=seed), settings).w)

    def tuned(
        self, algorithm: NoisyStorm, epsilon: float | None, seed: int, *, tuner: HalvingTuner
    ) -> HalvedStep:
        """Return the run on shuffled reports that halving finds, as the paper does: tuned non-privately."""

        def run(step_size: float, follow: Follow) -> Array:
            stepped = msgspec.structs.replace(algorithm, step_size=step_size)
            return self.walked(stepped, epsilon, seed, follow=follow)

        return tuner.tune(run, self.error)

    def shuffled(self, algorithm: NoisyStorm, epsilon: float | None, seed: int) -> float:
        """Return the error of one run on shuffled hemisphere reports."""
        return self.error(self.walked(algorithm, epsilon, seed, follow=lambda _r, _w: None))

    def walked(self, algorithm: NoisyStorm, epsilon: float | None, seed: int, *, follow: Follow) -> Array:
        """Return where a run on shuffled hemisphere reports ends, by the normal limit of their mean.

        Each report has the same length B and covariance (B^2 / d) I - x x^T; of 16,510 of them, the mean is
        normal for all that a step can tell. The level of reports is priced exactly.
        """
        goal, n, rng = self.goal, len(self.rows), simulated(seed, "limit")
        rounds, beta = algorithm.rounds or 1, algorithm.beta or 0.0
        spread = 0.0
        if epsilon is not None:
            shuffles = rounds if beta == 1 else 2 * rounds - 1
            multiplier = calibrate(
                lambda z: Repeat(Shuffled(hemisphere_level(z, n), n, "2rr"), shuffles),
                PrivacyBudget(epsilon, DELTA),
            )
            level = hemisphere_level(multiplier, n)
            spread = hemisphere_scale(goal.size, level) / math.sqrt(goal.size * n)

        def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:  # noqa: ARG001
            w, sums = at["w"], []
            if "previous" in at:
                sums.append(goal.clipped_difference(w, at["previous"], self.rows, radius[0], clip=CLIP))
            sums.append(goal.clipped_sum(w, self.rows, radius[-1]))
            return tuple(
                one / n + spread * r * rng.standard_normal(goal.size)
                for one, r in zip(sums, radius, strict=True)
            )

        return storm(
            ask,
            self.start,
            rounds=rounds,
            beta=beta,
            step_size=algorithm.step_size or STEP,
            lipschitz=CLIP,
            smoothness=algorithm.smoothness or 0.0,
            prox=Zero(),
            follow=follow,
        )


def run(quick: bool, progress: Callable[[int, int], Any]) -> Report:
    """Compute the tables; `quick` takes 60 rounds, two budgets and one seed."""
    if quick:
        return compute(EACH, 60, EPSILONS[::2], seeds=1, progress=progress)
    return compute(EACH, 300, EPSILONS, seeds=5, progress=progress)


def compute(
    each: int,
    rounds: int,
    epsilons: tuple[float, ...],
    *,
    seeds: int,
    progress: Callable[[int, int], Any],
) -> Report:
    """Measure every method at every budget.

    Args:
        each: Records of a silo.
        rounds: Rounds of a run; of walks as many estimates.
        epsilons: Budgets beside none, in rising order.
        seeds: Runs of each.
        progress: Called with (done, total).
    """
    cases = list(_cases(each, rounds))
    rows: list[dict[str, object]] = []
    total = len(cases) * (1 + len(epsilons))
    for panel, method, measure in cases:
        for epsilon in (None, *epsilons):
            progress(len(rows), total)
            many = seeds if epsilon is not None else 1
            found = np.array([measure(epsilon, seed) for seed in range(many)])
            rows.append(
                {
                    "panel": panel,
                    "method": method,
                    "epsilon": epsilon,
                    "squared error": float(found.mean()),
                    "standard error": float(found.std(ddof=1) / math.sqrt(many)) if many > 1 else 0.0,
                }
            )
    progress(total, total)
    return Report(
        rows=rows,
        x="epsilon",
        y="squared error",
        error="standard error",
        line="method",
        panel="panel",
        notes=(*_notes(each, rounds, seeds), *statements(rows)),
    )


Case = tuple[str, str, Callable[[float | None, int], float]]


def _cases(each: int, rounds: int) -> Iterator[Case]:
    """Yield what is measured: the panel, the method, and its error by epsilon and seed."""
    mixed, skewed = HousingTask.made(each), HousingTask.made(each, skewed=True)
    for smoothness, beta in ((5.0, 0.05), (1.5, 0.1), (1.5, 1.0)):
        kind = NoisyStorm(rounds=rounds, beta=beta, step_size=STEP, smoothness=smoothness)
        name = "plain" if beta == 1 else f"mb-psgm-fg, beta {beta:g}"
        yield "shuffled reports", name, partial(mixed.shuffled, kind)
    facts: Any = {"rounds": rounds, "step_size": STEP, "smoothness": 1.5}
    central: dict[str, Algorithm] = {
        "mb-psgm-fg, beta 0.1": NoisyStorm(beta=0.1, **facts),
        "mb-psgm, beta 0.1": NoisyStorm(beta=0.1, batch=Fixed(rate=0.1), **facts),
        # Nothing forgets what a guess of the smoothness that is too small clips away.
        "diff2-gd, period 10": NoisyDiff2(period=10, **facts | {"smoothness": 5.0}),
        "dp-gd": NoisyDiff2(period=1, **facts),
    }
    for name, method in central.items():
        yield "trusted server", name, partial(mixed.trained, method)
    for task, where in ((mixed, "walks, equal silos"), (skewed, "walks, sorted silos")):
        few = max(2, rounds // 5)
        base: Any = {"step_size": STEP, "smoothness": 1.5, "beta": 0.3}
        walks: dict[str, Algorithm] = {"1 local step": NoisyStorm(rounds=few, **base)}
        for steps in (5, 10):
            walks[f"{steps} local steps"] = NoisyLocalStorm(
                rounds=2 * few, local_steps=steps, local_batch=Fixed(rate=0.1), **base
            )
        for name, method in walks.items():
            yield where, name, partial(task.trained, method, silos=True)


def _notes(each: int, rounds: int, seeds: int) -> Iterator[str]:
    """Yield how it was run."""
    yield (
        f"{SILOS} silos of {each} made-up records, 101 parameters, {rounds} rounds (walks: "
        f"{max(2, rounds // 5)} estimates), steps {STEP}, gradients clipped to {CLIP}, {seeds} "
        "seeds; features and target are standardised by all records, which no guarantee covers."
    )
    yield (
        "Shuffled reports are drawn by the normal limit of their mean; their level is priced exactly. "
        "Everything else is a run of the library."
    )
    yield "Steps, clips and beta were chosen beforehand; tuning on these records would not be private."
