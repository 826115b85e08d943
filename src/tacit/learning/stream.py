"""Pan-private AC-SA on a stream: an intruder who reads the whole memory once learns no more than is priced.

Source: Cheu, Joseph, Mao and Peng (2022), Algorithm 6 and Theorem C.3, with the step sizes of Lan (2012) and
the points of each round mended (docs/errata.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tacit.errors import ParameterError, RefusalError, check_count, check_positive
from tacit.means import LARGEST_RADIUS, SMALLEST_RADIUS
from tacit.mechanisms import sample_discrete_gaussian
from tacit.numerics import Array, IntArray, Regularizer, Zero, clip_rows
from tacit.privacy import (
    DiscreteGaussian,
    Event,
    Guarantee,
    Neighbours,
    PrivacyBudget,
    calibrate,
    guarantee,
)
from tacit.randomness import secure

__all__ = ["PanPrivateStream"]

_CLIPPING_SLACK = 1e-9
"""What clipping and scaling in float64 leave of a row beyond its bound, at most, relative to it."""


class PanPrivateStream:
    """AC-SA on a stream of records, private against one intrusion into its memory and the result together.

    Between two records it holds four arrays and public numbers: no record, no buffer, no generator. Sums of
    gradients are integers on a grid with exact discrete Gaussian noise, once before the first record of a
    batch and once after the last. Each of the two has to be enough alone: an intruder who comes after a
    record, in its batch, meets the first one; who comes before it sees the first one, and meets the second.

    Args:
        gradient: Returns the gradient of a record's loss at a point, shape (size,). It must keep nothing.
        start: First point, shape (size,).
        budget: For one intrusion and the result together; delta > 0.
        length: n, public number of records of the stream.
        batch: m, records of a round, at most n. A rest of n mod m records is not used.
        radius: L, gradients are clipped to it.
        smoothness: beta.
        diameter: D of the domain.
        prox: Constraint; None is none.
        steps: Grid steps per radius.
        draw: Makes the generator of the noise, anew each time: one that is kept would give an intruder the
            noise of the past.

    Raises:
        ParameterError: A value is out of its range.
        BudgetError: No noise meets the budget.

    Reference:
        Cheu, Joseph, Mao and Peng (2022), Algorithm 6.
    """

    def __init__(
        self,
        gradient: Callable[[Array, Any], Array],
        start: Array,
        *,
        budget: PrivacyBudget,
        length: int,
        batch: int,
        radius: float,
        smoothness: float,
        diameter: float,
        prox: Regularizer | None = None,
        steps: int = 2**16,
        draw: Callable[[], np.random.Generator] = secure,
    ) -> None:
        check_count("length", length)
        check_count("batch", batch, high=length)
        check_count("steps", steps, high=2**24)
        for name, value in (("radius", radius), ("smoothness", smoothness), ("diameter", diameter)):
            check_positive(name, value)
        if not SMALLEST_RADIUS <= radius <= LARGEST_RADIUS:
            raise ParameterError(f"radius must be from 2**-100 to 2**100, got {radius!r}.")
        point = np.array(start, dtype=np.float64)
        if point.ndim != 1 or point.size == 0 or not np.isfinite(point).all():
            raise ParameterError(f"start must be a finite vector, got shape {point.shape}.")
        self.batch, self.rounds, self.length = batch, length // batch, length
        self.seen = 0
        self._gradient, self._draw, self._steps, self._radius = gradient, draw, steps, radius
        self._prox: Regularizer = Zero() if prox is None else prox
        self._budget = budget
        self._multiplier = calibrate(lambda z: self._event(z, point.size), budget)
        noise_std = math.sqrt(radius**2 / batch + 2 * point.size * self.zeta**2)
        self._scale = 4 * smoothness + (self.rounds + 2) ** 1.5 * noise_std / diameter
        self._theta, self._ag, self._md = point, point.copy(), point.copy()
        self._gbar = self._noise()

    @property
    def zeta(self) -> float:
        """Standard deviation of one of the two noises on a coordinate of a mean gradient, about 2 L z/m."""
        return 2 * self._radius * self._multiplier / self.batch

    @property
    def event(self) -> Event:
        """What one intrusion and the result tell together of one record: one noisy sum, no more."""
        return self._event(self._multiplier, self._theta.size)

    @property
    def guarantee(self) -> Guarantee:
        """The price, for one intrusion."""
        return guarantee(
            self.event,
            self._budget.delta,
            observer="whoever reads the memory once, between two records, and then the result",
            assumptions=("there is at most one intrusion", "the number of records is public"),
        )

    def guarantee_against(self, intrusions: int) -> Guarantee:
        """Return the price for one intrusion, and refuse any other number.

        Raises:
            ParameterError: Another number: two intrusions around a record see the sums before and after it.
        """
        if check_count("intrusions", intrusions) != 1:
            raise ParameterError(
                f"intrusions must be 1, got {intrusions!r}: two around one record see it without noise."
            )
        return self.guarantee

    def update(self, x: Any) -> None:
        """Take one record.

        A record of which there is no gradient, or none that is finite, counts as zero: an error would tell.

        Raises:
            RefusalError: More records than the stream was planned for.
        """
        if self.seen == self.length:
            raise RefusalError(f"the stream was planned for {self.length} records, and has ended.")
        self.seen += 1
        if self.seen > self.rounds * self.batch:
            return
        self._gbar = self._gbar + self._on_grid(self._gradient_of(x))
        if self.seen % self.batch == 0:
            self._step(self.seen // self.batch)

    def state(self) -> dict[str, Array | IntArray]:
        """Return all that an intruder finds: copies of theta, ag, md, and of gbar in grid steps."""
        return {
            "theta": self._theta.copy(),
            "ag": self._ag.copy(),
            "md": self._md.copy(),
            "gbar": self._gbar.copy(),
        }

    def finalize(self) -> Array:
        """Return the aggregate point, shape (size,).

        Raises:
            RefusalError: Batches are missing.
        """
        if self.seen < self.rounds * self.batch:
            raise RefusalError(
                f"the stream has {self.rounds * self.batch - self.seen} more records to take before it ends."
            )
        return self._ag.copy()

    def _step(self, t: int) -> None:
        """End round t = 1, 2, ...: the second noise, a step, and the first noise of the next round."""
        noisy = self._gbar + self._noise()
        gbar = noisy * (self._radius / self._steps / self.batch)
        a, following, step = 2 / (t + 1), 2 / (t + 2), (t + 1) / self._scale
        self._theta = self._prox(step, self._theta - step * gbar)
        self._ag = a * self._theta + (1 - a) * self._ag
        self._md = following * self._theta + (1 - following) * self._ag
        self._gbar = self._noise() if t < self.rounds else np.zeros_like(self._gbar)

    def _noise(self) -> IntArray:
        """Return fresh noise on a sum, in grid steps."""
        return sample_discrete_gaussian(2 * self._multiplier * self._steps, self._theta.size, self._draw())

    def _gradient_of(self, x: Any) -> Array:
        """Return the gradient of a record; zeros where it fails, has another form or is not finite."""
        try:
            with np.errstate(all="ignore"):
                given = np.asarray(self._gradient(self._md.copy(), x))
            known = given.dtype.kind in "biuf" and given.shape == self._theta.shape
            gradient = given.astype(np.float64) if known else np.zeros_like(self._theta)
        except Exception:  # noqa: BLE001 - whatever it raises may tell about the record
            gradient = np.zeros_like(self._theta)
        return gradient if np.isfinite(gradient).all() else np.zeros_like(self._theta)

    def _on_grid(self, gradient: Array) -> IntArray:
        """Return a clipped gradient in grid steps."""
        row = clip_rows(gradient[None], self._radius)[0]
        return np.asarray(np.rint(row * (self._steps / self._radius)), dtype=np.int64)

    def _event(self, multiplier: float, dim: int) -> Event:
        """Return the price of a noisy sum; rounding moves each coordinate of two rows by half a step."""
        moved = 2 * self._steps * (1 + _CLIPPING_SLACK) + math.sqrt(dim)
        return DiscreteGaussian(2 * multiplier * self._steps, moved, Neighbours(), dim)
