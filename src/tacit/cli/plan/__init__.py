"""`tacit plan`."""

from tacit.cli.plan.commands import app
from tacit.cli.plan.frequencies import frequencies
from tacit.cli.plan.train import train

__all__ = ["app"]

app.command()(frequencies)
app.command()(train)
