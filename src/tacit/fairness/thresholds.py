"""The cut of a score that keeps most records right within a violation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tacit.errors import check_choice, check_non_negative
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions
from tacit.fairness.penalty import Membership
from tacit.numerics import Array, IntArray

__all__ = ["Cut", "best_cut", "doubt_at", "rates_at", "wrong_at"]

_CUTS = 1024


@dataclass(frozen=True)
class Cut:
    """A cut of the score of the second of two classes, and what it does to the records it was chosen by.

    Attributes:
        threshold: Scores above it are of the second class.
        accuracy: Share of records that are right.
        violation: Of hard predictions.
    """

    threshold: float
    accuracy: float
    violation: float


def best_cut(
    scores: Array, y: IntArray, of: Membership, most: float, *, measure: str = "gap", within: float = 1.0
) -> Cut:
    """Return the best cut whose violation is at most that; else the one of the least violation.

    One cut for all groups: it needs no sensitive attribute of new records. Far cuts are left out, or the
    answer to a small violation could be to say the same of all. The best is the most accurate one after one
    standard error of what the cut gains over that at 0: a thousand cuts would else fit the records.

    Args:
        scores: Shape (n, m); of more than two classes the largest one is predicted, and there is no cut.
        y: Place of each record's class, shape (n,).
        of: Condition and group of the records.
        most: Largest violation, the largest over conditions, >= 0.
        measure: "gap" or "linf", as in `violation`.
        within: How far from 0 the cut of the difference of two scores may be, >= 0; about a thousand of the
            places between them are tried, and 0 itself.

    Raises:
        ParameterError: A number out of range, or an unknown measure.
    """
    limit = check_non_negative("most", most)
    check_choice("measure", measure, ["gap", "linf"])
    check_non_negative("within", within)
    if scores.shape[1] > 2:
        predicted = scores.argmax(axis=1)
        rest = [np.where(predicted == j, 1.0, -1.0) for j in range(scores.shape[1])]
        apart = max(float(_violations(one, of, np.zeros(1), measure)[0]) for one in rest)
        return Cut(0.0, float(np.mean(predicted == y)), apart)
    margins = scores[:, 1] - scores[:, 0]
    near = np.sort(margins[np.abs(margins) <= within])
    between = (near[1:] + near[:-1]) / 2  # of two records, so that rounding moves neither across
    cuts = np.unique(np.append(between[:: max(1, len(between) // _CUTS)], 0.0))
    accuracies, violations = 1 - wrong_at(margins, y, cuts) / len(y), _violations(margins, of, cuts, measure)
    allowed, worth = violations <= limit, accuracies - doubt_at(margins, cuts)
    # Of equals the one nearest to 0, where the model itself has it.
    best = np.lexsort((np.abs(cuts), *((-worth, ~allowed) if allowed.any() else (violations,))))[0]
    return Cut(float(cuts[best]), float(accuracies[best]), float(violations[best]))


def rates_at(margins: Array, groups: Groups, where: Conditions, cuts: Array) -> Array:
    """Return the share of each condition's and group's records above each cut.

    Args:
        margins: Shape (n,).
        groups: Of the records.
        where: Condition of the records.
        cuts: Shape (cuts,).

    Returns:
        Shape (cuts, z, k); NaN where no record is of a condition and group.
    """
    found = np.full((len(cuts), len(where), len(groups)), np.nan)
    looked = (groups.codes >= 0) & (where.codes >= 0)
    cells, parts = _sorted_parts(margins[looked], where.codes[looked] * len(groups) + groups.codes[looked])
    for cell, part in zip(cells, parts, strict=True):
        found[:, cell // len(groups), cell % len(groups)] = _above(part, cuts) / len(part)
    return found


def wrong_at(margins: Array, y: IntArray, cuts: Array) -> Array:
    """Return how many of two classes' records are on the wrong side of each cut, shape (cuts,)."""
    above = _above(np.sort(margins[y == 0]), cuts)
    return np.asarray(above + np.sum(y == 1) - _above(np.sort(margins[y == 1]), cuts))


def doubt_at(margins: Array, cuts: Array) -> Array:
    """Return one standard error of what each cut gains in accuracy over the cut at 0, at most; shape (cuts,).

    Only records between the two change sides. A cut that gains less than this on the records that it was
    chosen by gains nothing on others.
    """
    above = _above(np.sort(margins), np.append(cuts, 0.0))
    return np.asarray(np.sqrt(np.abs(above[:-1] - above[-1])) / len(margins))


def _violations(margins: Array, of: Membership, cuts: Array, measure: str) -> Array:
    """Return the largest violation over conditions at each cut, shape (cuts,)."""
    violations = np.zeros(len(cuts))
    looked = (of.groups >= 0) & (of.conditions >= 0)
    for z in np.unique(of.conditions[looked]):
        inside = looked & (of.conditions == z)
        _, parts = _sorted_parts(margins[inside], of.groups[inside])
        rates = np.stack([_above(part, cuts) / len(part) for part in parts])
        apart = np.ptp(rates, axis=0)
        if measure == "linf":
            apart = np.abs(rates - _above(np.sort(margins[inside]), cuts) / inside.sum()).max(axis=0)
        violations = np.maximum(violations, apart)
    return violations


def _above(ordered: Array, cuts: Array) -> Array:
    """Return how many of sorted margins are above each cut, shape (cuts,)."""
    return np.asarray(len(ordered) - np.searchsorted(ordered, cuts, side="right"))


def _sorted_parts(margins: Array, cells: IntArray) -> tuple[IntArray, list[Array]]:
    """Return the cells that occur, and the sorted margins of each."""
    order = np.lexsort((margins, cells))
    found, firsts = np.unique(cells[order], return_index=True)
    return found, np.split(margins[order], firsts[1:])
