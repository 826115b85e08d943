"""`tacit ledger`: create the ledgers of data sets, and show what has been spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_picture
from tacit.cli.names import PARTS, RELATIONS, UNITS
from tacit.cli.neighbours import neighbours_named
from tacit.cli.output import JsonFlag, print_json, print_line
from tacit.cli.several import several
from tacit.cli.spending import draw_spending, ledger_files, print_folder, print_ledger, summary
from tacit.errors import ParameterError, printable

if TYPE_CHECKING:
    from tacit.data import ColumnsSpec, TableFiles

__all__ = ["app"]


app = typer.Typer(
    help="Show or create the ledger of a data set: its limit, and what has been spent.", no_args_is_help=True
)


@app.command(cls=several("--silos-from"))
def create(
    path: Annotated[Path, typer.Argument(help="A new file; with --silos or --silos-from, a folder.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon that all runs together may cost.")],
    delta: Annotated[float, typer.Option(help="Delta that all runs together may cost, in [0, 1).")],
    neighbours: Annotated[
        str,
        typer.Option(
            click_type=OneOf(RELATIONS),
            help="What may differ between data sets that nobody can tell apart, in all runs: {names}.",
        ),
    ] = "replace-one",
    unit: Annotated[
        str | None,
        typer.Option(
            click_type=OneOf(UNITS),
            help="What is protected as one: {names}.",
            show_default="person, where a column description names the column of persons; else record",
        ),
    ] = None,
    part: Annotated[
        str,
        typer.Option(
            click_type=OneOf(
                PARTS,
                told={
                    "sensitive": "the sensitive columns, as `tacit train --protect` has it",
                    "reward": "of a log of rewards, as `tacit bandit run` reads it",
                },
            ),
            help="Which part of it is private: {names}.",
        ),
    ] = "all",
    label: Annotated[
        str, typer.Option(help="Public name of the data set, for a single ledger.", show_default="none")
    ] = "",
    silos: Annotated[
        str | None,
        typer.Option(help="Names of silos, separated by commas, for a folder.", show_default="one ledger"),
    ] = None,
    silos_from: Annotated[
        list[str] | None,
        typer.Option(
            help="Tables, a pattern or a folder: each file is a silo, or see --silo-column.",
            show_default="one ledger",
        ),
    ] = None,
    silo_column: Annotated[
        str | None,
        typer.Option(
            help="Column with the names of the silos, if --silos-from is one table.",
            show_default="each file is a silo",
        ),
    ] = None,
    columns: Annotated[
        str | None,
        typer.Option(
            help="TOML file with the columns of the tables of --silos-from, as in `tacit train`.",
            show_default="the one beside them",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Create the ledger of a data set, or a folder: its ledger, one for each silo and one for a server.

    The limit can never be changed, and it counts for all runs on the same data: in a folder every run is
    charged to the account of the data set too, whatever the trust model and however the silos are cut.
    """
    from tacit.data import find_tables
    from tacit.ledger import Ledger, create_ledgers
    from tacit.privacy import PrivacyBudget

    limit = PrivacyBudget(epsilon, delta)
    _check_roles(silos, silos_from, silo_column, columns)
    names = None if silos is None else [name.strip() for name in silos.split(",")]
    person = None
    if silos_from is not None:
        tables = find_tables(silos_from)
        described = tables.described(columns)
        names, person = _silo_names(tables, silo_column, described), described.person
    relation = neighbours_named(neighbours, unit or ("record" if person is None else "person"), part)
    if names is not None and label:
        raise ParameterError("label is for a single ledger; in a folder every ledger has its silo's name.")
    if names is None:
        Ledger.create(path, limit=limit, neighbours=relation, label=label).close()
        created = [path]
    else:
        created = create_ledgers(path, names, limit=limit, neighbours=relation)
    if json:
        print_json({"created": created, "limit": limit, "neighbours": relation})
        return
    text = f"epsilon {epsilon!r} at delta {delta!r}, for {relation}"
    what = f"{len(created)} ledgers in {path}, each" if names is not None else f"{path},"
    print_line(to_error=False, label="created", text=f"{what} with the limit {text}", colour="green")


@app.command()
def show(
    path: Annotated[Path, typer.Argument(help="A ledger file, a folder of ledgers, or one of tables.")],
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Picture of the spending over time: .svg, .png or .pdf.", show_default="no picture"
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Show what was spent, when and by which run, and what is left, of a ledger or of all in a folder.

    A bar is full where nothing is left of epsilon or of delta, whichever is scarcer.
    """
    if plot is not None:
        check_picture(plot)
    from tacit.ledger import ledgers_of

    path = ledgers_of(path)
    ledgers = [summary(file) for file in (ledger_files(path) if path.is_dir() else [path])]
    if plot is not None:
        draw_spending(plot, path, ledgers)
    if json:
        print_json({"version": 1} | ({"folder": path, "ledgers": ledgers} if path.is_dir() else ledgers[0]))
    elif path.is_dir():
        print_folder(path, ledgers)
    else:
        print_ledger(ledgers[0])


def _check_roles(
    silos: str | None, tables: list[str] | None, column: str | None, columns: str | None
) -> None:
    """Refuse two sources of silos, and words about tables where there are none."""
    if silos is not None and tables is not None:
        raise ParameterError("the silos come from --silos or from --silos-from, not from both.")
    if column is not None and tables is None:
        raise ParameterError("--silo-column is a column of the table of --silos-from, which is not given.")
    if columns is not None and tables is None:
        raise ParameterError("--columns describes the tables of --silos-from, which is not given.")


def _silo_names(tables: TableFiles, column: str | None, described: ColumnsSpec) -> list[str]:
    """Return the names of the silos of tables, as training calls them."""
    from tacit.data import read_silo_names
    from tacit.data.kinds import check_table_file

    if column is None:
        for file in tables.files:
            check_table_file(file)
        return [printable(name) for name in tables.silos]
    if len(tables.files) > 1:
        raise ParameterError(
            f"silo_column must be None where every file is a silo, got {column!r} and "
            f"{len(tables.files)} files."
        )
    # Where silos are described, those are the silos, whether or not they have a record.
    return [printable(name) for name in read_silo_names(tables.files[0], column, columns=described)]
