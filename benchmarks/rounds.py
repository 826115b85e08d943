"""What a choice costs in a round: neighbours, batches, precision, units, classes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Ask, Batch, Fixed, Full, InProcess, Measure, Plan, Poisson, Step, Walk
from tacit.learning import Grouped, LinearObjective, Logistic, Multinomial, Records, make_silos
from tacit.means import AdditiveMean, AnyNoise, DiscreteGaussianNoise, GaussianNoise
from tacit.numerics import Array
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
    step: Callable[[AdditiveMean], Step | Walk],
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


LOCAL_STEPS, BATCH, ETA = 10, 32, 0.1
AT = {"w": np.zeros(DIM)}


def _bare_walks(
    records: list[Records], norms: list[Array], w: Array, rng: np.random.Generator, noise: float
) -> Array:
    """FedAvg with clipped gradients and noise, as an obvious loop: nothing is checked, sent or remembered."""
    total = np.zeros(DIM)
    for silo, norm in zip(records, norms, strict=True):
        v = w.copy()
        for _ in range(LOCAL_STEPS):
            index = rng.choice(len(silo), BATCH, replace=False)
            x = silo.X[index]
            slope = 1 / (1 + np.exp(-(x @ v.astype(np.float32)))) - silo.y[index]
            slope *= np.minimum(1, RADIUS / np.maximum(np.abs(slope) * norm[index], 1e-30))
            drawn = rng.standard_normal(DIM, dtype=np.float32) * np.float32(2 * RADIUS * noise)
            v -= ETA * (x.T @ slope + drawn) / BATCH
        total += v
    return total / len(records)


def _local_steps(smoke: bool) -> dict[str, float]:
    rounds, silos = 3 if smoke else 100, 10
    records, rng, w = _records(np.float32, silos=silos, rows=320), np.random.default_rng(1), np.zeros(DIM)
    norms = [np.linalg.norm(silo.X, axis=1) for silo in records]

    def walk(mean: AdditiveMean) -> Walk:
        measure = Measure(statistic="gradient", estimator=mean, max_radius=RADIUS)
        return Walk(measures=(measure,), batch=Fixed(size=BATCH), steps=LOCAL_STEPS)

    ask, at = _open(records, walk, rounds=rounds), {"w": w, "step_size": np.asarray(ETA)}
    ours = bare = math.inf
    for r in range(rounds):  # in turn: what else the machine does slows down both
        ours = min(ours, best_seconds(lambda r=r: ask(r, at, (RADIUS,)), 1))  # type: ignore[misc]
        bare = min(bare, best_seconds(lambda: _bare_walks(records, norms, w, rng, 60.0), 1))
    steps = silos * LOCAL_STEPS
    return {
        "microseconds_a_step": 1e6 * ours / steps,
        "bare_microseconds_a_step": 1e6 * bare / steps,
        "ratio": ours / bare,
    }


def _exact(smoke: bool) -> dict[str, float]:
    rounds, found = 3 if smoke else 60, {}
    for name, dtype in (("single", np.float32), ("double", np.float64)):
        records = _records(dtype, silos=25, rows=320)
        asks = {
            "continuous": _open(records, _step(Full()), rounds=rounds, seed=None),
            "exact": _open(records, _step(Full()), noise=EXACT, rounds=rounds, seed=None),
        }
        best = dict.fromkeys(asks, math.inf)
        for r in range(rounds):
            for kind, ask in asks.items():
                took = best_seconds(lambda ask=ask, r=r: ask(r, AT, (RADIUS,)), 1)  # type: ignore[misc]
                best[kind] = min(best[kind], took)
        found[f"{name}_milliseconds"] = 1e3 * best["exact"]
        found[f"{name}_continuous_milliseconds"] = 1e3 * best["continuous"]
        found[f"{name}_ratio"] = best["exact"] / best["continuous"]
    return found


CASES = (
    Case(
        "rounds/local-steps",
        "at most 1.5 x the bare loop: the same batches, gradients and noise, without silos",
        _local_steps,
        lambda m: (
            f"{m['microseconds_a_step']:.0f} us a local step, the bare loop "
            f"{m['bare_microseconds_a_step']:.0f} us: {m['ratio']:.2f} x"
        ),
    ),
    Case(
        "rounds/exact-noise",
        "at most 2 x the round with continuous noise, both with the secure generator",
        _exact,
        lambda m: (
            f"{m['double_milliseconds']:.1f} ms a round of 25 silos, with continuous noise "
            f"{m['double_continuous_milliseconds']:.1f} ms: {m['double_ratio']:.2f} x; of float32 records, "
            f"added up in float64, {m['single_milliseconds']:.1f} and "
            f"{m['single_continuous_milliseconds']:.1f} ms: {m['single_ratio']:.2f} x"
        ),
    ),
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
