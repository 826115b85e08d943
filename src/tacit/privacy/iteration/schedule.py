"""The event of a shuffled gradient run whose epochs differ: some private, some public, with noise or without.

Where all epochs are alike, `Iteration` costs no more, and less where orders are random.
"""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec
import numpy as np

from tacit.errors import ParameterError, check_count, check_positive
from tacit.privacy.curves import Array, Curve, gaussian_curve
from tacit.privacy.events import Gdp, Leaf, Zcdp
from tacit.privacy.iteration.energies import Order, Placement, Release
from tacit.privacy.iteration.event import (
    check_hidden,
    check_iterated,
    check_placement,
    clauses_of_hidden,
)
from tacit.privacy.iteration.hull import blocks_energy
from tacit.privacy.neighbours import Neighbours

__all__ = ["EpochSteps", "IterationSchedule"]

_MOST_EPOCHS = 2**16
"""Epochs of a schedule, all of which are in memory at once."""

_MOST_STEPS = 2**40
"""Steps of an epoch: sums of them over all epochs are exact."""

_ROUND_UP = 1 + 1e-12


class EpochSteps(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Epochs that are alike, one after the other.

    Attributes:
        private: Steps on private records, the first ones, each with noise of its own unless `placement` says
            otherwise.
        public: Steps on public records, after them.
        public_noise: Whether public steps have noise of their own.
        placement: Where the noise of an epoch goes. At its end: one draw, if there are private steps or
            `public_noise`.
        count: How many such epochs.
    """

    private: int
    public: int = 0
    public_noise: bool = False
    placement: Placement = Placement.EVERY_STEP
    count: int = 1

    def __post_init__(self) -> None:
        check_count("private", self.private, low=0, high=_MOST_STEPS)
        check_count("public", self.public, low=0, high=_MOST_STEPS)
        check_count("the steps of an epoch", self.private + self.public)
        check_count("count", self.count, high=_MOST_EPOCHS)
        check_placement(self.placement)
        if not isinstance(self.public_noise, bool):
            raise ParameterError(f"public_noise must be True or False, got {self.public_noise!r}.")

    def draws(self, position: int) -> tuple[int, int, bool]:
        """Return the draws of noise before the touch of a position, those after it, and whether it is there.

        Args:
            position: Of a record, from 1; beyond the private steps the epoch does not use it.
        """
        touched = position <= self.private
        if self.placement is Placement.EPOCH_END:
            return (0, int(self.private > 0 or self.public_noise), touched)
        total = self.private + (self.public if self.public_noise else 0)
        return (position - 1, total - position + 1, True) if touched else (total, 0, False)


class IterationSchedule(Leaf, frozen=True, tag=True):
    """A run of noisy shuffled gradient descent with epochs of several kinds, of which only the end is seen.

    The schedules of Jiang (2025), Algorithms 3 to 6, with noise on public epochs as well. Priced by the hull
    of docs/theory/iteration.md, section 4: for a fixed order the worst position of a record is taken, and so
    it is for one that is shuffled once; where every epoch is reshuffled, the last private step of every
    epoch. Every order that may be drawn is protected.

    Attributes:
        noise_multiplier: As in `Iteration`, of every draw.
        epochs: The epochs, in order.
        order: How private records are ordered; never by their values.
        neighbours: Replace-one or zero-out.
        step_times_smoothness: As in `Iteration`.
        convex: As in `Iteration`.
        clip_safe: As in `Iteration`.
        prox_convex: As in `Iteration`.
        epoch_contraction: As in `Iteration`.
        diameter: As in `Iteration`.

    Raises:
        ParameterError: A value out of range, no private step, add-remove neighbours, or a condition of hidden
            iterates that is not met.

    Example:
        >>> from tacit.privacy import epsilon_of
        >>> facts = dict(step_times_smoothness=1.0, convex=True, clip_safe=True, prox_convex=True)
        >>> first = EpochSteps(private=1000, count=25)
        >>> hiding = EpochSteps(private=0, public=1000, public_noise=True, count=25)
        >>> run = IterationSchedule(0.1, (first, hiding), **facts)
        >>> round(epsilon_of(run, 1e-6), 3)
        5.616
    """

    continuous: ClassVar[bool] = True

    noise_multiplier: float
    epochs: tuple[EpochSteps, ...]
    order: Order = Order.IG
    neighbours: Neighbours = Neighbours()
    step_times_smoothness: float | None = None
    convex: bool = False
    clip_safe: bool = False
    prox_convex: bool = False
    epoch_contraction: float = 1.0
    diameter: float | None = None

    method: ClassVar[str] = "privacy amplification by iteration"

    def __post_init__(self) -> None:
        check_positive("noise_multiplier", self.noise_multiplier)
        check_iterated(self.order, self.neighbours)
        if not all(isinstance(one, EpochSteps) for one in self.epochs):
            raise ParameterError("epochs must be a tuple of EpochSteps.")
        check_count("the number of epochs", sum(one.count for one in self.epochs), high=_MOST_EPOCHS)
        check_count("the private steps", sum(one.private for one in self.epochs))
        check_hidden(self, Release.LAST)

    def work(self, *, many: bool) -> float:  # noqa: ARG002 - one Gaussian curve
        """Return the work of the hulls, one for every number of private steps."""
        kinds = len({one.private for one in self.epochs})
        cuts = 1 if self.diameter is None else 50
        return 1e4 + 50.0 * kinds * cuts * sum(one.count for one in self.epochs)

    @property
    def energy(self) -> float:
        """The energy of the worst record, in units of (sensitivity / noise std)^2 of one draw."""
        most = {one.private for one in self.epochs if one.private > 0}
        if self.order is Order.RR:
            return self._energy(None)
        return max(self._energy(position) for position in most)

    def _energy(self, position: int | None) -> float:
        """Return the energy of one position, or with every touch in the last private step."""
        counts = [one.count for one in self.epochs]
        draws = [one.draws(max(one.private, 1) if position is None else position) for one in self.epochs]
        before, after, touched = (np.repeat(np.array(column), counts) for column in zip(*draws, strict=True))
        return blocks_energy(
            before, after, touched, epoch_contraction=self.epoch_contraction, diameter=self.diameter
        )

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the price rests on besides the noise, as clauses of a guarantee's sentence."""
        return clauses_of_hidden(self, Release.LAST)

    @property
    def _mu(self) -> float:
        return math.sqrt(self.energy) / self.noise_multiplier * _ROUND_UP

    @property
    def concentrated(self) -> Zcdp:
        """The concentrated-DP level."""
        return Zcdp(max(self._mu**2 / 2, 1e-300) * _ROUND_UP, self.neighbours)

    def curve(self) -> Curve:
        """Return the curve of this release: one Gaussian curve."""
        return gaussian_curve(self._mu)

    def repeated(self, count: int) -> Leaf | None:
        """Return several runs as one Gaussian release: all orders are protected."""
        return None if count == 1 else Gdp(math.sqrt(count) * self._mu * _ROUND_UP, self.neighbours)

    def renyi(self, orders: Array) -> Array:
        """Return a bound on the Rényi divergence at each order > 1."""
        return np.asarray(orders * (self._mu**2 / 2) * _ROUND_UP)
