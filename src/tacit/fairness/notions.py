"""Fairness notions: of which records predictions must not depend on the group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

import numpy as np

from tacit.errors import DataError, ParameterError, check_choice
from tacit.fairness.groups import Groups
from tacit.numerics import Array, IntArray

__all__ = ["Conditions", "Fairness", "complete_counts"]


class Fairness(StrEnum):
    """What a fair classifier does not let depend on the sensitive attribute S.

    The prediction is independent of S given Z, for each value of Z in a set: Z is constant for demographic
    parity, the label for equalized odds, and the label within the advantaged ones for equal opportunity.

    Reference:
        Lowy (2023), Definitions 13 and 71; Hardt, Price and Srebro (2016).
    """

    DEMOGRAPHIC_PARITY = "demographic-parity"
    EQUALIZED_ODDS = "equalized-odds"
    EQUAL_OPPORTUNITY = "equal-opportunity"

    @classmethod
    def of(cls, name: Any) -> Fairness:
        """Return a notion by its name.

        Raises:
            ParameterError: No such notion.
        """
        return cls(check_choice("fairness", name, list(cls)))


@dataclass(frozen=True)
class Conditions:
    """The values of Z that a notion looks at, and where each record belongs.

    Attributes:
        codes: Place of each record's Z, shape (n,); -1 where the notion does not look.
        names: Each value of Z, in order; a single None for demographic parity.
    """

    codes: IntArray
    names: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def of(
        cls,
        fairness: Fairness,
        labels: Array | None,
        *,
        classes: Sequence[Any] | Array,
        advantaged: Sequence[Any] | None = None,
        n: int | None = None,
    ) -> Self:
        """Sort records by the value of Z.

        Args:
            fairness: The notion.
            labels: True labels, shape (n,); may be None for demographic parity, with `n`.
            classes: All labels.
            advantaged: For equal opportunity, the labels that it is about; None is the last of two classes.
            n: Number of records where there are no labels.

        Raises:
            ParameterError: No labels where the notion needs them, advantaged labels that are no classes or
                with another notion, or none where there are more than two classes.
        """
        if advantaged is not None and fairness is not Fairness.EQUAL_OPPORTUNITY:
            raise ParameterError(f"advantaged is for equal-opportunity, got it with {fairness.value}.")
        if fairness is Fairness.DEMOGRAPHIC_PARITY:
            size = n if labels is None else len(labels)
            if size is None:
                raise ParameterError("n must be given where there are no labels.")
            return cls(np.zeros(size, dtype=np.int64), (None,))
        if labels is None:
            raise ParameterError(f"labels must be given: {fairness.value} is about records of each label.")
        known = list(np.asarray(classes).tolist())
        wanted = known
        if fairness is Fairness.EQUAL_OPPORTUNITY:
            wanted = _advantaged(advantaged, known)
        codes = np.full(len(labels), -1, dtype=np.int64)
        for place, name in enumerate(wanted):
            codes[np.asarray(labels) == name] = place
        return cls(codes, tuple(wanted))


def complete_counts(groups: Groups, conditions: Conditions) -> IntArray:
    """Count the records of each condition and group, of which training needs one at least.

    A rate of no records cannot be held level with others, so that whoever trains has to say what is meant:
    to leave the group out, or to be fair about other labels alone.

    Args:
        groups: Of n records.
        conditions: Of the same records.

    Returns:
        Shape (z, k), each at least 1.

    Raises:
        DataError: A condition without records of some group.
    """
    counts = groups.counts_within(conditions.codes, len(conditions))
    if (counts == 0).any():
        z, r = np.argwhere(counts == 0)[0]
        place = "" if len(conditions) == 1 else f" among records of label {conditions.names[z]!r}"
        raise DataError(f"no record is of group {groups.names[r]!r}{place}: the notion has no say there.")
    return counts


def _advantaged(advantaged: Sequence[Any] | None, known: list[Any]) -> list[Any]:
    """Return the labels that equal opportunity is about."""
    if advantaged is None:
        if len(known) != 2:
            raise ParameterError(
                f"advantaged must name labels where there are {len(known)} classes, got None."
            )
        return known[-1:]
    if isinstance(advantaged, str | bytes) or not isinstance(advantaged, Sequence | np.ndarray):
        advantaged = [advantaged]
    wanted = list(np.asarray(advantaged).tolist())
    if not wanted or len(set(wanted)) < len(wanted) or not set(wanted) <= set(known):
        raise ParameterError(f"advantaged must be some of the classes {known}, each once, got {wanted}.")
    return wanted
