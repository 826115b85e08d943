"""`tacit predict`: score new records with a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.files import ModuleFlag, check_file, find_run, note_unused
from tacit.cli.output import JsonFlag, print_json, print_line, print_table, print_text, results_alone
from tacit.errors import DataError, ParameterError, install_extra

if TYPE_CHECKING:
    import pandas as pd

    from tacit.jobs import TrainedModel

__all__ = ["predict"]

_KINDS = (".csv", ".csv.gz", ".parquet")


def predict(
    run: Annotated[
        Path, typer.Argument(help="Name or folder of a run, or its model.json.", show_default=False)
    ],
    table: Annotated[
        Path, typer.Argument(help="New records: a CSV or Parquet file, no label needed.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="File to write: .csv, .csv.gz or .parquet.", show_default=False)],
    module: ModuleFlag = None,
    json: JsonFlag = False,
) -> None:
    """Score new records with the model of a run.

    The file that is written has a line for every record, in their order: the columns that the model does not
    use, such as ids, then the prediction, and for classes the probability of each. The table may have its
    columns in any order. Scoring costs no privacy budget: the model is what the guarantee is about.
    """
    _check_out(out, table)
    from tacit.jobs import load_model

    with results_alone():
        model = load_model(find_run(run), modules=module or ())
    note_unused(module, model)
    frame = _read(table, model)
    try:
        with results_alone():
            scored = model.score_table(frame)
    except DataError as error:
        raise DataError(f"{table}: {error}") from error
    _write(scored, out)
    facts = {"run": model.run, "table": table, "out": out, "records": len(frame)}
    unfit = model.count_unfit(frame) if model.columns is not None else None
    if json:
        cells = {} if unfit is None else {name: row.to_dict() for name, row in unfit.iterrows()}
        print_json({"version": 1, **facts, "statement": model.statement_digest, "unfit": cells})
        return
    print_text(f"{table}: {len(frame):,} records, scored by {model.run} into {out}")
    if unfit is not None and unfit.to_numpy().any():
        _say_unfit(unfit, model)


def _check_out(out: Path, table: Path) -> None:
    """Refuse a file that could not be written, or that is the table itself."""
    if not out.name.lower().endswith(_KINDS):
        raise ParameterError(f"out must end with one of {', '.join(_KINDS)}, got {str(out)!r}.")
    check_file("out", out)
    if out.exists() and table.exists() and out.samefile(table):
        raise ParameterError(f"out must be another file than the table, got {str(out)!r}.")


def _read(table: Path, model: TrainedModel) -> pd.DataFrame:
    """Return the new records; numbers are read as such at once."""
    from tacit.data import Numeric, Unbounded, read_table

    if model.columns is None:
        return read_table(table, numeric=model.feature_names)
    described = model.columns.columns.items()
    numeric = [name for name, column in described if isinstance(column, Numeric | Unbounded)]
    return read_table(table, numeric=numeric)


def _write(scored: pd.DataFrame, out: Path) -> None:
    """Write the scored records."""
    if out.suffix.lower() != ".parquet":
        probabilities = [name for name in scored.columns if name.startswith("probability_")]
        scored.round(dict.fromkeys(probabilities, 6)).to_csv(out, index=False)
        return
    try:
        scored.to_parquet(out, index=False)
    except ImportError as error:
        raise DataError(
            f"writing Parquet needs pyarrow; {install_extra('parquet')} installs it. Or give out a name "
            "with .csv."
        ) from error


def _say_unfit(unfit: pd.DataFrame, model: TrainedModel) -> None:
    """Say which cells did not fit, by column, and what becomes of them."""
    from tacit.data import Unbounded

    described = {} if model.columns is None else model.columns.columns
    unbounded = any(isinstance(column, Unbounded) for column in described.values())
    more = " Where a column without bounds says nothing of one, there is no prediction." if unbounded else ""
    found = unfit[unfit.any(axis=1)]
    columns = ("column", "missing", "unknown category", "outside its bounds")
    rows = [(name, *(f"{count:,}" for count in row)) for name, row in found.iterrows()]
    print_line(
        to_error=False,
        label="note",
        text="some cells fit no description: a missing one counts as its column says, or as the middle of "
        "the bounds, an unknown category as none, and a number outside its bounds as the nearer bound."
        f"{more}",
        colour="yellow",
    )
    print_table(columns, rows, right=columns[1:])
