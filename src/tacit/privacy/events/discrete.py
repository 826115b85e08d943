"""Noise of whole numbers, priced by its own law."""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import check_count, check_positive
from tacit.privacy import curves, divergences
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events.base import Leaf
from tacit.privacy.events.leaves import Gaussian, Zcdp
from tacit.privacy.neighbours import Neighbours

__all__ = ["DiscreteGaussian", "DiscreteLaplace"]

_FINE = math.sqrt(8.0)
"""A grid is fine where rounding costs an eighth of the variance or less: concentrated DP is dearer then."""
_MOST_STD, _MOST_SHIFT = 1000.0, 1e9
"""Up to which discrete Gaussian noise has a table of its own law; beyond, rounding costs 2e-6 of its size."""
_ROUNDED = 1e-6
"""How far below a whole number a sensitivity may lie, relatively, and count as it; float32 is finer."""


class DiscreteGaussian(Leaf, frozen=True, tag=True):
    """Discrete Gaussian noise on an integer vector.

    Attributes:
        std: The parameter sigma of P(y) ~ exp(-y^2 / (2 sigma^2)), in grid steps. Finite, > 0.
        sensitivity: L2 sensitivity of the integer vector in grid steps, rounding included. Finite, > 0.
        neighbours: The relation under which the sensitivity was taken.
        dim: Number of coordinates, up to 2**40; None where it is not known.

    One number is priced by its own law, the shift by the largest whole number of steps; so are vectors whose
    sensitivity is below sqrt(2), which move by one step in one coordinate. For other vectors, the
    noise on a fine grid is a randomised rounding of continuous noise of a slightly smaller variance, so it
    costs no more than that Gaussian (docs/theory/noise.md); on coarser grids only concentrated DP with rho =
    sensitivity^2 / (2 sigma^2) is used (Canonne, Kamath and Steinke 2020, arXiv:2004.00010v4, Theorem 14).
    """

    continuous: ClassVar[bool] = False

    std: float
    sensitivity: float
    neighbours: Neighbours = Neighbours()
    dim: int | None = None

    MOST_COORDINATES: ClassVar[int] = 2**40

    def __post_init__(self) -> None:
        check_positive("std", self.std)
        check_positive("sensitivity", self.sensitivity)
        if self.dim is not None:
            check_count("dim", self.dim, high=self.MOST_COORDINATES)

    @property
    def distance(self) -> float:
        """The sensitivity; where only one number can move, the whole steps in it."""
        return float(self._steps or self.sensitivity)

    @property
    def has_own_law(self) -> bool:
        """Whether the release alone is priced by its own law."""
        return self._steps > 0 and self.std <= _MOST_STD

    @property
    def _steps(self) -> int:
        """The most whole steps that the one number that moves can move by; 0 where there is none."""
        # What was computed in float32 and is just below a whole number may have been that number.
        length = self.sensitivity * (1 + _ROUNDED)
        # Integer vectors that are less than sqrt(2) apart differ in one coordinate, by one step.
        alone = self.dim == 1 or length < math.sqrt(2)
        if not (alone and length >= 1 and self.sensitivity <= _MOST_SHIFT):
            return 0
        return min(math.ceil(self.sensitivity), math.floor(length))

    def work(self, *, many: bool) -> float:
        """Return the size of a table of the law, and of the search for an order."""
        return 1e5 * (1 + 20 * many) + (400 * self.std if self.has_own_law else 0.0)

    def rounded(self, releases: int = 1) -> Gaussian | None:
        """The continuous release that this one, of `releases` in all, rounds; None on a coarse grid.

        The variance given up lets all probabilities of all releases together be off by a factor of 1 + 1e-30.
        """
        coordinates = self.MOST_COORDINATES if self.dim is None else self.dim
        given_up = (math.log(5e30) + math.log(releases) + math.log(coordinates)) / (2 * math.pi**2)
        std, lost = self.std, math.sqrt(given_up)
        if std < _FINE * lost:
            return None
        inside = math.sqrt(std - lost) * math.sqrt(std + lost)
        return Gaussian(min(inside / self.distance, 1e300), self.neighbours)

    @property
    def concentrated(self) -> Zcdp:
        """The concentrated-DP level of this release, whatever the grid."""
        mu = self.distance / self.std
        return Zcdp(max(mu * mu / 2, 1e-300), self.neighbours)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        if self.has_own_law:
            return curves.discrete_gaussian_curve(self.std, int(self.distance))
        fine = self.rounded()
        proofs = [self.concentrated.curve()] + ([fine.curve()] if fine is not None else [])
        return curves.minimum(proofs)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by the concentrated level."""
        return self.concentrated.renyi(orders)


class DiscreteLaplace(Leaf, frozen=True, tag=True):
    """Discrete Laplace noise on an integer vector, priced by its own law.

    Attributes:
        scale: The parameter b of P(y) ~ exp(-|y| / b), in grid steps. Finite, > 0.
        sensitivity: L1 sensitivity of the integer vector in whole grid steps, >= 1.
        dim: Number of coordinates; in one dimension the exact curve is used, in more the pure level alone.
        neighbours: The relation under which the sensitivity was taken.
    """

    continuous: ClassVar[bool] = False

    scale: float
    sensitivity: int
    dim: int = 1
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_positive("scale", self.scale)
        check_count("sensitivity", self.sensitivity, high=10**18)  # what a float can hold, and to spare
        check_count("dim", self.dim)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        level = self.sensitivity / self.scale
        if self.dim > 1:
            return curves.approximate_dp_curve(level)
        return curves.discrete_laplace_curve(self.scale, self.sensitivity)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by the pure level."""
        return divergences.pure_dp_renyi(self.sensitivity / self.scale, orders)
