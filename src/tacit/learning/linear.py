"""Linear models in closed form: a gradient is slope times features, so clipping needs no matrix of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeGuard

import numpy as np

from tacit.errors import check_count, check_positive
from tacit.learning.losses import Loss, check_outputs
from tacit.learning.objective import NeuralObjective, Objective, RecordGradient, Records, clip_slopes
from tacit.numerics import Array, row_products, weighted_sum

__all__ = ["ConvexGradient", "LinearObjective", "is_network"]

_LARGEST = 1e100
"""Bound on labels and on norms of features where products of both with points must not overflow."""

_LONGER = 1 + 1e-6
"""Times the bound on its norm that a record may be long by the rounding of whoever scaled it."""


@dataclass(frozen=True, kw_only=True)
class LinearObjective:
    """The mean over records of loss(<w, x>, y).

    Attributes:
        loss: Loss of a prediction.
        features: Length of x, a constant feature included.
        outputs: Predictions per record: 1, or the number of classes of a multinomial loss.
        feature_norm: Public bound on the norm of x; infinite if none is known.
    """

    loss: Loss
    features: int
    outputs: int = 1
    feature_norm: float = math.inf

    def __post_init__(self) -> None:
        check_count("features", self.features)
        check_outputs(self.loss, self.outputs)
        if self.feature_norm != math.inf:
            check_positive("feature_norm", self.feature_norm)

    @property
    def size(self) -> int:
        """Number of parameters."""
        return self.features * self.outputs

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of a record's gradient."""
        return self.loss.lipschitz * self.feature_norm

    @property
    def smoothness(self) -> float:
        """Bound on the smoothness of a record's loss."""
        return self.loss.smoothness * self.feature_norm**2

    @property
    def strong_convexity(self) -> float:
        """Return 0: a record says nothing of parameters at a right angle to its features."""
        return 0.0

    @property
    def clip_safe(self) -> bool:
        """True for one output: clipping the slope of a convex function leaves it non-decreasing."""
        return self.outputs == 1

    def wider(self) -> LinearObjective:
        """Return the same objective of one feature more."""
        return replace(self, features=self.features + 1)

    def predictions(self, w: Array, X: Array) -> Array:
        """Return <w, x> per record, shape (n,), or (n, outputs): of each record by itself."""
        weights = w.astype(X.dtype, copy=False)
        return row_products(X, weights if self.outputs == 1 else weights.reshape(self.features, self.outputs))

    def pullback(self, w: Array, X: Array, slopes: Array) -> Array:  # noqa: ARG002 - it is linear in w
        """Return the sum over records of the Jacobian of predictions times slopes, shape (size,).

        Args:
            w: Parameters, shape (size,).
            X: Shape (n, features).
            slopes: In the shape of predictions.
        """
        return np.asarray(X.T @ slopes).reshape(self.size)

    def value(self, w: Array, records: Records) -> Array:
        """Return the loss of each record, shape (n,)."""
        return self.loss.value(self.predictions(w, records.X), records.y)

    def gradients(self, w: Array, records: Records) -> Array:
        """Return one gradient per record, shape (n, size).

        A row is the same to the last bit wherever its record stands and however many others there are.
        """
        # What overflows becomes a row that clipping counts as zero; a warning would tell that there is one.
        with np.errstate(over="ignore", invalid="ignore"):
            slopes = self._slopes(w, records)
            if self.outputs == 1:
                return np.asarray(records.X * slopes[:, None])
            return np.asarray(np.einsum("nd,nk->ndk", records.X, slopes)).reshape(len(records), self.size)

    def clipped_sum(
        self, w: Array, records: Records, radius: float, dtype: type[np.floating[Any]] = np.float64
    ) -> Array:
        """Return sum_i clip(slope_i x_i), without a matrix of gradients, shape (size,).

        |slope_i x_i| = |slope_i| |x_i|, so clipping a gradient is clipping its slope. Only the sum mixes
        records, and its rounding is bounded in any order (docs/theory/sums.md).
        """
        slopes = self.clipped_slopes(w, records, radius)
        return weighted_sum(records.X, slopes, dtype=dtype).reshape(self.size)

    def clipped_slopes(self, w: Array, records: Records, radius: float) -> Array:
        """Return slopes that make no gradient longer than the radius, shape (n,), or (n, outputs)."""
        with np.errstate(over="ignore", invalid="ignore"):
            return clip_slopes(self._slopes(w, records), records.norms, radius)

    def clipped_difference(
        self,
        w: Array,
        previous: Array,
        records: Records,
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,
        *,
        clip: float | None = None,
    ) -> Array:
        """Return the sum of the clipped rows of `RecordDifference`: (slope_i(w) - slope_i(previous)) x_i."""
        slopes = self.clipped_slope_differences(w, previous, records, radius, clip=clip)
        return weighted_sum(records.X, slopes, dtype=dtype).reshape(self.size)

    def clipped_slope_differences(
        self, w: Array, previous: Array, records: Records, radius: float, *, clip: float | None = None
    ) -> Array:
        """Return differences of slopes that make no such row longer than the radius."""
        with np.errstate(over="ignore", invalid="ignore"):
            first, second = (self._slopes(point, records) for point in (w, previous))
            if clip is not None:
                first, second = (clip_slopes(slopes, records.norms, clip) for slopes in (first, second))
            return clip_slopes(first - second, records.norms, radius)

    def borne_out(self, records: Records) -> Records:
        """Return records in float64 of which all that is said of the loss holds: too long ones count as zero.

        Labels are brought to where their products cannot overflow.
        """
        short = records.norms <= self.feature_norm * _LONGER
        X = np.where(short[:, None], records.X, 0.0).astype(np.float64, copy=False)
        y = np.clip(records.y.astype(np.float64, copy=False), -_LARGEST, _LARGEST)
        return Records(X, y, np.where(short, records.norms, 0.0))

    def _slopes(self, w: Array, records: Records) -> Array:
        """Return the derivative of each record's loss in its prediction, in the dtype of X."""
        slopes = self.loss.slope(self.predictions(w, records.X), records.y)
        return slopes.astype(records.X.dtype, copy=False)


@dataclass(frozen=True)
class ConvexGradient:
    """The gradient of each record's loss at "w", for hidden walks: what it says holds of every record.

    A record that is longer than `feature_norm` counts as zero: its loss might be less smooth than is said.
    All is computed in float64, whatever the records are stored in: in float32 a gradient is a staircase in
    "w", with steps far higher than what the noise hides, and what overflows has lost its direction.

    Attributes:
        objective: Of a loss whose `smoothness` holds for every label, as all of the library's do.
    """

    objective: LinearObjective

    @property
    def smoothness(self) -> float:
        """Bound on the smoothness of any record's loss; infinite where its gradient might overflow."""
        if self.objective.feature_norm > _LARGEST:
            return math.inf
        return self.objective.smoothness * _LONGER**2

    @property
    def clip_safe(self) -> bool:
        """Whether clipping only replaces the loss by another convex one, no less smooth."""
        return self.objective.clip_safe

    def __call__(self, units: Records, at: Mapping[str, Array]) -> Array:
        """Return one gradient per record, shape (n, size)."""
        held = self.objective.borne_out(units)
        return np.where(held.norms[:, None] > 0, RecordGradient(self.objective)(held, at), 0.0)


def is_network(objective: Objective) -> TypeGuard[NeuralObjective]:
    """Return whether an objective is that of a network: not convex, and nobody knows how smooth."""
    return isinstance(objective, NeuralObjective) and not isinstance(objective, LinearObjective)
