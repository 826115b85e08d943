"""`tacit plan`."""

from tacit.cli.plan.commands import app
from tacit.cli.plan.train import train

__all__ = ["app"]

app.command()(train)
