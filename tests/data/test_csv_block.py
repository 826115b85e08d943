"""Lines that are read at once give cell for cell what the reader of rows and `number_of` give."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tacit.data import csv_block, csv_file, read_table
from tacit.data.cells import number_of, numbers
from tacit.data.csv_block import read_lines
from tacit.errors import DataError

NASTY = [
    *("", " ", "  ", " 1", "1 ", " 1 ", "1 2", "\t1", "1\t", "- 1", " -0", "-0 ", "-0", "-0.0", "-0e5", "+0"),
    *(
        "1_000",
        "0x10",
        "1e400",
        "-1e400",
        "1e-400",
        "-1e-400",
        "nan",
        "-nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
    ),
    *(
        "+1",
        "1.",
        ".5",
        "-.5",
        ".",
        "-",
        "+",
        "e",
        "1e",
        "1e5",
        "1E+5",
        "1e-0",
        "5-0",
        "1d5",
        "01",
        "-01",
        "00",
    ),
    *(
        "\u0663",
        "\u0661\u0662",
        "\uff11",
        "\u00bd",
        "1\u00a0",
        "\u2003\u0031",
        "\ufeff1",
        "\U0001d7d9",
        "\u00e9",
    ),
    *(
        "9" * 19,
        "1" + "0" * 18 + "1",
        "9" * 20,
        "-" + "9" * 25,
        "18446744073709551616",
        "-9223372036854775809",
    ),
    *(
        "9007199254740993",
        "0.1",
        "1e22",
        "1e23",
        "8.5e22",
        "2.2250738585072011e-308",
        "5e-324",
        "2.4703282e-324",
    ),
    *("179769313486231580793728971405301e276", "9" * 400, "0." + "0" * 400 + "1", "1" * 30 + "." + "1" * 30),
    *(
        "true",
        "FALSE",
        " True ",
        "NA",
        "null",
        "None",
        "N/A",
        "[1]",
        "1]",
        "[",
        "{}",
        "1:2",
        "'1'",
        "1;2",
        "#1",
    ),
    *(
        "\0",
        "1\0",
        "\x1c1",
        "\x851",
        "1\v",
        "2020-01-01",
        "x" * 300,
        "12 kg",
        "1,",
        "\\n",
        "0 ",
        "0",
        "7",
        "-3.25",
    ),
]
"""Cells of which some reader of numbers makes another number than Python, or one where Python makes none."""


def plain_number(cell: str, separator: str) -> float:
    """Read one cell as a number, as the rules say."""
    decimal = separator != "," and cell.count(",") == 1 and "." not in cell
    return number_of(cell.replace(",", ".") if decimal else cell)


def plain_reading(
    content: bytes, numeric: Sequence[str], separator: str
) -> dict[str, list[str] | list[float]]:
    """Read as the rules say, row by row and cell by cell; a `DataError` is the line that has it."""
    text = content.decode("utf-8-sig", errors="replace")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator, skipinitialspace=True, strict=True)
    found = []
    before = 0
    try:
        names = next(row for row in rows if any(cell.strip() for cell in row))
        before = rows.line_num
        for row in rows:
            if len(row) == len(names) or (not row and len(names) == 1):
                found.append(row or [""])
            elif len(row) > 1 or any(cell.strip() for cell in row):
                raise DataError(f"line {before + 1}: {len(row)} fields")
            before = rows.line_num
    except csv.Error:
        raise DataError(f"line {before + 1}: a double quote") from None
    if not found:
        raise DataError("no records")
    columns = dict(zip(names, zip(*found, strict=True), strict=True))
    return {
        name: [plain_number(cell, separator) for cell in cells] if name in numeric else list(cells)
        for name, cells in columns.items()
    }


def check_same(
    path: Path, content: bytes, numeric: Sequence[str], *, block: int, separator: str = ","
) -> None:
    """Compare `read_table`, blocks of so many bytes, with the plain reading: bits, texts, errors."""
    path.write_bytes(content)
    with mock.patch.object(csv_file, "BLOCK", block):
        try:
            expected = plain_reading(content, numeric, separator)
        except DataError as error:
            with pytest.raises(DataError, match=re.escape(str(error))):
                read_table(path, numeric=numeric)
            return
        frame = read_table(path, numeric=numeric)
    assert frame.columns.tolist() == list(expected)
    for name, cells in expected.items():
        if name in numeric:
            # Bit for bit: NaN is one value, and -0.0 is not 0.0.
            found = frame[name].to_numpy()
            assert found.dtype == np.float64
            np.testing.assert_array_equal(np.isnan(found), np.isnan(cells))
            np.testing.assert_array_equal(
                np.nan_to_num(found, posinf=np.inf, neginf=-np.inf).view(np.uint64),
                np.nan_to_num(cells, posinf=np.inf, neginf=-np.inf).view(np.uint64),
            )
        else:
            assert frame[name].tolist() == cells
            # Text says the same number wherever it is asked for one.
            said = [plain_number(str(cell), separator) for cell in cells]
            np.testing.assert_array_equal(numbers(frame[name]), said)


CELL = st.one_of(
    st.sampled_from(NASTY),
    st.floats().map(repr),
    st.integers().map(str),
    st.decimals(allow_nan=False, allow_infinity=False).map(str),
    st.from_regex(r"[ +-]?[0-9_]{0,22}\.?[0-9]{0,22}([eE][+-]?[0-9]{0,3})? ?", fullmatch=True),
    st.from_regex(r"[ +-]?[0-9_]{0,9}[,.]?[0-9]{0,9}[,.]?([eE][+-]?[0-9]{0,3})?[ \t]?", fullmatch=True),
    st.text(alphabet=st.characters(exclude_characters='\r\n"', exclude_categories=["Cs"]), max_size=4),
)


@settings(max_examples=150, deadline=None)
@given(
    rows=st.lists(st.lists(CELL, min_size=3, max_size=3), min_size=1, max_size=8),
    numeric=st.sets(st.sampled_from("abc")),
    block=st.sampled_from([16, 2**18]),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    quoted=st.booleans(),
    separator=st.sampled_from([",", ";", "\t", "|"]),
)
@example(
    rows=[["-0", "-0 ", " -0"]], numeric={"a", "b", "c"}, block=2**18, end="\n", quoted=False, separator=","
)
@example(
    rows=[["", "", ""], ["1", "", ""]],
    numeric={"a", "b", "c"},
    block=2**18,
    end="\n",
    quoted=False,
    separator=",",
)
@example(
    rows=[["1,5", "-0,0", ",5"], ["1_0,5", "\u0663,\u0665", "1,5\t"]],
    numeric={"a", "b", "c"},
    block=2**18,
    end="\n",
    quoted=False,
    separator=";",
)
def test_cells_of_a_block_are_read_as_if_alone(
    rows: list[list[str]],
    numeric: set[str],
    block: int,
    end: str,
    quoted: bool,
    separator: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    mark = '"' if quoted else ""
    lines = [separator.join(mark + cell.replace(separator, "_") + mark for cell in row) for row in rows]
    content = end.join([separator.join("abc"), *lines, ""]).encode()
    path = tmp_path_factory.getbasetemp() / "block.csv"
    check_same(path, content, sorted(numeric), block=block, separator=separator)


def test_every_nasty_cell_beside_every_plain_one(tmp_path: Path) -> None:
    """In a column of numbers and one of text, among cells that can be read at once."""
    for cell in NASTY:
        rows = "".join(f"{k}.5,{k},{k}\n" for k in range(5))
        for odd in (f"{cell},1,x\n", f"1,{cell},x\n", f"1,1,{cell}\n", f"{cell},{cell},{cell}\n"):
            content = ("a,b,c\n" + rows + odd.replace("1,,", "1;,") + rows).encode()
            check_same(tmp_path / "t.csv", content, ["a", "b"], block=2**18)


@pytest.mark.parametrize("cell", NASTY)
def test_a_table_of_one_column_and_one_cell(cell: str, tmp_path: Path) -> None:
    check_same(tmp_path / "t.csv", b"a\n" + cell.replace(",", ";").encode(), ["a"], block=2**18)


PIECES = [
    b"1",
    b"2.5",
    b"",
    b",",
    b",",
    b",",
    b"\n",
    b"\n",
    b"\r\n",
    b"\r",
    b'"',
    b" ",
    b"x",
    b"\xe9",
    b"\xe2\x82",
    b"\0",
    b'"2"',
    b'"x,y"',
    b'"", ',
]


@settings(max_examples=400, deadline=None)
@given(
    pieces=st.lists(st.sampled_from(PIECES), max_size=40),
    width=st.sampled_from([1, 2]),
    numeric=st.sampled_from([["a"], ["b"], ["a", "b"], []]),
    block=st.sampled_from([4, 5, 7, 17, 2**18]),
    mark=st.booleans(),
)
def test_structures_of_all_kinds(
    pieces: list[bytes],
    width: int,
    numeric: list[str],
    block: int,
    mark: bool,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Blocks end anywhere: between the halves of an end of line, within quotes, within a letter."""
    content = (b"\xef\xbb\xbf" if mark else b"") + b"a,b"[: 2 * width - 1] + b"\n" + b"".join(pieces)
    check_same(tmp_path_factory.getbasetemp() / "structure.csv", content, numeric, block=block)


@settings(max_examples=100, deadline=None)
@given(
    cells=st.lists(
        st.one_of(
            st.text(alphabet="a\0\u00e9", max_size=9),
            st.builds(lambda n, end: "a" * n + end, st.integers(5, 40), st.sampled_from(["", "\0", "b"])),
        ),
        min_size=1,
        max_size=60,
    )
)
def test_texts_that_begin_alike_stay_apart(cells: list[str]) -> None:
    """Cells are compared by words; a table of one column has them all in one block."""
    found = read_lines("".join(f"{cell}\n" for cell in cells).encode(), [False])
    assert found is not None
    assert found[1][:, 0].tolist() == cells


def test_many_blocks_and_pieces(tmp_path: Path) -> None:
    rng = np.random.default_rng(20261123)
    third = rng.choice(["", "NA", "0x1", "-0", "1e400"], 3000)
    lines = [
        f"{a!r},{k},{c}" for k, (a, c) in enumerate(zip(rng.normal(size=3000).tolist(), third, strict=True))
    ]
    lines[1500] = '"1\n2","a,""b",3'
    lines[2000] = '4,c , "5"'
    with mock.patch.object(csv_file, "_PIECE", 100):
        check_same(tmp_path / "t.csv", "\n".join(["a,b,c", *lines]).encode(), ["a", "c"], block=1000)


def test_plain_lines_are_read_at_once_and_odd_ones_are_not() -> None:
    """Without this the comparison above may be one of the slow way with itself."""
    assert read_lines(b"1,2\n3,4\n", [True, True]) is not None
    assert read_lines(b"1,x\r\n,NA", [True, False]) is not None
    assert read_lines(b'"1", "x,y"\r\n  "",NA', [True, False]) is not None
    for odd in (
        b'1,2"\n',
        b'"1,2\n',
        b'1,"2" \n',
        b'1,""2"\n',
        b'1," 2"\n',
        b'"1\n2",3\n',
        b"1,2\n3\n",
        b"1,2\n\n3,4\n",
        b"1,2,3\n4\n",
        b"1\r2,3\n",
        b"1,2\n3,4,5,6\n",
    ):
        assert read_lines(odd, [True, True]) is None
    with mock.patch.object(csv_block, "numbers_of", side_effect=AssertionError("cell by cell")):
        found = read_lines(b"1,,-2.5e-3\n0x1,NA,-0\n", [True] * 3)
        assert found is not None
        np.testing.assert_array_equal(found[0], [[1, np.nan, -0.0025], [np.nan, np.nan, 0]])


def test_numbers_are_rounded_as_python_rounds_them() -> None:
    """Long mantissas, small exponents, and what lies half way between two floats: 40,000 of them."""
    rng = np.random.default_rng(20261123)
    digits = "".join(map(str, rng.integers(0, 10, 10**6)))
    starts, lengths = rng.integers(0, 10**6 - 60, 30_000).tolist(), rng.integers(1, 30, 30_000).tolist()
    powers = rng.integers(-340, 280, 30_000).tolist()
    some = [digits[start : start + length] for start, length in zip(starts, lengths, strict=True)]
    mantissas, shifts = rng.integers(2**52, 2**53, 3300).tolist(), rng.integers(1, 900, 3300).tolist()
    cells = [
        *(f"{int(text)}.{text[::-1]}" for text in some[:10_000]),
        *(f"-{int(text)}e{power}" for text, power in zip(some[10_000:], powers[10_000:], strict=True)),
        *(
            repr(value * 10.0**power)
            for value, power in zip(rng.random(10_000).tolist(), powers, strict=False)
        ),
        # Exactly half way between neighbours, and one below and above.
        *(
            str((2 * m + 1) * 2**e + more)
            for m, e in zip(mantissas, shifts, strict=True)
            for more in (-1, 0, 1)
        ),
    ]
    found = read_lines("\n".join(cells).encode(), [True])
    assert found is not None
    assert found[0].tobytes() == np.array([float(cell) for cell in cells]).tobytes()


def test_what_a_frame_holds(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,c\n1,x,2\n3,,4\n")
    frame = read_table(tmp_path / "t.csv", numeric=["a", "c"])
    assert frame.columns.tolist() == ["a", "b", "c"]
    assert [str(kind) for kind in frame.dtypes] == ["float64", "object", "float64"]
    pd.testing.assert_frame_equal(frame[["a", "c"]], pd.DataFrame({"a": [1.0, 3.0], "c": [2.0, 4.0]}))
