"""`tacit vote`."""

from tacit.cli.vote.commands import app

__all__ = ["app"]
