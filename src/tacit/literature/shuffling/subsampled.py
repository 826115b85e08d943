"""Upper bounds where a hidden sample is shuffled: k of n parties, or one record of each.

All are proofs under replace-one, for samples of fixed size that neither the server nor a colluder sees; with
the sizes public. Without sampling they are those of `tacit.literature.shuffling.upper`.
Source: Girgis (2023), Section 5.4; Girgis, Data and Diggavi (2021), NeurIPS.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.errors import check_choice, check_count, check_probability
from tacit.literature.shuffling.closed_forms import at_whole_orders, log_amplitude, log_moment_sum
from tacit.literature.shuffling.upper import METHODS, log_power_excess
from tacit.privacy.curve_sampling import amplified
from tacit.privacy.curves import Array
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.shuffling.moments import ROUND_UP, renyi_of_moments
from tacit.privacy.shuffling.renyi import check_shuffle

__all__ = [
    "check_sample",
    "subsampled_renyi",
]

_VARIANTS = ("best", "tight", "printed")
_HOPELESS = 50.0


def check_sample(clients: int, sampled_clients: int, records: int, sampled_records: int) -> None:
    """Refuse samples larger than what they are drawn from."""
    check_count("clients", clients)
    check_count("sampled_clients", sampled_clients, high=clients)
    check_count("records", records)
    check_count("sampled_records", sampled_records, high=records)


def _log_excess(whole: Array, local_epsilon: float, parties: int, rate: float, *, tight: bool) -> Array:
    """Return the log of the moment of whole orders minus 1, by Theorem 5.4.1."""
    log_e1, log_w = log_amplitude(local_epsilon)
    log_rate, over = math.log(rate), math.exp(-local_epsilon)
    blankets = math.floor((parties - 1) * over / 2) + 1
    # |p - q| <= (E - 1) r for three laws that are pairwise epsilon0-close; Girgis (2023) has w = E - 1 / E.
    log_width = log_e1 if tight else log_w
    log_variance = math.log(4) + 2 * log_e1 - local_epsilon
    if tight:
        log_variance = min(log_variance, 2 * log_e1)
    second = np.log(whole * (whole - 1) / 2) + 2 * log_rate + log_variance - math.log(blankets)
    log_scale = log_rate + log_width + 0.5 * (math.log(2) - math.log(blankets))
    higher = log_moment_sum(whole, np.array([log_scale]))[0]
    few = log_power_excess(np.array(math.exp(log_rate + log_width)), whole) - (parties - 1) * over / 8
    return np.asarray(np.logaddexp(np.logaddexp(second, higher), few))


def subsampled_renyi(
    local_epsilon: float, parties: int, rate: float, orders: npt.ArrayLike, *, variant: str = "best"
) -> Array:
    """Return upper bounds on the Rényi divergences of shuffling the messages of a hidden sample.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, k >= 1: the size of the sample.
        rate: Chance that the one who is protected is in the sample: k / n for parties, k / (n m) for one of
            the m records of each, where each sampled party sends a message about one record. In [0, 1].
        orders: Orders > 1, any shape; between whole ones the bound is interpolated.
        variant: "printed"; "tight", with sharper constants; "best", also the least of no sampling at all and
            of the amplified pure level. The first two are not cut off.

    Raises:
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, `rate` outside [0, 1], an order
            not > 1, an unknown variant.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer, no condition.

    Reference:
        Girgis (2023), Theorem 5.4.1. "tight" is derived here: of three laws that are pairwise epsilon0-close,
        |p - q| <= (E - 1) r.

    Example:
        >>> subsampled_renyi(1.0, 1000, 0.01, [2.0, 8.0], variant="printed").round(14).tolist()
        [2.36121736e-06, 9.75896311e-06]
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_probability("rate", rate)
    check_choice("variant", variant, _VARIANTS)
    if local_epsilon == 0 or rate == 0:
        return np.zeros(alpha.shape)
    capped = pure_dp_renyi(amplified(local_epsilon, rate), alpha) * ROUND_UP
    if local_epsilon > _HOPELESS:
        return capped
    tight = variant != "printed"

    def at_whole(whole: Array) -> Array:
        return renyi_of_moments(_log_excess(whole, local_epsilon, parties, rate, tight=tight), whole)

    found = at_whole_orders(at_whole, alpha) * ROUND_UP
    if variant != "best":
        return found
    # Joint convexity: telling nobody who was sampled cannot hurt.
    return np.asarray(np.minimum.reduce([found, METHODS["best"](local_epsilon, parties, alpha), capped]))
