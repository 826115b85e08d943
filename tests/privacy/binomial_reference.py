"""Slow references for binomial noise: composed losses between two grids, and a truncated Rényi bound."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special, stats

from tacit.privacy.binomial.event import proof_of_tails

Array = npt.NDArray[np.float64]


def log_pmf(z: Array, trials: int, p: float) -> Array:
    """Return the log-probabilities of Bin(trials, p); -infinity outside of 0..trials."""
    inside = (z >= 0) & (z <= trials)
    at = np.where(inside, z, 0)
    value = special.xlogy(at, p) + special.xlog1py(trials - at, -p)
    value += special.gammaln(trials + 1) - special.gammaln(at + 1) - special.gammaln(trials - at + 1)
    return np.where(inside, value, -np.inf)


def composed_shifts(
    trials: int, p: float, shifts: Sequence[int], epsilon: float, *, step: float = 1e-4
) -> tuple[float, float]:
    """Return bounds from below and above on the divergence of coordinates that move by `shifts`.

    The privacy losses are rounded down, and up, to a grid of `step`, and convolved.
    """
    bounds = []
    for direction in (np.floor, np.ceil):
        size = 1 << 19
        spectrum, lowest, finite = np.ones(size // 2 + 1, dtype=np.complex128), 0, 1.0
        for shift, count in Counter(shifts).items():
            z = np.arange(trials + 1, dtype=np.float64) + shift
            mass, other = log_pmf(z - shift, trials, p), log_pmf(z, trials, p)
            kept = np.isfinite(other) & (mass > -40)
            index = direction((mass[kept] - other[kept]) / step).astype(np.int64)
            law = np.bincount(index - index.min(), weights=np.exp(mass[kept]))
            assert law.size < size
            spectrum *= np.fft.rfft(law, size) ** count
            lowest += count * int(index.min())
            finite *= float(law.sum()) ** count
        total = np.maximum(np.fft.irfft(spectrum, size), 0.0)
        # The indices wrap around; the composed loss lies within half a period of 0.
        place = (np.arange(size) + lowest + size // 2) % size - size // 2
        loss = place * step
        above = loss > epsilon
        found = float(total[above] @ -np.expm1(epsilon - loss[above]))
        bounds.append(found + (max(1 - finite, 0.0) + 1e-12 if direction is np.ceil else -1e-12))
    return bounds[0], bounds[1]


def truncated_renyi(trials: int, p: float, order: float, shift: int, low: int, high: int) -> float:
    """Return the order-alpha divergence of eta + shift from eta over sums z with low < z - shift < high."""
    z = np.arange(low + 1, high, dtype=np.float64) + shift
    terms = order * log_pmf(z - shift, trials, p) + (1 - order) * log_pmf(z, trials, p)
    return float(special.logsumexp(terms) / (order - 1))


def tails(trials: int, p: float, tail: float) -> tuple[int, int]:
    """Return the last t with F(t) <= tail and the first with 1 - F(t) <= tail."""
    t = np.arange(trials + 1)
    low = int(np.searchsorted(stats.binom.cdf(t, trials, p), tail, side="right")) - 1
    return low, int(np.argmax(stats.binom.sf(t, trials, p) <= tail))


def renyi_epsilon(trials: int, dim: int, g: int, delta: float) -> float:
    """Return the price of one vector sum by truncated Rényi divergences."""
    std = math.sqrt(trials) / 2
    low, high = math.ceil(trials / 2 - 8.5 * std), math.floor(trials / 2 + 8.5 * std)
    farthest, largest = g + 2 * math.sqrt(dim), g + 1
    bad = dim * float(stats.binom.cdf(low - 1, trials, 0.5) + stats.binom.sf(high, trials, 0.5))
    if largest > low or bad >= delta:
        return math.inf
    best = math.inf
    for order in 1 + np.geomspace(5, 60, 20):
        # With fair bits, both signs of a shift have one divergence.
        worst = max(
            truncated_renyi(trials, 0.5, order, s, low - 1, high + 1) / (s * s) for s in range(1, largest + 1)
        )
        spent = worst * farthest * farthest + math.log1p(-1 / order)
        best = min(best, spent - (math.log(delta - bad) + math.log(order)) / (order - 1))
    return best


def vector_delta(
    epsilon: npt.ArrayLike,
    *,
    trials: int,
    resolution: int,
    dim: int,
    tail: float,
    rounds: int = 1,
    excess: float | None = None,
) -> Array:
    """Return what one choice of tails alone proves of `rounds` sums of vectors; 1 where it proves nothing."""
    eps = np.asarray(epsilon, dtype=np.float64)
    proof = proof_of_tails(trials, resolution, dim, rounds, tail, excess)
    return np.ones_like(eps) if proof is None else proof.delta(eps)
