"""Distances as losses: the simplest function with given public constants, whatever they are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.learning.objective import Records, clip_factors
from tacit.numerics import Array, row_norms

__all__ = ["DistanceObjective"]


@dataclass(frozen=True, kw_only=True)
class DistanceObjective:
    """The mean over records of L |w - x|, rounded off to (beta / 2) |w - x|^2 near x (Huber 1964).

    Convex, L-Lipschitz and beta-smooth in any dimension, and no better: what is known of an objective by
    these constants alone, this one shows. Its minimum is between the mean of the records (all of them near)
    and their geometric median.

    Attributes:
        size: Number of parameters, and of the entries of a record.
        lipschitz: L, > 0; infinite for squared distances.
        smoothness: beta, > 0; infinite for plain distances, without a rounded bottom.

    Example:
        >>> objective = DistanceObjective(size=2, lipschitz=1.0, smoothness=1.0)
        >>> far = Records.of(np.array([[3.0, 4.0]]), np.zeros(1))
        >>> objective.value(np.zeros(2), far), objective.gradients(np.zeros(2), far)
        (array([4.5]), array([[-0.6, -0.8]]))
    """

    size: int
    lipschitz: float = 1.0
    smoothness: float = math.inf

    def __post_init__(self) -> None:
        check_count("size", self.size)
        for name in ("lipschitz", "smoothness"):
            value = getattr(self, name)
            if value != math.inf:
                check_positive(name, value)
        if math.isinf(self.lipschitz) and math.isinf(self.smoothness):
            raise ParameterError("lipschitz or smoothness must be finite, got infinity for both.")

    @property
    def strong_convexity(self) -> float:
        """Return beta for squared distances, else 0: far away, a distance grows as a line."""
        return self.smoothness if math.isinf(self.lipschitz) else 0.0

    @property
    def clip_safe(self) -> bool:
        """True: a shorter gradient is that of a distance with a smaller constant."""
        return True

    def value(self, w: Array, records: Records) -> Array:
        """Return the loss of each record, shape (n,)."""
        far, (L, beta) = row_norms(w - records.X), (self.lipschitz, self.smoothness)
        if math.isinf(beta):
            return np.asarray(L * far)
        near = np.minimum(far, L / beta)
        return np.asarray(beta * near**2 / 2 + (L * (far - near) if math.isfinite(L) else 0.0))

    def gradients(self, w: Array, records: Records) -> Array:
        """Return one gradient per record, shape (n, size)."""
        away = w - records.X
        far = row_norms(away)
        if math.isinf(self.smoothness):
            factors = np.divide(self.lipschitz, far, out=np.zeros_like(far), where=far > 0)
        else:
            factors = np.minimum(self.smoothness, self.lipschitz / np.maximum(far, 1e-300))
        return np.asarray(away * factors[:, None])

    def clipped_sum(self, w: Array, records: Records, radius: float, dtype: type[np.floating[Any]]) -> Array:
        """Return the sum of the gradients, each clipped to an L2 ball first."""
        rows = self.gradients(w, records)
        factors = clip_factors(row_norms(rows), radius)
        rows[factors == 0] = 0  # infinity times 0 is NaN
        return np.asarray((rows * factors[:, None]).astype(dtype).sum(axis=0, dtype=np.float64))
