"""Penalties by name."""

from __future__ import annotations

from enum import StrEnum

from tacit.errors import check_choice
from tacit.fairness.covariance import CovariancePenalty
from tacit.fairness.groups import Groups
from tacit.fairness.mutual_information import MutualInformationPenalty
from tacit.fairness.notions import Conditions
from tacit.fairness.penalty import ErmiPenalty, Membership, Penalty
from tacit.fairness.plug_in import PlugInPenalty

__all__ = ["PenaltyName", "penalty_of"]


class PenaltyName(StrEnum):
    """What is added to the loss. The first and the last have dual variables: batches of any size do."""

    ERMI = "ermi"
    ERMI_PLUG_IN = "ermi-plug-in"
    LOG_ERMI = "log-ermi"
    RENYI = "renyi"
    COVARIANCE = "covariance"
    MUTUAL_INFORMATION = "mutual-information"


def penalty_of(
    name: str | PenaltyName,
    groups: Groups,
    conditions: Conditions,
    classes: int,
    *,
    weights: str = "frequency",
) -> tuple[Penalty, Membership]:
    """Return a penalty of n records, and what each record's term counts in it.

    Args:
        name: A name of `PenaltyName`.
        groups: Of n records.
        conditions: Of the same records.
        classes: m.
        weights: Of conditions: "frequency", by how many records of known group one has, or "uniform".

    Raises:
        ParameterError: An unknown name, or unknown weights.
        DataError: A condition without records of some group.

    Example:
        >>> from tacit.fairness import Fairness
        >>> groups = Groups.of(["f", "m", "f", "m"])
        >>> conditions = Conditions.of(Fairness.DEMOGRAPHIC_PARITY, None, classes=[0, 1], n=4)
        >>> penalty_of("renyi", groups, conditions, 2)[0]
        PlugInPenalty(weights=array([1.]), groups=2, measure='renyi')
    """
    kind = PenaltyName(check_choice("regularizer", name, list(PenaltyName)))
    ermi, membership = ErmiPenalty.of(groups, conditions, classes, weights=weights)
    if kind is PenaltyName.ERMI:
        return ermi, membership
    if kind is PenaltyName.COVARIANCE:
        return CovariancePenalty(ermi.weights, len(groups)), membership
    if kind is PenaltyName.MUTUAL_INFORMATION:
        return MutualInformationPenalty(ermi.frequencies, ermi.weights, classes), membership
    measure = "ermi" if kind is PenaltyName.ERMI_PLUG_IN else kind.value
    return PlugInPenalty(ermi.weights, len(groups), measure), membership
