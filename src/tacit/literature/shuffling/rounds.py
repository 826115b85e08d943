"""Costs of runs of shuffled rounds: on fixed samples (CLDP-SGD), with self-drawn clients (DSS-SGD).

Three routes each: compose the (epsilon, delta) of a round, add up Rényi divergences, or mix the exact curves.
The privacy-loss convolution of the same rounds is `epsilon_of(Repeat(Sampled(Shuffled(...))))` and the
tightest. All are proofs for one record under replace-one, for samples drawn afresh in every round and hidden
from the server. Source: Girgis (2023), Sections 4.3, 4.4 and 5.4.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import check_choice, check_count, check_non_negative, check_probability
from tacit.literature.composition import optimal_composition, strong_composition
from tacit.literature.shuffling.baselines import clones_epsilon
from tacit.literature.shuffling.subsampled import check_sample, subsampled_renyi, two_level_renyi
from tacit.privacy.curves import Array, amplified
from tacit.privacy.divergences import pure_dp_renyi
from tacit.privacy.renyi import RenyiEpsilon, renyi_to_epsilon
from tacit.privacy.shuffling.binomial import binomial_log_pmf
from tacit.privacy.shuffling.moments import ROUND_UP, log_sum, renyi_of_moments
from tacit.privacy.shuffling.pair import ShuffledPair
from tacit.privacy.shuffling.renyi import check_shuffle

__all__ = [
    "WHOLE_ORDERS",
    "RoundEpsilon",
    "cldp_epsilon_composition",
    "cldp_epsilon_renyi",
    "cldp_round",
    "dss_delta_mixture",
    "dss_renyi",
    "dss_round",
]

WHOLE_ORDERS: Array = np.unique(np.concatenate([np.arange(2.0, 257.0), np.geomspace(256, 1e5, 64).round()]))
"""Orders for bounds that are proven at whole ones."""
WHOLE_ORDERS.flags.writeable = False
_MOST_SIZES = 512

Amplification = Callable[[float, int, float], float]
"""Maps (local_epsilon, messages, delta) to the epsilon of one shuffle: `clones_epsilon` or another proof."""


class RoundEpsilon(NamedTuple):
    """What one round costs one record."""

    epsilon: float
    delta: float


def cldp_round(
    local_epsilon: float,
    delta: float,
    *,
    clients: int,
    sampled_clients: int,
    records: int = 1,
    sampled_records: int = 1,
    amplification: Amplification = clones_epsilon,
) -> RoundEpsilon:
    """Return the cost of one round: k of n clients send messages on s of their m records each, all shuffled.

    Args:
        local_epsilon: Pure level of one message.
        delta: What the shuffle of the k s messages may cost, in (0, 1).
        clients: n.
        sampled_clients: k.
        records: m, of each client; the smallest if they differ.
        sampled_records: s.
        amplification: What one shuffle costs.

    Returns:
        (ln(1 + q (e^epsilon - 1)), q delta) with q = k / (n m) for s = 1; for s > 1 epsilon is amplified by s
        / m only, and q = k s / (n m).

    Raises:
        ParameterError: An argument out of its range, a sample larger than what it is drawn from.

    Reference:
        Girgis (2023), Lemma 4.3.1, Appendix C.1 and Remark C.1.1.
    """
    check_sample(clients, sampled_clients, records, sampled_records)
    check_non_negative("local_epsilon", local_epsilon)
    check_probability("delta", delta, low_open=True, high_open=True)
    shuffled = amplification(local_epsilon, sampled_clients * sampled_records, delta)
    rate = sampled_clients / clients * sampled_records / records
    within = rate if sampled_records == 1 else sampled_records / records
    return RoundEpsilon(amplified(shuffled, within) * ROUND_UP, rate * delta)


def cldp_epsilon_composition(
    local_epsilon: float,
    delta: float,
    *,
    rounds: int,
    clients: int,
    sampled_clients: int,
    records: int = 1,
    sampled_records: int = 1,
    method: str = "optimal",
    share: float = 0.5,
    amplification: Amplification = clones_epsilon,
) -> float:
    """Return the epsilon of T rounds at `delta`, by composing the (epsilon, delta) of a round.

    Args:
        local_epsilon: Pure level of one message.
        delta: Of the whole run, in (0, 1).
        rounds: T.
        clients: n.
        sampled_clients: k.
        records: m.
        sampled_records: s.
        method: "optimal" (Kairouz, Oh and Viswanath 2015, exact) or "strong" (Dwork and Roth 2014).
        share: Part of `delta` that the rounds may spend; Girgis (2023) halves it.
        amplification: What one shuffle costs.

    Raises:
        ParameterError: An argument out of its range.

    Reference:
        Girgis (2023), Theorem 4.3.1 (1).

    Example:
        >>> at = dict(rounds=480, clients=60_000, sampled_clients=10_000)
        >>> round(cldp_epsilon_composition(2.0, 1e-5, method="strong", **at), 4)
        4.0389
    """
    check_count("rounds", rounds)
    check_probability("delta", delta, low_open=True, high_open=True)
    check_probability("share", share, low_open=True, high_open=True)
    check_choice("method", method, ("optimal", "strong"))
    check_sample(clients, sampled_clients, records, sampled_records)
    rate = sampled_clients / clients * sampled_records / records
    one = cldp_round(
        local_epsilon,
        min(share * delta / (rate * rounds), 0.5),
        clients=clients,
        sampled_clients=sampled_clients,
        records=records,
        sampled_records=sampled_records,
        amplification=amplification,
    )
    if one.epsilon == 0:
        return 0.0
    if method == "optimal":
        return optimal_composition(one.epsilon, one.delta, rounds, delta).epsilon
    return strong_composition(one.epsilon, one.delta, rounds, (1 - share) * delta).epsilon


def cldp_epsilon_renyi(
    local_epsilon: float,
    delta: float,
    *,
    rounds: int,
    clients: int,
    sampled_clients: int,
    records: int = 1,
    sampled_records: int = 1,
    orders: npt.ArrayLike = WHOLE_ORDERS,
    variant: str = "best",
) -> RenyiEpsilon:
    """Return the epsilon of T rounds at `delta` by Rényi divergences, and the order that gives it.

    Args:
        local_epsilon: Pure level of one message.
        delta: Of the whole run, in (0, 1).
        rounds: T.
        clients: n.
        sampled_clients: k.
        records: m; 1 also protects whole clients that hold one message's worth.
        sampled_records: s.
        orders: Orders > 1 to try, shape (r,).
        variant: As `subsampled_renyi`.

    Raises:
        ParameterError: An argument out of its range.

    Reference:
        Girgis (2023), Theorem 5.4.3, with the rate k / (n m) for one record.
    """
    check_count("rounds", rounds)
    one = two_level_renyi(
        local_epsilon,
        clients=clients,
        sampled_clients=sampled_clients,
        records=records,
        sampled_records=sampled_records,
        orders=orders,
        variant=variant,
    )
    return renyi_to_epsilon(orders, rounds * one, delta)


def _sizes(clients: int, rate: float, reach: float) -> tuple[Array, Array, Array]:
    """Return (first, last, log-weight) of groups of sizes K ~ Bin(n, q); `reach` widens the middle.

    They cover all sizes. The groups at the ends hold the tails, whose weight is bounded by the pmf at their
    inner end.
    """
    if rate == 1:
        at = np.array([float(clients)])
        return at, at, np.zeros(1)
    mean, std = clients * rate, math.sqrt(clients * rate * (1 - rate))
    width = math.sqrt(2 * (reach + 40)) * std + 2 * (reach + 40) / 3  # Bernstein
    low, high = max(math.floor(mean - width), 0), min(math.ceil(mean + width), clients)
    size = np.arange(low, high + 1, dtype=np.float64)
    log_pmf = binomial_log_pmf(size, float(clients), rate)
    starts = np.arange(0, size.size, math.ceil(size.size / _MOST_SIZES))
    ends = np.append(starts[1:], size.size)
    weight = np.array([float(log_sum(log_pmf[a:b])) for a, b in zip(starts, ends, strict=True)])
    first, last = size[starts], size[ends - 1]
    if low > 0:
        ratio = low * (1 - rate) / ((clients - low + 1) * rate)
        tail = log_pmf[0] + math.log(ratio) - math.log1p(-ratio)
        first, last, weight = np.append(0.0, first), np.append(low - 1.0, last), np.append(tail, weight)
    if high < clients:
        ratio = (clients - high) * rate / ((high + 1) * (1 - rate))
        tail = log_pmf[-1] + math.log(ratio) - math.log1p(-ratio)
        first, last = np.append(first, high + 1.0), np.append(last, float(clients))
        weight = np.append(weight, tail)
    return first, last, weight


def dss_round(
    local_epsilon: float,
    delta: float,
    *,
    clients: int,
    rate: float,
    records: int = 1,
    spread: float = 0.5,
    tails: str = "exact",
    amplification: Amplification = clones_epsilon,
) -> RoundEpsilon:
    """Return the cost of one round in which every client joins with probability q, with one of its m records.

    The number K of those who join is public. Between l = (1 - spread) q n and u = (1 + spread) q n the round
    is ln(1 + (u / (n m)) (e^{epsilon(l)} - 1))-DP; what is outside is paid for in delta.

    Args:
        local_epsilon: Pure level of one message.
        delta: What the shuffle of K messages may cost, in (0, 1).
        clients: n.
        rate: q in (0, 1].
        records: m.
        spread: In (0, 1); Girgis (2023) takes 1/2.
        tails: "exact" binomial tails, each size with its own epsilon, or "thesis", the closed forms of Girgis
            (2023): the least epsilon with the largest rate, and 2 E e^{-q n / 12} for both tails (spread 1/2
            only).
        amplification: What one shuffle costs; it must not rise with the number of messages.

    Raises:
        ParameterError: An argument out of its range; "thesis" with another spread.

    Reference:
        Girgis (2023), Theorem 4.4.1 and Appendix C.2.
    """
    check_non_negative("local_epsilon", local_epsilon)
    check_count("clients", clients)
    check_count("records", records)
    check_probability("rate", rate, low_open=True)
    check_probability("spread", spread, low_open=True, high_open=True)
    check_probability("delta", delta, low_open=True, high_open=True)
    check_choice("tails", tails, ("exact", "thesis"))
    mean, item = clients * rate, clients * records
    low = max(math.ceil((1 - spread) * mean), 1)
    high = min(math.floor((1 + spread) * mean), clients)
    within = delta * rate / records
    if tails == "thesis":
        check_choice("spread", str(spread), ("0.5",))
        epsilon = amplified(amplification(local_epsilon, low, delta), high / item)
        outside = 2 * math.exp(local_epsilon - mean / 12)
        return RoundEpsilon(epsilon * ROUND_UP, min(within + outside, 1.0))
    # (k / n m) (e^{epsilon(k)} - 1): a group has its largest rate and its fewest messages.
    edges = np.unique(np.linspace(low, high + 1, min(high - low + 1, 32) + 1).astype(int))
    groups = zip(edges[:-1].tolist(), (edges[1:] - 1).tolist(), strict=True)
    epsilon = max(amplified(amplification(local_epsilon, a, delta), b / item) for a, b in groups)
    size = np.concatenate([np.arange(1.0, low), np.arange(high + 1.0, clients + 1)])
    weight = np.exp(binomial_log_pmf(size, float(clients), rate)) if rate < 1 else np.zeros_like(size)
    outside = float(weight @ (1 + size / item * math.expm1(local_epsilon)))
    return RoundEpsilon(epsilon * ROUND_UP, min((within + outside) * ROUND_UP, 1.0))


def dss_delta_mixture(
    local_epsilon: float,
    epsilon: float,
    *,
    clients: int,
    rate: float,
    records: int = 1,
    delta_of: Callable[[int, float], float] | None = None,
) -> float:
    """Return the delta of one round of self-drawn clients at `epsilon`, as the mixture over their number.

    sum_k Pr[K = k] (k / (n m)) delta_k(ln(1 + (e^epsilon - 1) n m / k)): no additive tail.

    Args:
        local_epsilon: Pure level of one message, in [0, 30].
        epsilon: >= 0.
        clients: n.
        rate: q in (0, 1].
        records: m.
        delta_of: (messages, epsilon) -> delta of one shuffle, falling in both; the clones pair if not given.

    Raises:
        ParameterError: An argument out of its range.

    Reference:
        Derived here: given K = k the round is a sample of fixed size, and the law of K is that of any data
        set, so its delta is the mean of theirs, each amplified (Balle, Barthe and Gaboardi 2018, Theorem 2).
    """
    check_non_negative("local_epsilon", local_epsilon)
    check_non_negative("epsilon", epsilon)
    check_count("clients", clients)
    check_count("records", records)
    check_probability("rate", rate, low_open=True)
    if local_epsilon == 0:
        return 0.0
    clone = math.exp(-local_epsilon)

    def clones(messages: int, at: float) -> float:
        pair = ShuffledPair.randomized_response(local_epsilon, messages, blanket=clone)
        return float(pair.delta(at))

    curve = clones if delta_of is None else delta_of
    total = 0.0
    for first, last, log_weight in zip(*_sizes(clients, rate, 0.0), strict=True):
        if last == 0 or (weight := math.exp(log_weight)) == 0:
            continue
        share = last / (clients * records)
        # ln(1 + (e^epsilon - 1) / share) without overflow
        at = epsilon + math.log(share * math.exp(-epsilon) - math.expm1(-epsilon)) - math.log(share)
        if at < local_epsilon:
            total += weight * share * curve(max(int(first), 1), max(at, 0.0))
    return min(total * ROUND_UP, 1.0)


def dss_renyi(
    local_epsilon: float,
    orders: npt.ArrayLike,
    *,
    clients: int,
    rate: float,
    records: int = 1,
    variant: str = "tight",
) -> Array:
    """Return Rényi bounds of one round of self-drawn clients: the mixture of moments over their number.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        orders: Orders > 1, any shape.
        clients: n.
        rate: q in (0, 1].
        records: m.
        variant: "printed" or "tight", as `subsampled_renyi`; each size is cut off at the pure level.

    Raises:
        ParameterError: An argument out of its range.

    Reference:
        Derived here: given K = k the round is a sample of fixed size, and the law of K is that of any data
        set, so the moments are averaged.

    Example:
        >>> dss_renyi(1.0, [2.0], clients=1000, rate=0.1, variant="printed").round(11).tolist()
        [0.00291085156]
    """
    alpha = check_shuffle(local_epsilon, 1, orders)
    check_count("clients", clients)
    check_count("records", records)
    check_probability("rate", rate, low_open=True)
    check_choice("variant", variant, ("tight", "printed"))
    if local_epsilon == 0:
        return np.zeros(alpha.shape)
    reach = (float(alpha.max()) - 1) * local_epsilon
    cap = pure_dp_renyi(local_epsilon, alpha)
    log_excess = []
    for first, last, log_weight in zip(*_sizes(clients, rate, reach), strict=True):
        if last == 0:
            continue  # nobody joins, nothing is said
        share = float(last) / (clients * records)
        bound = subsampled_renyi(local_epsilon, max(int(first), 1), share, alpha, variant=variant)
        moment = (alpha - 1) * np.minimum(bound, cap)
        log_excess.append(log_weight + moment + np.log(-np.expm1(-moment)))
    return renyi_of_moments(log_sum(np.stack(log_excess, axis=-1)), alpha) * ROUND_UP
