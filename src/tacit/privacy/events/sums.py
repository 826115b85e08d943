"""Noise of whole numbers that several parties add to one sum, each a share of it."""

from __future__ import annotations

import math
from typing import ClassVar

from tacit.errors import ParameterError, check_count, check_positive
from tacit.privacy import curves
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events.base import Leaf
from tacit.privacy.events.discrete import DiscreteGaussian
from tacit.privacy.events.leaves import Gaussian, Zcdp
from tacit.privacy.neighbours import Neighbours

__all__ = ["DiscreteGaussianSum", "GaussianOnGrid"]

_LEAST_SHARE, _LEAST_SUM = 3.0, 9.0
"""Parameters, in grid steps, of one share and of the sum, from which on the price is proven."""
_ROUNDED_VARIANCE = 9.0
"""Of the variance of the sum, what rounding continuous noise takes: tau^2, where eta(tau) < 3e-77."""
_KAPPA = 1.1e-38
"""How far, in logarithms, a coordinate of the sum is from rounded Gaussian noise, of up to `_MOST_SHARES`."""
_MOST_SHARES = 10**37


class DiscreteGaussianSum(Leaf, frozen=True, tag=True):
    """Integer vectors added up, with discrete Gaussian noise of `shares` parties that nobody else knows.

    Attributes:
        std: The parameter s of P(y) ~ exp(-y^2 / (2 s^2)) of one share, in grid steps, the same for all. Of
            several: >= 3, and `shares` * s^2 >= 81.
        shares: Honest shares that the sum holds at least, 1 to 10**37. More of them are post-processing.
        sensitivity: L2 sensitivity of the integer sum in grid steps, rounding included. Finite, > 0.
        neighbours: The relation under which the sensitivity was taken.
        dim: Number of coordinates, up to 2**32; None where it is not known.

    The sum of discrete Gaussians is none, but every probability is that of one of variance shares * s^2 up to
    a factor of exp(1e-38), and so that of a randomised rounding of Gaussian noise with 9 steps^2 less. The
    factor goes into the level, once for every coordinate (docs/theory/noise.md, section 7; the first such
    bound is Kairouz, Liu and Steinke 2021, arXiv:2102.06387, Theorem 9). One share is a `DiscreteGaussian`.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> from tacit.privacy import delta_of
        >>> f"{delta_of(DiscreteGaussianSum(3.0, 10, 10.0, dim=1), 1.0):.9f}"
        '0.167479935'
    """

    continuous: ClassVar[bool] = False

    std: float
    shares: int
    sensitivity: float
    neighbours: Neighbours = Neighbours()
    dim: int | None = None

    MOST_COORDINATES: ClassVar[int] = 2**32

    def __post_init__(self) -> None:
        check_positive("std", self.std)
        check_count("shares", self.shares, high=_MOST_SHARES)
        check_positive("sensitivity", self.sensitivity)
        if self.dim is not None:
            check_count("dim", self.dim, high=self.MOST_COORDINATES)
        if self.shares == 1:
            return
        if self.std < _LEAST_SHARE:
            raise ParameterError(
                f"std must be >= 3 grid steps where shares add up, got {self.std!r}: take more steps."
            )
        if self._whole.std < _LEAST_SUM:
            raise ParameterError(
                f"shares * std^2 must be >= 81 grid steps^2, got {self.shares * self.std**2!r}: take more "
                "steps."
            )

    @property
    def _whole(self) -> DiscreteGaussian:
        """The discrete Gaussian noise that the sum of the shares almost is; that of one share is it."""
        std = min(self.std * math.sqrt(self.shares), 1e300)
        return DiscreteGaussian(std, self.sensitivity, self.neighbours, self.dim)

    @property
    def distance(self) -> float:
        """The sensitivity; where only one number can move, the whole steps in it."""
        return self._whole.distance

    @property
    def has_own_law(self) -> bool:
        """Whether the release alone is priced by its own law."""
        return self.shares == 1 and self._whole.has_own_law

    @property
    def assumptions(self) -> tuple[str, ...]:
        """That the other shares are there, and that nobody sees less than the sum."""
        if self.shares == 1:
            return ()
        return (
            f"at least {self.shares:,} honest parties add their share of the noise to every sum",
            "of the messages of a step nobody sees more than one sum",
            "the masks that hide single messages are not broken by computing",
        )

    def work(self, *, many: bool) -> float:
        """Return the size of a table of the law, and of the search for an order."""
        return self._whole.work(many=many) if self.shares == 1 else 1e5 * (1 + 20 * many)

    def rounded(self, releases: int = 1) -> Gaussian | None:
        """The continuous release that this one, of `releases` in all, rounds; None on a coarse grid."""
        whole = self._whole
        if self.shares == 1:
            return whole.rounded(releases)
        lost = math.sqrt(_ROUNDED_VARIANCE)
        return Gaussian(
            min(1 / self._level(math.sqrt(whole.std - lost) * math.sqrt(whole.std + lost)), 1e300),
            self.neighbours,
        )

    @property
    def concentrated(self) -> Zcdp:
        """The concentrated-DP level of this release, whatever the grid."""
        if self.shares == 1:
            return self._whole.concentrated
        mu = self._level(self._whole.std)
        return Zcdp(max(mu * mu / 2, 1e-300), self.neighbours)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        fine = self.rounded()
        if self.shares == 1 or fine is None:
            return self._whole.curve()
        return curves.minimum([self.concentrated.curve(), fine.curve()])

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by the concentrated level."""
        return self.concentrated.renyi(orders)

    def _level(self, std: float) -> float:
        """Return the distance in deviations, rounded up, with what almost equal laws add to it.

        Laws within a factor exp(+-kappa) of the two of a mu-Gaussian-DP release are
        (mu + 4 kappa)-Gaussian-DP, and of a mu^2 / 2-concentrated one (mu + 2 kappa)^2 / 2-concentrated.
        """
        coordinates = self.MOST_COORDINATES if self.dim is None else self.dim
        return self.distance / std * (1 + 2.0**-50) + 4 * coordinates * _KAPPA


GaussianOnGrid = DiscreteGaussian | DiscreteGaussianSum
"""Noise of whole numbers that a Gaussian bounds: of one party, or a share of each of several."""
