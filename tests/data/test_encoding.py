"""Encoding: bounded whatever the data, equal for equal values, and silent about cells."""

from __future__ import annotations

import math

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
from tacit.data.encoding import as_text, infer_column
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


def test_fractions_keep_their_text() -> None:
    assert as_text(pd.Series([1.0, 2.5, 10.0])).tolist() == ["1", "2.5", "10"]


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
    ("cells", "message"),
    [
        ([1.0, math.nan], "missing or infinite"),
        ([1.0, math.inf], "missing or infinite"),
        (["1", CELL], "not numbers"),
        (pd.to_datetime(["2020-01-01", "2020-01-02"]), "dates"),
    ],
)
def test_a_bad_numeric_column_is_named_and_no_cell_is_quoted(cells: list[object], message: str) -> None:
    with pytest.raises(DataError, match=f"'weight'.*{message}") as caught:
        encode_columns(pd.DataFrame({"weight": cells}), {"weight": Numeric(lower=0, upper=1)})
    assert CELL not in str(caught.value)


def test_missing_columns_and_categories_are_refused() -> None:
    frame = pd.DataFrame({"smoker": ["yes", None]})
    with pytest.raises(DataError, match="did you mean 'smoker'"):
        encode_columns(frame, {"smokr": Categorical(categories=("yes",))})
    with pytest.raises(DataError, match="'smoker' holds missing values"):
        encode_columns(frame, {"smoker": Categorical(categories=("yes",))})
    with pytest.raises(DataError, match="no column is left"):
        encode_columns(frame, {"smoker": Ignore()})


def test_labels() -> None:
    label = Label(classes=("no", "yes"))
    assert encode_label(pd.Series(["yes", "no"]), label, column="y").tolist() == [1, 0]
    assert encode_label(pd.Series([5.0, 20.0]), LabelBounds(lower=0, upper=10), column="y").tolist() == [
        0.0,
        1.0,
    ]
    with pytest.raises(DataError, match="outside the public classes") as caught:
        encode_label(pd.Series(["yes", CELL]), label, column="y")
    assert CELL not in str(caught.value)
    with pytest.raises(DataError, match="missing"):
        encode_label(pd.Series(["yes", None]), label, column="y")


def test_inferred_descriptions() -> None:
    assert infer_column(pd.Series([3, 1, 2]), column="a") == Numeric(lower=1.0, upper=3.0)
    assert infer_column(pd.Series([4.0, 4.0]), column="a") == Numeric(lower=4.0, upper=5.0)
    assert infer_column(pd.Series(["b", "a", "b"]), column="a") == Categorical(categories=("a", "b"))
    with pytest.raises(DataError, match="'a' holds more than 100"):
        infer_column(pd.Series([f"name {i}" for i in range(101)]), column="a")
