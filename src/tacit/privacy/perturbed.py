"""Privacy curves of objective perturbation: the minimiser of a noisy objective, released as it is.

The objective is a sum of convex losses of <w, x>, plus (lambda / 2) |w|^2 on every coordinate, plus <b, w>
with Gaussian b of deviation sigma. Here rows have norm at most r = 1, `strength` is lambda / r^2, and mu =
L / sigma says how far one record moves the sum of gradients. With the record against without it (`removed`)
and in the other order (`added`) the bounds differ. What is bounded is convex in a = e^epsilon, so a chord of
two bounds is a bound, and a curve is the greatest convex one below all that is proved.

Source: docs/theory/perturbation.md. The mechanism is that of Chaudhuri, Monteleoni and Sarwate (2011, JMLR
12) and Kifer, Smith and Thakurta (2012, COLT); slopes of either sign: Redberg, Koskela and Wang (2023),
arXiv:2401.00583.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from tacit.privacy.curves import (
    Array,
    Curve,
    Profile,
    approximate_dp_curve,
    bounded,
    gaussian_curve,
    gaussian_deltas,
    nothing_hidden,
    symmetric,
)

__all__ = ["logistic_curve", "replaced_by_another", "sloped_curve"]

_ROUND_UP = 1 + 1e-11
_CELLS = 2048  # of the table of largest losses; each costs a relative (width / 5)^2 at most
_FAR = 38.0  # deviations beyond which no float holds the probability
_LEAST_STRENGTH, _LARGEST_DETERMINANT = 1e-50, 1e6
_LEAST_MU, _LARGEST_MU = 1e-9, 1e5  # below, only the total variation is used; above, nothing is claimed
_GOLDEN = (math.sqrt(5) - 1) / 2
_SEARCHES = 36  # by which a place is known to 3e-8 of where it was looked for, and its value to the square


class _Bound(NamedTuple):
    """A convex bound of one direction.

    Attributes:
        profile: Epsilon to delta, a bound for epsilon >= the first knot.
        knots: Epsilons >= 0 among which the end of a tangent is looked for, increasing, shape (m,).
    """

    profile: Profile
    knots: Array


class _Chord(NamedTuple):
    """What is linear in e^epsilon between two points of bounds."""

    low: float
    at_low: float
    high: float
    at_high: float

    def delta(self, epsilon: Array) -> Array:
        """Return the chord between `low` and `high`; at one of them beyond."""
        at = np.clip(epsilon, self.low, self.high)
        share = np.expm1(at - self.high) / math.expm1(self.low - self.high)
        return np.asarray(self.at_high + share * (self.at_low - self.at_high))


def logistic_curve(mu: float, strength: float) -> Curve:
    """Return the curve of logistic loss, whose slope q and curvature are tied: q (1 - q).

    It is that of N(mu, 1) against N(0, 1) from epsilon = 1 / strength - mu^2 / 2 on, and everywhere if that
    is at most 0.

    Args:
        mu: r / sigma, > 0.
        strength: lambda / r^2, > 0.
    """
    if strength * mu * mu >= 2:
        return gaussian_curve(mu)
    if strength < _LEAST_STRENGTH or mu > _LARGEST_MU:
        return nothing_hidden()
    if mu < _LEAST_MU:
        return approximate_dp_curve(0.0, mu)
    return _convex(_tied(mu, strength), _Bound(lambda e: gaussian_deltas(e, np.float64(mu)), _knots(mu)))


def sloped_curve(mu: float, determinant: float, *, either_sign: bool = False, corners: int = 1) -> Curve:
    """Return the curve of losses of which only the largest slope and the largest determinant are known.

    Args:
        mu: L / sigma, > 0.
        determinant: Logarithm of the largest ratio of determinants, >= 0.
        either_sign: Whether the slope may have either sign, and not one that the record alone decides.
        corners: How many extreme slopes there are besides 0; K - 1 for K classes.
    """
    if not determinant < _LARGEST_DETERMINANT or mu > _LARGEST_MU:
        return nothing_hidden()
    if mu < _LEAST_MU:
        return approximate_dp_curve(0.0, min(corners * mu, 1.0))

    def added(epsilon: Array) -> Array:
        delta = gaussian_deltas(epsilon, np.float64(mu))
        if not either_sign:
            return corners * delta
        log_missed = math.log(2) + np.minimum(epsilon, mu * mu / 2) + special.log_ndtr(-mu)
        always = -np.expm1(log_missed - 2.0**-50 * (1 + mu * mu))
        return np.where(epsilon < mu * mu / 2, always, 2 * delta)

    def removed(epsilon: Array) -> Array:
        return added(np.maximum(epsilon - determinant, 0.0))

    return _convex(_Bound(removed, determinant + _knots(mu)), _Bound(added, _knots(mu)))


def replaced_by_another(curve: Curve, *, mu: float, determinant: float) -> Curve:
    """Return the curve of replacing a record, from that of adding or removing one.

    With P and Q the laws with one record and with the other, and R that with neither, or with both, P - a Q
    = (P - b R) + b (R - (a / b) Q) for every b: any split of epsilon is a proof, and the best is looked up
    in a table. For two steps of N(mu, 1) against N(0, 1) it is (epsilon - mu^2) / 2, and gives N(2 mu, 1).

    Args:
        curve: With the record against without it, and back.
        mu: Of one of the two steps, > 0. Where to look, as `determinant`.
        determinant: Logarithm of the largest ratio of determinants, >= 0.
    """
    if not determinant < _LARGEST_DETERMINANT or mu > _LARGEST_MU:
        return nothing_hidden()
    if mu < _LEAST_MU:
        return approximate_dp_curve(0.0, min(2 * float(curve.delta(0.0)), 1.0))

    def knots_of(count: int) -> Array:
        places = _knots(2 * mu, count)
        return np.unique(np.concatenate([[0.0], places, determinant + places]))

    knots, few = knots_of(257), knots_of(129)
    neither = _two_steps(curve.forward, curve.backward, few, mu=mu, determinant=determinant)
    both = _two_steps(curve.backward, curve.forward, few, mu=mu, determinant=determinant)
    first, second = neither(knots), both(knots)
    better = second < first
    if not np.any(better) or better[0]:
        return symmetric(lambda epsilon: np.minimum(neither(epsilon), both(epsilon)) * _ROUND_UP)
    # Close to 0 the way without either is the better one, further out that with both: a tangent to the two.
    start = int(np.argmax(better))
    bridge = _tangent((knots[:start], first[:start]), (knots[start:], second[start:]))

    def profile(epsilon: Array) -> Array:
        least = np.minimum(neither(epsilon), both(epsilon))
        inside = (epsilon > bridge.low) & (epsilon < bridge.high)
        return np.where(inside, np.minimum(least, bridge.delta(epsilon)), least) * _ROUND_UP

    return symmetric(profile)


def _two_steps(first: Profile, second: Profile, knots: Array, *, mu: float, determinant: float) -> Profile:
    """Return the bound by two steps, the first with the part of epsilon that is best near by."""

    def log_at(epsilon: Array, part: Array) -> Array:
        # What underflows may count after the factor: it is no less than the smallest float.
        log_rest = part + np.log(np.maximum(bounded(second, epsilon - part), 5e-324))
        return np.logaddexp(np.log(np.maximum(bounded(first, part), 5e-324)), log_rest)

    # The sum is convex in e^part, so it has one valley; where e^part is nothing beside 1, no digit shows it.
    reach = determinant + mu * (mu + _FAR)
    low, high = np.maximum(-reach - knots, -20.0), knots + reach
    width = (high - low) * _GOLDEN
    left, right = high - width, low + width
    at_left, at_right = log_at(knots, left), log_at(knots, right)
    for _ in range(_SEARCHES):  # of the two places within, one is kept
        rising = at_left < at_right
        low, high = np.where(rising, low, left), np.where(rising, right, high)
        width = (high - low) * _GOLDEN
        fresh = np.where(rising, high - width, low + width)
        at_fresh = log_at(knots, fresh)
        left, right = np.where(rising, fresh, right), np.where(rising, left, fresh)
        at_left, at_right = np.where(rising, at_fresh, at_right), np.where(rising, at_left, at_fresh)
    best = (low + high) / 2

    def profile(epsilon: Array) -> Array:
        beyond = np.maximum(epsilon - knots[-1], 0.0)
        after = np.clip(np.searchsorted(knots, epsilon), 1, knots.size - 1)
        # Where the best part jumps, it is close to one of its neighbours and not between them. Last the best
        # one of two Gaussian steps.
        between = np.interp(epsilon, knots, best) + beyond / 2
        parts = np.stack([between, best[after - 1], best[after], (epsilon - mu * mu) / 2])
        least = log_at(epsilon, parts).min(axis=0)
        return np.asarray(np.exp(np.minimum(least, 0.0)) * _ROUND_UP)

    return profile


def _convex(removed: _Bound, added: _Bound) -> Curve:
    """Return the greatest convex curve below the bounds of both directions; one is the other's dual."""
    left, right = -added.knots[::-1], removed.knots
    bridge = _tangent(
        (left, _dual(left, bounded(added.profile, -left))), (right, bounded(removed.profile, right))
    )
    mirrored = _Chord(
        -bridge.high,
        float(_dual(np.float64(-bridge.high), np.float64(bridge.at_high))),
        -bridge.low,
        float(bounded(added.profile, np.array(-bridge.low))),
    )
    return Curve(
        forward=_joined(removed.profile, added.profile, bridge),
        backward=_joined(added.profile, removed.profile, mirrored),
    )


def _joined(above: Profile, below: Profile, chord: _Chord) -> Profile:
    """Return one bound above a chord, the dual of another below, and the chord between."""

    def profile(epsilon: Array) -> Array:
        high = bounded(above, np.maximum(epsilon, chord.high))
        low = _dual(epsilon, bounded(below, np.maximum(-epsilon, -chord.low)))
        outside = np.where(epsilon >= chord.high, high, low)
        between = (epsilon > chord.low) & (epsilon < chord.high)
        found: Array = np.where(between, chord.delta(epsilon), outside) * _ROUND_UP
        return found

    return profile


def _dual(epsilon: Array | np.float64, opposite: Array | np.float64) -> Array:
    """Return the delta at `epsilon` <= 0 of laws that have `opposite` at -epsilon in the other order."""
    at = np.minimum(epsilon, 0.0)
    return np.asarray(-np.expm1(at) + np.exp(at) * opposite)


def _tangent(left: tuple[Array, Array], right: tuple[Array, Array]) -> _Chord:
    """Return about the line below two sets of points (epsilon, delta), left and right, that touches both.

    Any chord is a bound; this one makes the whole convex.
    """
    (low, at_low), (high, at_high) = left, right

    def log_fall(i: int | slice, j: int | slice) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            fall = np.log(np.maximum(at_low[i] - at_high[j], 0.0))
            return np.nan_to_num(fall - high[j] - np.log(-np.expm1(low[i] - high[j])), nan=-np.inf)

    every, i, j = slice(None), low.size - 1, -1
    for _ in range(100):
        before = (i, j)
        j = int(np.argmax(log_fall(i, every)))
        i = int(np.argmin(log_fall(every, j)))
        if (i, j) == before:
            break
    return _Chord(float(low[i]), float(at_low[i]), float(high[j]), float(at_high[j]))


def _knots(mu: float, count: int = 1025) -> Array:
    """Return the losses >= 0 of N(mu, 1) against N(0, 1) at places that lie closer where more mass is."""
    places = np.sinh(np.linspace(np.arcsinh(max(-mu / 2, -_FAR)), np.arcsinh(_FAR), count))
    return mu * np.maximum(places + mu / 2, 0.0)


def _tied(mu: float, strength: float) -> _Bound:
    """Return E (1 - e^(epsilon - M(x)))_+ for x ~ N(0, 1) and M the largest loss of logistic loss at x.

    M is convex and rises, so on a grid of x its chords are above it; the chance of x beyond t is
    log-concave in t, so tangents of its logarithm are above it. With both, delta = integral of e^(epsilon -
    m) P(M > m) over m > epsilon is a sum of exponentials: of positive terms, which loses no digit of a
    small delta.
    """
    steep = 1 / (strength * mu)
    first, last = max(-steep, -_FAR), min(steep - mu, _FAR)
    gaussian_from = 1 / strength - mu * mu / 2

    def gaussian(epsilon: Array) -> Array:
        return gaussian_deltas(np.maximum(epsilon, gaussian_from), np.float64(mu))

    if not first < last:  # where it differs from a Gaussian, the delta is 1 to all digits
        return _Bound(
            lambda e: np.where(e < gaussian_from, 1.0, gaussian(e)),
            np.append(0.0, gaussian_from + _knots(mu)),
        )
    x = np.linspace(first, last, _CELLS + 1)
    loss = np.maximum.accumulate(_largest_loss(x, mu, strength))
    width = (last - first) / _CELLS
    slope, middle = np.diff(loss) / width, (x[:-1] + x[1:]) / 2
    log_beyond = special.log_ndtr(-middle)
    hazard = np.exp(-0.5 * middle * middle - 0.5 * math.log(2 * math.pi) - log_beyond)

    def log_cell(length: Array, cell: npt.NDArray[np.intp] | slice) -> Array:
        """Return the log of the integral over the last `length` of cells, with m from where it starts."""
        decay = slope[cell] + hazard[cell]
        with np.errstate(divide="ignore", invalid="ignore"):
            log_share = np.log(slope[cell]) + np.log(-np.expm1(-decay * length)) - np.log(decay)
        found: Array = log_beyond[cell] + hazard[cell] * (length - width / 2) + log_share
        return np.where(slope[cell] > 0, found, -np.inf)

    # What lies beyond the grid: a Gaussian curve, or less than the smallest float.
    with np.errstate(divide="ignore"):
        rest = np.log(gaussian(loss[-1:])) if last < _FAR else special.log_ndtr(np.array([-_FAR]))
    cells = log_cell(np.full(_CELLS, width), slice(None)) - loss[:-1]
    log_after = np.logaddexp.accumulate(np.append(rest - loss[-1], cells[::-1]))[::-1]

    def profile(epsilon: Array) -> Array:
        at = np.clip(epsilon, loss[0], loss[-1])
        cell = np.clip(np.searchsorted(loss, at, side="right") - 1, 0, _CELLS - 1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            length = np.nan_to_num((loss[cell + 1] - at) / slope[cell], nan=0.0)
        inside = np.exp(log_cell(np.minimum(length, width), cell)) + np.exp(at + log_after[cell + 1])
        # Below the first loss of the grid it is exceeded always.
        below = np.minimum(epsilon - loss[0], 0.0)
        table = -np.expm1(below) + np.exp(below) * inside
        return np.where(epsilon >= gaussian_from, gaussian(epsilon), table * _ROUND_UP)

    knots = np.unique(np.append(loss, gaussian_from + _knots(mu)))
    return _Bound(profile, np.append(0.0, knots[knots > 0]))


def _largest_loss(x: Array, mu: float, strength: float) -> Array:
    """Return max over q in [0, 1] of ln(1 + q (1 - q) / s) + mu q (mu q / 2 + x), s = strength, rounded up.

    Its second derivative is mu^2 - (2 s + 1 - 2 t) / (s + t)^2 with t = q (1 - q), which rises with t: the
    loss is concave in q near 0 and near 1, and convex between. The largest is at 0, at 1, or where a slope
    is 0.
    """
    s = strength
    total = (4 * s + 1) / (1 + math.sqrt(1 + mu * mu * (4 * s + 1)))  # s + t where it is 0
    bend = min(max(total - s, 0.0), 0.25)
    turn = 2 * bend / (1 + math.sqrt(1 - 4 * bend))
    largest = np.maximum(mu * (mu / 2 + x), 0.0)
    largest = largest * (1 + 2.0**-40)
    for start, end in ((0.0, turn), (1 - turn, 1.0)):
        low, high = np.full(x.shape, start), np.full(x.shape, end)
        for _ in range(60):
            q = (low + high) / 2
            falling = (1 - 2 * q) / (s + q * (1 - q)) + mu * (mu * q + x) < 0
            low, high = np.where(falling, low, q), np.where(falling, q, high)
        q = (low + high) / 2
        determinant, shift = np.log1p(q * (1 - q) / s), mu * q * (mu * q / 2 + x)
        off = 2.0**-40 * (determinant + mu * q * (mu * q / 2 + np.abs(x)))
        largest = np.maximum(largest, determinant + shift + off)
    return largest
