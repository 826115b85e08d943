"""Penalties computed from a batch's own table of predictions and groups: ERMI, its logarithm, Renyi.

On the whole data they need no dual variables, and ERMI is FERMI's objective. In small batches they are
biased, and at one record they are 0 whatever the law: they are here to be compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tacit.errors import check_choice
from tacit.fairness.ermi import joint_tables
from tacit.fairness.penalty import LEAST_SHARE, Membership, Still
from tacit.fairness.scores import pull_back
from tacit.numerics import Array

__all__ = ["PlugInPenalty"]


@dataclass(frozen=True)
class PlugInPenalty:
    """A measure of the dependence in the joint table of these very records, averaged over conditions.

    Attributes:
        weights: Of conditions, shape (z,), summing to 1; one that a batch lacks adds nothing.
        groups: k; one that a batch lacks is a row of zeros.
        measure: "ermi", "log-ermi", which is ln(1 + ERMI), or "renyi", the squared maximal correlation: the
            second of the squared singular values of which ERMI is the sum.

    Reference:
        Mary, Calauzenes and El Karoui (2019) for "ermi"; Baharlouei, Nouiehed, Beirami and Razaviyayn (2020)
        for "renyi". For two classes or two groups the two are the same.
    """

    weights: Array
    groups: int
    measure: str = "ermi"

    def __post_init__(self) -> None:
        check_choice("measure", self.measure, _MEASURES)

    def evaluate(self, scores: Array, probabilities: Array, of: Membership) -> tuple[float, Array]:  # noqa: ARG002
        """Return the penalty of these records, and n times its derivative in their scores."""
        size = len(self.weights)
        counted = (of.groups >= 0) & (of.conditions >= 0)
        tables = joint_tables(probabilities, of.groups, self.groups, of.conditions, size)
        totals = np.bincount(of.conditions[counted], minlength=size)
        value, slopes = 0.0, np.zeros_like(tables)
        for z in np.flatnonzero(totals):
            each, slope = _MEASURES[self.measure](tables[z])
            value += float(self.weights[z]) * each
            slopes[z] = self.weights[z] * len(of) / totals[z] * slope
        costs = slopes[of.conditions, :, of.groups] * counted[:, None]
        return value, pull_back(probabilities, costs)

    def climber(self) -> Still:
        """Return that there are no dual variables."""
        return Still(self)


def _ermi(p: Array) -> tuple[float, Array]:
    """Return the ERMI of a table (m, k) and its derivative with the margins of groups held."""
    classes, groups = np.maximum(p.sum(axis=1), LEAST_SHARE)[:, None], p.sum(axis=0)
    here = groups > 0
    ratios = np.zeros_like(p)
    ratios[:, here] = p[:, here] / classes / groups[here]
    return max(0.0, float(np.sum(p * ratios)) - 1), 2 * ratios - np.sum(groups * ratios**2, axis=1)[:, None]


def _log_ermi(p: Array) -> tuple[float, Array]:
    """Return ln(1 + ERMI) and its derivative."""
    value, slope = _ermi(p)
    return float(np.log1p(value)), slope / (1 + value)


def _renyi(p: Array) -> tuple[float, Array]:
    """Return the second squared singular value of p_jr / sqrt(p_j p_r), and its derivative."""
    classes, groups = np.maximum(p.sum(axis=1), LEAST_SHARE), p.sum(axis=0)
    weights = np.zeros_like(groups)
    weights[groups > 0] = groups[groups > 0] ** -0.5
    left, singular, right = np.linalg.svd(p / np.sqrt(classes)[:, None] * weights, full_matrices=False)
    if len(singular) < 2:
        return 0.0, np.zeros_like(p)
    s, u, v = singular[1], left[:, 1] / np.sqrt(classes), right[1] * weights
    # p_j is a sum over groups of p_jr: it moves the whole row of the table, and u'Q = s v'.
    return float(s**2), 2 * s * np.outer(u, v) - (s**2 * u**2)[:, None]


_MEASURES: dict[str, Callable[[Array], tuple[float, Array]]] = {
    "ermi": _ermi,
    "log-ermi": _log_ermi,
    "renyi": _renyi,
}
