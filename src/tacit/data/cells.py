"""One cell at a time: what it says as text and as a number, whatever stands in the other cells.

A guarantee compares two tables that differ in one row. It holds only if every other row is encoded the same
in both, so nothing here looks at a column as a whole: no type is guessed, no cell changes what another one
means. Functions of columns give what the functions of cells give, cell by cell.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.columns_spec import Value
from tacit.errors import DataError

__all__ = [
    "MISSING",
    "Texts",
    "distinct_texts",
    "number_of",
    "numbers",
    "numbers_by_text",
    "numbers_of",
    "plain",
    "positions",
    "text_of",
    "texts",
    "together",
    "with_commas",
]

Texts = NDArray[np.object_]
"""Text by cell, shape (n,). Objects: with a fixed width, one long cell would make the whole array wide."""

MISSING = frozenset(
    {
        "",
        "#N/A",
        "#NA",
        "-NaN",
        "-nan",
        "<NA>",
        "N/A",
        "NA",
        "NULL",
        "NaN",
        "NaT",
        "None",
        "n/a",
        "nan",
        "null",
    }
)
"""Texts that are nobody's category, class or silo where these are read off the data."""

_WHOLE = re.compile(r"([+-]?[0-9]+)\.0*")
_TRUTH = {"true": "True", "false": "False"}
_NUMBER_OF_TRUTH = {"true": 1.0, "false": 0.0}


class _WithComma(str):
    """Text with one comma and no point, of a file that separates its cells by something else.

    As text it is itself; as a number it is read with a decimal point.
    """

    __slots__ = ()

    def __float__(self) -> float:
        return float(self.replace(",", "."))


def with_commas(cells: Iterable[str]) -> list[str]:
    """Return text of which each cell with exactly one comma and no point is a number with a decimal comma.

    Example:
        >>> [number_of(cell) for cell in with_commas(["1,5", "1.5", "1,234,567", "1.234,5", "Porto, PT"])]
        [1.5, 1.5, nan, nan, nan]
    """
    return [_WithComma(cell) if cell.count(",") == 1 and "." not in cell else cell for cell in cells]


def text_of(cell: object) -> str:
    """Return what a cell says as text, without blanks around it; "" where it is missing.

    Text is itself. Whole floats lose their ".0", so that 1.0 and 1 are one category; other numbers are
    written as Python writes them, in their own precision, and truth values as True and False.

    Example:
        >>> [text_of(cell) for cell in (" 01 ", 1, 1.0, 1.5, True, None, float("nan"))]
        ['01', '1', '1', '1.5', 'True', '', '']
    """
    if isinstance(cell, str):
        return cell.strip()
    if isinstance(cell, float | np.floating):
        # Adding 0 turns -0.0 into 0.0, which is the same number.
        return "" if math.isnan(cell) else str(cell + 0).removesuffix(".0")
    if isinstance(cell, bytes):
        return cell.decode(errors="replace").strip()
    # Days are written as days, whatever hours other cells have.
    missing = cell is None or cell is pd.NA or cell is pd.NaT
    try:
        return "" if missing else str(cell).strip().removesuffix(" 00:00:00")
    except (ValueError, OverflowError, NotImplementedError):
        # Python writes no whole number of more than 4300 digits, and pandas no moment after the year 9999 in
        # the time of a place.
        return ""


def number_of(cell: object) -> float:
    """Return a cell as a number; NaN where it is missing or none.

    Text is read as Python's `float` reads it, and true and false, in any case, are 1 and 0.

    Example:
        >>> [number_of(cell) for cell in (" 1.50", "1e3", 7, True, "FALSE", "12 kg", None)]
        [1.5, 1000.0, 7.0, 1.0, 0.0, nan, nan]
    """
    if isinstance(cell, str):
        truth = _NUMBER_OF_TRUTH.get(cell.strip().lower())
        if truth is not None:
            return truth
    try:
        return float(cell)  # type: ignore[arg-type]  # what has no number raises
    except OverflowError:
        # Whole numbers beyond the floats: text says infinity for these.
        return math.inf if cell > 0 else -math.inf  # type: ignore[operator]
    except (TypeError, ValueError):
        return math.nan


def plain(text: str) -> str:
    """Return the form that numbers and truth values are compared in where the text itself is not described.

    Example:
        >>> [plain(text) for text in ("2.0", "02.00", "TRUE", "2.50")]
        ['2', '02', 'True', '2.50']
    """
    whole = _WHOLE.fullmatch(text)
    return whole[1] if whole else _TRUTH.get(text.lower(), text)


def texts(values: pd.Series[Any]) -> Texts:
    """Return `text_of` every cell, shape (n,); fast where each of them is text."""
    cells = _cells(values)
    try:
        return np.array(list(map(str.strip, cells)), dtype=object)
    except TypeError:
        return np.array([text_of(cell) for cell in cells], dtype=object)


def distinct_texts(values: pd.Series[Any]) -> tuple[Texts, NDArray[np.intp]]:
    """Return texts of cells, and for every cell, shape (n,), which of them `text_of` it is.

    What is asked of a text is asked once then, however many cells have it. No text is left out; some may
    be there twice.

    Example:
        >>> found, which = distinct_texts(pd.Series(["b", "a", " b", "b"]))
        >>> found[which].tolist()
        ['b', 'a', 'b', 'b']
    """
    if pd.api.types.is_integer_dtype(values) or pd.api.types.is_bool_dtype(values):
        which, distinct = pd.factorize(values, use_na_sentinel=False)
        return texts(pd.Series(distinct)), which
    cells = _cells(values)
    # Equal cells of one type are the same text; objects may be a number and a truth value.
    said = str.strip if values.dtype == object else text_of
    order: dict[Any, int] = defaultdict(count().__next__)
    try:
        which = np.fromiter(map(order.__getitem__, cells), dtype=np.intp, count=len(cells))
        return np.array(list(map(said, order)), dtype=object), which
    except TypeError:
        return np.array([text_of(cell) for cell in cells], dtype=object), np.arange(len(cells))


def numbers(values: pd.Series[Any]) -> NDArray[np.float64]:
    """Return `number_of` every cell, shape (n,)."""
    if isinstance(values.dtype, np.dtype) and values.dtype.kind in "iufb":
        return np.asarray(values.to_numpy(dtype=np.float64))  # nothing is looked for that could be missing
    if pd.api.types.is_numeric_dtype(values):
        return np.asarray(values.to_numpy(dtype=np.float64, na_value=math.nan))
    return numbers_of(_cells(values))


def numbers_by_text(values: pd.Series[Any]) -> dict[str, float]:
    """Return every distinct text of a column, with the number that it says; NaN where it says none.

    Example:
        >>> numbers_by_text(pd.Series([" 1.50", "x", "1.50"]))
        {'1.50': 1.5, 'x': nan}
    """
    found = texts(values)
    # What is no text is the number that its text says; so are 0.1 of 32 bits and of 64 the same one.
    cells = values if values.dtype == object else found
    said = {text: cell if isinstance(cell, str) else text for text, cell in zip(found, cells, strict=True)}
    return dict(zip(said, numbers_of(list(said.values())).tolist(), strict=True))


def together(columns: Sequence[pd.Series[Any]]) -> pd.Series[Any]:
    """Return the cells of a column in several files, each as it stands in its own.

    One type for whole numbers and fractions, or text, would round the 19 digits of an id.
    """
    first = columns[0]
    if any(column.dtype != first.dtype for column in columns):
        columns = [pd.Series(_cells(column), dtype=object, name=column.name) for column in columns]
    return first if len(columns) == 1 else pd.concat(columns, ignore_index=True)


def numbers_of(cells: Sequence[object]) -> NDArray[np.float64]:
    """Return `number_of` every cell, shape (n,); fast where each of them is a number or text of one."""
    try:
        # The same function, without the exceptions to it: if none is raised, none was needed.
        return np.fromiter(map(float, cells), dtype=np.float64, count=len(cells))  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return np.fromiter(map(number_of, cells), dtype=np.float64, count=len(cells))


def positions(
    found: Texts, categories: Iterable[Value], merge: Mapping[str, Value] | None = None
) -> NDArray[np.int64]:
    """Return where every text stands in `categories`, -1 for any other text.

    A text that is described as it stands is that category; else its plain form is looked up.

    Args:
        found: Shape (n,), text without blanks around it.
        categories: Public, distinct as text.
        merge: Public: texts that stand for one of the categories.

    Example:
        >>> positions(texts(pd.Series(["01", "1", "1.0", "2"])), ["01", 1]).tolist()
        [0, 1, 1, -1]
    """
    exact = {str(category).strip(): k for k, category in enumerate(categories)}
    exact |= {old.strip(): exact[str(new).strip()] for old, new in (merge or {}).items()}
    near: dict[str, int] = {}
    for text, k in exact.items():
        near.setdefault(plain(text), k)
    codes = (exact[text] if text in exact else near.get(plain(text), -1) for text in found)
    return np.fromiter(codes, dtype=np.int64, count=len(found))


def _cells(values: pd.Series[Any]) -> list[Any]:
    """Return the cells of a column as objects; None for one that Python has no value for."""
    if isinstance(values.dtype, pd.ArrowDtype) and values.dtype.type in (list, dict):
        raise DataError(f"column {values.name!r} holds {values.dtype}; flatten it, or declare it as ignored.")
    kind = getattr(values.dtype, "numpy_dtype", values.dtype)  # of a nullable type
    if kind in (np.float16, np.float32):
        return list(values.to_numpy(dtype=kind, na_value=math.nan))  # as doubles they would have more digits
    try:
        return values.to_numpy(dtype=object).tolist()
    except (ValueError, OverflowError, NotImplementedError):
        # Such as a day after the year 9999. That cell is missing; all others are what they are without it.
        if len(values) == 1:
            return [None]
        half = len(values) // 2
        return _cells(values.iloc[:half]) + _cells(values.iloc[half:])
