"""Privacy loss distributions: curves composed by convolution, always rounded towards less private.

A curve is replaced by the law on a grid of losses whose curve interpolates it linearly in a = e^epsilon
("connect the dots", Doroshenko et al. 2022, arXiv:2207.04380); that curve is never below the true one. Grid
laws compose by FFT. This is the only module that imports dp-accounting, and it uses it as arithmetic: its
events are not ours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from dp_accounting.pld.pld_pmf import DensePLDPmf

from tacit.privacy.curves import Array, Curve, Profile, symmetric

__all__ = ["LossDistribution", "compose_curves"]

_LONGEST = 1 << 20  # grid points of one release
_LARGEST_LOSS = 1000.0
_POINTS_PER_STD = 30.0  # discretisation then inflates the composed variance by less than 1 part in 5,000


@dataclass(frozen=True)
class LossDistribution:
    """A law on a grid of privacy losses, plus the probability of an infinite loss.

    Attributes:
        step: Distance of neighbouring losses.
        lowest: Index of the lowest loss; losses are (lowest + k) * step.
        mass: Probability of each loss, shape (m,).
        infinite: Probability of an infinite loss, round-off allowance included.
    """

    step: float
    lowest: int
    mass: Array
    infinite: float

    @cached_property
    def _tails(self) -> tuple[Array, Array, Array]:
        """Return losses, and the mass of P and of Q at and above each, with a 0 at the end."""
        losses = (self.lowest + np.arange(self.mass.size, dtype=np.float64)) * self.step
        upper = np.append(np.cumsum(self.mass[::-1])[::-1], 0.0)
        with np.errstate(over="ignore"):
            other = self.mass * np.exp(-np.maximum(losses, -600.0))
        return losses, upper, np.append(np.cumsum(other[::-1])[::-1], 0.0)

    def delta(self, epsilon: Array) -> Array:
        """Return the hockey-stick divergence at `epsilon` (any shape)."""
        losses, upper, lower = self._tails
        above = np.searchsorted(losses, epsilon, side="right")
        return np.minimum(
            self.infinite + np.maximum(upper[above] - np.exp(np.minimum(epsilon, 700.0)) * lower[above], 0.0),
            1.0,
        )

    def epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 whose divergence is at most `delta`; infinity if there is none."""
        if self.infinite > delta:
            return math.inf
        losses, upper, lower = self._tails
        start = int(np.searchsorted(losses, 0.0))
        at_losses = self.infinite + upper[1:] - np.exp(losses) * lower[1:]
        missed = np.flatnonzero(at_losses[start:] > delta)
        first = start if missed.size == 0 else start + int(missed[-1]) + 1
        if first >= self.mass.size:
            return float(losses[-1])
        # Between two losses the divergence is upper - e^eps * lower, with the tail from the higher loss on.
        excess = self.infinite + upper[first] - delta
        return max(0.0, math.log(excess / lower[first])) if excess > 0 and lower[first] > 0 else 0.0

    def repeat(self, count: int, tail: float) -> LossDistribution:
        """Return the law of the sum of `count` independent losses."""
        if count == 1:
            return self
        return _rounded_up(self._dense().self_compose(count, tail), operations=count)

    def compose(self, other: LossDistribution, tail: float) -> LossDistribution:
        """Return the law of the sum of two independent losses on one grid."""
        return _rounded_up(self._dense().compose(other._dense(), tail), operations=1)

    def _dense(self) -> DensePLDPmf:
        return DensePLDPmf(self.step, self.lowest, self.mass, self.infinite, pessimistic_estimate=True)


def _rounded_up(pmf: DensePLDPmf, *, operations: int) -> LossDistribution:
    """Allow for the FFT's round-off: negative mass counts as zero, lost mass as infinite loss."""
    mass = np.maximum(np.asarray(pmf._probs, dtype=np.float64), 0.0)
    allowance = 2.0**-52 * (operations + 32)
    return LossDistribution(pmf._discretization, pmf._lower_loss, mass, pmf._infinity_mass + allowance)


def compose_curves(parts: Sequence[tuple[Curve, int]], *, accuracy: float) -> Curve:
    """Compose releases: each curve counted as often as its number says.

    Args:
        parts: Curves with their counts, at least one.
        accuracy: The smallest delta of interest; cut-off tails are far below it.

    Returns:
        A curve that is nowhere below the true one.
    """
    tail = max(accuracy * 1e-4, 1e-15)
    forward = _compose_direction([(c.forward, c.backward, k) for c, k in parts], tail)
    max_loss = math.fsum(c.max_loss * k for c, k in parts)
    if all(curve.is_symmetric for curve, _ in parts):
        return symmetric(_capped(forward, max_loss), max_loss=max_loss)
    backward = _compose_direction([(c.backward, c.forward, k) for c, k in parts], tail)
    return Curve(forward=_capped(forward, max_loss), backward=_capped(backward, max_loss), max_loss=max_loss)


def _capped(law: LossDistribution, max_loss: float) -> Profile:
    """Return the curve of a law, zero from the pure level on."""

    def profile(epsilon: Array) -> Array:
        return np.where(epsilon >= max_loss, 0.0, law.delta(epsilon))

    return profile


def _compose_direction(parts: list[tuple[Profile, Profile, int]], tail: float) -> LossDistribution:
    """Return the composed loss law of (P, Q), given each part's curves of (P, Q) and of (Q, P)."""
    total = sum(count for _, _, count in parts)
    cut = tail / total
    ranges = [(_reach(backward, cut), _reach(forward, cut)) for forward, backward, _ in parts]
    variance = sum(
        count * _variance(forward, backward, low=low, high=high)
        for (forward, backward, count), (low, high) in zip(parts, ranges, strict=True)
    )
    step = math.sqrt(variance / total) / _POINTS_PER_STD
    step = max(step, max(low + high for low, high in ranges) / _LONGEST, 1e-12)
    laws = [
        _connect_the_dots(forward, backward, step=step, low=low, high=high).repeat(count, tail)
        for (forward, backward, count), (low, high) in zip(parts, ranges, strict=True)
    ]
    composed = laws[0]
    for law in laws[1:]:
        composed = composed.compose(law, tail)
    return composed


def _reach(profile: Profile, cut: float) -> float:
    """Return an epsilon from which on the curve is within `cut` of its limit."""
    target = cut + float(profile(np.array([_LARGEST_LOSS]))[0])
    low, high = 1e-12, _LARGEST_LOSS
    for _ in range(4):
        grid = np.geomspace(low, high, 33)
        below = np.flatnonzero(profile(grid) <= target)
        first = int(below[0]) if below.size else grid.size - 1
        low, high = float(grid[max(first - 1, 0)]), float(grid[first])
        if high <= low * 1.001:
            break
    return high


def _variance(forward: Profile, backward: Profile, *, low: float, high: float) -> float:
    """Return about the variance of one release's loss; it only sets the grid, so it need not be exact."""
    step, variance = (low + high) / 4096, 0.0
    for _ in range(4):
        law = _connect_the_dots(forward, backward, step=step, low=low, high=high)
        losses = (law.lowest + np.arange(law.mass.size)) * step
        mean = float(losses @ law.mass)
        variance = float((losses - mean) ** 2 @ law.mass)
        finer = max(math.sqrt(variance) / 8, (low + high) / _LONGEST)
        if finer >= step:
            break
        step = finer
    return max(variance, 1e-24)


def _connect_the_dots(
    forward: Profile, backward: Profile, *, step: float, low: float, high: float
) -> LossDistribution:
    """Return the grid law whose curve interpolates `forward`, with losses from about -low to high.

    The mass at e^eps_k is a_k times the change of slope there. Below a = 1 the differences are taken of
    H(a) - (1 - a) = a H_dual(1/a), which is small where H is close to 1: no digits are lost.
    """
    lowest, highest = -max(math.ceil(low / step), 1), max(math.ceil(high / step), 1)
    epsilon: Array = np.arange(lowest, highest + 1, dtype=np.float64) * step
    zero = -lowest
    curve = np.empty_like(epsilon)
    curve[zero:] = np.minimum.accumulate(np.clip(forward(epsilon[zero:]), 0.0, 1.0))
    curve[:zero] = np.exp(epsilon[:zero]) * np.clip(backward(-epsilon[:zero]), 0.0, 1.0)

    # rise[k]: from point k to k + 1, divided by a_{k+1} - a_k and multiplied by a_k.
    rise = np.diff(curve) / math.expm1(step)
    mass = np.zeros_like(curve)
    mass[1:-1] = rise[1:] - math.exp(step) * rise[:-1]
    mass[0] = rise[0] - curve[0]
    mass[-1] = -math.exp(step) * rise[-1]
    mass[zero] += 1.0  # the slope -1 of the part 1 - a ends at a = 1
    if zero == 0:
        mass[0] += curve[0]
    return LossDistribution(step, lowest, np.maximum(mass, 0.0), float(curve[-1]))
