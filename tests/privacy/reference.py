"""Slow, obvious references: hockey-stick divergences by quadrature and by enumeration."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import integrate, stats

Array = npt.NDArray[np.float64]


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the divergence of N(mu, 1) from N(0, 1) as an integral over where the loss exceeds epsilon."""
    start = epsilon / mu + mu / 2

    def excess(x: float) -> float:
        return float(stats.norm.pdf(x - mu) * -np.expm1(epsilon - mu * x + mu * mu / 2))

    return float(integrate.quad(excess, start, start + 12, epsabs=0, epsrel=1e-11, limit=200)[0])


def hockey_stick(p: npt.ArrayLike, q: npt.ArrayLike, epsilon: float) -> float:
    """Return sum of (p - e^epsilon q)_+ by its definition."""
    return float(np.maximum(np.asarray(p) - math.exp(epsilon) * np.asarray(q), 0.0).sum())


def power(p: npt.ArrayLike, count: int) -> Array:
    """Return the law of `count` independent draws."""
    result = np.ones(1)
    for _ in range(count):
        result = np.outer(result, np.asarray(p)).ravel()
    return result


def sampled_laws(records: Sequence[int], size: int, table: Array) -> Array:
    """Return the law of a release on a fixed-size sample; `table[s]` is the law for a sample sum s."""
    samples = list(itertools.combinations(records, size))
    return np.asarray(sum(table[sum(s)] for s in samples) / len(samples))


def poisson_law(records: Sequence[int], rate: float, table: Array) -> Array:
    """Return the law of a release on a Poisson sample; `table[s]` is the law for a sample sum s."""
    law = np.zeros(table.shape[1])
    for chosen in itertools.product((0, 1), repeat=len(records)):
        weight = math.prod(rate if c else 1 - rate for c in chosen)
        law += weight * table[sum(r for r, c in zip(records, chosen, strict=True) if c)]
    return law


def optimistic_delta(losses: Array, mass: Array, count: int, epsilon: float, *, step: float) -> float:
    """Return a lower bound on the composed divergence: every loss is rounded down to a grid."""
    index = np.floor(losses / step).astype(np.int64)
    lowest = int(index.min())
    law = np.bincount(index - lowest, weights=mass)
    size = count * (law.size - 1) + 1
    total = np.maximum(np.fft.irfft(np.fft.rfft(law, size) ** count, size), 0.0)
    grid = (count * lowest + np.arange(size)) * step
    above = grid > epsilon
    return float((total[above] * -np.expm1(epsilon - grid[above])).sum())
