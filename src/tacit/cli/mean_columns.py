"""What `tacit mean` reads: named columns of tables, their bounds, and whose the rows are, all checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tacit.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from tacit.data import Column, TableFiles
    from tacit.numerics import Array

__all__ = ["check_blanks", "described_columns", "read_columns", "told_apart", "units_of"]


def described_columns(tables: TableFiles) -> dict[str, Column]:
    """Return what is publicly known of the columns, the label among them."""
    from tacit.data import Categorical, Label, LabelBounds, Numeric, Unbounded

    spec = tables.described()
    label = spec.label
    if label is None or label.column is None:
        return dict(spec.columns)
    known: Column = Unbounded()
    if isinstance(label, Label):
        known = Categorical(categories=label.classes)
    elif isinstance(label, LabelBounds):
        known = Numeric(lower=label.lower, upper=label.upper)
    return {label.column: known, **spec.columns}


def read_columns(
    tables: TableFiles,
    *,
    columns: list[str],
    lower: list[float],
    upper: list[float],
    described: Mapping[str, Column],
    person: str | None,
) -> tuple[list[str], Array, Array | None, list[int]]:
    """Return names and values of columns, whose the rows are, and how many each table has, all checked."""
    import numpy as np

    from tacit.data import Date, read_table
    from tacit.data.cells import together
    from tacit.data.encoding import check_columns
    from tacit.data.tables import person_ids

    perhaps = {part.strip() for given in columns for part in [given, *given.split(",")]}
    dates = {name for name, column in described.items() if isinstance(column, Date)}
    # Ids must keep all their digits.
    frames = [read_table(file, numeric=perhaps - dates - {person}) for file in tables.files]
    present = {str(name) for name in frames[0].columns}
    names = [name for given in columns for name in _split(given, present)]
    for file, frame in zip(tables.files, frames, strict=True):
        with _file_named(file if len(frames) > 1 else None):
            check_columns(frame, names, role="columns")
            check_columns(frame, [] if person is None else [person], role="person")
    if person in names:
        raise ParameterError(f"person must be a column without a mean, got {person!r} in --columns too.")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ParameterError(f"columns must be different ones, got {twice[0]!r} more than once.")
    for what, bounds in (("lower", lower), ("upper", upper)):
        if len(bounds) != len(names):
            raise ParameterError(
                f"{what} must give one bound for each of the {len(names)} columns, got {len(bounds)}."
            )
    for name, low, high in zip(names, lower, upper, strict=True):
        if not low < high:
            raise ParameterError(f"lower must be below upper, got {low!r} and {high!r} for column {name!r}.")
        _check_numeric(described.get(name), name)
    values = [
        np.concatenate([_numbers(frame[name], described.get(name), name) for frame in frames])
        for name in names
    ]
    ids = None if person is None else person_ids(together([frame[person] for frame in frames]))
    return names, np.column_stack(values), ids, list(map(len, frames))


def told_apart(persons: Array, rows: list[int]) -> Array:
    """Return ids of persons that differ from table to table: each table bounds its own rows of a person."""
    import numpy as np

    whose = np.repeat(np.arange(len(rows)), rows)
    return np.array([f"{k} {one}" for k, one in zip(whose, persons, strict=True)], dtype=object)


def units_of(persons: Array | None, rows: list[int], *, apart: bool) -> list[int]:
    """Return the number of units of each table where they stay apart, else that of all of them together."""
    import numpy as np

    parts = [sum(rows)] if not apart else rows
    if persons is None:
        return parts
    return [len({*part.tolist()}) for part in np.split(persons, np.cumsum(parts[:-1]))]


@contextmanager
def _file_named(file: Path | None) -> Iterator[None]:
    """Say which of several files an error of the block is about."""
    try:
        yield
    except DataError as error:
        raise error if file is None else DataError(f"{file}: {error}") from error


def _split(given: str, present: set[str]) -> list[str]:
    """Return the names in one value: commas separate, unless a column has them in its name."""
    if given in present or "," not in given:
        return [given]
    return [part.strip() for part in given.split(",") if part.strip()]


def _check_numeric(described: Column | None, name: str) -> None:
    """Refuse a column that is not numeric by its description: its mean would be the middle of the bounds."""
    import numpy as np

    from tacit.data import Categorical, Ignore
    from tacit.data.cells import numbers_of

    if isinstance(described, Categorical) and np.isnan(numbers_of(described.categories)).any():
        raise DataError(f"column {name!r} is not numeric by its description; its mean cannot be estimated.")
    if isinstance(described, Ignore):
        raise DataError(
            f"column {name!r} is ignored by its description, as ids and text are; if it holds numbers, write "
            'kind = "numeric" with its bounds there.'
        )


def _numbers(values: pd.Series, described: Column | None, name: str) -> Array:
    """Return a column as numbers, NaN where a cell is missing or none; whether there are any is private."""
    from tacit.data import Date, Numeric
    from tacit.data.encoding import read_measures, read_numbers

    if isinstance(described, Numeric | Date):
        return read_measures(values, described, column=name)
    return read_numbers(values, column=name)


def check_blanks(
    described: Mapping[str, Column], names: list[str], lower: list[float], upper: list[float]
) -> None:
    """Refuse cells that count as something when they are blank: zero-out puts a blank unit to the middle."""
    from tacit.data import Date, Numeric

    for name, low, high in zip(names, lower, upper, strict=True):
        column = described.get(name)
        if not isinstance(column, Numeric | Date) or isinstance(column.missing, str):
            continue
        if column.missing != (middle := low / 2 + high / 2):
            raise ParameterError(
                f"neighbours must be replace-one for column {name!r}, of which the description counts a "
                f"missing cell as {column.missing!r}, got 'zero-out': whoever is blanked out must count as "
                f"the middle of the bounds, {middle!r}."
            )
