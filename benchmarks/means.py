"""Means from a few randomised bits: a whole round of many rows, simulated at once."""

from __future__ import annotations

import numpy as np

from benchmarks.case import Case, best_seconds
from tacit.means import AdditiveMean, DiscreteGaussianNoise, Message, ModularSumMean, RotatedMean, Round


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


def _summed(smoke: bool) -> dict[str, float]:
    """Messages of one party, written, read and decoded, with the noise of all of it, or a share of it."""
    dim = 1_000 if smoke else 100_000
    rng, this_round = np.random.default_rng(0), Round(n=10, radius=1.0, parties=10)
    rows, noise = rng.standard_normal((10, dim)), DiscreteGaussianNoise(3.76, steps=2**14)
    share = DiscreteGaussianNoise(3.76 / 8**0.5, steps=2**14)
    found: dict[str, float] = {"dim": dim}
    for name, mean in (
        ("local", AdditiveMean(dim=dim, noise=noise)),
        ("modular", ModularSumMean(dim=dim, noise=share, shares=8, width=22)),
    ):

        def once(mean: AdditiveMean | ModularSumMean = mean) -> None:
            sent = mean.encode(rows, this_round, party=0, rng=rng)
            mean.decode([Message.from_bytes(m.to_bytes()) for m in sent], this_round)

        found[name] = best_seconds(once, 3 if smoke else 7)
    return {**found, "ratio": found["modular"] / found["local"]}


def _say_summed(m: dict[str, float]) -> str:
    return (
        f"d = {m['dim']:.0f}: {1e3 * m['modular']:.1f} ms modulo 2^22, {1e3 * m['local']:.1f} ms under local "
        f"trust, ratio {m['ratio']:.2f}"
    )


CASES = (
    Case(
        "means/modular",
        "a message of a sum modulo 2^b written, read and decoded within 1.3 times a local one",
        _summed,
        _say_summed,
    ),
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
