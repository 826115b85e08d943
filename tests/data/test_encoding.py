"""Encoding: bounded whatever the data, equal for equal values, and no cell is an error."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import (
    Categorical,
    Column,
    Ignore,
    Label,
    LabelBounds,
    Numeric,
    encode_columns,
    encode_label,
    scale,
    unscale,
)
from tacit.data.encoding import infer_classes, infer_column
from tacit.errors import DataError, ParameterError


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_scaled_values_stay_in_the_unit_interval(values: list[float]) -> None:
    scaled = scale(np.array(values), lower=-3.0, upper=11.0)
    assert np.all(np.abs(scaled) <= 1.0)


@given(values=st.lists(st.floats(-3, 11), min_size=1))
def test_unscale_inverts_scale_inside_the_bounds(values: list[float]) -> None:
    array = np.array(values)
    back = unscale(scale(array, lower=-3.0, upper=11.0), lower=-3.0, upper=11.0)
    np.testing.assert_allclose(back, array, atol=1e-13)


def test_scale_maps_the_bounds_to_the_ends() -> None:
    assert scale(np.array([-3.0, 4.0, 11.0, 99.0]), lower=-3.0, upper=11.0).tolist() == [-1.0, 0.0, 1.0, 1.0]
    with pytest.raises(ParameterError, match="lower < upper"):
        scale(np.zeros(1), lower=1.0, upper=1.0)


def test_categories_are_one_hot_and_the_unknown_is_zero() -> None:
    frame = pd.DataFrame({"c": ["b", "a", "z"]})
    encoded = encode_columns(frame, {"c": Categorical(categories=("a", "b"))})
    assert encoded.names == ("c=a", "c=b")
    assert encoded.sources == ("c", "c")
    assert encoded.X.tolist() == [[0, 1], [1, 0], [0, 0]]


def test_ordinal_categories_are_spread_and_the_unknown_is_the_middle() -> None:
    frame = pd.DataFrame({"c": ["no", "some", "much", "?"]})
    encoded = encode_columns(frame, {"c": Categorical(categories=("no", "some", "much"), ordinal=True)})
    assert encoded.names == ("c",)
    assert encoded.X.ravel().tolist() == [-1.0, 0.0, 1.0, 0.0]


def test_merged_values_are_one_category() -> None:
    frame = pd.DataFrame({"c": [1, 2, 9, 8]})
    encoded = encode_columns(frame, {"c": Categorical(categories=(1, 2), merge={"9": 2})})
    assert encoded.X.tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]


@pytest.mark.parametrize("values", [[1, 2], [1.0, 2.0], ["1", "2"]])
def test_numbers_and_text_are_the_same_category(values: list[object]) -> None:
    encoded = encode_columns(pd.DataFrame({"c": values}), {"c": Categorical(categories=(1, "2"))})
    assert encoded.X.tolist() == [[1, 0], [0, 1]]


def test_features_follow_the_description_and_not_the_table() -> None:
    frame = pd.DataFrame({"b": [1.0], "a": [0.0], "name": ["x"]})
    spec: dict[str, Column] = {
        "a": Numeric(lower=0, upper=1),
        "b": Numeric(lower=0, upper=1),
        "name": Ignore(),
        "absent": Ignore(),
    }
    encoded = encode_columns(frame, spec)
    assert encoded.names == ("a", "b")
    assert encoded.X.tolist() == [[-1.0, 1.0]]


CELL = "hunter2"


@pytest.mark.parametrize(
    "cells",
    [
        [1.0, math.nan],
        ["1", CELL],
        ["1", ""],
        [1, None],
        pd.array([1, None], dtype="Int64"),
        ["1.0 ", pd.NaT],
    ],
)
def test_a_number_that_is_missing_or_none_is_the_middle(cells: Any) -> None:
    encoded = encode_columns(pd.DataFrame({"weight": cells}), {"weight": Numeric(lower=0, upper=4)})
    assert encoded.X.ravel().tolist() == [-0.5, 0.0]


def test_infinite_numbers_are_clipped() -> None:
    frame = pd.DataFrame({"weight": ["inf", "-Infinity", 10**400, "1e999", -(10**400)]}, dtype=object)
    encoded = encode_columns(frame, {"weight": Numeric(lower=0, upper=4)})
    assert encoded.X.ravel().tolist() == [1.0, -1.0, 1.0, 1.0, -1.0]


def test_truth_values_are_numbers_in_any_case() -> None:
    frame = pd.DataFrame({"smoker": ["true", " FALSE ", "False", "yes"]})
    encoded = encode_columns(frame, {"smoker": Numeric(lower=0, upper=1)})
    assert encoded.X.ravel().tolist() == [1.0, -1.0, -1.0, 0.0]


@pytest.mark.parametrize("cells", [pd.to_datetime(["2020-01-01", "2020-01-02"]), [1 + 2j, 3]])
def test_types_without_numbers_are_refused_by_name(cells: Any) -> None:
    with pytest.raises(DataError, match=r"'weight' holds (datetime|complex)"):
        encode_columns(pd.DataFrame({"weight": cells}), {"weight": Numeric(lower=0, upper=1)})


def test_missing_columns_are_refused_and_missing_categories_are_none() -> None:
    frame = pd.DataFrame({"smoker": ["yes", None]})
    public = Categorical(categories=("yes", "no"))
    with pytest.raises(
        DataError, match="'smokr' is needed, and it has smoker; rename 'smoker' if it is the same"
    ):
        encode_columns(frame, {"smokr": public})
    with pytest.raises(DataError, match="no column is left"):
        encode_columns(frame, {"smoker": Ignore()})
    assert encode_columns(frame, {"smoker": public}).X.tolist() == [[1, 0], [0, 0]]


def test_labels() -> None:
    label = Label(classes=("no", "yes"))
    assert encode_label(pd.Series(["yes", "no"]), label, column="y").tolist() == [1, 0]
    assert encode_label(pd.Series([5.0, 20.0]), LabelBounds(lower=0, upper=10), column="y").tolist() == [
        0.0,
        1.0,
    ]
    assert encode_label(pd.Series(["yes", CELL, None]), label, column="y").tolist() == [1, -1, -1]
    bounded = encode_label(pd.Series(["5", CELL, None]), LabelBounds(lower=0, upper=10), column="y")
    np.testing.assert_array_equal(bounded, [0.0, np.nan, np.nan])


def test_inferred_descriptions() -> None:
    assert infer_column(pd.Series([3, 1, 2]), column="a") == Numeric(lower=1.0, upper=3.0)
    assert infer_column(pd.Series([4.0, 4.0]), column="a") == Numeric(lower=4.0, upper=5.0)
    assert infer_column(pd.Series(["b", "a", "b"]), column="a") == Categorical(categories=("a", "b"))
    assert infer_column(pd.Series(["3", "", "1.50"]), column="a") == Numeric(lower=1.5, upper=3.0)
    assert infer_column(pd.Series(["b", "NA", "1"]), column="a") == Categorical(categories=("1", "b"))
    assert infer_classes(pd.Series(["10", "2", "2.0"]), column="a") == Label(classes=("2", "10"))
    with pytest.raises(DataError, match="'a' holds no values"):
        infer_column(pd.Series(["", "NA"]), column="a")
    with pytest.raises(DataError, match="'a' holds more than 100"):
        infer_column(pd.Series([f"name {i}" for i in range(101)]), column="a")


@pytest.mark.parametrize("extremes", [(-1.7e308, 1.7e308), (1.234e300, 1.234e300), (0, math.inf)])
def test_bounds_that_cannot_be_read_off_quote_no_extreme(extremes: tuple[float, float]) -> None:
    with pytest.raises(DataError, match="'a' holds numbers that no bounds can be read off") as caught:
        infer_column(pd.Series(extremes), column="a")
    assert not re.search("[0-9]", str(caught.value))
