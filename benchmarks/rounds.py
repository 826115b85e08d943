"""What a choice costs in a round: neighbours, batches, precision, units, classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Ask, Batch, Fixed, Full, InProcess, Measure, Plan, Poisson, Step
from tacit.learning import Grouped, LinearObjective, Logistic, Multinomial, Records, make_silos
from tacit.means import AdditiveMean, AnyNoise, DiscreteGaussianNoise, GaussianNoise
from tacit.privacy import Neighbours, Relation, Unit

SILOS, ROWS, DIM, RADIUS, CLASSES, EACH = 5, 1600, 784, 0.3, 10, 8
ADD, ZERO = Neighbours(Relation.ADD_REMOVE), Neighbours(Relation.ZERO_OUT)
EXACT = DiscreteGaussianNoise(60.0)


def _records(dtype: type[np.floating[Any]], *, silos: int = SILOS, rows: int = ROWS) -> list[Records]:
    rng, made = np.random.default_rng(0), []
    for _ in range(silos):
        X = rng.random((rows, DIM), dtype=np.float32).astype(dtype)
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        made.append(Records.of(X, rng.integers(2, size=rows).astype(dtype)))
    return made


def _open(
    records: list[Records],
    step: Callable[[AdditiveMean], Step],
    *,
    noise: AnyNoise = GaussianNoise(60.0),  # noqa: B008 - frozen
    neighbours: Neighbours = Neighbours(),  # noqa: B008
    classes: int = 1,
    rounds: int,
    seed: int | None = 0,
) -> Ask:
    """A run that all silos have accepted."""
    loss = Logistic() if classes == 1 else Multinomial()
    objective = LinearObjective(loss=loss, features=DIM, outputs=classes, feature_norm=1.0)
    mean = AdditiveMean(dim=objective.size, noise=noise, neighbours=neighbours)
    plan = Plan(steps=((step(mean), rounds),), parties=len(records), delta=1e-5)
    persons = np.arange(len(records[0])) // EACH
    units = [Grouped.of(r, persons) if neighbours.unit is Unit.PERSON else r for r in records]
    planned = [len(one) for one in units] if neighbours.relation is Relation.ADD_REMOVE else None
    silos = make_silos(units, objective, planned=planned, seed=seed)
    return InProcess(silos, rng=None if seed is None else np.random.default_rng(1)).open(plan)


def _step(batch: Batch) -> Callable[[AdditiveMean], Step]:
    def make(mean: AdditiveMean) -> Step:
        return Step(measures=(Measure(statistic="gradient", estimator=mean, max_radius=RADIUS),), batch=batch)

    return make


def _seconds(ask: Ask, dim: int, rounds: int) -> float:
    w = np.zeros(dim)

    def run() -> None:
        nonlocal w
        for r in range(rounds):
            w = w - 4.0 * ask(r, {"w": w}, (RADIUS,))[0]

    return best_seconds(run, 1)


def _ratios(smoke: bool) -> dict[str, float]:
    rounds, repeats = (2, 1) if smoke else (6, 6)
    single, double = _records(np.float32), _records(np.float64)
    persons = Neighbours(Relation.REPLACE_ONE, Unit.PERSON)
    # Each against the round under replace-one of the same units, classes and number of gradients.
    runs: dict[str, Callable[[], Ask]] = {
        "replace_one": lambda: _open(double, _step(Full()), rounds=rounds),
        "add_remove": lambda: _open(double, _step(Full()), neighbours=ADD, rounds=rounds),
        "fixed": lambda: _open(double, _step(Fixed(rate=0.1)), rounds=rounds),
        "poisson": lambda: _open(double, _step(Poisson(0.1)), neighbours=ZERO, rounds=rounds),
        "single": lambda: _open(single, _step(Full()), rounds=rounds),
        "single_exact": lambda: _open(single, _step(Full()), noise=EXACT, rounds=rounds),
        "persons": lambda: _open(double, _step(Full()), neighbours=persons, rounds=rounds),
        "classes": lambda: _open(double, _step(Full()), classes=CLASSES, rounds=rounds),
        "classes_add_remove": lambda: _open(
            double, _step(Full()), neighbours=ADD, classes=CLASSES, rounds=rounds
        ),
    }
    found = dict.fromkeys(runs, math.inf)
    for _ in range(repeats):  # in turn: what else the machine does slows down all
        for name, make in runs.items():
            dim = DIM * (CLASSES if "classes" in name else 1)
            found[name] = min(found[name], _seconds(make(), dim, rounds))
    against = {"poisson": "fixed", "single_exact": "single", "classes_add_remove": "classes"}
    ratios = {
        name: seconds / found[against.get(name, "replace_one")]
        for name, seconds in found.items()
        if name not in ("replace_one", "fixed", "single", "classes")
    }
    gradients = SILOS * ROWS * rounds
    return {
        "gradients_per_second": gradients / found["replace_one"],
        "gradients_per_second_of_classes": gradients / found["classes"],
        **ratios,
    }


CASES = (
    Case(
        "rounds/neighbours",
        "no choice costs more than 2 x the same round under replace-one; persons 5 x",
        _ratios,
        lambda m: (
            f"{m['add_remove']:.2f} x under add-remove ({m['classes_add_remove']:.2f} x with 10 classes), "
            f"{m['poisson']:.2f} x with Poisson batches, {m['single_exact']:.2f} x in float32 with exact "
            f"noise, {m['persons']:.2f} x by persons"
        ),
    ),
)
