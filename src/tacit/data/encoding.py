"""Columns to bounded features: numbers clipped and scaled to [-1, 1], categories one-hot.

What a cell becomes depends on that cell and on the public description alone (`tacit.data.cells`). A cell that
does not fit its description is not an error, since an error would tell of it: it has a public place of its
own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from difflib import get_close_matches
from functools import partial

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.cells import MISSING, Texts, distinct_texts, numbers, numbers_by_text, plain, positions
from tacit.data.columns_spec import (
    Categorical,
    Column,
    Date,
    Ignore,
    Label,
    LabelBounds,
    Numeric,
    Unbounded,
    UnboundedLabel,
)
from tacit.data.unbounded import as_they_stand
from tacit.errors import DataError, ParameterError, check_choice

__all__ = [
    "DAYS_OF_A_YEAR",
    "Array",
    "Features",
    "check_columns",
    "count_unfit",
    "encode_columns",
    "encode_label",
    "feature_names",
    "feature_sources",
    "infer_classes",
    "infer_column",
    "read_measures",
    "read_numbers",
    "scale",
    "unscale",
    "used_columns",
]

Array = NDArray[np.float64]

Feature = Numeric | Unbounded | Date | Categorical
"""A column that becomes features."""

MAX_INFERRED_CATEGORIES = 100
"""A text column with more distinct values than this is a name or an identifier rather than a category."""

_INDICATED = ("indicator", "category")
DAYS_OF_A_YEAR = 365.2425
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?=[ T])")  # in front of a time
_ROWS = 2**13
"""So many records are encoded at once: a column of all of them by another is work for the memory only."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Features:
    """Encoded columns.

    Attributes:
        X: Shape (n, d), float64, every entry in [-1, 1] but for columns without bounds; NaN where one of
            these has no number.
        names: One name per feature; "column" for a number, "column=category" for a one-hot one.
        sources: The column each feature comes from.
    """

    X: Array
    names: tuple[str, ...]
    sources: tuple[str, ...]


def scale(values: Array, *, lower: float, upper: float) -> Array:
    """Clip to [lower, upper] and map that interval to [-1, 1].

    Args:
        values: Any shape, in the units of the bounds.
        lower: Public lower bound.
        upper: Public upper bound, > `lower`.

    Returns:
        The shape of `values`, float64, in [-1, 1].

    Example:
        >>> scale(np.array([-5.0, 50.0, 100.0]), lower=0.0, upper=100.0).tolist()
        [-1.0, 0.0, 1.0]
    """
    span = _span(lower, upper)
    return np.asarray(2.0 * ((np.clip(values, lower, upper) - lower) / span) - 1.0, dtype=np.float64)


def unscale(values: Array, *, lower: float, upper: float) -> Array:
    """Map [-1, 1] back to [lower, upper]: the inverse of `scale` inside the bounds, without clipping.

    Args:
        values: Any shape, scaled, for instance predictions of a regression.
        lower: Public lower bound.
        upper: Public upper bound, > `lower`.

    Returns:
        The shape of `values`, float64, in the units of the bounds.

    Example:
        >>> unscale(np.array([-1.0, 0.5]), lower=0.0, upper=100.0).tolist()
        [0.0, 75.0]
    """
    return np.asarray(lower + (values + 1.0) / 2.0 * _span(lower, upper), dtype=np.float64)


def _span(lower: float, upper: float) -> float:
    """Return the width of the bounds."""
    span = upper - lower
    if not 0 < span < np.inf:
        raise ParameterError(
            f"lower and upper must be finite with lower < upper, got {lower!r} and {upper!r}."
        )
    return span


def read_numbers(values: pd.Series, *, column: str) -> Array:
    """Return a column as float64, NaN where a cell is missing or no number.

    Raises:
        DataError: The column's type, which is no cell's, is one of dates or complex numbers.
    """
    if values.dtype.kind in "mMc":
        raise DataError(f"column {column!r} holds {values.dtype}; convert it to numbers or ignore it.")
    return numbers(values)


def check_columns(frame: pd.DataFrame, names: Iterable[str], *, role: str | None = None) -> None:
    """Refuse names that the table has no column for.

    Args:
        frame: The table.
        names: Of columns.
        role: What somebody gave the names as, for whom the nearest column is suggested; None where they are
            known, and the table is wrong.

    Raises:
        DataError: A column is missing.
    """
    present = [str(name) for name in frame.columns]
    for name in names:
        if name in present:
            continue
        if role is None:
            near = get_close_matches(name, present, n=1)
            rename = f"; rename {near[0]!r} if it is the same" if near else ""
            raise DataError(
                f"the table has no such column: {name!r} is needed, and it has {', '.join(present)}{rename}."
            )
        try:
            check_choice(role, name, present)
        except ParameterError as error:
            raise DataError(f"the table has no such column: {error}") from error


def infer_column(values: pd.Series, *, column: str) -> Numeric | Categorical:
    """Read bounds or categories off the data. This is a release that nobody priced; callers warn.

    A column of which every cell that is not missing is a number gets bounds, any other gets categories.

    Raises:
        DataError: The column cannot be a feature: dates, no values, infinite ones, bounds too far apart, or
            over 100 distinct texts. No cell is quoted.
    """
    found, number = _present(values, column=column)
    if not np.isnan(number).any():
        lower, upper = float(number.min()), float(number.max())
        upper = upper if upper > lower else lower + 1.0
        if not 0 < upper - lower < math.inf:
            raise DataError(
                f"column {column!r} holds numbers that no bounds can be read off: infinite ones, or such "
                "that floating point does not hold their distance; describe its bounds."
            )
        return Numeric(lower=lower, upper=upper)
    categories = sorted({plain(text) for text in found})
    if len(categories) > MAX_INFERRED_CATEGORIES:
        raise DataError(
            f"column {column!r} holds more than {MAX_INFERRED_CATEGORIES} distinct texts; "
            "describe its categories, or declare it as ignored."
        )
    return Categorical(categories=tuple(categories))


def infer_classes(values: pd.Series, *, column: str) -> Label:
    """Read classes off a label: a release as in `infer_column`. Numbers keep their order: 2 before 10.

    Raises:
        DataError: The label holds fractions, or fewer than two classes.
    """
    found, number = _present(values, column=column)
    if not np.isnan(number).any() and (number % 1 != 0).any():
        raise DataError(
            f"label column {column!r} holds fractions; use the task regression or describe its classes."
        )
    order = number if not np.isnan(number).any() else np.zeros(len(found))
    classes = dict.fromkeys(plain(text) for _, text in sorted(zip(order.tolist(), found, strict=True)))
    if len(classes) < 2:
        raise DataError(
            f"label column {column!r} must hold at least two classes, or have public classes described."
        )
    return Label(classes=tuple(classes))


def _present(values: pd.Series, *, column: str) -> tuple[list[str], Array]:
    """Return the distinct texts that are not missing, and each as a number, NaN where it is none."""
    if values.dtype.kind in "mMc":
        raise DataError(f"column {column!r} holds {values.dtype}; convert it to numbers or ignore it.")
    said = numbers_by_text(values)
    found = sorted(said.keys() - MISSING)
    if not found:
        raise DataError(f"column {column!r} holds no values; describe it, or leave it out.")
    return found, np.array([said[text] for text in found])


def encode_columns(frame: pd.DataFrame, columns: Mapping[str, Column]) -> Features:
    """Encode the described columns, in the order of the description.

    Args:
        frame: The table, n >= 1 rows.
        columns: Public description by column name; ignored columns need not be in the table.

    Returns:
        The features. Numbers, and dates as years before their public day, are clipped to their bounds and
        scaled to [-1, 1]; a cell that is missing or no number becomes what `missing` says, the middle, 0, if
        nothing. Categories become one-hot entries 0 or 1, or one number when `ordinal`; a cell that is none
        of them becomes zeros, and a missing one what `missing` says. Where that is "indicator" or "category",
        one more feature of the column is 1 for its missing cells and 0 for all others. Numbers without bounds
        are what they are, and NaN where a cell is missing or not finite and nothing stands for it.

    Raises:
        DataError: A column is missing, or a numeric one has a type without numbers, such as dates.

    Example:
        >>> frame = pd.DataFrame({"age": [25, 120], "smoker": ["yes", "unknown"]})
        >>> public = {"age": Numeric(lower=0, upper=100), "smoker": Categorical(categories=("no", "yes"))}
        >>> encoded = encode_columns(frame, public)
        >>> encoded.names
        ('age', 'smoker=no', 'smoker=yes')
        >>> encoded.X.tolist()
        [[-0.5, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    used = used_columns(columns)
    check_columns(frame, used)
    if not used:
        raise DataError("no column is left to be a feature; describe at least one as numeric or categorical.")
    sources = feature_sources(columns)
    X = np.empty((len(frame), len(sources)))
    for start in range(0, len(X), _ROWS):
        rows = frame.iloc[start : start + _ROWS]
        at = 0
        for name, column in used.items():
            block = _encode(rows[name], column, column=name)
            X[start : start + _ROWS, at : at + block.shape[1]] = block
            at += block.shape[1]
    return Features(X=X, names=feature_names(columns), sources=sources)


def used_columns(columns: Mapping[str, Column]) -> dict[str, Feature]:
    """Return the described columns that become features."""
    return {name: column for name, column in columns.items() if not isinstance(column, Ignore)}


def feature_names(columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return the names of the features that `encode_columns` makes of described columns."""
    used = used_columns(columns)
    return tuple(feature for name, column in used.items() for feature in _feature_names(name, column))


def feature_sources(columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return the column that each feature of described columns comes from."""
    used = used_columns(columns)
    return tuple(name for name, column in used.items() for _ in _feature_names(name, column))


def _feature_names(name: str, column: Feature) -> list[str]:
    """Return the names of one column's features."""
    values = [name]
    if isinstance(column, Categorical) and not column.ordinal:
        values = [f"{name}={category}" for category in column.categories]
    return [*values, f"{name} missing"] if column.missing in _INDICATED else values


def count_unfit(frame: pd.DataFrame, columns: Mapping[str, Column]) -> pd.DataFrame:
    """Count the cells that fit no public description: for new records, or one's own; not for private ones.

    Args:
        frame: The table.
        columns: As in `encode_columns`.

    Returns:
        One row per used column: how many cells are "missing" (for numbers: or none), how many are "unknown"
        categories, and how many numbers are "outside" their bounds.

    Raises:
        DataError: A column is missing.

    Example:
        >>> frame = pd.DataFrame({"age": [25, 120], "smoker": ["yes", "unknown"]})
        >>> public = {"age": Numeric(lower=0, upper=100), "smoker": Categorical(categories=("no", "yes"))}
        >>> count_unfit(frame, public).loc["smoker"].to_dict()
        {'missing': 0, 'unknown': 1, 'outside': 0}
    """
    used = used_columns(columns)
    check_columns(frame, used)
    counts = [_unfit(frame[name], column, name=name) for name, column in used.items()]
    return pd.DataFrame(counts, index=list(used), columns=["missing", "unknown", "outside"])


def _unfit(values: pd.Series, column: Feature, *, name: str) -> tuple[int, int, int]:
    """Count the cells of one column that are missing, unknown and outside."""
    if isinstance(column, Unbounded):
        return int((~np.isfinite(read_numbers(values, column=name))).sum()), 0, 0
    if isinstance(column, Categorical):
        found, which = distinct_texts(values)
        unknown = positions(found, column.categories, column.merge) < 0
        missing = np.array([text in MISSING for text in found], dtype=bool) & unknown
        return int(missing[which].sum()), int((unknown & ~missing)[which].sum()), 0
    number = _measured(values, column, name=name)
    outside = (number < column.lower) | (number > column.upper)
    return int(np.isnan(number).sum()), 0, int(outside.sum())


def _encode(values: pd.Series, description: Feature, *, column: str) -> Array:
    """Return the (n, features) block of one column."""
    if isinstance(description, Categorical):
        found, which = distinct_texts(values)
        return _encode_categories(found, description)[which]
    if isinstance(description, Unbounded):
        return as_they_stand(read_numbers(values, column=column), description)
    number = read_measures(values, description, column=column)
    scaled = scale(number, lower=description.lower, upper=description.upper)
    missing = np.isnan(scaled)
    block = np.where(missing, 0.0, scaled)
    return np.column_stack([block, missing] if description.missing == "indicator" else [block])


def read_measures(values: pd.Series, description: Numeric | Date, *, column: str) -> Array:
    """Return a column as numbers in its units, dates as years before their public day; not clipped.

    A missing cell is the number that stands for it, or NaN where the description says none.

    Raises:
        DataError: The column's type, which is no cell's, is one without numbers.
    """
    found = _measured(values, description, name=column)
    if isinstance(description.missing, str):
        return found
    return np.where(np.isnan(found), description.missing, found)


def _measured(values: pd.Series, description: Numeric | Date, *, name: str) -> Array:
    """Return a column as numbers in its units, NaN where a cell is missing or none."""
    if isinstance(description, Numeric):
        return read_numbers(values, column=name)
    years = partial(_years, reference=description.reference, format=description.format)
    found, which = distinct_texts(values)
    return np.array([years(text) for text in found])[which]


def _years(text: str, *, reference: date, format: str) -> float:
    """Return how many years a date lies before another, NaN for text that is no date."""
    usual = _DAY.match(text) if format == "%Y-%m-%d" else None
    try:
        day = datetime.strptime(usual[0] if usual else text, format).date()
    except ValueError:
        return math.nan
    return (reference - day).days / DAYS_OF_A_YEAR


def _encode_categories(found: Texts, column: Categorical) -> Array:
    """Return the (n, categories) one-hot block, or the (n, 1) ordinal one."""
    codes = positions(found, column.categories, column.merge)
    k = len(column.categories)
    missing = np.zeros(len(codes), dtype=bool)
    if column.missing is not None:
        missing[codes < 0] = [text in MISSING for text in found[codes < 0]]
    if column.missing not in (None, "category"):
        (stand_in,) = positions(np.array([str(column.missing).strip()], dtype=object), column.categories)
        codes[missing] = stand_in
    if column.ordinal:
        block = np.where(codes >= 0, 2.0 * codes / (k - 1) - 1.0, 0.0)[:, None]
    else:
        block = np.asarray(codes[:, None] == np.arange(k), dtype=np.float64)
    return np.column_stack([block, missing]) if column.missing == "category" else block


def encode_label(
    values: pd.Series, label: Label | LabelBounds | UnboundedLabel, *, column: str
) -> Array | NDArray[np.int64]:
    """Encode a label with its public description.

    Args:
        values: The label column, n values.
        label: Public classes, or public bounds for regression, or neither: a number as it stands.
        column: Its name, for messages.

    Returns:
        Shape (n,): int64 positions in `label.classes`, -1 for a cell that is none of them; or float64 targets
        clipped and scaled to [-1, 1], NaN for a cell that is missing or no number; or, without bounds, as
        they stand, NaN also for a cell that is not finite.

    Raises:
        DataError: The column has a type without numbers, and the label is none of classes.

    Example:
        >>> encode_label(pd.Series(["b", "a", "?"]), Label(classes=("a", "b")), column="y").tolist()
        [1, 0, -1]
    """
    if isinstance(label, UnboundedLabel):
        number = read_numbers(values, column=column)
        return np.where(np.isfinite(number), number, np.nan)
    if isinstance(label, LabelBounds):
        return scale(read_numbers(values, column=column), lower=label.lower, upper=label.upper)
    found, which = distinct_texts(values)
    return positions(found, label.classes)[which]
