"""What private fair training reads of records, where no error may tell of a private one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import DataError, ParameterError, PrivacyWarning
from tacit.fairness.declared import declared_groups
from tacit.fairness.groups import Groups
from tacit.fairness.notions import Conditions, Fairness
from tacit.fairness.units import FairUnits
from tacit.learning.labelled import public_sample
from tacit.learning.model import FeatureMap
from tacit.learning.task import bounded_features, feature_bounds, label_codes, warned_clause
from tacit.numerics import Array, IntArray

__all__ = [
    "BoundedRows",
    "FairInputs",
    "MappedRows",
    "conditions_of",
    "groups_of",
    "private_scaling",
    "share_of",
]

_LEAST_SHARE = 0.02


@dataclass(frozen=True)
class MappedRows:
    """Features by public bounds, or by a public sample.

    Attributes:
        features: The map.
    """

    features: FeatureMap

    def transform(self, X: Array) -> Array:
        """Return rows of norm at most 1 with the constant as last column, shape (n, d + 1)."""
        return np.asarray(self.features(X))


@dataclass(frozen=True)
class BoundedRows:
    """Features as they are, within public bounds.

    Attributes:
        lower: Shape (d,).
        upper: Shape (d,).
    """

    lower: Array
    upper: Array

    def transform(self, X: Array) -> Array:
        """Return rows with the constant 1 as last column, shape (n, d + 1); NaN stays."""
        return np.column_stack([np.clip(X, self.lower, self.upper), np.ones(len(X))])


@dataclass(frozen=True)
class FairInputs:
    """Records as silos hold them, silo by silo.

    Attributes:
        rows: Scaled features and the constant, shape (n, d + 1).
        codes: Place of each label, shape (n,); -1 for no class.
        groups: The group of each record.
        conditions: Where the notion looks.
        names: Of silos.
        silos: Place of each record's silo, shape (n,), ascending.
    """

    rows: Array
    codes: IntArray
    groups: Groups
    conditions: Conditions
    names: list[str]
    silos: IntArray

    @classmethod
    def sorted(
        cls,
        rows: Array,
        codes: IntArray,
        groups: Groups,
        conditions: Conditions,
        *,
        names: list[str],
        silos: IntArray,
    ) -> FairInputs:
        """Return records in the order of their silos; arguments as the attributes, in any order."""
        order = np.argsort(silos, kind="stable")
        return cls(
            rows[order],
            codes[order],
            Groups(groups.codes[order], groups.names),
            Conditions(conditions.codes[order], conditions.names),
            names,
            silos[order],
        )

    def units(self) -> list[FairUnits]:
        """Return what each silo holds."""
        group, condition = self.groups.codes, self.conditions.codes
        return [
            FairUnits.of(self.rows[held], self.codes[held], group[held], condition[held])
            for held in (self.silos == k for k in range(len(self.names)))
        ]


def private_scaling(
    given: Any, X: Array, *, bounds: Any, public: Any, names: Any, standardise: bool, private: bool
) -> tuple[MappedRows | BoundedRows, list[str]]:
    """Return how features of private records are scaled, and what the statement must say of it.

    Args:
        given: Features as they came.
        X: The same, shape (n, d).
        bounds: Public bounds, as a person wrote them.
        public: A public sample, as a person wrote it.
        names: Of the columns; None where they have no names.
        standardise: Whether rows are scaled, to norm 1 at most.
        private: Whether there is a budget.

    Raises:
        ParameterError: No bounds with a budget, or a sample where nothing is scaled.
    """
    lower, upper, notes = feature_bounds(bounds, X, private=private)
    if not standardise:
        if public is not None:
            raise ParameterError("public must be None with standardise=False: nothing is scaled by it.")
        return BoundedRows(lower, upper), notes
    sample = public_sample(
        public, bounds=bounds, lower=lower, upper=upper, given=given, names=names, encode=_no_labels
    )
    return MappedRows(bounded_features(lower, upper, unit_rows=True, sample=sample)), notes


def groups_of(sensitive: Any, declared: Any, n: int, *, private: bool) -> tuple[Groups, list[str]]:
    """Return the group of each record, and what the statement must say of their list.

    Args:
        sensitive: Shape (n,) or (n, columns); None without a budget is nobody's.
        declared: The public list of groups; None reads it off the data.
        n: Number of records.
        private: Whether there is a budget.

    Raises:
        ParameterError: No attribute with a budget, or a list that is none.
        DataError: Another number of records, or one group only.
    """
    if sensitive is None:
        if private:
            raise ParameterError("sensitive_features must be given with a budget, got None.")
        return Groups(np.full(n, -1), (None, None)), []
    notes = []
    if declared is not None:
        groups = declared_groups(sensitive, declared)
    else:
        groups = Groups.of(sensitive, missing=True)
        if private:
            notes.append(
                warned_clause(
                    "the groups were read off the data without privacy", "`groups` from public knowledge"
                )
            )
    if len(groups.codes) != n:
        raise DataError(f"sensitive_features must have one entry per record ({n}), got {len(groups.codes)}.")
    if len(groups) < 2:
        raise DataError("sensitive_features must have two groups or more, got one group only.")
    return groups, notes


def conditions_of(notion: Fairness, codes: IntArray, classes: Array, advantaged: Any) -> Conditions:
    """Return where the notion looks.

    Args:
        notion: The notion.
        codes: Place of each label, shape (n,).
        classes: All labels.
        advantaged: Those that equal opportunity is about, one or a list; None is the last of two.

    Raises:
        ParameterError: One of them is no class.
    """
    wanted: list[int] | None = None
    if advantaged is not None:
        listed = advantaged if isinstance(advantaged, list | tuple) else [advantaged]
        found = label_codes(classes, list(listed))
        if np.isnan(found).any():
            raise ParameterError(
                f"advantaged must be some of the {len(classes)} classes, got {advantaged!r}."
            )
        wanted = found.astype(int).tolist()
    return Conditions.of(notion, codes, classes=list(range(len(classes))), advantaged=wanted)


def share_of(least: float | None, groups: int, *, private: bool) -> float:
    """Return the share below which no group counts; warn where so many groups make a small one of it.

    Args:
        least: As a person wrote it; None is 2 %, or half of the mean share where that is less.
        groups: Number of declared groups.
        private: Whether counts have noise.
    """
    if least is not None:
        return least
    if 0.5 / groups >= _LEAST_SHARE:
        return _LEAST_SHARE
    if private:
        warnings.warn(
            f"least_share is {0.5 / groups:.4g}, half of 1 / {groups} groups, not {_LEAST_SHARE:g}: noisy "
            "counts say little of such small groups. Declare fewer, with rare ones joined, or give "
            "least_share.",
            PrivacyWarning,
            stacklevel=4,
        )
    return 0.5 / groups


def _no_labels(_labels: Array) -> Array:
    """Refuse labels of public records, which nothing is made of here."""
    raise ParameterError("public must be features alone: the model is not trained on public records.")
