"""Shuffled gradients on records in memory: many seeds, step sizes and amounts of noise at once, for research.

A silo runs the same loop on the same steps, and lets nobody see more than the end; here all can be seen, and
nothing that is run here is private by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from tacit.errors import ParameterError, check_count, check_non_negative, check_positive
from tacit.federation import Epoch, run_epochs
from tacit.learning.linear import LinearObjective
from tacit.learning.losses import Logistic
from tacit.learning.objective import Records
from tacit.learning.shuffled.kernels import RecordSteps, ShuffledObjective
from tacit.numerics import Array, IntArray, Regularizer, Zero, clip_rows
from tacit.privacy import Order

__all__ = ["ShuffledGradient", "noisy_gradient_descent", "noisy_sampled_descent"]

_COMPILING = 4e7
"""Numbers that NumPy multiplies in about the time that compiling takes."""

_STEP_NUMBERS = 2000
"""Numbers that are multiplied in the time of the calls of one step."""


@dataclass(frozen=True, kw_only=True)
class ShuffledGradient:
    """Algorithm 3 of Jiang (2025), which holds the others: what is minimised, on what, in which order.

    Without noise and regulariser it is the incremental gradient method (`IG`), shuffle once (`SO`) or random
    reshuffling (`RR`) of her Algorithm 2.

    Attributes:
        objective: A linear one of one output, or a distance.
        private: n records, with labels 0 and 1 for the logistic loss, none longer than the objective says.
        public: Records of public steps, in their order, the first ones in every epoch again; None is none.
        regularizer: Its prox is taken at the end of every epoch, with the step of all its steps together.
        clip: Longest gradient of a private record; infinite for no clipping.
        clip_public: Whether those of public records are clipped as well.
        order: Of private records.
        batch: Records of a step.
        compiled: As in `RecordSteps.of`; None where it is worth while.
    """

    objective: ShuffledObjective
    private: Records
    public: Records | None = None
    regularizer: Regularizer = field(default_factory=Zero)
    clip: float = math.inf
    clip_public: bool = False
    order: Order = Order.RR
    batch: int = 1
    compiled: bool | None = None

    def __post_init__(self) -> None:
        check_count("the number of private records", len(self.private))
        check_count("batch", self.batch, high=len(self.private))
        if not isinstance(self.order, Order):
            raise ParameterError(f"order must be an Order, got {self.order!r}.")
        if self.clip != math.inf:
            check_positive("clip", self.clip)
        self._check_records("private", self.private)
        if self.public is not None:
            self._check_records("public", self.public)

    def _check_records(self, name: str, records: Records) -> None:
        """Refuse records that the objective is not made for: in a silo they would count as zeros."""
        objective = self.objective
        if records.X.shape[1] != objective.size:
            raise ParameterError(
                f"{name} must have {objective.size} features, as the objective, got {records.X.shape[1]}."
            )
        if not isinstance(objective, LinearObjective):
            return
        if isinstance(objective.loss, Logistic) and not np.isin(records.y, (0, 1)).all():
            raise ParameterError(f"the labels y must be 0 or 1 for the logistic loss, got others in {name}.")
        if not np.array_equal(objective.borne_out(records).norms, records.norms):
            raise ParameterError(
                f"{name} must hold records no longer than feature_norm, {objective.feature_norm!r}, got one "
                f"of length {float(records.norms.max())!r}."
            )

    @cached_property
    def _fast(self) -> tuple[RecordSteps, RecordSteps | None]:
        return self._steps(None)

    @cached_property
    def _plain(self) -> tuple[RecordSteps, RecordSteps | None]:
        return self._steps(compiled=False)

    def _steps(self, compiled: bool | None) -> tuple[RecordSteps, RecordSteps | None]:  # noqa: FBT001
        """Return the steps on private and on public records."""
        ours = RecordSteps.of(self.objective, self.private, compiled=compiled)
        if self.public is None:
            return ours, None
        return ours, RecordSteps.of(self.objective, self.public, compiled=compiled)

    def run(
        self,
        epochs: Sequence[Epoch],
        *,
        step_size: float | Array,
        noise_std: float | Array = 0.0,
        rng: np.random.Generator | Sequence[np.random.Generator],
        order_rng: np.random.Generator | Sequence[np.random.Generator] | None = None,
        start: Array | None = None,
        follow: Callable[[Array], object] | None = None,
    ) -> Array:
        """Run the epochs and return the last iterate.

        Args:
            epochs: What each does; `ShuffledRun.schedule` has those of the named runs.
            step_size: eta > 0, or one per setting.
            noise_std: Of the noise on a gradient, >= 0, or one per setting.
            rng: Of the noise, and of the orders where they have none of their own; one, or one per seed.
            order_rng: Of the orders.
            start: Shape (d,), from public facts; None is 0.
            follow: Gets the iterates at the end of every epoch.

        Returns:
            Shape (d,) for one stream, one step size and one amount of noise, else (seeds, settings, d): every
            seed with every setting. The same seed has the same orders and noise in every setting.

        Raises:
            ParameterError: Too few public records, or values out of range.
        """
        most = max((epoch.public for epoch in epochs), default=0) * self.batch
        held = 0 if self.public is None else len(self.public)
        if most > held:
            raise ParameterError(f"public must hold {most} records for these epochs, got {held}.")
        for name, values in (("step_size", step_size), ("noise_std", noise_std)):
            given = np.asarray(values, dtype=np.float64)
            if (
                given.ndim > 1
                or not np.all(np.isfinite(given) & (given >= 0))
                or (name == "step_size" and not np.all(given > 0))
            ):
                raise ParameterError(f"{name} must be finite and positive, got {values!r}.")
        alone = np.ndim(step_size) == np.ndim(noise_std) == 0 and isinstance(rng, np.random.Generator)
        sizes, stds = np.broadcast_arrays(np.atleast_1d(step_size), np.atleast_1d(noise_std))
        if not epochs:
            raise ParameterError("epochs must hold at least one.")
        d, first = self.private.X.shape[1], _start(self, start)
        seeds = 1 if isinstance(rng, np.random.Generator) else len(rng)
        work = sum(epoch.steps for epoch in epochs) * max(self.batch * seeds * sizes.size * d, _STEP_NUMBERS)
        ours, theirs = (
            self._fast if self.compiled or (self.compiled is None and work > _COMPILING) else self._plain
        )

        def descend(index: IntArray, w: Array, *, public: bool, **facts: Any) -> Array:
            steps = theirs if public and theirs is not None else ours
            radius = self.clip if self.clip_public or not public else math.inf
            return steps(index, w, radius=radius, **facts)

        return run_epochs(
            descend,
            w=first if alone else np.tile(first, (seeds, sizes.size, 1)),
            n=len(self.private),
            epochs=epochs,
            order=self.order,
            step_size=step_size if alone else sizes,
            noise_std=noise_std if alone else stds,
            prox=self.regularizer,
            rng=rng,
            batch=self.batch,
            order_rng=order_rng,
            follow=follow,
        )

    def value(self, w: Array) -> Array:
        """Return the mean loss of the private records and the regulariser, at points of shape (..., d)."""
        flat = w.reshape(-1, w.shape[-1])
        found = [
            float(np.mean(self.objective.value(one, self.private))) + self.regularizer.value(one)
            for one in flat
        ]
        return np.array(found).reshape(w.shape[:-1])


def _start(problem: ShuffledGradient, start: Array | None) -> Array:
    """Return the first iterate, 0 where none is given."""
    d = problem.private.X.shape[1]
    first = np.zeros(d) if start is None else np.asarray(start, dtype=np.float64)
    if first.shape != (d,):
        raise ParameterError(f"start must have shape ({d},), got {first.shape}.")
    if not np.isfinite(first).all():
        raise ParameterError("start must be finite.")
    return first


def noisy_gradient_descent(
    problem: ShuffledGradient,
    *,
    steps: int,
    step_size: float,
    noise_std: float,
    rng: np.random.Generator,
    start: Array | None = None,
) -> Array:
    """Take full steps x <- prox(x - eta (mean of clipped gradients + noise)): DP-GD, to compare with.

    Every step is one Gaussian mechanism with noise noise_std on a mean that one record moves by 2 clip / n.

    Args:
        problem: What is minimised, on all private records; its orders, batches and public records are not
            looked at.
        steps: T.
        step_size: eta > 0.
        noise_std: On the mean gradient.
        rng: Of the noise.
        start: Shape (d,); None is 0.

    Returns:
        Shape (d,).
    """
    check_count("steps", steps)
    check_positive("step_size", step_size)
    check_non_negative("noise_std", noise_std)
    x = _start(problem, start)
    for _ in range(steps):
        rows = problem.objective.gradients(x, problem.private)
        if problem.clip != math.inf:
            rows = clip_rows(rows, problem.clip)
        moved = rows.mean(axis=0) + noise_std * rng.standard_normal(x.shape)
        x = problem.regularizer(step_size, x - step_size * moved)
    return x


def noisy_sampled_descent(
    problem: ShuffledGradient,
    *,
    steps: int,
    step_size: float,
    noise_std: float,
    rng: np.random.Generator,
    start: Array | None = None,
) -> Array:
    """Take steps on one record each that is drawn with replacement: DP-SGD, to compare with.

    Every step is a Gaussian mechanism, noise noise_std on a gradient that moves by 2 clip, on a sample of one
    of n records of fixed size.

    Args:
        problem: As for `noisy_gradient_descent`.
        steps: T.
        step_size: eta > 0.
        noise_std: On the gradient of the record.
        rng: Of the samples and of the noise.
        start: Shape (d,); None is 0.

    Returns:
        Shape (d,).
    """
    check_count("steps", steps)
    check_positive("step_size", step_size)
    ours = RecordSteps.of(problem.objective, problem.private, compiled=False)
    check_non_negative("noise_std", noise_std)
    x = _start(problem, start)
    for index in rng.integers(0, len(problem.private), size=(steps, 1)):
        noise = rng.standard_normal((1, x.size))
        x = ours(index, x, radius=problem.clip, step_size=step_size, noise=noise, noise_std=noise_std)
        x = problem.regularizer(step_size, x)
    return x
