"""Earlier bounds on shuffling, to compare with: each refuses what its theorem does not cover.

Some are proofs that later work has overtaken; some were withdrawn, or were printed with conditions that their
proofs do not support. Each says which. Nothing here is used to calibrate.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, special

from tacit.errors import LARGEST_COUNT, ParameterError, check_count, check_non_negative, check_probability
from tacit.privacy.curves import Array
from tacit.privacy.shuffling.closed_form import clones_closed_form, clones_closed_limit
from tacit.privacy.shuffling.pair import ShuffledPair
from tacit.privacy.shuffling.renyi import check_shuffle

__all__ = [
    "BBG19_ORDER",
    "SiloEpsilon",
    "bbg19_delta",
    "bbg19_epsilon",
    "clones_artanh_epsilon",
    "clones_epsilon",
    "efm19_epsilon",
    "efm19_renyi",
    "fmt22_epsilon",
    "fmt22_largest_level",
    "fmt22_silo_epsilon",
    "fmt23_renyi",
    "require",
]

BBG19_ORDER = (
    "O(min(local_epsilon, 1) e^local_epsilon sqrt(log(1/delta) / n)) "
    "if local_epsilon <= log(n / log(1/delta)) / 2"
)
"""Balle, Bell, Gascón and Nissim (2019): an order of growth, which calibrates nothing."""
_ROUND_UP = 1 + 1e-12


def _check(local_epsilon: float, parties: int, delta: float) -> None:
    check_non_negative("local_epsilon", local_epsilon)
    check_count("parties", parties, high=LARGEST_COUNT)
    check_probability("delta", delta, low_open=True, high_open=True)


def require(*, holds: bool, condition: str, **got: float) -> None:
    """Refuse what a theorem does not cover."""
    if not holds:
        values = ", ".join(f"{name}={value!r}" for name, value in got.items())
        raise ParameterError(f"this bound is proven for {condition} only, got {values}.")


def _require_level(local_epsilon: float, limit: float, words: str, **got: float) -> None:
    """Refuse a level above a limit, which has a formula."""
    require(
        holds=local_epsilon <= limit,
        condition=f"local_epsilon <= {words} = {limit:.6g}",
        local_epsilon=local_epsilon,
        **got,
    )


def _safe_root(excess: Callable[[float], float], low: float, high: float) -> float:
    """Return a point just above the root of a falling function, at most `high`, where it is not positive."""
    if excess(low) <= 0:
        return low
    if excess(high) > 0:
        return high
    root = float(optimize.brentq(excess, low, high, xtol=1e-13, rtol=1e-12))
    margin = 1e-12
    while excess(root) > 0 and root < high:
        root, margin = min(root * (1 + margin) + 1e-300, high), margin * 8
    return root


def clones_epsilon(
    local_epsilon: float, parties: int, delta: float, *, blanket: float | None = None
) -> float:
    """Return the epsilon of the clones pair at `delta`, by its exact hockey-stick divergence.

    Args:
        local_epsilon: Pure level of one message, in [0, 30].
        parties: Messages in the shuffle, >= 1.
        delta: In (0, 1).
        blanket: Chance that a party is a clone; e^-local_epsilon if not given.

    Raises:
        ParameterError: An argument out of its range.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer (with the default blanket).

    Reference:
        Feldman, McMillan and Talwar (2022), arXiv:2012.12803, Theorem 3.1, evaluated.

    Example:
        >>> round(clones_epsilon(1.0, 1000, 1e-5), 6)
        0.154047
    """
    _check(local_epsilon, parties, delta)
    if local_epsilon == 0:
        return 0.0
    share = math.exp(-local_epsilon) if blanket is None else blanket
    pair = ShuffledPair.randomized_response(local_epsilon, parties, blanket=share)
    return _safe_root(
        lambda e: math.log(max(float(pair.delta(e)), 1e-300) / delta), 0.0, float(local_epsilon)
    )


def efm19_epsilon(local_epsilon: float, parties: int, delta: float) -> float:
    """Return 12 epsilon0 sqrt(ln(1 / delta) / n), by amplification of a shuffled sequence of messages.

    Raises:
        ParameterError: Unless local_epsilon < 1/2, delta < 1/100 and parties >= 1000.

    Guarantee:
        Proof, replace-one, under these conditions; 12 times looser than `clones_epsilon`.

    Reference:
        Erlingsson et al. (2019), arXiv:1811.12469, Theorem 7; Girgis (2023), Lemma 2.3.1.

    Example:
        >>> round(efm19_epsilon(0.4, 1000, 1e-5), 6)
        0.515032
    """
    _check(local_epsilon, parties, delta)
    require(
        holds=local_epsilon < 0.5 and delta < 0.01 and parties >= 1000,
        condition="local_epsilon < 1/2, delta < 1/100 and parties >= 1000",
        local_epsilon=local_epsilon,
        delta=delta,
        parties=parties,
    )
    return 12 * local_epsilon * math.sqrt(-math.log(delta) / parties) * _ROUND_UP


def efm19_renyi(local_epsilon: float, parties: int, orders: npt.ArrayLike) -> Array:
    """Return 2 a E^4 (E - 1)^2 / n, loose by E^4.

    Raises:
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, an order not > 1.

    Guarantee:
        Proof, replace-one, any order > 1.

    Reference:
        Erlingsson et al. (2019), Remark 1; Girgis (2023), (5.8).
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    with np.errstate(over="ignore"):
        size = np.exp(4 * local_epsilon) * np.expm1(np.float64(local_epsilon)) ** 2 / parties
        return np.asarray(2 * alpha * size * _ROUND_UP)


def bbg19_delta(blanket: float, local_epsilon: float, parties: int, epsilon: float) -> float:
    """Return the delta of a channel with a known privacy blanket, by Hoeffding's inequality.

    (1 / (n g)) (b^2 / (4 a)) (1 - g + g e^{-2 a^2 / b^2})^n, a = e^epsilon - 1, b = g (E - 1) (1 +
    e^epsilon).

    Args:
        blanket: Mass g of the blanket of this very channel, in (0, 1]: 2 / (E + 1) for binary randomized
            response, B / (E + B - 1) for B symbols. A smaller g is not safe: the range b would be too small.
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        epsilon: > 0.

    Raises:
        ParameterError: An argument out of its range.

    Guarantee:
        Proof, replace-one, for the channel with that blanket.

    Reference:
        Balle et al. (2019), arXiv:1903.02837, Lemma 5.3 with Hoeffding.
    """
    check_probability("blanket", blanket, low_open=True)
    _check(local_epsilon, parties, 0.5)
    if epsilon >= local_epsilon:
        return 0.0
    a = math.expm1(epsilon)
    b = blanket * math.expm1(local_epsilon) * (1 + math.exp(epsilon))
    hidden = parties * math.log1p(blanket * math.expm1(-2 * (a / b) ** 2))
    log_delta = 2 * math.log(b) - math.log(4 * a * parties * blanket) + hidden
    return min(math.exp(min(log_delta, 0.0)) * _ROUND_UP, 1.0)


def bbg19_epsilon(local_epsilon: float, parties: int, delta: float, *, blanket: float | None = None) -> float:
    """Return the least epsilon that `bbg19_delta` proves; by default for binary randomized response.

    Raises:
        ParameterError: As `bbg19_delta`; `delta` outside (0, 1).
    """
    _check(local_epsilon, parties, delta)
    if local_epsilon == 0:
        return 0.0
    g = 2 * float(special.expit(-local_epsilon)) if blanket is None else blanket
    return _safe_root(
        lambda e: math.log(max(bbg19_delta(g, local_epsilon, parties, e), 1e-300) / delta),
        1e-9 * local_epsilon,
        float(local_epsilon),
    )


def fmt22_largest_level(parties: int, delta: float, *, records: int = 1) -> float:
    """Return ln(n / (16 ln(2 / delta))) / records, up to which the closed form of FMT22 holds; may be < 0."""
    return clones_closed_limit(parties, delta, records=records)


def fmt22_epsilon(local_epsilon: float, parties: int, delta: float) -> float:
    """Return ln(1 + (E-1)/(E+1) (8 sqrt(E ln(4/delta) / n) + 8 E / n)), at most epsilon0.

    Raises:
        ParameterError: Unless local_epsilon <= ln(n / (16 ln(2 / delta))): beyond that only the local level
            holds.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer, under this condition.

    Reference:
        Feldman, McMillan and Talwar (2022), arXiv:2012.12803, Theorem 3.1; Girgis (2023), (6.10), where the
        condition is missing (see docs/errata.md).

    Example:
        >>> round(fmt22_epsilon(1.0, 10_000, 1e-6), 10)
        0.2140256519
    """
    _check(local_epsilon, parties, delta)
    limit = fmt22_largest_level(parties, delta)
    _require_level(local_epsilon, limit, "log(parties / (16 log(2 / delta)))", parties=parties, delta=delta)
    return min(clones_closed_form(local_epsilon, parties, delta), float(local_epsilon))


def clones_artanh_epsilon(local_epsilon: float, parties: int, delta: float) -> float:
    """Return 2 artanh(k sqrt(4 E ln(4/delta) / n)), k = (E-1)/(E+1), at most epsilon0.

    Of m = 1 + Bin(n - 1, 1/E) clones a share (1 + s)/2 has the target's bit, and the loss is 2 artanh(k s):
    above epsilon with probability 2 exp(-m tanh^2(epsilon/2) / (2 k^2)). And m is at least n / (2 E), but for
    a probability of delta / 2. It reaches ln 2 further than `fmt22_epsilon`. Of many parties it is about half
    of that; near the end of the range of that form it may be a few per cent more.

    Raises:
        ParameterError: Unless n - 1 >= 8 E ln(2/delta), and the argument of artanh is below 1.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer, under these conditions; derived here.

    Reference:
        Feldman, McMillan and Talwar (2022), arXiv:2012.12803, Theorem 3.2, for the law of the clones.

    Example:
        >>> round(clones_artanh_epsilon(1.0, 10_000, 1e-6), 10)
        0.1189648555
    """
    _check(local_epsilon, parties, delta)
    limit = math.log(max(parties - 1, 1e-300)) - math.log(8 * math.log(2 / delta))
    words = "log((parties - 1) / (8 log(2 / delta)))"
    _require_level(local_epsilon, limit, words, parties=parties, delta=delta)
    spread = math.exp(local_epsilon / 2) * math.sqrt(4 * math.log(4 / delta) / parties)
    share = math.tanh(local_epsilon / 2) * spread
    require(
        holds=share < 1,
        condition="(E - 1) / (E + 1) sqrt(4 E log(4 / delta) / parties) < 1, E = e^local_epsilon,",
        local_epsilon=local_epsilon,
        parties=parties,
        delta=delta,
    )
    return min(2 * math.atanh(share) * _ROUND_UP, float(local_epsilon))


class SiloEpsilon(NamedTuple):
    """(epsilon, delta) of a shuffled round of silos."""

    epsilon: float
    delta: float


def fmt22_silo_epsilon(
    local_epsilon: float, silos: int, records: int, delta: float, *, local_delta: float = 0.0
) -> SiloEpsilon:
    """Return what shuffling the messages of N silos gives, each (epsilon0, delta0)-DP in each of n records.

    Args:
        local_epsilon: epsilon0, per record, of every silo's randomizer; all silos use the same one.
        silos: N >= 1.
        records: n >= 1, in every silo.
        delta: The part delta_r that amplification may cost, in (0, 1).
        local_delta: delta0 in [0, 1).

    Returns:
        epsilon, at most epsilon0, and delta_r + (e^epsilon + 1) 2 N n e^{(n - 1) epsilon0} delta0.

    Raises:
        ParameterError: Unless local_epsilon <= ln(N / (16 ln(2 / delta_r))) / n; the total delta is >= 1.

    Guarantee:
        Proof, replace-one record, identical randomizers and a shuffler that hides the silos in every round.

    Reference:
        Lowy (2023), Theorems 109 and 110, with the factor e^epsilon + 1 of Lemma 120 that they lose (see
        docs/errata.md).

    Example:
        >>> price = fmt22_silo_epsilon(0.1, 1000, 10, 1e-6, local_delta=1e-12)
        >>> round(price.epsilon, 9), round(price.delta, 12)
        (0.079116814, 1.102434e-06)
    """
    _check(local_epsilon, silos, delta)
    check_count("records", records, high=LARGEST_COUNT)
    check_probability("local_delta", local_delta, high_open=True)
    limit = fmt22_largest_level(silos, delta, records=records)
    words = "log(silos / (16 log(2 / delta))) / records"
    _require_level(local_epsilon, limit, words, silos=silos, records=records, delta=delta)
    amplified = clones_closed_form(local_epsilon, silos, delta, records)
    if amplified >= local_epsilon:
        return SiloEpsilon(float(local_epsilon), local_delta)  # shuffling is post-processing
    group = 2 * silos * records * math.exp((records - 1) * local_epsilon) * local_delta
    total = (delta + (math.exp(amplified) + 1) * group) * _ROUND_UP
    if total >= 1:
        raise ParameterError(f"local_delta must leave a total delta below 1, got {local_delta!r}.")
    return SiloEpsilon(amplified, total)


def fmt23_renyi(local_epsilon: float, parties: int, orders: npt.ArrayLike) -> Array:
    """Return 48 a (E - 1)^2 / (n E). Paper only: withdrawn by its authors for general randomizers.

    Args:
        local_epsilon: Pure level of one message, > 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Orders > 1, any shape.

    Raises:
        ParameterError: Unless every order <= n / (16 epsilon0 E).

    Guarantee:
        None for general randomizers. Numerically above min(clones, reduction) wherever it was tried (24-90
        times).

    Reference:
        Feldman, McMillan and Talwar (2023), arXiv:2208.04591, Corollary 4.3, withdrawn by its
        authors for general randomizers; Girgis (2023), Lemma 3.3.2.
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    limit = (
        parties / (16 * local_epsilon * math.exp(min(local_epsilon, 700.0))) if local_epsilon else math.inf
    )
    require(
        holds=float(alpha.max()) <= limit,
        condition=f"orders <= parties / (16 local_epsilon e^local_epsilon) = {limit:.6g}",
        order=float(alpha.max()),
        local_epsilon=local_epsilon,
        parties=parties,
    )
    size = 4 * math.sinh(local_epsilon / 2) ** 2  # (E - 1)^2 / E
    return np.asarray(48 * alpha * size / parties * _ROUND_UP)
