"""Steps of a hidden run inside a silo: nothing that goes wrong on a private record shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tacit.numerics import Array, IntArray, clip_rows

__all__ = ["Descent", "UnitSteps"]


@dataclass(frozen=True)
class UnitSteps:
    """Steps on the units of one side, private or public.

    Attributes:
        units: How many there are.
        rows: Returns the row of each unit of an index at a point, float64, shape (b, d), not clipped.
        radius: What rows are clipped to.
        stepper: A fast way to take many steps, as of a `SteppingStatistic`; None where there is none.
    """

    units: int
    rows: Callable[[IntArray, Array], Array]
    radius: float
    stepper: Callable[..., Array] | None = None

    def __call__(
        self, index: IntArray, w: Array, *, step_size: Array, noise: Array | None, noise_std: Array
    ) -> Array:
        """Return where the steps of one run end; fast, unless that fails."""
        if self.stepper is not None:
            with suppress(Exception):  # whatever it raises may tell about a unit
                end = self.stepper(
                    index, w, radius=self.radius, step_size=step_size, noise=noise, noise_std=noise_std
                )
                if end.shape == w.shape and np.isfinite(end).all():
                    return end
        for t, some in enumerate(index):
            gradient = clip_rows(self.rows(some, w), self.radius).mean(axis=0)
            w = w - step_size * (gradient if noise is None else gradient + noise_std * noise[t])
        return w


@dataclass(frozen=True)
class Descent:
    """Steps on either side, as `Descend` says."""

    sides: Mapping[bool, UnitSteps]

    def __call__(
        self,
        index: IntArray,
        w: Array,
        *,
        public: bool,
        step_size: float | Array,
        noise: Array | None,
        noise_std: float | Array,
    ) -> Array:
        """Return where the steps end; public records start over where there are too few."""
        side = self.sides[public]
        return side(
            index % side.units if public else index,
            w,
            step_size=np.asarray(step_size),
            noise=noise,
            noise_std=np.asarray(noise_std),
        )
