"""Upper bounds on the Rényi divergence of shuffling n messages, each from an epsilon0-LDP randomizer.

All are proofs, under replace-one, in both directions, for any randomizer with pure level epsilon0 and any
data of the others. `shuffle_renyi` is the least of

    `clones_renyi`       the pair of Feldman, McMillan and Talwar (2022): small orders, large epsilon0
    `reduction_renyi`    the reduction of Girgis (2023), summed exactly: large orders
    the pure level       (`pure_dp_renyi`)

and knows the closed forms by name, which are never less. A randomizer that is only (epsilon0, delta0)-LDP
with delta0 > 0 has none of these bounds, and messages of one party that are shuffled apart are several
releases. Source: Girgis (2023), Section 5.3; docs/theory/shuffling.md, section 3.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, PrivacyWarning, check_choice, check_probability
from tacit.privacy.curves import Array
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.shuffling.closed_forms import (
    check_shuffle,
    chernoff_renyi,
    simplified_renyi,
    subgaussian_renyi,
)
from tacit.privacy.shuffling.moments import (
    ROUND_UP,
    clones_law,
    log_pair_excess,
    log_power_excess,
    reduction_law,
    renyi_of_moments,
)

__all__ = ["METHODS", "clones_renyi", "reduction_renyi", "shuffle_renyi"]

_MEANINGLESS = 30.0  # a local level that hides nothing
_HOPELESS = 50.0  # e^-50: no message is ever a blanket


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
    if local_epsilon == 0 or local_epsilon > _HOPELESS:
        return pure_dp_renyi(local_epsilon, alpha)
    law = reduction_law(local_epsilon, parties, max_order=float(alpha.max()), accuracy=accuracy)
    column = alpha.ravel()[:, None]
    excess = law.log_mean(log_power_excess(law.value, column)).reshape(alpha.shape)
    return np.asarray(renyi_of_moments(excess, alpha) * ROUND_UP)


def clones_renyi(
    local_epsilon: float,
    parties: int,
    orders: npt.ArrayLike,
    *,
    blanket: float | None = None,
    accuracy: float = 1e-3,
) -> Array:
    """Return the Rényi divergence of the clones pair: how many others look like the one who is protected.

    C ~ Bin(n - 1, blanket) others send a fair bit; K = Bin(C, 1/2) + Bern(1 - p) against Bin(C, 1/2) +
    Bern(p), p = 1 / (E + 1).

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Real orders > 1, any shape.
        blanket: Chance that a party is a clone. By default e^-epsilon0, which every epsilon0-LDP randomizer
            has; 2 / (E + 1) is proven only where a report is a single message of binary randomized response.
        accuracy: By what part the sum may be rounded up to be quick; below 1e-5 every term is kept.

    Raises:
        ParameterError: As `chernoff_renyi`; `accuracy` outside (0, 1), `blanket` outside (0, 2 / (E + 1)].

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer (with the default blanket), no condition.

    Reference:
        Feldman, McMillan and Talwar (2022), arXiv:2012.12803, Theorem 3.1; docs/theory/shuffling.md,
        section 1.

    Example:
        >>> float(clones_renyi(1.0, 1000, 2.0, accuracy=1e-6).round(9))
        0.002323335
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_probability("accuracy", accuracy, low_open=True, high_open=True)
    share = math.exp(-local_epsilon) if blanket is None else float(blanket)
    largest = 2 * float(special.expit(-local_epsilon))
    if blanket is not None and not 0 < share <= largest * (1 + 1e-12):
        raise ParameterError(f"blanket must be in (0, 2 / (e^local_epsilon + 1)], got {blanket!r}.")
    if local_epsilon == 0 or local_epsilon > _HOPELESS:
        return pure_dp_renyi(local_epsilon, alpha)
    law = clones_law(local_epsilon, parties, blanket=share, max_order=float(alpha.max()), accuracy=accuracy)
    excess = law.log_mean(log_pair_excess(law.value, alpha.ravel()[:, None])).reshape(alpha.shape)
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
