"""Every record is encoded as if it were alone, so replacing one changes no other: all columns, all doors.

One cell must not change the type of its column. It did: "01" to "05" were read as 1 to 5, which match
nothing, unless some record said "other"; so a single record showed in the encoding of all of them.
"""

from __future__ import annotations

import csv
import gzip
import importlib
import importlib.util
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.data import (
    Categorical,
    ColumnsSpec,
    Ignore,
    Label,
    LabelBounds,
    Numeric,
    Table,
    build_table,
    load_table,
    read_table,
)
from tacit.data.cells import numbers, texts
from tacit.data.kinds import table_name
from tacit.errors import DataError

SPEC = ColumnsSpec(
    columns={
        "age": Numeric(lower=0, upper=100),
        "one_hot": Categorical(categories=("01", "02", 1, 2, "true", "1.50", "None"), merge={"other": "01"}),
        "ordinal": Categorical(categories=(0, 1, 2, "False"), ordinal=True),
        "site": Categorical(categories=("01", "02", "1", "true")),
        "person": Ignore(),
        "free": Ignore(),
    },
    label=Label(classes=("0", "1", "01")),
)
BOUNDED = ColumnsSpec(columns=SPEC.columns, label=LabelBounds(lower=0, upper=3))
NAMES = [*SPEC.columns, "label"]
# Cells that make pandas guess another type for the whole column, and cells that must survive that.
TEXTS = [
    *(
        "01",
        "02",
        "1",
        "1.0",
        "1.50",
        "-0.0",
        "3",
        "-5",
        "9" * 19,
        "9" * 18 + "8",
        "inf",
        "1e999",
        "1_0",
        "0x1",
    ),
    *(
        "true",
        "TRUE",
        "False",
        "other",
        "",
        " ",
        "NA",
        "None",
        "nan",
        "2020-01-01",
        "1 kg",
        " 02 ",
        "x" * 300,
    ),
    *("a,b", 'q"', "x\ny", "#", "\u0663", "1,5", "1,2,3", "50,25", "a;b|c\td"),
]
OBJECTS = [*TEXTS, None, math.nan, 1, 1.0, 1.5, True, False, 10**18 + 1, 10**18 + 2, np.float32(0.1)]
TYPED: dict[str, list[Any]] = {
    "Int64": [0, 1, 2, 10**18 + 1, 10**18 + 2, None],
    "Float64": [0.0, 1.0, 1.5, 0.1, 1e300, None],
    "boolean": [True, False, None],
    "string": ["01", "1", "true", "", None],
    "category": ["01", "02", "other", None],
    "datetime64[us]": [pd.Timestamp("2020-01-01"), pd.Timestamp("2020-01-01 10:00"), None],
}


def rows_of(cells: list[Any]) -> st.SearchStrategy[list[list[Any]]]:
    row = st.lists(st.sampled_from(cells), min_size=len(NAMES), max_size=len(NAMES))
    return st.lists(row, min_size=2, max_size=6)


def tables(source: pd.DataFrame | Path) -> list[Table]:
    """Build the table for both tasks, by persons or not; a warning is an error."""
    roles: dict[str, Any] = {"label": "label", "silo_column": "site", "sensitive": ("free",)}
    tasks: list[dict[str, Any]] = [
        {"columns": SPEC, "task": "classification", "person_column": "person"},
        {"columns": BOUNDED, "task": "regression"},
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        if isinstance(source, Path):
            return [load_table(source, **roles, **task) for task in tasks]
        return [build_table(source, **roles, **task) for task in tasks]


def check_as_if_alone(build: Callable[[list[list[Any]]], pd.DataFrame | Path], rows: list[list[Any]]) -> None:
    """Compare every record of the table with the record as a table of its own."""
    whole = tables(build(rows))
    for k, row in enumerate(rows):
        for one, many in zip(tables(build([row])), whole, strict=True):
            np.testing.assert_array_equal(many.X[k], one.X[0])
            np.testing.assert_array_equal(many.y[k], one.y[0])
            assert many.silos is not None
            assert one.silos is not None
            assert many.silos[k] == one.silos[0]
            assert (many.persons is None) == (one.persons is None)
            if many.persons is not None and one.persons is not None:
                assert many.persons[k] == one.persons[0]
            assert many.sensitive["free"][k] == one.sensitive["free"][0]
            assert (many.classes, many.silo_names, many.bounds_source) == (one.classes, one.silo_names, ())


FORMS: tuple[tuple[str, str, str], ...] = (
    ("neighbours.csv", ",", "utf-8"),
    ("neighbours.csv", ";", "utf-16"),
    ("neighbours.csv.gz", "|", "utf-8"),
    ("neighbours.tsv", "\t", "utf-8-sig"),
)
"""Name, separator and encoding of a text table."""


def write_csv(path: Path, rows: list[list[Any]], separator: str = ",", encoding: str = "utf-8") -> Path:
    """Write a text table with a header."""
    opened: Any = gzip.open if path.suffix == ".gz" else Path.open
    with opened(path, "wt", newline="", encoding=encoding) as stream:
        csv.writer(stream, delimiter=separator).writerows([NAMES, *rows])
    return path


@settings(max_examples=40, deadline=None)
@given(rows=rows_of(TEXTS), form=st.sampled_from(FORMS))
def test_a_record_of_a_csv_is_encoded_as_if_it_were_alone(
    rows: list[list[str]], form: tuple[str, str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    name, separator, encoding = form
    path = tmp_path_factory.getbasetemp() / name

    def build(some: list[list[str]]) -> Path:
        return write_csv(path, some, separator, encoding)

    check_as_if_alone(build, rows)


@settings(max_examples=25, deadline=None)
@given(rows=rows_of(TEXTS), other=rows_of(TEXTS), form=st.sampled_from(FORMS))
def test_a_record_of_one_file_changes_none_of_another(
    rows: list[list[str]],
    other: list[list[str]],
    form: tuple[str, str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Nor how many there are, nor any warning: files of several forms, each record against itself alone."""
    name, separator, encoding = form
    first, second = (tmp_path_factory.getbasetemp() / one for one in ("a.tsv", f"b-{name}"))
    write_csv(first, rows, "\t", "utf-16")
    write_csv(second, other, separator, encoding)

    def load(paths: list[Path]) -> Table:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            roles: dict[str, Any] = {"label": "label", "person_column": "person", "sensitive": ("free",)}
            return load_table(paths, columns=SPEC, **roles)

    whole = load([first, second])
    assert whole.silos is not None
    assert whole.persons is not None
    assert whole.silos.tolist() == ["a"] * len(rows) + [table_name(second)] * len(other)
    for k, row in enumerate([*rows, *other]):
        path = first if k < len(rows) else second
        write_csv(path, [row], *(("\t", "utf-16") if path is first else (separator, encoding)))
        one = load([path])
        assert one.persons is not None
        np.testing.assert_array_equal(whole.X[k], one.X[0])
        assert whole.y[k] == one.y[0]
        missing = f" {whole.silos[k]}"
        assert whole.persons[k] == (missing if one.persons[0] == " " else one.persons[0])
        assert whole.sensitive["free"][k] == one.sensitive["free"][0]


@settings(max_examples=40, deadline=None)
@given(rows=rows_of(OBJECTS))
def test_a_record_of_a_frame_is_encoded_as_if_it_were_alone(rows: list[list[Any]]) -> None:
    check_as_if_alone(lambda some: pd.DataFrame(some, columns=NAMES, dtype=object), rows)


def write_parquet(frame: pd.DataFrame, path: Path) -> None:
    """Write a file as other programs do: without what pandas notes about its own types."""
    arrow: Any = importlib.import_module("pyarrow")
    plain = arrow.Table.from_pandas(frame).replace_schema_metadata(None)
    importlib.import_module("pyarrow.parquet").write_table(plain, path)


@pytest.mark.skipif(importlib.util.find_spec("pyarrow") is None, reason="needs tacit[parquet]")
@settings(max_examples=20, deadline=None)
@given(data=st.data(), kinds=st.lists(st.sampled_from(list(TYPED)), min_size=len(NAMES), max_size=len(NAMES)))
def test_a_record_of_a_parquet_file_is_encoded_as_if_it_were_alone(
    data: st.DataObject, kinds: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.getbasetemp() / "neighbours.parquet"
    # Dates are refused by their type where numbers are described.
    schema = {
        name: "string" if kind.startswith("date") and name in ("age", "label") else kind
        for name, kind in zip(NAMES, kinds, strict=True)
    }

    def build(some: list[list[Any]]) -> Path:
        write_parquet(pd.DataFrame(some, columns=NAMES, dtype=object).astype(schema), path)
        return path

    row = st.tuples(*(st.sampled_from(TYPED[kind]) for kind in schema.values())).map(list)
    check_as_if_alone(build, data.draw(st.lists(row, min_size=2, max_size=5)))


FAR = [0, 18_262, None, 10**7, -(2**31)]
"""Days or seconds since 1970; the last two are in no year that Python has, as days."""


def far_columns() -> dict[str, Any]:
    """Return columns of Arrow by name, whose last two cells Python may have no value for."""
    arrow: Any = pytest.importorskip("pyarrow")
    days = arrow.array(FAR, arrow.int32()).cast(arrow.date32())
    seconds = [None if day is None else day * 86_400 for day in FAR]
    stamps = arrow.array(seconds, arrow.int64())
    bad = arrow.array([b"a", b" 01 ", None, b"\xff", b"0\xe9"], arrow.binary())
    broken = arrow.StringArray.from_buffers(len(bad), *bad.buffers()[1:], bad.buffers()[0], bad.null_count)
    berlin = stamps.cast(arrow.timestamp("s", "Europe/Berlin"))
    return {
        "days": days,
        "days of a dictionary": days.dictionary_encode(),
        "times": arrow.array([0, 1, None, 10**9, -1], arrow.int32()).cast(arrow.time32("ms")),
        "seconds": stamps.cast(arrow.timestamp("s")),
        "seconds of Berlin": berlin,
        "lasting": stamps.cast(arrow.duration("s")),
        "text": broken,
        "text of a dictionary": broken.dictionary_encode(),
    }


def test_no_cell_of_a_parquet_file_is_an_error(tmp_path: Path) -> None:
    """Whatever Arrow holds, each cell says what it says alone, as text and as a number, and used or not."""
    arrow: Any = pytest.importorskip("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    path = tmp_path / "t.parquet"

    def read(cells: Any) -> pd.Series:
        parquet.write_table(arrow.table({"odd": cells, "age": [1.0] * len(cells)}), path)
        frame = read_table(path)
        assert frame["age"].tolist() == [1.0] * len(cells)
        return frame["odd"]

    for name, cells in far_columns().items():
        whole, alone = read(cells), [read(cells[k : k + 1]) for k in range(len(cells))]
        assert texts(whole).tolist() == [texts(one)[0] for one in alone], name
        np.testing.assert_array_equal(numbers(whole), [numbers(one)[0] for one in alone])
        assert "" not in texts(whole)[:2]
        assert texts(whole)[2] == ""
    assert texts(read(far_columns()["days"])).tolist() == ["1970-01-01", "2020-01-01", "", "", ""]
    berlin = texts(read(far_columns()["seconds of Berlin"])).tolist()
    assert berlin == ["1970-01-01 01:00:00+01:00", "2020-01-01 01:00:00+01:00", "", "", ""]
    assert texts(read(far_columns()["text"])).tolist() == ["a", "01", "", "\ufffd", "0\ufffd"]
    with pytest.raises(DataError, match="'odd' holds list"):
        texts(read(arrow.array([[1.0], None])))


@pytest.mark.parametrize("odd", [0, 4])
def test_a_label_of_dates_is_encoded_as_if_it_were_alone(odd: int, tmp_path: Path) -> None:
    arrow: Any = pytest.importorskip("pyarrow")
    spec = ColumnsSpec(
        columns={"age": SPEC.columns["age"], "free": Ignore()},
        label=Label(classes=("1970-01-01 01:00:00+01:00", "2020-01-01 01:00:00+01:00")),
    )
    label, free = (
        far_columns()[name].take(arrow.array([0, 1, odd])) for name in ("seconds of Berlin", "days")
    )
    path = tmp_path / "t.parquet"
    importlib.import_module("pyarrow.parquet").write_table(
        arrow.table({"age": [1.0] * 3, "free": free, "label": label}), path
    )
    assert load_table(path, label="label", columns=spec).y.tolist() == [0, 1, {0: 0, 4: -1}[odd]]


def test_one_null_rounds_no_other_id_of_a_parquet_file(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    ids = [10**18 + 1, 10**18 + 2, None]
    frame = pd.DataFrame({"age": [1.0, 2.0, 3.0], "person": pd.array(ids, dtype="Int64"), "label": "1"})
    write_parquet(frame, tmp_path / "t.parquet")
    spec = ColumnsSpec(columns={"age": SPEC.columns["age"]}, label=SPEC.label)
    table = load_table(tmp_path / "t.parquet", label="label", person_column="person", columns=spec)
    assert table.persons is not None
    assert table.persons.tolist() == [str(10**18 + 1), str(10**18 + 2), " "]


def test_categories_with_leading_zeros_survive_one_record_that_says_other() -> None:
    """The attack as it was found, on the encoding."""
    for odd in ("05", "other", "", "6"):
        frame = pd.DataFrame({"one_hot": ["01", "02", "01", odd], "label": ["0", "1", "1", "0"]})
        spec = ColumnsSpec(columns={"one_hot": SPEC.columns["one_hot"]}, label=SPEC.label)
        table = build_table(frame, label="label", columns=spec)
        assert table.X[:3, :2].tolist() == [[1, 0], [0, 1], [1, 0]]
