"""Groups: one or several sensitive columns, missing values, and columns that are none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from tacit.errors import DataError, ParameterError
from tacit.fairness import Groups


@pytest.mark.parametrize(
    "sensitive",
    [
        ["m", "f", "m"],
        np.array(["m", "f", "m"]),
        np.array([["m"], ["f"], ["m"]]),
        pd.Series(["m", "f", "m"], index=[7, 3, 3]),
        pd.DataFrame({"sex": ["m", "f", "m"]}, index=[7, 3, 3]),
        pd.Series(["m", "f", "m"], dtype="category"),
        np.array(["m", "f", "m"], dtype=object),
    ],
)
def test_one_column_in_every_form(sensitive: Any) -> None:
    groups = Groups.of(sensitive)
    assert (groups.codes.tolist(), groups.names, len(groups)) == ([1, 0, 1], ("f", "m"), 2)
    assert groups.counts.tolist() == [1, 2]
    np.testing.assert_allclose(groups.frequencies, [1 / 3, 2 / 3])
    assert groups.known.all()


@pytest.mark.parametrize("values", [[2, 10, 2], [2.0, 10.0, 2.0], np.array([2, 10, 2], dtype=np.int8)])
def test_numbers_keep_their_order_and_are_plain(values: Any) -> None:
    groups = Groups.of(values)
    assert groups.names == (2, 10)
    assert all(type(name) is int for name in groups.names)
    assert groups.codes.tolist() == [0, 1, 0]


def test_truth_values_and_mixed_ones_are_groups() -> None:
    assert Groups.of([True, False]).names == (False, True)
    assert Groups.of(["a", 1, "a"]).codes.tolist() == [1, 0, 1]


def test_several_columns_make_groups_of_what_occurs() -> None:
    frame = pd.DataFrame({"sex": ["f", "m", "f", "f"], "age": [1, 0, 0, 1]})
    for sensitive in (
        frame,
        frame.to_numpy(),
        frame.to_numpy().tolist(),
        list(frame.itertuples(index=False)),
    ):
        groups = Groups.of(sensitive)
        assert groups.names == (("f", 0), ("f", 1), ("m", 0))  # and no ("m", 1)
        assert groups.codes.tolist() == [1, 2, 0, 1]


def test_groups_that_could_be_cost_nothing() -> None:
    rng = np.random.default_rng(0)
    columns = rng.integers(0, 2, size=(2000, 18))
    groups = Groups.of(columns)
    assert len(groups) == len(np.unique(columns, axis=0)) <= 2000
    assert [groups.names[code] for code in groups.codes[:5]] == [tuple(row) for row in columns[:5].tolist()]
    where = rng.integers(-1, 3, size=2000)
    counts = groups.counts_within(where, 3)
    assert counts.shape == (3, len(groups))
    assert counts.sum() == (where >= 0).sum()
    np.testing.assert_array_equal(groups.counts_within(np.zeros(2000, dtype=int), 1)[0], groups.counts)


def test_declared_groups_are_kept_in_their_order_also_when_empty() -> None:
    groups = Groups.of(["m", "f"], names=["m", "x", "f"])
    assert (groups.codes.tolist(), groups.counts.tolist()) == ([0, 2], [1, 0, 1])
    pairs = Groups.of([["f", 1.0]], names=[("f", 0), ["f", 1]])
    assert (pairs.codes.tolist(), pairs.names) == ([1], (("f", 0), ("f", 1)))
    array: Any = np.array([1, 0])
    assert Groups.of([0, 1], names=array).codes.tolist() == [1, 0]
    with pytest.raises(DataError, match="has a value that is not among the declared groups") as refused:
        Groups.of(["f", "secret"], names=["f", "m"])
    assert "secret" not in str(refused.value)
    names: Any
    for names in ([], ["f", "f"], [1, 1.0]):
        with pytest.raises(ParameterError, match="names must have at least one group, each once"):
            Groups.of([1], names=names)
    for names in (["f"], [("f",)], [("f", 1, 2)], [("f", 1), 3]):
        with pytest.raises(ParameterError, match="names must be tuples of 2 values"):
            Groups.of([["f", 1]], names=names)


@pytest.mark.parametrize(
    "sensitive",
    [
        ["f", None, "m"],
        np.array([0, np.nan, 1]),
        pd.Series([0, None, 1], dtype="Int64"),
        [0, float("nan"), 1],
    ],
)
def test_missing_values_must_be_declared(sensitive: Any) -> None:
    with pytest.raises(DataError, match=r"sensitive_features has 1 records without a value.*missing=True"):
        Groups.of(sensitive)
    groups = Groups.of(sensitive, missing=True)
    assert groups.codes.tolist() == [0, -1, 1]
    assert groups.known.tolist() == [True, False, True]
    assert groups.counts.tolist() == [1, 1]
    np.testing.assert_allclose(groups.frequencies, [0.5, 0.5])
    assert groups.counts_within(np.zeros(3, dtype=int), 1).tolist() == [[1, 1]]


def test_one_unknown_column_makes_the_group_unknown() -> None:
    groups = Groups.of([["f", 1], ["m", None], ["m", 0]], missing=True)
    assert groups.codes.tolist() == [0, -1, 1]
    assert groups.names == (("f", 1), ("m", 0))
    nobody = Groups.of([None, None], names=["f", "m"], missing=True)
    with pytest.raises(DataError, match="must be known for at least one record"):
        _ = nobody.frequencies


def test_continuous_columns_are_refused() -> None:
    rng = np.random.default_rng(1)
    for sensitive in (rng.random(10), [0.5, 1.0], np.array([0.5, np.nan]), rng.random((10, 1))):
        with pytest.raises(DataError, match=r"sensitive_features is continuous: cut it into groups first"):
            Groups.of(sensitive, missing=True)
    with pytest.raises(DataError, match="has more than 100 different numbers"):
        Groups.of(np.arange(101))
    assert len(Groups.of(np.arange(100))) == 100
    assert len(Groups.of(np.arange(101).astype(str))) == 101
    with pytest.raises(DataError, match="column 'income' of sensitive_features is continuous"):
        Groups.of(pd.DataFrame({"sex": ["f", "m"], "income": [10.5, 20.1]}))


@pytest.mark.parametrize("sensitive", [[], np.zeros((0, 2)), np.zeros((3, 0)), "f", 3, np.zeros((2, 2, 2))])
def test_other_shapes_are_refused(sensitive: Any) -> None:
    with pytest.raises(DataError, match="sensitive_features must have"):
        Groups.of(sensitive)


def test_values_that_are_no_names_are_refused() -> None:
    for sensitive in ([["f", 1], ["m"]], [{"sex": "f"}, {"sex": "m"}]):
        with pytest.raises(DataError, match="sensitive_features must hold texts or whole numbers"):
            Groups.of(sensitive)


def test_a_batch_keeps_the_groups() -> None:
    groups = Groups.of(["m", "f", "x"])
    batch = groups.take(np.array([1, 1]))
    assert (batch.codes.tolist(), batch.names) == ([0, 0], ("f", "m", "x"))
    assert batch.counts.tolist() == [2, 0, 0]
