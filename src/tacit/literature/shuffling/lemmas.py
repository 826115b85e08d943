"""Printed lemmas on shuffled and subsampled rounds, with their conditions: for comparison only.

Their constants make them useless at practical sizes (rho <= .1 needs 41753 messages at epsilon0 = 1) and some
of the printed conditions do not follow from their proofs. `variant="corrected"` has conditions that do, and
"derived" constants that a proof needs (docs/theory/shuffling.md, section 6).
Source: Anonymous, "Efficient private federated non-convex optimization with shuffled model" (under review),
below "the paper"; what is misprinted there: docs/errata.md.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from tacit.errors import check_choice, check_count, check_positive, check_probability
from tacit.literature.shuffling.baselines import require
from tacit.privacy.curves import Array
from tacit.privacy.divergences import check_orders

__all__ = [
    "shuffle_bound",
    "subsampled_gaussian_bound",
    "subsampled_shuffle_bound",
]

_CONSTANT = 1536.0
"""c of Lemmas A.8 and A.9."""
_VARIANTS = ("corrected", "printed")


def shuffle_bound(
    local_epsilon: float, parties: int, orders: npt.ArrayLike, *, variant: str = "printed"
) -> Array:
    """Return a c E / n with c = 1536, for one shuffle of n messages (Lemma A.8). Paper only.

    Args:
        local_epsilon: Pure level of one message.
        parties: n.
        orders: Orders.
        variant: "printed"; or "derived", of c = 1.125 epsilon0^2 + 2, and twice that for orders below 2.

    Raises:
        ParameterError: Unless local_epsilon >= 1 and every order is in [2, n / (32 epsilon0 E)]; derived, for
            local_epsilon from 0.1 to 36 and orders from 1.

    Reference:
        Lemma A.8 of the paper, from Feldman, McMillan and Talwar (2023); n is the number of messages.
    """
    alpha = check_orders(orders)
    check_positive("local_epsilon", local_epsilon)
    check_count("parties", parties)
    check_choice("variant", variant, ("printed", "derived"))
    limit = parties / (32 * local_epsilon) * math.exp(-local_epsilon)
    if variant == "derived":
        _require_derived(local_epsilon, alpha, limit)
        constant = (1.125 * local_epsilon**2 + 2) * np.where(alpha < 2, 2, 1)
        return np.asarray(alpha * constant * math.exp(local_epsilon) / parties)
    require(
        holds=local_epsilon >= 1 and float(alpha.min()) >= 2 and float(alpha.max()) <= limit,
        condition=(
            "local_epsilon >= 1 and orders from 2 to "
            f"parties / (32 local_epsilon e^local_epsilon) = {limit:.6g}"
        ),
        local_epsilon=local_epsilon,
        least_order=float(alpha.min()),
        largest_order=float(alpha.max()),
    )
    return np.asarray(alpha * _CONSTANT * math.exp(local_epsilon) / parties)


def subsampled_shuffle_bound(
    local_epsilon: float,
    messages: int,
    rate: float,
    orders: npt.ArrayLike,
    *,
    variant: str = "corrected",
) -> Array:
    """Return 26 gamma^2 a rho, rho = c E / messages, for a round of two shuffles of one sample (Lemma A.9).

    Args:
        local_epsilon: Pure level of one message.
        messages: In each shuffle, M B.
        rate: gamma = B / n, of every silo's records.
        orders: Orders >= 2.
        variant: "printed" has conditions that would suit two samples drawn apart; both shuffles see one
            sample, so they must be composed before they are subsampled: "corrected". "derived" does so with
            c = max(2.25 epsilon0^2 + 4, 8 epsilon0 ln(1/gamma)).

    Raises:
        ParameterError: Unless local_epsilon >= 1, gamma in (0, .1], and, corrected: rho <= .05,
            c >= 8 epsilon0 ln(1/gamma), orders <= messages ln(1/gamma) / (8 c E); printed: rho <= .1,
            c >= 16 epsilon0 ln(1/gamma), 6 c E <= messages ln(1/gamma), orders <= messages ln(1/gamma) / (4 c
            E); derived: rho <= .05, orders as corrected, for local_epsilon from 0.1 to 36 and orders from 1.

    Reference:
        Lemma A.9 of the paper, whose Lemma 2.7 states other conditions; Bun et al. (2018), Theorem 13. Paper
        only.
    """
    alpha = check_orders(orders)
    check_positive("local_epsilon", local_epsilon)
    check_count("messages", messages)
    check_probability("rate", rate, low_open=True, high_open=True)
    check_choice("variant", variant, (*_VARIANTS, "derived"))
    log_rate = -math.log(rate)
    if variant == "derived":
        constant = max(2.25 * local_epsilon**2 + 4, 8 * local_epsilon * log_rate)
        rho = constant * math.exp(local_epsilon) / messages
        require(
            holds=rate <= 0.1 and 2 * rho <= 0.1,
            condition=f"rate <= 0.1 and {constant:.6g} e^local_epsilon / messages <= 0.05",
            local_epsilon=local_epsilon,
            messages=messages,
            rate=rate,
        )
        _require_derived(local_epsilon, alpha, log_rate / (8 * rho))
        return np.asarray(26 * rate**2 * alpha * rho)
    pair = 2 if variant == "corrected" else 1
    rho = _CONSTANT * math.exp(local_epsilon) / messages
    limit = log_rate / (4 * pair * rho)
    printed_only = variant == "corrected" or 6 * rho <= log_rate
    require(
        holds=local_epsilon >= 1
        and rate <= 0.1
        and pair * rho <= 0.1
        and 16 / pair * local_epsilon * log_rate <= _CONSTANT
        and printed_only
        and float(alpha.min()) >= 2
        and float(alpha.max()) <= limit,
        condition=(
            f"local_epsilon >= 1, rate <= 0.1, 1536 e^local_epsilon / messages <= {0.1 / pair:g}, "
            f"local_epsilon log(1 / rate) <= {_CONSTANT * pair / 16:g} and orders from 2 to {limit:.6g}"
        ),
        local_epsilon=local_epsilon,
        messages=messages,
        rate=rate,
        largest_order=float(alpha.max()),
    )
    return np.asarray(26 * rate**2 * alpha * rho)


def subsampled_gaussian_bound(
    std: float,
    rate: float,
    orders: npt.ArrayLike,
    *,
    sensitivity: float = 1.0,
    variant: str = "corrected",
) -> Array:
    """Return 6.5 gamma^2 a S^2 / sigma^2 for Gaussian noise on a fixed-size sample (Lemma A.6).

    Raises:
        ParameterError: Unless gamma <= .1, sigma / S >= sqrt(5) and orders <= sigma^2 ln(1/gamma) / (2 S^2).

    Reference:
        Lemma A.6 of the paper, printed with 6; the theorem it cites, Bun et al. (2018), Theorem 13, gives
        13 / 2. Paper only.
    """
    alpha = check_orders(orders)
    check_positive("std", std)
    check_positive("sensitivity", sensitivity)
    check_probability("rate", rate, low_open=True, high_open=True)
    check_choice("variant", variant, _VARIANTS)
    noise = (std / sensitivity) ** 2
    limit = noise * -math.log(rate) / 2
    require(
        holds=rate <= 0.1 and noise >= 5 and float(alpha.max()) <= limit,
        condition=f"rate <= 0.1, std / sensitivity >= sqrt(5) and orders up to {limit:.6g}",
        rate=rate,
        std=std,
        sensitivity=sensitivity,
        largest_order=float(alpha.max()),
    )
    return np.asarray((6.5 if variant == "corrected" else 6.0) * rate**2 * alpha / noise)


def _require_derived(local_epsilon: float, alpha: Array, limit: float) -> None:
    """Refuse levels and orders that the derived constants are not proven for."""
    largest = max(float(alpha.max()), 2.0)  # an order below 2 has the bound of 2
    require(
        holds=0.1 <= local_epsilon <= 36 and largest <= limit,
        condition=f"local_epsilon from 0.1 to 36 and orders up to {limit:.6g}, which must be 2 or more",
        local_epsilon=local_epsilon,
        largest_order=float(alpha.max()),
    )
