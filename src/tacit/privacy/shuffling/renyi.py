"""The Rényi divergence of shuffling n messages, each from an epsilon0-LDP randomizer, by its clones.

A proof, under replace-one, in both directions, for any randomizer with pure level epsilon0 and any data of
the others. A randomizer that is only (epsilon0, delta0)-LDP with delta0 > 0 has no such bound, and messages
of one party that are shuffled apart are several releases. Other bounds, which price nothing, are in
`tacit.literature.shuffling.upper`.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_count, check_non_negative, check_probability
from tacit.privacy.curves import Array
from tacit.privacy.divergences import check_orders, pure_dp_renyi
from tacit.privacy.shuffling.moments import ROUND_UP, clones_law, log_pair_excess, renyi_of_moments

__all__ = ["HOPELESS", "check_shuffle", "clones_renyi"]

HOPELESS = 50.0
"""A local level at which no message is ever a blanket: e^-50."""


def check_shuffle(local_epsilon: float, parties: int, orders: npt.ArrayLike) -> Array:
    """Return the orders as an array; refuse a negative level, no party, or an order that is not > 1."""
    check_non_negative("local_epsilon", local_epsilon)
    check_count("parties", parties)
    found = check_orders(orders)
    if not np.all(np.isfinite(found)):
        raise ParameterError(f"orders must be finite, got {orders!r}.")
    return found


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
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, an order not > 1, `accuracy`
            outside (0, 1), `blanket` outside (0, 2 / (E + 1)].

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
    if local_epsilon == 0 or local_epsilon > HOPELESS:
        return pure_dp_renyi(local_epsilon, alpha)
    law = clones_law(local_epsilon, parties, blanket=share, max_order=float(alpha.max()), accuracy=accuracy)
    excess = law.log_mean(log_pair_excess(law.value, alpha.ravel()[:, None])).reshape(alpha.shape)
    return np.asarray(renyi_of_moments(excess, alpha) * ROUND_UP)
