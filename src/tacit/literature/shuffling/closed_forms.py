"""Closed upper bounds on the Rényi divergence of shuffling: O(order) time, however many parties.

All are proofs under replace-one, in both directions, and looser than `reduction_renyi`, which sums exactly
what they bound. With E = e^epsilon0 and w = E - 1 / E. Source: Girgis (2023), Section 5.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.errors import ParameterError, check_choice, check_probability
from tacit.privacy.curves import Array
from tacit.privacy.renyi import interpolate_orders
from tacit.privacy.shuffling.moments import ROUND_UP, log_sum, renyi_of_moments
from tacit.privacy.shuffling.renyi import check_shuffle

__all__ = [
    "at_whole_orders",
    "chernoff_renyi",
    "log_amplitude",
    "log_moment_sum",
    "simplified_renyi",
    "subgaussian_renyi",
]

_AT_ONCE = 1 << 18  # numbers in one array
_CHERNOFF_GRID: Array = np.concatenate([np.geomspace(1e-3, 0.1, 24), np.linspace(0.11, 0.98, 60), [0.5]])


def at_whole_orders(bound: Callable[[Array], Array], orders: Array) -> Array:
    """Return a bound that is proven at whole orders >= 2 at real ones (Girgis 2023, Remark 5.3.2)."""
    whole = np.unique(np.concatenate([np.floor(orders).ravel(), np.ceil(orders).ravel()]))
    whole = whole[whole >= 2]
    known = np.maximum(bound(whole), 0.0)
    at = interpolate_orders(whole, np.maximum.accumulate(known), orders)
    place = np.searchsorted(whole, np.floor(orders))
    exact = (orders == np.floor(orders)) & (place < whole.size)
    # Interpolation may pass a bound down from larger orders; the printed value at a whole order stays itself.
    return np.where(exact, known[np.minimum(place, whole.size - 1)], at)


def log_amplitude(local_epsilon: float) -> tuple[float, float]:
    """Return log(E - 1) and log w, w = E - 1 / E, for epsilon0 > 0."""
    return (
        local_epsilon + math.log(-math.expm1(-local_epsilon)),
        local_epsilon + math.log(-math.expm1(-2 * local_epsilon)),
    )


def log_moment_sum(whole: Array, log_scales: Array) -> Array:
    """Return log sum_{i=3}^{a} C(a, i) i Gamma(i / 2) e^{i log_scale} for whole orders a.

    Args:
        whole: Orders, shape (m,).
        log_scales: Shape (s,).

    Returns:
        Shape (s, m).
    """
    i = np.arange(3.0, float(whole.max(initial=2.0)) + 1)
    # log of i Gamma(i / 2) scale^i / i!; what is left of C(a, i) depends on the order.
    base = np.log(i), special.gammaln(i / 2), special.gammaln(i + 1)
    log_factorial = special.gammaln(np.concatenate([[1.0, 1.0, 2.0], i]) + 1)
    log_factorial[:3] = 0.0, 0.0, math.log(2)
    found = np.full((log_scales.size, whole.size), -np.inf)
    at_once = max(_AT_ONCE // max(i.size, 1), 1)
    for first in range(0, log_scales.size, at_once):
        some = slice(first, first + at_once)
        terms = i * log_scales[some, None] + base[0] + base[1] - base[2]
        for k, a in enumerate(whole.astype(np.int64).tolist()):
            if a >= 3:
                found[some, k] = log_sum(terms[:, : a - 2] + log_factorial[a] - log_factorial[a - 3 :: -1])
    return found


def chernoff_renyi(
    local_epsilon: float,
    parties: int,
    orders: npt.ArrayLike,
    *,
    variant: str = "printed",
    chernoff: float | str = 0.5,
) -> Array:
    """Return the first upper bound of Girgis (2023): a closed sum over moments, O(order) time whatever n.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Orders > 1, any shape; between whole ones the bound is interpolated.
        variant: "printed", or "sharp": the last exponent with order - 1 for order, since
            E_Q (P/Q)^a <= E^(a - 1).
        chernoff: Parameter g in (0, 1) of the Chernoff bound on the number of blanket messages, or "opt" for
            the best of some; printed is 1/2.

    Returns:
        Bounds, shape of `orders`. Not cut off at the pure level.

    Raises:
        ParameterError: `local_epsilon` negative or not finite, `parties` < 1, an order not > 1, `chernoff`
            outside (0, 1), an unknown variant.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer, no condition.

    Reference:
        Girgis (2023), Theorem 5.3.1 and Remarks 5.3.2 and 5.3.3.

    Example:
        >>> chernoff_renyi(1.0, 10_000, [2.0, 2.5]).round(12).tolist()
        [0.000590130876, 0.000837944744]
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_choice("variant", variant, ("printed", "sharp"))
    if isinstance(chernoff, str):
        check_choice("chernoff", chernoff, ("opt",))
        tried = _CHERNOFF_GRID
    else:
        check_probability("chernoff", chernoff, low_open=True, high_open=True)
        tried = np.array([float(chernoff)])
    if local_epsilon == 0:
        return np.zeros(alpha.shape)
    log_e1, log_w = log_amplitude(local_epsilon)
    over = math.exp(-local_epsilon)

    def at_whole(whole: Array) -> Array:
        g = tried[:, None]
        blankets = np.floor((1 - tried) * (parties - 1) * over) + 1
        few = local_epsilon * (whole - (variant == "sharp")) - (parties - 1) * g * g * over / 2
        # One row for each N: C(a,2) variance / N + sum_{i>=3} C(a,i) i Gamma(i/2) (range^2 / (2 N))^{i/2}.
        second = np.log(whole * (whole - 1) / 2) + (2 * log_e1 - local_epsilon) - np.log(blankets)[:, None]
        moments = np.logaddexp(second, log_moment_sum(whole, (2 * log_w - np.log(2 * blankets)) / 2))
        best: Array = renyi_of_moments(np.logaddexp(moments, few), whole).min(axis=0)
        return best

    return at_whole_orders(at_whole, alpha) * ROUND_UP


def simplified_renyi(
    local_epsilon: float, parties: int, orders: npt.ArrayLike, *, check: bool = True
) -> Array:
    """Return ln(1 + 2 a (a - 1) (E - 1)^2 / n) / (a - 1), the leading term of `chernoff_renyi`.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Orders > 1; between whole ones the bound is interpolated.
        check: False gives the printed formula also outside of its condition, where it proves nothing.

    Raises:
        ParameterError: As `chernoff_renyi`; with `check`, an order a (rounded up) with a^4 E^5 >= n / 9.

    Guarantee:
        Proof, replace-one, if a^4 E^5 < n / 9 for every order a: it is never below `chernoff_renyi`, as the
        printed form is for levels of about 1e-4 or less and 200 parties or fewer. Paper only with
        `check=False`.

    Reference:
        Girgis (2023), Corollary 5.3.1 and Lemma 3.3.1.
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    largest = float(np.ceil(alpha).max())
    if check and not 4 * math.log(largest) + 5 * local_epsilon < math.log(parties / 9):
        raise ParameterError(
            "orders must satisfy order^4 e^(5 local_epsilon) < parties / 9 for this bound, "
            f"got order {largest:g} with local_epsilon={local_epsilon!r}, parties={parties!r}."
        )
    if local_epsilon == 0:
        return np.zeros(alpha.shape)
    log_e1, _ = log_amplitude(local_epsilon)
    leading = at_whole_orders(
        lambda a: renyi_of_moments(np.log(2 * a * (a - 1)) + 2 * log_e1 - math.log(parties), a), alpha
    )
    # What is left out is not always covered by the factor 2 (a level of 1e-4, 150 parties).
    return np.maximum(leading * ROUND_UP, chernoff_renyi(local_epsilon, parties, alpha) if check else 0.0)


def subgaussian_renyi(
    local_epsilon: float, parties: int, orders: npt.ArrayLike, *, variant: str = "printed"
) -> Array:
    """Return the second upper bound of Girgis (2023), by a moment generating function; for real orders.

    Args:
        local_epsilon: Pure level of one message, >= 0.
        parties: Messages in the shuffle, n >= 1.
        orders: Orders > 1, any shape. Near 1 the bound diverges.
        variant: "printed", or "tight": the last step of the proof left out, half the leading term.

    Raises:
        ParameterError: As `chernoff_renyi`.

    Guarantee:
        Proof, replace-one, any epsilon0-LDP randomizer, no condition. Often above the pure level.

    Reference:
        Girgis (2023), Theorem 5.3.2, with e^epsilon0 as Theorem 5.3.6 has it, and Appendix D.2.2.
    """
    alpha = check_shuffle(local_epsilon, parties, orders)
    check_choice("variant", variant, ("printed", "tight"))
    if local_epsilon == 0:
        return np.zeros(alpha.shape)
    log_e1, _ = log_amplitude(local_epsilon)
    over = math.exp(-local_epsilon)
    blankets = math.floor((parties - 1) * over / 2) + 1
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if variant == "printed":
            many = np.exp(2 * np.log(alpha) + 2 * log_e1 - math.log(blankets))
        else:
            y = np.exp(np.log(alpha) + log_e1 - math.log(blankets))
            many = blankets * np.where(y < 1, np.log1p(np.expm1(y) - y), y + np.log1p(-y * np.exp(-y)))
            many = np.where(np.isinf(y), np.inf, many)
        few = local_epsilon * alpha - (parties - 1) * over / 8
        value: Array = np.logaddexp(many, few) / (alpha - 1) * ROUND_UP
    return value
