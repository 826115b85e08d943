"""What kind of file lies somewhere: a file that is of another kind than it should be is refused with a cure.

Only what is public is looked at: the name of a file, its first bytes, and the header of a table. What a cell
holds is not a reason to refuse a table.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tacit.data.csv_form import UTF16, recode
from tacit.errors import DataError

__all__ = ["ENDINGS", "PARQUET", "check_table_file", "is_table_name", "table_name", "utf8_text"]

PARQUET: Final = ".parquet"
ENDINGS: Final = (".csv", ".csv.gz", ".tsv", ".tsv.gz", PARQUET)
"""What the name of a table may end in, in any case."""
_TO_CSV: Final = "export it as a CSV in UTF-8"
_SPREADSHEET: Final = f"is a spreadsheet: open it and {_TO_CSV}"
_PACKED: Final = "is packed: unpack it first, or pack a .csv with gzip"
_OTHERS: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".numbers"), _SPREADSHEET),
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst", ".7z"), _PACKED),
    **dict.fromkeys((".tab", ".txt", ".dat"), "is text without the ending .csv: if it has a header and "
    "commas, semicolons, tabs or bars between its cells, rename it to .csv"),
}  # fmt: skip


def is_table_name(path: Path) -> bool:
    """Tell whether a name has an ending of a table."""
    return path.name.lower().endswith(ENDINGS)


def table_name(path: Path) -> str:
    """Return the name of a table without its endings.

    Example:
        >>> [table_name(Path(name)) for name in ("in/ward-a.csv.gz", "ward.b.parquet", "other")]
        ['ward-a', 'ward.b', 'other']
    """
    packed = path.suffix.lower() == ".gz" and is_table_name(path)
    return (path.with_suffix("") if packed else path).stem


def check_table_file(path: Path) -> None:
    """Refuse a file that has no ending of a table, is not there, or is Parquet by its name only.

    Args:
        path: Of the table.

    Raises:
        DataError: There is no such file; another ending than `ENDINGS`; a Parquet file that is none, or was
            cut short. The message says what to do.
    """
    kind = path.suffix.lower()
    if path.is_dir():
        raise DataError(f"{path} is a folder; name a table in it, which ends in {_endings()}.")
    if not is_table_name(path):
        why = _OTHERS.get(kind, f"has the ending {path.suffix!r}: {_TO_CSV}, or write it as Parquet")
        raise DataError(f"a table must be a file that ends in {_endings()}; {path} {why}.")
    if not path.is_file():
        raise DataError(f"{path} is not there, or is not a file.")
    if kind == PARQUET:
        _check_parquet(path)


def utf8_text(data: bytes, source: str) -> str:
    """Return text that a person wrote; a byte order mark in front is none of it.

    Args:
        data: What a file holds.
        source: Its name, for the message.

    Raises:
        DataError: Not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        name = "UTF-16" if data.startswith(UTF16) else "LATIN1"
        line = data[: error.start].count(b"\n") + 1
        found = "UTF-16" if name == "UTF-16" else "not UTF-8"
        raise DataError(f"{source}, line {line}: the text is {found}; {recode(name, source)}.") from None


def _endings() -> str:
    """Name the endings of tables."""
    return f"{', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}"


def _check_parquet(path: Path) -> None:
    """Refuse what is no whole Parquet file."""
    mark = b"PAR1"
    try:
        with path.open("rb") as file:
            start = file.read(2 * len(mark))
            file.seek(max(0, path.stat().st_size - len(mark)))
            end = file.read()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if not start:
        raise DataError(f"{path} is empty; write or copy it again.")
    if not start.startswith(mark):
        raise DataError(
            f"{path} is no Parquet file, whatever its name says; if it is a CSV, rename it to .csv."
        )
    if end != mark or len(start) < 2 * len(mark):
        raise DataError(f"{path} is only a part of a Parquet file; write or copy it again.")
