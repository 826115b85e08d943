"""What `tacit frequencies` reads: one column, the public domain of its values, and whose the rows are."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from tacit.errors import DataError, ParameterError

if TYPE_CHECKING:
    from tacit.data import TableFiles
    from tacit.data.columns_spec import Value
    from tacit.numerics import IntArray

__all__ = ["OTHER", "Domain", "Places", "lines_of", "read_column"]

OTHER: Final = "other"
"""The value that a cell outside of the domain counts as; the last one, unless the domain has it."""


class Domain:
    """The public values of a column, in order.

    Attributes:
        names: The values as text, `OTHER` among them.
    """

    def __init__(self, values: list[Value], *, source: str, merge: dict[str, Value] | None = None) -> None:
        names = [str(value).strip() for value in values]
        if twice := sorted({name for name in names if names.count(name) > 1} if len(names) < 1000 else set()):
            raise ParameterError(f"{source} must be different ones, got {twice[0]!r} more than once.")
        if len(set(names)) != len(names):
            raise ParameterError(f"{source} must be different ones, and one is there more than once.")
        if not names or "" in names:
            raise ParameterError(f"{source} must be at least one text that is not empty.")
        if names == [OTHER]:
            raise ParameterError(
                f"{source} must have one that is not {OTHER!r}, which any other cell counts as."
            )
        self.names = names if OTHER in names else [*names, OTHER]
        self._other = self.names.index(OTHER)
        self._merge = merge

    @classmethod
    def given(cls, values: list[str] | None, file: Path | None, tables: TableFiles, column: str) -> Domain:
        """Return the domain of the options, or of the column description; never one that was read off data.

        Args:
            values: Values, those in one text separated by commas; None where there are none.
            file: One value a line, UTF-8; None where there is none.
            tables: Whose description may have the column's categories.
            column: Name of the column.

        Raises:
            ParameterError: Both or none of them, or values that are not different ones.
        """
        if values is not None and file is not None:
            raise ParameterError("values and domain must not both be given.")
        if values is not None:
            return cls([part for one in values for part in one.split(",")], source="values")
        if file is not None:
            return cls([*lines_of("domain", file)], source=f"the lines of {file}")
        from tacit.cli.mean_columns import described_columns
        from tacit.data import Categorical

        known = described_columns(tables).get(column)
        if not isinstance(known, Categorical):
            raise ParameterError(
                f"values or domain must be given: the possible values of column {column!r} must be public, "
                "and no column description lists them as categories."
            )
        return cls(list(known.categories), source="categories", merge=dict(known.merge))

    def places(self, cells: object) -> IntArray:
        """Return the place of every cell; that of `OTHER` for one that no value describes."""
        import numpy as np
        import pandas as pd

        from tacit.data.cells import distinct_texts, positions

        found, which = distinct_texts(pd.Series(cells))
        place = positions(found, self.names, self._merge)
        return np.where(place < 0, self._other, place)[which].astype(np.int64)


def lines_of(name: str, file: Path) -> list[str]:
    """Return the lines of a file of an option that are not blank.

    Raises:
        ParameterError: It cannot be read, or is not UTF-8.
    """
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise ParameterError(f"{name} must be a readable file, got {str(file)!r}: {reason}.") from error
    return [line for line in lines if line.strip()]


class Places(Protocol):
    """A domain that says where every cell is in it: one row of a whole array for each."""

    def places(self, cells: object) -> Any:
        """Return the place of every cell, whatever the others are."""


def read_column(
    tables: TableFiles, column: str, domain: Places, *, person: str | None, apart: bool = False
) -> tuple[IntArray, list[int]]:
    """Return the values of one column, one for each protected unit, and how many units each table has.

    Args:
        tables: Files with that column.
        column: Its name.
        domain: Of its values.
        person: Column with the id of each record's person, who counts once: by the first of the person's
            records, which no other person's records change. None where records are protected.
        apart: Whether tables stay apart: a person counts in each of them.

    Raises:
        DataError: A table without the column.
        ParameterError: `person` is the column itself.
    """
    import numpy as np

    from tacit.cli.mean_columns import told_apart, units_of
    from tacit.data import read_table
    from tacit.data.cells import together
    from tacit.data.encoding import check_columns
    from tacit.data.tables import person_ids

    if person == column:
        raise ParameterError(f"person must be another column than that of the values, got {person!r}.")
    frames = [read_table(file) for file in tables.files]
    for file, frame in zip(tables.files, frames, strict=True):
        try:
            check_columns(frame, [column], role="column")
            check_columns(frame, [] if person is None else [person], role="person")
        except DataError as error:
            raise error if len(frames) == 1 else DataError(f"{file}: {error}") from error
    values = np.concatenate([domain.places(frame[column]) for frame in frames])
    if person is None:
        return values, list(map(len, frames))
    ids = person_ids(together([frame[person] for frame in frames]))
    rows = list(map(len, frames))
    if apart:
        ids = told_apart(ids, rows)
    first: dict[str, int] = {}
    for place, one in enumerate(ids.tolist()):
        first.setdefault(one, place)
    kept = np.fromiter(first.values(), dtype=np.int64, count=len(first))
    return values[kept], units_of(ids, rows, apart=apart)
