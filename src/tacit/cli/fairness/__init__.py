"""`tacit fairness`."""

from tacit.cli.fairness.commands import app

__all__ = ["app"]
