"""Upper bounds on the Rényi divergence of shuffling n messages, each from an epsilon0-LDP randomizer.

All are proofs, under replace-one, in both directions, for any randomizer with pure level epsilon0 and any
data of the others. `shuffle_renyi` is the least of

    `clones_renyi`       the pair of Feldman, McMillan and Talwar (2022): small orders, large epsilon0
    `reduction_renyi`    the reduction of Girgis (2023), summed exactly: large orders
    the pure level       (`pure_dp_renyi`)

and knows the closed forms by name, which are never less. Source: Girgis (2023), Section 5.3;
docs/theory/shuffling.md, section 3.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import PrivacyWarning, check_choice, check_probability
from tacit.literature.shuffling.closed_forms import chernoff_renyi, simplified_renyi, subgaussian_renyi
from tacit.privacy.curves import Array
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.shuffling.moments import (
    ROUND_UP,
    RatioLaw,
    binomials_over_blanket,
    renyi_of_moments,
    spread,
)
from tacit.privacy.shuffling.renyi import HOPELESS, check_shuffle, clones_renyi

__all__ = ["METHODS", "log_power_excess", "reduction_renyi", "shuffle_renyi"]

_MEANINGLESS = 30.0  # a local level that hides nothing


def log_power_excess(x: Array, power: Array) -> Array:
    """Return log((1 + x)^power - 1 - power x), convex and >= 0 for x > -1 unless 0 < power < 1."""
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        log_ratio = np.log1p(x)
        exponent = np.asarray(power * log_ratio)
        # Written with power - 1, so that orders near 1 keep their digits.
        value: Array = np.asarray((1 + x) * np.expm1((power - 1) * log_ratio) - (power - 1) * x)
        value = np.asarray(np.log(np.maximum(value, 0.0)))
        near = (np.abs(power * x) < 1e-3) & (np.abs(x) < 1e-3)
        every_a, every_x = np.broadcast_arrays(power, x)
        far = (exponent > 30) & ~near
        a, r, most = every_a[far], every_x[far], exponent[far]
        value[far] = most + np.log1p(-(1 + a * r) * np.exp(-most))
        # Near 1 the power differs from its tangent by the Taylor series only.
        a, r = every_a[near], every_x[near]
        series = 1 + (a - 4) * r / 5 * (1 + (a - 5) * r / 6)
        series = 1 + (a - 2) * r / 3 * (1 + (a - 3) * r / 4 * series)
        value[near] = np.log(a * (a - 1) / 2) + 2 * np.log(np.abs(r)) + np.log(np.maximum(series, 0.5))
    return value


def _reduction_law(local_epsilon: float, parties: int, *, max_order: float, accuracy: float) -> RatioLaw:
    """Return the law of x, one less than the likelihood ratio of the same-data pair (Girgis 2023, (5.33)).

    m ~ Bin(n - 1, e^-epsilon0) others hold what the first one held; N = m + 1 messages follow the two-point
    law with p = 1 / (1 + e^epsilon0), of which j ~ Bin(N, p) gives x = 2 sinh(epsilon0) (j / N - p).

    Args:
        local_epsilon: epsilon0 of the messages.
        parties: n.
        max_order: The largest order that will be asked for.
        accuracy: Relative width of the buckets.
    """
    prob, slope = float(special.expit(-local_epsilon)), 2 * math.sinh(local_epsilon)
    blanket = math.exp(-local_epsilon)
    place, trials, log_weight = binomials_over_blanket(
        parties, blanket, prob, reach=(max_order - 1) * local_epsilon, accuracy=accuracy
    )
    # The ends are e^epsilon0 - 1 and e^-epsilon0 - 1; round-off must not pass them.
    lowest, highest = math.expm1(-local_epsilon), math.expm1(local_epsilon)
    law = RatioLaw(np.clip(slope * (place - trials * prob) / trials, lowest, highest), log_weight)
    variance = slope**2 * prob * (1 - prob) / ((parties - 1) * blanket + 1)
    return spread(law, math.sqrt(variance), accuracy=accuracy, low=lowest, high=highest)


def reduction_renyi(
    local_epsilon: float, parties: int, orders: npt.ArrayLike, *, accuracy: float = 1e-3
) -> Array:
    """Return the exact value of what the closed bounds bound: the same-data pair under a binomial blanket.

    With N - 1 ~ Bin(n - 1, 1 / E) and j ~ Bin(N, 1 / (E + 1)) it is
    ln E[((E j + (N - j) / E) / N)^a] / (a - 1): never above `chernoff_renyi` or `subgaussian_renyi`.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Real orders > 1, any shape.
        accuracy: By what part the sum may be rounded up to be quick; below 1e-5 every term is kept.

    Raises:
        ParameterError: As `chernoff_renyi`; `accuracy` outside (0, 1).

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer, no condition.

    Cost:
        About 40 ms for 100 orders at n = 1e6.

    Reference:
        Girgis (2023), Theorem 5.3.4 and Lemma D.2.1; docs/theory/shuffling.md, section 3. Randomized response
        is the worst: its likelihood ratio is the largest in convex order between 1 / E and E.

    Example:
        >>> float(reduction_renyi(1.0, 1000, 2.0, accuracy=1e-6).round(9))
        0.002948142
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_probability("accuracy", accuracy, low_open=True, high_open=True)
    if local_epsilon == 0 or local_epsilon > HOPELESS:
        return pure_dp_renyi(local_epsilon, alpha)
    law = _reduction_law(local_epsilon, parties, max_order=float(alpha.max()), accuracy=accuracy)
    column = alpha.ravel()[:, None]
    excess = law.log_mean(log_power_excess(law.value, column)).reshape(alpha.shape)
    return np.asarray(renyi_of_moments(excess, alpha) * ROUND_UP)


def _least(local_epsilon: float, parties: int, orders: Array) -> Array:
    """Return the least bound; the closed forms are not asked, the reduction is never above them."""
    return np.asarray(
        np.minimum.reduce(
            [
                clones_renyi(local_epsilon, parties, orders),
                reduction_renyi(local_epsilon, parties, orders),
                pure_dp_renyi(local_epsilon, orders) * ROUND_UP,
            ]
        )
    )


METHODS: dict[str, Callable[[float, int, Array], Array]] = {
    "best": _least,
    "clones": clones_renyi,
    "reduction": reduction_renyi,
    "chernoff": chernoff_renyi,
    "subgaussian": subgaussian_renyi,
    "simplified": simplified_renyi,
    "pure": lambda local_epsilon, _parties, orders: pure_dp_renyi(local_epsilon, orders),
}
"""What `shuffle_renyi` may be asked for."""


def shuffle_renyi(
    local_epsilon: float, parties: int, orders: npt.ArrayLike, *, method: str = "best"
) -> Array:
    """Return upper bounds on the Rényi divergences of shuffling one message of each of n parties.

    Args:
        local_epsilon: Pure level of one message, >= 0. The exact level: a bound of it gives a bound. Above 30
            a warning says that messages hide nothing on their own.
        parties: Honest, delivered messages in the shuffle, n >= 1.
        orders: Real orders > 1, any shape.
        method: "best" (the least of all), or one of `METHODS`; none is ever above the pure level.

    Returns:
        Bounds, shape of `orders`, rounded up. They add up over rounds (Mironov 2017, Proposition 1).

    Raises:
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, an order not > 1, an unknown
            method, the condition of "simplified" not met.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer.

    Cost:
        About 60 ms for 100 orders at n = 1e6.

    Reference:
        docs/theory/shuffling.md, section 3.

    Example:
        >>> shuffle_renyi(1.0, 10_000, [2.0, 32.0]).round(5).tolist()
        [0.00023, 0.00372]
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_choice("method", method, METHODS)
    if local_epsilon > _MEANINGLESS:
        warnings.warn(
            f"local_epsilon={local_epsilon!r} hides nothing: a party relies on the shuffler alone.",
            PrivacyWarning,
            stacklevel=2,
        )
    bound = METHODS[method](local_epsilon, parties, alpha)
    return np.minimum(bound, pure_dp_renyi(local_epsilon, alpha) * ROUND_UP)
