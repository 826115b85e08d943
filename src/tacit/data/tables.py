"""Tables from files, checked and encoded: the one door through which a party's own records come in."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.columns_spec import (
    Categorical,
    Column,
    ColumnsSpec,
    Ignore,
    Label,
    LabelBounds,
    Value,
    sidecar_path,
)
from tacit.data.encoding import Array, as_text, check_columns, encode_columns, encode_label, infer_column
from tacit.errors import DataError, PrivacyWarning, check_choice

__all__ = ["Table", "Task", "build_table", "load_table", "read_table"]

Task = Literal["classification", "regression"]
_TASKS = ("classification", "regression")
_SUFFIXES = (".csv", ".parquet")


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Table:
    """A checked table: bounded features, an encoded label, and who holds which record.

    Attributes:
        X: Shape (n, d), float64, every entry in [-1, 1].
        y: Shape (n,): int64 positions in `classes`, or float64 targets scaled to [-1, 1] for regression.
        task: "classification" or "regression".
        feature_names: d names.
        feature_columns: d names of the columns that the features come from.
        classes: The label's values by position; empty for regression.
        label_bounds: Bounds that regression targets were scaled from (see `unscale`), else None.
        silos: Shape (n,), int64 positions in `silo_names`; None when the table is one silo.
        silo_names: Values of the silo column as text, sorted.
        persons: Shape (n,), int64 numbers of persons as they come; None when every record is its own person.
        sensitive: Sensitive columns as text, each of shape (n,); they are no features.
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
    silos: NDArray[np.int64] | None
    silo_names: tuple[str, ...]
    persons: NDArray[np.int64] | None
    sensitive: Mapping[str, NDArray[np.str_]]
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


def read_table(path: Path | str) -> pd.DataFrame:
    """Read a table from a CSV or Parquet file.

    Args:
        path: A `.csv` file with a header line, or a `.parquet` file (needs the extra `tacit[parquet]`).

    Returns:
        The table as it stands, at least one row and one column; nothing is encoded or filled in.

    Raises:
        DataError: The file is missing, empty, of another kind, not parsable, or pyarrow is not installed.
    """
    path = Path(path)
    if path.suffix.lower() not in _SUFFIXES:
        raise DataError(f"{path} must be a {' or '.join(_SUFFIXES)} file, got the ending {path.suffix!r}.")
    if not path.is_file():
        raise DataError(f"{path} is not there, or is no file.")
    frame = _read_parquet(path) if path.suffix.lower() == ".parquet" else _read_csv(path)
    if frame.empty:
        raise DataError(f"{path} holds no records.")
    return frame


def _read_csv(path: Path) -> pd.DataFrame:
    """Return a CSV file as a frame."""
    try:
        return pd.read_csv(path, skipinitialspace=True, low_memory=False)
    except pd.errors.EmptyDataError as error:
        raise DataError(f"{path} is empty; a header line and at least one record are needed.") from error
    # The parser's own messages quote cells, so they are kept out of ours, and out of the chain as well.
    except (pd.errors.ParserError, UnicodeDecodeError):
        raise DataError(
            f"{path} cannot be parsed as UTF-8 CSV with one header line and equal rows."
        ) from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}.") from error


def _read_parquet(path: Path) -> pd.DataFrame:
    """Return a Parquet file as a frame."""
    if importlib.util.find_spec("pyarrow") is None:
        raise DataError(
            f"reading {path} needs pyarrow; install it with the extra tacit[parquet], or give a CSV."
        )
    try:
        return pd.read_parquet(path)
    except (ValueError, OSError):  # pyarrow's errors derive from these
        raise DataError(f"{path} cannot be read as Parquet.") from None


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
    frame = read_table(path)
    sidecar = sidecar_path(Path(path))
    if columns is None and sidecar.is_file():
        columns = ColumnsSpec.read(sidecar)
    return build_table(
        frame,
        label=label,
        silo_column=silo_column,
        person_column=person_column,
        sensitive=sensitive,
        columns=columns,
        task=task,
    )


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
    the others in the order of the table. Errors name columns and never quote cells; they reach the data
    owner only, before any privacy is spent.

    Args:
        frame: One row per record, at least one.
        label: Column to predict.
        silo_column: Column that says which silo holds the record; None for one silo.
        person_column: Column with the person's id, for the unit `PERSON`; None when records are persons.
        sensitive: Sensitive columns, kept as text beside the features and not among them.
        columns: Public description. Whatever it leaves open is read off the data, with a warning.
        task: "classification" or "regression".

    Returns:
        The checked table.

    Raises:
        DataError: The table is empty, a column is missing, repeated or has two roles, a feature or the label
            is missing, infinite or of the wrong type, or a label without public classes has only one.
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
    roles["person_column"] = [] if person_column is None else [person_column]
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
    silos, silo_names = (None, ()) if silo_column is None else _identifiers(frame, silo_column)
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
        # Numbered as they come: another id of one person must not renumber the others, and so deal them anew.
        persons=None if person_column is None else _identifiers(frame, person_column, sort=False)[0],
        sensitive={name: as_text(frame[name]).to_numpy(dtype=np.str_) for name in sensitive},
        bounds_source=tuple(inferred),
        columns=ColumnsSpec(columns=features, label=target),
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
        public = _as_label(spec.columns.get(label))
    wanted = Label if task == "classification" else LabelBounds
    if public is not None:
        if not isinstance(public, wanted):
            raise DataError(
                f"label column {label!r} is described as {public!r}, which does not fit the task {task}."
            )
        return public, False
    if task == "regression":
        column = infer_column(values, column=label)
        if isinstance(column, Categorical):
            raise DataError(f"label column {label!r} holds text; use the task classification.")
        return LabelBounds(lower=column.lower, upper=column.upper), True
    return _infer_classes(values, label=label), True


def _as_label(column: Column | None) -> Label | LabelBounds | None:
    """Return a feature description as one of a label."""
    if column is None or isinstance(column, Ignore):
        return None
    if isinstance(column, Categorical):
        return Label(classes=column.categories) if len(column.categories) > 1 else None
    return LabelBounds(lower=column.lower, upper=column.upper)


def _infer_classes(values: pd.Series, *, label: str) -> Label:
    """Return the classes that occur in the data."""
    present = values.dropna()
    if pd.api.types.is_float_dtype(present) and bool((present % 1 != 0).any()):
        raise DataError(
            f"label column {label!r} holds fractions; use the task regression or describe its classes."
        )
    # Sorting before the conversion keeps numbers in their order: 2 before 10.
    found = as_text(pd.Series(sorted(present.unique()), dtype=present.dtype)).unique()
    if len(found) < 2:
        raise DataError(
            f"label column {label!r} must hold at least two classes, or have public classes described."
        )
    return Label(classes=tuple(found))


def _feature_descriptions(
    frame: pd.DataFrame, spec: ColumnsSpec, taken: set[str]
) -> tuple[dict[str, Column], list[str]]:
    """Return the description of every feature, and the columns it was read off the data for."""
    features = {name: column for name, column in spec.columns.items() if name not in taken}
    inferred = [str(name) for name in frame.columns if name not in features and name not in taken]
    features |= {name: infer_column(frame[name], column=name) for name in inferred}
    return features, inferred


def _identifiers(
    frame: pd.DataFrame, column: str, *, sort: bool = True
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Return integer codes of an id column and its ids as text, sorted or as they come."""
    if bool(frame[column].isna().any()):
        raise DataError(f"column {column!r} says who holds a record or whose it is, and has missing values.")
    codes, names = pd.factorize(as_text(frame[column]), sort=sort)
    return codes.astype(np.int64), tuple(str(name) for name in names)
