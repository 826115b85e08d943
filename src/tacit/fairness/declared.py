"""Groups of a public list: the other values are no group, and nobody is told how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from tacit.data.cells import positions, texts
from tacit.errors import DataError, ParameterError
from tacit.fairness.groups import Groups
from tacit.numerics import IntArray

__all__ = ["declared_groups"]


def declared_groups(sensitive: Any, names: Sequence[Any]) -> Groups:
    """Return the group of each record, as private training sees it.

    Cells are compared as text, each by itself: what stands in one record changes the group of no other, no
    error, and no type. What is missing, or not on the list, is no group.

    Args:
        sensitive: Shape (n,), or (n, columns): an array, a series or a frame.
        names: All groups there may be, a public list of two or more: values, or tuples of one value per
            column.

    Raises:
        DataError: Another shape.
        ParameterError: Fewer than two groups, one of them twice, or tuples of another length.

    Example:
        >>> declared_groups(["f", "m", None, "x"], ["f", "m"]).codes.tolist()
        [0, 1, -1, -1]
    """
    width = max((len(each) for each in names if isinstance(each, tuple | list)), default=1)
    columns = _columns(sensitive, width)
    wanted = [name if len(columns) > 1 else (name,) for name in names]
    if any(not isinstance(name, tuple | list) or len(name) != len(columns) for name in wanted):
        raise ParameterError(f"groups must be tuples of {len(columns)} values each, one per column.")
    said = [tuple(str(part).strip() for part in name) for name in wanted]
    if len(said) < 2 or len(set(said)) < len(said):
        raise ParameterError(f"groups must be two or more, each once, got {len(said)}.")
    places, sizes = [], []
    for column, cells in enumerate(columns):
        values = list(dict.fromkeys(name[column] for name in said))
        places.append(positions(texts(cells), values))
        sizes.append({value: place for place, value in enumerate(values)})
    flat = _flat(places, [len(each) for each in sizes])
    of = np.full(int(np.prod([len(each) for each in sizes])) + 1, -1, dtype=np.int64)
    for place, name in enumerate(said):
        codes = [np.array([each[part]]) for each, part in zip(sizes, name, strict=True)]
        of[_flat(codes, [len(each) for each in sizes])[0]] = place
    return Groups(of[flat], tuple(names))


def _flat(places: Sequence[IntArray], sizes: Sequence[int]) -> IntArray:
    """Return one code of several columns, -1 where one of them has none."""
    code, known = np.zeros(len(places[0]), dtype=np.int64), np.ones(len(places[0]), dtype=bool)
    for place, size in zip(places, sizes, strict=True):
        code, known = code * size + place, known & (place >= 0)
    return np.where(known, code, -1)


def _row(given: Any, width: int) -> list[Any] | None:
    """Return the cells of one record of a list; None where there are more or fewer."""
    listed = isinstance(given, list | tuple) or (isinstance(given, np.ndarray) and given.ndim == 1)
    cells = list(given) if listed else [given]
    return cells if len(cells) == width and listed is (width > 1) else None


def _columns(sensitive: Any, width: int) -> list[pd.Series]:
    """Return sensitive columns, of which every cell keeps its own type.

    Args:
        sensitive: As it came.
        width: How many columns the declared groups have: of a list, a record with another number of cells
            is of no group, whatever stands in others.
    """
    if isinstance(sensitive, pd.Series):
        return [sensitive.reset_index(drop=True)]
    if isinstance(sensitive, pd.DataFrame):
        return [sensitive.iloc[:, place].reset_index(drop=True) for place in range(sensitive.shape[1])]
    if isinstance(sensitive, list | tuple) and sensitive:
        cells = [_row(each, width) for each in sensitive]
        if not any(cells):
            raise DataError(f"sensitive_features must have {width} columns, as each of `groups` has.")
        return [
            pd.Series([None if row is None else row[place] for row in cells], dtype=object)
            for place in range(width)
        ]
    table = np.asarray(sensitive)
    if table.ndim not in (1, 2) or table.size == 0:
        raise DataError(f"sensitive_features must have shape (n,) or (n, columns), got {table.shape}.")
    rows = table.reshape(len(table), -1)
    return [pd.Series(rows[:, place]) for place in range(rows.shape[1])]
