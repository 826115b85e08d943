"""Columns to bounded features: numbers clipped and scaled to [-1, 1], categories one-hot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from tacit.data.columns_spec import Categorical, Column, Ignore, Label, LabelBounds, Numeric, Value
from tacit.errors import DataError, ParameterError, check_choice

__all__ = [
    "Array",
    "Features",
    "as_numbers",
    "as_text",
    "check_columns",
    "encode_columns",
    "encode_label",
    "infer_column",
    "scale",
    "unscale",
]

Array = NDArray[np.float64]

MAX_INFERRED_CATEGORIES = 100
"""A text column with more distinct values than this is a name or an identifier rather than a category."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Features:
    """Encoded columns.

    Attributes:
        X: Shape (n, d), float64, every entry in [-1, 1].
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


def as_text(values: pd.Series) -> pd.Series:
    """Return values as text; whole floats lose their ".0", so that 1.0 and 1 are one category."""
    text = values.astype(str)
    return text.str.replace(r"\.0$", "", regex=True) if pd.api.types.is_float_dtype(values) else text


def as_numbers(values: pd.Series, *, column: str) -> Array:
    """Return a numeric column as finite float64.

    Raises:
        DataError: The column holds text, dates, missing or infinite values; no cell is quoted.
    """
    if pd.api.types.is_datetime64_any_dtype(values):
        raise DataError(f"column {column!r} holds dates; convert it to numbers or ignore it.")
    numbers = pd.to_numeric(values, errors="coerce")
    if bool((numbers.isna() & values.notna()).any()):
        raise DataError(f"column {column!r} is declared numeric and holds values that are not numbers.")
    array = numbers.to_numpy(dtype=np.float64, na_value=np.nan)
    if not np.isfinite(array).all():
        raise DataError(
            f"column {column!r} holds missing or infinite values; fill them in or leave the rows out."
        )
    return array


def check_columns(frame: pd.DataFrame, names: Iterable[str], *, role: str) -> None:
    """Refuse names that the table has no column for; the message suggests the nearest one.

    Raises:
        DataError: A column is missing.
    """
    present = [str(name) for name in frame.columns]
    for name in names:
        try:
            check_choice(role, name, present)
        except ParameterError as error:
            raise DataError(f"the table has no such column: {error}") from error


def infer_column(values: pd.Series, *, column: str) -> Numeric | Categorical:
    """Read bounds or categories off the data. This is a release that nobody priced; callers warn.

    Raises:
        DataError: The column cannot be a feature: dates, missing values, or over 100 distinct texts.
    """
    if not (
        pd.api.types.is_object_dtype(values) or isinstance(values.dtype, pd.StringDtype | pd.CategoricalDtype)
    ):
        numbers = as_numbers(values, column=column)
        lower, upper = float(numbers.min()), float(numbers.max())
        return Numeric(lower=lower, upper=upper if upper > lower else lower + 1.0)
    _check_present(values, column=column)
    categories = sorted(as_text(values).unique())
    if len(categories) > MAX_INFERRED_CATEGORIES:
        raise DataError(
            f"column {column!r} holds more than {MAX_INFERRED_CATEGORIES} distinct texts; "
            "describe its categories, or declare it as ignored."
        )
    return Categorical(categories=tuple(categories))


def encode_columns(frame: pd.DataFrame, columns: Mapping[str, Column]) -> Features:
    """Encode the described columns, in the order of the description.

    Args:
        frame: The table, n >= 1 rows.
        columns: Public description by column name; ignored columns need not be in the table.

    Returns:
        The features. Numbers are clipped to their bounds and scaled to [-1, 1]. Categories become one-hot
        entries 0 or 1, or one number when `ordinal`; a value outside the categories becomes zeros.

    Raises:
        DataError: A column is missing, or holds missing, infinite or non-numeric values.

    Example:
        >>> frame = pd.DataFrame({"age": [25, 120], "smoker": ["yes", "unknown"]})
        >>> public = {"age": Numeric(lower=0, upper=100), "smoker": Categorical(categories=("no", "yes"))}
        >>> encoded = encode_columns(frame, public)
        >>> encoded.names
        ('age', 'smoker=no', 'smoker=yes')
        >>> encoded.X.tolist()
        [[-0.5, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    used = {name: column for name, column in columns.items() if not isinstance(column, Ignore)}
    check_columns(frame, used, role="column")
    if not used:
        raise DataError("no column is left to be a feature; describe at least one as numeric or categorical.")
    names: list[str] = []
    sources: list[str] = []
    blocks: list[Array] = []
    for name, column in used.items():
        if isinstance(column, Numeric):
            numbers = as_numbers(frame[name], column=name)
            blocks.append(scale(numbers, lower=column.lower, upper=column.upper)[:, None])
            names.append(name)
        else:
            blocks.append(_encode_categories(frame[name], column, name=name))
            names += [name] if column.ordinal else [f"{name}={category}" for category in column.categories]
        sources += [name] * blocks[-1].shape[1]
    return Features(X=np.hstack(blocks), names=tuple(names), sources=tuple(sources))


def _encode_categories(values: pd.Series, column: Categorical, *, name: str) -> Array:
    """Return the (n, categories) one-hot block, or the (n, 1) ordinal one."""
    _check_present(values, column=name)
    codes = _codes(values, column.categories, merge=column.merge)
    k = len(column.categories)
    if column.ordinal:
        return np.where(codes >= 0, 2.0 * codes / (k - 1) - 1.0, 0.0)[:, None]
    return np.asarray(codes[:, None] == np.arange(k), dtype=np.float64)


def _codes(
    values: pd.Series, categories: Iterable[Value], *, merge: Mapping[str, Value]
) -> NDArray[np.int64]:
    """Return each value's position in `categories`, -1 for any other value."""
    text = as_text(values).replace({old: str(new) for old, new in merge.items()})
    index = pd.Index([str(category) for category in categories])
    return index.get_indexer(pd.Index(text)).astype(np.int64)


def _check_present(values: pd.Series, *, column: str) -> None:
    """Refuse a column with missing values."""
    if bool(values.isna().any()):
        raise DataError(
            f"column {column!r} holds missing values; give them a category of their own or fill them in."
        )


def encode_label(values: pd.Series, label: Label | LabelBounds, *, column: str) -> Array | NDArray[np.int64]:
    """Encode a label with its public description.

    Args:
        values: The label column, n values.
        label: Public classes, or public bounds for regression.
        column: Its name, for messages.

    Returns:
        Shape (n,): int64 positions in `label.classes`, or float64 targets clipped and scaled to [-1, 1].

    Raises:
        DataError: Values are missing, not numeric under bounds, or outside the public classes.

    Example:
        >>> encode_label(pd.Series(["no", "yes"]), Label(classes=("no", "yes")), column="smoker").tolist()
        [0, 1]
    """
    if isinstance(label, LabelBounds):
        return scale(as_numbers(values, column=column), lower=label.lower, upper=label.upper)
    _check_present(values, column=column)
    codes = _codes(values, label.classes, merge={})
    if bool((codes < 0).any()):
        raise DataError(
            f"label column {column!r} holds values outside the public classes {list(label.classes)!r}."
        )
    return codes
