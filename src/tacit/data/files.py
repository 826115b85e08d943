"""Tables from files: text as it stands, one structure for all rows, and no types that are guessed."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pandas as pd

from tacit.data.csv_file import csv_frame
from tacit.data.kinds import PARQUET, check_table_file
from tacit.errors import DataError, install_extra

__all__ = ["read_table"]

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


def read_table(
    path: Path | str, *, numeric: Collection[str] = (), may_be_empty: bool = False
) -> pd.DataFrame:
    """Read a table from a CSV or Parquet file.

    No column of a CSV is looked at as a whole: a cell is its text, without blanks in front, whatever the
    other cells are, and bytes that are not UTF-8 are U+FFFD in their cell. A Parquet file has a schema, which
    its columns keep. A cell may be as long as memory allows, up to 2^31 - 1 characters of a CSV.

    Args:
        path: A `.csv` or `.tsv` file (UTF-8, or UTF-16 with a byte order mark; one header line), packed
            with gzip where it ends in `.gz`, or a `.parquet` file (needs the extra `tacit[parquet]`). Cells
            stand between commas, semicolons, tabs or bars, whichever the header has most, and in a `.tsv`
            between tabs; double quotes stand around a cell that holds one of these. Where they are not
            commas, a cell with one comma and no point is a number with a decimal comma.
        numeric: Columns of a CSV to read as numbers at once, which takes less memory: float64, and NaN for a
            cell that is missing or no number. Names of other columns do no harm.
        may_be_empty: Whether a header without records will do, of a log that nothing was written to yet.

    Returns:
        The table, at least one row (unless it may be empty) and one column; nothing is encoded or filled in.
        Lines without any cell are left out; in a table of one column they are cells without text.

    Raises:
        DataError: The file is missing, empty, of another kind, or pyarrow is not installed; or its structure
            is broken: a header that is not UTF-8, quotes that do not close, two columns of one name, or a
            line with more or fewer fields than the header. The message gives the line and quotes no cell.
    """
    path = Path(path)
    check_table_file(path)
    frame = _read_parquet(path) if path.suffix.lower() == PARQUET else csv_frame(path, numeric)
    if frame.empty and not (may_be_empty and len(frame.columns)):
        raise DataError(f"{path} holds no records.")
    return frame


def _read_parquet(path: Path) -> pd.DataFrame:
    """Return a Parquet file as a frame with the types of its schema."""
    if importlib.util.find_spec("pyarrow") is None:
        raise DataError(
            f"reading {path} needs pyarrow; {install_extra('parquet')} installs it. Or give a CSV."
        )
    arrow: Any = importlib.import_module("pyarrow")
    parquet: Any = importlib.import_module("pyarrow.parquet")
    with _damage_said(path):
        file = parquet.ParquetFile(path, pre_buffer=False)
    columns: dict[str, pd.Series[Any]] = {}
    with file:
        names: list[str] = file.schema_arrow.names
        index = (file.schema_arrow.pandas_metadata or {}).get("index_columns", ())
        # One at a time: read together they would all stay in memory beside the frame.
        for name in names:
            if names.count(name) > 1:
                raise DataError(f"{path} has two columns of the same name, {name!r}.")
            if name not in index:
                with _damage_said(path):
                    column = file.read([name]).column(name)
                columns[name] = _series(column, name, arrow)
    return pd.DataFrame(columns, copy=False)


@contextmanager
def _damage_said(path: Path) -> Iterator[None]:
    """Refuse a file that pyarrow does not read."""
    try:
        yield
    except (ValueError, OSError, NotImplementedError):  # pyarrow's errors derive from these
        raise DataError(
            f"{path} cannot be read as Parquet: it is damaged, or of a kind that pyarrow does not know; "
            "write it again, or give a CSV."
        ) from None


def _series(column: Any, name: str, arrow: Any) -> pd.Series[Any]:
    """Return a column of Arrow as one of pandas, of the type of its schema."""
    table = arrow.table({name: _decoded(column, arrow)})
    found: pd.Series[Any] = table.to_pandas(types_mapper=_pandas_type)[name]
    return found


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
