"""The parameters of SPIDER in Lowy (2023), Algorithm 4, for comparison only: noise, period and rounds.

Its two families of queries spend a whole budget each, and there are R + 1 of them: `spider_overspent` says
by how much. A run never uses this; its noise comes from `privacy.calibrate`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from tacit.errors import ParameterError, check_count, check_positive
from tacit.privacy import PrivacyBudget

__all__ = ["SpiderNoise", "spider_noise", "spider_overspent", "spider_period", "spider_rounds"]


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
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")
    log = -math.log(budget.delta)
    if budget.epsilon > 2 * log:
        raise ParameterError(
            f"epsilon must be at most {2 * log:.6g} in this theorem, got {budget.epsilon!r}."
        )
    unit = 4 * math.sqrt(log) / (budget.epsilon * n)
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


def _root(budget: PrivacyBudget, dim: int, gap: float, smoothness: float) -> float:
    """Return sqrt(d ln(1/delta) Delta beta)."""
    check_count("dim", dim)
    check_positive("gap", gap)
    check_positive("smoothness", smoothness)
    if budget.delta == 0:
        raise ParameterError("delta must be > 0 with Gaussian noise, got 0.0.")
    return math.sqrt(dim * -math.log(budget.delta) * gap * smoothness)
