"""Fair training: a million records, very many groups, single records, and accuracy beside fairlearn."""

from __future__ import annotations

import time
import tracemalloc
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.fairness import (
    Conditions,
    Fairness,
    FairProblem,
    Groups,
    LinearScores,
    StepSizes,
    fermi,
    penalty_of,
)

Array = np.ndarray[Any, Any]


def _problem(n: int, d: int, sensitive: Any, *, weight: float = 1.0, width: str = "float32") -> FairProblem:
    """Return records whose labels depend on features and group, with the constant as last column."""
    rng = np.random.default_rng(0)
    X = np.ones((n, d + 1), dtype=width)
    for first in range(0, n, 10_000):
        part = X[first : first + 10_000, :d]
        part[:] = rng.standard_normal(part.shape)
    groups = Groups.of(sensitive)
    X[:, 0] += groups.codes % 2
    y = (X[:, :5].sum(axis=1) > rng.logistic(size=n)).astype(np.int64)
    where = Conditions.of(Fairness.DEMOGRAPHIC_PARITY, y, classes=[0, 1])
    penalty, membership = penalty_of("ermi", groups, where, 2)
    return FairProblem(LinearScores(d + 1), X, y, penalty, membership, weight)


def _large(smoke: bool) -> dict[str, float]:
    n, steps = (20_000, 5) if smoke else (1_000_000, 200)
    problem = _problem(n, 100, np.arange(n) % 4)
    start = time.perf_counter()
    fermi(problem, steps=StepSizes(0.2), batch_size=n, epochs=steps, rng=np.random.default_rng(0))
    seconds = time.perf_counter() - start
    tracemalloc.start()  # a run of its own: it slows every allocation
    fermi(problem, steps=StepSizes(0.2), batch_size=n, epochs=2, rng=np.random.default_rng(0))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return {
        "records": n,
        "steps": steps,
        "seconds": seconds,
        "memory_ratio": (problem.X.nbytes + peak) / problem.X.nbytes,
    }


def _many_groups(smoke: bool) -> dict[str, float]:
    n = 500 if smoke else 2_000
    bits = np.random.default_rng(0).integers(0, 2, (n, 18))

    def epoch(sensitive: Any) -> float:
        problem, steps = _problem(n, 20, sensitive), StepSizes(0.01)
        return best_seconds(
            lambda: fermi(problem, steps=steps, batch_size=1, epochs=1, rng=np.random.default_rng(0)),
            1 if smoke else 5,
        )

    reading = best_seconds(lambda: Groups.of(bits), 3)
    many, few = epoch(bits), epoch(bits[:, 0])
    return {"groups": len(Groups.of(bits)), "seconds": many, "ratio": many / few, "reading_seconds": reading}


def _single(smoke: bool) -> dict[str, float]:
    n = 1_000 if smoke else 32_561
    problem = _problem(n, 59, np.arange(n) % 2, width="float64")
    start = time.process_time()
    fermi(problem, steps=StepSizes(0.002), batch_size=1, epochs=2, rng=np.random.default_rng(0))
    seconds = time.process_time() - start
    return {"records": n, "seconds": seconds, "microseconds_per_step": seconds / (2 * n) * 1e6}


CASES = (
    Case(
        "fairness/million-records",
        "200 steps on 1e6 x 100 float32 records in under 60 s, in less than 3 times their memory",
        _large,
        lambda m: (
            f"{m['records']:,.0f} records, {m['steps']:.0f} steps: {m['seconds']:.1f} s, "
            f"{m['memory_ratio']:.2f} x the memory of the records"
        ),
    ),
    Case(
        "fairness/many-groups",
        "2,000 records of 2^18 possible groups cost a record's step what two groups cost it, within a fifth",
        _many_groups,
        lambda m: (
            f"{m['groups']:,.0f} groups: an epoch of single records in {m['seconds']:.2f} s, "
            f"{m['ratio']:.2f} x that of two groups; read in {1000 * m['reading_seconds']:.0f} ms"
        ),
    ),
    Case(
        "fairness/single-records",
        "two epochs of single records of Adult's size in under 4 s",
        _single,
        lambda m: (
            f"{m['records']:,.0f} x 60, two epochs: {m['seconds']:.1f} s, "
            f"{m['microseconds_per_step']:.0f} us a step; processor time"
        ),
    ),
)
