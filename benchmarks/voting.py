"""Private majorities: designing, certifying, and publishing many bits."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.privacy.certified import Teachers, worst_case
from tacit.voting import allowance, design, optimise_gamma


def _optimum(teachers: int, m: float, delta: float, method: str) -> dict[str, float]:
    question = allowance(teachers, 0.1, m, delta=delta)
    return {"teachers": teachers, "seconds": best_seconds(lambda: optimise_gamma(question, method=method), 1)}


def _approximate(smoke: bool) -> dict[str, float]:
    return _optimum(15 if smoke else 41, 3.5 if smoke else 8.0, 1e-5, "exact")


def _pure(smoke: bool) -> dict[str, float]:
    return _optimum(21 if smoke else 101, 4 if smoke else 10, 0.0, "monotone")


def _table(smoke: bool) -> dict[str, float]:
    # Jiang (2025), Table B.1: 10 of 35 teachers; the plain majority already meets it.
    question = allowance(35, 0.1, 6.4521, delta=1e-5, target_delta=0.1001)
    seconds = best_seconds(lambda: optimise_gamma(question, method="exact"), 1 if smoke else 3)
    return {"teachers": 35, "seconds": seconds}


def _certificate(smoke: bool) -> dict[str, float]:
    teachers = 21 if smoke else 101
    gamma = np.linspace(0.3, 0.9, (teachers + 1) // 2)
    voters = Teachers(count=teachers, epsilon=0.1, delta=1e-5)
    monotone = best_seconds(lambda: worst_case(voters, gamma, 1.0), 1 if smoke else 5)
    voters = Teachers(count=teachers, epsilon=0.1)
    every = best_seconds(lambda: worst_case(voters, gamma[::-1], 1.0), 1 if smoke else 5)
    return {"teachers": teachers, "monotone_ms": 1e3 * monotone, "pure_ms": 1e3 * every}


def _release(smoke: bool) -> dict[str, float]:
    queries = 10_000 if smoke else 1_000_000
    rng = np.random.default_rng(0)
    noise = design(allowance(11, 0.1, 3), "optimal")
    votes = (rng.random((queries, 11)) < 0.7).astype(np.uint8)
    return {"queries": queries, "seconds": best_seconds(lambda: noise.release(votes, rng), 1 if smoke else 3)}


def _say(m: dict[str, float]) -> str:
    return f"{m['teachers']:.0f} teachers in {m['seconds']:.2f} s"


CASES = (
    Case(
        "voting/optimum-approximate",
        "the exact optimum of 41 teachers with a delta in under 10 s",
        _approximate,
        _say,
    ),
    Case("voting/optimum-pure", "the monotone optimum of 101 pure teachers in under 0.5 s", _pure, _say),
    Case("voting/table-b1", "the setting of table B.1, 35 teachers, in under 2 s", _table, _say),
    Case(
        "voting/certificate",
        "101 teachers certified in under 100 ms",
        _certificate,
        lambda m: f"monotone {m['monotone_ms']:.1f} ms, pure over all vertices {m['pure_ms']:.1f} ms",
    ),
    Case(
        "voting/release",
        "1e6 answers of 11 teachers published in under 1 s",
        _release,
        lambda m: f"{m['queries']:,.0f} answers in {m['seconds']:.2f} s",
    ),
)
