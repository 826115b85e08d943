"""Tables from files, checked and encoded: the one door through which a party's own records come in.

Every file is encoded for itself, with one description for all of them, so that no file has a say in what the
cells of another one are.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.cells import MISSING, Texts, positions, texts
from tacit.data.columns_spec import (
    Categorical,
    ColumnsSpec,
    Label,
    LabelBounds,
    Numeric,
    Unbounded,
    Value,
)
from tacit.data.descriptions import Described, Task, complete
from tacit.data.encoding import Array, check_columns, encode_columns, encode_label
from tacit.data.files import read_table
from tacit.data.table_files import find_tables
from tacit.errors import DataError, ParameterError, PrivacyWarning, check_choice

__all__ = ["Table", "build_table", "load_table", "person_ids", "read_silo_names"]

_TASKS = ("classification", "regression")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Table:
    """A checked table: bounded features, an encoded label, and who holds which record.

    Attributes:
        X: Shape (n, d), float64, every entry in [-1, 1]; of columns without bounds in their own units, NaN
            where a cell has no number.
        y: Shape (n,): int64 positions in `classes`, -1 where the cell is no public class; or, for regression,
            float64 targets scaled to [-1, 1], or in their own units without bounds, NaN where the cell is
            missing or no number.
        task: "classification" or "regression".
        feature_names: d names.
        feature_columns: d names of the columns that the features come from.
        classes: The label's values by position; empty for regression.
        label_bounds: Bounds that regression targets were scaled from (see `unscale`); None for classes, and
            for targets without bounds.
        silos: Shape (n,), who holds each record: one of `silo_names`; None when the table is one silo.
        silo_names: The described silos in their order, else the texts of the silo column, sorted.
        persons: Shape (n,), the id of whose record it is, as text; None when every record is its own person.
            All records of a silo without an id belong to one person, whose id is a blank and the silo's name.
        sensitive: Sensitive columns as text, each of shape (n,), "" where missing; they are no features.
        bounds_source: Columns whose bounds, categories or classes were read off the data. That is a release
            which no guarantee covers, so statements must name them. Empty when all of them are public.
        columns: The description that was used, the inferred parts included.
    """

    X: Array
    y: Array | NDArray[np.int64]
    task: Task
    feature_names: tuple[str, ...]
    feature_columns: tuple[str, ...]
    classes: tuple[Value, ...]
    label_bounds: tuple[float, float] | None
    silos: Texts | None
    silo_names: tuple[str, ...]
    persons: Texts | None
    sensitive: Mapping[str, Texts]
    bounds_source: tuple[str, ...]
    columns: ColumnsSpec

    @property
    def n(self) -> int:
        """Number of records."""
        return int(self.X.shape[0])

    @property
    def dim(self) -> int:
        """Number of features."""
        return int(self.X.shape[1])


def load_table(
    paths: Path | str | Sequence[Path | str],
    *,
    label: str,
    silo_column: str | None = None,
    person_column: str | None = None,
    sensitive: Sequence[str] = (),
    columns: ColumnsSpec | None = None,
    task: Task = "classification",
    raw: bool = False,
) -> Table:
    """Read one file, or one file of every silo, and build the table of all records.

    A description beside the files is used when none is given.

    Args:
        paths: A file, see `read_table`; or several files, a folder or a pattern, see `find_tables`. The
            silos are then the names of the files without endings, and the records come in their order.
        label: As in `build_table`.
        silo_column: As in `build_table`; None for several files.
        person_column: As in `build_table`.
        sensitive: As in `build_table`.
        columns: Public description. None: `<name>.columns.toml` beside one file, else `columns.toml` in the
            folder of the files, if it exists. What it leaves out is read off all files together.
        task: As in `build_table`.
        raw: As in `build_table`.

    Returns:
        The checked table.

    Raises:
        DataError: A file or the description cannot be read, a file lacks a column, or the table cannot be
            used.
        ParameterError: Several files and a silo column.
        PrivacyWarning: (a warning) Bounds had to be read off the data.
    """
    tables = find_tables(paths)
    if silo_column is not None and len(tables.files) > 1:
        raise ParameterError(
            f"silo_column must be None where every file is a silo, got {silo_column!r} and "
            f"{len(tables.files)} files; leave it out, or put all records into one file."
        )
    columns = tables.described() if columns is None else columns
    # What has another role is text, whatever its description says: ids must keep all their digits.
    as_they_stand = {label, silo_column, person_column, *sensitive}
    numeric = {
        name for name, column in columns.columns.items() if isinstance(column, Numeric | Unbounded)
    } - as_they_stand
    frames = {str(file): read_table(file, numeric=numeric) for file in tables.files}
    return _build(
        frames,
        _Roles(label, silo_column, person_column, tuple(sensitive)),
        columns,
        task=task,
        raw=raw,
        silos=tables.silos if len(frames) > 1 else (None,),
    )


def read_silo_names(path: Path | str, column: str, *, columns: ColumnsSpec | None = None) -> tuple[str, ...]:
    """Return the silos that `load_table` finds in a file.

    Args:
        path: CSV or Parquet file.
        column: Its silo column.
        columns: As in `load_table`.

    Raises:
        DataError: As in `load_table`.
    """
    columns = find_tables(path).described() if columns is None else columns
    frame = read_table(path)
    check_columns(frame, [column], role="silo_column")
    return _silos(frame[column], columns, column=column)[1]


def build_table(
    frame: pd.DataFrame,
    *,
    label: str,
    silo_column: str | None = None,
    person_column: str | None = None,
    sensitive: Sequence[str] = (),
    columns: ColumnsSpec | None = None,
    task: Task = "classification",
    raw: bool = False,
) -> Table:
    r"""Check a table and encode it with public bounds.

    Every column without another role is a feature: first those of `columns` in the order given there, then
    the others in the order of the table.

    A cell is compared with the public description and with no other cell, so replacing a row changes no other
    row, no error and no warning, if all columns in use are described. What does not fit has a public place: a
    number outside its bounds is clipped, a missing one is the middle; another category is none of them; a
    label that is not a class is -1, or NaN for regression, and training counts its record as zero; a record
    of no known silo is in the first silo; records of a silo without a person's id belong to one person.

    Who holds a record is public: what is protected is one record, or one person, among those of its silo. The
    names of the silos may therefore be read off the table, where the silo column is not described as
    categorical.

    Args:
        frame: One row per record, at least one. Columns of objects are read cell by cell; in a typed column
            the type counts as public, so hand over text where one odd cell would change the type of all.
        label: Column to predict.
        silo_column: Column that names the silo of each record; None for one silo. Described as categorical
            in `columns`, its categories are the silos.
        person_column: Column with the person's id, for the unit `PERSON`; None when records are persons.
        sensitive: Sensitive columns, kept as text beside the features and not among them.
        columns: Public description. Whatever it leaves open is read off the data, with a warning.
        task: "classification" or "regression".
        raw: For a regression with a stated moment: numbers stay as they are, in their own units. Bounds of
            the description are not used, a column that is not described holds numbers, and nothing is read
            off the data. Categories and dates are encoded as ever.

    Returns:
        The checked table.

    Raises:
        DataError: The table is empty, a column is missing, repeated, has two roles or a type without numbers
            where it is described as numeric; or what had to be read off the data could not be: bounds of
            infinite values, over 100 categories, a single class, a silo column with missing names.
        UnknownNameError: `task` is unknown.
        PrivacyWarning: (a warning) Bounds, categories or classes were read off the data.

    Example:
        >>> frame = pd.DataFrame({"age": [20, 70], "site": ["a", "b"], "y": [0, 1]})
        >>> public = '[label]\nkind = "classes"\nclasses = [0, 1]\n[columns.age]\n'
        >>> public += 'kind = "numeric"\nlower = 0\nupper = 100'
        >>> table = build_table(frame, label="y", silo_column="site", columns=ColumnsSpec.from_toml(public))
        >>> table.feature_names, table.silo_names, table.bounds_source
        (('age',), ('a', 'b'), ())
    """
    roles = _Roles(label, silo_column, person_column, tuple(sensitive))
    return _build({"": frame}, roles, ColumnsSpec() if columns is None else columns, task=task, raw=raw)


class _Roles(NamedTuple):
    """The columns that are no features, by their roles."""

    label: str
    silo_column: str | None
    person_column: str | None
    sensitive: tuple[str, ...]

    def named(self) -> Iterator[tuple[str, str]]:
        """Return every role that is taken, and its column."""
        yield "label", self.label
        if self.silo_column is not None:
            yield "silo_column", self.silo_column
        if self.person_column is not None:
            yield "person_column (--person)", self.person_column
        yield from (("sensitive column", name) for name in self.sensitive)


def _build(
    frames: Mapping[str, pd.DataFrame],
    roles: _Roles,
    spec: ColumnsSpec,
    *,
    task: Task,
    raw: bool,
    silos: Sequence[str | None] = (None,),
) -> Table:
    """Build one table of frames by the names of their files; each is a silo, where silos are named."""
    check_choice("task", task, _TASKS)
    if raw and task != "regression":
        raise ParameterError(f"raw needs the task 'regression', got {task!r}.")
    for file, frame in frames.items():
        with _said_in(file):
            _check_roles(frame, roles)
    taken = {column for _, column in roles.named()}
    used = complete(frames, spec, label=roles.label, taken=taken, task=task, raw=raw)
    if used.inferred:
        warnings.warn(
            f"bounds, categories or classes of {', '.join(used.inferred)} were read off the data, which no "
            "privacy guarantee covers; describe these columns in a columns.toml file.",
            PrivacyWarning,
            stacklevel=3,
        )
    tables = []
    for (file, frame), silo in zip(frames.items(), silos, strict=True):
        with _said_in(file):
            tables.append(_encode(frame, roles, used, silos=_held(frame, roles, spec, silo)))
    return tables[0] if len(tables) == 1 else _stacked(tables)


@contextmanager
def _said_in(file: str) -> Iterator[None]:
    """Say of which file an error of the block is."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{file}: {error}" if file else str(error)) from error


def _check_roles(frame: pd.DataFrame, roles: _Roles) -> None:
    """Refuse an empty table, repeated or missing columns, and columns with two roles."""
    if frame.shape[0] == 0:
        raise DataError("the table holds no records.")
    if not frame.columns.is_unique:
        raise DataError("the table has two columns of the same name.")
    seen: dict[str, str] = {}
    for role, name in roles.named():
        check_columns(frame, [name], role=role)
        if name in seen:
            raise DataError(f"column {name!r} cannot be both {seen[name]} and {role}.")
        seen[name] = role


def _held(
    frame: pd.DataFrame, roles: _Roles, spec: ColumnsSpec, silo: str | None
) -> tuple[Texts | None, tuple[str, ...]]:
    """Return who holds each record, and all silos: the one that is named, or those of the silo column."""
    if silo is not None:
        return np.full(len(frame), silo, dtype=object), (silo,)
    return (
        (None, ())
        if roles.silo_column is None
        else _silos(frame[roles.silo_column], spec, column=roles.silo_column)
    )


def _encode(
    frame: pd.DataFrame, roles: _Roles, used: Described, *, silos: tuple[Texts | None, tuple[str, ...]]
) -> Table:
    """Return one frame as a table."""
    encoded = encode_columns(frame, used.features)
    classes = isinstance(used.target, Label)
    person = roles.person_column
    return Table(
        X=encoded.X,
        y=encode_label(frame[roles.label], used.target, column=roles.label),
        task="classification" if classes else "regression",
        feature_names=encoded.names,
        feature_columns=encoded.sources,
        classes=used.target.classes if isinstance(used.target, Label) else (),
        label_bounds=(used.target.lower, used.target.upper) if isinstance(used.target, LabelBounds) else None,
        silos=silos[0],
        silo_names=silos[1],
        persons=None if person is None else person_ids(frame[person], silos[0]),
        sensitive={name: texts(frame[name]) for name in roles.sensitive},
        bounds_source=used.inferred,
        columns=used.columns(roles.label),
    )


def _stacked(tables: Sequence[Table]) -> Table:
    """Return the records of tables of the same description, each of one silo, as one table."""
    first = tables[0]
    return replace(
        first,
        X=np.concatenate([table.X for table in tables]),
        y=np.concatenate([table.y for table in tables]),
        silos=np.concatenate([table.silos for table in tables if table.silos is not None]),
        silo_names=tuple(name for table in tables for name in table.silo_names),
        persons=None
        if first.persons is None
        else np.concatenate([table.persons for table in tables if table.persons is not None]),
        sensitive={
            name: np.concatenate([table.sensitive[name] for table in tables]) for name in first.sensitive
        },
    )


def person_ids(values: pd.Series, silos: Texts | None = None) -> Texts:
    """Return the person of each record, as text: a number would change with the ids of others.

    Records without an id belong to one person, in each silo to another one. Letters count as the same
    whether an accent is a part of them or follows them, which depends on the system they were typed on: a
    person must not become two, since each of them would be hidden by itself only.
    """
    given = texts(values)
    found = np.array([one if one.isascii() else normalize("NFC", one) for one in given], dtype=object)
    # No id begins with a blank. One person for all silos would tie what one silo does to another's records.
    return np.where(found == "", " " if silos is None else " " + silos, found)


def _silos(values: pd.Series, spec: ColumnsSpec, *, column: str) -> tuple[Texts, tuple[str, ...]]:
    """Return who holds each record, and all silos."""
    described = spec.columns.get(column)
    found = texts(values)
    if isinstance(described, Categorical):
        names = tuple(str(name).strip() for name in described.categories)
        # No known silo is not an error, which would tell of that record; position 0 is the first one.
        places = positions(found, described.categories, described.merge).clip(min=0)
        return np.array(names, dtype=object)[places], names
    names = tuple(sorted(set(found)))
    if not MISSING.isdisjoint(names):
        raise DataError(
            f"column {column!r} says who holds a record, and has missing names; fill them in, or describe "
            "the column as categorical with the names of all silos."
        )
    return found, names
