"""Laws of heavy tails on which every private method errs, or any: what lower bounds are proven on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive
from tacit.means import Error, MomentBound, MomentKind
from tacit.numerics import Array

__all__ = ["HardPrivateLaw", "HardStatisticalLaw"]


@dataclass(frozen=True, kw_only=True)
class HardPrivateLaw:
    """Rows that are 0, or with a small probability p long: what few records say, and privacy hides.

    A row is `scale` p^(-1/k) s with probability p = min(1, sqrt(d) / (n sqrt(rho))), where s is one corner of
    the cube {-1, 1}^d, else 0. So E |x|^k = (scale sqrt(d))^k however small p is. The losses are -<w, x> on a
    ball, or |w - x|^2 / 2: then the excess risk is half the squared error of the mean.

    Attributes:
        corner: s, shape (d,), of -1 and 1; what a method has to find.
        probability: p, in (0, 1].
        order: k > 1.
        scale: > 0.

    Raises:
        ParameterError: A value is out of its range.

    Example:
        >>> law = HardPrivateLaw.of(n=100, dim=4, rho=0.5, order=2, rng=np.random.default_rng(0))
        >>> round(law.probability, 6), law.moment.value
        (0.028284, 2.0)
        >>> round(law.clipped_error(100, clip=6.0, noise_multiplier=1.0).mse, 10)
        0.0952675396

    Reference:
        Lowy (2023), Theorems 57 and 58 (168 and 170 in its appendix).
    """

    corner: Array
    probability: float
    order: float
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.corner.ndim != 1 or not self.corner.size or not np.all(np.abs(self.corner) == 1):
            raise ParameterError("corner must have shape (d,), d >= 1, of -1 and 1.")
        if not 0 < self.probability <= 1:
            raise ParameterError(f"probability must be in (0, 1], got {self.probability!r}.")
        MomentBound(self.order, 1.0)
        check_positive("scale", self.scale)

    @classmethod
    def of(
        cls, *, n: int, dim: int, rho: float, order: float, rng: np.random.Generator, scale: float = 1.0
    ) -> HardPrivateLaw:
        """Return the law that is hardest for n rows under rho-zCDP, with a corner drawn at random.

        Args:
            n: Rows, >= 1.
            dim: d >= 1.
            rho: > 0; epsilon^2 / 2 in the source.
            order: k > 1.
            rng: Source of the corner.
            scale: > 0; the moment is `scale` sqrt(d).
        """
        check_count("n", n)
        check_count("dim", dim)
        check_positive("rho", rho)
        return cls(
            corner=np.where(rng.random(dim) < 0.5, -1.0, 1.0),
            probability=min(1.0, math.sqrt(dim) / (n * math.sqrt(rho))),
            order=order,
            scale=scale,
        )

    @property
    def dim(self) -> int:
        """Number of coordinates d."""
        return self.corner.size

    @property
    def moment(self) -> MomentBound:
        """The moment of order k, which is met with equality."""
        return MomentBound(self.order, self.scale * math.sqrt(self.dim), MomentKind.SUP_OUTSIDE)

    @property
    def length(self) -> float:
        """Norm of a row that is not 0."""
        return float(self.scale * self.probability ** (-1 / self.order) * math.sqrt(self.dim))

    @property
    def mean(self) -> Array:
        """The mean of the law, shape (d,)."""
        return np.asarray(self.probability * self.length / math.sqrt(self.dim) * self.corner)

    def draw(self, n: int, *, rng: np.random.Generator) -> Array:
        """Draw rows, shape (n, d)."""
        long = rng.random((n, 1)) < self.probability
        return np.where(long, self.corner * (self.length / math.sqrt(self.dim)), 0.0)

    def clipped_error(
        self, n: int, *, clip: float, noise_multiplier: float, sensitivity: float = 2.0
    ) -> Error:
        """Return the exact error of the mean of n clipped rows with Gaussian noise, against the mean.

        Args:
            n: Rows, >= 1.
            clip: C > 0.
            noise_multiplier: Standard deviation of a coordinate's noise over `sensitivity` C / n, >= 0.
            sensitivity: Clips by which one row moves the sum.
        """
        check_count("n", n)
        check_positive("clip", clip)
        check_non_negative("noise_multiplier", noise_multiplier)
        p = self.probability
        noise = self.dim * (noise_multiplier * sensitivity * clip / n) ** 2
        sampling = p * (1 - p) * min(clip, self.length) ** 2 / n
        return Error(variance=sampling + noise, bias=p * max(self.length - clip, 0.0))

    def best_clip(self, n: int, *, noise_multiplier: float, sensitivity: float = 2.0) -> float:
        """Return the clip of the least `clipped_error`, which only who knows the law could choose."""
        check_count("n", n)
        p = self.probability
        noise = self.dim * (noise_multiplier * sensitivity / n) ** 2
        return p * p * self.length / (p * p + p * (1 - p) / n + noise)


@dataclass(frozen=True, kw_only=True)
class HardStatisticalLaw:
    """Independent signs with a small mean: every estimate of n rows errs by about d / n, private or not.

    Attributes:
        means: Shape (d,): mean of each sign, in [-1, 1].
        scale: What rows are multiplied by, > 0.

    Raises:
        ParameterError: A value is out of its range.

    Reference:
        Lowy (2023), Theorems 57 and 58; for the constant, Le Cam's method with two points.
    """

    means: Array
    scale: float = 1.0

    def __post_init__(self) -> None:
        if self.means.ndim != 1 or not self.means.size or not np.all(np.abs(self.means) <= 1):
            raise ParameterError("means must have shape (d,), d >= 1, of numbers from -1 to 1.")
        check_positive("scale", self.scale)

    @classmethod
    def of(cls, *, n: int, dim: int, rng: np.random.Generator, scale: float = 1.0) -> HardStatisticalLaw:
        """Return the law with means of size 1 / sqrt(2 n), whose signs are drawn at random.

        Args:
            n: Rows, >= 1.
            dim: d >= 1.
            rng: Source of the signs.
            scale: > 0; the moment of every order is `scale` sqrt(d).
        """
        check_count("n", n)
        check_count("dim", dim)
        return cls(means=np.where(rng.random(dim) < 0.5, -1.0, 1.0) / math.sqrt(2 * n), scale=scale)

    @property
    def mean(self) -> Array:
        """The mean of the law, shape (d,)."""
        return np.asarray(self.scale * self.means)

    def moment(self, order: float) -> MomentBound:
        """Return the moment of an order, met with equality: all rows have one norm."""
        return MomentBound(order, self.scale * math.sqrt(self.means.size), MomentKind.SUP_OUTSIDE)

    def draw(self, n: int, *, rng: np.random.Generator) -> Array:
        """Draw rows, shape (n, d)."""
        signs = np.where(rng.random((n, self.means.size)) < (1 + self.means) / 2, 1.0, -1.0)
        return np.asarray(self.scale * signs)

    def least_squared_error(self, n: int) -> float:
        """Return what every estimate of n rows errs by, averaged over the signs of the means.

        Each coordinate is a test between two laws: scale^2 sum_j m_j^2 (1 - TV) / 2 with TV at most (n KL /
        2)^(1/2); for means of 1 / sqrt(2 n), more than the scale^2 d / (64 n) that the source has.
        """
        check_count("n", n)
        size = np.minimum(np.abs(self.means), 1 - 1e-16)
        between = size * (np.log1p(size) - np.log1p(-size))
        apart = np.minimum(1.0, np.sqrt(n * between / 2))
        return float(self.scale**2 * np.sum(size**2 * (1 - apart) / 2))
