"""Losses on a grid: the law whose curve joins the dots of a privacy curve, never below it.

A curve is replaced by the law on a grid of losses whose curve interpolates it linearly in a = e^epsilon
("connect the dots", Doroshenko et al. 2022, arXiv:2207.04380). A true curve is convex in a, so the
interpolation of any bound of it is nowhere below it. Derivations: docs/theory/accounting.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy

from tacit.privacy.curves import Array, Profile, bounded

__all__ = ["FINEST", "LONGEST", "LossDistribution", "connect_the_dots", "loss_variance", "reach"]

LONGEST = 1 << 20
"""Grid points of one release."""
FINEST = 1e-12
"""Least step of a grid."""
_LARGEST_LOSS = 1000.0
_HULL_RANGE = 300.0  # losses whose e^epsilon and its squares are far from overflow
_FURTHEST = 32.0  # losses added up in one go: as many units of the last place does their exponential cost
_BLOCK = 8192  # of them at most, for the processor's cache


@dataclass(frozen=True)
class LossDistribution:
    """A law on a grid of privacy losses, plus the probability of an infinite loss.

    Attributes:
        step: Distance of neighbouring losses.
        lowest: Index of the lowest loss; losses are (lowest + k) * step.
        mass: Probability of each loss, shape (m,).
        infinite: Probability of an infinite loss.
        known_from: Below this epsilon the law proves nothing.
    """

    step: float
    lowest: int
    mass: Array
    infinite: float
    known_from: float = -math.inf

    @cached_property
    def _at_losses(self) -> tuple[float, Array]:
        """Return the finite mass, and the divergence at every loss of the grid without the infinite part.

        H_k = sum_{j > k} m_j (1 - e^{-(j - k) step}), summed from the top as a recursion of positive terms.
        """
        above = np.concatenate([[0.0], np.cumsum(self.mass[:0:-1])])
        divergence = _discounted(-math.expm1(-self.step) * above, self.step)[::-1]
        round_off = 1 + (self.mass.size + 2 * _FURTHEST) * 2.0**-50
        return float(self.mass.sum()), divergence * round_off

    def delta(self, epsilon: Array) -> Array:
        """Return the hockey-stick divergence at `epsilon` (any shape)."""
        total, at_losses = self._at_losses
        last = self.mass.size - 1
        place = np.clip(np.floor(epsilon / self.step - self.lowest), -1, last).astype(np.int64)
        here, after = at_losses[np.maximum(place, 0)], at_losses[np.minimum(place + 1, last)]
        # Linear in e^epsilon between two losses, and from (0, total) to the lowest one.
        gap = np.clip(epsilon - (self.lowest + place + 1) * self.step, -self.step, 0.0)
        inside = after + (here - after) * (np.expm1(gap) / math.expm1(-self.step))
        below = total - np.exp(np.minimum(epsilon - self.lowest * self.step, 0.0)) * (total - at_losses[0])
        value: Array = self.infinite + np.where(place < 0, below, inside)
        return np.where(epsilon < self.known_from, 1.0, np.minimum(value, 1.0))


def reach(profile: Profile, cut: float) -> float:
    """Return an epsilon from which on the curve is within `cut` of its limit."""
    target = cut + float(bounded(profile, np.array([_LARGEST_LOSS]))[0])
    low, high = 1e-12, _LARGEST_LOSS
    for _ in range(4):
        grid = np.geomspace(low, high, 33)
        first = _first_below(profile, grid, target)
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
        if high <= low * 1.001:
            break
    return high


def _first_below(profile: Profile, grid: Array, target: float) -> int:
    """Return the index of the first epsilon at which a curve is at most `target`, or of the last one."""
    low, high = 0, grid.size - 1
    while low < high:
        # A curve falls, and a value may be dear, or a call: few of both.
        tried = np.unique(np.linspace(low, high, 7)[1:-1].astype(np.int64))
        below = bounded(profile, grid[tried]) <= target
        first = int(np.argmax(below)) if below.any() else tried.size
        if first > 0:
            low = int(tried[first - 1]) + 1
        if first < tried.size:
            high = int(tried[first])
    return low


def loss_variance(forward: Profile, backward: Profile, *, low: float, high: float) -> float:
    """Return about the variance of one release's loss; it only sets the grid, so it need not be exact."""
    step, variance = max((low + high) / 4096, FINEST), math.inf
    for _ in range(10):
        law = connect_the_dots(forward, backward, step=step, low=low, high=high)
        losses = (law.lowest + np.arange(law.mass.size)) * step
        mean = float(losses @ law.mass)
        before, variance = variance, float((losses - mean) ** 2 @ law.mass)
        finer = max(math.sqrt(variance) / 8, step / 8, (low + high) / LONGEST, FINEST)
        # Of rare, large losses most is known long before the grid is as fine as their deviation.
        if finer >= step or variance >= 0.98 * before:
            break
        step = finer
    return max(variance, 1e-24)


def connect_the_dots(
    forward: Profile, backward: Profile, *, step: float, low: float, high: float
) -> LossDistribution:
    """Return the grid law whose curve interpolates `forward`, with losses from about -low to high.

    The mass at e^eps_k is a_k times the change of slope there. Below a = 1 the differences are taken of
    H(a) - (1 - a) = a H_dual(1/a), which is small where H is close to 1: no digits are lost.
    """
    lowest, highest = -max(math.ceil(low / step), 1), max(math.ceil(high / step), 1)
    epsilon: Array = np.arange(lowest, highest + 1, dtype=np.float64) * step
    zero = -lowest
    above = bounded(forward, epsilon[zero:])
    is_known = backward is forward and zero < above.size  # curves are dear: each level is asked for once
    below = above[zero:0:-1] if is_known else bounded(backward, -epsilon[:zero])
    # The truth falls with epsilon, so a bound at a smaller epsilon holds at a larger one as well.
    curve = np.concatenate([np.exp(epsilon[:zero]) * below, np.minimum.accumulate(above)])

    # rise[k]: from point k to k + 1, divided by a_{k+1} - a_k and multiplied by a_k.
    rise = np.diff(curve) / math.expm1(step)
    mass = np.zeros_like(curve)
    mass[1:-1] = rise[1:] - math.exp(step) * rise[:-1]
    mass[0] = rise[0] - curve[0]
    mass[-1] = -math.exp(step) * rise[-1]
    mass[zero] += 1.0  # the slope -1 of the part 1 - a ends at a = 1
    if -np.minimum(mass, 0.0).sum() > 1e-9:
        mass = _hull(epsilon, curve, mass, step=step)
    mass, infinite = np.maximum(mass, 0.0), float(curve[-1])
    finite = float(mass.sum())
    if 0 < finite < 1 - infinite:
        mass *= (1 - infinite) / finite  # round-off must not lose mass
    return LossDistribution(step, lowest, mass, infinite)


def _hull(epsilon: Array, curve: Array, mass: Array, *, step: float) -> Array:
    """Return the masses of the greatest convex minorant of a bound that is not convex.

    The truth is convex in a: its own interpolation is a convex minorant of the bounds, so it lies below the
    greatest one, whose slopes are the isotonic regression of the slopes weighted by their lengths.
    """
    inner = np.flatnonzero(np.abs(epsilon) <= _HULL_RANGE)
    first, last = int(inner[0]), int(inner[-1])
    a = np.exp(epsilon[first : last + 1])
    # Slopes of H = curve + max(1 - a, 0), the one that arrives at `first` included.
    value_before = curve[first - 1] if first else 0.0
    length = -math.expm1(-step) * a
    if first == 0:
        length[0] = a[0]
    slope = np.diff(np.concatenate([[value_before], curve[first : last + 1]])) / length
    slope -= epsilon[first : last + 1] <= 0
    slope = scipy.optimize.isotonic_regression(slope, weights=length).x
    beyond = 0.0
    if last + 1 < epsilon.size:
        beyond = float(curve[last + 1] - curve[last]) / (math.expm1(step) * float(a[-1]))
    convex = mass.copy()
    convex[first : last + 1] = a * np.diff(np.append(slope, beyond)) * (1 + 2.0**-40)
    return convex


def _discounted(terms: Array, step: float) -> Array:
    """Return h_i = e^-step h_(i-1) + t_i for t >= 0; the relative error grows with their number only."""
    sums, before = np.empty_like(terms), 0.0
    growth = np.exp(step * np.arange(min(max(int(_FURTHEST / step), 1), _BLOCK, terms.size)))
    for first in range(0, terms.size, growth.size):
        block = terms[first : first + growth.size]
        grown = growth[: block.size]
        here = (np.cumsum(block * grown) + before) / grown
        sums[first : first + growth.size] = here
        before = math.exp(-step) * float(here[-1])
    return sums
