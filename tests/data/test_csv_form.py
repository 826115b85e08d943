"""Packing, encodings, separators and decimal commas: told by public facts, and every cell for itself."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tacit.data import ColumnsSpec, Label, LabelBounds, Numeric, load_table, read_table
from tacit.data.cells import numbers, texts
from tacit.errors import DataError, PrivacyWarning

TEXT = "site,age,y\nnorth,31,0\nsouth,58,1\n"
FRAME = pd.DataFrame({"site": ["north", "south"], "age": ["31", "58"], "y": ["0", "1"]}, dtype=object)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.csv", TEXT.replace(",", ";").encode()),
        ("t.csv", TEXT.replace(",", "\t").encode()),
        ("t.csv", ("\n \n" + TEXT.replace(",", "|")).encode()),
        ("t.tsv", TEXT.replace(",", "\t").encode()),
        ("T.TSV.GZ", gzip.compress(TEXT.replace(",", "\t").encode(), mtime=0)),
        ("t.csv.gz", gzip.compress(TEXT.encode(), mtime=0)),
        (
            "t.csv.gz",
            gzip.compress(b"site;", mtime=0) + gzip.compress(TEXT.replace(",", ";")[5:].encode(), mtime=0),
        ),
        ("t.csv", TEXT.encode("utf-16")),
        ("t.csv", b"\xfe\xff" + TEXT.encode("utf-16-be")),
        ("t.csv", TEXT.replace(",", ";").replace("\n", "\r\n").encode("utf-16")),
        ("t.csv.gz", gzip.compress(TEXT.replace(",", "\t").encode("utf-16"), mtime=0)),
        ("t.csv", b"\xef\xbb\xbf" + TEXT.replace(",", ";").encode()),
    ],
)
def test_one_table_in_many_forms(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    pd.testing.assert_frame_equal(read_table(tmp_path / name), FRAME)
    ages = read_table(tmp_path / name, numeric=["age"])["age"]
    assert ages.dtype == np.float64
    assert ages.tolist() == [31.0, 58.0]


@pytest.mark.parametrize(
    ("header", "separator", "names"),
    [
        ("weight (kg);height, cm;y", ";", ["weight (kg)", "height, cm", "y"]),
        ('"a,b,c";"d"', ";", ["a,b,c", "d"]),
        ('a;"b\nc,,,,"', ";", ["a", "b\nc,,,,"]),
        ("a|b\tc\td", "\t", ["a|b", "c", "d"]),
        ("a", ",", ["a"]),
        ("a;b,c", ",", ["a;b", "c"]),
    ],
)
def test_the_header_line_alone_says_what_separates(
    header: str, separator: str, names: list[str], tmp_path: Path
) -> None:
    for odd in ("1", "|||||", "1,2", ";;;;", '"', "\t\t\t"):
        cells = ['"' + odd.replace('"', '""') + '"'] * len(names)
        (tmp_path / "t.csv").write_text(f"{header}\n{separator.join(cells)}\n")
        frame = read_table(tmp_path / "t.csv")
        assert frame.columns.tolist() == names
        assert frame.iloc[0].tolist() == [odd] * len(names)


def test_a_line_with_another_number_of_cells_is_told_what_separates(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a;b\n1;2;3\n")
    with pytest.raises(DataError, match=r"line 2: 3 fields, the header has 2; text that holds a semicolon"):
        read_table(tmp_path / "t.csv")


def test_decimal_commas_are_numbers_and_stay_text(tmp_path: Path) -> None:
    """Cell by cell, whoever asks; in a file with commas between its cells they are no numbers."""
    cells = [
        "1,5",
        "-0,25",
        "1.5",
        "1,234,567",
        "1.234,5",
        "2",
        ",5",
        "3,",
        "1,2e3",
        " 7,0 ",
        "Porto, PT",
        "",
    ]
    said = [1.5, -0.25, 1.5, np.nan, np.nan, 2, 0.5, 3, 1200, 7, np.nan, np.nan]
    path = tmp_path / "t.csv"
    for mark in ("", '"'):
        path.write_text("x;y\n" + "".join(f"{mark}{cell}{mark};0\n" for cell in cells))
        np.testing.assert_array_equal(read_table(path, numeric=["x"])["x"], said)
        column = read_table(path)["x"]
        np.testing.assert_array_equal(numbers(column), said)
        assert texts(column).tolist() == [cell.strip() for cell in cells]
    path.write_text("x,y\n" + "".join(f'"{cell}",0\n' for cell in cells))
    commas = [np.nan if "," in cell else number for cell, number in zip(cells, said, strict=True)]
    np.testing.assert_array_equal(numbers(read_table(path)["x"]), commas)


def test_bounds_are_read_off_decimal_commas_and_a_target_has_them(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("x;y\n1,5;0,5\n2,25;1,5\n")
    with pytest.warns(PrivacyWarning, match="x, y were read off"):
        table = load_table(path, label="y", task="regression")
    assert table.columns.columns == {"x": Numeric(lower=1.5, upper=2.25)}
    assert table.X.tolist() == [[-1], [1]]
    assert (table.y.tolist(), table.label_bounds) == ([-1, 1], (0.5, 1.5))
    spec = ColumnsSpec(columns={"x": Numeric(lower=0, upper=3)}, label=LabelBounds(lower=0, upper=2))
    assert load_table(path, label="y", task="regression", columns=spec).y.tolist() == [-0.5, 0.5]
    path.write_text("x;y\n1,5;1,5\n2,25;2\n")
    classes = ColumnsSpec(columns={"x": Numeric(lower=0, upper=3)}, label=Label(classes=("1,5", 2)))
    assert load_table(path, label="y", columns=classes).y.tolist() == [0, 1]


def test_a_unit_that_is_no_utf16_spoils_its_cell_only(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    rows = [*"a;b\n1;2\n".encode("utf-16-le"), 0x3D, 0xD8, *";3\n4;5\n".encode("utf-16-le")]
    path.write_bytes(b"\xff\xfe" + bytes(rows))
    assert read_table(path).to_numpy().tolist() == [["1", "2"], ["\ufffd", "3"], ["4", "5"]]
