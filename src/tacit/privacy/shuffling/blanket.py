"""The privacy blanket: a bound for any local randomizer whose densities are known.

Every message is, with probability beta, a draw from one law omega whatever its data (the blanket). Whoever
is told which other messages are not, takes them away; what is left bounds every data set (Balle, Bell,
Gascón and Nissim 2019, arXiv:1903.02837, Theorem 5.2 and Lemma 5.3, here without its Hoeffding step):

    H_a <= (1/n) E( sum_{i=1}^n b_i l_i )_+,   b_i ~ Bern(beta), l = (p_x - a p_x') / (beta omega), z ~ omega.

The mean of a convex function: any law of l with the same mean that is larger in convex order is a bound as
well. That is used twice. The worst inputs of a randomizer are those whose l is the largest so
(`tacit.privacy.shuffling.randomizers`), and l is put on a grid by spreading each value over its two
neighbours. The n-fold sum is then a convolution by FFT, tilted exponentially to where the sum is about 0:
what matters of a small delta keeps its digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import fft

from tacit.errors import ParameterError, check_count, check_probability
from tacit.privacy.curves import Array, Curve, symmetric
from tacit.privacy.shuffling.loss_table import LossTable, renyi_of_law
from tacit.privacy.shuffling.pair import MOST_PARTIES
from tacit.privacy.shuffling.renyi import clones_renyi

__all__ = ["BlanketBound", "Cells"]

Integers = npt.NDArray[np.int64]
Complex = npt.NDArray[np.complex128]

_POINTS = 1 << 17  # of a convolution, about
_FINEST = 64  # points between 0 and the largest value, and where that needs only `_FEW_POINTS`:
_FINEST_OF_FEW, _FEW_POINTS = 1024, 1 << 14
_DEEP = 300.0  # log of what an order may weigh a table's tail by
_DEEPEST = 1 << 16  # a value this many times the largest below 0 is as good as lost
_WIDEST = 1 << 21
_LOG_STRAY = 45.0  # -log of the tilted mass outside of the window
_LOG_NOTHING = 60.0  # frequencies this far below the largest are left out; round-off is far above
_ROUND_OFF = 16 * 2.0**-53
_ORDERS = np.geomspace(1e-6, 1e2, 65)  # of Chernoff bounds
_HEAVIEST = 8  # of the points of a law, which tell most frequencies that are lost
_MANY = 10**7  # draws whose round-off would show in a price
_DIRECT = 64  # epsilons up to which no table is made
_PER_STD, _PER_STD_RENYI = 15, 30
_LEAST_WORK, _PER_CELL, _PER_POINT, _PER_HEARD = 1e5, 300.0, 3.0, 20.0  # of one delta, of its cells and grid
_LOOKED_AT = (0.0, 0.01, 0.05, 0.2, 0.5, 0.8, 0.95, 0.999)  # of the largest loss


@dataclass(frozen=True)
class Cells:
    """A law of the two densities (own, other) of a message, against beta omega, under omega; exchangeable.

    Attributes:
        own: Density under the target's input x. Shape (m,), each >= 1.
        other: Density under its other input x'. Shape (m,), each >= 1.
        mass: Probability of each cell under omega, shape (m,), summing to 1.
    """

    own: Array
    other: Array
    mass: Array

    @property
    def mean_density(self) -> float:
        """The mean of own, and of other: 1 / beta."""
        return float(self.own @ self.mass)


@dataclass(frozen=True, eq=False)
class BlanketBound:
    """The blanket bound of `parties` shuffled messages.

    Attributes:
        parties: Messages in the batch, the target's included. 1 to 1e9.
        blanket: beta, the mass of the blanket. In (0, 1].
        cells: Maps a resolution to a law of the densities; a coarser one is larger in convex order.
        max_loss: No privacy loss of one message exceeds this: the local level.
    """

    parties: int
    blanket: float
    cells: Callable[[int], Cells]
    max_loss: float

    def __post_init__(self) -> None:
        check_count("parties", self.parties, high=MOST_PARTIES)
        check_probability("blanket", self.blanket, low_open=True)
        mean = self.blanket * self.cells(_FINEST).mean_density
        if abs(mean - 1) > 1e-9:
            raise ParameterError(f"cells must be densities: blanket times their mean is 1, got {mean!r}.")

    @cached_property
    def work(self) -> float:
        """About how many numbers one delta takes, at the dearest epsilon that matters."""
        return float(max(self._work_at(share * self.max_loss) for share in _LOOKED_AT))

    def _work_at(self, epsilon: float) -> float:
        """Return about how many numbers one delta takes: by its grid, and what is heard of it."""
        value, mass = self._values(epsilon, _FINEST_OF_FEW)
        value = np.maximum(value / value.max(), -float(min(self.parties, _DEEPEST)))
        least = _LEAST_WORK + _PER_CELL * value.size
        tilt = _tilt(value, mass)
        log_norm = float(_log_moment(value, mass, np.array([tilt]))[0])
        if self.parties * log_norm < -_LOG_STRAY:
            return float(least)  # a delta that nobody asks for twice
        width = max(float(np.subtract(*_window(value, mass, tilt, self.parties)[::-1])), 1.0)
        size = min(width * _fineness(width), _WIDEST)
        # Few draws that are not the commonest value: its share of the law is heard at every frequency.
        others = self.parties * (1 - float((mass * np.exp(tilt * value - log_norm)).max()))
        return float(least + size * (_PER_HEARD if 2 * others < _LOG_NOTHING else _PER_POINT))

    def delta(self, epsilon: npt.ArrayLike) -> Array:
        """Return the bound on the hockey-stick divergence, rounded up.

        Args:
            epsilon: Any shape, each >= 0.

        Cost:
            Of many parties some hundred frequencies per epsilon, of few one FFT of up to about 2^17 points.
        """
        eps = np.asarray(epsilon, dtype=np.float64)
        found = [self._at(e) for e in np.atleast_1d(eps).ravel().tolist()]
        return np.asarray(found, dtype=np.float64).reshape(eps.shape)

    def _at(self, epsilon: float) -> float:
        """Return the bound at one epsilon."""
        if epsilon >= self.max_loss:
            return 0.0
        value, mass = self._values(epsilon, _FINEST_OF_FEW)
        alone = float(np.maximum(value, 0.0) @ mass)  # one message: shuffling only takes away
        if self.parties == 1:
            return min(alone * (1 + 1e-13), 1.0)
        most = float(value.max())
        # Raising a value can only raise the sum; n times the largest below 0, it outweighs all others.
        floor = -float(min(self.parties, _DEEPEST))
        value = np.maximum(value / most, floor)
        # A first look at the window, in units of the largest value, tells how fine the grid can be.
        low, high = _window(value, mass, _tilt(value, mass), self.parties)
        fine = _fineness(max(high - low, 1.0))
        value, mass = self._values(epsilon, fine)
        # The largest value stays on the grid; where a is near 1, all values nearly do.
        grid = _on_grid(np.maximum(value / most, floor) * fine, mass)
        bound = most / fine * _mean_excess(*grid, self.parties)
        return min(min(bound, alone) * (1 + 1e-12), 1.0)

    def _values(self, epsilon: float, fine: int) -> tuple[Array, Array]:
        """Return the values of b l and their probabilities."""
        cells = self.cells(fine)
        # own - a other, exact where it is small: near the largest loss.
        value = cells.own - cells.other - math.expm1(epsilon) * cells.other
        top = cells.own >= cells.other * math.exp(self.max_loss) * (1 - 1e-15)
        value = np.where(top, -cells.own * math.expm1(epsilon - self.max_loss), value)
        return np.append(value, 0.0), np.append(cells.mass * self.blanket, 1 - self.blanket)

    @cached_property
    def _table(self) -> LossTable:
        return LossTable.of(self.delta, self.max_loss, per_std=_PER_STD, growth=0.1)

    def curve(self) -> Curve:
        """Return the privacy curve: symmetric, nowhere below the bound."""

        def profile(epsilon: Array) -> Array:
            return self.delta(epsilon) if epsilon.size <= _DIRECT else self._table.delta(epsilon)

        return symmetric(profile, max_loss=self.max_loss)

    def renyi(self, orders: npt.ArrayLike) -> Array:
        """Return a bound on the Rényi divergence at each order > 1, in either direction.

        Args:
            orders: Shape (r,), each finite and > 1.
        """
        alpha = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        if not np.all(np.isfinite(alpha) & (alpha > 1)):
            raise ParameterError("orders must be finite numbers > 1.")
        bound = np.minimum(renyi_of_law(*self._law, alpha), self.max_loss)
        # Far out the table is sound but loose; there the bound for any randomizer of this level may be less.
        far = alpha > 1 + _DEEP / self.max_loss
        if far.any():
            bound[far] = np.fmin(bound[far], clones_renyi(self.max_loss, self.parties, alpha[far]))
        return bound

    @cached_property
    def _law(self) -> tuple[Array, Array]:
        return LossTable.of(self.delta, self.max_loss, per_std=_PER_STD_RENYI, growth=0.05).law()


def _fineness(width: float) -> int:
    """Return how many points of a grid lie up to the largest value; the window is `width` times it."""
    return max(min(_FINEST, int(_POINTS / width)), min(_FINEST_OF_FEW, int(_FEW_POINTS / width)), 1)


def _log_moment(value: Array, mass: Array, order: Array) -> Array:
    """Return log E e^{order * value} for each order."""
    exponent = np.multiply.outer(order, value)
    most = exponent.max(axis=-1, keepdims=True)
    log_sum: Array = np.log(np.exp(exponent - most) @ mass) + most[..., 0]
    return log_sum


def _tilt(value: Array, mass: Array) -> float:
    """Return about the order >= 0 at which the tilted mean is 0, where the tail of the sum is steepest.

    Any order gives a bound; this one gives digits. Values are at most 1, their mean is at most 0.
    """
    low, high, order = 0.0, 1000.0, 1e-6
    # To many digits: over 1e9 parties a small tilted mean is a sum far from 0.
    while high - low > 1e-12 * high + 1e-15:
        weight = mass * np.exp(order * (value - 1))
        slope, norm = float(value @ weight), float(weight.sum())
        low, high = (order, high) if slope < 0 else (low, order)
        mean = slope / norm if norm > 0 else 0.0
        spread = float(value**2 @ weight) / norm - mean * mean if norm > 0 else 0.0
        # The tilted mean rises with the order: Newton's step, where it stays between what is known.
        step = -mean / spread if spread > 0 else math.inf
        if abs(step) <= 1e-13 * order:
            return order
        inside = low < order + step < high
        order = order + step if inside else (low + high) / 2 if low > 0 or high <= 1e-6 else high / 4
    return low


def _window(value: Array, mass: Array, tilt: float, count: int) -> tuple[float, float]:
    """Return between which values the tilted sum stays but for e^-45 on either side (Chernoff)."""
    base = float(_log_moment(value, mass, np.array([tilt]))[0])

    def reach(sign: int) -> float:
        def bound(order: Array) -> Array:
            excess: Array = _log_moment(value, mass, tilt + sign * order) - base
            return (count * excess + _LOG_STRAY) / order

        coarse = bound(_ORDERS[::8])
        best = 8 * int(np.argmin(coarse))
        near = bound(_ORDERS[max(best - 7, 0) : best + 8])  # one valley: the best of all lies here
        return min(float(coarse.min()), float(near.min()))

    return -reach(-1), reach(1)


def _on_grid(value: Array, mass: Array) -> tuple[Array, Array]:
    """Return whole numbers and their masses: each value spread over its neighbours, with its mean kept."""
    below = np.floor(value)
    part = value - below
    points, place = np.unique(np.append(below, below + 1), return_inverse=True)
    spread = np.bincount(place, np.append(mass * (1 - part), mass * part), points.size)
    present = spread > 0
    return np.asarray(points[present]), np.asarray(spread[present], dtype=np.float64)


def _mean_excess(point: Array, mass: Array, count: int) -> float:
    """Return E(S)_+, rounded up, of the sum S of `count` draws from whole numbers."""
    scale = float(point.max())
    tilt = _tilt(point / scale, mass) / scale
    low, high = _window(point / scale, mass, tilt * scale, count)
    last = max(math.ceil(high * scale) + 1, 1)  # the tail beyond a window that ends below 0 is no larger
    wanted = max(last - math.floor(low * scale) + 2, 64)
    # A window cut below lets more wrap around: larger, never smaller.
    size = fft.next_fast_len(min(wanted, max(_WIDEST, 2 * last)), real=True)
    log_norm = float(_log_moment(point, mass, np.array([tilt]))[0])
    k, log_single, off = _heard(point, mass * np.exp(tilt * point - log_norm), size, count)
    power = np.exp(count * log_single)
    most = min(last, size - 1)
    gain = _gain(k, size, tilt, most)
    # Each frequency stands for its conjugate as well, but for the first and the middle one.
    share = np.where((k == 0) | (2 * k == size), 1.0, 2.0) / size
    inside = float(share @ (power * gain).real)
    at_zero = float(abs(gain[0]))  # no frequency has a larger gain
    relative = _ROUND_OFF * (math.log2(size) + count * off)
    noise = float((share * relative) @ np.abs(power * gain)) + math.exp(-_LOG_NOTHING) * at_zero
    # What wraps around from below only adds; what would from above is added as `stray`, by Chernoff with any
    # order >= 1e-6 / scale: the integral of the tail beyond `last`.
    stray = math.exp(-_LOG_STRAY - tilt * last) * (last + 1e6 * scale)
    excess = max(inside, 0.0) + noise + stray
    return math.exp(min(count * log_norm, 0.0)) * excess / count * (1 + 1e-15 * count)


def _heard(point: Array, mass: Array, size: int, count: int) -> tuple[Integers, Complex, Array]:
    """Return the frequencies k <= size / 2 at which the law of whole numbers is not lost in its power.

    Those with |transform|^count > e^-60, the logarithms of the transforms, and how many units of round-off
    these are off. Over many draws they are few: two points at a distance d, with masses p and q, lose at
    least c (1 - cos(2 pi k d / size)), c = p q / (p + q), so only multiples of size / d and what is near them
    come into question.
    """
    heaviest = np.argsort(mass)[::-1]
    at, mass = (point[heaviest] % size).astype(np.int64), mass[heaviest]
    distance, lost = 0, 1.0
    if mass.size > 1:
        distance = int(abs(point[heaviest[0]] - point[heaviest[1]]))
        lost = float(mass[0] * mass[1] / (mass[0] + mass[1]))
    # |p + q e^{i t}| <= p + q - c (1 - cos t), and 1 - cos t >= 2 t^2 / pi^2 up to pi.
    near = math.sqrt(-math.expm1(-_LOG_NOTHING / count) / lost / 8) * size / max(distance, 1) + 1
    few = min(mass.size, _HEAVIEST)
    if 0 < distance < size and 2 * near * distance * few <= size:
        offset = np.arange(-math.ceil(near), math.ceil(near) + 1)
        k = np.abs(np.round(np.arange(distance // 2 + 1) * (size / distance))[:, None] + offset)
        present = np.zeros(size // 2 + 1, dtype=bool)
        present[k[k <= size // 2].astype(np.int64)] = True
        k = np.flatnonzero(present)
        if few < mass.size:  # the others can at most add their masses
            heavy = np.abs(np.exp(1j * _angles(k, at[:few], size)) @ mass[:few])
            k = k[heavy + float(mass[few:].sum()) > math.exp(-_LOG_NOTHING / count) - 1e-12]
    else:
        single = fft.rfft(np.bincount(at, mass, size))
        k = np.asarray(
            np.flatnonzero(np.abs(single) > 0.99 * math.exp(-_LOG_NOTHING / count)), dtype=np.int64
        )
        if count < _MANY or k.size * mass.size > size:
            return k, np.log(single[k]), np.ones(k.size)
    log_single, off = _log_transform(k, at, mass, size)
    heard = log_single.real > -_LOG_NOTHING / count
    return k[heard], log_single[heard], off[heard]


def _log_transform(k: Integers, at: Integers, mass: Array, size: int) -> tuple[Complex, Array]:
    """Return the logarithm of 1 + sum of mass (e^{-2 pi i k at / size} - 1), and its round-off in units.

    For a law that is its transform; near frequency 0 its digits are those that many draws multiply.
    """
    angle = _angles(k, at, size)
    real, imaginary = -2 * np.sin(angle / 2) ** 2, -np.sin(angle)
    x, y = real @ mass, imaginary @ mass
    off: Array = np.minimum((np.abs(imaginary) - real) @ mass, 1.0)
    log_size = np.log1p(np.maximum(2 * x + x * x + y * y, -1 + 1e-16)) / 2
    return log_size + 1j * np.arctan2(y, 1 + x), off


def _angles(k: Integers, at: Integers, size: int) -> Array:
    """Return 2 pi k at / size, from -pi to pi; in whole numbers first, which are exact."""
    turn = np.multiply.outer(k, at) % size
    return np.asarray((turn - size * (2 * turn > size)) * (2 * math.pi / size))


def _gain(k: Integers, size: int, tilt: float, most: int) -> Complex:
    """Return sum_{x=1}^most x e^{z x}, z = -tilt + 2 pi i k / size, for frequencies k that start with 0."""
    z = -tilt + 2j * math.pi * k / size
    far = most * k % size / size
    end = math.exp(-tilt * most) * np.exp(2j * math.pi * far)
    rest = np.expm1(z)
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Complex = np.exp(z) * (1 - end + most * end * rest) / rest**2
    x = np.arange(1, most + 1, dtype=np.float64) if tilt * most < 1 else np.empty(0)
    if x.size:  # at 0 these terms cancel
        found[0] = float(x @ np.exp(-tilt * x))
    return found
