"""A step size by halving: a run that makes its loss grow starts again with half of it.

Source: "Efficient private federated non-convex optimization with shuffled model" (an anonymous manuscript of
2024), on its experiments.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.errors import check_count, check_positive
from tacit.learning.algorithms.base import Follow
from tacit.numerics import Array
from tacit.privacy import Compose, Event, Repeat

__all__ = ["HalvedStep", "HalvingTuner"]


@dataclass(frozen=True, kw_only=True)
class HalvedStep:
    """What a halving ends with.

    Attributes:
        step_size: Of the run that went through, or of the last one that was allowed.
        w: Where it ended, shape (size,).
        runs: How many runs were begun.
        stable: Whether that run passed its checks; the last one that is allowed goes on without.
        losses: What was read in that run, one a check.
    """

    step_size: float
    w: Array
    runs: int
    stable: bool
    losses: tuple[float, ...]

    warning: ClassVar[str] = (
        "The step size was tuned non-privately: the guarantee of the run covers neither the losses that were "
        "read nor the runs before it."
    )


@dataclass(frozen=True, kw_only=True)
class HalvingTuner:
    """Finds a step size by watching the training loss; NOT private, unless all that it looks at is priced.

    Every `check_every` rounds it reads a loss. One that exceeds `factor` times the one before `patience`
    times in a row, or that is not finite, ends the run, and so does a point that is not finite, whose loss is
    not read; the next starts with half the step size. It does
    not see clipped steps that go back and forth far away, at losses that grow no more.

    Each run has its price, the losses are exact sums over private records, and the guarantee of the run that
    is kept covers nothing of that. `at_most` prices all of it, for losses that a mechanism releases.

    Attributes:
        start: The first step size.
        check_every: Rounds between two losses.
        factor: How many times the loss before a loss may be.
        patience: How often in a row it may not be before the step is halved.
        most_runs: Runs at most. The last goes through to its end, whatever its losses are.

    Raises:
        ParameterError: A value out of its range.

    Example:
        >>> import numpy as np
        >>> def descend(step_size, follow):  # w^2 / 2 with a curvature of 10
        ...     w = np.ones(1)
        ...     for r in range(200):
        ...         w = w - step_size * 10 * w
        ...         follow(r, w)
        ...     return w
        >>> found = HalvingTuner().tune(descend, lambda w: float(5 * (w @ w)))
        >>> found.step_size, found.runs, found.stable
        (0.125, 3, True)
    """

    start: float = 0.5
    check_every: int = 20
    factor: float = 1.05
    patience: int = 3
    most_runs: int = 20

    def __post_init__(self) -> None:
        check_positive("start", self.start)
        check_count("check_every", self.check_every)
        check_positive("factor", self.factor)
        check_count("patience", self.patience)
        check_count("most_runs", self.most_runs)

    def tune(self, run: Callable[[float, Follow], Array], loss: Callable[[Array], float]) -> HalvedStep:
        """Return the first run whose losses do not grow.

        Args:
            run: Makes a whole run with a step size, a new one every time, calls a function after each round
                with its number from 0 on and the point, and returns the parameters; such as one of `train`.
            loss: The training loss of a point, >= 0.
        """
        step = self.start
        for number in range(1, self.most_runs + 1):
            watch = _Watch(self, loss, last=number == self.most_runs)
            try:
                w = run(step, watch)
            except _GrowingError:
                step /= 2
                continue
            return HalvedStep(
                step_size=step, w=w, runs=number, stable=not watch.grew, losses=tuple(watch.losses)
            )
        raise AssertionError("the last run is not ended")

    def at_most(self, run: Event, check: Event, *, rounds: int) -> Event:
        """Return what tuning costs at the most, where losses are released by a mechanism: then it is private.

        All runs that may be begun, each with all its checks; that fewer are depends on what was released.

        Args:
            run: Cost of one run.
            check: Cost of one loss as it is released; not of an exact one, which has no finite price.
            rounds: Of a run.
        """
        check_count("rounds", rounds)
        runs, checks = Repeat(run, self.most_runs), rounds // self.check_every
        return Compose((runs, Repeat(check, self.most_runs * checks))) if checks else runs


class _GrowingError(Exception):
    """A run has to start again."""


class _Watch:
    """Reads the losses of one run."""

    def __init__(self, tuner: HalvingTuner, loss: Callable[[Array], float], *, last: bool) -> None:
        self.losses: list[float] = []
        self.grew = False
        self._tuner, self._loss, self._last, self._worse = tuner, loss, last, 0

    def __call__(self, r: int, w: Array) -> None:
        """Look at a point after a round, where it is time."""
        tuner = self._tuner
        if not np.isfinite(w).all():  # which everybody sees: a loss of it would be one that is not priced
            self._end()
            return
        if (r + 1) % tuner.check_every:
            return
        with np.errstate(over="ignore", invalid="ignore"):
            found = float(self._loss(w))
        larger = bool(self.losses) and not found <= tuner.factor * self.losses[-1]
        self._worse = self._worse + 1 if larger else 0
        self.losses.append(found)
        if self._worse < tuner.patience and math.isfinite(found):
            return
        self._end()

    def _end(self) -> None:
        """End the run, unless it is the last."""
        self.grew = True
        if not self._last:
            raise _GrowingError
