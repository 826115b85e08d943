"""Held-out records without their features, and how well a score on them is known, silo by silo."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec
import numpy as np

from tacit.numerics import Array, IntArray

__all__ = ["HeldOut", "Known", "SiloScore", "by_silo", "standard_error_of"]

Known = tuple[float, float | None]
"""A score with its standard error."""


class SiloScore(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The score on the held-out records of one silo.

    Attributes:
        name: Of the silo.
        score: Accuracy, or root mean squared error; None where no record has a label.
        standard_error: Of the score; None as in `ClassScores`.
        baseline: As in `ClassScores` and `NumberScores`, on these records alone; None as the score.
    """

    name: str
    score: float | None
    standard_error: float | None
    baseline: float | None


@dataclass(frozen=True, kw_only=True)
class HeldOut:
    """Held-out records without their features.

    Attributes:
        y: Class numbers, or targets in [-1, 1], or without bounds in their own units; NaN where missing.
            Shape (n,).
        units: The protected unit of each record, any values; shape (n,).
        silos: Number of the silo of each record; None where they belong to no silo.
        silo_names: Names by number.
        classes: Labels by number; empty for regression.
        target: Bounds of the target in its own units; None for classification, and where it has none.
    """

    y: Array
    units: Array
    silos: IntArray | None
    silo_names: list[str]
    classes: tuple[object, ...]
    target: tuple[float, float] | None


def by_silo(
    held_out: HeldOut, score: Callable[[Array], Known], baseline: Callable[[Array], float]
) -> tuple[SiloScore, ...]:
    """Return the scores on the records of every silo that has some held out."""
    if held_out.silos is None:
        return ()
    found = []
    for number, name in enumerate(held_out.silo_names):
        index = np.flatnonzero(held_out.silos == number)
        if not index.size:
            continue
        value, error, least = None, None, None
        if np.isfinite(held_out.y[index]).any():
            (value, error), least = score(index), baseline(index)
        found.append(SiloScore(name=name, score=value, standard_error=error, baseline=least))
    return tuple(found)


def standard_error_of(influence: Array, units: Array) -> float | None:
    """Return the root of the sum of squares of what each unit moves a score by, see above."""
    _, codes = np.unique(units, return_inverse=True)
    moved = np.bincount(codes, weights=influence)
    if moved.size < 2 or not influence.any():
        return None
    return float(np.sqrt(moved.size / (moved.size - 1) * np.sum(moved**2)))
