"""`tacit schema`: the JSON schema of a file, or of what a command prints with `--json`."""

from __future__ import annotations

from typing import Annotated

import typer

from tacit.cli.output import JsonFlag, print_json, print_text
from tacit.errors import check_choice

__all__ = ["schema"]


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            help="A file, such as model.json, or a command in quotes, such as 'account noise'.",
            show_default="the list of all",
        ),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Print the JSON schema of a file, or of what a command prints with --json.

    Job, columns and plan are files in TOML; the schema is of what a parser reads from them.
    """
    from tacit.cli.forms import FILES, OUTPUTS, schema_of

    known = [*FILES, *OUTPUTS]
    if name is not None:
        print_json(schema_of(check_choice("name", name, known)))
    elif json:
        print_json({"schemas": known})
    else:
        print_text("\n".join(known))
