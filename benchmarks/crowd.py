"""Many clients with one row each: a crowd against one silo per client, and against a bare `estimate`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.federation import Ask, Crowd, InProcess, Measure, Plan, Silo, Step
from tacit.means import HadamardMean, Round
from tacit.numerics import Array, IntArray

DIM, FEW, MANY, ROUNDS = 1000, 1000, 10_000, 6
MEAN = HadamardMean(dim=DIM, local_epsilon=1.0)
AT = {"w": np.zeros(1)}


@dataclass(frozen=True)
class _Rows:
    values: Array

    def __len__(self) -> int:
        return len(self.values)

    def take(self, index: IntArray) -> _Rows:
        return _Rows(self.values[index])


def _row(units: Any, at: Mapping[str, Array]) -> Array:  # noqa: ARG001 - as `Statistic` says
    values: Array = units.values
    return values


def _plan(clients: int) -> Plan:
    step = Step(measures=(Measure(statistic="row", estimator=MEAN, max_radius=1.0),))
    return Plan(steps=((step, ROUNDS),), parties=clients)


def _rounds(asks: Sequence[Ask]) -> Callable[[], object]:
    """The first round of one run after the other."""
    rest = iter(asks)
    return lambda: next(rest)(0, AT, (1.0,))


def _speed(smoke: bool) -> dict[str, float]:
    rng = np.random.default_rng(0)
    few, repeats = (100 if smoke else FEW), 1 if smoke else 5
    X = rng.normal(size=(few if smoke else MANY, DIM)) / 40
    known = {"row": _row}

    def crowd(rows: Array) -> Ask:
        return Crowd(_Rows(rows), known, rng=np.random.default_rng(1)).open(_plan(len(rows)))

    def silos(rows: Array) -> Ask:
        made = [Silo(_Rows(row[None]), known, rng=np.random.default_rng(k)) for k, row in enumerate(rows)]
        return InProcess(made, rng=rng).open(_plan(len(rows)))

    small = X[:few]
    facts = Round(n=few, radius=1.0, parties=few)
    bare = best_seconds(lambda: MEAN.estimate(small, facts, rng=rng), repeats)
    ours = best_seconds(_rounds([crowd(small) for _ in range(repeats)]), repeats)
    theirs = best_seconds(_rounds([silos(small) for _ in range(repeats)]), repeats)
    all_of_them = best_seconds(_rounds([crowd(X) for _ in range(repeats)]), repeats)
    return {
        "clients": len(X),
        "rounds_per_second": 1 / all_of_them,
        "ratio": ours / bare,
        "ratio_to_silos": ours / theirs,
    }


CASES = (
    Case(
        "federation/crowd",
        "10,000 clients of 1,000 coordinates: >= 2 rounds/s; 1,000 clients: at most 1.5 x a bare estimate",
        _speed,
        lambda m: (
            f"{m['clients']:,.0f} clients: {m['rounds_per_second']:.1f} rounds/s; 1,000: {m['ratio']:.2f} x "
            f"an estimate, {m['ratio_to_silos']:.3f} x one silo per client"
        ),
    ),
)
