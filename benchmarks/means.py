"""Means from a few randomised bits: a whole round of many rows, simulated at once."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.means import RotatedMean, Round


def _round(smoke: bool, *, samples: int, planes: int = 1) -> dict[str, float]:
    n, dim = (200, 64) if smoke else (10_000, 1024)
    samples = min(samples, dim)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, dim))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    mean = RotatedMean(dim=dim, samples=samples, local_epsilons=(1.0,) * planes, kappa=3.0)
    this_round = Round(n=n, radius=1.0)
    seconds = best_seconds(lambda: mean.estimate(X, this_round, rng=rng), 3)
    found = mean.estimate(X, this_round, rng=rng)
    error = float(((found - X.mean(axis=0)) ** 2).sum())
    return {"n": n, "dim": dim, "messages": samples * planes, "seconds": seconds, "error": error}


def _say(m: dict[str, float]) -> str:
    return (
        f"n = {m['n']:.0f}, d = {m['dim']:.0f}, {m['messages']:.0f} bits a row: {m['seconds']:.2f} s, "
        f"squared error {m['error']:.3g}"
    )


CASES = (
    Case(
        "means/rotated-all",
        "10,000 rows of 1024 coordinates, a bit of each coefficient, in under 2 s",
        lambda smoke: _round(smoke, samples=1024),
        _say,
    ),
    Case(
        "means/rotated-few",
        "10,000 rows of 1024 coordinates, 4 bits of each row, in under 1 s",
        lambda smoke: _round(smoke, samples=4),
        _say,
    ),
)
