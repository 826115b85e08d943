"""Groups: one or several sensitive columns as one code for each record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from tacit.errors import DataError, ParameterError
from tacit.numerics import Array, IntArray

__all__ = ["Groups", "group_text"]

_MOST_VALUES = 100
"""A column of numbers with a fraction, or with more values than this, is taken for a continuous one."""


@dataclass(frozen=True)
class Groups:
    """The group of each record.

    Several sensitive columns make one group of each combination that occurs: k is at most the number of
    records, whatever the number of combinations there could be.

    Attributes:
        codes: Shape (n,), in 0..k-1; -1 where the attribute of a record is not known.
        names: What each group is called, k of them: a value, or a tuple with one value per column.
    """

    codes: IntArray
    names: tuple[Any, ...]

    def __len__(self) -> int:
        return len(self.names)

    @property
    def counts(self) -> IntArray:
        """Number of records of each group, shape (k,)."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.names))

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Whether the attribute of each record is known, shape (n,)."""
        return self.codes >= 0

    @property
    def frequencies(self) -> Array:
        """Share of each group among records with a known attribute, shape (k,).

        Raises:
            DataError: No attribute is known.
        """
        counts = self.counts
        if counts.sum() == 0:
            raise DataError("sensitive_features must be known for at least one record.")
        return np.asarray(counts / counts.sum())

    @classmethod
    def of(
        cls,
        sensitive: Any,
        *,
        names: Sequence[Any] | None = None,
        missing: Any = False,
    ) -> Self:
        """Read sensitive columns.

        Args:
            sensitive: Shape (n,), or (n, columns): an array, a series or a frame of texts or whole numbers.
            names: All groups there may be, as a public list: values, or tuples of one value per column. None
                reads off those that occur, in sorted order, which under privacy would tell that they do.
            missing: Whether None and NaN stand for an attribute that is not known; any other value than True
                and False, such as -1, stands for one, too. A record with one unknown column among several is
                of no known group.

        Raises:
            DataError: Another shape, a continuous column, values that are no names, missing values that
                were not declared, or a value that is not among `names`.
            ParameterError: `names` has duplicates or tuples of another length.

        Example:
            >>> Groups.of(["f", "m", "f"]).codes.tolist()
            [0, 1, 0]
            >>> Groups.of([["f", 1], ["m", 0], ["f", 0]]).names
            (('f', 0), ('f', 1), ('m', 0))
        """
        table = _as_frame(sensitive)
        declared = not isinstance(missing, bool | np.bool_)
        if declared:
            table = table.mask(table == missing)
        unknown = table.isna().any(axis=1).to_numpy()
        if unknown.any() and not (declared or missing):
            raise DataError(
                f"sensitive_features has {int(unknown.sum())} records without a value; say that they are "
                "missing (missing=True, --missing), or leave those records out."
            )
        if names is None:  # declared groups are discrete, whatever stands in a cell
            for column in table.columns:
                _check_discrete(column, table[column], alone=table.shape[1] == 1)
        rows = table[~unknown]
        try:
            combinations, firsts = _combinations(rows)
        except TypeError:  # lists, such as rows of unequal lengths
            raise DataError("sensitive_features must hold texts or whole numbers.") from None
        one = table.shape[1] == 1
        found = [
            _plain(row[0]) if one else tuple(_plain(value) for value in row)
            for row in rows.iloc[firsts].itertuples(index=False, name=None)
        ]
        wanted = _sorted(set(found)) if names is None else _declared(names, table.shape[1])
        places = {name: place for place, name in enumerate(wanted)}
        codes = np.full(len(table), -1, dtype=np.int64)
        try:
            codes[~unknown] = np.array([places[name] for name in found], dtype=np.int64)[combinations]
        except KeyError:
            raise DataError("sensitive_features has a value that is not among the declared groups.") from None
        return cls(codes, tuple(wanted))

    def take(self, index: IntArray) -> Self:
        """Return the records of a batch, with the same groups."""
        return type(self)(self.codes[index], self.names)

    def counts_within(self, conditions: IntArray, size: int) -> IntArray:
        """Count the records of each condition and group.

        Args:
            conditions: Shape (n,), in 0..size-1; -1 where a record has none.
            size: Number of conditions.

        Returns:
            Shape (size, k).
        """
        looked = (conditions >= 0) & (self.codes >= 0)
        flat = conditions[looked] * len(self.names) + self.codes[looked]
        return np.bincount(flat, minlength=size * len(self.names)).reshape(size, len(self.names))


def _as_frame(sensitive: Any) -> pd.DataFrame:
    """Return sensitive columns as a frame with a plain index."""
    if isinstance(sensitive, pd.DataFrame):
        table = sensitive.reset_index(drop=True)
    elif isinstance(sensitive, pd.Series):
        table = sensitive.reset_index(drop=True).to_frame()
    else:
        values = np.asarray(sensitive, dtype=object) if isinstance(sensitive, list | tuple) else sensitive
        values = np.asarray(values)
        if values.ndim not in (1, 2) or values.size == 0:
            raise DataError(f"sensitive_features must have shape (n,) or (n, columns), got {values.shape}.")
        table = pd.DataFrame(values.reshape(len(values), -1)).infer_objects()
    if table.shape[0] == 0 or table.shape[1] == 0:
        raise DataError(f"sensitive_features must have records and columns, got shape {table.shape}.")
    return table


def _combinations(rows: pd.DataFrame) -> tuple[IntArray, IntArray]:
    """Return which combination of values each row has, in order of appearance, and the first row of each.

    Column by column, so that codes stay below the number of rows times that of a column's values.
    """
    codes = np.zeros(len(rows), dtype=np.int64)
    for _, column in rows.items():
        values, different = pd.factorize(column)
        codes = pd.factorize(codes * len(different) + values)[0]
    return codes, np.unique(codes, return_index=True)[1]


def _check_discrete(column: Any, values: pd.Series, *, alone: bool) -> None:
    """Refuse a column whose values are measured rather than named, as numbers or as texts of numbers."""
    known = _numbers(values.dropna())
    if known is None:
        return
    which = "sensitive_features" if alone else f"column {column!r} of sensitive_features"
    if not np.array_equal(known, np.round(known)):
        raise DataError(f"{which} is continuous: cut it into groups first, such as by pandas.cut.")
    if pd.api.types.is_numeric_dtype(values) and len(known) > _MOST_VALUES:
        raise DataError(
            f"{which} has more than {_MOST_VALUES} different numbers: cut it into groups first, such as by "
            "pandas.cut, or make it text."
        )


def _numbers(values: pd.Series) -> Array | None:
    """Return the different numbers of a column; None where it holds something else."""
    if pd.api.types.is_bool_dtype(values):
        return None
    if pd.api.types.is_numeric_dtype(values):
        return np.unique(values.to_numpy())
    try:
        return np.unique([float(one) for one in set(values)])
    except (TypeError, ValueError):
        return None


def _plain(value: Any) -> Any:
    """Return a value as Python has it, and a whole float as an integer: 1.0 beside a NaN is group 1."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _sorted(found: set[Any]) -> list[Any]:
    """Return groups in order; by their text where they do not compare."""
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda name: (str(type(name)), str(name)))


def _declared(names: Sequence[Any], columns: int) -> list[Any]:
    """Return the groups that the caller declares."""
    if columns == 1:
        wanted = [_plain(name) for name in names]
    else:
        wanted = [
            tuple(_plain(part) for part in name) for name in names if isinstance(name, Sequence | np.ndarray)
        ]
        if len(wanted) != len(names) or any(len(name) != columns for name in wanted):
            raise ParameterError(f"names must be tuples of {columns} values each, one per column.")
    if not wanted or len(set(wanted)) < len(wanted):
        raise ParameterError(f"names must have at least one group, each once, got {len(wanted)}.")
    return wanted


def group_text(name: Any) -> str:
    """Return what a group is called, such as "Female, White"."""
    return ", ".join(map(str, name)) if isinstance(name, tuple) else str(name)
