"""The noise that goes on a sum of clipped rows, with its price, its variance and its place on the wire.

A `sensitivity` is in radii: how far one unit moves a sum, two under replace-one (the root of two for
rows at no more than a right angle) and one otherwise. Sums of one-hot rows are counts, which no grid rounds.
Continuous noise is for simulation, since floating point leaks (Mironov 2012), and is priced as if arithmetic
were exact; the integer kinds are sampled exactly, priced with all rounding, and are for deployment.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.random import Generator

from tacit.errors import ParameterError, check_count, check_positive
from tacit.means.message import SMALLEST_RADIUS
from tacit.mechanisms import (
    discrete_gaussian_variance,
    discrete_laplace_variance,
    sample_discrete_gaussian,
    sample_discrete_laplace,
    sample_gaussian,
    sample_laplace,
)
from tacit.numerics import NORM_SLACK, Array, IntArray, Norm, settle
from tacit.privacy import (
    DiscreteGaussian,
    DiscreteLaplace,
    Event,
    Gaussian,
    Laplace,
    Neighbours,
    NonPrivate,
)

__all__ = [
    "AnyNoise",
    "DiscreteGaussianNoise",
    "DiscreteLaplaceNoise",
    "GaussianNoise",
    "LaplaceNoise",
    "NoNoise",
    "Noise",
    "counts_to_grid",
]


class Noise(Protocol):
    """Noise for sums of rows in the ball of `norm`.

    The scale is a multiple of `sensitivity * radius`: a radius chosen by a hostile server costs no privacy.
    Sums are float64; a noisy sum leaves as `dtype`. `on_grid` tells whether units are grid steps, and a sum
    is rounded to them before the noise. `exact` tells whether no float stands in for a real number in it.
    """

    norm: ClassVar[Norm]
    dtype: ClassVar[type[np.generic]]
    on_grid: ClassVar[bool]
    exact: ClassVar[bool]

    def prepare(self, summed: Array, radius: float) -> Array:
        """Bring sums, any shape, into the units that noise is sampled in; zero for a radius next to 0."""
        ...

    def unit(self, radius: float) -> float:
        """Size of that unit."""
        ...

    def sample(
        self, dim: int, *, sensitivity: float, radius: float, rng: Generator, parties: int = 1
    ) -> Array:
        """Draw one noise vector, shape (dim,), in units: the sum of the noise of that many parties."""
        ...

    def variance(self, *, sensitivity: float, radius: float) -> float:
        """Variance of one coordinate, in squared units."""
        ...

    def event(self, n: int, dim: int, *, sensitivity: float, neighbours: Neighbours) -> Event:
        """Return what one noisy sum of at most n rows costs."""
        ...

    def entry_bits(self, rows: int, *, sensitivity: float) -> int:
        """Bits of one coordinate of a message about `rows` rows."""
        ...

    def published(self, summed: Array, width: int) -> Array:
        """Round or saturate a noisy sum, in units, to what leaves; free, because the noise is in it."""
        ...


class NoNoise(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="noise", tag="none"):
    """No noise and no claim; 64 bits a coordinate, and rows in an L2 ball."""

    norm: ClassVar[Norm] = "l2"
    dtype: ClassVar[type[np.generic]] = np.float64
    on_grid: ClassVar[bool] = False
    exact: ClassVar[bool] = True

    def prepare(self, summed: Array, radius: float) -> Array:
        """Return the sums."""
        return summed

    def unit(self, radius: float) -> float:
        """Return 1."""
        return 1.0

    def sample(
        self, dim: int, *, sensitivity: float, radius: float, rng: Generator, parties: int = 1
    ) -> Array:
        """Return zeros."""
        return np.zeros(dim)

    def variance(self, *, sensitivity: float, radius: float) -> float:
        """Return 0."""
        return 0.0

    def event(self, n: int, dim: int, *, sensitivity: float, neighbours: Neighbours) -> Event:
        """Claim nothing."""
        return NonPrivate(neighbours)

    def entry_bits(self, rows: int, *, sensitivity: float) -> int:
        """Return 64."""
        return 64

    def published(self, summed: Array, width: int) -> Array:
        """Return float64."""
        return summed.astype(np.float64, copy=False)


class _Continuous(msgspec.Struct, frozen=True):
    """Noise of real numbers: what its kinds share."""

    noise_multiplier: float
    dtype: ClassVar[type[np.generic]] = np.float32
    on_grid: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        settle(self)
        check_positive("noise_multiplier", self.noise_multiplier)

    def prepare(self, summed: Array, radius: float) -> Array:
        """Return the sums."""
        return summed if radius >= SMALLEST_RADIUS else np.zeros_like(summed)

    def unit(self, radius: float) -> float:
        """Return 1."""
        return 1.0

    def entry_bits(self, rows: int, *, sensitivity: float) -> int:
        """Return 32."""
        return 32

    def published(self, summed: Array, width: int) -> Array:
        """Return float32."""
        return summed.astype(np.float32, copy=False)

    def _spread(self, sensitivity: float, radius: float) -> float:
        """Return the parameter of the law."""
        return self.noise_multiplier * sensitivity * radius


class GaussianNoise(_Continuous, frozen=True, forbid_unknown_fields=True, tag_field="noise", tag="gaussian"):
    """Continuous Gaussian noise on sums of rows in an L2 ball; float32 messages.

    Attributes:
        noise_multiplier: Standard deviation / L2 sensitivity of the sum. Finite, > 0.
    """

    norm: ClassVar[Norm] = "l2"

    def sample(
        self, dim: int, *, sensitivity: float, radius: float, rng: Generator, parties: int = 1
    ) -> Array:
        """Draw float32 noise, the precision of what it goes into."""
        std = self._spread(sensitivity, radius) * math.sqrt(parties)
        return sample_gaussian(std, dim, rng, dtype=np.float32)

    def variance(self, *, sensitivity: float, radius: float) -> float:
        """Return the variance of one coordinate."""
        return self._spread(sensitivity, radius) ** 2

    def event(self, n: int, dim: int, *, sensitivity: float, neighbours: Neighbours) -> Event:
        """Return the event; the share of one row does not depend on n."""
        return Gaussian(self.noise_multiplier, neighbours)


class LaplaceNoise(_Continuous, frozen=True, forbid_unknown_fields=True, tag_field="noise", tag="laplace"):
    """Continuous Laplace noise on sums of rows in an L1 ball; float32 messages.

    Attributes:
        noise_multiplier: Scale b / L1 sensitivity of the sum. Finite, > 0.
    """

    norm: ClassVar[Norm] = "l1"

    def sample(
        self, dim: int, *, sensitivity: float, radius: float, rng: Generator, parties: int = 1
    ) -> Array:
        """Draw noise."""
        scale = self._spread(sensitivity, radius)
        if parties == 1:
            return sample_laplace(scale, dim, rng)
        # A Laplace variable is the difference of two exponential ones, and those add up to gamma ones.
        return np.asarray(scale * (rng.standard_gamma(parties, dim) - rng.standard_gamma(parties, dim)))

    def variance(self, *, sensitivity: float, radius: float) -> float:
        """Return the variance of one coordinate."""
        return 2 * self._spread(sensitivity, radius) ** 2

    def event(self, n: int, dim: int, *, sensitivity: float, neighbours: Neighbours) -> Event:
        """Return the event; the share of one row does not depend on n."""
        return Laplace(self.noise_multiplier, dim, neighbours)


class _OnGrid(msgspec.Struct, frozen=True):
    """Noise of whole grid steps: what its kinds share."""

    noise_multiplier: float
    steps: int = 2**16
    dtype: ClassVar[type[np.generic]] = np.int64
    on_grid: ClassVar[bool] = True
    exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        settle(self)
        _check_grid(self.noise_multiplier, self.steps)

    def prepare(self, summed: Array, radius: float) -> Array:
        """Round the sums to the grid; int64."""
        return _to_grid(summed, radius, self.steps)

    def unit(self, radius: float) -> float:
        """Return the size of a grid step."""
        return radius / self.steps

    def published(self, summed: Array, width: int) -> Array:
        """Return int64, saturated at what `width` bits hold."""
        return _saturated(summed, width)

    def _spread(self, sensitivity: float) -> float:
        """Return the parameter of the law, in grid steps."""
        return self.noise_multiplier * sensitivity * self.steps


class DiscreteGaussianNoise(
    _OnGrid, frozen=True, forbid_unknown_fields=True, tag_field="noise", tag="discrete-gaussian"
):
    """Exact discrete Gaussian noise on sums of rows in an L2 ball, on a grid.

    Attributes:
        noise_multiplier: Parameter sigma / (`sensitivity` radii in grid steps). Finite, > 0, and such that
            sigma is in [2**-20, 2**55] steps. The price also counts what rounding to the grid and float64
            summation add to the sensitivity.
        steps: Grid steps per radius, 1 to 2**30.
    """

    norm: ClassVar[Norm] = "l2"

    def sample(
        self, dim: int, *, sensitivity: float, radius: float, rng: Generator, parties: int = 1
    ) -> Array:
        """Draw int64 noise in grid steps."""
        sigma = self._spread(sensitivity)
        return _added_up(lambda shape: sample_discrete_gaussian(sigma, shape, rng), dim, parties)

    def variance(self, *, sensitivity: float, radius: float) -> float:
        """Return the variance of one coordinate in squared grid steps."""
        return discrete_gaussian_variance(self._spread(sensitivity))

    def event(self, n: int, dim: int, *, sensitivity: float, neighbours: Neighbours) -> DiscreteGaussian:
        """Return the event, with the L2 sensitivity that rounding and summation leave."""
        # Rounding moves a coordinate by at most half a step in either data set.
        in_steps = (
            sensitivity * self.steps * (1 + NORM_SLACK) + math.sqrt(dim) + _summation_slack(n, self.steps)
        )
        return DiscreteGaussian(self._spread(sensitivity), in_steps, neighbours, dim)

    def count_event(self, *, sensitivity: float, neighbours: Neighbours) -> DiscreteGaussian:
        """Return what the noise on one count of radii costs, of which one unit is one: nothing is rounded."""
        return DiscreteGaussian(self._spread(sensitivity), float(self.steps), neighbours, 1)

    def entry_bits(self, rows: int, *, sensitivity: float) -> int:
        """Return a width that holds the sum of twice the rows and 32 standard deviations."""
        return _integer_bits(rows * self.steps + 16 * self._spread(sensitivity))


class DiscreteLaplaceNoise(
    _OnGrid, frozen=True, forbid_unknown_fields=True, tag_field="noise", tag="discrete-laplace"
):
    """Exact discrete Laplace noise on sums of rows in an L1 ball, on a grid.

    Attributes:
        noise_multiplier: Scale b / (`sensitivity` radii in grid steps). Finite, > 0, and such that b is in
            [2**-20, 2**55] steps; see DiscreteGaussianNoise.
        steps: Grid steps per radius, 1 to 2**30.
    """

    norm: ClassVar[Norm] = "l1"

    def sample(
        self, dim: int, *, sensitivity: float, radius: float, rng: Generator, parties: int = 1
    ) -> Array:
        """Draw int64 noise in grid steps."""
        scale = self._spread(sensitivity)
        return _added_up(lambda shape: sample_discrete_laplace(scale, shape, rng), dim, parties)

    def variance(self, *, sensitivity: float, radius: float) -> float:
        """Return the variance of one coordinate in squared grid steps."""
        return discrete_laplace_variance(self._spread(sensitivity))

    def event(self, n: int, dim: int, *, sensitivity: float, neighbours: Neighbours) -> Event:
        """Return the event, with the L1 sensitivity that rounding and summation leave."""
        # Rounding moves every coordinate by at most half a step in either data set.
        in_steps = sensitivity * self.steps * (1 + NORM_SLACK) + dim + _summation_slack(n, self.steps)
        # Integer vectors are a whole L1 distance apart.
        return DiscreteLaplace(self._spread(sensitivity), math.floor(in_steps), dim, neighbours)

    def count_event(self, *, sensitivity: float, neighbours: Neighbours) -> DiscreteLaplace:
        """Return what the noise on one count of radii costs, of which one unit is one: nothing is rounded."""
        return DiscreteLaplace(self._spread(sensitivity), self.steps, 1, neighbours)

    def entry_bits(self, rows: int, *, sensitivity: float) -> int:
        """Return a width that holds the sum of twice the rows and 64 scales."""
        return _integer_bits(rows * self.steps + 32 * self._spread(sensitivity))


AnyNoise = NoNoise | GaussianNoise | LaplaceNoise | DiscreteGaussianNoise | DiscreteLaplaceNoise
"""Every kind of noise that a plan can name."""

_MOST_ROWS = 2**40
_LARGEST_SUM = 2**62
_DRAWS_AT_ONCE = 2**22


def _check_grid(noise_multiplier: float, steps: int) -> None:
    """Refuse a grid, or noise that cannot be sampled exactly on it."""
    check_positive("noise_multiplier", noise_multiplier)
    check_count("steps", steps, high=2**30)
    if not (noise_multiplier * steps >= 2.0**-20 and noise_multiplier * steps * 2 <= 2.0**55):
        raise ParameterError(
            f"noise_multiplier * steps must be in [2**-20, 2**54], got {noise_multiplier * steps!r}."
        )


def _to_grid(summed: Array, radius: float, steps: int) -> IntArray:
    """Round sums to `steps` grid steps per radius; zero for a radius next to 0."""
    if summed.dtype != np.float64:
        raise ParameterError(f"sums for exact integer noise must be float64, got {summed.dtype}.")
    if radius < SMALLEST_RADIUS:
        return np.zeros(summed.shape, dtype=np.int64)
    # Clipping brings no two sums further apart, and leaves room for the noise, which is below 2**62 too.
    return np.clip(np.rint(summed * (steps / radius)), -_LARGEST_SUM, _LARGEST_SUM).astype(np.int64)


def counts_to_grid(summed: Array, radius: float, steps: int) -> IntArray:
    """Return counts of radii in grid steps, exact where a sum is within half a radius of a whole number.

    Args:
        summed: Sums of rows that are a radius in one coordinate, or zero; float64.
        radius: Theirs; zero counts are returned for one next to 0.
        steps: Grid steps of a radius.

    Raises:
        ParameterError: Sums of another dtype.
    """
    if summed.dtype != np.float64:
        raise ParameterError(f"sums for exact integer noise must be float64, got {summed.dtype}.")
    if radius < SMALLEST_RADIUS:
        return np.zeros(summed.shape, dtype=np.int64)
    # Counts are cut before they are multiplied: in floats, large products would move by other than steps.
    most = _LARGEST_SUM // steps
    return np.clip(np.rint(summed / radius), -most, most).astype(np.int64) * steps


def _summation_slack(n: int, steps: int) -> float:
    """Bound, in steps, on what float64 summation of n rows adds to the distance of two sums, in L1 or L2.

    A coordinate of a sum of n products, added in any order, errs by at most gamma = m u / (1 - m u) times the
    sum of their sizes, where u = 2**-53 and m = n (Higham 2002, Accuracy and Stability of Numerical
    Algorithms, §3.1; docs/theory/sums.md). Scaling to steps takes two roundings more; m = n + 4 leaves two
    for what the clip factor adds to `NORM_SLACK`. Those sizes form a vector of norm at most n radii, and both
    data sets err.
    """
    check_count("n", n, high=_MOST_ROWS)
    m = (n + 4) * 2.0**-53
    return 2 * n * steps * (1 + NORM_SLACK) * m / (1 - m) * (1 + 2.0**-40)  # the last covers this line


def _added_up(draw: Callable[[tuple[int, int]], Any], dim: int, parties: int) -> IntArray:
    """Return the sum of the noise vectors of all parties, in bounded memory."""
    if parties == 1:
        return np.asarray(draw((1, dim))[0])
    summed = np.zeros(dim, dtype=np.int64)
    most = max(1, _DRAWS_AT_ONCE // dim)
    for done in range(0, parties, most):
        summed += draw((min(most, parties - done), dim)).sum(axis=0)
    return summed


def _integer_bits(largest: float) -> int:
    """Bits of a signed integer of twice that size."""
    return min(64, 2 + math.ceil(math.log2(largest + 1)))


def _saturated(summed: Array, width: int) -> IntArray:
    """Return integers that fit into `width` bits."""
    top = 2 ** (width - 1) - 1
    return np.clip(summed, -top - 1, top)
