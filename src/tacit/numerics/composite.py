"""Sums of penalties on a domain whose proximal operator still has a closed form."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.errors import ParameterError, check_non_negative, check_positive
from tacit.numerics.arrays import Array, IntArray, as_floats
from tacit.numerics.prox import Box, ElasticNet, GroupLasso, L2Ball, Simplex

__all__ = ["Composite", "Domain"]

Domain = L2Ball | Box | Simplex
"""Sets that parameters may be kept in."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Composite:
    """f1(w) = l1 ||w||_1 + (l2 / 2) ||w||_2^2 + group_lasso sum_g ||w_g||_2 on a domain, infinite outside.

    The proximal point is that of the penalties (soft threshold, then groups, then shrinkage), projected: both
    norms are positively homogeneous, so that a squared norm after them only scales (Yu 2013, "On decomposing
    the proximal map", NeurIPS, Theorem 4), and so does the projection on a centered ball; in a box all
    coordinates are problems of their own, if no group ties them; on a simplex a squared norm only scales.
    What else has no closed form is refused.

    Attributes:
        l1: Strength of the L1 penalty, finite, >= 0.
        l2: Strength of the squared L2 penalty, finite, >= 0.
        group_lasso: Strength of the penalty on the length of each group, finite, >= 0.
        groups: Shape (d,), integers: coordinates with one label form one group. None without `group_lasso`.
        domain: A ball around the origin, a box or a simplex; None is everything.
        coordinates: Shape (k, m): what the domain is about, each row the coordinates of one point in it; the
            rest is free. None: the whole of w is one point in it.
    """

    l1: float = 0.0
    l2: float = 0.0
    group_lasso: float = 0.0
    groups: IntArray | None = None
    domain: Domain | None = None
    coordinates: IntArray | None = None

    def __post_init__(self) -> None:
        _ = ElasticNet(l1=self.l1, l2=self.l2)
        check_non_negative("group_lasso", self.group_lasso)
        if self.group_lasso > 0 and self.groups is None:
            raise ParameterError("groups must say which coordinates belong together where group_lasso > 0.")
        if self.groups is not None:
            _ = GroupLasso(self.group_lasso, self.groups)
        self._check_domain()

    @property
    def strong_convexity(self) -> float:
        """Return `l2`."""
        return self.l2

    def __call__(self, eta: float, z: npt.ArrayLike) -> Array:
        """Soft threshold, shrink groups, shrink all, then project."""
        check_positive("eta", eta)
        y = ElasticNet(l1=self.l1)(eta, z)
        if self.groups is not None:
            y = GroupLasso(self.group_lasso, self.groups)(eta, y)
        y = ElasticNet(l2=self.l2)(eta, y)
        if self.domain is None:
            return y
        if self.coordinates is None:
            return self.domain(eta, y)
        kept = y.copy()
        kept[..., self.coordinates] = self.domain(eta, y[..., self.coordinates])
        return kept

    def value(self, w: npt.ArrayLike) -> float:
        """Return the penalties in the domain, up to rounding, and infinity outside."""
        w = as_floats("w", w)
        total = ElasticNet(l1=self.l1, l2=self.l2).value(w)
        if self.groups is not None:
            total += GroupLasso(self.group_lasso, self.groups).value(w)
        if self.domain is not None:
            points = w[None] if self.coordinates is None else w[self.coordinates]
            total += math.fsum(self.domain.value(point) for point in points)
        return total

    def _check_domain(self) -> None:
        """Refuse penalties on a domain whose proximal point has no closed form, and centers elsewhere."""
        if isinstance(self.domain, L2Ball) and self.domain.center is not None and np.any(self.domain.center):
            raise ParameterError("domain must be a ball around the origin, got another center.")
        if isinstance(self.domain, Simplex) and self.l1 > 0:
            raise ParameterError(
                f"l1 must be 0 on a simplex, where the L1 norm is constant, got {self.l1!r}."
            )
        if isinstance(self.domain, Box | Simplex) and self.group_lasso > 0:
            where = "box" if isinstance(self.domain, Box) else "simplex"
            raise ParameterError(
                f"group_lasso must be 0 on a {where}, got {self.group_lasso!r}; a step in closed form is "
                "that of l1, l2 and group_lasso together, on a ball too; l1 and l2 in a box; l2 on a simplex."
            )
