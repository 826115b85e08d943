"""Objectives: what is minimised, record by record, and how its gradients become statistics of a silo."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self, cast, runtime_checkable

import numpy as np
import pandas as pd

from tacit.errors import DataError, ParameterError
from tacit.federation import AcuteStatistic, Statistic, Units
from tacit.learning.losses import Loss
from tacit.numerics import NORM_SLACK, Array, IntArray, clip_rows, row_norms, weighted_sum

__all__ = [
    "Grouped",
    "JoinedObjective",
    "LinearShape",
    "NeuralObjective",
    "Objective",
    "PerPerson",
    "RecordGradient",
    "Records",
    "SlopedObjective",
    "clip_factors",
    "clip_slopes",
    "point_of",
]

_INSET = {np.float64: 4 * NORM_SLACK, np.float32: 4 * NORM_SLACK + float(np.finfo(np.float32).eps)}
"""How far inside the radius slopes are clipped, so that no rounding of norms or factors carries them out."""

_AT_ONCE = 2**17
"""Numbers of the rows of records that are in memory at once: they stay in the cache."""

_LARGEST = 1e270
"""A longer gradient counts as zero: a factor that brings it to 2^-100 is near the subnormal numbers."""

_TINY = {np.float64: float(np.finfo(np.float64).tiny), np.float32: float(np.finfo(np.float32).tiny)}


@dataclass(frozen=True)
class Records:
    """Records of one silo, ready for a linear objective.

    Attributes:
        X: Shape (n, d), the constant feature included; a record with a NaN or infinity is all zero.
        y: Shape (n,), in the dtype of X.
        norms: L2 norm of each row of X, shape (n,), float64.
        memo: What a statistic computed of them last, by its name, lest it does so in every round.
    """

    X: Array
    y: Array
    norms: Array
    memo: dict[str, Any] = field(default_factory=dict, init=False, repr=False, compare=False)
    _levelled: dict[float, Records] = field(default_factory=dict, init=False, repr=False, compare=False)

    @classmethod
    def of(cls, X: Array, y: Array) -> Records:
        """Prepare records; a bad one counts as zero, since refusing it would tell about it.

        Args:
            X: Shape (n, d), float32 or float64.
            y: Shape (n,), numbers.

        Raises:
            DataError: Another shape or dtype.
        """
        given: tuple[Any, ...] = (X, y)
        if not all(isinstance(one, np.ndarray) for one in given):
            kinds = " and ".join(type(one).__name__ for one in given)
            raise DataError(f"X and y must be arrays of NumPy, got {kinds}.")
        if X.dtype not in (np.float32, np.float64):
            raise DataError(f"X must be float32 or float64, got {X.dtype}.")
        if X.ndim != 2 or y.shape != (len(X),):
            raise DataError(f"X must have shape (n, d) and y (n,), got {X.shape} and {y.shape}.")
        if y.dtype.kind not in "fiub":
            raise DataError(f"y must hold numbers, got dtype {y.dtype}.")
        with np.errstate(over="ignore"):
            y = y.astype(X.dtype)
        good = np.isfinite(X).all(axis=1) & np.isfinite(y)
        if not good.all():
            X, y = np.where(good[:, None], X, 0), np.where(good, y, 0)
        return cls(np.ascontiguousarray(X), y, row_norms(X))

    def __len__(self) -> int:
        return len(self.X)

    def of_length(self, length: float) -> Records:
        """Return the records with one feature more, which makes every x that long; longer ones are shortened.

        Args:
            length: Finite, > 0.
        """
        if length not in self._levelled:  # every round asks
            X = clip_rows(self.X, length)
            rest = np.sqrt(np.maximum(length**2 - row_norms(X) ** 2, 0.0))
            self._levelled[length] = Records.of(np.column_stack([X, rest.astype(X.dtype)]), self.y)
        return self._levelled[length]

    def take(self, index: IntArray) -> Self:
        """Return the records of a batch."""
        return type(self)(self.X.take(index, axis=0), self.y.take(index), self.norms.take(index))


@dataclass(frozen=True)
class Grouped:
    """Persons of one silo, each with all its records: the unit is the person, or the party, which is one.

    Attributes:
        records: All records, person by person, in the order in which persons come.
        starts: First record of each person and the end, shape (persons + 1,).
    """

    records: Records
    starts: IntArray

    @classmethod
    def of(cls, records: Records, persons: Array) -> Grouped:
        """Group records by an id per record.

        Args:
            records: n records.
            persons: Shape (n,), ids of any dtype. Their order says nothing: by it, another id of one person
                would move all others to other places of a sum.

        Raises:
            DataError: `persons` has another shape.
        """
        if np.shape(persons) != (len(records),):
            raise DataError(
                f"persons must have one id per record ({len(records)}), got shape {np.shape(persons)}."
            )
        codes, _ = pd.factorize(np.asarray(persons), use_na_sentinel=False)
        order = np.argsort(codes, kind="stable")
        return cls(records.take(order), np.concatenate([[0], np.cumsum(np.bincount(codes))]).astype(np.int64))

    @classmethod
    def whole(cls, records: Records) -> Grouped:
        """Return all records as those of one unit: the party itself."""
        return cls(records, np.array([0, len(records)], dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts) - 1

    def parts(self, most: int) -> Iterator[Grouped]:
        """Yield all persons, in order, in parts of at most that many records or of one person."""
        first, held = 0, self.records
        while first < len(self):
            last = int(np.searchsorted(self.starts, self.starts[first] + most, side="right")) - 1
            last = max(first + 1, last)
            part = slice(self.starts[first], self.starts[last])
            records = Records(held.X[part], held.y[part], held.norms[part])
            yield Grouped(records, self.starts[first : last + 1] - self.starts[first])
            first = last

    def take(self, index: IntArray) -> Self:
        """Return the persons of a batch."""
        counts = np.diff(self.starts)[index]
        ends = np.cumsum(counts)
        offset = np.repeat(self.starts[index] - (ends - counts), counts)
        return type(self)(
            self.records.take(np.arange(offset.size) + offset), np.concatenate([[0], ends]).astype(np.int64)
        )


class Objective(Protocol):
    """A mean of per-record losses in a flat parameter vector.

    Attributes:
        size: Number of parameters.
        lipschitz: Bound on the norm of a record's gradient; infinite if there is none.
        smoothness: Bound on the largest eigenvalue of a record's Hessian.
        strong_convexity: The largest known mu such that the loss of every record less (mu / 2) |w|^2 is
            convex; 0 where none is known. What a regulariser adds, it says itself.
        clip_safe: Whether clipped gradients are still gradients of a convex function.
    """

    @property
    def size(self) -> int:
        """Number of parameters."""
        ...

    @property
    def lipschitz(self) -> float:
        """Bound on the norm of a record's gradient, from public facts."""
        ...

    @property
    def smoothness(self) -> float:
        """Bound on the smoothness of a record's loss, from public facts."""
        ...

    @property
    def strong_convexity(self) -> float:
        """Strong convexity of a record's loss, from public facts; 0 where none is known."""
        ...

    @property
    def clip_safe(self) -> bool:
        """Whether per-record clipping only replaces the loss by another convex one."""
        ...

    def value(self, w: Array, records: Any) -> Array:
        """Return the loss of each record, shape (n,)."""
        ...

    def gradients(self, w: Array, records: Any) -> Array:
        """Return one gradient per record, shape (n, size)."""
        ...

    def clipped_sum(self, w: Array, records: Any, radius: float, dtype: type[np.floating[Any]]) -> Array:
        """Return the sum of the gradients, each clipped to an L2 ball first, as of a `FusedStatistic`."""
        ...


@runtime_checkable
class NeuralObjective(Objective, Protocol):
    """An objective of which nothing is known but its gradients: it is not convex, and has no smoothness."""

    @property
    def outputs(self) -> int:
        """Predictions per record."""
        ...

    def predictions(self, w: Array, X: Array) -> Array:
        """Return what the network says of each record, shape (n,), or (n, outputs)."""
        ...


@runtime_checkable
class LinearShape(Protocol):
    """An objective whose predictions are linear in features of known number and norm.

    Attributes:
        features: Length of x.
        feature_norm: Public bound on its norm; infinite if none is known.
        loss: Loss of a prediction.
    """

    features: int
    feature_norm: float
    loss: Loss

    def wider(self) -> Objective:
        """Return the same objective of one feature more."""
        ...


@runtime_checkable
class JoinedObjective(Protocol):
    """An objective that adds up the records of several silos in one call, each silo by itself."""

    def clipped_sums(
        self, w: Array, silos: Sequence[Any], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return `clipped_sum` of each silo, shape (silos, size), to the last bit."""
        ...


@runtime_checkable
class SlopedObjective(Protocol):
    """An objective whose gradient of a record is a slope times its features."""

    def clipped_slopes(self, w: Array, records: Records, radius: float) -> Array:
        """Return slopes that make no gradient longer than the radius, shape (n,), or (n, outputs)."""
        ...

    def clipped_slope_differences(
        self, w: Array, previous: Array, records: Records, radius: float, *, clip: float | None
    ) -> Array:
        """Return the same of the rows of `RecordDifference`."""
        ...


@dataclass(frozen=True)
class RecordGradient:
    """The statistic of gradient methods: the gradient of each record's loss at "w"."""

    objective: Objective

    def __call__(self, units: Units, at: Mapping[str, Array]) -> Array:
        """Return one gradient per record, shape (n, size)."""
        return self.objective.gradients(point_of(at, self.objective.size), units)

    def clipped_sum(
        self, units: Units, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped gradients, shape (size,)."""
        return self.objective.clipped_sum(point_of(at, self.objective.size), units, radius, dtype)

    @property
    def joins(self) -> bool:
        """Whether the objective adds up several silos in one call."""
        return issubclass(type(self.objective), JoinedObjective)  # isinstance searches anew each time

    def clipped_sums(
        self, silos: Sequence[Any], at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped gradients of each silo, shape (silos, size)."""
        objective = cast(JoinedObjective, self.objective)
        return objective.clipped_sums(point_of(at, self.objective.size), silos, radius, dtype)

    def scaled(self, units: Records, at: Mapping[str, Array], radius: float) -> tuple[Array, Array] | None:
        """Return clipped slopes and features; None where a gradient has several slopes, or none."""
        if not isinstance(self.objective, SlopedObjective):
            return None
        slopes = self.objective.clipped_slopes(point_of(at, self.objective.size), units, radius)
        return (slopes, units.X) if slopes.ndim == 1 else None


@dataclass(frozen=True)
class PerPerson:
    """The same of persons: the mean of a statistic over each person's records, clipped as one row."""

    statistic: Statistic

    @property
    def acute(self) -> bool:
        """Whether no two rows are at more than a right angle: so are the means of rows of which it holds."""
        return isinstance(self.statistic, AcuteStatistic) and self.statistic.acute is True

    def __call__(self, units: Grouped, at: Mapping[str, Array]) -> Array:
        """Return one mean per person, shape (persons, dim).

        A record that is not finite counts as zero among its person's records.
        """
        rows = self.statistic(units.records, at)
        if len(rows) != len(units.records):  # or persons would get the rows of others
            raise ParameterError("a statistic must return one row per record.")
        if len(units) == 0:
            return rows
        sums = np.add.reduceat(rows, units.starts[:-1], axis=0)
        return np.asarray(sums / np.diff(units.starts)[:, None])

    def clipped_sum(
        self, units: Grouped, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped means of persons, shape (dim,), with few rows in memory at once."""
        total = np.zeros(self(units.take(np.arange(0)), at).shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            for part in units.parts(max(1, _AT_ONCE // max(total.size, 1))):
                rows = self(part, at)
                factors = clip_factors(row_norms(rows), radius)
                rows[factors == 0] = 0  # infinity times 0 is NaN
                total += weighted_sum(rows, factors, dtype=dtype)
        return total


def clip_slopes(slopes: Array, norms: Array, radius: float) -> Array:
    """Scale slopes so that no gradient slope * x is longer than the radius.

    Args:
        slopes: Shape (n,), or (n, outputs), float32 or float64.
        norms: Norm of each x, shape (n,), float64 within `NORM_SLACK`.
        radius: Finite, >= 0.

    Returns:
        In the shape and dtype of `slopes`. In exact arithmetic on the numbers returned, no row slope_i x_i is
        longer than the radius, if that is 0 or at least 2^-100. A gradient that is not finite, or longer than
        1e270, counts as zero, and so does a slope below the normal numbers. NumPy may warn of them, and
        whoever calls keeps that from telling.
    """
    kind = slopes.dtype.type
    wide, limit = slopes.astype(np.float64, copy=False), radius * (1 - _INSET[kind])
    sizes = (np.abs(wide) if slopes.ndim == 1 else row_norms(wide)) * norms
    # One huge size, infinity or NaN makes the square infinite or NaN, much faster than a look at each.
    if not math.isfinite(sizes @ sizes):
        # Not slopes * 0: that is NaN for a slope that is not finite.
        good = sizes <= _LARGEST
        sizes, wide = (
            np.where(good, sizes, 0),
            np.where(good if slopes.ndim == 1 else good[:, None], wide, 0),
        )
    if limit > 0:
        factors = np.divide(limit, np.maximum(sizes, limit, out=sizes), out=sizes)
    else:
        factors = np.zeros(len(sizes))
    scaled = (wide * (factors if slopes.ndim == 1 else factors[:, None])).astype(kind, copy=False)
    scaled[np.abs(scaled) < _TINY[kind]] = 0  # subnormal numbers are rounded coarsely, and x may be long
    return np.asarray(scaled)


def clip_factors(norms: Array, radius: float, dtype: type[np.floating[Any]] = np.float64) -> Array:
    """Return what rows are to be multiplied with so that none is longer than the radius: `clip_slopes` of 1.

    Args:
        norms: Of rows, shape (n,), float64 within `NORM_SLACK`.
        radius: Finite, >= 0.
        dtype: Of the factors.

    Returns:
        At most 1, shape (n,); 0 for a row that is not finite, or longer than 1e270.
    """
    limit = radius * (1 - _INSET[dtype])
    if limit <= 0:
        return np.zeros(len(norms), dtype=dtype)
    factors = np.divide(limit, np.maximum(norms, limit)).astype(dtype, copy=False)
    good = (norms <= _LARGEST) & (factors >= _TINY[dtype])
    return factors if good.all() else np.where(good, factors, dtype(0))


def point_of(at: Mapping[str, Array], size: int, *, name: str = "w") -> Array:
    """Return a point of a query, of shape (size,), or refuse one of another shape."""
    point = at.get(name)
    if point is None or point.shape != (size,):
        raise ParameterError(
            f"the point {name!r} must have shape ({size},), got {None if point is None else point.shape}."
        )
    return point
