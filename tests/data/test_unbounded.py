"""Numbers without bounds: cells as they stand, and what is none of them says so for its own record alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.data import (
    Categorical,
    ColumnsSpec,
    LabelBounds,
    Numeric,
    Unbounded,
    UnboundedLabel,
    build_table,
    count_unfit,
    encode_columns,
    encode_label,
    find_problems,
    load_table,
)
from tacit.errors import DataError, ParameterError

HOSTILE = ("text", "1e400", "nan", "inf", "-Infinity", "9" * 400, "", "0x10", "NA", "1,5", "1;5")
"""Cells that are no finite number."""
LEGAL = {"1e308": 1e308, "-1e200": -1e200, " 1.50 ": 1.5, "true": 1.0, "1_000": 1000.0, "9" * 19: 1e19}


@pytest.mark.parametrize("cell", HOSTILE)
def test_a_cell_that_is_no_finite_number_is_nan_and_no_other_is(cell: str) -> None:
    values = pd.Series([cell, "2.5", *LEGAL])
    known = [2.5, *LEGAL.values()]
    X = encode_columns(pd.DataFrame({"a": values}), {"a": Unbounded()}).X
    np.testing.assert_array_equal(X[:, 0], [np.nan, *known])
    y = encode_label(values, UnboundedLabel(), column="a")
    np.testing.assert_array_equal(y, [np.nan, *known])
    assert count_unfit(pd.DataFrame({"a": values}), {"a": Unbounded()}).to_numpy().tolist() == [[1, 0, 0]]


def test_what_is_missing_may_count_as_a_number_or_have_a_feature_of_its_own() -> None:
    frame = pd.DataFrame({"a": ["3", "inf"], "b": ["4", "x"]})
    columns = {"a": Unbounded(missing=-7.0), "b": Unbounded(missing="indicator")}
    found = encode_columns(frame, columns)
    assert found.names == ("a", "b", "b missing")
    np.testing.assert_array_equal(found.X, [[3, 4, 0], [-7, 0, 1]])


def test_descriptions_are_written_and_read() -> None:
    spec = ColumnsSpec(
        columns={"a": Unbounded(), "b": Unbounded(missing=1.5), "c": Unbounded(missing="indicator")},
        label=UnboundedLabel(column="y"),
    )
    assert ColumnsSpec.from_toml(spec.to_toml()) == spec
    with pytest.raises(ParameterError, match="finite number, got inf"):
        Unbounded(missing=float("inf"))
    with pytest.raises(DataError, match=r"column 'a'.*kind must be numeric, unbounded, date"):
        ColumnsSpec.from_toml('[columns.a]\nkind = "boundless"')


def test_a_raw_table_uses_no_bounds_and_reads_nothing_off_the_data(recwarn: pytest.WarningsRecorder) -> None:
    frame = pd.DataFrame(
        {"age": ["50", "200", "x"], "sex": ["f", "m", "?"], "dose": ["7", "-1e9", "2"], "y": "8"}
    )
    spec = ColumnsSpec(
        columns={"age": Numeric(lower=0, upper=100), "sex": Categorical(categories=("f", "m"))},
        label=LabelBounds(lower=0, upper=1),
    )
    table = build_table(frame, label="y", columns=spec, task="regression", raw=True)
    np.testing.assert_array_equal(table.X, [[50, 1, 0, 7], [200, 0, 1, -1e9], [np.nan, 0, 0, 2]])
    assert table.y.tolist() == [8, 8, 8]
    assert (table.label_bounds, table.bounds_source) == (None, ())
    assert table.columns.columns["dose"] == table.columns.columns["age"] == Unbounded()
    assert table.columns.label == UnboundedLabel(column="y")
    assert not recwarn.list
    kept = ColumnsSpec(columns={"age": Numeric(lower=0, upper=9, missing=3.0), "dose": Unbounded()})
    again = build_table(frame[["age", "dose", "y"]], label="y", columns=kept, task="regression", raw=True)
    np.testing.assert_array_equal(again.X[:, 0], [50, 200, 3])
    with pytest.raises(ParameterError, match="raw needs the task 'regression'"):
        build_table(frame, label="y", columns=spec, raw=True)


@pytest.mark.parametrize("row", [["x", "1", "1"], ["1e400", "nan", "inf"], ["1e308", "", "9" * 400]])
def test_another_row_changes_no_other_row(row: list[str], tmp_path: Path) -> None:
    rows = [[str(k), str(k / 8), str(-(k**3))] for k in range(50)]
    found = []
    for number, third in enumerate((["1", "2", "3"], row)):
        path = tmp_path / f"{number}.csv"
        pd.DataFrame([*rows[:2], third, *rows[3:]], columns=["a", "b", "y"]).to_csv(path, index=False)
        table = load_table(path, label="y", task="regression", raw=True)
        others = np.arange(50) != 2
        found.append((table.X[others], np.asarray(table.y)[others], table.columns, table.feature_names))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_array_equal(found[0][1], found[1][1])
    assert found[0][2:] == found[1][2:]


def test_without_a_moment_bounds_are_asked_for() -> None:
    frame = pd.DataFrame({"a": [1.0, 2.0], "y": [0.0, 1.0]})
    label = LabelBounds(lower=0, upper=1)
    for spec, name in (
        (ColumnsSpec(columns={"a": Unbounded()}, label=label), "a"),
        (ColumnsSpec(columns={"a": Numeric(lower=0, upper=1)}, label=UnboundedLabel()), "y"),
        (ColumnsSpec(columns={"a": Numeric(lower=0, upper=1), "y": Unbounded()}), "y"),
    ):
        with pytest.raises(DataError, match=f"column '{name}' is described without bounds.*moment"):
            build_table(frame, label="y", columns=spec, task="regression")


def test_problems_say_what_becomes_of_a_record() -> None:
    frame = pd.DataFrame({"a": ["1", "", "3"], "y": ["1", "2", "x"]})
    spec = ColumnsSpec(columns={"a": Unbounded()}, label=UnboundedLabel())
    found = find_problems({"t": frame}, spec, label="y", regression=True)
    assert [(one.column, one.must) for one in found] == [("y", False), ("a", False)]
    assert "count as zero" in found[0].what
    assert "zero, with all of their record" in found[1].what
