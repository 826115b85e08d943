"""`tacit data`: descriptions of a person's own tables, and named public data sets."""

from __future__ import annotations

import typer

from tacit.cli.data.catalogue import describe, fetch, list_all
from tacit.cli.data.tables import check, scaffold

__all__ = ["app"]

app = typer.Typer(help="Describe and check tables of your own; find public data sets.", no_args_is_help=True)
for _command in (scaffold, check, describe, fetch):
    app.command()(_command)
app.command("list")(list_all)
