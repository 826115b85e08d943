"""Proximal operators of regularisers and smoothed losses in closed form (Parikh and Boyd 2014).

A regulariser f1 is called as `prox(eta, z) = argmin_y eta f1(y) + (1/2) ||y - z||_2^2`; the last axis of z
holds the coordinates, the axes before it are a batch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.numerics.arrays import Array, as_floats
from tacit.numerics.clipping import check_box, row_norms
from tacit.numerics.projections import project_box, project_l2_ball, project_simplex

__all__ = [
    "L1",
    "Box",
    "ElasticNet",
    "GroupLasso",
    "L1OverBall",
    "L2Ball",
    "Regularizer",
    "Simplex",
    "SquaredL2",
    "Zero",
]

_DOMAIN_TOLERANCE = 1e-6
"""Relative distance from a set at which its indicator reads 0, so that projected float32 points count."""


class Regularizer(Protocol):
    """A convex, proper function f1 with a proximal operator.

    Contract, checked for every one by tests/numerics/test_prox.py: the result minimises
    eta f1(y) + (1/2) ||y - z||^2; the map is nonexpansive; shape and float32 stay; f1 less
    (strong_convexity / 2) ||w||^2 is convex still.
    """

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of f1, >= 0."""
        ...

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """The proximal point of `z`, shape (..., d), for a step eta > 0."""
        ...

    def value(self, w: npt.ArrayLike) -> float:
        """f1 at a point of shape (d,); infinite outside the domain."""
        ...


@dataclass(frozen=True, slots=True)
class Zero:
    """No regulariser: f1 = 0."""

    strong_convexity: ClassVar[float] = 0.0

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Return `z`."""
        check_positive("eta", eta)
        return as_floats("z", z)

    def value(self, w: npt.ArrayLike) -> float:
        """Return 0."""
        as_floats("w", w)
        return 0.0


@dataclass(frozen=True, slots=True, eq=False)
class L2Ball:
    """Indicator of the ball of a radius around a center.

    Attributes:
        radius: Finite, >= 0.
        center: Shape (d,); None means the origin.
    """

    radius: float
    center: Array | None = None

    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_non_negative("radius", self.radius)

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Project onto the ball, whatever `eta`."""
        check_positive("eta", eta)
        return project_l2_ball(z, self.radius, center=self.center)

    def value(self, w: npt.ArrayLike) -> float:
        """Return 0 in the ball, up to rounding, and infinity outside."""
        return _indicator(w, self(1.0, w))


@dataclass(frozen=True, slots=True, eq=False)
class Box:
    """Indicator of the box lower <= w <= upper.

    Attributes:
        lower: A number or shape (d,), finite or minus infinity.
        upper: A number or shape (d,), finite or infinity, >= `lower`.
    """

    lower: float | Array
    upper: float | Array

    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        shapes = [np.shape(bound) for bound in (self.lower, self.upper)]
        check_box(self.lower, self.upper, dim=max((s[0] for s in shapes if s), default=0), finite=False)

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Project onto the box, whatever `eta`."""
        check_positive("eta", eta)
        return project_box(z, lower=self.lower, upper=self.upper)

    def value(self, w: npt.ArrayLike) -> float:
        """Return 0 in the box, up to rounding, and infinity outside."""
        return _indicator(w, self(1.0, w))


@dataclass(frozen=True, slots=True)
class Simplex:
    """Indicator of the simplex {w >= 0, sum(w) = total}.

    Attributes:
        total: Finite, >= 0.
    """

    total: float = 1.0

    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_non_negative("total", self.total)

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Project onto the simplex, whatever `eta`."""
        check_positive("eta", eta)
        return project_simplex(z, self.total)

    def value(self, w: npt.ArrayLike) -> float:
        """Return 0 on the simplex, up to rounding, and infinity elsewhere."""
        return _indicator(w, self(1.0, w))


@dataclass(frozen=True, slots=True)
class L1:
    """f1(w) = strength * ||w||_1.

    Attributes:
        strength: Finite, >= 0.
    """

    strength: float

    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_non_negative("strength", self.strength)

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Soft threshold: sign(z) max(|z| - eta * strength, 0)."""
        check_positive("eta", eta)
        z = as_floats("z", z)
        threshold = float(eta * self.strength)  # a NumPy float64 would widen float32
        return np.asarray(z - np.clip(z, -threshold, threshold))

    def value(self, w: npt.ArrayLike) -> float:
        """Return strength * ||w||_1."""
        return self.strength * float(row_norms(w, norm="l1"))


@dataclass(frozen=True, slots=True)
class SquaredL2:
    """f1(w) = (strength / 2) * ||w||_2^2.

    Attributes:
        strength: Finite, >= 0.
    """

    strength: float

    def __post_init__(self) -> None:
        check_non_negative("strength", self.strength)

    @property
    def strong_convexity(self) -> float:
        """Return the strength."""
        return self.strength

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Shrink: z / (1 + eta * strength)."""
        check_positive("eta", eta)
        return as_floats("z", z) / float(1 + eta * self.strength)

    def value(self, w: npt.ArrayLike) -> float:
        """Return (strength / 2) * ||w||_2^2."""
        return self.strength / 2 * float(row_norms(w)) ** 2


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticNet:
    """f1(w) = l1 * ||w||_1 + (l2 / 2) * ||w||_2^2.

    Attributes:
        l1: Strength of the L1 penalty, finite, >= 0.
        l2: Strength of the squared L2 penalty, finite, >= 0.
    """

    l1: float = 0.0
    l2: float = 0.0

    def __post_init__(self) -> None:
        check_non_negative("l1", self.l1)
        check_non_negative("l2", self.l2)

    @property
    def strong_convexity(self) -> float:
        """Return `l2`."""
        return self.l2

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Soft threshold, then shrink; exact in this order (Parikh and Boyd 2014, section 6.5.3)."""
        return SquaredL2(self.l2)(eta, L1(self.l1)(eta, z))

    def value(self, w: npt.ArrayLike) -> float:
        """Return l1 * ||w||_1 + (l2 / 2) * ||w||_2^2."""
        return L1(self.l1).value(w) + SquaredL2(self.l2).value(w)


@dataclass(frozen=True, slots=True, eq=False)
class GroupLasso:
    """f1(w) = strength * sum over groups of ||w_group||_2.

    Attributes:
        strength: Finite, >= 0.
        groups: Shape (d,), integers: coordinates with one label form one group.
    """

    strength: float
    groups: npt.NDArray[np.integer]

    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_non_negative("strength", self.strength)
        if np.ndim(self.groups) != 1 or np.asarray(self.groups).dtype.kind not in "iu":
            found = np.asarray(self.groups)
            raise ParameterError(
                f"groups must be integers of shape (d,), got dtype {found.dtype} and shape {found.shape}."
            )

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Shrink every group towards zero by eta * strength in length."""
        check_positive("eta", eta)
        z = as_floats("z", z)
        sizes, member = self._group_norms(z)
        threshold = eta * self.strength
        # max(1 - t / s, 0) without dividing by a group of zeros.
        kept = np.where(sizes > threshold, 1 - threshold / np.maximum(sizes, threshold or 1.0), 0.0)
        return (z * kept[..., member]).astype(z.dtype, copy=False)

    def value(self, w: npt.ArrayLike) -> float:
        """Return strength * sum over groups of ||w_group||_2."""
        return self.strength * float(self._group_norms(as_floats("w", w))[0].sum())

    def _group_norms(self, z: Array) -> tuple[Array, npt.NDArray[np.intp]]:
        """Norm of every group, shape (..., number of groups), and the group of every coordinate."""
        if z.shape[-1:] != np.shape(self.groups):
            raise ParameterError(
                f"z must have {len(self.groups)} coordinates like `groups`, got shape {z.shape}."
            )
        _, member, counts = np.unique(self.groups, return_inverse=True, return_counts=True)
        if counts.size == 0:
            return np.zeros((*z.shape[:-1], 0)), member
        order = np.argsort(member, kind="stable")
        starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
        squares = np.square(z[..., order], dtype=np.float64)
        return np.sqrt(np.add.reduceat(squares, starts, axis=-1)), member


@dataclass(frozen=True, slots=True)
class L1OverBall:
    """f1(w) = strength * ||w||_1 on the ball ||w||_2 <= radius, infinite outside.

    Attributes:
        strength: Finite, >= 0.
        radius: Of the ball around the origin, finite, >= 0.
    """

    strength: float
    radius: float

    strong_convexity: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_non_negative("strength", self.strength)
        check_non_negative("radius", self.radius)

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Soft threshold, then project; exact because the ball is centered at the origin."""
        return project_l2_ball(L1(self.strength)(eta, z), self.radius)

    def value(self, w: npt.ArrayLike) -> float:
        """Return strength * ||w||_1 in the ball, up to rounding, and infinity outside."""
        return L1(self.strength).value(w) + L2Ball(self.radius).value(w)


def _indicator(w: npt.ArrayLike, nearest: Array) -> float:
    """0 where the point is its own projection up to rounding, else infinity."""
    w = as_floats("w", w)
    scale = max(float(row_norms(nearest)), float(np.finfo(np.float64).tiny))
    return 0.0 if float(row_norms(w - nearest)) <= _DOMAIN_TOLERANCE * scale else math.inf
