"""`tacit federation`: found a federation of real parties, ask how it is, or see one on this machine."""

from __future__ import annotations

import typer

from tacit.cli.federation.demo import demo
from tacit.cli.federation.init import init
from tacit.cli.federation.rotate import rotate
from tacit.cli.federation.status import status

__all__ = ["app"]

app = typer.Typer(
    help="Federations of real parties: keys and configurations, status, a demo.", no_args_is_help=True
)
app.command()(init)
app.command()(status)
app.command()(rotate)
app.command()(demo)


@app.callback()
def _group() -> None:
    """Keep each command one of its own."""
