"""Rényi differential privacy: bounds at many orders, and what they say about epsilon and delta.

A release is (alpha, d)-RDP if D_alpha(M(D) || M(D')) <= d for neighbours in both orders. Bounds at one order
add up under composition, adaptive or not (Mironov 2017). This module converts them; they come
from `Leaf.renyi`, `tacit.privacy.divergences` and `tacit.privacy.renyi_sampling`.

Source: Mironov (2017), arXiv:1702.07476; Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4;
Girgis (2023), Section 2.1.2.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_count, check_non_negative, check_probability
from tacit.privacy.curves import Array, Curve, as_numbers, symmetric
from tacit.privacy.divergences import check_orders
from tacit.privacy.events import Leaf, NonPrivate
from tacit.privacy.neighbours import Neighbours

__all__ = [
    "ORDERS",
    "Renyi",
    "RenyiEpsilon",
    "interpolate_orders",
    "renyi_curve",
    "renyi_to_delta",
    "renyi_to_epsilon",
]

_ROUND_UP = 1 + 1e-12
_MOST_ORDERS = 100_000

ORDERS: Array = np.unique(
    np.concatenate(
        [
            1 + np.geomspace(1e-2, 0.95, 32),
            np.arange(16.0, 160.0) / 8,
            np.arange(20.0, 257.0),
            np.geomspace(256, 1e5, 96).round(),
        ]
    )
)
"""Default orders: real ones to 20, whole ones to 256, whole and geometric to 1e5."""
ORDERS.flags.writeable = False


class RenyiEpsilon(NamedTuple):
    """What a conversion proves, and by which order; an order at the edge of a grid asks for a wider grid."""

    epsilon: float
    order: float


def renyi_to_epsilon(orders: npt.ArrayLike, divergences: npt.ArrayLike, delta: float) -> RenyiEpsilon:
    """Return the least epsilon that Rényi bounds prove at `delta`.

    Args:
        orders: Finite orders > 1, shape (m,), in any sequence.
        divergences: Bounds >= 0 at these orders, shape (m,); infinity where there is none.
        delta: In (0, 1).

    Returns:
        epsilon, rounded up, >= 0, infinite where no order has a bound; and the order that gives it.

    Raises:
        ParameterError: An order <= 1, a negative or NaN bound, no order, other shapes, delta outside (0, 1).

    Reference:
        Canonne, Kamath and Steinke (2020), arXiv:2004.00010v4, Proposition 12; for epsilon = 0
        also Pinsker's and Bretagnolle and Huber's inequalities.

    Example:
        >>> epsilon, order = renyi_to_epsilon(ORDERS, 0.5 * ORDERS, 1e-5)
        >>> round(epsilon, 2), order
        (4.73, 5.375)
    """
    alpha, bound = _checked(orders, divergences)
    check_probability("delta", delta, low_open=True, high_open=True)
    variation = _log_total_variation(bound)
    if np.min(variation) <= math.log(delta):
        return RenyiEpsilon(0.0, float(alpha[np.argmin(variation)]))
    epsilon = bound + (-math.log(delta) + (alpha - 1) * np.log1p(-1 / alpha) - np.log(alpha)) / (alpha - 1)
    best = int(np.argmin(epsilon))
    return RenyiEpsilon(max(float(epsilon[best]) * _ROUND_UP, 0.0), float(alpha[best]))


def renyi_to_delta(orders: npt.ArrayLike, divergences: npt.ArrayLike, epsilon: float) -> float:
    """Return the least delta that Rényi bounds prove at `epsilon`, at most 1.

    Args:
        orders: Finite orders > 1, shape (m,).
        divergences: Bounds >= 0 at these orders, shape (m,); infinity where there is none.
        epsilon: Finite, >= 0.

    Raises:
        ParameterError: As `renyi_to_epsilon`; epsilon negative or not finite.

    Reference:
        As `renyi_to_epsilon`.
    """
    check_non_negative("epsilon", epsilon)
    return min(float(renyi_curve(orders, divergences).delta(float(epsilon))) * _ROUND_UP, 1.0)


def renyi_curve(orders: npt.ArrayLike, divergences: npt.ArrayLike) -> Curve:
    """Return the best curve that Rényi bounds in both directions prove; arguments as `renyi_to_epsilon`.

    delta(eps) = min over alpha of exp((alpha-1)(d - eps)) / (alpha-1) * (1 - 1/alpha)^alpha. In logarithms
    each order is a line in epsilon, so the minimum is their lower envelope: one look-up per epsilon.
    """
    alpha, bound = _known(*_checked(orders, divergences))
    if alpha.size == 0:
        return symmetric(np.ones_like)
    at_zero = float(np.min(_log_total_variation(bound)))
    slope = alpha - 1
    start = slope * (bound + np.log1p(-1 / alpha)) - np.log(alpha)
    start += 2.0**-50 * (slope * bound + np.log(alpha) + 2)  # what the sum may be off
    kept, breaks = _lower_envelope(slope, start)
    slope, start = slope[kept], start[kept]

    def profile(epsilon: Array) -> Array:
        line = np.searchsorted(breaks, epsilon)
        # delta falls with epsilon: what is proven at 0, the total variation, holds for all of them.
        log_delta = np.minimum(start[line] - slope[line] * epsilon * (1 - 2.0**-52), at_zero)
        best: Array = np.exp(np.minimum(log_delta, 0.0))
        return best

    return symmetric(profile)


def interpolate_orders(orders: npt.ArrayLike, divergences: npt.ArrayLike, wanted: npt.ArrayLike) -> Array:
    """Return bounds at `wanted` orders from bounds at known ones.

    Between two orders (alpha - 1) D_alpha is at most its chord, because it is convex in alpha and 0 at 1; and
    D_alpha rises with alpha, so a bound at a larger order holds at a smaller one.

    Args:
        orders: Known finite orders > 1, shape (m,).
        divergences: Bounds >= 0 at the known orders, shape (m,); infinity where there is none.
        wanted: Orders > 1, any shape.

    Returns:
        Shape of `wanted`; infinity above the largest order with a bound.

    Raises:
        ParameterError: An order <= 1, a negative or NaN bound, no order, other shapes.

    Reference:
        van Erven and Harremoës (2014), arXiv:1206.2459, Theorem 3 and Corollary 2; Girgis (2023),
        Remark 5.3.2.
    """
    alpha, bound = _known(*_checked(orders, divergences))
    at = check_orders(wanted)
    if alpha.size == 0:
        return np.full(at.shape, math.inf)
    after = np.searchsorted(alpha, at)
    known = np.minimum(after, alpha.size - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        knots, moments = np.append(1.0, alpha), np.append(0.0, (alpha - 1) * bound)
        between = np.interp(np.minimum(at, alpha[-1]), knots, moments) / (np.minimum(at, alpha[-1]) - 1)
    between = np.where(alpha[known] == at, bound[known], np.fmin(between * _ROUND_UP, bound[known]))
    return np.where(after == alpha.size, math.inf, between)


class Renyi(Leaf, frozen=True, tag=True):
    """Any release whose Rényi divergences are bounded at some orders, in both directions.

    Attributes:
        orders: Finite orders > 1, strictly increasing, at least one.
        divergences: One bound per order: finite, >= 0, not decreasing (a larger order is a stronger claim).
        neighbours: The relation under which the bounds hold.
    """

    continuous: ClassVar[bool] = False

    orders: tuple[float, ...]
    divergences: tuple[float, ...]
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "Rényi differential privacy"

    def __post_init__(self) -> None:
        for name, values in (("orders", self.orders), ("divergences", self.divergences)):
            if type(values) is not tuple or not 1 <= len(values) <= _MOST_ORDERS:
                raise ParameterError(
                    f"{name} must be a tuple of 1 to {_MOST_ORDERS} numbers, got {values!r:.80}."
                )
        if len(self.orders) != len(self.divergences):
            raise ParameterError(
                f"divergences must hold one bound for each of {len(self.orders)} orders, "
                f"got {len(self.divergences)}."
            )
        alpha, bound = (np.asarray(v, dtype=np.float64) for v in (self.orders, self.divergences))
        if not (np.all(np.isfinite(alpha)) and alpha[0] > 1 and np.all(np.diff(alpha) > 0)):
            raise ParameterError(
                f"orders must be finite, > 1 and strictly increasing, got {self.orders!r:.80}."
            )
        if not (np.all(np.isfinite(bound)) and bound[0] >= 0 and np.all(np.diff(bound) >= 0)):
            raise ParameterError(
                f"divergences must be finite, >= 0 and not decreasing, got {self.divergences!r:.80}."
            )

    def work(self, *, many: bool) -> float:
        """Return the work of an envelope of lines, one for each order."""
        return 1e4 + 200.0 * len(self.orders) * (1 + many)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return renyi_curve(self.orders, self.divergences)

    def renyi(self, orders: Array) -> Array:
        """Return bounds at other orders: by convexity between the known ones, infinite above the largest."""
        return interpolate_orders(self.orders, self.divergences, orders)

    def repeated(self, count: int) -> Renyi | NonPrivate:
        """Return `count` such releases as one: divergences add up (Mironov 2017, Proposition 1)."""
        times = check_count("count", count)
        return _leaf(self.orders, [times * d for d in self.divergences], self.neighbours)

    def with_other(self, other: Renyi) -> Renyi | NonPrivate:
        """Return this release and another as one, at the orders of both up to the smaller of the largest."""
        largest = min(self.orders[-1], other.orders[-1])
        orders = np.array(sorted({a for a in (*self.orders, *other.orders) if a <= largest}))
        return _leaf(orders.tolist(), (self.renyi(orders) + other.renyi(orders)).tolist(), self.neighbours)


def _leaf(
    orders: list[float] | tuple[float, ...], divergences: list[float], neighbours: Neighbours
) -> Renyi | NonPrivate:
    """Return a Renyi leaf of the orders with a finite bound, or no claim where there is none."""
    rising = np.maximum.accumulate(np.asarray(divergences))  # round-off must not make a bound fall
    finite = int(np.isfinite(rising).sum())
    if finite == 0:
        return NonPrivate(neighbours)
    known = tuple(float(a) for a in orders[:finite])
    return Renyi(known, tuple((rising[:finite] * (1 + 2.0**-52)).tolist()), neighbours)


def _checked(orders: npt.ArrayLike, divergences: npt.ArrayLike) -> tuple[Array, Array]:
    """Return orders and bounds as vectors; refuse what proves nothing or proves too much."""
    alpha, bound = check_orders(orders), as_numbers("divergences", divergences)
    if alpha.ndim != 1 or alpha.shape != bound.shape or not np.all(np.isfinite(alpha)):
        raise ParameterError(
            "orders must be a vector of finite numbers > 1 with one divergence each, "
            f"got shapes {alpha.shape} and {bound.shape}."
        )
    if not np.all(bound >= 0):
        raise ParameterError(
            "divergences must be >= 0, infinity where there is no bound; got a negative or NaN."
        )
    return alpha, bound


def _known(alpha: Array, bound: Array) -> tuple[Array, Array]:
    """Return the orders that have a bound, increasing and without repetition, and the least bounds there."""
    sequence = np.lexsort((bound, alpha))
    alpha, bound = alpha[sequence], bound[sequence]
    once = np.isfinite(bound) & np.append(True, np.diff(alpha) > 0)
    return alpha[once], np.minimum.accumulate(bound[once][::-1])[::-1]


def _log_total_variation(divergences: Array) -> Array:
    """Return the log of a bound on delta at epsilon = 0: Pinsker, and Bretagnolle and Huber (1979).

    Both bound the total variation by the divergence of order 1, which no order > 1 is below.
    """
    with np.errstate(divide="ignore"):
        return 0.5 * np.minimum(np.log(divergences) - math.log(2), np.log(-np.expm1(-divergences)))


def _lower_envelope(slope: Array, start: Array) -> tuple[list[int], Array]:
    """Return which lines start - slope * x are the lowest somewhere, and the x where the next one takes over.

    Slopes must increase strictly; the smallest is the lowest line for x -> -infinity.
    """
    kept: list[int] = []
    breaks: list[float] = []
    for k in range(slope.size):
        while kept:
            last = kept[-1]
            crossing = float((start[k] - start[last]) / (slope[k] - slope[last]))
            if not breaks or crossing > breaks[-1]:
                breaks.append(crossing)
                break
            kept.pop()
            breaks.pop()
        kept.append(k)
    return kept, np.array(breaks)
