"""Upper bounds where a hidden sample is shuffled: k of n parties, s of the m records of each.

All are proofs under replace-one, for samples of fixed size that neither the server nor a colluder sees; with
the sizes public. Without sampling they are those of `tacit.literature.shuffling.upper`.
Source: Girgis (2023), Section 5.4; Girgis, Data and Diggavi (2021), NeurIPS.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import check_choice, check_count, check_probability
from tacit.literature.shuffling.closed_forms import at_whole_orders, log_amplitude, log_moment_sum
from tacit.literature.shuffling.upper import METHODS, log_power_excess, reduction_law
from tacit.privacy.curves import Array, amplified
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.shuffling.moments import ROUND_UP, renyi_of_moments
from tacit.privacy.shuffling.renyi import check_shuffle

__all__ = [
    "VARIANTS",
    "check_sample",
    "item_reduction_renyi",
    "subsampled_renyi",
    "ternary_shuffle",
    "two_level_renyi",
]

VARIANTS = ("best", "tight", "printed")
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
    check_choice("variant", variant, VARIANTS)
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


def ternary_shuffle(
    local_epsilon: float, parties: int, powers: npt.ArrayLike, *, same_data: bool = False
) -> Array:
    """Return logs of bounds on E_r |(p - q) / r|^lambda of a shuffle, for mutually neighbouring p, q, r.

    `tacit.privacy.renyi_sampling.rdp_from_ternary` turns them into `subsampled_renyi(variant="printed")`.

    Args:
        local_epsilon: Pure level of one message, > 0.
        parties: Messages in the shuffle, >= 1.
        powers: Whole powers lambda >= 2, any shape.
        same_data: Whether all others hold the same (Theorem 5.4.6): no blanket is needed then.

    Raises:
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, a power not > 1.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer.

    Reference:
        Girgis (2023), Theorems 5.4.4 to 5.4.6; (5.43) with the number of blankets, as in Theorem 5.4.1.
    """
    at = check_shuffle(local_epsilon, parties, powers)
    if local_epsilon == 0:
        return np.full(at.shape, -np.inf)
    log_e1, log_w = log_amplitude(local_epsilon)
    over = math.exp(-local_epsilon)
    count = parties if same_data else math.floor((parties - 1) * over / 2) + 1

    second = math.log(4) + 2 * log_e1 - local_epsilon - math.log(count)
    higher = np.log(at) + special.gammaln(at / 2) + at / 2 * (math.log(2) + 2 * log_w - math.log(count))
    main = np.where(at == 2, second, higher)
    return main if same_data else np.logaddexp(main, at * log_w - (parties - 1) * over / 8)


def two_level_renyi(
    local_epsilon: float,
    *,
    clients: int,
    sampled_clients: int,
    records: int,
    sampled_records: int,
    orders: npt.ArrayLike,
    variant: str = "best",
) -> Array:
    """Return Rényi bounds for one record, where k of n clients each send messages on s of their m records.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        clients: n.
        sampled_clients: k, drawn uniformly.
        records: m, of each client; the smallest if they differ.
        sampled_records: s, drawn uniformly at each client; every one is a message of its own.
        orders: Orders > 1, any shape; between whole ones the bound is interpolated.
        variant: As `subsampled_renyi`.

    Raises:
        ParameterError: As `subsampled_renyi`; a sample larger than what it is drawn from.

    Guarantee:
        Proof, replace-one record, any epsilon0-LDP randomizer. With s = 1 it is the bound at the rate k / (n
        m); with s > 1 only the draw of records amplifies epsilon, the draw of clients its moments.

    Reference:
        Derived here from the couplings (C.7) and (C.8) of Girgis (2023); (C.8) needs s = 1.
    """
    check_sample(clients, sampled_clients, records, sampled_records)
    if sampled_records == 1:
        rate = sampled_clients / clients / records
        return subsampled_renyi(local_epsilon, sampled_clients, rate, orders, variant=variant)
    messages = sampled_clients * sampled_records
    alpha = check_shuffle(local_epsilon, messages, orders)
    check_choice("variant", variant, VARIANTS)
    if local_epsilon == 0:
        return np.zeros(alpha.shape)
    within = sampled_records / records
    chosen = math.log(sampled_clients / clients)
    # Given that the client is drawn its records are; if it is not, nothing is learnt: a mixture of moments.
    capped = _mixed(pure_dp_renyi(amplified(local_epsilon, within), alpha), alpha, chosen)
    if local_epsilon > _HOPELESS:
        return capped
    tight = variant != "printed"

    def at_whole(whole: Array) -> Array:
        excess = _log_excess(whole, local_epsilon, messages, within, tight=tight)
        return renyi_of_moments(excess + chosen, whole)

    found = at_whole_orders(at_whole, alpha) * ROUND_UP
    if variant != "best":
        return found
    shuffled = METHODS["best"](local_epsilon, messages, alpha)
    return np.asarray(np.minimum.reduce([found, shuffled, capped]))


def _mixed(divergence: Array, orders: Array, log_share: float) -> Array:
    """Return log(1 + share (e^{(a - 1) d} - 1)) / (a - 1), rounded up."""
    moment = (orders - 1) * divergence
    with np.errstate(divide="ignore"):
        log_excess = moment + np.log(-np.expm1(-moment))
    return renyi_of_moments(log_excess + log_share, orders) * ROUND_UP


def item_reduction_renyi(
    local_epsilon: float, parties: int, records: int, orders: npt.ArrayLike, *, accuracy: float = 1e-3
) -> Array:
    """Return Rényi bounds for one record where all n clients send a message on one of their m records.

    The reduction of `reduction_renyi` with the blanket of epsilon0 and the pair of ln(1 + (E - 1) / m).

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Clients n, each with one message.
        records: m, of each client; the smallest if they differ.
        orders: Real orders > 1, any shape.
        accuracy: As `reduction_renyi`.

    Raises:
        ParameterError: As `reduction_renyi`; `records` < 1.

    Guarantee:
        Proof, replace-one record, any epsilon0-LDP randomizer.

    Reference:
        Derived here: a message on one of m records, one of which differs, has the level ln(1 + (E - 1) / m),
        and Theorem 5.3.4 of Girgis (2023) uses of the others only that they are epsilon0-close.
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_count("records", records)
    check_probability("accuracy", accuracy, low_open=True, high_open=True)
    inner = amplified(local_epsilon, 1 / records)
    if local_epsilon == 0 or local_epsilon > _HOPELESS:
        return pure_dp_renyi(inner, alpha) * ROUND_UP
    law = reduction_law(
        local_epsilon, parties, max_order=float(alpha.max()), accuracy=accuracy, inner_epsilon=inner
    )
    excess = law.log_mean(log_power_excess(law.value, alpha.ravel()[:, None])).reshape(alpha.shape)
    return renyi_of_moments(excess, alpha) * ROUND_UP
