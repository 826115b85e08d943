"""What a server asks of silos, and what silos compute from."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from tacit.errors import LARGEST_COUNT, ParameterError, RefusalError, check_count, check_name, real, shown
from tacit.federation.limits import MOST_POINTS, MOST_STATISTICS
from tacit.numerics import Array, IntArray

__all__ = [
    "AcuteStatistic",
    "AnyStatistic",
    "Ask",
    "ConvexStatistic",
    "FusedStatistic",
    "OneHotStatistic",
    "PublicStatistic",
    "Query",
    "ScaledStatistic",
    "StatefulStatistic",
    "Statistic",
    "SteppingStatistic",
    "Units",
]

_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


@dataclass(frozen=True)
class Query:
    """Which round, at which point, and how long a row may be.

    It is the door of everything that a server sends: numbers become Python's, points become read-only copies,
    and whatever else stands in their place is refused. So what depends on a point is computed once, however
    many silos it goes to, and noise has the scale that the radius says.

    Attributes:
        step: Number of the round in the plan.
        at: Named public arrays that the statistics are evaluated at: finite float32 or float64.
        radius: Norm bound of a row, one per statistic of the step.

    Raises:
        RefusalError: A step, a point or a radius of another type, a point that is not finite.
    """

    step: int
    at: Mapping[str, Array]
    radius: tuple[float, ...]

    def __post_init__(self) -> None:
        try:
            step = check_count("step", self.step, low=0, high=LARGEST_COUNT)
            at = _points(self.at)
            radius = _radii(self.radius)
        except ParameterError as error:
            raise RefusalError(str(error)) from error
        for name, value in (("step", step), ("at", at), ("radius", radius)):
            object.__setattr__(self, name, value)

    def check(self, largest: Sequence[float]) -> None:
        """Refuse a query that no algorithm asks.

        Args:
            largest: The largest radius of each statistic of the step.

        Raises:
            RefusalError: Another number of radii, or a radius that is not from 0 to its largest.
        """
        if len(self.radius) != len(largest):
            raise RefusalError(
                f"radius must be a tuple of one number per statistic ({len(largest)}), got {self.radius!r}."
            )
        for radius, most in zip(self.radius, largest, strict=True):
            if not 0 <= radius <= most:  # stated as what is allowed: NaN fails it
                raise RefusalError(f"radius must be a number in [0, {most!r}], got {radius!r}.")

    def digest(self, *, party: int = 0, circle: bytes = b"") -> bytes:
        """Return 16 bytes that differ for any other query, party, and digest of who is mixed with it."""
        return hashlib.blake2b(self._content + struct.pack(">q", party) + circle, digest_size=16).digest()

    @cached_property
    def form(self) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        """Name, dtype and shape of each point: what decides whether statistics can be evaluated at them."""
        return tuple((name, array.dtype.char, array.shape) for name, array in self.at.items())

    @cached_property
    def _content(self) -> bytes:
        """32 bytes that differ for any other step, point or radius."""
        head = [self.step, len(self.radius)]
        state = hashlib.blake2b(struct.pack(f">2q{len(self.radius)}d", *head, *self.radius), digest_size=32)
        for name in sorted(self.at):
            array = self.at[name]
            about = f"{name}|{array.dtype.str}|{array.shape}".encode()
            # With lengths first, no name can pass for a part of another point.
            state.update(struct.pack(">2q", len(about), array.nbytes) + about)
            state.update(np.ascontiguousarray(array).data)
        return state.digest()


def _points(at: Any) -> Mapping[str, Array]:
    """Return read-only copies of the points, plain arrays whatever memory or subclass they came from."""
    if not isinstance(at, Mapping):
        raise ParameterError(f"at must map names to arrays, got {type(at).__name__}.")
    check_count("the number of points", len(at), low=0, high=MOST_POINTS)
    # A mapping that could be changed would be answered at another point than its digest says.
    named = {check_name("the name of a point", name): array for name, array in at.items()}
    return MappingProxyType({name: _point(name, array) for name, array in named.items()})


def _point(name: str, array: Any) -> Array:
    """Return a read-only copy of one point."""
    # A masked array or a matrix computes otherwise than its bytes say.
    copy = array.copy() if type(array) is np.ndarray and array.dtype in _FLOATS else None
    if copy is None or not np.isfinite(copy).all():
        raise ParameterError(
            f"the point {name!r} must be an array of finite float32 or float64, of no subclass."
        )
    copy.setflags(write=False)
    return copy


def _radii(radius: Any) -> tuple[float, ...]:
    """Return the radii as Python floats: in 16 bits the scale of the noise would overflow."""
    if not isinstance(radius, tuple) or len(radius) > MOST_STATISTICS:
        raise ParameterError(f"radius must be a tuple of one number per statistic, got {shown(radius)}.")
    return tuple(real("radius", value) for value in radius)


class Ask(Protocol):
    """All that an algorithm sees of the world."""

    def __call__(self, step: int, at: Mapping[str, Array], radius: tuple[float, ...]) -> tuple[Array, ...]:
        """Return the estimated mean of every statistic of round `step` at a point."""
        ...


class Units(Protocol):
    """The protected units of a silo: records, or persons with all their records."""

    def __len__(self) -> int:
        """Return the number of units."""
        ...

    def take(self, index: IntArray) -> Self:
        """Return the units of a batch, which may be empty."""
        ...


class Statistic(Protocol):
    """What one unit contributes to a mean. A plan names it; code is never shipped.

    A row may depend on its own unit and the point only, never on the other units of the batch, nor, to the
    last bit, on its place among them: that is what a price per unit rests on. It leaves units and points as
    they are, since after a failure it is called again on parts of them. A unit that it fails on counts as
    zero.
    """

    def __call__(self, units: Any, at: Mapping[str, Array]) -> Array:
        """Return one row per unit, shape (k, dim), k >= 0; clipping happens outside.

        Of any dtype: every entry counts as a float64, and a row with one that is no real number as zero.
        """
        ...


@runtime_checkable
class StatefulStatistic(Protocol):
    """A statistic that keeps numbers of each unit in its silo from round to round, such as a personal model.

    A row and the numbers that are kept may depend on their own unit, on what was kept of it and on the point
    only, as for every statistic. Plans ask for it with full batches, or with Poisson samples: there a unit's
    coins are independent of what it remembers of earlier ones, so that given all answers before, a round is a
    mixture of rounds that each have the price of the sample (docs/theory/personal-models.md). Whether a unit
    is in a sample of fixed size depends on who else is, and nothing is proven of that.
    """

    @property
    def state_size(self) -> int:
        """Numbers that are kept of a unit; zeros before the first round."""
        ...

    @property
    def state_version(self) -> int:
        """Of their meaning; a run goes on with numbers of the same version only."""
        ...

    def update(self, units: Any, at: Mapping[str, Array], state: Array) -> tuple[Array, Array]:
        """Return one row per unit, shape (k, dim), and what is kept of it, shape (k, state_size)."""
        ...


AnyStatistic = Statistic | StatefulStatistic
"""What a silo can be asked for."""


@runtime_checkable
class ConvexStatistic(Protocol):
    """A statistic along which a silo may take hidden steps: rows are gradients of convex functions of "w".

    Both facts are public, and hold for every unit that there could be, whatever it is made of: what two
    neighbouring silos hide rests on the unit that only one of them has. They must hold of what is computed,
    too: rows in float64 throughout, and none that overflows.

    Attributes:
        smoothness: Largest factor by which a row changes more than "w" does.
        clip_safe: Whether rows that are clipped to any radius are again such gradients.
    """

    smoothness: float
    clip_safe: bool


@runtime_checkable
class PublicStatistic(Protocol):
    """A convex statistic that public records can be handed to, as to those of a hidden run."""

    def public_units(self, rows: Array, outcomes: Array) -> Any:
        """Return public records as units; those that are not as they must be count as zero, as private ones.

        Args:
            rows: Shape (k, features), finite.
            outcomes: Shape (k,), finite.

        Raises:
            ParameterError: Another number of features.
        """
        ...


@runtime_checkable
class SteppingStatistic(Protocol):
    """A convex statistic that takes many steps along its clipped rows at once, as `Descend` says."""

    def stepper(self, units: Any) -> Callable[..., Array]:
        """Return what takes steps on these units: called as `Descend`, with `radius` in place of `public`.

        As everywhere, a unit whose row is not finite counts as zero.
        """
        ...


@runtime_checkable
class AcuteStatistic(Protocol):
    """A statistic of whose rows no two are at more than a right angle, however they are clipped.

    Attributes:
        acute: Whether that holds of all units that there could be, and of what is computed, up to rounding.
    """

    acute: bool


@runtime_checkable
class OneHotStatistic(Protocol):
    """A statistic whose rows are one-hot, or zero: of length 1 in one coordinate, and nothing elsewhere.

    Attributes:
        one_hot: Whether that holds of all units that there could be, exactly.
    """

    one_hot: bool


@runtime_checkable
class AlignedStatistic(Protocol):
    """A statistic whose row of a unit is x x^T or x p^T, x a vector of the unit, all of them of one length.

    All such statistics of a silo are about the same x: it stays the same from round to round, while p may be
    any function of the unit and of a query.

    Attributes:
        length: That of x, for every unit that there could be, up to rounding.
        squared: Whether rows are x x^T.
    """

    length: float
    squared: bool


@runtime_checkable
class FusedStatistic(Protocol):
    """A statistic that can add up its clipped rows without materialising them.

    Other units may change their places when one comes, goes or is replaced, so what is clipped may depend on
    its own unit and the point only, as in `Statistic`: no prediction may come from a matrix product of all
    units. The sum itself may be taken in any order (docs/theory/sums.md).
    """

    def clipped_sum(
        self, units: Any, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of rows clipped to an L2 ball, shape (dim,), float32 or float64.

        Where that is not finite, the rows themselves are used, and a bad one counts as zero.

        Args:
            units: Of a batch.
            at: The point.
            radius: Of the ball.
            dtype: float64, or float32 where a sum in single precision is enough.
        """
        ...


@runtime_checkable
class JoinedStatistic(Protocol):
    """A `FusedStatistic` that can add up the units of several silos of one process in one call.

    Attributes:
        joins: Whether it does so, whatever the units.
    """

    @property
    def joins(self) -> bool:
        """Whether it does so, whatever the units."""
        ...

    def clipped_sums(
        self, silos: Sequence[Any], at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return `clipped_sum` of the units of each silo, shape (silos, dim), to the last bit.

        So the sum of one depends on its own units and the point only.
        """
        ...


@runtime_checkable
class ScaledStatistic(Protocol):
    """A statistic whose rows are multiples of vectors that the units hold, so that none is materialised."""

    def scaled(self, units: Any, at: Mapping[str, Array], radius: float) -> tuple[Array, Array] | None:
        """Return numbers c, shape (k,), and vectors x, shape (k, dim), of the clipped rows c x.

        Both are of one dtype, float32 or float64, which no unit changes, and the vectors are finite. A row is
        no longer than the radius in exact arithmetic on these numbers. As in `Statistic`, it depends on its
        unit and the point only; a unit whose number is not finite counts as zero.

        Returns:
            None where rows have another form, whatever the units.
        """
        ...
