"""Releases of which one number or two are known: continuous noise, and levels that were proven elsewhere."""

from __future__ import annotations

from typing import ClassVar

from tacit.errors import check_count, check_non_negative, check_positive, check_probability
from tacit.privacy import curves, divergences
from tacit.privacy.curves import Array, Curve
from tacit.privacy.events.base import Leaf
from tacit.privacy.neighbours import Neighbours

__all__ = ["ApproximateDP", "Gaussian", "Gdp", "Laplace", "NonPrivate", "PureDP", "Zcdp"]


class Gaussian(Leaf, frozen=True, tag=True):
    """Gaussian noise on a vector.

    Attributes:
        noise_multiplier: Standard deviation / L2 sensitivity. Finite, > 0.
        neighbours: The relation under which the sensitivity was taken.
    """

    continuous: ClassVar[bool] = True

    noise_multiplier: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "analytic Gaussian"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.gaussian_curve(1 / self.noise_multiplier)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, exactly."""
        return divergences.concentrated_renyi(0.5 / self.noise_multiplier / self.noise_multiplier, orders)


class Gdp(Leaf, frozen=True, tag=True):
    """A release no easier to attack than N(mu, 1) against N(0, 1): mu-Gaussian-DP (Dong, Roth, Su 2022)."""

    continuous: ClassVar[bool] = False

    mu: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "analytic Gaussian"

    def __post_init__(self) -> None:
        check_non_negative("mu", self.mu)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.gaussian_curve(self.mu)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, as those of the Gaussian pair."""
        return divergences.concentrated_renyi(self.mu * self.mu / 2, orders)


class Laplace(Leaf, frozen=True, tag=True):
    """Laplace noise, coordinate by coordinate.

    Attributes:
        noise_multiplier: Scale b / L1 sensitivity. Finite, > 0.
        dim: Number of coordinates. In one dimension the exact curve is used, in more the pure level
            1 / noise_multiplier alone.
        neighbours: The relation under which the sensitivity was taken.
    """

    continuous: ClassVar[bool] = True

    noise_multiplier: float
    dim: int = 1
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_count("dim", self.dim)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        level = 1 / self.noise_multiplier
        return curves.laplace_curve(level) if self.dim == 1 else curves.approximate_dp_curve(level)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`: exactly in one dimension, else by the pure level."""
        level = 1 / self.noise_multiplier
        known = divergences.laplace_renyi if self.dim == 1 else divergences.pure_dp_renyi
        return known(level, orders)


class PureDP(Leaf, frozen=True, tag=True):
    """Any release with pure differential privacy at level epsilon."""

    continuous: ClassVar[bool] = False

    epsilon: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "pure differential privacy"

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.approximate_dp_curve(self.epsilon)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, at most those of randomised response."""
        return divergences.pure_dp_renyi(self.epsilon, orders)


class ApproximateDP(Leaf, frozen=True, tag=True):
    """Any release with (epsilon, delta)-differential privacy."""

    continuous: ClassVar[bool] = False

    epsilon: float
    delta: float
    neighbours: Neighbours = Neighbours()

    def __post_init__(self) -> None:
        check_non_negative("epsilon", self.epsilon)
        check_probability("delta", self.delta, high_open=True)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.approximate_dp_curve(self.epsilon, self.delta)


class Zcdp(Leaf, frozen=True, tag=True):
    """Any release whose Rényi divergences of order alpha are at most alpha * rho (Bun and Steinke 2016)."""

    continuous: ClassVar[bool] = False

    rho: float
    neighbours: Neighbours = Neighbours()

    method: ClassVar[str] = "concentrated differential privacy"

    def __post_init__(self) -> None:
        check_positive("rho", self.rho)

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.zcdp_curve(self.rho)

    def renyi(self, orders: Array) -> Array:
        """Return the Rényi divergences at `orders`, by definition."""
        return divergences.concentrated_renyi(self.rho, orders)


class NonPrivate(Leaf, frozen=True, tag=True):
    """A release for which nothing is claimed.

    Whatever contains it has infinite epsilon, unless another proof covers the same release or the unit is
    sampled into it with a probability of at most delta.
    """

    continuous: ClassVar[bool] = False

    neighbours: Neighbours = Neighbours()

    def curve(self) -> Curve:
        """Return the curve of this release."""
        return curves.nothing_hidden()
