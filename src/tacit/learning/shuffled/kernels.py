"""One record a step: the inner loop of shuffled gradients, for objectives whose gradient is a multiple.

The gradient of a linear objective is a slope times the record, that of a distance a factor times the way to
it: clipping it is clipping a number, and a step is one product and one sum of vectors.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tacit.errors import ParameterError, check_positive
from tacit.learning.distance import DistanceObjective
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Huber, Logistic, PoissonLoss, Squared
from tacit.learning.objective import Records, clip_slopes
from tacit.learning.shuffled import compiled as fast
from tacit.numerics import NORM_SLACK, Array, IntArray, row_norms

__all__ = ["RecordSteps", "ShuffledObjective"]

ShuffledObjective = LinearObjective | DistanceObjective
"""Objectives whose gradient of a record is a number times a vector."""

_INSET = 1 - 4 * NORM_SLACK  # as `clip_slopes` has it


@dataclass(frozen=True)
class RecordSteps:
    """Steps w <- w - step_size (mean of b clipped gradients + noise), one after the other; draws nothing.

    Many replicas go side by side: of several seeds, each with orders and noise of its own, and for every seed
    of several settings (step sizes and amounts of noise), which share them. Each replica is, to rounding,
    what it would be alone.

    Attributes:
        objective: A linear one of one output, or a distance.
        records: In float64; make it with `of`.
        compiled: Whether in machine code; to rounding, that changes nothing but the time.
    """

    objective: ShuffledObjective
    records: Records
    compiled: bool = False

    @classmethod
    def of(
        cls, objective: ShuffledObjective, records: Records, *, compiled: bool | None = None
    ) -> RecordSteps:
        """Prepare records: in float64, and those that the objective does not bear out as zeros.

        Args:
            objective: A linear one of one output, or a distance.
            records: Any.
            compiled: Whether in machine code; None where numba is installed and the loss is one it knows.

        Raises:
            ParameterError: Another objective, or machine code that there cannot be.
        """
        if isinstance(objective, LinearObjective):
            if type(objective)._slopes is not LinearObjective._slopes:  # an envelope
                raise ParameterError(
                    "steps of single records need gradients that are slopes of the loss, got those of "
                    f"{type(objective).__name__}."
                )
            if objective.outputs != 1:
                raise ParameterError(
                    "steps of single records need a loss of one prediction, got one of "
                    f"{objective.outputs}: its gradient is no multiple of the record."
                )
            records = objective.borne_out(records)
        elif isinstance(objective, DistanceObjective):
            records = Records(
                *(part.astype(np.float64, copy=False) for part in (records.X, records.y, records.norms))
            )
        else:
            raise ParameterError(
                "steps of single records need a linear objective or a distance, got "
                f"{type(objective).__name__}."
            )
        steps = cls(objective, records)
        can = steps.can_compile
        if compiled and not can:
            raise ParameterError(
                "compiled steps need numba (the extra fast), and a squared, logistic, huber or poisson loss "
                "or a distance."
            )
        return cls(objective, records, can if compiled is None else compiled)

    @property
    def can_compile(self) -> bool:
        """Whether numba is installed, and knows the loss."""
        return fast.can_compile() and self._constants is not None

    @cached_property
    def _constants(self) -> tuple[int, tuple[float, float]] | None:
        """What machine code needs to know of the loss; None where it knows none like it."""
        objective = self.objective
        if isinstance(objective, DistanceObjective):
            return fast.DISTANCE, (objective.lipschitz, objective.smoothness)
        match objective.loss:
            case Squared():
                return fast.SQUARED, (0.0, 0.0)
            case Logistic():
                return fast.LOGISTIC, (0.0, 0.0)
            case Huber(threshold=threshold):
                return fast.HUBER, (threshold, 0.0)
            case PoissonLoss(most=most):
                return fast.POISSON, (most, math.log(most))
        return None

    def __call__(
        self,
        index: IntArray,
        w: Array,
        *,
        radius: float = math.inf,
        step_size: float | Array,
        noise: Array | None = None,
        noise_std: float | Array = 1.0,
    ) -> Array:
        """Take one step for every row of the index, and return where that leads.

        Args:
            index: Records of each step, shape (steps,), or (steps, b); of several replicas (seeds, steps) or
                (seeds, steps, b).
            w: Start, shape (d,); of several replicas (seeds, settings, d).
            radius: Longest gradient of a record, > 0; infinite for no clipping.
            step_size: > 0; a number, or shape (settings,).
            noise: Shape (steps, d), or (seeds, steps, d); None for none.
            noise_std: What noise is multiplied by, >= 0; a number, or shape (settings,).

        Returns:
            In the shape of w.

        Raises:
            ParameterError: Shapes that do not fit, or a radius that is not positive.
        """
        if radius != math.inf:
            check_positive("radius", radius)
        alone = w.ndim == 1
        points = np.array(w[None, None] if alone else w, dtype=np.float64, order="C")
        index, noise = _many(index, noise, points, self.records.X.shape, alone=alone)
        # Arrays of their own: a read-only one is another type, for which all would be compiled once more.
        sizes, stds = (
            np.full(points.shape[1:2], value, dtype=np.float64) for value in (step_size, noise_std)
        )
        if self.compiled:
            self._compiled(index, points, radius, sizes, noise, stds)
        else:
            self._plain(index, points, radius, sizes, noise, stds)
        return points[0, 0] if alone else points

    def _compiled(
        self,
        index: IntArray,
        w: Array,
        radius: float,
        step_size: Array,
        noise: Array | None,
        noise_std: Array,
    ) -> None:
        """Take the steps in machine code."""
        kind, constants = self._constants or (fast.SQUARED, (0.0, 0.0))
        fast.compiled_descent()(
            kind,
            constants,
            self.records.X,
            self.records.y,
            self.records.norms,
            index,
            w,
            radius * _INSET,
            step_size,
            np.empty((0, 0, 0)) if noise is None else noise,
            noise_std,
        )

    def _plain(
        self,
        index: IntArray,
        w: Array,
        radius: float,
        step_size: Array,
        noise: Array | None,
        noise_std: Array,
    ) -> None:
        """Take the steps with NumPy: per step, the rows of all replicas at once."""
        _, steps, batch = index.shape
        held = self.records
        for i in range(steps):
            taken = index[:, i]
            x, y, norms = held.X[taken], held.y[taken][:, None], held.norms[taken][:, None]
            with np.errstate(all="ignore"):  # what overflows counts as zero
                slopes, lengths = self._slopes(w, x, y, norms)
                clipped = _clipped(slopes, lengths, radius)
            factors = clipped * (step_size / batch)[:, None]
            if isinstance(self.objective, DistanceObjective):
                w *= 1 - factors.sum(axis=2, keepdims=True)
                w += factors @ x
            else:
                w -= factors @ x
            if noise is not None:
                w -= (step_size * noise_std)[:, None] * noise[:, i, None]

    def _slopes(self, w: Array, x: Array, y: Array, norms: Array) -> tuple[Array, Array]:
        """Return the factors of the gradients and the lengths of what they multiply: (seeds, settings, b)."""
        objective = self.objective
        if isinstance(objective, LinearObjective):
            predictions = w @ x.swapaxes(1, 2)
            return objective.loss.slope(predictions, y), np.broadcast_to(norms, predictions.shape)
        far = row_norms(w[:, :, None] - x[:, None])
        L, beta = objective.lipschitz, objective.smoothness
        if math.isinf(beta):
            return np.divide(L, far, out=np.zeros_like(far), where=far > 0), far
        return np.minimum(beta, L / np.maximum(far, 1e-300)), far


def _clipped(slopes: Array, lengths: Array, radius: float) -> Array:
    """Return slopes that make no gradient longer than the radius; those that are not finite count as zero."""
    limit = radius if math.isfinite(radius) else 1e300
    return clip_slopes(slopes.ravel(), lengths.ravel(), limit).reshape(slopes.shape)


def _many(
    index: IntArray, noise: Array | None, w: Array, rows: tuple[int, ...], *, alone: bool
) -> tuple[IntArray, Array | None]:
    """Return index of shape (seeds, steps, b) and noise of shape (seeds, steps, d), or refuse others."""
    index = np.asarray(index)
    many = index[None] if alone else index
    many = many[:, :, None] if many.ndim == 2 else many
    if w.ndim != 3 or many.ndim != 3 or len(many) != len(w) or many.shape[2] == 0:
        raise ParameterError(
            "w must have shape (d,) and index (steps,) or (steps, b), or (seeds, settings, d) and (seeds, "
            f"steps) or (seeds, steps, b), got {w.shape} and {index.shape}."
        )
    if w.shape[2] != rows[1]:
        raise ParameterError(f"w must have {rows[1]} parameters, as the records have, got {w.shape[2]}.")
    if many.size and not 0 <= many.min() <= many.max() < rows[0]:  # machine code looks at no bounds
        raise ParameterError(f"index must be from 0 to {rows[0] - 1}, got {many.min()} to {many.max()}.")
    many = np.array(many, dtype=np.int64, order="C")
    if noise is None:
        return many, None
    drawn = np.asarray(noise[None] if alone else noise)
    if drawn.shape != (*many.shape[:2], w.shape[2]):
        raise ParameterError(
            f"noise must have one row of {w.shape[2]} numbers per step, got shape {noise.shape} for index of "
            f"shape {index.shape}."
        )
    return many, np.ascontiguousarray(drawn, dtype=np.float64)
