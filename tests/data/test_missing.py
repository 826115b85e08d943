"""Missing cells and dates: what each becomes follows from the cell and the public description alone."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.data import Categorical, ColumnsSpec, Date, Numeric, count_unfit, encode_columns
from tacit.data.encoding import Feature, feature_names
from tacit.errors import DataError, ParameterError

DAY = datetime.date(2026, 1, 1)


def encoded(cells: list[Any], column: Feature) -> list[list[float]]:
    found = encode_columns(pd.DataFrame({"c": pd.Series(cells, dtype=object)}), {"c": column})
    assert found.names == feature_names({"c": column})
    assert found.X.shape[1] == len(found.sources) == len(found.names)
    rows: list[list[float]] = found.X.tolist()
    return rows


@pytest.mark.parametrize(
    ("missing", "rows"),
    [
        ("middle", [[-1], [0], [0], [1]]),
        (2.5, [[-1], [-0.5], [-0.5], [1]]),
        ("indicator", [[-1, 0], [0, 1], [0, 1], [1, 0]]),
    ],
)
def test_missing_numbers(missing: Any, rows: list[list[float]]) -> None:
    assert encoded(["0", "", "x", "12"], Numeric(lower=0, upper=10, missing=missing)) == rows


@pytest.mark.parametrize(
    ("missing", "ordinal", "rows"),
    [
        (None, False, [[1, 0, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]]),
        ("b", False, [[1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]]),
        ("category", False, [[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]]),
        (None, True, [[-1], [1], [0], [0]]),
        ("a", True, [[-1], [1], [-1], [0]]),
        ("category", True, [[-1, 0], [1, 0], [0, 1], [0, 0]]),
    ],
)
def test_missing_categories_are_told_from_unknown_ones(
    missing: Any, ordinal: bool, rows: list[list[float]]
) -> None:
    column = Categorical(categories=("a", "b", "NA"), ordinal=ordinal, missing=missing)
    # "NA" is described, so it is a category and not missing.
    assert encoded(["a", "NA", "nan", "z"], column) == rows


def test_whole_numbers_may_stand_for_missing_ones() -> None:
    assert encoded(["1", ""], Categorical(categories=(0, 1), missing=0)) == [[0, 1], [1, 0]]


@pytest.mark.parametrize(
    ("format", "cells"),
    [
        ("%Y-%m-%d", ["2001-01-01", "2001-01-01 23:59:59", "2001-01-01T00:00", datetime.date(2001, 1, 1)]),
        ("%d.%m.%Y", ["1.1.2001", "01.01.2001"]),
        ("%Y%m%d", ["20010101", 20010101]),
        ("%m/%d/%y %H:%M", ["01/01/01 12:00"]),
    ],
)
def test_dates_are_years_before_the_public_day(format: str, cells: list[Any]) -> None:
    column = Date(lower=0, upper=100, reference=DAY, format=format)
    years = (DAY - datetime.date(2001, 1, 1)).days / 365.2425
    for row in encoded(cells, column):
        assert row == pytest.approx([years / 50 - 1], abs=1e-12)


@pytest.mark.parametrize(
    "cell",
    ["", "2001-13-01", "2001-02-30", "01.01.2001", "2001-01-011", "yesterday", None, "NaT", 7, "0000-01-01"],
)
def test_what_is_no_date_is_missing(cell: Any) -> None:
    assert encoded([cell], Date(lower=0, upper=100, reference=DAY, missing=25)) == [[-0.5]]
    frame = pd.DataFrame({"c": pd.Series([cell, "2001-01-01", "1001-01-01"], dtype=object)})
    assert count_unfit(frame, {"c": Date(lower=0, upper=100, reference=DAY)}).to_numpy().tolist() == [
        [1, 0, 1]
    ]


def test_days_far_away_are_clipped() -> None:
    column = Date(lower=0, upper=100, reference=DAY)
    assert encoded(["1001-01-01", "9999-12-31"], column) == [[1], [-1]]


CELLS = st.one_of(
    st.sampled_from(["", "a", "b", "NA", "1", "7.5", "2001-01-01", "1066-10-14", "01.02.2003", "nan", "inf"]),
    st.text(max_size=8),
    st.none(),
    st.integers(-(10**30), 10**30),
    st.floats(),
    st.booleans(),
    st.dates(),
    st.datetimes(),
)
COLUMNS: list[Feature] = [
    *(Numeric(lower=0, upper=10, missing=m) for m in ("middle", "indicator", 3.0)),
    *(Date(lower=0, upper=90, reference=DAY, missing=m) for m in ("middle", "indicator", 3.0)),
    Date(lower=0, upper=90, reference=DAY, format="%d.%m.%Y"),
    *(Categorical(categories=("a", "b", 1), missing=m) for m in (None, "category", 1)),
    *(Categorical(categories=("a", "b", 1), missing=m, ordinal=True) for m in (None, "category", "b")),
]


@given(cells=st.lists(CELLS, min_size=2, max_size=6), other=CELLS, column=st.sampled_from(COLUMNS))
def test_another_cell_changes_no_other_row(cells: list[Any], other: Any, column: Feature) -> None:
    assert encoded(cells, column)[1:] == encoded([other, *cells[1:]], column)[1:]
    assert np.abs(encoded(cells, column)).max() <= 1


def test_descriptions_come_back_as_they_were_written() -> None:
    spec = ColumnsSpec(columns={f"c{k}": column for k, column in enumerate(COLUMNS)})
    assert ColumnsSpec.from_toml(spec.to_toml()) == spec
    assert "reference = 2026-01-01\n" in spec.to_toml()
    assert 'missing = "middle"' not in spec.to_toml()


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda: Numeric(lower=0, upper=1, missing=2.0), "within the bounds, got 2.0"),
        (lambda: Numeric(lower=0, upper=1, missing=float("nan")), "within the bounds, got nan"),
        (lambda: Categorical(categories=("a",), missing="b"), "'category' or one of categories, got 'b'"),
        (lambda: Categorical(categories=("category",), missing="category"), "one of the categories has that"),
        (lambda: Date(lower=0, upper=1, reference=DAY, format="%d.%m."), "format must hold a year, a month"),
        (lambda: Date(lower=0, upper=1, reference=DAY, format="%Y-%m"), "format must hold a year, a month"),
        (lambda: Date(lower=1, upper=1, reference=DAY), "lower < upper"),
    ],
)
def test_descriptions_that_say_nothing_are_refused(made: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        made()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('missing = "mean"', "mean"),
        ("missing = true", "missing"),
        ('reference = "2026-01-01"', "Expected `date`"),
        ("reference = 2026-01-01T00:00:00", "Expected `date`"),
    ],
)
def test_files_that_say_nothing_are_refused(line: str, message: str) -> None:
    kind = "date" if "reference" in line else "numeric"
    with pytest.raises(DataError, match=message):
        ColumnsSpec.from_toml(f'[columns.c]\nkind = "{kind}"\nlower = 0\nupper = 1\n{line}')
