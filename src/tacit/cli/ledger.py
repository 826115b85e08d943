"""`tacit ledger`: create the ledgers of data sets, and show what has been spent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from msgspec.structs import asdict

from tacit.cli.neighbours import neighbours_named
from tacit.cli.output import JsonFlag, print_facts, print_json, print_line, print_table
from tacit.errors import LedgerError, ParameterError, printable

if TYPE_CHECKING:
    from tacit.ledger import Cost
    from tacit.privacy import PrivacyBudget

__all__ = ["app"]

_ENTRY: Final = ("time", "run", "epsilon", "delta")
"""What people read of a reservation."""

app = typer.Typer(
    help="Show or create the ledger of a data set: its limit, and what has been spent.", no_args_is_help=True
)


@app.command()
def create(
    path: Annotated[Path, typer.Argument(help="A new file; with --silos or --silos-from, a folder.")],
    epsilon: Annotated[float, typer.Option(help="Epsilon that all runs together may cost.")],
    delta: Annotated[float, typer.Option(help="Delta that all runs together may cost, in [0, 1).")],
    neighbours: Annotated[
        str, typer.Option(help="replace-one, add-remove or zero-out; the same in all runs.")
    ] = "replace-one",
    unit: Annotated[str, typer.Option(help="Who is protected: record, person or party.")] = "record",
    label: Annotated[str, typer.Option(help="Public name of the data set, for a single ledger.")] = "",
    silos: Annotated[str | None, typer.Option(help="Names of silos, separated by commas.")] = None,
    silos_from: Annotated[Path | None, typer.Option(help="Table whose silo column names the silos.")] = None,
    silo_column: Annotated[
        str | None, typer.Option(help="Column of that table with the names of the silos.")
    ] = None,
    columns: Annotated[
        str | None, typer.Option(help="TOML file with the columns of that table, as in `tacit train`.")
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Create the ledger of a data set, or a folder: its ledger, one for each silo and one for a server.

    The limit can never be changed, and it counts for all runs on the same data: in a folder every run is
    charged to the account of the data set too, whatever the trust model and however the silos are cut.
    """
    from tacit.ledger import Ledger, create_ledgers
    from tacit.privacy import PrivacyBudget

    limit = PrivacyBudget(epsilon, delta)
    relation = neighbours_named(neighbours, unit)
    names = _silo_names(silos, silos_from, silo_column, columns)
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
    path: Annotated[Path, typer.Argument(help="A ledger file, or a folder of ledgers.")],
    json: JsonFlag = False,
) -> None:
    """Show the limit, the spending and the reservations of a ledger, or of all in a folder."""
    if path.is_dir():
        ledgers = [_summary(file) for file in _ledger_files(path)]
        if json:
            print_json({"folder": path, "ledgers": ledgers})
        else:
            _print_folder(path, ledgers)
        return
    found = _summary(path)
    if json:
        print_json(found)
    else:
        _print_ledger(found)


def _silo_names(
    silos: str | None, table: Path | None, column: str | None, columns: str | None
) -> list[str] | None:
    """Return the names of the silos; None where a single ledger is wanted."""
    if silos is not None and table is not None:
        raise ParameterError("the silos come from --silos or from --silos-from, not from both.")
    if (table is None) != (column is None):
        raise ParameterError("--silos-from and --silo-column go together: a table, and its column of names.")
    if table is not None and column is not None:
        from tacit.data import ColumnsSpec, read_silo_names

        # Where silos are described, those are the silos, whether or not they have a record.
        described = None if columns is None else ColumnsSpec.read(Path(columns))
        return [printable(name) for name in read_silo_names(table, column, columns=described)]
    if columns is not None:
        raise ParameterError("--columns describes the table of --silos-from, which is not given.")
    return None if silos is None else [name.strip() for name in silos.split(",")]


def _ledger_files(folder: Path) -> list[Path]:
    """Return the ledgers in a folder, the data set's first and the trusted server's last."""
    from tacit.ledger import CENTRAL, DATA_SET, SUFFIX, ledger_path

    first, last = ledger_path(folder, DATA_SET), ledger_path(folder, CENTRAL)
    files = sorted(folder.glob(f"*{SUFFIX}"), key=lambda file: (file != first, file == last, file.name))
    if not files:
        raise LedgerError(f"{folder} holds no ledgers; `tacit ledger create` makes them.")
    return files


def _summary(path: Path) -> dict[str, Any]:
    """Return what a ledger says, without the stored answers."""
    from tacit.ledger import Ledger

    with Ledger.open(path) as ledger:
        # Read before the sums, which only grow: a reservation made meanwhile is then missing in the list,
        # never in what is spent.
        names = (*_ENTRY, "plan_digest")
        entries = [{name: one[name] for name in names} for one in map(asdict, ledger.entries())]
        return {
            "path": path,
            "label": ledger.label,
            "neighbours": ledger.neighbours,
            "limit": ledger.limit,
            "spent": ledger.spent(),
            "remaining": ledger.remaining(),
            "entries": entries,
        }


def _print_ledger(found: dict[str, Any]) -> None:
    """Print one ledger."""
    facts = {
        "label": found["label"] or "none",
        "neighbours": found["neighbours"],
        "limit": _cost(found["limit"]),
        "spent": _cost(found["spent"]),
        "remaining": _cost(found["remaining"]),
        "runs": len(found["entries"]),
    }
    print_facts(facts, title=str(found["path"]))
    if found["entries"]:
        rows = [tuple(entry[name] for name in _ENTRY) for entry in found["entries"]]
        print_table(_ENTRY, rows, right=("epsilon", "delta"))


def _print_folder(folder: Path, ledgers: list[dict[str, Any]]) -> None:
    """Print the sums of all ledgers in a folder, then their reservations."""
    costs = ("limit", "spent", "remaining")
    sums = [
        (
            _name(found),
            *(repr(found[cost].epsilon) for cost in costs),
            *(repr(found[cost].delta) for cost in costs),
            len(found["entries"]),
        )
        for found in ledgers
    ]
    numbers = ("epsilon", "spent", "left", "delta", "runs")
    columns = ("ledger", "epsilon", "spent", "left", "delta", "spent", "left", "runs")
    relations = sorted({str(found["neighbours"]) for found in ledgers})
    print_facts({"neighbours": "; ".join(relations)}, title=str(folder))
    print_table(columns, sums, right=numbers)
    entries = [(_name(found), entry) for found in ledgers for entry in found["entries"]]
    if entries:
        rows = [(name, *(entry[column] for column in _ENTRY)) for name, entry in entries]
        print_table(("ledger", *_ENTRY), rows, right=numbers)


def _name(found: dict[str, Any]) -> str:
    """Return what a ledger is called in a folder."""
    return str(found["label"] or found["path"].name)


def _cost(cost: PrivacyBudget | Cost) -> str:
    """Return a limit or a sum of prices on one line."""
    return f"epsilon {cost.epsilon!r} at delta {cost.delta!r}"
