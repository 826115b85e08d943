"""Small private runs: one silo, or several, with the statistics of DP-FERMI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tacit.fairness import (
    Conditions,
    Fairness,
    FairUnits,
    LinearScores,
    PrivateFermi,
    PrivateTraining,
    PublicRecords,
)
from tacit.federation import Ask, Plan
from tacit.means import Round
from tacit.numerics import Array, IntArray
from tacit.privacy import Part, PrivacyBudget
from tests.fairness.problems import D, records

BUDGET = PrivacyBudget(1.0, 1e-3)


def conditions_of(y: IntArray, fairness: str, classes: int) -> Conditions:
    advantaged = [classes - 1] if fairness == "equal-opportunity" else None
    return Conditions.of(Fairness(fairness), y, classes=list(range(classes)), advantaged=advantaged)


def units_of(
    X: Array, y: IntArray, s: IntArray, fairness: str = "demographic-parity", classes: int = 2
) -> FairUnits:
    return FairUnits.of(X, y, s, conditions_of(y, fairness, classes).codes)


def method_of(
    *,
    fairness: str = "demographic-parity",
    classes: int = 2,
    groups: int = 2,
    weight: float = 1.0,
    part: Part = Part.SENSITIVE,
    **how: Any,
) -> PrivateFermi:
    conditions = {"demographic-parity": 1, "equalized-odds": classes, "equal-opportunity": 1}[fairness]
    model = LinearScores(D, classes)
    how = {"rounds": 3, "least_share": 0.4 / groups, **how}
    return PrivateFermi(model=model, conditions=conditions, groups=groups, weight=weight, part=part, **how)


def training_of(method: PrivateFermi, budget: PrivacyBudget | None = BUDGET, **how: Any) -> PrivateTraining:
    return PrivateTraining(method=method, budget=budget, **how)


def small(
    n: int = 12, fairness: str = "demographic-parity", classes: int = 2, groups: int = 2
) -> tuple[FairUnits, PublicRecords]:
    X, y, s = records(n, classes, groups)
    where = conditions_of(y, fairness, classes)
    return FairUnits.of(X, y, s, where.codes), PublicRecords(X, y, where.codes)


@dataclass(frozen=True)
class Seen:
    """One round, as whoever asks sees it."""

    step: int
    at: Mapping[str, Array]
    radius: tuple[float, ...]
    means: tuple[Array, ...]


@dataclass
class Overheard:
    """An `Ask` that keeps what it shows."""

    ask: Ask | Callable[..., tuple[Array, ...]]
    seen: list[Seen] = field(default_factory=list)

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        means = self.ask(step, at, radius)
        self.seen.append(Seen(step, dict(at), radius, tuple(np.asarray(mean) for mean in means)))
        return means


def exact_ask(method: PrivateFermi, units: FairUnits) -> Callable[..., tuple[Array, ...]]:
    """Answer without noise: sums of clipped rows over the number of records."""

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        names = names_of(method)[min(step, 1)]
        return tuple(
            clipped(method, name, units, at, r) / len(units) for name, r in zip(names, radius, strict=True)
        )

    return ask


def names_of(method: PrivateFermi) -> tuple[tuple[str, ...], tuple[str, ...]]:
    slope = "group-gradient" if method.part is Part.SENSITIVE else "penalised-gradient"
    decisions = () if method.target is None else ("group-decisions",)
    return ("group-counts",), ("group-mass", slope, *decisions)


def clipped(
    method: PrivateFermi, name: str, units: FairUnits, at: Mapping[str, Array], radius: float
) -> Array:
    """The sum of rows that are clipped one by one."""
    return np.asarray(clipped_rows(method, name, units, at, radius).sum(axis=0))


def clipped_rows(
    method: PrivateFermi, name: str, units: FairUnits, at: Mapping[str, Array], radius: float
) -> Array:
    rows = np.asarray(method.statistics[name](units, at))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows * np.minimum(1.0, radius / np.maximum(norms, 1e-300)))


def noisy_ask(
    method: PrivateFermi, plan: Plan, units: FairUnits, rng: np.random.Generator
) -> Callable[..., tuple[Array, ...]]:
    """Answer with the noise of a plan, without the accounts and the messages of a silo."""

    def ask(step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        measures = plan.kinds[min(step, 1)][0].measures
        answers = []
        for measure, most in zip(measures, radius, strict=True):
            rows = method.statistics[measure.statistic](units, at)
            asked = Round(number=step, n=len(units), parties=1, seed=0, radius=most)
            answers.append(np.asarray(measure.estimator.estimate(rows, asked, rng=rng)))
        return tuple(answers)

    return ask
