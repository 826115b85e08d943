"""`tacit data scaffold` and `tacit data check`: from files to a column description that training takes."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from tacit.cli.choices import OneOf
from tacit.cli.files import check_file
from tacit.cli.output import JsonFlag, print_json, print_line, print_text
from tacit.errors import DataError, ParameterError

if TYPE_CHECKING:
    import pandas as pd

    from tacit.data import TableProblem

__all__ = ["check", "scaffold"]

_TASKS: Final = ("classification", "regression")
Files = Annotated[
    list[str],
    typer.Argument(help="Tables: files, folders, patterns. Each file is a silo.", show_default=False),
]
LabelOption = Annotated[str, typer.Option(help="Column to predict.", show_default=False)]
Person = Annotated[
    str | None,
    typer.Option(
        help="Column that identifies the person of each record.", show_default="records are protected"
    ),
]
SiloColumn = Annotated[
    str | None,
    typer.Option(help="Column that names the silo of each record.", show_default="each file is a silo"),
]
TaskOption = Annotated[str, typer.Option(click_type=OneOf(_TASKS), help="What the label asks for: {names}.")]


def scaffold(
    files: Files,
    label: LabelOption,
    person: Person = None,
    silo_column: SiloColumn = None,
    task: TaskOption = "classification",
    out: Annotated[
        Path | None,
        typer.Option(help="File to write.", show_default="the one that training looks for"),
    ] = None,
) -> None:
    """Write a column description with gaps for you to fill in.

    Kinds of columns are proposed: numbers, dates, categories, and what is better ignored, such as ids and
    free text. Bounds, categories and classes are left empty: they must come from public knowledge, and a
    description with gaps is refused.
    """
    import pandas as pd

    from tacit.data import FILL_IN, find_tables, propose_description, read_table
    from tacit.data.encoding import check_columns

    regression = _regression(task)
    tables = find_tables(files)
    out = tables.description if out is None else out
    if out.exists():
        raise ParameterError(f"out must be a file that is not there yet, got {str(out)!r}.")
    check_file("out", out)
    frame = pd.concat([read_table(path).astype(object) for path in tables.files], ignore_index=True)
    roles = {"--label": label, "--person": person, "--silo-column": silo_column}
    given = {flag: name for flag, name in roles.items() if name is not None}
    check_columns(frame, given.values(), role="column")
    text = propose_description(
        frame,
        source=", ".join(files),
        label=label,
        regression=regression,
        person=person,
        ignored=[] if silo_column is None else [silo_column],
    )
    out.write_text(text, encoding="utf-8")
    gaps = text.count(f'"{FILL_IN}"') - 1  # the comment on top names it
    words = files + ([] if out == tables.description else ["--columns", str(out)])
    words += [] if silo_column is None else ["--silo-column", silo_column]
    words += ["--task", task] if regression else []
    print_text(f"{out}: {gaps} gaps to fill in, for {len(frame.columns)} columns.")
    print_line(to_error=False, label="then", text=f"tacit data check {shlex.join(words)}", colour="green")


def check(
    files: Files,
    label: Annotated[
        str | None, typer.Option(help="Column to predict.", show_default="as the description has it")
    ] = None,
    columns: Annotated[
        Path | None,
        typer.Option(help="TOML file with public bounds.", show_default="as training finds it"),
    ] = None,
    person: Person = None,
    silo_column: SiloColumn = None,
    task: TaskOption = "classification",
    json: JsonFlag = False,
) -> None:
    """Look for everything that stands between tables and training, in all files at once.

    Cells are counted, which training never does: the output is for whoever may see the records. The exit
    code is 0 where nothing must be mended.
    """
    from tacit.data import TableProblem, find_problems, find_tables, find_wrong_text, read_table

    regression = _regression(task)
    tables = find_tables(files)
    spec = tables.described(columns)
    named = label if label is not None or spec.label is None else spec.label.column
    if named is None:
        raise ParameterError("label must be given where the description names no column, got None.")
    frames: dict[str, pd.DataFrame] = {}
    found: list[TableProblem] = []
    for path in tables.files:
        try:
            frames[str(path)] = read_table(path)
        except DataError as error:
            found.append(TableProblem(column=str(path), what=str(error), must=True))
            continue
        found += find_wrong_text(path, frames[str(path)], spec)
    found += find_problems(
        frames,
        spec,
        label=named,
        person=person or spec.person,
        silo_column=silo_column,
        regression=regression,
    )
    records = sum(map(len, frames.values()))
    must = sum(one.must for one in found)
    if json:
        print_json({"version": 1, "files": list(frames), "records": records, "problems": found})
    else:
        for one in found:
            _say(one)
        count = len(tables.files)
        which = "1 file" if count == 1 else f"{count} files"
        print_text(f"{which}, {records:,} records: {must} to mend, {len(found) - must} to know.")
    if must:
        raise typer.Exit(DataError.exit_code)


def _say(one: TableProblem) -> None:
    """Print a problem, and below it what to write."""
    label, colour = ("mend", "red") if one.must else ("note", "yellow")
    print_line(to_error=False, label=label, text=f"{one.column}: {one.what}", colour=colour)
    for line in one.write.splitlines():
        print_text(f"      {line}")


def _regression(task: str) -> bool:
    """Whether the label is a number."""
    return task == "regression"
