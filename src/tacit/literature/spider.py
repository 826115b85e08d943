"""The parameters of SPIDER in Lowy (2023), Algorithm 4, for comparison only: noise, period and rounds.

Its two families of queries spend a whole budget each, and there are R + 1 of them: `spider_overspent` says
by how much. A run never uses this; its noise comes from `privacy.calibrate`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.errors import ParameterError, check_count, check_positive
from tacit.literature.silo_learning import check_delta, check_range
from tacit.privacy import PrivacyBudget

__all__ = [
    "SpiderNoise",
    "shuffled_spider_budgets",
    "spider_noise",
    "spider_overspent",
    "spider_period",
    "spider_rounds",
]


class SpiderNoise(NamedTuple):
    """Standard deviations per coordinate of one silo's mean.

    Attributes:
        gradient: sigma_1.
        change: sigma_2, of a difference over the distance of its points.
        largest: Bound on the noise of a difference, hat sigma_2.
    """

    gradient: float
    change: float
    largest: float


def spider_noise(
    n: int,
    budget: PrivacyBudget,
    *,
    rounds: int,
    period: int,
    lipschitz: float = 1.0,
    smoothness: float = 1.0,
) -> SpiderNoise:
    """Return the printed noise; it is not sound for every budget.

    sigma_1^2 = 16 L^2 ln(1/delta) max(R/q, 1) / (eps n)^2, sigma_2^2 = 16 beta^2 R ln(1/delta) / (eps n)^2,
    hat sigma_2^2 = 64 L^2 R ln(1/delta) / (eps n)^2.

    Args:
        n: Records of a silo.
        budget: (eps, delta).
        rounds: R; there are R + 1 queries.
        period: q.
        lipschitz: L.
        smoothness: beta.

    Raises:
        ParameterError: q < 1, delta = 0, or eps > 2 ln(1/delta).

    Example:
        >>> noise = spider_noise(1000, PrivacyBudget(1.0, 1e-6), rounds=50, period=4)
        >>> [round(std, 7) for std in noise]
        [0.0525652, 0.1051304, 0.2102609]
    """
    check_count("n", n)
    check_count("rounds", rounds)
    check_count("period", period)
    eps, delta = check_delta(budget)
    log = -math.log(delta)
    check_range(eps, 2 * log)
    unit = 4 * math.sqrt(log) / (eps * n)
    root = math.sqrt(rounds)
    first = unit * lipschitz * math.sqrt(max(rounds / period, 1))
    return SpiderNoise(first, unit * smoothness * root, 2 * unit * lipschitz * root)


def spider_overspent(rounds: int, period: int) -> float:
    """Return how many times the budget, as zCDP, the printed noise spends.

    n_1 / max(R/q, 1) + n_2 / R, with n_1 = floor(R/q) + 1 gradients and n_2 = R + 1 - n_1 differences.

    Example:
        >>> [round(spider_overspent(R, q), 2) for R, q in ((25, 1), (25, 2), (50, 2), (50, 4), (100, 8))]
        [1.04, 1.56, 1.54, 1.8, 1.92]
    """
    check_count("rounds", rounds)
    check_count("period", period)
    gradients = rounds // period + 1
    return gradients / max(rounds / period, 1) + (rounds + 1 - gradients) / rounds


def spider_period(
    n: int,
    budget: PrivacyBudget,
    *,
    silos: int,
    dim: int,
    gap: float,
    lipschitz: float = 1.0,
    smoothness: float = 1.0,
    everybody: bool = True,
) -> int:
    """Return q = floor((eps n L sqrt(M) / (32 sqrt(d ln(1/delta) Delta beta)))^(2/3)), with the printed min.

    The 32 is what q <= 1 / (eta^2 tau_2^2) needs beside the printed order of magnitude. Where not all silos
    answer, q is at most n M.

    Raises:
        ParameterError: q < 1: the theorem then returns the start.
    """
    scale = budget.epsilon * n * lipschitz * math.sqrt(silos) / _root(budget, dim, gap, smoothness)
    period = math.pow(scale / 32, 2 / 3)
    period = period if everybody else min(period, n * silos)
    if period < 1:
        raise ParameterError(f"the period q must be at least 1, got {period:.4g} from these facts.")
    return math.floor(period)


def spider_rounds(
    n: int,
    budget: PrivacyBudget,
    *,
    period: int,
    silos: int,
    dim: int,
    gap: float,
    lipschitz: float = 1.0,
    smoothness: float = 1.0,
) -> int:
    """Return R = ceil(eps n sqrt(M q) sqrt(Delta beta) / (L sqrt(d ln(1/delta))))."""
    check_count("period", period)
    over = gap * smoothness
    scale = budget.epsilon * n * math.sqrt(silos * period) * over / _root(budget, dim, gap, smoothness)
    return math.ceil(scale / lipschitz)


def shuffled_spider_budgets(
    n: int, budget: PrivacyBudget, *, batch: int, rounds: int, period: int, mended: bool = False
) -> tuple[PrivacyBudget, PrivacyBudget]:
    """Return what Algorithm 24 lets one shuffled mean of gradients spend, and one of differences, all silos.

    With e = eps n / (4 K sqrt(2 ln(1/delta))): eps_1 = e max{1, sqrt(q/R)} and eps_2 = e / sqrt(R). R / q
    gradients need min in place of the printed max, and each family spends the whole budget: `mended` has
    both. Line 12 prints n n for n N. delta q / (2 R), for at least one gradient, and delta / (2 R).

    Args:
        n: Records of a silo.
        budget: (eps, delta).
        batch: K, records of a silo per round.
        rounds: R.
        period: q.
        mended: Whether to return what is proven.

    Raises:
        ParameterError: delta = 0, K > n, or a level above 1, outside the theorem.

    Example:
        >>> facts = dict(batch=1000, rounds=64, period=4)
        >>> printed = shuffled_spider_budgets(1000, PrivacyBudget(1.0, 1e-6), **facts)
        >>> right = shuffled_spider_budgets(1000, PrivacyBudget(1.0, 1e-6), **facts, mended=True)
        >>> round(printed[0].epsilon / right[0].epsilon, 6)  # 2 sqrt(R / q)
        8.0
    """
    for name, count in (("n", n), ("rounds", rounds), ("period", period)):
        check_count(name, count)
    check_count("batch", batch, high=n)
    eps, delta = check_delta(budget)
    whole = eps * n / (4 * batch * math.sqrt(-2 * math.log(delta))) / (2 if mended else 1)
    share = math.sqrt(period / rounds)
    gradient, change = whole * (min if mended else max)(1.0, share), whole / math.sqrt(rounds)
    if max(gradient, change) > 1:
        raise ParameterError(f"epsilon must give levels of at most 1 in this theorem, got {eps!r}.")
    return (
        PrivacyBudget(gradient, delta * min(period / (2 * rounds), 0.5)),
        PrivacyBudget(change, delta / (2 * rounds)),
    )


def _root(budget: PrivacyBudget, dim: int, gap: float, smoothness: float) -> float:
    """Return sqrt(d ln(1/delta) Delta beta)."""
    check_count("dim", dim)
    check_positive("gap", gap)
    check_positive("smoothness", smoothness)
    _, delta = check_delta(budget)
    return math.sqrt(dim * -math.log(delta) * gap * smoothness)
