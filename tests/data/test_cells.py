"""Cells: what is said of columns is what is said of each cell by itself."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data.cells import distinct_texts, number_of, numbers, numbers_of, plain, positions, text_of, texts

CELLS = st.one_of(
    st.sampled_from(
        ["01", " 1.50", "true", "FALSE", "other", "", "NA", "inf", "1e999", "1_0", "\u0663", "9" * 19]
    ),
    st.sampled_from([None, pd.NA, pd.NaT, math.nan, math.inf, -0.0, 10**18 + 1, -(10**400), 10**5000]),
    st.sampled_from([decimal.Decimal("1.50"), decimal.Decimal("sNaN"), b"12", b"\xff", 1 + 2j, [1], {}]),
    st.sampled_from([pd.Timestamp("2020-01-01"), np.datetime64("2020-01-01"), datetime.date(2020, 1, 1)]),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.floats(width=32).map(np.float32),
    st.text(max_size=4),
)


@given(cells=st.lists(CELLS, max_size=6))
def test_columns_of_objects_are_read_cell_by_cell(cells: list[Any]) -> None:
    column = pd.Series(cells, dtype=object)
    each = [number_of(cell) for cell in cells]
    np.testing.assert_array_equal(numbers(column), each)
    np.testing.assert_array_equal(numbers_of(cells), each)
    assert texts(column).tolist() == [text_of(cell) for cell in cells]
    found, which = distinct_texts(column)
    assert found[which].tolist() == texts(column).tolist()


@pytest.mark.parametrize(
    "kind",
    [
        "int8",
        "int64",
        "uint64",
        "float32",
        "float64",
        "Int64",
        "UInt64",
        "Float32",
        "Float64",
        "bool",
        "boolean",
    ],
)
def test_typed_columns_are_read_cell_by_cell(kind: str) -> None:
    """A column of one cell and a column of all of them say the same of it; so does the cell itself."""
    made: dict[str, list[Any]] = {
        "i": [0, 1, -7, 127],
        "u": [0, 1, 10**18 + 1, 2**64 - 1],
        "f": [0.0, -0.0, 0.1, 2.0, 1e20, math.inf],
        "b": [True, False],
    }
    cells = made["i" if kind == "int8" else pd.api.types.pandas_dtype(kind).kind]
    cells += [10**18 + 1] if kind in ("int64", "Int64") else []
    cells += [None] if kind[0] in "IUF" or kind == "boolean" else []
    column = pd.Series(cells, dtype=kind)
    found, which = distinct_texts(column)
    assert found[which].tolist() == texts(column).tolist()
    alone = [pd.Series([cell], dtype=kind) for cell in cells]
    assert texts(column).tolist() == [texts(one)[0] for one in alone]
    np.testing.assert_array_equal(numbers(column), [numbers(one)[0] for one in alone])
    if not kind.lower().endswith("32"):
        assert texts(column).tolist() == [text_of(cell) for cell in cells]
        np.testing.assert_array_equal(numbers(column), [number_of(cell) for cell in cells])


def test_numbers_are_written_in_their_own_precision() -> None:
    for kind in ("float32", "Float32", "float64"):
        assert texts(pd.Series([0.1, 2.0], dtype=kind)).tolist() == ["0.1", "2"]
    assert text_of(-0.0) == text_of(np.float32(-0.0)) == "0"
    assert texts(pd.Series([1, None, 3], dtype="category")).tolist() == ["1", "", "3"]
    days = pd.Series([pd.Timestamp("2020-01-01"), None, pd.Timestamp("2020-01-02 10:00")])
    assert texts(days).tolist() == ["2020-01-01", "", "2020-01-02 10:00:00"]


def test_a_text_that_many_cells_have_is_looked_at_once() -> None:
    for column in (pd.Series(["a", "b ", "a"] * 9), pd.Series([1, 2, 1] * 9), pd.Series([0.0, -0.0] * 9)):
        found, which = distinct_texts(column)
        assert len(found) <= 2
        assert found[which].tolist() == texts(column).tolist()
    # A number is equal to a truth value, which is another text.
    mixed = pd.Series([1, True, 1.0, "1"], dtype=object)
    assert distinct_texts(mixed)[0].tolist() == ["1", "True", "1", "1"]


def test_a_category_is_its_text_and_then_its_plain_form() -> None:
    cells = ["01", "1", "1.0", " 1.00 ", "1.5", "1.50", "TRUE", "true", "2", "", "NA", "no"]
    known = positions(texts(pd.Series(cells)), ["01", 1, "1.5", "True", "", "NA"], {"no": "01"})
    assert known.tolist() == [0, 1, 1, 1, 2, -1, 3, 3, -1, 4, 5, 0]
    # Of two that are plain alike, the first.
    assert positions(texts(pd.Series(["1", "TRUE"])), ["1.0", "1.00", "true", "True"]).tolist() == [0, 2]
    # What is described as it stands is never another category.
    cells, categories = ["1.0", "1", "true", "True"], ["1", "1.0", "true", "True"]
    assert positions(texts(pd.Series(cells)), categories).tolist() == [1, 0, 2, 3]


@given(text=st.text(max_size=6))
def test_a_plain_form_has_no_plainer_one(text: str) -> None:
    assert plain(plain(text)) == plain(text)
