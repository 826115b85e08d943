"""`tacit federation`: found a federation of real parties, ask how it is, or see one on this machine."""

from __future__ import annotations

import typer

from tacit.cli.federation.amend import amend
from tacit.cli.federation.demo import demo
from tacit.cli.federation.fingerprint import fingerprint
from tacit.cli.federation.init import init
from tacit.cli.federation.join import join
from tacit.cli.federation.renew import renew
from tacit.cli.federation.status import status

__all__ = ["app"]

app = typer.Typer(
    help="Federations of real parties: keys and configurations, status, a demo.", no_args_is_help=True
)
app.command()(join)
app.command()(init)
app.command()(fingerprint)
app.command()(amend)
app.command()(renew)
app.command()(status)
app.command()(demo)


@app.callback()
def _group() -> None:
    """Keep each command one of its own."""
