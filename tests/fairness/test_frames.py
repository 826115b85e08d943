"""Rates by group as fairlearn has them, and violations that are its differences."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.errors import DataError, ParameterError, TacitError
from tacit.fairness import (
    Groups,
    equal_opportunity_violation,
    equalized_odds_violation,
    group_rates,
    metric_frame,
    metric_table,
    parity_violation,
    violation,
)
from tacit.numerics import Array


def records(seed: int, n: int = 400) -> tuple[Array, Array, pd.DataFrame]:
    """Return labels, predictions and two attributes that depend on one another; every cell has records."""
    rng = np.random.default_rng(seed)
    sensitive = pd.DataFrame({"sex": rng.choice(["f", "m"], n), "age": rng.integers(0, 3, n)})
    chance = 0.2 + 0.2 * sensitive["age"].to_numpy() + 0.1 * (sensitive["sex"] == "m").to_numpy()
    labels = (rng.random(n) < chance).astype(np.int64)
    predictions = np.where(rng.random(n) < 0.7, labels, rng.random(n) < chance).astype(np.int64)
    return labels, predictions, sensitive


@pytest.mark.parametrize("columns", [["sex"], ["age"], ["sex", "age"]])
@pytest.mark.parametrize("method", ["between_groups", "to_overall"])
def test_violations_are_the_differences_of_fairlearn(columns: list[str], method: str) -> None:
    theirs = pytest.importorskip("fairlearn.metrics")
    measure = "gap" if method == "between_groups" else "linf"
    for seed in range(2):
        labels, predictions, sensitive = records(seed)
        mine = sensitive[columns]
        how: dict[str, Any] = {"sensitive_features": mine, "method": method}
        found = [
            parity_violation(predictions, mine, measure=measure),
            equalized_odds_violation(labels, predictions, mine, measure=measure),
            equal_opportunity_violation(labels, predictions, mine, measure=measure),
        ]
        expected = [
            theirs.demographic_parity_difference(labels, predictions, **how),
            theirs.equalized_odds_difference(labels, predictions, **how),
            theirs.equal_opportunity_difference(labels, predictions, **how),
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)
        assert min(found) > 1e-3


def test_the_frame_is_that_of_fairlearn() -> None:
    theirs = pytest.importorskip("fairlearn.metrics")
    labels, predictions, sensitive = records(7)
    frame = metric_frame(labels, predictions, sensitive["sex"])
    assert isinstance(frame, theirs.MetricFrame)
    direct = theirs.MetricFrame(
        metrics={
            "count": theirs.count,
            "accuracy": lambda y, p: (y == p).mean(),
            "selection_rate": theirs.selection_rate,
            "true_positive_rate": theirs.true_positive_rate,
            "false_positive_rate": theirs.false_positive_rate,
        },
        y_true=labels, y_pred=predictions, sensitive_features=sensitive["sex"],
    )  # fmt: skip
    assert frame.by_group.index.tolist() == ["f", "m"]
    np.testing.assert_allclose(frame.by_group.to_numpy(float), direct.by_group.to_numpy(float), atol=1e-12)
    np.testing.assert_allclose(frame.overall.to_numpy(float), direct.overall.to_numpy(float), atol=1e-12)
    assert frame.difference()["selection_rate"] == pytest.approx(
        parity_violation(predictions, sensitive["sex"])
    )
    rates = group_rates(predictions, sensitive["sex"])
    np.testing.assert_allclose(frame.by_group["selection_rate"], rates.rates[0, 1], atol=1e-12)


def test_columns_make_one_group_of_each_combination_that_occurs() -> None:
    pytest.importorskip("fairlearn.metrics")
    labels, predictions, sensitive = records(1)
    there = ~((sensitive["sex"] == "f") & (sensitive["age"] == 2)).to_numpy()
    frame = metric_frame(labels[there], predictions[there], sensitive[there])
    assert frame.by_group.index.tolist() == ["f, 0", "f, 1", "m, 0", "m, 1", "m, 2"]
    assert frame.by_group["count"].sum() == there.sum()


def test_a_rate_of_no_record_is_nan_and_left_out() -> None:
    """A group without positive records has no true positive rate: fairlearn's differences take 0 for it."""
    theirs = pytest.importorskip("fairlearn.metrics")
    labels, predictions = np.array([1, 1, 1, 1, 0, 0]), np.array([1, 0, 1, 1, 0, 1])
    groups = ["a", "a", "b", "b", "c", "c"]
    frame = metric_frame(labels, predictions, groups)
    assert np.isnan(frame.by_group["true_positive_rate"]["c"])
    assert frame.difference()["true_positive_rate"] == pytest.approx(0.5)
    assert equal_opportunity_violation(labels, predictions, groups) == pytest.approx(0.5)
    assert theirs.equal_opportunity_difference(labels, predictions, sensitive_features=groups) == 1.0


def test_rates_are_about_one_label_of_several_classes() -> None:
    pytest.importorskip("fairlearn.metrics")
    labels = np.array(["x", "y", "z", "x", "y", "z"])
    predictions = np.array(["x", "x", "z", "y", "y", "z"])
    frame = metric_frame(labels, predictions, [0, 0, 0, 1, 1, 1], positive="x")
    assert frame.by_group["selection_rate"].tolist() == pytest.approx([2 / 3, 0])
    assert frame.by_group["true_positive_rate"].tolist() == [1, 0]
    assert frame.by_group["false_positive_rate"].tolist() == [0.5, 0]
    assert frame.overall["accuracy"] == pytest.approx(4 / 6)
    with pytest.raises(ParameterError, match="positive must name a label where there are 3 classes"):
        metric_frame(labels, predictions, [0, 0, 0, 1, 1, 1])
    with pytest.raises(
        ParameterError, match=r"positive must be one of the classes \['x', 'y', 'z'\], got 'w'"
    ):
        metric_frame(labels, predictions, [0, 0, 0, 1, 1, 1], positive="w")


def test_records_of_unknown_groups_are_left_out() -> None:
    pytest.importorskip("fairlearn.metrics")
    labels, predictions, sensitive = records(3)
    hidden = sensitive["sex"].where(np.arange(len(labels)) % 3 > 0, None)
    frame = metric_frame(labels, predictions, Groups.of(hidden, missing=True))
    kept = np.arange(len(labels)) % 3 > 0
    assert frame.by_group["count"].sum() == kept.sum()
    gap = violation(predictions[kept], sensitive["sex"][kept])
    assert frame.difference()["selection_rate"] == pytest.approx(gap)
    with pytest.raises(DataError, match="known for at least one record"):
        metric_frame([0, 1], [0, 1], Groups.of([None, None], names=["a", "b"], missing=True))


def test_arrays_of_other_shapes_are_refused() -> None:
    pytest.importorskip("fairlearn.metrics")
    with pytest.raises(DataError, match=r"labels must have shape \(2,\), got \(3,\)"):
        metric_frame([0, 1, 1], [0, 1], ["a", "b"])
    with pytest.raises(DataError, match=r"predictions must have shape \(2,\), got \(2, 2\)"):
        metric_frame([0, 1], np.eye(2), ["a", "b"])


def test_tables_say_the_same_with_and_without_fairlearn(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("fairlearn.metrics")
    truth, said = np.array([*"xyzxyzxx"]), np.array([*"xxzyyzyy"])
    groups = Groups.of([1, 1, 1, "1", "1", "1", None, "a"], missing=True)
    theirs = metric_table(truth, said, groups, classes=["x", "y", "z"])
    monkeypatch.setitem(sys.modules, "fairlearn.metrics", None)
    ours = metric_table(truth, said, groups, classes=["x", "y", "z"])
    assert [(one.positive, one.source) for one in theirs] == [(label, "fairlearn") for label in "xyz"]
    assert [(one.positive, one.source) for one in ours] == [(label, "tacit") for label in "xyz"]
    for one, other in zip(ours, theirs, strict=True):
        assert list(one.by_group.index) == list(other.by_group.index) == ["'1'", "'a'", "1"]
        for part in ("by_group", "overall", "difference", "ratio"):
            mine, of_them = getattr(one, part), getattr(other, part)
            assert list(mine.keys()) == list(of_them.keys())
            np.testing.assert_allclose(mine.to_numpy(float), of_them.to_numpy(float), atol=1e-12)
    assert np.isnan(ours[0].by_group["false_positive_rate"]["'a'"])
    assert ours[0].difference["selection_rate"] == pytest.approx(2 / 3)
    assert ours[0].overall["count"] == 7
    binary = metric_table([1, 0], [1, 1], ["a", "b"], classes=[0, 1])
    assert [one.positive for one in binary] == [1]


def test_without_fairlearn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fairlearn", None)
    with pytest.raises(TacitError, match=r"a MetricFrame needs fairlearn; `pip install 'tacit\[fairness\]'`"):
        metric_frame([0, 1], [0, 1], ["a", "b"])
