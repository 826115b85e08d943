"""Where the ledgers of tables lie: in one place for each data set, however its files are named."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tacit.data import TableFiles
from tacit.data.kinds import is_table_name, table_name
from tacit.errors import LedgerError, ParameterError
from tacit.ledger.folder import SUFFIX, ledger_path
from tacit.ledger.ledger import Ledger

__all__ = ["TOGETHER", "accounts_beside", "accounts_of", "beside", "ledgers_of", "place_of"]

TOGETHER: Final = f"silos{SUFFIX}"
"""The name of the folder of ledgers of tables that are silos together; it lies in their own folder."""


def place_of(ledger: Any) -> Path:
    """Return where a ledger lies that a person has handed over: an open one, or a path.

    Raises:
        ParameterError: It is neither.
    """
    if isinstance(ledger, Ledger):
        return ledger.path
    if not isinstance(ledger, str | os.PathLike):
        raise ParameterError(f"ledger must be a Ledger, a path or None, got {ledger!r:.80}.")
    return Path(ledger)


def beside(tables: Path | TableFiles) -> Path:
    """Return where the ledgers of a data set lie, or would lie.

    Those of several tables lie in their folder under the name `TOGETHER`, whether the folder, a pattern or a
    list named them, all or some of them; or in a folder above, where tables of several folders have their
    accounts. Those of one table lie there too, if it has an account there as a silo; else beside the table,
    with its name and the ending `SUFFIX`.

    Raises:
        LedgerError: There are two such places: ledgers of one table by itself and with others, beside a
            link and beside what it leads to, or in a folder and in one above.
    """
    known = _as_files(tables)
    several = len(known.files) > 1
    found = [place for place in accounts_beside(known) if place.name == TOGETHER or not several]
    if len(found) > 1:
        raise LedgerError(
            f"{known.files[0]}{' and the others have' if several else ' has'} accounts in two places, "
            f"{found[0]} and {found[1]}; name the one that counts with --ledger."
        )
    if found:
        return found[0]
    return known.folder / TOGETHER if known.together else _own([*_names(known.files[0])][-1])


def accounts_beside(tables: Path | TableFiles) -> list[Path]:
    """Return every ledger, or folder of ledgers, beside or above tables or their links that counts any."""
    known = _as_files(tables)
    places = [known.folder / TOGETHER] if known.together else []
    for name in (name for file in known.files for name in _names(file)):
        shared = name.parent / TOGETHER
        places += [shared] if known.together or ledger_path(shared, table_name(name)).is_file() else []
        places += [*_above(name), _own(name)]
    different = {place.resolve(): place for place in reversed(places) if place.exists()}
    return [*reversed(different.values())]


def _above(table: Path) -> Iterator[Path]:
    """Yield the folders of ledgers above a table's own folder that have an account of it as a silo.

    Where a table of the same name lies beside the account, that one is the silo: names differ in a data set.
    """
    name = table_name(table)
    for folder in table.absolute().parent.parents:
        place = folder / TOGETHER
        if os.path.isfile(ledger_path(place, name)) and not any(
            table_name(one) == name for one in folder.iterdir() if is_table_name(one)
        ):
            yield place if table.is_absolute() else Path(os.path.relpath(place))


def ledgers_of(place: Path) -> Path:
    """Return the ledgers that a person names: by themselves, or by the folder of tables that they lie in."""
    inside = place / TOGETHER
    return inside if inside.is_dir() else place


def accounts_of(tables: TableFiles, place: Path) -> list[Path]:
    """Return what pays for an answer about tables: their own accounts, where the place has one of each silo.

    The account of the data set, which lies beside them, pays as well (`open_paying`).

    Raises:
        LedgerError: Some of several tables have an account there as a silo, and others none.
    """
    found = {file: _account_of(file, place) for file in tables.files}
    without = [str(file) for file, account in found.items() if account == place]
    if 0 < len(without) < len(found):
        raise LedgerError(
            f"{place} has no account of {', '.join(without)}; `tacit ledger create {place} --silos-from` "
            "with these files adds it."
        )
    return list(dict.fromkeys(found.values()))


def _account_of(table: Path, place: Path) -> Path:
    """Return the account of a table as a silo, or the place itself."""
    accounts = [ledger_path(place, table_name(name)) for name in _names(table)]
    return next((one for one in accounts if place.name == TOGETHER and one.is_file()), place)


def _as_files(tables: Path | TableFiles) -> TableFiles:
    """Return one table as files."""
    return tables if isinstance(tables, TableFiles) else TableFiles((tables,), together=False)


def _names(table: Path) -> Iterator[Path]:
    """Return a table as it was named, and then by the name that links lead to."""
    yield table
    if table.exists() and table.resolve() != table.absolute():
        yield table.resolve()


def _own(table: Path) -> Path:
    """Return the place beside a table that has its name."""
    return table.with_name(f"{table_name(table)}{SUFFIX}")
