"""Lower bounds: no analysis that knows only the local level of a randomizer can prove less than this.

They are attained by binary randomized response on data where all others hold the same, with the two
neighbours D = (0, ..., 0) and D' = (0, ..., 0, 1). For tests and plots: never a guarantee. Source:
Girgis (2023), Theorems 5.3.3 and 5.4.2; docs/theory/shuffling.md, section 5.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from tacit.errors import check_choice, check_probability
from tacit.literature.shuffling.upper import log_power_excess
from tacit.privacy.curves import Array
from tacit.privacy.shuffling.binomial import binomial_log_pmf
from tacit.privacy.shuffling.moments import log_sum, renyi_of_moments
from tacit.privacy.shuffling.renyi import check_shuffle

__all__ = ["shuffle_delta_lower", "shuffle_epsilon_lower", "shuffle_renyi_lower"]

_EVERY_COUNT = 200_000  # up to here no count is left out
_WIDEST = 1e6
_AT_ONCE = 1 << 20
_LARGEST_LEVEL = 20.0  # lower bounds rise with the level; 1 - e^-20 keeps its digits


def _ratios(local_epsilon: float, parties: int, rate: float, deviations: float) -> tuple[Array, Array]:
    """Return x and log Pr for j ~ Bin(n, p): the likelihood ratio of D' to D is 1 + x, with E x = 0."""
    local_epsilon = min(local_epsilon, _LARGEST_LEVEL)
    prob = float(special.expit(-local_epsilon))
    mean, std = parties * prob, math.sqrt(parties * prob * (1 - prob))
    if parties <= _EVERY_COUNT:
        low, high = 0, parties
    else:  # what is left out makes a lower bound smaller
        reach = min(deviations * std + 60, _WIDEST)
        low, high = max(math.floor(mean - reach), 0), min(math.ceil(mean + reach), parties)
    count = np.arange(low, high + 1, dtype=np.float64)
    x = rate * (2 * math.sinh(local_epsilon) * (count - mean) / parties)
    lowest = rate * math.expm1(-local_epsilon)
    return np.maximum(x, lowest), binomial_log_pmf(count, float(parties), prob)


def shuffle_renyi_lower(
    local_epsilon: float,
    parties: int,
    orders: npt.ArrayLike,
    *,
    rate: float = 1.0,
    direction: str = "worst",
) -> Array:
    """Return lower bounds on what any bound on shuffling can prove at Rényi orders. Not a guarantee.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Real orders > 1, any shape.
        rate: Chance that the one who changes is in the (fixed-size, hidden) sample that is shuffled.
        direction: "forward" is D_a(M(D') || M(D)), (5.9) of Girgis (2023); "reverse" the other one, never
            smaller where it was tried and much larger at large orders; "worst" the larger of both.

    Returns:
        Lower bounds, shape of `orders`.

    Raises:
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, an order not > 1, `rate`
            outside [0, 1], an unknown direction.

    Reference:
        Girgis (2023), Theorems 5.3.3 and 5.4.2, evaluated as the mean of a power, not by central moments,
        which cancel.

    Example:
        >>> shuffle_renyi_lower(3.0, 1000, 64.0, direction="forward").round(4).item()
        0.3681
        >>> shuffle_renyi_lower(3.0, 1000, 64.0).round(4).item()
        2.2288
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_probability("rate", rate)
    check_choice("direction", direction, ("worst", "forward", "reverse"))
    if local_epsilon == 0 or rate == 0:
        return np.zeros(alpha.shape)
    found = np.zeros(alpha.size)
    # The tails weigh up to e^{(a - 1) loss}: 30 deviations and the tilt of the largest order.
    tilt = float(alpha.max()) * 2 * math.sinh(min(local_epsilon, _LARGEST_LEVEL)) * rate / math.sqrt(parties)
    x, log_weight = _ratios(local_epsilon, parties, rate, 30 + min(tilt, 1e3))
    step = max(_AT_ONCE // x.size, 1)
    for first in range(0, alpha.size, step):
        a = alpha.ravel()[first : first + step, None]
        powers = {"forward": [a], "reverse": [1 - a], "worst": [a, 1 - a]}[direction]
        excess = [log_sum(log_power_excess(x, power) + log_weight) for power in powers]
        found[first : first + step] = renyi_of_moments(np.maximum.reduce(excess), a[:, 0])
    return found.reshape(alpha.shape)


def shuffle_delta_lower(local_epsilon: float, parties: int, epsilon: float, *, rate: float = 1.0) -> float:
    """Return the delta that randomized response on equal data has at `epsilon`. Not a guarantee.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        epsilon: >= 0.
        rate: Chance that the one who changes is in the sample that is shuffled.

    Raises:
        ParameterError: As `shuffle_renyi_lower`.

    Reference:
        Bin(n, p) against Bin(n - 1, p) + Bern(1 - p), both directions:
        docs/theory/shuffling.md, section 5.
    """
    check_shuffle(local_epsilon, parties, 2.0)
    check_probability("rate", rate)
    if local_epsilon == 0:
        return 0.0
    return _delta(*_ratios(local_epsilon, parties, rate, 40.0), epsilon)


def _delta(x: Array, log_weight: Array, epsilon: float) -> float:
    """Return the larger hockey-stick divergence of the weights and the weights times 1 + x."""
    weight, a = np.exp(log_weight), math.exp(min(epsilon, 700.0))
    forward = float(weight @ np.maximum(1 + x - a, 0.0))
    reverse = float(weight @ np.maximum(1 - a * (1 + x), 0.0))
    return max(forward, reverse)


def shuffle_epsilon_lower(local_epsilon: float, parties: int, delta: float, *, rate: float = 1.0) -> float:
    """Return an epsilon below which no bound on one shuffle can be at `delta`. Not a guarantee.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        delta: In (0, 1).
        rate: Chance that the one who changes is in the sample that is shuffled.

    Raises:
        ParameterError: As `shuffle_renyi_lower`; `delta` outside (0, 1).

    Reference:
        docs/theory/shuffling.md, section 5.

    Example:
        >>> round(shuffle_epsilon_lower(1.0, 1000, 1e-5), 6)
        0.105373
    """
    check_shuffle(local_epsilon, parties, 2.0)
    check_probability("delta", delta, low_open=True, high_open=True)
    check_probability("rate", rate)
    if local_epsilon == 0:
        return 0.0
    x, log_weight = _ratios(local_epsilon, parties, rate, 40.0)
    top = max(math.log1p(float(x.max())), -math.log1p(float(x.min())))
    if _delta(x, log_weight, 0.0) <= delta:
        return 0.0
    root = float(
        optimize.brentq(
            lambda e: math.log(max(_delta(x, log_weight, e), 1e-300) / delta),
            0.0,
            top,
            xtol=1e-12,
            rtol=1e-12,
        )
    )
    return max(root * (1 - 1e-9) - 1e-12, 0.0)
