"""`tacit plan`."""

from tacit.cli.plan.commands import app

__all__ = ["app"]
