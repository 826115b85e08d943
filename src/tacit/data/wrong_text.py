"""Text of another encoding in the cells of a table: where it is, what it may be, and how it becomes UTF-8.

This is for whoever may see the records; reading a table never depends on what its cells hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pandas as pd

from tacit.data.cells import texts
from tacit.data.columns_spec import ColumnsSpec, Ignore
from tacit.data.csv_form import open_csv, recode
from tacit.data.kinds import PARQUET
from tacit.data.problems import TableProblem
from tacit.errors import printable

__all__ = ["find_wrong_text"]

_REPLACED: Final = "\ufffd"
_KNOWN: Final = ("WINDOWS-1252", "CP850")
"""Of a byte each, as `iconv` calls them; the first that has all bytes of a file fits: it has gaps, and the
old one of DOS none. Latin-1 is the first one, for all that is printed."""


def find_wrong_text(path: Path, frame: pd.DataFrame, spec: ColumnsSpec) -> Iterator[TableProblem]:
    """Say which columns of a file hold text that is not UTF-8, and how to make it so; one problem at most.

    Args:
        path: The file.
        frame: What `read_table` made of it.
        spec: The description; columns that it ignores matter to nobody.
    """
    parquet = path.suffix.lower() == PARQUET
    lines = [] if parquet else _odd_lines(path)
    if not (parquet or lines):
        return
    used = [name for name in frame.columns if not isinstance(spec.columns.get(name), Ignore)]
    counts = {name: _count(frame[name]) for name in used}
    where = ", ".join(f"{printable(str(name))!r} ({count:,})" for name, count in counts.items() if count)
    if not where:
        return
    yield TableProblem(
        column=str(path),
        what=f"cells of {where} hold bytes that are not UTF-8, which are read as U+FFFD and so are other "
        f"text than what was meant; {_cure(path, lines)}.",
    )


def _odd_lines(path: Path) -> list[bytes]:
    """Return the lines that are not ASCII where one of them is not UTF-8, or has the mark of a loss."""
    with open_csv(path) as stream:
        found = [line for line in stream if not line.isascii()]
    return found if any(_REPLACED in line.decode(errors="replace") for line in found) else []


def _count(values: pd.Series) -> int:
    """Return how many cells hold what decoding puts where bytes are not UTF-8."""
    if pd.api.types.is_numeric_dtype(values):
        return 0
    return sum(_REPLACED in text for text in texts(values))


def _cure(path: Path, lines: list[bytes]) -> str:
    """Say what would fit the lines of a file that are not ASCII, and what to do."""
    if not lines:
        return "write it again, with text as UTF-8"
    wrong = [line for line in lines if not _fits(line, "utf-8")]
    if not wrong:
        return "they were lost when the file was written: export the table again, as UTF-8"
    if len(wrong) < len(lines):
        return (
            f"{len(lines) - len(wrong):,} other lines are UTF-8, so this file was put together from several: "
            "make each of them UTF-8 before"
        )
    name = next(name for name in _KNOWN if all(_fits(line, name) for line in lines))
    return f"{name} would fit: {recode(name, str(path))}, and look at a name with an accent"


def _fits(line: bytes, encoding: str) -> bool:
    """Return whether a line has text in an encoding."""
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True
