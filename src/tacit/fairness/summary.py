"""Everything that is said of how fair predictions are: rates by group, and violations of every notion."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.errors import DataError
from tacit.fairness.ermi import ermi_bounds, joint_table
from tacit.fairness.groups import Groups, group_text
from tacit.fairness.metrics import GroupRates, group_rates
from tacit.fairness.notions import Fairness
from tacit.numerics import Array

__all__ = ["FairnessSummary", "GroupSummary", "ViolationSummary", "summarise"]


@dataclass(frozen=True, kw_only=True)
class GroupSummary:
    """How a model treats one group.

    Attributes:
        group: Its name.
        records: Number of its records.
        accuracy: Share of them that is predicted right.
        predicted: Share of them that each class is predicted for, by the name of the class.
        predicted_if: The same among records of each true label, by its name; a label without records is left
            out.
    """

    group: str
    records: int
    accuracy: float
    predicted: dict[str, float]
    predicted_if: dict[str, dict[str, float]]


@dataclass(frozen=True, kw_only=True)
class ViolationSummary:
    """How far predictions are from one notion.

    Attributes:
        gap: Largest difference between two groups.
        linf: Largest difference between a group and all records.
        mean_gap: The gap as a mean over labels, weighted by how often they occur.
    """

    gap: float
    linf: float
    mean_gap: float


@dataclass(frozen=True, kw_only=True)
class FairnessSummary:
    """How fair hard predictions are.

    Attributes:
        records: Number of records with a known group.
        unknown: Number of records without.
        accuracy: Share of the known ones that is predicted right.
        groups: One entry for each group.
        violations: By the name of the notion.
        ermi: Exponential Renyi mutual information of prediction and group.
        mutual_information: Shannon's, in nats.
        renyi_correlation: Maximal correlation.
        empty: Labels and groups, in words, of which there is no record: no violation counts them.
        small: Those of fewer records than asked for, whose rates say little.
    """

    records: int
    unknown: int
    accuracy: float
    groups: tuple[GroupSummary, ...]
    violations: dict[str, ViolationSummary]
    ermi: float
    mutual_information: float
    renyi_correlation: float
    empty: tuple[str, ...]
    small: tuple[str, ...]

    def violation(self, fairness: str | Fairness) -> float:
        """Return the largest gap of a notion."""
        return self.violations[Fairness.of(fairness).value].gap


def summarise(
    labels: Any,
    predictions: Any,
    sensitive_features: Any,
    *,
    classes: Sequence[Any] | None = None,
    advantaged: Sequence[Any] | None = None,
    min_count: int = 10,
) -> FairnessSummary:
    """Return how fair hard predictions are, by every notion.

    These are exact statistics of the records: of private ones they are a release without a price.

    Args:
        labels: True labels, shape (n,).
        predictions: Predicted labels, shape (n,).
        sensitive_features: As in `group_rates`.
        classes: All labels; None reads them off both.
        advantaged: For equal opportunity, which is left out where it needs them and there are none.
        min_count: Fewer records of a group, or of a label in it, are pointed out.

    Raises:
        DataError: As in `group_rates`.
        ParameterError: As in `group_rates`.

    Example:
        >>> said = summarise([1, 0, 1, 0], [1, 0, 1, 1], ["a", "a", "b", "b"])
        >>> said.accuracy, said.violation("demographic-parity"), said.violation("equalized-odds")
        (0.75, 0.5, 1.0)
    """
    groups = sensitive_features if isinstance(sensitive_features, Groups) else Groups.of(sensitive_features)
    truth, said = np.asarray(labels), np.asarray(predictions)
    if said.ndim != 1:
        raise DataError(f"predictions must be labels of shape (n,), got shape {said.shape}.")
    found = {
        notion: group_rates(
            said,
            groups,
            fairness=notion,
            labels=truth,
            classes=classes,
            advantaged=advantaged if notion is Fairness.EQUAL_OPPORTUNITY else None,
        )
        for notion in Fairness
        if notion is not Fairness.EQUAL_OPPORTUNITY or advantaged is not None or _two(truth, said, classes)
    }
    parity, odds = found[Fairness.DEMOGRAPHIC_PARITY], found[Fairness.EQUALIZED_ODDS]
    known, right = groups.known, said == truth
    one_hot = (said[:, None] == np.asarray(parity.classes)[None, :]).astype(np.float64)
    bounds = ermi_bounds(joint_table(one_hot, groups.codes, len(groups)))
    return FairnessSummary(
        records=int(known.sum()),
        unknown=int((~known).sum()),
        accuracy=float(right[known].mean()),
        groups=tuple(_group_summaries(groups, right, parity, odds)),
        violations={
            notion.value: ViolationSummary(gap=rates.gap(), linf=rates.linf(), mean_gap=rates.gap("mean"))
            for notion, rates in found.items()
        },
        ermi=bounds.ermi,
        mutual_information=bounds.mutual_information,
        renyi_correlation=bounds.renyi_correlation,
        empty=tuple(f"label {label}, group {group_text(name)}" for label, name in odds.empty),
        small=tuple(f"label {label}, group {group_text(name)}" for label, name in odds.small(min_count)),
    )


def _group_summaries(
    groups: Groups, right: Array, parity: GroupRates, odds: GroupRates
) -> Iterator[GroupSummary]:
    """Yield how each group that occurs is treated."""
    for r in np.flatnonzero(parity.counts[0]):
        yield GroupSummary(
            group=group_text(groups.names[r]),
            records=int(parity.counts[0, r]),
            accuracy=float(right[groups.codes == r].mean()),
            predicted=_shares(parity.classes, parity.rates[0, :, r]),
            predicted_if={
                str(odds.conditions[z]): _shares(odds.classes, odds.rates[z, :, r])
                for z in np.flatnonzero(odds.counts[:, r])
            },
        )


def _two(truth: Any, said: Any, classes: Sequence[Any] | None) -> bool:
    """Return whether there are two classes, of which the last is the advantaged one."""
    return len(np.unique(np.concatenate([truth, said])) if classes is None else classes) == 2


def _shares(names: Sequence[Any], values: Any) -> dict[str, float]:
    """Return shares by the names of classes."""
    return {str(name): float(value) for name, value in zip(names, values, strict=True)}
