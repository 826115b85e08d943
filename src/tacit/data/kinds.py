"""What kind of file lies somewhere: a file that is of another kind than it should be is refused with a cure.

Only what is public is looked at: the name of a file, its first bytes, and the header of a table. What a cell
holds is not a reason to refuse a table.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Final

from tacit.errors import DataError

__all__ = ["check_table_file", "utf8_text"]

_CSV, _PARQUET = ".csv", ".parquet"
_TO_CSV: Final = "export it as a CSV with commas, in UTF-8"
_SPREADSHEET: Final = f"is a spreadsheet: open it and {_TO_CSV}"
_PACKED: Final = "is packed: unpack it first"
_ENDINGS: Final = {
    **dict.fromkeys((".xlsx", ".xls", ".xlsm", ".ods", ".numbers"), _SPREADSHEET),
    **dict.fromkeys((".gz", ".zip", ".bz2", ".xz", ".zst", ".7z"), _PACKED),
    **dict.fromkeys((".tsv", ".tab", ".txt", ".dat"), "is text without the ending .csv: if it has commas "
    f"between its fields, rename it to .csv, else {_TO_CSV}"),
}  # fmt: skip
_STARTS: Final = (
    (b"PK\x03\x04", f"is a spreadsheet or another packed file, whatever its name says: {_TO_CSV}"),
    (b"\xd0\xcf\x11\xe0", f"is an old spreadsheet, whatever its name says: {_TO_CSV}"),
    (b"\x1f\x8b", "is packed with gzip, whatever its name says: unpack it first"),
    (b"PAR1", "is a Parquet file, whatever its name says: rename it to .parquet"),
    (b"SQLite format 3", f"is a data base, whatever its name says: {_TO_CSV}"),
)
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_SEPARATORS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}
_START: Final = 2**20
"""So many bytes are read to find a header."""


def check_table_file(path: Path) -> None:
    """Refuse a file that is not a table of the kind that its ending says, before any of it is used.

    Args:
        path: Of the table.

    Raises:
        DataError: There is no such file; another ending than .csv and .parquet; a spreadsheet, an archive or
            text in UTF-16 under one of these; a CSV whose header is not UTF-8, holds NUL bytes, or has other
            separators than commas; a Parquet file that was cut short. The message says what to do.
    """
    kind = path.suffix.lower()
    if path.is_dir():
        raise DataError(f"{path} is a folder; name the {_CSV} or {_PARQUET} file in it.")
    if kind not in (_CSV, _PARQUET):
        why = _ENDINGS.get(kind, f"has the ending {path.suffix!r}: {_TO_CSV}, or write it as Parquet")
        raise DataError(f"a table must be a {_CSV} or {_PARQUET} file; {path} {why}.")
    if not path.is_file():
        raise DataError(f"{path} is not there, or is not a file.")
    try:
        with path.open("rb") as file:
            start = file.read(_START)
            file.seek(max(0, path.stat().st_size - 4))
            end = file.read()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error
    if kind == _PARQUET:
        _check_parquet(path, start, end)
    else:
        _check_csv(path, start)


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
        name = "UTF-16" if data.startswith(_UTF16) else "LATIN1"
        line = data[: error.start].count(b"\n") + 1
        found = "UTF-16" if name == "UTF-16" else "not UTF-8"
        raise DataError(f"{source}, line {line}: the text is {found}; {_recode(name, source)}.") from None


def _check_parquet(path: Path, start: bytes, end: bytes) -> None:
    """Refuse what is no whole Parquet file."""
    mark = b"PAR1"
    if not start:
        raise DataError(f"{path} is empty; write or copy it again.")
    if not start.startswith(mark):
        raise DataError(
            f"{path} is no Parquet file, whatever its name says; if it is a CSV, rename it to .csv."
        )
    if end != mark or len(start) < 2 * len(mark):
        raise DataError(f"{path} is only a part of a Parquet file; write or copy it again.")


def _check_csv(path: Path, start: bytes) -> None:
    """Refuse what is no CSV, by its first bytes and its header."""
    for mark, why in _STARTS:
        if start.startswith(mark):
            raise DataError(f"{path} {why}.")
    lines = start.splitlines(keepends=True)
    header = next((line for line in lines if line.strip()), b"")
    if len(start) == _START and header is lines[-1]:
        return  # cut in the middle of a name, perhaps: that is for the reader of all of it
    if start.startswith(_UTF16) or (b"\0" in header and header.count(b"\0") * 3 > len(header)):
        raise DataError(f"{path} is text in UTF-16; {_recode('UTF-16', str(path))}.")
    if b"\0" in header:
        raise DataError(f"{path}: the header holds NUL bytes, which no text has; export the table again.")
    try:
        names = header.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: the header is not UTF-8; {_recode('LATIN1', str(path))}.") from None
    bare = re.sub(r'"[^"]*"', "", names)
    for separator, called in _SEPARATORS.items():
        if separator in bare and "," not in bare:
            raise DataError(
                f"{path}: the header has {called} between its fields; export the table with commas, and with "
                'points in numbers (a name that holds one of them must stand in double quotes: "a;b").'
            )


def _recode(name: str, source: str) -> str:
    """Say how text of another encoding becomes UTF-8."""
    return f"save it as UTF-8, for instance with `iconv -f {name} -t UTF-8 {shlex.quote(source)} > NEW`"
