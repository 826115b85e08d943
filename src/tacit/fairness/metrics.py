"""Violations of fairness notions, and rates by group, of any model's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import DataError, ParameterError, check_choice, check_count
from tacit.fairness.ermi import joint_tables
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions, Fairness
from tacit.numerics import Array, IntArray

__all__ = [
    "GroupRates",
    "equal_opportunity_violation",
    "equalized_odds_violation",
    "group_rates",
    "parity_violation",
    "violation",
]

_SUM_SLACK = 1e-6


@dataclass(frozen=True)
class GroupRates:
    """How often each class is predicted in each group, within each condition of a notion.

    On training data these are no private numbers; of other records they are exact statistics of them.

    Attributes:
        rates: p(j | r, z), shape (z, m, k); NaN where no record is of that condition and group.
        overall: p(j | z), shape (z, m); NaN where no record is of that condition.
        counts: Records of each condition and group, shape (z, k).
        classes: Names of the m classes.
        groups: Names of the k groups.
        conditions: Names of the z conditions: labels, or a single None for demographic parity.
    """

    rates: Array
    overall: Array
    counts: IntArray
    classes: tuple[Any, ...]
    groups: tuple[Any, ...]
    conditions: tuple[Any, ...]

    @property
    def empty(self) -> list[tuple[Any, Any]]:
        """Conditions and groups, in pairs, of which there is no record; they are left out of violations."""
        return self._cells(self.counts == 0)

    def small(self, min_count: int = 10) -> list[tuple[Any, Any]]:
        """Return conditions and groups of fewer records than that, whose rates say little."""
        low = check_count("min_count", min_count)
        return self._cells((self.counts > 0) & (self.counts < low))

    def gap(self, aggregate: str = "max") -> float:
        """Return the largest difference of a class's rate between two groups.

        Args:
            aggregate: Over conditions: "max", or "mean", weighted by how often each occurs.
        """
        return self._aggregate(_spread(self.rates), aggregate)

    def linf(self, aggregate: str = "max") -> float:
        """Return the largest difference between a group's rate of a class and that of all; at most the gap.

        Args:
            aggregate: As in `gap`.
        """
        apart = np.abs(self.rates - self.overall[:, :, None])
        return self._aggregate(np.where(np.isnan(apart), 0.0, apart).max(axis=(1, 2)), aggregate)

    def _aggregate(self, each: Array, aggregate: str) -> float:
        """Return one number for all conditions."""
        check_choice("aggregate", aggregate, ["max", "mean"])
        if aggregate == "max":
            return float(each.max())
        return float(np.average(each, weights=self.counts.sum(axis=1)))

    def _cells(self, which: Any) -> list[tuple[Any, Any]]:
        """Return the names of cells."""
        return [(self.conditions[z], self.groups[r]) for z, r in np.argwhere(which)]


def group_rates(
    predictions: Any,
    sensitive_features: Any,
    *,
    fairness: str | Fairness = Fairness.DEMOGRAPHIC_PARITY,
    labels: Any = None,
    classes: Sequence[Any] | None = None,
    advantaged: Sequence[Any] | None = None,
) -> GroupRates:
    """Return how often each class is predicted in each group, as a notion looks at it.

    Args:
        predictions: Hard ones: labels, shape (n,). Or soft ones: probabilities of `classes`, shape (n, m).
        sensitive_features: Shape (n,), or (n, columns), discrete; or `Groups`, whose unknown records are left
            out.
        fairness: A name of `Fairness`.
        labels: True labels, shape (n,); needed unless the notion is demographic parity.
        classes: All labels, in the order of the columns of soft predictions; None reads them off hard
            predictions and `labels`.
        advantaged: For equal opportunity, the labels that it is about; None is the last of two classes.

    Raises:
        DataError: Arrays of other lengths, labels that are not among the classes, or no record to look at.
        ParameterError: An unknown notion, soft predictions without classes, or no labels where they are
            needed.

    Example:
        >>> rates = group_rates([1, 1, 0, 0], ["a", "a", "a", "b"])
        >>> round(rates.gap(), 4), round(rates.linf(), 4)
        (0.6667, 0.5)

    Reference:
        Lowy (2023), Definitions 71, 206 and 209, equation 6.2.
    """
    notion = Fairness.of(fairness)
    groups = sensitive_features if isinstance(sensitive_features, Groups) else Groups.of(sensitive_features)
    y = None if labels is None else np.asarray(labels)
    said = np.asarray(predictions)
    n = len(groups.codes)
    for name, values, axes in (("predictions", said, (1, 2)), ("labels", y, (1,))):
        if values is not None and (values.ndim not in axes or len(values) != n):
            raise DataError(f"{name} must have one entry per record ({n}), got shape {values.shape}.")
    known = _classes(said, y, classes)
    F = _soft(said, known)
    if y is not None and not np.isin(y, known).all():
        raise DataError(f"labels must be among the {len(known)} classes; some are not.")
    where = Conditions.of(notion, y, classes=known, advantaged=advantaged, n=n)
    counts = groups.counts_within(where.codes, len(where))
    if counts.sum() == 0:
        raise DataError("no record has a known group and a label that the notion looks at.")
    joints = joint_tables(F, groups.codes, len(groups), where.codes, len(where))
    totals = counts.sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = joints * (totals[:, None] / counts)[:, None, :]
        overall = np.where(totals[:, None] > 0, joints.sum(axis=2), np.nan)
    return GroupRates(rates, overall, counts, tuple(known.tolist()), groups.names, where.names)


def violation(
    predictions: Any,
    sensitive_features: Any,
    *,
    fairness: str | Fairness = Fairness.DEMOGRAPHIC_PARITY,
    labels: Any = None,
    classes: Sequence[Any] | None = None,
    advantaged: Sequence[Any] | None = None,
    measure: str = "gap",
    aggregate: str = "max",
) -> float:
    """Return how far predictions are from a fairness notion.

    Args:
        predictions: As in `group_rates`.
        sensitive_features: As in `group_rates`.
        fairness: As in `group_rates`.
        labels: As in `group_rates`.
        classes: As in `group_rates`.
        advantaged: As in `group_rates`.
        measure: "gap", between two groups (fairlearn's differences), or "linf", between a group and all. The
            second is at most the first, and at least half of it.
        aggregate: Over labels: "max", or "mean", weighted by how often each occurs.

    Raises:
        DataError: As in `group_rates`.
        ParameterError: As in `group_rates`, or another measure or aggregate.
    """
    check_choice("measure", measure, ["gap", "linf"])
    rates = group_rates(
        predictions,
        sensitive_features,
        fairness=fairness,
        labels=labels,
        classes=classes,
        advantaged=advantaged,
    )
    return rates.gap(aggregate) if measure == "gap" else rates.linf(aggregate)


def parity_violation(predictions: Any, sensitive_features: Any, *, measure: str = "gap", **how: Any) -> float:
    """Return `violation` of demographic parity: fairlearn's demographic parity difference, by default."""
    return violation(predictions, sensitive_features, measure=measure, **how)


def equalized_odds_violation(
    labels: Any, predictions: Any, sensitive_features: Any, *, measure: str = "gap", **how: Any
) -> float:
    """Return `violation` of equalized odds: fairlearn's equalized odds difference, by default."""
    notion = Fairness.EQUALIZED_ODDS
    return violation(predictions, sensitive_features, labels=labels, fairness=notion, measure=measure, **how)


def equal_opportunity_violation(
    labels: Any, predictions: Any, sensitive_features: Any, *, measure: str = "gap", **how: Any
) -> float:
    """Return `violation` of equal opportunity: of two classes, the gap of true positive rates."""
    notion = Fairness.EQUAL_OPPORTUNITY
    return violation(predictions, sensitive_features, labels=labels, fairness=notion, measure=measure, **how)


def _classes(said: Array, labels: Array | None, classes: Sequence[Any] | None) -> Array:
    """Return all classes, in order."""
    if classes is not None:
        known = np.asarray(classes)
        if known.ndim != 1 or len(known) == 0 or len(set(known.tolist())) < len(known):
            raise ParameterError("classes must be a list of labels, each once.")
        return known
    if said.ndim == 2:
        raise ParameterError("classes must be given with soft predictions, got None.")
    return np.unique(said if labels is None else np.concatenate([said, labels]))


def _soft(said: Array, classes: Array) -> Array:
    """Return predictions as probabilities of the classes, shape (n, m)."""
    if said.ndim == 2:
        F = said.astype(np.float64)
        sums = F.sum(axis=1)
        if F.shape[1] != len(classes) or not (F >= 0).all() or not (np.abs(sums - 1) <= _SUM_SLACK).all():
            raise DataError(
                f"soft predictions must be probabilities of {len(classes)} classes in each row, got shape "
                f"{said.shape}{'' if F.shape[1] != len(classes) else ' with rows that do not add up to 1'}."
            )
        return F
    if not np.isin(said, classes).all():
        raise DataError(f"predictions must be among the {len(classes)} classes; some are not.")
    return np.asarray((said[:, None] == classes[None, :]).astype(np.float64))


def _spread(rates: Array) -> Array:
    """Return the largest difference between two groups in any class, for each condition, shape (z,)."""
    low = np.where(np.isnan(rates), np.inf, rates).min(axis=2)
    high = np.where(np.isnan(rates), -np.inf, rates).max(axis=2)
    return np.asarray(np.where(np.isfinite(low), high - low, 0.0).max(axis=1))
