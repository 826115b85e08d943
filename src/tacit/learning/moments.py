"""Second moments of features: what a record contributes to the Gram matrix, and the matrix itself."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np

from tacit.errors import ParameterError
from tacit.learning.objective import LinearShape, Objective, RecordGradient, Records
from tacit.numerics import NORM_SLACK, Array, clip_rows

__all__ = ["MOST_FEATURES", "LevelGradient", "LevelGram", "RecordGram", "gram_matrix", "gram_size"]

MOST_FEATURES = 2000
"""A Gram matrix has two million numbers then, and its decomposition takes seconds."""

_SMALL = 64  # features whose places are kept: every silo asks for them in every round
_BLOCK = 1024  # rows that are widened to float64 at once


@dataclass(frozen=True)
class RecordGram:
    """The statistic x x^T of each record, in coordinates that keep lengths and angles.

    They are the diagonal and sqrt(2) times what is above it, row by row: a row is |x|^2 long, and noise that
    is alike in all of them is alike in all directions of symmetric matrices. <x x^T, y y^T> = <x, y>^2 >= 0,
    so no two rows are at more than a right angle, however they are shortened or averaged.

    Attributes:
        objective: Not looked at: it is what algorithms make statistics from.
    """

    objective: Objective

    acute: ClassVar[bool] = True

    def __call__(self, units: Records, at: Mapping[str, Array]) -> Array:  # noqa: ARG002 - the same everywhere
        """Return one row per record, shape (n, d (d + 1) / 2)."""
        X = units.X.astype(np.float64, copy=False)
        upper, weights = _upper(X.shape[1])
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(X[:, upper[0]] * X[:, upper[1]] * weights)

    def clipped_sum(
        self,
        units: Records,
        at: Mapping[str, Array],  # noqa: ARG002 - the same everywhere
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,  # noqa: ARG002 - float64 is allowed wherever float32 is
    ) -> Array:
        """Return the sum of the clipped rows, float64: x x^T is at most that long where |x|^2 is.

        What a record adds depends on that record alone, and the sum may be taken in any order
        (docs/theory/sums.md).
        """
        X = units.X
        upper, weights = _upper(X.shape[1])
        # The inset pays for the square.
        short = math.sqrt(radius) * (1 - 4 * NORM_SLACK)
        total = np.zeros((X.shape[1], X.shape[1]))
        for start in range(0, len(X), _BLOCK):
            block = clip_rows(X[start : start + _BLOCK], short).astype(np.float64, copy=False)
            total += block.T @ block
        return np.asarray(total[upper] * weights)


@dataclass(frozen=True)
class _Level:
    """What statistics of records whose x are made of one length, by one feature more, have in common.

    Attributes:
        objective: Linear in features of a known norm, which is the length.
    """

    objective: Objective

    @cached_property
    def length(self) -> float:
        """Length of every x; NaN where no norm is known."""
        return self.objective.feature_norm if isinstance(self.objective, LinearShape) else math.nan


@dataclass(frozen=True)
class LevelGram(_Level):
    """The statistic x x^T of records whose x are all of one length (`Records.of_length`)."""

    acute: ClassVar[bool] = True
    squared: ClassVar[bool] = True

    def __call__(self, units: Records, at: Mapping[str, Array]) -> Array:
        """Return one row per record, shape (n, (d + 1) (d + 2) / 2)."""
        return RecordGram(self.objective)(units.of_length(self.length), at)

    def clipped_sum(
        self,
        units: Records,
        at: Mapping[str, Array],
        radius: float,
        dtype: type[np.floating[Any]] = np.float64,
    ) -> Array:
        """Return the sum of the clipped rows, float64."""
        return RecordGram(self.objective).clipped_sum(units.of_length(self.length), at, radius, dtype)


@dataclass(frozen=True)
class LevelGradient(_Level):
    """The gradient x p^T of each record's loss, for the same x: what belongs to the new feature comes last.

    A row is as long as p, times the length: to clip it is to clip the slopes p of the loss.
    """

    squared: ClassVar[bool] = False

    def __call__(self, units: Records, at: Mapping[str, Array]) -> Array:
        """Return one row per record, shape (n, size + outputs), what belongs to the new feature last."""
        level = units.of_length(self.length)
        # In float64: numbers that are rounded one by one to less are not quite along x.
        wide = Records(level.X.astype(np.float64, copy=False), level.y, level.norms)
        gradient, point = self._wider(at)
        return gradient(wide, point)

    def clipped_sum(
        self, units: Records, at: Mapping[str, Array], radius: float, dtype: type[np.floating[Any]]
    ) -> Array:
        """Return the sum of the clipped rows, shape (size + outputs,)."""
        gradient, point = self._wider(at)
        return gradient.clipped_sum(units.of_length(self.length), point, radius, dtype)

    def _wider(self, at: Mapping[str, Array]) -> tuple[RecordGradient, dict[str, Array]]:
        """Return the gradient with a feature more, and the point with a weight of 0 for it."""
        wide, w = self._wide, at["w"]
        return RecordGradient(wide), {"w": np.append(w, np.zeros(wide.size - self.objective.size, w.dtype))}

    @cached_property
    def _wide(self) -> Objective:
        """The objective of a feature more."""
        if not isinstance(self.objective, LinearShape):
            raise ParameterError("vectors of one length need an objective that is linear in features.")
        return self.objective.wider()


def gram_size(features: int) -> int:
    """Return how many coordinates the Gram matrix of that many features has."""
    return features * (features + 1) // 2


def gram_matrix(coordinates: Array, features: int) -> Array:
    """Return the symmetric matrix with these coordinates, shape (features, features)."""
    upper, weights = _upper(features)
    half = np.zeros((features, features))
    half[upper] = coordinates / weights
    return np.asarray(half + np.triu(half, 1).T)


def _upper(features: int) -> tuple[tuple[Array, Array], Array]:
    """Return the places of the coordinates, and how much longer they are than the entries."""
    # A silo tries every statistic that it is asked for, and this one must not fill its memory.
    if features > MOST_FEATURES + 1:  # one more may make all records of one length
        raise ParameterError(f"a Gram matrix needs at most {MOST_FEATURES} features, got {features}.")
    return _small_upper(features) if features <= _SMALL else _any_upper(features)


def _any_upper(features: int) -> tuple[tuple[Array, Array], Array]:
    """Return what `_upper` does."""
    rows, columns = np.triu_indices(features)
    found = (rows, columns, np.where(rows == columns, 1.0, math.sqrt(2)))
    for each in found:
        each.setflags(write=False)
    return found[:2], found[2]


_small_upper = lru_cache(maxsize=8)(_any_upper)
