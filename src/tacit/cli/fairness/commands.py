"""`tacit fairness`: how fair predictions are, and what fairness costs in accuracy."""

from __future__ import annotations

import typer

from tacit.cli.fairness.audit import audit
from tacit.cli.fairness.curve import curve

__all__ = ["app"]

app = typer.Typer(
    help="Tell how fair a model is, and draw what fairness costs.",
    no_args_is_help=True,
)


@app.callback()
def _group() -> None:
    """Tell how fair a model is, and draw what fairness costs."""


for _command in (audit, curve):
    app.command()(_command)
