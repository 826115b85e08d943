"""The files that a person names: one table, or several that hold one silo each."""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tacit.data.columns_spec import ColumnsSpec, sidecar_path
from tacit.data.kinds import ENDINGS, is_table_name, table_name
from tacit.errors import DataError, shown

__all__ = ["TableFiles", "find_tables"]


@dataclass(frozen=True, slots=True)
class TableFiles:
    """The files of one data set.

    Attributes:
        files: The tables, sorted by the names of their silos, so that a folder, a pattern and a list of the
            same files are the same data set.
        together: Whether they were named as silos of one data set, by several names, a pattern or a folder;
            else it is one table that was named by itself.
    """

    files: tuple[Path, ...]
    together: bool

    @property
    def silos(self) -> tuple[str, ...]:
        """The name of each file without its endings, which is its silo's."""
        return tuple(map(table_name, self.files))

    @property
    def folder(self) -> Path:
        """The folder that all of them lie in; the nearest one above, if they lie in several."""
        folders = dict.fromkeys(file.parent for file in self.files)
        if len(folders) == 1:
            return self.files[0].parent
        return Path(os.path.relpath(os.path.commonpath([folder.absolute() for folder in folders])))

    @property
    def description(self) -> Path:
        """Where their columns are described: the sidecar of one table, else `columns.toml` in their folder.

        So one table has the same description whether it was named by itself, by a pattern or by its folder.
        Where there is none yet: the place for one.
        """
        own, shared = sidecar_path(self.files[0]), self.folder / "columns.toml"
        alone = len(self.files) == 1 and (own.is_file() or not (self.together or shared.is_file()))
        return own if alone else shared

    def described(self, by: Path | str | None = None) -> ColumnsSpec:
        """Return what is publicly known of the columns, the label and who is protected.

        Args:
            by: A description; None takes the one beside the tables, or knows nothing where there is none.

        Raises:
            DataError: The description is missing, or is none.
        """
        known = by is not None or self.description.is_file()
        return ColumnsSpec.read(self.description if by is None else Path(by)) if known else ColumnsSpec()


def find_tables(said: Path | str | Sequence[Path | str]) -> TableFiles:
    """Return the tables that a person names.

    Args:
        said: Files, folders, and patterns such as `wards/*.csv`. A folder stands for all tables in it, those
            whose names end in `.csv`, `.csv.gz`, `.tsv`, `.tsv.gz` or `.parquet`; hidden files are left out,
            and so is anything else that a pattern matches.

    Returns:
        The files. What is in them is not looked at.

    Raises:
        DataError: No file, two of one name (without endings), or one that is named twice or by a link.
    """
    words = [said] if isinstance(said, Path | str) else list(said)
    files = [file for word in words for file in _files(word)]
    if not files:
        raise DataError("no table is named.")
    files.sort(key=lambda file: (table_name(file), str(file)))
    for one, other in pairwise(files):
        if table_name(one) == table_name(other):
            raise DataError(
                f"two tables have the name {table_name(one)!r}, by which their silos are told apart: {one} "
                f"and {other}; rename one of them, or leave it out."
            )
    first: dict[tuple[int, int], Path] = {}
    for file in files:
        if file.exists():
            known = first.setdefault((file.stat().st_dev, file.stat().st_ino), file)
            if known is not file:
                raise DataError(f"{known} and {file} are the same file, which is one silo; name it once.")
    alone = len(words) == 1 and files == [Path(words[0])]
    return TableFiles(tuple(files), together=not alone)


def _files(word: Path | str) -> list[Path]:
    """Return the files that one word stands for."""
    path = Path(word)
    if path.is_dir():
        found = [file for file in path.iterdir() if not file.name.startswith(".")]
    elif path.exists() or not glob.has_magic(str(word)):
        return [path]
    else:
        found = [Path(name) for name in glob.glob(str(word), recursive=True)]
    tables = [file for file in found if is_table_name(file) and file.is_file()]
    if not tables:
        where = f"the folder {path} holds" if path.is_dir() else f"the pattern {shown(str(word))} matches"
        raise DataError(f"{where} no table; the names of tables end in {', '.join(ENDINGS)}.")
    return tables
