"""Composition by convolution of loss distributions, always rounded towards less private.

Grid laws compose by FFT. The round-off of an FFT is absolute, so a second law, tilted to the losses that
matter for a small delta, is composed where that round-off would show. See docs/theory/accounting.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from scipy import fft

from tacit.privacy.curves import Array, Curve, Profile, symmetric, total_loss
from tacit.privacy.loss_grid import FINEST, LONGEST, LossDistribution, connect_the_dots, loss_variance, reach

__all__ = ["compose_curves"]

_WIDEST = 1 << 22  # grid points of a composition; a coarser grid is looser, never wrong
_MOST_POINTS = 1 << 24  # of the spectra of all different releases together
_POINTS_PER_STD = 30.0  # the grid then adds at most 1 part in 900 to the composed variance
_ENOUGH, _LOOSER = 1 << 14, 1e-3  # points of a release, if they change a small delta by no larger part
_STRAY = 1e-20  # probability that a composed loss falls outside of the grid
_FARTHEST_KNOT = 1e6  # a level beyond is outside of every grid
_COARSEST = 10.0  # steps that large prove nothing of use
_GOLDEN = (math.sqrt(5) - 1) / 2
_ROUND_OFF = 16 * 2.0**-53
_MOST = 10**12  # releases; round-off of the n-th power of a spectrum is then at most 1e-3 of it


_Parts = Sequence[tuple[Profile, Profile, int]]
"""Curves of (P, Q) and of (Q, P) of releases, with their counts."""

_Ranges = Sequence[tuple[float, float]]
"""How far down and up losses of releases go."""

_Laws = Sequence[tuple[LossDistribution, int]]
"""Releases on one grid, with their counts."""


def compose_curves(parts: Sequence[tuple[Curve, int]], *, accuracy: float) -> Curve:
    """Compose releases: each curve counted as often as its number says.

    Args:
        parts: Curves with their counts, at least one.
        accuracy: The smallest delta of interest; what is cut off is far below it.

    Returns:
        A curve that is nowhere below the true one.
    """
    max_loss = total_loss(c.max_loss * k for c, k in parts)
    # Pure releases have most of their mass at their level: with that on the grid, nothing is lost there.
    knot = max(c.atom or (c.max_loss if c.max_loss < math.inf else 0.0) for c, _ in parts)

    def composed(directions: Sequence[tuple[Profile, Profile, int]]) -> Profile:
        found = _compose_direction(directions, accuracy, knot=knot)

        def profile(epsilon: Array) -> Array:
            proven: Array = np.minimum.reduce([law.delta(epsilon) for law in found])
            return np.where(epsilon >= max_loss, 0.0, proven)

        return profile

    forward = composed([(c.forward, c.backward, k) for c, k in parts])
    if all(curve.is_symmetric for curve, _ in parts):
        return symmetric(forward, max_loss=max_loss)
    backward = composed([(c.backward, c.forward, k) for c, k in parts])
    return Curve(forward=forward, backward=backward, max_loss=max_loss)


def _compose_direction(parts: _Parts, accuracy: float, *, knot: float) -> list[LossDistribution]:
    """Return laws that all bound the composed loss, from each part's curves of (P, Q) and of (Q, P)."""
    total = sum(count for _, _, count in parts)
    if total > _MOST:
        return [_nothing_hidden()]
    cut = accuracy * 1e-4 / total
    ranges = []
    for forward, backward, _ in parts:
        high = reach(forward, cut)
        ranges.append((high if backward is forward else reach(backward, cut), high))
    variance = sum(
        count * loss_variance(forward, backward, low=low, high=high)
        for (forward, backward, count), (low, high) in zip(parts, ranges, strict=True)
    )
    step = math.sqrt(variance / total) / _POINTS_PER_STD
    step = _longer_step(parts, ranges, step, accuracy)
    longest, widest = (
        max(LONGEST // len(parts), 1 << 13),
        min(max(_MOST_POINTS // len(parts), 1 << 14), _WIDEST),
    )
    step = max(step, max(low + high for low, high in ranges) / longest, FINEST)
    if step < knot < _FARTHEST_KNOT:
        step = knot / math.floor(knot / step)
    while step < _COARSEST:
        laws = _on_grid(parts, ranges, step)
        if any(law.infinite >= 1 or not law.mass.any() for law, _ in laws):
            break
        first, last = _window(laws, 0.0)
        if last - first <= widest:
            plain, round_off = _convolved(laws, 0.0, (first, last))
            if round_off <= 1e-3 * accuracy:
                return [plain]
            tilt = _tilt(laws, accuracy)
            return [plain, _convolved(laws, tilt, _window(laws, tilt))[0]]
        step *= 1.1 * (last - first) / widest
    return [_nothing_hidden()]


def _on_grid(parts: _Parts, ranges: _Ranges, step: float) -> _Laws:
    """Return all releases on a grid of that step."""
    return [
        (connect_the_dots(forward, backward, step=step, low=low, high=high), count)
        for (forward, backward, count), (low, high) in zip(parts, ranges, strict=True)
    ]


def _longer_step(parts: _Parts, ranges: _Ranges, step: float, accuracy: float) -> float:
    """Return a step of a grid of few points that is as good, or `step`, which is short against the losses.

    Where losses are rare and large, as of a small sample with little noise, a longer step hardly changes
    their sum: not its Chernoff bound, at the order that is best where the tail is of the size of `accuracy`.
    """
    spread = max(low + high for low, high in ranges)
    longer = spread / _ENOUGH
    if longer <= 16 * step:
        return step
    step = max(step, spread / LONGEST)  # no grid has more points, however small the variance
    laws = _on_grid(parts, ranges, longer)
    order = _tilt(laws, accuracy) / longer
    moment = _log_moment(laws, order * longer)
    while longer >= 4 * step:
        # Splitting over grid points makes moments larger, and four times as long a step by as much or more.
        finer = _log_moment(_on_grid(parts, ranges, longer / 4), order * longer / 4)
        if moment - finer <= _LOOSER:
            return longer
        longer, moment = longer / 4, finer
    return step


def _nothing_hidden() -> LossDistribution:
    """Return the law of a loss that is always infinite."""
    return LossDistribution(1.0, 0, np.zeros(1), 1.0)


def _convolved(laws: _Laws, tilt: float, window: tuple[int, int]) -> tuple[LossDistribution, float]:
    """Return the law of the sum of all losses in a window, and how much mass was added to cover round-off.

    Each law is multiplied by e^{tilt k} and normalised before the FFT, and the sum divided by it afterwards:
    the round-off is then small against the masses around the tilted mean, however small they are.
    """
    low, high = window
    size = fft.next_fast_len(max(high - low + 1, *(law.mass.size for law, _ in laws)), real=True)
    spectrum, operations = np.ones(size // 2 + 1, dtype=np.complex128), math.log2(size)
    shift, log_scale = 0, 0.0
    for law, count in laws:
        tilted, log_norm = _tilted(law, tilt)
        centre = round(float(np.arange(tilted.size) @ tilted))
        # The mean at index 0 keeps the phases, and so the round-off of their multiples, small.
        padded = np.zeros(size)
        padded[: tilted.size] = tilted
        spectrum *= np.power(fft.rfft(np.roll(padded, -centre)), float(count))
        shift += count * (law.lowest + centre)
        log_scale += count * log_norm
        operations += count
    mass = np.maximum(np.roll(fft.irfft(spectrum, size), shift - low)[: high - low + 1], 0.0)
    # The round-off of the spectrum is at most this part of it, and spreads evenly over the masses; observed
    # is about a tenth (docs/theory/accounting.md).
    relative = _ROUND_OFF * operations
    noise = relative * math.sqrt(2) * float(np.linalg.norm(spectrum)) / size
    mass = mass * (1 + relative) + noise
    index = np.arange(low, high + 1, dtype=np.float64)
    # Masses above 1 prove nothing, so they need no exact value.
    mass *= np.exp(np.minimum(log_scale - tilt * index, 50.0))
    stray = _STRAY * math.exp(min(log_scale - tilt * high, 50.0))
    step = laws[0][0].step
    known_from = low * step if tilt > 0 else -math.inf
    law = LossDistribution(step, low, mass, min(_infinite(laws) + stray, 1.0), known_from)
    return law, noise * mass.size


def _infinite(laws: _Laws) -> float:
    """Return the chance that any of the losses is infinite: prod (F + I)^k - prod F^k."""
    log_all = log_finite = 0.0
    for law, count in laws:
        total = float(law.mass.sum()) + law.infinite
        log_all += count * math.log(total)
        log_finite += count * math.log1p(-law.infinite / total)
    return math.exp(min(log_all, 1.0)) * -math.expm1(log_finite)


def _tilted(law: LossDistribution, tilt: float) -> tuple[Array, float]:
    """Return the normalised law with masses times e^{tilt * index}, and the logarithm of its norm."""
    end = -1 if tilt > 0 else 0
    dearest = end % law.mass.size if law.mass[end] else int(np.flatnonzero(law.mass)[end])
    # At most 1 wherever there is mass, and 1 somewhere: neither overflow nor a sum of zero.
    factor = np.exp(np.minimum(tilt * (np.arange(law.mass.size) - dearest), 0.0))
    weighted = law.mass * factor
    norm = float(weighted.sum())
    return weighted / norm, math.log(norm) + tilt * (law.lowest + dearest)


def _log_moment(laws: _Laws, tilt: float) -> float:
    """Return log E e^{tilt * index} of the sum of all losses."""
    return math.fsum(count * _tilted(law, tilt)[1] for law, count in laws)


def _moments(laws: _Laws, tilt: float) -> tuple[float, float]:
    """Return mean and variance of the tilted sum, in grid steps."""
    mean = variance = 0.0
    for law, count in laws:
        tilted, _ = _tilted(law, tilt)
        index = np.arange(tilted.size, dtype=np.float64)
        centre = float(index @ tilted)
        mean += count * (law.lowest + centre)
        variance += count * float((index - centre) ** 2 @ tilted)
    return mean, variance


def _window(laws: _Laws, tilt: float) -> tuple[int, int]:
    """Return grid indices between which the tilted sum falls, but for `_STRAY` on either side (Chernoff)."""
    base, log_stray = _log_moment(laws, tilt), -math.log(_STRAY)

    def above(order: float) -> float:
        return (_log_moment(laws, tilt + order) - base + log_stray) / order

    def below(order: float) -> float:
        return (_log_moment(laws, tilt - order) - base + log_stray) / order

    low_order, high_order = _orders(laws, tilt, log_stray)
    high, low = _least(above, low_order, high_order), -_least(below, low_order, high_order)
    end = sum(count * (law.lowest + law.mass.size - 1) for law, count in laws)
    start = sum(count * law.lowest for law, count in laws)
    margin = 1 + 1e-12 * sum(count for _, count in laws) * max(law.mass.size for law, _ in laws)
    return max(start, math.floor(low - margin)), min(end, math.ceil(high + margin))


def _orders(laws: _Laws, tilt: float, log_tail: float) -> tuple[float, float]:
    """Return between which orders a Chernoff bound is best, be it many small losses or few large ones."""
    _, variance = _moments(laws, tilt)
    many = math.sqrt(2 * log_tail / max(variance, 1e-6))
    few = log_tail / max(law.mass.size for law, _ in laws)
    return min(many, few) / 16, max(many, few) * 16


def _least(function: Callable[[float], float], low: float, high: float) -> float:
    """Return about the least value of a function with one valley, by golden section over its logarithm."""
    left, right = math.log(low), math.log(high)
    inner, outer = right - _GOLDEN * (right - left), left + _GOLDEN * (right - left)
    at_inner, at_outer = function(math.exp(inner)), function(math.exp(outer))
    while right - left > 0.2:
        if at_inner < at_outer:
            right, outer, at_outer = outer, inner, at_inner
            inner = right - _GOLDEN * (right - left)
            at_inner = function(math.exp(inner))
        else:
            left, inner, at_inner = inner, outer, at_outer
            outer = left + _GOLDEN * (right - left)
            at_outer = function(math.exp(outer))
    return min(at_inner, at_outer)


def _tilt(laws: _Laws, accuracy: float) -> float:
    """Return about the tilt whose mean is where the tail of the sum is of the size of `accuracy`."""
    target = -math.log(accuracy)
    low, high = (math.log(order) for order in _orders(laws, 0.0, target))
    for _ in range(10):
        tilt = math.exp((low + high) / 2)
        rate = tilt * _moments(laws, tilt)[0] - _log_moment(laws, tilt)
        low, high = (math.log(tilt), high) if rate < target else (low, math.log(tilt))
    return math.exp(low)
