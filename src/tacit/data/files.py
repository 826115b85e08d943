"""Tables from files: text as it stands, one structure for all rows, and no types that are guessed."""

from __future__ import annotations

import csv
import importlib
import importlib.util
import itertools
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.cells import numbers_of
from tacit.data.kinds import check_table_file
from tacit.errors import DataError

__all__ = ["read_table"]

_CHUNK = 5000
"""So many records are held as lists of text at once."""
_LONGEST = 2**31 - 1
"""Characters of a cell. The reader's own limit, 131,072, would refuse a table for one long cell of it."""
_REPLACED = "\ufffd"
"""What decoding puts where bytes are no UTF-8."""
_NULLABLE: Final = {
    "bool": pd.BooleanDtype(),
    "int8": pd.Int8Dtype(),
    "int16": pd.Int16Dtype(),
    "int32": pd.Int32Dtype(),
    "int64": pd.Int64Dtype(),
    "uint8": pd.UInt8Dtype(),
    "uint16": pd.UInt16Dtype(),
    "uint32": pd.UInt32Dtype(),
    "uint64": pd.UInt64Dtype(),
    "float": pd.Float32Dtype(),
    "double": pd.Float64Dtype(),
}
"""By Arrow's name. By default one null would make floats of whole numbers, and other ids of 19-digit ones."""

_TEXT = frozenset({"string", "large_string", "string_view"})


class _Rows(Iterator[list[str]], Protocol):
    """What `csv.reader` returns."""

    line_num: int


def read_table(path: Path | str, *, numeric: Collection[str] = ()) -> pd.DataFrame:
    """Read a table from a CSV or Parquet file.

    No column of a CSV is looked at as a whole: a cell is its text, without blanks in front, whatever the
    other cells are, and bytes that are no UTF-8 are U+FFFD in their cell. A Parquet file has a schema, which
    its columns keep. A cell may be as long as memory allows, up to 2^31 - 1 characters of a CSV.

    Args:
        path: A `.csv` file (UTF-8, commas, double quotes, one header line) or a `.parquet` file (needs the
            extra `tacit[parquet]`).
        numeric: Columns of a CSV to read as numbers at once, which takes less memory: float64, and NaN for a
            cell that is missing or no number. Names of other columns do no harm.

    Returns:
        The table, at least one row and one column; nothing is encoded or filled in. Lines without any cell
        are left out; in a table of one column they are cells without text.

    Raises:
        DataError: The file is missing, empty, of another kind, or pyarrow is not installed; or its structure
            is broken: a header that is not UTF-8, quotes that do not close, two columns of one name, or a
            line with more or fewer fields than the header. The message gives the line and quotes no cell.
    """
    path = Path(path)
    check_table_file(path)
    frame = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path, frozenset(numeric))
    if frame.empty:
        raise DataError(f"{path} holds no records.")
    return frame


def _read_csv(path: Path, numeric: Collection[str]) -> pd.DataFrame:
    """Return a CSV file as a frame of text, the columns named in `numeric` as numbers."""
    try:
        # Byte order marks are no part of the first name; csv wants to see the ends of lines itself. A wrong
        # byte is one cell's, and no reason to refuse all others.
        with path.open(encoding="utf-8-sig", errors="replace", newline="") as stream, _long_cells():
            rows = csv.reader(stream, skipinitialspace=True, strict=True)
            names = _header(path, rows)
            columns: list[list[NDArray[Any]]] = [[] for _ in names]
            for chunk in _chunks(path, rows, len(names)):
                for name, column, cells in zip(names, columns, zip(*chunk, strict=True), strict=True):
                    column.append(numbers_of(cells) if name in numeric else np.array(cells, dtype=object))
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    found = [np.concatenate(column) if column else np.empty(0, dtype=object) for column in columns]
    series = [
        pd.Series(cells, name=name, dtype=cells.dtype) for name, cells in zip(names, found, strict=True)
    ]
    return pd.concat(series, axis=1)


def _header(path: Path, rows: Iterator[list[str]]) -> list[str]:
    """Return the names of the columns; one without a name is called as pandas calls it."""
    try:
        given = next((row for row in rows if any(cell.strip() for cell in row)), None)
    except csv.Error:
        raise _broken(path, 1) from None
    if given is None:
        raise DataError(f"{path} is empty; a header line and at least one record are needed.")
    names = [name.strip() or f"Unnamed: {k}" for k, name in enumerate(given)]
    if any(_REPLACED in name for name in names):
        raise DataError(f"{path}: the header is not UTF-8.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError(f"{path} has two columns of the same name, {twice!r}.")
    return names


def _chunks(path: Path, rows: _Rows, width: int) -> Iterator[list[list[str]]]:
    """Return the records some thousands at a time, each of as many fields as the header has."""
    ends = [rows.line_num]
    while True:
        chunk: list[list[str]] = []
        try:
            for row in itertools.islice(rows, _CHUNK):
                chunk.append(row)
                ends.append(rows.line_num)
        except csv.Error:
            raise _broken(path, ends[-1] + 1) from None
        if not chunk:
            return
        # All at once for speed; which line it is, is looked up only if one differs.
        if set(map(len, chunk)) != {width}:
            chunk = _records(path, chunk, ends, width)
        if chunk:
            yield chunk
        del ends[:-1]


def _records(path: Path, rows: list[list[str]], ends: list[int], width: int) -> list[list[str]]:
    """Return the rows that are records; `ends` is the last line of each, after that of the row before."""
    found = []
    for row, before in zip(rows, ends, strict=False):
        if len(row) == width:
            found.append(row)
        elif not row and width == 1:
            found.append([""])
        elif len(row) > 1 or any(cell.strip() for cell in row):
            raise DataError(
                f"{path}, line {before + 1}: {len(row)} fields, the header has {width}; text that holds a "
                "comma must stand in double quotes, and a missing cell is an empty one."
            )
    return found


def _broken(path: Path, line: int) -> DataError:
    """Return the error for quotes that do not fit; the reader's own message would not say where."""
    return DataError(
        f"{path}, line {line}: a double quote that is not closed or is followed by other text than a comma, "
        f"or a field of more than {csv.field_size_limit():,} characters."
    )


@contextmanager
def _long_cells() -> Iterator[None]:
    """Read cells of any length; the limit is one of the whole process."""
    before = csv.field_size_limit(_LONGEST)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read_parquet(path: Path) -> pd.DataFrame:
    """Return a Parquet file as a frame with the types of its schema."""
    if importlib.util.find_spec("pyarrow") is None:
        raise DataError(
            f"reading {path} needs pyarrow; install it with the extra tacit[parquet], or give a CSV."
        )
    arrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
    except (ValueError, OSError, NotImplementedError):  # pyarrow's errors derive from these
        raise DataError(
            f"{path} cannot be read as Parquet: it is damaged, or of a kind that pyarrow does not know; "
            "write it again, or give a CSV."
        ) from None
    noted = table.schema.pandas_metadata or {}
    index = {name for name in noted.get("index_columns", ()) if isinstance(name, str)}
    table = table.drop_columns([name for name in table.column_names if name in index])
    for k, field in enumerate(table.schema):
        table = table.set_column(k, field.name, _decoded(table.column(k), arrow))
    frame: pd.DataFrame = table.replace_schema_metadata(None).to_pandas(types_mapper=_pandas_type)
    return frame


def _decoded(column: Any, arrow: Any) -> Any:
    """Return a column of Arrow without a dictionary, and its text as UTF-8."""
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if str(column.type) not in _TEXT:
        return column
    # Arrow looks at text only when it is used, and then fails for the whole column.
    found = column.cast(arrow.large_binary())
    try:
        return found.cast(arrow.large_string())
    except ValueError:
        cells = (None if cell is None else cell.decode(errors="replace") for cell in found.to_pylist())
        return arrow.chunked_array([arrow.array(cells, arrow.large_string())])


def _pandas_type(kind: Any) -> Any:
    """Return the type of pandas for one of Arrow; None leaves it to Arrow.

    Types in which Arrow holds what Python does not, such as days after the year 9999, stay Arrow's:
    conversion of the whole column would fail for one cell.
    """
    types: Any = importlib.import_module("pyarrow").types
    if types.is_large_string(kind) or types.is_temporal(kind) or types.is_nested(kind):
        return pd.ArrowDtype(kind)
    return _NULLABLE.get(str(kind))
