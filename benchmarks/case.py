"""One thing that is timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    name: str
    aim: str
    run: Callable[[bool], dict[str, float]]  # smoke -> measurements
    say: Callable[[dict[str, float]], str]


def best_seconds(work: Callable[[], object], repeats: int) -> float:
    """Least time of several runs: what the machine can do when nobody else uses it."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)
