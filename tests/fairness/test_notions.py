"""Notions: their names, and which records they look at."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tacit.errors import ParameterError, UnknownNameError
from tacit.fairness import Conditions, Fairness

Y = np.array(["no", "yes", "no", "perhaps", "yes"])
CLASSES = ["no", "perhaps", "yes"]


def test_notions_have_names() -> None:
    assert [str(notion) for notion in Fairness] == [
        "demographic-parity",
        "equalized-odds",
        "equal-opportunity",
    ]
    assert Fairness.of("equalized-odds") is Fairness.EQUALIZED_ODDS
    assert Fairness.of(Fairness.EQUAL_OPPORTUNITY) is Fairness.EQUAL_OPPORTUNITY
    with pytest.raises(UnknownNameError, match=r"fairness must be one of .*did you mean 'equalized-odds'"):
        Fairness.of("equalised-odds")
    with pytest.raises(UnknownNameError, match="fairness must be one of"):
        Fairness.of(None)


def test_demographic_parity_looks_at_everybody_alike() -> None:
    for where in (
        Conditions.of(Fairness.DEMOGRAPHIC_PARITY, Y, classes=CLASSES),
        Conditions.of(Fairness.DEMOGRAPHIC_PARITY, None, classes=CLASSES, n=5),
    ):
        assert (where.codes.tolist(), where.names, len(where)) == ([0] * 5, (None,), 1)


def test_equalized_odds_looks_at_each_label() -> None:
    where = Conditions.of(Fairness.EQUALIZED_ODDS, Y, classes=CLASSES)
    assert (where.codes.tolist(), where.names) == ([0, 2, 0, 1, 2], tuple(CLASSES))


@pytest.mark.parametrize(
    ("advantaged", "codes", "names"),
    [
        (["yes"], [-1, 0, -1, -1, 0], ("yes",)),
        ("yes", [-1, 0, -1, -1, 0], ("yes",)),
        (["yes", "perhaps"], [-1, 0, -1, 1, 0], ("yes", "perhaps")),
        (np.array(["no"]), [0, -1, 0, -1, -1], ("no",)),
    ],
)
def test_equal_opportunity_looks_at_advantaged_labels(advantaged: Any, codes: list[int], names: Any) -> None:
    where = Conditions.of(Fairness.EQUAL_OPPORTUNITY, Y, classes=CLASSES, advantaged=advantaged)
    assert (where.codes.tolist(), where.names) == (codes, names)


def test_the_last_of_two_classes_is_the_advantaged_one() -> None:
    where = Conditions.of(Fairness.EQUAL_OPPORTUNITY, np.array([0, 1, 1]), classes=[0, 1])
    assert (where.codes.tolist(), where.names) == ([-1, 0, 0], (1,))
    with pytest.raises(ParameterError, match="advantaged must name labels where there are 3 classes"):
        Conditions.of(Fairness.EQUAL_OPPORTUNITY, Y, classes=CLASSES)


def test_what_makes_no_sense_is_refused() -> None:
    for notion in (Fairness.EQUALIZED_ODDS, Fairness.EQUAL_OPPORTUNITY):
        with pytest.raises(ParameterError, match=f"labels must be given: {notion} is about"):
            Conditions.of(notion, None, classes=CLASSES, n=5)
    for notion in (Fairness.EQUALIZED_ODDS, Fairness.DEMOGRAPHIC_PARITY):
        with pytest.raises(
            ParameterError, match=f"advantaged is for equal-opportunity, got it with {notion}"
        ):
            Conditions.of(notion, Y, classes=CLASSES, advantaged=["yes"])
    with pytest.raises(ParameterError, match="n must be given"):
        Conditions.of(Fairness.DEMOGRAPHIC_PARITY, None, classes=CLASSES)
    for wrong in (["maybe"], [], ["yes", "yes"], ["yes", "maybe"], 3):
        with pytest.raises(ParameterError, match="advantaged must be some of the classes"):
            Conditions.of(Fairness.EQUAL_OPPORTUNITY, Y, classes=CLASSES, advantaged=wrong)  # type: ignore[arg-type]
