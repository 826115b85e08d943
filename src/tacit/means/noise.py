"""The noise that goes on a sum of clipped rows, with its price, its variance and its place on the wire.

Sensitivities count in radii: one unit moves a sum by `moved` radii, two under replace-one and one otherwise.
Continuous noise is for simulation, since floating point leaks (Mironov 2012); the integer kinds are sampled
exactly and are for deployment.
"""

from __future__ import annotations

import math
from typing import ClassVar, Protocol

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.means.message import Message
from tacit.mechanisms import (
    discrete_gaussian_variance,
    discrete_laplace_variance,
    sample_discrete_gaussian,
    sample_discrete_laplace,
    sample_gaussian,
    sample_laplace,
)
from tacit.numerics import NORM_SLACK, Array, Norm
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
]


class Noise(Protocol):
    """Noise for sums of rows in the ball of `norm`.

    The scale is a multiple of `moved * radius`, so that a radius chosen by a hostile server costs no privacy.
    """

    norm: ClassVar[Norm]

    def prepare(self, summed: Array, radius: float) -> Array:
        """Bring a sum, shape (d,), into the units that noise is sampled in (grid steps, where there is a
        grid).
        """
        ...

    def unit(self, radius: float) -> float:
        """Size of that unit."""
        ...

    def sample(self, dim: int, *, moved: int, radius: float, rng: np.random.Generator) -> Array:
        """Draw one noise vector, shape (dim,), in units."""
        ...

    def variance(self, *, moved: int, radius: float) -> float:
        """Variance of one coordinate, in squared units."""
        ...

    def event(self, n: int, dim: int, *, moved: int, neighbours: Neighbours) -> Event:
        """Return what one noisy sum of n rows costs."""
        ...

    def entry_bits(self, rows: int, *, moved: int) -> int:
        """Bits of one coordinate of a message about `rows` rows."""
        ...

    def message(self, summed: Array, *, rows: int, moved: int, party: int) -> Message:
        """Write a sum in units as one message."""
        ...


class NoNoise(msgspec.Struct, frozen=True, tag_field="noise", tag="none"):
    """No noise and no claim; 64 bits a coordinate, and rows in an L2 ball."""

    norm: ClassVar[Norm] = "l2"

    def prepare(self, summed: Array, radius: float) -> Array:
        """Return the sum."""
        return summed

    def unit(self, radius: float) -> float:
        """Return 1."""
        return 1.0

    def sample(self, dim: int, *, moved: int, radius: float, rng: np.random.Generator) -> Array:
        """Return zeros."""
        return np.zeros(dim)

    def variance(self, *, moved: int, radius: float) -> float:
        """Return 0."""
        return 0.0

    def event(self, n: int, dim: int, *, moved: int, neighbours: Neighbours) -> Event:
        """Claim nothing."""
        return NonPrivate(neighbours)

    def entry_bits(self, rows: int, *, moved: int) -> int:
        """Return 64."""
        return 64

    def message(self, summed: Array, *, rows: int, moved: int, party: int) -> Message:
        """Write float64."""
        return Message(payload=summed.astype(np.float64, copy=False), sender=party)


class GaussianNoise(msgspec.Struct, frozen=True, tag_field="noise", tag="gaussian"):
    """Continuous Gaussian noise on sums of rows in an L2 ball; float32 messages.

    Attributes:
        noise_multiplier: Standard deviation / L2 sensitivity of the sum. Finite, > 0.
    """

    noise_multiplier: float
    norm: ClassVar[Norm] = "l2"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)

    def prepare(self, summed: Array, radius: float) -> Array:
        """Return the sum."""
        return summed

    def unit(self, radius: float) -> float:
        """Return 1."""
        return 1.0

    def sample(self, dim: int, *, moved: int, radius: float, rng: np.random.Generator) -> Array:
        """Draw float32 noise, the precision of the message it goes into."""
        return sample_gaussian(self.noise_multiplier * moved * radius, dim, rng, dtype=np.float32)

    def variance(self, *, moved: int, radius: float) -> float:
        """Return the variance of one coordinate."""
        return (self.noise_multiplier * moved * radius) ** 2

    def event(self, n: int, dim: int, *, moved: int, neighbours: Neighbours) -> Event:
        """Return the event; the share of one row does not depend on n."""
        return Gaussian(self.noise_multiplier, neighbours)

    def entry_bits(self, rows: int, *, moved: int) -> int:
        """Return 32."""
        return 32

    def message(self, summed: Array, *, rows: int, moved: int, party: int) -> Message:
        """Write float32; rounding after the noise is free."""
        return Message(payload=summed.astype(np.float32, copy=False), sender=party)


class LaplaceNoise(msgspec.Struct, frozen=True, tag_field="noise", tag="laplace"):
    """Continuous Laplace noise on sums of rows in an L1 ball; float32 messages.

    Attributes:
        noise_multiplier: Scale b / L1 sensitivity of the sum. Finite, > 0.
    """

    noise_multiplier: float
    norm: ClassVar[Norm] = "l1"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)

    def prepare(self, summed: Array, radius: float) -> Array:
        """Return the sum."""
        return summed

    def unit(self, radius: float) -> float:
        """Return 1."""
        return 1.0

    def sample(self, dim: int, *, moved: int, radius: float, rng: np.random.Generator) -> Array:
        """Draw noise."""
        return sample_laplace(self.noise_multiplier * moved * radius, dim, rng)

    def variance(self, *, moved: int, radius: float) -> float:
        """Return the variance of one coordinate."""
        return 2 * (self.noise_multiplier * moved * radius) ** 2

    def event(self, n: int, dim: int, *, moved: int, neighbours: Neighbours) -> Event:
        """Return the event; the share of one row does not depend on n."""
        return Laplace(self.noise_multiplier, dim, neighbours)

    def entry_bits(self, rows: int, *, moved: int) -> int:
        """Return 32."""
        return 32

    def message(self, summed: Array, *, rows: int, moved: int, party: int) -> Message:
        """Write float32; rounding after the noise is free."""
        return Message(payload=summed.astype(np.float32, copy=False), sender=party)


class DiscreteGaussianNoise(msgspec.Struct, frozen=True, tag_field="noise", tag="discrete-gaussian"):
    """Exact discrete Gaussian noise on sums of rows in an L2 ball, on a grid.

    Attributes:
        noise_multiplier: Parameter sigma / (`moved` radii in grid steps). Finite, > 0. The price also counts
            what rounding to the grid and float64 summation add to the sensitivity.
        steps: Grid steps per radius, 1 to 2**30.
    """

    noise_multiplier: float
    steps: int = 2**16
    norm: ClassVar[Norm] = "l2"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_count("steps", self.steps, high=2**30)

    def prepare(self, summed: Array, radius: float) -> Array:
        """Round the sum to the grid; int64."""
        return _to_grid(summed, radius, self.steps)

    def unit(self, radius: float) -> float:
        """Return the size of a grid step."""
        return radius / self.steps

    def sample(self, dim: int, *, moved: int, radius: float, rng: np.random.Generator) -> Array:
        """Draw int64 noise in grid steps."""
        return sample_discrete_gaussian(self._sigma(moved), dim, rng)

    def variance(self, *, moved: int, radius: float) -> float:
        """Return the variance of one coordinate in squared grid steps."""
        return discrete_gaussian_variance(self._sigma(moved))

    def event(self, n: int, dim: int, *, moved: int, neighbours: Neighbours) -> Event:
        """Return the event, with the sensitivity that rounding and summation leave."""
        # Rounding moves a coordinate by at most half a step in either data set.
        sensitivity = moved * self.steps * (1 + NORM_SLACK) + math.sqrt(dim) + _summation_slack(n, self.steps)
        return DiscreteGaussian(self._sigma(moved), sensitivity, neighbours)

    def entry_bits(self, rows: int, *, moved: int) -> int:
        """Return a width that holds the sum and 16 standard deviations."""
        return _integer_bits(rows * self.steps + 16 * self._sigma(moved))

    def message(self, summed: Array, *, rows: int, moved: int, party: int) -> Message:
        """Write integers; what does not fit is saturated, after the noise and so for free."""
        return _integers(summed, self.entry_bits(rows, moved=moved), party)

    def _sigma(self, moved: int) -> float:
        return self.noise_multiplier * moved * self.steps


class DiscreteLaplaceNoise(msgspec.Struct, frozen=True, tag_field="noise", tag="discrete-laplace"):
    """Exact discrete Laplace noise on sums of rows in an L1 ball, on a grid.

    Attributes:
        noise_multiplier: Scale b / (`moved` radii in grid steps). Finite, > 0; see DiscreteGaussianNoise.
        steps: Grid steps per radius, 1 to 2**30.
    """

    noise_multiplier: float
    steps: int = 2**16
    norm: ClassVar[Norm] = "l1"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_count("steps", self.steps, high=2**30)

    def prepare(self, summed: Array, radius: float) -> Array:
        """Round the sum to the grid; int64."""
        return _to_grid(summed, radius, self.steps)

    def unit(self, radius: float) -> float:
        """Return the size of a grid step."""
        return radius / self.steps

    def sample(self, dim: int, *, moved: int, radius: float, rng: np.random.Generator) -> Array:
        """Draw int64 noise in grid steps."""
        return sample_discrete_laplace(self._scale(moved), dim, rng)

    def variance(self, *, moved: int, radius: float) -> float:
        """Return the variance of one coordinate in squared grid steps."""
        return discrete_laplace_variance(self._scale(moved))

    def event(self, n: int, dim: int, *, moved: int, neighbours: Neighbours) -> Event:
        """Return the event, with the sensitivity that rounding and summation leave."""
        # In L1 distance every coordinate adds its own rounding and summation error.
        extra = dim * (1 + _summation_slack(n, self.steps))
        sensitivity = math.ceil(moved * self.steps * (1 + NORM_SLACK) + extra)
        return DiscreteLaplace(self._scale(moved), sensitivity, dim, neighbours)

    def entry_bits(self, rows: int, *, moved: int) -> int:
        """Return a width that holds the sum and 32 scales."""
        return _integer_bits(rows * self.steps + 32 * self._scale(moved))

    def message(self, summed: Array, *, rows: int, moved: int, party: int) -> Message:
        """Write integers; what does not fit is saturated, after the noise and so for free."""
        return _integers(summed, self.entry_bits(rows, moved=moved), party)

    def _scale(self, moved: int) -> float:
        return self.noise_multiplier * moved * self.steps


AnyNoise = NoNoise | GaussianNoise | LaplaceNoise | DiscreteGaussianNoise | DiscreteLaplaceNoise
"""Every kind of noise that a plan can name."""


def _to_grid(summed: Array, radius: float, steps: int) -> Array:
    """Round a sum to `steps` grid steps per radius; zero for a radius of 0."""
    if summed.dtype != np.float64:
        raise ParameterError(f"sums for exact integer noise must be float64, got {summed.dtype}.")
    if radius == 0:
        return np.zeros(summed.shape, dtype=np.int64)
    return np.rint(summed * (steps / radius)).astype(np.int64)


def _summation_slack(n: int, steps: int) -> float:
    """Bound, in steps, on what float64 summation of n rows adds to the distance of two sums.

    A sum of n terms errs by at most (n + 4) 2^-53 of the sum of their sizes (Higham 2002, §4.2), in either of
    the two data sets; the products and the clip factor inside a row err by less than what the 4 allows.
    """
    return 2 * n * (n + 4) * 2.0**-53 * steps


def _integer_bits(largest: float) -> int:
    """Bits that a signed integer of that size needs."""
    return min(64, 2 + math.ceil(math.log2(largest + 1)))


def _integers(summed: Array, width: int, party: int) -> Message:
    """Write integers of `width` bits, saturated."""
    top = 2 ** (width - 1) - 1
    return Message(payload=np.clip(summed.astype(np.int64), -top - 1, top), width=width, sender=party)
