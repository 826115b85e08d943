"""What is publicly known about a table: bounds, categories, classes; read and written as TOML."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from pathlib import Path
from typing import Literal

import msgspec

from tacit.data.kinds import table_name, utf8_text
from tacit.errors import DataError, ParameterError

__all__ = [
    "FILL_IN",
    "Categorical",
    "Column",
    "ColumnsSpec",
    "Date",
    "Ignore",
    "Label",
    "LabelBounds",
    "Numeric",
    "Unbounded",
    "UnboundedLabel",
    "Value",
    "sidecar_path",
    "toml_key",
    "toml_literal",
]

Value = str | int
"""A category or a class. Cells are compared with it as text, without blanks around it.

"01" and 1 are two categories. A cell that is not described as it stands is compared once more, whole numbers
without a ".0" and truth values as True and False: so `1`, `1.0` and "1.0" are all the category 1.
"""

FILL_IN = "<fill in>"
"""Stands for what a person has to fill in; a description that holds it is refused."""

_VERSION = 1


def _check_bounds(lower: float, upper: float) -> None:
    """Refuse bounds that are not finite or not in order."""
    if not (math.isfinite(lower) and math.isfinite(upper) and lower < upper):
        raise ParameterError(
            f"lower and upper must be finite with lower < upper, got {lower!r} and {upper!r}."
        )


def _check_distinct(name: str, values: tuple[Value, ...], *, low: int) -> None:
    """Refuse repeated values (as text, without blanks around it) and fewer than `low` of them."""
    if len(values) < low:
        raise ParameterError(f"{name} must hold at least {low} values, got {len(values)}.")
    if len({str(value).strip() for value in values}) < len(values):
        raise ParameterError(f"{name} must be distinct when compared as text, got {list(values)!r}.")


class _Bounded(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A column of numbers with public bounds.

    Attributes:
        lower: Smallest value that is told apart, in the units of the column. Finite, < `upper`.
        upper: Largest value that is told apart. Finite.
        missing: What a missing cell counts as: the "middle" of the bounds, a number within them, or
            "indicator": the middle, and one more feature that is 1 where the cell is missing, else 0.
    """

    lower: float
    upper: float
    missing: float | Literal["middle", "indicator"] = "middle"

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper)
        if not isinstance(self.missing, str) and not self.lower <= self.missing <= self.upper:
            raise ParameterError(
                f"missing must be 'middle', 'indicator' or a number within the bounds, got {self.missing!r}."
            )


class Numeric(_Bounded, frozen=True, kw_only=True, tag_field="kind", tag="numeric"):
    """A numeric column with public bounds; values outside are clipped."""


class Unbounded(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="unbounded",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """A numeric column without bounds, whose cells count as they stand: for training with a stated moment.

    Attributes:
        missing: What a cell counts as that is missing or no finite number: a number, or "indicator": 0, and
            one more feature that is 1 there, else 0. None: the whole record counts as zero.
    """

    missing: float | Literal["indicator"] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.missing, float) and not math.isfinite(self.missing):
            raise ParameterError(f"missing must be 'indicator' or a finite number, got {self.missing!r}.")


class Date(_Bounded, frozen=True, kw_only=True, tag_field="kind", tag="date"):
    """A column of dates, which count as years before a public day: an age, the time since a visit.

    Attributes:
        reference: The public day; in TOML without quotes, `reference = 2026-01-01`.
        format: How a cell is written, as for `datetime.strptime`. The usual one, "%Y-%m-%d", also reads a
            time of the day behind the date.
    """

    reference: date
    format: str = "%Y-%m-%d"

    def __post_init__(self) -> None:
        super().__post_init__()
        day = date(2013, 11, 25)
        try:
            found = datetime.strptime(day.strftime(self.format), self.format).date()
        except ValueError:
            found = None
        if found != day:
            raise ParameterError(
                "format must hold a year, a month and a day, such as '%Y-%m-%d' or '%d.%m.%Y', got "
                f"{self.format!r}."
            )


class Categorical(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    tag_field="kind",
    tag="categorical",
    forbid_unknown_fields=True,
    omit_defaults=True,
):
    """A column with public categories; other values encode as zeros, as an error would depend on the data.

    Attributes:
        categories: The values that are told apart, in the order of the one-hot columns. Distinct.
        merge: Values rewritten before the look-up, old to new, such as undocumented codes into "other".
        ordinal: One feature, the categories spread evenly over [-1, 1] in their order, not one-hot.
        missing: What a missing cell counts as: one of the categories, or "category": one more feature that is
            1 where the cell is missing, else 0. None: no category, as zeros; the middle where `ordinal`.
    """

    categories: tuple[Value, ...]
    merge: dict[str, Value] = {}
    ordinal: bool = False
    missing: Value | None = None

    def __post_init__(self) -> None:
        _check_distinct("categories", self.categories, low=2 if self.ordinal else 1)
        known = {str(value).strip() for value in self.categories}
        unknown = [value for value in self.merge.values() if str(value).strip() not in known]
        if unknown:
            raise ParameterError(f"merge must map to values in categories, got {unknown!r}.")
        if self.missing == "category" and "category" in known:
            raise ParameterError("missing must not be 'category' where one of the categories has that name.")
        if self.missing not in (None, "category") and str(self.missing).strip() not in known:
            raise ParameterError(f"missing must be 'category' or one of categories, got {self.missing!r}.")


class Ignore(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="ignore", forbid_unknown_fields=True
):
    """A column that is not a feature: an identifier, free text, a leak of the label."""


Column = Numeric | Unbounded | Date | Categorical | Ignore


class Label(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="classes", forbid_unknown_fields=True
):
    """The public classes of a label; a record's class is its position here.

    Attributes:
        classes: At least two distinct values. For two classes the second one is the positive one.
        column: The column these are the classes of; None for whichever column is named as the label.
    """

    classes: tuple[Value, ...]
    column: str | None = None

    def __post_init__(self) -> None:
        _check_distinct("classes", self.classes, low=2)


class LabelBounds(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="numeric", forbid_unknown_fields=True
):
    """The public bounds of a numeric label, for regression.

    Attributes:
        lower: Smallest target that is told apart, in its units. Finite, < `upper`.
        upper: Largest target that is told apart. Finite.
        column: The column these are the bounds of; None for whichever column is named as the label.
    """

    lower: float
    upper: float
    column: str | None = None

    def __post_init__(self) -> None:
        _check_bounds(self.lower, self.upper)


class UnboundedLabel(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="unbounded", forbid_unknown_fields=True
):
    """A numeric label without bounds, for regression with a stated moment.

    Attributes:
        column: The column it is; None for whichever column is named as the label.
    """

    column: str | None = None


class ColumnsSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All that is publicly known of a table's columns.

    Attributes:
        columns: Description by column name. Their order is the order of the features, so that silos whose
            tables have their columns in another order still agree on the model.
        label: Classes or bounds of the label, if known.
        person: Column that identifies the person of each record, where persons are protected.
        version: Version of the form; only 1 is known.
    """

    columns: dict[str, Column] = {}
    label: Label | LabelBounds | UnboundedLabel | None = None
    person: str | None = None
    version: int = _VERSION

    def __post_init__(self) -> None:
        if self.version != _VERSION:
            raise ParameterError(f"version must be {_VERSION}, got {self.version!r}.")

    @classmethod
    def from_toml(cls, text: str | bytes, *, source: str = "the column description") -> ColumnsSpec:
        r"""Read a description.

        Args:
            text: TOML with an optional `[label]` table and one `[columns.<name>]` table per column.
            source: What error messages call the text, for instance its path.

        Returns:
            The checked description.

        Raises:
            DataError: `text` is not TOML, or describes a column in a way that is not allowed.

        Example:
            >>> spec = ColumnsSpec.from_toml('[columns.age]\nkind = "numeric"\nlower = 0\nupper = 100')
            >>> spec.columns["age"]
            Numeric(lower=0.0, upper=100.0, missing='middle')
        """
        text = utf8_text(text, source) if isinstance(text, bytes) else text
        try:
            if open_places := list(_open_places(msgspec.toml.decode(text))):
                raise DataError(
                    f"{source} is not filled in yet: replace {FILL_IN!r} in {', '.join(open_places)} by what "
                    "is publicly known."
                )
            return msgspec.toml.decode(text, type=cls)
        except msgspec.DecodeError as error:
            raise DataError(f"{source} is not a column description: {_fault(text, error)}.") from error

    @classmethod
    def read(cls, path: Path) -> ColumnsSpec:
        """Read a description from a file.

        Raises:
            DataError: The file is missing, cannot be read or is not a column description.
        """
        try:
            text = path.read_bytes()
        except OSError as error:
            raise DataError(f"column description {path} cannot be read: {error.strerror}.") from error
        return cls.from_toml(text, source=str(path))

    def to_toml(self) -> str:
        """Write the description as TOML that `from_toml` reads back as an equal object."""
        sections = [f"version = {self.version}\n"]
        if self.person is not None:
            sections.append(f"person = {toml_literal(self.person)}\n")
        if self.label is not None:
            sections.append(_section("label", msgspec.to_builtins(self.label)))
        sections += [
            _section(f"columns.{toml_key(name)}", msgspec.to_builtins(column, builtin_types=[date]))
            for name, column in self.columns.items()
        ]
        return "\n".join(sections)


def _fault(text: str, error: msgspec.DecodeError) -> str:
    """Return what is wrong with a description, by the name of the column where it is one's."""
    columns = msgspec.toml.decode(text).get("columns") if isinstance(error, msgspec.ValidationError) else None
    for name, column in columns.items() if isinstance(columns, dict) else ():
        try:
            msgspec.convert(column, Column, builtin_types=[date])
        except msgspec.ValidationError as fault:
            said, of_kind, _ = str(fault).partition(" - at `$.kind`")
            kinds = "; kind must be numeric, unbounded, date, categorical or ignore" if of_kind else ""
            return f"column {name!r}: {said.rstrip('.')}{kinds}"
    return str(error).rstrip(".")


def _open_places(value: object, place: str = "") -> Iterator[str]:
    """Return where a description has to be filled in."""
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _open_places(inner, f"{place}.{name}" if place else name)
    elif value == FILL_IN or (isinstance(value, list) and FILL_IN in value):
        yield place


def sidecar_path(table: Path) -> Path:
    """Return where a table's description is looked for: `clinics.columns.toml` beside `clinics.csv`."""
    return table.with_name(f"{table_name(table)}.columns.toml")


def _section(header: str, fields: Mapping[str, object]) -> str:
    """Return one TOML table."""
    lines = [
        f"{toml_key(name)} = {toml_literal(value)}" for name, value in fields.items() if value is not None
    ]
    return "\n".join([f"[{header}]", *lines]) + "\n"


def toml_key(name: str) -> str:
    """Return a TOML key, quoted where a bare one is not allowed."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else toml_literal(name)


def toml_literal(value: object) -> str:
    """Return a TOML value."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(k)} = {toml_literal(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_literal(item) for item in value) + "]"
    if isinstance(value, date):
        return value.isoformat()
    # JSON strings, numbers and booleans are TOML values too, except for a raw delete character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
