"""Statistics evaluated on private units: nothing that goes wrong on one of them shows.

A statistic may fail on a private record: a label outside of the classes, an overflow at a hostile point. An
exception, a NaN in a sum or another answer for the whole batch would each tell the server about that record,
so only the record itself counts as zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tacit.federation.query import FusedStatistic, JoinedStatistic, ScaledStatistic
from tacit.means import SumEncoder
from tacit.numerics import Array

__all__ = ["guarded_rows", "guarded_scaled", "guarded_sum", "guarded_sums"]

_KINDS = "biufcO"
"""Kinds of dtypes whose entries can be numbers; text would be another number than it was made from."""


def guarded_sum(
    statistic: FusedStatistic, units: Any, at: Mapping[str, Array], radius: float, estimator: SumEncoder
) -> Array | None:
    """Return the fused sum of a batch in float64, None where it fails, or is not finite or not as tried."""
    try:
        return _finite(np.asarray(statistic.clipped_sum(units, at, radius, estimator.sums[-1])), estimator)
    except Exception:  # noqa: BLE001 - whatever it raises may tell about a unit
        return None


def guarded_sums(
    statistic: JoinedStatistic,
    silos: Sequence[Any],
    at: Mapping[str, Array],
    radius: float,
    estimator: SumEncoder,
) -> list[Array | None]:
    """Return the fused sum of a batch of each of several silos, None where `guarded_sum` would be."""
    try:
        sums = np.asarray(statistic.clipped_sums(silos, at, radius, estimator.sums[-1]))
        if len(sums) == len(silos):
            return [_finite(total, estimator) for total in sums]
    except Exception:  # noqa: BLE001, S110 - whatever it raises may tell about a unit
        pass
    return [None] * len(silos)


def _finite(total: Array, estimator: SumEncoder) -> Array | None:
    """Return a sum in float64, None where it is not finite, or has another form than an estimator takes."""
    if total.shape != (estimator.dim,) or total.dtype not in estimator.sums:
        return None
    total = total.astype(np.float64, copy=False)
    # One infinity or NaN makes the square infinite or NaN, in a third of the time of np.isfinite.
    return total if math.isfinite(total @ total) else None


def guarded_scaled(
    statistic: ScaledStatistic,
    units: Any,
    at: Mapping[str, Array],
    radius: float,
    form: tuple[int, np.dtype[Any]],
) -> tuple[Array, Array]:
    """Return numbers and vectors whose products are rows; zeros for a unit that the statistic fails on."""
    dim, dtype = form
    try:
        factors, vectors = map(np.asarray, statistic.scaled(units, at, radius) or ())
        if (factors.shape, vectors.shape) == ((len(units),), (len(units), dim)) and (
            factors.dtype == vectors.dtype == dtype
        ):
            return factors, vectors
    except Exception:  # noqa: BLE001, S110 - whatever it raises may tell about a unit
        pass
    if len(units) <= 1:
        return np.zeros(len(units), dtype=dtype), np.zeros((len(units), dim), dtype=dtype)
    parts = [guarded_scaled(statistic, part, at, radius, form) for part in _halves(units)]
    return np.concatenate([c for c, _ in parts]), np.concatenate([x for _, x in parts])


def guarded_rows(
    statistic: Callable[[Any, Mapping[str, Array]], Array], units: Any, at: Mapping[str, Array], dim: int
) -> Array:
    """Return one row per unit, shape (k, dim), float64; zero for a unit that the statistic fails on."""
    try:
        rows = _floats(np.asarray(statistic(units, at)))
        if rows.shape == (len(units), dim):
            return rows
    except Exception:  # noqa: BLE001, S110 - whatever it raises may tell about a unit
        pass
    if len(units) <= 1:
        return np.zeros((len(units), dim))
    return np.concatenate([guarded_rows(statistic, part, at, dim) for part in _halves(units)])


def _halves(units: Any) -> list[Any]:
    """Return two parts of units, to find the one that a statistic fails on."""
    half = len(units) // 2
    return [units.take(part) for part in (np.arange(half), np.arange(half, len(units)))]


def _floats(values: Array) -> Array:
    """Return float64, entry by entry: NaN, and so a row of zeros, for what is no real number.

    An array has one dtype for all units of a batch, and a single one of them may make it wider, complex or
    `object`. Estimators would then clip and round the rows of all others otherwise, or refuse them.
    """
    kind = values.dtype.kind
    if kind not in _KINDS:
        raise TypeError
    if kind == "O":
        return np.array([_number(entry) for entry in values.flat], dtype=np.float64).reshape(values.shape)
    if kind == "c":
        values = np.where(values.imag == 0, values.real, np.nan)
    return values.astype(np.float64, copy=False)


def _number(entry: Any) -> float:
    """Return one entry as a float, as an array of numbers would hold it; NaN if it is no real number."""
    try:
        return float(entry.real) if entry.imag == 0 else math.nan
    except Exception:  # noqa: BLE001 - an object from elsewhere may raise anything
        return math.nan
