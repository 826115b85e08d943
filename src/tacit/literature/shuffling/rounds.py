"""Costs of runs of shuffled rounds: on fixed samples (CLDP-SGD), with self-drawn clients (DSS-SGD).

The (epsilon, delta) of a round, and of rounds composed. The privacy-loss convolution of the same rounds is
`epsilon_of(Repeat(Sampled(Shuffled(...))))` and the tightest. All are proofs for one record under
replace-one, for samples drawn afresh in every round and hidden from the server. Source: Girgis (2023),
Sections 4.3, 4.4 and 5.4.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import PlanWarning, check_choice, check_count, check_non_negative, check_probability
from tacit.literature.composition import optimal_composition, strong_composition
from tacit.literature.shuffling.baselines import clones_epsilon
from tacit.literature.shuffling.subsampled import check_sample, subsampled_renyi
from tacit.privacy import Repeat, Shuffled, epsilon_of, renyi_to_epsilon
from tacit.privacy.curve_sampling import amplified
from tacit.privacy.curves import Array
from tacit.privacy.divergences import pure_dp_renyi, renyi_of_mixture
from tacit.privacy.shuffling import drawn_round
from tacit.privacy.shuffling.binomial import binomial_log_pmf
from tacit.privacy.shuffling.moments import ROUND_UP

__all__ = [
    "WHOLE_ORDERS",
    "RoundEpsilon",
    "cldp_epsilon_composition",
    "cldp_epsilons",
    "cldp_renyi",
    "cldp_round",
    "dss_renyi",
    "dss_round",
]

WHOLE_ORDERS: Array = np.unique(np.concatenate([np.arange(2.0, 257.0), np.geomspace(256, 1e5, 64).round()]))
"""Orders for bounds that are proven at whole ones."""
WHOLE_ORDERS.flags.writeable = False

_SPLITS = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Of delta, what the rounds may spend: the best is taken."""

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
            only). These say nothing for q n < 24 (epsilon0 + ln 2): then "exact", with a `PlanWarning`.
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
    least = 24 * (local_epsilon + math.log(2))  # from there on, 2 E e^{-q n / 12} <= e^{-q n / 24}
    if tails == "thesis" and mean < least:
        warnings.warn(
            f"exact tails are used: the closed ones need clients * rate >= {least:.4g}, got {mean:.4g}.",
            PlanWarning,
            stacklevel=2,
        )
    elif tails == "thesis":
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


def cldp_renyi(
    local_epsilon: float,
    orders: npt.ArrayLike,
    *,
    clients: int,
    sampled_clients: int,
    records: int = 1,
    sampled_records: int = 1,
    variant: str = "best",
) -> Array:
    """Return Rényi bounds of one round of CLDP-SGD for a record, at each order.

    For one record of a client, Theorem 5.4.1 at rate k / (n m); the thesis has k / n. For several, the
    divergences of k s messages on a sample of s / m, with probability k / n (derived here, by the joint
    convexity of e^((order - 1) divergence)).

    Args:
        local_epsilon: Pure level of one message.
        orders: Shape (r,), each > 1.
        clients: n.
        sampled_clients: k.
        records: m.
        sampled_records: s.
        variant: As in `subsampled_renyi`.

    Raises:
        ParameterError: An argument out of its range.

    Reference:
        Girgis (2023), Theorems 5.4.1 and 5.4.3.
    """
    check_sample(clients, sampled_clients, records, sampled_records)
    k, alpha = sampled_clients, np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if sampled_records == 1:
        return subsampled_renyi(local_epsilon, k, k / clients / records, alpha, variant=variant)
    within = sampled_records / records
    inner = subsampled_renyi(local_epsilon, k * sampled_records, within, alpha, variant=variant)
    return renyi_of_mixture(inner[None], (k / clients,), alpha)


def dss_renyi(
    local_epsilon: float, orders: npt.ArrayLike, *, clients: int, rate: float, records: int = 1
) -> Array:
    """Return Rényi bounds of one round that every client joins with probability q, at each order.

    The mixture over the number of those who join of Theorem 5.4.1 as printed, each cut off at the pure level;
    derived here. Numbers that are next to impossible count as that level.

    Args:
        local_epsilon: Pure level of one message.
        orders: Shape (r,), each > 1.
        clients: n.
        rate: q in (0, 1].
        records: m.

    Raises:
        ParameterError: An argument out of its range.
    """
    check_count("clients", clients)
    check_count("records", records)
    check_probability("rate", rate, low_open=True)
    check_non_negative("local_epsilon", local_epsilon)
    alpha = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    pure = pure_dp_renyi(local_epsilon, alpha)
    size = np.arange(1.0, clients + 1)
    weight = np.exp(binomial_log_pmf(size, float(clients), rate)) if rate < 1 else (size == clients) * 1.0
    likely = weight > 1e-18
    found = [
        np.minimum(
            subsampled_renyi(local_epsilon, int(k), k / clients / records, alpha, variant="printed"), pure
        )
        for k in size[likely]
    ]
    bounds, shares = np.stack([*found, pure]), np.append(weight[likely], max(weight[~likely].sum(), 1e-300))
    return renyi_of_mixture(bounds, shares.tolist(), alpha)


def cldp_epsilons(
    local_epsilon: float,
    delta: float,
    *,
    rounds: int,
    clients: int,
    sampled_clients: int,
    records: int = 1,
    sampled_records: int = 1,
    randomizer: str = "general",
) -> dict[str, float]:
    """Return the epsilon of T rounds of CLDP-SGD by every accountant, beside one another; all are proofs.

    Args:
        local_epsilon: Pure level of one message.
        delta: Of the whole run, in (0, 1).
        rounds: T.
        clients: n.
        sampled_clients: k.
        records: m.
        sampled_records: s.
        randomizer: What messages are, for the numerical curve; the others hold for any.

    Raises:
        ParameterError: An argument out of its range.

    Example:
        >>> at = dict(rounds=1200, clients=60_000, sampled_clients=10_000)
        >>> {name: round(e, 2) for name, e in cldp_epsilons(1.5, 1e-5, **at).items()}
        {'curve': 0.56, 'Rényi': 2.85, 'Rényi, printed': 3.09, 'composition': 3.15, 'strong': 4.13}
    """
    sizes: dict[str, Any] = {
        "clients": clients,
        "sampled_clients": sampled_clients,
        "records": records,
        "sampled_records": sampled_records,
    }
    check_count("rounds", rounds)
    once = drawn_round(
        lambda k: Shuffled(local_epsilon, k * sampled_records, randomizer),
        clients=clients,
        drawn=sampled_clients,
        records=records,
        sampled=sampled_records,
    )

    def renyi(variant: str) -> float:
        one = cldp_renyi(local_epsilon, WHOLE_ORDERS, variant=variant, **sizes)
        return renyi_to_epsilon(WHOLE_ORDERS, rounds * one, delta).epsilon

    def composed(method: str) -> float:
        return min(
            cldp_epsilon_composition(local_epsilon, delta, rounds=rounds, method=method, share=share, **sizes)
            for share in _SPLITS
        )

    return {
        "curve": epsilon_of(Repeat(once, rounds), delta),
        "Rényi": renyi("tight"),
        "Rényi, printed": renyi("printed"),
        "composition": composed("optimal"),
        "strong": composed("strong"),
    }
