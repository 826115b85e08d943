"""`tacit plan`."""

from tacit.cli.plan.commands import app
from tacit.cli.plan.drawn_reports import reports
from tacit.cli.plan.frequencies import frequencies
from tacit.cli.plan.train import train
from tacit.cli.several import several

__all__ = ["app"]

app.command(cls=several("--levels", numbers=("--levels",)))(frequencies)
app.command()(train)
app.command()(reports)
