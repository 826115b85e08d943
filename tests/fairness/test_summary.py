"""What is said of predictions: rates of groups that occur, and of records whose group is known."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.errors import DataError
from tacit.fairness import Groups, summarise

TRUTH = np.array([1, 0, 1, 0, 1, 1])
SAID = np.array([1, 0, 0, 1, 0, 0])
GROUPS = Groups(np.array([0, 0, 1, 1, -1, 0]), ("a", ("b", 1), "nobody"))


def test_records_of_no_known_group_have_no_say() -> None:
    found = summarise(TRUTH, SAID, GROUPS)
    assert (found.records, found.unknown) == (5, 1)
    assert found.accuracy == pytest.approx(2 / 5)  # 2 of 6 with the record of no group
    assert [(one.group, one.records) for one in found.groups] == [("a", 3), ("b, 1", 2)]
    assert found.groups[0].accuracy == pytest.approx(2 / 3)
    assert found.groups[1].predicted == {"0": 0.5, "1": 0.5}
    assert found.groups[1].predicted_if == {"0": {"0": 0.0, "1": 1.0}, "1": {"0": 1.0, "1": 0.0}}
    assert found.violation("demographic-parity") == pytest.approx(1 / 2 - 1 / 3)
    assert found.empty == ("label 0, group nobody", "label 1, group nobody")
    assert set(summarise(TRUTH, SAID, GROUPS, min_count=2).small) == {
        "label 0, group a", "label 0, group b, 1", "label 1, group b, 1",
    }  # fmt: skip


def test_opportunity_of_several_classes_needs_to_be_told_whose() -> None:
    truth, groups = np.array([0, 1, 2, 0]), ["a", "a", "b", "b"]
    assert set(summarise(truth, truth, groups).violations) == {"demographic-parity", "equalized-odds"}
    assert "equal-opportunity" in summarise(truth, truth, groups, advantaged=[0]).violations


def test_probabilities_are_no_labels() -> None:
    with pytest.raises(DataError, match=r"predictions must be labels of shape \(n,\), got shape \(6, 2\)"):
        summarise(TRUTH, np.eye(2)[SAID], GROUPS)
