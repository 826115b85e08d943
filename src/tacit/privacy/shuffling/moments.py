"""Laws of the likelihood ratios behind shuffling, and their moments, in logs.

The Rényi bounds of shuffling are means, over binomial counts, of a convex function of a likelihood ratio. Two
facts make them quick without making them wrong. The mean over m messages does not grow with m (Jensen: the
average of m + 1 exchangeable terms is a conditional mean of averages of m), so counts may be rounded down.
And a convex function may be replaced by its chords, so values may be moved to the ends of a cell with their
mean kept. Source: Girgis (2023), Theorem 5.3.4, and Feldman, McMillan and Talwar (2022), Theorem 3.1, for the
sums; the rounding is derived here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.privacy.curves import Array
from tacit.privacy.shuffling.binomial import binomial_log_pmf

__all__ = [
    "ROUND_UP",
    "RatioLaw",
    "binomials_over_blanket",
    "clones_law",
    "log_pair_excess",
    "log_sum",
    "renyi_of_moments",
    "spread",
]

ROUND_UP = 1 + 1e-11
"""The sums here are right to about 1e-12 of themselves; a bound is rounded up past that."""
_BULK = 10.0  # standard deviations of the number of blanket messages that are bucketed finely
_CORE = 8.0  # standard deviations within which every binomial count is kept
_LEAST_CORE = 1000
_EXACT_BELOW = 1e-5  # an accuracy finer than this keeps all values instead of a grid
_BUCKETS = 256
_GRID = 512


def log_sum(log_terms: Array) -> Array:
    """Return log sum exp along the last axis; an empty or all-zero sum is -inf."""
    top = np.max(log_terms, axis=-1, initial=-np.inf, keepdims=True)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        total: Array = np.log(np.exp(log_terms - top).sum(axis=-1)) + top[..., 0]
    return total


def renyi_of_moments(log_excess: Array, orders: Array) -> Array:
    """Return log(1 + e^log_excess) / (order - 1): a Rényi divergence from its moment minus 1."""
    value: Array = np.logaddexp(0.0, log_excess) / (orders - 1)
    return value


def log_pair_excess(half_loss: Array, order: Array) -> Array:
    """Return the log of E[(P/Q)^order] - 1 under Q for two outcomes of loss +-2 `half_loss`.

    With t = `half_loss` that is 2 sinh(order t) sinh((order - 1) t) / cosh t: no cancellation anywhere.
    """
    t, a = half_loss, order
    with np.errstate(divide="ignore"):
        value: Array = (
            2 * (a - 1) * t
            + np.log(-np.expm1(-2 * a * t))
            + np.log(-np.expm1(-2 * (a - 1) * t))
            - np.log1p(np.exp(-2 * t))
        )
    return value


@dataclass(frozen=True)
class RatioLaw:
    """A finite law: values, shape (m,), and log-weights; too large rather than too small."""

    value: Array
    log_weight: Array

    def log_mean(self, log_function: Array) -> Array:
        """Return the log of the mean of a function given by its logs, shape (orders, m)."""
        return log_sum(log_function + self.log_weight)


def _blanket_counts(trials: int, prob: float, *, accuracy: float, reach: float) -> tuple[Array, Array, int]:
    """Return buckets of Bin(trials, prob): least counts, log-weights, and which one is the first of the bulk.

    Buckets are at most `accuracy` of their count wide in the bulk. In the left tail, where fewer messages
    hide less, they widen slowly; what even a loss of `reach` cannot make matter goes to the count 0.
    """
    if trials == 0 or prob >= 1:
        return np.array([float(trials)]), np.zeros(1), 0
    mean = trials * prob
    std = math.sqrt(mean * (1 - prob))
    low, high = max(math.floor(mean - _BULK * std), 0), min(math.ceil(mean + _BULK * std), trials)
    counts = np.arange(low, high + 1, dtype=np.float64)
    fewest = 1 if accuracy < _EXACT_BELOW else math.ceil(counts.size / _BUCKETS)
    width = max(int(accuracy * low), fewest)
    starts = np.arange(0, counts.size, width)
    log_pmf = binomial_log_pmf(counts, float(trials), prob)
    top = np.maximum.reduceat(log_pmf, starts)
    weight = np.log(
        np.add.reduceat(np.exp(log_pmf - np.repeat(top, np.diff(starts, append=counts.size))), starts)
    )
    weight += top
    if high < trials:
        ratio = (trials - high - 1) * prob / ((high + 2) * (1 - prob))
        beyond = float(binomial_log_pmf(np.array(high + 1.0), trials, prob)) - math.log1p(-ratio)
        weight[-1] = np.logaddexp(weight[-1], beyond)
    if low == 0:
        return counts[starts], weight, 0

    away = _BULK * std * 1.01 ** np.arange(1 + math.log(mean / (_BULK * std)) / math.log(1.01))
    few = 1.1 ** np.arange(1 + math.log(low) / math.log(1.1))
    first = np.unique(np.floor(np.concatenate([np.arange(11.0), few, mean - away])))
    first = first[(first >= 0) & (first < low)]
    end = np.append(first[1:], low)
    log_last = binomial_log_pmf(end - 1, float(trials), prob)
    ratio_below = (end - 1) * (1 - prob) / ((trials - end + 2) * prob)  # < 1 left of the mean
    at_most = log_last - np.log1p(-ratio_below)  # log Pr[C < end], a geometric sum
    in_bucket = np.minimum(log_last + np.log(end - first), at_most)
    negligible = at_most + reach < math.log(1e-8) - math.log(trials)
    lumped = int(negligible.sum())
    if lumped:
        first = np.concatenate([[0.0], first[lumped:]])
        in_bucket = np.concatenate([[at_most[lumped - 1]], in_bucket[lumped:]])
    return np.concatenate([first, counts[starts]]), np.concatenate([in_bucket, weight]), first.size


def _binomial_points(
    trials: float, prob: float, first: float, deviations: float
) -> tuple[Array, Array, Array]:
    """Return counts >= `first` of Bin(trials, prob): where the weight sits, where it is evaluated, how many.

    Beyond some deviations from the mean, counts are grouped: all are moved outwards to the last count of the
    group, and weigh at most as much as its innermost one each.
    """
    mean = trials * prob
    core = max(deviations * math.sqrt(mean * (1 - prob)), _LEAST_CORE)
    low, high = max(math.floor(mean - core), first), min(math.ceil(mean + core), trials)
    at = np.arange(low, high + 1, dtype=np.float64)
    parts = [(at, at, np.ones_like(at))]
    growth = 1.01 ** np.arange(1, 2 + math.log(max(trials / core, 1.0)) / math.log(1.01))
    if high < trials:
        edges = np.unique(np.minimum(np.ceil(mean + core * growth), trials))
        edges = np.concatenate([[high], edges[edges > high]])
        parts.append((edges[1:], edges[:-1] + 1, np.diff(edges)))
    if low > first:
        edges = np.unique(np.maximum(np.floor(mean - core * growth), first))
        edges = np.append(edges[edges < low], low)
        parts.append((edges[:-1], edges[1:] - 1, np.diff(edges)))
    place, inner, size = (np.concatenate(part) for part in zip(*parts, strict=True))
    return place, inner, size


def _log_group_weight(inner: Array, size: Array, trials: Array, prob: float) -> Array:
    """Return log of an upper bound of the probability of a group of counts, from its innermost count."""
    mean, log_odds = trials * prob, math.log(prob) - math.log1p(-prob)
    outward = np.where(inner >= mean, (trials - inner) / (inner + 1), inner / (trials - inner + 1))
    ratio = outward * np.exp(np.where(inner >= mean, log_odds, -log_odds))
    grouped = size > 1
    geometric = np.where(grouped, -np.log1p(-np.where(grouped, np.minimum(ratio, 1 - 1e-9), 0.0)), 0.0)
    return binomial_log_pmf(inner, trials, prob) + np.minimum(np.log(size), geometric)


def spread(law: RatioLaw, std: float, *, accuracy: float, low: float = 0.0, high: float = 1.0) -> RatioLaw:
    """Move every value to the two points around it of a grid on [low, high], its mean kept.

    Convex functions only gain. The grid is fine within 10 `std` of 0. No value moves where `accuracy` asks
    for all of them.
    """
    if accuracy < _EXACT_BELOW:
        return law
    grid = _grid(std, high) if low == 0 else np.concatenate([-_grid(std, -low)[:0:-1], _grid(std, high)])
    cell = np.clip(np.searchsorted(grid, law.value, side="right") - 1, 0, grid.size - 2)
    share = np.clip((law.value - grid[cell]) / (grid[cell + 1] - grid[cell]), 0.0, 1.0)
    top = np.full(grid.size, -np.inf)
    np.maximum.at(top, cell, law.log_weight)
    scaled = np.exp(law.log_weight - top[cell])
    below = np.bincount(cell, scaled * (1 - share), grid.size)
    above = np.bincount(cell, scaled * share, grid.size)
    with np.errstate(divide="ignore"):
        log_weight = top + np.log(below)
        log_weight[1:] = np.logaddexp(log_weight[1:], (top + np.log(above))[:-1])
    kept = log_weight > -np.inf
    return RatioLaw(grid[kept], log_weight[kept])


def _grid(std: float, outer: float) -> Array:
    """Return points from 0 to `outer`: evenly spaced to 10 std, then by 0.5 %, so that logs gain no more."""
    inner = min(10 * std, outer)
    steps = math.ceil(math.log(outer / inner) / 0.005)
    even = np.linspace(0.0, inner, _GRID + 1)
    return np.concatenate([even, np.geomspace(inner, outer, steps + 1)[1:]]) if steps > 0 else even


def binomials_over_blanket(
    parties: int, blanket: float, prob: float, *, reach: float, accuracy: float, folded: bool = False
) -> tuple[Array, Array, Array]:
    """Return counts, trials and log-weights of K ~ Bin(C + 1, prob) with C ~ Bin(parties - 1, blanket).

    `folded`: for prob = 1/2 only counts of half the trials or more; each stands for its mirror image as well.
    """
    counts, log_blanket, bulk = _blanket_counts(parties - 1, blanket, accuracy=accuracy, reach=reach)
    rows = [
        _binomial_points(c + 1, prob, math.ceil((c + 1) / 2) if folded else 0, _CORE if k >= bulk else 0.0)
        for k, c in enumerate(counts.tolist())
    ]
    place, inner, size = (np.concatenate(part) for part in zip(*rows, strict=True))
    of_row = np.array([row[0].size for row in rows])
    trials = np.repeat(counts + 1, of_row)
    log_weight = _log_group_weight(inner, size, trials, prob)
    if folded:
        log_weight += np.where(2 * place > trials, math.log(2), 0.0)
    return place, trials, log_weight + np.repeat(log_blanket, of_row)


def clones_law(
    local_epsilon: float, parties: int, *, blanket: float, max_order: float, accuracy: float
) -> RatioLaw:
    """Return the law of half the loss t >= 0 of the clones pair, under the uniform blanket.

    Given C other clones, K ~ Bin(C + 1, 1/2) and t = artanh(tanh(epsilon0 / 2) |2 K - C - 1| / (C + 1)); the
    divergence of order a is log(1 + E[log_pair_excess(t, a)]) / (a - 1), the same in both directions.
    """
    place, trials, log_weight = binomials_over_blanket(
        parties, blanket, 0.5, reach=(max_order - 1) * local_epsilon, accuracy=accuracy, folded=True
    )
    std = 1 / math.sqrt((parties - 1) * blanket + 1)
    law = spread(RatioLaw(np.abs(2 * place - trials) / trials, log_weight), std, accuracy=accuracy)
    return RatioLaw(_half_loss(law.value, local_epsilon), law.log_weight)


def _half_loss(share: Array, local_epsilon: float) -> Array:
    """Return artanh(tanh(epsilon0 / 2) share), also where the tanh rounds to 1."""
    if local_epsilon < 10:
        return np.arctanh(math.tanh(local_epsilon / 2) * share)
    with np.errstate(divide="ignore"):
        agree, differ = np.log1p(share), np.log1p(-share)
    value: Array = (
        np.logaddexp(local_epsilon + agree, differ) - np.logaddexp(agree, local_epsilon + differ)
    ) / 2
    return value
