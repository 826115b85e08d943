"""Tables from files, checked and encoded: the one door through which a party's own records come in."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.cells import MISSING, Texts, positions, texts
from tacit.data.columns_spec import (
    Categorical,
    Column,
    ColumnsSpec,
    Date,
    Ignore,
    Label,
    LabelBounds,
    Numeric,
    Value,
    sidecar_path,
)
from tacit.data.encoding import (
    Array,
    check_columns,
    encode_columns,
    encode_label,
    infer_classes,
    infer_column,
)
from tacit.data.files import read_table
from tacit.errors import DataError, PrivacyWarning, check_choice

__all__ = ["Table", "Task", "build_table", "load_table", "person_ids", "read_silo_names"]

Task = Literal["classification", "regression"]
_TASKS = ("classification", "regression")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Table:
    """A checked table: bounded features, an encoded label, and who holds which record.

    Attributes:
        X: Shape (n, d), float64, every entry in [-1, 1].
        y: Shape (n,): int64 positions in `classes`, -1 where the cell is no public class; or, for regression,
            float64 targets scaled to [-1, 1], NaN where the cell is missing or no number.
        task: "classification" or "regression".
        feature_names: d names.
        feature_columns: d names of the columns that the features come from.
        classes: The label's values by position; empty for regression.
        label_bounds: Bounds that regression targets were scaled from (see `unscale`), else None.
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
    path: Path | str,
    *,
    label: str,
    silo_column: str | None = None,
    person_column: str | None = None,
    sensitive: Sequence[str] = (),
    columns: ColumnsSpec | None = None,
    task: Task = "classification",
) -> Table:
    """Read a file and build its table; a description beside the file is used when none is given.

    Args:
        path: CSV or Parquet file, see `read_table`.
        label: As in `build_table`.
        silo_column: As in `build_table`.
        person_column: As in `build_table`.
        sensitive: As in `build_table`.
        columns: Public description. None: `<name>.columns.toml` beside the file, if it exists.
        task: As in `build_table`.

    Returns:
        The checked table.

    Raises:
        DataError: The file or its description cannot be read, or the table cannot be used.
        PrivacyWarning: (a warning) Bounds had to be read off the data.
    """
    columns = _description(Path(path)) if columns is None else columns
    described = {} if columns is None else columns.columns
    # What has another role is text, whatever its description says: ids must keep all their digits.
    as_they_stand = {label, silo_column, person_column, *sensitive}
    numeric = {name for name, column in described.items() if isinstance(column, Numeric)} - as_they_stand
    frame = read_table(path, numeric=numeric)
    return build_table(
        frame,
        label=label,
        silo_column=silo_column,
        person_column=person_column,
        sensitive=sensitive,
        columns=columns,
        task=task,
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
    columns = _description(Path(path)) if columns is None else columns
    frame = read_table(path)
    check_columns(frame, [column], role="silo_column")
    return _silos(frame[column], ColumnsSpec() if columns is None else columns, column=column)[1]


def _description(path: Path) -> ColumnsSpec | None:
    """Return the description beside a table, if there is one."""
    sidecar = sidecar_path(path)
    return ColumnsSpec.read(sidecar) if sidecar.is_file() else None


def build_table(
    frame: pd.DataFrame,
    *,
    label: str,
    silo_column: str | None = None,
    person_column: str | None = None,
    sensitive: Sequence[str] = (),
    columns: ColumnsSpec | None = None,
    task: Task = "classification",
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
    check_choice("task", task, _TASKS)
    spec = ColumnsSpec() if columns is None else columns
    roles = {"label": [label], "sensitive column": list(sensitive)}
    roles["silo_column"] = [] if silo_column is None else [silo_column]
    roles["person_column (--person)"] = [] if person_column is None else [person_column]
    _check_roles(frame, roles)
    taken = {name for names in roles.values() for name in names}

    target, label_inferred = _label_description(frame[label], spec, label=label, task=task)
    features, inferred = _feature_descriptions(frame, spec, taken)
    if label_inferred:
        inferred.append(label)
    if inferred:
        warnings.warn(
            f"bounds, categories or classes of {', '.join(inferred)} were read off the data, which no "
            "privacy guarantee covers; describe these columns in a columns.toml file.",
            PrivacyWarning,
            stacklevel=2,
        )
    encoded = encode_columns(frame, features)
    silos, silo_names = (
        (None, ()) if silo_column is None else _silos(frame[silo_column], spec, column=silo_column)
    )
    return Table(
        X=encoded.X,
        y=encode_label(frame[label], target, column=label),
        task=task,
        feature_names=encoded.names,
        feature_columns=encoded.sources,
        classes=target.classes if isinstance(target, Label) else (),
        label_bounds=None if isinstance(target, Label) else (target.lower, target.upper),
        silos=silos,
        silo_names=silo_names,
        persons=None if person_column is None else person_ids(frame[person_column], silos),
        sensitive={name: texts(frame[name]) for name in sensitive},
        bounds_source=tuple(inferred),
        columns=ColumnsSpec(columns=features, label=msgspec.structs.replace(target, column=label)),
    )


def _check_roles(frame: pd.DataFrame, roles: Mapping[str, Sequence[str]]) -> None:
    """Refuse an empty table, repeated or missing columns, and columns with two roles."""
    if frame.shape[0] == 0:
        raise DataError("the table holds no records.")
    if not frame.columns.is_unique:
        raise DataError("the table has two columns of the same name.")
    seen: dict[str, str] = {}
    for role, names in roles.items():
        check_columns(frame, names, role=role)
        for name in names:
            if name in seen:
                raise DataError(f"column {name!r} cannot be both {seen[name]} and {role}.")
            seen[name] = role


def _label_description(
    values: pd.Series, spec: ColumnsSpec, *, label: str, task: Task
) -> tuple[Label | LabelBounds, bool]:
    """Return the label's classes or bounds, and whether they were read off the data."""
    public = spec.label if spec.label is not None and spec.label.column in (None, label) else None
    if public is None:
        public = _as_label(spec.columns.get(label), label=label)
    wanted = Label if task == "classification" else LabelBounds
    if public is not None:
        if not isinstance(public, wanted):
            raise DataError(
                f"label column {label!r} is described with {_described(public)}, which do not fit the task "
                f"{task}."
            )
        return public, False
    if task == "regression":
        column = infer_column(values, column=label)
        if isinstance(column, Categorical):
            raise DataError(f"label column {label!r} holds text; use the task classification.")
        return LabelBounds(lower=column.lower, upper=column.upper), True
    return infer_classes(values, column=label), True


def _described(public: Label | LabelBounds) -> str:
    """Say how a label is described."""
    return "classes" if isinstance(public, Label) else "bounds"


def _as_label(column: Column | None, *, label: str) -> Label | LabelBounds | None:
    """Return a feature description as one of a label."""
    if column is None or isinstance(column, Ignore):
        return None
    if isinstance(column, Date):
        raise DataError(f"label column {label!r} is described as dates; describe classes or bounds.")
    if isinstance(column, Categorical):
        return Label(classes=column.categories) if len(column.categories) > 1 else None
    return LabelBounds(lower=column.lower, upper=column.upper)


def _feature_descriptions(
    frame: pd.DataFrame, spec: ColumnsSpec, taken: set[str]
) -> tuple[dict[str, Column], list[str]]:
    """Return the description of every feature, and the columns it was read off the data for."""
    features = {name: column for name, column in spec.columns.items() if name not in taken}
    inferred = [str(name) for name in frame.columns if name not in features and name not in taken]
    features |= {name: infer_column(frame[name], column=name) for name in inferred}
    return features, inferred


def person_ids(values: pd.Series, silos: Texts | None = None) -> Texts:
    """Return the person of each record, as text: a number would change with the ids of others.

    Records without an id belong to one person, in each silo to another one.
    """
    found = texts(values)
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
